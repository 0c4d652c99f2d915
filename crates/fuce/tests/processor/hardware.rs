//! The Rust controller against an independent model in VHDL: the same traffic, the same order, the same cycles.
//!
//! `hardware/activation_controller.vhd` is run by GHDL. GHDL comes with [`tests_need`].

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use sidestep_fuce::assembler::assemble;
use sidestep_fuce::chip::{Chip, ChipConfig};
use sidestep_fuce::controller::{
    Acceptors, Controller, ControllerConfig, ControllerOperation as Op, Effect, Issuer, Level, Mode, Page,
    Request, Step, ThreadId,
};
use sidestep_fuce::device::{Device, RequestDevice};

const SOURCES: [&str; 2] = ["activation_controller.vhd", "replay.vhd"];

/// GHDL, and a folder of this test process with the VHDL analysed in it; `None` without GHDL.
fn workspace(name: &str) -> Option<Ghdl> {
    let program = tests_need::GHDL.find()?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    let ghdl = Ghdl { program, folder };
    for source in SOURCES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/hardware")
            .join(source);
        ghdl.run(&["-a", "--std=08", path.to_str().expect("a UTF-8 path")]);
    }
    Some(ghdl)
}

/// The simulator and the folder that it works in.
struct Ghdl {
    program: PathBuf,
    folder: PathBuf,
}

impl Ghdl {
    fn run(&self, arguments: &[&str]) {
        let output = Command::new(&self.program)
            .args(arguments)
            .current_dir(&self.folder)
            .output()
            .expect("ghdl starts");
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ghdl {arguments:?}: {said}");
    }
}

/// What went into a controller and what came out of it.
struct Recording {
    config: ControllerConfig,
    ports: usize,
    input: String,
    expected: String,
    acceptors: Option<Acceptors>,
    cycles: u64,
}

impl Recording {
    fn new(config: ControllerConfig, ports: usize) -> Recording {
        Recording {
            config,
            ports,
            input: String::new(),
            expected: String::new(),
            acceptors: None,
            cycles: 0,
        }
    }

    fn cycle(&mut self, cycle: u64, submissions: &[(usize, Request)], acceptors: Acceptors, step: &Step) {
        self.cycles = cycle + 1;
        if self.acceptors != Some(acceptors) {
            self.acceptors = Some(acceptors);
            writeln!(self.input, "A {cycle} {} {}", acceptors.idle, acceptors.preload).expect("a string");
        }
        for (port, request) in submissions {
            let (number, a, b, c) = fields(request.operation);
            let thread = request.issuer.thread.map_or(-1, |thread| thread.number() as i32);
            let mode = request.issuer.mode as u8;
            writeln!(
                self.input,
                "S {cycle} {port} {number} {thread} {mode} {} {} {}",
                a as i32, b as i32, c as i32
            )
            .expect("a string");
        }
        if let Some((unit, ready)) = &step.dispatch {
            writeln!(
                self.expected,
                "D {cycle} {unit} {} {} {} {} {}",
                ready.thread.number(),
                ready.code,
                ready.mode as u8,
                ready.frame as i32,
                ready.words
            )
            .expect("a string");
        }
        if let Some((port, completion)) = &step.completion {
            let (kind, x, y) = match completion.result {
                Ok(Effect::None) => (0, 0, 0),
                Ok(Effect::Answer(value)) => (1, value, 0),
                Ok(Effect::Write { address, value }) => (2, address, value),
                Ok(Effect::Deferred) => (3, 0, 0),
                Err(fault) => (4, fault.cause as u32, fault.value),
            };
            writeln!(self.expected, "C {cycle} {port} {kind} {} {}", x as i32, y as i32).expect("a string");
        }
    }

