//! Queues that somebody else carries: a card that moves what is in them and has its own time.
//!
//! The driver's doorbell only leaves word ([`Facilities::take_news`]). Who carries a queue looks how far the driver has
//! filled it, takes chains one by one, and answers each when its own time has come. It interrupts in its own way as
//! well; the driver says by an event index, or by a flag, whether it wants to be.

use std::sync::atomic::Ordering;

use virtio_queue::{QueueOwnedT, QueueT};

use super::{Broken, Event, Facilities};
use crate::virtio::request::{Buffers, Request};
use sidestep_ia64::PhysicalAddress;

/// A chain that was taken from a queue and has to be answered.
#[derive(Clone, Debug)]
pub struct Chain {
    head: u16,
    buffers: Buffers,
}

/// What drivers set in the flags of an available ring that asks for no interrupts.
const NO_INTERRUPT: u16 = 1;

impl Facilities {
    /// Whether somebody else carries a queue.
    pub(super) fn is_carried(&self, queue: usize) -> bool {
        self.0.carried.get(queue).copied().unwrap_or(false)
    }

    pub(super) fn note_news(&self) {
        self.0.has_news.store(true, Ordering::Relaxed);
    }

    /// Whether the driver has rung a doorbell or set something up since the last time.
    pub fn take_news(&self) -> bool {
        self.0.has_news.load(Ordering::Relaxed) && self.0.has_news.swap(false, Ordering::Relaxed)
    }

    /// A number that changes whenever the driver resets the device or a queue, or makes one ready; `None` while the
    /// driver is not at work.
    pub fn setup(&self) -> Option<u64> {
        let state = self.state();
        state.is_running().then_some(state.setups)
    }

    /// How far the driver has filled a queue, modulo 65,536. It is asked to ring for whatever it adds from now on.
    ///
    /// `None` if the queue is not ready, or filled as no queue can be: then the device
    /// has to be reset.
    pub fn available(&self, queue: usize) -> Option<u16> {
        let map = self.0.memory.as_vm_memory();
        let mut state = self.state();
        if !state.is_running() || !state.queues[queue].ready() {
            return None;
        }
        let ring = &state.queues[queue];
        let (taken, size) = (ring.next_avail(), ring.size());
        let event = ring.used_ring() + 4 + 8 * u64::from(size);
        let filled = ring.avail_idx(map, Ordering::Acquire).map(|index| index.0);
        let asked = match (&filled, state.has_event_index()) {
            (Ok(filled), true) => self.0.memory.write_value(PhysicalAddress(event), *filled).is_ok(),
            _ => true,
        };
        match filled {
            Ok(filled) if asked && filled.wrapping_sub(taken) <= size => Some(filled),
            _ => {
                state.fail();
                None
            }
        }
    }

    /// Takes the next chain of a queue; `None` if there is none, or it is broken, after which the device has to be
    /// reset.
    pub fn take(&self, queue: usize) -> Option<Chain> {
        let map = self.0.memory.as_vm_memory();
        let mut state = self.state();
        if !state.is_running() || !state.queues[queue].ready() {
            return None;
        }
        let next = state.queues[queue]
            .iter(map)
            .map_err(|_| Broken)
            .map(|mut chains| chains.next());
        let chain = match next {
            Ok(Some(chain)) => {
                let head = chain.head_index();
                let request = Request::new(&self.0.memory, chain).map_err(|_| Broken);
                request.map(|request| Chain {
                    head,
                    buffers: request.into_buffers(),
                })
            }
            Ok(None) => return None,
            Err(broken) => Err(broken),
        };
        match chain {
            Ok(chain) => Some(chain),
            Err(Broken) => {
                state.fail();
                None
            }
        }
    }

    /// The buffers of a chain.
    pub fn request(&self, chain: &Chain) -> Request<'_> {
        chain.buffers.clone().within(&self.0.memory)
    }

    /// Answers a chain, of whose writable buffers so many bytes were written. Whether the driver wants an interrupt.
    pub fn answer_chain(&self, queue: usize, chain: &Chain, written: u32) -> bool {
        let map = self.0.memory.as_vm_memory();
        let mut state = self.state();
        if !state.is_running() || !state.queues[queue].ready() {
            return false;
        }
        let has_event_index = state.has_event_index();
        let ring = &mut state.queues[queue];
        let answered = ring.add_used(map, chain.head, written);
        let wants = if has_event_index {
            answered
                .and_then(|()| ring.needs_notification(map))
                .map_err(|_| Broken)
        } else {
            let flags = self
                .0
                .memory
                .read_value::<u16>(PhysicalAddress(ring.avail_ring()));
            answered
                .map_err(|_| Broken)
                .and(flags.map_err(|_| Broken))
                .map(|flags| flags & NO_INTERRUPT == 0)
        };
        self.0.counters.requests.fetch_add(1, Ordering::Relaxed);
        wants.unwrap_or_else(|Broken| {
            state.fail();
            false
        })
    }

    /// Interrupts for a queue.
    pub fn interrupt(&self, queue: usize) {
        self.state().raise(Event::Queue(queue));
    }

    /// The processor that an interrupt for a queue would go to, as far as the driver has named one.
    pub fn target(&self, queue: usize) -> Option<usize> {
        self.state().interrupt.target(Event::Queue(queue))
    }
}
