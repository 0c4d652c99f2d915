//! Sidecalls of a real KVM guest: requests in memory that a core serves which stays in the monitor, against leaving
//! the guest.
//!
//! - [`layout`] says where everything lies in the guest's memory;
//! - [`memory`] is that memory;
//! - [`operation`] says what can be asked for and how it can go;
//! - [`service`] is what the monitor does for a guest, by whichever way it was asked;
//! - [`devices`] are the disk and the network that it may have;
//! - [`program`] is a core that stays and serves by zero-wait threads, devices too;
//! - [`notified`] is the thread that the kernel wakes for a guest's call, as vhost has it;
//! - a core that stays and does nothing but the monitor's work, and the line of a request, are [`sidestep_sidecall`]'s;
//! - `machine` is the virtual machine, `guest` its program, `kind` finds out whether the guest runs by itself
//!   (Linux on x86-64).
//!
//! Rules: a request is copied once and then checked, so that a guest which changes it meanwhile chooses what is refused
//! and nothing more; the monitor waits for no guest; a guest's memory is all that its requests can change.
//!
#![doc = include_str!("../README.md")]

pub mod devices;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod guest;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod kind;
pub mod layout;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod machine;
pub mod memory;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod notified;
pub mod operation;
pub mod program;
pub mod service;
