//! One hardware thread that shares caches, memory and execution units with others.
//!
//! An instruction takes what the host's table says, more while a sibling executes. A reference that misses the core's
//! own cache takes more: a hit in the shared cache, or a line from memory, which costs its latency if it is isolated
//! and, as hardware prefetches it, a share of that if the line next to it was the last from its page. How long all that
//! takes is the same for a whole epoch: the [`Pace`].

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sidestep_ia64::encoding::{DecodedSlot, Instruction, Operation};
use sidestep_ia64::execution::{Dynamic, Event, Observer, Permission, Place, Translation};
use sidestep_ia64::{Exit, Processor, TranslationSide};

use super::cache::Cache;
use super::table::LINE_LOG2;
use crate::virtual_machine::{Core, MachineAddress};

/// Pages that a stream is followed in at once, as many as the streamer of the Nehalem's second level follows (Intel
/// 248966-020, 2.2.4.4); a stream ends at a page of 4 kB.
const STREAMS: usize = 32;
const PAGE_LOG2: u32 = 12;
/// Translations that are remembered during a run, in which they stay: a guest that changes one exits.
const TRANSLATIONS: usize = 64;

/// What things take on a hardware thread in an epoch, in thousandths of a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pace {
    /// An instruction.
    pub instruction: u64,
    /// A hit in the shared cache, beyond the instruction.
    pub shared: u64,
    /// A line from memory that was prefetched.
    pub streamed: u64,
    /// A line from memory that was not.
    pub isolated: u64,
}

/// What a hardware thread has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    pub instructions: u64,
    /// Hits in the shared cache.
    pub shared: u64,
    /// Lines from memory that were prefetched.
    pub streamed: u64,
    /// Lines from memory that were not.
    pub isolated: u64,
    /// Times that a guest has said that it waits in a loop (`hint @pause`).
    pub pauses: u64,
}

/// The part of a socket's shared cache that one virtual machine has.
pub(super) struct Slice {
    pub cache: Cache,
    /// Lines that it took from memory since the epoch began.
    pub filled: u64,
}

/// A hardware thread, as its driver and the host both see it: the driver while a virtual processor runs, the host
/// between epochs.
pub(super) struct Thread {
    /// What its core has for itself, halved while a sibling executes.
    pub private: Cache,
    /// The shared cache, for the virtual machine that it runs now.
    pub slice: Arc<Mutex<Slice>>,
    pub pace: Pace,
    /// Since the epoch began.
    pub traffic: Traffic,
    /// The last line that came from memory of some pages.
    streams: [u64; STREAMS],
    /// Thousandths of a cycle that it has run, and instructions that retired.
    spent: u64,
    retired: u64,
}

pub(super) type SharedThread = Arc<Mutex<Thread>>;

/// Locks; nobody panics while holding one.
pub(super) fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Thread {
    pub fn new(private: Cache, slice: Arc<Mutex<Slice>>) -> Thread {
        Thread {
            private,
            slice,
            pace: Pace::default(),
            traffic: Traffic::default(),
            streams: [u64::MAX; STREAMS],
            spent: 0,
            retired: 0,
        }
    }

    fn cycles(&self) -> u64 {
        self.spent / 1000
    }

    /// A reference to a line; what it takes beyond the instruction.
    #[inline]
    fn reference(&mut self, slice: &mut Slice, line: u64) -> u64 {
        if self.private.uses(line) {
            return 0;
        }
        if slice.cache.uses(line) {
            self.traffic.shared += 1;
            return self.pace.shared;
        }
        slice.filled += 1;
        let page = line >> (PAGE_LOG2 - LINE_LOG2);
        let stream = &mut self.streams[page as usize % STREAMS];
        let before = std::mem::replace(stream, line);
        if before.abs_diff(line) == 1 {
            self.traffic.streamed += 1;
            self.pace.streamed
        } else {
            self.traffic.isolated += 1;
            self.pace.isolated
        }
    }
}

/// What executes guests on a hardware thread.
pub(super) struct ContendedCore {
    thread: SharedThread,
    /// By how many cycles it was ahead of a cycle an instruction when a clock was moved on last.
    ahead: u64,
}

