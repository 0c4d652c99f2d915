//! Units that follow each other without the loop that looks for blocks: calls, returns and indirect branches between
//! two pages do what they do interpreted, wherever a run ends and whatever becomes of the pages.

#[path = "../../ia64/tests/machine/mod.rs"]
mod machine;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use machine::{CODE, DATA, Line, Machine, SECOND_PAGE, bundle};
use sidestep_ia64::encoding::Bundle;
use sidestep_ia64::registers::frame::FrameMarker;
use sidestep_ia64::{Exit, Processor, ProcessorState};
use sidestep_translator::{PerfMap, Settings, Translator};

/// A piece of code: where it stands, and its instructions, one a bundle.
type Part<'a> = (u64, &'a [Line<'a>]);

/// Turns of the loop in [`MAIN`].
const TURNS: i64 = 6;
const FUNCTION: u64 = SECOND_PAGE + 0x100;
const LEAF: u64 = CODE + 0x400;
const SKIPPING_LEAF: u64 = CODE + 0x800;

/// The predicate under which the program flushes the instructions at r13.
const FLUSHES: u8 = 15;

/// Calls a function on the other page again and again.
const MAIN: Part = (
    CODE,
    &[
        ("alloc", 0, &[34, 64, 8, 6, 0]),
        ("adds", 0, &[9, 0, 0]),
        ("adds", 0, &[36, TURNS, 0]),
        ("adds", 0, &[38, 0, 36]),
        ("br.call B3", 0, &[0, FUNCTION as i64 - (CODE as i64 + 4 * 16)]),
        ("add", 0, &[9, 9, 8]),
        ("fc", FLUSHES, &[13]),
        ("adds", 0, &[36, -1, 36]),
        ("cmp.eq", 0, &[6, 7, 0, 36]),
        ("br.cond B1", 7, &[-6 * 16]),
    ],
);

/// Calls one of two leaves by turns, through a branch register.
const THROUGH_REGISTER: Part = (
    FUNCTION,
    &[
        ("alloc", 0, &[33, 64, 12, 10, 0]),
        ("mov I22", 0, &[34, 0]),
        ("mov I21", 0, &[6, 10, 0]),
        ("adds", 0, &[12, 0, 10]),
        ("adds", 0, &[10, 0, 11]),
        ("adds", 0, &[11, 0, 12]),
        ("adds", 0, &[42, 5, 32]),
        ("br.call B5", 0, &[0, 6]),
        ("adds", 0, &[8, 64, 8]),
        ("mov I21", 0, &[0, 34, 0]),
        ("mov.i I26", 0, &[64, 33]),
        ("br.ret", 0, &[0]),
    ],
);

/// Names a register whose NaT bit is set: its unit leaves it to the interpreter.
const LEAF_CODE: Part = (
    LEAF,
    &[
        ("adds", 0, &[8, 1, 32]),
        ("adds", 0, &[17, 1, 16]),
        ("br.ret", 0, &[0]),
    ],
);

/// Returns behind the bundle to which the call would have it return.
const SKIPPING_LEAF_CODE: Part = (
    SKIPPING_LEAF,
    &[
        ("mov I22", 0, &[14, 0]),
        ("adds", 0, &[14, 16, 14]),
        ("mov I21", 0, &[7, 14, 0]),
        ("adds", 0, &[8, 3, 32]),
        ("br.ret", 0, &[7]),
    ],
);

const PARTS: [Part; 4] = [MAIN, THROUGH_REGISTER, LEAF_CODE, SKIPPING_LEAF_CODE];

fn bundles(lines: &[Line]) -> Vec<Bundle> {
    lines.iter().map(|line| bundle(*line)).collect()
}

fn machine(parts: &[Part]) -> Machine {
    let mut machine = Machine::new();
    for (address, lines) in parts {
        machine.write_bundles(*address, &bundles(lines));
    }
    machine
}

/// Puts the processor where the program begins.
fn begin(machine: &mut Machine, flushes: bool) {
    let processor = &mut machine.processor;
    processor.predicates = 1 | u64::from(flushes) << FLUSHES;
    processor.set_instruction_pointer(CODE, 0);
    processor.frame = FrameMarker::default();
    processor.register_stack_mut().restart(DATA, 0);
    processor.general.set_with_nat(16, 1, true);
    processor.general.set(10, LEAF);
    processor.general.set(11, SKIPPING_LEAF);
    processor.general.set(13, LEAF);
}

/// Runs the program from its beginning, no more than `limit` instructions.
fn from_the_beginning(
    machine: &mut Machine,
    (limit, flushes): (u64, bool),
    run: impl FnOnce(&mut Processor, u64) -> Exit,
) -> (Exit, ProcessorState) {
    begin(machine, flushes);
    let exit = run(&mut machine.processor, limit);
    (exit, machine.processor.save())
}

fn translator() -> Translator {
    let settings = Settings {
        threshold: 2,
        instructions_max: 30,
        ..Settings::ALWAYS
    };
    Translator::new(settings, None).expect("a host that code can be emitted for")
}

/// Two processors with the same program: one interprets, the other translates and has become hot.
struct Both {
    interpreted: Machine,
    translated: Machine,
    translator: Translator,
    /// Whether the program flushes instructions.
    flushes: bool,
}

impl Both {
    fn new(parts: &[Part]) -> Both {
        let mut both = Both {
            interpreted: machine(parts),
            translated: machine(parts),
            translator: translator(),
            flushes: false,
        };
        for _ in 0..8 {
            both.compare(u64::MAX);
        }
        both
    }

    /// Runs both from the beginning and compares; answers how the run ended, and how often one unit followed another.
    fn compare(&mut self, limit: u64) -> (Exit, u64) {
        let before = self.translator.statistics().linked;
        let how = (limit, self.flushes);
        let interpreted = from_the_beginning(&mut self.interpreted, how, Processor::run);
        let translated = from_the_beginning(&mut self.translated, how, |processor, limit| {
            processor.run_with(limit, &mut self.translator, &mut ())
        });
        assert!(
            interpreted == translated,
            "{:?} {:?}",
            interpreted.0,
            translated.0
        );
        assert_eq!(self.interpreted.data(), self.translated.data());
        (interpreted.0, self.translator.statistics().linked - before)
    }

    /// Does the same to both machines.
    fn both(&mut self, change: impl Fn(&mut Machine)) {
        change(&mut self.interpreted);
        change(&mut self.translated);
    }
}

#[test]
fn a_chain_of_units_ends_at_every_instruction() {
    let mut both = Both::new(&PARTS);
    let (_, linked) = both.compare(u64::MAX);
    assert!(linked >= 3 * TURNS as u64, "{linked}");
    let begun = both.translated.processor.instructions_retired();
    both.compare(u64::MAX);
    let length = both.translated.processor.instructions_retired() - begun;
    for limit in 1..length {
        assert_eq!(both.compare(limit).0, Exit::Limit);
    }
}

#[test]
fn a_page_that_is_taken_away_is_no_targets_of_links() {
    let mut both = Both::new(&PARTS);
    both.both(|machine| machine.map_second_page(false));
    let (exit, _) = both.compare(u64::MAX);
    assert!(
        matches!(exit, Exit::Fault(fault) if fault.address.0 == FUNCTION),
        "{exit:?}"
    );
    both.both(|machine| machine.map_second_page(true));
    for _ in 0..4 {
        let (exit, _) = both.compare(u64::MAX);
        assert!(matches!(exit, Exit::Fault(fault) if fault.address.0 != FUNCTION));
    }
}

#[test]
fn code_that_is_rewritten_runs_behind_links_once_it_is_flushed() {
    let mut both = Both::new(&PARTS);
    let sum = |both: &Both| both.translated.processor.general.value(9);
    let before = sum(&both);
    both.both(|machine| machine.write_bundles(LEAF, &bundles(&[("adds", 0, &[8, 2, 32])])));
    both.compare(u64::MAX);
    assert_eq!(sum(&both), before, "nobody was told");
    // The guest's own `fc` names the page.
    both.flushes = true;
    both.compare(u64::MAX);
    both.flushes = false;
    for _ in 0..8 {
        both.compare(u64::MAX);
    }
    assert_eq!(sum(&both), before + TURNS as u64 / 2);
    // Another processor's change.
    both.both(|machine| {
        let replaced = bundles(&[("adds", 0, &[8, 100, 8])]);
        machine.write_bundles(FUNCTION + 8 * 16, &replaced);
        machine.processor.forget_instructions();
    });
    for _ in 0..8 {
        both.compare(u64::MAX);
    }
    assert_eq!(sum(&both), before + TURNS as u64 / 2 * 37);
}

/// Two functions on two pages that call each other, with frames that memory has to take.
#[test]
fn deep_recursion_between_pages_spills_and_fills() {
    const ODD: u64 = SECOND_PAGE + 0x40;
    const EVEN: u64 = CODE + 0x200;
    let function = |call: &'static [i64; 2]| -> Vec<Line<'static>> {
        vec![
            ("alloc", 0, &[33, 64, 31, 30, 0]),
            ("mov I22", 0, &[34, 0]),
            ("cmp.eq", 0, &[6, 7, 0, 32]),
            ("adds", 0, &[60, 7, 32]),
            ("adds", 0, &[62, -1, 32]),
            ("br.call B3", 7, call),
            ("add", 0, &[8, 8, 60]),
            ("mov I21", 0, &[0, 34, 0]),
            ("mov.i I26", 0, &[64, 33]),
            ("br.ret", 0, &[0]),
        ]
    };
    const TO_EVEN: &[i64; 2] = &[0, EVEN as i64 - (ODD as i64 + 5 * 16)];
    const TO_ODD: &[i64; 2] = &[0, ODD as i64 - (EVEN as i64 + 5 * 16)];
    const FIRST: i64 = ODD as i64 - (CODE as i64 + 3 * 16);
    let main: [Line; 4] = [
        ("alloc", 0, &[34, 64, 8, 6, 0]),
        ("adds", 0, &[8, 0, 0]),
        ("adds", 0, &[38, 12, 0]),
        ("br.call B3", 0, &[0, FIRST]),
    ];
    let mut both = Both::new(&[
        (CODE, &main),
        (ODD, &function(TO_EVEN)),
        (EVEN, &function(TO_ODD)),
    ]);
    let spills = both.translated.processor.register_stack().spills();
    let (_, linked) = both.compare(u64::MAX);
    assert!(both.translated.processor.register_stack().spills() > spills);
    assert!(linked > 12, "{linked}");
    for limit in (1..500).step_by(7) {
        both.compare(limit);
    }
}

/// What stands behind a call of a function on another page is translated with what returns to it, and not with what
/// calls as well.
#[test]
fn what_stands_behind_a_call_is_translated_once() {
    const BEHIND: usize = 20;
    let mut main: Vec<Line> = vec![
        ("alloc", 0, &[34, 64, 8, 6, 0]),
        ("adds", 0, &[36, TURNS, 0]),
        ("adds", 0, &[38, 0, 36]),
        ("br.call B3", 0, &[0, FUNCTION as i64 - (CODE as i64 + 3 * 16)]),
    ];
    const SUM: Line = ("add", 0, &[9, 9, 8]);
    main.extend([SUM; BEHIND]);
    const BACK: &[i64] = &[-(BEHIND as i64 + 4) * 16];
    let end: [Line; 3] = [
        ("adds", 0, &[36, -1, 36]),
        ("cmp.eq", 0, &[6, 7, 0, 36]),
        ("br.cond B1", 7, BACK),
    ];
    main.extend(end);
    let both = Both::new(&[
        (CODE, &main),
        (FUNCTION, &[("adds", 0, &[8, 1, 32]), ("br.ret", 0, &[0])]),
    ]);
    let statistics = both.translator.statistics();
    assert!(statistics.linked > 0);
    assert!(
        statistics.instructions < 2 * BEHIND as u64,
        "{}",
        statistics.instructions
    );
}

/// Two blocks on two pages that branch to each other for ever stop when somebody wants the processor.
#[test]
fn units_that_follow_each_other_for_ever_can_be_stopped() {
    let there = [SECOND_PAGE as i64 - CODE as i64];
    let back = [CODE as i64 - SECOND_PAGE as i64];
    let mut machine = machine(&[
        (CODE, &[("br.cond B1", 0, &there)]),
        (SECOND_PAGE, &[("br.cond B1", 0, &back)]),
    ]);
    machine.processor.set_instruction_pointer(CODE, 0);
    let mut translator = translator();
    assert_eq!(
        machine.processor.run_with(1000, &mut translator, &mut ()),
        Exit::Limit
    );
    assert!(translator.statistics().linked > 0);
    let attention = machine.processor.attention();
    let stopping = thread::spawn(move || {
        thread::sleep(Duration::from_millis(5));
        attention.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let exit = machine.processor.run_with(u64::MAX, &mut translator, &mut ());
    assert_eq!(exit, Exit::Attention);
    stopping.join().expect("it only stores");
}

/// Moves a double that is no normal number to a register and back again and again.
const ODD_NUMBERS: Part = (
    CODE,
    &[
        ("alloc", 0, &[34, 64, 8, 8, 0]),
        ("adds", 0, &[36, TURNS, 0]),
        ("adds", 0, &[37, 5, 0]),
        ("setf.d", 0, &[6, 37]),
        ("getf.d", 0, &[8, 6]),
        ("adds", 0, &[37, 1, 8]),
        ("adds", 0, &[36, -1, 36]),
        ("cmp.eq", 0, &[6, 7, 0, 36]),
        ("br.cond B1", 7, &[-5 * 16]),
    ],
);

#[test]
fn a_number_that_is_not_normal_does_not_end_its_unit() {
    let mut both = Both::new(&[ODD_NUMBERS]);
    let (_, before) = (both.compare(u64::MAX), both.translator.statistics());
    both.compare(u64::MAX);
    let after = both.translator.statistics();
    assert!(after.translated > before.translated);
    assert_eq!(after.left_over, before.left_over);
}

#[test]
fn a_perf_map_names_the_units_by_the_guests_functions() {
    let path = std::env::temp_dir().join(format!("sidestep-perf-map-{}", std::process::id()));
    let naming = |address: u64| (address >= FUNCTION).then(|| ("function".to_owned(), address - FUNCTION));
    let map = PerfMap::create(&path, naming).expect("a new file");
    let mut translator = translator().with_perf_map(Some(Arc::new(map)));
    let mut machine = machine(&PARTS);
    for _ in 0..8 {
        from_the_beginning(&mut machine, (u64::MAX, false), |processor, limit| {
            processor.run_with(limit, &mut translator, &mut ())
        });
    }
    let text = std::fs::read_to_string(&path).expect("the file");
    std::fs::remove_file(&path).expect("the file");
    let units = translator.statistics().units;
    assert_eq!(text.lines().count() as u64, units);
    let is_line = |line: &str| {
        let parts: Vec<&str> = line.split(' ').collect();
        let numbers = parts[..2]
            .iter()
            .all(|number| u64::from_str_radix(number, 16).is_ok_and(|number| number > 0));
        parts.len() == 3 && numbers
    };
    assert!(text.lines().all(is_line), "{text}");
    let first = format!("guest:{CODE:#x}");
    let names: Vec<&str> = text.lines().filter_map(|line| line.rsplit(' ').next()).collect();
    assert!(names.contains(&"guest:function"), "{text}");
    assert!(names.contains(&first.as_str()), "{text}");
}
