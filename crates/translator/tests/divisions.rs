//! Random divisions: the sequences of steps that compilers write, in any registers, with other instructions between
//! them and behind, on operands that a host divides and on others, executed in pieces. At the end of each piece
//! translated code has left what interpreted code has, in the registers of the steps as well.

#[path = "../../ia64/tests/machine/mod.rs"]
mod machine;
mod programs;

use machine::Machine;
use programs::{CODE, FLOATING, Source, aim, cases, instruction, is_usual, nothing, set_numbers, translator};
use proptest::prelude::*;
use sidestep_ia64::encoding::{
    BaseUpdate, Bundle, FixedRounding, Form, LoadKind, Operation, Precision as Completer, Signedness, Size,
    StatusField, Template, Unit, UnitClass, all_forms,
};
use sidestep_ia64::float::division::{Operand, Quotient, SEQUENCES, Sequence};
use sidestep_ia64::float::register::EXPONENT_INTEGER;
use sidestep_ia64::float::{Flags, FloatRegister, Precision, StatusRegister};
use sidestep_ia64::layout::DIVISION_SITES;
use sidestep_ia64::registers::application::FPSR;
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::{Exit, Processor};

const BUNDLES: u64 = 20;
const ROUNDS: u64 = 12;

/// A slot of the floating-point unit: an operation under a predicate, with the values of its fields of registers.
fn slot(operation: Operation, predicate: u8, registers: [u8; 4]) -> u64 {
    let form = all_forms()
        .map(|(_, form)| form)
        .find(|form| form.operation == operation && form.class == UnitClass::F);
    let fields = [6, 13, 20, 27].into_iter().zip(registers);
    let fields = fields.fold(u64::from(predicate), |all, (shift, register)| {
        all | u64::from(register) << shift
    });
    form.expect("a form of each operation").value | fields
}

/// The registers of a division: which one holds what.
struct Holders(Vec<(Operand, u8)>);

impl Holders {
    fn register(&self, operand: Operand) -> u8 {
        match operand {
            Operand::One => 1,
            Operand::Nothing => 0,
            _ => {
                let holder = self.0.iter().rev().find(|(held, _)| *held == operand);
                holder.expect("what is taken is there").1
            }
        }
    }

    /// Chooses a register for what is delivered by a step: one that holds nothing which a later one takes.
    fn hold(&mut self, source: &mut Source, sequence: &Sequence, held: Operand, number: usize) -> u8 {
        let taken = |operand: Operand| {
            let later = sequence.steps.iter().skip(number);
            let mut later = later.flat_map(|step| [step.factors[0], step.factors[1], step.addend]);
            later.any(|other| other == operand)
        };
        loop {
            let register = 2 + source.below(14) as u8;
            if !self
                .0
                .iter()
                .any(|&(held, holder)| holder == register && taken(held))
            {
                self.0.retain(|&(_, holder)| holder != register);
                self.0.push((held, register));
                return register;
            }
        }
    }
}

/// The numbers that a sequence takes, each with the register that holds it.
fn numbers(sequence: &Sequence) -> Vec<(Operand, u8)> {
    let taken = sequence.steps.iter();
    let taken = taken.flat_map(|step| [step.factors[0], step.factors[1], step.addend]);
    let mut numbers: Vec<Operand> = taken
        .filter(|taken| matches!(taken, Operand::Number(_)))
        .collect();
    numbers.sort_unstable_by_key(|number| format!("{number:?}"));
    numbers.dedup();
    numbers.into_iter().zip([11, 16, 17, 18, 19, 20, 21]).collect()
}

