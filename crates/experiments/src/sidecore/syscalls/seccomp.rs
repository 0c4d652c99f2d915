//! Calls that a filter hands to a supervisor: seccomp's user notification, with files given by ADDFD.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::mpsc;

use sidestep_lab::PointError;
use sidestep_sidecall::sidecore::pin;

use super::supervised::{Intercepted, Reply};
use super::work::{Operation, Work, timed};
use super::{Cores, Samples, failed, unavailable};

/// The first argument of the getpid that says that the round is over.
const END: u64 = 0x51de;

/// The calls that the supervisor makes.
const INTERCEPTED: &[libc::c_long] = &[
    libc::SYS_getpid,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_openat,
    libc::SYS_newfstatat,
];

pub fn by_notification(work: &Work, operation: Operation, cores: Cores) -> Result<Samples, PointError> {
    let (send, receive) = mpsc::channel();
    std::thread::scope(|scope| {
        // The filter is the thread's for good, so that the thread is one for this.
        let calling = scope.spawn(move || {
            let listener = listen().map_err(|error| unavailable(format!("seccomp: {error}")))?;
            let has_supervisor = send.send(listener).is_ok();
            let samples = timed(|| work.directly(operation)).map_err(failed);
            if has_supervisor {
                // SAFETY: the call takes no argument, and the kernel hands on what stands there.
                unsafe { libc::syscall(libc::SYS_getpid, END) };
            }
            samples
        });
        if let Ok(listener) = receive.recv() {
            pin(cores.other).map_err(unavailable)?;
            supervise(&listener).map_err(failed)?;
        }
        let samples = calling.join();
        samples.unwrap_or_else(|_| Err(PointError::Panicked("the intercepted thread".to_owned())))
    })
}

/// Installs the filter for the calling thread; where its notifications come.
fn listen() -> io::Result<OwnedFd> {
    // Classic BPF: the number of the call is the first word of what the filter is given.
    let statement = |code: u32, value: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k: value,
    };
    let mut filter = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for (index, number) in INTERCEPTED.iter().enumerate() {
        filter.push(libc::sock_filter {
            // To the last statement, over the numbers that follow and the one that allows.
            jt: (INTERCEPTED.len() - index) as u8,
            ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, *number as u32)
        });
    }
    filter.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    filter.push(statement(
        libc::BPF_RET | libc::BPF_K,
        libc::SECCOMP_RET_USER_NOTIF,
    ));
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the program lives through the call, which copies it; the descriptor is a new one, and nobody else's.
    unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
        let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        match libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
        ) {
            listener @ 0.. => Ok(OwnedFd::from_raw_fd(listener as i32)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn supervise(listener: &OwnedFd) -> io::Result<()> {
    let control = |request, argument: *mut libc::c_void| {
        // SAFETY: each request comes with the structure that it is defined for.
        match unsafe { libc::ioctl(listener.as_raw_fd(), request, argument) } {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    loop {
        // SAFETY: a structure of numbers; the kernel wants zeros.
        let mut asked: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        control(libc::SECCOMP_IOCTL_NOTIF_RECV, (&raw mut asked).cast())?;
        let intercepted = Intercepted {
            process: asked.pid as i32,
            number: asked.data.nr.into(),
            arguments: asked.data.args,
        };
        let is_end = intercepted.number == libc::SYS_getpid && asked.data.args[0] == END;
        match intercepted.serve() {
            Reply::Value(value) => {
                let mut reply = libc::seccomp_notif_resp {
                    id: asked.id,
                    val: if value < 0 { 0 } else { value },
                    error: if value < 0 { value as i32 } else { 0 },
                    flags: 0,
                };
                control(libc::SECCOMP_IOCTL_NOTIF_SEND, (&raw mut reply).cast())?;
            }
            Reply::File(file) => {
                // SAFETY: the supervisor has just opened it; it is closed when it has been given.
                let file = unsafe { OwnedFd::from_raw_fd(file) };
                let mut given = libc::seccomp_notif_addfd {
                    id: asked.id,
                    flags: libc::SECCOMP_ADDFD_FLAG_SEND as u32,
                    srcfd: file.as_raw_fd() as u32,
                    newfd: 0,
                    newfd_flags: libc::O_CLOEXEC as u32,
                };
                control(libc::SECCOMP_IOCTL_NOTIF_ADDFD, (&raw mut given).cast())?;
            }
        }
        if is_end {
            return Ok(());
        }
    }
}
