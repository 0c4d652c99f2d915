//! Divisions that are written as one of the [sequences](SEQUENCES) of steps: which instructions of a block they are.

use std::collections::BTreeMap;

use cranelift_codegen::ir::Value;
use sidestep_ia64::encoding::{
    FixedRounding, Instruction, Operation, Precision as Completer, Resource, Signedness, StatusField,
};
use sidestep_ia64::float::Precision as Bits;
use sidestep_ia64::float::division::{Operand, SEQUENCES, Sequence};

use crate::held::changes_controls;

/// The first floating-point register that rotates.
const FIRST_ROTATING: u8 = 32;

/// A division whose steps are being emitted.
#[derive(Clone, Debug)]
pub struct Division {
    /// Which instructions it is.
    pub plan: Plan,
    /// Where its operands are kept.
    pub site: usize,
    /// Whether the host's quotient is the sequence's.
    pub is_usual: Value,
    /// The word of a register that stands for a step, less the step's number.
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
    /// By the place of an instruction in its block, which step it is.
    pub steps: BTreeMap<usize, u8>,
    /// The place of the one that delivers the quotient.
    pub last: usize,
    /// The status field of that one.
    pub status: StatusField,
    /// Whether the quotient is made an integer with a sign.
    pub signedness: Signedness,
    /// The register that has to hold [`TINY`](sidestep_ia64::float::division::TINY), if there is one.
    pub tiny: Option<u8>,
}

/// What the second status field has by the software conventions, under which steps are computed.
pub const STEPS_STATUS: StatusField = StatusField::S1;

/// f0 and f1.
fn is_constant(register: u8) -> bool {
    register & 127 < 2
}

/// Whether a register may stand for a step: it is no constant, and always the same one.
fn may_be_step(register: u8) -> bool {
    !is_constant(register) && register < FIRST_ROTATING
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
    /// The division that an approximation begins, if what follows it in its block, each with its place, are the steps
    /// of one. `None` among these is an instruction that is illegal.
    pub fn find<'a>(
        approximation: &Instruction,
        following: impl Iterator<Item = (usize, Option<&'a Instruction>)> + Clone,
    ) -> Option<Plan> {
        let sequences = SEQUENCES.iter().enumerate();
        sequences
            .filter_map(|sequence| Plan::of(approximation, following.clone(), sequence))
            .next()
    }

    fn of<'a>(
        approximation: &Instruction,
        following: impl Iterator<Item = (usize, Option<&'a Instruction>)>,
        (number, sequence): (usize, &'static Sequence),
    ) -> Option<Plan> {
        let predicate = approximation.p2();
        let mut holders = BTreeMap::from([
            (approximation.f2() & 127, Operand::Dividend),
            (approximation.f3() & 127, Operand::Divisor),
        ]);
        if holders.len() < 2 || predicate == 0 {
            return None;
        }
        holders.insert(approximation.f1() & 127, Operand::Approximation);
        let mut plan = Plan {
            number,
            sequence,
            steps: BTreeMap::new(),
            last: 0,
            status: STEPS_STATUS,
            signedness: Signedness::Signed,
            tiny: None,
        };
        let mut overwritten = Vec::new();
        for (index, instruction) in following {
            let instruction = instruction?;
            let target = instruction.f1() & 127;
            if let Some(step) = plan.step(instruction, predicate, &holders, &overwritten) {
                plan.steps.insert(index, step);
                holders.insert(target, Operand::Step(step));
                overwritten.push(target);
                let is_last = usize::from(step) + 1 == sequence.steps.len();
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
            if !leaves_alone(instruction, predicate, &mut holders, &mut overwritten) {
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
        overwritten: &[u8],
    ) -> Option<u8> {
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
        let factor = |register: u8| match register {
            1 => Some(Operand::One),
            _ => holders.get(&register).copied(),
        };
        let factors = [factor(one)?, factor(other)?];
        let known = match addend {
            0 => Some(Operand::Nothing),
            _ => factor(addend),
        };
        let count = self.sequence.steps.len();
        let steps = self.sequence.steps.iter().enumerate();
        for (number, step) in steps {
            // What it delivers goes back to the precision's own range.
            let is_last = number + 1 == count && self.sequence.quotient.is_number();
            let is_found = self.steps.values().any(|&found| usize::from(found) == number);
            // Whatever is in no other role is the small number, if that is what the register holds.
            let addend_is = known.unwrap_or(Operand::Tiny);
            let is_new = known.is_some() || !overwritten.contains(&addend);
            if is_found
                || step.function != function
                || step.precision != bits_of(precision)
                || !step.takes(factors, addend_is)
                || !is_new
                || (status == STEPS_STATUS) == is_last
            {
                continue;
            }
            if is_last {
                self.status = status;
            }
            if addend_is == Operand::Tiny {
                self.tiny = Some(addend);
            }
            return Some(number as u8);
        }
        None
    }
}

/// Whether an instruction leaves a division alone that it is no step of; forgets operands that it overwrites.
fn leaves_alone(
    instruction: &Instruction,
    predicate: u8,
    holders: &mut BTreeMap<u8, Operand>,
    overwritten: &mut Vec<u8>,
) -> bool {
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
                overwritten.push(*register);
            }
            Resource::Predicate(written) if *written == predicate => return false,
            Resource::Predicates | Resource::RotatingPredicates | Resource::FrameMarker => return false,
            _ => {}
        }
    }
    true
}
