//! A host with virtual machines, as a TOML file describes it: progress while it runs, and what happened at the end.

mod consoles;
mod network;
mod report;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use sidestep_hypervisor::costs::HostCosts;
use sidestep_hypervisor::debug::DebuggedHost;
use sidestep_hypervisor::description::{Description, WireEnd};
use sidestep_hypervisor::host::sidecores::locked;
use sidestep_hypervisor::host::{HostEnd, Report};
use sidestep_hypervisor::virtual_machine::CoreModel;
use sidestep_hypervisor::{Cycle, Host};
use sidestep_lab::Timeline;
use sidestep_lab::report::trace::render_timeline;
use sidestep_machine::debug::address::Address;
use sidestep_machine::debug::server::{Finish, serve};
use sidestep_runner::host::{ModelledCores, Occupancy};

use super::super::debugger::debugger_at;
use super::super::{INTERRUPTED, LIMIT_REACHED, Outcome, lock, print, print_beside, stop_flag};
use super::console::status::Status;
use super::{description, execution, exit_code, sharing};
use consoles::{Consoles, Guest, Keyboard, Loops};
use network::Network;

/// How a host with virtual machines is run.
#[derive(Args)]
#[command(next_help_heading = "Hosts with virtual machines")]
#[group(id = "host")]
pub struct Options {
    /// Stop after so many cycles of the host [default: 4398046511104].
    #[arg(long, value_name = "CYCLES")]
    max_host_cycles: Option<u64>,
    /// How the report at the end is written, to the standard error as text and to the standard output as JSON
    /// [default: text].
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Write which virtual processors share memory, as the host's `[detection]` finds out, and who should run together
    /// to a file, as `gang watch --save` does.
    #[arg(long, value_name = "FILE")]
    matrix: Option<PathBuf>,
}

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// How many cycles of the host a run may take, where nothing is said.
const HOST_CYCLES_MAX: u64 = 1 << 42;
/// Cycles between two looks at consoles and signals.
const STRETCH_CYCLES: u64 = 5_000_000;

