//! Enforces who runs together on a stock kernel, in user space.
//!
//! Time is cut into slots. At each slot's beginning the controller looks at the programs' threads, asks a policy, and
//! makes the kernel's scheduler follow it: a thread that has a core is pinned to it in its own class; a thread that
//! waits is put in the idle class, which gets a core only where nothing else wants one. Nobody is ever stopped.
//!
//! - Threads inherit the cores of who starts them: one that is born within a slot would share its parent's core until
//!   the next, and spin at barriers beside an empty one. So while a program begins threads, those that have a core are
//!   put there but may also use the program's other cores, and such that nobody has.
//! - *Work-conserving* policies let waiting threads use any core, so an idle slot goes to others by itself. *Strict*
//!   ones (full coscheduling as the paper has it, relaxed) keep waiting threads on the cores of those that run.
//! - No workload is given a real-time class, so real-time throttling never hits one. The controller itself takes the
//!   lowest real-time priority, so that its slots end on time; it sleeps nearly always, and the kernel ends it
//!   (`RLIMIT_RTTIME`) should it ever compute for a second without sleeping.
//! - A slot is at least [`SLOT_FACTOR`] times as long as changing slots takes, as measured in the same run.
//! - Everything is noted in the [journal](crate::journal) before it is done and undone at the end.
//!
//! Limits: where the kernel groups threads by session (autogroups) ranks count within a group only, so the grouping is
//! switched off for commands that are started; control groups with processor shares of their own act the same, and
//! are left as they are. The idle class still gets about three parts in a thousand of a busy core. A thread in the idle
//! class may hold a lock in the kernel that another waits for; it runs again in its slot at the latest.

pub mod host;
mod program;
mod report;

pub use program::Target;
pub use report::{Gain, ProgramReport, Report};

use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use sidestep_gang::policy::{Assignment, Coscheduled, Grant, IdleCores, Moment, Policy, Relaxed, TaskView};
use sidestep_gang::topology::Placement;
use sidestep_gang::{CoreId, CoscheduledSets, ProgramId, Selection, SharingMatrix, TaskId};

use crate::HostError;
use crate::changed::Changed;
use crate::journal::{Change, Journal, Restored};
use crate::recording::Recording;
use crate::scheduling::{IDLE, Scheduling};
use crate::setting;
use crate::watch::{WatchSettings, Watcher};
use host::Host;
use program::{Families, Program, Thread};
use report::Accounts;

/// A slot is at least so many times as long as changing slots takes: at most a hundredth is lost.
pub const SLOT_FACTOR: u32 = 100;

/// Where partial coscheduling takes its sets from.
#[derive(Clone, Debug, PartialEq)]
pub enum SetSource {
    /// A recording; its threads are found by the names of their processes and their places in them.
    Recorded(Box<Recording>),
    /// Every thread alone.
    Singles,
    /// Every program whole; unlike full coscheduling, idle cores are used.
    Programs,
    /// Found while the programs run.
    Automatic(Selection),
}

/// How programs are scheduled.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// As the kernel does.
    Free,
    /// All threads of a program at once.
    Full,
    /// Sets of threads at once.
    Partial(SetSource),
    /// Threads of a program at most so far apart.
    Relaxed {
        /// The most a thread may be ahead of its siblings.
        skew_max: Duration,
    },
}

/// How to run.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// How programs are scheduled.
    pub kind: Kind,
    /// Another way, used in every second epoch to compare with: [`Kind::Free`] or [`Kind::Full`].
    pub baseline: Option<Kind>,
    /// How long an epoch is.
    pub epoch: Duration,
    /// How long a slot is at least.
    pub slot: Duration,
    /// How often automatic sets are found anew.
    pub reevaluation: Duration,
    /// When to stop though programs still run; they then go on without control.
    pub limit: Option<Duration>,
    /// Whether started commands are asked to end at the limit.
    pub ends_at_limit: bool,
    /// Whether processes of other users may be scheduled.
    pub other_users: bool,
}

