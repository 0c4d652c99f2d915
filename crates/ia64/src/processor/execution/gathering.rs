//! What the instructions of a block did, gathered, for an observer that takes them together.
//!
//! An observer that is told of every instruction as it retires costs a call and its own bookkeeping for each. One that
//! says so beforehand ([`Observer::gathers`](super::observer::Observer::gathers)) is told of all of a block's at once,
//! with the same facts: [`Together`]. An instruction that [stands apart](Observer::stands_apart) is told of by itself,
//! and those behind it in its block are gathered anew. Those from one on that makes the walker insert a translation are
//! told of one by one up to there, because where the addresses before it lay may not be found afterwards.

use std::sync::atomic::{AtomicU64, Ordering};

use super::block::{BUNDLES_MAX, Known};
use super::observer::{Dynamic, Event, Frame, Observer, Place, Translation};
use super::operation::MicroOperation;
use crate::alat;
use crate::encoding::Effects;
use crate::mmu::buffer::TranslationBuffer;
use crate::processor::Processor;
use crate::processor::virtualization::TranslationSide;

/// Instructions in a block at most.
const INSTRUCTIONS_MAX: usize = BUNDLES_MAX as usize * 3;
const WORDS: usize = INSTRUCTIONS_MAX / 64;

/// What a block's instructions did, by their index in the block. A back end's code fills what
/// [`layout`](crate::processor::layout) says of it.
pub struct Gathered {
    /// How many have retired.
    pub(crate) retired: usize,
    pub(crate) executed: [u64; WORDS],
    /// The address of each reference, where the instruction makes one and was executed.
    pub(crate) references: [u64; INSTRUCTIONS_MAX],
    /// Frames that instructions left.
    pub(crate) frames: Vec<(usize, Frame)>,
    /// Branch registers that instructions wrote: index of the instruction, register, value.
    pub(crate) branches: Vec<(usize, usize, u64)>,
    /// What had happened to advanced loads behind instructions that have to do with them.
    pub(crate) advanced: Vec<(usize, alat::Events)>,
    pub(crate) taken: Option<u64>,
}

impl Default for Gathered {
    fn default() -> Gathered {
        Gathered {
            retired: 0,
            executed: [0; WORDS],
            references: [0; INSTRUCTIONS_MAX],
            frames: Vec::new(),
            branches: Vec::new(),
            advanced: Vec::new(),
            taken: None,
        }
    }
}

impl Gathered {
    /// Empty again, for a block.
    #[inline]
    pub(crate) fn begin(&mut self, gathering: &Gathering) {
        self.retired = 0;
        self.executed = gathering.certain;
        self.frames.clear();
        self.branches.clear();
        self.advanced.clear();
        self.taken = None;
    }

    /// Whether an instruction's qualifying predicate was true.
    #[inline]
    pub(crate) fn is_executed(&self, index: usize) -> bool {
        self.executed[index / 64] >> (index % 64) & 1 != 0
    }
}

/// An instruction that has to be executed: `nop`s are only counted.
pub(crate) struct Acting {
    /// Its index in the block.
    pub index: u16,
    /// Its qualifying predicate.
    pub predicate: u8,
    /// What else is gathered of it.
    pub kind: Kind,
    /// The register with the address of its memory reference, if it makes one.
    pub base: u8,
}

bitflags::bitflags! {
    /// What is gathered of an instruction beside that it was executed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Kind: u8 {
        /// The address that it refers to.
        const REFERS = 1 << 0;
        /// The frame, branch register or advanced load that it leaves.
        const CHANGES = 1 << 1;
        /// Nothing: but it may make the walker insert a translation.
        const MAY_WALK = 1 << 2;
    }
}

/// Effects of which is gathered what they leave.
pub const GATHERED: Effects = Effects::CHANGES_FRAME
    .union(Effects::WRITES_BRANCH)
    .union(Effects::ADVANCED);

/// Fewer instructions behind one that stands apart are not gathered: for an observer to find its place again takes as
/// long as to be told of so many.
const BEHIND_MIN: usize = 8;

/// How a block's instructions are gathered: those in front of the first that stands apart, or between two such, or
/// behind the last.
pub(crate) struct Gathering {
    /// Tells them apart from all others that were ever decoded.
    pub identity: u64,
    /// The index of the first of them in the block.
    pub first: usize,
    /// How many instructions are gathered.
    pub length: usize,
    /// Those of them that have to be executed.
    pub acting: Box<[Acting]>,
    /// Those that are executed whatever the predicates are, one a bit.
    certain: [u64; WORDS],
}

