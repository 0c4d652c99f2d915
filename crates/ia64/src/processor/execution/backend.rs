//! Back ends: what turns decoded blocks into something that can be executed.
//!
//! The [`Interpreter`] is the reference. Whatever another back end makes of a block must leave every register, every
//! byte of memory, the number of retired instructions and every fault as the interpreter does.

use std::sync::atomic::AtomicBool;

use crate::address::VirtualAddress;
use crate::encoding::DecodedSlot;
use crate::encoding::Effects;
use crate::interrupts::Interrupts;
use crate::memory::HostPage;
use crate::processor::execution::block::Known;
use crate::processor::execution::gathering::Gathering;
use crate::processor::execution::kind::Detail;
use crate::processor::execution::observer::{Dynamic, Event, Observer, Place, Registers, Watch};
use crate::processor::execution::operation::{Flow, MicroOperation, Step};
use crate::processor::execution::run::STEPPED;
use crate::processor::layout::OF_BACK_END_WORDS;
use crate::processor::semantics;
use crate::processor::{Processor, Raised};

/// An instruction of a decoded block.
#[derive(Clone, Copy, Debug)]
pub struct BlockInstruction {
    /// The slot, with the instruction or why there is none.
    pub decoded: DecodedSlot,
    /// Where it stands: bundles from the block's first one.
    pub bundle: u16,
    /// How many instructions of the block have retired once this one has.
    pub retired: u16,
    /// Whether it writes a general register outside the frame: an illegal operation.
    pub is_outside_frame: bool,
}

/// Bundles decoded together: what a back end translates. It holds no absolute guest address.
#[derive(Clone, Debug)]
pub struct DecodedBlock {
    /// The instructions, in order.
    pub instructions: Vec<BlockInstruction>,
    /// Where execution goes on behind the block, as bundle from its first one and slot.
    pub next: (u16, u8),
    /// How many instructions retire when it is executed to its end, those that were decoded away included.
    pub retired: u16,
    /// The highest general register that it may write before it changes its frame.
    pub highest_target: u8,
}

/// Turns blocks into code of its own, and executes that.
///
/// Invalidation needs nothing of it: code is dropped with its block, by the one way in which blocks are forgotten
/// (overwritten instructions, see [`Processor::forget_instructions`], and everything that reports there).
pub trait Backend {
    /// A translated block. It may change itself while others hold it: a count of executions, a link to another block.
    type Code: Send + Sync + 'static;

    /// Whether it is given short blocks while a program has not executed much, and whole ones later. That pays where
    /// translating is quick: what was translated until then is forgotten.
    const BEGINS_SHORT: bool = false;

    /// Translates a block. A back end to which a block is not worth its trouble (yet) keeps what the [`Interpreter`]
    /// makes of it in its code and executes that.
    fn translate(&mut self, block: &DecodedBlock, context: &Context) -> Self::Code;

    /// What the [`Interpreter`] makes of the block.
    fn operations(code: &Self::Code) -> &[MicroOperation];

    /// Executes a translated block whose first instruction stands at the instruction pointer, to its end or to a taken
    /// branch.
    ///
    /// # Errors
    /// An instruction has raised a fault: the instruction pointer is at it, and it has changed nothing.
    fn enter<O: Observer>(&mut self, code: &Self::Code, running: Running<'_, '_, O>) -> Result<(), Raised>;
}

/// What holds for a block when it is translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// What the block holds.
    pub detail: Detail,
    /// The frame that it runs in, where that is known.
    pub frame_size: Option<u32>,
    /// The host address of its first bundle, with the slot of its first instruction in the low bits. Blocks at equal
    /// distances on one page are at equal distances for the guest.
    pub place: u64,
    /// The host addresses of the page that it stands on: the first, and the one behind the last.
    pub page: (u64, u64),
}

impl Context {
    /// What holds for the block at an address and slot, which stands on a page.
    pub(crate) fn new(place: (u64, u8), page: &HostPage, frame_size: Option<u32>, detail: Detail) -> Context {
        let host = page.host as u64;
        Context {
            detail,
            frame_size,
            place: host.wrapping_add(place.0.wrapping_sub(page.start.0)) | u64::from(place.1),
            page: (host, host.wrapping_add(1 << page.size_log2)),
        }
    }
}

