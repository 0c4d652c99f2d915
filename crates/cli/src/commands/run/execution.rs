//! How IA-64 machines are executed, whatever describes them: executor, limit, traces, debugger, Ctrl-C.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::Duration;

use clap::Args;
use sidestep_files::Lines;
use sidestep_ia64::execution::Drivers;
use sidestep_itanium2::Parameters;
use sidestep_machine::debug::address::Address;
use sidestep_machine::debug::trace::{Kinds, Sink};
use sidestep_machine::description::kernel::Parts;
use sidestep_machine::description::number::Size;
use sidestep_machine::machine::platform::Platform;
use sidestep_machine::machine::timeline::TICKS_PER_SECOND;
use sidestep_machine::machine::{Sidecore, Waits};
use sidestep_machine::{End, Machine};
use sidestep_runner::annotate::Code;
use sidestep_runner::causes::with_causes;
use sidestep_runner::groups;
use sidestep_runner::machine::execution::{Execution, Prepared, Way};
use sidestep_runner::program;
use sidestep_symbols::Names;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::super::check::{Check, VIOLATED};
use super::super::debugger::debugger_at;
use super::super::perf::parse_processor;
use super::super::translate;
use super::super::{LIMIT_REACHED, Outcome, TRACE_LIMIT, lock, print_beside};
use super::console::status::{self, Status};
use super::console::stdio::show;
use super::control::{Request, Requests};
use super::exit_code;
use super::prompt::{self, After};

/// The exit code of a machine whose guest's kernel has panicked, as of programs with an error inside.
pub const PANICKED: u8 = 70;
/// The exit code after a signal: this and the signal's number, as of shells.
pub const SIGNALLED: i32 = 128;
/// How often somebody who waits for requests looks for signals.
const LOOK_AT_SIGNALS: Duration = Duration::from_millis(50);

/// How an IA-64 machine is executed.
#[derive(Args)]
#[command(next_help_heading = "IA-64 machines")]
#[group(id = "execution")]
pub struct Options {
    /// Stop after this many instructions of all processors together, with exit code 124. An interruption counts as one
    /// where no instruction has retired since the one before.
    #[arg(long, value_name = "N")]
    max_instructions: Option<u64>,
    /// Run in virtual time on one host thread, whatever the description says: the same run each time.
    #[arg(long)]
    deterministic: bool,
    /// End where the guest resets the machine, with exit code 0; without, the machine then starts again.
    #[arg(long)]
    no_reboot: bool,
    /// Write a line for every instruction (`insn`), change of translations (`mmu`) or `interruption`, to the standard
    /// error or a file; several kinds are separated by commas. Of a host with virtual machines: a timeline of its cores
    /// that Perfetto opens, to a file whose name ends in `.json`.
    #[arg(long, value_name = "KIND[,KIND][=FILE]|FILE.json", value_parser = parse_trace, conflicts_with_all = ["gdb", "check_groups"])]
    trace: Option<TraceRequest>,
    /// With --trace: the most bytes of a trace. One of lines ends there with a line that says so, a timeline holds what
    /// began first; the machines go on: 65536, 64K, 512M, 4G.
    #[arg(long, value_name = "SIZE", requires = "trace", default_value = TRACE_LIMIT)]
    trace_limit: Size,
    /// Wait for gdb at a port of this host (`:1234`), an address or a socket (`unix:PATH`), and run in virtual time
    /// under its control.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "check_groups")]
    gdb: Option<Address>,
    /// Run in virtual time on the model of a processor, whose cycles are then the machine's time, and print cycles and
    /// stalls at the end: itanium2, itanium2-900, -1000, -1300, -1500.
    #[arg(long, value_name = "PROCESSOR", value_parser = parse_processor,
          conflicts_with_all = ["trace", "gdb", "translate", "check_groups"])]
    timing: Option<Parameters>,
    /// With --timing: print cycles by function of the image, and the slowest function's bundles with theirs.
    #[arg(long, requires = "timing")]
    profile: bool,
    /// With --timing: compute what every block of instructions costs, also where it is known from before; to test the
    /// model, whose numbers do not depend on it.
    #[arg(long, requires = "timing")]
    compute_blocks: bool,
    #[command(flatten)]
    translation: translate::Options,
    /// Whether statistics are printed at the end.
    #[arg(skip)]
    pub wants_statistics: bool,
    #[command(flatten)]
    check: Check,
    /// Name addresses by this ELF file or `System.map`; several are put together, such as those of a kernel and of a
    /// program that it runs [default: the image].
    #[arg(long, value_name = "FILE")]
    symbols: Vec<PathBuf>,
}