impl ContendedCore {
    pub fn new(thread: SharedThread) -> ContendedCore {
        ContendedCore { thread, ahead: 0 }
    }
}

impl Core for ContendedCore {
    fn run(&mut self, processor: &mut Processor, cycles: u64) -> (Exit, u64) {
        let mut thread = locked(&self.thread);
        let slice = Arc::clone(&thread.slice);
        let before = thread.cycles();
        let mut watch = Watch {
            halt: thread.spent.saturating_add(cycles.saturating_mul(1000)),
            thread: &mut thread,
            slice: &mut locked(&slice),
            translations: [(u64::MAX, 0); TRANSLATIONS],
            ahead: &mut self.ahead,
        };
        let exit = processor.run_observed(u64::MAX, &mut watch);
        if let Some(cycles) = watch.clock() {
            processor.advance_interval_time(cycles);
        }
        (exit, thread.cycles() - before)
    }

    /// Which virtual machine it is shows in the addresses.
    fn enter(&mut self, _: usize, _: usize) {}

    fn touch(&mut self, address: MachineAddress, bytes: u64, _: bool) {
        let mut thread = locked(&self.thread);
        let slice = Arc::clone(&thread.slice);
        let slice = &mut locked(&slice);
        let first = address.on_hardware().0;
        // What it takes is part of what the transition costs.
        for line in first >> LINE_LOG2..=(first + bytes.max(1) - 1) >> LINE_LOG2 {
            if !thread.private.uses(line) && !slice.cache.uses(line) {
                slice.filled += 1;
            }
        }
    }
}

/// What an instruction does that others beside the thread notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    None,
    /// Reads or writes memory, and waits for it.
    Refers,
    /// Says that it waits in a loop.
    Pauses,
}

/// Sees the references of a run.
struct Watch<'a> {
    thread: &'a mut Thread,
    slice: &'a mut Slice,
    /// Thousandths of a cycle at which the run ends.
    halt: u64,
    /// Pages of virtual addresses and the physical ones behind them.
    translations: [(u64, u64); TRANSLATIONS],
    ahead: &'a mut u64,
}

impl Watch<'_> {
    #[inline]
    fn line(&mut self, memory: &dyn Translation, address: u64) -> u64 {
        let page = address >> PAGE_LOG2;
        let known = &mut self.translations[page as usize % TRANSLATIONS];
        if known.0 != page {
            let physical = memory.physical(TranslationSide::Data, page << PAGE_LOG2);
            *known = (page, physical >> PAGE_LOG2);
        }
        (known.1 << PAGE_LOG2 | address & ((1 << PAGE_LOG2) - 1)) >> LINE_LOG2
    }
}

impl Observer for Watch<'_> {
    type Static = Effect;

    fn decode(&mut self, instruction: &Instruction, _: &DecodedSlot) -> Effect {
        let access = instruction.operation.memory_access();
        match instruction.operation {
            Operation::Hint if instruction.immediate == 0 => Effect::Pauses,
            _ if access.is_some_and(|access| access.reads() || access.writes()) => Effect::Refers,
            _ => Effect::None,
        }
    }

    #[inline]
    fn retired(&mut self, effect: &Effect, dynamic: &Dynamic<'_>) {
        self.thread.retired += 1;
        self.thread.traffic.instructions += 1;
        self.thread.spent += self.thread.pace.instruction;
        if !dynamic.executed {
            return;
        }
        match (effect, dynamic.reference) {
            (Effect::Refers, Some(address)) => {
                let line = self.line(dynamic.memory, address);
                self.thread.spent += self.thread.reference(self.slice, line);
            }
            (Effect::Pauses, _) => self.thread.traffic.pauses += 1,
            _ => {}
        }
    }

    fn event(&mut self, _: &Event<'_>) {}

    fn clock(&mut self) -> Option<u64> {
        let ahead = self.thread.cycles().wrapping_sub(self.thread.retired);
        Some(ahead.wrapping_sub(std::mem::replace(self.ahead, ahead)))
    }

    #[inline]
    fn permits(&mut self, _: Place, _: Range<u64>) -> Permission {
        match self.thread.spent < self.halt {
            true => Permission::Block,
            false => Permission::Halt,
        }
    }
}
