//! Divisions and square roots that are written as one of the [sequences](SEQUENCES) of steps: which instructions of a
//! block they are.

use std::collections::BTreeMap;

use cranelift_codegen::ir::Value;
use sidestep_ia64::encoding::{
    FixedRounding, Instruction, Operation, Precision as Completer, Resource, Signedness, StatusField,
};
use sidestep_ia64::float::Precision as Bits;
use sidestep_ia64::float::division::{Operand, SEQUENCES, Sequence};
use sidestep_ia64::registers::frame::FIRST_ROTATING_FLOATING;

use crate::held::changes_controls;

/// A division whose steps are being emitted.
#[derive(Clone, Debug)]
pub struct Division {
    /// Which instructions it is.
    pub plan: Plan,
    /// Where its operands are kept.
    pub site: usize,
    /// The word of a register that stands for a step, less the step's number; zero where the host's quotient may not be
    /// the sequence's.
    pub word: Value,
    /// The quotient, a double or an integer.
    pub quotient: Value,
    /// The state of its site once it has come to its end.
    pub ended: Value,
}

/// Which instructions are a division.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The number of its sequence.
    pub number: usize,
    /// Its sequence.
    pub sequence: &'static Sequence,
    /// The register that its approximation writes.
    pub approximation: u8,
    /// The predicate that the approximation writes, which the steps are under.
    pub predicate: u8,
    /// By the place of an instruction in its block, which step it is.
    pub steps: BTreeMap<usize, u8>,
    /// The place of the one that delivers the quotient.
    pub last: usize,
    /// The status field of that one.
    pub status: StatusField,
    /// Whether the quotient is made an integer with a sign.
    pub signedness: Signedness,
    /// By the place of a step, the registers that have to hold numbers there, with the bits of these in single
    /// precision.
    pub numbers: BTreeMap<usize, Vec<(u8, u32)>>,
}

/// Steps between which nothing happens: nobody can look at what one of them leaves before the last one is done.
#[derive(Clone, Debug, Default)]
pub struct Run<'a> {
    /// The steps that stay steps, each with its place in the block, and its number.
    pub steps: Vec<(usize, &'a Instruction, u8)>,
    /// The instruction behind them that delivers the quotient, if the run comes to that, with its place.
    pub end: Option<(usize, &'a Instruction)>,
    /// The registers that have to hold numbers in front of it, with the bits of these in single precision.
    pub numbers: Vec<(u8, u32)>,
}

impl Run<'_> {
    /// Whether one of its instructions writes a register.
    pub fn writes(&self, register: u8) -> bool {
        let steps = self.steps.iter().map(|&(_, step, _)| step);
        let mut all = steps.chain(self.end.map(|(_, end)| end));
        all.any(|instruction| instruction.f1() & 127 == register & 127)
    }

    /// The steps that registers stand for behind it, each with its number.
    pub fn kept(&self) -> impl Iterator<Item = (u8, u8)> {
        (0..self.steps.len()).filter_map(|place| {
            let (_, step, number) = self.steps[place];
            let later = self.steps[place + 1..].iter().map(|&(_, later, _)| later);
            let mut later = later.chain(self.end.map(|(_, end)| end));
            let is_overwritten = later.any(|later| later.f1() & 127 == step.f1() & 127);
            (!is_overwritten).then_some((step.f1() & 127, number))
        })
    }

    /// The place in the block of its last instruction.
    pub fn last(&self) -> Option<usize> {
        let end = self.end.map(|(place, _)| place);
        end.or_else(|| self.steps.last().map(|&(place, ..)| place))
    }
}

/// A step that an instruction is found to be.
struct Found {
    number: u8,
    /// The registers that have to hold numbers.
    numbers: Vec<(u8, u32)>,
}

/// What the second status field has by the software conventions, under which steps are computed.
pub const STEPS_STATUS: StatusField = StatusField::S1;

/// f0 and f1.
fn is_constant(register: u8) -> bool {
    register & 127 < 2
}

/// Whether a register may stand for a step: it is no constant, and always the same one.
fn may_be_step(register: u8) -> bool {
    !is_constant(register) && register < FIRST_ROTATING_FLOATING
}

/// To how many bits a multiply-add rounds under a status field with the range of the registers.
fn bits_of(completer: Completer) -> Bits {
    match completer {
        Completer::Single => Bits::Single,
        Completer::Double => Bits::Double,
        Completer::Dynamic => Bits::Extended,
    }
}

impl Plan {
    /// Whether the instruction at a place in its block is a part of it.
    pub fn is_part(&self, index: usize) -> bool {
        index == self.last || self.steps.contains_key(&index)
    }

