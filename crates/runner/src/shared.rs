//! A pipeline that its processor runs on, and that whoever sums up looks at in between.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sidestep_itanium2::Pipeline;

/// A pipeline in use while its processor runs, and free otherwise.
#[derive(Clone)]
pub(crate) struct SharedPipeline(Arc<Mutex<Pipeline>>);

impl SharedPipeline {
    pub(crate) fn new(pipeline: Pipeline) -> SharedPipeline {
        SharedPipeline(Arc::new(Mutex::new(pipeline)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Pipeline> {
        // What a panicking thread has left is not looked at: the panic ends the run.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for SharedPipeline {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Pipeline")
    }
}