/// The identity of the next block that is decoded for an observer.
static NEXT_IDENTITY: AtomicU64 = AtomicU64::new(0);

impl Gathering {
    /// How the instructions of a block are gathered: those in front of the first that stands apart, and those
    /// behind it.
    pub fn of_block<S>(known: &[Known<S>]) -> (Option<Gathering>, Box<[Gathering]>) {
        let mut first = 0;
        let mut behind = Vec::new();
        let mut front = None;
        for stretch in known.split_inclusive(|known| known.stands_apart) {
            let gathering = Gathering::new(first, stretch);
            match first {
                0 => front = gathering,
                _ => behind.extend(gathering.filter(|of| of.length >= BEHIND_MIN)),
            }
            first += stretch.len();
        }
        (front, behind.into())
    }

    /// How instructions are gathered, up to the first that stands apart, if there is one in front of it.
    fn new<S>(first: usize, known: &[Known<S>]) -> Option<Gathering> {
        let length = known.iter().take_while(|known| !known.stands_apart).count();
        let mut certain = [0; WORDS];
        let mut acting = Vec::new();
        for (index, known) in known[..length].iter().enumerate() {
            if known.predicate == 0 {
                certain[index / 64] |= 1 << (index % 64);
            }
            if known.is_nop && known.predicate == 0 {
                continue;
            }
            let kinds = [
                (known.base.is_some(), Kind::REFERS),
                (known.effects.intersects(GATHERED), Kind::CHANGES),
                (!known.effects.contains(Effects::COMPUTES), Kind::MAY_WALK),
            ];
            let kinds = kinds.into_iter().filter(|(is_it, _)| *is_it);
            acting.push(Acting {
                index: index as u16,
                predicate: known.predicate,
                kind: kinds.map(|(_, kind)| kind).collect(),
                base: known.base.unwrap_or(0),
            });
        }
        (length > 0).then(|| Gathering {
            identity: NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed),
            first,
            length,
            acting: acting.into(),
            certain,
        })
    }
}

/// Whether an instruction of these effects is told of by itself: it uses counters, or changes what an observer is told
/// of beyond frames, branch registers and advanced loads, or where addresses lie.
pub(crate) fn stands_apart(effects: Effects) -> bool {
    const APART: Effects = Effects::USES_COUNTERS
        .union(Effects::WRITES_REGION)
        .union(Effects::WRITES_MONITOR)
        .union(Effects::CHANGES_TRANSLATIONS)
        .union(Effects::SERIALIZES);
    // A return changes the frame as well, and is the last of its block that is executed.
    let returns = effects.contains(Effects::CHANGES_FRAME);
    effects.intersects(APART) || effects.contains(Effects::CHANGES_STATUS) && !returns
}

/// Data translations as they were before the walker inserted one.
pub(crate) struct BeforeWalk<'a> {
    pub processor: &'a Processor,
    pub data: &'a TranslationBuffer,
}

impl Translation for BeforeWalk<'_> {
    fn physical(&self, side: TranslationSide, address: u64) -> u64 {
        match side {
            TranslationSide::Data => self.processor.physical_data(self.data, address),
            TranslationSide::Instruction => self.processor.physical(side, address),
        }
    }
}

/// The gathered instructions of a block that have retired, in order: all of them, or those up to a taken branch or to
/// one that raised a fault.
#[derive(Clone, Copy)]
pub struct Together<'a, S> {
    pub(crate) identity: u64,
    pub(crate) start: u64,
    pub(crate) operations: &'a [MicroOperation],
    pub(crate) known: &'a [Known<S>],
    pub(crate) gathered: &'a Gathered,
    pub(crate) status: u64,
    pub(crate) memory: &'a dyn Translation,
}

impl<'a, S> Together<'a, S> {
    /// Tells the block apart from every other that was ever decoded.
    #[inline]
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// The address of the block's first bundle.
    #[inline]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// How many instructions have retired.
    #[inline]
    pub fn retired(&self) -> usize {
        self.gathered.retired
    }

    /// How many instructions of the block are gathered at most.
    pub fn length(&self) -> usize {
        self.known.len()
    }