/// The processor that a block is executed on, and who watches it.
pub struct Running<'a, 'o, O: Observer> {
    pub(crate) processor: &'a mut Processor,
    pub(crate) known: &'a [Known<O::Static>],
    pub(crate) watch: &'a mut Watch<'o, O>,
    /// Whether the observer follows the block.
    pub(crate) is_followed: bool,
    /// How the block's first instructions are gathered, if the observer takes them together.
    pub(crate) gathers: Option<&'a Gathering>,
    /// How those behind one that stands apart may be gathered, in order.
    pub(crate) gathers_later: &'a [Gathering],
    /// How many instructions may retire; the block has no more.
    pub(crate) remaining: u64,
    pub(crate) interrupts: Option<&'a Interrupts>,
}

impl<O: Observer> Running<'_, '_, O> {
    /// The processor; [`layout`](crate::processor::layout) says where its state lies.
    pub fn processor(&mut self) -> &mut Processor {
        self.processor
    }

    /// How many instructions may retire before the run ends: a back end that goes on with other blocks looks whether
    /// they are no longer.
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Flags at which a back end that goes on with other blocks looks before each, or in a program every now and then,
    /// and leaves if one is set. Other threads and devices set them.
    pub fn flags(&self) -> [&AtomicBool; 2] {
        let attention = self.processor.attention_flag();
        [
            attention,
            self.interrupts.map_or(attention, Interrupts::signalled),
        ]
    }

    /// Whether a back end that has executed a block may go on with the one at the instruction pointer by itself:
    /// nothing is to be done before it, nobody wants the processor, and blocks are executed whole. Programs may go on
    /// anywhere; in system mode only the page is known on which the block stood. Whether the next block fits what
    /// remains and the frame is left to the back end.
    #[inline(always)]
    pub fn may_go_on(&self) -> bool {
        let processor = &*self.processor;
        processor.pending == 0
            && processor.status & STEPPED == 0
            && !processor.wants_attention()
            && !self.interrupts.is_some_and(Interrupts::is_signalled)
    }
}

/// The last instructions of a block that an observer is told of.
pub(super) struct Observed<'a, S> {
    pub operations: &'a [MicroOperation],
    pub known: &'a [Known<S>],
    /// The index of the first of them in the block.
    pub first: usize,
    /// Where some of them may be gathered: in order, no earlier than the first.
    pub later: &'a [Gathering],
}

impl<'a, S> Observed<'a, S> {
    /// All of a block.
    pub fn block(operations: &'a [MicroOperation], known: &'a [Known<S>], later: &'a [Gathering]) -> Self {
        Observed {
            operations,
            known,
            first: 0,
            later,
        }
    }

    /// Those from one of them on.
    pub fn from(&self, index: usize) -> Observed<'a, S> {
        let first = self.first + index;
        let passed = self.later.iter().take_while(|gathering| gathering.first < first);
        Observed {
            operations: &self.operations[index..],
            known: &self.known[index..],
            first,
            later: &self.later[passed.count()..],
        }
    }
}

/// Executes operations one after the other: the reference.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interpreter;

impl Backend for Interpreter {
    type Code = Box<[MicroOperation]>;

    const BEGINS_SHORT: bool = true;

    fn translate(&mut self, block: &DecodedBlock, _: &Context) -> Box<[MicroOperation]> {
        let lowered = block.instructions.iter().map(|instruction| {
            let slot = instruction.decoded.slot;
            let mut operation = match instruction.decoded.instruction {
                Ok(decoded) if instruction.is_outside_frame => semantics::illegal(decoded.predicate()),
                Ok(decoded) => semantics::lower(&decoded, slot, u64::from(instruction.bundle) * 16),
                Err(illegal) => semantics::illegal(illegal.predicate()),
            };
            operation.retired = instruction.retired;
            operation.place = instruction.bundle << 2 | u16::from(slot);
            operation
        });
        let leave = semantics::leave_to(block.next, block.retired);
        lowered.chain([leave]).collect()
    }

    fn operations(code: &Box<[MicroOperation]>) -> &[MicroOperation] {
        code
    }

