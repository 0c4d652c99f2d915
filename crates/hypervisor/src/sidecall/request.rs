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
//!
//! `map` and `unmap` change the guest's own VHPT, where its PTA says that it is, and the shadow: the guest must not
//! touch the entry itself. An entry that was valid before is purged from the TLBs of all its processors.
//!
//! Kinds 7 to 10 are served by a device: several may be under way, each device serves its own in order, up to 2048
//! sectors or a packet of 64 kB at a time, and refuses what its queue has no room for.

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
}

impl Kind {
    /// The kind of a number that a guest wrote.
    pub fn from_number(number: u64) -> Option<Kind> {
        usize::try_from(number)
            .ok()
            .and_then(|number| Kind::ALL.get(number).copied())
    }
}

/// A request as it was read from a slot or from registers, not checked yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The kind's number.
    pub kind: u64,
    /// The arguments.
    pub arguments: [u64; 3],
    /// The vector of the interrupt at completion; 0: none.
    pub vector: u64,
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
}
