//! A FUCE image on the FUCE chip, with a console, a timer and, if asked for, a disk.

use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use sidestep_fuce::chip::{Cause, Chip, ChipConfig, Stop};
use sidestep_fuce::controller::Fault;
use sidestep_fuce::device::{Block, Console, Device, RequestDevice, Timer};
use sidestep_fuce::image::Image;
use sidestep_machine::description::disks::DiskTable;

use super::super::{Outcome, print};
use super::exit_code;

/// The numbers of the devices every run has; the disk follows when there is one.
const CONSOLE: usize = 1;
const DISK: usize = 3;
/// A transfer of the disk at 1 GHz: 50 us to find the place, and 1 us a sector.
const DISK_ACCESS_CYCLES: u64 = 50_000;
const DISK_SECTOR_CYCLES: u64 = 1_000;
/// Thread execution units, and how many cycles a run may take, where nothing is said.
const UNITS: usize = 4;
const CYCLES_MAX: u64 = 100_000_000_000;
/// How many cycles run between two looks at the console.
const SLICE_CYCLES: u64 = 1_000_000;

/// What a FUCE machine has.
#[derive(Args)]
#[command(next_help_heading = "FUCE images")]
pub struct Options {
    /// Thread execution units, 1 to 64 [default: 4].
    #[arg(long, value_name = "N")]
    units: Option<usize>,
    /// What is typed at the console of a FUCE image: the contents of this file; `-` is the standard input. Other
    /// machines take it from the standard input, or as their description says.
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Attach a device that answers requests after this many cycles (may be repeated).
    #[arg(long = "request-device", value_name = "CYCLES")]
    request_devices: Vec<u64>,
    /// Set a word of the program's data before it runs (may be repeated).
    #[arg(long = "word", value_name = "LABEL=NUMBER", value_parser = parse_word)]
    words: Vec<(String, u32)>,
    /// Do not let busy units load their next thread in advance.
    #[arg(long)]
    no_preload: bool,
    /// Stop after so many cycles [default: 100000000000].
    #[arg(long, value_name = "N")]
    max_cycles: Option<u64>,
}

fn parse_word(text: &str) -> Result<(String, u32), String> {
    let word = text
        .split_once('=')
        .and_then(|(name, value)| Some((name.to_owned(), value.parse().ok()?)));
    word.filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| "must be LABEL=NUMBER".to_owned())
}

