//! Calls of a child that is stopped at each: ptrace, with PTRACE_SYSEMU, so that the kernel makes none of them.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use sidestep_lab::PointError;
use sidestep_sidecall::sidecore::pin;

use super::supervised::{Intercepted, Reply};
use super::work::{BATCH, Operation, SAMPLES, Work, now_ns};
use super::{Cores, Samples, failed, unavailable};

/// What parent and child share: the samples, and how far the child came.
#[repr(C)]
struct Shared {
    samples: [AtomicU64; SAMPLES],
    state: AtomicU64,
}

const RUNS: u64 = 0;
const DONE: u64 = 1;
const FAILED: u64 = 2;

pub fn by_stops(work: &Work, operation: Operation, cores: Cores) -> Result<Samples, PointError> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let size = size_of::<Shared>();
    // SAFETY: the kernel chooses addresses that nothing has.
    let start = unsafe { mmap_anonymous(std::ptr::null_mut(), size, access, MapFlags::SHARED) };
    let start = start.map_err(unavailable)?;
    // SAFETY: zeros are valid atomic words, the kernel aligns to pages, and the mapping stays until below.
    let shared = unsafe { &*start.cast::<Shared>() };
    // SAFETY: the child calls what may be called after a fork only: the kernel, and the clock.
    let samples = match unsafe { libc::fork() } {
        -1 => Err(unavailable(io::Error::last_os_error())),
        0 => child(work, operation, cores.own, shared),
        child => {
            let child = Child(child);
            let traced = pin(cores.other).and_then(|()| trace(&child, shared));
            let done = shared.state.load(Ordering::Acquire);
            match (traced, done) {
                (Err(error), _) => Err(unavailable(format!("ptrace: {error}"))),
                (Ok(()), DONE) => Ok(shared
                    .samples
                    .iter()
                    .map(|sample| sample.load(Ordering::Acquire))
                    .collect()),
                (Ok(()), _) => Err(failed("a call of the traced child failed")),
            }
        }
    };
    // SAFETY: the mapping is this function's, and nothing borrows it any more.
    let _ = unsafe { munmap(start, size) };
    samples
}

/// The life of the child, which the parent ends.
fn child(work: &Work, operation: Operation, core: usize, shared: &Shared) -> ! {
    // SAFETY: system calls with numbers for arguments.
    unsafe {
        // However the parent's thread ends, the child does, too.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        let is_traced = libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == 0;
        if !is_traced || pin(core).is_err() {
            libc::_exit(1);
        }
        libc::raise(libc::SIGSTOP);
    }
    let mut state = DONE;
    'rounds: for sample in &shared.samples {
        let start = now_ns();
        for _ in 0..BATCH {
            if work.directly(operation).is_err() {
                state = FAILED;
                break 'rounds;
            }
        }
        sample.store((now_ns() - start) / BATCH as u64, Ordering::Release);
    }
    shared.state.store(state, Ordering::Release);
    loop {
        // Stopped here, too, and then killed.
        // SAFETY: it takes no argument.
        unsafe { libc::getppid() };
    }
}

/// A child that is killed, and waited for, at the latest when nobody needs it any more.
struct Child(i32);

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: it is this thread's child and was not waited for, so the number is still its own.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), libc::__WALL);
        }
    }
}

impl Child {
    /// Waits until the child has stopped.
    fn stopped(&self) -> io::Result<()> {
        let mut status = 0;
        // SAFETY: the status is this function's.
        if unsafe { libc::waitpid(self.0, &mut status, libc::__WALL) } < 0 {
            return Err(io::Error::last_os_error());
        }
        match libc::WIFSTOPPED(status) {
            true => Ok(()),
            false => Err(io::Error::other("the child ended")),
        }
    }

    fn request(&self, request: libc::c_uint, data: usize) -> io::Result<()> {
        // SAFETY: requests without data, with a number, or with the address of a structure of the caller's.
        match unsafe { libc::ptrace(request, self.0, 0, data) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn trace(child: &Child, shared: &Shared) -> io::Result<()> {
    child.stopped()?;
    child.request(libc::PTRACE_SETOPTIONS, libc::PTRACE_O_EXITKILL as usize)?;
    loop {
        child.request(libc::PTRACE_SYSEMU, 0)?;
        child.stopped()?;
        if shared.state.load(Ordering::Acquire) != RUNS {
            return Ok(());
        }
        // SAFETY: a structure of numbers.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        child.request(libc::PTRACE_GETREGS, (&raw mut registers).expose_provenance())?;
        let intercepted = Intercepted {
            process: child.0,
            number: registers.orig_rax as i64,
            arguments: [
                registers.rdi,
                registers.rsi,
                registers.rdx,
                registers.r10,
                registers.r8,
                registers.r9,
            ],
        };
        // Files stay the supervisor's, and the child has their numbers.
        registers.rax = match intercepted.serve() {
            Reply::Value(value) => value as u64,
            Reply::File(file) => file as u64,
        };
        child.request(libc::PTRACE_SETREGS, (&raw mut registers).expose_provenance())?;
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn trace(_child: &Child, _shared: &Shared) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "registers are read on x86-64 only",
    ))
}
