//! `sidestep exec`: runs a Linux/ia64 program.
//!
//! The program's standard streams, arguments, environment, exit status and fatal signals are the command's own.
//! Failures of the command itself end with status 127 (no such program), 126 (it cannot be run) or 125; what is ended
//! by an option ends with 124 or 123.

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum};
use sidestep_itanium2::Parameters;
use sidestep_linux_user::debugger::Debugger;
use sidestep_linux_user::engine::Engine;
use sidestep_linux_user::process::STATUS_FAILED;
use sidestep_linux_user::trace::TraceFile;
use sidestep_linux_user::{Launch, Options, inheritance};
use sidestep_machine::debug::address::Address;
use sidestep_machine::description::number::Size;
use sidestep_runner::annotate::Code;
use sidestep_runner::causes::with_causes;
use sidestep_runner::debugger::Gdb;
use sidestep_runner::groups::Watched;
use sidestep_runner::processes::Leave;
use sidestep_runner::program::{self, Kept, Model, Report, Sum};
use sidestep_runner::sampled_model::{EstimateReport, SampledModel, Sampling};

use super::check::Check;
use super::debugger::debugger_at;
use super::perf::parse_processor;
use super::translate;
use super::{Outcome, TRACE_LIMIT};

/// Where the trace goes unless a file is named.
const STANDARD_ERROR: &str = "/dev/stderr";

/// Runs a Linux/ia64 program.
#[derive(Args)]
pub struct Exec {
    /// Print instructions, time, pages and register stack traffic to standard error at the end
    #[arg(long)]
    stats: bool,

    /// Print every system call to standard error
    #[arg(long)]
    strace: bool,

    /// Set an environment variable of the program (may be repeated)
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = assignment())]
    environment: Vec<(OsString, OsString)>,

    /// Leave an environment variable out (may be repeated)
    #[arg(long = "unset-env", value_name = "NAME")]
    unset_environment: Vec<OsString>,

    /// Make this folder the root of all paths of the program: its interpreter, libraries, every file. Beside it the
    /// program sees the current folder, /proc and a few devices
    #[arg(long, value_name = "DIR", env = "SIDESTEP_SYSROOT")]
    sysroot: Option<PathBuf>,

    /// With --sysroot: also let the program use this folder of the host, where the sysroot has nothing of that name;
    /// `/` is all of the host, its programs included (may be repeated)
    #[arg(long, value_name = "DIR", requires = "sysroot")]
    allow: Vec<PathBuf>,

    /// End the program, with status 124, after this many instructions of all its threads together
    #[arg(long, value_name = "N")]
    max_instructions: Option<u64>,

    /// Write a line for every retired instruction: `insn`, or `insn=FILE` (default: standard error)
    #[arg(long, value_name = "insn[=FILE]", value_parser = parse_trace, conflicts_with = "check_groups")]
    trace: Option<PathBuf>,

    /// With --trace: the most bytes of the file, whose lines end there with one that says so while the program goes on:
    /// 65536, 64K, 512M, 4G
    #[arg(long, value_name = "SIZE", requires = "trace", default_value = TRACE_LIMIT)]
    trace_limit: Size,

    /// Run on the model of a processor, and print cycles and stalls at the end: itanium2, itanium2-900, -1000, -1300,
    /// -1500. With `,sample=20M` behind it the model sees a sample in each 20 million instructions, and the end is an
    /// estimate with its margin (`,warm=N`, `,unit=N`: instructions of a sample before it counts, and that count); what
    /// runs in between may be translated
    #[arg(long, value_name = "PROCESSOR[,sample=PERIOD]", conflicts_with_all = ["trace", "check_groups"])]
    timing: Option<Timing>,

    /// With --timing: compute what every block of instructions costs, also where it is known from before; to test the
    /// model, whose numbers do not depend on it
    #[arg(long, requires = "timing")]
    compute_blocks: bool,

    #[command(flatten)]
    translation: translate::Options,

    /// With --translate: interpret as well, compare registers and memory after every stretch, and end the run with
    /// status 125 at the first difference
    #[arg(long, requires = "translate")]
    check_translation: bool,

    /// Wait for gdb at a port of this host (`:1234`), an address or a socket (`unix:PATH`), and run under its control.
    /// What the program forks or executes runs without
    #[arg(long, value_name = "ADDRESS",
          conflicts_with_all = ["trace", "timing", "translate", "check_groups"])]
    gdb: Option<Address>,

    #[command(flatten)]
    check: Check,

    /// Leave what every process counts in this file, for `sidestep perf`, in the place of printing it
    #[arg(
        long,
        hide = true,
        requires = "timing",
        requires = "kept",
        conflicts_with = "profile",
        value_name = "FILE"
    )]
    parts: Option<PathBuf>,

    /// With --parts: what is kept of a run beside its counters
    #[arg(long, hide = true, requires = "parts", value_name = "KIND")]
    kept: Option<Kept>,

    /// With --timing: print cycles by function, and the slowest function's bundles with theirs
    #[arg(long, requires = "timing")]
    profile: bool,

    /// Give the program this name as its first argument
    #[arg(long, value_name = "NAME")]
    argv0: Option<OsString>,

    /// Start the program with SIGPIPE ignored
    #[arg(long, hide = true)]
    ignore_sigpipe: bool,

    /// A descriptor that the program which executes this one leaves to it
    #[arg(long, hide = true, value_name = "NAME=NUMBER", value_parser = inherited(inheritance::descriptor))]
    descriptor: Vec<(Vec<u8>, i32)>,

    /// A limit that holds for the program and not for the emulator
    #[arg(long, hide = true, value_name = "RESOURCE=SOFT:HARD", value_parser = inherited(inheritance::limit))]
    guest_limit: Vec<(u32, [u64; 2])>,

    /// The program, by a path of the host
    #[arg(value_name = "PROG")]
    program: PathBuf,

    /// Its arguments
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// A parser of a variable of the environment, which may be any bytes.
fn assignment() -> impl TypedValueParser<Value = (OsString, OsString)> {
    OsStringValueParser::new().try_map(|text| {
        let bytes = text.as_bytes();
        let end = bytes.iter().position(|byte| *byte == b'=');
        let end = end.filter(|end| *end > 0).ok_or("must be NAME=VALUE")?;
        let [name, value] = [&bytes[..end], &bytes[end + 1..]].map(|part| OsStr::from_bytes(part).to_owned());
        Ok::<_, &str>((name, value))
    })
}

