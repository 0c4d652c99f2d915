//! Delivering signals to handlers, and coming back.
//!
//! A Linux/ia64 kernel leaves part of the delivery to code in the gate page: that covers the interrupted frame,
//! switches the backing store and calls the handler. Here all of it happens at once, and the handler starts as if
//! that code had just called it; it returns there, to a `rt_sigreturn`. What handlers, `sigreturn` callers and
//! unwinders can see (frame, context, backing store, return address) is the same.

use bytemuck::Zeroable;
use sidestep_ia64::float::FloatRegister;
use sidestep_ia64::register_stack::{above, below, registers_between};
use sidestep_ia64::registers::application;
use sidestep_ia64::registers::frame::{FrameMarker, previous_function_state};
use sidestep_ia64::registers::status::{psr, rsc};
use sidestep_ia64::{Access, Fault, FaultKind, VirtualAddress};

use super::faults::FaultSignal;
use crate::host::signals::{self as host_signals, RawInformation, set_of};
use crate::memory::Memory;
use crate::memory::gate;
use crate::signal::actions::{Action, DefaultAction, default_action};
use crate::signal::context::{self, AlternateStack, SignalContext, SignalFrame};
use crate::thread::Thread;
use crate::thread::syscalls::{SystemCallResult, Unfinished};

/// FPSR at the start of a program and of a handler: traps disabled, extended precision, round to nearest.
pub const FPSR_DEFAULT: u64 = 0x0009_804c_0270_033f;
/// The scratch area below every frame.
const SCRATCH: u64 = 16;
/// What a handler is called with.
const HANDLER_ARGUMENTS: u32 = 3;

/// Registers the interrupted code may hold values in that calls destroy, restored unless in a system call.
const SCRATCH_GENERAL: [u8; 19] = [
    2, 3, 14, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
];
/// Registers that are always restored.
const ALWAYS_GENERAL: [u8; 8] = [1, 8, 9, 10, 11, 12, 13, 15];
/// Floating-point registers that a call destroys.
const SCRATCH_FLOATING: std::ops::RangeInclusive<u8> = 6..=15;

/// A system call that was interrupted: what its result would be, and whether it may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// Repeat it even if the handler does not ask for it.
    pub always: bool,
}

/// The guest cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Killed {
    /// By this signal.
    pub signal: i32,
}

impl Thread {
    /// Delivers what waits, after a system call or at any other boundary. `interrupted` says that the instruction
    /// pointer is at a system call that a signal kept from finishing.
    pub fn deliver_signals(&mut self, mut interrupted: Option<Interrupted>) -> Result<(), Killed> {
        host_signals::block_all();
        loop {
            let Some(information) = self.inbox.take(self.blocked) else {
                match self.saved_mask.take() {
                    // The call waited under another mask and no handler runs: look again under the old one.
                    Some(mask) => {
                        self.blocked = mask;
                        continue;
                    }
                    None => break,
                }
            };
            let signal = information.signal();
            if !self.debugger_passes(signal) {
                continue;
            }
            let action = self.process.actions().of(signal);
            if action.is_ignored() {
                continue;
            }
            if action.is_default() {
                match default_action(signal) {
                    DefaultAction::Terminate => return Err(Killed { signal }),
                    DefaultAction::Ignore | DefaultAction::JobControl => continue,
                }
            }
            if let Some(Interrupted { always }) = interrupted.take()
                && !always
                && !action.has(libc::SA_RESTART)
            {
                self.finish_system_call(Err(Unfinished::Error(crate::host::Errno(libc::EINTR))));
            }
            self.enter_handler(&information, action)?;
        }
        self.inbox.recheck(self.blocked);
        host_signals::set_mask(self.blocked);
        Ok(())
    }

    /// Delivers the signal of a fault. It cannot be blocked or ignored: then the process ends.
    pub fn deliver_fault(&mut self, fault: FaultSignal) -> Result<(), Killed> {
        let action = self.process.actions().of(fault.signal);
        let blocked = self.blocked & set_of(fault.signal) != 0;
        if blocked || action.is_default() || action.is_ignored() {
            return Err(Killed { signal: fault.signal });
        }
        host_signals::block_all();
        self.enter_handler(&fault.information(), action)?;
        self.inbox.recheck(self.blocked);
        host_signals::set_mask(self.blocked);
        Ok(())
    }

