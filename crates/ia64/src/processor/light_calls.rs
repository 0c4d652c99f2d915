//! Calls that a program's environment serves while the processor runs.
//!
//! Linux/ia64 has light-weight system calls ("fsyscalls"), which leave most of the program's state where it is. Here
//! they are those for which a run need not end: the environment is asked at the `break`, and the program goes on
//! behind it. Where programs call a gate for them, as C libraries call Linux's gate page, it is asked at that call
//! already: then nothing of the gate executes, and what it would have left is left.

use std::sync::Arc;

use crate::fault::FaultKind;
use crate::processor::Processor;

/// The registers that a call's result goes to.
const RESULT: u8 = 8;
const FAILURE: u8 = 10;
/// What retires of a gate's code: the `nop` and the `br.ret`. A `break` that is served does not.
const RETIRED_IN_GATE: u64 = 2;
/// What no branch leads to.
pub(super) const NO_GATE: u64 = u64::MAX;

/// Code that does nothing but `break immediate`, `nop` and `br.ret` by [`Gate::LINK`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Where it is.
    pub address: u64,
    /// The immediate of its `break`.
    pub immediate: u64,
}

impl Gate {
    /// The branch register that it returns by.
    pub const LINK: u8 = 6;
}

/// Serves light-weight calls.
pub trait LightCalls: Send + Sync {
    /// Performs the call for which a program has executed `break immediate`, and answers what goes to r8 and r10;
    /// `None` where it is no light-weight one, with nothing done: it ends the run as every `break` does. The call's
    /// arguments are the outputs of the current frame.
    ///
    /// It neither sleeps nor changes what is mapped, since the processor counts as running meanwhile.
    fn perform(&self, immediate: u64, processor: &Processor) -> Option<[u64; 2]>;

    /// The gate by which programs reach their calls, if there is one.
    fn gate(&self) -> Option<Gate> {
        None
    }
}

impl Processor {
    /// Sets who serves light-weight calls; at first nobody does. They do not retire, like all that end a run.
    pub fn set_light_calls(&mut self, calls: Option<Arc<dyn LightCalls>>) {
        self.light_calls = calls;
    }

    /// Opens the gate for a run, or closes it: the end of a run of so many instructions may be inside it.
    pub(super) fn open_gate(&mut self, limit: u64) {
        let gate = self.light_calls.as_ref().and_then(|calls| calls.gate());
        self.gate = match gate {
            Some(gate) if limit == u64::MAX => gate.address,
            _ => NO_GATE,
        };
    }

    /// Serves the call for which a program is about to call the gate; answers whether it is a light-weight one, for
    /// which the program has been in the gate then and comes back. Registers that the call itself writes are left.
    #[inline(never)]
    pub(super) fn serve_call_of_gate(&mut self) -> bool {
        let Some(calls) = &self.light_calls else {
            return false;
        };
        // The gate would see the outputs where they are without rotation.
        let Some(gate) = calls.gate().filter(|_| self.frame.rename_general == 0) else {
            return false;
        };
        let Some(answer) = calls.perform(gate.immediate, self) else {
            return false;
        };
        self.answer_light_call(answer);
        self.retired += RETIRED_IN_GATE;
        true
    }

    /// Serves the call that was just raised, if it is a light-weight one; answers whether it was.
    pub(crate) fn serve_light_call(&mut self) -> bool {
        let (Some(calls), Some(fault)) = (&self.light_calls, &self.raised) else {
            return false;
        };
        if fault.kind != FaultKind::Break {
            return false;
        }
        let Some(answer) = calls.perform(fault.immediate, self) else {
            return false;
        };
        self.raised = None;
        self.answer_light_call(answer);
        self.skip_instruction();
        true
    }

    fn answer_light_call(&mut self, [result, failure]: [u64; 2]) {
        self.general.set(RESULT, result);
        self.general.set(FAILURE, failure);
    }
}
