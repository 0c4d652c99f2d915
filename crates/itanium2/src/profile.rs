//! Cycles by place: what was issued where, and which bubbles each bundle caused.

use std::collections::BTreeMap;

use crate::dispersal::Assigned;
use crate::pmu::stall::Stall;

/// What one bundle came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// How often its first issued instruction issued.
    pub executions: u64,
    /// Cycles that began with it: issue groups.
    pub issue_cycles: u64,
    /// Bubbles it caused, or waited in, by cause.
    pub bubbles: [u64; Stall::COUNT],
}

impl Default for Place {
    fn default() -> Self {
        Place {
            executions: 0,
            issue_cycles: 0,
            bubbles: [0; Stall::COUNT],
        }
    }
}

impl Place {
    /// All cycles of the place.
    pub fn cycles(&self) -> u64 {
        self.issue_cycles + self.bubbles.iter().sum::<u64>()
    }

    /// Adds another place's numbers.
    pub fn add(&mut self, other: &Place) {
        self.executions += other.executions;
        self.issue_cycles += other.issue_cycles;
        for (mine, others) in self.bubbles.iter_mut().zip(other.bubbles) {
            *mine += others;
        }
    }

    /// The cause of most of its bubbles.
    pub fn worst(&self) -> Option<(Stall, u64)> {
        Stall::ALL
            .iter()
            .map(|stall| (*stall, self.bubbles[*stall as usize]))
            .filter(|(_, count)| *count > 0)
            .max_by_key(|(stall, count)| (*count, std::cmp::Reverse(*stall)))
    }
}

/// Cycles by the address of bundles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The places, in the order of their addresses.
    pub places: BTreeMap<u64, Place>,
}

impl Profile {
    /// Adds another profile, of another thread.
    pub fn add(&mut self, other: &Profile) {
        for (address, place) in &other.places {
            self.places.entry(*address).or_default().add(place);
        }
    }
}

/// An instruction in the table of cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issued {
    /// Address of its bundle.
    pub ip: u64,
    /// Its slot.
    pub slot: u8,
    /// Its port.
    pub port: Assigned,
    /// Whether its predicate was on.
    pub executed: bool,
}

/// One cycle's issue, with the bubbles before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// The cycle.
    pub cycle: u64,
    /// The bubbles before it and the bundle that each is booked to.
    pub bubbles: Vec<(Stall, u64, u64)>,
    /// What issued.
    pub instructions: Vec<Issued>,
}
