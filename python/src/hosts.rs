//! Hosts with virtual machines, as TOML files describe them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sidestep_hypervisor::Cycle;
use sidestep_hypervisor::costs::HostCosts;
use sidestep_hypervisor::description::Description;
use sidestep_hypervisor::host::sidecores::locked;
use sidestep_hypervisor::host::{HostEnd, HostError};
use sidestep_hypervisor::virtual_machine::CoreModel;
use sidestep_itanium2::Parameters;
use sidestep_machine::description::parse;
use sidestep_runner::host::{ModelledCores, Occupancy};

use crate::attention::attending;
use crate::errors::{Error, error};
use crate::programs::named;

/// Cycles between two looks at whether the run is to stop.
const STRETCH_CYCLES: u64 = 5_000_000;

/// Adds what is here to the module.
pub fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Host>()?;
    module.add_function(wrap_pyfunction!(cost_table, module)?)
}

/// A table of what transitions cost as TOML: a preset with other cycles for some costs, by their keys, with a source.
#[pyfunction]
fn cost_table(preset: &str, changes: Vec<(String, u64)>, source: &str) -> PyResult<String> {
    let mut costs = HostCosts::preset(preset).map_err(error)?;
    for (key, cycles) in changes {
        let known = || sidestep_hypervisor::Cost::ALL.iter();
        let Some(cost) = known().find(|cost| cost.key() == key) else {
            let keys: Vec<&str> = known().map(|cost| cost.key()).collect();
            return Err(Error::new_err(format!(
                "there is no cost `{key}`; there are {}",
                keys.join(", ")
            )));
        };
        costs = costs.with(*cost, cycles, source).map_err(error)?;
    }
    Ok(costs.to_toml())
}

/// A host.
#[pyclass(frozen)]
pub struct Host {
    state: Mutex<State>,
}

struct State {
    host: sidestep_hypervisor::Host,
    costs: Arc<HostCosts>,
    cores: Option<Arc<ModelledCores>>,
    /// What each machine has printed.
    printed: Vec<Vec<u8>>,
}

/// When something was on a track: the track, what, from when on and for how long, in nanoseconds.
type Span = (String, String, u64, u64);

#[pymethods]
impl Host {
    /// The host that a description's text is of; as [`crate::machines::Machine`]. `trace` records who was on which
    /// core.
    #[staticmethod]
    fn described(
        name: &str,
        text: &str,
        folder: PathBuf,
        timing: Option<&str>,
        trace: bool,
    ) -> PyResult<Host> {
        let description: Description = parse(name, text).map_err(error)?;
        let parameters = timing.map(Parameters::by_name).transpose().map_err(error)?;
        let cores = parameters.map(ModelledCores::new).map(Arc::new);
        let model = cores.clone().map(|cores| cores as Arc<dyn CoreModel>);
        let (host, costs) = description
            .build(Path::new(&folder), trace, model)
            .map_err(|cause| Error::new_err(format!("{name}: {cause}")))?;
        let machines = host.machines().len();
        Ok(Host {
            state: Mutex::new(State {
                host,
                costs,
                cores,
                printed: vec![Vec::new(); machines],
            }),
        })
    }

    /// Runs until every virtual machine has ended or the host has come to a cycle: `ended`, `deadlock` or `time`.
    fn run(&self, py: Python<'_>, until_cycle: u64) -> PyResult<&'static str> {
        let mut guard = self.state(py);
        let state = &mut *guard;
        let cancelled = AtomicBool::new(false);
        let stop = || cancelled.store(true, Ordering::Relaxed);
        let end = attending(py, stop, |_| Ok(()), || state.run(Cycle(until_cycle), &cancelled))?;
        Ok(match end.map_err(error)? {
            HostEnd::Ended => "ended",
            HostEnd::Deadlock => "deadlock",
            HostEnd::Time | HostEnd::Halted => "time",
        })
    }

    /// The host's time in cycles.
    #[getter]
    fn cycles(&self, py: Python<'_>) -> u64 {
        self.state(py).host.time().since(Cycle::START)
    }

    /// What happened, as JSON.
    fn report(&self, py: Python<'_>) -> String {
        let report = self.state(py).host.report();
        serde_json::to_string(&report).expect("a report has a text form")
    }

    /// What the virtual machine of a number has printed.
    fn output<'py>(&self, py: Python<'py>, machine: usize) -> PyResult<Bound<'py, PyBytes>> {
        let state = self.state(py);
        let printed = state.printed.get(machine);
        let missing = || {
            let machines = state.printed.len();
            Error::new_err(format!(
                "there is no virtual machine {machine}; the host has {machines}, from 0 on"
            ))
        };
        Ok(PyBytes::new(py, printed.ok_or_else(missing)?))
    }

    /// What each core's model has counted; nothing without models.
    fn counters(&self, py: Python<'_>) -> Vec<Vec<(&'static str, u64)>> {
        let state = self.state(py);
        let cores = state.cores.iter().flat_map(|cores| cores.counters());
        cores.map(|counters| named(&counters)).collect()
    }

    /// Who was on which core when, where that was recorded.
    fn spans(&self, py: Python<'_>) -> Vec<Span> {
        let state = self.state(py);
        let Occupancy { tracks, spans, .. } = Occupancy::of(&state.host, &state.costs);
        let named = |(track, name, start, duration): (usize, String, u64, u64)| {
            (tracks[track].clone(), name, start, duration)
        };
        spans.into_iter().map(named).collect()
    }
}

impl Host {
    fn state(&self, py: Python<'_>) -> MutexGuard<'_, State> {
        use pyo3::sync::MutexExt;
        self.state
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn run(&mut self, until: Cycle, cancelled: &AtomicBool) -> Result<HostEnd, HostError> {
        loop {
            let end = self.host.run((self.host.time() + STRETCH_CYCLES).min(until))?;
            for (machine, printed) in self.host.machines().iter().zip(&mut self.printed) {
                printed.extend(locked(machine).take_console());
            }
            if end != HostEnd::Time || self.host.time() >= until || cancelled.load(Ordering::Relaxed) {
                return Ok(end);
            }
        }
    }
}
