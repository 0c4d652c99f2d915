//! A guest process: what its threads share.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use crate::code_names::CodeNames;
use crate::control::Control;
use crate::engine::Engine;
use crate::files::Files;
use crate::host;
use crate::host::signals::Inbox;
use crate::memory::Memory;
use crate::signal::actions::Actions;
use crate::statistics::{Report, Statistics};
use crate::trace::TraceFile;

/// How a program is run; the same for every program it executes in turn.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The folder that is the program's root; without it the program sees the host's files.
    pub sysroot: Option<PathBuf>,
    /// Folders of the host that the program may use beside it, where the root folder has nothing of that name.
    pub allowed: Vec<PathBuf>,
    /// Whether every system call is shown.
    pub strace: bool,
    /// Whether statistics are printed at the end.
    pub statistics: bool,
    /// Whether what is told of the run goes to the standard error as it was at the start, where the program closes or
    /// replaces its own: for whoever wants a report.
    pub keeps_standard_error: bool,
    /// After how many instructions, all threads together, the program is ended.
    pub instructions_max: Option<u64>,
    /// What runs the processors, where they do not run by themselves.
    pub engine: Option<Arc<dyn Engine>>,
    /// Where every retired instruction is written.
    pub trace: Option<TraceFile>,
    /// The emulator that runs a Linux/ia64 program which this one executes; without it, this process's executable.
    pub emulator: Option<PathBuf>,
    /// The emulator's arguments that run a program with the same options, to which what is inherited, the program and
    /// its arguments are added.
    pub reenter: Vec<Vec<u8>>,
}

/// What is known about the program that runs.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its file, as `/proc/self/exe` shows it.
    pub path: PathBuf,
    /// Where its first segment of code is.
    pub text: Range<u64>,
    /// Where its first segment of data is.
    pub data: Range<u64>,
    /// Where its argument strings are.
    pub arguments: Range<u64>,
    /// Where the strings of its environment are.
    pub environment: Range<u64>,
    /// Where its stack begins.
    pub stack: u64,
    /// Its auxiliary vector.
    pub auxiliary: Vec<u8>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// The bound on instructions was reached.
    Limit,
    /// What runs its processors has halted it.
    Halted,
    /// The emulator could not do what it was asked for beside running the program, and said so.
    Failed,
}

/// The exit status when what runs the processors has halted the program.
pub const STATUS_HALTED: i32 = 123;
/// The exit status when the bound on instructions was reached: that of `timeout`.
pub const STATUS_LIMIT: i32 = 124;
/// The exit status when the emulator itself failed.
pub const STATUS_FAILED: i32 = 125;

impl Ending {
    /// Ends the calling process in the same way.
    pub fn leave(self) -> ! {
        match self {
            Ending::Exited(status) => host::exit_group(status),
            Ending::Killed(signal) => host::signals::die_by(signal),
            Ending::Limit => host::exit_group(STATUS_LIMIT),
            Ending::Halted => host::exit_group(STATUS_HALTED),
            Ending::Failed => host::exit_group(STATUS_FAILED),
        }
    }
}

/// What other threads of a process need of one.
pub struct Peer {
    /// Its number, as the host knows it.
    pub identifier: AtomicI32,
    /// The head of its list of robust mutexes; zero for none.
    pub robust_list: AtomicU64,
    /// Signals the host has handed over.
    pub inbox: Arc<Inbox>,
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
    /// What it knows about files.
    pub files: Arc<Files>,
    /// Limits that are not the host's own (resource, soft and hard).
    pub limits: Mutex<BTreeMap<u32, [u64; 2]>>,
    /// Guest threads that have not ended.
    peers: Mutex<Vec<Arc<Peer>>>,
    /// Told when one of them ends.
    left: Condvar,
    /// How it ends, once that is known.
    ending: OnceLock<Ending>,
    /// The host thread that waits for all others.
    keeper: AtomicI32,
    /// Whether a guest's `fork` made it: then the host process ends with it.
    is_forked: AtomicBool,
    /// What each of its threads did so far, if statistics are wanted.
    pub progress: Mutex<Vec<Arc<Mutex<Statistics>>>>,
    /// Instructions that may still be taken by threads, if there is a bound.
    pub budget: AtomicU64,
    /// When it started.
    pub started: Instant,
    /// What `personality` was told.
    pub persona: AtomicU32,
    /// What a debugger has of it, if it has one.
    control: Option<Arc<Control>>,
}

impl Process {
    /// A process about to run its first thread, which is the calling one.
    pub fn new(
        memory: Arc<Memory>,
        actions: Actions,
        options: Arc<Options>,
        program: Program,
        files: Arc<Files>,
    ) -> Process {
        let budget = options.instructions_max.unwrap_or(u64::MAX);
        Process {
            control: None,
            memory,
            actions: Mutex::new(actions),
            options,
            program,
            files,
            limits: Mutex::default(),
            peers: Mutex::default(),
            left: Condvar::new(),
            ending: OnceLock::new(),
            keeper: AtomicI32::new(host::thread_id()),
            is_forked: AtomicBool::new(false),
            progress: Mutex::default(),
            budget: AtomicU64::new(budget),
            started: Instant::now(),
            persona: AtomicU32::new(0),
        }
    }

