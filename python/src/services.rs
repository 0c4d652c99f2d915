//! Services of sidecores that are written in Python, asked by guests of modelled hosts.

use std::sync::Arc;

use pyo3::prelude::*;
use sidestep_experiments::sidecore::own_service::{MakeService, Served};
use sidestep_hypervisor::virtual_machine::{OwnServed, OwnService};

/// The experiment on a service: an object with a method `handle`, of which each run has a copy.
pub fn experiment(name: &str, service: Py<PyAny>) -> Served {
    let service = Arc::new(service);
    let make: MakeService = Box::new(move || {
        let copy = Python::attach(|py| {
            let copied = py.import("copy")?.call_method1("deepcopy", (service.bind(py),))?;
            Ok(copied.unbind())
        });
        match copy {
            Ok(copy) => Ok(Box::new(InPython(copy))),
            Err(error) => Err(said(error)),
        }
    });
    Served::new(Box::leak(name.to_owned().into_boxed_str()), make)
}

/// A service that is asked in Python.
struct InPython(Py<PyAny>);

impl OwnService for InPython {
    fn serve(&mut self, [number, second, third]: [u64; 3]) -> Result<OwnServed, String> {
        let asked = Python::attach(|py| {
            self.0
                .call_method1(py, "handle", (number, second, third))?
                .extract(py)
        });
        let (answer, cycles, lines) = asked.map_err(said)?;
        Ok(OwnServed {
            answer,
            cycles,
            lines,
        })
    }
}

/// What Python raised, in words.
fn said(error: PyErr) -> String {
    error.to_string()
}