impl Options {
    /// The first of these options that was given.
    pub fn given(&self) -> Option<&'static str> {
        super::first_given(&[
            ("--max-host-cycles", self.max_host_cycles.is_some()),
            ("--format", self.format.is_some()),
            ("--matrix", self.matrix.is_some()),
        ])
    }

    /// When the host is stopped.
    fn end(&self) -> Cycle {
        Cycle(self.max_host_cycles.unwrap_or(HOST_CYCLES_MAX))
    }

    /// Builds the host that the text of `path` describes, and runs it until its virtual machines have ended.
    pub fn run(&self, path: &Path, text: &str, execution: &execution::Options) -> Outcome {
        let name = path.display().to_string();
        if let Some(option) = execution.of_processors() {
            return Err(format!(
                "{name}: {option} is for machines, and this is a host with virtual machines"
            )
            .into());
        }
        let description: Description = description::parse(&name, text)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let wire_end = description
            .wire_end(folder)
            .map_err(|error| format!("{name}: {error}"))?;
        self.check_wire_end(&name, &wire_end, execution)?;
        if let Some(matrix) = &self.matrix {
            sharing::check(&name, &description)?;
            sidestep_files::probe(matrix)?;
        }
        let traced = execution.timeline();
        traced.map(sidestep_files::probe).transpose()?;
        let cores = execution.timing().cloned().map(ModelledCores::new).map(Arc::new);
        if cores.is_some() && execution.gdb().is_some() {
            return Err(format!(
                "{name}: --timing and --gdb exclude each other: a debugger stops the model's time"
            )
            .into());
        }
        let model = cores.clone().map(|cores| cores as Arc<dyn CoreModel>);
        let (mut host, costs) = description
            .build(folder, traced.is_some(), model)
            .map_err(|error| format!("{name}: {error}"))?;
        let drivers = execution.drivers()?;
        let prepare = |host: &mut Host| {
            if let Some(drivers) = &drivers {
                host.execute_by(&**drivers);
            }
        };
        prepare(&mut host);
        let mut network = Network::join(
            (&name, &description, traced.is_some()),
            host,
            costs.clock_mhz,
            wire_end,
            prepare,
        )?;
        let stop = stop_flag()?;
        let guests = network.guests();
        let mut consoles = Consoles::new(&guests);
        let mut end = match (execution.gdb(), network.alone()) {
            (Some(address), Some(host)) => self.debug(host, &mut consoles, address)?,
            _ => Some(HostEnd::Time),
        };
        if end == Some(HostEnd::Time) {
            end = self.watch(&mut network, &costs, (&guests, &mut consoles), &stop)?;
        }
        consoles.flush(true)?;
        if let Some(drivers) = &drivers {
            execution.tell(&**drivers);
        }
        let reports: Vec<Report> = network.hosts().iter().map(Host::report).collect();
        match self.format.unwrap_or(Format::Text) {
            Format::Text => print_beside(&text_of(&network, &reports, cores.as_deref()))?,
            Format::Json => {
                let json = match reports.as_slice() {
                    [report] => serde_json::to_string_pretty(report)?,
                    reports => serde_json::to_string_pretty(reports)?,
                };
                print(json.as_bytes())?;
            }
        }
        let host = &network.hosts()[0];
        if let Some(file) = &self.matrix {
            let recording = serde_json::to_string_pretty(&sharing::recording(host, &reports[0]))?;
            sidestep_files::write(file, (recording + "\n").as_bytes())?;
        }
        if let Some(file) = traced {
            write_timeline(&name, file, &network, &costs, execution.trace_limit())?;
        }
        let machines = reports.iter().flat_map(|report| &report.machines);
        for (guest, machine) in guests.iter().zip(machines.clone()) {
            if let Some(failure) = &machine.failure {
                say!("sidestep: {name}: virtual machine `{}`: {failure}", guest.name);
            }
        }
        match end {
            Some(HostEnd::Ended) => {
                let codes = machines.filter_map(|machine| machine.exit_code);
                Ok(exit_code(codes.max().unwrap_or(0)))
            }
            Some(HostEnd::Deadlock) => {
                Err(format!("{name}: every virtual processor waits, and nothing will wake one").into())
            }
            None if stop.load(Ordering::Relaxed) => {
                say!("sidestep: {name}: interrupted at cycle {}", network.time());
                Ok(ExitCode::from(INTERRUPTED))
            }
            Some(HostEnd::Time | HostEnd::Halted) | None => {
                say!("sidestep: {name}: stopped at cycle {}", network.time());
                Ok(ExitCode::from(LIMIT_REACHED))
            }
        }
    }

    /// Refuses options that are for a host alone, where it is not.
    fn check_wire_end(
        &self,
        name: &str,
        wire_end: &WireEnd,
        execution: &execution::Options,
    ) -> Result<(), String> {
        let (table, refused): (_, &[_]) = match wire_end {
            WireEnd::Nowhere => return Ok(()),
            WireEnd::Outside(_) => ("[uplink]", &[("--gdb", execution.gdb().is_some())]),
            WireEnd::Host(..) => (
                "[link]",
                &[
                    ("--gdb", execution.gdb().is_some()),
                    ("--timing", execution.timing().is_some()),
                    ("--matrix", self.matrix.is_some()),
                ],
            ),
        };
        match super::first_given(refused) {
            Some(option) => Err(format!(
                "{name}: {option} is for one host by itself: leave out `{table}`"
            )),
            None => Ok(()),
        }
    }

    /// Runs, printing what guests print; `None` if it was interrupted.
    fn watch(
        &self,
        network: &mut Network,
        costs: &HostCosts,
        (guests, consoles): (&[Guest], &mut Consoles),
        stop: &AtomicBool,
    ) -> Result<Option<HostEnd>, Box<dyn std::error::Error>> {
        let mut keyboard = Keyboard::of(guests);
        // What is typed at a terminal is answered there: nothing else belongs between.
        let progress = Arc::new(Mutex::new(String::new()));
        let shown = Arc::clone(&progress);
        let _status = (!keyboard.is_live()).then(|| Status::show(move || lock(&shown).clone()));
        let mut loops = Loops::default();
        let end = loop {
            keyboard.pass_on();
            let began = (Instant::now(), network.time());
            let until = (network.time() + STRETCH_CYCLES).min(self.end());
            let end = network.run(until)?;
            consoles.flush(end != HostEnd::Time)?;
            loops.look(guests);
            let running = guests
                .iter()
                .filter(|guest| locked(&guest.machine).exit_code().is_none());
            *lock(&progress) = format!(
                "{} us: {} of {} virtual machines run, {} sidecores",
                network.time().since(Cycle::START) / costs.clock_mhz,
                running.count(),
                guests.len(),
                network.hosts().iter().map(Host::serving).sum::<usize>()
            );
            let lives_outside = keyboard.is_live() || network.reaches_outside();
            if lives_outside && network.hosts().iter().all(Host::is_resting) {
                // Guests wait for somebody who lives in the host's time.
                let passed = Duration::from_nanos(costs.nanoseconds(network.time() - began.1));
                std::thread::sleep(passed.saturating_sub(began.0.elapsed()));
            }
            if stop.load(Ordering::Relaxed) {
                break None;
            }
            if end != HostEnd::Time || network.time() >= self.end() {
                break Some(end);
            }
        };
        Ok(end)
    }

    /// Lets a debugger control the host. How it ended; [`HostEnd::Time`] below the limit if the debugger has left and
    /// the host is to go on, `None` if it wants the host to end.
    fn debug(
        &self,
        host: &mut Host,
        consoles: &mut Consoles,
        address: &Address,
    ) -> Result<Option<HostEnd>, Box<dyn std::error::Error>> {
        let connection = debugger_at(address)?.into();
        let mut broken = None;
        let mut debugged = DebuggedHost::new(host, self.end(), |_| {
            if let Err(error) = consoles.flush(false) {
                broken.get_or_insert(error);
            }
        });
        let finish = serve(connection, &mut debugged)?;
        if let Some(failure) = debugged.failure() {
            return Err(failure.to_owned().into());
        }
        drop(debugged);
        if let Some(error) = broken {
            return Err(error);
        }
        Ok(match finish {
            Finish::Ended(_) => Some(HostEnd::Ended),
            Finish::Detached => Some(HostEnd::Time),
            Finish::Killed => None,
        })
    }
}

