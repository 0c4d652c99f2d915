//! How IA-64 machines are executed, whatever describes them: executor, limit, traces, debugger, Ctrl-C.

use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

use clap::Args;
use sidestep_ia64::execution::{Driver, Observed, Untimed};
use sidestep_itanium2::Parameters;
use sidestep_machine::debug::server::{Address, Connection, Finish, Listener, serve};
use sidestep_machine::debug::symbols::Symbols;
use sidestep_machine::debug::target::Debugged;
use sidestep_machine::debug::trace::{Kinds, Sink, Trace};
use sidestep_machine::description::bare::Clock;
use sidestep_machine::description::kernel::Parts;
use sidestep_machine::machine::platform::Platform;
use sidestep_machine::machine::{HostThreads, VirtualTime};
use sidestep_machine::{End, Machine};
use sidestep_runner::annotate::Code;
use sidestep_runner::groups;
use sidestep_runner::machine::Timed;
use sidestep_runner::program::{self, Sum};
use sidestep_schedule::sanitizer::{Findings, Sanitizer};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::super::check::{Check, VIOLATED, Wanted};
use super::super::perf::parse_processor;
use super::super::{LIMIT_REACHED, Outcome};
use super::console::stdio::show;
use super::control::{Request, Requests};
use super::exit_code;
use super::monitor::{self, After};

/// The exit code of a machine whose guest's kernel has panicked, as of programs with an error inside.
const PANICKED: u8 = 70;
/// The exit code after a signal: this and the signal's number, as of shells.
const SIGNALLED: i32 = 128;

/// How an IA-64 machine is executed.
#[derive(Args)]
#[command(next_help_heading = "IA-64 machines")]
#[group(id = "execution")]
pub struct Options {
    /// Stop after this many instructions of all processors together, with exit code 124.
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
    /// Wait for gdb at a port of this host (`:1234`), an address or a socket (`unix:PATH`), and run in virtual time
    /// under its control.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "check_groups")]
    gdb: Option<Address>,
    /// Run in virtual time on the model of a processor, whose cycles are then the machine's time, and print cycles and
    /// stalls at the end: itanium2, itanium2-900, -1000, -1500.
    #[arg(long, value_name = "PROCESSOR", value_parser = parse_processor, conflicts_with_all = ["trace", "gdb", "check_groups"])]
    timing: Option<Parameters>,
    /// With --timing: print cycles by function of the image, and the slowest function's bundles with theirs.
    #[arg(long, requires = "timing")]
    profile: bool,
    #[command(flatten)]
    check: Check,
    /// Name addresses in traces by this ELF file or `System.map` [default: the image].
    #[arg(long, value_name = "FILE")]
    symbols: Option<PathBuf>,
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
    /// The machine.
    pub machine: Machine,
    /// The image whose symbols name addresses.
    pub image: &'a [u8],
    /// What its time follows.
    pub clock: Clock,
    /// The longest time slice.
    pub quantum_ticks: u64,
    /// Whether input from outside may wake it.
    pub expects_input: bool,
    /// The devices of a whole machine.
    pub parts: Option<Parts>,
    /// What somebody at its terminal asks for, if there is one.
    pub requests: Option<(Requests, Receiver<Request>)>,
    /// How to make it again when its guest resets it, once it is gone; without, a reset is its end.
    pub rebuild: Option<Rebuild<'a>>,
    /// Whether virtual time goes by no faster than the host's while the machine waits.
    pub paces_idle: bool,
}

impl Options {
    /// The file that a timeline goes to.
    pub fn timeline(&self) -> Option<&Path> {
        let request = self.trace.as_ref()?;
        (request.kinds == Kinds::default())
            .then_some(request.file.as_deref())
            .flatten()
    }

