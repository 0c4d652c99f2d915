//! CEFOS on the chip: system calls through gates with and without software queues, devices of both kinds, programs.

use std::collections::BTreeMap;
use std::path::Path;

use sidestep_fuce::assembler::assemble;
use sidestep_fuce::chip::{Chip, ChipConfig, Stop};
use sidestep_fuce::device::{Block, Console, Device, RequestDevice, Timer};
use sidestep_fuce::image::Image;

/// A program with its kernel.
fn build(program: &str, software_queue: bool) -> Image {
    let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/cefos");
    let read = |name: &str| std::fs::read_to_string(guests.join(name)).ok();
    let source = read(&format!("programs/{program}")).expect("the program is in the repository");
    build_source(program, &source, software_queue)
}

fn build_source(name: &str, source: &str, software_queue: bool) -> Image {
    let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/cefos");
    let read = |name: &str| std::fs::read_to_string(guests.join(name)).ok();
    let constants = BTreeMap::from([("SOFTWARE_QUEUE".to_string(), i64::from(software_queue))]);
    assemble(name, source, &constants, &read)
        .unwrap_or_else(|errors| panic!("{errors}"))
        .image
}

struct Run {
    calls: u32,
    gates: u32,
    devices: u32,
    units: usize,
    simulated: bool,
    software_queue: bool,
}

/// Runs the calls; answers the clocks from the first launch to the last receiver.
fn run(run: &Run) -> (u64, Chip) {
    let mut image = build("calls.s", run.software_queue);
    let mut set = |name, value| {
        image
            .set_word(name, value)
            .unwrap_or_else(|error| panic!("{error}"))
    };
    set("calls", run.calls);
    set("gates", run.gates);
    set("call_gates", run.gates);
    set("call_devices", run.devices);
    set("simulated_devices", if run.simulated { run.devices } else { 0 });
    let attached: Vec<Box<dyn Device>> = (0..if run.simulated { 0 } else { run.devices })
        .map(|_| Box::new(RequestDevice::new(2000)) as Box<dyn Device>)
        .collect();
    let config = ChipConfig {
        units: run.units,
        memory_bytes: 16 << 20,
        ..ChipConfig::default()
    };
    let mut chip = Chip::new(&config, &image, attached).unwrap_or_else(|error| panic!("{error}"));
    let stop = chip.run(100_000_000);
    assert_eq!(
        stop,
        Stop::Halt(0),
        "after {} cycles: {:?}",
        chip.now(),
        chip.bus().system.oldest_record()
    );
    assert_eq!(chip.counters().faults, 0);
    let word = |name| {
        u64::from(
            chip.memory()
                .word(image.symbol(name).expect("a symbol"))
                .expect("in memory"),
        )
    };
    let clocks = word("clock_end") - word("clock_start");
    (clocks, chip)
}

#[test]
fn every_call_comes_back_with_both_kinds_of_device_and_of_queue() {
    for simulated in [false, true] {
        for software_queue in [false, true] {
            for (calls, gates, devices, units) in [
                (1, 1, 1, 1),
                (20, 1, 1, 4),
                (40, 3, 3, 3),
                (60, 2, 4, 16),
                (300, 4, 8, 8),
            ] {
                let (clocks, _) = run(&Run {
                    calls,
                    gates,
                    devices,
                    units,
                    simulated,
                    software_queue,
                });
                let least = 2000 * u64::from(calls.div_ceil(devices));
                assert!(
                    clocks >= least,
                    "{calls} calls on {devices} devices take {clocks} clocks"
                );
            }
        }
    }
}

#[test]
fn more_calls_than_pages_wait_for_pages() {
    let (_, chip) = run(&Run {
        calls: 2500,
        gates: 4,
        devices: 16,
        units: 8,
        simulated: false,
        software_queue: true,
    });
    assert!(chip.counters().controller.creates_denied > 0);
}