/// The reports for people.
fn text_of(network: &Network, reports: &[Report], cores: Option<&ModelledCores>) -> String {
    let mut text = String::new();
    for (index, (host, report)) in network.hosts().iter().zip(reports).enumerate() {
        if let Some(name) = network.name_of(index) {
            text += &format!("{name}\n");
        }
        text += &report::text_of(report);
        if let Some(cores) = cores {
            text += &report::text_of_cores(cores);
        }
        if let Some(measured) = host.measured() {
            text += &format!("services on pinned cores, in nanoseconds of this machine:\n{measured}");
        }
    }
    text + &network.text_of_losses()
}

/// Writes who was on which core, and how packets went.
fn write_timeline(
    name: &str,
    file: &Path,
    network: &Network,
    costs: &HostCosts,
    limit: u64,
) -> Result<(), Box<dyn std::error::Error>> {
    let Occupancy {
        tracks,
        spans,
        steps,
        ended,
    } = Occupancy::of_all(network.prefixed(), costs);
    let mut timeline = Timeline::of_spans(tracks, spans);
    timeline.flows(steps);
    let (timeline, is_cut) = render_timeline(name, &timeline, limit);
    sidestep_files::write(file, timeline.as_bytes())?;
    match ended {
        _ if is_cut => say!(
            "sidestep: {}: the trace ends early, at --trace-limit",
            file.display()
        ),
        Some(end) => say!(
            "sidestep: {}: the trace ends {end} ns after the start: no more is recorded",
            file.display()
        ),
        None => {}
    }
    Ok(())
}
