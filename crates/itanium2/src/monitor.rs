//! The performance monitor as guest code programs it: four counters, PMC4 to PMC7 with PMD4 to PMD7.
//!
//! ```text
//!   PMC4..7:  0..3 privilege levels counted   4 external   5 overflow interrupt   6 privileged (PSR.pp, else PSR.up)
//!             8..15 event   16..19 unit mask   20..22 threshold   23 enable (PMC4)
//!   PMC0:     0 freeze   4..7 overflow of PMD4..7
//! ```
//!
//! (Itanium 2 Processor Reference Manual, chapter 10.) A counter has 47 bits and one of overflow; reads extend the
//! sign. Events without a counter of the model do not count. Thresholds are not modelled.

use sidestep_ia64::Processor;
use sidestep_ia64::registers::status::psr;

use crate::counters::Counters;
use crate::event::Event;

/// The first counter.
const FIRST: usize = 4;
/// How many there are.
const COUNT: usize = 4;
/// PMC0.fr: nothing counts.
const FREEZE: u64 = 1;
/// The bits of a counter, the overflow bit above them.
const BITS: u32 = 47;

/// Which counters count, and from when.
#[derive(Default)]
pub struct Monitor {
    /// What each counter counts at the moment.
    counting: [Option<Event>; COUNT],
    /// What was counted and is not in the registers yet.
    pending: [u64; COUNT],
    seen: Counters,
}

impl Monitor {
    /// Whether any counter counts.
    pub fn is_counting(&self) -> bool {
        self.counting.iter().any(Option::is_some)
    }

    /// Takes up what happened since the last call, under the configuration that held; then looks at the processor's
    /// configuration anew.
    pub fn update(&mut self, processor: &Processor, now: &Counters) {
        for (event, pending) in self.counting.iter().zip(&mut self.pending) {
            if let Some(event) = event {
                // A group that forms may be booked differently once it has issued, but never to fewer cycles.
                *pending += now.get(*event).saturating_sub(self.seen.get(*event));
            }
        }
        self.seen = *now;
        self.counting = std::array::from_fn(|index| counted(processor, FIRST + index));
    }

    /// Puts what was counted into the data registers.
    pub fn store(&mut self, processor: &mut Processor) {
        for (index, pending) in self.pending.iter_mut().enumerate() {
            if *pending == 0 {
                continue;
            }
            let register = &mut processor.system.performance_data[FIRST + index];
            let before = *register & ((1 << BITS) - 1);
            let sum = before.wrapping_add(std::mem::take(pending));
            let value = sum & ((1 << BITS) - 1);
            let has_overflowed = sum >> BITS != 0;
            *register = sign_extended(value | u64::from(has_overflowed) << BITS);
            if has_overflowed {
                processor.system.performance_configuration[0] |= 1 << (FIRST + index);
            }
        }
    }
}

/// Bits above the overflow bit repeat it.
fn sign_extended(value: u64) -> u64 {
    ((value << (63 - BITS)) as i64 >> (63 - BITS)) as u64
}

/// What a counter counts in the processor's present state.
fn counted(processor: &Processor, counter: usize) -> Option<Event> {
    let configuration = &processor.system.performance_configuration;
    let control = configuration[counter];
    let enable = if control >> 6 & 1 != 0 { psr::PP } else { psr::UP };
    let level = u32::from(processor.privilege_level());
    let counts =
        configuration[0] & FREEZE == 0 && processor.status & enable != 0 && control >> level & 1 != 0;
    let code = (control >> 8 & 0xff) as u32 | ((control >> 16 & 0xf) as u32) << 16;
    counts.then(|| Event::by_code(code)).flatten()
}