/// A parser of what one emulator passes on to the next.
fn inherited<T: Clone + Send + Sync + 'static>(
    parse: fn(&OsStr) -> Option<T>,
) -> impl TypedValueParser<Value = T> {
    OsStringValueParser::new().try_map(move |text| parse(&text).ok_or("is not what an emulator passes on"))
}

fn parse_trace(text: &str) -> Result<PathBuf, String> {
    match text.split_once('=') {
        None if text == "insn" => Ok(STANDARD_ERROR.into()),
        Some(("insn", file)) if !file.is_empty() => Ok(file.into()),
        _ => Err("must be insn or insn=FILE".into()),
    }
}

/// What `--timing` asks for.
#[derive(Clone, Debug)]
struct Timing {
    parameters: Parameters,
    /// How the model sees samples of the run; without, it sees all.
    sampling: Option<Sampling>,
}

impl FromStr for Timing {
    type Err = String;

    fn from_str(text: &str) -> Result<Timing, String> {
        let (name, sampling) = match text.split_once(',') {
            Some((name, sampling)) => (name, Some(sampling.parse()?)),
            None => (text, None),
        };
        let parameters = parse_processor(name)?;
        Ok(Timing { parameters, sampling })
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.parameters.name)?;
        match &self.sampling {
            Some(sampling) => write!(out, ",{sampling}"),
            None => Ok(()),
        }
    }
}

/// What `--timing` prints.
#[derive(Debug)]
struct TimingReport {
    /// The process that was started with this program; none where another one has executed it.
    first: Option<u32>,
    /// The program.
    program: PathBuf,
    /// The program to take symbols from, if cycles are wanted by function.
    profiled: Option<PathBuf>,
    /// Whether it tells how often blocks were booked as a whole.
    tells_booking: bool,
}

impl EstimateReport for TimingReport {
    fn label(&self) -> String {
        let process = std::process::id();
        match self.first == Some(process) {
            true => String::new(),
            false => format!("process {process}  {}\n", self.program.display()),
        }
    }
}

