//! `sidestep ci`: a kernel or a disk to boot and commands in; an exit code, a log, JUnit's XML and a recording out.

mod dialogue;
mod recording;
mod report;

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, LineWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, Weak};

use clap::Args;
use regex::bytes::Regex;
use sidestep_machine::End;
use sidestep_machine::description::disks::DiskTable;
use sidestep_machine::description::kernel::{Built, Consoles};
use sidestep_machine::machine::hypercall::Console;
use sidestep_machine::machine::platform::Platform;
use sidestep_machine::machine::timeline::{Phase, TICKS_PER_SECOND};
use sidestep_machine::storage::scsi::Medium;
use sidestep_runner::causes::with_causes;
use sidestep_runner::machine::execution::{Execution, Prepared, Way};

use self::dialogue::{Dialogue, Result as Ended, Script, Step};
use self::recording::{Recording, copy_image};
use super::run::execution::{PANICKED, SIGNALLED, Watcher, stop_on_signals};
use super::run::kernel::KernelMachine;
use super::translate::{self, Translate};
use super::{LIMIT_REACHED, Outcome, lock};

/// The console's log, in the folder of the results.
const LOG: &str = "console.log";
/// The results, in their folder.
const RESULTS: &str = "junit.xml";
/// The exit code when a command has failed.
const FAILED: u8 = 1;

/// Boot a kernel or a disk, run commands in the guest, and say how each ended: for continuous integration.
///
/// The commands are typed at the serial console when the shell asks, in virtual time: the same kernel, disks and
/// commands do the same each time, to the instruction. Each is run by `sh -c` with nothing to read. Exits with 0 when
/// all have ended with 0; with 1 when one has not or the guest has ended before; 70 when its kernel has panicked; 124
/// when a step has taken longer than the limit.
#[derive(Args)]
pub struct Ci {
    #[command(flatten)]
    machine: KernelMachine,
    /// A disk, as of `run`. The guest writes to a copy in the folder of the results; the image stays as it is.
    #[arg(long, value_name = "FILE[,OPTION]...")]
    disk: Vec<DiskTable>,
    /// What the guest's shell runs; may be given several times, and the first that fails is the last.
    #[arg(long = "command", value_name = "COMMAND", required = true)]
    commands: Vec<String>,
    /// Run the commands behind one that has failed, too.
    #[arg(long)]
    keep_going: bool,
    /// Who logs in where the console asks for a name.
    #[arg(long, value_name = "NAME")]
    login: Option<String>,
    /// With --login: the password, where the console asks for one.
    #[arg(long, value_name = "TEXT", requires = "login", default_value = "")]
    password: String,
    /// What the line ends with in which the shell waits for a command, as a regular expression.
    #[arg(long, value_name = "REGEX", default_value = "[#$] $")]
    prompt: Regex,
    /// What is typed behind the last command, for the guest to switch the machine off; nothing, to stop it as it is.
    #[arg(long, value_name = "COMMAND", default_value = "poweroff")]
    shutdown: String,
    /// How long the boot and each command may take, in seconds of the machine's time.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    limit: u64,
    /// The folder for results: `console.log`, `junit.xml`, the guest's copies of the disks, and the recording.
    #[arg(long, value_name = "FOLDER", default_value = "sidestep-ci")]
    output: PathBuf,
    /// Save the machine and its disks before each command, and keep what the first that fails is replayed from.
    #[arg(long)]
    record: bool,
    /// Do not show the console on the standard output; the log has it.
    #[arg(long)]
    quiet: bool,
    /// Translate the guest's code into code of the host: what runs often, everything, or nothing [default: auto, in a
    /// build with the translator].
    #[arg(long, value_name = "WHAT", value_enum)]
    translate: Option<Translate>,
}

/// What the console's two sides share: the machine, and whoever looks at it.
struct Conversation {
    dialogue: Dialogue,
    log: LineWriter<File>,
    is_shown: bool,
    /// Why the log has an end, if it cannot be written.
    lost: Option<io::Error>,
    platform: Weak<Platform>,
    /// Whether the step has taken longer than it may.
    is_late: bool,
}

/// The machine's side of the console.
struct Listener(Arc<Mutex<Conversation>>);

impl Console for Listener {
    fn write(&mut self, bytes: &[u8]) {
        let mut conversation = lock(&self.0);
        if let Err(error) = conversation.log.write_all(bytes) {
            conversation.lost.get_or_insert(error);
        }
        if conversation.is_shown {
            // Whoever stops reading has the log.
            let _ = io::stdout().write_all(bytes);
        }
        let Some(platform) = conversation.platform.upgrade() else {
            return;
        };
        if conversation.dialogue.hear(bytes, platform.timeline.now()) || conversation.lost.is_some() {
            platform.request_stop();
        }
    }

