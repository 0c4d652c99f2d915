//! Devices with registers in memory.
//!
//! - [`iosapic`]: interrupts of devices to processors.
//! - [`serial`]: the 16550 serial port.
//! - [`hpet`]: the high-precision event timer.
//! - [`power`]: power off and reset; [`panic_watch`]: noticing that a kernel panics.

pub mod hpet;
pub mod iosapic;
pub mod panic_watch;
pub mod power;
pub mod serial;