/// Runs programs under a policy until they end, the limit is reached or `stop` says so, and puts everything back.
///
/// # Errors
/// When a program cannot be taken or controlled; everything is put back then too.
pub fn run(
    folder: &Path,
    targets: &[Target],
    settings: &RunSettings,
    stop: &dyn Fn() -> bool,
) -> Result<(Report, Restored), HostError> {
    let (journal, _) = Journal::open(folder)?;
    let mut controller = Controller::new(journal, settings)?;
    let outcome = controller.start(targets).and_then(|()| controller.run(stop));
    let report = controller.report();
    let restored = controller.finish(stop() || settings.ends_at_limit || outcome.is_err())?;
    outcome?;
    Ok((report, restored))
}

struct Controller<'a> {
    settings: &'a RunSettings,
    journal: Journal,
    host: Host,
    programs: Vec<Program>,
    families: Families,
    threads: Vec<Thread>,
    watcher: Option<Watcher>,
    sets: CoscheduledSets,
    reevaluated: Instant,
    began: Instant,
    accounts: Accounts,
    slot: Duration,
    on_time: Option<OnTime>,
    changed: Vec<Changed>,
}

impl<'a> Controller<'a> {
    fn new(journal: Journal, settings: &'a RunSettings) -> Result<Self, HostError> {
        Ok(Self {
            settings,
            journal,
            host: Host::of_this_process()?,
            programs: Vec::new(),
            families: Families::default(),
            threads: Vec::new(),
            watcher: None,
            sets: CoscheduledSets::default(),
            reevaluated: Instant::now(),
            began: Instant::now(),
            accounts: Accounts::new(),
            slot: settings.slot,
            on_time: None,
            changed: Vec::new(),
        })
    }

    fn start(&mut self, targets: &[Target]) -> Result<(), HostError> {
        // Check all before any is started.
        for target in targets {
            if let Target::Process(process) = target {
                crate::process::check(*process, self.settings.other_users)?;
            }
        }
        self.leave_autogroups(targets)?;
        for target in targets {
            let program = Program::take(target, self.settings.other_users, &mut self.journal)?;
            self.programs.push(program);
        }
        if let Kind::Partial(SetSource::Automatic(selection)) = self.settings.kind {
            let roots: Vec<i32> = self.programs.iter().map(|program| program.root).collect();
            let settings = WatchSettings {
                selection,
                // Sets need no amounts.
                sample_period: None,
                ..WatchSettings::default()
            };
            self.watcher = Some(Watcher::start(&mut self.journal, &roots, settings)?);
        }
        match OnTime::take() {
            Ok(on_time) => self.on_time = Some(on_time),
            Err(error) => {
                let _ = writeln!(
                    io::stderr(),
                    "sidestep: slots may end late, the controller has no real-time priority: {error}"
                );
            }
        }
        Ok(())
    }

    /// Where the kernel groups threads by session, ranks count within a session only. Commands started from now on
    /// are in no such group; running processes stay in theirs, which is said.
    fn leave_autogroups(&mut self, targets: &[Target]) -> Result<(), HostError> {
        let setting = Path::new(setting::AUTOGROUP);
        let is_left_alone = self.settings.kind == Kind::Free
            && self
                .settings
                .baseline
                .as_ref()
                .is_none_or(|kind| *kind == Kind::Free);
        if is_left_alone || setting::read(setting).ok().as_deref() != Some("1") {
            return Ok(());
        }
        self.changed.extend(Changed::to(&mut self.journal, setting, "0")?);
        let running = targets.iter().filter_map(|target| match target {
            Target::Process(process) => Some(process.to_string()),
            Target::Command(_) => None,
        });
        let running: Vec<String> = running.collect();
        if !running.is_empty() {
            let _ = writeln!(
                io::stderr(),
                "sidestep: processes {} were started under the kernel's autogroups: between processes of different \
                 sessions their ranks do not count. Start them with `gang run -- COMMAND`, or boot with noautogroup",
                running.join(", ")
            );
        }
        Ok(())
    }

