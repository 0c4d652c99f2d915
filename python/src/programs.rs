//! Linux programs: what runs one in a process of its own, and what it leaves for who waits.
//!
//! A program's signals, folder and memory are those of its host process, so it never runs in the process that drives
//! it: the package starts an interpreter that loads this library alone and calls [`run_program`].

use std::ffi::{OsStr, OsString};
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sidestep_itanium2::{Counters, Event, Pace, Parameters, Selection};
use sidestep_linux_user::debugger::Debugger;
use sidestep_linux_user::engine::Engine;
use sidestep_linux_user::{Launch, Options, inheritance};
use sidestep_machine::debug::registers::{COUNT, Register};
use sidestep_runner::causes::with_causes;
use sidestep_runner::debugger::Gdb;
use sidestep_runner::processes::{self, Leave};
use sidestep_runner::program::{Kept, Model};

use crate::errors::{Error, boxed, error};

/// Adds what is here to the module.
pub fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Parts>()?;
    module.add("REGISTERS", register_names())?;
    module.add_function(wrap_pyfunction!(run_program, module)?)?;
    module.add_function(wrap_pyfunction!(check_events, module)?)
}

/// The registers by the numbers that the debugger's protocol has for them, with their sizes in bytes; those without a
/// name are no registers of the processor.
fn register_names() -> Vec<(String, usize)> {
    let registers = (0..COUNT).filter_map(Register::from_number);
    registers
        .map(|register| (register.name(), register.size()))
        .collect()
}

/// What a processor's model counted, by the names of events.
pub fn named(counters: &Counters) -> Vec<(&'static str, u64)> {
    let counted = |event: &Event| (event.name(), counters.get(*event));
    Event::ALL.iter().map(counted).collect()
}

/// Where the processes of a run leave what they counted.
#[pyclass(frozen)]
struct Parts(Mutex<processes::Parts>);

#[pymethods]
impl Parts {
    #[new]
    fn new() -> PyResult<Parts> {
        Ok(Parts(Mutex::new(processes::Parts::new()?)))
    }

    /// Its path for other processes, as long as this one lives.
    #[getter]
    fn path(&self) -> PathBuf {
        self.0.lock().expect("no holder panics").path()
    }

