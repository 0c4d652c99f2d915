//! The virtual machine's side of its network interface: rings in its memory, what the card writes there and when, and
//! the signals that it gets.
//!
//! What the card writes has a time and is seen from then on, as everything that arrives. What a guest stores for the
//! card leaves with the time at which it was stored. What a signal or an interrupt of the card takes of a core is owed
//! by the virtual processor that has the core then.

use std::collections::VecDeque;

use sidestep_ia64::PhysicalAddress;
use sidestep_machine::memory::GuestMemory;

use super::VirtualMachine;
use super::exit::ExitReason;
use super::front::{Front, News, VirtioFront};
use super::mailbox::{Debt, Whom};
use super::processor::Activity;
use crate::costs::{Cost, HostCosts};
use crate::cycle::{Cycle, EPOCH_CYCLES_MAX};
use crate::nic::frame::{Address, FRAME_MAX, FRAME_MIN};
use crate::nic::ring::{self, Ring, Status, Store, field};

/// How a signal reaches a virtual processor that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The monitor is on its core already, for the card's interrupt, and goes on into the guest.
    Upcall,
    /// Its core is interrupted: an exit, or as much of the monitor's time if it waits.
    Interrupt,
    /// It is posted into the guest; if that waits its core is interrupted.
    Posted,
}

/// A signal of the card's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// How it comes if the processor runs.
    pub reach: Reach,
    /// Whether there is no frame for it.
    pub is_redundant: bool,
}

/// What the card writes into its guest's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// A frame has come, into this buffer; none if the descriptor was refused.
    Received {
        /// The frame.
        bytes: Vec<u8>,
        /// Where the buffer is.
        buffer: Option<Buffer>,
    },
    /// The card has taken a frame.
    Transmitted {
        /// What became of it.
        status: Status,
    },
}

/// A buffer for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// At this address.
    At(PhysicalAddress),
    /// The first that was taken from a virtio queue and is not answered.
    Taken,
}

/// What the card reads of a send ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// A frame.
    Frame(Vec<u8>),
    /// A descriptor that names no memory of the guest, or a length that cannot be.
    Refused,
}

/// What interrupts of the card did to a virtual machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct InterruptCounts {
    /// Interrupts of the card that were for others and found it running.
    pub preemptions: u64,
    /// The cycles that those took.
    pub preempted_cycles: u64,
    /// The longest of them.
    pub preempted_most: u64,
    /// Signals that found it waiting.
    pub woken: u64,
    /// Those without a frame: it ran in vain.
    pub woken_in_vain: u64,
}

/// The interface of a virtual machine.
pub(super) struct Interface {
    address: Address,
    entries: u64,
    pairs: Vec<RingPair>,
    /// The virtio device in front of it, if its driver knows no other.
    front: Option<Front>,
    /// From when on the card looks at the queues that the driver has set up last.
    ready: Cycle,
}

/// Its rings: one pair, or as many as a virtio device has.
#[derive(Default)]
struct RingPair {
    /// How many areas were registered.
    generation: u64,
    bound: Option<Bound>,
    /// What the card writes, ordered by time.
    writes: VecDeque<(Cycle, Write)>,
    /// What the guest has stored, and when.
    stores: Vec<(Cycle, Store)>,
}

/// Rings and their owner.
#[derive(Clone, Copy)]
struct Bound {
    processor: usize,
    place: Place,
}

/// Where rings are, and how their owner is interrupted.
#[derive(Clone, Copy)]
enum Place {
    /// In an area, by a vector.
    Area { area: PhysicalAddress, vector: u8 },
    /// In the queues of a virtio device, and as its driver wants.
    Queues,
}

/// What a signal of the card's makes its guest see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// An interrupt by this vector.
    Vector(u8),
    /// What a pair of virtio queues is owed.
    Pair(usize),
}

struct Write {
    generation: u64,
    /// Of the frame in its ring.
    number: u64,
    written: Written,
}

/// From so many stores on that the card has not been told of, one of a field is one with the last of that field.
const STORES_MAX: usize = 64;

impl RingPair {
    fn note(&mut self, time: Cycle, store: Store) {
        let is_flood = self.stores.len() >= STORES_MAX;
        let same =
            |other: &&mut (Cycle, Store)| std::mem::discriminant(&other.1) == std::mem::discriminant(&store);
        match self.stores.iter_mut().rev().find(same).filter(|_| is_flood) {
            Some(last) => last.1 = store,
            None => self.stores.push((time, store)),
        }
    }
}

