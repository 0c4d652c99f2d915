//! Light-weight calls: those that need nothing of their thread but arguments, and never sleep.
//!
//! Where nobody watches the thread they are served while its processor runs ([`ServedInRun`]), as Linux/ia64 does with
//! its own ("fsyscalls"): the run need not end and begin again for them. Otherwise they go the way of all calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sidestep_ia64::{Gate, LightCalls, Processor};

use super::table::{self, Action};
use crate::host::{self, Errno};
use crate::memory::{Memory, gate};
use crate::thread::{SYSTEM_CALL_BREAK, argument_of, number_of};

/// The function of a light-weight call, which takes its arguments from the processor: most have fewer than two.
pub type LightHandler = fn(&Memory, &Processor) -> Result<u64, Errno>;

/// A call of the host without arguments that cannot fail to be quick.
macro_rules! of_host {
    ($($(#[$documentation:meta])* $name:ident => $number:ident;)*) => {
        $($(#[$documentation])*
        pub fn $name(_: &Memory, _: &Processor) -> Result<u64, Errno> {
            // SAFETY: the call touches no memory.
            unsafe { host::call(libc::$number, [0; 6]) }
        })*
    };
}

of_host! {
    /// `getpid()`.
    getpid => SYS_getpid;
    /// `getppid()`.
    getppid => SYS_getppid;
    /// `gettid()`.
    gettid => SYS_gettid;
    /// `getuid()`.
    getuid => SYS_getuid;
    /// `geteuid()`.
    geteuid => SYS_geteuid;
    /// `getgid()`.
    getgid => SYS_getgid;
    /// `getegid()`.
    getegid => SYS_getegid;
}

/// `clock_gettime(clock, time)`: by the host's C library, which need not enter the kernel for most clocks.
pub fn clock_gettime(memory: &Memory, processor: &Processor) -> Result<u64, Errno> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the C library writes `time`.
    if unsafe { libc::clock_gettime(argument_of(processor, 0) as libc::clockid_t, &mut time) } != 0 {
        return Err(Errno::last());
    }
    memory.write(argument_of(processor, 1), &[time.tv_sec, time.tv_nsec])?;
    Ok(0)
}

/// `gettimeofday(time, zone)`: likewise.
pub fn gettimeofday(memory: &Memory, processor: &Processor) -> Result<u64, Errno> {
    let [time, zone] = [0, 1].map(|number| argument_of(processor, number));
    if zone != 0 {
        let (time, zone) = (memory.pointer(time)?, memory.pointer(zone)?);
        // SAFETY: guest addresses were translated into the guest's windows, where the host checks access.
        return unsafe { host::call(libc::SYS_gettimeofday, [time, zone, 0, 0, 0, 0]) };
    }
    let mut now = libc::timeval {
        tv_sec: 0,
        tv_usec: 0,
    };
    // SAFETY: the C library writes `now`.
    unsafe { libc::gettimeofday(&mut now, std::ptr::null_mut()) };
    memory.write_optional(time, &[now.tv_sec, now.tv_usec])?;
    Ok(0)
}

/// Serves light-weight calls of one thread while its processor runs.
pub struct ServedInRun {
    memory: Arc<Memory>,
    /// How many were served; only the thread itself counts.
    served: AtomicU64,
}

impl ServedInRun {
    /// For a thread in this memory.
    pub fn new(memory: Arc<Memory>) -> ServedInRun {
        ServedInRun {
            memory,
            served: AtomicU64::new(0),
        }
    }

    /// How many calls were served.
    pub fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }
}

impl LightCalls for ServedInRun {
    fn perform(&self, immediate: u64, processor: &Processor) -> Option<[u64; 2]> {
        // A copy to memory whose pages the program brings may sleep, which must not happen here.
        if immediate != SYSTEM_CALL_BREAK || self.memory.knows_watching() {
            return None;
        }
        let Action::Light(handler) = table::find(number_of(processor))?.action else {
            return None;
        };
        self.served.store(self.served() + 1, Ordering::Relaxed);
        Some(match handler(&self.memory, processor) {
            Ok(value) => [value, 0],
            Err(error) => [error.0 as u64, u64::MAX],
        })
    }

    fn gate(&self) -> Option<Gate> {
        Some(Gate {
            address: gate::SYSTEM_CALL,
            immediate: SYSTEM_CALL_BREAK,
        })
    }
}
