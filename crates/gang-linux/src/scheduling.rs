//! How a thread is scheduled: its class, niceness and the cores it may use.
//!
//! Only the classes of ordinary threads (other, batch, idle) are ever changed; threads in a real-time or deadline class
//! are left alone.

use std::io;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::HostError;

/// The class of ordinary threads.
pub const OTHER: u32 = libc::SCHED_OTHER as u32;
/// The class of ordinary threads that prefer throughput.
pub const BATCH: u32 = libc::SCHED_BATCH as u32;
/// The class that runs when nothing else wants the core: three parts in a thousand at most otherwise.
pub const IDLE: u32 = libc::SCHED_IDLE as u32;

/// How the kernel schedules a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduling {
    /// The class, as the kernel numbers it.
    pub class: u32,
    /// Flags of `sched_setattr`.
    pub flags: u64,
    /// -20 to 19; only for ordinary classes.
    pub nice: i32,
    /// Only for real-time classes.
    pub priority: u32,
    /// The cores it may use, ascending.
    pub cores: Vec<u32>,
}

impl Scheduling {
    /// Whether a coscheduler may rank such a thread: it has no real-time or deadline promise.
    pub fn is_ordinary(&self) -> bool {
        matches!(self.class, OTHER | BATCH | IDLE)
    }

    /// Whether a thread that is scheduled so seems to have inherited a controller's change, where `model` is what its
    /// program's threads were like before: it is ranked behind, or kept from some of the cores.
    pub fn is_inherited_from(&self, model: &Self) -> bool {
        let is_behind = self.class == IDLE && model.class != IDLE;
        let is_kept = self.cores != model.cores && self.cores.iter().all(|core| model.cores.contains(core));
        is_behind || is_kept
    }

    /// How a thread is scheduled now.
    ///
    /// # Errors
    /// When it is gone or may not be asked.
    pub fn of(thread: i32) -> Result<Self, HostError> {
        let call = |call, source: io::Error| HostError::Call {
            call,
            subject: format!("thread {thread}"),
            source,
        };
        // SAFETY: sched_attr is a plain structure of integers, for which zero is a value.
        let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::sched_attr>();
        // SAFETY: the pointer is to `size` writable bytes that outlive the call; the kernel writes no more.
        let result = unsafe {
            libc::syscall(
                libc::SYS_sched_getattr,
                thread,
                &raw mut attributes,
                size as libc::c_uint,
                0,
            )
        };
        if result != 0 {
            return Err(call("sched_getattr", io::Error::last_os_error()));
        }
        let set = sched_getaffinity(Pid::from_raw(thread))
            .map_err(|error| call("sched_getaffinity", error.into()))?;
        Ok(Self {
            class: attributes.sched_policy,
            flags: attributes.sched_flags,
            nice: attributes.sched_nice,
            priority: attributes.sched_priority,
            cores: (0..CpuSet::MAX_CPU)
                .filter(|&core| set.is_set(core))
                .map(|core| core as u32)
                .collect(),
        })
    }

    /// Schedules a thread so. The class goes before the cores, so that a thread is never pinned with a rank that is
    /// not meant for the place.
    ///
    /// # Errors
    /// When it is gone, or the caller may not.
    pub fn apply(&self, thread: i32) -> Result<(), HostError> {
        self.apply_class(thread)?;
        self.apply_cores(thread)
    }

    /// Sets the class and niceness alone.
    ///
    /// # Errors
    /// As [`Scheduling::apply`].
    pub fn apply_class(&self, thread: i32) -> Result<(), HostError> {
        // SAFETY: as in `of`.
        let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
        attributes.size = size_of::<libc::sched_attr>() as u32;
        attributes.sched_policy = self.class;
        attributes.sched_flags = self.flags;
        attributes.sched_nice = self.nice;
        attributes.sched_priority = self.priority;
        // SAFETY: the pointer is to an initialised structure of the stated size that outlives the call.
        let result = unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const attributes, 0) };
        if result == 0 {
            return Ok(());
        }
        let source = io::Error::last_os_error();
        Err(HostError::Call {
            call: "sched_setattr",
            subject: format!("thread {thread}"),
            source,
        })
    }

    /// Sets the cores alone.
    ///
    /// # Errors
    /// As [`Scheduling::apply`].
    pub fn apply_cores(&self, thread: i32) -> Result<(), HostError> {
        let mut set = CpuSet::new();
        for &core in &self.cores {
            set.set(core as usize);
        }
        sched_setaffinity(Pid::from_raw(thread), &set).map_err(|error| HostError::Call {
            call: "sched_setaffinity",
            subject: format!("thread {thread}"),
            source: error.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_ranked_behind_and_put_back() {
        std::thread::spawn(|| {
            let own = rustix::thread::gettid().as_raw_nonzero().get();
            let before = Scheduling::of(own).expect("this thread's scheduling");
            let behind = Scheduling {
                class: IDLE,
                cores: before.cores[..1].to_vec(),
                ..before.clone()
            };
            behind.apply(own).expect("a thread may give up its rank");
            assert_eq!(Scheduling::of(own).expect("this thread's scheduling"), behind);
            match before.apply(own) {
                Ok(()) => assert_eq!(Scheduling::of(own).expect("this thread's scheduling"), before),
                Err(_) => tests_need::leave_out("this user may not leave the idle class"),
            }
        })
        .join()
        .expect("the thread ends well");
    }

    #[test]
    fn a_thread_that_is_gone_is_an_error() {
        assert!(Scheduling::of(i32::MAX).is_err());
    }
}
