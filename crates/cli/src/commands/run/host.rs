//! A host with virtual machines, as a TOML file describes it: progress while it runs, and what happened at the end.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use sidestep_hypervisor::Cycle;
use sidestep_hypervisor::costs::HostCosts;
use sidestep_hypervisor::debug::DebuggedHost;
use sidestep_hypervisor::description::Description;
use sidestep_hypervisor::host::sidecores::locked;
use sidestep_hypervisor::host::{ContentionReport, Host, HostEnd, Report, VirtualMachineReport, kind_name};
use sidestep_hypervisor::virtual_machine::{CoreModel, DetectionReport};
use sidestep_itanium2::{Counters, Event};
use sidestep_lab::Timeline;
use sidestep_lab::report::trace::render_timeline;
use sidestep_machine::debug::address::Address;
use sidestep_machine::debug::server::{Finish, serve};
use sidestep_machine::machine::hypercall::Console;
use sidestep_machine::machine::interruption_loop::InterruptionLoop;
use sidestep_runner::host::{ModelledCores, Occupancy};
use sidestep_runner::program;

use super::super::debugger::debugger_at;
use super::super::{INTERRUPTED, LIMIT_REACHED, Outcome, print, print_beside, stop_flag};
use super::console::status::{self, Status};
use super::console::stdio::{self, Terminal};
use super::{description, execution, exit_code, sharing};

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
        if let Some(drivers) = &drivers {
            host.execute_by(&**drivers);
        }
        let stop = stop_flag()?;
        let mut consoles = Consoles::new(&host);
        let mut keyboard = Keyboard::of(&host);
        let mut end = match execution.gdb() {
            Some(address) => self.debug(&mut host, &mut consoles, address)?,
            None => Some(HostEnd::Time),
        };
        if end == Some(HostEnd::Time) {
            end = self.watch(&mut host, &costs, (&mut consoles, &mut keyboard), &stop)?;
        }
        consoles.flush(&host, true)?;
        if let Some(drivers) = &drivers {
            execution.tell(&**drivers);
        }
        let report = host.report();
        match self.format.unwrap_or(Format::Text) {
            Format::Text => {
                let mut text = text_of(&report);
                if let Some(cores) = &cores {
                    text += &text_of_cores(cores);
                }
                if let Some(measured) = host.measured() {
                    text += &format!("services on pinned cores, in nanoseconds of this machine:\n{measured}");
                }
                print_beside(&text)?;
            }
            Format::Json => print(serde_json::to_string_pretty(&report)?.as_bytes())?,
        }
        if let Some(file) = &self.matrix {
            let recording = serde_json::to_string_pretty(&sharing::recording(&host, &report))?;
            sidestep_files::write(file, (recording + "\n").as_bytes())?;
        }
        if let Some(file) = traced {
            let Occupancy {
                tracks,
                spans,
                steps,
                ended,
            } = Occupancy::of(&host, &costs);
            let mut timeline = Timeline::of_spans(tracks, spans);
            timeline.flows(steps);
            let (timeline, is_cut) = render_timeline(&name, &timeline, execution.trace_limit());
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
        }
        for machine in &report.machines {
            if let Some(failure) = &machine.failure {
                say!("sidestep: {name}: virtual machine `{}`: {failure}", machine.name);
            }
        }
        match end {
            Some(HostEnd::Ended) => {
                let codes = report.machines.iter().filter_map(|machine| machine.exit_code);
                Ok(exit_code(codes.max().unwrap_or(0)))
            }
            Some(HostEnd::Deadlock) => {
                Err(format!("{name}: every virtual processor waits, and nothing will wake one").into())
            }
            None if stop.load(Ordering::Relaxed) => {
                say!("sidestep: {name}: interrupted at cycle {}", report.time);
                Ok(ExitCode::from(INTERRUPTED))
            }
            Some(HostEnd::Time | HostEnd::Halted) | None => {
                say!("sidestep: {name}: stopped at cycle {}", report.time);
                Ok(ExitCode::from(LIMIT_REACHED))
            }
        }
    }

    /// Runs, printing what guests print; `None` if it was interrupted.
    fn watch(
        &self,
        host: &mut Host,
        costs: &HostCosts,
        (consoles, keyboard): (&mut Consoles, &mut Keyboard),
        stop: &AtomicBool,
    ) -> Result<Option<HostEnd>, Box<dyn std::error::Error>> {
        // What is typed at a terminal is answered there: nothing else belongs between.
        let progress = Arc::new(Mutex::new(String::new()));
        let shown = Arc::clone(&progress);
        let _status = (!keyboard.is_live()).then(|| Status::show(move || lock(&shown).clone()));
        let mut loops = Loops::default();
        let end = loop {
            keyboard.pass_on(host);
            let began = (Instant::now(), host.time());
            let until = (host.time() + STRETCH_CYCLES).min(self.end());
            let end = host.run(until)?;
            consoles.flush(host, end != HostEnd::Time)?;
            loops.look(host);
            let running = host
                .machines()
                .iter()
                .filter(|machine| locked(machine).exit_code().is_none());
            *lock(&progress) = format!(
                "{} us: {} of {} virtual machines run, {} sidecores",
                host.time().since(Cycle::START) / costs.clock_mhz,
                running.count(),
                host.machines().len(),
                host.serving()
            );
            if keyboard.is_live() && host.is_resting() {
                // Guests wait for somebody who lives in the host's time.
                let passed = Duration::from_nanos(costs.nanoseconds(host.time() - began.1));
                std::thread::sleep(passed.saturating_sub(began.0.elapsed()));
            }
            if stop.load(Ordering::Relaxed) {
                break None;
            }
            if end != HostEnd::Time || host.time() >= self.end() {
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
        let mut debugged = DebuggedHost::new(host, self.end(), |host| {
            if let Err(error) = consoles.flush(host, false) {
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

/// Which virtual machines were said to take interruptions and nothing else.
#[derive(Default)]
struct Loops {
    said: BTreeSet<usize>,
}

impl Loops {
    /// Says of each virtual machine once that a processor of it gets nowhere.
    fn look(&mut self, host: &Host) {
        for (index, machine) in host.machines().iter().enumerate() {
            let machine = locked(machine);
            let mut processors = machine.processors().iter().enumerate();
            let found = processors.find_map(|(index, of)| InterruptionLoop::of(index, of.processor()));
            if let Some(found) = found
                && self.said.insert(index)
            {
                status::say(&format!(
                    "sidestep: virtual machine `{}`: {found}",
                    machine.name()
                ));
            }
        }
    }
}

/// The standard input, for the one virtual machine that takes input.
struct Keyboard {
    /// Which, and what is typed.
    to: Option<(usize, Terminal)>,
}

impl Keyboard {
    /// If several take input it is for none of them.
    fn of(host: &Host) -> Keyboard {
        let takers =
            || (0..host.machines().len()).filter(|index| locked(&host.machines()[*index]).takes_input());
        let to = match takers().count() {
            1 => takers().next().map(|index| (index, Terminal::default())),
            _ => None,
        };
        if to.is_none() {
            takers().for_each(|index| locked(&host.machines()[index]).type_input(&[], true));
        }
        Keyboard { to }
    }

    /// Whether somebody may type.
    fn is_live(&self) -> bool {
        self.to.is_some() && stdio::is_live()
    }

    /// Hands on what was typed.
    fn pass_on(&mut self, host: &Host) {
        let Some((index, terminal)) = &mut self.to else {
            return;
        };
        let bytes: Vec<u8> = std::iter::from_fn(|| terminal.read()).collect();
        let has_ended = terminal.has_ended();
        locked(&host.machines()[*index]).type_input(&bytes, has_ended);
        if has_ended {
            self.to = None;
        }
    }
}

/// What guests have printed: line by line with their names, if there are several.
struct Consoles {
    unfinished: Vec<Vec<u8>>,
}

impl Consoles {
    fn new(host: &Host) -> Consoles {
        Consoles {
            unfinished: vec![Vec::new(); host.machines().len()],
        }
    }

    /// Prints what there is since the last time, unfinished lines too if it is `all` that will come.
    fn flush(&mut self, host: &Host, all: bool) -> Result<(), Box<dyn std::error::Error>> {
        let several = host.machines().len() > 1;
        for (machine, rest) in host.machines().iter().zip(&mut self.unfinished) {
            let mut machine = locked(machine);
            rest.extend(machine.take_console());
            if !several {
                show(&std::mem::take(rest))?;
                continue;
            }
            let complete = match (all, rest.iter().rposition(|byte| *byte == b'\n')) {
                (true, _) => rest.len(),
                (false, last) => last.map_or(0, |last| last + 1),
            };
            let mut output = Vec::new();
            for line in rest
                .drain(..complete)
                .collect::<Vec<u8>>()
                .split(|byte| *byte == b'\n')
            {
                if !line.is_empty() {
                    write!(output, "{}: ", machine.name())?;
                    output.extend_from_slice(line);
                    output.push(b'\n');
                }
            }
            show(&output)?;
        }
        Ok(())
    }
}

/// Prints what guests have printed, without the status line in the way.
fn show(output: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
    let mut printed = Ok(());
    if !output.is_empty() {
        status::printing(output.last().copied(), || printed = print(output));
    }
    printed
}

fn lock(text: &Mutex<String>) -> MutexGuard<'_, String> {
    text.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What guests' instructions took on the model of each core, and what all of them lost cycles to.
fn text_of_cores(cores: &ModelledCores) -> String {
    let mut text = String::from("\ncore  instructions        cycles   cycles an instruction\n");
    let mut sum = Counters::default();
    for (core, counters) in cores.counters().into_iter().enumerate() {
        let instructions = counters.get(Event::InstructionsRetired);
        let cycles = counters.get(Event::CpuCycles);
        if instructions > 0 {
            let each = cycles as f64 / instructions as f64;
            text.push_str(&format!(
                "{core:>4}  {instructions:>12}  {cycles:>12}   {each:.3}\n"
            ));
        }
        sum += counters;
    }
    text.push('\n');
    text.push_str(&program::text_of(cores.parameters(), &sum, None));
    text
}

/// What was found out of one virtual machine's sharing, and what that cost.
fn text_of_detection(detection: &DetectionReport, machine: &VirtualMachineReport) -> String {
    let counts = detection.counts;
    let [guest, monitor, ..] = machine.cycles;
    let share = detection.cycles as f64 * 100.0 / (guest + monitor).max(1) as f64;
    let mut text = format!(
        "  sharing   {} pages taken away in {} rounds, {} faults, {} fills noted, {} accesses lost; {} cycles, \
         {share:.2} % of what it ran; {} rounds left out\n",
        counts.taken,
        counts.rounds,
        counts.faults,
        counts.fills,
        detection.lost,
        detection.cycles,
        counts.left_out
    );
    for found in &detection.found {
        text.push_str(&format!(
            "  sets      from cycle {} on: {}\n",
            found.time, found.sets
        ));
    }
    text
}

/// What contention has cost on each core.
fn text_of_contention(contention: &ContentionReport) -> String {
    let mut text = format!(
        "\n{}\ncore  shared hits  memory lines   cycles of shared hits       memory    bandwidth     siblings\n",
        contention.hierarchy
    );
    for (core, counts) in contention.cores.iter().enumerate() {
        text.push_str(&format!(
            "{core:>4} {:>12} {:>13} {:>23} {:>12} {:>12} {:>12}\n",
            counts.shared_hits,
            counts.memory_lines,
            counts.shared_cycles,
            counts.memory_cycles,
            counts.bandwidth_cycles,
            counts.sibling_cycles
        ));
    }
    text
}

/// The report for people.
fn text_of(report: &Report) -> String {
    let mut text = format!(
        "{}: {} cycles, {} us\n",
        report.host,
        report.time,
        report.time_ns / 1000
    );
    let passed = report.time.since(Cycle::START).max(1);
    let percent = |part: u64| format!("{:.1} %", part as f64 * 100.0 / passed as f64);
    text.push_str("\ncore      guest  monitor  polling  serving  looking   asleep     idle\n");
    for core in &report.cores {
        let parts = [
            core.guest,
            core.monitor,
            core.polling,
            core.serving,
            core.looking,
            core.asleep,
            core.idle,
        ];
        let parts: Vec<String> = parts
            .iter()
            .map(|part| format!("{:>8}", percent(*part)))
            .collect();
        text.push_str(&format!("{:>4}   {}\n", core.core, parts.join(" ")));
    }
    if let Some(contention) = &report.contention {
        text.push_str(&text_of_contention(contention));
    }
    if let Some(nic) = &report.nic {
        let counts = nic.counts;
        text.push_str(&format!(
            "\ncard, delivery `{}`: {} interrupts handled in {} cycles, {} signals by sidecores in {} cycles, \
             {} frames for nobody, {} for which engines had no room\n",
            nic.delivery.name(),
            counts.interrupts,
            counts.handling_cycles,
            counts.sidecore_signals,
            counts.sidecore_cycles,
            counts.unknown,
            counts.overrun
        ));
    }
    for (index, machine) in report.machines.iter().enumerate() {
        let code = machine
            .exit_code
            .map_or("still running".to_owned(), |code| format!("exit code {code}"));
        text.push_str(&format!(
            "\n{}: {code}, {} instructions, {} intercepts without exit, {} purges of other TLBs\n",
            machine.name, machine.instructions, machine.accelerated, machine.remote_purges
        ));
        for exit in &machine.exits {
            text.push_str(&format!(
                "  exit      {:<32} {:>10}   {:>14} cycles\n",
                exit.reason.name(),
                exit.count,
                exit.cycles
            ));
        }
        for request in &machine.requests {
            text.push_str(&format!(
                "  {:<9} {:<32} {:>10}   least {}, median {}, 90 % {}, 99 % {}, 99.9 % {}, most {} cycles\n",
                request.method.name(),
                kind_name(request.kind),
                request.count,
                request.least,
                request.median,
                request.percentile_90,
                request.percentile_99,
                request.percentile_99_9,
                request.most
            ));
        }
        if let Some(detection) = &machine.detection {
            text.push_str(&text_of_detection(detection, machine));
        }
        if let Some(interface) = report.nic.as_ref().and_then(|nic| nic.interfaces.get(index)) {
            let (counts, interrupts) = (interface.counts, interface.interrupts);
            text.push_str(&format!(
                "  interface {} sent, {} received, {} dropped, {} refused; {} signals, {} redundant; preempted {} \
                 times for others, {} cycles\n",
                counts.sent,
                counts.received,
                counts.dropped,
                counts.refused,
                counts.signals,
                counts.redundant,
                interrupts.preemptions,
                interrupts.preempted_cycles
            ));
        }
    }
    text
}
