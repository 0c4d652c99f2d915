//! `sidestep gang watch`: which threads share memory.

use std::error::Error;
use std::io::{ErrorKind, IsTerminal, Write, stdout};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde::Serialize;
use sidestep_gang_linux::HostError;
use sidestep_gang_linux::journal::{Change, ENVIRONMENT, Journal};
use sidestep_gang_linux::process;
use sidestep_gang_linux::recording::Recording;
use sidestep_gang_linux::watch::{SampledBy, Snapshot, WatchSettings, Watcher};

use super::super::stop_flag;
use super::screen::{Key, Screen};
use super::{Cut, State, passed_on, report, seconds};
use crate::commands::{Outcome, not_built, print};

/// Show which threads of running programs share memory, and who should run together.
///
/// On a terminal the matrix, the tree and the sets are shown live; on a pipe there is one JSON object a line for each
/// interval. The kernel's NUMA balancing makes pages fault; it is switched on for the host meanwhile, and off again.
/// With `--userfaultfd` a VMM that offers its guest's memory makes its pages fault, and nothing of the host is changed.
#[derive(Args)]
pub struct Watch {
    /// A running process, with its descendants; can be given several times
    #[arg(long = "pid", value_name = "PID")]
    processes: Vec<i32>,
    /// A VMM that offers its guest's memory on this socket; can be given several times
    #[arg(long, value_name = "SOCKET", conflicts_with_all = ["processes", "command"])]
    userfaultfd: Vec<PathBuf>,
    #[command(flatten)]
    cut: Cut,
    /// How often to show what is known
    #[arg(long, default_value = "1", value_parser = seconds, value_name = "SECONDS")]
    interval: Duration,
    /// How often pages are to fault, in milliseconds, where the kernel or a VMM allows to set it
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(10..=60_000))]
    scan_period: Option<u64>,
    /// How often to interrupt what runs on a core to see what it touches, in microseconds; 0: never
    #[arg(long, default_value = "4000", value_name = "US", value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    sample_period: u64,
    /// What to count for that: time, or instructions, two for a nanosecond, where the processor shows its counters
    #[arg(long, default_value = "time", value_name = "WHAT")]
    sample_by: SampleBy,
    /// Let pages fault all the time, also when nothing has changed for long, and whatever it costs
    #[arg(long, conflicts_with = "budget")]
    steady: bool,
    /// The most that watching may cost, in percent of the time that the watched threads run
    #[arg(long, default_value = "1.5", value_parser = share, value_name = "PERCENT")]
    budget: u32,
    /// How far apart two touches of a page may be to count as communication
    #[arg(long, default_value = "4", value_parser = seconds, value_name = "SECONDS")]
    window: Duration,
    /// Forget once, after this time, what was shared until then: the start of the programs
    #[arg(long, value_parser = seconds, value_name = "SECONDS")]
    reset_after: Option<Duration>,
    /// Stop after this time, and end the command
    #[arg(long, value_parser = seconds, value_name = "SECONDS")]
    seconds: Option<Duration>,
    /// Save what was found to a file, for `gang run --sets` and `compare gang.policies --matrix FILE`
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Also watch processes of other users
    #[arg(long)]
    other_users: bool,
    /// Write JSON lines on a terminal too
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: State,
    /// A command to run and watch
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// What is written for each interval on a pipe.
#[derive(Serialize)]
struct Line<'a> {
    way: &'a sidestep_gang_linux::watch::Way,
    #[serde(flatten)]
    snapshot: &'a Snapshot,
}

/// What is counted between two interruptions of a core.
#[derive(Clone, Copy, ValueEnum)]
enum SampleBy {
    Instructions,
    Time,
}

impl From<SampleBy> for SampledBy {
    fn from(by: SampleBy) -> Self {
        match by {
            SampleBy::Instructions => Self::Instructions,
            SampleBy::Time => Self::Time,
        }
    }
}

/// How often the kernel's rings are emptied.
const POLL: Duration = Duration::from_millis(50);

