//! What a guest can ask for, and how that can go.

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Operation {
    /// Nothing.
    Null = 1,
    /// Who the monitor is.
    Identify = 2,
    /// A page of memory, seen through a page of the window that shows nothing.
    Map = 3,
    /// Another page of memory, seen through a page of the window.
    Change = 4,
    /// Nothing more to be seen through a page of the window.
    Unmap = 5,
    /// A block of the disk, read into a page of memory.
    Read = 6,
    /// The first bytes of a page of memory, sent as a packet.
    Send = 7,
}

impl Operation {
    pub(crate) fn of(number: u64) -> Option<Self> {
        use Operation::*;
        [Null, Identify, Map, Change, Unmap, Read, Send]
            .into_iter()
            .find(|operation| *operation as u64 == number)
    }
}

/// How a request went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Status {
    /// It was done.
    Done = 0,
    /// There is no such operation.
    NoOperation = 1,
    /// The window has no such page.
    NoPage = 2,
    /// Memory has no such page that the window may show and a device may use.
    NoFrame = 3,
    /// To be mapped, and mapped already.
    Mapped = 4,
    /// To be changed or unmapped, and not mapped.
    NotMapped = 5,
    /// The kernel refused to flush what was seen before.
    NotFlushed = 6,
    /// The guest has no devices.
    NoDevice = 7,
    /// The disk has no such block.
    NoBlock = 8,
    /// A packet has one byte at least, and a page of them at most.
    NoLength = 9,
    /// The device has failed.
    Failed = 10,
}
