//! The loop that shows every retired instruction to an observer.
//!
//! It executes the same operations as [`Processor::run`], one instruction at a time, and costs nothing where
//! it is not used. An observer sees what a timing model, a trace or another emulator's checker needs; it
//! cannot change the processor, but a debugger's can keep it from executing.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::encoding::{DecodedSlot, Instruction, Template};
use crate::execution::block::{Block, Detail, Observed};
use crate::execution::code_page::CodePage;
use crate::execution::run::{Exit, STEPPED};
use crate::execution::{BlockCache, Flow};
use crate::fault::Fault;
use crate::processor::{Processor, Raised};
use crate::registers::application::ITC;

/// A retired instruction.
#[derive(Clone, Copy, Debug)]
pub struct Retired<'a> {
    /// Address of its bundle.
    pub ip: u64,
    /// Its slot.
    pub slot: u8,
    /// The instruction.
    pub instruction: &'a Instruction,
    /// Whether a stop follows it.
    pub stop: bool,
    /// The template of its bundle.
    pub template: Template,
    /// Whether its qualifying predicate was true.
    pub executed: bool,
    /// The address of its memory reference, from the register before the update; `None` for no reference.
    pub reference: Option<u64>,
    /// Where a taken branch went.
    pub taken: Option<u64>,
}

/// How far the processor may execute before it asks again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// All of the bundles it asked for.
    Block,
    /// One instruction.
    Instruction,
    /// Not at all: the attention flag is set, and the run ends with [`Exit::Attention`].
    Halt,
}

/// Sees every retired instruction in order.
pub trait Observer {
    /// Called after `retired` has retired, with the processor as it is now.
    fn retired(&mut self, processor: &Processor, retired: &Retired<'_>);

    /// Called after the processor has taken an interruption in system mode: it is at the handler, and `fault` is what
    /// it took.
    fn interrupted(&mut self, processor: &Processor, fault: &Fault) {
        let _ = (processor, fault);
    }

    /// Called before an instruction at `ip` and `slot` that reads or writes a performance monitor register or the
    /// interval time counter: whoever counts brings these registers up to date, and nothing else.
    fn counters_used(&mut self, processor: &mut Processor, ip: u64, slot: &DecodedSlot) {
        let _ = (processor, ip, slot);
    }

    /// Called where the limit of a stretch is reached, also where the interval timer matches if each instruction takes a
    /// tick: whoever counts otherwise brings the interval time counter up to date.
    fn limit_reached(&mut self, processor: &mut Processor) {
        let _ = processor;
    }

    /// Called before execution goes on in the bundles at the addresses `block`, at the instruction pointer.
    fn permits(&mut self, processor: &Processor, block: Range<u64>) -> Permission {
        let _ = (processor, block);
        Permission::Block
    }
}

impl Processor {
    /// Moves the interval time counter on by `cycles`, beyond the one that every retired instruction adds; back, if
    /// that is negative in two's complement. The timer's match is not jumped over.
    pub fn advance_interval_time(&mut self, cycles: u64) {
        if cycles.cast_signed() > 0 {
            self.advance_clock(cycles);
        } else {
            let counter = &mut self.application[usize::from(ITC)];
            *counter = counter.wrapping_add(cycles);
        }
        if let Some(interrupts) = self.interrupts() {
            // A run in progress ends where the timer was expected: it has to look again.
            interrupts.signal();
        }
    }

    /// As [`Processor::run`], showing every retired instruction to `observer`.
    pub fn run_observed<O: Observer>(&mut self, limit: u64, observer: &mut O) -> Exit {
        let mut blocks = std::mem::take(&mut self.blocks);
        blocks.set_detail(Detail::Everything);
        self.recall_code_pages();
        let end = self.retired.saturating_add(limit);
        let exit = self.run_with_interruptions(end, |processor, end| {
            let exit = processor.run_blocks_observed(&mut blocks, end, observer);
            if processor.retired >= end {
                observer.limit_reached(processor);
            }
            exit
        });
        self.blocks = blocks;
        exit
    }

