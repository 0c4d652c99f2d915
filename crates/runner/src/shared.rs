//! What drives a processor, and what whoever sums up looks at in between.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sidestep_ia64::{Driver, Exit, Processor};

/// A driver in use while its processor runs, and free otherwise.
pub(crate) struct Shared<D>(Arc<Mutex<D>>);

impl<D> Shared<D> {
    pub(crate) fn new(driver: D) -> Shared<D> {
        Shared(Arc::new(Mutex::new(driver)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, D> {
        // What a panicking thread has left is not looked at: the panic ends the run.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(feature = "translator")]
impl<D> Shared<D> {
    /// Whether nobody else holds it any more.
    pub(crate) fn is_left(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Whether both are the same.
    pub(crate) fn is(&self, other: &Shared<D>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<D> Clone for Shared<D> {
    fn clone(&self) -> Shared<D> {
        Shared(Arc::clone(&self.0))
    }
}

impl<D: Driver> Driver for Shared<D> {
    fn run(&mut self, processor: &mut Processor, limit: u64) -> Exit {
        self.lock().run(processor, limit)
    }
}

impl<D> std::fmt::Debug for Shared<D> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Shared")
    }
}
