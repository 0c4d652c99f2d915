//! Calls that a program's environment serves while the processor runs.
//!
//! Linux/ia64 has light-weight system calls ("fsyscalls"), which leave most of the program's state where it is. Here
//! they are those for which a run need not end: the environment is asked at the `break`, and the program goes on
//! behind it.

use std::sync::Arc;

use crate::fault::FaultKind;
use crate::processor::Processor;

/// The registers that a call's result goes to.
const RESULT: u8 = 8;
const FAILURE: u8 = 10;

/// Serves light-weight calls.
pub trait LightCalls: Send + Sync {
    /// Performs the call for which a program has executed `break immediate`, and answers what goes to r8 and r10;
    /// `None` where it is no light-weight one, with nothing done: it ends the run as every `break` does.
    ///
    /// It neither sleeps nor changes what is mapped, since the processor counts as running meanwhile.
    fn perform(&self, immediate: u64, processor: &Processor) -> Option<[u64; 2]>;
}

impl Processor {
    /// Sets who serves light-weight calls; at first nobody does. They do not retire, like all that end a run.
    pub fn set_light_calls(&mut self, calls: Option<Arc<dyn LightCalls>>) {
        self.light_calls = calls;
    }

    /// Serves the call that was just raised, if it is a light-weight one; answers whether it was.
    pub(crate) fn serve_light_call(&mut self) -> bool {
        let (Some(calls), Some(fault)) = (&self.light_calls, &self.raised) else {
            return false;
        };
        if fault.kind != FaultKind::Break {
            return false;
        }
        let Some([result, failure]) = calls.perform(fault.immediate, self) else {
            return false;
        };
        self.raised = None;
        self.general.set(RESULT, result);
        self.general.set(FAILURE, failure);
        self.skip_instruction();
        true
    }
}
