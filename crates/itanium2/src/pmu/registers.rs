//! The performance monitor as guest code programs it: four counters, PMC4 to PMC7 with PMD4 to PMD7.
//!
//! ```text
//!   PMC4..7:  0..3 privilege levels counted   4 external   5 overflow interrupt   6 privileged (PSR.pp, else PSR.up)
//!             8..15 event   16..19 unit mask   20..22 threshold   23 enable (PMC4)
//!   PMC0:     0 freeze   4..7 overflow of PMD4..7
//!   CR.PMV:   0..7 vector of the overflow interrupt   16 masked
//! ```
//!
//! (Itanium 2 Processor Reference Manual, chapter 10.) A counter has 47 bits and one of overflow; reads extend the
//! sign. With a threshold a counter counts the cycles in which more than so many events happen. A counter that
//! overflows with its overflow interrupt on freezes the unit and requests the interrupt of CR.PMV; that is looked
//! for in front of each run of instructions without a branch, which is as late as the interrupt may be. Events
//! without a counter of the model do not count. What is kept of single events:
//! [`event_address_registers`](super::event_address_registers); what restricts counting and keeping:
//! [`tagging`](super::tagging).

use sidestep_ia64::encoding::Unit;
use sidestep_ia64::execution::{Dynamic, PerformanceRegisters, State};
use sidestep_ia64::registers::status::psr;

use super::counters::Counters;
use super::event::Event;
use super::event_address::{Branched, Fetched, Loaded};
use super::event_address_registers::EventAddressRegisters;
use super::tagging::{Tagging, Tags};
use super::unit_masks::Parts;

/// The first counter.
const FIRST: usize = 4;
/// How many there are.
const COUNT: usize = 4;
/// PMC0.fr: nothing counts.
const FREEZE: u64 = 1;
/// The bits of a counter, the overflow bit above them.
const BITS: u32 = 47;
/// PMC.oi: an overflow interrupts.
const INTERRUPTS: u64 = 1 << 5;
/// CR.PMV.m: no interrupt is requested.
const MASKED: u64 = 1 << 16;

/// What a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counting {
    event: Event,
    parts: Parts,
    /// Cycles with more events than this count; 0: every event does.
    threshold: u64,
    interrupts: bool,
}

/// Which counters count, and from when.
#[derive(Default)]
pub struct PerformanceMonitor {
    /// What each counter counts at the moment.
    counting: [Option<Counting>; COUNT],
    /// What was counted and is not in the registers yet.
    pending: [u64; COUNT],
    seen: Counters,
    /// Whether an overflow has frozen the counters and PMC0 does not say so yet.
    is_frozen: bool,
    event_addresses: EventAddressRegisters,
    tagging: Tagging,
    /// Whether any counter counts, or anything is kept.
    is_counting: bool,
    /// Whether anything keeps events from counting.
    is_restricted: bool,
    /// What restricts at the instruction that retires.
    tags: Tags,
    /// The counts before that instruction.
    before: [u64; COUNT],
    /// What has happened and does not count, since the counters were looked at.
    excluded: [u64; COUNT],
}

impl PerformanceMonitor {
    /// Whether any counter counts, or anything is kept.
    #[inline]
    pub fn is_counting(&self) -> bool {
        self.is_counting
    }

    fn note_whether_counting(&mut self) {
        self.is_counting = self.counting.iter().any(Option::is_some) || self.is_keeping();
    }

    /// Whether single events are kept.
    #[inline]
    pub fn is_keeping(&self) -> bool {
        self.event_addresses.is_on()
    }

    /// Whether opcodes or addresses decide what counts: [`PerformanceMonitor::begin`] and [`PerformanceMonitor::end`]
    /// then go around each instruction.
    #[inline]
    pub fn is_restricted(&self) -> bool {
        self.is_restricted
    }

    /// An instruction retires that has counted nothing yet.
    pub fn begin(
        &mut self,
        state: &State,
        opcode: (u64, Unit),
        dynamic: &Dynamic<'_>,
        values: &[u64; Event::COUNT],
    ) {
        let level = state.privilege_level();
        self.tags = self
            .tagging
            .tags(dynamic.place.ip, opcode, level, dynamic.reference);
        for (counting, before) in self.counting.iter().zip(&mut self.before) {
            *before = counting.map_or(0, |counting| counting.parts.of(values));
        }
    }

    /// All of the instruction's events have happened.
    pub fn end(&mut self, values: &[u64; Event::COUNT]) {
        for (index, counting) in self.counting.iter().enumerate() {
            if let Some(counting) = counting
                && !self.tags.count(counting.event)
            {
                self.excluded[index] += counting.parts.of(values) - self.before[index];
            }
        }
        self.tags = Tags::ALL;
    }

    /// Whether nothing restricts an event at the instruction that retires.
    #[inline]
    fn keeps(&self, event: Event) -> bool {
        !self.is_restricted || self.tags.count(event)
    }

    /// A load was executed, or a reference interrupted; whether the data event address register keeps it.
    #[inline]
    pub fn load(&mut self, load: &Loaded) -> bool {
        self.keeps(Event::DataEarEvents) && self.event_addresses.load(load)
    }

    /// A check of an advanced load has failed; whether the data event address register keeps it.
    pub fn failed_check(&mut self, ip: u64, slot: u8) -> bool {
        self.keeps(Event::DataEarEvents) && self.event_addresses.failed_check(ip, slot)
    }

    /// A line was fetched, or a fetch interrupted; whether the instruction event address register keeps it.
    #[inline]
    pub fn fetched(&mut self, fetch: &Fetched) -> bool {
        self.keeps(Event::InstructionEarEvents) && self.event_addresses.fetched(fetch)
    }

