//! Every system call of Linux 6.6, the last one on ia64: number, name, arguments, and what is done.
//!
//! The numbers count from [`FIRST`], as in the kernel's own table; a number that is not here does not exist.
//! `Host`, `Blocking` and `Unconfined` calls mean the same to both kernels: their arguments go to the host with guest
//! addresses translated (see `super::forward`); the second may sleep, and the
//! last are refused to a program with a root folder of its own. `Emulated` ones differ in a structure,
//! a convention or an effect, and have a function. `Light` ones need nothing of the thread: see `super::light`.
//! `Missing` ones give `ENOSYS`.

use super::Handler;
use super::light::{self, LightHandler};
use super::shape::Shape::{self, *};
use super::{
    descriptors, execute, ipc, memory, paths, polling, processes, remote, signals, sockets, system, threads,
    userfault, vectors,
};
use crate::thread::strace::names;

/// The number of the table's row 0.
pub const FIRST: u64 = 1024;

/// Numbers of x86-64 for calls that hosts have from Linux 6.5 and 6.6 on.
const CACHESTAT: i64 = 451;
const FCHMODAT2: i64 = 452;

/// What is done for a call.
#[derive(Clone, Copy)]
pub enum Action {
    /// Passed on to the host's call of the given number.
    Host(i64),
    /// The same, for a call that may sleep and that a signal interrupts.
    Blocking(i64),
    /// Passed on, unless the program is confined to a root folder, which it would leave by such a call.
    Unconfined(i64),
    /// Done here.
    Emulated(Handler),
    /// Done without leaving the run of the processor.
    Light(LightHandler),
    /// `ENOSYS`.
    Missing,
}

use Action::{Blocking, Emulated, Host, Light, Missing, Unconfined};

/// One system call.
#[derive(Clone, Copy)]
pub struct SystemCall {
    /// Its number, counted from [`FIRST`].
    pub number: u16,
    /// Its name.
    pub name: &'static str,
    /// What its arguments are.
    pub arguments: &'static [Shape],
    /// What is done for it.
    pub action: Action,
    /// Which arguments are addresses of guest memory, a bit each.
    pub pointers: u8,
    /// Whether an argument is the path of a file.
    pub has_paths: bool,
}

const fn row(number: u16, name: &'static str, arguments: &'static [Shape], action: Action) -> SystemCall {
    let (mut pointers, mut has_paths) = (0, false);
    let mut at = 0;
    while at < arguments.len() {
        pointers |= (arguments[at].is_pointer() as u8) << at;
        has_paths |= matches!(arguments[at], Path | Link);
        at += 1;
    }
    SystemCall {
        number,
        name,
        arguments,
        action,
        pointers,
        has_paths,
    }
}

/// The call with a number as it stands in r15.
pub fn find(number: u64) -> Option<&'static SystemCall> {
    let row = ROWS.get(usize::try_from(number.checked_sub(FIRST)?).ok()?)?;
    TABLE.get(usize::from(*row))
}

/// One more than the last number.
const NUMBERS: usize = TABLE[TABLE.len() - 1].number as usize + 1;

/// The row of every number; beyond the table for those that do not exist.
static ROWS: [u16; NUMBERS] = {
    let mut rows = [u16::MAX; NUMBERS];
    let mut row = 0;
    while row < TABLE.len() {
        rows[TABLE[row].number as usize] = row as u16;
        row += 1;
    }
    rows
};

