//! Virtual machines on a modelled multicore host, under a monitor.
//!
//! - [`virtual_machine`]: IA-64 virtual processors in the monitor's hands: exits, shadow translation, devices.
//! - [`sidecall`]: requests that a guest leaves in memory for a core that is already in the monitor.
//! - [`host`]: several virtual machines on one host, and its cores, of which some serve sidecalls.
//! - [`link`]: two hosts whose cards are joined; [`uplink`]: one whose card is joined to a network of this machine.
//! - [`nic`]: a card that shows every virtual machine a network interface of its own.
//! - [`cycle`]: time on a host; [`costs`]: what transitions cost there; [`calibration`]: what they cost on this
//!   machine.
//! - [`description`]: hosts as TOML files; [`debug`]: a host under a debugger.
//!
//! A *host* is always the modelled one; where this program runs is *this machine*, on *threads of this program*.
//! Nothing here is global: any number of hosts live in one program.
//!
#![doc = include_str!("../README.md")]

pub mod calibration;
pub mod contention;
pub mod costs;
pub mod cycle;
pub mod debug;
pub mod description;
pub mod host;
pub mod link;
pub mod nic;
pub mod sidecall;
pub mod uplink;
pub mod virtual_machine;

pub use costs::{Cost, HostCosts};
pub use cycle::Cycle;
pub use host::Host;
pub use virtual_machine::VirtualMachine;
