//! What the threads of a simulated program do, and which memory they share.

use crate::scatter::scatter;

/// A step of a thread's loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Work alone.
    Compute {
        /// How long it takes at full speed, on average.
        work_ns: u64,
        /// By how much it varies between threads and rounds, in thousandths each way.
        varies_permille: u64,
    },
    /// Wait for all threads of the instance.
    Barrier,
    /// Work that only one thread of the instance does at a time.
    Locked {
        /// How long the lock is held.
        work_ns: u64,
    },
}

/// Which threads of an instance use the same regions of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// None do.
    Nothing,
    /// Every pair shares this many.
    Everyone {
        /// For each pair.
        regions: u32,
    },
    /// Neighbours in a ring share this many, and all threads together a tenth of that.
    Neighbours {
        /// For each pair of neighbours.
        regions: u32,
    },
    /// Every pair shares a number of its own, from one to this.
    Irregular {
        /// The most for a pair.
        regions_max: u32,
    },
}

impl Sharing {
    /// How many regions a pair of an instance's threads shares.
    pub fn regions(self, left: usize, right: usize, threads: usize, seed: u64) -> u32 {
        let (low, high) = (left.min(right), left.max(right));
        match self {
            Self::Nothing => 0,
            Self::Everyone { regions } => regions,
            Self::Neighbours { regions } if high - low == 1 || high - low == threads - 1 => regions,
            Self::Neighbours { regions } => regions / 10,
            Self::Irregular { regions_max: 0 } => 0,
            Self::Irregular { regions_max } => {
                1 + (scatter(&[seed, low as u64, high as u64]) % u64::from(regions_max)) as u32
            }
        }
    }
}

/// A parallel program: every thread repeats the phases for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its name in reports.
    pub name: String,
    /// One round.
    pub phases: Vec<Phase>,
    /// How long a waiting thread spins before it blocks.
    pub spin_ns: u64,
    /// Shared memory.
    pub sharing: Sharing,
}

impl Workload {
    /// The work of a compute phase, for one thread in one round.
    pub(super) fn vary(work_ns: u64, varies_permille: u64, inputs: &[u64]) -> u64 {
        if varies_permille == 0 {
            return work_ns;
        }
        let varied = 1000 - varies_permille.min(1000) + scatter(inputs) % (2 * varies_permille.min(1000) + 1);
        (u128::from(work_ns) * u128::from(varied) / 1000) as u64
    }
}
