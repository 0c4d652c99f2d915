//! The protocol without a guest: whatever stands in the shared page, only what a request may change changes.

use std::sync::Arc;

use proptest::prelude::*;
use sidestep_sidecall::line::Request;
use sidestep_sidecall::sidecore::Sidecore;
use sidestep_sidecall_kvm::layout::{FRAMES, PAGE_WORDS, WINDOW_PAGES, page};
use sidestep_sidecall_kvm::memory::GuestMemory;
use sidestep_sidecall_kvm::service::{GuestService, IDENTIFICATION, Operation, Status, serve as answer};

fn memory() -> GuestMemory {
    GuestMemory::new().expect("some pages")
}

fn request(sequence: u64, [operation, first, second]: [u64; 3]) -> Request {
    Request {
        sequence,
        operation,
        first,
        second,
    }
}

/// How a request went.
fn serve(memory: &GuestMemory, words: [u64; 3]) -> u64 {
    answer(&request(1, words), memory).status
}

#[test]
fn a_page_is_mapped_changed_and_unmapped() {
    let memory = memory();
    let entry = || memory.load(page::WINDOW, 7);
    let frame = FRAMES.start as u64;
    let [map, change, unmap] = [Operation::Map, Operation::Change, Operation::Unmap].map(|it| it as u64);
    let [done, mapped, not_mapped] = [Status::Done, Status::Mapped, Status::NotMapped].map(|it| it as u64);
    assert_eq!(serve(&memory, [change, 7, frame]), not_mapped);
    assert_eq!(serve(&memory, [map, 7, frame]), done);
    assert_eq!(entry(), frame << 12 | 7);
    assert_eq!(serve(&memory, [map, 7, frame + 1]), mapped);
    assert_eq!(serve(&memory, [change, 7, frame + 1]), done);
    assert_eq!(entry(), (frame + 1) << 12 | 7);
    assert_eq!(serve(&memory, [unmap, 7, 0]), done);
    assert_eq!(entry(), 0);
    assert_eq!(serve(&memory, [unmap, 7, 0]), not_mapped);
}

#[test]
fn a_flush_leaves_what_is_in_memory_and_garbage_in_an_entry_flushes_nothing() {
    let memory = memory();
    memory.store(FRAMES.start, 5, 55);
    memory.flush(FRAMES.start).expect("flushed");
    assert_eq!(memory.load(FRAMES.start, 5), 55);
    // What the guest wrote over its entry names no page that there is.
    memory.store(page::WINDOW, 3, u64::MAX);
    let unmap = [Operation::Unmap as u64, 3, 0];
    assert_eq!(serve(&memory, unmap), Status::Done as u64);
}

#[test]
fn a_request_that_changes_after_it_was_copied_is_served_as_it_was() {
    let memory = memory();
    let line = memory.line(0);
    line.call(&request(9, [Operation::Map as u64, 3, page::FRAMES as u64]));
    let copied = line.copy(line.announced());
    line.call(&request(
        9,
        [Operation::Map as u64, u64::MAX, page::LEVEL_4 as u64],
    ));
    assert_eq!(answer(&copied, &memory).status, Status::Done as u64);
    assert_eq!(memory.load(page::WINDOW, 3), (page::FRAMES as u64) << 12 | 7);
}

#[test]
fn guests_that_write_garbage_and_stop_leave_a_victim_its_answers() {
    let [victim, hostile] = [(); 2].map(|()| Arc::new(memory()));
    let guests = [&hostile, &victim].map(|memory| GuestService::new(memory, 0));
    let sidecore = Sidecore::start(None, guests.into(), 100).expect("a sidecore");
    for sequence in 1..=200_u64 {
        for word in 0..PAGE_WORDS {
            let garbage = sequence
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(word as u32);
            hostile.store(page::REQUEST, word, garbage);
        }
        let line = victim.line(0);
        if line.call(&request(sequence, [Operation::Identify as u64, 0, 0])) {
            line.wake();
        }
        let answer = loop {
            match line.answer_to(sequence) {
                Some(answer) => break answer,
                None => std::thread::yield_now(),
            }
        };
        assert_eq!((answer.status, answer.value), (0, IDENTIFICATION));
    }
    let tally = sidecore.end();
    assert!(tally.served >= 200, "{tally:?}");
}

proptest! {
    #[test]
    fn any_request_changes_an_entry_of_the_window_or_nothing(
        operation in prop_oneof![0..8_u64, any::<u64>()],
        index in prop_oneof![0..2 * WINDOW_PAGES as u64, any::<u64>()],
        frame in prop_oneof![0..2 * page::COUNT as u64, any::<u64>()],
    ) {
        let memory = memory();
        let status = serve(&memory, [operation, index, frame]);
        for page in (0..page::COUNT).filter(|page| *page != page::REQUEST) {
            for word in 0..PAGE_WORDS {
                let value = memory.load(page, word);
                let is_asked = page == page::WINDOW && word as u64 == index && status == Status::Done as u64;
                prop_assert!(value == 0 || is_asked && value == frame << 12 | 7);
            }
        }
        let is_frame = (FRAMES.start as u64..FRAMES.end as u64).contains(&frame);
        let is_map = operation == Operation::Map as u64 && index < WINDOW_PAGES as u64 && is_frame;
        let is_idle = [Operation::Null as u64, Operation::Identify as u64].contains(&operation);
        prop_assert_eq!(status == Status::Done as u64, is_map || is_idle);
    }
}
