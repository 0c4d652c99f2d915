//! IS: ten rankings of random integers by counting; some ranks of each, and at last the order of all, are checked.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::random::Stream;
use super::team::{run_team, share};
use super::{Barrier, Class, Progress, Verification};

const SEED: u64 = 314_159_265;
const ITERATIONS: usize = 10;
const PROBES: usize = 5;

struct Problem {
    keys: usize,
    key_max: usize,
    probe: [usize; PROBES],
    rank: [i64; PROBES],
}

fn problem(class: Class) -> Problem {
    match class {
        Class::S => Problem {
            keys: 1 << 16,
            key_max: 1 << 11,
            probe: [48_427, 17_148, 23_627, 62_548, 4_431],
            rank: [0, 18, 346, 64_917, 65_463],
        },
        Class::W => Problem {
            keys: 1 << 20,
            key_max: 1 << 16,
            probe: [357_773, 934_767, 875_723, 898_999, 404_505],
            rank: [1_249, 11_698, 1_039_987, 1_043_896, 1_048_018],
        },
    }
}

/// The rank a probed key must have in an iteration, as specified.
fn expected_rank(class: Class, probe: usize, rank: i64, iteration: i64) -> i64 {
    match class {
        Class::S if probe <= 2 => rank + iteration,
        Class::W if probe < 2 => rank + iteration - 2,
        Class::S | Class::W => rank - iteration,
    }
}

/// Runs IS; the value is the number of checks that held.
pub fn run(class: Class, threads: usize, progress: &Progress) -> Verification {
    let problem = problem(class);
    let mut numbers = Stream::new(SEED);
    let quarter = problem.key_max as f64 / 4.0;
    let keys: Vec<AtomicU32> = (0..problem.keys)
        .map(|_| {
            let sum: f64 = (0..4).map(|_| numbers.next()).sum();
            AtomicU32::new((quarter * sum) as u32)
        })
        .collect();
    let counts: Vec<Vec<AtomicU32>> = (0..threads)
        .map(|_| (0..problem.key_max).map(|_| AtomicU32::new(0)).collect())
        .collect();
    // How many keys are at most each value.
    let ranks: Vec<AtomicU64> = (0..problem.key_max).map(|_| AtomicU64::new(0)).collect();
    let barrier = Barrier::new(threads);
    let right = AtomicU64::new(0);
    run_team(threads, |thread| {
        for iteration in 1..=ITERATIONS {
            if thread == 0 {
                keys[iteration].store(iteration as u32, Ordering::Relaxed);
                keys[iteration + ITERATIONS].store((problem.key_max - iteration) as u32, Ordering::Relaxed);
            }
            barrier.wait();
            count(&keys[share(problem.keys, thread, threads)], &counts[thread]);
            barrier.wait();
            for value in share(problem.key_max, thread, threads) {
                let sum: u64 = counts
                    .iter()
                    .map(|own| u64::from(own[value].load(Ordering::Relaxed)))
                    .sum();
                ranks[value].store(sum, Ordering::Relaxed);
            }
            barrier.wait();
            if thread == 0 {
                let mut below = 0;
                for rank in &ranks {
                    below += rank.load(Ordering::Relaxed);
                    rank.store(below, Ordering::Relaxed);
                }
                let held = (0..PROBES).filter(|&probe| {
                    let key = keys[problem.probe[probe]].load(Ordering::Relaxed) as usize;
                    let rank = key
                        .checked_sub(1)
                        .map_or(0, |value| ranks[value].load(Ordering::Relaxed))
                        as i64;
                    rank == expected_rank(class, probe, problem.rank[probe], iteration as i64)
                });
                right.fetch_add(held.count() as u64, Ordering::Relaxed);
                progress.step();
            }
            barrier.wait();
        }
    });
    let checks = (ITERATIONS * PROBES) as u64 + 1;
    let right = right.into_inner() + u64::from(is_sorted_by(&keys, &ranks));
    Verification {
        is_right: right == checks,
        value: right as f64,
        expected: checks as f64,
    }
}

fn count(keys: &[AtomicU32], counts: &[AtomicU32]) {
    for count in counts {
        count.store(0, Ordering::Relaxed);
    }
    for key in keys {
        let count = &counts[key.load(Ordering::Relaxed) as usize];
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// Whether putting every key at its rank sorts them.
fn is_sorted_by(keys: &[AtomicU32], ranks: &[AtomicU64]) -> bool {
    let mut next: Vec<u64> = ranks.iter().map(|rank| rank.load(Ordering::Relaxed)).collect();
    let mut sorted = vec![u32::MAX; keys.len()];
    for key in keys {
        let key = key.load(Ordering::Relaxed);
        let place = &mut next[key as usize];
        let Some(before) = place.checked_sub(1) else {
            return false;
        };
        *place = before;
        sorted[before as usize] = key;
    }
    sorted.is_sorted() && !sorted.contains(&u32::MAX)
}
