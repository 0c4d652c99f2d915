//! Random loops that rotate registers, as software-pipelined ones do: translated they end in the same state as
//! interpreted, however many iterations they have and however much of the frame rotates.

#[path = "../../ia64/tests/machine/mod.rs"]
mod machine;
mod programs;

use machine::{DATA, Machine};
use programs::{
    BUNDLES, CODE, FLOATING, INTEGER, STACKED, Source, aim, cases, instruction, set_numbers, translator,
};
use proptest::prelude::*;
use sidestep_ia64::encoding::{
    BranchKind, Bundle, Form, Operation, Precision, Target, Template, Unit, UnitClass, all_forms,
};
use sidestep_ia64::registers::application::{EC, LC};
use sidestep_ia64::registers::frame::FrameMarker;
use sidestep_ia64::{Exit, Processor, ProcessorState};

/// Bundles of a loop; behind it and behind the code around it nothing stands.
const BODY: u64 = 10;
const CODE_END: u64 = CODE + BUNDLES * 16;
const ROUNDS: u64 = 12;

/// A branch of one of the kinds, its predicate given, over so many bundles.
fn branch(kind: BranchKind, predicate: u64, distance: u64) -> u64 {
    let is_kind = |form: &&Form| match form.operation {
        Operation::Branch { kind: of, target } => of == kind && target == Target::Relative,
        _ => false,
    };
    let form = all_forms().map(|(_, form)| form).find(is_kind);
    let form = form.expect("a branch of each kind");
    let fields = (distance & 0xf_ffff) << 13 | (distance >> 63) << 36 | predicate;
    form.value | fields & !form.mask
}

/// A loop of random instructions that goes back to its first bundle, or leaves in its middle, by a loop branch.
fn pipelined(source: &mut Source) -> Machine {
    use UnitClass::{A, B, F, I, M};
    let mut forms: Vec<&Form> = all_forms()
        .map(|(_, form)| form)
        .filter(|form| programs::is_usual(form.operation) && form.class != B)
        .collect();
    // Steps of divisions.
    let is_step = |form: &&&Form| match form.operation {
        Operation::FloatMultiplyAdd { precision, .. } => precision == Precision::Dynamic,
        Operation::ConvertToFixed { .. }
        | Operation::FloatReciprocalApproximation { .. }
        | Operation::FloatReciprocalSquareRootApproximation { .. } => true,
        _ => false,
    };
    let steps: Vec<&Form> = forms.iter().filter(is_step).copied().collect();
    forms.extend(steps.repeat(20));
    let mut nothing = all_forms().map(|(_, form)| form);
    let nothing = nothing.find(|form| form.class == B && form.operation == Operation::Nop);
    let nothing = nothing.expect("nop.b").value;
    let kind = [
        BranchKind::CountedTop,
        BranchKind::CountedExit,
        BranchKind::WhileTop,
        BranchKind::WhileExit,
    ][source.below(4) as usize];
    let is_top = matches!(kind, BranchKind::CountedTop | BranchKind::WhileTop);
    let predicate = match kind {
        BranchKind::WhileTop | BranchKind::WhileExit => [0, 6, 16, 17, 20][source.below(5) as usize],
        _ => 0,
    };
    let exit = source.below(BODY - 1);
    let mut code = Vec::new();
    for bundle in 0..BODY {
        let back = 0u64.wrapping_sub(bundle);
        let last = match bundle {
            _ if is_top && bundle == BODY - 1 => branch(kind, predicate, back),
            _ if !is_top && bundle == exit => branch(kind, predicate, BODY - bundle),
            _ if bundle == BODY - 1 => branch(BranchKind::Conditional, 0, back),
            _ => nothing,
        };
        let first = instruction(source, &forms, &[A, M], Unit::M, bundle);
        let (template, middle) = match source.below(2) {
            0 => (INTEGER, instruction(source, &forms, &[A, I], Unit::I, bundle)),
            _ => (FLOATING, instruction(source, &forms, &[F], Unit::F, bundle)),
        };
        code.push(Bundle::new(Template::new(template), [first, middle, last]));
    }
    let mut machine = Machine::new();
    machine.load_bundles_at(CODE, &code);
    machine
}

/// Executes a loop once, on other numbers, in another frame and with another number of iterations.
fn execute(
    machine: &mut Machine,
    seed: u64,
    mut run: impl FnMut(&mut Processor, u64) -> Exit,
) -> ProcessorState {
    let mut source = Source(seed);
    let processor = &mut machine.processor;
    processor.predicates = source.next() | 1;
    processor.register_stack_mut().restart(DATA + 2048, 0);
    let rotating = match source.below(8) {
        0 => 8 * source.below(7) as u32,
        _ => 16,
    };
    processor.frame = FrameMarker {
        size: u32::from(STACKED),
        locals: 40,
        rotating,
        ..FrameMarker::default()
    };
    let has_nats = source.below(6) == 0;
    for register in 1..32 + STACKED {
        let nat = has_nats && source.below(24) == 0;
        processor
            .general
            .set_with_nat(register, source.next() >> source.below(64), nat);
    }
    for register in [LC, EC] {
        processor.set_application(register, source.below(9));
    }
    set_numbers(processor, &mut source);
    aim(processor, &mut source);
    processor.set_instruction_pointer(CODE, 0);
    let end = processor.instructions_retired() + 20 * BODY * 3;
    let is_within = |processor: &Processor| (CODE..CODE_END).contains(&processor.instruction_pointer().0);
    while processor.instructions_retired() < end && is_within(processor) {
        let left = end - processor.instructions_retired();
        let piece = 1 + source.below(400);
        if let Exit::Fault(fault) = run(processor, piece.min(left)) {
            if processor.instruction_pointer().0 >= CODE + BODY * 16 {
                break;
            }
            if !fault.kind.is_trap() {
                processor.skip_instruction();
            }
            aim(processor, &mut source);
        }
    }
    machine.processor.save()
}

fn compare(seed: u64) -> Result<u64, TestCaseError> {
    let [mut interpreted, mut translated] = [(); 2].map(|()| pipelined(&mut Source(seed)));
    let mut translator = translator(3);
    for round in 0..ROUNDS {
        let one = execute(&mut interpreted, seed ^ round << 32, Processor::run);
        let other = execute(&mut translated, seed ^ round << 32, |processor, limit| {
            processor.run_with(limit, &mut translator, &mut ())
        });
        if one != other {
            let states = (format!("{one:#x?}"), format!("{other:#x?}"));
            let lines = states.0.lines().zip(states.1.lines());
            let differ: Vec<_> = lines.filter(|(one, other)| one != other).collect();
            prop_assert!(false, "round {round}: {differ:#?}");
        }
        prop_assert_eq!(interpreted.data(), translated.data());
    }
    Ok(translator.statistics().translated)
}

/// Most of what loops execute is executed translated: a rotation does not end that.
#[test]
fn loops_stay_in_translated_code() {
    let translated: u64 = (0..8).map(|seed| compare(seed).expect("the same states")).sum();
    assert!(translated > 0);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

    #[test]
    fn a_translated_loop_does_what_an_interpreted_one_does(seed: u64) {
        compare(seed)?;
    }
}
