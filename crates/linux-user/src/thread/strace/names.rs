//! The names of flags and of enumerated values in the arguments of system calls.
//!
//! The values are the host's: both kernels take them from the same generic lists.

use std::fmt::Write;

/// Named values: one field of alternatives, and single bits.
#[derive(Debug)]
pub struct Names {
    /// The bits of the field that holds one of the alternatives.
    field: u64,
    /// The alternatives.
    values: &'static [(u64, &'static str)],
    /// The single bits.
    bits: &'static [(u64, &'static str)],
}

impl Names {
    /// `A|B|0x40`: the names of a 32-bit value, and what has none as a number.
    pub fn describe(&self, value: u64) -> String {
        let value = value & 0xffff_ffff;
        let mut text = String::new();
        let mut rest = value;
        let alternative = self
            .values
            .iter()
            .find(|(alternative, _)| *alternative == value & self.field & 0xffff_ffff);
        if let Some((number, name)) = alternative {
            rest &= !number;
            if *number != 0 || value == 0 || self.field != u64::MAX {
                text.push_str(name);
            }
        }
        for (bit, name) in self.bits {
            if rest & bit == *bit {
                rest &= !bit;
                separate(&mut text);
                text.push_str(name);
            }
        }
        if rest != 0 || text.is_empty() {
            separate(&mut text);
            let _ = if rest > 9 {
                write!(text, "{rest:#x}")
            } else {
                write!(text, "{rest}")
            };
        }
        text
    }
}

fn separate(text: &mut String) {
    if !text.is_empty() {
        text.push('|');
    }
}

/// The value of a constant, whatever its type.
macro_rules! value {
    ($name:ident) => {
        libc::$name as u32 as u64
    };
}

/// Flags of `open`.
#[rustfmt::skip]
pub const OPEN: &Names = &Names {
    field: 3,
    values: &[(value!(O_RDONLY), "O_RDONLY"), (value!(O_WRONLY), "O_WRONLY"), (value!(O_RDWR), "O_RDWR")],
    bits: &[(value!(O_CREAT), "O_CREAT"), (value!(O_EXCL), "O_EXCL"), (value!(O_NOCTTY), "O_NOCTTY"), (value!(O_TRUNC), "O_TRUNC"), (value!(O_APPEND), "O_APPEND"), (value!(O_NONBLOCK), "O_NONBLOCK"), (value!(O_DSYNC), "O_DSYNC"), (value!(O_DIRECT), "O_DIRECT"), (value!(O_DIRECTORY), "O_DIRECTORY"), (value!(O_NOFOLLOW), "O_NOFOLLOW"), (value!(O_NOATIME), "O_NOATIME"), (value!(O_CLOEXEC), "O_CLOEXEC"), (value!(O_PATH), "O_PATH")],
};

/// Origins of `lseek`.
#[rustfmt::skip]
pub const WHENCE: &Names = &Names {
    field: u64::MAX,
    values: &[(value!(SEEK_SET), "SEEK_SET"), (value!(SEEK_CUR), "SEEK_CUR"), (value!(SEEK_END), "SEEK_END"), (value!(SEEK_DATA), "SEEK_DATA"), (value!(SEEK_HOLE), "SEEK_HOLE")],
    bits: &[],
};

/// Modes of `access`.
#[rustfmt::skip]
pub const ACCESS: &Names = &Names {
    field: u64::MAX,
    values: &[(value!(F_OK), "F_OK")],
    bits: &[(value!(R_OK), "R_OK"), (value!(W_OK), "W_OK"), (value!(X_OK), "X_OK")],
};

/// Protections of `mmap`.
#[rustfmt::skip]
pub const PROTECTION: &Names = &Names {
    field: u64::MAX,
    values: &[(value!(PROT_NONE), "PROT_NONE")],
    bits: &[(value!(PROT_READ), "PROT_READ"), (value!(PROT_WRITE), "PROT_WRITE"), (value!(PROT_EXEC), "PROT_EXEC")],
};

