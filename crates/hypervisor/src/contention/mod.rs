//! What virtual processors lose to those beside them: shared caches, memory bandwidth, siblings on one core.
//!
//! The host's cores are hardware threads in a [`Hierarchy`]: threads share a core, cores share a socket's last-level
//! cache and its memory. Three effects, each charged to the virtual processor that suffers it:
//!
//! - **Siblings.** While two threads of a core execute, each is slower by a factor and has half of the core's cache.
//! - **Cache.** In a socket's shared cache each virtual machine has a slice. What one fills takes the place of others
//!   in proportion to what they have: that is replacement at random (as of the least recently used line, where all
//!   are used alike), and the slices follow at the start of each epoch, by whole ways.
//! - **Bandwidth.** If what the threads of a socket would take from memory is more than it delivers, each line takes
//!   longer by the same factor: the least with which the demand fits.
//!
//! All of this is decided at the start of an epoch, from what virtual processors did the last time that they ran, and
//! holds until the next. So a virtual machine depends in an epoch on itself alone, and it does not matter on how many
//! threads of this program virtual machines advance.
//!
//! Limits. Memory is on the own socket. Lines that another core has changed, and lines written back, cost nothing. Code
//! is not cached. Sidecores and the monitor's own work are not slowed down. A pausing sibling counts as one that works.

mod cache;
mod core;
mod table;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde::Serialize;
use sidestep_gang::{CoreId, Topology};

use self::cache::Cache;
use self::core::{ContendedCore, Pace, SharedThread, Slice, Thread, Traffic, locked};
use self::table::LINE_LOG2;
pub use self::table::{Hierarchy, HierarchyError, PRESETS, Shared};
use crate::costs::HostCosts;
use crate::virtual_machine::Core;

/// The most that a line from memory takes, in thousandths of what it takes alone: with so many threads in a stream at
/// once that no bandwidth is left, time still goes on.
const STRETCH_MAX: u64 = 1_000_000;

/// A hierarchy, and by how much its caches are smaller than the real ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contention {
    /// What cores share.
    pub hierarchy: Hierarchy,
    /// The caches have so many times fewer sets, a power of two: for guests whose problems are as much smaller.
    pub cache_divisor: u64,
}

/// Why cores cannot contend so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentionError {
    /// Another number of cores.
    #[error("the host has {cores} cores, and `{name}` {threads} hardware threads: as many are expected")]
    Cores {
        /// Of the host.
        cores: usize,
        /// The hierarchy.
        name: String,
        /// Its hardware threads.
        threads: usize,
    },
    /// Caches with nothing in them.
    #[error("the caches' divisor is {divisor}: a power of two from 1 to {most} is possible")]
    Divisor {
        /// The divisor.
        divisor: u64,
        /// The greatest.
        most: u64,
    },
    /// Cores are modelled otherwise.
    #[error("cores have a pipeline's model already: one model of their time is possible")]
    TwoModels,
}

/// What contention has cost on a core, and where its references were answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ContentionCounts {
    /// References that the shared cache answered.
    pub shared_hits: u64,
    /// Lines from memory.
    pub memory_lines: u64,
    /// Cycles that hits in the shared cache took.
    pub shared_cycles: u64,
    /// Cycles that lines from memory took, each alone.
    pub memory_cycles: u64,
    /// Cycles that these took longer because others wanted bandwidth.
    pub bandwidth_cycles: u64,
    /// Cycles that instructions took longer beside a sibling.
    pub sibling_cycles: u64,
    /// Turns of loops in which guests said that they wait.
    pub pauses: u64,
}

/// A virtual processor: its virtual machine and its number there.
type Holder = (usize, usize);

/// The cores of a host that contend.
pub(crate) struct Contended {
    hierarchy: Hierarchy,
    topology: Topology,
    /// What things take alone.
    alone: Pace,
    /// MB of memory a second and cycles a microsecond: a socket's bytes for each cycle as a fraction.
    bytes: (u64, u64),
    threads: Vec<SharedThread>,
    /// For each socket and virtual machine.
    slices: Vec<Vec<Arc<Mutex<Slice>>>>,
    /// Lines of the shared cache that each of these has.
    occupied: Vec<Vec<u64>>,
    /// What each virtual processor did in the last epoch in which it ran.
    demands: BTreeMap<Holder, Traffic>,
    /// Who had each core in the last epoch.
    holders: Vec<Option<Holder>>,
    counts: Vec<ContentionCounts>,
}

