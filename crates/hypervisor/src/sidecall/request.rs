//! What guests ask for, by exit or by sidecall alike.
//!
//! | kind | arguments | result |
//! | --- | --- | --- |
//! | 0 null | | 0 |
//! | 1 identification | index | the processor identification register |
//! | 2 map | virtual address, page table entry, ITIR or 0 | 1 if an entry was replaced |
//! | 3 unmap | virtual address, size as a power of two | entries removed |
//! | 4 timer | delay in clock cycles, vector | 0; the interrupt comes when the delay is over |
//! | 5 interrupt | processor, vector | 0 |
//! | 6 console | guest-physical address, bytes | bytes printed |
//! | 7 read block | sector, guest-physical address, sectors | 0, once the device is done |
//! | 8 write block | sector, guest-physical address, sectors | 0, once the device is done |
//! | 9 send | virtual machine, guest-physical address, bytes | 0, once the packet is on its way |
//! | 10 receive | guest-physical address, bytes at most | bytes received; refused if there is no packet |
//! | 11 own | three, as a [service of the user's own](crate::virtual_machine::OwnService) understands them | its answer; refused without one |
//! | 12 fill shadow | virtual address | 0; refused if no translation is to be found |
//! | 13 purge | virtual address, size as a power of two | 0 |
//! | 14 doorbell | | 0; the block device of a kernel looks at its queue |
//!
//! `map` and `unmap` change the guest's own VHPT, where its PTA says that it is, and the shadow: the guest must not
//! touch the entry itself. An entry that was valid before is purged from the TLBs of all its processors.
//!
//! `fill shadow` and `purge` are for kernels that write their tables themselves. The first does what the next
//! reference to the page would have done by an exit; the second does what `ptc.ga` does, and leaves tables as they are.
//!
//! Nobody needs to make `doorbell`: a sidecore makes it of what a kernel stores to the device's doorbell.
//!
//! Kinds 7 to 10 are served by a device: several may be under way, each device serves its own in order, up to 2048
//! sectors or a packet of 64 kB at a time, and refuses what its queue has no room for.
//!
//! Numbers become a [`Request`] once, where they come in ([`Request::read`]); whoever serves it knows what it asks for.

use sidestep_ia64::{PhysicalAddress, VirtualAddress};

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)+) => {
        /// The kind of a request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[$doc])* $name = $number,)+
        }

        impl Kind {
            /// Every kind by number.
            pub const ALL: &'static [Kind] = &[$(Kind::$name,)+];

            /// The kind in reports.
            pub fn name(self) -> &'static str {
                match self { $(Kind::$name => $text,)+ }
            }
        }
    };
}

kinds! {
    /// Nothing.
    Null = 0, "null";
    /// Processor identification.
    Identification = 1, "identification";
    /// Creation or change of a page table entry.
    Map = 2, "map";
    /// Removal of page table entries.
    Unmap = 3, "unmap";
    /// An interrupt after a delay.
    Timer = 4, "timer";
    /// An interrupt to a processor of the same virtual machine.
    Interrupt = 5, "interrupt";
    /// Console output.
    Console = 6, "console";
    /// Reading from the block device.
    ReadBlock = 7, "read block";
    /// Writing to the block device.
    WriteBlock = 8, "write block";
    /// Sending a packet.
    Send = 9, "send";
    /// Receiving a packet.
    Receive = 10, "receive";
    /// What the user's own service does.
    Own = 11, "own";
    /// A translation that the guest has made goes into the shadow.
    Fill = 12, "fill shadow";
    /// Removal of translations from TLBs.
    Purge = 13, "purge";
    /// The block device of a kernel looks at its queue.
    Doorbell = 14, "doorbell";
}

impl Kind {
    /// The kind of a number that a guest wrote.
    fn from_number(number: u64) -> Option<Kind> {
        usize::try_from(number)
            .ok()
            .and_then(|number| Kind::ALL.get(number).copied())
    }
}

/// A request, with its arguments as the guest wrote them: whoever serves it checks those.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Nothing.
    Null,
    /// Processor identification.
    Identification {
        /// The register.
        index: u64,
    },
    /// Creation or change of a page table entry.
    Map {
        /// An address of the page.
        address: VirtualAddress,
        /// The entry.
        entry: u64,
        /// Its ITIR; 0: the region's.
        itir: u64,
    },
    /// Removal of page table entries.
    Unmap {
        /// The first address.
        address: VirtualAddress,
        /// How many bytes: 2 to this power.
        size_log2: u64,
    },
    /// An interrupt after a delay.
    Timer {
        /// The delay.
        delay_cycles: u64,
        /// The interrupt's vector.
        vector: u64,
    },
    /// An interrupt to a processor of the same virtual machine.
    Interrupt {
        /// The processor.
        target: u64,
        /// The interrupt's vector.
        vector: u64,
    },
    /// Console output.
    Console {
        /// Where the text is.
        address: PhysicalAddress,
        /// Its bytes.
        size: u64,
    },
    /// A translation that the guest has made goes into the shadow.
    Fill {
        /// An address of the page.
        address: VirtualAddress,
    },
    /// Removal of translations from the TLBs of all processors.
    Purge {
        /// The first address.
        address: VirtualAddress,
        /// How many bytes: 2 to this power.
        size_log2: u64,
    },
    /// The block device of a kernel looks at its queue.
    Doorbell,
    /// What the user's own service does, with arguments that it alone understands.
    Own {
        /// The arguments.
        arguments: [u64; 3],
    },
    /// What a device serves.
    Device(DeviceRequest),
    /// Of a kind that there is none of.
    Unknown,
}

