//! What blocks cost, kept by the state that they are entered in and by what the surroundings answer.
//!
//! The pipeline proper ([`Timing`](super::timing::Timing)) is a machine whose next state and costs follow from three
//! things alone: the state between two groups ([`canonical`](super::canonical)), the block, and the
//! [signature](Signature) of what its surroundings answered. So the transition is computed once and kept; the next
//! time it is booked as a whole. States have numbers: a transition leads from one number to another, and the pipeline's
//! own registers and queues are not touched until somebody needs them.
//!
//! States and transitions are bounded. A program that never enters a block in a state that was seen pays for looking,
//! so a memo that finds too little rests for a while.

use std::collections::HashMap;
use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;

use crate::pmu::event::Event;
use crate::pmu::stall::Stall;

/// States that are numbered before all are forgotten.
const STATES_MAX: usize = 1 << 15;
/// Blocks of which something is kept before all are forgotten.
const BLOCKS_MAX: usize = 1 << 16;
/// Transitions kept; another takes the place of one whose key falls together with its own.
const TRANSITIONS_LOG2: u32 = 15;
/// Places of the direct-mapped front of the blocks.
const FRONT: usize = 1 << 12;
/// Blocks that are looked up between two looks at how many were found.
const WINDOW: u32 = 1024;
/// Of these, so many may be missing: a block that is computed and kept costs a few times one that is computed only.
const MISSES_MAX: u32 = WINDOW * 3 / 8;
/// Blocks for which a memo rests that finds too little, at first and at most.
const REST: (u32, u32) = (1 << 12, 1 << 16);

/// No block, no state.
const NONE: u32 = u32::MAX;

/// What is worth looking at in a block.
pub(super) struct Facts {
    /// The instructions that the surroundings are asked about, in order.
    pub points: Box<[Point]>,
}

/// An instruction that the surroundings are asked about.
pub(super) struct Point {
    pub index: usize,
    /// Whether a pair of bundles begins with it that was not fetched yet.
    pub is_fetched: bool,
    /// Whether it refers to memory.
    pub refers: bool,
    /// Whether it branches, or changes frame or branch registers.
    pub moves: bool,
}

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
    /// A reference that hit nothing, with cycles of the walker; a word with the rest follows.
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

/// What a block costs: from one state to another.
pub(super) struct Transition {
    block: u32,
    state: u32,
    signature_length: u32,
    booked_length: u32,
    /// The signature, then bubbles by cause, then events: the index above bit 48.
    words: Box<[u64]>,
    pub exit: u32,
    pub cycles: u64,
    pub groups: u64,
    /// Whether the front end starts again behind it.
    pub has_restarted: bool,
}

const AMOUNT: u64 = (1 << 48) - 1;

impl Transition {
    fn none() -> Transition {
        Transition {
            block: NONE,
            state: NONE,
            signature_length: 0,
            booked_length: 0,
            words: Box::default(),
            exit: NONE,
            cycles: 0,
            groups: 0,
            has_restarted: false,
        }
    }

    #[inline]
    fn is(&self, block: u32, state: u32, signature: &[u64]) -> bool {
        // Signatures are short: a call to compare them takes longer than comparing.
        let pairs = || self.words.iter().zip(signature);
        self.block == block
            && self.state == state
            && self.signature_length as usize == signature.len()
            && pairs().all(|(one, other)| one == other)
    }

    /// Adds its bubbles and events.
    #[inline]
    pub fn book(&self, booked: &mut [u64; Stall::COUNT], values: &mut [u64; Event::COUNT]) {
        let amounts = &self.words[self.signature_length as usize..];
        let (bubbles, events) = amounts.split_at(self.booked_length as usize);
        for word in bubbles {
            booked[(word >> 48) as usize] += word & AMOUNT;
        }
        for word in events {
            values[(word >> 48) as usize] += word & AMOUNT;
        }
    }
}

/// The counters before a block, to find out what it adds.
pub(super) struct Before {
    pub cycle: u64,
    pub groups: u64,
    pub booked: [u64; Stall::COUNT],
    pub values: [u64; Event::COUNT],
}

macro_rules! statistics {
    ($($field:ident $what:literal;)*) => {
        /// How often blocks were booked as a whole, and why not.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Booking { $(#[doc = $what] pub $field: u64,)* }

        impl AddAssign for Booking {
            fn add_assign(&mut self, other: Booking) {
                $(self.$field += other.$field;)*
            }
        }

        /// A line for each.
        impl fmt::Display for Booking {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                $(writeln!(out, "{:<24} {:>16}", $what, self.$field)?;)*
                Ok(())
            }
        }
    };
}

statistics! {
    whole "blocks booked as a whole";
    instructions "their instructions";
    new "blocks in a new state";
    flushed "blocks behind a flush";
    unsuitable "blocks that change level";
    watched "blocks that are watched";
    resting "blocks while at rest";
    forgotten "times all were forgotten";
}

/// The transitions that are known, and the state that the pipeline is in.
pub(super) struct Memo {
    pub is_on: bool,
    /// The number of the state between two groups; `None` where only the pipeline itself has it.
    pub state: Option<u32>,
    /// Whether the pipeline itself has it, too.
    pub is_settled: bool,
    states: Vec<Arc<[i32]>>,
    /// How many of the last stores a load can meet in each state.
    stores_met: Vec<u8>,
    numbers: HashMap<Arc<[i32]>, u32>,
    blocks: HashMap<u64, u32>,
    front: Box<[(u64, u32)]>,
    pub facts: Vec<Facts>,
    transitions: Box<[Transition]>,
    pub signature: Signature,
    pub words: Vec<i32>,
    window: u32,
    misses: u32,
    rest: u32,
    rest_next: u32,
    pub statistics: Booking,
}

