//! What a core of the host is beyond a number: what executes guests on it, and what it keeps from one to the next.
//!
//! Without a [`CoreModel`] a guest's instructions take what the table of costs says. With one they take what the model
//! says. Transitions cost what the table says either way; what the monitor's handlers touch goes through the core's
//! caches, where guests find less of their own afterwards. What a sidecore touches does not.

use std::fmt::Debug;

use sidestep_ia64::{Exit, PhysicalAddress, Processor};

use super::machine_address::MachineAddress;

/// Makes the cores of a host.
pub trait CoreModel: Debug + Send + Sync {
    /// One core, with cold caches.
    fn core(&self) -> Box<dyn Core>;
}

/// One core, which keeps the time of what executes on it.
pub trait Core: Send {
    /// Executes for at most `cycles`, or a little more where an instruction takes several, and moves the interval time
    /// counter on by them. Answers what ended it, [`Exit::Halted`] where the cycles are over, and the cycles that
    /// passed.
    fn run(&mut self, processor: &mut Processor, cycles: u64) -> (Exit, u64);

    /// Virtual processor `processor` of virtual machine `owner` executes next: the virtual addresses of a virtual
    /// machine are not those of others.
    fn enter(&mut self, owner: usize, processor: usize);

    /// The monitor reads or writes the cache lines of `bytes` from an address of machine memory on.
    fn touch(&mut self, address: MachineAddress, bytes: u64, writes: bool);
}

/// The monitor's own record of a virtual processor: what every exit saves and every entry restores. 32 static general
/// registers, eight branch registers, predicates and the application and control registers of an interruption.
const RECORD_BYTES: u64 = 512;
/// An entry of a long-format VHPT.
const ENTRY_BYTES: u64 = 32;

/// What the handlers of one virtual processor touch.
pub(super) struct Touched {
    owner: usize,
    processor: usize,
    /// What any handler touches.
    handler_bytes: u64,
}

impl Touched {
    pub(super) fn of(owner: usize, processor: usize, handler_bytes: u64) -> Touched {
        Touched {
            owner,
            processor,
            handler_bytes,
        }
    }

    /// An exit and the entry behind it.
    pub(super) fn transition(&self, core: &mut dyn Core) {
        let record = MachineAddress::of_record(self.owner, self.processor);
        core.touch(record, RECORD_BYTES, true);
        if self.handler_bytes > 0 {
            core.touch(MachineAddress::of_handlers(), self.handler_bytes, false);
        }
    }

    /// The entry of the shadow table at an offset.
    pub(super) fn shadow_entry(&self, core: &mut dyn Core, offset: u64) {
        let table = MachineAddress::of_table(self.owner, self.processor);
        core.touch(table.offset_by(offset), ENTRY_BYTES, true);
    }

    /// Guest-physical memory that the monitor works on.
    pub(super) fn guest(&self, core: &mut dyn Core, address: PhysicalAddress, bytes: u64, writes: bool) {
        core.touch(MachineAddress::of_guest(self.owner, address), bytes, writes);
    }
}
