//! What runs a processor until something needs its environment: the choice that executors are compiled for.
//!
//! Programs, machines and virtual machines are each generic over a [`Driver`], or hold one: what is not asked for costs
//! nothing.

use std::any::Any;
use std::fmt::{Debug, Display};

use super::observer::Observer;
use super::run::Exit;
use crate::processor::Processor;

/// Runs one processor. Whoever made a driver knows it again as what it is.
pub trait Driver: Any {
    /// Executes at most `limit` instructions.
    fn run(&mut self, processor: &mut Processor, limit: u64) -> Exit;

    /// Executes at most `instructions_max` instructions, up to where `ticks` of the interval time counter have gone by:
    /// exactly, if a tick is an instruction, else about.
    fn run_for(&mut self, processor: &mut Processor, ticks: u64, instructions_max: u64) -> Exit {
        self.run(processor, ticks.min(instructions_max))
    }

    /// How much time the last run took, in which `retired` instructions retired, in ticks of the interval time counter:
    /// a tick an instruction, unless the driver knows better.
    fn elapsed(&mut self, retired: u64) -> u64 {
        retired
    }
}

/// Makes a driver for each processor of a machine or of a host. Shown as text it tells what its drivers have done.
pub trait Drivers: Debug + Display + Send + Sync {
    /// The driver of one more processor.
    fn driver(&self) -> Box<dyn Driver + Send>;

    /// Ends the host threads that they have of their own, which may begin again later.
    fn rest(&self) {}
}

/// Executes and nothing else.
#[derive(Clone, Copy, Debug, Default)]
pub struct Untimed;

impl Driver for Untimed {
    fn run(&mut self, processor: &mut Processor, limit: u64) -> Exit {
        processor.run(limit)
    }
}

/// Tells an observer of everything: a trace, a checker.
#[derive(Clone, Debug, Default)]
pub struct Observed<O>(pub O);

impl<O: Observer + 'static> Driver for Observed<O> {
    fn run(&mut self, processor: &mut Processor, limit: u64) -> Exit {
        processor.run_observed(limit, &mut self.0)
    }
}

impl<D: Driver + ?Sized + 'static> Driver for Box<D> {
    fn run(&mut self, processor: &mut Processor, limit: u64) -> Exit {
        (**self).run(processor, limit)
    }

    fn run_for(&mut self, processor: &mut Processor, ticks: u64, instructions_max: u64) -> Exit {
        (**self).run_for(processor, ticks, instructions_max)
    }

    fn elapsed(&mut self, retired: u64) -> u64 {
        (**self).elapsed(retired)
    }
}