impl Options {
    /// The first of these options that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        super::first_given(&[
            ("--units", self.units.is_some()),
            ("--input", self.input.is_some()),
            ("--request-device", !self.request_devices.is_empty()),
            ("--word", !self.words.is_empty()),
            ("--no-preload", self.no_preload),
            ("--max-cycles", self.max_cycles.is_some()),
        ])
    }

    /// Boots the image and runs it to its end.
    pub(super) fn run(
        self,
        path: &str,
        bytes: &[u8],
        (disks, snapshot): (&[DiskTable], bool),
        wants_statistics: bool,
    ) -> Outcome {
        let disk = match disks {
            [] => None,
            [disk] if disk.is_plain() => Some(disk.file.as_path()),
            _ => return Err(format!("{path}: a FUCE machine has at most one disk, and writes to it").into()),
        };
        let mut image = Image::from_bytes(bytes).map_err(|error| format!("{path}: {error}"))?;
        for (name, value) in &self.words {
            image
                .set_word(name, *value)
                .map_err(|error| format!("--word {name}: {error}"))?;
        }
        let config = ChipConfig {
            units: self.units.unwrap_or(UNITS),
            preload: !self.no_preload,
            ..ChipConfig::default()
        };
        let mut chip =
            Chip::new(&config, &image, self.devices(disk)?).map_err(|error| format!("{path}: {error}"))?;
        let max_cycles = self.max_cycles.unwrap_or(CYCLES_MAX);
        let stop = loop {
            let slice = (chip.now() + SLICE_CYCLES).min(max_cycles);
            let stop = chip.run(slice);
            if let Some(console) = chip.bus_mut().get_mut::<Console>(CONSOLE) {
                print(&console.take_output())?;
            }
            if stop != Stop::CycleLimit || chip.now() >= max_cycles {
                break stop;
            }
        };
        if let (Some(file), false) = (disk, snapshot) {
            keep_disk(&chip, file)?;
        }
        if wants_statistics {
            std::io::stderr().write_all(statistics(&chip).as_bytes())?;
        }
        match stop {
            Stop::Halt(code) => Ok(exit_code(code.into())),
            other => Err(format!("{path}: {}", describe(other, &chip, &image)).into()),
        }
    }

    /// Devices from number 1 on.
    fn devices(&self, disk: Option<&Path>) -> Result<Vec<Box<dyn Device>>, Box<dyn Error>> {
        let read = |path: &Path| {
            sidestep_files::read(path, sidestep_files::IMAGE_BYTES_MAX)
                .map_err(|error| format!("{}: cannot be read: {error}", path.display()))
        };
        let input = match &self.input {
            None => Vec::new(),
            Some(path) if path.as_os_str() == "-" => sidestep_files::read_stream(std::io::stdin().lock())
                .map_err(|error| format!("the standard input: cannot be read: {error}"))?,
            Some(path) => read(path)?,
        };
        let mut devices: Vec<Box<dyn Device>> = vec![Box::new(Console::new(&input)), Box::new(Timer::new())];
        if let Some(path) = disk {
            devices.push(Box::new(Block::new(
                read(path)?,
                DISK_ACCESS_CYCLES,
                DISK_SECTOR_CYCLES,
            )));
        }
        for cycles in &self.request_devices {
            devices.push(Box::new(RequestDevice::new(*cycles)));
        }
        Ok(devices)
    }
}

/// Puts a changed disk's contents back into its file.
fn keep_disk(chip: &Chip, file: &Path) -> Result<(), Box<dyn Error>> {
    match chip.bus().get::<Block>(DISK) {
        Some(disk) if disk.changed() => Ok(sidestep_files::write(file, disk.contents())?),
        _ => Ok(()),
    }
}

/// Why a run ended without `halt`.
fn describe(stop: Stop, chip: &Chip, image: &Image) -> String {
    let place = |fault: &Fault| format!("{fault}, in {}", image.describe(fault.address));
    match stop {
        Stop::Halt(code) => format!("halted with {code}"),
        Stop::CycleLimit => format!("stopped after {} cycles (--max-cycles)", chip.now()),
        Stop::Idle => format!(
            "no thread is ready and no device will act, after {} cycles",
            chip.now()
        ),
        Stop::UnhandledFault(fault) => format!("fault that nobody handles: {}", place(&fault)),
        Stop::FaultsFull => {
            let oldest = chip.bus().system.oldest_record().map(place).unwrap_or_default();
            format!("more faults than the fault thread takes up; the oldest: {oldest}")
        }
    }
}

/// The counters, one a line.
fn statistics(chip: &Chip) -> String {
    let counters = chip.counters();
    let controller = &counters.controller;
    let mut text = String::new();
    let mut line = |name: &str, value: u64| text.push_str(&format!("{name:32} {value:>14}\n"));
    line("cycles", counters.cycles);
    line("instructions", counters.instructions());
    line("threads", counters.threads());
    line("continuations", controller.continuations);
    line("self-continuations", controller.self_continuations);
    line("locks granted", controller.locks_granted);
    line("locks denied", controller.locks_denied);
    line("instances created", controller.creates);
    line("longest ready queue", counters.longest_queue as u64);
    line("threads spilled", controller.spills);
    line("controller busy cycles", controller.busy_cycles);
    line("memory accesses", counters.memory_accesses);
    line("bank conflict cycles", counters.bank_conflict_cycles);
    line("loaded threads held cycles", counters.preload_held_cycles);
    line("faults", counters.faults);
    for cause in Cause::ALL {
        line(&format!("unit cycles: {}", cause.name()), counters.of(*cause));
    }
    text
}