#[test]
fn the_software_queue_spares_self_continuations() {
    let count = |software_queue| {
        let (clocks, chip) = run(&Run {
            calls: 80,
            gates: 1,
            devices: 1,
            units: 4,
            simulated: true,
            software_queue,
        });
        (clocks, chip.counters().controller.self_continuations)
    };
    let (without, with) = (count(false), count(true));
    assert!(
        with.1 * 2 < without.1,
        "self-continuations {} with, {} without",
        with.1,
        without.1
    );
}

#[test]
fn runs_are_the_same_every_time() {
    let setting = Run {
        calls: 50,
        gates: 2,
        devices: 2,
        units: 4,
        simulated: true,
        software_queue: false,
    };
    let (first, second) = (run(&setting), run(&setting));
    assert_eq!(first.0, second.0);
    assert_eq!(first.1.counters(), second.1.counters());
}

fn boot(image: &Image, units: usize, devices: Vec<Box<dyn Device>>) -> (Stop, String, Chip) {
    let config = ChipConfig {
        units,
        memory_bytes: 16 << 20,
        ..ChipConfig::default()
    };
    let mut chip = Chip::new(&config, image, devices).unwrap_or_else(|error| panic!("{error}"));
    let stop = chip.run(50_000_000);
    let output = chip.bus().get::<Console>(1).expect("a console").output().to_vec();
    (stop, String::from_utf8(output).expect("text"), chip)
}

#[test]
fn the_parallel_sort_sorts_and_gains_from_units() {
    let cycles = |units| {
        let (stop, output, chip) = boot(&build("sort.s", true), units, vec![Box::new(Console::new(b""))]);
        assert_eq!(
            (stop, output.as_str()),
            (Stop::Halt(0), "1024 numbers sorted; out of order: 0\n")
        );
        chip.now()
    };
    let (one, four) = (cycles(1), cycles(4));
    assert!(four * 2 < one, "{one} cycles with one unit, {four} with four");
}

#[test]
fn the_wordcount_counts_words_over_the_disk() {
    let text = "the quick brown fox jumps over the lazy dog, again and again\n".repeat(200);
    let words = text.split_whitespace().count();
    for software_queue in [false, true] {
        let devices: Vec<Box<dyn Device>> = vec![
            Box::new(Console::new(b"")),
            Box::new(Block::new(text.clone().into_bytes(), 5000, 500)),
        ];
        let (stop, output, _) = boot(&build("wordcount.s", software_queue), 4, devices);
        assert_eq!((stop, output), (Stop::Halt(0), format!("{words} words\n")));
    }
}

/// A program of one user thread after the other: each body ends in `end` or a system call whose receiver is the next.
fn threads(bodies: &[&str]) -> String {
    let mut source =
        String::from(".include \"cefos.s\"\n.text\nuser_main:\nla r4, frame\ncreate r5, r4, 16\n");
    for (index, body) in bodies.iter().enumerate() {
        source.push_str(&format!(
            "la r6, thread{index}\naddi r7, r5, {index}\ninstall user, r7, r6, 1\n"
        ));
        let _ = body;
    }
    source.push_str("cont r5\nend\n");
    for (index, body) in bodies.iter().enumerate() {
        source.push_str(&format!("thread{index}:\nload_gate\naddi r8, r2, 1\n{body}\n"));
    }
    source.push_str(".user\n.align 4\nframe: .space 64\nbuffer: .space 512\nhello: .asciz \"hello\\n\"\n");
    source
}

const GATE: &str = "r20, r21, r22";