/// Flags of `mmap`.
#[rustfmt::skip]
pub const MAP: &Names = &Names {
    field: 0xf,
    values: &[(value!(MAP_SHARED), "MAP_SHARED"), (value!(MAP_PRIVATE), "MAP_PRIVATE"), (value!(MAP_SHARED_VALIDATE), "MAP_SHARED_VALIDATE")],
    bits: &[(value!(MAP_FIXED), "MAP_FIXED"), (value!(MAP_ANONYMOUS), "MAP_ANONYMOUS"), (value!(MAP_GROWSDOWN), "MAP_GROWSDOWN"), (value!(MAP_LOCKED), "MAP_LOCKED"), (value!(MAP_NORESERVE), "MAP_NORESERVE"), (value!(MAP_POPULATE), "MAP_POPULATE"), (value!(MAP_NONBLOCK), "MAP_NONBLOCK"), (value!(MAP_STACK), "MAP_STACK"), (value!(MAP_HUGETLB), "MAP_HUGETLB"), (value!(MAP_SYNC), "MAP_SYNC"), (value!(MAP_FIXED_NOREPLACE), "MAP_FIXED_NOREPLACE")],
};

/// Advice of `madvise`.
#[rustfmt::skip]
pub const ADVICE: &Names = &Names {
    field: u64::MAX,
    values: &[(value!(MADV_NORMAL), "MADV_NORMAL"), (value!(MADV_RANDOM), "MADV_RANDOM"), (value!(MADV_SEQUENTIAL), "MADV_SEQUENTIAL"), (value!(MADV_WILLNEED), "MADV_WILLNEED"), (value!(MADV_DONTNEED), "MADV_DONTNEED"), (value!(MADV_FREE), "MADV_FREE"), (value!(MADV_REMOVE), "MADV_REMOVE"), (value!(MADV_DONTFORK), "MADV_DONTFORK"), (value!(MADV_DOFORK), "MADV_DOFORK"), (value!(MADV_MERGEABLE), "MADV_MERGEABLE"), (value!(MADV_HUGEPAGE), "MADV_HUGEPAGE"), (value!(MADV_NOHUGEPAGE), "MADV_NOHUGEPAGE"), (value!(MADV_DONTDUMP), "MADV_DONTDUMP"), (value!(MADV_DODUMP), "MADV_DODUMP")],
    bits: &[],
};

/// Flags of the calls whose names end in `at`.
#[rustfmt::skip]
pub const AT: &Names = &Names {
    field: 0,
    values: &[],
    bits: &[(value!(AT_SYMLINK_NOFOLLOW), "AT_SYMLINK_NOFOLLOW"), (value!(AT_REMOVEDIR), "AT_REMOVEDIR"), (value!(AT_SYMLINK_FOLLOW), "AT_SYMLINK_FOLLOW"), (value!(AT_NO_AUTOMOUNT), "AT_NO_AUTOMOUNT"), (value!(AT_EMPTY_PATH), "AT_EMPTY_PATH")],
};

/// Flags of `clone`, and the signal of the child's end.
#[rustfmt::skip]
pub const CLONE: &Names = &Names {
    field: 0xff,
    values: &[(value!(SIGCHLD), "SIGCHLD")],
    bits: &[(value!(CLONE_VM), "CLONE_VM"), (value!(CLONE_FS), "CLONE_FS"), (value!(CLONE_FILES), "CLONE_FILES"), (value!(CLONE_SIGHAND), "CLONE_SIGHAND"), (value!(CLONE_PIDFD), "CLONE_PIDFD"), (value!(CLONE_PTRACE), "CLONE_PTRACE"), (value!(CLONE_VFORK), "CLONE_VFORK"), (value!(CLONE_PARENT), "CLONE_PARENT"), (value!(CLONE_THREAD), "CLONE_THREAD"), (value!(CLONE_NEWNS), "CLONE_NEWNS"), (value!(CLONE_SYSVSEM), "CLONE_SYSVSEM"), (value!(CLONE_SETTLS), "CLONE_SETTLS"), (value!(CLONE_PARENT_SETTID), "CLONE_PARENT_SETTID"), (value!(CLONE_CHILD_CLEARTID), "CLONE_CHILD_CLEARTID"), (value!(CLONE_DETACHED), "CLONE_DETACHED"), (value!(CLONE_UNTRACED), "CLONE_UNTRACED"), (value!(CLONE_CHILD_SETTID), "CLONE_CHILD_SETTID"), (value!(CLONE_NEWCGROUP), "CLONE_NEWCGROUP"), (value!(CLONE_NEWUTS), "CLONE_NEWUTS"), (value!(CLONE_NEWIPC), "CLONE_NEWIPC"), (value!(CLONE_NEWUSER), "CLONE_NEWUSER"), (value!(CLONE_NEWPID), "CLONE_NEWPID"), (value!(CLONE_NEWNET), "CLONE_NEWNET"), (value!(CLONE_IO), "CLONE_IO")],
};

