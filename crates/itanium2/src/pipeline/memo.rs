//! What blocks cost, kept by the state that they are entered in and by what the surroundings answer.
//!
//! The pipeline proper ([`Timing`](super::timing::Timing)) is a machine whose next state and costs follow from three
//! things alone: the state between two groups ([`canonical`](super::canonical)), the block, and the
//! [signature](super::signature) of what its surroundings answered. So the transition is computed once and kept; the
//! next time it is booked as a whole. States have numbers: a transition leads from one number to another, and the
//! pipeline's own registers and queues are not touched until somebody needs them.
//!
//! States and transitions are bounded. A program that never enters a block in a state that was seen pays for looking,
//! so a memo that finds too little rests for a while.

use std::collections::HashMap;
use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::flags::Flags;
use crate::pmu::event::Event;
use crate::pmu::stall::Stall;
use crate::profile::Profile;

use super::answers::Met;
use super::signature::Signature;
use super::timing::Closed;

/// States that are numbered before all are forgotten.
const STATES_MAX: usize = 1 << 16;
/// Places for transitions at first and at most; another transition takes the place of one whose key falls together
/// with its own. There are more places once many had to go.
const TRANSITIONS_LOG2: (u32, u32) = (13, 17);
/// Places for what is known of blocks, by their identity.
const BLOCKS: usize = 1 << 15;
/// Blocks that are looked up between two looks at how many were found.
const WINDOW: u32 = 1024;
/// Of these, so many may be missing: a block that is computed and kept costs a few times one that is computed only.
const MISSES_MAX: u32 = WINDOW * 3 / 8;
/// Blocks for which a memo rests that finds too little, at first and at most.
const REST: (u32, u32) = (1 << 12, 1 << 16);

/// No block: identities are those of blocks that were decoded, of which no machine has so many.
const NO_BLOCK: u64 = u64::MAX;
/// No state.
const NO_STATE: u32 = u32::MAX;

/// Something that the surroundings are asked about an instruction.
#[derive(Clone, Copy)]
pub(super) struct Point {
    /// Bytes of its bundle from the block's first.
    pub offset: u16,
    /// Its index in the block.
    pub index: u8,
    pub slot: u8,
    pub asks: Asks,
    /// The branch register that it writes or branches to; of a reference, how many bytes, as a power of two.
    pub detail: u8,
    pub is_predicated: bool,
    /// Whether there is a stop between the point before and it.
    pub is_behind_stop: bool,
    pub flags: Flags,
}

/// What the surroundings are asked about an instruction; the frequent cases of references apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    /// It is the block's first, or begins a pair of bundles on another line of the instruction cache.
    Fetch,
    /// It loads through the first level.
    Load,
    /// It stores.
    Store,
    /// It refers to memory otherwise.
    Reference,
    /// It branches as somebody has to foresee.
    Branch,
    /// It changes frame, branch registers or privilege level, or has to do with advanced loads, and may branch.
    Change,
}

/// What is worth looking at in a block: the instructions that the surroundings are asked about, in order.
struct Facts {
    block: u64,
    points: Box<[Point]>,
}

/// Words of a signature that are held with the transition: most have no more.
const HELD: usize = 9;

/// What a block costs: from one state to another. Two lines of the host's cache beside each other have what is needed
/// to book it; what it adds to the counters is added up later, all at once.
#[repr(C, align(128))]
pub(super) struct Transition {
    block: u64,
    state: u32,
    pub exit: u32,
    pub cycles: u32,
    /// How often it was booked since it was added up.
    times: u32,
    pub groups: u16,
    pub retired: u16,
    signature_length: u16,
    /// What a reference behind it can meet.
    pub met: PackedMet,
    /// Whether the front end starts again behind it.
    pub has_restarted: bool,
    /// Where the transition lay that was booked behind it.
    next: u32,
    signature: [u64; HELD],
    /// The rest of the signature, then bubbles by cause and events: which above bit 48, events behind the causes. Where
    /// cycles are kept by bundle, `BY_BUNDLE` follows, and pairs of words: an address, and what is booked to it, issue
    /// cycles behind the causes.
    words: Box<[u64]>,
}

