//! The virtual-machine monitor: virtual machines of IA-64 virtual processors on one modelled host.
//!
//! A virtual processor executes on a [`Processor`](sidestep_ia64::Processor) in the monitor's system state and has its
//! own system state in a [`SystemState`](sidestep_ia64::SystemState). Whatever ends its run is an [exit](ExitReason);
//! one function decides what happens (`handle`), and the costs of the host's table are charged to its
//! clock.
//!
//! ```text
//!   virtual_machine   memory, virtual processors, console, interrupts between them, purges
//!     processor       one virtual processor: entering the guest, leaving it, its clock and its counts
//!       handle        from an exit to what is done about it
//!       call          what guests ask for with `break`: the calls of every machine, and requests
//!       service       what requests do, by exit and by sidecall alike
//!     shadow          the monitor's translations: a long-format VHPT that the hardware walks
//!     memory          the physical memory that a guest believes in, and the machine's
//!     compression     guests without PSR.vm: levels moved down, unprivileged instructions replaced
//! ```
//!
//! Limits. A virtual processor has a TLB of its own, as if region identifiers were tagged with it; guests see 23 bits
//! of region identifier and 60 of address within a region. Where PSR.it, PSR.dt and PSR.rt differ, the monitor
//! interprets the guest, because one address space cannot serve two kinds of reference.

mod call;
mod compression;
mod exit;
mod handle;
mod memory;
mod processor;
mod service;
mod shadow;
mod virtual_machine;

pub use exit::{ExitCount, ExitCounts, ExitReason};
pub use processor::{Activity, Cycles, VirtualProcessor};
pub use service::{Packet, SECTOR, Served, Server};
pub use virtual_machine::{
    Method, Pending, PurgeMethod, RequestCounts, VirtualMachine, VirtualMachineConfig, VirtualMachineError,
    Virtualization,
};