    /// What each process left: its number, its program, its counters, and as JSON what else was kept.
    #[allow(clippy::type_complexity, reason = "a row, which Python takes apart")]
    fn read(&self) -> PyResult<Vec<(u32, PathBuf, Vec<(&'static str, u64)>, Option<String>)>> {
        let parts = self.0.lock().expect("no holder panics").read()?;
        let row = |part: processes::ProcessPart| {
            let counters = named(&part.counters());
            let contents = part
                .contents
                .map(|contents| serde_json::to_string(&contents).expect("what a run keeps has a text form"));
            (part.pid, part.program, counters, contents)
        };
        Ok(parts.into_iter().map(row).collect())
    }
}

/// The events to sample as one text, as the model is told; an event without a period of its own has `cycles` between
/// samples.
#[pyfunction]
fn check_events(processor: &str, events: Vec<String>, samples_a_second: u32) -> PyResult<String> {
    let parameters = Parameters::by_name(processor).map_err(error)?;
    let cycles = u64::from(parameters.megahertz) * 1_000_000 / u64::from(samples_a_second.max(1));
    let cycles = cycles.max(1);
    let wanted = |text: &String| -> PyResult<(Selection, Pace)> {
        let (name, period) = match text.rsplit_once(':') {
            Some((name, period)) if period.bytes().all(|byte| byte.is_ascii_digit()) => (name, Some(period)),
            _ => (text.as_str(), None),
        };
        let selection = Selection::by_name(name).map_err(error)?;
        let number = |text: String| {
            let number = text.parse();
            number.map_err(|_| Error::new_err(format!("`{text}` is no number from 1 to {}", u64::MAX)))
        };
        Ok((
            selection,
            match period {
                Some(period) => Pace::Events(number(period.to_owned())?),
                None => Pace::Cycles(number(cycles.to_string())?),
            },
        ))
    };
    let samples = events.iter().map(wanted).collect::<PyResult<Vec<_>>>()?;
    Ok(Kept::Samples(samples).to_string())
}

/// Runs a program in this process, as its arguments say; answers only if it could not be started, with the exit status.
///
/// The arguments are what is asked for (`NAME=VALUE`, see [`Asked`]), what an executing program leaves to this one, the
/// program and its arguments. `before` are the words before them, which start such a process anew.
#[pyfunction]
fn run_program(before: Vec<OsString>, arguments: Vec<OsString>) -> PyResult<u8> {
    let asked = Asked::of(arguments).map_err(PyValueError::new_err)?;
    let launch = asked.launch(before).map_err(boxed)?;
    let cause = sidestep_linux_user::run_to_exit(launch);
    eprint(&format!("sidestep: {}\n", with_causes(&cause)));
    Ok(cause.exit_status())
}

/// Says something where the program's messages go; where that cannot be written, the exit status says enough.
fn eprint(text: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
}

/// What a process is asked to run.
#[derive(Default)]
struct Asked {
    /// The words that are passed on to a program which this one executes.
    words: Vec<OsString>,
    timing: Option<Parameters>,
    parts: Option<PathBuf>,
    kept: Option<Kept>,
    sysroot: Option<PathBuf>,
    instructions_max: Option<u64>,
    debugger: Option<RawFd>,
    inherited: Vec<(Vec<u8>, RawFd)>,
    limits: Vec<(u32, [u64; 2])>,
    pipe_ignored: bool,
    name: Option<OsString>,
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Asked {
    fn of(arguments: Vec<OsString>) -> Result<Asked, String> {
        let mut asked = Asked::default();
        let mut words = arguments.into_iter();
        while let Some(word) = words.next() {
            let bytes = word.as_bytes();
            if bytes == b"--" {
                asked.program = words.next().unwrap_or_default().into();
                asked.arguments = words.by_ref().collect();
            } else if bytes == b"--ignore-sigpipe" {
                asked.pipe_ignored = true;
            } else if bytes.starts_with(b"--") {
                let value = words.next().unwrap_or_default();
                asked.inherit(&word, value)?;
            } else if let Some(at) = bytes.iter().position(|byte| *byte == b'=') {
                asked.ask(&bytes[..at], OsStr::from_bytes(&bytes[at + 1..]))?;
                // A debugger stays with the program that it debugs.
                if !bytes.starts_with(b"debugger=") {
                    asked.words.push(word);
                }
            } else {
                asked.program = word.into();
                asked.arguments = words.by_ref().collect();
            }
        }
        Ok(asked)
    }

    fn ask(&mut self, name: &[u8], value: &OsStr) -> Result<(), String> {
        let text = || value.to_string_lossy().into_owned();
        let number = || text().parse().map_err(|_| format!("`{}` is no number", text()));
        match name {
            b"timing" => self.timing = Some(Parameters::by_name(&text()).map_err(|error| error.to_string())?),
            b"parts" => self.parts = Some(value.into()),
            b"kept" => self.kept = Some(text().parse()?),
            b"sysroot" => self.sysroot = Some(value.into()),
            b"instructions" => self.instructions_max = Some(number()?),
            b"debugger" => self.debugger = Some(number()? as RawFd),
            _ => {
                return Err(format!(
                    "{}: is nothing to ask for",
                    String::from_utf8_lossy(name)
                ));
            }
        }
        Ok(())
    }

    /// What an executing program leaves, in the words of the command.
    fn inherit(&mut self, option: &OsStr, value: OsString) -> Result<(), String> {
        let wrong = || format!("{}: is not what a program leaves", option.to_string_lossy());
        match option.as_bytes() {
            b"--argv0" => self.name = Some(value),
            b"--descriptor" => self
                .inherited
                .push(inheritance::descriptor(&value).ok_or_else(wrong)?),
            b"--guest-limit" => self.limits.push(inheritance::limit(&value).ok_or_else(wrong)?),
            _ => return Err(wrong()),
        }
        Ok(())
    }

    fn engine(&self) -> Option<Arc<dyn Engine>> {
        let (parameters, parts) = (self.timing.clone()?, self.parts.as_ref()?);
        let kept = self.kept.clone().unwrap_or(Kept::Counters);
        let report = Leave::new(parts, &self.program, !matches!(kept, Kept::Counters));
        Some(Arc::new(Model::new(parameters, kept, report)))
    }

    fn launch(self, before: Vec<OsString>) -> Result<Launch, Box<dyn std::error::Error>> {
        let engine = self.engine();
        let debugger = match self.debugger {
            None => None,
            Some(descriptor) => {
                // SAFETY: whoever asks for a debugger hands over its open descriptor, which nobody here closes.
                let connection = unsafe { BorrowedFd::borrow_raw(descriptor) };
                let gdb = Gdb::new(&connection).map_err(std::io::Error::from)?;
                Some(Arc::new(gdb) as Arc<dyn Debugger>)
            }
        };
        let mut again = before.into_iter();
        let emulator = again.next().map(PathBuf::from);
        // The interpreter finds its own library by the name that it is started with.
        let reenter = emulator.iter().map(|path| path.clone().into_os_string());
        let reenter = reenter
            .chain(again)
            .chain(self.words)
            .map(OsString::into_vec)
            .collect();
        let name = self.name.unwrap_or_else(|| Path::new(&self.program).into());
        let arguments = std::iter::once(name).chain(self.arguments);
        let variable =
            |(name, value): (OsString, OsString)| [name.as_bytes(), b"=", value.as_bytes()].concat();
        Ok(Launch {
            program: self.program,
            arguments: arguments.map(OsString::into_vec).collect(),
            environment: std::env::vars_os().map(variable).collect(),
            options: Options {
                sysroot: self.sysroot,
                instructions_max: self.instructions_max,
                engine,
                emulator,
                reenter,
                ..Options::default()
            },
            debugger,
            pipe_ignored: self.pipe_ignored,
            inherited: self.inherited,
            limits: self.limits,
        })
    }
}
