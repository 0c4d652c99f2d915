//! The host's processors: which there are, binding to one, and waiting on one.

use std::time::Duration;

use super::clock::Clock;

/// The processors that this process may run on, lowest first.
pub(super) fn available() -> Vec<usize> {
    #[cfg(miri)]
    return vec![0, 1];
    #[cfg(not(miri))]
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) => (0..rustix::thread::CpuSet::MAX_CPU)
            .filter(|processor| set.is_set(*processor))
            .collect(),
        Err(_) => vec![0],
    }
}

/// Binds the calling host thread to a processor.
pub(super) fn pin(processor: usize) -> std::io::Result<()> {
    #[cfg(not(miri))]
    {
        let mut set = rustix::thread::CpuSet::new();
        set.set(processor);
        rustix::thread::sched_setaffinity(None, &set)?;
    }
    #[cfg(miri)]
    let _ = processor;
    Ok(())
}

/// How a core waits a moment without giving up its processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The spin-wait hint of the processor, several times.
    Hint,
    /// `umonitor` and `umwait`: the processor sleeps lightly until the line that it watches is written.
    Umwait,
}

impl Pause {
    /// The best that this processor has (CPUID leaf 7, ECX bit 5: WAITPKG).
    pub fn detect() -> Self {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            use std::arch::x86_64::{__cpuid, __cpuid_count};
            if __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ecx & 1 << 5 != 0 {
                return Pause::Umwait;
            }
        }
        Pause::Hint
    }

    /// Waits for at most about a microsecond, or until `watched` may have been written. `still` is asked
    /// after the watch has begun.
    pub(super) fn wait<T>(self, clock: &Clock, watched: &T, still: impl Fn() -> bool) {
        match self {
            Pause::Hint => (0..32).for_each(|_| std::hint::spin_loop()),
            Pause::Umwait => umwait(clock, std::ptr::from_ref(watched).cast(), still),
        }
    }
}

/// The longest light sleep.
const UMWAIT: Duration = Duration::from_micros(1);

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn umwait(clock: &Clock, watched: *const u8, still: impl Fn() -> bool) {
    let deadline = clock.ticks() + clock.ticks_of(UMWAIT.as_nanos() as u64);
    // SAFETY: only reached where CPUID reports WAITPKG; `umonitor` arms a watch on an address and changes no
    // memory.
    unsafe { std::arch::asm!("umonitor {}", in(reg) watched, options(nostack, preserves_flags)) };
    if still() {
        // SAFETY: as above; state 1 is the lighter sleep (C0.1), and the deadline in edx:eax bounds it.
        unsafe {
            std::arch::asm!(
                "umwait {:e}",
                in(reg) 1u32,
                in("eax") deadline as u32,
                in("edx") (deadline >> 32) as u32,
                options(nostack)
            );
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn umwait(_: &Clock, _: *const u8, _: impl Fn() -> bool) {
    let _ = UMWAIT;
    std::hint::spin_loop();
}
