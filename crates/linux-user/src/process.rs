//! A guest process: what its threads share.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::engine::Engine;
use crate::memory::Memory;
use crate::signal::actions::Actions;
use crate::statistics::Statistics;

/// How a program is run; the same for every program it executes in turn.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The folder that is searched first for absolute paths.
    pub sysroot: Option<PathBuf>,
    /// Whether every system call is shown.
    pub strace: bool,
    /// Whether statistics are printed at the end.
    pub statistics: bool,
    /// After how many instructions, all threads together, the program is ended.
    pub instructions_max: Option<u64>,
    /// What runs the processors, where they do not run by themselves.
    pub engine: Option<Arc<dyn Engine>>,
    /// Where every retired instruction is written.
    pub trace: Option<PathBuf>,
    /// The command that runs a Linux/ia64 program with the same options: the emulator's own executable and its
    /// arguments, to which a program and its arguments are added.
    pub reenter: Vec<Vec<u8>>,
}

/// What is known about the program that runs.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its file, absolute.
    pub path: PathBuf,
    /// Where its argument strings are.
    pub arguments: Range<u64>,
    /// Its auxiliary vector.
    pub auxiliary: Vec<u8>,
}

/// A guest process.
pub struct Process {
    /// Its memory, which a `vfork` child shares.
    pub memory: Arc<Memory>,
    /// What it does with signals.
    pub actions: Mutex<Actions>,
    /// How it is run.
    pub options: Arc<Options>,
    /// What it runs.
    pub program: Program,
    /// Limits that are not the host's own (resource, soft and hard).
    pub limits: Mutex<BTreeMap<u32, [u64; 2]>>,
    /// Guest threads that have not ended.
    pub threads: AtomicUsize,
    /// What each of its threads did so far, if statistics are wanted.
    pub progress: Mutex<Vec<Arc<Mutex<Statistics>>>>,
    /// Instructions that may still be taken by threads, if there is a bound.
    pub budget: AtomicU64,
    /// When it started.
    pub started: Instant,
}

impl Process {
    /// A process about to run its first thread.
    pub fn new(memory: Arc<Memory>, actions: Actions, options: Arc<Options>, program: Program) -> Process {
        let budget = options.instructions_max.unwrap_or(u64::MAX);
        Process {
            memory,
            actions: Mutex::new(actions),
            options,
            program,
            limits: Mutex::default(),
            threads: AtomicUsize::new(1),
            progress: Mutex::default(),
            budget: AtomicU64::new(budget),
            started: Instant::now(),
        }
    }

    /// A process for a child that shares this one's memory until it executes a program or exits.
    pub fn borrowing_child(&self) -> Process {
        let actions = self.actions().clone();
        let limits = self
            .limits
            .lock()
            .expect("no thread panics while it sets limits")
            .clone();
        let mut options = Options::clone(&self.options);
        options.statistics = false;
        options.engine = None;
        Process {
            limits: Mutex::new(limits),
            budget: AtomicU64::new(self.budget.load(Ordering::Relaxed)),
            ..Process::new(
                self.memory.clone(),
                actions,
                Arc::new(options),
                self.program.clone(),
            )
        }
    }

    /// What it does with signals.
    pub fn actions(&self) -> std::sync::MutexGuard<'_, Actions> {
        self.actions
            .lock()
            .expect("no thread panics while it sets signal actions")
    }

    /// Takes up to `wanted` instructions from the budget.
    pub fn take_budget(&self, wanted: u64) -> u64 {
        if self.options.instructions_max.is_none() {
            return wanted;
        }
        let taken = |left: u64| Some(left.saturating_sub(wanted));
        let before = self
            .budget
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken)
            .unwrap_or(0);
        before.min(wanted)
    }

    /// A place for a thread to publish what it did, if statistics are wanted.
    pub fn new_progress(&self) -> Option<Arc<Mutex<Statistics>>> {
        self.options.statistics.then(|| {
            let progress = Arc::<Mutex<Statistics>>::default();
            self.all_progress().push(progress.clone());
            progress
        })
    }

    /// What all threads published, the ended ones, too.
    pub fn total_progress(&self) -> Statistics {
        let mut total = Statistics::default();
        for progress in self.all_progress().iter() {
            total += *progress.lock().expect("no thread panics while it publishes");
        }
        total
    }

    /// Forgets what threads did, as a forked child must.
    pub fn forget_progress(&self) {
        self.all_progress().clear();
    }

    fn all_progress(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Mutex<Statistics>>>> {
        self.progress.lock().expect("no thread panics while it counts")
    }

    /// Gives back what was not used.
    pub fn return_budget(&self, unused: u64) {
        if self.options.instructions_max.is_some() {
            self.budget.fetch_add(unused, Ordering::Relaxed);
        }
    }
}
