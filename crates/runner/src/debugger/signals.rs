//! Signals as gdb numbers them, which is its own way for every system.

use gdbstub::common::Signal;

/// Linux's number and gdb's.
const NUMBERS: &[(i32, Signal)] = &[
    (1, Signal::SIGHUP),
    (2, Signal::SIGINT),
    (3, Signal::SIGQUIT),
    (4, Signal::SIGILL),
    (5, Signal::SIGTRAP),
    (6, Signal::SIGABRT),
    (7, Signal::SIGBUS),
    (8, Signal::SIGFPE),
    (9, Signal::SIGKILL),
    (10, Signal::SIGUSR1),
    (11, Signal::SIGSEGV),
    (12, Signal::SIGUSR2),
    (13, Signal::SIGPIPE),
    (14, Signal::SIGALRM),
    (15, Signal::SIGTERM),
    (17, Signal::SIGCHLD),
    (18, Signal::SIGCONT),
    (19, Signal::SIGSTOP),
    (20, Signal::SIGTSTP),
    (21, Signal::SIGTTIN),
    (22, Signal::SIGTTOU),
    (23, Signal::SIGURG),
    (24, Signal::SIGXCPU),
    (25, Signal::SIGXFSZ),
    (26, Signal::SIGVTALRM),
    (27, Signal::SIGPROF),
    (28, Signal::SIGWINCH),
    (29, Signal::SIGIO),
    (30, Signal::SIGPWR),
    (31, Signal::SIGSYS),
    (32, Signal(77)),
    (64, Signal(78)),
];

/// Linux's real-time signals from 33 to 63 follow each other in gdb's numbers, too.
const REAL_TIME: std::ops::RangeInclusive<i32> = 33..=63;
/// gdb's number of the first of them (`GDB_SIGNAL_REALTIME_33`).
const REAL_TIME_GDB: u8 = 45;
/// gdb's number of a signal that it does not know (`GDB_SIGNAL_UNKNOWN`).
const UNKNOWN: Signal = Signal(143);

/// gdb's number of a signal of Linux.
pub fn to_gdb(signal: i32) -> Signal {
    if REAL_TIME.contains(&signal) {
        return Signal(REAL_TIME_GDB + (signal - REAL_TIME.start()) as u8);
    }
    let found = NUMBERS.iter().find(|(linux, _)| *linux == signal);
    found.map_or(UNKNOWN, |(_, gdb)| *gdb)
}

/// Linux's number of a signal of gdb, if Linux has it.
pub fn from_gdb(signal: Signal) -> Option<i32> {
    (1..=64).find(|linux| to_gdb(*linux) == signal && signal != UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signal_that_gdb_knows_comes_back() {
        for linux in 1..=64 {
            let expected = (linux != 16).then_some(linux);
            assert_eq!(from_gdb(to_gdb(linux)), expected);
        }
        assert_eq!(to_gdb(10), Signal::SIGUSR1);
        assert_eq!((to_gdb(33), to_gdb(63)), (Signal(45), Signal(75)));
        assert_eq!(from_gdb(Signal(0)), None);
    }
}