impl VirtualMachine {
    /// Gives it an interface, before it runs.
    pub(crate) fn attach_interface(&mut self, address: Address, entries: u64) {
        let front = self
            .whole
            .as_ref()
            .and_then(|whole| whole.network.clone())
            .map(Front::new);
        let pairs = front.as_ref().map_or(1, Front::pairs);
        self.interface = Some(Interface {
            address,
            entries,
            pairs: (0..pairs).map(|_| RingPair::default()).collect(),
            front,
            ready: Cycle::START,
        });
    }

    /// How many pairs of rings its interface has, and the most descriptors of each.
    pub(crate) fn ring_pairs(&self) -> (usize, u64) {
        match &self.interface {
            Some(Interface {
                front: Some(front), ..
            }) => (front.pairs(), VirtioFront::ENTRIES),
            Some(interface) => (1, interface.entries),
            None => (0, 0),
        }
    }

    /// The processor that a pair of its rings belongs to, once that is registered.
    pub fn ring_processor(&self, pair: usize) -> Option<usize> {
        self.bound_pair(pair).map(|bound| bound.processor)
    }

    fn bound_pair(&self, pair: usize) -> Option<Bound> {
        self.interface.as_ref()?.pairs.get(pair)?.bound
    }

    fn pairs(&self) -> &[RingPair] {
        self.interface.as_ref().map_or(&[], |interface| &interface.pairs)
    }

    /// Takes what its guest has stored for the card: the pair, and when.
    pub(crate) fn take_stores(&mut self) -> Vec<(Cycle, usize, Store)> {
        let pairs = self
            .interface
            .iter_mut()
            .flat_map(|interface| interface.pairs.iter_mut().enumerate());
        pairs
            .flat_map(|(pair, rings)| {
                let stores = std::mem::take(&mut rings.stores);
                stores.into_iter().map(move |(time, store)| (time, pair, store))
            })
            .collect()
    }

    /// Whether nothing that it does concerns the card yet: there is a virtio device that no driver has set up. The card
    /// takes an epoch until it looks at queues that were, so that hosts need not go on in windows before.
    pub(super) fn waits_for_driver(&self) -> bool {
        let interface = self
            .interface
            .as_ref()
            .filter(|interface| interface.front.is_some());
        interface.is_some_and(|interface| interface.pairs.iter().all(|rings| rings.bound.is_none()))
    }

    /// Looks what a virtio driver has done, by the clock of a processor.
    pub(super) fn read_queues(&mut self, index: usize) {
        let time = self.processors[index].clock();
        let processors = self.processors.len();
        let Some(Interface {
            front: Some(front),
            pairs,
            ready,
            ..
        }) = &mut self.interface
        else {
            return;
        };
        for news in front.news() {
            match news {
                News::SetUp(is_used) => {
                    *ready = time + EPOCH_CYCLES_MAX;
                    for rings in pairs.iter_mut() {
                        rings.generation += 1;
                        rings.writes.clear();
                        rings.bound = is_used.then_some(Bound {
                            processor: 0,
                            place: Place::Queues,
                        });
                        rings.note(*ready, Store::Registered(rings.generation));
                    }
                }
                News::Stored(pair, store) => pairs[pair].note(time.max(*ready), store),
            }
            for (pair, rings) in pairs.iter_mut().enumerate() {
                if let Some(bound) = &mut rings.bound {
                    bound.processor = front.processor(pair, processors);
                }
            }
        }
    }

    /// Registers an area for a processor: false if that cannot be.
    pub(super) fn register_interface(&mut self, index: usize, area: PhysicalAddress, vector: u64) -> bool {
        let memory = &self.shared.memory;
        let time = self.processors[index].clock();
        let Some(interface) = self
            .interface
            .as_mut()
            .filter(|interface| interface.front.is_none())
        else {
            return false;
        };
        let Some(vector) = u8::try_from(vector).ok().filter(|vector| *vector >= 16) else {
            return false;
        };
        let size = ring::area(interface.entries);
        if !area.0.is_multiple_of(ring::PAGE) || !memory.holds(area, size) {
            return false;
        }
        let fields = [
            (field::MAGIC, ring::MAGIC),
            (field::VERSION, ring::VERSION),
            (field::ADDRESS, interface.address.to_word()),
            (field::ENTRIES, interface.entries),
        ];
        let cleared = memory.clear(area, size);
        let written = fields.into_iter().fold(cleared, |written, (offset, value)| {
            written.and(memory.write_value(area + offset, value))
        });
        if written.is_err() {
            return false;
        }
        let rings = &mut interface.pairs[0];
        rings.generation += 1;
        rings.writes.clear();
        rings.note(time, Store::Registered(rings.generation));
        let before = rings.bound.replace(Bound {
            processor: index,
            place: Place::Area { area, vector },
        });
        if let Some(before) = before {
            self.processors[before.processor].set_ring_page(None);
            self.processors[before.processor].rings.take_stores();
        }
        self.processors[index].set_ring_page(Some(area));
        true
    }

