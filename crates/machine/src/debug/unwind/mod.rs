//! Who called whom: frames through the unwind tables of the guest's kernel.
//!
//! - [`table`]: the procedures of an image and their descriptors.
//! - [`descriptor`]: descriptors as records.
//! - [`state`]: where a caller's registers are at an instruction.
//! - [`backtrace`]: from frame to frame, with registers and memory of a machine that stands still.
//!
//! Whatever the tables, registers and memory hold, a backtrace ends: after [`FRAMES_MAX`] frames, at an address of no
//! table (only the innermost may be one: it is taken for a procedure without a frame), at user code, where nothing says
//! where the return address is, and where a frame would be its own caller. Registers that are saved under a predicate,
//! and floating-point registers, are not followed.

pub mod descriptor;
pub mod state;
pub mod table;

use sidestep_ia64::register_stack::{above, below};
use sidestep_ia64::registers::application;
use sidestep_ia64::registers::frame::FrameMarker;
use sidestep_ia64::{Processor, VirtualAddress};

use crate::memory::GuestMemory;
use descriptor::Place;
use state::{Rules, Saved, rules_at};
use table::UnwindTable;

/// After how many frames a backtrace ends.
pub const FRAMES_MAX: usize = 64;

/// The frame kind of Linux's kernel interruptions: a `pt_regs` stands above the 16 bytes of scratch.
const INTERRUPTION: (u8, u8) = (3, b'i');
/// Offsets from the stack pointer in such a frame, after `struct pt_regs` of `arch/ia64/include/uapi/asm/ptrace.h`.
mod interruption {
    pub const STATUS: u64 = 16 + 0x40;
    pub const ADDRESS: u64 = 16 + 0x48;
    pub const FRAME: u64 = 16 + 0x50;
    pub const FUNCTION_STATE: u64 = 16 + 0x60;
    pub const PREDICATES: u64 = 16 + 0x80;
    pub const RETURN_ADDRESS: u64 = 16 + 0x88;
    pub const STACK: u64 = 16 + 0xa0;
}

/// How a frame's address is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// It is the next instruction.
    Now,
    /// Execution returns there.
    ByCall,
    /// It was interrupted there.
    ByInterruption,
}

/// A procedure that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The bundle.
    pub address: u64,
    /// The slot in it.
    pub slot: u8,
    /// The stack pointer.
    pub stack: u64,
    /// The first stacked register's place in the backing store.
    pub backing_store: u64,
    /// How it was left.
    pub reached: Reached,
}

impl Frame {
    /// The address that says in which procedure the frame is: that of the call, not of what stands behind it.
    pub fn place(&self) -> u64 {
        match self.reached {
            Reached::ByCall => self.address.wrapping_sub(16),
            _ => self.address,
        }
    }
}

/// What is known of a frame's registers.
struct Walker<'a> {
    processor: &'a Processor,
    memory: &'a GuestMemory,
    frame: Frame,
    marker: u64,
    function_state: u64,
    return_address: u64,
    predicates: u64,
    /// r4 to r7.
    general: [u64; 4],
    /// b1 to b5.
    branch: [u64; 5],
}

/// The frames of a processor, the innermost first. It must stand still.
pub fn backtrace(processor: &Processor, memory: &GuestMemory, table: &UnwindTable) -> Vec<Frame> {
    let (address, slot) = processor.instruction_pointer();
    let mut walker = Walker {
        processor,
        memory,
        frame: Frame {
            address,
            slot,
            stack: processor.general.value(12),
            backing_store: processor.register_stack().backing_store_pointer(),
            reached: Reached::Now,
        },
        marker: processor.frame.bits(),
        function_state: processor.application(application::PFS),
        return_address: processor.branch[0],
        predicates: processor.unrotated_predicates(),
        general: [4, 5, 6, 7].map(|index| processor.general.value(index)),
        branch: [1, 2, 3, 4, 5].map(|index| processor.branch[index]),
    };
    let mut frames = vec![walker.frame];
    while frames.len() < FRAMES_MAX && walker.step(table).is_some() {
        let last = frames.last().expect("it begins with one");
        if *last == walker.frame || walker.frame.address == 0 {
            break;
        }
        frames.push(walker.frame);
    }
    frames
}