impl Contended {
    /// Cores as `contention` has them, for so many virtual machines.
    pub fn new(
        contention: &Contention,
        cores: usize,
        machines: usize,
        costs: &HostCosts,
    ) -> Result<Contended, ContentionError> {
        let Contention {
            hierarchy,
            cache_divisor: divisor,
        } = contention;
        let value = |entry| hierarchy.value(entry);
        let threads = hierarchy.hardware_threads();
        if threads != cores {
            let name = hierarchy.name.clone();
            return Err(ContentionError::Cores { cores, name, threads });
        }
        let sets = |kib, ways| (value(kib) << (10 - LINE_LOG2)) / value(ways);
        let (private, shared) = (
            sets(Shared::PrivateKib, Shared::PrivateWays),
            sets(Shared::SharedKib, Shared::SharedWays),
        );
        let most = private.min(shared);
        if !divisor.is_power_of_two() || *divisor > most {
            return Err(ContentionError::Divisor {
                divisor: *divisor,
                most,
            });
        }
        let millicycles = |picoseconds: u64| {
            let millicycles = u128::from(picoseconds) * u128::from(costs.clock_mhz) / 1000;
            u64::try_from(millicycles).unwrap_or(u64::MAX)
        };
        let isolated = millicycles(value(Shared::MemoryPs));
        let alone = Pace {
            instruction: costs.instruction_millicycles,
            shared: millicycles(value(Shared::SharedPs)),
            streamed: isolated / value(Shared::FillBuffers),
            isolated,
        };
        let sockets = value(Shared::Sockets) as usize;
        let slice = || {
            Arc::new(Mutex::new(Slice {
                cache: Cache::new(shared / divisor, value(Shared::SharedWays) as usize),
                filled: 0,
            }))
        };
        let slices: Vec<Vec<_>> = (0..sockets)
            .map(|_| (0..machines).map(|_| slice()).collect())
            .collect();
        let thread = |_| {
            let private = Cache::new(private / divisor, value(Shared::PrivateWays) as usize);
            Arc::new(Mutex::new(Thread::new(private, Arc::clone(&slices[0][0]))))
        };
        Ok(Contended {
            topology: hierarchy.topology(),
            alone,
            bytes: (value(Shared::SocketMbPerS), costs.clock_mhz),
            threads: (0..cores).map(thread).collect(),
            occupied: vec![vec![0; machines]; sockets],
            slices,
            demands: BTreeMap::new(),
            holders: vec![None; cores],
            counts: vec![ContentionCounts::default(); cores],
            hierarchy: hierarchy.clone(),
        })
    }

    /// What executes guests on each core.
    pub fn cores(&self) -> Vec<Box<dyn Core>> {
        let cores = self.threads.iter();
        cores
            .map(|thread| Box::new(ContendedCore::new(Arc::clone(thread))) as Box<dyn Core>)
            .collect()
    }

    /// The hierarchy.
    pub fn hierarchy(&self) -> &Hierarchy {
        &self.hierarchy
    }

    /// What each core has lost so far.
    pub fn counts(&self) -> Vec<ContentionCounts> {
        let threads = self.threads.iter().zip(&self.counts);
        threads
            .map(|(thread, counts)| {
                let thread = locked(thread);
                counted(*counts, thread.traffic, thread.pace, self.alone)
            })
            .collect()
    }

