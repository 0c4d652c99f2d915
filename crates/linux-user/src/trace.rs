//! `--trace insn`: a line for every retired instruction, precise enough to compare emulators by.
//!
//! `thread ip slot predicate text`, then the address of a memory reference, the target of a taken branch, and
//! the new values of the general registers, predicates and branch registers that changed.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::Path;

use sidestep_ia64::Processor;
use sidestep_ia64::encoding::{Bundle, NoSymbols};
use sidestep_ia64::execution::{Observer, Retired};

use crate::host;

/// Writes the trace of one thread.
pub struct Trace {
    output: BufWriter<File>,
    thread: i32,
    general: [u64; 128],
    nats: u128,
    predicates: u64,
    branch: [u64; 8],
}

impl Trace {
    /// A trace that is appended to a file; none if it cannot be opened, which is reported.
    pub fn open(path: &Path) -> Option<Trace> {
        match OpenOptions::new().create(true).append(true).open(path) {
            Ok(file) => Some(Trace {
                output: BufWriter::with_capacity(1 << 16, file),
                thread: host::thread_id(),
                general: [0; 128],
                nats: 0,
                predicates: 0,
                branch: [0; 8],
            }),
            Err(error) => {
                host::print_error(&format!(
                    "sidestep: {}: cannot be opened for the trace: {error}\n",
                    path.display()
                ));
                None
            }
        }
    }

    /// Writes out what is buffered.
    pub fn flush(&mut self) {
        let _ = self.output.flush();
    }

    fn write(&mut self, processor: &Processor, retired: &Retired<'_>) -> std::io::Result<()> {
        let mut text = String::new();
        let long = Bundle::from_bits(0).slot(1);
        let _ = retired.instruction.write(retired.ip, long, &NoSymbols, &mut text);
        let stop = if retired.stop { ";;" } else { "" };
        let executed = if retired.executed { ' ' } else { '-' };
        write!(
            self.output,
            "{} {:016x}.{} {executed} {}{stop}",
            self.thread,
            retired.ip,
            retired.slot,
            text.trim()
        )?;
        if let Some(address) = retired.reference {
            write!(self.output, " [{address:x}]")?;
        }
        if let Some(target) = retired.taken {
            write!(self.output, " ->{target:x}")?;
        }
        for register in 1..128u8 {
            let (value, nat) = (processor.general.value(register), processor.general.nat(register));
            let known = (
                self.general[usize::from(register)],
                self.nats >> register & 1 != 0,
            );
            if known != (value, nat) {
                let mark = if nat { "*" } else { "" };
                write!(self.output, " r{register}={value:x}{mark}")?;
                self.general[usize::from(register)] = value;
                self.nats = self.nats & !(1 << register) | u128::from(nat) << register;
            }
        }
        if self.predicates != processor.predicates {
            write!(self.output, " pr={:x}", processor.predicates)?;
            self.predicates = processor.predicates;
        }
        for (register, (known, value)) in self.branch.iter_mut().zip(processor.branch).enumerate() {
            if *known != value {
                write!(self.output, " b{register}={value:x}")?;
                *known = value;
            }
        }
        writeln!(self.output)
    }
}

impl Observer for Trace {
    fn retired(&mut self, processor: &Processor, retired: &Retired<'_>) {
        // A trace that cannot be written (a full disk) must not stop the program.
        let _ = self.write(processor, retired);
    }
}
