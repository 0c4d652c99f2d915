//! Random loops, and how they are executed.

use sidestep_ia64::encoding::{
    BranchKind, Bundle, Effects, FloatFormat, FloatTransfer, Form, LoadKind, Operation, Precision, Resource,
    StatusField, Target, Template, Unit, UnitClass, all_forms, decode,
};
use sidestep_ia64::registers::application::{EC, LC};
use sidestep_ia64::registers::frame::FrameMarker;
use sidestep_ia64::{Exit, Processor};

use super::{
    BUNDLES, CODE, FLOATING, INTEGER, STACKED, Source, aim, instruction, is_usual, nothing, set_numbers,
};
use crate::machine::{DATA, Machine};

/// Bundles of a loop; behind it and behind the code around it nothing stands.
const BODY: u64 = 10;
const CODE_END: u64 = CODE + BUNDLES * 16;
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
pub fn pipelined(source: &mut Source) -> Machine {
    use UnitClass::B;
    let mut forms: Vec<&Form> = all_forms()
        .map(|(_, form)| form)
        .filter(|form| is_usual(form.operation) && form.class != B)
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
    body(source, &forms, |_, bundle| {
        let back = 0u64.wrapping_sub(bundle);
        match bundle {
            _ if is_top && bundle == BODY - 1 => branch(kind, predicate, back),
            _ if !is_top && bundle == exit => branch(kind, predicate, BODY - bundle),
            _ if bundle == BODY - 1 => branch(BranchKind::Conditional, 0, back),
            _ => nothing(UnitClass::B),
        }
    })
}

/// A loop of random instructions that calls nothing and keeps the frame: it goes back to its first bundle by a counted
/// or a conditional branch, and passes over some of its bundles.
pub fn tight(source: &mut Source) -> Machine {
    let forms: Vec<&Form> = plain_forms().collect();
    tight_of(source, &forms)
}

/// The same of instructions that compute with doubles, most of them.
pub fn tight_of_doubles(source: &mut Source) -> Machine {
    let forms: Vec<&Form> = plain_forms().collect();
    let of_doubles = forms.iter().filter(|form| computes_doubles(form.operation));
    let mut of_doubles: Vec<&Form> = of_doubles.copied().collect();
    // There are fewer forms of these than of loads and comparisons.
    let moves = of_doubles.iter().filter(|form| {
        matches!(
            form.operation,
            Operation::FloatMerge { .. } | Operation::SetFloat { .. } | Operation::FloatMultiplyAdd { .. }
        )
    });
    let moves: Vec<&Form> = moves.copied().collect();
    of_doubles.extend(moves.repeat(4));
    // As many of these as of all others, or nothing else where those are of the floating-point unit.
    let others = forms
        .into_iter()
        .filter(|form| form.class != UnitClass::F || source.below(64) == 0);
    let mut forms: Vec<&Form> = others.collect();
    let times = forms.len() / of_doubles.len() + 1;
    forms.extend(of_doubles.repeat(times));
    tight_of(source, &forms)
}

/// A tight loop of instructions that name general registers and rotate them, as those that copy memory do.
pub fn rotating(source: &mut Source) -> Machine {
    let forms: Vec<&Form> = plain_forms()
        .filter(|form| names_general_registers(form))
        .collect();
    let length = 1 + source.below(4);
    let kind = [BranchKind::CountedTop, BranchKind::WhileTop][source.below(2) as usize];
    let bundles = (0..length).map(|bundle| {
        use UnitClass::{A, I, M};
        let back = 0u64.wrapping_sub(bundle);
        let last = match kind {
            _ if bundle < length - 1 && source.below(8) == 0 => {
                branch(BranchKind::Conditional, 6 + source.below(6), length - bundle)
            }
            _ if bundle < length - 1 => nothing(UnitClass::B),
            BranchKind::WhileTop => branch(kind, [6, 16, 17, 20][source.below(4) as usize], back),
            _ => branch(kind, 0, back),
        };
        let first = instruction(source, &forms, &[A, M], Unit::M, bundle);
        let middle = instruction(source, &forms, &[A, I], Unit::I, bundle);
        Bundle::new(Template::new(INTEGER), [first, middle, last])
    });
    let code: Vec<Bundle> = bundles.collect();
    let mut machine = Machine::new();
    machine.load_bundles_at(CODE, &code);
    machine
}

/// A loop that does nothing but count and rotate.
pub fn counting() -> Machine {
    use UnitClass::{I, M};
    let slots = [nothing(M), nothing(I), branch(BranchKind::CountedTop, 0, 0)];
    let mut machine = Machine::new();
    machine.load_bundles_at(CODE, &[Bundle::new(Template::new(INTEGER), slots)]);
    machine
}

