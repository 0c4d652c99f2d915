//! How a processor's instructions are executed: the choice that executors are compiled for.
//!
//! An executor is generic over its [`Driver`], one of which each processor has: what is not asked for costs nothing.

use sidestep_ia64::execution::Observer;
use sidestep_ia64::{Exit, Processor};

/// Why a driver came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driven {
    /// The processor came back.
    Exit(Exit),
    /// The driver wants the machine to halt here.
    Halted,
}

/// Executes the instructions of one processor.
pub trait Driver {
    /// Executes at most `limit` instructions.
    fn run(&mut self, processor: &mut Processor, limit: u64) -> Driven;

    /// How much of the machine's time the last run took, in which `retired` instructions retired: an instruction a
    /// tick, unless the driver knows better.
    fn elapsed(&mut self, retired: u64) -> u64 {
        retired
    }
}

/// Executes and nothing else.
#[derive(Clone, Copy, Debug, Default)]
pub struct Untimed;

impl Driver for Untimed {
    fn run(&mut self, processor: &mut Processor, limit: u64) -> Driven {
        Driven::Exit(processor.run(limit))
    }
}

/// Shows every retired instruction to an observer: a trace, a timing model.
#[derive(Clone, Debug, Default)]
pub struct Observed<O>(pub O);

impl<O: Observer> Driver for Observed<O> {
    fn run(&mut self, processor: &mut Processor, limit: u64) -> Driven {
        Driven::Exit(processor.run_observed(limit, &mut self.0))
    }
}
