//! Machines in virtual time: run, stopped at an address or at what they print, looked at, changed, saved.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sidestep_ia64::execution::guard::{Guard, Hit, Mode, Points};
use sidestep_ia64::execution::{Observed, Untimed};
use sidestep_ia64::{PhysicalAddress, VirtualAddress};
use sidestep_itanium2::{Counters, Parameters};
use sidestep_machine::debug::registers::{COUNT, Register};
use sidestep_machine::description::kernel::{Consoles, Parts};
use sidestep_machine::description::{bare, kernel, parse};
use sidestep_machine::machine::hypercall::Console;
use sidestep_machine::machine::platform::Platform;
use sidestep_machine::machine::{Activity, VirtualTime};
use sidestep_machine::snapshot::{self, ChangedDisks};
use sidestep_machine::{End, virtual_memory};
use sidestep_runner::machine::Timed;

use crate::attention::attending;
use crate::callbacks::{Callbacks, Calling};
use crate::errors::{Error, error};
use crate::programs::named;

/// Adds what is here to the module.
pub fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Machine>()
}

/// A machine.
#[pyclass(frozen)]
pub struct Machine {
    state: Mutex<State>,
    platform: Arc<Platform>,
    terminal: Arc<Mutex<Terminal>>,
}

struct State {
    machine: sidestep_machine::Machine,
    parts: Option<Parts>,
    executor: VirtualTime,
    /// A model of each processor, whose cycles are the machine's time; none where it is counted in instructions.
    models: Option<Vec<Timed>>,
    /// The processor that halted at a breakpoint last, and where.
    reported: Option<(usize, u64)>,
}

/// What a machine has printed and what is typed.
#[derive(Default)]
struct Terminal {
    printed: Vec<u8>,
    /// How much of that was read.
    read: usize,
    typed: std::collections::VecDeque<u8>,
    awaited: Option<Awaited>,
}

/// A text that stops the machine when it has been printed.
struct Awaited {
    text: Vec<u8>,
    /// From where on it counts.
    from: usize,
    platform: Weak<Platform>,
    has_come: bool,
}

/// A machine's end of its terminal.
struct Line(Arc<Mutex<Terminal>>);

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Console for Line {
    fn write(&mut self, bytes: &[u8]) {
        let mut terminal = lock(&self.0);
        terminal.printed.extend_from_slice(bytes);
        let Terminal { printed, awaited, .. } = &mut *terminal;
        let Some(awaited) = awaited.as_mut().filter(|awaited| !awaited.has_come) else {
            return;
        };
        // Only what is new can complete it.
        let start = (printed.len().saturating_sub(bytes.len() + awaited.text.len())).max(awaited.from);
        let mut windows = printed[start..].windows(awaited.text.len());
        if windows.any(|window| window == awaited.text) {
            awaited.has_come = true;
            if let Some(platform) = awaited.platform.upgrade() {
                platform.request_stop();
            }
        }
    }

    fn read(&mut self) -> Option<u8> {
        lock(&self.0).typed.pop_front()
    }
}

#[pymethods]
impl Machine {
    /// The machine that a description's text is of: bare, or with a kernel. `name` is what errors call it; relative
    /// files are looked for in `folder`. With a processor's name its model is the machine's time.
    #[staticmethod]
    fn described(name: &str, text: &str, folder: PathBuf, timing: Option<&str>) -> PyResult<Machine> {
        let terminal = Arc::<Mutex<Terminal>>::default();
        let line = || Box::new(Line(Arc::clone(&terminal)));
        // A bare machine has an image, one with firmware and devices has a kernel.
        let tables: BTreeMap<String, serde_json::Value> = parse(name, text).map_err(error)?;
        let wrong = |cause: &dyn std::fmt::Display| Error::new_err(format!("{name}: {cause}"));
        if tables.contains_key("kernel") {
            let description: kernel::Description = parse(name, text).map_err(error)?;
            let consoles = Consoles {
                serial: line(),
                virtio: None,
            };
            let built = description.placed(&folder).build_with(consoles);
            let built = built.map_err(|cause| wrong(&cause))?;
            let quantum = description.machine.quantum_ticks;
            return Machine::new(built.machine, Some(built.parts), quantum, timing, terminal);
        }
        let description: bare::Description = parse(name, text).map_err(error)?;
        let built = description
            .build(&folder, line())
            .map_err(|cause| wrong(&cause))?;
        Machine::new(
            built.machine,
            None,
            description.machine.quantum_ticks,
            timing,
            terminal,
        )
    }

