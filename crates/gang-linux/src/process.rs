//! What the kernel tells about processes and threads in `/proc`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use crate::HostError;

/// A thread, named so that a later thread of the same number is not mistaken for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct ThreadName {
    /// The process (thread group) it belongs to.
    pub process: i32,
    /// Its own number.
    pub thread: i32,
    /// When it started, in clock ticks since boot.
    pub start: u64,
}

/// One line of `/proc/PID/task/TID/stat`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Its name, as `comm`.
    pub name: String,
    /// `R` running or runnable, `S` sleeping, `D` waiting for a device, `T` stopped, `Z` ended.
    pub state: char,
    /// The parent process.
    pub parent: i32,
    /// The kernel's flags for it.
    pub flags: u64,
    /// When it started, in clock ticks since boot.
    pub start: u64,
}

/// The flag of threads that belong to the kernel.
const KERNEL_THREAD: u64 = 0x0020_0000;

impl Stat {
    /// Reads the fields of a line; `None` when it is not one.
    pub fn parse(line: &str) -> Option<Self> {
        // The name is in parentheses and may itself hold parentheses and spaces.
        let (before, after) = line.rsplit_once(')')?;
        let name = before.split_once('(')?.1.to_owned();
        let fields: Vec<&str> = after.split_whitespace().collect();
        Some(Self {
            name,
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            flags: fields.get(6)?.parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
        })
    }

    /// What is known of a thread now; `None` when it is gone.
    pub fn of(process: i32, thread: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{process}/task/{thread}/stat")).ok()?)
    }
}

impl ThreadName {
    /// The thread that has these numbers now; `None` when there is none.
    pub fn of(process: i32, thread: i32) -> Option<Self> {
        Some(Self {
            process,
            thread,
            start: Stat::of(process, thread)?.start,
        })
    }

    /// Whether this very thread is still there.
    pub fn is_alive(&self) -> bool {
        Stat::of(self.process, self.thread).is_some_and(|stat| stat.start == self.start && stat.state != 'Z')
    }

    /// The time it has run and the time it waited for a core, in nanoseconds.
    pub fn run_and_wait_ns(&self) -> Option<(u64, u64)> {
        let text =
            fs::read_to_string(format!("/proc/{}/task/{}/schedstat", self.process, self.thread)).ok()?;
        let mut numbers = text.split_whitespace().map(|number| number.parse().ok());
        Some((numbers.next()??, numbers.next()??))
    }
}

/// How long the threads of a process have run, those that ended included; `None` when it is gone. Process 0 is this
/// one.
pub fn ran_ns(process: i32) -> Option<u64> {
    let mut clock = 0;
    // SAFETY: the pointer is to a local of the type that the call writes.
    if unsafe { libc::clock_getcpuclockid(process, &mut clock) } != 0 {
        return None;
    }
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a local of the type that the call writes; a clock that is gone is refused.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return None;
    }
    Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// How often NUMA balancing has gone over all memory of a process; `None` when it is gone, or the kernel does not tell.
pub fn numa_rounds(process: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/sched")).ok()?;
    let line = text.lines().find(|line| line.starts_with("mm->numa_scan_seq"))?;
    line.rsplit_once(':')?.1.trim().parse().ok()
}

/// How long the threads of a process have run in the kernel, those that ended included, as it sampled that at the ticks
/// of its clock; `None` when it is gone.
pub fn in_kernel_ns(process: i32) -> Option<u64> {
    let line = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut fields = line.rsplit_once(')')?.1.split_whitespace();
    let ticks: u64 = fields.nth(12)?.parse().ok()?;
    Some(ticks * (1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)))
}

/// The threads of a process in the order of their numbers; none when it is gone.
pub fn threads(process: i32) -> Vec<i32> {
    numbered_entries(&format!("/proc/{process}/task"))
}

/// The exit code of a process that has ended; 128 more than the signal's number if a signal ended it, as shells say it.
pub fn exit_code(status: ExitStatus) -> Option<i32> {
    status.code().or_else(|| Some(128 + status.signal()?))
}

/// All processes.
pub fn all() -> Vec<i32> {
    numbered_entries("/proc")
}

