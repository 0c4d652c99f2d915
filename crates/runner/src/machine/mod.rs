//! A machine, and a model of the Itanium 2's pipeline attached to each of its processors.
//!
//! [`execution`] runs it to its end. With a model the machine's time is the model's cycles: processors take turns by
//! cycles, the interval time counter and its timer follow them, and guest code that programs the performance monitor
//! counts what the model does.

pub mod execution;

use sidestep_ia64::{Driver, Exit, Processor};
use sidestep_itanium2::{ISSUED_MAX, Parameters, Pipeline};

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

    /// Ends between two blocks, as a machine's time hardly ever ends where a block does: what is decoded and known of
    /// whole blocks would be of little use otherwise.
    fn run_for(&mut self, processor: &mut Processor, ticks: u64, instructions_max: u64) -> Exit {
        let ticks = ticks.min(processor.ticks_to_timer().unwrap_or(u64::MAX));
        self.pipeline
            .halt_at(self.pipeline.cycles().saturating_add(ticks));
        // What cannot even fetch its handlers comes to no other end than this.
        let issued_max = ticks.saturating_mul(ISSUED_MAX as u64);
        let exit = self.run(processor, instructions_max.min(issued_max));
        self.pipeline.halt_at(u64::MAX);
        match exit {
            Exit::Halted => Exit::Attention,
            exit => exit,
        }
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