/// Operations of `futex`.
#[rustfmt::skip]
pub const FUTEX: &Names = &Names {
    field: 0x7f,
    values: &[(value!(FUTEX_WAIT), "FUTEX_WAIT"), (value!(FUTEX_WAKE), "FUTEX_WAKE"), (value!(FUTEX_FD), "FUTEX_FD"), (value!(FUTEX_REQUEUE), "FUTEX_REQUEUE"), (value!(FUTEX_CMP_REQUEUE), "FUTEX_CMP_REQUEUE"), (value!(FUTEX_WAKE_OP), "FUTEX_WAKE_OP"), (value!(FUTEX_LOCK_PI), "FUTEX_LOCK_PI"), (value!(FUTEX_UNLOCK_PI), "FUTEX_UNLOCK_PI"), (value!(FUTEX_TRYLOCK_PI), "FUTEX_TRYLOCK_PI"), (value!(FUTEX_WAIT_BITSET), "FUTEX_WAIT_BITSET"), (value!(FUTEX_WAKE_BITSET), "FUTEX_WAKE_BITSET"), (value!(FUTEX_WAIT_REQUEUE_PI), "FUTEX_WAIT_REQUEUE_PI"), (value!(FUTEX_CMP_REQUEUE_PI), "FUTEX_CMP_REQUEUE_PI"), (value!(FUTEX_LOCK_PI2), "FUTEX_LOCK_PI2")],
    bits: &[(value!(FUTEX_PRIVATE_FLAG), "FUTEX_PRIVATE_FLAG"), (value!(FUTEX_CLOCK_REALTIME), "FUTEX_CLOCK_REALTIME")],
};

/// How `rt_sigprocmask` changes the mask.
#[rustfmt::skip]
pub const HOW: &Names = &Names {
    field: u64::MAX,
    values: &[(value!(SIG_BLOCK), "SIG_BLOCK"), (value!(SIG_UNBLOCK), "SIG_UNBLOCK"), (value!(SIG_SETMASK), "SIG_SETMASK")],
    bits: &[],
};

/// Clocks.
#[rustfmt::skip]
pub const CLOCK: &Names = &Names {
    field: u64::MAX,
    values: &[(value!(CLOCK_REALTIME), "CLOCK_REALTIME"), (value!(CLOCK_MONOTONIC), "CLOCK_MONOTONIC"), (value!(CLOCK_PROCESS_CPUTIME_ID), "CLOCK_PROCESS_CPUTIME_ID"), (value!(CLOCK_THREAD_CPUTIME_ID), "CLOCK_THREAD_CPUTIME_ID"), (value!(CLOCK_MONOTONIC_RAW), "CLOCK_MONOTONIC_RAW"), (value!(CLOCK_REALTIME_COARSE), "CLOCK_REALTIME_COARSE"), (value!(CLOCK_MONOTONIC_COARSE), "CLOCK_MONOTONIC_COARSE"), (value!(CLOCK_BOOTTIME), "CLOCK_BOOTTIME"), (value!(CLOCK_REALTIME_ALARM), "CLOCK_REALTIME_ALARM"), (value!(CLOCK_BOOTTIME_ALARM), "CLOCK_BOOTTIME_ALARM"), (value!(CLOCK_TAI), "CLOCK_TAI")],
    bits: &[],
};

/// Options of `wait4` and `waitid`.
#[rustfmt::skip]
pub const WAIT: &Names = &Names {
    field: 0,
    values: &[],
    bits: &[(value!(WNOHANG), "WNOHANG"), (value!(WUNTRACED), "WUNTRACED"), (value!(WEXITED), "WEXITED"), (value!(WCONTINUED), "WCONTINUED"), (value!(WNOWAIT), "WNOWAIT")],
};

/// Operations of `epoll_ctl`.
#[rustfmt::skip]
pub const EPOLL: &Names = &Names {
    field: u64::MAX,
    values: &[(value!(EPOLL_CTL_ADD), "EPOLL_CTL_ADD"), (value!(EPOLL_CTL_DEL), "EPOLL_CTL_DEL"), (value!(EPOLL_CTL_MOD), "EPOLL_CTL_MOD")],
    bits: &[],
};