    fn run(&mut self, stop: &dyn Fn() -> bool) -> Result<(), HostError> {
        self.began = Instant::now();
        self.reevaluated = self.began;
        self.accounts.begin(&self.host, &self.programs, &self.threads);
        let mut epoch = 0;
        while !stop() {
            let elapsed = self.began.elapsed();
            if self.settings.limit.is_some_and(|limit| elapsed >= limit) || self.all_ended() {
                break;
            }
            let current = (elapsed.as_nanos() / self.settings.epoch.as_nanos().max(1)) as u64;
            if current != epoch {
                self.accounts
                    .end_epoch(self.is_baseline(epoch), &self.host, &self.programs, &self.threads);
                epoch = current;
            }
            self.slot(epoch)?;
        }
        Ok(())
    }

    fn all_ended(&mut self) -> bool {
        // Each is asked, so that each that ended is collected.
        let mut all = true;
        for program in &mut self.programs {
            all &= program.has_ended();
        }
        all
    }

    fn is_baseline(&self, epoch: u64) -> bool {
        self.settings.baseline.is_some() && epoch % 2 == 1
    }

    /// One slot: look, decide, enforce, wait.
    fn slot(&mut self, epoch: u64) -> Result<(), HostError> {
        let began = Instant::now();
        let found = self.families.refresh(&self.programs, &mut self.threads)?;
        for thread in found.passed_over {
            self.accounts.pass_over(thread);
        }
        self.keep_blocked_with_their_siblings();
        self.find_sets(found.added > 0);
        let kind = match &self.settings.baseline {
            Some(baseline) if self.is_baseline(epoch) => baseline.clone(),
            _ => self.settings.kind.clone(),
        };
        let now_ns = self.began.elapsed().as_nanos() as u64;
        let (assignment, is_work_conserving) = self.decide(&kind, now_ns);
        let changes = self.enforce(assignment.as_ref(), is_work_conserving)?;
        let took = began.elapsed();
        self.accounts.switch(changes, took);
        self.slot = self.settings.slot.max(self.accounts.mean_switch() * SLOT_FACTOR);

        let until = assignment
            .as_ref()
            .map_or(now_ns + self.slot.as_nanos() as u64, |assignment| {
                assignment.until_ns
            });
        let wait = Duration::from_nanos(until.saturating_sub(self.began.elapsed().as_nanos() as u64));
        std::thread::sleep(wait);
        if let Some(assignment) = assignment {
            let ended_ns = self.began.elapsed().as_nanos() as u64;
            for grant in assignment.grants {
                if let Grant::Run(task) | Grant::Reserved(task) = grant {
                    self.threads[task.index()].served_ns = ended_ns;
                }
            }
        }
        Ok(())
    }

    /// What the policy says; none when the kernel decides. And whether waiting threads may use any core.
    fn decide(&self, kind: &Kind, now_ns: u64) -> (Option<Assignment>, bool) {
        let slot_ns = self.slot.as_nanos() as u64;
        let placement = Placement::Nearest;
        let coscheduled = |sets, idle| Coscheduled {
            sets,
            slot_ns,
            idle,
            placement,
        };
        let (policy, is_work_conserving): (Box<dyn Policy>, bool) = match kind {
            Kind::Free => return (None, true),
            Kind::Full => (
                Box::new(coscheduled(self.sets_of_programs(), IdleCores::Kept)),
                false,
            ),
            Kind::Partial(_) => (
                Box::new(coscheduled(self.sets_of_the_living(), IdleCores::Filled)),
                true,
            ),
            Kind::Relaxed { skew_max } => {
                let skew_max_ns = (skew_max.as_nanos() as u64).max(1);
                (
                    Box::new(Relaxed {
                        slot_ns,
                        skew_max_ns,
                        placement,
                    }),
                    false,
                )
            }
        };
        let views: Vec<TaskView> = self.threads.iter().map(view).collect();
        let moment = Moment {
            now_ns,
            tasks: &views,
            topology: &self.host.topology,
        };
        (Some(policy.assign(&moment)), is_work_conserving)
    }

