//! The front end: 32 bytes a cycle into a buffer of eight bundles.

use sidestep_ia64::execution::Translation as PhysicalAddresses;

use super::Pipeline;
use crate::memory::{Side, Space, Translation};
use crate::parameters::Cost;
use crate::pmu::event::Event;
use crate::pmu::event_address::Fetched;

/// Pairs of bundles that the instruction buffer holds.
const BUFFER_PAIRS: usize = 4;
/// No pair of bundles.
const NONE: u64 = u64::MAX;

/// Where the front end is.
pub(super) struct Fetch {
    /// The pair that was fetched last.
    pair: u64,
    /// When its bundles could be dispersed.
    available: u64,
    /// When each of the last pairs was dispersed, which made room in the buffer.
    dispersed: [u64; BUFFER_PAIRS],
    next: usize,
    is_redirected: bool,
}

impl Fetch {
    pub fn new(cycle: u64) -> Fetch {
        Fetch {
            pair: NONE,
            available: cycle,
            dispersed: [0; BUFFER_PAIRS],
            next: 0,
            is_redirected: true,
        }
    }

    /// The next instruction is not the one behind the last: a branch was taken.
    #[inline]
    pub fn redirect(&mut self) {
        self.pair = NONE;
        self.is_redirected = true;
    }

    #[inline]
    pub fn is_redirected(&self) -> bool {
        self.is_redirected
    }

    /// The front end loses cycles before the next fetch.
    pub fn resteer(&mut self, bubbles: u64) {
        self.available += bubbles;
    }

    /// Starts again with an empty buffer, whose first bundles can be dispersed behind `cycle`.
    pub fn restart(&mut self, cycle: u64) {
        self.redirect();
        self.available = cycle;
        self.dispersed = [0; BUFFER_PAIRS];
    }
}

impl Pipeline {
    /// When the bundle at `ip` can be dispersed.
    pub(super) fn fetch(&mut self, memory: &dyn PhysicalAddresses, ip: u64) -> u64 {
        self.fetch.is_redirected = false;
        let pair = ip >> 5;
        if pair == self.fetch.pair {
            return self.fetch.available;
        }
        self.fetch.pair = pair;
        let mut at = (self.fetch.available + 1).max(self.fetch.dispersed[self.fetch.next]);
        self.fetch.dispersed[self.fetch.next] = self.expected();
        self.fetch.next = (self.fetch.next + 1) % BUFFER_PAIRS;
        let space = Space {
            state: &self.seen,
            memory,
        };
        let translation = self
            .memory
            .translate(space, Side::Instruction, ip, &mut self.values);
        match translation {
            Translation::First => {}
            Translation::Second => at += self.parameters.cost(Cost::InstructionTlbTransfer),
            Translation::Walk(wait) => at += self.parameters.cost(Cost::Walk) + wait,
        }
        let more = self.memory.fetch(space, ip, &mut self.values);
        if more > 0 || translation != Translation::First {
            self.note_fetch(&Fetched {
                ip,
                latency: if more > 0 { more + 1 } else { 0 },
                translated: translation.by(),
            });
        }
        at += more;
        self.fetch.available = at;
        at
    }

    pub(super) fn note_fetch(&mut self, fetch: &Fetched) {
        let is_kept = self.performance_monitor.fetched(fetch);
        self.values[Event::InstructionEarEvents as usize] += u64::from(is_kept);
        if let Some(sampler) = &mut self.sampler {
            sampler.fetched(fetch);
        }
    }
}