    /// The same under a debugger's control.
    pub fn controlled(self, control: Arc<Control>) -> Process {
        Process {
            control: Some(control),
            ..self
        }
    }

    /// A process for a child that shares this one's memory until it executes a program or exits.
    pub fn borrowing_child(&self) -> Process {
        let actions = self.actions().clone();
        let limits = self.limits().clone();
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
                Arc::new(self.files.duplicate()),
            )
        }
    }

    /// Ends the host threads that are none of the guest's.
    pub fn be_alone(&self) {
        if let Some(engine) = &self.options.engine {
            engine.rest();
        }
    }

    /// The limits that are not the host's own.
    pub fn limits(&self) -> MutexGuard<'_, BTreeMap<u32, [u64; 2]>> {
        self.limits.lock().expect("no thread panics while it sets limits")
    }

    /// The threads that have not ended.
    pub fn peers(&self) -> MutexGuard<'_, Vec<Arc<Peer>>> {
        self.peers
            .lock()
            .expect("no thread panics while it lists threads")
    }

    /// How many threads have not ended.
    pub fn threads(&self) -> usize {
        self.peers().len()
    }

    /// Adds the calling thread.
    pub fn join(&self, inbox: Arc<Inbox>) -> Arc<Peer> {
        let peer = Arc::new(Peer {
            identifier: AtomicI32::new(host::thread_id()),
            robust_list: AtomicU64::new(0),
            inbox,
        });
        self.peers().push(peer.clone());
        peer
    }

    /// What a debugger has of it; a child that a guest's `fork` made is not debugged.
    pub fn control(&self) -> Option<&Arc<Control>> {
        let control = self.control.as_ref();
        control.filter(|_| !self.is_forked.load(Ordering::Relaxed))
    }

    /// How the process ends, once that is known.
    pub fn ending(&self) -> Option<Ending> {
        self.ending.get().copied()
    }

    /// Decides how the process ends, unless that is decided, and calls all other threads back from wherever they are.
    pub fn end(&self, ending: Ending) {
        if self.ending.set(ending).is_err() {
            return;
        }
        let own = host::thread_id();
        for peer in self.peers().iter() {
            let identifier = peer.identifier.load(Ordering::Relaxed);
            if identifier != own {
                peer.inbox.interrupt();
                host::signals::call_back(identifier);
            }
        }
        if let Some(control) = self.control() {
            control.process_ends();
        }
    }

    /// Removes a thread that ended with a status; the last one's is the process's.
    pub fn part(&self, peer: &Arc<Peer>, status: i32) {
        let mut peers = self.peers();
        peers.retain(|other| !Arc::ptr_eq(other, peer));
        if peers.is_empty() {
            // All have ended by themselves, unless the ending was decided before.
            let _ = self.ending.set(Ending::Exited(status));
        }
        self.left.notify_all();
    }

    /// Whether the calling host thread is the one that waits for the others.
    pub fn is_kept_by_this_thread(&self) -> bool {
        self.keeper.load(Ordering::Relaxed) == host::thread_id()
    }

    /// Waits until all threads have ended; prints what is wanted of the run, and answers how it ended. A process that
    /// a guest's `fork` made ends here with its program.
    pub fn conclude(&self) -> Ending {
        let mut peers = self.peers();
        while !peers.is_empty() {
            peers = self
                .left
                .wait(peers)
                .expect("no thread panics while it lists threads");
        }
        drop(peers);
        let ending = self.ending().expect("the last thread has decided it");
        let ending = if self.report() { ending } else { Ending::Failed };
        if ending == Ending::Limit {
            host::print_error(
                "sidestep: the program was ended: it reached the bound of --max-instructions\n",
            );
        }
        if let Some(control) = self.control() {
            control.process_ended();
        }
        if self.is_forked.load(Ordering::Relaxed) {
            ending.leave()
        }
        ending
    }

    /// Prints what is wanted of the run; answers whether that could be done.
    pub fn report(&self) -> bool {
        let engine = self.options.engine.as_ref();
        let told = engine.map(|engine| {
            let names = CodeNames::of(&self.memory);
            self.memory.world.stopped(|| engine.report(&names))
        });
        if let Some(Ok(text) | Err(text)) = &told {
            host::print_error(text);
        }
        if self.options.statistics {
            // While the world is stopped, every thread has published what it did.
            let total = self.memory.world.stopped(|| self.total_progress());
            let report = Report {
                program: &self.program.path,
                total,
                elapsed: self.started.elapsed(),
                pages: self.memory.page_counts(),
            };
            host::print_error(&report.to_string());
        }
        !matches!(told, Some(Err(_)))
    }

    /// In a child that `fork` made: `peer`, the calling thread, is the only one.
    pub fn become_forked(&self, peer: &Arc<Peer>) {
        let own = host::thread_id();
        peer.identifier.store(own, Ordering::Relaxed);
        peer.robust_list.store(0, Ordering::Relaxed);
        self.peers().retain(|other| Arc::ptr_eq(other, peer));
        self.keeper.store(own, Ordering::Relaxed);
        if let Some(control) = self.control() {
            for descriptor in control.descriptors() {
                // SAFETY: the thread that uses them is not in this process.
                unsafe { libc::close(descriptor) };
            }
        }
        self.is_forked.store(true, Ordering::Relaxed);
        self.all_progress().clear();
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
