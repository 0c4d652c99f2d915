//! What a watch tells: how it sees, who is watched, what is known.

use serde::{Deserialize, Serialize};
use sidestep_gang::{CoscheduledSets, DependencyTree, Pairing, Selection, SharingMatrix, TaskId};

use super::Watcher;
use crate::process::ThreadName;

/// How sharing is seen on this host, with what that costs and what it misses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Way {
    /// Where faults come from.
    pub faults: String,
    /// Who decides how often.
    pub rate: String,
    /// What is not seen.
    pub misses: Vec<String>,
    /// Where it is from how much is shared.
    #[serde(default)]
    pub amounts: String,
}

/// A watched thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedThread {
    /// Its number in the matrix.
    pub task: TaskId,
    /// Which thread it is.
    #[serde(flatten)]
    pub name: ThreadName,
    /// The name of its process.
    pub program: String,
    /// Its place among the threads of its process, from zero, in the order in which they were first seen.
    pub place: usize,
    /// Whether it is still there.
    pub is_alive: bool,
}

/// What is known at a moment.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    /// Seconds since watching began.
    pub seconds: f64,
    /// The threads.
    pub threads: Vec<WatchedThread>,
    /// Communication events of each pair.
    pub matrix: SharingMatrix,
    /// How much each pair shares, as estimated: the touches of the one that touches each page less. In millionths of
    /// what a thread touches, or in first touches where nothing was sampled.
    pub amounts: SharingMatrix,
    /// Interruptions of watched threads that `amounts` is from; zero where it is from first touches.
    pub samples: u64,
    /// Who should run together.
    pub sets: CoscheduledSets,
    /// Faults of watched threads so far.
    pub faults: u64,
    /// What watching has cost so far by its own account, in thousandths of the time that the watched threads ran.
    pub cost_permille: f64,
    /// Faults that the kernel could not report, or that found the table of regions full.
    pub lost: u64,
    /// What has to happen before anything can be known; `None` once something is.
    pub waits_for: Option<String>,
}

impl Watcher {
    /// What is known now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            seconds: self.began.elapsed().as_secs_f64(),
            threads: self.threads.clone(),
            matrix: self.matrix.clone(),
            amounts: match self.samples {
                Some(_) => self.touched.matrix(self.threads.len()),
                None => self.amounts.matrix(self.threads.len()),
            },
            samples: self.interruptions,
            sets: self.sets(),
            faults: self.faults_seen,
            cost_permille: self.attention.cost_permille(),
            lost: self.lost + self.detector.lost(),
            waits_for: self.waits_for(),
        }
    }

    /// What has to happen before anything can be known.
    fn waits_for(&self) -> Option<String> {
        if self.matrix.total() > 0 {
            return None;
        }
        let faults = self.faults_seen;
        Some(match (self.source.has_rounds(), faults) {
            (true, 0) => {
                "the kernel to take pages away, after some seconds of a program with several threads"
                    .to_owned()
            }
            (true, _) => format!(
                "another thread to touch a page first when the kernel has taken it away again ({faults} faults so far)"
            ),
            (false, 0) => "a fault of a watched thread".to_owned(),
            (false, _) => format!("two threads to touch a page ({faults} faults so far)"),
        })
    }

    /// The tree of the matrix, as it is shown.
    pub fn tree(&self) -> DependencyTree {
        let pairing = match self.settings.selection {
            Selection::Factor(_) => Pairing::Rounds,
            Selection::Modularity => Pairing::Single,
        };
        DependencyTree::build(&self.matrix, pairing)
    }

    /// Whether any watched thread is left.
    pub fn is_anyone_left(&self) -> bool {
        self.threads.iter().any(|thread| thread.is_alive)
    }

    fn sets(&self) -> CoscheduledSets {
        CoscheduledSets::find(&self.matrix, self.settings.selection)
    }
}