    /// The machine that was saved in a file.
    #[staticmethod]
    fn restored(file: PathBuf, accepts_changed_disks: bool, timing: Option<&str>) -> PyResult<Machine> {
        let saved = snapshot::open(&file).map_err(error)?;
        let terminal = Arc::<Mutex<Terminal>>::default();
        let consoles = Consoles {
            serial: Box::new(Line(Arc::clone(&terminal))),
            virtio: None,
        };
        let changed = match accepts_changed_disks {
            true => ChangedDisks::Accept,
            false => ChangedDisks::Refuse,
        };
        let built = saved.restore(consoles, changed).map_err(error)?;
        let quantum = built.parts.description.machine.quantum_ticks;
        Machine::new(built.machine, Some(built.parts), quantum, timing, terminal)
    }

    /// Runs until it ends, so many instructions of all processors have retired, a processor is at one of the addresses,
    /// it has printed a text, or a function that is called before each block or at each interruption wants it. Answers
    /// which: `exit`, `reset`, `panic`, `limit`, `address`, `text`, `callback`, `deadlock`; with the exit code, or the
    /// number of the processor that halted.
    fn run(
        &self,
        py: Python<'_>,
        instructions: Option<u64>,
        addresses: BTreeSet<u64>,
        text: Option<Vec<u8>>,
        on_block: Option<Py<PyAny>>,
        on_interruption: Option<Py<PyAny>>,
    ) -> PyResult<(&'static str, u64)> {
        let callbacks = Arc::new(Callbacks::new(on_block, on_interruption));
        let mut guard = self.state(py);
        let state = &mut *guard;
        if state.models.is_some() && (callbacks.are_given() || !addresses.is_empty()) {
            return Err(Error::new_err(
                "a machine whose time is a model's does not stop at addresses and calls nothing: leave out timing, or these",
            ));
        }
        if callbacks.are_given() && !addresses.is_empty() {
            return Err(Error::new_err(
                "a machine stops at addresses or calls functions: a function before each block is told the address",
            ));
        }
        if let Some(text) = &text
            && text.is_empty()
        {
            return Err(Error::new_err(
                "an empty text has always been printed: wait for another",
            ));
        }
        self.wait_for(text);
        let stop = || self.platform.request_stop();
        let limit = instructions.unwrap_or(u64::MAX);
        let ended = attending(py, stop, |_| Ok(()), || state.run(limit, addresses, &callbacks));
        let has_come = lock(&self.terminal)
            .awaited
            .take()
            .is_some_and(|awaited| awaited.has_come);
        let ended = ended?;
        if let Some(raised) = callbacks.raised() {
            return Err(raised);
        }
        Ok(match ended {
            End::Exit(code) => ("exit", code),
            End::Reset => ("reset", 0),
            End::Panic => ("panic", 0),
            End::Limit => ("limit", 0),
            End::Stopped if has_come => ("text", 0),
            End::Stopped => ("stopped", 0),
            End::Deadlock => ("deadlock", 0),
            End::Halted(processor) if callbacks.are_given() => ("callback", processor as u64),
            End::Halted(processor) => ("address", processor as u64),
        })
    }

    /// Why the guest's kernel panicked, if it has.
    fn panic(&self) -> Option<String> {
        self.platform.ending.panic()
    }

    /// How many processors it has.
    #[getter]
    fn processors(&self, py: Python<'_>) -> usize {
        self.state(py).machine.cpus.len()
    }

