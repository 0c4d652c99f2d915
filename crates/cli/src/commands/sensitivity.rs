//! `sidestep sensitivity`: which assumed inputs an experiment's verdicts hang on, and where they turn.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use sidestep_experiments as experiments;
use sidestep_lab::run::{Plan, requests};
use sidestep_lab::sensitivity::{Design, SensitivityError, analyse};
use sidestep_lab::{Experiment, Nature, Runner, Sensitivity, report};

use super::Outcome;
use super::laboratory::progress::Progress;
use super::laboratory::{Format, Outputs, Running, stop_on_signals};

/// Find out which assumed inputs turn an experiment's verdicts, and where
///
/// Every input whose source says that it is chosen, assumed or estimated is tried alone, at half and twice its value or
/// over its stated range, and choices by their others. Where a verdict turns on the way, the place is found by
/// bisection. Then every pair of the inputs that moved most is tried at all combinations of their values.
#[derive(Args)]
pub struct Sensitive {
    /// Experiments (`cefos.gates`) or areas (`sidecore`), of those in virtual time
    #[arg(required = true)]
    names: Vec<String>,
    #[command(flatten)]
    running: Running,
    /// Try a number without a stated range from its Nth part to N times itself
    #[arg(long, value_name = "N", default_value_t = Design::default().factor,
          value_parser = clap::value_parser!(u32).range(2..=1000))]
    factor: u32,
    /// Try every pair of the N inputs that alone moved most; 0 for none
    #[arg(long, value_name = "N", default_value_t = Design::default().paired)]
    pairs: usize,
    /// Halve an interval in which a verdict turns so often
    #[arg(long, value_name = "N", default_value_t = Design::default().halvings,
          value_parser = clap::value_parser!(u32).range(0..=64))]
    halvings: u32,
    #[command(flatten)]
    outputs: Outputs,
}

impl Sensitive {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let chosen = in_virtual_time(experiments::find(&self.names)?)?;
        let requests = requests(&chosen, &self.running.request([], false))?;
        // What is wrong with an input of any of them is said before the first runs.
        for (experiment, request) in chosen.iter().zip(&requests) {
            Plan::new(*experiment, request)?;
        }
        self.outputs.check(&[])?;
        let cancelled = stop_on_signals()?;
        let design = Design {
            factor: self.factor,
            paired: self.pairs,
            halvings: self.halvings,
        };
        let mut analyses = Vec::new();
        for (experiment, request) in chosen.iter().zip(&requests) {
            let name = experiment.about().name;
            let mut run =
                |stage: &str, plans: &[Plan]| self.stage(&format!("{name}, {stage}"), plans, &cancelled);
            match analyse(*experiment, request, design, &mut run) {
                Ok(analysis) => analyses.push(analysis),
                Err(SensitivityError::Interrupted) => {
                    let finished = format!("{} of {} experiments", analyses.len(), chosen.len());
                    return Ok(ExitCode::from(self.running.interrupted(&finished)));
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.write(&analyses)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Runs the plans of a stage.
    fn stage(
        &self,
        name: &str,
        plans: &[Plan],
        cancelled: &Arc<AtomicBool>,
    ) -> Option<Vec<sidestep_lab::Comparison>> {
        let cache = self.running.cache();
        let progress = Progress::of_stage(name, plans, cancelled);
        let runner = Runner {
            jobs: self.running.jobs(),
            cache: cache.as_ref(),
            cancelled,
            observer: &progress,
        };
        let comparisons = runner.run(plans);
        progress.finish();
        Some(comparisons)
    }

    /// Writes every output; each appears whole or not at all.
    fn write(&self, analyses: &[Sensitivity]) -> Result<(), Box<dyn Error>> {
        use report::sensitivity as written;
        let results = match self.outputs.format {
            Format::Table => written::table(analyses, self.outputs.width()).into_bytes(),
            Format::Json => written::json(analyses).into_bytes(),
            Format::Csv => written::csv(analyses).into_bytes(),
            #[cfg(feature = "parquet")]
            Format::Parquet => written::parquet(analyses),
            #[cfg(not(feature = "parquet"))]
            Format::Parquet => unreachable!("refused before any work"),
            Format::Markdown => written::markdown(analyses).into_bytes(),
        };
        if let Some(path) = &self.outputs.html {
            sidestep_files::write(path, written::html(analyses).as_bytes())?;
        }
        self.outputs
            .write_charts(analyses.iter().flat_map(written::files))?;
        self.outputs.write_results(&results)
    }
}

/// The experiments without those that measure real time, which are named.
fn in_virtual_time(chosen: Vec<&'static dyn Experiment>) -> Result<Vec<&'static dyn Experiment>, String> {
    let (measured, rest): (Vec<_>, Vec<_>) = chosen
        .into_iter()
        .partition(|experiment| experiment.about().nature == Nature::Measured);
    let names: Vec<&str> = measured
        .iter()
        .map(|experiment| experiment.about().name)
        .collect();
    match (names.is_empty(), rest.is_empty()) {
        (false, true) => Err(format!(
            "{}: measured on this host, so that its verdicts hang on the host; name experiments in virtual time",
            names.join(", ")
        )),
        (false, false) => {
            say!(
                "sidestep: left out, because measured on this host: {}",
                names.join(", ")
            );
            Ok(rest)
        }
        (true, _) => Ok(rest),
    }
}
