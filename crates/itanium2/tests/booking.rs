//! Blocks that are booked as a whole: every number is as if each instruction had been computed.

#[path = "../../ia64/tests/machine/mod.rs"]
mod machine;
#[path = "../../ia64/tests/random_guest/mod.rs"]
mod random_guest;

use machine::{CODE, DATA, Machine};
use proptest::prelude::*;
use random_guest::Source;
use sidestep_ia64::encoding::{Bundle, DecodedSlot, Form, Instruction, Template, UnitClass, all_forms};
use sidestep_ia64::execution::{
    Dynamic, Event, Observer, PerformanceRegisters, Place, Together, Translation,
};
use sidestep_ia64::registers::application;
use sidestep_ia64::registers::frame::FrameMarker;
use sidestep_ia64::{Exit, Processor};
use sidestep_itanium2::instruction::StaticInstruction;
use sidestep_itanium2::parameters::Cost;
use sidestep_itanium2::{Booking, Counters, Event as Counted, Parameters, Pipeline};

/// Two pipelines that are told the same, of which one books blocks as a whole.
struct Both {
    computed: Pipeline,
    booked: Pipeline,
}

impl Both {
    fn new(parameters: &Parameters) -> Both {
        let mut computed = Pipeline::new(parameters.clone());
        computed.book_blocks(false);
        Both {
            computed,
            booked: Pipeline::new(parameters.clone()),
        }
    }

    fn assert_equal(&self) {
        assert_eq!(self.booked.counters(), self.computed.counters());
    }
}

impl Observer for Both {
    type Static = StaticInstruction;

    fn decode(&mut self, instruction: &Instruction, slot: &DecodedSlot) -> StaticInstruction {
        self.computed.decode(instruction, slot)
    }

    fn retired(&mut self, known: &StaticInstruction, dynamic: &Dynamic<'_>) {
        self.computed.retired(known, dynamic);
        self.booked.retired(known, dynamic);
    }

    fn stands_apart(&self, known: &StaticInstruction) -> bool {
        self.booked.stands_apart(known)
    }

    fn gathers(&mut self, identity: u64) -> bool {
        self.booked.gathers(identity)
    }

    fn retired_together(&mut self, together: &Together<'_, StaticInstruction>) {
        together.tell_each(&mut self.computed);
        self.booked.retired_together(together);
        self.assert_equal();
    }

    fn event(&mut self, event: &Event<'_>) {
        self.computed.event(event);
        self.booked.event(event);
    }

    fn counters_used(
        &mut self,
        known: &StaticInstruction,
        place: Place,
        executed: bool,
        memory: &dyn Translation,
        registers: &mut PerformanceRegisters,
    ) {
        let mut others = *registers;
        self.computed
            .counters_used(known, place, executed, memory, registers);
        self.booked
            .counters_used(known, place, executed, memory, &mut others);
        assert_eq!(others, *registers);
    }

    fn interrupt(&mut self) -> Option<u8> {
        let vector = self.computed.interrupt();
        assert_eq!(self.booked.interrupt(), vector);
        vector
    }
}

/// Formats of instructions that mostly do something in a program: arithmetic, compares, loads and stores without
/// update, semaphores, branches, moves, frames, floating point. Numbered as in the manual.
const FORMATS: &[&str] = &[
    "A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "A9", "I5", "I11", "I12", "I16", "I22", "I25", "I26",
    "I27", "I28", "I29", "M1", "M1", "M1", "M4", "M4", "M6", "M9", "M16", "M18", "M19", "M22", "M29", "M31",
    "M34", "B1", "B1", "B2", "B3", "B4", "B5", "F1", "F4", "F8", "F9", "X2",
];
/// Bundles of a program.
const BUNDLES: u64 = 96;

