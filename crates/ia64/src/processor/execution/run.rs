//! The execution loop.

use std::sync::Arc;

use crate::address::VirtualAddress;
use crate::fault::isr::trap;
use crate::fault::{Access, Fault, FaultKind};
use crate::memory::HostPage;
use crate::processor::execution::backend::{Backend, Interpreter, Running};
use crate::processor::execution::block::{Block, BlockCache, Blocks, Cut, FetchedInstruction, Forget};
use crate::processor::execution::code_page::{CodePage, CodePages};
use crate::processor::execution::kind::Detail;
use crate::processor::execution::observer::{Observer, Permission, Place, Registers, Watch};
use crate::processor::execution::operation::MicroOperation;
use crate::processor::{Environment, Processor, Raised, pending};
use crate::registers::application::ITC;
use crate::registers::status::psr;

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
    /// The observer does not permit to go on.
    Halted,
}

/// PSR bits that hold until one instruction has completed.
const ONE_INSTRUCTION: u64 = psr::ID | psr::DA | psr::DD | psr::ED | psr::IA;
/// PSR bits under which instructions execute one by one.
pub(crate) const STEPPED: u64 = ONE_INSTRUCTION | psr::SS | psr::TB | psr::LP | psr::DB;

/// What came of preparing the next block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prepared {
    Ready,
    /// The timer was set: its deadline must be looked at first.
    TimerSet,
}

