//! The performance monitor as guest code programs it: every documented event, thresholds, overflow interrupts.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use sidestep_itanium2::{Event, Parameters};
use sidestep_machine::description::bare::begin;
use sidestep_machine::machine::VirtualTime;
use sidestep_machine::machine::hypercall::StandardCalls;
use sidestep_machine::{End, GuestMemory, MachineBuilder, MemoryRange, image};
use sidestep_runner::machine::Timed;

use sidestep_guests::ia64::PERFORMANCE_MONITOR as IMAGE;
/// The image is loaded between one and sixteen megabytes.
const MEMORY: u64 = 16 << 20;

#[derive(Clone, Default)]
struct Console(Arc<Mutex<Vec<u8>>>);

impl Write for Console {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("one thread").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a part of `machine/monitor.c`; answers the pairs of numbers that it prints.
fn run(part: &str) -> Vec<(u64, u64)> {
    let memory = GuestMemory::new(&[MemoryRange::ram(0, MEMORY)]).expect("memory");
    let loaded = image::load(&memory, IMAGE).expect("the image");
    let console = Console::default();
    let mut builder = MachineBuilder::new(memory, 1);
    builder.handle(StandardCalls::new(Box::new(console.clone()), part));
    let mut machine = builder.build();
    begin(&mut machine.cpus[0].processor, loaded.entry, 0, 1);
    let executor = VirtualTime {
        instructions_max: 200_000_000,
        ..VirtualTime::default()
    };
    let mut timed = Timed::each(&Parameters::default(), 1);
    let outcome = executor.run_driven(&mut machine, &mut timed);
    assert_eq!(outcome.end, End::Exit(0), "{part}");
    let bytes = console.0.lock().expect("one thread").clone();
    let text = String::from_utf8(bytes).expect("digits");
    let number = |word: Option<&str>| word.and_then(|word| word.parse().ok()).expect("a number");
    text.lines()
        .map(|line| {
            let mut words = line.split(' ');
            (number(words.next()), number(words.next()))
        })
        .collect()
}

#[test]
fn an_overflow_interrupts_and_freezes_the_monitor() {
    let lines = run("sample");
    let [(samples, late), (status, in_time)] = lines[..] else {
        panic!("{lines:?}");
    };
    assert_eq!(samples, 20);
    // As late as the longest run of instructions without a branch.
    assert!(late < 64, "{late}");
    assert_eq!((status, in_time), (0x11, 1), "frozen by counter 4");
}

#[test]
fn a_masked_overflow_interrupts_nobody() {
    let lines = run("masked");
    assert_eq!(lines, [(0, 0), (0x11, 0)], "no interrupt, and frozen");
}

#[test]
fn a_threshold_counts_cycles_with_more_events() {
    // A thousand rounds of a group of six instructions and one of three.
    let lines: BTreeMap<u64, u64> = run("threshold").into_iter().collect();
    for (threshold, least) in [
        (0, 9000),
        (1, 2000),
        (2, 2000),
        (3, 1000),
        (4, 1000),
        (5, 1000),
        (6, 0),
    ] {
        let found = lines[&threshold];
        assert!((least..least + 60).contains(&found), "{threshold}: {found}");
    }
}

#[test]
fn guest_code_counts_every_documented_event_by_its_code() {
    let counted: BTreeMap<u64, u64> = run("events").into_iter().collect();
    for code in counted.keys() {
        let code = u32::try_from(*code).expect("a code");
        assert!(Event::by_code(code).is_some(), "{code:#x} is no event");
    }
    for event in [
        Event::CpuCycles,
        Event::InstructionsRetired,
        Event::NopsRetired,
        Event::PredicateSquashed,
        Event::FloatOperationsRetired,
        Event::LoadsRetired,
        Event::StoresRetired,
        Event::BackEndBubbleAll,
        Event::ExecutionAll,
        Event::ExecutionFloat,
        Event::Branches,
        Event::BranchesCorrect,
        Event::L1iReads,
        Event::L1dReads,
        Event::L2References,
    ] {
        assert!(counted.contains_key(&u64::from(event.code())), "{}", event.name());
    }
    // Two codes that count the same things in the same work.
    let value = |event: Event| counted.get(&u64::from(event.code())).copied().unwrap_or(0);
    assert_eq!(
        value(Event::InstructionsRetired),
        value(Event::InstructionsDispersed)
    );
    assert!(value(Event::BackEndBubbleAll) < value(Event::CpuCycles));
}

#[test]
fn the_data_event_address_register_keeps_loads_that_miss_with_address_and_latency() {
    let lines = run("data");
    // Each of 64 lines once from memory, and not again: they are in the second-level cache then.
    assert_eq!(lines[0], (64, 64), "{lines:?}");
    assert!(lines[1].0 < 8, "{lines:?}");
}

#[test]
fn the_branch_trace_buffer_has_the_last_taken_branches_with_their_targets() {
    let lines = run("branches");
    let [(next, full), entries @ ..] = &lines[..] else {
        panic!("{lines:?}");
    };
    assert_eq!((next % 2, *full, entries.len()), (0, 1, 8), "{lines:?}");
    // Source and target in turn; the loop is a branch to its own bundle, and what follows returns.
    let sources = entries.iter().step_by(2);
    assert!(sources.clone().all(|&(is_source, _)| is_source == 1), "{lines:?}");
    assert!(
        entries
            .iter()
            .skip(1)
            .step_by(2)
            .all(|&(is_source, _)| is_source == 0),
        "{lines:?}"
    );
    let looping = entries
        .chunks_exact(2)
        .filter(|pair| pair[0].1 == pair[1].1)
        .count();
    assert!(looping >= 2, "{lines:?}");
}

#[test]
fn the_instruction_event_address_register_keeps_fetches_that_miss() {
    let lines = run("fetches");
    let [(first, valid), (second, _)] = lines[..] else {
        panic!("{lines:?}");
    };
    assert!(first >= 300 && valid == 1, "{lines:?}");
    assert!(second <= first, "{lines:?}");
}

#[test]
fn the_instruction_event_address_register_keeps_fetches_that_miss_the_first_tlb() {
    let lines = run("pages");
    let [(first, by), (second, _)] = lines[..] else {
        panic!("{lines:?}");
    };
    // 300 lines of 128 bytes are on ten pages of 4 kB, which the first level has 32 of; the second has them from
    // before.
    assert!((9..=14).contains(&first) && by == 1, "{lines:?}");
    assert!(second < first, "{lines:?}");
}

#[test]
fn opcode_matchers_count_by_unit_and_by_what_an_instruction_writes() {
    let lines: BTreeMap<u64, u64> = run("opcodes").into_iter().collect();
    // A round has three instructions in M slots, four in I slots, one in an F and one in a B slot.
    for (unit, rounds) in [(0, 1000), (1, 1000), (2, 4000), (3, 3000)] {
        let found = lines[&unit];
        assert!((rounds..rounds + 60).contains(&found), "{unit}: {found}");
    }
    assert_eq!(lines[&4], 1000, "one instruction of a round writes r17");
}

#[test]
fn ranges_of_code_restrict_what_counts() {
    let lines: BTreeMap<u64, u64> = run("code").into_iter().collect();
    let counted = |part: u64, least: u64| {
        let found = lines[&part];
        assert!((least..least + 60).contains(&found), "{part}: {found}");
    };
    counted(0, 9000);
    counted(1, 9000);
    // The third bundle of the loop is in the second pair of bundles, and six instructions of a round are before it.
    counted(2, 3000);
    counted(3, 6000);
}

#[test]
fn a_range_of_data_restricts_which_loads_count_and_are_kept() {
    assert_eq!(run("addresses"), [(32, 32)]);
}

#[test]
fn the_data_event_address_register_keeps_failed_checks_of_advanced_loads() {
    assert_eq!(run("checks"), [(64, 32), (32, 1)]);
}

#[test]
fn the_data_event_address_register_keeps_misses_that_software_serves() {
    assert_eq!(run("served"), [(4, 4), (0, 0)]);
}
