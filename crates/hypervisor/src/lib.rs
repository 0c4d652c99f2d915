//! Virtual machines on a modelled multicore host, under a monitor.
//!
//! - [`virtual_machine`]: IA-64 virtual processors in the monitor's hands: exits, shadow translation, devices.
//! - [`sidecall`]: requests that a guest leaves in memory for a core that is already in the monitor.
//! - [`host`]: several virtual machines on one host, and its cores, of which some serve sidecalls.
//! - [`cycle`]: time on a host; [`costs`]: what transitions cost there; [`calibration`]: what they cost on the machine that this program runs
//!   on.
//! - [`description`]: hosts as TOML files; [`debug`]: a host under a debugger.
//!
//! Nothing here is global: any number of hosts live in one program.
//!
#![doc = include_str!("../README.md")]

pub mod calibration;
pub mod costs;
pub mod cycle;
pub mod debug;
pub mod description;
pub mod host;
pub mod sidecall;
pub mod virtual_machine;

pub use costs::{Cost, HostCosts};
pub use cycle::Cycle;
pub use host::Host;
pub use virtual_machine::VirtualMachine;
