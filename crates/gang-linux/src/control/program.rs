//! The programs that are scheduled, and their threads as they come and go.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::HostError;
use crate::journal::{Change, ENVIRONMENT, Journal};
use crate::process::{self, Stat, ThreadName};
use crate::scheduling::Scheduling;
use crate::workload::{PROGRESS_VARIABLE, ProgressFile};

/// What is to be scheduled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A running process, with its descendants.
    Process(i32),
    /// A command that is started, with its descendants.
    Command(Vec<String>),
}

/// A program under control.
#[derive(Debug)]
pub struct Program {
    /// Its name in reports.
    pub name: String,
    /// The process it began with.
    pub root: i32,
    child: Option<Child>,
    /// Where it counts its steps, if it was started here.
    progress: Option<ProgressFile>,
}

/// A thread under control.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Which thread.
    pub name: ThreadName,
    /// Its program's number.
    pub program: usize,
    /// The name of its process.
    pub process_name: String,
    /// Its place among the threads of its process, from zero.
    pub place: usize,
    /// How it was scheduled before.
    pub before: Scheduling,
    /// How it is scheduled now.
    pub now: Scheduling,
    /// Whether the journal says how it was scheduled before.
    pub is_noted: bool,
    /// Whether it is still there.
    pub is_alive: bool,
    /// Whether it could run.
    pub is_runnable: bool,
    /// Time it ran and time it waited for a core, in all.
    pub run_and_wait_ns: (u64, u64),
    /// The same of threads of its program that ended and whose place in the list it has.
    pub before_it_ns: (u64, u64),
    /// When its last whole grant ended.
    pub served_ns: u64,
    /// How far it is, as policies count.
    pub progress_ns: u64,
    /// The core it was given last, by the policy's numbers.
    pub core: Option<sidestep_gang::CoreId>,
}

impl Program {
    /// Takes a target under control: checks a process, starts a command.
    ///
    /// # Errors
    /// When the process must be left alone or does not exist, or the command cannot be started.
    pub fn take(target: &Target, other_users: bool, journal: &mut Journal) -> Result<Self, HostError> {
        match target {
            Target::Process(root) => {
                process::check(*root, other_users)?;
                let name = Stat::of(*root, *root).map_or_else(|| root.to_string(), |stat| stat.name);
                Ok(Self {
                    name,
                    root: *root,
                    child: None,
                    progress: None,
                })
            }
            Target::Command(words) => {
                let progress = ProgressFile::new()?;
                let child = start(words, journal.path(), &progress.path())?;
                let root = child.id() as i32;
                journal.note(&Change::Started { process: root })?;
                let name = Path::new(&words[0])
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                Ok(Self {
                    name,
                    root,
                    child: Some(child),
                    progress: Some(progress),
                })
            }
        }
    }

    /// Whether it has ended; collects its exit status if it was started here.
    pub fn has_ended(&mut self) -> bool {
        match &mut self.child {
            Some(child) => matches!(child.try_wait(), Ok(Some(_)) | Err(_)),
            None => Stat::of(self.root, self.root).is_none_or(|stat| stat.state == 'Z'),
        }
    }

    /// Its exit code, if it was started here and has ended.
    pub fn exit_code(&mut self) -> Option<i32> {
        process::exit_code(self.child.as_mut()?.try_wait().ok()??)
    }

    /// The steps it has counted; zero for programs that count none.
    pub fn steps(&self) -> u64 {
        self.progress.as_ref().map_or(0, ProgressFile::steps)
    }

    /// Asks a started command to end. A process that was running before is left alone.
    pub fn ask_to_end(&mut self) {
        if let (Some(child), false) = (&self.child, self.has_ended_child()) {
            let pid = rustix::process::Pid::from_child(child);
            // It may have ended in between; then there is nothing to ask.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
    }

    fn has_ended_child(&self) -> bool {
        Stat::of(self.root, self.root).is_none_or(|stat| stat.state == 'Z')
    }
}

/// Starts a command whose environment names the journal, so that its descendants can be found even without parents.
fn start(words: &[String], journal: &Path, progress: &Path) -> Result<Child, HostError> {
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .env(ENVIRONMENT, journal)
        .env(PROGRESS_VARIABLE, progress);
    command.arg0(&words[0]);
    command.spawn().map_err(|source| HostError::Start {
        command: words.join(" "),
        source,
    })
}

/// What looking at the programs' threads found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// How many threads are new.
    pub added: usize,
    /// Threads that were not taken because they are in a real-time class.
    pub passed_over: Vec<i32>,
}

/// How often all processes are looked through for new descendants of the programs; threads are looked for every time.
const FAMILIES_PERIOD: Duration = Duration::from_millis(500);

/// The processes of each program.
#[derive(Debug, Default)]
pub struct Families {
    processes: Vec<Vec<i32>>,
    found: Option<Instant>,
    /// When each program was last seen to have a new thread.
    grew: Vec<Option<Instant>>,
}