impl Watch {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        if self.processes.is_empty() && self.command.is_empty() && self.userfaultfd.is_empty() {
            return Err("nothing to watch; expected --pid PID, --userfaultfd SOCKET, or -- COMMAND".into());
        }
        for &process in &self.processes {
            process::check(process, self.other_users)?;
        }
        self.save.as_deref().map(sidestep_files::probe).transpose()?;
        if !Screen::IS_BUILT && stdout().is_terminal() && !self.json {
            say!(
                "sidestep: {}; JSON lines follow",
                not_built("has no live view", "live")
            );
        }
        let stop = stop_flag()?;
        if !self.userfaultfd.is_empty() {
            let start = |settings| Watcher::start_on_guests(&self.userfaultfd, settings, self.other_users);
            return self.watch(&mut None, start, &stop);
        }
        let (mut journal, _) = Journal::open(&self.state.folder)?;
        let result = self.watch_processes(&mut journal, &stop);
        journal.close()?;
        result
    }

    fn watch_processes(&self, journal: &mut Journal, stop: &AtomicBool) -> Outcome {
        let mut roots = self.processes.clone();
        let mut child = self.start(journal)?;
        roots.extend(child.iter().map(|child| child.id() as i32));
        let start = |settings| Watcher::start(journal, &roots, settings);
        self.watch(&mut child, start, stop)
    }

    fn watch(
        &self,
        child: &mut Option<Child>,
        start: impl FnOnce(WatchSettings) -> Result<Watcher, HostError>,
        stop: &AtomicBool,
    ) -> Outcome {
        let mut settings = WatchSettings {
            scan_period: self.scan_period.map(Duration::from_millis),
            sample_period: (self.sample_period > 0).then(|| Duration::from_micros(self.sample_period)),
            sampled_by: self.sample_by.into(),
            selection: self.cut.selection(),
            share_permille: Some(self.budget),
            ..WatchSettings::default()
        };
        if self.steady {
            settings.look = Duration::ZERO;
            settings.share_permille = None;
        }
        settings.detector.window_ns = self.window.as_nanos() as u64;
        // What runs already has its memory initialised; who touches a page of it first says something.
        settings.detector.skips_first_touch = !self.command.is_empty();
        let outcome = start(settings)
            .map_err(Into::into)
            .and_then(|watcher| self.show(watcher, child, stop));
        // Whatever ended the watch, nothing that it started goes on without it.
        let code = child
            .as_mut()
            .and_then(|child| process::exit_code(child.try_wait().ok()??));
        ask_to_end(child);
        let (last, way) = outcome?;
        if let Some(path) = &self.save {
            report::write(path, &Recording::of(&last, &way))?;
        }
        if self.is_screen() {
            print(format!("{}\n\nsets: {}\n", last.matrix, last.sets).as_bytes())?;
        }
        Ok(passed_on(code))
    }

    fn is_screen(&self) -> bool {
        Screen::IS_BUILT && stdout().is_terminal() && !self.json
    }

    /// Starts the command, if there is one. Beside the screen its output has no place.
    fn start(&self, journal: &mut Journal) -> Result<Option<Child>, Box<dyn Error>> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Ok(None);
        };
        let mut command = Command::new(program);
        command.args(arguments).env(ENVIRONMENT, journal.path());
        if self.is_screen() {
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
        } else {
            // The standard output is for the JSON lines.
            command.stdout(std::io::stderr());
        }
        let child = command
            .spawn()
            .map_err(|error| format!("cannot start `{}`: {error}", self.command.join(" ")))?;
        journal.note(&Change::Started {
            process: child.id() as i32,
        })?;
        Ok(Some(child))
    }

    fn show(
        &self,
        mut watcher: Watcher,
        child: &mut Option<Child>,
        stop: &AtomicBool,
    ) -> Result<(Snapshot, sidestep_gang_linux::watch::Way), Box<dyn Error>> {
        let mut screen = if self.is_screen() {
            Some(Screen::open()?)
        } else {
            None
        };
        if screen.is_none() {
            say!("watching by {}; {}", watcher.way().faults, watcher.way().rate);
        }
        let began = Instant::now();
        let mut reset_after = self.reset_after;
        let mut shown = began;
        loop {
            std::thread::sleep(POLL);
            watcher.poll();
            if reset_after.is_some_and(|after| began.elapsed() >= after) {
                reset_after = None;
                watcher.reset();
            }
            let key = screen.as_mut().map_or(Ok(None), Screen::key)?;
            if key == Some(Key::Reset) {
                watcher.reset();
            }
            let has_ended = match child {
                Some(child) => child.try_wait()?.is_some(),
                None => !watcher.is_anyone_left(),
            };
            let is_over = has_ended
                || key == Some(Key::Quit)
                || stop.load(Ordering::Relaxed)
                || self.seconds.is_some_and(|limit| began.elapsed() >= limit);
            if is_over || shown.elapsed() >= self.interval || key.is_some() {
                shown = Instant::now();
                let snapshot = watcher.snapshot();
                match &mut screen {
                    Some(screen) => screen.draw(&snapshot, &watcher.tree(), watcher.way())?,
                    None => {
                        let line = Line {
                            way: watcher.way(),
                            snapshot: &snapshot,
                        };
                        if write_line(&line)?.is_break() {
                            stop.store(true, Ordering::Relaxed);
                        }
                    }
                }
            }
            if is_over {
                watcher.poll();
                return Ok((watcher.snapshot(), watcher.way().clone()));
            }
        }
    }
}

/// Writes one JSON object and the line's end; that nobody reads any more ends the watch like a signal does.
fn write_line(line: &impl Serialize) -> Result<ControlFlow<()>, Box<dyn Error>> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    let mut output = stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        Err(error) => Err(format!("cannot write to the standard output: {error}").into()),
    }
}

/// A share in percent with one decimal, in thousandths.
fn share(text: &str) -> Result<u32, String> {
    let percent: f64 = text
        .parse()
        .map_err(|_| "expected a number of percent".to_owned())?;
    match percent {
        0.1..=100.0 => Ok((percent * 10.0).round() as u32),
        _ => Err("expected between 0.1 and 100 percent".to_owned()),
    }
}

fn ask_to_end(child: &mut Option<Child>) {
    let Some(child) = child else { return };
    if matches!(child.try_wait(), Ok(None)) {
        // It may have ended in between; then there is nothing to ask.
        let _ = rustix::process::kill_process(
            rustix::process::Pid::from_child(child),
            rustix::process::Signal::TERM,
        );
        let asked = Instant::now();
        while asked.elapsed() < Duration::from_secs(2) && matches!(child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