/// What `--trace` asks for.
#[derive(Clone)]
struct TraceRequest {
    kinds: Kinds,
    file: Option<PathBuf>,
}

fn parse_trace(text: &str) -> Result<TraceRequest, String> {
    if Path::new(text)
        .extension()
        .is_some_and(|extension| extension == "json")
    {
        return Ok(TraceRequest {
            kinds: Kinds::default(),
            file: Some(text.into()),
        });
    }
    let (names, file) = match text.split_once('=') {
        Some((names, file)) if !file.is_empty() => (names, Some(file.into())),
        Some(_) => return Err("no file is named behind the `=`".to_owned()),
        None => (text, None),
    };
    let mut kinds = Kinds::default();
    for name in names.split(',') {
        match name {
            "insn" => kinds.instructions = true,
            "mmu" => kinds.translations = true,
            "interruption" => kinds.interruptions = true,
            _ => {
                return Err(format!(
                    "`{name}` is none of insn, mmu, interruption, and no file whose name ends in .json"
                ));
            }
        }
    }
    Ok(TraceRequest { kinds, file })
}

/// Makes a machine and its devices again.
pub type Rebuild<'a> = Box<dyn Fn() -> Result<(Machine, Parts), String> + 'a>;

/// A machine that is ready to run.
pub struct Ready<'a> {
    /// What errors call it.
    pub name: &'a str,
    /// The machine and its time.
    pub prepared: Prepared,
    /// The image whose symbols name addresses.
    pub image: &'a [u8],
    /// What somebody at its terminal asks for, if there is one.
    pub requests: Option<(Requests, Receiver<Request>)>,
    /// How to make it again when its guest resets it, once it is gone; without, a reset is its end.
    pub rebuild: Option<Rebuild<'a>>,
}

impl Options {
    /// The file that a timeline goes to.
    pub fn timeline(&self) -> Option<&Path> {
        let request = self.trace.as_ref()?;
        (request.kinds == Kinds::default())
            .then_some(request.file.as_deref())
            .flatten()
    }

    /// The most bytes of a trace.
    pub fn trace_limit(&self) -> u64 {
        self.trace_limit.0
    }