    /// The present sets without threads that ended: no core is kept for them.
    fn sets_of_the_living(&self) -> CoscheduledSets {
        let is_alive = |task: &TaskId| {
            self.threads
                .get(task.index())
                .is_some_and(|thread| thread.is_alive)
        };
        let sets = self
            .sets
            .sets()
            .iter()
            .map(|set| set.iter().copied().filter(is_alive).collect());
        CoscheduledSets::new(sets.filter(|set: &Vec<TaskId>| !set.is_empty()).collect())
            .expect("parts of a partition")
    }

    fn sets_of_programs(&self) -> CoscheduledSets {
        let tasks_of = |program| {
            let threads = self.threads.iter().enumerate();
            threads.filter(move |(_, thread)| thread.is_alive && thread.program == program)
        };
        let sets = (0..self.programs.len())
            .map(|program| tasks_of(program).map(|(task, _)| TaskId::new(task)).collect());
        let sets = sets.filter(|set: &Vec<TaskId>| !set.is_empty()).collect();
        CoscheduledSets::new(sets).expect("a thread belongs to one program")
    }

    /// Blocked threads keep up with the slowest of their runnable siblings, so that they hold nobody back later.
    fn keep_blocked_with_their_siblings(&mut self) {
        for program in 0..self.programs.len() {
            let own = |thread: &&mut Thread| thread.is_alive && thread.program == program;
            let runnable = self
                .threads
                .iter()
                .filter(|thread| thread.is_runnable && thread.program == program);
            let Some(slowest_ns) = runnable.map(|thread| thread.progress_ns).min() else {
                continue;
            };
            for thread in self
                .threads
                .iter_mut()
                .filter(own)
                .filter(|thread| !thread.is_runnable)
            {
                thread.progress_ns = thread.progress_ns.max(slowest_ns);
            }
        }
    }

    fn find_sets(&mut self, has_new_threads: bool) {
        let sets = match &self.settings.kind {
            Kind::Partial(SetSource::Recorded(recording)) => recorded_sets(recording, &self.threads),
            Kind::Partial(SetSource::Programs) => self.sets_of_programs(),
            Kind::Partial(SetSource::Singles) => CoscheduledSets::singles(self.threads.len()),
            Kind::Partial(SetSource::Automatic(selection)) => {
                let selection = *selection;
                if let Some(watcher) = &mut self.watcher {
                    watcher.poll();
                }
                let is_due = self.reevaluated.elapsed() >= self.settings.reevaluation;
                if !is_due && !has_new_threads {
                    return;
                }
                self.reevaluated = if is_due { Instant::now() } else { self.reevaluated };
                self.automatic_sets(selection)
            }
            Kind::Free | Kind::Full | Kind::Relaxed { .. } => return,
        };
        if sets != self.sets {
            self.accounts.sets_changed(self.began.elapsed(), &sets);
            self.sets = sets;
        }
    }

    /// The sets of each program from what was seen of it; a program of which nothing was seen stays whole.
    fn automatic_sets(&self, selection: Selection) -> CoscheduledSets {
        let Some(watcher) = &self.watcher else {
            return self.sets_of_programs();
        };
        let snapshot = watcher.snapshot();
        let mut sets = Vec::new();
        for program in 0..self.programs.len() {
            let tasks: Vec<usize> = (0..self.threads.len())
                .filter(|&task| self.threads[task].program == program)
                .collect();
            let seen = |task: usize| {
                let name = self.threads[task].name;
                let same = |watched: &&crate::watch::WatchedThread| watched.name.thread == name.thread;
                snapshot.threads.iter().find(same).map(|watched| watched.task)
            };
            let mut matrix = SharingMatrix::new(tasks.len());
            for right in 0..tasks.len() {
                for left in 0..right {
                    if let (Some(one), Some(other)) = (seen(tasks[left]), seen(tasks[right])) {
                        let events = snapshot.matrix.events(one, other);
                        matrix.record(TaskId::new(left), TaskId::new(right), events);
                    }
                }
            }
            let name = |task: &TaskId| TaskId::new(tasks[task.index()]);
            if matrix.total() == 0 {
                sets.push(tasks.iter().map(|&task| TaskId::new(task)).collect());
            } else {
                let found = CoscheduledSets::find(&matrix, selection);
                sets.extend(found.sets().iter().map(|set| set.iter().map(name).collect()));
            }
        }
        sets.retain(|set: &Vec<TaskId>| !set.is_empty());
        CoscheduledSets::new(sets).expect("a thread belongs to one program")
    }