    /// Looks what the guest has stored for the card.
    pub(super) fn read_rings(&mut self, index: usize) {
        let Some(interface) = &mut self.interface else {
            return;
        };
        let processor = &self.processors[index];
        let stores = processor.rings.take_stores();
        let time = processor.clock();
        for store in stores {
            interface.pairs[0].note(time, store);
        }
    }

    /// The descriptor of a frame: address and length.
    fn descriptor(&self, ring: Ring, number: u64) -> Option<(PhysicalAddress, u64)> {
        let entries = self.interface.as_ref()?.entries;
        let Place::Area { area, .. } = self.bound_pair(0)?.place else {
            return None;
        };
        let at = area + ring.descriptor(number, entries);
        let word = |offset: u64| self.shared.memory.read_value::<u64>(at + offset).ok();
        let length = word(8)? & u64::from(u32::MAX);
        Some((PhysicalAddress(word(0)?), length))
    }

    /// What the card reads of the send ring.
    pub(crate) fn fetch(&mut self, pair: usize, number: u64) -> Fetched {
        if let Some(Interface {
            front: Some(front), ..
        }) = &mut self.interface
        {
            return front.fetch(pair);
        }
        let frame = self.descriptor(Ring::Send, number).and_then(|(address, length)| {
            (FRAME_MIN..=FRAME_MAX).contains(&length).then_some(())?;
            let mut bytes = vec![0; length as usize];
            self.shared.memory.read(address, &mut bytes).ok()?;
            Some(bytes)
        });
        frame.map_or(Fetched::Refused, Fetched::Frame)
    }

    /// The buffer for a frame of so many bytes; `None` if its descriptor is refused.
    pub(crate) fn buffer(&mut self, pair: usize, number: u64, bytes: u64) -> Option<Buffer> {
        if let Some(Interface {
            front: Some(front), ..
        }) = &mut self.interface
        {
            return front.buffer(pair, bytes).then_some(Buffer::Taken);
        }
        let (address, length) = self.descriptor(Ring::Receive, number)?;
        (bytes <= length && self.shared.memory.holds(address, bytes)).then_some(Buffer::At(address))
    }

    /// Has the card write something that is seen from `time` on, for the area that was registered as the
    /// `generation`th of a pair.
    pub(crate) fn write_from_card(
        &mut self,
        time: Cycle,
        (pair, generation): (usize, u64),
        number: u64,
        written: Written,
    ) {
        let rings = self
            .interface
            .as_mut()
            .and_then(|interface| interface.pairs.get_mut(pair));
        if let Some(rings) = rings {
            let place = rings.writes.partition_point(|(earlier, _)| *earlier <= time);
            let write = Write {
                generation,
                number,
                written,
            };
            rings.writes.insert(place, (time, write));
        }
    }

    /// Signals its guest for a pair of rings, at `time`.
    pub(crate) fn signal(&mut self, pair: usize, time: Cycle, signal: Signal) {
        if let Some(bound) = self.bound_pair(pair) {
            let shown = match bound.place {
                Place::Area { vector, .. } => Shown::Vector(vector),
                Place::Queues => Shown::Pair(pair),
            };
            self.mailboxes[bound.processor].add_signal(time, shown, signal);
        }
    }

    /// Whether a pair of rings belongs to a processor.
    fn has_rings(&self, index: usize) -> bool {
        let mut bounds = self.pairs().iter().filter_map(|rings| rings.bound);
        bounds.any(|bound| bound.processor == index)
    }

    /// A processor waits: what a signal has woken it for is done.
    pub(super) fn rests(&mut self, index: usize) {
        if self.has_rings(index) {
            self.is_woken = false;
        }
    }

    /// Whether a processor has got a signal since it waited last.
    pub fn is_signalled(&self, index: usize) -> bool {
        self.has_rings(index) && (self.is_woken || self.mailboxes[index].has_signal())
    }

    /// Has the processor that has a core owe it something.
    pub(crate) fn owe(&mut self, index: usize, debt: Debt) {
        self.mailboxes[index].owe(debt);
    }

    /// What a processor owes its core and has not come to yet.
    pub(crate) fn take_debts(&mut self, index: usize) -> Vec<Debt> {
        self.mailboxes[index].take_debts()
    }

    /// What interrupts of the card did to it.
    pub fn interrupt_counts(&self) -> InterruptCounts {
        self.interrupt_counts
    }

    /// When the card's next write is seen by a processor.
    pub(super) fn next_write(&self, index: usize) -> Option<Cycle> {
        self.next_write_of(index).map(|(time, _)| time)
    }