    fn run_blocks_observed<O: Observer>(
        &mut self,
        blocks: &mut BlockCache,
        end: u64,
        observer: &mut O,
    ) -> Exit {
        let interrupts = self.interrupts();
        if let Some(fault) = self.interruption.take() {
            observer.interrupted(self, &fault);
        }
        let mut code = CodePage::none();
        loop {
            if self.wants_attention()
                || interrupts
                    .as_ref()
                    .is_some_and(|interrupts| interrupts.is_signalled())
            {
                return Exit::Attention;
            }
            let remaining = end - self.retired;
            if remaining == 0 {
                return Exit::Limit;
            }
            if self.pending != 0 || !code.holds(self.ip) {
                code = match self.prepare(blocks) {
                    Ok(Some(code)) => code,
                    Ok(None) => return Exit::Attention,
                    Err(Raised) => return Exit::Fault(self.take_fault()),
                };
            }
            let place = (self.ip, self.slot);
            let key = code.key(self.ip, self.slot);
            let block = match blocks.find(key) {
                Some(block) => Arc::clone(block),
                None => blocks.find_or_decode(key, place, code.page()),
            };
            let fits = u32::from(block.highest_target) <= 31 + self.frame.size;
            let is_stepped = self.status & STEPPED != 0;
            let permission = observer.permits(self, self.ip..self.ip.wrapping_add(block.size()));
            if permission == Permission::Halt {
                self.attention().store(true, Ordering::Release);
                return Exit::Attention;
            }
            let is_whole = fits && u64::from(block.instructions) <= remaining;
            let executed = if is_whole && !is_stepped && permission == Permission::Block {
                self.execute_observed(&block, observer)
            } else {
                let most = if is_stepped || permission == Permission::Instruction {
                    1
                } else {
                    u16::try_from(remaining).unwrap_or(u16::MAX)
                };
                let narrow = blocks.decode_narrow(place, code.page(), self.frame.size, most);
                if is_stepped {
                    self.step(|processor| processor.execute_observed(&narrow, observer))
                } else {
                    self.execute_observed(&narrow, observer)
                }
            };
            if let Err(Raised) = executed {
                return Exit::Fault(self.take_fault());
            }
        }
    }

    fn execute_observed<O: Observer>(&mut self, block: &Block, observer: &mut O) -> Result<(), Raised> {
        self.block_start = self.ip;
        for (index, operation) in block.operations.iter().enumerate() {
            let Some(Observed {
                slot: decoded,
                references,
                uses_counters,
            }) = block.decoded.get(index)
            else {
                // The closing operation is no instruction.
                (operation.execute)(self, operation)?;
                self.arrive(operation);
                return Ok(());
            };
            let ip = self.bundle_address(operation);
            if *uses_counters {
                observer.counters_used(self, ip, decoded);
            }
            let predicate = decoded
                .instruction
                .map_or(0, |instruction| instruction.predicate());
            let executed = self.predicate(predicate);
            let reference = match &decoded.instruction {
                Ok(instruction) if *references && executed => Some(self.general.value(instruction.r3())),
                _ => None,
            };
            let flow = if self.predicate(operation.predicate) {
                (operation.execute)(self, operation)
            } else {
                Ok(Flow::Next)
            };
            let completed = match flow {
                Ok(_) => true,
                Err(Raised) => self.raised.is_some_and(|fault| fault.kind.is_trap()),
            };
            if let (true, Ok(instruction)) = (completed, &decoded.instruction) {
                let taken = (flow == Ok(Flow::Branch)).then_some(self.target);
                observer.retired(
                    self,
                    &Retired {
                        ip,
                        slot: decoded.slot,
                        instruction,
                        stop: decoded.stop,
                        template: decoded.template,
                        executed,
                        reference,
                        taken,
                    },
                );
            }
            match flow {
                Ok(Flow::Next) => {}
                Ok(Flow::Branch) => {
                    self.arrive(operation);
                    return Ok(());
                }
                Err(Raised) => {
                    self.stop_at(operation);
                    return Err(Raised);
                }
            }
        }
        unreachable!("the last operation of a block leaves it")
    }
}
