//! Samples: every so many events, or every so many cycles, where one happened and what is known of it.
//!
//! A [`Sampler`] watches any number of things at once, each of them a [`Selection`] with its [`Pace`]. A sample is
//! taken at the very instruction whose event completes a period, in front of nothing and late by nothing; of a cycle in
//! which nothing was issued that is the bundle that the bubble is booked to. Nothing is random: the same run gives the
//! same samples. Samples beyond [`SAMPLES_MAX`] are counted and not kept.

use std::num::NonZeroU64;

use super::event::Event;
use super::event_address::{Branched, Fetched, Loaded};
use super::selection::{Selection, Source};
use super::stall::Stall;

/// Samples kept of one selection on one processor.
pub const SAMPLES_MAX: usize = 1 << 20;

/// When a sample is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// At every so manieth event.
    Events(NonZeroU64),
    /// At the first event after every so many cycles.
    Cycles(NonZeroU64),
}

/// What is known of the event that a sample was taken at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The cycle.
    pub cycle: u64,
    /// The bundle.
    pub ip: u64,
    /// The slot; `None` of cycles, which belong to a whole bundle.
    pub slot: Option<u8>,
    /// How many events it stands for: those since the sample before.
    pub weight: u64,
    /// What the instruction referred to.
    pub address: Option<u64>,
    /// The load at which it was taken.
    pub load: Option<Loaded>,
    /// The fetch.
    pub fetch: Option<Fetched>,
    /// The branch.
    pub branch: Option<Branched>,
}

/// The samples of one selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// What is sampled.
    pub selection: Selection,
    /// When.
    pub pace: Pace,
    /// The samples, in the order of time.
    pub samples: Vec<Sample>,
    /// Samples that were not kept.
    pub lost: u64,
    /// How many events there were in all.
    pub events: u64,
    source: Source,
    /// Events since the last sample.
    pending: u64,
    /// What the counters said when they were looked at last.
    seen: u64,
    /// The cycle after which the next sample is due.
    due: u64,
}

impl Sampled {
    fn new(selection: Selection, pace: Pace) -> Sampled {
        Sampled {
            selection,
            pace,
            samples: Vec::new(),
            lost: 0,
            events: 0,
            source: selection.source(),
            pending: 0,
            seen: 0,
            due: 0,
        }
    }

    /// Takes up `events` that have happened where `sample` says.
    #[inline]
    fn happened(&mut self, events: u64, sample: &Sample) {
        if events == 0 {
            return;
        }
        self.events += events;
        self.pending += events;
        let weight = match self.pace {
            Pace::Events(period) => self.pending - self.pending % period,
            Pace::Cycles(_) if sample.cycle < self.due => 0,
            Pace::Cycles(interval) => {
                self.due = (sample.cycle / interval + 1) * interval.get();
                self.pending
            }
        };
        if weight > 0 {
            self.pending -= weight;
            self.take(Sample { weight, ..*sample });
        }
    }

    #[cold]
    fn take(&mut self, sample: Sample) {
        if self.samples.len() < SAMPLES_MAX {
            self.samples.push(sample);
        } else {
            self.lost += 1;
        }
    }
}

/// Takes samples on one processor.
#[derive(Clone, Debug, Default)]
pub struct Sampler {
    sampled: Vec<Sampled>,
    /// What is known of the instruction that retires next.
    load: Option<Loaded>,
    fetch: Option<Fetched>,
    branch: Option<Branched>,
    has_failed_check: bool,
}

impl Sampler {
    /// A sampler of some things, each at its pace.
    pub fn new(wanted: impl IntoIterator<Item = (Selection, Pace)>) -> Sampler {
        Sampler {
            sampled: wanted
                .into_iter()
                .map(|(selection, pace)| Sampled::new(selection, pace))
                .collect(),
            ..Sampler::default()
        }
    }

    /// What was sampled so far, in the order in which it was wanted.
    pub fn sampled(&self) -> &[Sampled] {
        &self.sampled
    }

    pub(crate) fn load(&mut self, load: &Loaded) {
        self.load = Some(*load);
    }

    pub(crate) fn fetched(&mut self, fetch: &Fetched) {
        self.fetch = Some(*fetch);
    }

    pub(crate) fn branch(&mut self, branch: &Branched) {
        self.branch = Some(*branch);
    }

    pub(crate) fn failed_check(&mut self) {
        self.has_failed_check = true;
    }