    fn read(&mut self) -> Option<u8> {
        lock(&self.0).dialogue.next_typed()
    }
}

impl Ci {
    /// Boots, runs the commands, and writes the results.
    pub fn run(mut self) -> Outcome {
        let boots = match (
            &self.machine.kernel,
            self.machine.start_given(),
            self.disk.is_empty(),
        ) {
            (Some(_), ..) => "--kernel",
            (None, None, false) => "--disk",
            (None, Some(option), false) => {
                return Err(format!("{option} is of a kernel: --kernel VMLINUX").into());
            }
            (None, _, true) => {
                return Err("what is booted? --kernel VMLINUX, or a --disk with firmware's files".into());
            }
        };
        let script = Script {
            login: self.login.take(),
            password: std::mem::take(&mut self.password),
            prompt: self.prompt.clone(),
            commands: std::mem::take(&mut self.commands),
            keeps_going: self.keep_going,
            shutdown: std::mem::take(&mut self.shutdown),
        };
        if let Some(unfit) = script.unfit() {
            return Err(format!(
                "--command {unfit:.60}: is no line that a terminal takes, which is shorter than \
                4,000 bytes; put it into a script"
            )
            .into());
        }
        let drivers = translate::Options {
            translate: self.translate,
            translate_synchronously: false,
            perf_map: false,
        }
        .drivers()?;
        let output = self.output.clone();
        let cannot = |error| {
            format!(
                "{}: cannot be the folder of the results: {error}",
                output.display()
            )
        };
        fs::create_dir_all(&self.output).map_err(cannot)?;
        let log = File::create(self.output.join(LOG)).map_err(cannot)?;
        let written = self.copy_disks()?;
        let recording = match self.record {
            true => Some(Recording::new(&self.output, written).map_err(cannot)?),
            false => None,
        };
        let conversation = Arc::new(Mutex::new(Conversation {
            dialogue: Dialogue::new(script),
            log: LineWriter::new(log),
            is_shown: !self.quiet,
            lost: None,
            platform: Weak::new(),
            is_late: false,
        }));
        let description = self.machine.describe(self.disk);
        let consoles = Consoles {
            serial: Box::new(Listener(Arc::clone(&conversation))),
            virtio: None,
        };
        let built = description
            .placed(Path::new(""))
            .build_with(consoles)
            .map_err(|error| format!("{boots}: {error}"))?;
        let run = Running {
            conversation,
            recording,
            limit: self.limit,
            output: self.output,
        };
        run.execute(built, drivers.map_or(Way::Plain, Way::Driven))
    }

    /// Puts copies into the places of disks that the guest may write to; answers the copies.
    fn copy_disks(&mut self) -> Result<Vec<PathBuf>, String> {
        let mut copies = Vec::new();
        for (index, disk) in self.disk.iter_mut().enumerate() {
            if disk.read_only || disk.media == Medium::Cdrom {
                continue;
            }
            let copy = self.output.join(format!("disk{index}"));
            copy_image(&disk.file, &copy)
                .map_err(|error| format!("{}: cannot be copied as a disk: {error}", disk.file.display()))?;
            disk.file.clone_from(&copy);
            copies.push(copy);
        }
        Ok(copies)
    }
}

/// A machine with which commands are talked about.
struct Running {
    conversation: Arc<Mutex<Conversation>>,
    recording: Option<Recording>,
    /// How long a step may take, in seconds.
    limit: u64,
    output: PathBuf,
}

impl Running {
    /// Runs the machine to its end, and writes the results.
    fn execute(mut self, built: Built, way: Way) -> Outcome {
        let mut prepared = Prepared::whole(built.machine, built.parts);
        let platform = Arc::clone(prepared.machine.platform());
        lock(&self.conversation).platform = Arc::downgrade(&platform);
        let watcher = stop_on_signals()?;
        watcher.watch(&platform);
        (platform.loops).tell(|found| say!("sidestep: {found}"));
        let execution = Execution {
            way,
            instructions_max: None,
            in_virtual_time: true,
        };
        let mut failure = None;
        let mut look = |prepared: &mut Prepared, stopped: Option<End>| {
            self.attend(prepared, stopped, &watcher).unwrap_or_else(|error| {
                failure = Some(error);
                Some(End::Stopped)
            })
        };
        let finished = execution.run(&mut prepared, &mut look);
        let end = finished.map_err(|error| with_causes(&error))?.end;
        if let Some(failure) = failure {
            return Err(failure);
        }
        let (tick, executed) = (platform.timeline.now(), prepared.machine.executed());
        let panic = platform.ending.panic();
        drop((prepared, platform));
        self.end(end, panic, tick);
        if let Some(recording) = &mut self.recording
            && lock(&self.conversation).dialogue.has_failed()
        {
            recording.fail(executed);
        }
        self.report(end, watcher.signal())
    }

