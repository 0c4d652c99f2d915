//! Programs that make a translator work for nothing: code that is rewritten all the time, jumps into the middle of code
//! that was translated, more blocks than there is memory for. What is translated in vain is bounded by a count: each
//! time a place's code is forgotten, the next translation waits for twice as many entries.

#[path = "../../ia64/tests/machine/mod.rs"]
mod machine;
#[path = "programs/exceptions.rs"]
mod raised;

use machine::{CODE, Line, Machine, bundle};
use sidestep_ia64::encoding::{Bundle, StatusField};
use sidestep_ia64::float::{Flags, FloatRegister, StatusRegister};
use sidestep_ia64::registers::application::FPSR;
use sidestep_ia64::registers::frame::FrameMarker;
use sidestep_ia64::{Exit, Processor, ProcessorState};
use sidestep_translator::{Settings, Statistics, Translator};

fn machine(lines: &[Line]) -> Machine {
    let mut machine = Machine::new();
    let bundles: Vec<Bundle> = lines.iter().map(|line| bundle(*line)).collect();
    machine.write_bundles(CODE, &bundles);
    let processor = &mut machine.processor;
    processor.predicates = 1;
    processor.frame = FrameMarker::default();
    processor.set_instruction_pointer(CODE, 0);
    machine
}

fn translator(code_bytes_max: usize) -> Translator {
    let settings = Settings {
        threshold: 2,
        code_bytes_max,
        ..Settings::ALWAYS
    };
    Translator::new(settings, None).expect("a host that code can be emitted for")
}

/// What `run` makes of a program that is interpreted and of one that is translated, and what translating took.
fn both(
    lines: &[Line],
    code_bytes_max: usize,
    run: impl Fn(&mut Machine, &mut dyn FnMut(&mut Processor, u64) -> Exit),
) -> Statistics {
    let end = |execute: &mut dyn FnMut(&mut Processor, u64) -> Exit| -> ProcessorState {
        let mut machine = machine(lines);
        run(&mut machine, execute);
        machine.processor.save()
    };
    let mut translator = translator(code_bytes_max);
    let interpreted = end(&mut |processor, limit| processor.run(limit));
    let translated = end(&mut |processor, limit| processor.run_with(limit, &mut translator, &mut ()));
    assert!(interpreted == translated);
    translator.statistics()
}

/// How often the loop is rewritten.
const REWRITTEN: i64 = 200;

/// How many instructions the loop has, of which two of three do nothing.
const INSTRUCTIONS: u64 = 9;

/// A loop that is rewritten every so many turns, and counts what its versions add.
fn rewritten_loop(turns: u64) -> Statistics {
    let version = |added: i64| bundle(("adds", 0, &[8, added, 8]));
    let back = [-2 * 16];
    let lines: [Line; 3] = [
        ("adds", 0, &[8, 0, 8]),
        ("adds", 0, &[9, 1, 9]),
        ("br.cond B1", 0, &back),
    ];
    both(&lines, 1 << 20, |machine, execute| {
        for added in 0..REWRITTEN {
            machine.write_bundles(CODE, &[version(added)]);
            machine.processor.forget_instructions();
            assert_eq!(execute(&mut machine.processor, INSTRUCTIONS * turns), Exit::Limit);
        }
        let expected = (0..REWRITTEN as u64).sum::<u64>() * turns;
        assert_eq!(machine.processor.general.value(8), expected);
    })
}

#[test]
fn code_that_is_rewritten_all_the_time_is_not_translated_all_the_time() {
    for turns in [3, 10, 50] {
        let statistics = rewritten_loop(turns);
        let entries = REWRITTEN as u64 * turns;
        assert!(statistics.units > 0, "{turns}");
        // Nine instructions, each of which may begin a block.
        assert!(
            statistics.units <= units_max(9, entries),
            "{turns}: {}",
            statistics.units
        );
        assert!(
            statistics.units < REWRITTEN as u64 / 4,
            "{turns}: {}",
            statistics.units
        );
    }
}

#[test]
fn code_that_is_rewritten_rarely_is_translated_again() {
    let statistics = rewritten_loop(2000);
    assert!(statistics.units > 6, "{}", statistics.units);
    // Of ten versions or so the loop turns more often than the next unit waits.
    let few = 5 * 2000 * INSTRUCTIONS;
    assert!(statistics.translated > few, "{}", statistics.translated);
}

/// How many instructions are executed from each place on.
const STRETCH: u64 = 40;

