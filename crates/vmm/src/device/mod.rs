//! Devices with registers in memory.
//!
//! - [`iosapic`]: interrupts of devices to processors.
//! - [`serial`]: the 16550 serial port.
//! - [`power`]: power off and reset.

pub mod iosapic;
pub mod power;
pub mod serial;
