//! Who really shares memory with whom: an observer that sees every load and store of every vCPU, and how well what was
//! detected agrees with it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sidestep_gang::{CoscheduledSets, SharingMatrix, TaskId};
use sidestep_hypervisor::virtual_machine::{Core, CoreModel, MachineAddress};
use sidestep_ia64::encoding::{DecodedSlot, Instruction};
use sidestep_ia64::execution::{Dynamic, Observer};
use sidestep_ia64::{Exit, Processor};
use sidestep_lab::Number;

/// Pages by which accesses are counted, as large as the monitor's detector sees them.
const PAGE_LOG2: u32 = 14;

/// Accesses of one vCPU: how many to each page, by virtual addresses. The guests map all vCPUs alike.
type Accesses = BTreeMap<u64, u64>;

/// Counts the accesses of each vCPU, while an instruction takes a cycle.
#[derive(Debug, Default)]
pub struct EveryAccess {
    /// For each virtual machine and vCPU.
    counts: Arc<Mutex<BTreeMap<(usize, usize), Accesses>>>,
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl EveryAccess {
    /// The sharing of so many vCPUs of a virtual machine: for each pair, over all pages, the accesses of the one that
    /// touches the page less.
    pub fn matrix(&self, machine: usize, vcpus: usize) -> SharingMatrix {
        let counts = locked(&self.counts);
        let mut matrix = SharingMatrix::new(vcpus);
        let of = |vcpu: usize| counts.get(&(machine, vcpu));
        for left in 0..vcpus {
            for right in left + 1..vcpus {
                let (Some(ours), Some(theirs)) = (of(left), of(right)) else {
                    continue;
                };
                let shared = ours
                    .iter()
                    .filter_map(|(page, count)| Some(*count.min(theirs.get(page)?)));
                matrix.record(TaskId::new(left), TaskId::new(right), shared.sum());
            }
        }
        matrix
    }
}

impl CoreModel for EveryAccess {
    fn core(&self) -> Box<dyn Core> {
        Box::new(WatchedCore {
            counts: Arc::clone(&self.counts),
            own: Accesses::new(),
            holder: None,
            latest: (u64::MAX, 0),
        })
    }
}

/// A core on which every access is seen.
struct WatchedCore {
    counts: Arc<Mutex<BTreeMap<(usize, usize), Accesses>>>,
    /// What the vCPU that it has did since it has it.
    own: Accesses,
    holder: Option<(usize, usize)>,
    /// The page that was accessed last, and how often in a row.
    latest: (u64, u64),
}

impl WatchedCore {
    fn flush(&mut self) {
        let (page, count) = std::mem::replace(&mut self.latest, (u64::MAX, 0));
        if count > 0 {
            *self.own.entry(page).or_default() += count;
        }
    }

    /// Hands on what was counted.
    fn leave(&mut self) {
        self.flush();
        let own = std::mem::take(&mut self.own);
        if let Some(holder) = self.holder {
            let mut counts = locked(&self.counts);
            let of = counts.entry(holder).or_default();
            for (page, count) in own {
                *of.entry(page).or_default() += count;
            }
        }
    }
}

impl Drop for WatchedCore {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Core for WatchedCore {
    /// An instruction takes a cycle.
    fn run(&mut self, processor: &mut Processor, cycles: u64) -> (Exit, u64) {
        let before = processor.instructions_retired();
        let exit = processor.run_observed(cycles, self);
        (exit, processor.instructions_retired() - before)
    }

    fn enter(&mut self, owner: usize, processor: usize) {
        if self.holder != Some((owner, processor)) {
            self.leave();
            self.holder = Some((owner, processor));
        }
    }

    fn touch(&mut self, _: MachineAddress, _: u64, _: bool) {}
}

impl Observer for WatchedCore {
    /// Whether it reads or writes.
    type Static = bool;

    fn decode(&mut self, instruction: &Instruction, _: &DecodedSlot) -> bool {
        let access = instruction.operation.memory_access();
        access.is_some_and(|access| access.reads() || access.writes())
    }

