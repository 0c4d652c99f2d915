//! The coscheduler on a real Linux host: it sees which threads of unmodified programs share memory, decides with
//! [`sidestep_gang`] which of them should run together, and makes a stock kernel run them so.
//!
//! - [`watch`] finds who shares memory, from page faults that the kernel makes and reports;
//! - [`recording`] keeps what was found for later;
//! - [`control`] enforces sets, in user space, by scheduling class and affinity;
//! - [`journal`] notes every change before it is made, so that it can be undone even by another process;
//! - [`setting`] reads and writes settings of the kernel, [`changed`] changes one for a time;
//! - [`memory`] is what a VMM that lets its guest be watched has for it;
//! - [`process`] and [`scheduling`] read and change what the kernel knows of threads;
//! - [`workload`] holds small parallel programs to try it on.
//!
//! Rules: nothing is changed that is not in the journal; no thread is ever stopped, only ranked behind others; threads
//! are named by number *and* start time, since numbers are used again.
//!
#![doc = include_str!("../README.md")]

pub mod changed;
pub mod control;
pub mod journal;
pub mod memory;
pub mod process;
pub mod recording;
pub mod scheduling;
pub mod setting;
pub mod watch;
pub mod workload;

use std::path::PathBuf;

/// What went wrong on the host.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A file of the kernel's could not be used.
    #[error("cannot {action} {path}")]
    File {
        /// What was tried: `read`, `write`, `open`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A system call failed.
    #[error("{call} for {subject} failed")]
    Call {
        /// The system call.
        call: &'static str,
        /// What it was about.
        subject: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A process that must be left alone, or does not exist.
    #[error("process {process}: {reason}")]
    Refused {
        /// Its number.
        process: i32,
        /// Why.
        reason: String,
    },
    /// The kernel lacks something that is needed.
    #[error("this kernel cannot do it: {0}")]
    Unsupported(String),
    /// Another controller works on this host.
    #[error("another controller (process {process}) is at work; its journal is {journal}")]
    Busy {
        /// The other controller.
        process: String,
        /// Its journal.
        journal: PathBuf,
    },
    /// A file of ours cannot be understood.
    #[error("{path}: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, where, and what would be right.
        reason: String,
    },
    /// A command could not be started.
    #[error("cannot start `{command}`")]
    Start {
        /// The command.
        command: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl HostError {
    fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}
