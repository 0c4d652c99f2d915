//! `sidestep compare`: runs experiments and writes what came out.

mod progress;

use std::env;
use std::error::Error;
use std::fs;
use std::io::{self, IsTerminal};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use clap::{Args, ValueEnum};
use sidestep_experiments as experiments;
use sidestep_lab::run::cache::Cache;
use sidestep_lab::run::plan_all;
use sidestep_lab::statistics::MOST_REPETITIONS;
use sidestep_lab::{Comparison, Request, Runner, report};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::{INTERRUPTED, Outcome};
use progress::Progress;

/// How wide a table may be where there is no terminal to ask.
const USUAL_WIDTH: usize = 120;

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
    /// Change an input of the experiments that have it; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// A recording of `sidestep gang watch --save`, for experiments on sharing: short for --set matrix=FILE
    #[arg(long, value_name = "FILE")]
    matrix: Option<String>,
    /// A smaller sweep with fewer repetitions
    #[arg(long)]
    quick: bool,
    /// The seed of the first repetition; each further one takes the next
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// How often to run each point that is not deterministic [default: 7, or 3 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_REPETITIONS as i64))]
    repeat: Option<u32>,
    /// How many points run side by side; those that measure real time run alone [default: the host's cores]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// How to write the results
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Where to write the results [default: the standard output]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also write a report as one self-contained page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also write each chart as an SVG file into a folder
    #[arg(long, value_name = "FOLDER")]
    charts: Option<PathBuf>,
    /// Also record what happens when, for Perfetto
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Where finished points are kept [default: sidestep in the user's cache folder]
    #[arg(long, value_name = "FOLDER", conflicts_with = "no_cache")]
    cache: Option<PathBuf>,
    /// Neither use points of earlier runs nor keep those of this one
    #[arg(long)]
    no_cache: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Table,
    /// One JSON document with everything
    Json,
    /// A row a point, comma-separated
    Csv,
    /// A row a point, as Apache Parquet
    Parquet,
    /// Markdown: what the papers state beside what came out, then every point
    Markdown,
}

impl Compare {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let chosen = match self.all {
            true => experiments::all(),
            false => experiments::find(&self.names)?,
        };
        let mut settings = self.settings.clone();
        settings.extend(self.matrix.iter().map(|path| format!("matrix={path}")));
        let request = Request {
            settings,
            quick: self.quick,
            seed: self.seed,
            repetitions: self.repeat,
            trace: self.trace.is_some(),
        };
        let plans = plan_all(&chosen, &request)?;
        self.check_outputs()?;
        let cache = self.cache_folder().map(Cache::at);

        let cancelled = stop_on_signals()?;
        let progress = Progress::new(&plans, &cancelled);
        let runner = Runner {
            jobs: self
                .jobs
                .or_else(|| thread::available_parallelism().ok())
                .unwrap_or(NonZeroUsize::MIN),
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
                eprintln!("sidestep: {}: no findings: {defect}", comparison.about.name);
                code = ExitCode::FAILURE;
            }
            for (row, error) in comparison.failures() {
                eprintln!("sidestep: {}: {}: {error}", comparison.about.name, row.point);
                code = ExitCode::FAILURE;
            }
        }
        Ok(code)
    }

    /// Finds out before any work whether the outputs can be written.
    fn check_outputs(&self) -> Result<(), Box<dyn Error>> {
        if self.format == Format::Parquet && !cfg!(feature = "parquet") {
            return Err(super::not_built("writes no Parquet", "parquet").into());
        }
        if self.format == Format::Parquet && self.output.is_none() && io::stdout().is_terminal() {
            return Err("parquet is not for terminals; name a file with --output".into());
        }
        for path in [&self.output, &self.html, &self.trace].into_iter().flatten() {
            sidestep_files::probe(path)?;
        }
        Ok(())
    }

    fn cache_folder(&self) -> Option<PathBuf> {
        if self.no_cache {
            return None;
        }
        let absolute = |name: &str| {
            env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        self.cache
            .clone()
            .or_else(|| Some(absolute("XDG_CACHE_HOME")?.join("sidestep")))
            .or_else(|| Some(absolute("HOME")?.join(".cache/sidestep")))
    }

    /// Writes every output; each appears whole or not at all.
    fn write(&self, comparisons: &[Comparison]) -> Result<(), Box<dyn Error>> {
        let results = match self.format {
            Format::Table => report::table::render(comparisons, self.width()).into_bytes(),
            Format::Json => report::json::render(comparisons).into_bytes(),
            Format::Csv => report::csv::render(comparisons).into_bytes(),
            #[cfg(feature = "parquet")]
            Format::Parquet => report::parquet::render(comparisons),
            #[cfg(not(feature = "parquet"))]
            Format::Parquet => unreachable!("refused before any work"),
            Format::Markdown => report::markdown::render(comparisons).into_bytes(),
        };
        if let Some(path) = &self.html {
            sidestep_files::write(path, report::html::render(comparisons).as_bytes())?;
        }
        if let Some(path) = &self.trace {
            sidestep_files::write(path, report::trace::render(comparisons).as_bytes())?;
            for name in report::trace::silent(comparisons) {
                eprintln!("sidestep: {name} records no timeline");
            }
        }
        if let Some(folder) = &self.charts {
            fs::create_dir_all(folder)
                .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
            for (name, content) in comparisons.iter().flat_map(report::picture::files) {
                sidestep_files::write(&folder.join(name), content.as_bytes())?;
            }
        }
        match &self.output {
            Some(path) => sidestep_files::write(path, &results)?,
            None => super::print(&results)?,
        }
        Ok(())
    }

    fn width(&self) -> usize {
        match (&self.output, terminal_size::terminal_size()) {
            (None, Some((terminal_size::Width(width), _))) if io::stdout().is_terminal() => width.into(),
            _ => USUAL_WIDTH,
        }
    }

    /// Says what is finished and how to go on. The outputs are not written: they would hold a part only.
    fn interrupted(&self, comparisons: &[Comparison]) -> Outcome {
        let rows = || comparisons.iter().flat_map(|comparison| &comparison.rows);
        let finished = rows().filter(|row| row.result.is_ok()).count();
        if self.format == Format::Table && self.output.is_none() {
            super::print(report::table::render(comparisons, self.width()).as_bytes())?;
        }
        let kept = match self.cache_folder() {
            Some(_) => "They are kept: give the same command again to go on from there",
            None => "They are not kept, because of --no-cache",
        };
        eprintln!(
            "sidestep: interrupted with {finished} of {} points finished. {kept}.",
            rows().count()
        );
        if self.cache_folder().is_some() {
            eprintln!("    {}", same_command());
        }
        Ok(ExitCode::from(INTERRUPTED))
    }
}

/// A flag that Ctrl-C and SIGTERM raise; the second of them ends the process at once.
fn stop_on_signals() -> io::Result<Arc<AtomicBool>> {
    let cancelled = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, i32::from(INTERRUPTED), cancelled.clone())?;
        signal_hook::flag::register(signal, cancelled.clone())?;
    }
    Ok(cancelled)
}

/// The command line as it was given.
fn same_command() -> String {
    let words = env::args_os().enumerate().map(|(index, word)| match index {
        0 => Path::new(&word)
            .file_name()
            .unwrap_or(&word)
            .to_string_lossy()
            .into_owned(),
        _ => report::quoted(&word.to_string_lossy()),
    });
    words.collect::<Vec<_>>().join(" ")
}
