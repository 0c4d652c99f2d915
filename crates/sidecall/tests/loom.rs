//! Every interleaving of a line: an answer belongs to its request, and nobody sleeps through a request.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p sidestep-sidecall --release --test loom`

#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;
use sidestep_sidecall::line::{Answer, Line, Request, WORDS};

fn words() -> Arc<[AtomicU64; WORDS]> {
    Arc::new(std::array::from_fn(|_| AtomicU64::new(0)))
}

fn request(sequence: u64) -> Request {
    Request {
        sequence,
        operation: 10 * sequence,
        first: 10 * sequence + 1,
        second: 10 * sequence + 2,
    }
}

#[test]
fn a_request_is_seen_whole_and_its_answer_is_its_own() {
    loom::model(|| {
        let words = words();
        let shared = Arc::clone(&words);
        let serving = thread::spawn(move || {
            let line = Line::new(&shared);
            let mut served = 0;
            for _ in 0..2 {
                let sequence = line.announced();
                if sequence != served {
                    served = sequence;
                    let copied = line.copy(sequence);
                    assert_eq!(copied, request(sequence));
                    line.answer(
                        sequence,
                        Answer {
                            status: 0,
                            value: copied.second,
                        },
                    );
                }
                thread::yield_now();
            }
        });
        let line = Line::new(&words);
        for sequence in 1..=2 {
            line.call(&request(sequence));
            match line.answer_to(sequence) {
                Some(answer) => assert_eq!(answer.value, request(sequence).second),
                // A caller without its answer makes no other request.
                None => break,
            }
        }
        serving.join().unwrap();
    });
}

#[test]
fn a_request_that_meets_falling_asleep_is_seen_or_wakes() {
    loom::model(|| {
        let words = words();
        let shared = Arc::clone(&words);
        let serving = thread::spawn(move || {
            let line = Line::new(&shared);
            line.sleeps();
            // Asleep only if there is nothing, and then if nobody has said otherwise since.
            let falls_asleep = line.announced() == 0;
            (falls_asleep, line.says_asleep())
        });
        let line = Line::new(&words);
        let must_wake = line.call(&request(1));
        if must_wake {
            line.is_awake();
        }
        let (falls_asleep, _) = serving.join().unwrap();
        assert!(!falls_asleep || must_wake, "it sleeps, and nobody wakes it");
    });
}