fn numbered_entries(folder: &str) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let number = |entry: std::io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    let mut numbers: Vec<i32> = entries.filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

/// A process and all its descendants, itself first.
pub fn family(process: i32) -> Vec<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for other in all() {
        if let Some(stat) = Stat::of(other, other) {
            children.entry(stat.parent).or_default().push(other);
        }
    }
    let mut family = Vec::new();
    let mut open = vec![process];
    let mut seen = BTreeSet::new();
    while let Some(next) = open.pop() {
        if seen.insert(next) && Stat::of(next, next).is_some() {
            family.push(next);
            open.extend(children.remove(&next).unwrap_or_default());
        }
    }
    if let Some((_, descendants)) = family.split_first_mut() {
        descendants.sort_unstable();
    }
    family
}

/// Refuses processes that a coscheduler has no business with.
///
/// # Errors
/// When the process does not exist, is PID 1, belongs to the kernel, is this process, or belongs to another user
/// (unless `other_users` allows it; the user who called `sudo` counts as this one).
pub fn check(process: i32, other_users: bool) -> Result<(), HostError> {
    let refuse = |reason: String| Err(HostError::Refused { process, reason });
    if process == 1 {
        return refuse("is PID 1, which everything depends on; it is left alone".into());
    }
    if process == std::process::id() as i32 {
        return refuse("is this command itself".into());
    }
    let Some(stat) = Stat::of(process, process) else {
        return refuse("does not exist; expected the number of a running process".into());
    };
    if stat.flags & KERNEL_THREAD != 0 {
        return refuse(format!(
            "`{}` is a thread of the kernel; it is left alone",
            stat.name
        ));
    }
    let Ok(owner) = fs::metadata(format!("/proc/{process}")).map(|metadata| metadata.uid()) else {
        return refuse("ended just now".into());
    };
    let own = rustix::process::geteuid().as_raw();
    let caller = std::env::var("SUDO_UID")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(own);
    if owner != own && owner != caller && !other_users {
        return refuse(format!(
            "belongs to user {owner}, not to {caller}; give --other-users to include it"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_run_as_long_as_its_threads_together() {
        let own = std::process::id() as i32;
        let before = ran_ns(own).expect("this process is there");
        let spun =
            std::thread::spawn(|| (0..1_000_000u64).fold(0, |sum, each| std::hint::black_box(sum ^ each)));
        spun.join().expect("it only counts");
        assert!(
            ran_ns(own) > Some(before),
            "the time of a thread that ended counts"
        );
        // The kernel gives no number beyond 2^22.
        assert_eq!(ran_ns(1 << 22), None);
    }
    use proptest::prelude::*;

    #[test]
    fn a_name_may_hold_parentheses_and_spaces() {
        let line = "42 (a (b) c) S 7 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9876 0 0";
        let stat = Stat::parse(line).expect("a line of the kernel's");
        assert_eq!((stat.name.as_str(), stat.state, stat.parent), ("a (b) c", 'S', 7));
        assert_eq!((stat.flags, stat.start), (4_194_560, 9876));
    }

    #[test]
    fn this_process_is_found_and_refused() {
        let own = std::process::id() as i32;
        assert!(threads(own).contains(&own));
        assert!(ThreadName::of(own, own).expect("this thread").is_alive());
        assert_eq!(family(own)[0], own);
        assert!(check(own, true).is_err());
        assert!(check(1, true).is_err());
        assert!(
            check(i32::MAX, true)
                .expect_err("no such process")
                .to_string()
                .contains("does not exist")
        );
    }

    #[test]
    fn kernel_threads_are_refused() {
        let is_kernel =
            |&process: &i32| Stat::of(process, process).is_some_and(|stat| stat.flags & KERNEL_THREAD != 0);
        let Some(kernel) = all().into_iter().find(is_kernel) else {
            tests_need::leave_out("no kernel thread is visible here");
            return;
        };
        let error = check(kernel, true).expect_err("a kernel thread");
        assert!(error.to_string().contains("thread of the kernel"), "{error}");
    }

    proptest! {
        #[test]
        fn any_line_is_read_or_refused(line in ".{0,80}") {
            let _ = Stat::parse(&line);
        }
    }
}
