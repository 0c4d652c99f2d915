//! Functions of Python that are called while a machine runs: before each block, and when an interruption is taken.
//!
//! A machine without them is run without this observer, and pays nothing for them.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use sidestep_ia64::encoding::{DecodedSlot, Instruction};
use sidestep_ia64::execution::{Dynamic, Event, Observer, Permission, Place, Registers};

/// What is called; each answers whether the machine is to stop.
pub struct Callbacks {
    /// With the processor and the address of the next instruction.
    block: Option<Py<PyAny>>,
    /// With the processor, the interruption in words, the address it was taken at, and its handler's.
    interruption: Option<Py<PyAny>>,
    /// What the first that failed has raised.
    raised: Mutex<Option<PyErr>>,
}

impl Callbacks {
    /// Before each block, and at each interruption.
    pub fn new(block: Option<Py<PyAny>>, interruption: Option<Py<PyAny>>) -> Callbacks {
        Callbacks {
            block,
            interruption,
            raised: Mutex::default(),
        }
    }

    /// Whether there is any.
    pub fn are_given(&self) -> bool {
        self.block.is_some() || self.interruption.is_some()
    }

    /// What one of them has raised.
    pub fn raised(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Calls a function; whether the machine is to stop.
    fn call<A: for<'py> pyo3::call::PyCallArgs<'py>>(&self, function: &Py<PyAny>, arguments: A) -> bool {
        let answer = Python::attach(|py| function.bind(py).call1(arguments)?.is_truthy());
        answer.unwrap_or_else(|error| {
            let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
            raised.get_or_insert(error);
            true
        })
    }
}

/// The observer of one processor.
pub struct Calling {
    processor: usize,
    callbacks: Arc<Callbacks>,
    halts: bool,
}

impl Calling {
    /// Of a processor by its number.
    pub fn new(processor: usize, callbacks: Arc<Callbacks>) -> Calling {
        Calling {
            processor,
            callbacks,
            halts: false,
        }
    }
}

impl Observer for Calling {
    type Static = ();

    fn decode(&mut self, _: &Instruction, _: &DecodedSlot) {}

    fn retired(&mut self, (): &(), _: &Dynamic<'_>) {}

    fn event(&mut self, event: &Event<'_>) {
        if let (Event::Interrupted(taken), Some(function)) = (event, &self.callbacks.interruption) {
            let said = taken.fault.to_string();
            self.halts |= self
                .callbacks
                .call(function, (self.processor, said, taken.ip, taken.handler));
        }
    }

    fn permits(&mut self, Place { ip, slot }: Place, _: Range<u64>) -> Permission {
        if let (false, Some(function)) = (self.halts, &self.callbacks.block) {
            self.halts = self
                .callbacks
                .call(function, (self.processor, ip | u64::from(slot)));
        }
        match self.halts {
            true => Permission::Halt,
            false => Permission::Block,
        }
    }

    fn follows(&mut self, _: Place, _: Option<&()>, _: Registers<'_>) -> bool {
        self.callbacks.interruption.is_some()
    }
}