/// Resources that have limits.
#[rustfmt::skip]
pub const RESOURCE: &Names = &Names {
    field: u64::MAX,
    values: &[(value!(RLIMIT_CPU), "RLIMIT_CPU"), (value!(RLIMIT_FSIZE), "RLIMIT_FSIZE"), (value!(RLIMIT_DATA), "RLIMIT_DATA"), (value!(RLIMIT_STACK), "RLIMIT_STACK"), (value!(RLIMIT_CORE), "RLIMIT_CORE"), (value!(RLIMIT_RSS), "RLIMIT_RSS"), (value!(RLIMIT_NPROC), "RLIMIT_NPROC"), (value!(RLIMIT_NOFILE), "RLIMIT_NOFILE"), (value!(RLIMIT_MEMLOCK), "RLIMIT_MEMLOCK"), (value!(RLIMIT_AS), "RLIMIT_AS"), (value!(RLIMIT_LOCKS), "RLIMIT_LOCKS"), (value!(RLIMIT_SIGPENDING), "RLIMIT_SIGPENDING"), (value!(RLIMIT_MSGQUEUE), "RLIMIT_MSGQUEUE"), (value!(RLIMIT_NICE), "RLIMIT_NICE"), (value!(RLIMIT_RTPRIO), "RLIMIT_RTPRIO"), (value!(RLIMIT_RTTIME), "RLIMIT_RTTIME")],
    bits: &[],
};

/// Address families of sockets.
#[rustfmt::skip]
pub const FAMILY: &Names = &Names {
    field: u64::MAX,
    values: &[(value!(AF_UNSPEC), "AF_UNSPEC"), (value!(AF_UNIX), "AF_UNIX"), (value!(AF_INET), "AF_INET"), (value!(AF_INET6), "AF_INET6"), (value!(AF_NETLINK), "AF_NETLINK"), (value!(AF_PACKET), "AF_PACKET"), (value!(AF_VSOCK), "AF_VSOCK")],
    bits: &[],
};

/// Types of sockets, and flags of `accept4`.
#[rustfmt::skip]
pub const SOCKET: &Names = &Names {
    field: 0xf,
    values: &[(value!(SOCK_STREAM), "SOCK_STREAM"), (value!(SOCK_DGRAM), "SOCK_DGRAM"), (value!(SOCK_RAW), "SOCK_RAW"), (value!(SOCK_RDM), "SOCK_RDM"), (value!(SOCK_SEQPACKET), "SOCK_SEQPACKET")],
    bits: &[(value!(SOCK_CLOEXEC), "SOCK_CLOEXEC"), (value!(SOCK_NONBLOCK), "SOCK_NONBLOCK")],
};

/// Flags of `send` and `recv`.
#[rustfmt::skip]
pub const MESSAGE: &Names = &Names {
    field: 0,
    values: &[],
    bits: &[(value!(MSG_OOB), "MSG_OOB"), (value!(MSG_PEEK), "MSG_PEEK"), (value!(MSG_DONTROUTE), "MSG_DONTROUTE"), (value!(MSG_CTRUNC), "MSG_CTRUNC"), (value!(MSG_TRUNC), "MSG_TRUNC"), (value!(MSG_DONTWAIT), "MSG_DONTWAIT"), (value!(MSG_EOR), "MSG_EOR"), (value!(MSG_WAITALL), "MSG_WAITALL"), (value!(MSG_NOSIGNAL), "MSG_NOSIGNAL"), (value!(MSG_MORE), "MSG_MORE"), (value!(MSG_WAITFORONE), "MSG_WAITFORONE"), (value!(MSG_CMSG_CLOEXEC), "MSG_CMSG_CLOEXEC")],
};

/// Commands of `fcntl`.
#[rustfmt::skip]
pub const FCNTL: &Names = &Names {
    field: u64::MAX,
    values: &[(value!(F_DUPFD), "F_DUPFD"), (value!(F_GETFD), "F_GETFD"), (value!(F_SETFD), "F_SETFD"), (value!(F_GETFL), "F_GETFL"), (value!(F_SETFL), "F_SETFL"), (value!(F_GETLK), "F_GETLK"), (value!(F_SETLK), "F_SETLK"), (value!(F_SETLKW), "F_SETLKW"), (value!(F_SETOWN), "F_SETOWN"), (value!(F_GETOWN), "F_GETOWN"), (10, "F_SETSIG"), (11, "F_GETSIG"), (15, "F_SETOWN_EX"), (16, "F_GETOWN_EX"), (value!(F_OFD_GETLK), "F_OFD_GETLK"), (value!(F_OFD_SETLK), "F_OFD_SETLK"), (value!(F_OFD_SETLKW), "F_OFD_SETLKW"), (value!(F_SETLEASE), "F_SETLEASE"), (value!(F_GETLEASE), "F_GETLEASE"), (value!(F_NOTIFY), "F_NOTIFY"), (value!(F_DUPFD_CLOEXEC), "F_DUPFD_CLOEXEC"), (value!(F_SETPIPE_SZ), "F_SETPIPE_SZ"), (value!(F_GETPIPE_SZ), "F_GETPIPE_SZ"), (value!(F_ADD_SEALS), "F_ADD_SEALS"), (value!(F_GET_SEALS), "F_GET_SEALS")],
    bits: &[],
};