/// The instructions of a division, and the predicate that its steps are under. Its operands are in f8 and f9, which may
/// have to be made numbers first, and the small number is in f11.
fn division(source: &mut Source, sequence: &Sequence, of_integers: bool) -> (Vec<u64>, u8) {
    let mut holders = Holders(vec![(Operand::Dividend, 8), (Operand::Divisor, 9)]);
    holders.0.extend(numbers(sequence));
    let predicate = 6 + source.below(8) as u8;
    let status = |is_last: bool| match is_last {
        true => StatusField::S0,
        false => StatusField::S1,
    };
    let of_numbers = sequence.quotient.is_number();
    let approximation = holders.hold(source, sequence, Operand::Approximation, 0);
    let operation = match sequence.quotient.is_root() {
        false => Operation::FloatReciprocalApproximation {
            status: status(of_numbers),
        },
        true => Operation::FloatReciprocalSquareRootApproximation {
            status: status(of_numbers),
        },
    };
    // The registers of a root are the target and the second operand.
    let divisor = if sequence.quotient.is_root() { 8 } else { 9 };
    // GCC leaves some last steps in the range of the registers.
    let ends_in_range = source.below(3) != 0;
    let mut slots = Vec::new();
    if of_integers {
        slots.extend([8, 9].map(|register| slot(Operation::ConvertFromFixed, 0, [register, register, 0, 0])));
    }
    slots.push(slot(operation, 0, [approximation, 8, divisor, predicate]));
    for (number, step) in sequence.steps.iter().enumerate() {
        let is_last = number + 1 == sequence.steps.len();
        let [one, other, addend] =
            [step.factors[0], step.factors[1], step.addend].map(|o| holders.register(o));
        let factors = match source.below(2) {
            0 => [one, other],
            _ => [other, one],
        };
        // As compilers write it the quotient is where the approximation was, which may be all of it.
        let target = match is_last && source.below(4) != 0 {
            true => {
                holders.0.push((Operand::Step(number as u8), approximation));
                approximation
            }
            false => holders.hold(source, sequence, Operand::Step(number as u8), number + 1),
        };
        let operation = Operation::FloatMultiplyAdd {
            function: step.function,
            precision: match step.precision {
                Precision::Single => Completer::Single,
                Precision::Double => Completer::Double,
                Precision::Extended => Completer::Dynamic,
            },
            status: status(is_last && of_numbers && ends_in_range),
        };
        slots.push(slot(
            operation,
            predicate,
            [target, addend, factors[0], factors[1]],
        ));
    }
    if !of_numbers {
        let result = holders.register(Operand::Step(sequence.steps.len() as u8 - 1));
        let operation = Operation::ConvertToFixed {
            signedness: [Signedness::Signed, Signedness::Unsigned][source.below(2) as usize],
            rounding: FixedRounding::Truncate,
            status: StatusField::S1,
        };
        slots.push(slot(operation, 0, [result, result, 0, 0]));
    }
    (slots, predicate)
}

/// What a division takes.
#[derive(Clone, Copy)]
struct Kind {
    sequence: &'static Sequence,
    /// Whether operands are integers that the code makes numbers of.
    of_integers: bool,
}

/// A division, and behind it what may look at the registers of its steps. Most of what is between them leaves them
/// alone.
fn part(source: &mut Source) -> (Vec<Bundle>, Kind) {
    use UnitClass::{A, B, F, M};
    let sequence = &SEQUENCES[source.below(SEQUENCES.len() as u64) as usize];
    let of_integers = !sequence.quotient.is_number() && source.below(2) == 0;
    let (slots, predicate) = division(source, sequence, of_integers);
    let forms_of = |is_wanted: fn(Operation) -> bool| -> Vec<&Form> {
        let forms = all_forms().map(|(_, form)| form);
        forms.filter(|form| is_wanted(form.operation)).collect()
    };
    let usual = forms_of(is_usual);
    let compares = forms_of(|operation| matches!(operation, Operation::Compare { .. }));
    let merges = forms_of(|operation| matches!(operation, Operation::FloatMerge { .. }));
    let looks = forms_of(|operation| {
        matches!(
            operation,
            Operation::GetFloat { .. } | Operation::StoreFloat { .. }
        )
    });
    let is_quiet = source.below(2) == 0;
    let steps = slots.len() as u64;
    // One that writes the predicate, now and then.
    let change = source.below(4 * steps);
    let mut slots = slots.into_iter();
    let bundles = (0..BUNDLES).map(|bundle| {
        let first = match source.below(3) {
            _ if bundle == change => {
                let compare = instruction(source, &compares, &[A], Unit::M, bundle);
                compare & !(0x3f << 6) | u64::from(predicate) << 6
            }
            0 if bundle >= steps => instruction(source, &looks, &[M], Unit::M, bundle),
            1 if !is_quiet => instruction(source, &usual, &[A, M], Unit::M, bundle),
            _ => nothing(M),
        };
        let middle = match (slots.next(), source.below(4)) {
            (Some(slot), _) => slot,
            // A copy.
            (None, 0) => {
                let merge = instruction(source, &merges, &[F], Unit::F, bundle);
                merge & !(0x7f << 20) | (merge >> 13 & 0x7f) << 20
            }
            (None, _) => instruction(source, &usual, &[F], Unit::F, bundle),
        };
        Bundle::new(Template::new(FLOATING), [first, middle, nothing(B)])
    });
    let bundles = bundles.collect();
    let kind = Kind {
        sequence,
        of_integers,
    };
    (bundles, kind)
}

