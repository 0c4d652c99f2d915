//! A virtio network device in front of a virtual interface, for kernels that know nothing of the monitor.
//!
//! The card itself speaks virtio: its engines take frames from the driver's transmit queues and put them into its
//! receive queues, each pair of queues being an interface of its own to the card. So neither the monitor nor a
//! sidecore is on a frame's way, and all that [delivery](crate::nic::Delivery) says of signals holds here too. The
//! page of doorbells is the driver's to store to, without an exit. What is written into a queue is seen from the time
//! at which the card has written it; the driver's event index, read then, says whether a signal is due.
//!
//! A chain is checked when it is taken. What breaks the rules of queues stops the device until the driver resets it,
//! and concerns nobody else.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use sidestep_ia64::PhysicalAddress;
use sidestep_machine::virtio::facilities::{Chain, Facilities};
use sidestep_machine::virtio::interface::{HEADER, QUEUE_SIZE};

use super::interface::Fetched;
use crate::nic::frame::{FRAME_MAX, FRAME_MIN};
use crate::nic::ring::{Ring, Store};

/// A virtio network device whose queues a card carries.
#[derive(Clone)]
pub struct VirtioFront {
    /// The device behind its registers.
    pub facilities: Facilities,
    /// How many pairs of queues it has.
    pub pairs: usize,
    /// How many of them the driver uses.
    pub used_pairs: Arc<AtomicU16>,
    /// Where its doorbells are, if they are in a page of their own.
    pub doorbells: Option<Range<PhysicalAddress>>,
}

impl VirtioFront {
    /// The most entries of each of its queues.
    pub(super) const ENTRIES: u64 = QUEUE_SIZE as u64;
}

/// The front of an interface, as its virtual machine goes on with it.
pub(super) struct Front {
    device: VirtioFront,
    /// The driver's last setup that the card has been told of.
    setup: Option<u64>,
    used_pairs: u16,
    pairs: Vec<Pair>,
}

/// A pair of queues: receive, transmit.
#[derive(Clone, Default)]
struct Pair {
    queues: [Queue; 2],
}

#[derive(Clone, Default)]
struct Queue {
    /// How far the driver has filled it, modulo 65,536, and since it was set up.
    filled: u16,
    count: u64,
    /// Chains that the card has taken, the first to be answered first.
    taken: VecDeque<Chain>,
    /// Whether the driver is owed an interrupt.
    is_due: bool,
}

/// What a driver has done that the card is to know.
pub(super) enum News {
    /// It has set the device up, or reset it: all pairs begin again, and are used if `true`.
    SetUp(bool),
    /// It has stored something for a pair.
    Stored(usize, Store),
}

fn queue_of(pair: usize, ring: Ring) -> usize {
    2 * pair + place(ring)
}

fn place(ring: Ring) -> usize {
    match ring {
        Ring::Receive => 0,
        Ring::Send => 1,
    }
}

impl Front {
    pub fn new(device: VirtioFront) -> Front {
        Front {
            setup: None,
            used_pairs: 1,
            pairs: vec![Pair::default(); device.pairs],
            device,
        }
    }

    pub fn pairs(&self) -> usize {
        self.pairs.len()
    }

    /// What the driver has done since the last time.
    pub fn news(&mut self) -> Vec<News> {
        let mut news = Vec::new();
        if !self.device.facilities.take_news() {
            return news;
        }
        let setup = self.device.facilities.setup();
        if setup != self.setup {
            self.setup = setup;
            self.used_pairs = 1;
            self.pairs.fill(Pair::default());
            news.push(News::SetUp(setup.is_some()));
        }
        if setup.is_none() {
            return news;
        }
        let used_pairs = self.device.used_pairs.load(Ordering::Relaxed);
        if used_pairs != self.used_pairs {
            self.used_pairs = used_pairs;
            news.push(News::Stored(0, Store::Pairs(u64::from(used_pairs))));
        }
        for number in 0..self.pairs.len() {
            for (ring, store) in [
                (Ring::Receive, Store::Posted as fn(u64) -> Store),
                (Ring::Send, Store::Sent),
            ] {
                let queue = &mut self.pairs[number].queues[place(ring)];
                let available = self.device.facilities.available(queue_of(number, ring));
                let more = available.map_or(0, |filled| filled.wrapping_sub(queue.filled));
                if more > 0 {
                    queue.filled = queue.filled.wrapping_add(more);
                    queue.count += u64::from(more);
                    news.push(News::Stored(number, store(queue.count)));
                }
            }
        }
        news
    }

    /// What the card reads of a transmit queue.
    pub fn fetch(&mut self, pair: usize) -> Fetched {
        let Some(chain) = self.device.facilities.take(queue_of(pair, Ring::Send)) else {
            return Fetched::Refused;
        };
        let request = self.device.facilities.request(&chain);
        let size = request.readable().checked_sub(HEADER.len() as u64);
        let size = size.filter(|size| (FRAME_MIN..=FRAME_MAX).contains(size));
        let fetched = size.map_or(Fetched::Refused, |size| {
            let mut bytes = vec![0; size as usize];
            request.read(HEADER.len() as u64, &mut bytes);
            Fetched::Frame(bytes)
        });
        self.pairs[pair].queues[place(Ring::Send)].taken.push_back(chain);
        fetched
    }

    /// Takes a buffer for a frame of so many bytes; false if it is too small.
    pub fn buffer(&mut self, pair: usize, bytes: u64) -> bool {
        let Some(chain) = self.device.facilities.take(queue_of(pair, Ring::Receive)) else {
            return false;
        };
        let room = self.device.facilities.request(&chain).writable();
        self.pairs[pair].queues[place(Ring::Receive)]
            .taken
            .push_back(chain);
        room >= HEADER.len() as u64 + bytes
    }

    /// Answers the first chain that was taken, with a frame that has come into it, or with nothing. Whether the driver
    /// is owed an interrupt that it was not owed before.
    pub fn answer(&mut self, pair: usize, ring: Ring, frame: Option<&[u8]>) -> bool {
        let queue = &mut self.pairs[pair].queues[place(ring)];
        let Some(chain) = queue.taken.pop_front() else {
            return false;
        };
        let facilities = &self.device.facilities;
        let written = frame.map_or(0, |frame| {
            let request = facilities.request(&chain);
            request.write(0, &HEADER);
            request.write(HEADER.len() as u64, frame);
            HEADER.len() + frame.len()
        });
        let wants = facilities.answer_chain(queue_of(pair, ring), &chain, written as u32);
        wants && !std::mem::replace(&mut queue.is_due, true)
    }

    /// Interrupts for what the driver is owed. A signal without cause is not shown to it.
    pub fn interrupt(&mut self, pair: usize) {
        for ring in [Ring::Receive, Ring::Send] {
            if std::mem::take(&mut self.pairs[pair].queues[place(ring)].is_due) {
                self.device.facilities.interrupt(queue_of(pair, ring));
            }
        }
    }

    /// The virtual processor that a pair interrupts, as far as its driver has named one that there is.
    pub fn processor(&self, pair: usize, processors: usize) -> usize {
        let target = self.device.facilities.target(queue_of(pair, Ring::Receive));
        target.filter(|target| *target < processors).unwrap_or(0)
    }
}
