//! Processes that a sidecore does not trust: what they cannot do, and that a victim beside them is served on.
#![cfg(all(target_os = "linux", not(loom)))]

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proptest::prelude::*;
use sidestep_sidecall::broker::{Broker, DATA_START, FILES_MAX, REGION_BYTES, Rights, Visit};
use sidestep_sidecall::line::Request;
use sidestep_sidecall::system_calls::{Operation, Words};
use sidestep_sidecall::table::Table;

struct House {
    folder: tempfile::TempDir,
    broker: Option<Broker>,
}

impl House {
    /// A folder with one file, one link that leads out, and one pipe.
    fn new(writes: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let inside = folder.path().join("inside");
        fs::create_dir(&inside).expect("a folder");
        fs::write(inside.join("file"), "sidestep").expect("a file");
        fs::write(folder.path().join("secret"), "secret").expect("a file");
        std::os::unix::fs::symlink("../secret", inside.join("link")).expect("a link");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            inside.join("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .expect("a pipe");
        let rights = Rights {
            folder: fs::File::open(&inside).expect("a folder").into(),
            writes,
            table: Table::of(&[(3, 33)]),
        };
        let socket = folder.path().join("socket");
        let broker = Broker::start(&socket, None, rights, 10_000).expect("a broker");
        Self {
            folder,
            broker: Some(broker),
        }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn visit(&self) -> Visit {
        Visit::connect(&self.socket()).expect("a line")
    }

    fn broker(&self) -> &Broker {
        self.broker.as_ref().expect("not ended yet")
    }
}

fn error(result: std::io::Result<impl std::fmt::Debug>) -> Option<i32> {
    result.expect_err("refused").raw_os_error()
}

fn is_served(visit: &mut Visit) {
    let file = visit.open("file", libc::O_RDONLY, 0).expect("opened");
    let mut buffer = [0; 20];
    let count = visit.read(file, &mut buffer, Some(4)).expect("read");
    assert_eq!(&buffer[..count], b"step");
    visit.close(file).expect("closed");
    assert_eq!(visit.look_up(3).expect("a value"), 33);
}

#[test]
fn a_process_does_what_it_may_and_nothing_else() {
    let house = House::new(false);
    let mut visit = house.visit();
    is_served(&mut visit);
    assert_eq!(visit.size("file").expect("known"), 8);
    assert_eq!(
        error(visit.open("../secret", libc::O_RDONLY, 0)),
        Some(libc::EXDEV)
    );
    assert_eq!(error(visit.open("link", libc::O_RDONLY, 0)), Some(libc::EXDEV));
    assert_eq!(error(visit.size("link")), Some(libc::EXDEV));
    assert_eq!(
        error(visit.open("/etc/passwd", libc::O_RDONLY, 0)),
        Some(libc::EXDEV)
    );
    assert_eq!(error(visit.open("pipe", libc::O_RDONLY, 0)), Some(libc::EACCES));
    assert_eq!(error(visit.open("file", libc::O_RDWR, 0)), Some(libc::EACCES));
    assert_eq!(error(visit.open("new", libc::O_CREAT, 0o600)), Some(libc::EACCES));
    for number in [0, 1, 2, 3, u32::MAX] {
        assert_eq!(error(visit.read(number, &mut [0; 4], None)), Some(libc::EBADF));
    }
    let files = (0..FILES_MAX).map(|_| visit.open("file", libc::O_RDONLY, 0));
    assert!(files.into_iter().all(|file| file.is_ok()));
    assert_eq!(error(visit.open("file", libc::O_RDONLY, 0)), Some(libc::EMFILE));
}

#[test]
fn what_is_not_in_the_page_cache_is_fetched() {
    use std::os::fd::AsRawFd;
    let house = House::new(false);
    let path = house.folder.path().join("inside/large");
    fs::write(&path, vec![b'l'; 1 << 20]).expect("a file");
    let file = fs::File::open(&path).expect("a file");
    file.sync_all().expect("on its disk");
    // SAFETY: a call without addresses.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    let mut visit = house.visit();
    let number = visit.open("large", libc::O_RDONLY, 0).expect("opened");
    let mut buffer = [0; 4096];
    for offset in [0, 600_000, (1 << 20) - 4096] {
        let count = visit.read(number, &mut buffer, Some(offset)).expect("read");
        assert_eq!((count, buffer[4095]), (4096, b'l'), "at {offset}");
    }
}

#[test]
fn a_process_that_may_writes() {
    let house = House::new(true);
    let mut visit = house.visit();
    let flags = libc::O_RDWR | libc::O_CREAT;
    let file = visit.open("new", flags, 0o600).expect("a new file");
    assert_eq!(visit.write(file, b"new", None).expect("written"), 3);
    let written = fs::read(house.folder.path().join("inside/new")).expect("a file");
    assert_eq!(written, b"new");
}

#[test]
fn a_request_for_bytes_outside_the_region_is_refused() {
    let house = House::new(false);
    let mut visit = house.visit();
    let file = visit.open("file", libc::O_RDONLY, 0).expect("opened");
    let end = REGION_BYTES as u64;
    for (first, length) in [
        (0, 8),
        (DATA_START as u64 - 1, 8),
        (end - 7, 8),
        (end, 1),
        (u64::MAX, 2),
    ] {
        let words = Words {
            descriptor: file,
            length,
            first,
            ..Words::of(Operation::Read)
        };
        assert_eq!(error(visit.call(words)), Some(libc::EFAULT), "{first:#x}");
    }
}

#[test]
fn a_process_that_says_something_is_shown_out() {
    use std::io::{Read, Write};
    let house = House::new(false);
    let mut socket = UnixStream::connect(house.socket()).expect("a connection");
    let mut rest = Vec::new();
    socket.write_all(b"hello").expect("it listens");
    // What was sent and not read breaks the connection off.
    let _ = socket.read_to_end(&mut rest);
    let mut victim = house.visit();
    is_served(&mut victim);
}

#[test]
fn the_end_of_the_broker_is_an_error_for_who_calls() {
    let mut house = House::new(false);
    let mut visit = house.visit();
    is_served(&mut visit);
    let tally = house.broker.take().expect("a broker").end();
    assert!(tally.served >= 4 && tally.processor_ns > 0, "{tally:?}");
    assert!(visit.look_up(3).is_err());
    assert!(!house.socket().exists());
}

/// Not a test of its own: what `a_killed_process_leaves_nothing_behind` starts, in a process of its own.
#[test]
fn hostile_process() {
    let Some(socket) = std::env::var_os("SIDECALL_HOSTILE") else {
        return;
    };
    let mut visit = Visit::connect(Path::new(&socket)).expect("a line");
    visit.open("file", libc::O_RDONLY, 0).expect("opened");
    println!("connected");
    for sequence in 10.. {
        // A request after the other without waiting for an answer, until somebody ends this.
        visit.line().call(&Request {
            sequence,
            operation: sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            first: sequence.rotate_left(7),
            second: !sequence,
        });
    }
}

/// Open files that are regions: `/proc` names them so.
fn regions() -> usize {
    let maps = fs::read_to_string("/proc/self/maps").expect("this process's memory");
    maps.lines()
        .filter(|line| line.contains("memfd:sidecall"))
        .count()
}

#[test]
fn a_killed_process_leaves_nothing_behind_and_a_victim_unharmed() {
    use std::io::{BufRead, BufReader};
    let house = House::new(false);
    let mut victim = house.visit();
    for _ in 0..3 {
        let mut hostile = Command::new(std::env::current_exe().expect("this test's path"))
            .args(["hostile_process", "--exact", "--nocapture"])
            .env("SIDECALL_HOSTILE", house.socket())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let output = BufReader::new(hostile.stdout.take().expect("piped"));
        let connected = output
            .lines()
            .any(|line| line.expect("text").contains("connected"));
        assert!(connected);
        for _ in 0..200 {
            is_served(&mut victim);
        }
        // SIGKILL, in the middle of a flood.
        hostile.kill().expect("it runs");
        hostile.wait().expect("it ends");
        while house.broker().processes() > 1 {
            std::thread::yield_now();
        }
        is_served(&mut victim);
    }
}

#[test]
fn regions_go_with_their_processes() {
    let mut house = House::new(false);
    for _ in 0..200 {
        is_served(&mut house.visit());
    }
    drop(house.broker.take());
    // Other tests have some, and none has so many.
    assert!(regions() < 100, "{}", regions());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]
    #[test]
    fn garbage_harms_nobody_else(
        garbage in prop::collection::vec((0..12_u8, any::<u64>(), prop_oneof![0..200_000_u64, any::<u64>()],
            any::<u64>()), 1..100),
    ) {
        let house = House::new(true);
        let (mut victim, hostile) = (house.visit(), house.visit());
        for (operation, word, first, second) in garbage {
            let request = Request {
                sequence: word,
                operation: word << 8 | u64::from(operation),
                first,
                second,
            };
            hostile.line().call(&request);
            hostile.line().answer(second, sidestep_sidecall::line::Answer { status: word, value: first });
            hostile.line().wake();
            prop_assert_eq!(victim.look_up(3).expect("a value"), 33);
        }
        is_served(&mut victim);
        // It may go on as everybody may, with a number that it has not used; it harmed no secret.
        drop(hostile);
        let secret = fs::read(house.folder.path().join("secret")).expect("a file");
        prop_assert_eq!(secret, b"secret");
    }
}
