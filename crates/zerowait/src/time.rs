//! Time as both executors count it: integer ticks.

use std::fmt;
use std::ops::{Add, Sub};

/// A moment, in ticks since the executor started.
///
/// In virtual time a tick is whatever unit the program means (a cycle, a nanosecond); on cores it is a
/// nanosecond. Durations are plain `u64` ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Add<u64> for Time {
    type Output = Time;

    /// The moment `ticks` later; the end of time stands still.
    fn add(self, ticks: u64) -> Time {
        Time(self.0.saturating_add(ticks))
    }
}

impl Sub for Time {
    type Output = u64;

    /// The ticks from `earlier` to this moment, or 0 if it is not earlier.
    fn sub(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
