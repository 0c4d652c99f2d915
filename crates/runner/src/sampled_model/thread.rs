//! One thread of a program, in turns on the model and off it.

use sidestep_ia64::{Driver, Exit, Processor};
use sidestep_itanium2::{Counters, Pipeline};

use super::{FIRST, Sampling};

/// What part of a period comes, and then the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// On the model, counted as what it is.
    First,
    /// Off the model, before the sample.
    Before,
    /// On the model, not counted.
    Warming,
    /// On the model, counted.
    Unit,
    /// Off the model, to the end of the period.
    Behind,
}

pub(super) struct SampledThread {
    pipeline: Pipeline,
    /// What runs it between samples.
    between: Box<dyn Driver + Send>,
    sampling: Sampling,
    random: fastrand::Rng,
    part: Part,
    /// Instructions until it ends.
    left: u64,
    /// Those behind the sample, to the end of the period.
    behind: u64,
    /// The counters where the unit began.
    began: Counters,
    first: Option<Counters>,
    units: Vec<Counters>,
    retired: u64,
}

impl SampledThread {
    pub fn new(
        pipeline: Pipeline,
        between: Box<dyn Driver + Send>,
        sampling: Sampling,
        seed: u64,
    ) -> SampledThread {
        SampledThread {
            pipeline,
            between,
            sampling,
            random: fastrand::Rng::with_seed(seed),
            part: Part::First,
            left: FIRST,
            behind: 0,
            began: Counters::default(),
            first: None,
            units: Vec::new(),
            retired: 0,
        }
    }

    /// The counters of its beginning.
    pub fn first(&mut self) -> Counters {
        self.first.unwrap_or_else(|| self.pipeline.finish())
    }

    /// The counters of each unit that was completed.
    pub fn units(&self) -> &[Counters] {
        &self.units
    }

    /// How many instructions have retired.
    pub fn retired(&self) -> u64 {
        self.retired
    }

    /// Begins the next part that has instructions.
    fn go_on(&mut self) {
        while self.left == 0 {
            (self.part, self.left) = match self.part {
                Part::First => {
                    self.first = Some(self.pipeline.counters());
                    self.before()
                }
                Part::Before => {
                    self.pipeline.detach();
                    (Part::Warming, self.sampling.warm)
                }
                Part::Warming => {
                    self.began = self.pipeline.counters();
                    (Part::Unit, self.sampling.unit)
                }
                Part::Unit => {
                    self.units.push(self.pipeline.counters() - self.began);
                    (Part::Behind, self.behind)
                }
                Part::Behind => self.before(),
            };
        }
    }

    /// What goes before the sample of the next period.
    fn before(&mut self) -> (Part, u64) {
        let Sampling { period, warm, unit } = self.sampling;
        let room = period - warm - unit;
        let before = self.random.u64(0..=room);
        self.behind = room - before;
        (Part::Before, before)
    }
}

impl Driver for SampledThread {
    fn run(&mut self, processor: &mut Processor, limit: u64) -> Exit {
        let end = processor.instructions_retired().saturating_add(limit);
        loop {
            let before = processor.instructions_retired();
            let stretch = self.left.min(end - before);
            let exit = match self.part {
                Part::Before | Part::Behind => self.between.run(processor, stretch),
                Part::First | Part::Warming | Part::Unit => self.pipeline.run(processor, stretch),
            };
            let retired = processor.instructions_retired() - before;
            self.retired += retired;
            self.left = self.left.saturating_sub(retired);
            self.go_on();
            if exit != Exit::Limit || processor.instructions_retired() >= end {
                return exit;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use sidestep_ia64::execution::Untimed;
    use sidestep_itanium2::{Event, Parameters};

    use super::*;

    /// Drives the parts without a processor: how long each is.
    fn parts(sampling: Sampling, count: usize) -> Vec<(Part, u64)> {
        let pipeline = Pipeline::new(Parameters::default());
        let mut thread = SampledThread::new(pipeline, Box::new(Untimed), sampling, 7);
        let next = |_| {
            let part = (thread.part, thread.left);
            thread.left = 0;
            thread.go_on();
            part
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn every_period_has_one_unit_at_a_place_of_its_own() {
        let sampling = Sampling {
            period: 100_000,
            warm: 2_000,
            unit: 1_000,
        };
        let (first, parts) = (parts(sampling, 1)[0], parts(sampling, 4_001).split_off(1));
        assert_eq!(first, (Part::First, FIRST));
        let all: u64 = parts.iter().map(|(_, length)| length).sum();
        let units: Vec<&(Part, u64)> = parts.iter().filter(|(part, _)| *part == Part::Unit).collect();
        assert!(units.iter().all(|(_, length)| *length == 1_000));
        assert!(all.div_ceil(100_000).abs_diff(units.len() as u64) <= 1);
        let warm = parts.iter().filter(|(part, _)| *part == Part::Warming);
        assert!(warm.clone().all(|(_, length)| *length == 2_000) && warm.count().abs_diff(units.len()) <= 1);
        let mut before: Vec<u64> = parts
            .iter()
            .filter(|(part, _)| *part == Part::Before)
            .map(|(_, length)| *length)
            .collect();
        before.sort_unstable();
        assert!(before[before.len() / 4] < 40_000 && before[before.len() * 3 / 4] > 60_000);
    }

    #[test]
    fn a_period_without_a_gap_is_all_on_the_model() {
        let sampling = Sampling {
            period: 1_000,
            warm: 0,
            unit: 1_000,
        };
        let behind = parts(sampling, 50).split_off(1);
        assert!(behind.iter().all(|part| *part == (Part::Unit, 1_000)));
        let pipeline = Pipeline::new(Parameters::default());
        let mut thread = SampledThread::new(pipeline, Box::new(Untimed), sampling, 0);
        assert_eq!((thread.units().len(), thread.retired()), (0, 0));
        assert_eq!(thread.first().get(Event::CpuCycles), 0);
    }
}