    /// Writes the frame and starts the handler. Host signals are blocked.
    fn enter_handler(&mut self, information: &RawInformation, action: Action) -> Result<(), Killed> {
        let killed = Killed {
            signal: libc::SIGSEGV,
        };
        let signal = information.signal();
        if action.has(libc::SA_RESETHAND) {
            self.process.actions().reset(signal);
        }
        if self.processor.is_frame_incomplete() {
            return Err(killed);
        }
        let interrupted_frame = self.processor.frame;
        self.processor.cover_frame();
        let stored = self.processor.flush_stack();

        let mut stack_pointer = self.processor.general.value(12);
        let mut backing_store_base = 0;
        let stack = self.alternate_stack;
        if action.has(libc::SA_ONSTACK) && stack.size != 0 && !stack.holds(stack_pointer) {
            stack_pointer = stack.start + stack.size;
            let store = self.processor.application(application::BSPSTORE);
            if !stack.holds(store) {
                backing_store_base = (stack.start + 7) & !7;
            }
        }
        let frame_address = stack_pointer.wrapping_sub(size_of::<SignalFrame>() as u64) & !15;
        if action.has(libc::SA_ONSTACK) && stack.holds(stack_pointer) && !stack.holds(frame_address) {
            return Err(killed);
        }
        let mut context = self.capture(interrupted_frame);
        let (store, collection) = match (backing_store_base, stored) {
            (0, Ok(())) => (context.backing_store_pointer, context.nat_collection),
            (base, Ok(())) => (base, 0),
            (0, Err(_)) => return Err(killed),
            (base, Err(_)) => {
                context.load_distance = self.move_dirty_registers(base).ok_or(killed)?;
                (
                    self.processor.application(application::BSP),
                    self.processor.application(application::RNAT),
                )
            }
        };
        if stack.holds(frame_address) {
            context.flags |= context::ON_STACK;
        }
        context.backing_store_base = backing_store_base;
        context.mask = self.saved_mask.take().unwrap_or(self.blocked);
        let context_address = frame_address + std::mem::offset_of!(SignalFrame, context) as u64;
        let frame = SignalFrame {
            signal: signal as u64,
            information_address: frame_address + std::mem::offset_of!(SignalFrame, information) as u64,
            context_address,
            handler: action.handler,
            information: *information,
            context,
        };
        let memory = self.process.memory.clone();
        self.touch_stack(frame_address);
        memory.write(frame_address, &frame).map_err(|_| killed)?;
        let [entry, global_pointer]: [u64; 2] = memory.read(action.handler).map_err(|_| killed)?;

        self.blocked |= action.mask;
        if !action.has(libc::SA_NODEFER) {
            self.blocked |= set_of(signal);
        }
        self.blocked &= !(set_of(libc::SIGKILL) | set_of(libc::SIGSTOP));
        if stack.flags & SS_AUTODISARM != 0 && stack.holds(frame_address) {
            self.alternate_stack = AlternateStack::NONE;
        }
        self.processor.register_stack_mut().restart(store, collection);
        if backing_store_base != 0 {
            let eager = rsc::MODE | 3 << rsc::PRIVILEGE_SHIFT;
            self.processor.set_application(application::RSC, eager);
        }
        self.start_handler(
            frame_address,
            [frame.signal, frame.information_address, context_address],
        );
        self.processor.general.set(1, global_pointer);
        self.processor.set_instruction_pointer(entry, 0);
        self.statistics.signals += 1;
        if let Some(hold) = &mut self.hold {
            hold.has_entered_handler(&mut self.processor);
        }
        Ok(())
    }

    /// Makes sure that a stack has grown to where a frame will be.
    fn touch_stack(&self, address: u64) {
        let need = crate::memory::Need {
            read: false,
            write: true,
            execute: false,
        };
        let _ = self.process.memory.view(address, need);
    }