    /// What a processor does: `running`, `waiting` or `stopped`.
    fn activity(&self, py: Python<'_>, processor: usize) -> PyResult<&'static str> {
        let state = self.state(py);
        Ok(match state.cpu(processor)?.activity {
            Activity::Running => "running",
            Activity::Waiting => "waiting",
            Activity::Stopped => "stopped",
        })
    }

    /// Instructions of each processor so far.
    fn instructions(&self, py: Python<'_>) -> Vec<u64> {
        let state = self.state(py);
        let retired = state.machine.cpus.iter();
        retired.map(|cpu| cpu.processor.instructions_retired()).collect()
    }

    /// The machine's time: ticks, an instruction or a cycle of the model each.
    #[getter]
    fn ticks(&self, py: Python<'_>) -> u64 {
        let state = self.state(py);
        state
            .machine
            .cpus
            .iter()
            .map(|cpu| cpu.ticks())
            .max()
            .unwrap_or(0)
    }

    /// What the models of all processors together, or of one of them, have counted; nothing without models.
    fn counters(&self, py: Python<'_>, processor: Option<usize>) -> PyResult<Vec<(&'static str, u64)>> {
        let mut state = self.state(py);
        if let Some(processor) = processor {
            state.cpu(processor)?;
        }
        let Some(models) = &mut state.models else {
            return Ok(Vec::new());
        };
        let mut sum = Counters::default();
        for (index, model) in models.iter_mut().enumerate() {
            if processor.is_none_or(|wanted| wanted == index) {
                sum += model.pipeline_mut().finish();
            }
        }
        Ok(named(&sum))
    }

    /// A register of a processor, by its number in `REGISTERS`.
    fn register(&self, py: Python<'_>, processor: usize, number: usize) -> PyResult<u128> {
        let state = self.state(py);
        let [low, high] = register(number)?.read(&state.cpu(processor)?.processor);
        Ok(u128::from(low) | u128::from(high) << 64)
    }

    /// Changes a register of a processor.
    fn set_register(&self, py: Python<'_>, processor: usize, number: usize, value: u128) -> PyResult<()> {
        let mut state = self.state(py);
        state.cpu(processor)?;
        let register = register(number)?;
        let words = [value as u64, (value >> 64) as u64];
        let is_in_range = register.size() == 16 || words[1] == 0;
        match is_in_range && register.write(&mut state.machine.cpus[processor].processor, words) {
            true => Ok(()),
            false => Err(Error::new_err(format!(
                "{} cannot be set to {value:#x}: it is constant, outside the frame, or smaller",
                register.name()
            ))),
        }
    }

    /// Bytes of memory: at a physical address, or where a processor is given at an address as it sees it.
    fn read_memory<'py>(
        &self,
        py: Python<'py>,
        address: u64,
        size: usize,
        processor: Option<usize>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let state = self.state(py);
        let nothing = || Error::new_err(format!("{address:#x}: there is no memory of {size} bytes"));
        if size as u64 > self.memory_bytes() {
            return Err(nothing());
        }
        let mut bytes = vec![0; size];
        match processor {
            None => {
                let read = self.platform.memory.read(PhysicalAddress(address), &mut bytes);
                read.map_err(|_| nothing())?;
            }
            Some(processor) => {
                let processor = &state.cpu(processor)?.processor;
                let at = VirtualAddress(address);
                if virtual_memory::read(processor, &self.platform.memory, at, &mut bytes) < size {
                    return Err(nothing());
                }
            }
        }
        Ok(PyBytes::new(py, &bytes))
    }

    /// Changes bytes of memory.
    fn write_memory(
        &self,
        py: Python<'_>,
        address: u64,
        bytes: Vec<u8>,
        processor: Option<usize>,
    ) -> PyResult<()> {
        let mut state = self.state(py);
        let is_written = match processor {
            None => self
                .platform
                .memory
                .write(PhysicalAddress(address), &bytes)
                .is_ok(),
            Some(processor) => {
                state.cpu(processor)?;
                let processor = &mut state.machine.cpus[processor].processor;
                virtual_memory::write(processor, &self.platform.memory, VirtualAddress(address), &bytes)
            }
        };
        match is_written {
            true => Ok(()),
            false => Err(Error::new_err(format!(
                "{address:#x}: there is no memory of {} bytes",
                bytes.len()
            ))),
        }
    }

