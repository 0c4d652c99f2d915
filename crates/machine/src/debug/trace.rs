//! Traces: a line for each instruction, change of translations, or interruption.
//!
//! ```text
//! 0 0000000000100040.1   adds r8=1,r8 <_start+0x40>              instruction: processor, address and slot
//! 0 0000000000100050.0 - br.few 0x100070                         one that its predicate kept from executing
//! 0 mmu itc.d 2000000000004000 pte 0000000000104661 size 14     an insertion, a purge, a region register
//! 0 mmu walk  found 3                                            translations that the walker inserted
//! 0 int data TLB fault at 0000000000100080.0 ifa 2000... isr 0000000400000000 -> 0000000000108800
//! ```
//!
//! A trace ends at the limit of its [`Lines`]; where it cannot be written, it halts the machine. Traces are observers:
//! a machine that runs without one is compiled without any of this.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sidestep_files::Lines;
use sidestep_ia64::encoding::{DecodedSlot, Instruction, Operation, PurgeScope, Side, Symbols};
use sidestep_ia64::execution::{
    Driver, Dynamic, Event, Interruption, Observer, Registers, TracedInstruction,
};
use sidestep_ia64::registers::system::control;
use sidestep_ia64::{Exit, Processor};

/// What is traced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// Every instruction.
    pub instructions: bool,
    /// Every change of translations.
    pub translations: bool,
    /// Every interruption, and every return from one.
    pub interruptions: bool,
}

/// Where lines go: shared by the processors of a machine, a whole line at a time.
pub struct Sink {
    lines: Mutex<Result<Lines, io::Error>>,
    is_lost: AtomicBool,
}

impl Sink {
    /// A place for the lines of a machine.
    pub fn new(lines: Lines) -> Sink {
        Sink {
            lines: Mutex::new(Ok(lines)),
            is_lost: AtomicBool::new(false),
        }
    }

    fn add(&self, line: &str) {
        self.attempt(|lines| lines.add(line));
    }

    /// Writes what was collected.
    ///
    /// # Errors
    /// Why lines could not be written, now or before.
    pub fn finish(&self) -> Result<(), io::Error> {
        self.attempt(Lines::flush);
        match &*self.lines() {
            Ok(_) => Ok(()),
            Err(cause) => Err(io::Error::new(cause.kind(), cause.to_string())),
        }
    }

    fn attempt(&self, write: impl FnOnce(&mut Lines) -> io::Result<()>) {
        let mut lines = self.lines();
        if let Ok(open) = &mut *lines
            && let Err(cause) = write(open)
        {
            *lines = Err(cause);
            self.is_lost.store(true, Ordering::Relaxed);
        }
    }

    fn lines(&self) -> MutexGuard<'_, Result<Lines, io::Error>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Traces one processor.
#[derive(Clone)]
pub struct Trace {
    kinds: Kinds,
    index: usize,
    symbols: Arc<dyn Symbols + Send + Sync>,
    sink: Arc<Sink>,
    /// Translations that the walker has inserted so far, and how many of them were told.
    insertions: u64,
    told: u64,
}

impl Trace {
    /// A trace of processor `index`.
    pub fn new(
        kinds: Kinds,
        index: usize,
        symbols: Arc<dyn Symbols + Send + Sync>,
        sink: Arc<Sink>,
    ) -> Trace {
        Trace {
            kinds,
            index,
            symbols,
            sink,
            insertions: 0,
            told: 0,
        }
    }

    fn line(&self, text: &str) {
        self.sink.add(&format!("{} {text}\n", self.index));
    }

    /// ` <name+offset>`, or nothing.
    fn place(&self, address: u64) -> String {
        match self.symbols.describe(address) {
            name if name.is_empty() => name,
            name => format!(" <{name}>"),
        }
    }

    fn instruction(&self, known: &TracedInstruction, dynamic: &Dynamic<'_>) {
        let mut line = String::new();
        let written = known.write(dynamic, &*self.symbols, &mut line);
        written.expect("a string takes any text");
        line.push_str(&self.place(dynamic.place.ip));
        self.line(&line);
    }

