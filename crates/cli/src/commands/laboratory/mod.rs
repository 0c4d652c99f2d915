//! What the commands of the laboratory have in common: which experiments run and how, how results are written, and what
//! is said when the user stops.

pub mod progress;

use std::env;
use std::error::Error;
use std::io::{self, IsTerminal};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use clap::{Args, ValueEnum};
use sidestep_lab::run::cache::Cache;
use sidestep_lab::statistics::MOST_REPETITIONS;
use sidestep_lab::{Request, report};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::INTERRUPTED;

/// How wide a table may be where there is no terminal to ask.
const USUAL_WIDTH: usize = 120;

/// How experiments run.
#[derive(Args)]
pub struct Running {
    /// Change an input of the experiments that have it; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
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
    /// Where finished points are kept [default: sidestep in the user's cache folder]
    #[arg(long, value_name = "FOLDER", conflicts_with = "no_cache")]
    cache: Option<PathBuf>,
    /// Neither use points of earlier runs nor keep those of this one
    #[arg(long)]
    no_cache: bool,
}

impl Running {
    /// The request, with further settings.
    pub fn request(&self, further: impl IntoIterator<Item = String>, trace: bool) -> Request {
        Request {
            settings: self.settings.iter().cloned().chain(further).collect(),
            quick: self.quick,
            seed: self.seed,
            repetitions: self.repeat,
            trace,
        }
    }

    /// How many points run side by side.
    pub fn jobs(&self) -> NonZeroUsize {
        self.jobs
            .or_else(|| thread::available_parallelism().ok())
            .unwrap_or(NonZeroUsize::MIN)
    }

    /// Where finished points are kept, if anywhere.
    pub fn cache(&self) -> Option<Cache> {
        self.cache_folder()
            .map(|folder| Cache::at(folder, sidestep_experiments::VERSION))
    }

    /// The folder where finished points are kept, if there is one.
    pub fn cache_folder(&self) -> Option<PathBuf> {
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

    /// Says that the run was interrupted, with what is finished, and how to go on. The outputs are not written: they
    /// would hold a part only. Answers the exit code.
    pub fn interrupted(&self, finished: &str) -> u8 {
        let kept = match self.cache_folder() {
            Some(_) => "They are kept: give the same command again to go on from there",
            None => "They are not kept, because of --no-cache",
        };
        say!("sidestep: interrupted with {finished} finished. {kept}.");
        if self.cache_folder().is_some() {
            say!("    {}", same_command());
        }
        INTERRUPTED
    }
}

/// How results are written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
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

/// Where results are written.
#[derive(Args)]
pub struct Outputs {
    /// How to write the results
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Where to write the results [default: the standard output]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Also write a report as one self-contained page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Also write each chart as an SVG file into a folder
    #[arg(long, value_name = "FOLDER")]
    pub charts: Option<PathBuf>,
}

impl Outputs {
    /// Finds out before any work whether the outputs can be written, and some other files.
    pub fn check(&self, others: &[&Option<PathBuf>]) -> Result<(), Box<dyn Error>> {
        if self.format == Format::Parquet && !cfg!(feature = "parquet") {
            return Err(super::not_built("writes no Parquet", "parquet").into());
        }
        if self.format == Format::Parquet && self.output.is_none() && io::stdout().is_terminal() {
            return Err("parquet is not for terminals; name a file with --output".into());
        }
        for path in [&self.output, &self.html]
            .into_iter()
            .chain(others.iter().copied())
            .flatten()
        {
            sidestep_files::probe(path)?;
        }
        Ok(())
    }

    /// Writes charts, if they are wanted.
    pub fn write_charts(
        &self,
        charts: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(), Box<dyn Error>> {
        let Some(folder) = &self.charts else { return Ok(()) };
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
        for (name, content) in charts {
            sidestep_files::write(&folder.join(name), content.as_bytes())?;
        }
        Ok(())
    }

    /// Writes the results themselves.
    pub fn write_results(&self, results: &[u8]) -> Result<(), Box<dyn Error>> {
        match &self.output {
            Some(path) => Ok(sidestep_files::write(path, results)?),
            None => super::print(results),
        }
    }

    /// How wide a table may be.
    pub fn width(&self) -> usize {
        let terminal = if self.output.is_none() {
            super::terminal_width()
        } else {
            None
        };
        terminal.unwrap_or(USUAL_WIDTH)
    }
}

/// A flag that Ctrl-C and SIGTERM raise; the second of them ends the process at once.
pub fn stop_on_signals() -> io::Result<Arc<AtomicBool>> {
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
