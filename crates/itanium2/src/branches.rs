//! Branch prediction: directions by history, returns by a stack, indirect targets by the branch register.
//!
//! A branch with a static hint (`.sptk`, `.spnt`) is predicted as the hint says. Others have a four-bit history of
//! their own that chooses a two-bit counter, which starts as the hint says (manual, branch prediction). The front end
//! takes an indirect target from the branch register, so a move to it must be [`Cost::ToBranchPrediction`] cycles old:
//! whether it is depends on cycles, which the predictor leaves to others.
//! Loops by ar.lc are predicted perfectly. Returns come from a stack of eight addresses.
//!
//! [`Cost::ToBranchPrediction`]: crate::parameters::Cost::ToBranchPrediction

use crate::flags::Flags;

const HISTORIES: usize = 4096;
const COUNTERS: usize = 1 << 14;
const RETURNS: usize = 8;
/// A counter of a branch that was never seen.
const UNSEEN: u8 = 4;

/// What was mispredicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prediction {
    /// Nothing.
    Correct,
    /// Whether the branch is taken.
    WrongPath,
    /// Where it goes.
    WrongTarget,
}

/// How a branch was predicted, as far as it does not depend on cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreseen {
    /// So.
    As(Prediction),
    /// Right, unless its branch register was moved to so late that the front end used what it held before.
    UnlessMoved,
}

/// The predictor's state.
pub struct Predictor {
    histories: Vec<u8>,
    counters: Vec<u8>,
    returns: [u64; RETURNS],
    top: usize,
    /// The value each branch register had before its last move.
    registers: [u64; 8],
}

/// A predictor that has seen nothing.
impl Default for Predictor {
    fn default() -> Predictor {
        Predictor {
            histories: vec![0; HISTORIES],
            counters: vec![UNSEEN; COUNTERS],
            returns: [0; RETURNS],
            top: 0,
            registers: [0; 8],
        }
    }
}

impl Predictor {
    /// Notes a move to a branch register, and what it held before.
    pub fn moved(&mut self, register: u8, before: u64) {
        self.registers[usize::from(register & 7)] = before;
    }

    /// Whether anything is to be foreseen or learnt of an instruction: not of a branch to an address that it names
    /// itself, which loops or is always taken.
    pub fn is_asked(flags: Flags, is_predicated: bool) -> bool {
        const GOES: Flags = Flags::CALL.union(Flags::RETURN).union(Flags::INDIRECT);
        let is_certain = !is_predicated || flags.contains(Flags::LOOP);
        flags.contains(Flags::BRANCH) && (!is_certain || flags.intersects(GOES))
    }

    /// Predicts a branch, and learns from what it did.
    #[inline]
    pub fn branch(&mut self, branch: &Branch) -> Foreseen {
        let flags = branch.flags;
        let predicted = self.direction(branch);
        let is_taken = branch.taken.is_some();
        if flags.contains(Flags::CALL) && is_taken {
            self.top = (self.top + 1) % RETURNS;
            self.returns[self.top] = branch.ip.wrapping_add(16);
        }
        let returns = flags.contains(Flags::RETURN) && is_taken;
        let address = self.returns[self.top];
        if returns {
            self.top = (self.top + RETURNS - 1) % RETURNS;
        }
        match branch.taken {
            _ if predicted != is_taken => Foreseen::As(Prediction::WrongPath),
            Some(target) if returns && address != target => Foreseen::As(Prediction::WrongTarget),
            Some(target) if !returns && flags.contains(Flags::INDIRECT) => {
                match self.registers[usize::from(branch.register & 7)] == target {
                    true => Foreseen::As(Prediction::Correct),
                    false => Foreseen::UnlessMoved,
                }
            }
            _ => Foreseen::As(Prediction::Correct),
        }
    }

    fn direction(&mut self, branch: &Branch) -> bool {
        let is_taken = branch.taken.is_some();
        let hint = branch.flags.contains(Flags::HINT_TAKEN);
        if !branch.is_predicated && !branch.flags.contains(Flags::LOOP) || branch.flags.contains(Flags::LOOP)
        {
            return is_taken;
        }
        if branch.flags.contains(Flags::STATIC_HINT) {
            return hint;
        }
        let place = (branch.ip >> 4) * 3 + u64::from(branch.slot);
        let history = &mut self.histories[place as usize % HISTORIES];
        let index = (place << 4 | u64::from(*history)) as usize % COUNTERS;
        let counter = &mut self.counters[index];
        if *counter == UNSEEN {
            *counter = if hint { 2 } else { 1 };
        }
        let predicted = *counter >= 2;
        *counter = match is_taken {
            true => (*counter + 1).min(3),
            false => counter.saturating_sub(1),
        };
        *history = (*history << 1 | u8::from(is_taken)) & 15;
        predicted
    }
}

/// A branch that has retired.
#[derive(Clone, Copy, Debug)]
pub struct Branch {
    /// Address of its bundle.
    pub ip: u64,
    /// Its slot.
    pub slot: u8,
    /// What kind it is.
    pub flags: Flags,
    /// Whether a predicate decides it.
    pub is_predicated: bool,
    /// The branch register it goes to.
    pub register: u8,
    /// Where it went.
    pub taken: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORRECT: Foreseen = Foreseen::As(Prediction::Correct);

    fn branch(flags: Flags, taken: Option<u64>) -> Branch {
        Branch {
            ip: 0x1000,
            slot: 2,
            flags: Flags::BRANCH | flags,
            is_predicated: true,
            register: 6,
            taken,
        }
    }

    #[test]
    fn a_pattern_of_four_is_learnt() {
        let mut predictor = Predictor::default();
        let mut wrong_late = 0;
        for round in 0..400 {
            let taken = (round % 4 != 3).then_some(0x2000);
            let foreseen = predictor.branch(&branch(Flags::HINT_TAKEN, taken));
            wrong_late += u32::from(round > 100 && foreseen != CORRECT);
        }
        assert_eq!(wrong_late, 0);
    }

    #[test]
    fn static_hints_decide() {
        let mut predictor = Predictor::default();
        let taken = branch(Flags::STATIC_HINT, Some(0x2000));
        for _ in 0..10 {
            assert_eq!(predictor.branch(&taken), Foreseen::As(Prediction::WrongPath));
        }
    }

    #[test]
    fn a_return_to_another_place_than_the_caller_is_mispredicted() {
        let mut predictor = Predictor::default();
        let call = branch(Flags::CALL | Flags::STATIC_HINT | Flags::HINT_TAKEN, Some(0x8000));
        let back = |target| {
            let flags = Flags::RETURN | Flags::INDIRECT | Flags::STATIC_HINT | Flags::HINT_TAKEN;
            branch(flags, Some(target))
        };
        predictor.branch(&call);
        assert_eq!(predictor.branch(&back(0x1010)), CORRECT);
        predictor.branch(&call);
        let wrong = Foreseen::As(Prediction::WrongTarget);
        assert_eq!(predictor.branch(&back(0x9000)), wrong);
    }

    #[test]
    fn an_indirect_branch_needs_its_register_early() {
        let mut predictor = Predictor::default();
        let flags = Flags::INDIRECT | Flags::STATIC_HINT | Flags::HINT_TAKEN;
        predictor.moved(6, 0x3000);
        let elsewhere = branch(flags, Some(0x4000));
        assert_eq!(predictor.branch(&elsewhere), Foreseen::UnlessMoved);
        assert_eq!(predictor.branch(&branch(flags, Some(0x3000))), CORRECT);
    }
}