/// Two divisions, each to be executed by itself.
fn code(source: &mut Source) -> (Machine, [Kind; 2]) {
    let parts = [part(source), part(source)];
    let kinds = [parts[0].1, parts[1].1];
    let mut machine = Machine::new();
    machine.load_bundles_at(CODE, &parts.map(|(bundles, _)| bundles).concat());
    (machine, kinds)
}

/// An operand, as a kind of quotient has them most of the time.
fn operand(source: &mut Source, kind: Kind) -> FloatRegister {
    if source.below(12) == 0 {
        return source.float(true);
    }
    let sign = [1.0, -1.0][source.below(2) as usize];
    if source.below(8) == 0 {
        return match kind.of_integers {
            true => FloatRegister::from_significand(0),
            false => FloatRegister::from_double((sign * 0.0_f64).to_bits()),
        };
    }
    let quotient = kind.sequence.quotient;
    // Most radicands are positive.
    let sign = match quotient.is_root() && source.below(8) != 0 {
        true => 1.0,
        false => sign,
    };
    match quotient {
        Quotient::Double | Quotient::Root => {
            let fraction = source.next() >> 12;
            let exponent = 1023 - 40 + source.below(80);
            FloatRegister::from_double((sign * f64::from_bits(exponent << 52 | fraction)).to_bits())
        }
        Quotient::Single | Quotient::SingleRoot => {
            let number = sign * (1 + source.below(1 << 24)) as f64 / (1 << 12) as f64;
            FloatRegister::from_single((number as f32).to_bits())
        }
        Quotient::Integer | Quotient::ShortInteger => {
            let above = if quotient == Quotient::Integer { 0 } else { 32 };
            let number = source.next() >> above >> source.below(64 - above);
            if kind.of_integers {
                let number = if sign < 0.0 { number.wrapping_neg() } else { number };
                return FloatRegister::from_significand(number >> (source.below(8) * 8).min(63));
            }
            let number = number.max(1);
            // As the conversion of a signed integer leaves it, or that of an unsigned one.
            match number < 1 << 53 && source.below(2) == 0 {
                true => FloatRegister::from_double((sign * number as f64).to_bits()),
                false => {
                    let shift = number.leading_zeros();
                    FloatRegister::new(sign < 0.0, EXPONENT_INTEGER - shift, number << shift)
                }
            }
        }
    }
}

