//! An observer that its processor runs under, and that whoever sums up looks at in between.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sidestep_ia64::execution::Observer;
use sidestep_ia64::{Driver, Exit, Processor};

/// An observer in use while its processor runs, and free otherwise.
pub(crate) struct Shared<O>(Arc<Mutex<O>>);

impl<O> Shared<O> {
    pub(crate) fn new(observer: O) -> Shared<O> {
        Shared(Arc::new(Mutex::new(observer)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, O> {
        // What a panicking thread has left is not looked at: the panic ends the run.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<O> Clone for Shared<O> {
    fn clone(&self) -> Shared<O> {
        Shared(Arc::clone(&self.0))
    }
}

impl<O: Observer> Driver for Shared<O> {
    fn run(&mut self, processor: &mut Processor, limit: u64) -> Exit {
        processor.run_observed(limit, &mut *self.lock())
    }
}

impl<O> std::fmt::Debug for Shared<O> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Shared")
    }
}