    /// The options given that say how single processors are executed, of which a host with virtual machines has none.
    pub fn of_processors(&self) -> Option<&'static str> {
        super::first_given(&[
            ("--max-instructions", self.max_instructions.is_some()),
            ("--symbols", !self.symbols.is_empty()),
            ("--profile", self.profile),
            ("--check-groups", self.check.is_given()),
            ("--trace KIND", self.trace.is_some() && self.timeline().is_none()),
        ])
    }

    /// The first of these options that was given.
    pub fn given(&self) -> Option<&'static str> {
        super::first_given(&[
            ("--max-instructions", self.max_instructions.is_some()),
            ("--deterministic", self.deterministic),
            ("--trace", self.trace.is_some()),
            ("--gdb", self.gdb.is_some()),
            ("--timing", self.timing.is_some()),
            ("--translate", self.translation.is_asked()),
            ("--check-groups", self.check.is_given()),
            ("--symbols", !self.symbols.is_empty()),
        ])
    }

    /// Whether a machine runs in virtual time, whatever its description says.
    pub fn in_virtual_time(&self) -> bool {
        self.deterministic || self.timing.is_some()
    }

    /// The processor on whose model execution is timed, if it is.
    pub fn timing(&self) -> Option<&Parameters> {
        self.timing.as_ref()
    }

    /// What executes processors instead of the interpreter, if anything does. Whoever watches them watches that.
    pub fn drivers(&self) -> Result<Option<Arc<dyn Drivers>>, Box<dyn Error>> {
        let is_watched =
            self.trace.is_some() || self.gdb.is_some() || self.timing.is_some() || self.check.is_given();
        match is_watched {
            true => Ok(None),
            false => self.translation.drivers(),
        }
    }

    /// Tells at the end what drivers have done, if that is wanted.
    pub fn tell(&self, drivers: &dyn Drivers) {
        if self.wants_statistics {
            let text = drivers.to_string();
            status::printing(Some(b'\n'), || say!("{}", text.trim_end()));
        }
    }

    /// Where a debugger connects, if it is to.
    pub fn gdb(&self) -> Option<&Address> {
        self.gdb.as_ref()
    }

    /// Runs a machine to its end.
    pub fn run(&self, mut ready: Ready<'_>) -> Outcome {
        if self.timeline().is_some() {
            return Err(
                "--trace FILE.json is of hosts with virtual machines; a machine has insn, mmu, interruption"
                    .into(),
            );
        }
        let symbols = self.symbols(ready.image)?;
        // Whoever sees the trace's file may rely on signals being caught.
        let watcher = stop_on_signals()?;
        let execution = Execution {
            way: self.way(&symbols)?,
            instructions_max: self.max_instructions,
            in_virtual_time: self.in_virtual_time(),
        };
        loop {
            let platform = Arc::clone(ready.prepared.machine.platform());
            watcher.watch(&platform);
            let name = ready.name.to_owned();
            (platform.loops).tell(move |found| status::say(&format!("sidestep: {name}: {found}")));
            if let Some((requests, _)) = &ready.requests {
                requests.connect(&platform);
            }
            let status = self.timing.is_some().then(|| show_progress(&platform));
            let end = match &self.gdb {
                Some(address) => execution.debug(&mut ready.prepared, debugger_at(address)?.into())?,
                None => self.run_once(&execution, &mut ready, &symbols, &watcher)?,
            };
            drop(status);
            if ready.prepared.sidecore != Sidecore::None {
                let Waits { polled, slept } = ready.prepared.machine.waits();
                let name = ready.name;
                say!(
                    "sidestep: {name}: the devices' sidecore found work {polled} times by polling, \
                    and slept {slept} times"
                );
            }
            let panic = platform.ending.panic();
            let panicked_at = match end {
                End::Panic => prompt::of_panic(&ready.prepared.machine, &symbols, ready.image),
                _ => String::new(),
            };
            let lasting = ready.prepared.parts.as_ref().map(Parts::lasting_variables);
            // Files are closed before they are opened again.
            drop((ready.prepared.machine, ready.prepared.parts, platform));
            match (end, ready.rebuild) {
                (End::Reset, Some(rebuild)) if self.gdb.is_none() && !self.no_reboot => {
                    let (machine, parts) = rebuild().map_err(|error| format!("{}: {error}", ready.name))?;
                    parts.begin_with(lasting.unwrap_or_default());
                    ready = Ready {
                        prepared: Prepared {
                            machine,
                            parts: Some(parts),
                            ..ready.prepared
                        },
                        rebuild: Some(rebuild),
                        ..ready
                    };
                }
                (end, rebuild) => {
                    // The console gives the terminal back before anything else is printed.
                    drop(rebuild);
                    // Where it cannot be written, the exit code still says that the kernel panicked.
                    let _ = print_beside(&panicked_at);
                    return self.report(ready.name, end, watcher.signal(), panic);
                }
            }
        }
    }

    /// What drives the processors.
    fn way(&self, symbols: &Arc<Names>) -> Result<Way, Box<dyn Error>> {
        Ok(match (&self.trace, &self.timing) {
            (Some(request), _) => Way::Traced {
                kinds: request.kinds,
                names: Arc::clone(symbols),
                sink: Arc::new(request.sink(self.trace_limit)?),
            },
            (None, Some(parameters)) => Way::Timed {
                parameters: Arc::new(parameters.clone()),
                keeps_profile: self.profile,
                books_blocks: !self.compute_blocks,
            },
            (None, None) => match self.check.wanted()? {
                Some(check) => Way::Watched {
                    ends: check.ends,
                    suppressions: check.suppressions,
                    names: Arc::clone(symbols),
                },
                None => self.drivers()?.map_or(Way::Plain, Way::Driven),
            },
        })
    }

    /// Runs a machine up to its end or its reset, with a look at what is requested whenever it stops for that, and
    /// prints what models have counted.
    fn run_once(
        &self,
        execution: &Execution,
        ready: &mut Ready<'_>,
        symbols: &Names,
        watcher: &Watcher,
    ) -> Result<End, Box<dyn Error>> {
        let (image, requests) = (ready.image, ready.requests.as_ref().map(|(_, requests)| requests));
        let mut look = |prepared: &mut Prepared, stopped: Option<End>| match requests {
            _ if stopped.is_some() && watcher.has_signal() => stopped,
            None => stopped,
            Some(requests) => attend(prepared, requests, (symbols, image), watcher),
        };
        let finished = execution.run(&mut ready.prepared, &mut look);
        let finished = finished.map_err(|error| with_causes(&error))?;
        if let (Some(sum), Some(parameters)) = (&finished.sum, &self.timing) {
            let others = match self.symbols.is_empty() {
                true => Names::default(),
                false => symbols.clone(),
            };
            let code = || Ok(Code::new(ready.name, ready.image.to_vec()).with_names_of_others(others));
            let profiled = self.profile.then(|| (&sum.profile, code()));
            let text = program::text_of(parameters, &sum.counters, profiled);
            status::printing(Some(b'\n'), || print_beside(&text))?;
        }
        if self.wants_statistics {
            let executed = ready.prepared.machine.executed();
            let mut text = format!("{:<42} {executed:>14}\n", "instructions of all processors");
            if let Some(sum) = &finished.sum {
                text += &sum.booking.to_string();
            }
            status::printing(Some(b'\n'), || print_beside(&text))?;
        }
        if let Way::Driven(drivers) = &execution.way {
            self.tell(&**drivers);
        }
        if let (Some(findings), Way::Watched { suppressions, .. }) = (&finished.findings, &execution.way) {
            let text = groups::text(findings, suppressions, &symbols.naming());
            status::printing(Some(b'\n'), || print_beside(&text))?;
        }
        Ok(finished.end)
    }

    fn symbols(&self, image: &[u8]) -> Result<Arc<Names>, Box<dyn Error>> {
        if self.symbols.is_empty() {
            return Ok(Arc::new(Names::of_file(image)));
        }
        let mut names = Names::default();
        for file in &self.symbols {
            names.extend(Names::read(file).map_err(|error| with_causes(&error))?);
        }
        Ok(Arc::new(names))
    }

    fn report(&self, name: &str, end: End, signal: Option<i32>, panic: Option<String>) -> Outcome {
        match end {
            End::Exit(code) => Ok(exit_code(code)),
            End::Reset => Ok(ExitCode::SUCCESS),
            End::Panic => {
                let reason = panic.unwrap_or_else(|| "it gave no reason".to_owned());
                say!("sidestep: {name}: the guest's kernel panicked: {reason}");
                Ok(ExitCode::from(PANICKED))
            }
            End::Limit => {
                let limit = self.max_instructions.unwrap_or(u64::MAX);
                say!("sidestep: {name}: stopped after {limit} instructions");
                Ok(ExitCode::from(LIMIT_REACHED))
            }
            End::Deadlock => Err(format!(
                "{name}: every processor waits or is stopped, and no timer or device will wake one"
            )
            .into()),
            End::Halted(_) => Ok(ExitCode::from(VIOLATED)),
            End::Stopped => {
                let code = signal.map_or(1, |signal| SIGNALLED + signal);
                Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
            }
        }
    }
}