    /// The registers of the interrupted context, whose frame is covered and stored.
    fn capture(&self, interrupted_frame: FrameMarker) -> SignalContext {
        let processor = &self.processor;
        let (address, slot) = processor.instruction_pointer();
        let mut context: SignalContext = Zeroable::zeroed();
        context.flags = context::HIGH_FLOATING_VALID
            | if self.in_system_call {
                context::IN_SYSTEM_CALL
            } else {
                0
            };
        context.stack = self.alternate_stack;
        context.instruction_pointer = address + u64::from(slot);
        context.frame_marker = interrupted_frame.bits();
        context.user_mask = processor.status & psr::USER_MASK;
        context.register_stack_configuration = processor.application(application::RSC);
        context.backing_store_pointer = processor.application(application::BSP);
        context.nat_collection = processor.application(application::RNAT);
        context.compare_value = processor.application(application::CCV);
        context.user_nats = processor.application(application::UNAT);
        context.floating_status = processor.application(application::FPSR);
        context.previous_function_state = processor.application(application::PFS);
        context.loop_count = processor.application(application::LC);
        context.compare_store_data = processor.application(application::CSD);
        context.store_data = processor.application(application::SSD);
        context.predicates = processor.predicates;
        context.branch = processor.branch;
        for register in 1..32u8 {
            context.general[usize::from(register)] = processor.general.value(register);
            context.nats |= u64::from(processor.general.nat(register)) << register;
        }
        for register in 0..128u8 {
            context.floating[usize::from(register)] = processor.floating(register).to_spill();
        }
        context
    }

    /// Stores the registers that the interrupted backing store has no room for at the base of the handler's own;
    /// answers how many bytes they take, in the form of ar.rsc.loadrs.
    fn move_dirty_registers(&mut self, base: u64) -> Option<u64> {
        self.processor.set_application(application::BSPSTORE, base);
        self.processor.set_application(application::RNAT, 0);
        self.processor.flush_stack().ok()?;
        Some((self.processor.application(application::BSP) - base) << rsc::LOAD_SHIFT)
    }

    /// Puts the processor where the gate page has just called the handler.
    fn start_handler(&mut self, frame_address: u64, arguments: [u64; 3]) {
        let processor = &mut self.processor;
        let frame = FrameMarker {
            size: HANDLER_ARGUMENTS,
            ..FrameMarker::default()
        };
        let epilogue =
            processor.application(application::EC) << previous_function_state::EPILOGUE_COUNT_SHIFT;
        processor.frame = frame;
        processor.set_application(
            application::PFS,
            frame.bits() | epilogue | 3 << previous_function_state::PRIVILEGE_SHIFT,
        );
        for (register, argument) in (32u8..).zip(arguments) {
            processor.general.set(register, argument);
        }
        processor.general.set(12, frame_address - SCRATCH);
        processor.branch[0] = gate::SIGNAL_RETURN;
        processor.set_application(application::FPSR, FPSR_DEFAULT);
        processor.status &= !psr::BE;
        processor.forget_advanced_loads();
    }

    /// `rt_sigreturn`: goes back to the context in the frame above the stack pointer.
    pub fn return_from_handler(&mut self) -> SystemCallResult {
        let address =
            self.processor.general.value(12) + SCRATCH + std::mem::offset_of!(SignalFrame, context) as u64;
        let killed = FaultSignal {
            signal: libc::SIGSEGV,
            code: libc::SI_KERNEL,
            address: 0,
            immediate: 0,
            status: None,
        };
        let context = self.process.memory.read::<SignalContext>(address);
        let restored = context.ok().and_then(|context| self.restore(&context).ok());
        if restored.is_none() {
            self.pending_fault = Some(killed);
        }
        Err(Unfinished::Resumed)
    }