/// A run: the blocks of its kind, those of other kinds, what executes them and who watches.
struct Session<'o, B: Backend, O: Observer> {
    blocks: Box<Blocks<B::Code, O::Static>>,
    others: BlockCache,
    backend: &'o mut B,
    watch: Watch<'o, O>,
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

    /// Executes until something needs the environment, or until `limit` more instructions retired.
    ///
    /// In system mode the processor takes its interruptions itself; only hypercalls end the run as faults.
    pub fn run(&mut self, limit: u64) -> Exit {
        self.run_with(limit, &mut Interpreter, &mut ())
    }

    /// As [`Processor::run`], telling `observer` of everything.
    pub fn run_observed<O: Observer>(&mut self, limit: u64, observer: &mut O) -> Exit {
        self.run_with(limit, &mut Interpreter, observer)
    }

    /// As [`Processor::run`], by a back end and under the eyes of an observer.
    pub fn run_with<B: Backend, O: Observer>(
        &mut self,
        limit: u64,
        backend: &mut B,
        observer: &mut O,
    ) -> Exit {
        let mut others = std::mem::take(&mut self.blocks);
        let mut session = Session {
            blocks: others.take::<B, O>(observer, self.retired),
            others,
            backend,
            watch: Watch::new(observer, self),
        };
        self.recall_code_pages();
        self.open_gate(limit);
        let end = self.retired.saturating_add(limit);
        let exit = self.run_with_interruptions(end, |processor, end| {
            let exit = processor.run_short_and_whole_blocks(&mut session, end);
            if O::DETAIL == Detail::Everything && processor.retired >= end {
                session.watch.synchronize_clock(processor);
            }
            exit
        });
        let Session {
            blocks, mut others, ..
        } = session;
        others.put(blocks);
        self.blocks = others;
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
            self.awaits_timer = timer != u64::MAX;
            let exit = run_until(self, end.min(timer));
            if self.awaits_timer && self.ticks_to_timer().is_none() {
                // Also when the run ends there for another reason, or an observer has moved the clock in the middle of
                // a block that went on to the match: it does not come again.
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
                Exit::Halted => return Exit::Halted,
                Exit::Limit if self.retired >= end => return Exit::Limit,
                Exit::Limit => {}
            }
        }
    }

    /// Runs whole blocks; those of a program that has not executed much, and that nobody watches, are short.
    fn run_short_and_whole_blocks<B: Backend, O: Observer>(
        &mut self,
        session: &mut Session<'_, B, O>,
        end: u64,
    ) -> Exit {
        let is_program = matches!(self.environment, Environment::Program(_));
        let whole_from = session.blocks.whole_from;
        let are_short =
            B::BEGINS_SHORT && is_program && O::DETAIL == Detail::Effects && self.retired < whole_from;
        if are_short != session.blocks.are_short {
            session.blocks.flush();
            session.blocks.are_short = are_short;
        }
        if are_short {
            let exit = self.run_blocks(session, end.min(whole_from));
            if exit != Exit::Limit || self.retired == end {
                return exit;
            }
            session.blocks.flush();
            session.blocks.are_short = false;
        }
        self.run_blocks(session, end)
    }

    fn run_blocks<B: Backend, O: Observer>(&mut self, session: &mut Session<'_, B, O>, end: u64) -> Exit {
        let interrupts = self.interrupts();
        let Session {
            blocks,
            others,
            backend,
            watch,
        } = session;
        let blocks: &mut Blocks<B::Code, O::Static> = blocks;
        watch.interrupted(self);
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
                if let Some(known) = self.known_code_page(&others.pages) {
                    code = known;
                } else {
                    match self.prepare(&mut code, blocks, others) {
                        Ok(Prepared::Ready) => {}
                        Ok(Prepared::TimerSet) => return Exit::Attention,
                        Err(Raised) => return Exit::Fault(self.take_fault()),
                    }
                }
                watch.prepared(self);
            }
            let key = code.key(self.ip, self.slot);
            let decoded;
            let block = match blocks.find(key) {
                Some(block) => block,
                None => {
                    let place = (self.ip, self.slot);
                    self.environment.instructions_read(key);
                    decoded = blocks.find_or_decode(key, place, code.page(), *backend, watch.observer);
                    &decoded
                }
            };
            let remaining = end - self.retired;
            let fits = u32::from(block.highest_target) <= 31 + self.frame.size;
            let is_whole = fits && u64::from(block.instructions) <= remaining && self.status & STEPPED == 0;
            if !is_whole && remaining == 0 {
                return Exit::Limit;
            }
            let mut permission = Permission::Block;
            let mut is_followed = false;
            if O::DETAIL == Detail::Everything {
                if let (Some(vector), Some(interrupts)) = (watch.observer.interrupt(), &interrupts) {
                    interrupts.request(vector);
                }
                let (ip, slot) = (self.ip, self.slot);
                let bundles = ip..ip.wrapping_add(block.size);
                permission = watch.observer.permits(Place { ip, slot }, bundles);
                if permission == Permission::Halt {
                    return Exit::Halted;
                }
                let last = block.known.last().and_then(|known| known.of_observer.as_ref());
                is_followed = watch
                    .observer
                    .follows(Place { ip, slot }, last, Registers::new(self));
            }
            let executed = if is_whole && permission == Permission::Block {
                let gathering = block.gathering.as_ref().filter(|_| is_followed);
                let gathers = gathering.filter(|gathering| watch.observer.gathers(gathering.identity));
                let running = Running {
                    processor: self,
                    known: &block.known,
                    watch,
                    is_followed,
                    gathers,
                    gathers_later: &block.gathered_later,
                    remaining,
                    interrupts: interrupts.as_deref(),
                };
                backend.enter(&block.code, running)
            } else {
                let cut = self.cut(match permission {
                    Permission::Instruction => 1,
                    Permission::Block | Permission::Halt => remaining,
                });
                let place = (self.ip, self.slot);
                // What was decoded serves where all of it is known; a run ends in blocks often.
                let whole = (O::DETAIL == Detail::Everything && fits).then(|| Arc::clone(block));
                self.environment.instructions_read(key);
                let narrow = blocks.find_or_cut(key, cut, || match whole {
                    Some(whole) if usize::from(cut.instructions_max) < whole.known.len() => {
                        whole.beginning(B::operations(&whole.code), cut.instructions_max)
                    }
                    _ => Block::narrow(place, code.page(), cut, watch.observer),
                });
                self.execute_narrow(&narrow, watch, is_followed)
            };
            if let Err(Raised) = executed
                && !self.serve_light_call()
            {
                return Exit::Fault(self.take_fault());
            }
        }
    }

    /// The instruction at the instruction pointer, fetched from `page`, whatever its address translates to.
    pub fn fetch_from(&self, page: &HostPage) -> FetchedInstruction {
        FetchedInstruction::new((self.ip, self.slot), page)
    }

    /// Executes the instruction at the instruction pointer, which was fetched before. Its interruption is returned and
    /// not taken.
    ///
    /// # Errors
    /// The fault or trap.
    pub fn execute_fetched(&mut self, fetched: &FetchedInstruction) -> Result<(), Fault> {
        let narrow = fetched.block(self.frame.size);
        let mut nobody = ();
        let mut watch = Watch::new(&mut nobody, self);
        let executed = self.execute_narrow(&narrow, &mut watch, false);
        self.outcome(executed)
    }

    /// What the next block is cut to where no more than `instructions` may retire; one does, if they are stepped.
    fn cut(&self, instructions: u64) -> Cut {
        let is_stepped = self.status & STEPPED != 0;
        Cut {
            frame_size: self.frame.size,
            instructions_max: match is_stepped {
                true => 1,
                false => u16::try_from(instructions).unwrap_or(u16::MAX),
            },
        }
    }

    /// Executes a block that was cut for the current frame and PSR.
    #[cold]
    fn execute_narrow<O: Observer>(
        &mut self,
        narrow: &Block<Box<[MicroOperation]>, O::Static>,
        watch: &mut Watch<'_, O>,
        is_followed: bool,
    ) -> Result<(), Raised> {
        let gathering = narrow
            .gathering
            .as_ref()
            .filter(|_| is_followed && self.status & STEPPED == 0);
        let gathers = gathering.filter(|gathering| watch.observer.gathers(gathering.identity));
        let gathers_later = match self.status & STEPPED {
            0 => &narrow.gathered_later[..],
            _ => &[],
        };
        let mut execute = |processor: &mut Processor| {
            let running = Running {
                processor,
                known: &narrow.known,
                watch,
                is_followed,
                gathers,
                gathers_later,
                remaining: u64::from(narrow.instructions),
                interrupts: None,
            };
            Interpreter.enter(&narrow.code, running)
        };
        if self.status & STEPPED != 0 {
            self.step(execute)
        } else {
            execute(self)
        }
    }

    /// The page that holds the next block, if it was fetched from before and nothing is pending.
    #[inline]
    fn known_code_page(&mut self, pages: &CodePages) -> Option<CodePage> {
        let nothing_pending = self.pending == 0
            && self.stale_code_regions == 0
            && self.changed_code.is_empty()
            && !self.is_frame_incomplete();
        if !nothing_pending {
            return None;
        }
        let found = pages.find(self)?;
        if let Some(system) = self.environment.system_mut() {
            system.code = found.properties;
        }
        Some(*found)
    }

    /// Does what is pending before the next block, and puts the page that holds it into `code`.
    #[cold]
    fn prepare(
        &mut self,
        code: &mut CodePage,
        running: &mut dyn Forget,
        others: &mut BlockCache,
    ) -> Result<Prepared, Raised> {
        if self.pending & (pending::CODE_CHANGED | pending::TIMER) != 0 {
            if self.pending & pending::CODE_CHANGED != 0 {
                running.flush();
                others.flush();
            }
            let is_timer = self.pending & pending::TIMER != 0;
            self.pending &= !(pending::CODE_CHANGED | pending::TIMER);
            if is_timer {
                return Ok(Prepared::TimerSet);
            }
        }
        for page in self.changed_code.drain(..) {
            running.forget(page);
            others.forget(page);
        }
        match self.find_code_page(code, others) {
            Ok(()) => {
                self.pending = 0;
                Ok(Prepared::Ready)
            }
            Err(Raised) => {
                // The rest is left for the next time.
                self.pending |= pending::FRAME_INCOMPLETE;
                Err(Raised)
            }
        }
    }

    /// Fills the frame that was returned to, and finds the page of the next instruction.
    fn find_code_page(&mut self, code: &mut CodePage, others: &mut BlockCache) -> Result<(), Raised> {
        self.complete_frame()?;
        self.forget_code_pages(&mut others.pages);
        if let Some(found) = others.pages.find(self) {
            if let Some(system) = self.environment.system_mut() {
                system.code = found.properties;
            }
            *code = *found;
            return Ok(());
        }
        let page = self.resolve_instructions(self.ip)?;
        // The walker may have replaced the translation of another page.
        self.forget_code_pages(&mut others.pages);
        *code = CodePage::new(page, self.note_code_page());
        others.pages.remember(self, *code);
        Ok(())
    }

    /// At the start of a run: in system mode, whoever holds the processor may have changed what code pages depend on.
    /// A program's change when its translations are flushed.
    pub(crate) fn recall_code_pages(&mut self) {
        if self.environment.system().is_some() {
            self.pending |= pending::CODE_PAGE;
        }
    }

    /// Forgets the code pages whose translation may have changed.
    fn forget_code_pages(&mut self, pages: &mut CodePages) {
        if self.pending & pending::CODE_PAGE != 0 {
            pages.forget(u8::MAX);
        } else if self.stale_code_regions != 0 {
            pages.forget(self.stale_code_regions);
        }
        self.stale_code_regions = 0;
        self.pending &= !pending::CODE_PAGE;
    }

    /// Executes one instruction under the PSR bits that hold for one instruction only or trap after each.
    #[cold]
    fn step(&mut self, execute: impl FnOnce(&mut Processor) -> Result<(), Raised>) -> Result<(), Raised> {
        let place = (self.ip, self.slot);
        if self.status & (psr::DB | psr::ID) == psr::DB && self.is_instruction_breakpoint(place.0) {
            return Err(self.raise(Fault::reference(
                FaultKind::Debug,
                Access::Execute,
                VirtualAddress(place.0),
            )));
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
}