    /// A branch has retired; whether the branch trace buffer keeps it.
    #[inline]
    pub fn branch(&mut self, branch: &Branched) -> bool {
        self.keeps(Event::BranchEvents) && self.event_addresses.branch(branch)
    }

    /// Whether an overflow of a counter interrupts.
    #[inline]
    pub fn interrupts(&self) -> bool {
        self.counting.iter().flatten().any(|counting| counting.interrupts)
    }

    /// Whether a counter counts cycles by the number of events in them.
    #[inline]
    pub fn has_threshold(&self) -> bool {
        self.counting
            .iter()
            .flatten()
            .any(|counting| counting.threshold > 0)
    }

    /// Takes up what happened since the last call, under the configuration that held; then looks at the processor's
    /// configuration anew.
    pub fn update(&mut self, state: &State, now: &Counters) {
        let excluded = std::mem::take(&mut self.excluded);
        for ((counting, pending), excluded) in self.counting.iter().zip(&mut self.pending).zip(excluded) {
            if let Some(Counting {
                event, threshold: 0, ..
            }) = counting
            {
                // A group that forms may be booked differently once it has issued, but never to fewer cycles.
                let happened = now.get(*event).saturating_sub(self.seen.get(*event));
                *pending += happened.saturating_sub(excluded);
            }
        }
        self.seen = *now;
        self.counting = match self.is_frozen {
            true => [None; COUNT],
            false => std::array::from_fn(|index| counted(state, FIRST + index)),
        };
        let is_frozen = self.is_frozen;
        self.event_addresses
            .configure(&state.performance, |control, privileged| {
                !is_frozen && is_enabled(state, control, privileged)
            });
        self.is_restricted = false;
        self.note_whether_counting();
        if self.is_counting {
            self.tagging = Tagging::of(&state.performance);
            self.is_restricted = self.tagging.restricts();
        }
    }

    /// Takes up a cycle in which a group issued; `happened` says how often an event did. In a bubble no more than one
    /// event of a kind happens, which is above no threshold.
    pub fn cycle(&mut self, happened: impl Fn(Event) -> u64) {
        for (index, counting) in self.counting.iter().enumerate() {
            if let Some(counting) = counting.filter(|counting| counting.threshold > 0) {
                let excluded = std::mem::take(&mut self.excluded[index]);
                let counted = happened(counting.event).saturating_sub(excluded);
                self.pending[index] += u64::from(counted > counting.threshold);
            }
        }
    }

    /// Looks whether a counter has overflowed that interrupts: the unit then freezes. Answers the vector of the
    /// interrupt to request, unless it is masked.
    pub fn look_for_overflow(&mut self, state: &State, now: &Counters) -> Option<u8> {
        self.update(state, now);
        let overflows = (0..COUNT).any(|index| {
            self.counting[index].is_some_and(|counting| counting.interrupts)
                && count(&state.performance, FIRST + index) + self.pending[index] >> BITS != 0
        });
        if !overflows {
            return None;
        }
        self.is_frozen = true;
        self.counting = [None; COUNT];
        self.event_addresses.configure(&state.performance, |_, _| false);
        self.note_whether_counting();
        let vector = state.performance.vector;
        (vector & MASKED == 0).then_some(vector as u8)
    }

    /// Puts what was counted into the data registers, and a freeze into PMC0.
    pub fn store(&mut self, registers: &mut PerformanceRegisters) {
        for index in 0..COUNT {
            let pending = std::mem::take(&mut self.pending[index]);
            if pending == 0 {
                continue;
            }
            let sum = count(registers, FIRST + index) + pending;
            let has_overflowed = sum >> BITS != 0;
            let value = sum & ((1 << BITS) - 1);
            registers.data[FIRST + index] = sign_extended(value | u64::from(has_overflowed) << BITS);
            if has_overflowed {
                registers.configuration[0] |= 1 << (FIRST + index);
            }
        }
        self.event_addresses.store(registers);
        if std::mem::take(&mut self.is_frozen) {
            registers.configuration[0] |= FREEZE;
        }
    }
}

/// A counter's register without the overflow bit.
fn count(registers: &PerformanceRegisters, counter: usize) -> u64 {
    registers.data[counter] & ((1 << BITS) - 1)
}

/// Bits above the overflow bit repeat it.
fn sign_extended(value: u64) -> u64 {
    ((value << (63 - BITS)) as i64 >> (63 - BITS)) as u64
}

/// Whether the processor's present state lets a register monitor whose bit `privileged` says that it is a privileged
/// one.
fn is_enabled(state: &State, control: u64, privileged: u32) -> bool {
    let enable = if control >> privileged & 1 != 0 {
        psr::PP
    } else {
        psr::UP
    };
    let level = u32::from(state.privilege_level());
    state.performance.configuration[0] & FREEZE == 0
        && state.status & enable != 0
        && control >> level & 1 != 0
}

/// What a counter counts in the processor's present state.
fn counted(state: &State, counter: usize) -> Option<Counting> {
    let configuration = &state.performance.configuration;
    let control = configuration[counter];
    let counts = is_enabled(state, control, 6);
    let code = (control >> 8 & 0xff) as u32 | ((control >> 16 & 0xf) as u32) << 16;
    let event = counts.then(|| Event::by_code(code)).flatten()?;
    Some(Counting {
        event,
        parts: event.parts(),
        threshold: control >> 20 & 7,
        interrupts: control & INTERRUPTS != 0,
    })
}