    /// Begins an epoch in which virtual processors have cores, of which those in `executing` execute.
    pub fn begin(&mut self, holders: Vec<Option<Holder>>, executing: &[bool]) {
        self.end_epoch();
        for (core, thread) in self.threads.iter().enumerate() {
            let mut thread = locked(thread);
            if let Some((machine, _)) = holders[core] {
                thread.slice = Arc::clone(&self.slices[self.socket(core)][machine]);
            }
            let siblings = self.topology.siblings(CoreId::new(core));
            let has_sibling = siblings.filter(|sibling| executing[sibling.index()]).count() > 0;
            let ways = thread.private.ways();
            thread.private.limit(if has_sibling { ways / 2 } else { ways });
            thread.pace = self.alone;
            if has_sibling {
                let share = self.hierarchy.value(Shared::ThreadPermille);
                thread.pace.instruction = thread.pace.instruction * 1000 / share;
            }
        }
        for socket in 0..self.slices.len() {
            let cores = (0..holders.len()).filter(|core| self.socket(*core) == socket);
            let cores: Vec<usize> = cores.filter(|core| executing[*core]).collect();
            let demands = cores.iter().filter_map(|core| {
                let demand = self.demands.get(&holders[*core]?)?;
                Some(Demand::of(*demand, locked(&self.threads[*core]).pace))
            });
            let stretch = stretch(&demands.collect::<Vec<_>>(), self.bytes);
            for core in cores {
                let pace = &mut locked(&self.threads[core]).pace;
                pace.streamed = pace.streamed.saturating_mul(stretch) / 1000;
                pace.isolated = pace.isolated.saturating_mul(stretch) / 1000;
            }
        }
        self.holders = holders;
    }

    /// Notes what virtual processors did, and has slices of shared caches follow.
    fn end_epoch(&mut self) {
        for (core, thread) in self.threads.iter().enumerate() {
            let mut thread = locked(thread);
            let pace = thread.pace;
            let traffic = std::mem::take(&mut thread.traffic);
            self.counts[core] = counted(self.counts[core], traffic, pace, self.alone);
            if let Some(holder) = self.holders[core].filter(|_| traffic.instructions > 0) {
                self.demands.insert(holder, traffic);
            }
        }
        for (slices, occupied) in self.slices.iter().zip(&mut self.occupied) {
            let mut slices: Vec<_> = slices.iter().map(|slice| locked(slice)).collect();
            let (capacity, ways) = (slices[0].cache.capacity(), slices[0].cache.ways() as u64);
            let filled: Vec<u64> = slices
                .iter_mut()
                .map(|slice| std::mem::take(&mut slice.filled))
                .collect();
            if filled.iter().all(|filled| *filled == 0) {
                continue;
            }
            fill(occupied, &filled, capacity);
            for (index, slice) in slices.iter_mut().enumerate() {
                // What the others have, by ways rounded down: what is free is for whoever fills it first.
                let others: u64 = occupied.iter().sum::<u64>() - occupied[index];
                slice
                    .cache
                    .limit((ways - others * ways / capacity).max(1) as usize);
            }
        }
    }

    fn socket(&self, core: usize) -> usize {
        self.topology.place(CoreId::new(core)).socket as usize
    }
}

/// Adds what was done at a pace to counts.
fn counted(counts: ContentionCounts, traffic: Traffic, pace: Pace, alone: Pace) -> ContentionCounts {
    let memory = |pace: Pace| (traffic.streamed * pace.streamed + traffic.isolated * pace.isolated) / 1000;
    ContentionCounts {
        shared_hits: counts.shared_hits + traffic.shared,
        memory_lines: counts.memory_lines + traffic.streamed + traffic.isolated,
        shared_cycles: counts.shared_cycles + traffic.shared * pace.shared / 1000,
        memory_cycles: counts.memory_cycles + memory(alone),
        bandwidth_cycles: counts.bandwidth_cycles + memory(pace).saturating_sub(memory(alone)),
        sibling_cycles: counts.sibling_cycles
            + traffic.instructions * (pace.instruction.saturating_sub(alone.instruction)) / 1000,
        pauses: counts.pauses + traffic.pauses,
    }
}