    fn translation(&mut self, known: &TracedInstruction, dynamic: &Dynamic<'_>, registers: Registers<'_>) {
        let told = std::mem::replace(&mut self.told, self.insertions);
        if self.insertions > told {
            self.line(&format!("mmu walk  found {}", self.insertions - told));
        }
        let instruction = &known.instruction;
        let value = |register: u8| registers.general(register).0;
        let control = |register: u8| registers.system().control[usize::from(register)];
        let (r2, r3) = (value(instruction.r2()), value(instruction.r3()));
        let side = |side: Side| if side == Side::Data { 'd' } else { 'i' };
        let inserted = |pte: u64| {
            let size = control(control::ITIR) >> 2 & 63;
            format!("{:016x} pte {pte:016x} size {size}", control(control::IFA))
        };
        let purged = format!("{r3:016x} size {}", r2 >> 2 & 63);
        let text = match instruction.operation {
            Operation::InsertTranslationCache { side: which } => {
                format!("itc.{} {}", side(which), inserted(r2))
            }
            Operation::InsertTranslationRegister { side: which } => {
                format!("itr.{} {} register {}", side(which), inserted(r2), r3 & 0xff)
            }
            Operation::PurgeTranslationCache { scope } => {
                let name = match scope {
                    PurgeScope::Local => "l",
                    PurgeScope::Global => "g",
                    PurgeScope::GlobalAlat => "ga",
                };
                format!("ptc.{name} {purged}")
            }
            Operation::PurgeTranslationCacheEntry => "ptc.e".to_owned(),
            Operation::PurgeTranslationRegister { side: which } => format!("ptr.{} {purged}", side(which)),
            Operation::MoveToIndirect { file } => format!("mov {file:?} {r3:x} = {r2:016x}").to_lowercase(),
            _ => return,
        };
        self.line(&format!("mmu {text}{}", self.place(dynamic.place.ip)));
    }
}

/// Runs a processor under a trace, and halts it once lines cannot be written: without its trace the run is of no use to
/// whoever wants one.
pub struct Traced(pub Trace);

impl Driver for Traced {
    fn run(&mut self, processor: &mut Processor, limit: u64) -> Exit {
        match self.0.sink.is_lost.load(Ordering::Relaxed) {
            true => Exit::Halted,
            false => processor.run_observed(limit, &mut self.0),
        }
    }
}

impl Observer for Trace {
    type Static = TracedInstruction;
    const INSPECTS: bool = true;

    fn decode(&mut self, instruction: &Instruction, slot: &DecodedSlot) -> TracedInstruction {
        TracedInstruction::new(instruction, slot)
    }

    fn retired(&mut self, _: &TracedInstruction, _: &Dynamic<'_>) {}

    fn inspect(&mut self, known: &TracedInstruction, dynamic: &Dynamic<'_>, registers: Registers<'_>) {
        if self.kinds.instructions {
            self.instruction(known, dynamic);
        }
        if self.kinds.translations && dynamic.executed {
            self.translation(known, dynamic, registers);
        }
        if self.kinds.interruptions
            && dynamic.executed
            && known.instruction.operation == Operation::ReturnFromInterruption
        {
            let target = dynamic.taken.unwrap_or(0);
            let (ip, slot) = (target & !15, target & 3);
            self.line(&format!(
                "int return to {ip:016x}.{slot} psr {:016x}{}",
                registers.status(),
                self.place(ip)
            ));
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Resumed(state) => self.insertions = state.walker_insertions,
            Event::Walk { insertions, .. } => self.insertions = *insertions,
            Event::Interrupted(interruption) if self.kinds.interruptions => self.interruption(interruption),
            Event::Interrupted(_)
            | Event::Status(_)
            | Event::Region { .. }
            | Event::Branch { .. }
            | Event::Frame(_)
            | Event::AdvancedLoads(_)
            | Event::PerformanceMonitor(_) => {}
        }
    }
}

impl Trace {
    fn interruption(&self, interruption: &Interruption) {
        let Interruption {
            fault, ip, status, ..
        } = interruption;
        let mut line = format!("int {} at {ip:016x}.{}", fault.kind.name(), status >> 41 & 3);
        if fault.kind.has_address() {
            line.push_str(&format!(" ifa {:016x}", fault.address.0));
        }
        if fault.immediate != 0 {
            line.push_str(&format!(" iim {:x}", fault.immediate));
        }
        self.line(&format!(
            "{line} isr {:016x} ipsr {status:016x} -> {:016x}{}",
            interruption.interruption_status,
            interruption.handler,
            self.place(*ip)
        ));
    }
}
