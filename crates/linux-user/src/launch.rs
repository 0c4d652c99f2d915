//! Starting a program: everything between a command line and the first instruction.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sidestep_ia64::Processor;
use sidestep_ia64::registers::application;
use sidestep_ia64::registers::status::rsc;
use thiserror::Error;

use crate::control::Control;
use crate::debugger::Debugger;
use crate::elf::load::{self, LoadError, Loaded};
use crate::elf::stack::{self, Arguments};
use crate::engine::Engine;
use crate::files::namespace::Namespace;
use crate::files::reserved::Reserved;
use crate::files::{Files, host_path_of};
use crate::host::limit_of;
use crate::host::signals::{self, Before};
use crate::host::standard;
use crate::host::{self, Errno, How};
use crate::inheritance;
use crate::memory::mapping::Mapping;
use crate::memory::{Memory, NAT_PAGE, mapping::Protection};
use crate::process::{Ending, Options, Process, Program, STATUS_FAILED};
use crate::signal::actions::{Actions, ignored_on_entry};
use crate::thread::Thread;
use crate::thread::delivery::FPSR_DEFAULT;

/// A program to run, and how.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// Its file.
    pub program: PathBuf,
    /// Its arguments, the first of which is its name.
    pub arguments: Vec<Vec<u8>>,
    /// Its environment, as `NAME=VALUE`.
    pub environment: Vec<Vec<u8>>,
    /// How it is run.
    pub options: Options,
    /// Who debugs it, if somebody does. Under an engine or a trace its threads cannot be stepped.
    pub debugger: Option<Arc<dyn Debugger>>,
    /// Whether it starts with `SIGPIPE` ignored.
    pub pipe_ignored: bool,
    /// What a program that executed this one left to it: see [`inheritance`].
    pub inherited: Vec<(Vec<u8>, RawFd)>,
    /// Limits that hold for it and not for the emulator: resource, soft and hard.
    pub limits: Vec<(u32, [u64; 2])>,
}