/// Whether an instruction names no floating-point registers and no advanced loads.
fn names_general_registers(form: &Form) -> bool {
    let unit = match form.class {
        UnitClass::M => Unit::M,
        UnitClass::A | UnitClass::I => Unit::I,
        _ => return false,
    };
    let Ok(instruction) = decode(unit, form.value, 0) else {
        return false;
    };
    let (sources, destinations) = (instruction.sources(), instruction.destinations());
    let mut named = sources.iter().chain(destinations.iter());
    let is_advanced = match form.operation {
        Operation::Load { kind, .. } => {
            !matches!(kind, LoadKind::Normal | LoadKind::Speculative | LoadKind::Fill)
        }
        _ => false,
    };
    !is_advanced && !named.any(|resource| matches!(resource, Resource::Float(_)))
}

/// Whether an operation takes doubles from registers, or delivers one, where they hold doubles.
fn computes_doubles(operation: Operation) -> bool {
    use Operation as O;
    match operation {
        O::FloatMultiplyAdd {
            precision, status, ..
        } => precision != Precision::Dynamic && status == StatusField::S0,
        O::LoadFloat { format, .. } | O::StoreFloat { format, .. } => {
            matches!(format, FloatFormat::Single | FloatFormat::Double)
        }
        O::SetFloat { form } | O::GetFloat { form } => {
            matches!(form, FloatTransfer::Single | FloatTransfer::Double)
        }
        O::FloatMerge { .. }
        | O::FloatExtremum { .. }
        | O::FloatCompare { .. }
        | O::FloatClass { .. }
        | O::ConvertFromFixed => true,
        _ => false,
    }
}

/// The forms of instructions that may stand in a tight loop, but for branches.
fn plain_forms() -> impl Iterator<Item = &'static Form> {
    use UnitClass::{B, M};
    let changes = Effects::CHANGES_FRAME | Effects::CHANGES_STATUS | Effects::TRANSFERS;
    all_forms()
        .map(|(_, form)| form)
        .filter(|form| is_usual(form.operation) && form.class != B)
        .filter(move |form| {
            let effects = decode(Unit::M, form.value, 0).map(|instruction| instruction.effects());
            form.class != M || effects.is_ok_and(|effects| !effects.intersects(changes))
        })
}

/// A tight loop of instructions of some forms.
fn tight_of(source: &mut Source, forms: &[&Form]) -> Machine {
    let length = 2 + source.below(BODY - 2);
    body(source, forms, |source, bundle| {
        let back = 0u64.wrapping_sub(bundle);
        match bundle {
            _ if bundle == length - 1 => match source.below(3) {
                0 => branch(BranchKind::Conditional, 6 + source.below(6), back),
                _ => branch(BranchKind::CountedLoop, 0, back),
            },
            _ if bundle < length - 1 && source.below(4) == 0 => {
                let over = 1 + source.below(length - 1 - bundle);
                branch(BranchKind::Conditional, 6 + source.below(6), over)
            }
            _ => nothing(UnitClass::B),
        }
    })
}

/// Bundles of random instructions of some forms, with what `last` gives for each in their branch slots.
fn body(source: &mut Source, forms: &[&Form], mut last: impl FnMut(&mut Source, u64) -> u64) -> Machine {
    use UnitClass::{A, F, I, M};
    let bundles = (0..BODY).map(|bundle| {
        let last = last(source, bundle);
        let first = instruction(source, forms, &[A, M], Unit::M, bundle);
        let (template, middle) = match source.below(2) {
            0 => (INTEGER, instruction(source, forms, &[A, I], Unit::I, bundle)),
            _ => (FLOATING, instruction(source, forms, &[F], Unit::F, bundle)),
        };
        Bundle::new(Template::new(template), [first, middle, last])
    });
    let code: Vec<Bundle> = bundles.collect();
    let mut machine = Machine::new();
    machine.load_bundles_at(CODE, &code);
    machine
}

/// Executes a loop once, on other numbers, in another frame and with another number of iterations.
pub fn execute(processor: &mut Processor, seed: u64, run: impl FnMut(&mut Processor, u64) -> Exit) {
    execute_up_to(8, processor, seed, run);
}

/// The same with so many iterations at most, if they are counted.
pub fn execute_up_to(
    iterations: u64,
    processor: &mut Processor,
    seed: u64,
    mut run: impl FnMut(&mut Processor, u64) -> Exit,
) {
    let mut source = Source(seed);
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
        let value = match source.below(6) {
            // What is no usual number where it is taken for one.
            0 => source.float(true).as_double().unwrap_or(f64::NAN.to_bits()),
            _ => source.next() >> source.below(64),
        };
        processor.general.set_with_nat(register, value, nat);
    }
    for register in [LC, EC] {
        processor.set_application(register, source.below(iterations + 1));
    }
    set_numbers(processor, &mut source);
    aim(processor, &mut source);
    processor.set_instruction_pointer(CODE, 0);
    let end = processor.instructions_retired() + (12 + iterations) * BODY * 3;
    let is_within = |processor: &Processor| (CODE..CODE_END).contains(&processor.instruction_pointer().0);
    while processor.instructions_retired() < end && is_within(processor) {
        let left = end - processor.instructions_retired();
        let piece = 1 + source.below(50 * iterations);
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
}