impl Walker<'_> {
    /// Goes to the caller; `None` where it is not known.
    fn step(&mut self, table: &UnwindTable) -> Option<()> {
        let procedure = table.find(self.frame.place());
        if procedure.is_none() && self.frame.reached == Reached::Now && self.has_locals() {
            // Firmware that is called without a frame of its own (PAL's static procedures): a call leaves no locals.
            self.frame = Frame {
                address: self.return_address & !15,
                slot: 0,
                reached: Reached::ByCall,
                ..self.frame
            };
            return Some(());
        }
        let rules = match procedure {
            Some(procedure) => {
                let bundles = (self.frame.place() & !15).wrapping_sub(procedure.start) / 16;
                let slot = if self.frame.reached == Reached::ByCall {
                    2
                } else {
                    self.frame.slot
                };
                rules_at(procedure.descriptors, bundles * 3 + u64::from(slot))
            }
            None if self.frame.reached == Reached::Now => Rules::default(),
            None => return None,
        };
        if rules.abi == Some(INTERRUPTION) {
            return self.interrupted();
        }
        let at = |saved: Saved| rules.places.get(&saved).copied();
        let caller_stack = match at(Saved::StackPointer) {
            Some(Place::CallerStack(_)) => return None,
            Some(place) => self.read(place, 0)?,
            None => self.frame.stack.wrapping_add(rules.frame_bytes),
        };
        let read = |saved: Saved, unsaved: u64| match at(saved) {
            Some(place) => self.read(place, caller_stack),
            None => Some(unsaved),
        };
        if self.frame.reached == Reached::ByCall && at(Saved::ReturnAddress).is_none() {
            // The call has overwritten b0, so tables that name no other place say nothing: threads begin like this.
            return None;
        }
        let return_address = read(Saved::ReturnAddress, self.return_address)?;
        let function_state = read(Saved::FunctionState, self.function_state)?;
        let predicates = read(Saved::Predicates, self.predicates)?;
        let (mut general, mut branch) = (self.general, self.branch);
        for (number, value) in (4..).zip(&mut general) {
            *value = read(Saved::General(number), *value)?;
        }
        for (number, value) in (1..).zip(&mut branch) {
            *value = read(Saved::Branch(number), *value)?;
        }
        let locals = (function_state >> 7 & 0x7f) as u32;
        self.frame = Frame {
            address: return_address & !15,
            slot: 0,
            stack: caller_stack,
            backing_store: below(self.frame.backing_store, locals),
            reached: Reached::ByCall,
        };
        self.marker = function_state;
        (self.function_state, self.return_address) = (function_state, return_address);
        (self.predicates, self.general, self.branch) = (predicates, general, branch);
        Some(())
    }

    fn has_locals(&self) -> bool {
        FrameMarker::from_bits(self.marker).locals > 0
    }

    /// Goes to what an interruption has interrupted; `None` if its registers cannot be read.
    fn interrupted(&mut self) -> Option<()> {
        let word = |offset: u64| self.word(self.frame.stack.wrapping_add(offset));
        let (status, frame) = (word(interruption::STATUS)?, word(interruption::FRAME)?);
        let registers = FrameMarker::from_bits(frame).size.min(96);
        let function_state = word(interruption::FUNCTION_STATE)?;
        let return_address = word(interruption::RETURN_ADDRESS)?;
        let predicates = word(interruption::PREDICATES)?;
        let caller = Frame {
            address: word(interruption::ADDRESS)? & !15,
            slot: (status >> 41 & 3) as u8,
            stack: word(interruption::STACK)?,
            backing_store: below(self.frame.backing_store, registers),
            reached: Reached::ByInterruption,
        };
        self.frame = caller;
        self.marker = frame;
        (self.function_state, self.return_address) = (function_state, return_address);
        self.predicates = predicates;
        Some(())
    }

    /// The value of a register that is saved in a place.
    fn read(&self, place: Place, caller_stack: u64) -> Option<u64> {
        match place {
            Place::General(index @ 32..) => {
                let index = u32::from(index) - 32;
                let is_in_frame = index < FrameMarker::from_bits(self.marker).size;
                is_in_frame.then(|| self.word(above(self.frame.backing_store, index)))?
            }
            Place::General(index @ 4..=7) => Some(self.general[usize::from(index) - 4]),
            Place::General(index) => {
                (self.frame.reached == Reached::Now).then(|| self.processor.general.value(index))
            }
            Place::Branch(0) => Some(self.return_address),
            Place::Branch(index @ 1..=5) => Some(self.branch[usize::from(index) - 1]),
            Place::Branch(index) => {
                let value = self.processor.branch.get(usize::from(index)).copied()?;
                (self.frame.reached == Reached::Now).then_some(value)
            }
            Place::CallerStack(distance) => self.word(caller_stack.wrapping_add_signed(distance)),
            Place::Stack(distance) => self.word(self.frame.stack.wrapping_add_signed(distance)),
            Place::Floating(_) | Place::Itself => None,
        }
    }

    fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        let read =
            crate::virtual_memory::read(self.processor, self.memory, VirtualAddress(address), &mut bytes);
        (read == 8).then(|| u64::from_le_bytes(bytes))
    }
}

#[cfg(test)]
mod tests;