    /// Looks at a machine before it starts and whenever it stands still: a step begins, or one is late.
    fn attend(
        &mut self,
        prepared: &mut Prepared,
        stopped: Option<End>,
        watcher: &Watcher,
    ) -> Result<Option<End>, Box<dyn Error>> {
        let platform = Arc::clone(prepared.machine.platform());
        let mut conversation = lock(&self.conversation);
        let conversation = &mut *conversation;
        if let Some(error) = conversation.lost.take() {
            return Err(format!("{}: {error}", self.output.join(LOG).display()).into());
        }
        if watcher.has_signal() {
            return Ok(stopped);
        }
        if conversation.is_late {
            return Ok(Some(End::Limit));
        }
        let dialogue = &conversation.dialogue;
        if let Some(recording) = &mut self.recording {
            match dialogue.step() {
                _ if dialogue.has_failed() => recording.fail(prepared.machine.executed()),
                Step::Command(_) => recording.begin(prepared, &dialogue.unread())?,
                Step::Boot | Step::Shutdown => {}
            }
        }
        if dialogue.is_over() || dialogue.is_stranded() {
            return Ok(Some(End::Exit(0)));
        }
        let (step, shared) = (dialogue.step(), Arc::downgrade(&self.conversation));
        let late_at = platform
            .timeline
            .now()
            .saturating_add(self.limit * TICKS_PER_SECOND);
        platform.timeline.schedule(late_at, Phase::Interrupt, move |_| {
            let Some(conversation) = shared.upgrade() else {
                return;
            };
            let mut conversation = lock(&conversation);
            if conversation.dialogue.step() == step {
                conversation.is_late = true;
                if let Some(platform) = conversation.platform.upgrade() {
                    platform.request_stop();
                }
            }
        });
        Ok(None)
    }

    /// Ends the step in which the machine has ended.
    fn end(&self, end: End, panic: Option<String>, tick: u64) {
        let mut conversation = lock(&self.conversation);
        let dialogue = &mut conversation.dialogue;
        let result = match end {
            End::Exit(_) if dialogue.step() == Step::Shutdown => Ended::Passed,
            End::Exit(_) if dialogue.is_stranded() => Ended::Broken(
                "nothing on the disks boots: the log says what the firmware has looked at".to_owned(),
            ),
            End::Exit(_) => Ended::Broken("the guest has switched the machine off".to_owned()),
            End::Reset => Ended::Broken("the guest has reset the machine".to_owned()),
            End::Panic => {
                let reason = panic.unwrap_or_else(|| "it gave no reason".to_owned());
                Ended::Broken(format!("the guest's kernel panicked: {reason}"))
            }
            End::Limit => {
                let line = dialogue.last_line();
                let asked = match (dialogue.step(), line.ends_with(b"login: ")) {
                    (Step::Boot, true) => "; the console asks who logs in: --login NAME",
                    _ => "",
                };
                let line = String::from_utf8_lossy(&line);
                Ended::Broken(format!(
                    "not over after {} s of the machine's time; its last line is `{}`{asked}",
                    self.limit,
                    line.trim()
                ))
            }
            End::Deadlock => {
                Ended::Broken("every processor waits or is stopped, and nothing will wake one".to_owned())
            }
            End::Halted(_) | End::Stopped => Ended::Broken("it was interrupted".to_owned()),
        };
        dialogue.end_step(result, tick);
    }

    /// Writes the results, and says how it ended.
    fn report(self, end: End, signal: Option<i32>) -> Outcome {
        let mut conversation = lock(&self.conversation);
        let log = self.output.join(LOG);
        (conversation.log.flush()).map_err(|error| format!("{}: {error}", log.display()))?;
        // As with what was shown before.
        let _ = io::stdout().flush();
        let dialogue = &conversation.dialogue;
        let results = self.output.join(RESULTS);
        let text = report::junit(dialogue.done(), dialogue.commands())?;
        sidestep_files::write(&results, text.as_bytes())?;
        if conversation.is_shown {
            say!("");
        }
        for done in dialogue.done() {
            say!("{}", report::line(done, dialogue.commands()).trim_end());
        }
        say!("results: {}, {}", results.display(), log.display());
        let replay = self.recording.map(Recording::finish).transpose()?.flatten();
        if let Some(replay) = replay {
            say!("what failed is replayed, up to that instruction, by\n  {replay}");
        }
        if let Some(signal) = signal {
            return Ok(ExitCode::from(u8::try_from(SIGNALLED + signal).unwrap_or(1)));
        }
        Ok(match end {
            End::Panic => ExitCode::from(PANICKED),
            End::Limit => ExitCode::from(LIMIT_REACHED),
            _ if dialogue.has_failed() => ExitCode::from(FAILED),
            _ => ExitCode::SUCCESS,
        })
    }
}
