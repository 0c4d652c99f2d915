//! What the processors of a machine share: memory, devices, the interrupt block, purges, time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sidestep_ia64::interrupts::Interrupts;
use sidestep_ia64::memory::GlobalPurge;
use sidestep_ia64::{MemoryRegion, PhysicalAddress, PhysicalMemory, Processor};

use super::ending::Ending;
use super::interrupt_block::InterruptBlock;
use super::interruption_loop::LoopWatch;
use super::purge::PurgeBoard;
use super::timeline::Timeline;
use super::wakeups::Wakeups;
use crate::bus::Bus;
use crate::memory::{GuestMemory, INTERRUPT_BLOCK, INTERRUPT_BLOCK_SIZE};

/// Work that a processor does itself before it runs on.
pub type Start = Box<dyn FnOnce(&mut Processor) + Send>;

/// What the processors of a machine share.
pub struct Platform {
    /// Its memory.
    pub memory: Arc<GuestMemory>,
    /// Its devices.
    pub bus: Bus,
    /// The way of interrupts to its processors.
    pub interrupts: Arc<InterruptBlock>,
    /// Its clock and agenda.
    pub timeline: Arc<Timeline>,
    /// What wakes whoever waits for the machine.
    pub wakeups: Arc<Wakeups>,
    /// The machine's end.
    pub ending: Arc<Ending>,
    /// Who is told of a processor that gets nowhere.
    pub loops: LoopWatch,
    pub(crate) purges: PurgeBoard,
    pub(crate) stop: AtomicBool,
    attention: std::sync::OnceLock<Vec<Arc<AtomicBool>>>,
    /// Which processors must forget the instructions that they have decoded.
    stale: Vec<AtomicBool>,
    starts: Mutex<Vec<Option<Start>>>,
}

impl Platform {
    pub(crate) fn new(
        memory: Arc<GuestMemory>,
        bus: Bus,
        interrupts: Arc<InterruptBlock>,
        timeline: Arc<Timeline>,
        wakeups: Arc<Wakeups>,
        ending: Arc<Ending>,
    ) -> Platform {
        let processors = interrupts.processors();
        Platform {
            memory,
            bus,
            interrupts,
            timeline,
            wakeups,
            ending,
            loops: LoopWatch::default(),
            purges: PurgeBoard::new(processors),
            stop: AtomicBool::new(false),
            attention: std::sync::OnceLock::new(),
            stale: (0..processors).map(|_| AtomicBool::new(false)).collect(),
            starts: Mutex::new((0..processors).map(|_| None).collect()),
        }
    }

    /// Connects the processors: the interrupts of each, and what makes it come back to whoever runs it.
    ///
    /// # Panics
    /// The second time: a platform has one set of processors.
    pub fn connect(
        &self,
        interrupts: impl IntoIterator<Item = Arc<Interrupts>>,
        attention: Vec<Arc<AtomicBool>>,
    ) {
        for (index, interrupts) in interrupts.into_iter().enumerate() {
            self.interrupts.connect(index, interrupts);
        }
        self.memory.connect(&attention);
        let connected = self.attention.set(attention);
        assert!(connected.is_ok(), "a platform has one set of processors");
    }

    /// How many processors there are.
    pub fn processors(&self) -> usize {
        self.interrupts.processors()
    }

    /// Has processor `index` do `work` on itself and then execute, whatever it did before: how a processor that
    /// is stopped is started.
    ///
    /// # Panics
    /// If there is no such processor.
    pub fn start(&self, index: usize, work: impl FnOnce(&mut Processor) + Send + 'static) {
        self.starts()[index] = Some(Box::new(work));
        self.call(index);
    }

    fn make_stale(&self, index: usize) {
        self.stale[index].store(true, Ordering::Release);
        self.call(index);
    }

    /// Whether processor `index` must forget the instructions that it has decoded; asked once.
    pub fn take_stale(&self, index: usize) -> bool {
        self.stale[index].swap(false, Ordering::AcqRel)
    }

    pub(crate) fn has_start(&self, index: usize) -> bool {
        self.starts()[index].is_some()
    }

    /// What processor `index` is to do before it executes; given once.
    pub fn take_start(&self, index: usize) -> Option<Start> {
        self.starts()[index].take()
    }

    /// Has the executor come back with the machine as it is then. May be called from any thread.
    pub fn request_stop(&self) {
        self.stop.store(true, Ordering::Release);
        for index in 0..self.processors() {
            self.call(index);
        }
    }

    pub(crate) fn is_stop_requested(&self) -> bool {
        self.stop.load(Ordering::Acquire) || self.ending.requested().is_some()
    }

    /// Makes processor `index` look at what there is to do.
    fn call(&self, index: usize) {
        if let Some(attention) = self.attention.get() {
            attention[index].store(true, Ordering::Release);
        }
        self.wakeups.wake();
    }

    fn starts(&self) -> MutexGuard<'_, Vec<Option<Start>>> {
        self.starts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The platform as one processor reaches it.
pub(crate) struct Port {
    pub platform: Arc<Platform>,
    pub index: usize,
}

// SAFETY: the regions are those of `GuestMemory`, which the platform keeps mapped as long as it lives.
unsafe impl PhysicalMemory for Port {
    fn region(&self, address: PhysicalAddress) -> Option<MemoryRegion> {
        self.platform.memory.region(address)
    }

    fn load_device(&self, address: PhysicalAddress, size: u64) -> Option<u64> {
        match interrupt_block_offset(address) {
            Some(offset) => Some(self.platform.interrupts.load(offset, size)),
            None => self.platform.bus.load(address, size),
        }
    }

    fn store_device(&self, address: PhysicalAddress, size: u64, value: u64) -> bool {
        match interrupt_block_offset(address) {
            Some(offset) => {
                self.platform.interrupts.store(offset, size, value);
                true
            }
            None => self.platform.bus.store(address, size, value),
        }
    }

    fn purge_others(&self, purge: GlobalPurge) -> Vec<GlobalPurge> {
        self.platform.purges.broadcast(self.index, purge)
    }

    fn instructions_read(&self, page: u64) {
        self.platform.memory.instructions_read(page);
    }

    fn instructions_changed(&self) {
        let others = (0..self.platform.processors()).filter(|&index| index != self.index);
        others.for_each(|index| self.platform.make_stale(index));
    }
}

fn interrupt_block_offset(address: PhysicalAddress) -> Option<u64> {
    let offset = address.0.checked_sub(INTERRUPT_BLOCK.0)?;
    (offset < INTERRUPT_BLOCK_SIZE).then_some(offset)
}