    /// The same, and for which pair.
    fn next_write_of(&self, index: usize) -> Option<(Cycle, usize)> {
        let pairs = self.pairs().iter().enumerate();
        let owned = pairs.filter(|(_, rings)| rings.bound.is_some_and(|bound| bound.processor == index));
        let writes = owned.filter_map(|(pair, rings)| Some((rings.writes.front()?.0, pair)));
        writes.min()
    }

    /// Lets the card's writes into memory that a processor sees by its clock.
    pub(super) fn collect_writes(&mut self, index: usize) {
        let clock = self.processors[index].clock();
        while let Some((time, pair)) = self.next_write_of(index).filter(|(time, _)| *time <= clock) {
            let interface = self.interface.as_mut().expect("it has a write");
            let rings = &mut interface.pairs[pair];
            let (Some((_, write)), Some(bound)) = (rings.writes.pop_front(), rings.bound) else {
                return;
            };
            if write.generation != rings.generation {
                continue;
            }
            match (bound.place, &mut interface.front) {
                (Place::Area { area, .. }, _) => {
                    put_into_area(&self.shared.memory, area, interface.entries, write);
                }
                (Place::Queues, Some(front)) => {
                    let is_due = match write.written {
                        Written::Received {
                            bytes,
                            buffer: Some(Buffer::Taken),
                        } => front.answer(pair, Ring::Receive, Some(&bytes)),
                        Written::Received { .. } => front.answer(pair, Ring::Receive, None),
                        Written::Transmitted { .. } => front.answer(pair, Ring::Send, None),
                    };
                    if is_due {
                        rings.note(time, Store::Due);
                    }
                }
                (Place::Queues, None) => {}
            }
        }
    }

    /// A processor pays what it owes its core by its clock.
    pub(super) fn pay(&mut self, index: usize) {
        while let Some(Debt { cycles, whom, .. }) =
            self.mailboxes[index].take_due(self.processors[index].clock())
        {
            let processor = &mut self.processors[index];
            if !matches!(processor.activity, Activity::Running | Activity::Polling) {
                processor.charge_more(cycles);
                continue;
            }
            let begun = std::mem::take(&mut self.begun);
            match whom {
                Whom::Unknown => {
                    self.begun = cycles;
                    processor.charge_more(cycles);
                }
                Whom::Itself => processor.charge(ExitReason::HostInterrupt, cycles),
                Whom::Others => {
                    processor.charge(ExitReason::HostInterrupt, cycles);
                    let counts = &mut self.interrupt_counts;
                    counts.preemptions += 1;
                    counts.preempted_cycles += begun + cycles;
                    counts.preempted_most = counts.preempted_most.max(begun + cycles);
                }
            }
        }
    }

    /// A signal has come to a processor.
    pub(super) fn take_signal(&mut self, costs: &HostCosts, index: usize, shown: Shown, signal: Signal) {
        match shown {
            Shown::Vector(vector) => self.interrupts[index].request(vector),
            Shown::Pair(pair) => {
                if let Some(Interface {
                    front: Some(front), ..
                }) = &mut self.interface
                {
                    front.interrupt(pair);
                }
            }
        }
        let processor = &mut self.processors[index];
        match processor.activity {
            Activity::Running | Activity::Polling => {
                match signal.reach {
                    Reach::Upcall => {}
                    Reach::Interrupt => processor.charge(ExitReason::HostInterrupt, costs.round_trip()),
                    Reach::Posted => processor.charge_more(costs.cycles(Cost::Posted)),
                }
                processor.activity = Activity::Running;
            }
            Activity::Waiting => {
                if signal.reach != Reach::Upcall {
                    // Its core is in the monitor, and yet interrupted.
                    processor.charge_more(costs.round_trip());
                }
                self.is_woken = true;
                self.interrupt_counts.woken += 1;
                self.interrupt_counts.woken_in_vain += u64::from(signal.is_redundant);
            }
            Activity::Asking | Activity::Stopped => {}
        }
    }
}

/// Writes what the card has for an area into it.
fn put_into_area(memory: &GuestMemory, area: PhysicalAddress, entries: u64, write: Write) {
    let (ring, count, status, length) = match write.written {
        Written::Received { bytes, buffer } => {
            let moved = match buffer {
                Some(Buffer::At(buffer)) => memory.write(buffer, &bytes).is_ok(),
                Some(Buffer::Taken) | None => false,
            };
            let (status, length) = if moved {
                (Status::Done, bytes.len() as u64)
            } else {
                (Status::Refused, 0)
            };
            (Ring::Receive, field::RECEIVED, status, length)
        }
        Written::Transmitted { status } => (Ring::Send, field::TRANSMITTED, status, 0),
    };
    let descriptor = area + ring.descriptor(write.number, entries);
    let told = memory
        .write_value(descriptor + 8, (status as u64) << 32 | length)
        .and(memory.write_value(area + count, write.number + 1));
    told.expect("a registered area is memory");
}