    /// The steps at the beginning of `instructions`, each with its place, between which is nothing but what changes
    /// nothing.
    pub fn run<'a>(&self, instructions: impl Iterator<Item = (usize, Option<&'a Instruction>)>) -> Run<'a> {
        let mut run = Run::default();
        for (index, instruction) in instructions {
            let Some(instruction) = instruction else { break };
            run.numbers.extend(self.numbers.get(&index).into_iter().flatten());
            if index == self.last {
                run.end = Some((index, instruction));
                break;
            }
            match self.steps.get(&index) {
                Some(&number) => run.steps.push((index, instruction, number)),
                None if matches!(instruction.operation, Operation::Nop | Operation::Hint) => {}
                None => break,
            }
        }
        run
    }

    /// The division or root that an approximation begins, if what follows it in its block, each with its place, are the
    /// steps of one. `None` among these is an instruction that is illegal.
    pub fn find<'a>(
        approximation: &Instruction,
        following: impl Iterator<Item = (usize, Option<&'a Instruction>)> + Clone,
    ) -> Option<Plan> {
        let is_root = matches!(
            approximation.operation,
            Operation::FloatReciprocalSquareRootApproximation { .. }
        );
        let operands = match is_root {
            true => vec![(approximation.f3() & 127, Operand::Dividend)],
            false => vec![
                (approximation.f2() & 127, Operand::Dividend),
                (approximation.f3() & 127, Operand::Divisor),
            ],
        };
        let holders: BTreeMap<u8, Operand> = operands.iter().copied().collect();
        let is_kept = may_be_step(approximation.f1() & 127);
        if holders.len() < operands.len() || approximation.p2() == 0 || !is_kept {
            return None;
        }
        SEQUENCES
            .iter()
            .enumerate()
            .filter(|(_, sequence)| sequence.quotient.is_root() == is_root)
            .filter_map(|sequence| Plan::of(approximation, following.clone(), holders.clone(), sequence))
            .next()
    }

    fn of<'a>(
        approximation: &Instruction,
        following: impl Iterator<Item = (usize, Option<&'a Instruction>)>,
        mut holders: BTreeMap<u8, Operand>,
        (number, sequence): (usize, &'static Sequence),
    ) -> Option<Plan> {
        let predicate = approximation.p2();
        holders.insert(approximation.f1() & 127, Operand::Approximation);
        let mut plan = Plan {
            number,
            sequence,
            approximation: approximation.f1() & 127,
            predicate,
            steps: BTreeMap::new(),
            last: 0,
            status: STEPS_STATUS,
            signedness: Signedness::Signed,
            numbers: BTreeMap::new(),
        };
        for (index, instruction) in following {
            let instruction = instruction?;
            let target = instruction.f1() & 127;
            if let Some(Found { number, numbers }) = plan.step(instruction, predicate, &holders) {
                plan.steps.insert(index, number);
                let known = numbers
                    .iter()
                    .map(|&(register, bits)| (register, Operand::Number(bits)));
                holders.extend(known);
                plan.numbers.insert(index, numbers);
                holders.insert(target, Operand::Step(number));
                let is_last = usize::from(number) + 1 == sequence.steps.len();
                if is_last && sequence.quotient.is_number() {
                    plan.last = index;
                    return Some(plan);
                }
                continue;
            }
            if let Operation::ConvertToFixed {
                signedness,
                rounding: FixedRounding::Truncate,
                status: STEPS_STATUS,
            } = instruction.operation
            {
                let result = Operand::Step(sequence.steps.len() as u8 - 1);
                let is_quotient = holders.get(&(instruction.f2() & 127)) == Some(&result);
                if is_quotient && instruction.predicate() == 0 && !is_constant(target) {
                    (plan.last, plan.signedness) = (index, signedness);
                    return Some(plan);
                }
            }
            if !leaves_alone(instruction, predicate, &mut holders) {
                return None;
            }
        }
        None
    }

    /// Which step an instruction is that has not been found before, by what registers hold.
    fn step(
        &mut self,
        instruction: &Instruction,
        predicate: u8,
        holders: &BTreeMap<u8, Operand>,
    ) -> Option<Found> {
        let Operation::FloatMultiplyAdd {
            function,
            precision,
            status,
        } = instruction.operation
        else {
            return None;
        };
        let [target, addend, one, other] = [
            instruction.f1(),
            instruction.f2(),
            instruction.f3(),
            instruction.f4(),
        ]
        .map(|register| register & 127);
        if instruction.predicate() != predicate || !may_be_step(target) {
            return None;
        }
        let held = |register: u8| match register {
            1 => Some(Operand::One),
            _ => holders.get(&register).copied(),
        };
        if [one, other].contains(&0) {
            return None;
        }
        let factors = [held(one), held(other)];
        let added = match addend {
            0 => Some(Operand::Nothing),
            _ => held(addend),
        };
        let count = self.sequence.steps.len();
        let steps = self.sequence.steps.iter().enumerate();
        for (number, step) in steps {
            // The one that delivers a number goes back to the precision's own range, or need not.
            let is_last = number + 1 == count && self.sequence.quotient.is_number();
            let is_found = self.steps.values().any(|&found| usize::from(found) == number);
            if is_found
                || step.function != function
                || step.precision != bits_of(precision)
                || status != STEPS_STATUS && !is_last
            {
                continue;
            }
            // Whatever is in no other role is a number, if that is what the register holds.
            let Some(taken) = step.takes(factors, added) else {
                continue;
            };
            if is_last {
                self.status = status;
            }
            let given = [(one, factors[0]), (other, factors[1]), (addend, added)];
            let taken = [taken[0], taken[1], step.addend];
            let numbers = given.into_iter().zip(taken).filter_map(|given| match given {
                ((register, None), Operand::Number(bits)) => Some((register, bits)),
                _ => None,
            });
            return Some(Found {
                number: number as u8,
                numbers: numbers.collect(),
            });
        }
        None
    }
}

/// Whether an instruction leaves a division alone that it is no step of; forgets operands that it overwrites.
fn leaves_alone(instruction: &Instruction, predicate: u8, holders: &mut BTreeMap<u8, Operand>) -> bool {
    if instruction.always_transfers() || changes_controls(instruction) {
        return false;
    }
    let holds_step = |holders: &BTreeMap<u8, Operand>, register: &u8| {
        matches!(
            holders.get(register),
            Some(Operand::Step(_) | Operand::Approximation)
        )
    };
    for target in instruction.destinations().iter() {
        match target {
            Resource::Float(register) if holds_step(holders, register) => return false,
            Resource::Float(register) => {
                holders.remove(register);
            }
            Resource::Predicate(written) if *written == predicate => return false,
            Resource::Predicates | Resource::RotatingPredicates | Resource::FrameMarker => return false,
            _ => {}
        }
    }
    true
}