    /// The options given that say how single processors are executed, of which a host with virtual machines has none.
    pub fn of_processors(&self) -> Option<&'static str> {
        super::first_given(&[
            ("--max-instructions", self.max_instructions.is_some()),
            ("--symbols", self.symbols.is_some()),
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
            ("--check-groups", self.check.is_given()),
            ("--symbols", self.symbols.is_some()),
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
        let mut sink = None;
        let watcher = stop_on_signals()?;
        loop {
            watcher.watch(&ready.machine);
            // Whoever sees the trace's file may rely on signals being caught.
            if let (None, Some(request)) = (&sink, &self.trace) {
                sink = Some(request.sink()?);
            }
            if let Some((requests, _)) = &ready.requests {
                requests.connect(ready.machine.platform());
            }
            let end = self.run_once(&mut ready, &symbols, sink.as_ref(), &watcher)?;
            let panic = ready.machine.platform().ending.panic();
            let panicked_at = match end {
                End::Panic => monitor::of_panic(&ready.machine, &symbols, ready.image),
                _ => String::new(),
            };
            // Files are closed before they are opened again.
            drop((ready.machine, ready.parts));
            match (end, ready.rebuild) {
                (End::Reset, Some(rebuild)) if self.gdb.is_none() && !self.no_reboot => {
                    let (machine, parts) = rebuild().map_err(|error| format!("{}: {error}", ready.name))?;
                    ready = Ready {
                        machine,
                        parts: Some(parts),
                        rebuild: Some(rebuild),
                        ..ready
                    };
                }
                (end, rebuild) => {
                    // The console gives the terminal back before anything else is printed.
                    drop(rebuild);
                    eprint!("{panicked_at}");
                    return self.report(ready.name, end, watcher.signal(), panic);
                }
            }
        }
    }

    /// Runs a machine up to its end or its reset.
    fn run_once(
        &self,
        ready: &mut Ready<'_>,
        symbols: &Arc<Symbols>,
        sink: Option<&Sink>,
        watcher: &Watcher,
    ) -> Result<End, Box<dyn Error>> {
        Ok(match (&self.gdb, &self.trace, sink) {
            (Some(address), ..) => self.debug(ready, address)?,
            (None, Some(request), Some(sink)) => {
                let trace = |index| Trace::new(request.kinds, index, Arc::clone(symbols), Arc::clone(sink));
                let mut drivers: Vec<_> = (0..ready.machine.cpus.len())
                    .map(|index| Observed(trace(index)))
                    .collect();
                let end = self.attend(ready, &mut drivers, symbols, watcher);
                let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
                sink.flush()
                    .map_err(|error| format!("the trace cannot be written: {error}"))?;
                end
            }
            _ => match (&self.timing, self.check.wanted()?) {
                (Some(parameters), _) => self.run_timed(ready, parameters, symbols, watcher),
                (None, Some(check)) => self.run_watched(ready, &check, symbols, watcher),
                (None, None) => {
                    let mut drivers = vec![Untimed; ready.machine.cpus.len()];
                    self.attend(ready, &mut drivers, symbols, watcher)
                }
            },
        })
    }

    /// Runs on a model of each processor, and prints what they counted.
    fn run_timed(
        &self,
        ready: &mut Ready<'_>,
        parameters: &Parameters,
        symbols: &Symbols,
        watcher: &Watcher,
    ) -> End {
        let mut drivers = Timed::each(parameters, ready.machine.cpus.len());
        if self.profile {
            drivers
                .iter_mut()
                .for_each(|driver| driver.pipeline_mut().enable_profile());
        }
        let end = self.attend(ready, &mut drivers, symbols, watcher);
        let mut sum = Sum::default();
        drivers
            .iter_mut()
            .for_each(|driver| sum.add(driver.pipeline_mut()));
        let code = || Ok(Code::new(ready.name, ready.image.to_vec()));
        let profiled = self.profile.then(|| (&sum.profile, code()));
        eprint!("{}", program::text_of(parameters, &sum.counters, profiled));
        end
    }

    /// Runs with a sanitizer for each processor, and prints what they have found.
    fn run_watched(
        &self,
        ready: &mut Ready<'_>,
        check: &Wanted,
        symbols: &Symbols,
        watcher: &Watcher,
    ) -> End {
        let sanitizer = || Observed(Sanitizer::new(check.ends));
        let mut drivers: Vec<_> = ready.machine.cpus.iter().map(|_| sanitizer()).collect();
        let name = |address| {
            let found = symbols.find(address);
            found.map(|(name, distance)| (name.to_owned(), distance))
        };
        loop {
            let end = self.attend(ready, &mut drivers, symbols, watcher);
            let mut findings = Findings::default();
            for Observed(sanitizer) in &mut drivers {
                sanitizer.go_on();
                findings.merge(sanitizer.findings());
            }
            let is_over = match end {
                End::Halted(_) => groups::is_violated(&findings, &check.suppressions, &name),
                _ => true,
            };
            if is_over {
                eprint!("{}", groups::text(&findings, &check.suppressions, &name));
                return end;
            }
        }
    }

    /// Executes to the machine's end, with a look at what is requested whenever it stops for that.
    fn attend<D: Driver + Send>(
        &self,
        ready: &mut Ready<'_>,
        drivers: &mut [D],
        symbols: &Symbols,
        watcher: &Watcher,
    ) -> End {
        let mut is_paused = false;
        loop {
            if let Some((_, requests)) = &ready.requests {
                // A machine that stands still has nothing to do but to wait for the next request.
                let first = if is_paused { requests.recv().ok() } else { None };
                let waiting: Vec<Request> = first.into_iter().chain(requests.try_iter()).collect();
                for request in waiting {
                    match self.carry_out(ready, &request, symbols) {
                        After::Nothing => {}
                        After::Stop => is_paused = true,
                        After::Continue => is_paused = false,
                        After::Reset => return End::Reset,
                        After::Quit => return End::Exit(0),
                    }
                }
            }
            if is_paused {
                continue;
            }
            let end = self.execute(ready, drivers);
            if end != End::Stopped || ready.requests.is_none() || watcher.has_signal() {
                return end;
            }
        }
    }

    fn carry_out(&self, ready: &mut Ready<'_>, request: &Request, symbols: &Symbols) -> After {
        match request {
            Request::Quit => After::Quit,
            Request::EnterMonitor => {
                show(format!("\r\n{}", monitor::PROMPT).as_bytes());
                After::Nothing
            }
            Request::LeaveMonitor => {
                show(b"\r\n");
                After::Nothing
            }
            Request::Command(line) => {
                let mut context = monitor::Context {
                    machine: &mut ready.machine,
                    parts: ready.parts.as_ref(),
                    symbols,
                    image: ready.image,
                };
                let (text, after) = monitor::command(&mut context, line);
                show(format!("{text}{}", monitor::PROMPT).as_bytes());
                after
            }
        }
    }

    fn execute<D: Driver + Send>(&self, ready: &mut Ready<'_>, drivers: &mut [D]) -> End {
        let instructions_max = self.instructions_left(ready);
        let outcome = if ready.clock == Clock::Host && !self.in_virtual_time() {
            let threads = HostThreads {
                slice_ticks: ready.quantum_ticks,
                instructions_max,
                expects_input: ready.expects_input,
            };
            threads.run_driven(&mut ready.machine, drivers)
        } else {
            self.virtual_time(ready).run_driven(&mut ready.machine, drivers)
        };
        outcome.end
    }

    /// How many instructions the limit leaves.
    fn instructions_left(&self, ready: &Ready<'_>) -> u64 {
        let cpus = ready.machine.cpus.iter();
        let executed: u64 = cpus.map(|cpu| cpu.processor.instructions_retired()).sum();
        self.max_instructions
            .map_or(u64::MAX, |most| most.saturating_sub(executed))
    }

    fn virtual_time(&self, ready: &Ready<'_>) -> VirtualTime {
        VirtualTime {
            quantum_ticks: ready.quantum_ticks,
            instructions_max: self.instructions_left(ready),
            expects_input: ready.expects_input,
            paces_idle: ready.paces_idle,
        }
    }

    /// Lets a debugger control the machine; goes on without it if it leaves.
    fn debug(&self, ready: &mut Ready<'_>, address: &Address) -> Result<End, Box<dyn Error>> {
        let connection = debugger_at(address)?;
        let executor = self.virtual_time(ready);
        let mut debugged = Debugged {
            machine: &mut ready.machine,
            executor,
        };
        Ok(match serve(connection, &mut debugged)? {
            Finish::Ended(end) => end,
            Finish::Killed => End::Stopped,
            Finish::Detached => executor.run(&mut ready.machine).end,
        })
    }

    fn symbols(&self, image: &[u8]) -> Result<Arc<Symbols>, Box<dyn Error>> {
        let Some(path) = &self.symbols else {
            return Ok(Arc::new(Symbols::of_image(image)));
        };
        let name = path.display();
        let bytes = sidestep_files::read(path, sidestep_files::IMAGE_BYTES_MAX)
            .map_err(|error| format!("{name}: cannot be read: {error}"))?;
        if bytes.starts_with(b"\x7fELF") {
            return Ok(Arc::new(Symbols::of_image(&bytes)));
        }
        let symbols = Symbols::of_map(&String::from_utf8_lossy(&bytes))
            .map_err(|line| format!("{name}:{line}: must be an address, a type and a name"))?;
        Ok(Arc::new(symbols))
    }

    fn report(&self, name: &str, end: End, signal: Option<i32>, panic: Option<String>) -> Outcome {
        match end {
            End::Exit(code) => Ok(exit_code(code)),
            End::Reset => Ok(ExitCode::SUCCESS),
            End::Panic => {
                let reason = panic.unwrap_or_else(|| "it gave no reason".to_owned());
                eprintln!("sidestep: {name}: the guest's kernel panicked: {reason}");
                Ok(ExitCode::from(PANICKED))
            }
            End::Limit => {
                let limit = self.max_instructions.unwrap_or(u64::MAX);
                eprintln!("sidestep: {name}: stopped after {limit} instructions");
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

/// Waits until a debugger connects.
pub fn debugger_at(address: &Address) -> Result<Connection, Box<dyn Error>> {
    let refused = |error| format!("--gdb {address}: cannot wait for a debugger there: {error}");
    let listener = Listener::bind(address).map_err(refused)?;
    eprintln!("sidestep: waiting for gdb: target remote {}", listener.address()?);
    Ok(listener.accept()?)
}

impl TraceRequest {
    fn sink(&self) -> Result<Sink, Box<dyn Error>> {
        let sink: Box<dyn Write + Send> = match &self.file {
            None => Box::new(io::stderr()),
            Some(path) => Box::new(BufWriter::new(create(path)?)),
        };
        Ok(Arc::new(Mutex::new(sink)))
    }
}

fn create(path: &Path) -> Result<File, Box<dyn Error>> {
    File::create(path)
        .map_err(|error| format!("{}: cannot be written as the trace: {error}", path.display()).into())
}

/// Waits for signals while it lives, also between a machine and the one that a reset puts in its place.
struct Watcher {
    handle: signal_hook::iterator::Handle,
    /// The last signal.
    signal: Arc<Mutex<Option<i32>>>,
    /// Of the machine that signals stop.
    platform: Arc<Mutex<Weak<Platform>>>,
}

/// Has Ctrl-C, SIGTERM and a terminal that goes away stop the machine that is watched.
fn stop_on_signals() -> Result<Watcher, Box<dyn Error>> {
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

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watcher {
    /// From now on signals stop this machine; one that has come already does so at once.
    fn watch(&self, machine: &Machine) {
        *lock(&self.platform) = Arc::downgrade(machine.platform());
        if self.has_signal() {
            machine.platform().request_stop();
        }
    }

    fn has_signal(&self) -> bool {
        self.signal().is_some()
    }

    /// The last signal.
    fn signal(&self) -> Option<i32> {
        *lock(&self.signal)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.handle.close();
    }
}