/// A slot of a random instruction for one of some units.
fn slot(source: &mut Source<'_>, forms: &[&Form], classes: &[UnitClass]) -> u64 {
    let form = loop {
        let form = forms[source.below(forms.len() as u64) as usize];
        if classes.contains(&form.class) {
            break form;
        }
    };
    let mut fields = source.next() & Bundle::SLOT_MASK;
    // Most predicates are true, targets are below register 64, addresses in those above.
    if !source.one_in(3) {
        fields &= !0x3f;
    }
    match form.format.as_bytes()[0] {
        // Branches go a few bundles far.
        b'B' => {
            let distance = source.below(16).wrapping_sub(8) & 0x1f_ffff;
            fields =
                fields & !(0xf_ffff << 13 | 1 << 36) | (distance & 0xf_ffff) << 13 | distance >> 20 << 36;
        }
        b'M' => fields = fields & !(1 << 12) | 1 << 26,
        _ => fields &= !(1 << 12),
    }
    form.value | fields & !form.mask
}

/// A random program.
fn program(source: &mut Source<'_>) -> Vec<Bundle> {
    use UnitClass::{A, B, F, I, LX, M};
    let wanted = |form: &&Form| FORMATS.contains(&form.format);
    let forms: Vec<&Form> = all_forms().map(|(_, form)| form).filter(wanted).collect();
    (0..BUNDLES)
        .map(|_| {
            let (template, classes): (u8, [&[UnitClass]; 3]) = match source.below(8) {
                0 => (0x08, [&[A, M], &[A, M], &[A, I]]),
                1 => (0x0c, [&[A, M], &[F], &[A, I]]),
                2 | 3 => (0x10, [&[A, M], &[A, I], &[B]]),
                4 => (0x12, [&[A, M], &[B], &[B]]),
                5 => (0x04, [&[A, M], &[LX], &[LX]]),
                6 => (0x0a, [&[A, M], &[A, M], &[A, I]]),
                _ => (0x00, [&[A, M], &[A, I], &[A, I]]),
            };
            let mut slots = classes.map(|classes| slot(source, &forms, classes));
            if template == 0x04 {
                slots[1] = source.next() & Bundle::SLOT_MASK;
            }
            let stop = if template & 2 == 0 {
                source.below(2) as u8
            } else {
                0
            };
            Bundle::new(Template::new(template | stop), slots)
        })
        .collect()
}

/// Puts sensible values into registers: addresses of data and of code, small counts, a whole frame.
fn refresh(processor: &mut Processor, source: &mut Source<'_>) {
    let stack = processor.register_stack_mut();
    stack.restart(stack.backing_store_pointer(), 0);
    processor.frame = FrameMarker {
        size: 96,
        locals: 80,
        rotating: 8 * source.below(3) as u32,
        ..FrameMarker::default()
    };
    for register in 1..128 {
        let offset = match source.below(4) {
            // Where others are as well, and now and then at no multiple of anything.
            0 => source.below(4) * 8,
            1 => source.below(128),
            _ => source.below(4096) & !(15 | source.next() & 0x3f0),
        };
        processor.general.set(register, DATA + offset);
    }
    for branch in 0..8 {
        processor.branch[branch] = CODE + source.below(BUNDLES) * 16;
    }
    processor.predicates = source.next() | 1;
    processor.set_application(application::LC, source.below(40));
    processor.set_application(application::EC, source.below(8));
    processor.set_instruction_pointer(CODE + source.below(BUNDLES) * 16, 0);
}

/// Runs a random program, which goes on somewhere else whenever it faults. Answers how often a block was booked as a
/// whole, and what was counted.
fn run_random(bytes: &[u8], parameters: &Parameters, profiles: bool) -> (Booking, Counters) {
    let mut source = Source::new(bytes);
    let mut machine = Machine::new();
    let bundles = program(&mut source);
    machine.load_bundles(&bundles);
    let mut both = Both::new(parameters);
    if profiles {
        both.computed.enable_profile();
        both.booked.enable_profile();
    }
    refresh(&mut machine.processor, &mut source);
    for _ in 0..120 {
        let piece = 1 + source.below(2000);
        if let Exit::Fault(_) = machine.processor.run_observed(piece, &mut both) {
            refresh(&mut machine.processor, &mut source);
            if source.one_in(8) {
                both.computed.detach();
                both.booked.detach();
            }
        }
        both.assert_equal();
    }
    let counters = both.booked.finish();
    assert_eq!(counters, both.computed.finish());
    assert_eq!(both.booked.profile(), both.computed.profile());
    (both.booked.booking(), counters)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

    #[test]
    fn random_programs_cost_the_same_booked_and_computed(
        bytes: [u8; 16],
        preset in 0..4_usize,
        profiles: bool,
    ) {
        let name = Parameters::names().nth(preset).expect("there are four presets");
        run_random(&bytes, &Parameters::by_name(name).expect("a listed preset"), profiles);
    }
}