/// All calls in ascending order of their numbers.
#[rustfmt::skip]
pub static TABLE: &[SystemCall] = &[
    row(0, "ni_syscall", &[], Missing),
    row(1, "exit", &[Int], Emulated(processes::exit)),
    row(2, "read", &[Descriptor, Output, Size], Emulated(userfault::read)),
    row(3, "write", &[Descriptor, Input(2), Size], Blocking(libc::SYS_write)),
    row(4, "open", &[Path, Named(names::OPEN), Mode], Emulated(paths::open)),
    row(5, "close", &[Descriptor], Emulated(descriptors::close)),
    row(6, "creat", &[Path, Mode], Emulated(paths::creat)),
    row(7, "link", &[Link, Link], Host(libc::SYS_link)),
    row(8, "unlink", &[Link], Host(libc::SYS_unlink)),
    row(9, "execve", &[Path, Strings, Strings], Emulated(execute::execve)),
    row(10, "chdir", &[Path], Host(libc::SYS_chdir)),
    row(11, "fchdir", &[Descriptor], Host(libc::SYS_fchdir)),
    row(12, "utimes", &[Path, Pointer], Host(libc::SYS_utimes)),
    row(13, "mknod", &[Link, Mode, Hex], Host(libc::SYS_mknod)),
    row(14, "chmod", &[Path, Mode], Host(libc::SYS_chmod)),
    row(15, "chown", &[Path, Int, Int], Host(libc::SYS_chown)),
    row(16, "lseek", &[Descriptor, Long, Named(names::WHENCE)], Host(libc::SYS_lseek)),
    row(17, "getpid", &[], Light(light::getpid)),
    row(18, "getppid", &[], Light(light::getppid)),
    row(19, "mount", &[Path, Path, Text, Hex, Pointer], Unconfined(libc::SYS_mount)),
    row(20, "umount2", &[Path, Hex], Unconfined(libc::SYS_umount2)),
    row(21, "setuid", &[Int], Host(libc::SYS_setuid)),
    row(22, "getuid", &[], Light(light::getuid)),
    row(23, "geteuid", &[], Light(light::geteuid)),
    row(24, "ptrace", &[Long, Int, Hex, Hex], Missing),
    row(25, "access", &[Path, Named(names::ACCESS)], Host(libc::SYS_access)),
    row(26, "sync", &[], Blocking(libc::SYS_sync)),
    row(27, "fsync", &[Descriptor], Blocking(libc::SYS_fsync)),
    row(28, "fdatasync", &[Descriptor], Blocking(libc::SYS_fdatasync)),
    row(29, "kill", &[Int, Signal], Host(libc::SYS_kill)),
    row(30, "rename", &[Link, Link], Host(libc::SYS_rename)),
    row(31, "mkdir", &[Link, Mode], Host(libc::SYS_mkdir)),
    row(32, "rmdir", &[Link], Host(libc::SYS_rmdir)),
    row(33, "dup", &[Descriptor], Host(libc::SYS_dup)),
    row(34, "pipe", &[], Emulated(descriptors::pipe)),
    row(35, "times", &[Pointer], Host(libc::SYS_times)),
    row(36, "brk", &[Hex], Emulated(memory::brk)),
    row(37, "setgid", &[Int], Host(libc::SYS_setgid)),
    row(38, "getgid", &[], Light(light::getgid)),
    row(39, "getegid", &[], Light(light::getegid)),
    row(40, "acct", &[Path], Unconfined(libc::SYS_acct)),
    row(41, "ioctl", &[Descriptor, Named(names::IOCTL), Hex], Emulated(descriptors::ioctl)),
    row(42, "fcntl", &[Descriptor, Named(names::FCNTL), Hex], Emulated(descriptors::fcntl)),
    row(43, "umask", &[Mode], Host(libc::SYS_umask)),
    row(44, "chroot", &[Path], Emulated(paths::chroot)),
    row(45, "ustat", &[Hex, Pointer], Host(libc::SYS_ustat)),
    row(46, "dup2", &[Descriptor, Descriptor], Emulated(descriptors::dup2)),
    row(47, "setreuid", &[Int, Int], Host(libc::SYS_setreuid)),
    row(48, "setregid", &[Int, Int], Host(libc::SYS_setregid)),
    row(49, "getresuid", &[Pointer, Pointer, Pointer], Host(libc::SYS_getresuid)),
    row(50, "setresuid", &[Int, Int, Int], Host(libc::SYS_setresuid)),
    row(51, "getresgid", &[Pointer, Pointer, Pointer], Host(libc::SYS_getresgid)),
    row(52, "setresgid", &[Int, Int, Int], Host(libc::SYS_setresgid)),
    row(53, "getgroups", &[Int, Pointer], Host(libc::SYS_getgroups)),
    row(54, "setgroups", &[Int, Pointer], Host(libc::SYS_setgroups)),
    row(55, "getpgid", &[Int], Host(libc::SYS_getpgid)),
    row(56, "setpgid", &[Int, Int], Host(libc::SYS_setpgid)),
    row(57, "setsid", &[], Host(libc::SYS_setsid)),
    row(58, "getsid", &[Int], Host(libc::SYS_getsid)),
    row(59, "sethostname", &[Text, Size], Host(libc::SYS_sethostname)),
    row(60, "setrlimit", &[Named(names::RESOURCE), Pointer], Emulated(system::setrlimit)),
    row(61, "getrlimit", &[Named(names::RESOURCE), Pointer], Emulated(system::getrlimit)),
    row(62, "getrusage", &[Int, Pointer], Host(libc::SYS_getrusage)),
    row(63, "gettimeofday", &[Pointer, Pointer], Light(light::gettimeofday)),
    row(64, "settimeofday", &[Pointer, Pointer], Host(libc::SYS_settimeofday)),
    row(65, "select", &[Int, Pointer, Pointer, Pointer, Pointer], Blocking(libc::SYS_select)),
    row(66, "poll", &[Pointer, Size, Int], Blocking(libc::SYS_poll)),
    row(67, "symlink", &[Text, Link], Host(libc::SYS_symlink)),
    row(68, "readlink", &[Link, Output, Size], Emulated(paths::readlink)),
    row(69, "uselib", &[Path], Missing),
    row(70, "swapon", &[Path, Hex], Unconfined(libc::SYS_swapon)),
    row(71, "swapoff", &[Path], Unconfined(libc::SYS_swapoff)),
    row(72, "reboot", &[Hex, Hex, Hex, Pointer], Host(libc::SYS_reboot)),
    row(73, "truncate", &[Path, Long], Host(libc::SYS_truncate)),
    row(74, "ftruncate", &[Descriptor, Long], Emulated(descriptors::ftruncate)),
    row(75, "fchmod", &[Descriptor, Mode], Host(libc::SYS_fchmod)),
    row(76, "fchown", &[Descriptor, Int, Int], Host(libc::SYS_fchown)),
    row(77, "getpriority", &[Int, Int], Emulated(system::getpriority)),
    row(78, "setpriority", &[Int, Int, Int], Host(libc::SYS_setpriority)),
    row(79, "statfs", &[Path, Pointer], Host(libc::SYS_statfs)),
    row(80, "fstatfs", &[Descriptor, Pointer], Host(libc::SYS_fstatfs)),
    row(81, "gettid", &[], Light(light::gettid)),
    row(82, "semget", &[Hex, Int, Hex], Host(libc::SYS_semget)),
    row(83, "semop", &[Int, Pointer, Size], Blocking(libc::SYS_semop)),
    row(84, "semctl", &[Int, Int, Int, Hex], Emulated(ipc::semctl)),
    row(85, "msgget", &[Hex, Hex], Host(libc::SYS_msgget)),
    row(86, "msgsnd", &[Int, Pointer, Size, Hex], Blocking(libc::SYS_msgsnd)),
    row(87, "msgrcv", &[Int, Pointer, Size, Long, Hex], Blocking(libc::SYS_msgrcv)),
    row(88, "msgctl", &[Int, Int, Pointer], Host(libc::SYS_msgctl)),
    row(89, "shmget", &[Hex, Size, Hex], Host(libc::SYS_shmget)),
    row(90, "shmat", &[Int, Hex, Hex], Emulated(ipc::shmat)),
    row(91, "shmdt", &[Hex], Emulated(ipc::shmdt)),
    row(92, "shmctl", &[Int, Int, Pointer], Host(libc::SYS_shmctl)),
    row(93, "syslog", &[Int, Pointer, Int], Host(libc::SYS_syslog)),
    row(94, "setitimer", &[Int, Pointer, Pointer], Host(libc::SYS_setitimer)),
    row(95, "getitimer", &[Int, Pointer], Host(libc::SYS_getitimer)),
    row(99, "vhangup", &[], Host(libc::SYS_vhangup)),
    row(100, "lchown", &[Link, Int, Int], Host(libc::SYS_lchown)),
    row(101, "remap_file_pages", &[Hex, Size, Hex, Size, Hex], Missing),
    row(102, "wait4", &[Int, Pointer, Named(names::WAIT), Pointer], Blocking(libc::SYS_wait4)),
    row(103, "sysinfo", &[Pointer], Host(libc::SYS_sysinfo)),
    row(104, "clone", &[Named(names::CLONE), Hex, Pointer, Pointer, Hex], Emulated(processes::clone)),
    row(105, "setdomainname", &[Text, Size], Host(libc::SYS_setdomainname)),
    row(106, "uname", &[Pointer], Emulated(system::uname)),
    row(107, "adjtimex", &[Pointer], Host(libc::SYS_adjtimex)),
    row(109, "init_module", &[Pointer, Size, Text], Missing),
    row(110, "delete_module", &[Text, Hex], Missing),
    row(113, "quotactl", &[Hex, Path, Int, Pointer], Host(libc::SYS_quotactl)),
    row(114, "bdflush", &[Int, Long], Missing),
    row(115, "sysfs", &[Int, Hex, Hex], Missing),
    row(116, "personality", &[Hex], Emulated(system::personality)),
    row(117, "afs_syscall", &[], Missing),
    row(118, "setfsuid", &[Int], Host(libc::SYS_setfsuid)),
    row(119, "setfsgid", &[Int], Host(libc::SYS_setfsgid)),
    row(120, "getdents", &[Descriptor, Pointer, Size], Emulated(descriptors::getdents)),
    row(121, "flock", &[Descriptor, Hex], Blocking(libc::SYS_flock)),
    row(122, "readv", &[Descriptor, Pointer, Size], Emulated(vectors::readv)),
    row(123, "writev", &[Descriptor, Pointer, Size], Emulated(vectors::writev)),
    row(124, "pread64", &[Descriptor, Output, Size, Long], Blocking(libc::SYS_pread64)),
    row(125, "pwrite64", &[Descriptor, Input(2), Size, Long], Blocking(libc::SYS_pwrite64)),
    row(126, "_sysctl", &[Pointer], Missing),
    row(127, "mmap", &[Hex, Size, Named(names::PROTECTION), Named(names::MAP), Descriptor, Hex], Emulated(memory::mmap)),
    row(128, "munmap", &[Hex, Size], Emulated(memory::munmap)),
    row(129, "mlock", &[Hex, Size], Emulated(memory::mlock)),
    row(130, "mlockall", &[Hex], Emulated(memory::mlockall)),
    row(131, "mprotect", &[Hex, Size, Named(names::PROTECTION)], Emulated(memory::mprotect)),
    row(132, "mremap", &[Hex, Size, Size, Hex, Hex], Emulated(memory::mremap)),
    row(133, "msync", &[Hex, Size, Hex], Emulated(memory::msync)),
    row(134, "munlock", &[Hex, Size], Emulated(memory::munlock)),
    row(135, "munlockall", &[], Emulated(memory::munlockall)),
    row(136, "sched_getparam", &[Int, Pointer], Host(libc::SYS_sched_getparam)),
    row(137, "sched_setparam", &[Int, Pointer], Host(libc::SYS_sched_setparam)),
    row(138, "sched_getscheduler", &[Int], Host(libc::SYS_sched_getscheduler)),
    row(139, "sched_setscheduler", &[Int, Int, Pointer], Host(libc::SYS_sched_setscheduler)),
    row(140, "sched_yield", &[], Host(libc::SYS_sched_yield)),
    row(141, "sched_get_priority_max", &[Int], Host(libc::SYS_sched_get_priority_max)),
    row(142, "sched_get_priority_min", &[Int], Host(libc::SYS_sched_get_priority_min)),
    row(143, "sched_rr_get_interval", &[Int, Pointer], Host(libc::SYS_sched_rr_get_interval)),
    row(144, "nanosleep", &[Timespec, Pointer], Blocking(libc::SYS_nanosleep)),
    row(145, "nfsservctl", &[], Missing),
    row(146, "prctl", &[Named(names::PRCTL), Hex, Hex, Hex, Hex], Emulated(system::prctl)),
    row(147, "old_getpagesize", &[], Emulated(memory::getpagesize)),
    row(148, "mmap2", &[Hex, Size, Named(names::PROTECTION), Named(names::MAP), Descriptor, Hex], Emulated(memory::mmap2)),
    row(149, "pciconfig_read", &[], Missing),
    row(150, "pciconfig_write", &[], Missing),
    row(151, "perfmonctl", &[Int, Int, Hex, Int], Missing),
    row(152, "sigaltstack", &[Pointer, Pointer], Emulated(signals::sigaltstack)),
    row(153, "rt_sigaction", &[Signal, Pointer, Pointer, Size], Emulated(signals::rt_sigaction)),
    row(154, "rt_sigpending", &[Pointer, Size], Emulated(signals::rt_sigpending)),
    row(155, "rt_sigprocmask", &[Named(names::HOW), SignalSet, Pointer, Size], Emulated(signals::rt_sigprocmask)),
    row(156, "rt_sigqueueinfo", &[Int, Signal, Pointer], Host(libc::SYS_rt_sigqueueinfo)),
    row(157, "rt_sigreturn", &[], Emulated(signals::rt_sigreturn)),
    row(158, "rt_sigsuspend", &[SignalSet, Size], Emulated(signals::rt_sigsuspend)),
    row(159, "rt_sigtimedwait", &[SignalSet, Pointer, Timespec, Size], Blocking(libc::SYS_rt_sigtimedwait)),
    row(160, "getcwd", &[Pointer, Size], Emulated(paths::getcwd)),
    row(161, "capget", &[Pointer, Pointer], Host(libc::SYS_capget)),
    row(162, "capset", &[Pointer, Pointer], Host(libc::SYS_capset)),
    row(163, "sendfile", &[Descriptor, Descriptor, Pointer, Size], Blocking(libc::SYS_sendfile)),
    row(164, "getpmsg", &[], Missing),
    row(165, "putpmsg", &[], Missing),
    row(166, "socket", &[Named(names::FAMILY), Named(names::SOCKET), Int], Host(libc::SYS_socket)),
    row(167, "bind", &[Descriptor, Pointer, Size], Emulated(sockets::bind)),
    row(168, "connect", &[Descriptor, Pointer, Size], Emulated(sockets::connect)),
    row(169, "listen", &[Descriptor, Int], Host(libc::SYS_listen)),
    row(170, "accept", &[Descriptor, Pointer, Pointer], Emulated(sockets::accept)),
    row(171, "getsockname", &[Descriptor, Pointer, Pointer], Emulated(sockets::getsockname)),
    row(172, "getpeername", &[Descriptor, Pointer, Pointer], Emulated(sockets::getpeername)),
    row(173, "socketpair", &[Named(names::FAMILY), Named(names::SOCKET), Int, Pointer], Host(libc::SYS_socketpair)),
    row(174, "send", &[Descriptor, Input(2), Size, Named(names::MESSAGE)], Emulated(sockets::send)),
    row(175, "sendto", &[Descriptor, Input(2), Size, Named(names::MESSAGE), Pointer, Size], Emulated(sockets::sendto)),
    row(176, "recv", &[Descriptor, Output, Size, Named(names::MESSAGE)], Emulated(sockets::recv)),
    row(177, "recvfrom", &[Descriptor, Output, Size, Named(names::MESSAGE), Pointer, Pointer], Emulated(sockets::recvfrom)),
    row(178, "shutdown", &[Descriptor, Int], Host(libc::SYS_shutdown)),
    row(179, "setsockopt", &[Descriptor, Int, Int, Pointer, Size], Emulated(sockets::setsockopt)),
    row(180, "getsockopt", &[Descriptor, Int, Int, Pointer, Pointer], Host(libc::SYS_getsockopt)),
    row(181, "sendmsg", &[Descriptor, Pointer, Named(names::MESSAGE)], Emulated(sockets::sendmsg)),
    row(182, "recvmsg", &[Descriptor, Pointer, Named(names::MESSAGE)], Emulated(sockets::recvmsg)),
    row(183, "pivot_root", &[Path, Path], Unconfined(libc::SYS_pivot_root)),
    row(184, "mincore", &[Hex, Size, Pointer], Emulated(memory::mincore)),
    row(185, "madvise", &[Hex, Size, Named(names::ADVICE)], Emulated(memory::madvise)),
    row(186, "stat", &[Path, Pointer], Emulated(paths::stat)),
    row(187, "lstat", &[Link, Pointer], Emulated(paths::lstat)),
    row(188, "fstat", &[Descriptor, Pointer], Emulated(paths::fstat)),
    row(189, "clone2", &[Named(names::CLONE), Hex, Size, Pointer, Pointer, Hex], Emulated(processes::clone2)),
    row(190, "getdents64", &[Descriptor, Pointer, Size], Emulated(descriptors::getdents64)),
    row(191, "getunwind", &[Pointer, Size], Emulated(system::getunwind)),
    row(192, "readahead", &[Descriptor, Long, Size], Blocking(libc::SYS_readahead)),
    row(193, "setxattr", &[Path, Text, Input(3), Size, Hex], Host(libc::SYS_setxattr)),
    row(194, "lsetxattr", &[Link, Text, Input(3), Size, Hex], Host(libc::SYS_lsetxattr)),
    row(195, "fsetxattr", &[Descriptor, Text, Input(3), Size, Hex], Host(libc::SYS_fsetxattr)),
    row(196, "getxattr", &[Path, Text, Output, Size], Host(libc::SYS_getxattr)),
    row(197, "lgetxattr", &[Link, Text, Output, Size], Host(libc::SYS_lgetxattr)),
    row(198, "fgetxattr", &[Descriptor, Text, Output, Size], Host(libc::SYS_fgetxattr)),
    row(199, "listxattr", &[Path, Output, Size], Host(libc::SYS_listxattr)),
    row(200, "llistxattr", &[Link, Output, Size], Host(libc::SYS_llistxattr)),
    row(201, "flistxattr", &[Descriptor, Output, Size], Host(libc::SYS_flistxattr)),
    row(202, "removexattr", &[Path, Text], Host(libc::SYS_removexattr)),
    row(203, "lremovexattr", &[Link, Text], Host(libc::SYS_lremovexattr)),
    row(204, "fremovexattr", &[Descriptor, Text], Host(libc::SYS_fremovexattr)),
    row(205, "tkill", &[Int, Signal], Host(libc::SYS_tkill)),
    row(206, "futex", &[Pointer, Named(names::FUTEX), Int, Hex, Hex, Hex], Emulated(threads::futex)),
    row(207, "sched_setaffinity", &[Int, Size, Pointer], Host(libc::SYS_sched_setaffinity)),
    row(208, "sched_getaffinity", &[Int, Size, Pointer], Host(libc::SYS_sched_getaffinity)),
    row(209, "set_tid_address", &[Pointer], Emulated(threads::set_tid_address)),
    row(210, "fadvise64", &[Descriptor, Long, Long, Int], Host(libc::SYS_fadvise64)),
    row(211, "tgkill", &[Int, Int, Signal], Host(libc::SYS_tgkill)),
    row(212, "exit_group", &[Int], Emulated(processes::exit_group)),
    row(213, "lookup_dcookie", &[Hex, Pointer, Size], Missing),
    row(214, "io_setup", &[Int, Pointer], Missing),
    row(215, "io_destroy", &[Hex], Missing),
    row(216, "io_getevents", &[Hex, Long, Long, Pointer, Pointer], Missing),
    row(217, "io_submit", &[Hex, Long, Pointer], Missing),
    row(218, "io_cancel", &[Hex, Pointer, Pointer], Missing),
    row(219, "epoll_create", &[Int], Host(libc::SYS_epoll_create)),
    row(220, "epoll_ctl", &[Descriptor, Named(names::EPOLL), Descriptor, Pointer], Emulated(polling::epoll_ctl)),
    row(221, "epoll_wait", &[Descriptor, Pointer, Int, Int], Emulated(polling::epoll_wait)),
    row(222, "restart_syscall", &[], Emulated(signals::restart_syscall)),
    row(223, "semtimedop", &[Int, Pointer, Size, Timespec], Blocking(libc::SYS_semtimedop)),
    row(224, "timer_create", &[Named(names::CLOCK), Pointer, Pointer], Host(libc::SYS_timer_create)),
    row(225, "timer_settime", &[Int, Hex, Pointer, Pointer], Host(libc::SYS_timer_settime)),
    row(226, "timer_gettime", &[Int, Pointer], Host(libc::SYS_timer_gettime)),
    row(227, "timer_getoverrun", &[Int], Host(libc::SYS_timer_getoverrun)),
    row(228, "timer_delete", &[Int], Host(libc::SYS_timer_delete)),
    row(229, "clock_settime", &[Named(names::CLOCK), Timespec], Host(libc::SYS_clock_settime)),
    row(230, "clock_gettime", &[Named(names::CLOCK), Pointer], Light(light::clock_gettime)),
    row(231, "clock_getres", &[Named(names::CLOCK), Pointer], Host(libc::SYS_clock_getres)),
    row(232, "clock_nanosleep", &[Named(names::CLOCK), Hex, Timespec, Pointer], Blocking(libc::SYS_clock_nanosleep)),
    row(233, "fstatfs64", &[Descriptor, Size, Pointer], Emulated(system::fstatfs64)),
    row(234, "statfs64", &[Path, Size, Pointer], Emulated(system::statfs64)),
    row(235, "mbind", &[Hex, Size, Hex, Pointer, Size, Hex], Missing),
    row(236, "get_mempolicy", &[Pointer, Pointer, Size, Hex, Hex], Missing),
    row(237, "set_mempolicy", &[Hex, Pointer, Size], Missing),
    row(238, "mq_open", &[Text, Named(names::OPEN), Mode, Pointer], Host(libc::SYS_mq_open)),
    row(239, "mq_unlink", &[Text], Host(libc::SYS_mq_unlink)),
    row(240, "mq_timedsend", &[Descriptor, Input(2), Size, Int, Timespec], Blocking(libc::SYS_mq_timedsend)),
    row(241, "mq_timedreceive", &[Descriptor, Output, Size, Pointer, Timespec], Blocking(libc::SYS_mq_timedreceive)),
    row(242, "mq_notify", &[Descriptor, Pointer], Emulated(ipc::mq_notify)),
    row(243, "mq_getsetattr", &[Descriptor, Pointer, Pointer], Host(libc::SYS_mq_getsetattr)),
    row(244, "kexec_load", &[Hex, Hex, Pointer, Hex], Missing),
    row(245, "vserver", &[], Missing),
    row(246, "waitid", &[Int, Int, Pointer, Named(names::WAIT), Pointer], Blocking(libc::SYS_waitid)),
    row(247, "add_key", &[Text, Text, Pointer, Size, Int], Host(libc::SYS_add_key)),
    row(248, "request_key", &[Text, Text, Text, Int], Host(libc::SYS_request_key)),
    row(249, "keyctl", &[Int, Hex, Hex, Hex, Hex], Missing),
    row(250, "ioprio_set", &[Int, Int, Int], Host(libc::SYS_ioprio_set)),
    row(251, "ioprio_get", &[Int, Int], Host(libc::SYS_ioprio_get)),
    row(252, "move_pages", &[], Missing),
    row(253, "inotify_init", &[], Host(libc::SYS_inotify_init)),
    row(254, "inotify_add_watch", &[Descriptor, Path, Hex], Emulated(paths::inotify_add_watch)),
    row(255, "inotify_rm_watch", &[Descriptor, Int], Host(libc::SYS_inotify_rm_watch)),
    row(256, "migrate_pages", &[], Missing),
    row(257, "openat", &[Folder, Path, Named(names::OPEN), Mode], Emulated(paths::openat)),
    row(258, "mkdirat", &[Folder, Link, Mode], Host(libc::SYS_mkdirat)),
    row(259, "mknodat", &[Folder, Link, Mode, Hex], Host(libc::SYS_mknodat)),
    row(260, "fchownat", &[Folder, Path, Int, Int, AtFlags], Host(libc::SYS_fchownat)),
    row(261, "futimesat", &[Folder, Path, Pointer], Host(libc::SYS_futimesat)),
    row(262, "newfstatat", &[Folder, Path, Pointer, AtFlags], Emulated(paths::newfstatat)),
    row(263, "unlinkat", &[Folder, Link, AtFlags], Host(libc::SYS_unlinkat)),
    row(264, "renameat", &[Folder, Link, Folder, Link], Host(libc::SYS_renameat)),
    row(265, "linkat", &[Folder, Link, Folder, Link, AtFlags], Host(libc::SYS_linkat)),
    row(266, "symlinkat", &[Text, Folder, Link], Host(libc::SYS_symlinkat)),
    row(267, "readlinkat", &[Folder, Link, Output, Size], Emulated(paths::readlinkat)),
    row(268, "fchmodat", &[Folder, Path, Mode], Host(libc::SYS_fchmodat)),
    row(269, "faccessat", &[Folder, Path, Named(names::ACCESS)], Host(libc::SYS_faccessat)),
    row(270, "pselect6", &[Int, Pointer, Pointer, Pointer, Timespec, Pointer], Emulated(polling::pselect6)),
    row(271, "ppoll", &[Pointer, Size, Timespec, SignalSet, Size], Emulated(polling::ppoll)),
    row(272, "unshare", &[Named(names::CLONE)], Host(libc::SYS_unshare)),
    row(273, "splice", &[Descriptor, Pointer, Descriptor, Pointer, Size, Hex], Blocking(libc::SYS_splice)),
    row(274, "set_robust_list", &[Pointer, Size], Emulated(threads::set_robust_list)),
    row(275, "get_robust_list", &[Int, Pointer, Pointer], Emulated(threads::get_robust_list)),
    row(276, "sync_file_range", &[Descriptor, Long, Long, Hex], Blocking(libc::SYS_sync_file_range)),
    row(277, "tee", &[Descriptor, Descriptor, Size, Hex], Blocking(libc::SYS_tee)),
    row(278, "vmsplice", &[Descriptor, Pointer, Size, Hex], Emulated(vectors::vmsplice)),
    row(279, "fallocate", &[Descriptor, Hex, Long, Long], Blocking(libc::SYS_fallocate)),
    row(280, "getcpu", &[Pointer, Pointer, Pointer], Host(libc::SYS_getcpu)),
    row(281, "epoll_pwait", &[Descriptor, Pointer, Int, Int, SignalSet, Size], Emulated(polling::epoll_pwait)),
    row(282, "utimensat", &[Folder, Path, Pointer, AtFlags], Host(libc::SYS_utimensat)),
    row(283, "signalfd", &[Descriptor, SignalSet, Size], Host(libc::SYS_signalfd)),
    row(284, "timerfd", &[], Missing),
    row(285, "eventfd", &[Int], Host(libc::SYS_eventfd)),
    row(286, "timerfd_create", &[Named(names::CLOCK), Hex], Host(libc::SYS_timerfd_create)),
    row(287, "timerfd_settime", &[Descriptor, Hex, Pointer, Pointer], Host(libc::SYS_timerfd_settime)),
    row(288, "timerfd_gettime", &[Descriptor, Pointer], Host(libc::SYS_timerfd_gettime)),
    row(289, "signalfd4", &[Descriptor, SignalSet, Size, Hex], Host(libc::SYS_signalfd4)),
    row(290, "eventfd2", &[Int, Hex], Host(libc::SYS_eventfd2)),
    row(291, "epoll_create1", &[Hex], Host(libc::SYS_epoll_create1)),
    row(292, "dup3", &[Descriptor, Descriptor, Named(names::OPEN)], Emulated(descriptors::dup3)),
    row(293, "pipe2", &[Pointer, Named(names::OPEN)], Host(libc::SYS_pipe2)),
    row(294, "inotify_init1", &[Hex], Host(libc::SYS_inotify_init1)),
    row(295, "preadv", &[Descriptor, Pointer, Size, Long, Long], Emulated(vectors::preadv)),
    row(296, "pwritev", &[Descriptor, Pointer, Size, Long, Long], Emulated(vectors::pwritev)),
    row(297, "rt_tgsigqueueinfo", &[Int, Int, Signal, Pointer], Host(libc::SYS_rt_tgsigqueueinfo)),
    row(298, "recvmmsg", &[Descriptor, Pointer, Size, Named(names::MESSAGE), Timespec], Emulated(sockets::recvmmsg)),
    row(299, "fanotify_init", &[Hex, Hex], Host(libc::SYS_fanotify_init)),
    row(300, "fanotify_mark", &[Descriptor, Hex, Hex, Folder, Path], Host(libc::SYS_fanotify_mark)),
    row(301, "prlimit64", &[Int, Named(names::RESOURCE), Pointer, Pointer], Emulated(system::prlimit64)),
    row(302, "name_to_handle_at", &[Folder, Link, Pointer, Pointer, AtFlags], Host(libc::SYS_name_to_handle_at)),
    row(303, "open_by_handle_at", &[Descriptor, Pointer, Named(names::OPEN)], Unconfined(libc::SYS_open_by_handle_at)),
    row(304, "clock_adjtime", &[Named(names::CLOCK), Pointer], Host(libc::SYS_clock_adjtime)),
    row(305, "syncfs", &[Descriptor], Blocking(libc::SYS_syncfs)),
    row(306, "setns", &[Descriptor, Hex], Unconfined(libc::SYS_setns)),
    row(307, "sendmmsg", &[Descriptor, Pointer, Size, Named(names::MESSAGE)], Emulated(sockets::sendmmsg)),
    row(308, "process_vm_readv", &[Int, Pointer, Size, Pointer, Size, Hex], Emulated(remote::process_vm_readv)),
    row(309, "process_vm_writev", &[Int, Pointer, Size, Pointer, Size, Hex], Emulated(remote::process_vm_writev)),
    row(310, "accept4", &[Descriptor, Pointer, Pointer, Named(names::SOCKET)], Emulated(sockets::accept4)),
    row(311, "finit_module", &[], Missing),
    row(312, "sched_setattr", &[Int, Pointer, Hex], Host(libc::SYS_sched_setattr)),
    row(313, "sched_getattr", &[Int, Pointer, Size, Hex], Host(libc::SYS_sched_getattr)),
    row(314, "renameat2", &[Folder, Link, Folder, Link, Hex], Host(libc::SYS_renameat2)),
    row(315, "getrandom", &[Pointer, Size, Hex], Blocking(libc::SYS_getrandom)),
    row(316, "memfd_create", &[Text, Hex], Host(libc::SYS_memfd_create)),
    row(317, "bpf", &[], Missing),
    row(318, "execveat", &[Folder, Path, Strings, Strings, AtFlags], Emulated(execute::execveat)),
    row(319, "userfaultfd", &[Hex], Emulated(userfault::userfaultfd)),
    row(320, "membarrier", &[Hex, Hex, Int], Host(libc::SYS_membarrier)),
    row(321, "kcmp", &[Int, Int, Int, Hex, Hex], Host(libc::SYS_kcmp)),
    row(322, "mlock2", &[Hex, Size, Hex], Emulated(memory::mlock2)),
    row(323, "copy_file_range", &[Descriptor, Pointer, Descriptor, Pointer, Size, Hex], Blocking(libc::SYS_copy_file_range)),
    row(324, "preadv2", &[Descriptor, Pointer, Size, Long, Long, Hex], Emulated(vectors::preadv2)),
    row(325, "pwritev2", &[Descriptor, Pointer, Size, Long, Long, Hex], Emulated(vectors::pwritev2)),
    row(326, "statx", &[Folder, Path, AtFlags, Hex, Pointer], Emulated(paths::statx)),
    row(327, "io_pgetevents", &[], Missing),
    row(328, "perf_event_open", &[], Missing),
    row(329, "seccomp", &[], Missing),
    row(330, "pkey_mprotect", &[], Missing),
    row(331, "pkey_alloc", &[], Missing),
    row(332, "pkey_free", &[], Missing),
    row(333, "rseq", &[], Missing),
    row(424, "pidfd_send_signal", &[Descriptor, Signal, Pointer, Hex], Host(libc::SYS_pidfd_send_signal)),
    row(425, "io_uring_setup", &[], Missing),
    row(426, "io_uring_enter", &[], Missing),
    row(427, "io_uring_register", &[], Missing),
    row(428, "open_tree", &[Folder, Path, AtFlags], Unconfined(libc::SYS_open_tree)),
    row(429, "move_mount", &[Folder, Path, Folder, Path, Hex], Unconfined(libc::SYS_move_mount)),
    row(430, "fsopen", &[Text, Hex], Unconfined(libc::SYS_fsopen)),
    row(431, "fsconfig", &[Descriptor, Hex, Text, Pointer, Int], Host(libc::SYS_fsconfig)),
    row(432, "fsmount", &[Descriptor, Hex, Hex], Host(libc::SYS_fsmount)),
    row(433, "fspick", &[Folder, Path, Hex], Unconfined(libc::SYS_fspick)),
    row(434, "pidfd_open", &[Int, Hex], Host(libc::SYS_pidfd_open)),
    row(436, "close_range", &[Int, Int, Hex], Emulated(descriptors::close_range)),
    row(437, "openat2", &[Folder, Path, Pointer, Size], Emulated(paths::openat2)),
    row(438, "pidfd_getfd", &[Descriptor, Descriptor, Hex], Host(libc::SYS_pidfd_getfd)),
    row(439, "faccessat2", &[Folder, Path, Named(names::ACCESS), AtFlags], Host(libc::SYS_faccessat2)),
    row(440, "process_madvise", &[], Missing),
    row(441, "epoll_pwait2", &[Descriptor, Pointer, Int, Timespec, SignalSet, Size], Emulated(polling::epoll_pwait2)),
    row(442, "mount_setattr", &[Folder, Path, Hex, Pointer, Size], Unconfined(libc::SYS_mount_setattr)),
    row(443, "quotactl_fd", &[Descriptor, Hex, Int, Pointer], Host(libc::SYS_quotactl_fd)),
    row(444, "landlock_create_ruleset", &[Pointer, Size, Hex], Host(libc::SYS_landlock_create_ruleset)),
    row(445, "landlock_add_rule", &[Descriptor, Hex, Pointer, Hex], Host(libc::SYS_landlock_add_rule)),
    row(446, "landlock_restrict_self", &[Descriptor, Hex], Host(libc::SYS_landlock_restrict_self)),
    row(448, "process_mrelease", &[Descriptor, Hex], Host(libc::SYS_process_mrelease)),
    row(449, "futex_waitv", &[Pointer, Size, Hex, Timespec, Named(names::CLOCK)], Emulated(threads::futex_waitv)),
    row(450, "set_mempolicy_home_node", &[], Missing),
    row(451, "cachestat", &[Descriptor, Pointer, Pointer, Hex], Host(CACHESTAT)),
    row(452, "fchmodat2", &[Folder, Path, Mode, AtFlags], Host(FCHMODAT2)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_has_at_most_six_arguments() {
        assert!(TABLE.windows(2).all(|pair| pair[0].number < pair[1].number));
        assert!(TABLE.iter().all(|call| call.arguments.len() <= 6));
        assert_eq!(find(1026).map(|call| call.name), Some("read"));
        assert_eq!(find(1236).map(|call| call.name), Some("exit_group"));
        assert!(find(0).is_none() && find(1024 + 96).is_none() && find(u64::MAX).is_none());
    }
}