/// Why a program could not be started.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// It cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The host grants no address space for it.
    #[error("no address space can be reserved for the program: {0}")]
    Reserve(Errno),
    /// The sysroot, or what is allowed beside it, is not a folder.
    #[error("{}: is not a folder, so it cannot be what a program sees of the host's files", .0.display())]
    Sysroot(PathBuf),
    /// A folder or the emulator cannot be opened.
    #[error("{}: cannot be opened", path.display())]
    Folder {
        /// Its path.
        path: PathBuf,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// The host grants no descriptor.
    #[error("no descriptor can be had for the emulator's own files: {0}")]
    Descriptor(Errno),
    /// What an executing program left is not what such a program leaves.
    #[error("{0}: is not a descriptor that a program leaves to the one that it executes")]
    Inherited(String),
    /// A program runs already.
    #[error("one process runs one program at a time, and this one runs one already")]
    Running,
    /// The trace file cannot be written.
    #[error("{}: cannot be written as the trace", file.display())]
    Trace {
        /// Its path.
        file: PathBuf,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
}

impl LaunchError {
    /// The exit status that shells and `env` use: 127 for a file that is not there, 126 for one that cannot run.
    pub fn exit_status(&self) -> u8 {
        match self {
            LaunchError::Load(LoadError::Open { cause, .. })
                if cause.kind() == std::io::ErrorKind::NotFound =>
            {
                127
            }
            LaunchError::Load(_) => 126,
            _ => STATUS_FAILED as u8,
        }
    }
}

/// Whether a program runs in this process: signal dispositions and the current folder are the process's own.
static RUNNING: AtomicBool = AtomicBool::new(false);

/// Runs a program in this process to its end, and answers how it ended. Its first thread is the calling one.
///
/// Signal dispositions and mask, the current folder and the process's name are as before then. What else the program
/// asked of the kernel for its process (descriptors, limits, user and group) stays as it left it. A child that the
/// program forks is a process of its own, which never comes back from here; a program that it executes replaces the
/// process.
///
/// # Errors
/// Only before the first instruction; nothing of the program has happened then.
pub fn run(launch: Launch) -> Result<Ending, LaunchError> {
    let running = Running::begin()?;
    run_under(&running, launch, |ending| ending)
}

/// Runs a program as [`run`] does, and ends this process as the program ended; comes back only with an error. What the
/// program leaves behind (a timer, a signal that it blocks) then reaches nobody, as on Linux.
pub fn run_to_exit(launch: Launch) -> LaunchError {
    let running = match Running::begin() {
        Ok(running) => running,
        Err(error) => return error,
    };
    match run_under(&running, launch, |ending| ending.leave()) {
        Ok(never) => never,
        Err(error) => error,
    }
}

/// Runs a program, and does with its end what `finish` says before anything of it is taken apart.
fn run_under<T>(
    running: &Running,
    launch: Launch,
    finish: impl FnOnce(Ending) -> T,
) -> Result<T, LaunchError> {
    check(&launch.options)?;
    let keeps = launch.options.keeps_standard_error;
    let _kept = keeps.then(KeptStandardError::keep);
    let (file, files) = open_files(&launch)?;
    if let Some(resumption) = launch.options.engine.as_deref().and_then(Engine::resumption) {
        signals::set_resumption(resumption);
    }
    if let Some(exceptions) = launch.options.engine.as_deref().and_then(Engine::host_exceptions) {
        signals::set_exceptions(exceptions);
    }
    signals::let_library_settle();
    let ignored = ignored_on_entry(launch.pipe_ignored);
    let memory = Arc::new(Memory::new().map_err(LaunchError::Reserve)?);
    let tree = files.namespace();
    let loaded = load::load(&memory, &launch.program, file, tree.as_deref())?;
    let arguments = Arguments {
        path: launch.program.clone().into_os_string().into_encoded_bytes(),
        arguments: launch.arguments,
        environment: launch.environment,
    };
    let (mut processor, built) = first_processor(&memory, &launch.program, &loaded, &arguments)?;
    let engine = launch.options.engine.as_deref();
    if engine.is_none_or(Engine::permits_deep_register_stack) {
        processor.register_stack_mut().deepen();
    }
    let path = host_path_of(files.program.as_raw_fd()).unwrap_or_default();
    let path = tree.and_then(|tree| tree.guest_path(&path)).unwrap_or(path);
    let program = Program {
        path: OsString::from_vec(path).into(),
        text: loaded.range_of(libc::PROT_EXEC),
        data: loaded.range_of(libc::PROT_WRITE),
        arguments: built.arguments,
        environment: built.environment,
        stack: built.top,
        auxiliary: built.auxiliary,
    };
    name_process(launch.program.file_name().unwrap_or_default().as_encoded_bytes());
    let actions = Actions::on_entry(ignored);
    let mut process = Process::new(
        memory,
        actions,
        Arc::new(launch.options),
        program,
        Arc::new(files),
    );
    if let Some(debugger) = &launch.debugger {
        process = process.controlled(Arc::new(Control::new(debugger.listener())));
    }
    let process = Arc::new(process);
    *process.limits() = launch.limits.into_iter().collect();
    process.keep_limits();
    if let (Some(debugger), Some(control)) = (&launch.debugger, process.control()) {
        debugger.begin(process.clone(), control.clone());
    }
    let mut thread = Thread::new(process.clone(), processor);
    thread.blocked = running.signals.mask();
    standard::close_again();
    let ended = thread.run();
    thread.end(ended);
    // The thread is still there: a process that ends here need not take its memory apart.
    Ok(finish(process.conclude()))
}

/// The standard error as it was when a program started, to which messages go whatever the program does with its own.
///
/// Whoever reads it waits for its end for as long as this is held.
struct KeptStandardError {
    _descriptor: Reserved,
}

impl KeptStandardError {
    /// Keeps it; `None` where the host grants no descriptor, or there is no standard error.
    fn keep() -> Option<KeptStandardError> {
        let descriptor = Reserved::new(&std::io::stderr()).ok()?;
        host::print_errors_to(descriptor.as_raw_fd());
        Some(KeptStandardError {
            _descriptor: descriptor,
        })
    }
}

impl Drop for KeptStandardError {
    fn drop(&mut self) {
        host::print_errors_to(libc::STDERR_FILENO);
    }
}

/// What [`run`] leaves as it found it.
struct Running {
    folder: Option<Reserved>,
    name: [u8; 16],
    signals: Before,
}

impl Running {
    fn begin() -> Result<Running, LaunchError> {
        if RUNNING.swap(true, Ordering::AcqRel) {
            return Err(LaunchError::Running);
        }
        Ok(Running {
            folder: current_folder(),
            name: process_name(),
            signals: Before::note(),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            // SAFETY: changing the folder touches no memory.
            unsafe { libc::fchdir(folder.as_raw_fd()) };
        }
        name_process(self.name.split(|byte| *byte == 0).next().unwrap_or_default());
        self.signals.restore();
        RUNNING.store(false, Ordering::Release);
    }
}

/// The folder to go back to; none where it cannot be opened.
fn current_folder() -> Option<Reserved> {
    let folder = host::open(libc::AT_FDCWD, b".", &FOLDER).ok()?;
    Reserved::new(&folder).ok()
}

/// How a folder is opened to be gone back to.
const FOLDER: How = How {
    flags: (libc::O_PATH | libc::O_CLOEXEC) as u64,
    mode: 0,
    resolve: 0,
};

/// Opens the program, and what it may name.
fn open_files(launch: &Launch) -> Result<(File, Files), LaunchError> {
    let unusable = |path: &Path| {
        let path = path.to_path_buf();
        move |cause| LaunchError::Folder { path, cause }
    };
    let mut inherited = inheritance::Inherited::take(&launch.inherited).map_err(LaunchError::Inherited)?;
    let namespace = match (inherited.namespace.take(), &launch.options.sysroot) {
        (Some(namespace), _) => Some(namespace),
        (None, Some(root)) => {
            if let Some(bad) = [root]
                .into_iter()
                .chain(&launch.options.allowed)
                .find(|path| !path.is_dir())
            {
                return Err(LaunchError::Sysroot(bad.clone()));
            }
            Some(Namespace::new(root, &launch.options.allowed).map_err(unusable(root))?)
        }
        (None, None) => None,
    };
    let file = match inherited.program.take() {
        Some(file) => File::from(file),
        None => load::open(&launch.program)?,
    };
    let reserve = |file: &dyn AsRawFd| Reserved::new(&file.as_raw_fd()).map_err(LaunchError::Descriptor);
    let emulator = launch
        .options
        .emulator
        .as_deref()
        .unwrap_or(Path::new("/proc/self/exe"));
    let emulator_file = host::open(libc::AT_FDCWD, emulator.as_os_str().as_encoded_bytes(), &FOLDER);
    let emulator_file = emulator_file.map_err(|error| unusable(emulator)(error.into()))?;
    let files = Files::new(namespace, reserve(&file)?, reserve(&emulator_file)?);
    Ok((file, files))
}

/// Gives the host process the program's name, as `execve` would: `ps` and `/proc/self/comm` show it.
fn name_process(name: &[u8]) {
    if let Ok(name) = CString::new(name) {
        // SAFETY: the name is a live string, of which the kernel takes fifteen bytes.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    }
}

fn process_name() -> [u8; 16] {
    let mut name = [0u8; 16];
    // SAFETY: the kernel writes sixteen bytes.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name
}

fn check(options: &Options) -> Result<(), LaunchError> {
    if let Some(file) = &options.trace {
        let opened = File::options().create(true).append(true).open(&file.path);
        opened.map_err(|cause| LaunchError::Trace {
            file: file.path.clone(),
            cause,
        })?;
    }
    Ok(())
}

/// Sets up the stacks and the registers with which Linux 6.1 starts a program.
fn first_processor(
    memory: &Arc<Memory>,
    file: &Path,
    loaded: &Loaded,
    arguments: &Arguments,
) -> Result<(Processor, stack::Built), LaunchError> {
    let failed = |cause| LoadError::Stack {
        file: file.into(),
        cause,
    };
    let [soft, hard] = limit_of(libc::RLIMIT_STACK).map_err(failed)?;
    let room = soft.min(hard) / 4;
    if arguments.size() > room.max(128 << 10) {
        return Err(LoadError::TooManyArguments {
            file: file.into(),
            size: arguments.size(),
            room,
        }
        .into());
    }
    let stacks = memory
        .map_stacks(soft, hard, loaded.image.executable_stack)
        .map_err(failed)?;
    memory
        .mappings_mut()
        .insert(NAT_PAGE, Mapping::anonymous(Protection::NONE));
    let built = stack::build(memory, stacks.memory_top, arguments, loaded).map_err(failed)?;
    let mut processor = Processor::new(memory.clone());
    let eager = rsc::MODE | 3 << rsc::PRIVILEGE_SHIFT;
    processor.set_application(application::RSC, eager);
    processor.set_application(application::FPSR, FPSR_DEFAULT);
    processor.register_stack_mut().restart(stacks.backing_store, 0);
    processor.general.set(12, built.top - 16);
    processor.set_instruction_pointer(loaded.start, 0);
    Ok((processor, built))
}