/// A request that a device serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceRequest {
    /// Reading from the block device.
    ReadBlock(Transfer),
    /// Writing to the block device.
    WriteBlock(Transfer),
    /// Sending a packet.
    Send {
        /// The virtual machine that it goes to.
        to: u64,
        /// Where the packet is.
        address: PhysicalAddress,
        /// Its bytes.
        size: u64,
    },
    /// Receiving a packet.
    Receive {
        /// Where it is to go.
        address: PhysicalAddress,
        /// The most bytes that it may have.
        size_max: u64,
    },
}

/// Sectors of the block device, and their place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The first sector.
    pub sector: u64,
    /// How many there are.
    pub sectors: u64,
    /// Where the first is in memory.
    pub address: PhysicalAddress,
}

impl Request {
    /// The request that a guest made by the number of a kind and three arguments.
    pub fn read(kind: u64, arguments: [u64; 3]) -> Request {
        let [first, second, third] = arguments;
        let transfer = Transfer {
            sector: first,
            address: PhysicalAddress(second),
            sectors: third,
        };
        match Kind::from_number(kind) {
            None => Request::Unknown,
            Some(Kind::Null) => Request::Null,
            Some(Kind::Identification) => Request::Identification { index: first },
            Some(Kind::Map) => Request::Map {
                address: VirtualAddress(first),
                entry: second,
                itir: third,
            },
            Some(Kind::Unmap) => Request::Unmap {
                address: VirtualAddress(first),
                size_log2: second,
            },
            Some(Kind::Timer) => Request::Timer {
                delay_cycles: first,
                vector: second,
            },
            Some(Kind::Interrupt) => Request::Interrupt {
                target: first,
                vector: second,
            },
            Some(Kind::Console) => Request::Console {
                address: PhysicalAddress(first),
                size: second,
            },
            Some(Kind::Own) => Request::Own { arguments },
            Some(Kind::Doorbell) => Request::Doorbell,
            Some(Kind::Fill) => Request::Fill {
                address: VirtualAddress(first),
            },
            Some(Kind::Purge) => Request::Purge {
                address: VirtualAddress(first),
                size_log2: second,
            },
            Some(Kind::ReadBlock) => Request::Device(DeviceRequest::ReadBlock(transfer)),
            Some(Kind::WriteBlock) => Request::Device(DeviceRequest::WriteBlock(transfer)),
            Some(Kind::Send) => Request::Device(DeviceRequest::Send {
                to: first,
                address: PhysicalAddress(second),
                size: third,
            }),
            Some(Kind::Receive) => Request::Device(DeviceRequest::Receive {
                address: PhysicalAddress(first),
                size_max: second,
            }),
        }
    }

    /// Its kind, if there is such a kind.
    pub fn kind(&self) -> Option<Kind> {
        Some(match self {
            Request::Null => Kind::Null,
            Request::Identification { .. } => Kind::Identification,
            Request::Map { .. } => Kind::Map,
            Request::Unmap { .. } => Kind::Unmap,
            Request::Timer { .. } => Kind::Timer,
            Request::Interrupt { .. } => Kind::Interrupt,
            Request::Console { .. } => Kind::Console,
            Request::Own { .. } => Kind::Own,
            Request::Doorbell => Kind::Doorbell,
            Request::Fill { .. } => Kind::Fill,
            Request::Purge { .. } => Kind::Purge,
            Request::Device(request) => request.kind(),
            Request::Unknown => return None,
        })
    }
}

impl DeviceRequest {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            DeviceRequest::ReadBlock(_) => Kind::ReadBlock,
            DeviceRequest::WriteBlock(_) => Kind::WriteBlock,
            DeviceRequest::Send { .. } => Kind::Send,
            DeviceRequest::Receive { .. } => Kind::Receive,
        }
    }
}

/// Why a request was refused; the number is the result in the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Refusal {
    /// There is no such kind.
    UnknownKind = 1,
    /// An argument is out of its range.
    BadArgument = 2,
    /// An address is not in the guest's memory.
    BadAddress = 3,
    /// The guest has no page table that an entry could go to.
    NoTable = 4,
    /// There is nothing to receive.
    Empty = 5,
    /// No sidecore serves now: the request is to be made by exit.
    NotServed = 6,
    /// A queue is full: to be made again later.
    Full = 7,
}

/// What the monitor answers.
pub type Answer = Result<u64, Refusal>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_kinds_are_their_places() {
        for (number, kind) in Kind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, number);
            assert_eq!(Kind::from_number(number as u64), Some(*kind));
        }
        assert_eq!(Kind::from_number(Kind::ALL.len() as u64), None);
        assert_eq!(Kind::from_number(u64::MAX), None);
    }

    #[test]
    fn a_request_is_of_the_kind_that_it_was_made_by() {
        for (number, kind) in Kind::ALL.iter().enumerate() {
            assert_eq!(Request::read(number as u64, [1, 2, 3]).kind(), Some(*kind));
        }
        assert_eq!(Request::read(u64::MAX, [0; 3]), Request::Unknown);
    }
}