/// What a reference can meet, in a byte.
#[derive(Clone, Copy, Default)]
pub(super) struct PackedMet(u8);

impl From<Met> for PackedMet {
    fn from(met: Met) -> PackedMet {
        PackedMet((met.stores | met.loads << 4) as u8)
    }
}

impl From<PackedMet> for Met {
    fn from(packed: PackedMet) -> Met {
        Met {
            stores: usize::from(packed.0 & 15),
            loads: usize::from(packed.0 >> 4),
        }
    }
}

const AMOUNT: u64 = (1 << 48) - 1;
const BY_BUNDLE: u64 = u64::MAX;

/// The counters that what was booked is added up in.
pub(super) struct Totals<'a> {
    pub booked: &'a mut [u64; Stall::COUNT],
    pub values: &'a mut [u64; Event::COUNT],
    pub profile: Option<&'a mut Profile>,
}

impl Transition {
    fn none() -> Transition {
        Transition {
            block: NO_BLOCK,
            state: NO_STATE,
            exit: NO_STATE,
            cycles: 0,
            times: 0,
            groups: 0,
            retired: 0,
            signature_length: 0,
            met: PackedMet::default(),
            has_restarted: false,
            next: 0,
            signature: [0; HELD],
            words: Box::default(),
        }
    }

    #[inline]
    fn is(&self, block: u64, state: u32, signature: &[u64]) -> bool {
        let (held, rest) = signature.split_at(HELD.min(signature.len()));
        let is_same = |(one, other): (&u64, &u64)| one == other;
        // Signatures are short: a call to compare them takes longer than comparing.
        self.block == block
            && self.state == state
            && usize::from(self.signature_length) == signature.len()
            && self.signature.iter().zip(held).all(is_same)
            && self.words.iter().zip(rest).all(is_same)
    }

    /// The signature's words behind those that are held.
    fn rest(&self) -> usize {
        usize::from(self.signature_length).saturating_sub(HELD)
    }

    /// Adds bubbles and events of all times.
    fn add_up(&self, totals: &mut Totals<'_>) {
        let times = u64::from(self.times);
        let mut words = self.words[self.rest()..].iter();
        for word in words.by_ref().take_while(|word| **word != BY_BUNDLE) {
            let (which, amount) = ((word >> 48) as usize, (word & AMOUNT) * times);
            match which.checked_sub(Stall::COUNT) {
                None => totals.booked[which] += amount,
                Some(event) => totals.values[event] += amount,
            }
        }
        let Some(profile) = &mut totals.profile else {
            return;
        };
        while let (Some(ip), Some(word)) = (words.next(), words.next()) {
            let (which, amount) = ((word >> 48) as usize, (word & AMOUNT) * times);
            let place = profile.places.entry(*ip).or_default();
            match place.bubbles.get_mut(which) {
                Some(bubbles) => *bubbles += amount,
                None => {
                    place.issue_cycles += amount;
                    place.executions += amount;
                }
            }
        }
    }

    fn place(&self, log2: u32) -> usize {
        let held = &self.signature[..HELD.min(self.signature_length.into())];
        let signature = held.iter().chain(&self.words[..self.rest()]);
        place(self.block, self.state, signature, log2)
    }
}

/// Where a transition belongs among `1 << log2`.
#[inline]
fn place<'a>(block: u64, state: u32, signature: impl IntoIterator<Item = &'a u64>, log2: u32) -> usize {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(MULTIPLIER);
    let mut hash = (block << 32 ^ u64::from(state)).wrapping_mul(MULTIPLIER);
    for word in signature {
        hash = mix(hash, *word);
    }
    (hash >> (u64::BITS - log2)) as usize
}