    /// Makes the kernel follow an assignment (or follow itself); says how many threads were changed.
    fn enforce(
        &mut self,
        assignment: Option<&Assignment>,
        is_work_conserving: bool,
    ) -> Result<usize, HostError> {
        let mut core_of: Vec<Option<(CoreId, bool)>> = vec![None; self.threads.len()];
        let mut running: Vec<u32> = Vec::new();
        let mut owners: Vec<Option<usize>> = vec![None; self.host.cores.len()];
        for (core, grant) in assignment
            .iter()
            .flat_map(|assignment| &assignment.grants)
            .enumerate()
        {
            match *grant {
                Grant::Run(task) | Grant::Reserved(task) => {
                    core_of[task.index()] = Some((CoreId::new(core), true));
                    owners[core] = Some(self.threads[task.index()].program);
                    if matches!(grant, Grant::Run(_)) {
                        running.push(self.host.cores[core]);
                    }
                }
                Grant::Fill(task) => core_of[task.index()] = Some((CoreId::new(core), false)),
                Grant::Idle => {}
            }
        }
        let mut changes = 0;
        for (task, granted) in core_of.into_iter().enumerate() {
            let thread = &self.threads[task];
            if !thread.is_alive {
                continue;
            }
            let wanted = match (assignment, granted) {
                (None, _) => thread.before.clone(),
                (Some(_), Some((_, true))) if self.families.is_growing(thread.program) => {
                    let may_use = |&core: &usize| owners[core].is_none_or(|owner| owner == thread.program);
                    let cores = (0..owners.len()).filter(may_use);
                    let cores: Vec<u32> = cores.map(|core| self.host.cores[core]).collect();
                    pinned(&thread.before, thread.before.class, &cores)
                }
                (Some(_), Some((core, is_whole))) => {
                    let class = if is_whole { thread.before.class } else { IDLE };
                    pinned(&thread.before, class, &[self.host.cores[core.index()]])
                }
                (Some(_), None) if is_work_conserving => Scheduling {
                    class: IDLE,
                    ..thread.before.clone()
                },
                (Some(_), None) => pinned(&thread.before, IDLE, &running),
            };
            if let Some((core, _)) = granted {
                self.threads[task].core = Some(core);
            }
            if self.threads[task].now != wanted {
                let at = granted.map(|(core, _)| self.host.cores[core.index()]);
                self.change(task, wanted, at)?;
                changes += 1;
            }
        }
        Ok(changes)
    }

