//! Whatever a process writes into what it shares with a sidecore, and whenever, another process is served as it is
//! alone, and nothing outside the broker's folder is touched.

#![no_main]

use std::fs;
use std::sync::{LazyLock, Mutex};

use libfuzzer_sys::fuzz_target;
use sidestep_sidecall::broker::{Broker, Rights, Visit};
use sidestep_sidecall::line::{Answer, Request};
use sidestep_sidecall::table::Table;

/// What a step of a hostile process takes from the input: what it does, and three words.
const STEP_BYTES: usize = 1 + 3 * 8;
const KEY: u64 = 3;
const VALUE: u64 = 33;

/// A broker with one folder, and the process that must be served whatever others do.
struct House {
    folder: tempfile::TempDir,
    _broker: Broker,
    victim: Mutex<Visit>,
}

static HOUSE: LazyLock<House> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let inside = folder.path().join("inside");
    fs::create_dir(&inside).expect("a folder");
    fs::write(inside.join("f"), "sidestep").expect("a file");
    fs::write(folder.path().join("secret"), "secret").expect("a file");
    let rights = Rights {
        folder: fs::File::open(&inside).expect("a folder").into(),
        writes: true,
        table: Table::of(&[(KEY, VALUE)]),
    };
    let socket = folder.path().join("socket");
    let broker = Broker::start(&socket, None, rights, 10_000).expect("a broker");
    let victim = Mutex::new(Visit::connect(&socket).expect("a line"));
    House {
        folder,
        _broker: broker,
        victim,
    }
});

fuzz_target!(|data: &[u8]| {
    let house = &*HOUSE;
    // The one before may not have been let go of yet.
    let Ok(mut hostile) = Visit::connect(&house.folder.path().join("socket")) else {
        return;
    };
    let mut victim = house.victim.lock().expect("no input panics");
    for step in data.chunks_exact(STEP_BYTES) {
        let word = |index: usize| {
            let bytes = step[1 + 8 * index..][..8].try_into();
            u64::from_le_bytes(bytes.expect("eight bytes"))
        };
        let request = Request {
            sequence: word(0),
            operation: word(0).rotate_left(13),
            first: word(1),
            second: word(2),
        };
        match step[0] % 8 {
            0 => {
                let answer = Answer {
                    status: word(1),
                    value: word(2),
                };
                hostile.line().answer(word(0), answer);
            }
            1 => hostile.line().wake(),
            2 => hostile.line().sleeps(),
            3 => {
                // As the library does, so that it gets further.
                let path = ["f", "g", "..", "../secret", "/"][word(0) as usize % 5];
                let _ = hostile.open(path, word(1) as i32, word(2) as u32);
            }
            operation => {
                let operation = request.operation & !0xff | u64::from(operation * 4 + step[0] / 64);
                hostile.line().call(&Request { operation, ..request });
            }
        }
        assert_eq!(victim.look_up(KEY).expect("a value"), VALUE);
    }
    let secret = fs::read(house.folder.path().join("secret")).expect("a file");
    assert_eq!(secret, b"secret");
});