/// Asks the host for the cache lines of a transition.
#[inline]
fn prefetch(transition: &Transition) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = std::ptr::from_ref(transition).cast::<i8>();
        // SAFETY: a hint that changes nothing and cannot fault, of an instruction that every x86-64 has. The second
        // address is inside the transition, too.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(start);
            _mm_prefetch::<_MM_HINT_T0>(start.add(64));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = transition;
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
    /// What a reference can meet in that state.
    pub met: PackedMet,
    /// Whether the pipeline itself has it, too.
    pub is_settled: bool,
    states: Vec<Arc<[i32]>>,
    numbers: HashMap<Arc<[i32]>, u32, RandomState>,
    facts: Box<[Facts]>,
    transitions: Box<[Transition]>,
    transitions_log2: u32,
    /// Transitions that had to go since there were more places.
    replaced: usize,
    /// Places of transitions that were booked since they were added up; of some more than once.
    booked: Vec<u32>,
    /// Where the transition lies that was booked last.
    last: u32,
    pub signature: Signature,
    pub words: Vec<i32>,
    /// Room for the words of a transition that is to be kept.
    kept: Vec<u64>,
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
            met: PackedMet::default(),
            is_settled: true,
            states: Vec::new(),
            numbers: HashMap::default(),
            facts: Box::default(),
            transitions: Box::default(),
            transitions_log2: TRANSITIONS_LOG2.0,
            replaced: 0,
            booked: Vec::new(),
            last: 0,
            signature: Vec::new(),
            words: Vec::new(),
            kept: Vec::new(),
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

    /// The points of a block, to be put back; `find` finds them where nobody knows.
    #[inline]
    pub fn take_points(&mut self, block: u64, find: impl FnOnce() -> Box<[Point]>) -> Box<[Point]> {
        match self.facts.get_mut(block as usize % BLOCKS) {
            Some(facts) if facts.block == block => std::mem::take(&mut facts.points),
            _ => {
                self.make_room(block);
                find()
            }
        }
    }

    #[cold]
    fn make_room(&mut self, block: u64) {
        if self.facts.is_empty() {
            let none = || Facts {
                block: NO_BLOCK,
                points: Box::default(),
            };
            self.facts = (0..BLOCKS).map(|_| none()).collect();
            self.transitions = (0..1 << self.transitions_log2)
                .map(|_| Transition::none())
                .collect();
        }
        self.facts[block as usize % BLOCKS].block = block;
    }

    /// Puts the points of a block back.
    #[inline]
    pub fn put_points(&mut self, block: u64, points: Box<[Point]>) {
        self.facts[block as usize % BLOCKS].points = points;
    }

    /// Whether there are so many states that all have to be forgotten.
    pub fn has_too_many_states(&self) -> bool {
        self.states.len() >= STATES_MAX
    }

    /// Forgets every state and transition, once all has been added up; the pipeline itself has its state.
    pub fn forget(&mut self) {
        assert!(self.booked.is_empty(), "what was booked is added up");
        self.state = None;
        self.states.clear();
        self.numbers.clear();
        self.transitions.fill_with(Transition::none);
        self.statistics.forgotten += 1;
    }

    /// The number of the state whose words stand in [`Memo::words`].
    pub fn number(&mut self) -> u32 {
        if let Some(number) = self.numbers.get(&self.words[..]) {
            return *number;
        }
        let number = self.states.len() as u32;
        let words: Arc<[i32]> = self.words[..].into();
        self.states.push(Arc::clone(&words));
        self.numbers.insert(words, number);
        number
    }

    /// A state's words.
    pub fn state_words(&self, number: u32) -> Arc<[i32]> {
        Arc::clone(&self.states[number as usize])
    }

    /// Books the transition of a block from a state under the signature once more, if it is known.
    #[inline]
    pub fn find(&mut self, block: u64, state: u32) -> Option<&Transition> {
        self.window += 1;
        let place = place(block, state, &self.signature, self.transitions_log2);
        let found = &self.transitions[place];
        if !found.is(block, state, &self.signature) || found.times == u32::MAX {
            self.miss();
            return None;
        }
        if found.times == 0 {
            self.booked.push(place as u32);
        }
        let last = std::mem::replace(&mut self.last, place as u32);
        if let Some(last) = self.transitions.get_mut(last as usize) {
            last.next = place as u32;
        }
        // Likely the next one: it has the time of a block to come from memory.
        if let Some(next) = self.transitions.get(self.transitions[place].next as usize) {
            prefetch(next);
        }
        let found = &mut self.transitions[place];
        found.times += 1;
        Some(found)
    }

    #[cold]
    fn miss(&mut self) {
        self.misses += 1;
        if self.window >= WINDOW {
            self.judge();
        }
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

    /// Adds what was booked, and not added up yet, to counters.
    pub fn add_up(&self, booked: &mut [u64; Stall::COUNT], values: &mut [u64; Event::COUNT]) {
        let mut totals = Totals {
            booked,
            values,
            profile: None,
        };
        let mut places = self.booked.clone();
        places.sort_unstable();
        places.dedup();
        for place in places {
            self.transitions[place as usize].add_up(&mut totals);
        }
    }

    /// As [`Memo::add_up`], once and for all.
    pub fn settle_up(&mut self, totals: &mut Totals<'_>) {
        for place in self.booked.drain(..) {
            let transition = &mut self.transitions[place as usize];
            transition.add_up(totals);
            transition.times = 0;
        }
    }

    /// Whether so many transitions wait to be added up that it is time.
    pub fn is_full(&self) -> bool {
        self.booked.len() >= self.transitions.len()
    }

    /// Keeps what a block added to the counters on the way to another state, and which groups it closed where cycles
    /// are kept by bundle; what another transition in its place has booked is added up.
    pub fn keep(
        &mut self,
        (block, state, exit): (u64, u32, u32),
        (before, after): (&Before, &Before),
        (closed, has_restarted): (Option<&[Closed]>, bool),
        totals: &mut Totals<'_>,
    ) {
        let (Ok(cycles), Ok(groups)) = (
            u32::try_from(after.cycle - before.cycle),
            u16::try_from(after.groups - before.groups),
        ) else {
            return;
        };
        let mut signature = [0; HELD];
        let held = HELD.min(self.signature.len());
        signature[..held].copy_from_slice(&self.signature[..held]);
        let mut words = std::mem::take(&mut self.kept);
        words.clear();
        words.extend(&self.signature[held..]);
        let pairs = before.booked.iter().zip(&after.booked);
        let pairs = pairs.chain(before.values.iter().zip(&after.values)).enumerate();
        // How many instructions have retired is booked at once, as time may go by it.
        let retired = Stall::COUNT + Event::InstructionsRetired as usize;
        words.extend(
            pairs
                .filter(|(index, (before, after))| before != after && *index != retired)
                .map(|(index, (before, after))| (index as u64) << 48 | (after - before) & AMOUNT),
        );
        if let Some(closed) = closed {
            words.push(BY_BUNDLE);
            for group in closed {
                words.extend([group.first_ip, (Stall::COUNT as u64) << 48 | 1]);
                for (stall, length, owner) in &group.bubbles {
                    words.extend([*owner, (*stall as u64) << 48 | length & AMOUNT]);
                }
            }
        }
        if self.replaced > self.transitions.len() / 4 && self.transitions_log2 < TRANSITIONS_LOG2.1 {
            self.settle_up(totals);
            self.grow();
        }
        let at = place(block, state, &self.signature, self.transitions_log2);
        let transition = &mut self.transitions[at];
        self.replaced += usize::from(transition.block != NO_BLOCK);
        transition.add_up(totals);
        *transition = Transition {
            block,
            state,
            exit,
            cycles,
            times: 0,
            groups,
            retired: (self.signature[0] & 0xffff) as u16,
            signature_length: self.signature.len() as u16,
            met: self.met,
            has_restarted,
            next: 0,
            signature,
            words: words[..].into(),
        };
        self.kept = words;
    }

    /// Makes four times as many places.
    fn grow(&mut self) {
        self.transitions_log2 = (self.transitions_log2 + 2).min(TRANSITIONS_LOG2.1);
        self.replaced = 0;
        let more = (0..1 << self.transitions_log2)
            .map(|_| Transition::none())
            .collect();
        for transition in std::mem::replace(&mut self.transitions, more) {
            if transition.block != NO_BLOCK {
                let place = transition.place(self.transitions_log2);
                self.transitions[place] = transition;
            }
        }
    }
}