    /// Runs the hardware on what was recorded and compares.
    fn check(&self, ghdl: &Ghdl, name: &str) {
        assert!(
            self.expected.lines().count() > 500,
            "{name}: a trace without events proves nothing"
        );
        let trace = format!("{name}.trace");
        let output = format!("{name}.output");
        let input = format!("C {}\n{}", self.cycles, self.input);
        std::fs::write(ghdl.folder.join(&trace), input).expect("the target folder can be written");
        let generics = [
            format!("-gpages={}", self.config.pages),
            format!("-gqueue_length={}", self.config.queue),
            format!("-gports={}", self.ports),
            format!("-gservice_cycles={}", self.config.service_cycles),
            format!("-gtext_length={}", self.config.text_instructions),
            format!("-gtrace_file={trace}"),
            format!("-goutput_file={output}"),
        ];
        let mut arguments = vec!["--elab-run", "--std=08", "replay"];
        arguments.extend(generics.iter().map(String::as_str));
        ghdl.run(&arguments);
        let found = std::fs::read_to_string(ghdl.folder.join(&output)).expect("the model wrote its output");
        for (line, (ours, hardware)) in self.expected.lines().zip(found.lines()).enumerate() {
            assert_eq!(ours, hardware, "{name}: event {line}");
        }
        assert_eq!(
            self.expected.lines().count(),
            found.lines().count(),
            "{name}: number of events"
        );
    }
}

/// A request's number and operands, as the hardware's ports carry them.
fn fields(operation: Op) -> (u8, u32, u32, u32) {
    match operation {
        Op::Continue { target } => (0, target, 0, 0),
        Op::ContinueWithData { target, slot, value } => (1, target, slot.into(), value),
        Op::SelfContinue => (2, 0, 0, 0),
        Op::Lock { target } => (3, target, 0, 0),
        Op::Unlock { target } => (4, target, 0, 0),
        Op::Create { frame, words } => (5, frame, words.into(), 0),
        Op::Delete { target } => (6, target, 0, 0),
        Op::Install {
            target,
            code,
            mode,
            fan_in,
        } => (7, target, code, (mode as u32) << 8 | u32::from(fan_in)),
        Op::SetCount { target, count } => (8, target, count, 0),
        Op::Rearm => (9, 0, 0, 0),
        Op::Signal { target } => (10, target, 0, 0),
    }
}

/// Requests that often, but not always, make sense on a controller of few pages.
fn operation() -> impl Strategy<Value = Op> {
    let target = || prop_oneof![12 => 0..32u32, 1 => 32..80u32, 1 => Just(u32::MAX)];
    let mode = prop::sample::select(vec![Mode::User, Mode::Interface, Mode::Kernel]);
    prop_oneof![
        6 => target().prop_map(|target| Op::Continue { target }),
        6 => (target(), 0..6u16, 0..1000u32)
            .prop_map(|(target, slot, value)| Op::ContinueWithData { target, slot, value }),
        3 => Just(Op::SelfContinue),
        2 => target().prop_map(|target| Op::Lock { target }),
        2 => target().prop_map(|target| Op::Unlock { target }),
        4 => (0..64u32, 0..5u16).prop_map(|(frame, words)| Op::Create { frame: frame * 16, words }),
        1 => target().prop_map(|target| Op::Delete { target }),
        12 => (target(), 0..66u32, mode, 1..3u8)
            .prop_map(|(target, code, mode, fan_in)| Op::Install { target, code: code * 4, mode, fan_in }),
        1 => (target(), 0..300u32).prop_map(|(target, count)| Op::SetCount { target, count }),
        5 => Just(Op::Rearm),
        2 => target().prop_map(|target| Op::Signal { target }),
    ]
}

