//! What every transport shares (chapter 2 of the specification): status, features, queues, the configuration space,
//! and the work of the device behind them.
//!
//! Transports turn accesses to their registers into the methods of `State`; a notification schedules the device's
//! work on the timeline, `LATENCY_TICKS` later. The work is done without the lock on the registers, so processors
//! never wait for a disk or a network; only a reset does, since a driver may reuse its buffers after it.
//!
//! Lock order: the device, then the registers, then whatever the interrupt line locks.

mod carried;
mod registers;
mod saved;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use carried::Chain;
pub(super) use registers::{FEATURE_VERSION_1, State};
pub use saved::FacilitiesState;
use virtio_queue::{Queue, QueueOwnedT, QueueT};

use super::VirtioDevice;
use super::request::Request;
use crate::machine::timeline::{Phase, TICKS_PER_SECOND, Ticket, Timeline};
use crate::memory::GuestMemory;
use crate::pci::mastering::Mastering;

/// From a notification to the moment when its requests are served: 10 microseconds, a device's order of magnitude.
pub const LATENCY_TICKS: u64 = TICKS_PER_SECOND / 100_000;
/// The longest time until a device that others talk to is asked whether something has come.
pub const POLL_TICKS_MAX: u64 = TICKS_PER_SECOND / 100;

/// What a device tells its driver by an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Its configuration has changed, or it asks to be reset.
    Configuration,
    /// Buffers of this queue were used.
    Queue(usize),
}

/// The interrupt of a device, as its transport has it. A closure that sets a line is one.
pub trait Interrupt: Send {
    /// Asserts the line or takes it back.
    fn set_line(&self, asserted: bool);

    /// Sends a message that tells of the event by itself; false if there are none, so that the cause is to be noted and
    /// the line to be asserted.
    fn signal(&self, event: Event) -> bool {
        let _ = event;
        false
    }

    /// The processor that a message of the event would go to, if messages are sent.
    fn target(&self, event: Event) -> Option<usize> {
        let _ = event;
        None
    }

    /// Forgets what a driver has set up.
    fn reset(&self) {}
}

impl<F: Fn(bool) + Send> Interrupt for F {
    fn set_line(&self, asserted: bool) {
        self(asserted);
    }
}

/// What a device has done since the machine was built.
#[derive(Debug, Default)]
pub struct Counters {
    /// Notifications of the driver.
    pub notifications: AtomicU64,
    /// Requests served.
    pub requests: AtomicU64,
    /// Times the driver broke the rules so that the device had to be reset.
    pub errors: AtomicU64,
}

struct Shared {
    device: Mutex<Box<dyn VirtioDevice>>,
    state: Mutex<State>,
    memory: Arc<GuestMemory>,
    timeline: Arc<Timeline>,
    counters: Arc<Counters>,
    configuration: Vec<u8>,
    identifier: u32,
    polls: bool,
    /// Of each queue, whether somebody else carries it.
    carried: Vec<bool>,
    /// Whether a driver has done something that concerns who carries queues.
    has_news: AtomicBool,
    /// Whether somebody else looks at the doorbell: then a notification only leaves word.
    is_watched: AtomicBool,
    /// Whether it was rung since somebody looked.
    is_rung: AtomicBool,
}

/// A device behind whatever transport.
#[derive(Clone)]
pub struct Facilities(Arc<Shared>);

/// One queue, as people want to see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueReport {
    /// Entries.
    pub size: u16,
    /// Whether the driver has set it up.
    pub is_ready: bool,
    /// How many requests were taken from it, modulo 65,536.
    pub taken: u16,
    /// How many were answered, modulo 65,536.
    pub answered: u16,
}

/// The driver broke the rules; what it did does not matter to the device.
struct Broken;

