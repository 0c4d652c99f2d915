//! `sidestep compare`: runs experiments and writes what came out.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use sidestep_experiments as experiments;
use sidestep_lab::run::plan_all;
use sidestep_lab::{Comparison, Runner, report};

use super::Outcome;
use super::laboratory::progress::Progress;
use super::laboratory::{Format, Outputs, Running, stop_on_signals};

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

        let cancelled = stop_on_signals()?;
        let progress = Progress::new(&plans, &cancelled);
        let runner = Runner {
            jobs: self.running.jobs(),
            cache: cache.as_ref(),
            cancelled: &cancelled,
            observer: &progress,
        };
        let comparisons = runner.run(&plans);
        progress.finish();

        if !comparisons.iter().all(Comparison::is_complete) {
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
