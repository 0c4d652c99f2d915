//! The virtual machine's side of its network interface: rings in its memory, what the card writes there and when, and
//! the signals that it gets.
//!
//! What the card writes has a time and is seen from then on, as everything that arrives. What a guest stores for the
//! card leaves with the time at which it was stored. What a signal or an interrupt of the card takes of a core is owed
//! by the virtual processor that has the core then.

use std::collections::VecDeque;

use sidestep_ia64::PhysicalAddress;

use super::VirtualMachine;
use super::exit::ExitReason;
use super::mailbox::{Debt, Whom};
use super::processor::Activity;
use crate::costs::{Cost, HostCosts};
use crate::cycle::Cycle;
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
        buffer: Option<PhysicalAddress>,
    },
    /// The card has taken a frame.
    Transmitted {
        /// What became of it.
        status: Status,
    },
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
    area: PhysicalAddress,
    vector: u8,
}

struct Write {
    generation: u64,
    /// Of the frame in its ring.
    number: u64,
    written: Written,
}

/// From so many stores on that the card has not been told of, one of a field is one with the last of that field.
const STORES_MAX: usize = 64;

impl Interface {
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
        self.interface = Some(Interface {
            address,
            entries,
            generation: 0,
            bound: None,
            writes: VecDeque::new(),
            stores: Vec::new(),
        });
    }

    /// The processor that its interface belongs to, once it has registered rings.
    pub fn interface_processor(&self) -> Option<usize> {
        self.interface.as_ref()?.bound.map(|bound| bound.processor)
    }

    /// Takes what its guest has stored for the card, and when.
    pub(crate) fn take_stores(&mut self) -> Vec<(Cycle, Store)> {
        self.interface
            .as_mut()
            .map_or_else(Vec::new, |interface| std::mem::take(&mut interface.stores))
    }

    /// Registers an area for a processor: false if that cannot be.
    pub(super) fn register_interface(&mut self, index: usize, area: PhysicalAddress, vector: u64) -> bool {
        let memory = &self.shared.memory;
        let time = self.processors[index].clock();
        let Some(interface) = &mut self.interface else {
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
        interface.generation += 1;
        interface.writes.clear();
        interface.note(time, Store::Registered(interface.generation));
        let before = interface.bound.replace(Bound {
            processor: index,
            area,
            vector,
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
            interface.note(time, store);
        }
    }

    /// The descriptor of a frame: address and length.
    fn descriptor(&self, ring: Ring, number: u64) -> Option<(PhysicalAddress, u64)> {
        let interface = self.interface.as_ref()?;
        let at = interface.bound?.area + ring.descriptor(number, interface.entries);
        let word = |offset: u64| self.shared.memory.read_value::<u64>(at + offset).ok();
        let length = word(8)? & u64::from(u32::MAX);
        Some((PhysicalAddress(word(0)?), length))
    }

    /// What the card reads of the send ring.
    pub(crate) fn fetch(&self, number: u64) -> Fetched {
        let frame = self.descriptor(Ring::Send, number).and_then(|(address, length)| {
            (FRAME_MIN..=FRAME_MAX).contains(&length).then_some(())?;
            let mut bytes = vec![0; length as usize];
            self.shared.memory.read(address, &mut bytes).ok()?;
            Some(bytes)
        });
        frame.map_or(Fetched::Refused, Fetched::Frame)
    }

    /// The buffer for a frame of so many bytes; `None` if its descriptor is refused.
    pub(crate) fn buffer(&self, number: u64, bytes: u64) -> Option<PhysicalAddress> {
        let (address, length) = self.descriptor(Ring::Receive, number)?;
        (bytes <= length && self.shared.memory.holds(address, bytes)).then_some(address)
    }

    /// Has the card write something that is seen from `time` on, for the area that was registered as the
    /// `generation`th.
    pub(crate) fn write_from_card(&mut self, time: Cycle, generation: u64, number: u64, written: Written) {
        if let Some(interface) = &mut self.interface {
            let place = interface.writes.partition_point(|(earlier, _)| *earlier <= time);
            let write = Write {
                generation,
                number,
                written,
            };
            interface.writes.insert(place, (time, write));
        }
    }

    /// Signals its guest, at `time`.
    pub(crate) fn signal(&mut self, time: Cycle, signal: Signal) {
        if let Some(bound) = self.interface.as_ref().and_then(|interface| interface.bound) {
            self.mailboxes[bound.processor].add_signal(time, bound.vector, signal);
        }
    }

    /// A processor waits: what a signal has woken it for is done.
    pub(super) fn rests(&mut self, index: usize) {
        if self.interface_processor() == Some(index) {
            self.is_woken = false;
        }
    }

    /// Whether a processor has got a signal since it waited last.
    pub fn is_signalled(&self, index: usize) -> bool {
        let bound = self.interface.as_ref().and_then(|interface| interface.bound);
        let is_its = bound.is_some_and(|bound| bound.processor == index);
        is_its && (self.is_woken || self.mailboxes[index].has_signal())
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
        let interface = self.interface.as_ref()?;
        interface.bound.filter(|bound| bound.processor == index)?;
        interface.writes.front().map(|(time, _)| *time)
    }

    /// Lets the card's writes into memory that a processor sees by its clock.
    pub(super) fn collect_writes(&mut self, index: usize) {
        let clock = self.processors[index].clock();
        while self.next_write(index).is_some_and(|time| time <= clock) {
            let interface = self.interface.as_mut().expect("it has a write");
            let (Some((_, write)), Some(bound)) = (interface.writes.pop_front(), interface.bound) else {
                return;
            };
            if write.generation != interface.generation {
                continue;
            }
            let entries = interface.entries;
            let memory = &self.shared.memory;
            let (ring, count, status, length) = match write.written {
                Written::Received { bytes, buffer } => {
                    let moved = buffer.filter(|buffer| memory.write(*buffer, &bytes).is_ok());
                    let (status, length) = match moved {
                        Some(_) => (Status::Done, bytes.len() as u64),
                        None => (Status::Refused, 0),
                    };
                    (Ring::Receive, field::RECEIVED, status, length)
                }
                Written::Transmitted { status } => (Ring::Send, field::TRANSMITTED, status, 0),
            };
            let descriptor = bound.area + ring.descriptor(write.number, entries);
            let told = memory
                .write_value(descriptor + 8, (status as u64) << 32 | length)
                .and(memory.write_value(bound.area + count, write.number + 1));
            told.expect("a registered area is memory");
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
    pub(super) fn take_signal(&mut self, costs: &HostCosts, index: usize, vector: u8, signal: Signal) {
        self.interrupts[index].request(vector);
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