/// Shows how far a machine is in its own time.
fn show_progress(platform: &Arc<Platform>) -> Status {
    let platform = Arc::downgrade(platform);
    Status::show(move || {
        let ticks = platform.upgrade().map_or(0, |platform| platform.timeline.now());
        let milliseconds = ticks / (TICKS_PER_SECOND / 1000);
        format!("the machine runs, {milliseconds} ms of its time have passed")
    })
}

/// Does what is requested of a machine that stands still, until it is to go on; or else why it ends.
fn attend(
    prepared: &mut Prepared,
    requests: &Receiver<Request>,
    (symbols, image): (&Names, &[u8]),
    watcher: &Watcher,
) -> Option<End> {
    let mut is_paused = false;
    loop {
        // A machine that stands still has nothing to do but to wait for the next request, or for a signal.
        let request = match is_paused {
            true => requests.recv_timeout(LOOK_AT_SIGNALS),
            false => requests.try_recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match request {
            Ok(request) => match carry_out(prepared, &request, symbols, image) {
                After::Nothing => {}
                After::Stop => is_paused = true,
                After::Continue => is_paused = false,
                After::Reset => return Some(End::Reset),
                After::Quit => return Some(End::Exit(0)),
            },
            Err(_) if watcher.has_signal() => return Some(End::Stopped),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

fn carry_out(prepared: &mut Prepared, request: &Request, symbols: &Names, image: &[u8]) -> After {
    match request {
        Request::Quit => After::Quit,
        Request::EnterPrompt => {
            show(format!("\r\n{}", prompt::PROMPT).as_bytes());
            After::Nothing
        }
        Request::LeavePrompt => {
            show(b"\r\n");
            After::Nothing
        }
        Request::Command(line) => {
            let mut context = prompt::Context {
                machine: &mut prepared.machine,
                parts: prepared.parts.as_ref(),
                symbols,
                image,
            };
            let (text, after) = prompt::command(&mut context, line);
            show(format!("{text}{}", prompt::PROMPT).as_bytes());
            after
        }
    }
}

impl TraceRequest {
    fn sink(&self, limit: Size) -> Result<Sink, Box<dyn Error>> {
        let lines = match &self.file {
            None => Lines::to(io::stderr(), limit.0),
            Some(path) => Lines::create(path, limit.0)
                .map_err(|error| format!("{}: cannot be written as the trace: {error}", path.display()))?,
        };
        Ok(Sink::new(lines))
    }
}

/// Waits for signals while it lives, also between a machine and the one that a reset puts in its place.
pub struct Watcher {
    handle: signal_hook::iterator::Handle,
    /// The last signal.
    signal: Arc<Mutex<Option<i32>>>,
    /// Of the machine that signals stop.
    platform: Arc<Mutex<Weak<Platform>>>,
}

/// Has Ctrl-C, SIGTERM and a terminal that goes away stop the machine that is watched.
pub fn stop_on_signals() -> Result<Watcher, Box<dyn Error>> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let watcher = Watcher {
        handle: signals.handle(),
        signal: Arc::default(),
        platform: Arc::default(),
    };
    let (noted, watched) = (Arc::clone(&watcher.signal), Arc::clone(&watcher.platform));
    thread::spawn(move || {
        for signal in signals.forever() {
            *lock(&noted) = Some(signal);
            if let Some(platform) = lock(&watched).upgrade() {
                platform.request_stop();
            }
        }
    });
    Ok(watcher)
}

impl Watcher {
    /// From now on signals stop this machine; one that has come already does so at once.
    pub fn watch(&self, platform: &Arc<Platform>) {
        *lock(&self.platform) = Arc::downgrade(platform);
        if self.has_signal() {
            platform.request_stop();
        }
    }

    pub fn has_signal(&self) -> bool {
        self.signal().is_some()
    }

    /// The last signal.
    pub fn signal(&self) -> Option<i32> {
        *lock(&self.signal)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.handle.close();
    }
}
