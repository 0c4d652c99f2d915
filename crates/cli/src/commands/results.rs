//! `sidestep results`: asks every finished point.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::{Outcome, package};

/// Ask every finished point, of the cache and of sweeps' data sets, as one table; by the Python package `sidestep`.
///
/// The table is called `points` and has the columns origin, version, machine, experiment, point, inputs, seed,
/// repetitions, status, baseline, sidestep, ratio and counters; inputs and counters are JSON.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Results {
    #[command(flatten)]
    asked: Asked,
    #[command(subcommand)]
    question: Option<Question>,
}

#[derive(Subcommand)]
enum Question {
    /// Which values moved from one version to another, and by how much
    Diff {
        /// The old version, or its beginning
        old: String,
        /// The new one
        new: String,
        #[command(flatten)]
        sources: Sources,
    },
}

#[derive(Args)]
struct Asked {
    /// A question in DuckDB's SQL: "SELECT experiment, count(*) FROM points GROUP BY ALL" [default: all of the table]
    #[arg(value_name = "SQL")]
    sql: Option<String>,
    #[command(flatten)]
    sources: Sources,
}

#[derive(Args)]
struct Sources {
    /// A cache's folder or a data set; may be repeated [default: the cache in the user's cache folder]
    #[arg(long = "from", value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// Where to write the answer, a file whose name ends in .parquet, .csv or .json [default: the standard output]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Results {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let mut arguments: Vec<OsString> = vec!["results".into()];
        let sources = match self.question {
            Some(Question::Diff { old, new, sources }) => {
                arguments.extend(["--diff".into(), old.into(), new.into()]);
                sources
            }
            None => {
                let sql = self.asked.sql.unwrap_or_default();
                arguments.push(format!("--sql={sql}").into());
                self.asked.sources
            }
        };
        for folder in sources.folders {
            arguments.extend(["--from".into(), folder.into()]);
        }
        if let Some(output) = sources.output {
            arguments.extend(["--output".into(), output.into()]);
        }
        match package::run(arguments, &[])?.success() {
            true => Ok(ExitCode::SUCCESS),
            false => Ok(ExitCode::FAILURE),
        }
    }
}