impl Memo {
    /// Knows nothing.
    pub fn new(is_on: bool) -> Memo {
        Memo {
            is_on,
            state: None,
            is_settled: true,
            states: Vec::new(),
            stores_met: Vec::new(),
            numbers: HashMap::new(),
            blocks: HashMap::new(),
            front: Box::default(),
            facts: Vec::new(),
            transitions: Box::default(),
            signature: Vec::new(),
            words: Vec::new(),
            window: 0,
            misses: 0,
            rest: 0,
            rest_next: REST.0,
            statistics: Booking::default(),
        }
    }

    /// Whether it rests for the next block.
    #[inline]
    pub fn rests(&mut self) -> bool {
        if self.rest == 0 {
            return false;
        }
        self.rest -= 1;
        self.statistics.resting += 1;
        true
    }

    /// The number of a block of which something is kept.
    #[inline]
    pub fn block(&self, identity: u64) -> Option<u32> {
        match self.front.get(identity as usize % FRONT) {
            Some((of, block)) if *of == identity => Some(*block),
            _ => None,
        }
    }

    /// The number of a block that the front does not know; `facts` are asked for where nobody does.
    #[cold]
    pub fn find_block(&mut self, identity: u64, facts: impl FnOnce() -> Facts) -> u32 {
        if self.front.is_empty() {
            self.front = vec![(u64::MAX, NONE); FRONT].into();
            self.transitions = (0..1 << TRANSITIONS_LOG2).map(|_| Transition::none()).collect();
        }
        let next = self.facts.len() as u32;
        let block = *self.blocks.entry(identity).or_insert(next);
        if block == next {
            self.facts.push(facts());
        }
        self.front[identity as usize % FRONT] = (identity, block);
        block
    }

    /// Forgets everything if there is too much of it; the pipeline itself has its state.
    pub fn bound(&mut self) {
        if self.states.len() < STATES_MAX && self.facts.len() < BLOCKS_MAX {
            return;
        }
        let statistics = self.statistics;
        *self = Memo::new(self.is_on);
        self.statistics = statistics;
        self.statistics.forgotten += 1;
    }

    /// The number of the state whose words stand in [`Memo::words`].
    pub fn number(&mut self, stores_met: usize) -> u32 {
        if let Some(number) = self.numbers.get(&self.words[..]) {
            return *number;
        }
        let number = self.states.len() as u32;
        let words: Arc<[i32]> = self.words[..].into();
        self.states.push(Arc::clone(&words));
        self.stores_met.push(stores_met as u8);
        self.numbers.insert(words, number);
        number
    }

    /// A state's words.
    pub fn state_words(&self, number: u32) -> Arc<[i32]> {
        Arc::clone(&self.states[number as usize])
    }

    /// How many of the last stores a load can meet in a state.
    #[inline]
    pub fn stores_met(&self, number: u32) -> usize {
        usize::from(self.stores_met[number as usize])
    }

    #[inline]
    fn place(&self, block: u32, state: u32) -> usize {
        const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut hash = (u64::from(block) << 32 | u64::from(state)).wrapping_mul(MULTIPLIER);
        for word in &self.signature {
            hash = (hash.rotate_left(23) ^ word).wrapping_mul(MULTIPLIER);
        }
        (hash >> (u64::BITS - TRANSITIONS_LOG2)) as usize
    }

    /// The transition of a block from a state under the signature, if it is known.
    #[inline]
    pub fn find(&mut self, block: u32, state: u32) -> Option<&Transition> {
        self.window += 1;
        let place = self.place(block, state);
        if self.transitions[place].is(block, state, &self.signature) {
            return Some(&self.transitions[place]);
        }
        self.misses += 1;
        if self.window >= WINDOW {
            self.judge();
        }
        None
    }

    /// Rests for a while if too little was found.
    #[cold]
    fn judge(&mut self) {
        if self.misses > MISSES_MAX.saturating_mul(self.window / WINDOW) {
            self.rest = self.rest_next;
            self.rest_next = (self.rest_next * 2).min(REST.1);
        } else {
            self.rest_next = REST.0;
        }
        (self.window, self.misses) = (0, 0);
    }

    /// Keeps what a block added to the counters on the way to another state.
    pub fn keep(
        &mut self,
        (block, state, exit): (u32, u32, u32),
        before: &Before,
        after: &Before,
        restarts: bool,
    ) {
        let mut words = self.signature.clone();
        let differences = |before: &[u64], after: &[u64]| -> Vec<u64> {
            let pairs = before.iter().zip(after).enumerate();
            pairs
                .filter(|(_, (before, after))| before != after)
                .map(|(index, (before, after))| (index as u64) << 48 | (after - before) & AMOUNT)
                .collect()
        };
        let booked = differences(&before.booked, &after.booked);
        words.extend(&booked);
        words.extend(differences(&before.values, &after.values));
        let place = self.place(block, state);
        self.transitions[place] = Transition {
            block,
            state,
            signature_length: self.signature.len() as u32,
            booked_length: booked.len() as u32,
            words: words.into(),
            exit,
            cycles: after.cycle - before.cycle,
            groups: after.groups - before.groups,
            has_restarted: restarts,
        };
    }
}