/// Prepares a processor to execute the code on other numbers.
fn prepare(processor: &mut Processor, source: &mut Source, kind: Kind) {
    processor.predicates = source.next() | 1;
    set_numbers(processor, source);
    aim(processor, source);
    for register in [8, 9] {
        processor.set_floating(register, operand(source, kind));
    }
    for (number, register) in numbers(kind.sequence) {
        if let Operand::Number(bits) = number
            && source.below(40) != 0
        {
            processor.set_floating(register, FloatRegister::from_single(bits));
        }
    }
    let mut status = StatusRegister::LINUX;
    for field in [StatusField::S0, StatusField::S1] {
        if source.below(8) != 0 {
            status.raise(field, Flags::INEXACT);
        }
    }
    processor.set_application(FPSR, status.bits());
    // Translated code may have taken the registers to have been written before.
    if source.below(4) == 0 {
        processor.set_status(processor.status & !(psr::MFL | psr::MFH));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(8 * cases()) })]

    #[test]
    fn a_division_leaves_translated_what_it_leaves_interpreted(seed: u64) {
        programs::exceptions::raise();
        let [(mut interpreted, kinds), (mut translated, _)] = [(); 2].map(|()| code(&mut Source(seed)));
        let mut translator = translator(1);
        for round in 0..ROUNDS {
            let mut source = Source(seed ^ round << 16);
            let part = source.below(2);
            let start = CODE + 16 * BUNDLES * part;
            for machine in [&mut interpreted, &mut translated] {
                prepare(&mut machine.processor, &mut Source(seed ^ round << 32), kinds[part as usize]);
                machine.processor.set_instruction_pointer(start, 0);
            }
            let in_pieces = source.below(2) == 0;
            let end = interpreted.processor.instructions_retired() + 3 * BUNDLES;
            let addresses = start..start + 16 * BUNDLES;
            let is_inside = |processor: &Processor| {
                processor.instructions_retired() < end && addresses.contains(&processor.instruction_pointer().0)
            };
            while is_inside(&interpreted.processor) {
                let left = end - interpreted.processor.instructions_retired();
                let limit = if in_pieces { 1 + source.below(left) } else { left };
                let one = interpreted.processor.run(limit);
                let other = translated.processor.run_with(limit, &mut translator, &mut ());
                prop_assert_eq!(format!("{one:?}"), format!("{other:?}"));
                let states = [&interpreted, &translated].map(|machine| machine.processor.save());
                prop_assert!(states[0] == states[1], "round {round}");
                prop_assert_eq!(interpreted.data(), translated.data());
                if let Exit::Fault(fault) = one {
                    for machine in [&mut interpreted, &mut translated] {
                        if !fault.kind.is_trap() {
                            machine.processor.skip_instruction();
                        }
                        aim(&mut machine.processor, &mut Source(seed ^ left));
                    }
                    // As a program does that jumps out of a handler.
                    if source.below(2) == 0 {
                        break;
                    }
                }
            }
        }
    }
}

/// A division of short integers, whose steps are left in six registers from one on.
fn short_division(operands: [u8; 2], first: u8) -> Vec<u64> {
    let sequence = SEQUENCES
        .iter()
        .find(|sequence| sequence.quotient == Quotient::ShortInteger);
    let sequence = sequence.expect("the sequence");
    let operation = Operation::FloatReciprocalApproximation {
        status: StatusField::S1,
    };
    let mut slots = vec![slot(operation, 0, [first, operands[0], operands[1], 6])];
    let register = |operand| match operand {
        Operand::Dividend => operands[0],
        Operand::Divisor => operands[1],
        Operand::Approximation => first,
        Operand::One => 1,
        Operand::Nothing => 0,
        Operand::Number(_) => 11,
        Operand::Step(number) => first + 1 + number,
    };
    for (step, number) in sequence.steps.iter().zip(0..) {
        let operation = Operation::FloatMultiplyAdd {
            function: step.function,
            precision: Completer::Dynamic,
            status: StatusField::S1,
        };
        let [one, other, addend] = [step.factors[0], step.factors[1], step.addend].map(register);
        slots.push(slot(operation, 6, [first + 1 + number, addend, one, other]));
    }
    let operation = Operation::ConvertToFixed {
        signedness: Signedness::Signed,
        rounding: FixedRounding::Truncate,
        status: StatusField::S1,
    };
    slots.push(slot(operation, 0, [10, first + sequence.steps.len() as u8, 0, 0]));
    slots
}

/// Prepares a processor for divisions of short integers, with these in some registers.
fn prepare_integers(processor: &mut Processor, integers: &[(u8, u32)]) {
    for &(register, integer) in integers {
        processor.set_floating(register, FloatRegister::from_double(f64::from(integer).to_bits()));
    }
    let tiny = FloatRegister::from_double((1.0 / (1u64 << 34) as f64).to_bits());
    processor.set_floating(11, tiny);
    let mut status = StatusRegister::LINUX;
    status.raise(StatusField::S1, Flags::INEXACT);
    processor.set_application(FPSR, status.bits());
    processor.set_instruction_pointer(machine::CODE, 0);
}

