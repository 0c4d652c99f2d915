//! `sidestep calibrate`: what transitions cost on this machine, as a table for modelled hosts.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use sidestep_hypervisor::calibration::{Calibration, Options, Quantity, allowed_cores};
use sidestep_hypervisor::costs::{Cost, HostCosts};

use super::Outcome;

/// Measure what transitions cost on this machine.
///
/// Medians of many samples, each with an interval that holds the true median with 95 % confidence. What this machine
/// cannot do is said with the reason. The table that `--output` writes is what `costs` in the description of a host
/// takes, and `--set host-file=FILE` of the experiments of sidecores; entries that could not be measured come from
/// another machine, and say so.
#[derive(Args)]
pub struct Calibrate {
    /// Write the table of costs to this file.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The two cores that measure together [default: the first and the last that this process may run on].
    #[arg(long, value_name = "CORE,CORE", value_parser = parse_cores)]
    cores: Option<(usize, usize)>,
    /// How many samples of each quantity to take, 6 to 10000.
    #[arg(long, value_name = "N", default_value_t = 101)]
    samples: usize,
    /// How the measurements are written to the standard output.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people: the measurements, then the costs.
    Text,
    /// For programs: the measurements in picoseconds, and the costs.
    Json,
    /// The table of costs alone.
    Toml,
}

/// Two cores, by number.
fn parse_cores(text: &str) -> Result<(usize, usize), String> {
    let cores = text.split_once(',');
    let cores = cores.and_then(|(one, other)| Some((one.trim().parse().ok()?, other.trim().parse().ok()?)));
    cores.ok_or_else(|| "must be the numbers of two cores, as in 0,1".to_owned())
}

impl Calibrate {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        self.output.as_deref().map(sidestep_files::probe).transpose()?;
        let cores = match self.cores {
            Some(cores) => cores,
            None => {
                let allowed = allowed_cores()?;
                let ends = allowed.first().zip(allowed.last());
                let (first, last) = ends.ok_or("this process may run on no core")?;
                (*first, *last)
            }
        };
        let options = Options {
            samples: self.samples,
            cores,
        };
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len}  {wide_msg}")?;
        let bar = ProgressBar::new(Quantity::ALL.len() as u64).with_style(style);
        let calibration = Calibration::measure(&options, |quantity| {
            bar.set_message(quantity.description());
            bar.inc(1);
        });
        bar.finish_and_clear();
        let calibration = calibration?;
        let costs = calibration.costs()?;
        if let Some(path) = &self.output {
            sidestep_files::write(path, costs.to_toml().as_bytes())?;
        }
        let text = match self.format {
            Format::Text => text_of(&calibration, &costs),
            Format::Json => {
                let mut document = serde_json::to_value(&calibration)?;
                document["costs"] = serde_json::to_value(&costs)?;
                serde_json::to_string_pretty(&document)? + "\n"
            }
            Format::Toml => costs.to_toml(),
        };
        super::print(text.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Nanoseconds with a digit behind the point.
fn nanoseconds(picoseconds: u64) -> String {
    format!("{}.{}", picoseconds / 1000, picoseconds % 1000 / 100)
}

/// Both tables for people.
fn text_of(calibration: &Calibration, costs: &HostCosts) -> String {
    let mut text = format!(
        "{}, cores {} and {}, {} MHz, {} samples\n\n{:>12} {:>25}  nanoseconds: median, 95 % interval\n",
        calibration.processor,
        calibration.cores.0,
        calibration.cores.1,
        costs.clock_mhz,
        calibration.samples,
        "",
        ""
    );
    for measurement in &calibration.measurements {
        let what = measurement.quantity.description();
        text.push_str(&match &measurement.result {
            Ok(time) => format!(
                "{:>12} {:>12}{:>13}  {what}\n",
                nanoseconds(time.median),
                nanoseconds(time.low),
                nanoseconds(time.high)
            ),
            Err(error) => format!("{:>12} {:>25}  {what}: {error}\n", "unavailable", ""),
        });
    }
    text.push_str("\n      cycles  cost of a modelled host\n");
    for cost in Cost::ALL {
        let entry = costs.entry(*cost);
        let note = match entry.source.starts_with("not measured") {
            true => " (not measured here)",
            false => "",
        };
        text.push_str(&format!("{:>12}  {}{note}\n", entry.cycles, cost.description()));
    }
    text
}