/// How many cases: more where `PROPTEST_CASES` says so.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").map_or(96, |cases| cases.parse().expect("a number of cases"))
}

#[test]
fn most_blocks_of_a_loop_are_booked_as_a_whole() {
    let mut machine = Machine::new();
    machine.load(&[
        ("mov.i I27", 0, &[65, 99]),
        ("ld8", 0, &[10, 14]),
        ("add", 0, &[11, 10, 8]),
        ("st8", 0, &[14, 11]),
        ("br.cloop", 0, &[-48]),
    ]);
    machine.processor.general.set(14, DATA);
    let mut both = Both::new(&Parameters::default());
    machine.processor.run_observed(u64::MAX, &mut both);
    both.assert_equal();
    let booking = both.booked.booking();
    assert!(booking.whole > 80 && booking.new < 20, "{booking}");
}

#[test]
fn a_loop_that_fills_the_queue_of_the_second_level_costs_the_same() {
    let mut machine = Machine::new();
    machine.load(&[
        ("mov.i I27", 0, &[65, 30]),
        ("ldf8", 0, &[10, 14]),
        ("add", 0, &[14, 14, 8]),
        ("br.cloop", 0, &[-32]),
    ]);
    machine.processor.general.set(14, DATA);
    machine.processor.general.set(8, 128);
    let mut both = Both::new(&Parameters::default().with(Cost::RequestQueueEntries, 8));
    machine.processor.run_observed(u64::MAX, &mut both);
    let counters = both.booked.finish();
    assert_eq!(counters, both.computed.finish());
    assert!(counters.get(Counted::L1dBackPressure) > 0, "{counters}");
    assert!(both.booked.booking().whole > 5, "{}", both.booked.booking());
}

#[test]
fn random_programs_have_blocks_of_both_kinds() {
    let parameters = Parameters::default();
    let (mut booking, mut counters) = (Booking::default(), Counters::default());
    for seed in 0..16_u8 {
        let (booked, counted) = run_random(&[seed; 16], &parameters, false);
        booking += booked;
        counters += counted;
    }
    assert!(booking.whole > 1000 && booking.new > 1000, "{booking}");
    // What depends on who meets whom is among what they cost.
    for event in [
        Counted::L1dStoreRecirculation,
        Counted::L2BankConflicts,
        Counted::MisalignedLoads,
        Counted::MisalignedStores,
    ] {
        assert!(counters.get(event) > 0, "{}", event.name());
    }
}

#[test]
fn where_nothing_is_found_it_is_hardly_looked_for() {
    const BLOCKS: u64 = 40_000;
    let mut machine = Machine::new();
    let lines: Vec<(&str, u8, [i64; 3])> = (1..48).map(|predicate| ("add", predicate, [10, 10, 8])).collect();
    let lines: Vec<machine::Line<'_>> = lines
        .iter()
        .map(|(name, of, operands)| (*name, *of, &operands[..]))
        .collect();
    machine.load(&lines);
    let mut pipeline = Pipeline::new(Parameters::default());
    // Which instructions are executed is different each time.
    let mut predicates = 1_u64;
    for _ in 0..BLOCKS {
        predicates = predicates
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        machine.processor.predicates = predicates | 1;
        machine.processor.set_instruction_pointer(CODE, 0);
        machine.processor.run_observed(100, &mut pipeline);
    }
    let booking = pipeline.booking();
    assert!(booking.resting > BLOCKS * 3 / 4, "{booking}");
    assert!(booking.whole < BLOCKS / 100, "{booking}");
}
