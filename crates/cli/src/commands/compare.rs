//! `sidestep compare`: runs experiments and writes what came out.

use std::error::Error;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use sidestep_experiments as experiments;
use sidestep_lab::run::plan_all;
use sidestep_lab::{Comparison, Plan, Runner, report};

use super::laboratory::progress::Progress;
use super::laboratory::{Format, Outputs, Running, stop_on_signals};
use super::{Outcome, package};

/// Run experiments: baseline against sidestep, beside what the paper states.
///
/// Finished points are kept, so that an interrupted sweep goes on where it stopped when the same command is given
/// again.
#[derive(Args)]
pub struct Compare {
    /// Experiments (`gang.groups`) or areas (`gang`); `sidestep list` names them
    #[arg(required_unless_present = "all")]
    names: Vec<String>,
    /// Every experiment
    #[arg(long, conflicts_with = "names")]
    all: bool,
    #[command(flatten)]
    running: Running,
    /// A recording of `sidestep gang watch --save`, for experiments on sharing: short for --set matrix=FILE
    #[arg(long, value_name = "FILE")]
    matrix: Option<String>,
    #[command(flatten)]
    outputs: Outputs,
    /// Also record what happens when, for Perfetto
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Have a Dask cluster compute the points that are not kept yet, by its scheduler's address: tcp://HOST:8786. Those
    /// that measure real time run here. Needs the Python package `sidestep` of the same version
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["no_cache", "trace"])]
    on: Option<String>,
}

impl Compare {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let chosen = match self.all {
            true => experiments::all(),
            false => experiments::find(&self.names)?,
        };
        let matrix = self.matrix.iter().map(|path| format!("matrix={path}"));
        let request = self.running.request(matrix, self.trace.is_some());
        let plans = plan_all(&chosen, &request)?;
        self.outputs.check(&[&self.trace])?;
        let cache = self.running.cache();
        if let Some(address) = &self.on
            && !self.fill(address, &plans)?
        {
            return Ok(ExitCode::FAILURE);
        }

        let cancelled = stop_on_signals()?;
        let progress = Progress::new(&plans, &cancelled);
        let runner = Runner {
            jobs: self.running.jobs(),
            cache: cache.as_ref(),
            cancelled: &cancelled,
            observer: &progress,
        };
        let mut comparisons = runner.run(&plans);
        progress.finish();

        if !comparisons.iter().all(Comparison::is_complete) {
            return self.interrupted(&comparisons);
        }
        // A page shows a timeline beside the numbers. Nobody waits long for a point each.
        let quietly = Runner {
            jobs: self.running.jobs(),
            cache: cache.as_ref(),
            cancelled: &cancelled,
            observer: &(),
        };
        if self.outputs.html.is_some() && quietly.record(&plans, &mut comparisons).is_err() {
            return self.interrupted(&comparisons);
        }
        self.write(&comparisons)?;
        let mut code = ExitCode::SUCCESS;
        for comparison in &comparisons {
            if let Some(defect) = &comparison.defect {
                say!("sidestep: {}: no findings: {defect}", comparison.about.name);
                code = ExitCode::FAILURE;
            }
            for (row, error) in comparison.failures() {
                say!("sidestep: {}: {}: {error}", comparison.about.name, row.point);
                code = ExitCode::FAILURE;
            }
        }
        Ok(code)
    }

    /// Has a cluster compute what the cache lacks; says whether it could.
    fn fill(&self, address: &str, plans: &[Plan]) -> Result<bool, Box<dyn Error>> {
        let folder = self
            .running
            .cache_folder()
            .ok_or("--on needs a folder for finished points: --cache FOLDER")?;
        let request = |plan: &Plan| {
            let request = plan.request();
            json!({
                "experiment": plan.about().name,
                "settings": request.settings,
                "quick": request.quick,
                "seed": request.seed,
                "repetitions": request.repetitions,
            })
        };
        let requests: Vec<_> = plans.iter().map(request).collect();
        let arguments = [
            OsStr::new("fill"),
            OsStr::new("--on"),
            OsStr::new(address),
            OsStr::new("--cache"),
            folder.as_os_str(),
            OsStr::new("--version"),
            OsStr::new(experiments::VERSION),
        ];
        Ok(package::run(arguments, &serde_json::to_vec(&requests)?)?.success())
    }

    /// Writes every output; each appears whole or not at all.
    fn write(&self, comparisons: &[Comparison]) -> Result<(), Box<dyn Error>> {
        let results = match self.outputs.format {
            Format::Table => report::table::render(comparisons, self.outputs.width()).into_bytes(),
            Format::Json => report::json::render(comparisons).into_bytes(),
            Format::Csv => report::csv::render(comparisons).into_bytes(),
            #[cfg(feature = "parquet")]
            Format::Parquet => report::parquet::render(comparisons),
            #[cfg(not(feature = "parquet"))]
            Format::Parquet => unreachable!("refused before any work"),
            Format::Markdown => report::markdown::render(comparisons).into_bytes(),
        };
        if let Some(path) = &self.outputs.html {
            sidestep_files::write(path, report::html::render(comparisons).as_bytes())?;
        }
        if let Some(path) = &self.trace {
            sidestep_files::write(path, report::trace::render(comparisons).as_bytes())?;
            for name in report::trace::silent(comparisons) {
                say!("sidestep: {name} records no timeline");
            }
        }
        self.outputs
            .write_charts(comparisons.iter().flat_map(report::picture::files))?;
        self.outputs.write_results(&results)
    }

    /// Shows what is finished, and says how to go on.
    fn interrupted(&self, comparisons: &[Comparison]) -> Outcome {
        let rows = || comparisons.iter().flat_map(|comparison| &comparison.rows);
        let finished = rows().filter(|row| row.result.is_ok()).count();
        if self.outputs.format == Format::Table && self.outputs.output.is_none() {
            let begun: Vec<Comparison> = comparisons.iter().filter_map(Comparison::finished_part).collect();
            super::print(report::table::render(&begun, self.outputs.width()).as_bytes())?;
        }
        let finished = format!("{finished} of {} points", rows().count());
        Ok(ExitCode::from(self.running.interrupted(&finished)))
    }
}