    /// An instruction has retired, or a reference interrupted, with the counters as they are then.
    pub(crate) fn retired(&mut self, mut sample: Sample, values: &[u64; Event::COUNT]) {
        sample.load = self.load.take();
        sample.fetch = self.fetch.take();
        sample.branch = self.branch.take();
        let has_failed_check = std::mem::take(&mut self.has_failed_check);
        for sampled in &mut self.sampled {
            let events = match sampled.source {
                Source::Cycles { .. } => continue,
                Source::Values(parts) => {
                    let now = parts.of(values);
                    let more = now - sampled.seen;
                    sampled.seen = now;
                    more
                }
                Source::Loads(wanted) => {
                    let is_load = sample.load.is_some_and(|load| wanted.want_load(&load));
                    u64::from(is_load || has_failed_check && wanted.want_failed_checks())
                }
                Source::Fetches(wanted) => u64::from(sample.fetch.is_some_and(|fetch| wanted.want(&fetch))),
                Source::Branches => u64::from(sample.branch.is_some()),
            };
            sampled.happened(events, &sample);
        }
    }

    /// A group has issued in a cycle, from the bundle at `ip` on, behind bubbles that each belong to a bundle.
    pub(crate) fn issued(&mut self, cycle: u64, ip: u64, bubbles: &[(Stall, u64, u64)]) {
        for sampled in &mut self.sampled {
            let Source::Cycles { issue, stalls } = sampled.source else {
                continue;
            };
            let place = |ip: u64| Sample {
                cycle,
                ip,
                ..Sample::default()
            };
            for (stall, length, owner) in bubbles {
                if stalls >> *stall as u32 & 1 != 0 {
                    sampled.happened(*length, &place(*owner));
                }
            }
            sampled.happened(u64::from(issue), &place(ip));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(name: &str, pace: Pace) -> Sampler {
        Sampler::new([(Selection::by_name(name).expect("a selection"), pace)])
    }

    fn every(events: u64) -> Pace {
        Pace::Events(NonZeroU64::new(events).expect("not zero"))
    }

    fn taken(sampler: &Sampler) -> Vec<(u64, u64, u64)> {
        let samples = sampler.sampled()[0].samples.iter();
        samples
            .map(|sample| (sample.cycle, sample.ip, sample.weight))
            .collect()
    }

    #[test]
    fn a_sample_is_taken_where_a_period_ends_and_stands_for_whole_periods() {
        let mut sampler = sampler("IA64_INST_RETIRED", every(3));
        let mut values = [0; Event::COUNT];
        for (cycle, retired) in [(1, 1), (2, 2), (3, 1), (4, 5)] {
            values[Event::InstructionsRetired as usize] += retired;
            let sample = Sample {
                cycle,
                ip: cycle << 4,
                ..Sample::default()
            };
            sampler.retired(sample, &values);
        }
        assert_eq!(taken(&sampler), [(2, 0x20, 3), (4, 0x40, 6)]);
        assert_eq!(sampler.sampled()[0].events, 9);
    }

    #[test]
    fn by_time_a_sample_stands_for_the_events_since_the_last() {
        let interval = NonZeroU64::new(10).expect("not zero");
        let mut sampler = sampler("IA64_INST_RETIRED", Pace::Cycles(interval));
        let mut values = [0; Event::COUNT];
        for cycle in [3, 9, 9, 21, 22, 30] {
            values[Event::InstructionsRetired as usize] += 1;
            let sample = Sample {
                cycle,
                ..Sample::default()
            };
            sampler.retired(sample, &values);
        }
        assert_eq!(taken(&sampler), [(3, 0, 1), (21, 0, 3), (30, 0, 2)]);
    }

    #[test]
    fn cycles_belong_to_the_bundles_they_are_booked_to() {
        let bubbles = [(Stall::General, 3, 0x20), (Stall::FrontEnd, 2, 0x30)];
        let mut all = sampler("CPU_CYCLES", every(1));
        all.issued(9, 0x40, &bubbles);
        assert_eq!(taken(&all), [(9, 0x20, 3), (9, 0x30, 2), (9, 0x40, 1)]);
        let mut operands = sampler("BE_EXE_BUBBLE.ALL", every(1));
        operands.issued(9, 0x40, &bubbles);
        assert_eq!(taken(&operands), [(9, 0x20, 3)]);
    }
}