    #[inline(always)]
    fn enter<O: Observer>(
        &mut self,
        code: &Box<[MicroOperation]>,
        running: Running<'_, '_, O>,
    ) -> Result<(), Raised> {
        let Running {
            processor,
            known,
            watch,
            is_followed,
            gathers,
            gathers_later,
            ..
        } = running;
        match O::DETAIL {
            Detail::Everything if is_followed => {
                processor.block_start = processor.ip;
                let block = Observed::block(code, known, gathers_later);
                match gathers {
                    Some(gathering) => processor.execute_gathered(&block, gathering, watch),
                    None => processor.observe_rest(&block, watch),
                }
            }
            Detail::Everything | Detail::Effects => processor.execute(code),
        }
    }
}

/// How far a back end has come that does not keep it in the processor's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Where the block starts; `None` where the processor knows.
    pub block_start: Option<u64>,
    /// How many more instructions had retired there than the processor knows of.
    pub retired: u64,
}

impl Processor {
    /// Notes how far a back end has come.
    pub fn note_progress(&mut self, progress: &Progress) {
        self.block_start = progress.block_start.unwrap_or(self.block_start);
        self.retired += progress.retired;
    }

    /// Executes a block to its end or to a taken branch.
    #[inline(always)]
    fn execute(&mut self, operations: &[MicroOperation]) -> Result<(), Raised> {
        self.block_start = self.ip;
        self.execute_rest(operations)
    }

