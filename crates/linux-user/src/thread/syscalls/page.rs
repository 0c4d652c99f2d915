//! The book's page on system calls, written from the table.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use super::table::{Action, FIRST, TABLE};

/// The environment variable that writes the page instead of comparing it.
const UPDATE: &str = "SIDESTEP_UPDATE";

const NO_CALL: &str = "Linux 6 has no such call on IA-64: `ENOSYS` there, too";
const CONFINED: &str = "`EPERM` for a program with a root folder, which it would leave";
const MODULES: &str = "would change the host's kernel";
const POLICIES: &str = "memory policies name nodes of the host; none is the guest's";
const ASYNCHRONOUS: &str = "requests hold addresses of their own, which the host would read in a ring";
const KEYS: &str = "IA-64's protection keys are no host's; Linux/ia64 has none for programs either";
const CHILDREN: &str = "a child that shares descriptors or folders only from a program with one thread; no namespaces, and \
                        no `CLONE_SIGHAND` without `CLONE_VM`";
const OTHERS_MEMORY: &str =
    "of programs whose emulator has their memory at the same host addresses, which is usual";

/// What is missing of calls that are done partly, and why others are refused.
const REMARKS: &[(&str, &str)] = &[
    ("_sysctl", NO_CALL),
    ("afs_syscall", NO_CALL),
    ("bdflush", NO_CALL),
    ("bpf", "programs run in the host's kernel"),
    ("clone", CHILDREN),
    ("clone2", CHILDREN),
    ("delete_module", MODULES),
    ("finit_module", MODULES),
    ("get_mempolicy", POLICIES),
    ("getpmsg", NO_CALL),
    ("init_module", MODULES),
    ("io_cancel", ASYNCHRONOUS),
    ("io_destroy", ASYNCHRONOUS),
    ("io_getevents", ASYNCHRONOUS),
    ("io_pgetevents", ASYNCHRONOUS),
    ("io_setup", ASYNCHRONOUS),
    ("io_submit", ASYNCHRONOUS),
    ("io_uring_enter", ASYNCHRONOUS),
    ("io_uring_register", ASYNCHRONOUS),
    ("io_uring_setup", ASYNCHRONOUS),
    (
        "ioctl",
        "requests whose structures hold further addresses, such as `SG_IO`, fail with `EFAULT`",
    ),
    ("kexec_load", MODULES),
    ("keyctl", "what its arguments are hangs on the command"),
    ("lookup_dcookie", "tells a profiler about the host's files"),
    ("mbind", POLICIES),
    ("migrate_pages", POLICIES),
    ("mmap", "no huge pages (`MAP_HUGETLB`): region 4 is not offered"),
    ("mmap2", "as `mmap`"),
    ("move_pages", POLICIES),
    (
        "mremap",
        "`MREMAP_DONTUNMAP` for private memory without a file alone",
    ),
    ("nfsservctl", NO_CALL),
    ("ni_syscall", NO_CALL),
    ("pciconfig_read", "there is no PCI bus for programs"),
    ("pciconfig_write", "there is no PCI bus for programs"),
    (
        "perf_event_open",
        "it would count the emulator; `sidestep perf` counts the program",
    ),
    ("perfmonctl", NO_CALL),
    ("pkey_alloc", KEYS),
    ("pkey_free", KEYS),
    ("pkey_mprotect", KEYS),
    ("prctl", "no `PR_SET_MM`, `PR_SET_VMA` and `PR_SET_SECCOMP`"),
    (
        "process_madvise",
        "of another process, whose mappings are its emulator's",
    ),
    ("process_vm_readv", OTHERS_MEMORY),
    ("process_vm_writev", OTHERS_MEMORY),
    (
        "ptrace",
        "the host has the registers of the emulator; `exec --gdb` has the program's",
    ),
    ("putpmsg", NO_CALL),
    (
        "remap_file_pages",
        "deprecated since Linux 3.16: `mmap` does the same",
    ),
    ("rseq", NO_CALL),
    ("seccomp", "a filter would see the emulator's calls"),
    ("set_mempolicy", POLICIES),
    ("set_mempolicy_home_node", POLICIES),
    ("sysfs", "obsolete: `/proc/filesystems` says the same"),
    ("timerfd", NO_CALL),
    ("uselib", "libraries of a format before ELF"),
    ("userfaultfd", "no events of forks, moves and removals"),
    ("vserver", NO_CALL),
];

fn page() -> String {
    let remark = |name: &str| {
        REMARKS
            .iter()
            .find(|(of, _)| *of == name)
            .map(|(_, remark)| *remark)
    };
    let mut rows = String::new();
    let mut counts = [0; 3];
    for call in TABLE {
        let (state, counted, words) = match (call.action, remark(call.name)) {
            (Action::Missing, why) => (
                "refused",
                2,
                why.unwrap_or_else(|| panic!("why is {} refused?", call.name)),
            ),
            (Action::Unconfined(_), None) => ("partly", 1, CONFINED),
            (_, Some(lacks)) => ("partly", 1, lacks),
            (_, None) => ("done", 0, ""),
        };
        counts[counted] += 1;
        let number = FIRST + u64::from(call.number);
        writeln!(rows, "| {number} | `{}` | {state} | {words} |", call.name).expect("a string has room");
    }
    let [done, partly, refused] = counts;
    let all = TABLE.len();
    let introduction = format!(
        "What `sidestep exec` does for each system call of Linux/ia64, as of Linux 6.6: of {all},\n\
         {done} are *done*, {partly} *partly*, with what is missing, and {refused} *refused* with `ENOSYS`, with the\n\
         reason. The number of `clone3` is reserved on IA-64 and nothing else. A test writes this page from the table\n\
         by which calls are served."
    );
    let head = "| number | call | | what is missing, or why |\n|---|---|---|---|\n";
    format!("# System calls\n\n{introduction}\n\n{head}{rows}")
}

#[test]
fn the_books_page_is_what_is_served() {
    for (name, _) in REMARKS {
        assert!(
            TABLE.iter().any(|call| call.name == *name),
            "there is no call {name}"
        );
    }
    let said = page();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/reference/system-calls.md");
    if env::var_os(UPDATE).is_some() {
        fs::write(&path, &said).expect("the book can be written");
    }
    assert!(
        fs::read_to_string(&path).unwrap_or_default() == said,
        "docs/src/reference/system-calls.md is not what is served; write it with \
         {UPDATE}=1 cargo test -p sidestep-linux-user the_books_page"
    );
}