impl Report for TimingReport {
    fn render(&self, parameters: &Parameters, sum: &Sum) -> Result<String, String> {
        let profiled = self
            .profiled
            .as_deref()
            .map(|program| (&sum.profile, Code::read(program)));
        let mut text = self.label() + &program::text_of(parameters, &sum.counters, profiled);
        if self.tells_booking {
            text += &sum.booking.to_string();
            text += &sum.execution;
        }
        Ok(text)
    }
}

impl Exec {
    /// Runs the program; comes back only if it could not be started.
    pub fn run(mut self) -> Outcome {
        let prepared = self.options().and_then(|options| Ok((options, self.debugger()?)));
        let (options, debugger) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                say!("sidestep: {}", with_causes(error.as_ref()));
                return Ok(ExitCode::from(STATUS_FAILED as u8));
            }
        };
        let name = self
            .argv0
            .clone()
            .unwrap_or_else(|| self.program.clone().into_os_string());
        let arguments = [name].into_iter().chain(self.arguments.iter().cloned());
        let launch = Launch {
            program: self.program.clone(),
            arguments: arguments.map(OsString::into_vec).collect(),
            environment: self.environment(),
            options,
            debugger,
            pipe_ignored: self.ignore_sigpipe,
            inherited: std::mem::take(&mut self.descriptor),
            limits: std::mem::take(&mut self.guest_limit),
        };
        let error = sidestep_linux_user::run_to_exit(launch);
        match self.program_below_sysroot() {
            Some(path) => {
                let (causes, path) = (with_causes(&error), path.display());
                say!("sidestep: {causes}; PROG is a path of the host: for the one of the sysroot say {path}");
            }
            None => say!("sidestep: {}", with_causes(&error)),
        }
        Ok(ExitCode::from(error.exit_status()))
    }

    /// The program as the sysroot has it, if the path could be meant so.
    fn program_below_sysroot(&self) -> Option<PathBuf> {
        let path = self.sysroot.as_ref()?.join(self.program.strip_prefix("/").ok()?);
        path.exists().then_some(path)
    }

    /// The host's environment with the changes asked for.
    fn environment(&self) -> Vec<Vec<u8>> {
        let mut variables: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        variables.retain(|(name, _)| !self.unset_environment.contains(name));
        // What is said last of a variable holds, as for `env`.
        for given in &self.environment {
            variables.retain(|(name, _)| *name != given.0);
            variables.push(given.clone());
        }
        let joined = |(name, value): (OsString, OsString)| [name.as_bytes(), b"=", value.as_bytes()].concat();
        variables.into_iter().map(joined).collect()
    }

    fn options(&self) -> Result<Options, Box<dyn Error>> {
        Ok(Options {
            sysroot: self.sysroot.clone(),
            allowed: self.allow.clone(),
            emulator: None,
            strace: self.strace,
            statistics: self.stats,
            keeps_standard_error: self.stats || self.strace || self.timing.is_some(),
            instructions_max: self.max_instructions,
            engine: self.engine()?,
            trace: self.trace.clone().map(|path| TraceFile {
                path,
                limit_bytes: self.trace_limit.0,
            }),
            reenter: self.reentry(),
        })
    }

    /// gdb, once it has connected.
    fn debugger(&self) -> Result<Option<Arc<dyn Debugger>>, Box<dyn Error>> {
        let Some(address) = &self.gdb else { return Ok(None) };
        let gdb = Gdb::new(&debugger_at(address)?).map_err(std::io::Error::from)?;
        Ok(Some(Arc::new(gdb)))
    }

    /// What runs the program: a translator, a model, or what watches it.
    fn engine(&self) -> Result<Option<Arc<dyn Engine>>, Box<dyn Error>> {
        if let Some(check) = self.check.wanted()? {
            return Ok(Some(Arc::new(Watched::new(check.ends, check.suppressions))));
        }
        if self.trace.is_some() || self.gdb.is_some() {
            return Ok(None);
        }
        let wanted = (self.stats, self.check_translation);
        let Some(Timing { parameters, sampling }) = self.timing.clone() else {
            return self.translation.engine(&self.program, wanted);
        };
        if sampling.is_none() && self.check_translation {
            return Err(
                "--check-translation is of a run without --timing: no cycle depends on what is translated"
                    .into(),
            );
        }
        if let (Some(parts), Some(kept)) = (&self.parts, &self.kept) {
            let report = Leave::new(parts, &self.program, !matches!(kept, Kept::Counters));
            return Ok(Some(Arc::new(self.model(parameters, kept.clone(), report)?)));
        }
        let report = TimingReport {
            first: (self.descriptor.is_empty()).then(std::process::id),
            program: self.program.clone(),
            profiled: self.profile.then(|| self.program.clone()),
            tells_booking: self.stats,
        };
        if let Some(sampling) = sampling {
            if self.profile || self.check_translation {
                let option = if self.profile {
                    "--profile"
                } else {
                    "--check-translation"
                };
                return Err(
                    format!("{option} is of a whole run, not of samples: leave `,sample=` out").into(),
                );
            }
            let between = self.translation.drivers_of(&self.program)?;
            let model = SampledModel::new(parameters, sampling, between, report);
            return Ok(Some(Arc::new(model)));
        }
        let kept = if self.profile {
            Kept::Profile
        } else {
            Kept::Counters
        };
        Ok(Some(Arc::new(self.model(parameters, kept, report)?)))
    }

    /// A model of a whole run. Only blocks that are booked as a whole are worth translating.
    fn model<R: Report>(
        &self,
        parameters: Parameters,
        kept: Kept,
        report: R,
    ) -> Result<Model<R>, Box<dyn Error>> {
        let executors = match (&kept, self.compute_blocks) {
            (Kept::Counters, false) => self.translation.executors_of(&self.program)?,
            _ if self.translation.is_asked() => {
                return Err(
                    "--translate beside --timing is for blocks that are booked as a whole: leave out --profile, \
                     --compute-blocks or what is sampled"
                        .into(),
                );
            }
            _ => None,
        };
        let model = Model::new(parameters, kept, report);
        Ok(model.book_blocks(!self.compute_blocks).execute_by(executors))
    }

    /// The command that runs another program in the same way; its environment is the program's own affair.
    fn reentry(&self) -> Vec<Vec<u8>> {
        let mut command: Vec<OsString> = vec!["sidestep".into(), "exec".into()];
        let mut flag = |given: bool, name: &str| {
            if given {
                command.push(name.into());
            }
        };
        flag(self.stats, "--stats");
        flag(self.strace, "--strace");
        flag(self.profile, "--profile");
        flag(self.compute_blocks, "--compute-blocks");
        flag(self.check_translation, "--check-translation");
        flag(
            self.translation.translate_synchronously,
            "--translate-synchronously",
        );
        flag(self.translation.perf_map, "--perf-map");
        let mut option = |name: &str, value: Option<OsString>| {
            if let Some(value) = value {
                command.extend([OsStr::new(name).into(), value]);
            }
        };
        let absolute = |path: &PathBuf| {
            std::path::absolute(path)
                .unwrap_or_else(|_| path.clone())
                .into_os_string()
        };
        option(
            "--timing",
            self.timing.as_ref().map(|timing| timing.to_string().into()),
        );
        option("--parts", self.parts.clone().map(PathBuf::into_os_string));
        option("--kept", self.kept.as_ref().map(|kept| kept.to_string().into()));
        option("--sysroot", self.sysroot.as_ref().map(absolute));
        option(
            "--max-instructions",
            self.max_instructions.map(|count| count.to_string().into()),
        );
        let translate = self.translation.translate;
        let translate = translate.and_then(|given| given.to_possible_value());
        option("--translate", translate.map(|value| value.get_name().into()));
        let trace = |path: &PathBuf| {
            [OsStr::new("insn="), absolute(path).as_os_str()]
                .into_iter()
                .collect()
        };
        option("--trace", self.trace.as_ref().map(trace));
        let limit = self.trace.as_ref().map(|_| self.trace_limit.0);
        option("--trace-limit", limit.map(|bytes| bytes.to_string().into()));
        command.extend(self.check.arguments());
        command.into_iter().map(OsString::into_vec).collect()
    }
}
