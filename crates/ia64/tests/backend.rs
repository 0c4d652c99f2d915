//! Back ends and kinds of blocks: what executes a block, and what is kept of it, changes nothing.

mod machine;

use std::sync::atomic::{AtomicU64, Ordering};

use machine::{CODE, Line, Machine};
use sidestep_ia64::Exit;
use sidestep_ia64::Raised;
use sidestep_ia64::encoding::{DecodedSlot, Instruction, Opcode};
use sidestep_ia64::execution::{
    Backend, Context, DecodedBlock, Dynamic, Interpreter, MicroOperation, Observer, Running,
};
use sidestep_ia64::registers::application::LC;

/// Counts how often each block is entered, and has the interpreter execute it.
#[derive(Default)]
struct Counting {
    translated: u64,
    entered: u64,
}

struct Counted {
    operations: Box<[MicroOperation]>,
    entered: AtomicU64,
}

impl Backend for Counting {
    type Code = Counted;

    fn translate(&mut self, block: &DecodedBlock, context: &Context) -> Counted {
        self.translated += 1;
        Counted {
            operations: Interpreter.translate(block, context),
            entered: AtomicU64::new(0),
        }
    }

    fn enter<O: Observer>(&mut self, code: &Counted, running: Running<'_, '_, O>) -> Result<(), Raised> {
        self.entered += 1;
        code.entered.fetch_add(1, Ordering::Relaxed);
        Interpreter.enter(&code.operations, running)
    }
}

/// A loop of a hundred turns.
const LOOP: &[Line] = &[
    ("mov.i I27", 0, &[65, 99]),
    ("adds", 0, &[8, 1, 8]),
    ("br.cloop", 0, &[-16]),
];

fn end() -> u64 {
    CODE + LOOP.len() as u64 * 16
}

#[test]
fn another_back_end_executes_what_the_interpreter_does() {
    let (mut plain, mut other) = (Machine::new(), Machine::new());
    plain.run(LOOP).expect("nothing faults");
    other.load(LOOP);
    let mut backend = Counting::default();
    let exit = other.processor.run_with(u64::MAX, &mut backend, &mut ());
    assert!(matches!(exit, Exit::Fault(_)));
    assert_eq!(other.processor.instruction_pointer(), (end(), 0));
    for processor in [&plain.processor, &other.processor] {
        assert_eq!(processor.general.value(8), 100);
        assert_eq!(processor.application(LC), 0);
    }
    let retired = |machine: &Machine| machine.processor.instructions_retired();
    assert_eq!(retired(&plain), retired(&other));
    assert!(backend.translated <= 4, "{}", backend.translated);
    assert!(backend.entered >= 100, "{}", backend.entered);
}

/// Counts what is decoded for it and what retires.
#[derive(Default)]
struct Watching {
    decoded: u64,
    retired: Vec<Opcode>,
}

impl Observer for Watching {
    type Static = Opcode;

    fn decode(&mut self, instruction: &Instruction, _: &DecodedSlot) -> Opcode {
        self.decoded += 1;
        instruction.operation.opcode()
    }

    fn retired(&mut self, known: &Opcode, _: &Dynamic<'_>) {
        self.retired.push(*known);
    }
}

#[test]
fn blocks_of_both_kinds_are_kept_when_runs_are_watched_in_turns() {
    let mut machine = Machine::new();
    machine.load(LOOP);
    let mut watching = Watching::default();
    for _ in 0..3 {
        machine.processor.set_instruction_pointer(CODE, 0);
        machine.processor.run(u64::MAX);
        machine.processor.set_instruction_pointer(CODE, 0);
        machine.processor.run_observed(u64::MAX, &mut watching);
        // What a debugger does: one instruction by itself.
        machine.processor.set_instruction_pointer(CODE, 0);
        machine.processor.run(1);
    }
    let (decoded, retired) = (watching.decoded, watching.retired.len());
    assert_eq!(retired, 3 * (3 + 100 * 6), "all three slots of every bundle");
    assert!(decoded < 30, "{decoded} decoded");
    let adds = watching
        .retired
        .iter()
        .filter(|opcode| **opcode == Opcode::AddImmediate);
    assert_eq!(adds.count(), 300);
}

#[test]
fn instructions_that_change_are_forgotten_in_every_kind() {
    let mut machine = Machine::new();
    machine.load(LOOP);
    let mut watching = Watching::default();
    machine.processor.run(u64::MAX);
    machine.processor.set_instruction_pointer(CODE, 0);
    machine.processor.run_observed(u64::MAX, &mut watching);
    machine.load(&[("adds", 0, &[8, 7, 0])]);
    machine.processor.forget_instructions();
    for watched in [false, true] {
        machine.processor.set_instruction_pointer(CODE, 0);
        match watched {
            false => machine.processor.run(u64::MAX),
            true => machine.processor.run_observed(u64::MAX, &mut watching),
        };
        assert_eq!(machine.processor.instruction_pointer(), (CODE + 16, 0));
        assert_eq!(machine.processor.general.value(8), 7);
    }
}
