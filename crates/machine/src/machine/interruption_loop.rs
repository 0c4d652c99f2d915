//! Guests whose handlers cannot execute: an interruption leads to the next, and nothing retires any more.
//!
//! As on the hardware the processor goes on so for ever, unless another one or a device changes what it finds. Whoever
//! runs it is told, once, and ends it if it is not to go on.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use sidestep_ia64::registers::system::control;
use sidestep_ia64::{Fault, Processor, VirtualAddress};

/// How many interruptions without an instruction between them are a loop: a sound handler's first bundle takes a few
/// at most, of its translation and of that of the page table.
const IN_A_ROW: u64 = 1000;

/// A processor takes interruptions and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptionLoop {
    /// Which processor.
    pub processor: usize,
    /// The interruption that it takes.
    pub fault: Fault,
    /// The address of the bundle where it takes it.
    pub ip: VirtualAddress,
    /// The address of its handler.
    pub handler: VirtualAddress,
}

impl InterruptionLoop {
    /// The loop that a processor is in, if it is in one.
    pub fn of(index: usize, processor: &Processor) -> Option<InterruptionLoop> {
        let interruptions = processor.fruitless_interruptions();
        let (fault, ip) = interruptions.last?;
        let table = processor.system.control[usize::from(control::IVA)];
        (interruptions.in_a_row >= IN_A_ROW).then(|| InterruptionLoop {
            processor: index,
            fault,
            ip: VirtualAddress(ip),
            handler: VirtualAddress(table.wrapping_add(fault.kind.vector())),
        })
    }
}

impl fmt::Display for InterruptionLoop {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InterruptionLoop {
            processor,
            fault,
            ip,
            handler,
        } = self;
        write!(
            out,
            "processor {processor} executes nothing any more, it takes one interruption after another: {} at {:#x}",
            fault.kind.name(),
            ip.0
        )?;
        if fault.kind.has_address() {
            write!(out, ", of the address {:#x}", fault.address.0)?;
        }
        write!(out, ", with its handler at {:#x}", handler.0)
    }
}

/// Whoever is told.
type Listener = Box<dyn Fn(&InterruptionLoop) + Send + Sync>;

/// Tells of the first loop of a machine.
#[derive(Default)]
pub struct LoopWatch {
    listener: OnceLock<Listener>,
    has_told: AtomicBool,
}

impl LoopWatch {
    /// Has `listener` told of the first loop; the first listener stays.
    pub fn tell(&self, listener: impl Fn(&InterruptionLoop) + Send + Sync + 'static) {
        let _ = self.listener.set(Box::new(listener));
    }

    /// Looks whether a processor is in a loop.
    pub(super) fn look(&self, index: usize, processor: &Processor) {
        if let (Some(found), Some(listener)) = (InterruptionLoop::of(index, processor), self.listener.get())
            && !self.has_told.swap(true, Ordering::Relaxed)
        {
            listener(&found);
        }
    }
}