/// A program that had a new thread not longer ago than this will soon have another.
const GROWTH_PERIOD: Duration = Duration::from_secs(1);

impl Families {
    /// Finds new threads of programs and notices those that ended. A new thread takes the place of one of its program
    /// that ended, so that the list does not grow with every thread there ever was.
    ///
    /// # Errors
    /// When a thread's scheduling cannot be read although it is there.
    pub fn refresh(&mut self, programs: &[Program], threads: &mut Vec<Thread>) -> Result<Found, HostError> {
        if self.found.is_none_or(|found| found.elapsed() >= FAMILIES_PERIOD) {
            self.found = Some(Instant::now());
            self.processes = programs
                .iter()
                .map(|program| process::family(program.root))
                .collect();
        }
        self.grew.resize(programs.len(), None);
        let mut found = Found::default();
        for (number, processes) in self.processes.iter().enumerate() {
            for &process in processes {
                for thread in process::threads(process) {
                    if threads
                        .iter()
                        .any(|known| known.name.thread == thread && known.is_alive)
                    {
                        continue;
                    }
                    let Some(name) = ThreadName::of(process, thread) else {
                        continue;
                    };
                    let Some(mut taken) = take_thread(name, number, threads)? else {
                        continue;
                    };
                    if !taken.before.is_ordinary() {
                        found.passed_over.push(thread);
                        continue;
                    }
                    found.added += 1;
                    self.grew[number] = Some(Instant::now());
                    let has_ended = |thread: &&mut Thread| !thread.is_alive && thread.program == number;
                    match threads.iter_mut().find(has_ended) {
                        Some(ended) => {
                            let ((ran, waited), before) = (ended.run_and_wait_ns, ended.before_it_ns);
                            taken.before_it_ns = (before.0 + ran, before.1 + waited);
                            *ended = taken;
                        }
                        None => threads.push(taken),
                    }
                }
            }
        }
        for thread in threads.iter_mut().filter(|thread| thread.is_alive) {
            observe(thread);
        }
        Ok(found)
    }

    /// Whether a program begins threads while it runs.
    pub fn is_growing(&self, program: usize) -> bool {
        let grew = self.grew.get(program).copied().flatten();
        grew.is_some_and(|grew| grew.elapsed() < GROWTH_PERIOD)
    }
}

fn take_thread(name: ThreadName, program: usize, threads: &[Thread]) -> Result<Option<Thread>, HostError> {
    let now = match Scheduling::of(name.thread) {
        Ok(now) => now,
        Err(_) if !name.is_alive() => return Ok(None),
        Err(error) => return Err(error),
    };
    // A thread born under control has inherited its parent's present scheduling; what it should have is its
    // siblings' former one.
    let siblings = || threads.iter().filter(|thread| thread.program == program);
    let model = siblings()
        .find(|thread| thread.name.process == name.process)
        .or_else(|| siblings().next());
    let before = match model {
        Some(model) if now.is_inherited_from(&model.before) => model.before.clone(),
        _ => now.clone(),
    };
    let place = threads
        .iter()
        .filter(|thread| thread.name.process == name.process)
        .count();
    let process_name = Stat::of(name.process, name.process).map_or_else(|| "?".to_owned(), |stat| stat.name);
    // It joins at the end of the line, and no further behind than the slowest of its siblings.
    let progress_ns = siblings()
        .filter(|thread| thread.is_alive)
        .map(|thread| thread.progress_ns)
        .min()
        .unwrap_or(0);
    Ok(Some(Thread {
        name,
        program,
        process_name,
        place,
        before,
        now,
        is_noted: false,
        is_alive: true,
        is_runnable: true,
        run_and_wait_ns: name.run_and_wait_ns().unwrap_or((0, 0)),
        before_it_ns: (0, 0),
        served_ns: 0,
        progress_ns,
        core: None,
    }))
}

fn observe(thread: &mut Thread) {
    let stat = Stat::of(thread.name.process, thread.name.thread);
    let Some(stat) = stat.filter(|stat| stat.start == thread.name.start && stat.state != 'Z') else {
        thread.is_alive = false;
        thread.is_runnable = false;
        return;
    };
    let (ran_ns, waited_ns) = thread.name.run_and_wait_ns().unwrap_or(thread.run_and_wait_ns);
    let new_run_ns = ran_ns.saturating_sub(thread.run_and_wait_ns.0);
    // A thread that ran for a while since the last look counts as runnable though it may sleep at this instant; a
    // helper that woke for a moment does not.
    thread.is_runnable = stat.state == 'R' || new_run_ns > RUN_NS_MIN;
    thread.progress_ns += new_run_ns;
    thread.run_and_wait_ns = (ran_ns, waited_ns);
}

/// Less than this between two looks is no run.
const RUN_NS_MIN: u64 = 2_000_000;