/// Says where a queue's descriptors, its available and its used ring are.
pub(super) fn set_rings(queue: &mut Queue, rings: [u64; 3]) {
    let [descriptors, available, used] =
        rings.map(|address| (Some(address as u32), Some((address >> 32) as u32)));
    queue.set_desc_table_address(descriptors.0, descriptors.1);
    queue.set_avail_ring_address(available.0, available.1);
    queue.set_used_ring_address(used.0, used.1);
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Facilities {
    /// A device that works on `memory` and does its work on `timeline`.
    ///
    /// # Panics
    /// If a queue's size is not a power of two.
    pub fn new(
        device: Box<dyn VirtioDevice>,
        memory: Arc<GuestMemory>,
        interrupt: Box<dyn Interrupt>,
        timeline: Arc<Timeline>,
    ) -> Facilities {
        let queues: Vec<Queue> = device
            .queue_sizes()
            .iter()
            .map(|&size| Queue::new(size).expect("a device's queue sizes are powers of two"))
            .collect();
        let counters = Arc::<Counters>::default();
        let carried: Vec<bool> = (0..queues.len()).map(|queue| device.is_carried(queue)).collect();
        let is_carried = carried.contains(&true);
        let reached = (Arc::clone(&memory), interrupt, Arc::clone(&counters));
        let state = State::new(&*device, queues, is_carried, reached);
        Facilities(Arc::new(Shared {
            configuration: device.configuration().to_vec(),
            identifier: device.identifier(),
            polls: device.poll_interval().is_some(),
            carried,
            has_news: AtomicBool::new(false),
            is_watched: AtomicBool::new(false),
            is_rung: AtomicBool::new(false),
            device: Mutex::new(device),
            state: Mutex::new(state),
            memory,
            timeline,
            counters,
        }))
    }

    /// The number of the device's kind.
    pub fn identifier(&self) -> u32 {
        self.0.identifier
    }

    /// What the device has done; counts on while it runs.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.0.counters)
    }

    /// Its queues as they are now.
    pub fn queues(&self) -> Vec<QueueReport> {
        let report = |queue: &Queue| QueueReport {
            size: queue.size(),
            is_ready: queue.ready(),
            taken: queue.next_avail(),
            answered: queue.next_used(),
        };
        self.state().queues.iter().map(report).collect()
    }

    /// The device status field.
    pub fn status(&self) -> u32 {
        self.state().status
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }

    /// How many bytes the configuration space has.
    pub(super) fn configuration_bytes(&self) -> usize {
        self.0.configuration.len()
    }

    /// Bytes of the configuration space; zero behind its end.
    pub(super) fn load_configuration(&self, offset: u64, size: u64) -> u64 {
        (0..size).rev().fold(0, |value, byte| {
            let byte = self.0.configuration.get((offset + byte) as usize).copied();
            value << 8 | u64::from(byte.unwrap_or(0))
        })
    }

    /// Has the device reach memory only while it may master the bus that it is on.
    pub(super) fn reach_by(&self, mastering: Mastering) {
        self.state().mastering = Some(mastering);
    }

    /// The device may or may not reach memory from now on.
    pub(super) fn note_mastering(&self) {
        self.note_news();
        self.begin(&mut self.state(), true);
    }

    /// The driver has put something into a queue.
    pub(super) fn notify(&self, queue: u32) {
        self.0.counters.notifications.fetch_add(1, Ordering::Relaxed);
        if self.is_carried(queue as usize) {
            return self.note_news();
        }
        if self.0.is_watched.load(Ordering::Relaxed) {
            return self.0.is_rung.store(true, Ordering::Relaxed);
        }
        if (queue as usize) < self.0.carried.len() {
            self.look(self.0.timeline.now());
        }
    }

    /// Has somebody else look at the doorbell, as [`take_ring`](Self::take_ring) and [`look`](Self::look) do, or the
    /// device itself again.
    pub fn watch_doorbell(&self, is_watched: bool) {
        self.0.is_watched.store(is_watched, Ordering::Relaxed);
    }

    /// Whether the doorbell was rung since the last time, while somebody else looks at it.
    pub fn take_ring(&self) -> bool {
        self.0.is_rung.load(Ordering::Relaxed) && self.0.is_rung.swap(false, Ordering::Relaxed)
    }

    /// Has the device look at its queues, told at `now` in machine time.
    pub fn look(&self, now: u64) {
        self.schedule_work(&mut self.state(), now);
    }

    fn schedule_work(&self, state: &mut State, now: u64) {
        if state.is_running() && state.work.is_none() {
            state.work = Some(self.schedule(now));
        }
    }

    /// The driver writes the device status field.
    pub(super) fn set_status(&self, value: u32) {
        if value == 0 {
            // A request that is being served ends first: its buffers are the driver's again after a reset.
            let mut device = lock(&self.0.device);
            self.state().reset();
            device.reset();
            return self.note_news();
        }
        self.change(|state| state.set_status(value));
    }

    /// Changes what may have the driver begin its work.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut device = lock(&self.0.device);
        let mut state = self.state();
        let (was_running, had_begun) = (state.is_running(), state.begun().is_some());
        change(&mut state);
        if let Some(features) = state.begun().filter(|_| !had_begun) {
            device.begin(features);
        }
        drop(device);
        self.note_news();
        self.begin(&mut state, !was_running);
    }

    /// Has a device at work poll, and look at its queues if it `begins`: drivers may have filled one, and notified too
    /// early.
    fn begin(&self, state: &mut State, begins: bool) {
        if begins {
            self.schedule_work(state, self.0.timeline.now());
        }
        if self.0.polls && state.is_running() && state.poll.is_none() {
            state.poll = Some(self.schedule_poll(self.0.timeline.now(), LATENCY_TICKS));
        }
    }

    /// The driver makes the selected queue ready, or takes it back.
    pub(super) fn set_ready(&self, ready: bool) {
        if ready {
            self.change(State::make_ready);
        } else {
            let _until_served = lock(&self.0.device);
            let mut state = self.state();
            if let Some(queue) = state.selected_queue() {
                queue.reset();
                state.setups += 1;
            }
            drop(state);
            self.note_news();
        }
    }

    fn schedule(&self, now: u64) -> Ticket {
        let due = self.0.timeline.again(now, LATENCY_TICKS);
        self.schedule_at(due, Facilities::work)
    }

    fn schedule_poll(&self, now: u64, ticks: u64) -> Ticket {
        let due = self.0.timeline.again(now, ticks);
        self.schedule_at(due, Facilities::poll)
    }

    /// Has the timeline, which the device knows, call the device: weakly, or neither would ever be dropped.
    fn schedule_at(&self, due: u64, call: fn(&Facilities, u64)) -> Ticket {
        let device = Arc::downgrade(&self.0);
        self.0.timeline.schedule(due, Phase::Transfer, move |due| {
            if let Some(shared) = device.upgrade() {
                call(&Facilities(shared), due);
            }
        })
    }

    fn work(&self, due: u64) {
        self.state().work = None;
        if self.serve_all(due) {
            let mut state = self.state();
            if state.work.is_none() {
                state.work = Some(self.schedule(due));
            }
        }
    }

    fn poll(&self, due: u64) {
        self.state().poll = None;
        self.serve_all(due);
        let interval = lock(&self.0.device).poll_interval();
        let mut state = self.state();
        if state.is_running() && state.poll.is_none() {
            state.poll = Some(self.schedule_poll(due, interval.unwrap_or(POLL_TICKS_MAX)));
        }
    }

    /// Serves every queue; says whether there is more to do. Those that transmit have the higher numbers in every
    /// kind of device and come first, so that answers are received at once.
    fn serve_all(&self, due: u64) -> bool {
        let mut device = lock(&self.0.device);
        if !self.state().is_running() {
            return false;
        }
        let queues = self.state().queues.len();
        let transmitted = (1..queues)
            .rev()
            .filter(|queue| !self.is_carried(*queue))
            .fold(false, |more, queue| self.serve(&mut **device, queue) | more);
        device.poll(due);
        self.note_news();
        let received = !self.is_carried(0) && self.serve(&mut **device, 0);
        received | transmitted
    }

    /// Serves what is in a queue, as many requests as it has entries at most; says whether there may be more.
    fn serve(&self, device: &mut dyn VirtioDevice, queue: usize) -> bool {
        let entries = self.state().queues[queue].size();
        for served in 0..entries {
            if !device.takes(queue) {
                self.answer(queue, served > 0);
                return false;
            }
            match self.serve_one(device, queue) {
                Ok(true) => {}
                Ok(false) => {
                    self.answer(queue, served > 0);
                    return false;
                }
                Err(Broken) => {
                    self.state().fail();
                    return false;
                }
            }
        }
        self.answer(queue, true);
        true
    }

    fn answer(&self, queue: usize, served: bool) {
        if served {
            self.state().raise(Event::Queue(queue));
        }
    }

    /// Serves the next request of a queue; false if there is none.
    fn serve_one(&self, device: &mut dyn VirtioDevice, index: usize) -> Result<bool, Broken> {
        let map = self.0.memory.as_vm_memory();
        let chain = {
            let mut state = self.state();
            if !state.is_running() || !state.queues[index].ready() {
                return Ok(false);
            }
            state.queues[index].iter(map).map_err(|_| Broken)?.next()
        };
        let Some(chain) = chain else {
            return Ok(false);
        };
        let head = chain.head_index();
        let request = Request::new(&self.0.memory, chain).map_err(|_| Broken)?;
        let written = device.serve(index, &request).map_err(|_| Broken)?;
        self.state().queues[index]
            .add_used(map, head, written)
            .map_err(|_| Broken)?;
        self.0.counters.requests.fetch_add(1, Ordering::Relaxed);
        Ok(true)
    }
}