#[test]
fn random_traffic_gives_the_same_order_and_cycles() {
    let Some(ghdl) = workspace("traffic") else {
        return;
    };
    let mut runner = TestRunner::deterministic();
    for (case, (pages, queue, units, service_cycles)) in
        [(8, 16, 4, 2), (4, 2, 1, 1), (6, 1, 3, 3), (9, 4, 8, 2)]
            .into_iter()
            .enumerate()
    {
        let ports = units + 1;
        let config = ControllerConfig {
            pages,
            queue,
            service_cycles,
            text_instructions: 64,
        };
        let mut controller = Controller::new(config, ports);
        controller.allocate(Page {
            level: Level::System,
            frame: 0,
            words: 0,
        });
        controller.boot(ThreadId::new(0, 0), 0, Mode::Kernel);
        let mut recording = Recording::new(config, ports);
        // For each port how likely a request is, for each unit whether it can take a thread: drawn anew every cycle.
        let draws = (
            prop::collection::vec((0..2u8, operation(), 0..64u32, 0..3u8), ports),
            any::<u32>(),
            any::<u32>(),
        );
        for cycle in 0..6000 {
            let (requests, idle, preload) = draws.new_tree(&mut runner).expect("a draw").current();
            for (port, (likely, operation, thread, mode)) in requests.into_iter().enumerate() {
                let device = port == units;
                let signal = matches!(operation, Op::Signal { .. });
                if likely > 0 || !controller.port_is_free(port) || device != signal {
                    continue;
                }
                let mode = [Mode::User, Mode::Interface, Mode::Kernel][usize::from(mode)];
                let thread = ThreadId::from_register(thread, pages).filter(|_| !device);
                if thread.is_none() && !device {
                    continue;
                }
                let mode = if device { Mode::Kernel } else { mode };
                controller.submit(
                    port,
                    Request {
                        issuer: Issuer {
                            thread,
                            mode,
                            address: 0,
                        },
                        operation,
                    },
                );
            }
            let all = (1u64 << units) - 1;
            // Now and then nobody can take a thread, so that the queue fills.
            let busy = cycle % 512 < 200;
            let idle = if busy { 0 } else { u64::from(idle) & all };
            let preload = if busy { 0 } else { u64::from(preload) & all & !idle };
            let acceptors = Acceptors { idle, preload };
            let step = controller.step(cycle, acceptors);
            recording.cycle(cycle, controller.submissions(), acceptors, &step);
            controller.forget_submissions();
        }
        let counters = controller.counters();
        assert!(counters.activations > 50 && counters.faults > 100, "{counters:?}");
        assert_eq!(
            controller.counters().spills > 0,
            case > 0,
            "{:?}",
            controller.counters()
        );
        recording.check(&ghdl, &format!("case{case}"));
    }
}

#[test]
fn the_kernel_gives_the_same_order_and_cycles() {
    let Some(ghdl) = workspace("kernel") else { return };
    let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/cefos");
    let read = |name: &str| std::fs::read_to_string(guests.join(name)).ok();
    let source = read("programs/calls.s").expect("in the repository");
    for software_queue in [0, 1] {
        let constants = [("SOFTWARE_QUEUE".to_string(), software_queue)].into();
        let assembly = assemble("calls.s", &source, &constants, &read);
        let mut image = assembly.unwrap_or_else(|errors| panic!("{errors}")).image;
        image.set_word("calls", 20).expect("a parameter");
        let chip = ChipConfig {
            units: 4,
            pages: 64,
            memory_bytes: 16 << 20,
            ..ChipConfig::default()
        };
        let config = ControllerConfig {
            pages: chip.pages,
            queue: chip.queue,
            service_cycles: chip.controller_cycles,
            text_instructions: image.text.len() as u32,
        };
        let mut recording = Recording::new(config, chip.units + 1);
        let devices: Vec<Box<dyn Device>> = vec![Box::new(RequestDevice::new(300))];
        let entry = image.entry / 4;
        let mut machine = Chip::new(&chip, &image, devices).expect("a chip");
        machine.run_observed(20_000, |seen| {
            recording.cycle(seen.cycle, seen.submissions, seen.acceptors, &seen.step);
        });
        // The hardware's loader starts the boot thread at instruction 0.
        let boots = format!("D 0 0 0 {entry} ");
        assert!(
            recording.expected.starts_with(&boots),
            "{}",
            &recording.expected[..40]
        );
        recording.expected = recording.expected.replacen(&boots, "D 0 0 0 0 ", 1);
        recording.check(&ghdl, &format!("kernel{software_queue}"));
    }
}
