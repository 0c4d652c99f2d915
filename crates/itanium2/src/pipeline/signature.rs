//! What the surroundings answered for a block's instructions, as words: written where they are asked, read where the
//! pipeline proper goes by their answers.

use super::answers::{Answers, Reference};
use super::fetch::Bundle;
use crate::branches::{Foreseen, Prediction};
use crate::flags::Flags;
use crate::instruction::StaticInstruction;
use crate::memory::Translation;

/// What refers to memory.
pub(super) const REFERS: Flags = Flags::LOAD.union(Flags::STORE).union(Flags::PREFETCH);

/// What the surroundings answered for a block's instructions, as words: equal where all answers are.
///
/// ```text
///   first         0..15 instructions that retired   16 a branch was taken behind them
///   then          a bit for each of them: whether it was executed
///   then          what was not as usual, in order: 0..7 instruction   8..15 kind   16..63 value
/// ```
pub(super) type Signature = Vec<u64>;

/// Kinds of answers in a signature.
pub(super) mod kind {
    /// How the first bundle stands to the front end, where it is not fetched.
    pub const BUNDLE: u64 = 0;
    /// Cycles that a pair of bundles comes late.
    pub const FETCH: u64 = 1;
    /// A reference that is not as usual, with cycles of the walker; a word with the rest follows.
    pub const REFERENCE: u64 = 2;
    /// A branch that is mispredicted, or may be.
    pub const BRANCH: u64 = 3;
    /// Bubbles of spilling; a word with those of filling follows.
    pub const STACK: u64 = 4;
    /// How registers are renamed, where that changes.
    pub const RENAMING: u64 = 5;
}

/// A word of a signature.
pub(super) fn word(index: usize, kind: u64, value: u64) -> u64 {
    index as u64 | kind << 8 | value << 16
}

/// What usually comes of a reference.
#[inline(always)]
pub(super) fn usual_reference(flags: Flags, second_level: u64) -> Reference {
    Reference {
        translation: Translation::First,
        more: 0,
        is_first_level: flags.contains(Flags::LOAD) && !flags.contains(Flags::SECOND_LEVEL),
        stores: 0,
        neighbours: 0,
        duration: match flags.intersects(Flags::STORE | Flags::SECOND_LEVEL) {
            true => second_level,
            false => 0,
        },
    }
}

/// Whether of a reference came what usually does.
#[inline(always)]
pub(super) fn is_usual(reference: &Reference, flags: Flags, second_level: u64) -> bool {
    let usual = usual_reference(flags, second_level);
    reference.translation == usual.translation
        && reference.more == usual.more
        && reference.is_first_level == usual.is_first_level
        && reference.stores == usual.stores
        && reference.neighbours == usual.neighbours
        && reference.duration == usual.duration
}

/// Above the cycles of the walker are the neighbours.
const NEIGHBOURS: u32 = 40;

/// A reference as two numbers: cycles of the walker with neighbours, of 48 bits, and the rest.
pub(super) fn pack(reference: &Reference) -> (u64, u64) {
    let (translation, wait) = match reference.translation {
        Translation::First => (0, 0),
        Translation::Second => (1, 0),
        Translation::Walk(wait) => (2, wait),
    };
    let rest = translation
        | u64::from(reference.is_first_level) << 2
        | u64::from(reference.stores) << 3
        | reference.more << 19
        | reference.duration << 41;
    (wait | u64::from(reference.neighbours) << NEIGHBOURS, rest)
}

fn unpack(wait: u64, rest: u64) -> Reference {
    let (neighbours, wait) = (wait >> NEIGHBOURS, wait & ((1 << NEIGHBOURS) - 1));
    Reference {
        translation: match rest & 3 {
            0 => Translation::First,
            1 => Translation::Second,
            _ => Translation::Walk(wait),
        },
        is_first_level: rest >> 2 & 1 != 0,
        stores: (rest >> 3) as u16,
        neighbours: neighbours as u8,
        more: rest >> 19 & ((1 << 22) - 1),
        duration: rest >> 41,
    }
}

pub(super) fn pack_foreseen(foreseen: Foreseen) -> u64 {
    match foreseen {
        Foreseen::As(Prediction::Correct) => 0,
        Foreseen::As(Prediction::WrongPath) => 1,
        Foreseen::As(Prediction::WrongTarget) => 2,
        Foreseen::UnlessMoved => 3,
    }
}

fn unpack_foreseen(word: u64) -> Foreseen {
    match word {
        0 => Foreseen::As(Prediction::Correct),
        1 => Foreseen::As(Prediction::WrongPath),
        2 => Foreseen::As(Prediction::WrongTarget),
        _ => Foreseen::UnlessMoved,
    }
}

/// Reads a signature's answers.
pub(super) struct Answered<'a> {
    words: std::slice::Iter<'a, u64>,
    executed: &'a [u64],
    /// How many instructions there are, and whether a branch was taken behind the last.
    pub retired: usize,
    taken: bool,
}

impl Answered<'_> {
    pub fn new(signature: &[u64]) -> Answered<'_> {
        let retired = (signature[0] & 0xffff) as usize;
        let executed = retired.div_ceil(64);
        Answered {
            executed: &signature[1..=executed],
            words: signature[1 + executed..].iter(),
            retired,
            taken: signature[0] >> 16 & 1 != 0,
        }
    }

    /// The value of an instruction's next word, if it is of a kind.
    fn next(&mut self, index: usize, kind: u64) -> Option<u64> {
        let first = *self.words.as_slice().first()?;
        let is_it = first & 0xffff == word(index, kind, 0);
        is_it.then(|| {
            self.words.next();
            first >> 16
        })
    }

    /// The word that follows another.
    fn rest(&mut self) -> u64 {
        self.words.next().copied().unwrap_or_default()
    }

    /// What the front end says of an instruction's bundle, behind the one of the instruction before.
    pub fn bundle(&mut self, index: usize, before: u64, ip: u64) -> (Bundle, u64) {
        let bundle = match self.next(index, kind::BUNDLE) {
            Some(0) => Bundle::Same,
            Some(1) => Bundle::Fetched,
            Some(_) => Bundle::New,
            None if index > 0 && before == ip => Bundle::Same,
            None if index > 0 && before >> 5 == ip >> 5 => Bundle::Fetched,
            None => Bundle::New,
        };
        (bundle, self.next(index, kind::FETCH).unwrap_or(0))
    }

    /// Everything else that was answered for an instruction.
    pub fn answers(&mut self, index: usize, known: &StaticInstruction, second_level: u64) -> Answers {
        let flags = known.flags;
        let mut answers = Answers {
            executed: self.executed[index / 64] >> (index % 64) & 1 != 0,
            taken: self.taken && index + 1 == self.retired,
            ..Answers::default()
        };
        if answers.executed && flags.intersects(REFERS) && !flags.contains(Flags::NOP) {
            let reference = match self.next(index, kind::REFERENCE) {
                Some(wait) => unpack(wait, self.rest()),
                None => usual_reference(flags, second_level),
            };
            answers.reference = Some(reference);
        }
        if let Some(foreseen) = self.next(index, kind::BRANCH) {
            answers.foreseen = unpack_foreseen(foreseen);
        }
        if let Some(spilling) = self.next(index, kind::STACK) {
            (answers.spilling, answers.filling) = (spilling, self.rest());
        }
        // The board follows the frame itself.
        self.next(index, kind::RENAMING);
        answers
    }
}
