//! A snapshot of all counters.

use std::fmt;
use std::ops::{AddAssign, Sub};

use super::event::Event;
use super::stall::{self, Row, Stall};
use super::unit_masks::SUMS;

/// The values of all events at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    values: [u64; Event::COUNT],
    booked: [u64; Stall::COUNT],
    issue_cycles: u64,
}

impl Default for Counters {
    fn default() -> Self {
        Counters {
            values: [0; Event::COUNT],
            booked: [0; Stall::COUNT],
            issue_cycles: 0,
        }
    }
}

impl Counters {
    /// Puts the sums together.
    ///
    /// # Panics
    /// If a cycle is in no leaf of the tree, or in two.
    pub(crate) fn new(
        mut values: [u64; Event::COUNT],
        booked: [u64; Stall::COUNT],
        issue_cycles: u64,
        cycles: u64,
    ) -> Counters {
        for (row, value) in stall::values(&booked) {
            values[row.event as usize] = value;
        }
        let value = |event: Event| values[event as usize];
        let bubbles = value(Event::BackEndBubbleAll);
        assert_eq!(issue_cycles + bubbles, cycles, "every cycle is in one leaf");
        let front_end = value(Event::BackEndBubbleFrontEnd);
        let sums = [
            (Event::CpuCycles, cycles),
            (
                Event::BackEndBubbleL1dFpuRse,
                value(Event::L1dFpuAll) + value(Event::RseAll),
            ),
            (Event::DispersalStalled, bubbles - front_end),
        ];
        for (event, sum) in sums {
            values[event as usize] = sum;
        }
        for (event, ..) in SUMS {
            values[*event as usize] = event.parts().of(&values);
        }
        Counters {
            values,
            booked,
            issue_cycles,
        }
    }

    /// The count of an event.
    pub fn get(&self, event: Event) -> u64 {
        self.values[event as usize]
    }

    /// Cycles in which something was issued: the number of issue groups.
    pub fn issue_cycles(&self) -> u64 {
        self.issue_cycles
    }

    /// Bubbles by cause.
    pub fn booked(&self) -> &[u64; Stall::COUNT] {
        &self.booked
    }

    /// Adds bubbles of one cause, for sums over a part of a timeline.
    pub fn book(&mut self, stall: Stall, bubbles: u64) {
        self.booked[stall as usize] += bubbles;
        for (row, value) in stall::values(&self.booked) {
            self.values[row.event as usize] = value;
        }
    }

    /// Everything that is counted, for another process of the same program: see [`Counters::from_numbers`].
    pub fn to_numbers(&self) -> Vec<u64> {
        let counted = self.values.iter().chain(&self.booked);
        counted.copied().chain([self.issue_cycles]).collect()
    }

    /// The counters whose numbers these are; `None` if there are more or fewer than there are counters.
    pub fn from_numbers(numbers: &[u64]) -> Option<Counters> {
        let (values, rest) = numbers.split_first_chunk()?;
        let (booked, rest) = rest.split_first_chunk()?;
        let [issue_cycles] = *rest else {
            return None;
        };
        Some(Counters {
            values: *values,
            booked: *booked,
            issue_cycles,
        })
    }

    /// The tree of bubbles with its values.
    pub fn tree(&self) -> Vec<(Row, u64)> {
        stall::values(&self.booked)
    }

    fn combine(mut self, other: Counters, combine: impl Fn(u64, u64) -> u64) -> Counters {
        for (mine, others) in self.values.iter_mut().zip(other.values) {
            *mine = combine(*mine, others);
        }
        for (mine, others) in self.booked.iter_mut().zip(other.booked) {
            *mine = combine(*mine, others);
        }
        self.issue_cycles = combine(self.issue_cycles, other.issue_cycles);
        self
    }
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        *self = self.combine(other, |mine, others| mine + others);
    }
}

impl Sub for Counters {
    type Output = Counters;

    fn sub(self, other: Counters) -> Counters {
        self.combine(other, |mine, others| mine - others)
    }
}

/// Cycles, instructions per cycle, and the tree of bubbles without its empty rows.
impl fmt::Display for Counters {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cycles = self.get(Event::CpuCycles);
        let retired = self.get(Event::InstructionsRetired);
        let hundredths = (retired * 100).checked_div(cycles).unwrap_or(0);
        writeln!(out, "{cycles:>16}  {}", Event::CpuCycles.name())?;
        writeln!(out, "{retired:>16}  {}", Event::InstructionsRetired.name())?;
        let (whole, part) = (hundredths / 100, hundredths % 100);
        writeln!(
            out,
            "{:>16}  instructions per cycle",
            format!("{whole}.{part:02}")
        )?;
        writeln!(out, "{:>16}  issue cycles", self.issue_cycles)?;
        for (row, value) in self.tree() {
            if value > 0 || row.depth == 0 {
                let indent = usize::from(row.depth) * 2;
                let share = (value * 1000).checked_div(cycles).unwrap_or(0);
                let percent = format!("{}.{}%", share / 10, share % 10);
                writeln!(out, "{value:>16}  {:indent$}{}  {percent}", "", row.event.name())?;
            }
        }
        Ok(())
    }
}
