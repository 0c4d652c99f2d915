//! Calls of this process's own, by a real sidecore.
#![cfg(all(target_os = "linux", not(loom)))]

use std::ffi::CString;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::process::Command;

use sidestep_sidecall::caller::OwnSidecore;
use sidestep_sidecall::sidecore::CALLERS_MAX;
use sidestep_sidecall::system_calls::Operation;
use sidestep_sidecall::table::Table;

const LOOKS: u64 = 10_000;

fn sidecore() -> OwnSidecore {
    OwnSidecore::start(None, Table::of(&[(3, 33), (4, 44)]), LOOKS).expect("a sidecore")
}

#[test]
fn calls_do_what_the_system_calls_of_their_names_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    let path = CString::new(path.to_str().expect("UTF-8")).expect("no zero");
    let sidecore = sidecore();
    let mut caller = sidecore.caller().expect("a line");
    assert_eq!(caller.null().expect("nothing"), 0);
    assert_eq!(caller.getpid().expect("a number"), u64::from(std::process::id()));
    let flags = libc::O_RDWR | libc::O_CREAT;
    let file = caller.open(&path, flags, 0o600).expect("a new file");
    assert_eq!(caller.write(file, b"sidestep", None).expect("written"), 8);
    let mut buffer = [0; 16];
    assert_eq!(caller.read(file, &mut buffer, Some(4)).expect("read"), 4);
    assert_eq!(&buffer[..4], b"step");
    assert_eq!(caller.read(file, &mut buffer, None).expect("the end"), 0);
    assert_eq!(caller.stat(&path).expect("known").st_size, 8);
    // SAFETY: it asks for the flags of an open file.
    let status = unsafe { libc::fcntl(file, libc::F_GETFL) };
    assert_eq!(status & libc::O_NONBLOCK, 0, "as it was asked for");
    caller.close(file).expect("closed");
    let error = caller.close(file).expect_err("closed already");
    assert_eq!(error.raw_os_error(), Some(libc::EBADF));
    assert_eq!(caller.look_up(4).expect("a value"), 44);
    let error = caller.look_up(5).expect_err("no such key");
    assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    assert!(
        caller.open(c"/", libc::O_RDONLY, 0).is_ok(),
        "a folder, by the caller itself"
    );
    let error = caller.stat(c"/no such file").expect_err("none");
    assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
}

#[test]
fn addresses_that_are_no_memory_are_an_error_and_kill_nobody() {
    let sidecore = sidecore();
    let mut caller = sidecore.caller().expect("a line");
    let file = std::fs::File::open("/proc/self/exe").expect("this program");
    let nowhere = std::ptr::with_exposed_provenance_mut::<u8>(8);
    // SAFETY: the kernel refuses the address.
    let read = unsafe { caller.transfer(Operation::Read, file.as_raw_fd(), (nowhere, 100), None) };
    assert_eq!(read.expect_err("refused").raw_os_error(), Some(libc::EFAULT));
    // SAFETY: as above.
    let known = unsafe { caller.stat_to(nowhere.cast(), nowhere.cast()) };
    assert_eq!(known.expect_err("refused").raw_os_error(), Some(libc::EFAULT));
}

#[test]
fn an_empty_pipe_makes_its_reader_wait_and_nobody_else() {
    let (mut reader, mut writer) = std::io::pipe().expect("a pipe");
    let sidecore = sidecore();
    let mut caller = sidecore.caller().expect("a line");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let mut caller = sidecore.caller().expect("a line");
            let mut buffer = [0; 8];
            let count = caller.read(reader.as_raw_fd(), &mut buffer, None).expect("bytes");
            buffer[..count].to_vec()
        });
        while sidecore.sidecore().tally().refused == 0 {
            std::thread::yield_now();
        }
        assert_eq!(caller.look_up(3).expect("a value"), 33);
        writer.write_all(b"late").expect("a reader");
        assert_eq!(waiting.join().expect("no panic"), b"late");
    });
    let error = {
        let mut written = [0; 1];
        drop(writer);
        assert_eq!(reader.read(&mut written).expect("the end"), 0);
        caller.read(reader.as_raw_fd(), &mut written, None)
    };
    assert_eq!(error.expect("the end"), 0);
}

#[test]
fn a_sidecore_that_sleeps_is_woken_by_a_call_and_ended() {
    let sidecore = OwnSidecore::start(None, Table::default(), 0).expect("a sidecore");
    let mut caller = sidecore.caller().expect("a line");
    for round in 0..50 {
        while sidecore.sidecore().tally().slept <= round {
            std::thread::yield_now();
        }
        assert_eq!(caller.null().expect("nothing"), 0);
    }
}

#[test]
fn as_many_callers_as_the_kernel_lets_sleep_on_are_served_and_no_more() {
    let sidecore = sidecore();
    let mut callers: Vec<_> = (0..CALLERS_MAX)
        .map(|_| sidecore.caller().expect("a line"))
        .collect();
    assert!(sidecore.caller().is_err());
    for caller in &mut callers {
        assert_eq!(caller.look_up(3).expect("a value"), 33);
    }
    callers.pop();
    let mut late = loop {
        // The thread lets go of it in its own time.
        if let Ok(caller) = sidecore.caller() {
            break caller;
        }
        std::thread::yield_now();
    };
    assert_eq!(late.look_up(4).expect("a value"), 44);
}

/// The folder that cargo puts examples and libraries into: this test is in `deps` beside it.
fn built(name: &str) -> std::path::PathBuf {
    let test = std::env::current_exe().expect("this test's path");
    let folder = test.parent().and_then(std::path::Path::parent);
    folder.expect("a folder above deps").join(name)
}

#[test]
fn an_unmodified_program_reads_by_a_sidecore() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    let text: String = (0..20_000).map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, &text).expect("a file");
    // It forks, too: the child makes its calls itself.
    let script = format!("test -e {0} && cat {0} | cat", path.display());
    let output = Command::new("sh")
        .args(["-c", &script])
        .env("LD_PRELOAD", built("examples/libpreload.so"))
        .env("SIDECALL_TALLY", "1")
        .output()
        .expect("a shell");
    assert_eq!(String::from_utf8_lossy(&output.stdout), text);
    let said = String::from_utf8_lossy(&output.stderr);
    let served: u64 = said
        .lines()
        .filter_map(|line| {
            line.strip_prefix("sidecalls: ")?
                .split(' ')
                .next()?
                .parse::<u64>()
                .ok()
        })
        .sum();
    assert!(served > 2, "{said}");
}

#[test]
fn a_program_in_c_links_the_library() {
    let has_compiler = Command::new("cc").arg("--version").output().is_ok();
    if !tests_need::host(has_compiler, "a program in C needs a C compiler, cc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let compiled = Command::new("cc")
        .arg(sources.join("tests/program.c"))
        .arg("-I")
        .arg(sources.join("include"))
        .args(["-Wall", "-Werror", "-o"])
        .arg(&program)
        .arg(built("deps/libsidestep_sidecall.a"))
        .args(["-lpthread", "-ldl", "-lm"])
        .output()
        .expect("a compiler");
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let table = folder.path().join("table");
    std::fs::write(&table, Table::of(&[(7, 77)]).bytes()).expect("a table");
    let output = Command::new(&program).arg(&table).output().expect("it runs");
    assert_eq!(
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).as_ref()
        ),
        (Some(0), "77\n")
    );
}
