//! Sidecalls: requests in shared memory to a core that stays in the monitor, in place of a transition to it.
//!
//! - [`mod@line`] is the protocol: a cache line with a request and its answer;
//! - [`sidecore`] is the core that stays: a thread that looks at the lines of all its callers in turn;
//! - [`system_calls`] is what it does for a process: system calls, and looking up keys in a [`table`];
//! - [`caller`] hands it the calls of its own process;
//! - [`broker`] serves processes that it does not trust, each in a shared region of its own;
//! - `interface` is the library for C, `include/sidecall.h`.
//!
//! Rules: a request is copied once and then checked; a sidecore waits for no caller and for nothing that a caller
//! could make last; what it cannot do at once the caller does itself.
//!
#![doc = include_str!("../README.md")]

pub mod line;

#[cfg(all(target_os = "linux", not(loom)))]
pub mod broker;
#[cfg(all(target_os = "linux", not(loom)))]
pub mod caller;
#[cfg(all(target_os = "linux", not(loom)))]
mod interface;
#[cfg(all(target_os = "linux", not(loom)))]
pub mod sidecore;
#[cfg(all(target_os = "linux", not(loom)))]
pub mod system_calls;
#[cfg(not(loom))]
pub mod table;
#[cfg(all(target_os = "linux", not(loom)))]
mod wait;
