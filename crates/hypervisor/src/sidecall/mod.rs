//! Sidecalls: requests that a guest leaves in memory for a core that is already in the monitor.
//!
//! - [`page`]: the page that guest and monitor share.
//! - [`request`]: what can be asked for, and what is answered.
//! - [`call`]: the calls with which a guest sets the page up, and makes the same requests by exit.
//!
//! The cores that serve are the [host](crate::host::sidecores)'s.

pub mod page;
pub mod request;

/// Calls of the monitor that concern requests, beside those of every machine
/// ([`sidestep_machine::machine::hypercall::function`]).
pub mod call {
    /// Registers the page at guest-physical address r8 (a multiple of 4096, in memory) as the request page of this
    /// processor.
    pub const REGISTER: u64 = 0x40;
    /// Makes a request by exit: r8 is the kind, r9 to r11 are the arguments. Returns the status (done or refused) in
    /// r9 and the result in r8, once it is served: a processor that asks a device waits for it in the monitor.
    pub const REQUEST: u64 = 0x41;
    /// Hands over by exit the request that this processor has written into slot r8 of its page, with a status that is
    /// not `requested`: the monitor stores that, and the answer comes as that of a sidecall. Returns 0, or all ones if
    /// there is no such slot or it has a request under way.
    pub const SUBMIT: u64 = 0x42;
    /// Marks that a phase of a measurement begins or ends: r8 is the label. Returns 0, or all ones once
    /// [`MARKS_MAX`] are kept. With firmware the number is the firmware's.
    pub const MARK: u64 = 0x100;
    /// The most marks that are kept of a virtual machine.
    pub const MARKS_MAX: usize = 4096;
}
