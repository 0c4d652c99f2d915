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
//! Traces are observers: a machine that runs without one is compiled without any of this.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use sidestep_ia64::encoding::{Operation, PurgeScope, Side};
use sidestep_ia64::execution::{Observer, Retired};
use sidestep_ia64::registers::system::control;
use sidestep_ia64::{Fault, Processor};

use super::symbols::Symbols;

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
pub type Sink = Arc<Mutex<Box<dyn Write + Send>>>;

/// Traces one processor.
#[derive(Clone)]
pub struct Trace {
    kinds: Kinds,
    index: usize,
    symbols: Arc<Symbols>,
    sink: Sink,
    walks: u64,
}

impl Trace {
    /// A trace of processor `index`.
    pub fn new(kinds: Kinds, index: usize, symbols: Arc<Symbols>, sink: Sink) -> Trace {
        Trace {
            kinds,
            index,
            symbols,
            sink,
            walks: 0,
        }
    }

    fn line(&self, text: &str) {
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        // A trace that cannot be written (a full disk) must not stop the machine.
        let _ = writeln!(sink, "{} {text}", self.index);
    }

    /// ` <name+offset>`, or nothing.
    fn place(&self, address: u64) -> String {
        match self.symbols.describe(address) {
            name if name.is_empty() => name,
            name => format!(" <{name}>"),
        }
    }

    fn instruction(&self, retired: &Retired<'_>) {
        let mut text = String::new();
        let instruction = retired.instruction;
        let _ = instruction.write(retired.ip, instruction.long_slot(), &*self.symbols, &mut text);
        let stop = if retired.stop { ";;" } else { "" };
        let executed = if retired.executed { ' ' } else { '-' };
        let mut line = format!(
            "{:016x}.{} {executed} {}{stop}",
            retired.ip,
            retired.slot,
            text.trim()
        );
        if let Some(address) = retired.reference {
            line.push_str(&format!(" [{address:x}]"));
        }
        if let Some(target) = retired.taken {
            line.push_str(&format!(" ->{target:x}"));
        }
        line.push_str(&self.place(retired.ip));
        self.line(&line);
    }

    fn translation(&mut self, processor: &Processor, retired: &Retired<'_>) {
        let walks = processor.mmu().map_or(0, |mmu| mmu.events.walker_hits);
        if walks > self.walks {
            self.line(&format!("mmu walk  found {}", walks - self.walks));
        }
        self.walks = walks;
        let instruction = retired.instruction;
        let value = |register: u8| processor.general.value(register);
        let control = |register: u8| processor.system.control[usize::from(register)];
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
        self.line(&format!("mmu {text}{}", self.place(retired.ip)));
    }
}

impl Observer for Trace {
    fn retired(&mut self, processor: &Processor, retired: &Retired<'_>) {
        if self.kinds.instructions {
            self.instruction(retired);
        }
        if self.kinds.translations && retired.executed {
            self.translation(processor, retired);
        }
        if self.kinds.interruptions
            && retired.executed
            && retired.instruction.operation == Operation::ReturnFromInterruption
        {
            let (ip, slot) = (retired.taken.unwrap_or(0) & !15, retired.taken.unwrap_or(0) & 3);
            self.line(&format!(
                "int return to {ip:016x}.{slot} psr {:016x}{}",
                processor.status,
                self.place(ip)
            ));
        }
    }

    fn interrupted(&mut self, processor: &Processor, fault: &Fault) {
        if !self.kinds.interruptions {
            return;
        }
        let control = |register: u8| processor.system.control[usize::from(register)];
        let (status, ip) = (control(control::IPSR), control(control::IIP));
        let mut line = format!("int {} at {ip:016x}.{}", fault.kind.name(), status >> 41 & 3);
        if fault.kind.has_address() {
            line.push_str(&format!(" ifa {:016x}", fault.address.0));
        }
        if fault.immediate != 0 {
            line.push_str(&format!(" iim {:x}", fault.immediate));
        }
        let handler = processor.instruction_pointer().0;
        self.line(&format!(
            "{line} isr {:016x} ipsr {status:016x} -> {handler:016x}{}",
            control(control::ISR),
            self.place(ip)
        ));
    }
}
