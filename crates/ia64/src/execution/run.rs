//! The execution loop.

use crate::execution::BlockCache;
use crate::execution::block::{Block, Detail};
use crate::execution::code_page::CodePage;
use crate::execution::operation::{Flow, MicroOperation};
use crate::fault::isr::trap;
use crate::fault::{Access, Fault, FaultKind};
use crate::memory::HostPage;
use crate::processor::{Processor, Raised, pending};
use crate::registers::status::psr;
use crate::semantics;

/// Why [`Processor::run`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// An instruction raised a fault, or a trap follows it. For a fault the instruction pointer is at the
    /// instruction, which has changed nothing; for a trap it is behind it.
    Fault(Fault),
    /// The attention flag was found set at a block boundary.
    Attention,
    /// The given number of instructions has retired.
    Limit,
}

/// PSR bits that hold until one instruction has completed.
const ONE_INSTRUCTION: u64 = psr::ID | psr::DA | psr::DD | psr::ED | psr::IA;
/// PSR bits under which instructions execute one by one.
pub(crate) const STEPPED: u64 = ONE_INSTRUCTION | psr::SS | psr::TB | psr::LP | psr::DB;

impl Processor {
    /// Executes until something needs the environment, or until `limit` more instructions retired.
    ///
    /// In system mode the processor takes its interruptions itself; only hypercalls end the run as faults.
    pub fn run(&mut self, limit: u64) -> Exit {
        let mut blocks = std::mem::take(&mut self.blocks);
        blocks.set_detail(Detail::Effects);
        self.recall_code_pages();
        let end = self.retired.saturating_add(limit);
        let exit = self.run_with_interruptions(end, |processor, end| processor.run_blocks(&mut blocks, end));
        self.blocks = blocks;
        exit
    }

    /// Runs with `run_until` up to `end` retired instructions; in system mode, takes interruptions and goes on.
    pub(crate) fn run_with_interruptions(
        &mut self,
        end: u64,
        mut run_until: impl FnMut(&mut Processor, u64) -> Exit,
    ) -> Exit {
        let Some(interrupts) = self.interrupts() else {
            return run_until(self, end);
        };
        if self.environment.system().is_some_and(|system| system.monitored) {
            return self.run_monitored(end, &mut run_until);
        }
        // A guest whose handlers cannot be fetched takes interruptions for ever and retires nothing.
        let mut interruptions_left = end - self.retired;
        loop {
            let timer = self.timer_deadline();
            let exit = run_until(self, end.min(timer));
            if self.retired >= timer && self.ticks_to_timer().is_none() {
                // Also when the run ends there for another reason: the match does not come again.
                self.timer_matched();
            }
            match exit {
                Exit::Fault(fault) if self.is_hypercall(&fault) => return Exit::Fault(fault),
                Exit::Fault(_) if interruptions_left == 0 => return Exit::Limit,
                Exit::Fault(fault) => {
                    interruptions_left -= 1;
                    self.take_interruption(fault);
                    if self.wants_attention() {
                        return Exit::Attention;
                    }
                }
                Exit::Attention => {
                    if interrupts.take_signal() {
                        self.deliver_external_interrupt();
                    }
                    if self.wants_attention() {
                        return Exit::Attention;
                    }
                }
                Exit::Limit if self.retired >= end => return Exit::Limit,
                Exit::Limit => {}
            }
        }
    }

    fn run_blocks(&mut self, blocks: &mut BlockCache, end: u64) -> Exit {
        let interrupts = self.interrupts();
        let mut code = CodePage::none();
        loop {
            if self.wants_attention()
                || interrupts
                    .as_ref()
                    .is_some_and(|interrupts| interrupts.is_signalled())
            {
                return Exit::Attention;
            }
            if self.pending != 0 || !code.holds(self.ip) {
                // Behind the last instruction nothing is fetched, so that no fetch faults.
                if self.retired == end {
                    return Exit::Limit;
                }
                code = match self.prepare(blocks) {
                    Ok(Some(code)) => code,
                    Ok(None) => return Exit::Attention,
                    Err(Raised) => return Exit::Fault(self.take_fault()),
                };
            }
            let key = code.key(self.ip, self.slot);
            let decoded;
            let block = match blocks.find(key) {
                Some(block) => block,
                None => {
                    decoded = blocks.find_or_decode(key, (self.ip, self.slot), code.page());
                    &decoded
                }
            };
            let remaining = end - self.retired;
            let fits = u32::from(block.highest_target) <= 31 + self.frame.size;
            let is_stepped = self.status & STEPPED != 0;
            let executed = if fits && u64::from(block.instructions) <= remaining && !is_stepped {
                self.execute(block)
            } else if remaining == 0 {
                return Exit::Limit;
            } else {
                let most = if is_stepped {
                    1
                } else {
                    u16::try_from(remaining).unwrap_or(u16::MAX)
                };
                let place = (self.ip, self.slot);
                let narrow = blocks.decode_narrow(place, code.page(), self.frame.size, most);
                if is_stepped {
                    self.step(|processor| processor.execute(&narrow))
                } else {
                    self.execute(&narrow)
                }
            };
            if let Err(Raised) = executed {
                return Exit::Fault(self.take_fault());
            }
        }
    }

    /// Executes the instruction at the instruction pointer, fetched from `page`, whatever its address translates to.
    pub(crate) fn execute_one(&mut self, page: &HostPage) -> Result<(), Fault> {
        let mut blocks = std::mem::take(&mut self.blocks);
        blocks.set_detail(Detail::Effects);
        let narrow = blocks.decode_narrow((self.ip, self.slot), page, self.frame.size, 1);
        self.blocks = blocks;
        let executed = if self.status & STEPPED != 0 {
            self.step(|processor| processor.execute(&narrow))
        } else {
            self.execute(&narrow)
        };
        self.outcome(executed)
    }