/// Requests of `ioctl`.
#[rustfmt::skip]
pub const IOCTL: &Names = &Names {
    field: u64::MAX,
    values: &[(value!(TCGETS), "TCGETS"), (value!(TCSETS), "TCSETS"), (value!(TCSETSW), "TCSETSW"), (value!(TCSETSF), "TCSETSF"), (value!(TCSBRK), "TCSBRK"), (value!(TCXONC), "TCXONC"), (value!(TCFLSH), "TCFLSH"), (value!(TIOCSCTTY), "TIOCSCTTY"), (value!(TIOCGPGRP), "TIOCGPGRP"), (value!(TIOCSPGRP), "TIOCSPGRP"), (value!(TIOCOUTQ), "TIOCOUTQ"), (value!(TIOCGWINSZ), "TIOCGWINSZ"), (value!(TIOCSWINSZ), "TIOCSWINSZ"), (value!(TIOCNOTTY), "TIOCNOTTY"), (value!(TIOCGSID), "TIOCGSID"), (value!(FIONREAD), "FIONREAD"), (value!(FIONBIO), "FIONBIO"), (value!(FIONCLEX), "FIONCLEX"), (value!(FIOCLEX), "FIOCLEX"), (value!(FIOASYNC), "FIOASYNC"), (value!(TIOCGPTN), "TIOCGPTN"), (value!(TIOCSPTLCK), "TIOCSPTLCK")],
    bits: &[],
};

/// Operations of `prctl`.
#[rustfmt::skip]
pub const PRCTL: &Names = &Names {
    field: u64::MAX,
    values: &[(value!(PR_SET_PDEATHSIG), "PR_SET_PDEATHSIG"), (value!(PR_GET_PDEATHSIG), "PR_GET_PDEATHSIG"), (value!(PR_GET_DUMPABLE), "PR_GET_DUMPABLE"), (value!(PR_SET_DUMPABLE), "PR_SET_DUMPABLE"), (value!(PR_GET_UNALIGN), "PR_GET_UNALIGN"), (value!(PR_SET_UNALIGN), "PR_SET_UNALIGN"), (value!(PR_GET_KEEPCAPS), "PR_GET_KEEPCAPS"), (value!(PR_SET_KEEPCAPS), "PR_SET_KEEPCAPS"), (value!(PR_GET_FPEMU), "PR_GET_FPEMU"), (value!(PR_SET_FPEMU), "PR_SET_FPEMU"), (value!(PR_SET_NAME), "PR_SET_NAME"), (value!(PR_GET_NAME), "PR_GET_NAME"), (value!(PR_SET_CHILD_SUBREAPER), "PR_SET_CHILD_SUBREAPER"), (value!(PR_GET_CHILD_SUBREAPER), "PR_GET_CHILD_SUBREAPER"), (value!(PR_SET_NO_NEW_PRIVS), "PR_SET_NO_NEW_PRIVS"), (value!(PR_GET_NO_NEW_PRIVS), "PR_GET_NO_NEW_PRIVS"), (value!(PR_SET_TIMERSLACK), "PR_SET_TIMERSLACK"), (value!(PR_GET_TIMERSLACK), "PR_GET_TIMERSLACK"), (value!(PR_SET_VMA), "PR_SET_VMA")],
    bits: &[],
};

/// The name of a signal.
pub fn signal(number: i32) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
        "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
        "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    match number {
        1..=31 => format!("SIG{}", NAMES[number as usize - 1]),
        32..=64 => format!("SIGRT_{}", number - 32),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_named_and_the_rest_is_a_number() {
        assert_eq!(OPEN.describe(0o2000001), "O_WRONLY|O_CLOEXEC");
        assert_eq!(OPEN.describe(0), "O_RDONLY");
        assert_eq!(PROTECTION.describe(0), "PROT_NONE");
        assert_eq!(PROTECTION.describe(5), "PROT_READ|PROT_EXEC");
        assert_eq!(WHENCE.describe(2), "SEEK_END");
        assert_eq!(CLOCK.describe(77), "0x4d");
        assert_eq!(FUTEX.describe(129), "FUTEX_WAKE|FUTEX_PRIVATE_FLAG");
        assert_eq!(signal(11), "SIGSEGV");
    }
}