    /// Schedules a thread so; it begins at a core, if it may use that.
    fn change(&mut self, task: usize, wanted: Scheduling, at: Option<u32>) -> Result<(), HostError> {
        let thread = &mut self.threads[task];
        if !thread.is_noted {
            self.journal.note(&Change::Thread {
                name: thread.name,
                before: thread.before.clone(),
            })?;
            thread.is_noted = true;
        }
        let moved = match at.filter(|core| wanted.cores.len() > 1 && wanted.cores.contains(core)) {
            Some(core) => pinned(&wanted, wanted.class, &[core]).apply(thread.name.thread),
            None => Ok(()),
        };
        match moved.and_then(|()| wanted.apply(thread.name.thread)) {
            Ok(()) => thread.now = wanted,
            Err(_) if !thread.name.is_alive() => thread.is_alive = false,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn report(&mut self) -> Report {
        self.accounts.report(
            &self.host,
            &mut self.programs,
            &self.threads,
            self.began.elapsed(),
            self.slot,
        )
    }

    /// Puts everything back; waits for started commands a little if they were asked to end.
    fn finish(mut self, ask_to_end: bool) -> Result<Restored, HostError> {
        drop(self.watcher.take());
        drop(self.on_time.take());
        self.changed.clear();
        let restored = self.journal.close()?;
        if ask_to_end {
            for program in &mut self.programs {
                program.ask_to_end();
            }
            let asked = Instant::now();
            while asked.elapsed() < PATIENCE && !self.programs.iter_mut().all(Program::has_ended) {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        Ok(restored)
    }
}

/// How long started commands may take to end when they are asked to.
const PATIENCE: Duration = Duration::from_secs(2);

fn view(thread: &Thread) -> TaskView {
    TaskView {
        program: ProgramId::new(thread.program),
        runnable: thread.is_alive && thread.is_runnable,
        signalled: false,
        served_ns: thread.served_ns,
        granted_ns: None,
        progress_ns: thread.progress_ns,
        core: thread.core,
        home: thread.core.unwrap_or(CoreId(0)),
    }
}

/// A thread's scheduling on some cores; cores it was never allowed to use are not forced on it.
fn pinned(before: &Scheduling, class: u32, cores: &[u32]) -> Scheduling {
    let allowed: Vec<u32> = before
        .cores
        .iter()
        .copied()
        .filter(|core| cores.contains(core))
        .collect();
    let cores = if allowed.is_empty() {
        before.cores.clone()
    } else {
        allowed
    };
    Scheduling {
        class,
        cores,
        ..before.clone()
    }
}

/// A recording's sets for threads that run now: matched by the names of their processes and their places in them.
fn recorded_sets(recording: &Recording, threads: &[Thread]) -> CoscheduledSets {
    let mut is_taken = vec![false; threads.len()];
    let mut current: Vec<Option<TaskId>> = Vec::with_capacity(recording.threads.len());
    for recorded in &recording.threads {
        let matches = |(task, thread): &(usize, &Thread)| {
            !is_taken[*task] && thread.process_name == recorded.program && thread.place == recorded.place
        };
        let found = threads.iter().enumerate().find(matches).map(|(task, _)| task);
        if let Some(task) = found {
            is_taken[task] = true;
        }
        current.push(found.map(TaskId::new));
    }
    let mut sets: Vec<Vec<TaskId>> = Vec::new();
    for set in recording.sets.sets() {
        sets.push(set.iter().filter_map(|task| current[task.index()]).collect());
    }
    sets.extend(
        (0..threads.len())
            .filter(|&task| !is_taken[task])
            .map(|task| vec![TaskId::new(task)]),
    );
    sets.retain(|set| !set.is_empty());
    CoscheduledSets::new(sets).expect("each thread is matched once")
}

/// This thread's real-time priority, the lowest there is, until it is dropped. It is not inherited, and the kernel ends
/// the process should it ever compute for a second without sleeping.
struct OnTime {
    before: Scheduling,
}

impl OnTime {
    fn take() -> Result<Self, HostError> {
        let before = Scheduling::of(0)?;
        let mut limit = rustix::process::getrlimit(rustix::process::Resource::Rttime);
        limit.current = Some(1_000_000);
        rustix::process::setrlimit(rustix::process::Resource::Rttime, limit).map_err(|error| {
            HostError::Call {
                call: "setrlimit",
                subject: "the controller's time without sleep".into(),
                source: error.into(),
            }
        })?;
        let class = libc::SCHED_FIFO as u32;
        let first = Scheduling {
            class,
            flags: RESET_ON_FORK,
            nice: 0,
            priority: 1,
            ..before.clone()
        };
        first.apply_class(0)?;
        Ok(Self { before })
    }
}

impl Drop for OnTime {
    fn drop(&mut self) {
        if let Err(error) = self.before.apply_class(0) {
            let _ = writeln!(
                io::stderr(),
                "sidestep: the controller could not give back its real-time priority: {error}"
            );
        }
    }
}

/// Children of a thread with this flag start in the ordinary class.
const RESET_ON_FORK: u64 = libc::SCHED_FLAG_RESET_ON_FORK as u64;
