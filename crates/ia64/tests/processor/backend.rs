//! Back ends and kinds of blocks: what executes a block, and what is kept of it, changes nothing.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::machine::{CODE, DATA, Line, Machine};
use sidestep_ia64::encoding::{DecodedSlot, Instruction, Opcode};
use sidestep_ia64::execution::{
    Backend, Context, DecodedBlock, Dynamic, Interpreter, MicroOperation, Observer, Running,
};
use sidestep_ia64::float::FloatRegister;
use sidestep_ia64::layout;
use sidestep_ia64::registers::application::LC;
use sidestep_ia64::{Exit, Processor, Raised};

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

    fn operations(code: &Counted) -> &[MicroOperation] {
        &code.operations
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

/// Turns of a loop that goes on for longer than blocks are short.
const TURNS: i64 = 300_000;

/// A loop with a branch inside that is taken in every eighth turn.
const BRANCHING_LOOP: &[Line] = &[
    ("movl", 0, &[9, TURNS - 1]),
    ("mov.i I26", 0, &[65, 9]),
    ("adds", 0, &[8, 1, 8]),
    ("tbit.z.unc", 0, &[6, 0, 8, 2]),
    ("br.cond B1", 6, &[32]),
    ("adds", 0, &[10, 1, 10]),
    ("br.cloop", 0, &[-64]),
];

#[test]
fn a_program_does_the_same_before_and_after_its_blocks_are_whole() {
    let mut other = Machine::new();
    other.load(BRANCHING_LOOP);
    other
        .processor
        .run_with(u64::MAX, &mut Counting::default(), &mut ());
    for piece in [u64::MAX, 100_003, (1 << 20) + 1] {
        let mut plain = Machine::new();
        plain.load(BRANCHING_LOOP);
        let mut exit = Exit::Limit;
        while exit == Exit::Limit {
            let before = plain.processor.instructions_retired();
            exit = plain.processor.run(piece);
            let retired = plain.processor.instructions_retired() - before;
            assert_eq!(exit == Exit::Limit, retired == piece, "{retired} of {piece}");
        }
        for register in [8, 10] {
            let of = |machine: &Machine| machine.processor.general.value(register);
            assert_eq!(of(&plain), of(&other));
        }
        let retired = |machine: &Machine| machine.processor.instructions_retired();
        assert_eq!(retired(&plain), retired(&other));
        assert!(retired(&plain) > 1 << 21);
    }
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
fn a_watched_run_that_ends_inside_a_block_executes_what_was_decoded() {
    let mut machine = Machine::new();
    machine.load(LOOP);
    let mut watching = Watching::default();
    machine.processor.run_observed(u64::MAX, &mut watching);
    for limit in 1..9 {
        machine.processor.set_instruction_pointer(CODE, 0);
        let decoded = watching.decoded;
        watching.retired.clear();
        watching.retired.clear();
        let before = machine.processor.general.value(8);
        let exit = machine.processor.run_observed(limit, &mut watching);
        assert_eq!((exit, watching.retired.len() as u64), (Exit::Limit, limit));
        let place = (CODE + limit / 3 * 16, (limit % 3) as u8);
        assert_eq!(machine.processor.instruction_pointer(), place);
        // The addition is the first instruction of the second bundle.
        let added = machine.processor.general.value(8) - before;
        assert_eq!(added, u64::from(limit > 3), "{limit}");
        // The block behind is looked for, and the one behind the first bundle is known: the loop.
        let behind = if limit == 3 { 0 } else { 9 - limit };
        assert_eq!(watching.decoded - decoded, behind);
    }
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

/// What lies so many bytes from a place.
///
/// # Safety
/// A value of the type lies there.
unsafe fn read<T>(place: *const u8, offset: usize) -> T {
    // SAFETY: as the caller says.
    unsafe { place.add(offset).cast::<T>().read() }
}

#[test]
fn a_processor_lies_in_memory_as_the_layout_says() {
    const LINES: &[Line] = &[
        ("alloc", 0, &[3, 64, 5, 5, 0]),
        ("addl", 0, &[4, DATA as i64, 0]),
        ("ld8 M1", 0, &[33, 4]),
        ("st8 M4", 0, &[4, 33]),
    ];
    let mut machine = Machine::new();
    machine.data()[..8].copy_from_slice(&0x1234_5678_9abc_def0_u64.to_le_bytes());
    machine.run(LINES).expect("nothing faults");
    let processor = &mut machine.processor;
    processor.general.set_with_nat(100, 7, true);
    processor.branch[6] = DATA;
    let (ip, slot) = processor.instruction_pointer();
    let place = std::ptr::from_ref::<Processor>(processor).cast::<u8>();
    // SAFETY: the offsets are within the processor, and of the types that the layout states; nobody writes meanwhile.
    unsafe {
        assert_eq!(read::<u64>(place, layout::IP), ip);
        assert_eq!(read::<u8>(place, layout::SLOT), slot);
        assert_eq!(
            read::<u64>(place, layout::RETIRED),
            processor.instructions_retired()
        );
        assert_eq!(read::<u64>(place, layout::PREDICATES), processor.predicates);
        assert_eq!(read::<u64>(place, layout::STATUS), processor.status);
        assert_eq!(read::<u32>(place, layout::FRAME_SIZE), 5);
        assert_eq!(read::<[u64; 8]>(place, layout::BRANCH), processor.branch);
        let base = read::<u64>(place, layout::GENERAL_BASE) as usize;
        assert!(base <= layout::GENERAL_BASE_MAX);
        let stacked = layout::GENERAL + base * 8;
        assert_eq!(read::<u64>(place, stacked + 33 * 8), 0x1234_5678_9abc_def0);
        assert_eq!(read::<u64>(place, layout::GENERAL + 4 * 8), DATA);
        let positions = [layout::STACK_POSITION, layout::STACK_STORED, layout::STACK_LOADED];
        let stack = processor.register_stack();
        let first = read::<i64>(place, positions[0]) - i64::from(stack.dirty());
        assert_eq!(read::<i64>(place, positions[1]), first);
        assert!(read::<i64>(place, positions[2]) <= first);
        assert_eq!(read::<u32>(place, layout::STACK_UNUSUAL), 0);
        assert_eq!(read::<u128>(place, layout::GENERAL_NATS), 1 << 100);
        assert_eq!(
            read::<u64>(place, layout::APPLICATION + usize::from(LC) * 8),
            processor.application(LC)
        );
        // f1 is one: its significand has the integer bit alone.
        assert_eq!(read::<u64>(place, layout::FLOATING + 16), 1 << 63);
        let translations = read::<*const u8>(place, layout::TRANSLATIONS);
        let granule = (DATA >> layout::TRANSLATION_GRANULE_LOG2) as usize % layout::TRANSLATIONS_COUNT;
        let entry = translations.add(granule * layout::TRANSLATION_SIZE);
        assert_eq!(read::<u64>(entry, layout::TRANSLATION_READ), DATA);
        assert_eq!(read::<u64>(entry, layout::TRANSLATION_WRITE), DATA);
        let host = DATA.wrapping_add(read::<u64>(entry, layout::TRANSLATION_DELTA));
        assert_eq!(host, machine.data().as_ptr() as u64);
    }
}

#[test]
fn a_back_end_may_leave_doubles_as_they_are() {
    let mut machine = Machine::new();
    let processor = &mut machine.processor;
    let bits = (-1.5f64).to_bits();
    let value = FloatRegister::from_double(bits);
    processor.set_floating(9, value);
    let saved = processor.save();
    let place = std::ptr::from_mut::<Processor>(processor).cast::<u8>();
    // SAFETY: a back end may write a floating-point register, which has two words.
    unsafe {
        let register = place.add(layout::FLOATING + 9 * 16).cast::<u64>();
        register.write(bits);
        register.add(1).write(layout::FLOATING_DOUBLE);
    }
    assert_eq!(processor.floating(9), value);
    assert_eq!(processor.save(), saved);
}