    /// What was printed since the last time.
    fn take_output<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut terminal = lock(&self.terminal);
        let new = PyBytes::new(py, &terminal.printed[terminal.read..]);
        terminal.read = terminal.printed.len();
        new
    }

    /// Everything that was printed.
    fn output<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &lock(&self.terminal).printed)
    }

    /// Types at the console.
    fn type_input(&self, bytes: Vec<u8>) {
        lock(&self.terminal).typed.extend(bytes);
        self.platform.wakeups.wake();
    }

    /// Has a run end as soon as it can, from another thread.
    fn request_stop(&self) {
        self.platform.request_stop();
    }

    /// Saves the machine in a file.
    fn save(&self, py: Python<'_>, file: PathBuf) -> PyResult<()> {
        let mut state = self.state(py);
        let State { machine, parts, .. } = &mut *state;
        let parts = parts.as_ref();
        let parts =
            parts.ok_or_else(|| Error::new_err("a bare machine cannot be saved: it has no kernel"))?;
        py.detach(|| snapshot::save(machine, parts, Path::new(&file)))
            .map_err(error)
    }
}

impl Machine {
    fn new(
        machine: sidestep_machine::Machine,
        parts: Option<Parts>,
        quantum_ticks: u64,
        timing: Option<&str>,
        terminal: Arc<Mutex<Terminal>>,
    ) -> PyResult<Machine> {
        let parameters = timing.map(Parameters::by_name).transpose().map_err(error)?;
        Ok(Machine {
            platform: Arc::clone(machine.platform()),
            terminal,
            state: Mutex::new(State {
                models: parameters.map(|parameters| Timed::each(&parameters, machine.cpus.len())),
                executor: VirtualTime {
                    quantum_ticks,
                    ..VirtualTime::default()
                },
                machine,
                parts,
                reported: None,
            }),
        })
    }

    /// The machine, when no other thread runs it.
    fn state(&self, py: Python<'_>) -> MutexGuard<'_, State> {
        use pyo3::sync::MutexExt;
        self.state
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn memory_bytes(&self) -> u64 {
        self.platform.memory.ranges().iter().map(|range| range.size).sum()
    }

    fn wait_for(&self, text: Option<Vec<u8>>) {
        let mut terminal = lock(&self.terminal);
        terminal.awaited = text.map(|text| Awaited {
            text,
            from: terminal.read,
            platform: Arc::downgrade(&self.platform),
            has_come: false,
        });
    }
}

impl State {
    fn cpu(&self, processor: usize) -> PyResult<&sidestep_machine::machine::Cpu> {
        let processors = self.machine.cpus.len();
        self.machine.cpus.get(processor).ok_or_else(|| {
            Error::new_err(format!(
                "there is no processor {processor}; the machine has {processors}, from 0 on"
            ))
        })
    }

    fn run(&mut self, instructions_max: u64, addresses: BTreeSet<u64>, callbacks: &Arc<Callbacks>) -> End {
        let executor = VirtualTime {
            instructions_max,
            ..self.executor
        };
        let processors = self.machine.cpus.len();
        if let Some(models) = &mut self.models {
            return executor.run_driven(&mut self.machine, models).end;
        }
        if callbacks.are_given() {
            self.reported = None;
            let calling = |index| Observed(Calling::new(index, Arc::clone(callbacks)));
            let mut drivers: Vec<_> = (0..processors).map(calling).collect();
            return executor.run_driven(&mut self.machine, &mut drivers).end;
        }
        if addresses.is_empty() {
            self.reported = None;
            return executor
                .run_driven(&mut self.machine, &mut vec![Untimed; processors])
                .end;
        }
        let points = Points {
            breakpoints: addresses,
            ..Points::default()
        };
        let reported = |index| {
            self.reported
                .filter(|(halted, _)| *halted == index)
                .map(|(_, at)| at)
        };
        let mut guards: Vec<Guard> = (0..processors)
            .map(|index| Guard::new(points.clone(), Mode::Continue, reported(index)))
            .collect();
        let end = executor.run_driven(&mut self.machine, &mut guards).end;
        self.reported = match end {
            End::Halted(index) if guards[index].hit() == Some(Hit::Breakpoint) => {
                let (ip, slot) = self.machine.cpus[index].processor.instruction_pointer();
                Some((index, ip | u64::from(slot)))
            }
            _ => None,
        };
        end
    }
}

/// The register of a number.
fn register(number: usize) -> PyResult<Register> {
    let register = Register::from_number(number).filter(|register| *register != Register::Virtual);
    register.ok_or_else(|| {
        Error::new_err(format!(
            "there is no register {number}; numbers are below {COUNT}"
        ))
    })
}