/// Enters straight code at each of its bundles again and again, with memory for a small part of the units.
fn entered_everywhere(lines: &[Line], rounds: u32) -> Statistics {
    both(lines, 1 << 12, |machine, execute| {
        for _ in 0..rounds {
            for bundle in 0..lines.len() as u64 - 1 {
                machine.processor.set_instruction_pointer(CODE + 16 * bundle, 0);
                assert_eq!(execute(&mut machine.processor, STRETCH), Exit::Limit);
            }
        }
    })
}

/// The most units that so many places can have that are entered so often each: every one waits for twice as many
/// entries as the one before.
fn units_max(places: usize, entries: u64) -> u64 {
    places as u64 * u64::from(entries.ilog2())
}

#[test]
fn jumps_into_the_middle_of_translated_code_do_not_translate_without_end() {
    const ROUNDS: u32 = 32;
    let back = [-31 * 16];
    let mut lines: Vec<Line> = vec![("adds", 0, &[8, 1, 8]); 31];
    lines.push(("br.cond B1", 0, &back));
    let statistics = entered_everywhere(&lines, ROUNDS);
    assert!(statistics.flushes > 0);
    assert!(
        statistics.units <= units_max(lines.len(), u64::from(ROUNDS) * STRETCH),
        "{}",
        statistics.units
    );
}

#[test]
fn more_tiny_blocks_than_memory_holds_do_not_translate_without_end() {
    const ROUNDS: u32 = 32;
    let back = [-63 * 16];
    let mut lines: Vec<Line> = vec![("br.cond B1", 0, &[16]); 63];
    lines.push(("br.cond B1", 0, &back));
    let statistics = entered_everywhere(&lines, ROUNDS);
    assert!(statistics.flushes > 0);
    assert!(
        statistics.units <= units_max(lines.len(), u64::from(ROUNDS) * STRETCH),
        "{}",
        statistics.units
    );
}

/// A loop that multiplies, adds and counts, from these numbers on.
fn computing_loop(
    numbers: [FloatRegister; 3],
    run: impl Fn(&mut Machine, &mut dyn FnMut(&mut Processor, u64) -> Exit),
) -> Statistics {
    let back = [-2 * 16];
    let lines: [Line; 3] = [
        ("fma.d.s0", 0, &[6, 7, 8, 9]),
        ("adds", 0, &[9, 1, 9]),
        ("br.cond B1", 0, &back),
    ];
    both(&lines, 1 << 20, |machine, execute| {
        for (register, number) in (7..).zip(numbers) {
            machine.processor.set_floating(register, number);
        }
        set_status(&mut machine.processor, StatusRegister::LINUX, Flags::INEXACT);
        run(machine, execute);
    })
}

fn set_status(processor: &mut Processor, mut status: StatusRegister, flags: Flags) {
    status.raise(StatusField::S0, flags);
    processor.set_application(FPSR, status.bits());
}

fn double(value: f64) -> FloatRegister {
    FloatRegister::from_double(value.to_bits())
}

#[test]
fn code_that_meets_unusual_numbers_again_and_again_is_made_for_them() {
    const TURNS: u64 = 2000;
    raised::raise();
    let usual = [double(0.1), double(3.0), double(1.0)];
    let third = FloatRegister::new(false, 0xfffd, 0xaaaa_aaaa_aaaa_aaab);
    let overflow = [double(1e300), double(1e300), double(1.0)];
    let run = |machine: &mut Machine, execute: &mut dyn FnMut(&mut Processor, u64) -> Exit| {
        assert_eq!(execute(&mut machine.processor, INSTRUCTIONS * TURNS), Exit::Limit);
    };
    assert_eq!(computing_loop(usual, run).left_over, 0);
    for unusual in [[third, third, third], overflow] {
        let statistics = computing_loop(unusual, run);
        assert!(
            (1..200).contains(&statistics.left_over),
            "{}",
            statistics.left_over
        );
        assert!(statistics.units < 10, "{}", statistics.units);
        let most = TURNS * INSTRUCTIONS * 3 / 4;
        assert!(statistics.translated > most, "{}", statistics.translated);
    }
}

#[test]
fn code_that_meets_other_controls_again_and_again_is_made_for_any() {
    const TURNS: u64 = 100;
    let numbers = [double(0.1), double(3.0), double(1.0)];
    let statistics = computing_loop(numbers, |machine, execute| {
        for round in 0..200 {
            let flags = if round % 2 == 0 {
                Flags::INEXACT
            } else {
                Flags::empty()
            };
            set_status(&mut machine.processor, StatusRegister::LINUX, flags);
            assert_eq!(execute(&mut machine.processor, INSTRUCTIONS * TURNS), Exit::Limit);
        }
    });
    assert!(statistics.units < 20, "{}", statistics.units);
    let most = 200 * TURNS * INSTRUCTIONS * 3 / 4;
    assert!(statistics.translated > most, "{}", statistics.translated);
}