    fn restore(&mut self, context: &SignalContext) -> Result<(), Fault> {
        host_signals::block_all();
        self.blocked = context.mask & !(set_of(libc::SIGKILL) | set_of(libc::SIGSTOP));
        self.inbox.recheck(self.blocked);
        host_signals::set_mask(self.blocked);
        if !self.alternate_stack.holds(self.processor.general.value(12))
            || context.stack.flags & SS_AUTODISARM != 0
        {
            self.alternate_stack = context.stack;
        }

        let processor = &mut self.processor;
        processor.flush_stack()?;
        let reached = processor.application(application::BSP);
        let collection = match context.load_distance >> rsc::LOAD_SHIFT {
            0 if reached == context.backing_store_pointer => processor.application(application::RNAT),
            0 => context.nat_collection,
            distance => {
                let source = Moved {
                    start: reached.wrapping_sub(distance),
                    end: reached,
                };
                let last = processor.application(application::RNAT);
                source.put_back(&self.process.memory, last, context)?
            }
        };
        processor.frame = FrameMarker::default();
        processor
            .register_stack_mut()
            .restart(context.backing_store_pointer, collection);

        let privilege = 3 << rsc::PRIVILEGE_SHIFT;
        let configuration = context.register_stack_configuration & rsc::IMPLEMENTED | privilege;
        processor.set_application(application::RSC, configuration);
        processor.set_application(application::UNAT, context.user_nats);
        processor.set_application(application::FPSR, context.floating_status);
        processor.set_application(
            application::PFS,
            context.previous_function_state & previous_function_state::IMPLEMENTED,
        );
        processor.status = processor.status & !psr::USER_MASK | context.user_mask & psr::USER_MASK;
        processor.predicates = context.predicates | 1;
        processor.branch[0] = context.branch[0];
        processor.branch[6] = context.branch[6];
        let mut restore_general = |register: u8| {
            let nat = context.nats >> register & 1 != 0;
            processor
                .general
                .set_with_nat(register, context.general[usize::from(register)], nat);
        };
        ALWAYS_GENERAL.into_iter().for_each(&mut restore_general);
        if context.flags & context::IN_SYSTEM_CALL == 0 {
            SCRATCH_GENERAL.into_iter().for_each(&mut restore_general);
            processor.set_application(application::CCV, context.compare_value);
            processor.set_application(application::CSD, context.compare_store_data);
            processor.set_application(application::SSD, context.store_data);
            processor.branch[7] = context.branch[7];
        }
        let high = if context.flags & context::HIGH_FLOATING_VALID != 0 {
            32..128u8
        } else {
            32..32
        };
        for register in SCRATCH_FLOATING.chain(high) {
            processor.set_floating(
                register,
                FloatRegister::from_spill(context.floating[usize::from(register)]),
            );
        }
        processor.status = processor.status & !psr::MFH | context.user_mask & psr::MFH;
        let place = context.instruction_pointer;
        processor.set_instruction_pointer(place & !3, (place & 3) as u8);
        processor.forget_advanced_loads();
        processor.resume_frame(FrameMarker::from_bits(context.frame_marker))
    }
}

/// Registers that `move_dirty_registers` put at the base of a handler's backing store.
struct Moved {
    start: u64,
    end: u64,
}

impl Moved {
    /// Stores them where they belong, below the interrupted context's BSP; answers the RNAT that goes with it.
    fn put_back(&self, memory: &Memory, last_collection: u64, context: &SignalContext) -> Result<u64, Fault> {
        let fault = |address: u64| {
            let address = VirtualAddress(address);
            move |_| Fault::reference(FaultKind::PageNotPresent, Access::RegisterStackWrite, address)
        };
        let slot = |address: u64| address >> 3 & COLLECTION_SLOT;
        let count = registers_between(self.start, self.end);
        let target = below(context.backing_store_pointer, count);
        let mut collection = context.nat_collection;
        for index in 0..count {
            let (from, to) = (above(self.start, index), above(target, index));
            let collected_at = from | COLLECTION_SLOT << 3;
            let nats = if collected_at < self.end {
                memory.read(collected_at)
            } else {
                Ok(last_collection)
            };
            let nat = nats.map_err(fault(from))? >> slot(from) & 1;
            let value: u64 = memory.read(from).map_err(fault(from))?;
            memory.write(to, &value).map_err(fault(to))?;
            collection = collection & !(1 << slot(to)) | nat << slot(to);
            if slot(to) == COLLECTION_SLOT - 1 {
                memory.write(to + 8, &collection).map_err(fault(to))?;
                collection = 0;
            }
        }
        Ok(collection)
    }
}

/// The slot of a backing store's 64-word groups that holds the NaT bits of the others.
const COLLECTION_SLOT: u64 = 63;

/// `SS_AUTODISARM`: the alternate stack is off while a handler runs on it.
const SS_AUTODISARM: i32 = 1 << 31;