    /// Does what is pending before the next block, and finds the page that holds it; `None` if the timer was
    /// set and its deadline must be looked at first.
    #[cold]
    pub(crate) fn prepare(&mut self, blocks: &mut BlockCache) -> Result<Option<CodePage>, Raised> {
        if self.pending & (pending::CODE_CHANGED | pending::TIMER) != 0 {
            if self.pending & pending::CODE_CHANGED != 0 {
                blocks.flush();
            }
            let is_timer = self.pending & pending::TIMER != 0;
            self.pending &= !(pending::CODE_CHANGED | pending::TIMER);
            if is_timer {
                return Ok(None);
            }
        }
        for page in self.changed_code.drain(..) {
            blocks.forget(page);
        }
        // A fault leaves the rest for the next time.
        self.pending |= pending::FRAME_INCOMPLETE;
        self.complete_frame()?;
        self.forget_code_pages(blocks);
        let code = match blocks.pages.find(self) {
            Some(code) => {
                if let Some(system) = self.environment.system_mut() {
                    system.code = code.properties;
                }
                code
            }
            None => {
                let page = self.resolve_instructions(self.ip)?;
                // The walker may have replaced the translation of another page.
                self.forget_code_pages(blocks);
                let code = CodePage::new(page, self.note_code_page());
                blocks.pages.remember(self, code);
                code
            }
        };
        self.pending = 0;
        Ok(Some(code))
    }

    /// At the start of a run: in system mode, whoever holds the processor may have changed what code pages depend on.
    /// A program's change when its translations are flushed.
    pub(crate) fn recall_code_pages(&mut self) {
        if self.environment.system().is_some() {
            self.pending |= pending::CODE_PAGE;
        }
    }

    /// Forgets the code pages whose translation may have changed.
    fn forget_code_pages(&mut self, blocks: &mut BlockCache) {
        if self.pending & pending::CODE_PAGE != 0 {
            blocks.pages.forget(u8::MAX);
        } else if self.stale_code_regions != 0 {
            blocks.pages.forget(self.stale_code_regions);
        }
        self.stale_code_regions = 0;
        self.pending &= !pending::CODE_PAGE;
    }

    /// Executes one instruction under the PSR bits that hold for one instruction only or trap after each.
    #[cold]
    pub(crate) fn step(
        &mut self,
        execute: impl FnOnce(&mut Processor) -> Result<(), Raised>,
    ) -> Result<(), Raised> {
        let place = (self.ip, self.slot);
        if self.status & (psr::DB | psr::ID) == psr::DB && self.is_instruction_breakpoint(place.0) {
            return Err(self.raise(Fault::reference(FaultKind::Debug, Access::Execute, place.0)));
        }
        let before = self.status;
        let executed = execute(self);
        // Of the traps that come together the first is taken; its ISR shows the others.
        let (kind, mut code) = match executed {
            Ok(()) => (None, 0),
            Err(Raised) => match self.raised {
                Some(fault) if fault.kind.is_trap() => (Some(fault.kind), fault.isr),
                _ => return Err(Raised),
            },
        };
        // Bits that `rfi` has just set hold for the next instruction.
        self.status &= !(before & ONE_INSTRUCTION);
        if before & (psr::DA | psr::IA) != 0 {
            // What was looked up under PSR.da or ia may lack an accessed or dirty bit.
            self.translations_changed();
        }
        let is_branch = self.ip != place.0 && self.ip != place.0.wrapping_add(16)
            || self.ip == place.0 && self.slot <= place.1;
        let is_demotion = self.pending & pending::DEMOTED != 0;
        let traps = [
            (
                is_demotion && before & psr::LP != 0,
                FaultKind::LowerPrivilegeTransfer,
                trap::LOWER_PRIVILEGE_TRANSFER,
            ),
            (
                is_branch && before & psr::TB != 0,
                FaultKind::TakenBranch,
                trap::TAKEN_BRANCH,
            ),
            (before & psr::SS != 0, FaultKind::SingleStep, trap::SINGLE_STEP),
        ];
        let due = traps.into_iter().filter(|&(is_due, ..)| is_due);
        let kind = due.fold(kind, |first, (_, kind, bit)| {
            code |= bit;
            first.or(Some(kind))
        });
        let Some(kind) = kind else {
            return Ok(());
        };
        self.trapped = place;
        Err(self.raise(Fault::new(kind, code)))
    }

    /// Executes a block to its end or to a taken branch.
    #[inline(always)]
    fn execute(&mut self, block: &Block) -> Result<(), Raised> {
        self.block_start = self.ip;
        for operation in &block.operations {
            if self.predicates >> (operation.predicate & 63) & 1 == 0 {
                continue;
            }
            match semantics::execute(self, operation) {
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

    /// Moves on to the target of a branch that `operation` took.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, operation: &MicroOperation) {
        self.retired += u64::from(operation.retired);
        self.completed = self.bundle_address(operation);
        self.ip = self.target & !15;
        self.slot = (self.target & 3) as u8;
    }

    /// Leaves the instruction pointer where a handler of the fault that `operation` raised expects it.
    #[cold]
    pub(crate) fn stop_at(&mut self, operation: &MicroOperation) {
        self.ip = self.bundle_address(operation);
        self.slot = operation.slot();
        if self.ip != self.block_start {
            self.completed = self.ip.wrapping_sub(16);
        }
        self.retired += u64::from(operation.retired) - 1;
        if self.raised.is_some_and(|fault| fault.kind.is_trap()) {
            self.trapped = (self.ip, self.slot);
            self.retired += 1;
            self.skip_instruction();
        }
    }
}