    /// What the observer keeps of an instruction.
    ///
    /// # Panics
    /// If the block has no instruction of this index.
    #[inline]
    pub fn known(&self, index: usize) -> &'a S {
        let known = self.known[index].of_observer.as_ref();
        known.expect("a block with an illegal operation is not gathered")
    }

    /// Where an instruction stands.
    ///
    /// # Panics
    /// As [`Together::known`].
    #[inline]
    pub fn place(&self, index: usize) -> Place {
        let operation = &self.operations[index];
        Place {
            ip: self.start.wrapping_add(operation.bundle_offset()),
            slot: operation.slot(),
        }
    }

    /// Which instructions' qualifying predicates were true, one a bit.
    #[inline]
    pub fn executed(&self) -> &'a [u64] {
        &self.gathered.executed
    }

    /// Where the branch went that was taken behind the last instruction, if it was one.
    #[inline]
    pub fn taken(&self) -> Option<u64> {
        self.gathered.taken
    }

    /// The address that an executed instruction referred to; nothing in particular for one that makes no reference.
    #[inline]
    pub fn reference(&self, index: usize) -> u64 {
        self.gathered.references[index]
    }

    /// What is known of an instruction only once it has run.
    ///
    /// # Panics
    /// As [`Together::known`].
    pub fn dynamic(&self, index: usize) -> Dynamic<'a> {
        let executed = self.gathered.is_executed(index);
        let refers = executed && self.known[index].base.is_some();
        Dynamic {
            place: self.place(index),
            executed,
            reference: refers.then(|| self.gathered.references[index]),
            taken: self.gathered.taken.filter(|_| index + 1 == self.gathered.retired),
            memory: self.memory,
        }
    }

    /// The frames that instructions left, by the index of the instruction, in order.
    #[inline]
    pub fn frames(&self) -> &'a [(usize, Frame)] {
        &self.gathered.frames
    }

    /// Branch registers that instructions wrote: the index of the instruction, the register, its value; in order.
    #[inline]
    pub fn branches(&self) -> &'a [(usize, usize, u64)] {
        &self.gathered.branches
    }

    /// What had happened to advanced loads behind instructions that have to do with them, by the index of the
    /// instruction, in order.
    #[inline]
    pub fn advanced(&self) -> &'a [(usize, alat::Events)] {
        &self.gathered.advanced
    }

    /// The processor status register behind the last instruction.
    pub fn status(&self) -> u64 {
        self.status
    }

    /// Tells an observer of each instruction, as if they had not been gathered.
    pub fn tell_each<O: Observer<Static = S>>(&self, observer: &mut O) {
        let mut frames = self.frames().iter().peekable();
        let mut branches = self.branches().iter().peekable();
        let mut advanced = self.advanced().iter().peekable();
        for index in 0..self.retired() {
            let dynamic = self.dynamic(index);
            if let Some((_, frame)) = frames.next_if(|(at, _)| *at == index) {
                observer.event(&Event::Frame(*frame));
            }
            // Whatever changes the status is the last of its block that is executed.
            if dynamic.executed && self.known[index].effects.contains(Effects::CHANGES_STATUS) {
                observer.event(&Event::Status(self.status));
            }
            if let Some(&(_, index, value)) = branches.next_if(|(at, ..)| *at == index) {
                observer.event(&Event::Branch { index, value });
            }
            if let Some((_, events)) = advanced.next_if(|(at, _)| *at == index) {
                observer.event(&Event::AdvancedLoads(*events));
            }
            observer.retired(self.known(index), &dynamic);
        }
    }

    /// What answers for physical addresses.
    pub fn memory(&self) -> &'a dyn Translation {
        self.memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_behind_an_instruction_that_stands_apart_is_gathered_unless_it_is_little() {
        let known = |stands_apart| Known {
            of_observer: Some(()),
            effects: Effects::empty(),
            predicate: 0,
            base: None,
            is_nop: false,
            stands_apart,
        };
        let block = |apart: &[usize], length: usize| {
            let all: Vec<_> = (0..length).map(|index| known(apart.contains(&index))).collect();
            let (front, behind) = Gathering::of_block(&all);
            let stretch = |of: &Gathering| (of.first, of.length);
            let behind: Vec<_> = behind.iter().map(stretch).collect();
            (front.as_ref().map(stretch), behind)
        };
        assert_eq!(block(&[], 3), (Some((0, 3)), vec![]));
        assert_eq!(block(&[2], 3), (Some((0, 2)), vec![]));
        assert_eq!(block(&[0], 20), (None, vec![(1, 19)]));
        assert_eq!(block(&[1, 5, 14], 30), (Some((0, 1)), vec![(6, 8), (15, 15)]));
        assert_eq!(block(&[1], 2 + BEHIND_MIN - 1), (Some((0, 1)), vec![]));
    }
}
