//! What arrives at a virtual processor: answers to its requests and interrupts, each with the time from which it can
//! be seen.
//!
//! What waits is bounded, whatever guests do: a processor has as many requests under way as its page has slots, its
//! timers are counted, and of interrupts with one vector that nobody takes one is kept, as in an interrupt register.

use std::collections::VecDeque;

use super::interface::{Shown, Signal};
use crate::cycle::Cycle;
use crate::sidecall::page;
use crate::sidecall::request::Answer;

/// The most timers that wait for one processor.
const TIMERS_MAX: usize = 64;
/// From so many arrivals on, an interrupt whose vector waits already is one with it.
const MERGED_FROM: usize = 256;

/// Something that a virtual processor will see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// An answer to a request.
    Answer {
        slot: usize,
        answer: Answer,
        generation: u64,
    },
    /// An interrupt.
    Interrupt { vector: u8 },
    /// A signal of the card's, and what its guest sees of it.
    Signal { shown: Shown, signal: Signal },
}

/// What a processor owes the core that it has, for an interrupt of the card that came there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Debt {
    /// From when on.
    pub time: Cycle,
    /// How many cycles.
    pub cycles: u64,
    /// Whom the interrupt is for.
    pub whom: Whom,
}

/// Whom an interrupt of the card is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whom {
    /// That is not known yet: the rest is owed next.
    Unknown,
    /// The guest that has the core.
    Itself,
    /// Others.
    Others,
}

/// What arrives at one virtual processor, and what it has asked for.
#[derive(Default)]
pub(super) struct Mailbox {
    /// Ordered by time; what came first comes first.
    arrivals: VecDeque<(Cycle, Arrival)>,
    /// What is owed to the core for interrupts, ordered by time.
    debts: VecDeque<Debt>,
    /// Counts the request pages that it had.
    pub generation: u64,
}

impl Mailbox {
    /// Adds what can be seen from `time` on.
    pub fn add(&mut self, time: Cycle, arrival: Arrival) {
        let is_merged = self.arrivals.len() >= MERGED_FROM
            && matches!(arrival, Arrival::Interrupt { .. })
            && self.arrivals.iter().any(|(_, waiting)| *waiting == arrival);
        if is_merged {
            return;
        }
        let place = self.arrivals.partition_point(|(earlier, _)| *earlier <= time);
        self.arrivals.insert(place, (time, arrival));
    }

    /// Adds a signal of the card's. One that nobody has seen yet is one with it: the bit in the interrupt register that
    /// it asks for is one.
    pub fn add_signal(&mut self, time: Cycle, shown: Shown, signal: Signal) {
        let waiting = self.arrivals.iter_mut().find_map(|(_, arrival)| match arrival {
            Arrival::Signal { shown: other, signal } if *other == shown => Some(signal),
            _ => None,
        });
        match waiting {
            Some(waiting) => waiting.is_redundant &= signal.is_redundant,
            None => self.add(time, Arrival::Signal { shown, signal }),
        }
    }

    /// Whether a signal of the card's is among what arrives.
    pub fn has_signal(&self) -> bool {
        let mut arrivals = self.arrivals.iter();
        arrivals.any(|(_, arrival)| matches!(arrival, Arrival::Signal { .. }))
    }

    /// Owes something to the core.
    pub fn owe(&mut self, debt: Debt) {
        let place = self.debts.partition_point(|earlier| earlier.time <= debt.time);
        self.debts.insert(place, debt);
    }

    /// When something is owed next.
    pub fn next_debt(&self) -> Option<Cycle> {
        self.debts.front().map(|debt| debt.time)
    }

    /// Takes the next that is owed at `now`.
    pub fn take_due(&mut self, now: Cycle) -> Option<Debt> {
        self.next_debt().filter(|time| *time <= now)?;
        self.debts.pop_front()
    }

    /// Takes all that is owed, whenever.
    pub fn take_debts(&mut self) -> Vec<Debt> {
        std::mem::take(&mut self.debts).into()
    }

    /// When the next can be seen.
    pub fn next(&self) -> Option<Cycle> {
        self.arrivals.front().map(|(time, _)| *time)
    }

    /// Takes the next, if it can be seen at `now`.
    pub fn take(&mut self, now: Cycle) -> Option<Arrival> {
        self.next().filter(|time| *time <= now)?;
        self.arrivals.pop_front().map(|(_, arrival)| arrival)
    }

    /// Whether nothing arrives.
    pub fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
    }

    /// Whether another timer may wait.
    pub fn has_room_for_timer(&self) -> bool {
        self.arrivals.len() < TIMERS_MAX + page::SLOTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_come_in_the_order_of_their_times_and_not_before() {
        let mut mailbox = Mailbox::default();
        for (time, vector) in [(30, 1), (10, 2), (20, 3), (10, 4)] {
            mailbox.add(Cycle(time), Arrival::Interrupt { vector });
        }
        assert_eq!(mailbox.take(Cycle(9)), None);
        let mut taken = Vec::new();
        while let Some(Arrival::Interrupt { vector }) = mailbox.take(Cycle(25)) {
            taken.push(vector);
        }
        assert_eq!(taken, [2, 4, 3]);
        assert_eq!(mailbox.next(), Some(Cycle(30)));
    }

    #[test]
    fn a_flood_of_interrupts_that_nobody_takes_stays_bounded_and_loses_no_vector() {
        let mut mailbox = Mailbox::default();
        for time in 0..100_000 {
            mailbox.add(Cycle(time), Arrival::Interrupt { vector: time as u8 });
        }
        assert!(mailbox.arrivals.len() <= 2 * MERGED_FROM);
        let mut seen = [false; 256];
        while let Some(Arrival::Interrupt { vector }) = mailbox.take(Cycle::NEVER) {
            seen[usize::from(vector)] = true;
        }
        assert!(seen.iter().all(|seen| *seen));
    }
}
