//! The virtual-machine monitor: virtual machines of IA-64 virtual processors on one modelled host.
//!
//! A virtual processor executes on a [`Processor`](sidestep_ia64::Processor) in the monitor's system state and has its
//! own system state in a [`SystemState`](sidestep_ia64::SystemState). Whatever ends its run is an [exit](ExitReason);
//! one function decides what happens (`handle`), and the costs of the host's table are charged to its
//! clock.
//!
//! ```text
//!   configuration     what a virtual machine is made of
//!   virtual_machine   memory, virtual processors, console, disk, packets
//!     advance         which of its processors runs how far; interrupts between them, purges
//!     requests        requests through memory and their answers
//!     mailbox         what arrives at a processor, and when
//!     latency         how long requests took
//!     processor       one virtual processor: entering the guest, leaving it, its clock and its counts
//!       handle        from an exit to what is done about it
//!       call          what guests ask for with `break`: the calls of every machine, and requests
//!       service       what requests do, by exit and by sidecall alike
//!       device        the block device and the network interface
//!     whole         firmware and devices, where the virtual machine is a whole machine to a kernel
//!     shadow          the monitor's translations: a long-format VHPT that the hardware walks
//!     memory          the physical memory that a guest believes in, and the machine's
//!     machine_address   where in the machine's memory that is
//!     compression     guests without PSR.vm: levels moved down, unprivileged instructions replaced
//! ```
//!
//! Limits. A virtual processor has a TLB of its own, as if region identifiers were tagged with it; guests see 23 bits
//! of region identifier and 60 of address within a region. Where PSR.it, PSR.dt and PSR.rt differ, the monitor
//! interprets the guest, because one address space cannot serve two kinds of reference.

mod advance;
mod call;
mod compression;
mod configuration;
mod core;
mod device;
mod exit;
mod handle;
mod latency;
mod machine_address;
mod mailbox;
mod memory;
mod processor;
mod requests;
mod service;
mod shadow;
mod state;
mod whole;

pub use configuration::{Method, PurgeMethod, VirtualMachineConfig, VirtualMachineError, Virtualization};
pub use core::{Core, CoreModel};
pub use device::{DeviceKind, PACKET_MAX, QUEUE_MAX};
pub use exit::{ExitCount, ExitCounts, ExitReason};
pub use latency::{Latencies, RequestLatencies};
pub use machine_address::MachineAddress;
pub use processor::{Activity, CycleAccount, VirtualProcessor};
pub use requests::Pending;
pub use service::{Packet, Progress, SECTOR, Served, Server};
pub use state::VirtualMachine;
pub use whole::{SerialLine, WholeMachine};
