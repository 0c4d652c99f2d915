//! Time on a host.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::Serialize;

/// The longest epoch of a host, in cycles.
pub(crate) const EPOCH_CYCLES_MAX: u64 = 100_000;

/// A point in a host's time: how many cycles of its cores it is since the start. What lies between two points is a
/// number of cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Cycle(pub u64);

impl Cycle {
    /// When the host was started.
    pub const START: Cycle = Cycle(0);
    /// Later than anything.
    pub const NEVER: Cycle = Cycle(u64::MAX);

    /// The cycles since another point; none if that one is later.
    pub fn since(self, earlier: Cycle) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// So many cycles later, or never.
    pub fn saturating_add(self, cycles: u64) -> Cycle {
        Cycle(self.0.saturating_add(cycles))
    }
}

/// So many cycles later.
impl Add<u64> for Cycle {
    type Output = Cycle;

    fn add(self, cycles: u64) -> Cycle {
        Cycle(self.0 + cycles)
    }
}

impl AddAssign<u64> for Cycle {
    fn add_assign(&mut self, cycles: u64) {
        self.0 += cycles;
    }
}

/// The cycles since an earlier point.
impl Sub for Cycle {
    type Output = u64;

    fn sub(self, earlier: Cycle) -> u64 {
        self.0 - earlier.0
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
