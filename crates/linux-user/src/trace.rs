//! `--trace insn`: a line for every retired instruction, precise enough to compare emulators by.
//!
//! `thread ip.slot predicate text`, where the predicate column shows `-` for an instruction that its qualifying
//! predicate kept from executing; then `[address]` of a memory reference, `->target` of a taken branch, and the new
//! values of all registers that changed, in hexadecimal: `r` (a `*` marks a NaT), `f` (sign and exponent, significand),
//! `pr` as the current rotation names them, `b`, `cfm`, and application registers by name.

use std::fmt::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sidestep_files::Lines;
use sidestep_ia64::encoding::{DecodedSlot, Instruction, NoSymbols};
use sidestep_ia64::execution::{Dynamic, Observer, Registers, TracedInstruction};
use sidestep_ia64::registers::application;

use crate::host;

/// The file that traces of all threads are added to.
#[derive(Clone, Debug)]
pub struct TraceFile {
    /// Its path.
    pub path: PathBuf,
    /// The most bytes that it may have; it ends there with a line that says so.
    pub limit_bytes: u64,
}

/// Writes the trace of one thread.
pub struct Trace {
    /// None once it could not be written.
    output: Option<Lines>,
    path: PathBuf,
    /// The line that is being written.
    line: String,
    attention: Arc<AtomicBool>,
    thread: i32,
    general: [u64; 128],
    nats: u128,
    floating: [[u64; 2]; 128],
    predicates: u64,
    branch: [u64; 8],
    frame_marker: u64,
    application: [u64; SHOWN.len()],
}

/// The application registers that are shown.
const SHOWN: [(&str, u8); 12] = [
    ("rsc", application::RSC),
    ("bsp", application::BSP),
    ("bspstore", application::BSPSTORE),
    ("rnat", application::RNAT),
    ("csd", application::CSD),
    ("ssd", application::SSD),
    ("ccv", application::CCV),
    ("unat", application::UNAT),
    ("fpsr", application::FPSR),
    ("pfs", application::PFS),
    ("lc", application::LC),
    ("ec", application::EC),
];

impl Trace {
    /// A trace that is appended to a file. When it cannot be written, it says so once and raises `attention`.
    pub fn open(file: &TraceFile, attention: Arc<AtomicBool>) -> Trace {
        let (output, cause) = match Lines::append(&file.path, file.limit_bytes) {
            Ok(lines) => (Some(lines), None),
            Err(cause) => (None, Some(cause)),
        };
        let mut trace = Trace {
            output,
            path: file.path.clone(),
            line: String::new(),
            attention,
            thread: host::thread_id(),
            general: [0; 128],
            nats: 0,
            floating: [[0; 2]; 128],
            predicates: 0,
            branch: [0; 8],
            frame_marker: 0,
            application: [0; SHOWN.len()],
        };
        if let Some(cause) = cause {
            trace.lose(&cause);
        }
        trace
    }

    /// Writes out what is buffered.
    pub fn flush(&mut self) {
        if let Some(output) = &mut self.output
            && let Err(cause) = output.flush()
        {
            self.lose(&cause);
        }
    }

    /// Whether the file could not be written.
    pub fn is_lost(&self) -> bool {
        self.output.is_none()
    }

    fn lose(&mut self, cause: &std::io::Error) {
        let path = self.path.display();
        host::print_error(&format!(
            "sidestep: {path}: the trace cannot be written, so the program is ended: {cause}\n"
        ));
        self.output = None;
        self.attention.store(true, Ordering::Release);
    }

    /// After `fork`, in the child: its lines carry its own number.
    pub fn continue_as(&mut self, thread: i32) {
        self.thread = thread;
    }

    fn write(
        &mut self,
        known: &TracedInstruction,
        dynamic: &Dynamic<'_>,
        registers: Registers<'_>,
    ) -> std::io::Result<()> {
        if self.output.as_ref().is_none_or(Lines::is_cut) {
            return Ok(());
        }
        self.line.clear();
        let written = write!(self.line, "{} ", self.thread)
            .and_then(|()| known.write(dynamic, &NoSymbols, &mut self.line))
            .and_then(|()| self.write_changes(registers));
        written.expect("a string takes any text");
        match &mut self.output {
            Some(output) => output.add(&self.line),
            None => Ok(()),
        }
    }

    fn write_changes(&mut self, registers: Registers<'_>) -> fmt::Result {
        let output = &mut self.line;
        for register in 1..128u8 {
            let (value, nat) = registers.general(register);
            let known = (
                self.general[usize::from(register)],
                self.nats >> register & 1 != 0,
            );
            if known != (value, nat) {
                let mark = if nat { "*" } else { "" };
                write!(output, " r{register}={value:x}{mark}")?;
                self.general[usize::from(register)] = value;
                self.nats = self.nats & !(1 << register) | u128::from(nat) << register;
            }
        }
        for register in 2..128u8 {
            let image = registers.floating(register).to_spill();
            let known = &mut self.floating[usize::from(register)];
            if *known != image {
                let [significand, sign_exponent] = image;
                write!(output, " f{register}={sign_exponent:05x}:{significand:016x}")?;
                *known = image;
            }
        }
        changed(output, "pr", &mut self.predicates, registers.predicates())?;
        for (register, known) in self.branch.iter_mut().enumerate() {
            changed(
                output,
                &format!("b{register}"),
                known,
                registers.branch()[register],
            )?;
        }
        changed(output, "cfm", &mut self.frame_marker, registers.frame().bits())?;
        for ((name, register), known) in SHOWN.iter().zip(&mut self.application) {
            changed(output, name, known, registers.application(*register))?;
        }
        writeln!(output)
    }
}

/// Writes a register that has another value than was known.
fn changed(output: &mut String, name: &str, known: &mut u64, value: u64) -> fmt::Result {
    if *known != value {
        write!(output, " {name}={value:x}")?;
        *known = value;
    }
    Ok(())
}

impl Observer for Trace {
    type Static = TracedInstruction;
    const INSPECTS: bool = true;

    fn decode(&mut self, instruction: &Instruction, slot: &DecodedSlot) -> TracedInstruction {
        TracedInstruction::new(instruction, slot)
    }

    fn retired(&mut self, _: &TracedInstruction, _: &Dynamic<'_>) {}

    fn inspect(&mut self, known: &TracedInstruction, dynamic: &Dynamic<'_>, registers: Registers<'_>) {
        if let Err(cause) = self.write(known, dynamic, registers) {
            self.lose(&cause);
        }
    }
}
