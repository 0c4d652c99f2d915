//! The clock of the cores: the processor's time-stamp counter where it runs at one rate, else the system's
//! clock.
//!
//! A tick is whatever is cheap to read; [`Clock::time`] turns ticks into nanoseconds since the executor
//! started.

use std::time::{Duration, Instant};

use crate::time::Time;

/// How long the counter is compared with the system's clock.
const CALIBRATION: Duration = Duration::from_millis(2);

#[derive(Clone, Debug)]
pub(crate) struct Clock {
    started: Instant,
    /// The counter's rate, if it can be used.
    counter: Option<Counter>,
}

#[derive(Clone, Copy, Debug)]
struct Counter {
    start: u64,
    /// Nanoseconds that `ticks` ticks take.
    nanos: u64,
    ticks: u64,
}

impl Clock {
    /// A clock that starts now.
    pub(crate) fn start() -> Self {
        let counter = counter::is_steady().then(|| {
            let (from, from_ticks) = simultaneous();
            std::thread::sleep(CALIBRATION);
            let (to, to_ticks) = simultaneous();
            Counter {
                start: to_ticks,
                nanos: u64::try_from((to - from).as_nanos()).unwrap_or(u64::MAX),
                ticks: to_ticks.saturating_sub(from_ticks).max(1),
            }
        });
        Self {
            started: Instant::now(),
            counter,
        }
    }

    /// The reading now; never 0.
    #[inline]
    pub(crate) fn ticks(&self) -> u64 {
        match self.counter {
            Some(_) => counter::read().max(1),
            None => self.started.elapsed().as_nanos() as u64 + 1,
        }
    }

    /// What ticks are multiplied with and divided by to be nanoseconds.
    pub(crate) fn scale(&self) -> (u64, u64) {
        self.counter
            .map_or((1, 1), |counter| (counter.nanos, counter.ticks))
    }

    /// The time of a reading.
    pub(crate) fn time(&self, ticks: u64) -> Time {
        let since = ticks.saturating_sub(self.counter.map_or(1, |counter| counter.start));
        let (nanos, per) = self.scale();
        Time((u128::from(since) * u128::from(nanos) / u128::from(per)) as u64)
    }

    /// The time now.
    pub(crate) fn now(&self) -> Time {
        self.time(self.ticks())
    }

    /// How many ticks this many nanoseconds are.
    pub(crate) fn ticks_of(&self, nanos: u64) -> u64 {
        let (per, ticks) = self.scale();
        (u128::from(nanos) * u128::from(ticks) / u128::from(per.max(1))).min(u128::from(u64::MAX)) as u64
    }
}

/// The system's clock and the counter read as close together as 16 tries allow.
fn simultaneous() -> (Instant, u64) {
    let attempt = || {
        let before = counter::read();
        let instant = Instant::now();
        let after = counter::read();
        (
            after.wrapping_sub(before),
            instant,
            before.wrapping_add(after.wrapping_sub(before) / 2),
        )
    };
    let best = (0..16)
        .map(|_| attempt())
        .min_by_key(|(gap, ..)| *gap)
        .expect("16 tries");
    (best.1, best.2)
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod counter {
    use std::arch::x86_64::{__cpuid, _rdtsc};

    /// Whether the counter runs at one rate whatever the processor does (CPUID leaf 8000_0007h, EDX bit 8).
    pub(super) fn is_steady() -> bool {
        __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0
    }

    #[inline]
    pub(super) fn read() -> u64 {
        // SAFETY: every x86-64 processor has the instruction.
        unsafe { _rdtsc() }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod counter {
    /// No counter is known for this processor.
    pub(super) fn is_steady() -> bool {
        false
    }

    pub(super) fn read() -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_forward_and_ticks_convert_both_ways() {
        let clock = Clock::start();
        let (first, second) = (clock.now(), clock.now());
        assert!(second >= first);
        let ticks = clock.ticks_of(1_000_000);
        let base = clock.ticks();
        let gone = clock.time(base + ticks) - clock.time(base);
        assert!((999_000..=1_001_000).contains(&gone), "{gone}");
    }
}
