//! A machine, and a model of the Itanium 2's pipeline attached to each of its processors.
//!
//! [`execution`] runs it to its end. With a model the machine's time is the model's cycles: processors take turns by
//! cycles, the interval time counter and its timer follow them, and guest code that programs the performance monitor
//! counts what the model does.

pub mod execution;

use sidestep_ia64::{Driver, Exit, Processor};
use sidestep_itanium2::{Parameters, Pipeline};

/// Drives a processor and counts its cycles.
pub struct Timed {
    pipeline: Pipeline,
    /// The model's cycles when the machine was told last.
    told: u64,
}

impl Timed {
    /// One processor, with cold caches.
    pub fn new(parameters: Parameters) -> Timed {
        let mut pipeline = Pipeline::new(parameters);
        pipeline.drive_clock();
        Timed { pipeline, told: 0 }
    }

    /// As many as a machine has processors.
    pub fn each(parameters: &Parameters, processors: usize) -> Vec<Timed> {
        (0..processors).map(|_| Timed::new(parameters.clone())).collect()
    }

    /// Its pipeline: for profiles and timelines.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// The same, to change what it keeps.
    pub fn pipeline_mut(&mut self) -> &mut Pipeline {
        &mut self.pipeline
    }
}

impl Driver for Timed {
    fn run(&mut self, processor: &mut Processor, limit: u64) -> Exit {
        let exit = self.pipeline.run(processor, limit);
        advance_clock(processor, &mut self.pipeline);
        exit
    }

    fn elapsed(&mut self, _: u64) -> u64 {
        let now = self.pipeline.cycles();
        now - std::mem::replace(&mut self.told, now)
    }
}

/// Moves a processor's interval time counter on to its pipeline's cycles.
pub(crate) fn advance_clock(processor: &mut Processor, pipeline: &mut Pipeline) {
    if let Some(cycles) = pipeline.take_clock() {
        processor.advance_interval_time(cycles);
    }
}