#[test]
fn console_sleep_and_disk_calls() {
    let source = threads(&[
        &format!("la r4, hello\nli r5, 6\nsystem_call CALL_WRITE, r8, r4, r5, {GATE}"),
        &format!("li r4, 20000\nsystem_call CALL_SLEEP, r8, r4, r0, {GATE}"),
        &format!(
            "la r4, buffer\nli r5, 77\nstw r5, 8(r4)\nli r5, 1\nsystem_call CALL_DISK_WRITE, r8, r5, r4, {GATE}"
        ),
        &format!("la r4, buffer\nstw r0, 8(r4)\nli r5, 1\nsystem_call CALL_DISK_READ, r8, r5, r4, {GATE}"),
        &format!("la r4, buffer\nldw r5, 8(r4)\nsystem_call CALL_EXIT, r8, r5, r0, {GATE}"),
    ]);
    for software_queue in [false, true] {
        let image = build_source("calls", &source, software_queue);
        let devices: Vec<Box<dyn Device>> = vec![
            Box::new(Console::new(b"")),
            Box::new(Timer::new()),
            Box::new(Block::new(vec![0; 1024], 100, 10)),
        ];
        let (stop, output, chip) = boot(&image, 2, devices);
        assert_eq!((stop, output.as_str()), (Stop::Halt(77), "hello\n"));
        assert!(chip.now() > 20_000);
        let disk = chip.bus().get::<Block>(3).expect("a disk");
        assert!(disk.changed() && disk.contents()[512 + 8] == 77);
    }
}

#[test]
fn bad_calls_are_answered_with_errors_and_bad_threads_with_faults() {
    let exit = format!("ldw r5, 8(r1)\nneg r5, r5\nsystem_call CALL_EXIT, r8, r5, r0, {GATE}");
    let cases = [
        (format!("system_call 77, r8, r0, r0, {GATE}"), 38),
        (format!("system_call CALL_WRITE, r8, r0, r20, {GATE}"), 14),
        (
            format!("li r4, 9\nsystem_call CALL_REQUEST, r8, r4, r0, {GATE}"),
            19,
        ),
        (format!("system_call CALL_SLEEP, r8, r4, r0, {GATE}"), 19),
        (
            format!("li r4, 100\nsystem_call CALL_DISK_READ, r8, r0, r4, {GATE}"),
            14,
        ),
    ];
    for (body, error) in cases {
        let image = build_source("bad", &threads(&[&body, &exit]), true);
        let (stop, _, _) = boot(&image, 2, vec![Box::new(Console::new(b""))]);
        assert_eq!(stop, Stop::Halt(error), "{body}");
    }
    // A kernel thread as receiver would let a user start it; the kernel continues with a user's rights and faults.
    let body = format!("la r4, hello\nli r5, 6\nsystem_call CALL_WRITE, r0, r4, r5, {GATE}");
    let image = build_source("deputy", &threads(&[&body]), true);
    let (stop, output, _) = boot(&image, 2, vec![Box::new(Console::new(b""))]);
    assert_eq!(stop, Stop::Idle);
    assert!(output.starts_with("hello\nfault 00000008 in thread "), "{output}");
    // A user thread that touches the kernel's memory is ended; the system goes on.
    let image = build_source("wild", &threads(&["stw r0, 0(r0)\nend"]), true);
    let (stop, output, _) = boot(&image, 2, vec![Box::new(Console::new(b""))]);
    assert_eq!(stop, Stop::Idle);
    assert!(output.starts_with("fault 00000003 in thread "), "{output}");
}

/// The environment variable that writes the images instead of comparing them.
const UPDATE: &str = "SIDESTEP_UPDATE";

#[test]
fn the_images_in_the_repository_are_what_the_sources_give() {
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/cefos/images");
    for program in ["sort", "wordcount"] {
        let built = build(&format!("{program}.s"), true).to_bytes();
        let path = images.join(format!("{program}.fuce"));
        if std::env::var_os(UPDATE).is_some() {
            std::fs::write(&path, &built).expect("the images can be written");
        }
        let kept = std::fs::read(&path).expect("in the repository");
        assert!(
            built == kept,
            "guests/cefos/images/{program}.fuce is stale; write it with {UPDATE}=1"
        );
    }
}