/// Divisions that end at a load between their steps leave those behind it as the last whole one has.
#[test]
fn a_division_that_is_given_up_leaves_the_steps_of_the_one_before() {
    let load = Operation::Load {
        size: Size::Eight,
        kind: LoadKind::Normal,
        update: BaseUpdate::None,
    };
    let load = all_forms()
        .map(|(_, form)| form)
        .find(|form| form.operation == load);
    let load = load.expect("ld8").value | 10 << 6 | 4 << 20;
    // Behind them is nothing for as long as a block can be: a run that is shorter than one is interpreted.
    let idle = std::iter::repeat_n(slot(Operation::Nop, 0, [0; 4]), 80);
    let slots = short_division([8, 9], 12).into_iter().chain(idle).zip(0..);
    let bundle = |(slot, place)| {
        let first = if place == 3 { load } else { nothing(UnitClass::M) };
        Bundle::new(Template::new(FLOATING), [first, slot, nothing(UnitClass::B)])
    };
    let bundles: Vec<Bundle> = slots.map(bundle).collect();
    let mut machines = [(); 2].map(|()| Machine::new());
    let mut translator = translator(1);
    for round in 0..10u32 {
        for machine in &mut machines {
            if round == 0 {
                machine.load_bundles_at(machine::CODE, &bundles);
            }
            let processor = &mut machine.processor;
            prepare_integers(processor, &[(8, 1000 + 111 * round), (9, 3 + round)]);
            processor
                .general
                .set(4, if round < 5 { machine::DATA } else { 0 });
        }
        let [interpreted, translated] = &mut machines;
        let count = 3 * bundles.len() as u64;
        let ends = [
            interpreted.processor.run(count),
            translated.processor.run_with(count, &mut translator, &mut ()),
        ];
        assert_eq!(ends.map(|end| matches!(end, Exit::Fault(_))), [round >= 5; 2]);
        assert!(
            interpreted.processor.save() == translated.processor.save(),
            "round {round}"
        );
    }
    assert!(translator.statistics().translated > 0);
}

/// More divisions than twice as many as have operands at a time: what the first one has left in its registers is right
/// after all others.
#[test]
fn steps_outlive_the_divisions_that_take_their_place() {
    const DIVISIONS: usize = 2 * DIVISION_SITES + 4;
    let others = (1..DIVISIONS).flat_map(|_| short_division([26, 27], 20));
    let first = short_division([8, 9], 12);
    // The others are executed twice, since a site has room for two.
    let behind = machine::CODE + 16 * first.len() as u64;
    let slots = first.into_iter().chain(others);
    let bundle = |slot| {
        let idle = [UnitClass::M, UnitClass::B].map(nothing);
        Bundle::new(Template::new(FLOATING), [idle[0], slot, idle[1]])
    };
    let bundles: Vec<Bundle> = slots.map(bundle).collect();
    let mut machines = [(); 2].map(|()| Machine::new());
    let mut translator = translator(1);
    for round in 0..8u32 {
        for machine in &mut machines {
            if round == 0 {
                machine.load_bundles_at(machine::CODE, &bundles);
            }
            let others = [(26, 3_000_000 + 17 * round), (27, 1 + 2 * round)];
            let integers = [[(8, 1000 + round), (9, 7)], others].concat();
            prepare_integers(&mut machine.processor, &integers);
        }
        let [interpreted, translated] = &mut machines;
        for start in [machine::CODE, behind] {
            for machine in [&mut *interpreted, &mut *translated] {
                machine.processor.set_instruction_pointer(start, 0);
            }
            let count = 3 * bundles.len() as u64 - 3 * (start - machine::CODE) / 16;
            interpreted.processor.run(count);
            translated.processor.run_with(count, &mut translator, &mut ());
        }
        assert!(
            interpreted.processor.save() == translated.processor.save(),
            "round {round}"
        );
    }
    assert!(translator.statistics().translated > 0);
}
