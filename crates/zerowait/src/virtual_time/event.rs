//! The order of events: (time, phase, sequence number).
//!
//! Far events lie in a heap. Those of the present moment lie in one first-in, first-out lane for each phase:
//! whatever is added to the present has a later sequence number than what is there, so the lanes need no
//! comparison.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use crate::attributes::Phase;
use crate::continuation::Continuation;
use crate::time::Time;

/// The phases in their order, to index lanes by.
const PHASES: [Phase; Phase::COUNT] = [
    Phase::Free,
    Phase::Device,
    Phase::Run,
    Phase::Retry,
    Phase::Observe,
];

#[derive(Debug)]
struct Event {
    time: Time,
    phase: Phase,
    sequence: u64,
    continuation: Continuation,
}

impl Event {
    fn key(&self) -> (Time, Phase, u64) {
        (self.time, self.phase, self.sequence)
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// All events of one partition that have not happened.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    now: Time,
    present: [VecDeque<Continuation>; Phase::COUNT],
    in_present: usize,
    future: BinaryHeap<Reverse<Event>>,
    sequence: u64,
    /// Whether `now` is being worked on, so that what is due at it goes to the present.
    begun: bool,
}

impl EventQueue {
    pub(super) fn now(&self) -> Time {
        self.now
    }

    pub(super) fn len(&self) -> usize {
        self.in_present + self.future.len()
    }

    /// Adds an event; one whose time has passed happens now.
    pub(super) fn add(&mut self, time: Time, phase: Phase, continuation: Continuation) {
        if self.begun && time <= self.now {
            self.present[phase as usize].push_back(continuation);
            self.in_present += 1;
            return;
        }
        self.sequence += 1;
        self.future.push(Reverse(Event {
            time,
            phase,
            sequence: self.sequence,
            continuation,
        }));
    }

    /// When the next event happens.
    pub(super) fn next_time(&self) -> Option<Time> {
        if self.in_present > 0 {
            return Some(self.now);
        }
        self.future.peek().map(|Reverse(event)| event.time)
    }

    /// Takes the next event if it happens before `end`; its phase, and whether it is the first of its moment.
    pub(super) fn next(&mut self, end: Time) -> Option<(Phase, Continuation, bool)> {
        let mut new_moment = false;
        if self.in_present == 0 {
            self.advance(end)?;
            new_moment = true;
        }
        for phase in PHASES {
            if let Some(continuation) = self.present[phase as usize].pop_front() {
                self.in_present -= 1;
                return Some((phase, continuation, new_moment));
            }
        }
        unreachable!("the present was counted to be not empty")
    }

    /// Moves on to the next moment before `end` at which something happens.
    fn advance(&mut self, end: Time) -> Option<()> {
        let time = self.next_time().filter(|time| *time < end)?;
        assert!(time >= self.now, "time goes forward");
        self.now = time;
        self.begun = true;
        while self
            .future
            .peek()
            .is_some_and(|Reverse(event)| event.time == time)
        {
            let Reverse(event) = self.future.pop().expect("peeked");
            self.present[event.phase as usize].push_back(event.continuation);
            self.in_present += 1;
        }
        Some(())
    }

    /// Everything that has not happened, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Continuation> {
        let future = self.future.iter().map(|Reverse(event)| &event.continuation);
        self.present.iter().flatten().chain(future)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numbered(number: u64) -> Continuation {
        Continuation {
            words: [number, 0, 0, 0],
            ..Continuation::default()
        }
    }

    proptest! {
        /// Against a list that is sorted by the full key for each step.
        #[test]
        #[cfg_attr(miri, ignore = "arithmetic without unsafe code, and slow there")]
        fn events_happen_by_time_then_phase_then_sequence(
            additions in proptest::collection::vec((0u64..6, 0usize..Phase::COUNT, 0usize..3), 1..60)
        ) {
            let mut queue = EventQueue::default();
            let mut model: Vec<(Time, Phase, u64)> = Vec::new();
            let mut now = Time(0);
            for (number, (delay, phase, takes)) in additions.into_iter().enumerate() {
                let (time, phase) = (now + delay, PHASES[phase]);
                queue.add(time, phase, numbered(number as u64));
                model.push((time, phase, number as u64));
                for _ in 0..takes {
                    model.sort_unstable();
                    let expected = (!model.is_empty()).then(|| model.remove(0));
                    let taken = queue.next(Time(u64::MAX)).map(|(phase, c, _)| (queue.now(), phase, c.words[0]));
                    prop_assert_eq!(taken, expected);
                    now = queue.now();
                }
                prop_assert_eq!(queue.len(), model.len());
            }
        }
    }
}