    /// Executes the last operations of the block that starts at `block_start`.
    #[inline(always)]
    fn execute_rest(&mut self, operations: &[MicroOperation]) -> Result<(), Raised> {
        for operation in operations {
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

    /// Executes one operation, whatever its predicate is, for a back end that has none of its own for it. Where its
    /// block starts, and how many instructions had retired there, stands in
    /// [`BLOCK_START`](crate::processor::layout::BLOCK_START) and [`RETIRED`](crate::processor::layout::RETIRED). A
    /// branch that it takes is complete; where it raises a fault, the processor is as a block's execution leaves it.
    pub fn perform(&mut self, operation: &MicroOperation) -> Step {
        let step = (operation.execute)(self, operation);
        match step {
            Ok(Flow::Next) => {}
            Ok(Flow::Branch) => self.arrive(operation),
            Err(Raised) => self.stop_at(operation),
        }
        step
    }

    /// Words that are kept for the back end, which its code finds at
    /// [`OF_BACK_END`](crate::processor::layout::OF_BACK_END). They are no state of the processor's.
    pub fn of_back_end(&mut self) -> &mut [u64; OF_BACK_END_WORDS] {
        &mut self.of_back_end
    }

    /// Executes the last operations of a block, what a back end leaves over; as for [`Processor::perform`], the
    /// processor knows where the block starts.
    ///
    /// # Errors
    /// As [`Backend::enter`].
    pub fn finish_block(&mut self, operations: &[MicroOperation]) -> Result<(), Raised> {
        self.execute_rest(operations)
    }

    /// Executes the last operations of the block that starts at `block_start`, telling of every instruction: of each by
    /// itself, but where the next stretch begins that the observer takes together.
    pub(super) fn observe_rest<O: Observer>(
        &mut self,
        block: &Observed<'_, O::Static>,
        watch: &mut Watch<'_, O>,
    ) -> Result<(), Raised> {
        let (leave, operations) = block
            .operations
            .split_last()
            .expect("an operation leaves the block");
        let mut later = block.later;
        for (index, (operation, known)) in operations.iter().zip(block.known).enumerate() {
            if let Some((next, behind)) = later.split_first()
                && next.first == block.first + index
            {
                later = behind;
                if watch.observer.gathers(next.identity) {
                    return self.execute_gathered(&block.from(index), next, watch);
                }
            }
            let place = Place {
                ip: self.bundle_address(operation),
                slot: operation.slot(),
            };
            let executed = self.predicate(known.predicate);
            if let (true, Some(of)) = (known.effects.contains(Effects::USES_COUNTERS), &known.of_observer) {
                watch.counters_used(self, of, place, executed);
            }
            let reference = match known.base {
                Some(base) if executed => Some(self.general.value(base)),
                _ => None,
            };
            let flow = if self.predicate(operation.predicate) {
                (operation.execute)(self, operation)
            } else {
                Ok(Flow::Next)
            };
            let did = Did {
                place,
                executed,
                reference,
                flow,
            };
            if !self.tell(operation, known, did, watch)? {
                return Ok(());
            }
        }
        (leave.execute)(self, leave)?;
        self.arrive(leave);
        Ok(())
    }

    /// Tells an observer of an instruction that was executed, and goes where it leads. Answers whether the block goes
    /// on behind it.
    #[inline(always)]
    pub(super) fn tell<O: Observer>(
        &mut self,
        operation: &MicroOperation,
        known: &Known<O::Static>,
        did: Did,
        watch: &mut Watch<'_, O>,
    ) -> Result<bool, Raised> {
        let Did {
            place,
            executed,
            reference,
            flow,
        } = did;
        if let (true, Some(of)) = (self.has_completed(flow), &known.of_observer) {
            watch.walks(self);
            if known.effects.intersects(TOLD) {
                self.tell_effects(known.effects, executed, operation, watch);
            }
            let dynamic = Dynamic {
                place,
                executed,
                reference,
                taken: (flow == Ok(Flow::Branch)).then_some(self.target),
                memory: self,
            };
            watch.observer.retired(of, &dynamic);
            if O::INSPECTS {
                watch.observer.inspect(of, &dynamic, Registers::new(self));
            }
        }
        match flow {
            Ok(Flow::Next) => Ok(true),
            Ok(Flow::Branch) => {
                self.arrive(operation);
                Ok(false)
            }
            Err(Raised) => {
                self.stop_at(operation);
                Err(Raised)
            }
        }
    }

    /// Whether an instruction has retired: it has, too, where a trap follows it.
    #[inline(always)]
    pub(super) fn has_completed(&self, flow: Step) -> bool {
        match flow {
            Ok(_) => true,
            Err(Raised) => self.raised.is_some_and(|fault| fault.kind.is_trap()),
        }
    }

    /// Tells an observer what an instruction has changed. Loop branches rename registers under a false predicate, too.
    #[cold]
    fn tell_effects<O: Observer>(
        &self,
        effects: Effects,
        executed: bool,
        operation: &MicroOperation,
        watch: &mut Watch<'_, O>,
    ) {
        let observer = &mut *watch.observer;
        if effects.contains(Effects::CHANGES_FRAME) {
            observer.event(&Event::Frame(self.observed_frame()));
        }
        if !executed {
            return;
        }
        if effects.contains(Effects::CHANGES_STATUS) {
            observer.event(&Event::Status(self.status));
        }
        if effects.contains(Effects::WRITES_REGION) {
            let index = VirtualAddress(self.general.value(operation.r3)).region();
            let value = self.system.region[index];
            observer.event(&Event::Region { index, value });
        }
        if effects.contains(Effects::WRITES_BRANCH) {
            let index = usize::from(operation.r1 & 7);
            let value = self.branch[index];
            observer.event(&Event::Branch { index, value });
        }
        if effects.contains(Effects::ADVANCED) {
            observer.event(&Event::AdvancedLoads(self.advanced_load_events()));
        }
        if effects.contains(Effects::WRITES_MONITOR) {
            observer.event(&Event::PerformanceMonitor(&self.observed_performance()));
        }
    }

    /// Moves on to the target of a branch that `operation` took.
    #[inline(always)]
    pub(super) fn arrive(&mut self, operation: &MicroOperation) {
        self.retired += u64::from(operation.retired);
        self.completed = self.bundle_address(operation);
        self.ip = self.target & !15;
        self.slot = (self.target & 3) as u8;
    }

    /// Leaves the instruction pointer where a handler of the fault that `operation` raised expects it.
    #[cold]
    pub(super) fn stop_at(&mut self, operation: &MicroOperation) {
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

/// What an instruction did, before anybody was told.
pub(super) struct Did {
    pub place: Place,
    pub executed: bool,
    pub reference: Option<u64>,
    pub flow: Step,
}

/// Effects that observers are told of.
const TOLD: Effects = Effects::CHANGES_FRAME
    .union(Effects::CHANGES_STATUS)
    .union(Effects::WRITES_REGION)
    .union(Effects::WRITES_BRANCH)
    .union(Effects::ADVANCED)
    .union(Effects::WRITES_MONITOR);