/// Lets virtual machines fill lines of a cache of `capacity` lines. First what is free is taken; then each line takes
/// the place of one of them in proportion to what they have.
fn fill(occupied: &mut [u64], filled: &[u64], capacity: u64) {
    let total: u64 = filled.iter().sum();
    let wanted: Vec<u64> = occupied
        .iter()
        .zip(filled)
        .map(|(has, filled)| has + filled)
        .collect();
    let sum: u64 = wanted.iter().sum();
    if sum <= capacity {
        occupied.copy_from_slice(&wanted);
        return;
    }
    if total >= capacity {
        // Whatever was there before has been replaced.
        for (has, filled) in occupied.iter_mut().zip(filled) {
            *has = (u128::from(capacity) * u128::from(*filled) / u128::from(total)) as u64;
        }
        return;
    }
    for (has, wanted) in occupied.iter_mut().zip(wanted) {
        *has = (u128::from(capacity) * u128::from(wanted) / u128::from(sum)) as u64;
    }
}

/// What a virtual processor wants of memory.
#[derive(Clone, Copy, Debug)]
struct Demand {
    bytes: u64,
    /// Thousandths of cycles that it spends beside waiting for memory, and waiting, if nobody else wants any.
    working: u64,
    waiting: u64,
}

impl Demand {
    fn of(traffic: Traffic, pace: Pace) -> Demand {
        Demand {
            bytes: (traffic.streamed + traffic.isolated) << LINE_LOG2,
            working: traffic.instructions * pace.instruction + traffic.shared * pace.shared,
            waiting: traffic.streamed * pace.streamed + traffic.isolated * pace.isolated,
        }
    }
}

/// By what factor, in thousandths, lines take longer so that demands fit into bytes for cycles.
fn stretch(demands: &[Demand], (bytes, cycles): (u64, u64)) -> u64 {
    let fits = |stretch: u64| {
        // Bytes in a thousand million cycles, so that little is lost by rounding.
        let wanted = demands.iter().map(|demand| {
            let millicycles =
                u128::from(demand.working) + u128::from(demand.waiting) * u128::from(stretch) / 1000;
            u128::from(demand.bytes) * 1_000_000_000_000 / millicycles.max(1)
        });
        wanted.sum::<u128>() * u128::from(cycles) <= u128::from(bytes) * 1_000_000_000
    };
    let (mut low, mut high) = (1000, STRETCH_MAX);
    while low < high {
        let middle = low.midpoint(high);
        match fits(middle) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_take_longer_only_where_memory_delivers_less_than_is_wanted() {
        // A line in 100 cycles, all of them waiting: 0.64 bytes a cycle.
        let stream = Demand {
            bytes: 64,
            working: 0,
            waiting: 100_000,
        };
        assert_eq!(stretch(&[stream], (64, 100)), 1000);
        assert_eq!(stretch(&[stream; 2], (64, 100)), 2000);
        assert_eq!(stretch(&[stream; 4], (64, 100)), 4000);
        // Half of the time is work: of two, waiting 100, each line may take 150.
        let half = Demand {
            working: 50_000,
            waiting: 50_000,
            ..stream
        };
        assert_eq!(stretch(&[half; 2], (64, 100)), 3000);
        assert_eq!(stretch(&[], (64, 100)), 1000);
        assert_eq!(stretch(&[stream], (0, 100)), STRETCH_MAX);
    }

    #[test]
    fn who_fills_takes_free_lines_first_and_then_what_others_have() {
        let after = |before: [u64; 2], filled: [u64; 2]| {
            let mut occupied = before;
            fill(&mut occupied, &filled, 100);
            occupied
        };
        assert_eq!(after([0, 0], [30, 20]), [30, 20]);
        assert_eq!(after([90, 0], [0, 10]), [90, 10]);
        assert_eq!(after([100, 0], [0, 25]), [80, 20]);
        assert_eq!(after([100, 0], [0, 100]), [0, 100]);
        assert_eq!(after([50, 50], [300, 100]), [75, 25]);
    }

    proptest! {
        #[test]
        fn a_cache_is_never_more_than_full(
            before in proptest::collection::vec(0_u64..50, 2..=2),
            filled in proptest::collection::vec(0_u64..1_000_000, 2..=2),
        ) {
            let mut occupied = before.clone();
            fill(&mut occupied, &filled, 100);
            prop_assert!(occupied.iter().sum::<u64>() <= 100);
        }
    }
}