    #[inline]
    fn retired(&mut self, refers: &bool, dynamic: &Dynamic<'_>) {
        if let Some(address) = dynamic.reference.filter(|_| *refers && dynamic.executed) {
            let page = address >> PAGE_LOG2;
            if self.latest.0 != page {
                self.flush();
                self.latest.0 = page;
            }
            self.latest.1 += 1;
        }
    }
}

/// The ranks of numbers, doubled; equal ones share theirs.
fn ranks(values: &[u64]) -> Vec<i64> {
    let rank = |value: &u64| {
        let below = values.iter().filter(|other| *other < value).count() as i64;
        let equal = values.iter().filter(|other| *other == value).count() as i64;
        2 * below + equal - 1
    };
    values.iter().map(rank).collect()
}

/// Spearman's rank correlation of all pairs of two matrices of the same tasks, in thousandths rounded towards zero;
/// `None` where one has no order at all.
pub fn rank_correlation(one: &SharingMatrix, other: &SharingMatrix) -> Option<Number> {
    let tasks = one.tasks().min(other.tasks());
    let pairs = |matrix: &SharingMatrix| {
        let pairs = (0..tasks).flat_map(|left| (left + 1..tasks).map(move |right| (left, right)));
        let events = pairs.map(|(left, right)| matrix.events(TaskId::new(left), TaskId::new(right)));
        ranks(&events.collect::<Vec<_>>())
    };
    let (one, other) = (pairs(one), pairs(other));
    // Twice a rank less its mean, which is one less than their number.
    let mean = one.len() as i64 - 1;
    let moment = |one: &[i64], other: &[i64]| -> i128 {
        let terms = one
            .iter()
            .zip(other)
            .map(|(one, other)| i128::from((one - mean) * (other - mean)));
        terms.sum()
    };
    let (covariance, spread) = (moment(&one, &other), moment(&one, &one) * moment(&other, &other));
    // The root in integers, of thousandths.
    let root = (spread * 1_000_000).isqrt();
    (root > 0).then(|| Number::ratio(covariance * 1_000_000 / root, 1000))
}

/// Of the pairs in the same found set the share that belongs together, and of those that belong together the share that
/// is found; `None` where there are no pairs of the kind.
pub fn precision_and_recall(
    found: &CoscheduledSets,
    right: &CoscheduledSets,
) -> (Option<Number>, Option<Number>) {
    let pairs = |sets: &CoscheduledSets| -> Vec<(TaskId, TaskId)> {
        let of_set = |set: &Vec<TaskId>| -> Vec<(TaskId, TaskId)> {
            let pairs = set
                .iter()
                .flat_map(|left| set.iter().map(move |right| (*left, *right)));
            pairs.filter(|(left, right)| left < right).collect()
        };
        sets.sets().iter().flat_map(of_set).collect()
    };
    let (found, right) = (pairs(found), pairs(right));
    let both = found.iter().filter(|pair| right.contains(pair)).count() as u64;
    let of = |all: usize| (all > 0).then(|| Number::ratio(both, all as u64));
    (of(found.len()), of(right.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(rows: &[[u64; 3]]) -> SharingMatrix {
        let rows: Vec<Vec<u64>> = rows.iter().map(|row| row.to_vec()).collect();
        SharingMatrix::from_rows(&rows).expect("a symmetric matrix")
    }

    #[test]
    fn correlation_is_of_ranks_and_not_of_values() {
        let one = matrix(&[[0, 1, 2], [1, 0, 3], [2, 3, 0]]);
        let grown = matrix(&[[0, 10, 20], [10, 0, 9000], [20, 9000, 0]]);
        let turned = matrix(&[[0, 3, 2], [3, 0, 1], [2, 1, 0]]);
        let same = matrix(&[[0, 1, 1], [1, 0, 1], [1, 1, 0]]);
        assert_eq!(rank_correlation(&one, &grown), Some(Number::ONE));
        assert_eq!(rank_correlation(&one, &turned), Some(Number::from(-1)));
        assert_eq!(rank_correlation(&one, &same), None);
    }

    #[test]
    fn precision_is_of_what_is_found_and_recall_of_what_is_right() {
        let sets = |sets: &[&[u32]]| {
            let sets = sets
                .iter()
                .map(|set| set.iter().map(|task| TaskId(*task)).collect());
            CoscheduledSets::new(sets.collect()).expect("a partition")
        };
        let right = sets(&[&[0, 1], &[2, 3]]);
        let answer = |found: &[&[u32]]| precision_and_recall(&sets(found), &right);
        assert_eq!(
            answer(&[&[0, 1], &[2, 3]]),
            (Some(Number::ONE), Some(Number::ONE))
        );
        assert_eq!(
            answer(&[&[0, 1, 2, 3]]),
            (Some(Number::ratio(1, 3)), Some(Number::ONE))
        );
        assert_eq!(answer(&[&[0], &[1], &[2], &[3]]), (None, Some(Number::ZERO)));
    }
}
