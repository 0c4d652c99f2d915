//! Starting a program: everything between a command line and the first instruction.

use std::convert::Infallible;
use std::ffi::CString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sidestep_ia64::Processor;
use sidestep_ia64::registers::application;
use sidestep_ia64::registers::status::rsc;
use thiserror::Error;

use crate::elf::load::{self, LoadError, Loaded};
use crate::elf::stack::{self, Arguments};
use crate::host::Errno;
use crate::memory::mapping::Mapping;
use crate::memory::{Memory, NAT_PAGE, mapping::Protection};
use crate::process::{Options, Process, Program};
use crate::signal::actions::Actions;
use crate::signal::deliver::FPSR_DEFAULT;
use crate::syscalls::paths;
use crate::syscalls::system::limit_of;
use crate::thread::Thread;

/// A program to run, and how.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Its file.
    pub program: PathBuf,
    /// Its arguments, the first of which is its name.
    pub arguments: Vec<Vec<u8>>,
    /// Its environment, as `NAME=VALUE`.
    pub environment: Vec<Vec<u8>>,
    /// How it is run.
    pub options: Options,
    /// Whether it starts with `SIGPIPE` ignored.
    pub pipe_ignored: bool,
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
    /// The sysroot is not a folder.
    #[error("{}: is not a folder, so it cannot be the sysroot", .0.display())]
    Sysroot(PathBuf),
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
            LaunchError::Reserve(_) | LaunchError::Sysroot(_) | LaunchError::Trace { .. } => 125,
        }
    }
}

/// Runs a program in this process, which ends as the program does.
///
/// # Errors
/// Only before the first instruction; nothing of the program has happened then.
pub fn run(launch: Launch) -> Result<Infallible, LaunchError> {
    check(&launch.options)?;
    let memory = Arc::new(Memory::new().map_err(LaunchError::Reserve)?);
    let sysroot = launch.options.sysroot.as_deref();
    let loaded = load::load(&memory, &launch.program, sysroot)?;
    let arguments = Arguments {
        path: launch.program.clone().into_os_string().into_encoded_bytes(),
        arguments: launch.arguments,
        environment: launch.environment,
    };
    let (processor, built) = first_processor(&memory, &launch.program, &loaded, &arguments)?;
    let program = Program {
        path: paths::absolute(&launch.program),
        arguments: built.arguments,
        auxiliary: built.auxiliary,
    };
    name_process(&launch.program);
    let actions = Actions::on_entry(launch.pipe_ignored);
    let process = Arc::new(Process::new(memory, actions, Arc::new(launch.options), program));
    let mut thread = Thread::new(process, processor);
    thread.blocked = crate::host::signals::set_mask(!0);
    let ending = thread.run();
    thread.end(ending);
    unreachable!("the first thread ends with the host process, or leaves it by itself")
}

/// Gives the host process the program's name, as `execve` would: `ps` and `/proc/self/comm` show it.
fn name_process(program: &Path) {
    let name = program.file_name().unwrap_or_default().as_encoded_bytes();
    if let Ok(name) = CString::new(name) {
        // SAFETY: the name is a live string, of which the kernel takes fifteen bytes.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    }
}

fn check(options: &Options) -> Result<(), LaunchError> {
    if let Some(sysroot) = &options.sysroot
        && !sysroot.is_dir()
    {
        return Err(LaunchError::Sysroot(sysroot.clone()));
    }
    if let Some(file) = &options.trace {
        let opened = File::options().create(true).append(true).open(file);
        opened.map_err(|cause| LaunchError::Trace {
            file: file.clone(),
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
