//! Threads that share pages in a known pattern, to see whether a watch finds it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Progress;
use crate::memory::PAGE;

/// Who shares with whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Threads 0 and 1, 2 and 3, and so on.
    Pairs,
    /// Each with the next, the last with the first.
    Ring,
    /// Each with each.
    All,
    /// Nobody.
    Nobody,
}

/// Words of a page.
const WORDS: usize = PAGE / size_of::<AtomicU64>();
/// Words of a cache line: threads share pages, not lines, so that how far apart their cores are decides nothing.
const LINE: usize = 8;
/// Sweeps over a thread's pages that are a step, so that counting costs nothing beside them.
const SWEEPS_A_STEP: usize = 64;

impl Pattern {
    /// All patterns, with their names.
    pub const ALL: [(&'static str, Self); 4] = [
        ("pairs", Self::Pairs),
        ("ring", Self::Ring),
        ("all", Self::All),
        ("nobody", Self::Nobody),
    ];

    /// Whether two of some threads share pages.
    pub fn is_shared(self, left: usize, right: usize, threads: usize) -> bool {
        let (low, high) = (left.min(right), left.max(right));
        match self {
            _ if low == high => false,
            Self::Pairs => low / 2 == high / 2,
            Self::Ring => high - low == 1 || (high - low == threads - 1),
            Self::All => true,
            Self::Nobody => false,
        }
    }

    /// Who uses what: each thread pages of its own, and each pair that shares some of theirs.
    fn regions(self, threads: usize) -> Vec<Vec<usize>> {
        let mut regions: Vec<Vec<usize>> = (0..threads).map(|thread| vec![thread]).collect();
        for right in 0..threads {
            let partners = (0..right).filter(|&left| self.is_shared(left, right, threads));
            regions.extend(partners.map(|left| vec![left, right]));
        }
        regions
    }

    /// The bytes of memory that it needs, where `pages` is how many each pair shares.
    pub fn bytes(self, threads: usize, pages: usize) -> usize {
        self.regions(threads).len() * pages * PAGE
    }

    /// Runs the threads for a time in memory of as many [`bytes`](Self::bytes), from a page's start on; each touches
    /// the pages it shares and as many of its own. `pages` is how many each pair shares; the first thread counts its
    /// steps in `progress`.
    ///
    /// # Panics
    /// Without threads, or with less memory.
    pub fn run(
        self,
        threads: usize,
        pages: usize,
        memory: &[AtomicU64],
        time: Duration,
        progress: &Progress,
    ) {
        assert!(threads > 0, "a pattern has at least one thread");
        let regions = self.regions(threads);
        assert!(
            memory.len() >= regions.len() * pages * WORDS,
            "memory for all regions"
        );
        let is_over = AtomicBool::new(false);
        let work = |thread: usize| {
            let mine = regions
                .iter()
                .enumerate()
                .filter(|(_, users)| users.contains(&thread));
            let starts: Vec<usize> = mine.map(|(region, _)| region * pages * WORDS).collect();
            let mut sweeps = 0;
            while !is_over.load(Ordering::Relaxed) {
                for start in &starts {
                    for page in 0..pages {
                        memory[start + page * WORDS + thread * LINE % WORDS].fetch_add(1, Ordering::Relaxed);
                    }
                }
                sweeps += 1;
                if thread == 0 && sweeps % SWEEPS_A_STEP == 0 {
                    progress.step();
                }
            }
        };
        std::thread::scope(|scope| {
            for thread in 1..threads {
                scope.spawn(move || work(thread));
            }
            scope.spawn(|| {
                let began = Instant::now();
                while began.elapsed() < time {
                    std::thread::sleep(Duration::from_millis(10));
                }
                is_over.store(true, Ordering::Relaxed);
            });
            work(0);
        });
    }
}
