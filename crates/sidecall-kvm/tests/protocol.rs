//! The protocol without a guest: whatever stands in the shared page, only what a request may change changes.

use std::sync::Arc;

use proptest::prelude::*;
use sidestep_sidecall_kvm::layout::{PAGE_WORDS, WINDOW_PAGES, page, request};
use sidestep_sidecall_kvm::memory::GuestMemory;
use sidestep_sidecall_kvm::service::{IDENTIFICATION, Operation, Request, Status};
use sidestep_sidecall_kvm::sidecore::Sidecore;

fn post(memory: &GuestMemory, [operation, page, frame]: [u64; 3]) {
    memory.store(page::REQUEST, request::OPERATION, operation);
    memory.store(page::REQUEST, request::PAGE, page);
    memory.store(page::REQUEST, request::FRAME, frame);
}

fn serve(memory: &GuestMemory, words: [u64; 3]) -> Status {
    post(memory, words);
    Request::copy(memory, 1).serve(memory)
}

#[test]
fn a_page_is_mapped_changed_and_unmapped() {
    let memory = GuestMemory::new();
    let entry = || memory.load(page::WINDOW, 7);
    let [map, change, unmap] = [Operation::Map, Operation::Change, Operation::Unmap].map(|it| it as u64);
    assert_eq!(serve(&memory, [change, 7, 12]), Status::NotMapped);
    assert_eq!(serve(&memory, [map, 7, 12]), Status::Done);
    assert_eq!(entry(), 12 << 12 | 7);
    assert_eq!(serve(&memory, [map, 7, 13]), Status::Mapped);
    assert_eq!(serve(&memory, [change, 7, 13]), Status::Done);
    assert_eq!(entry(), 13 << 12 | 7);
    assert_eq!(serve(&memory, [unmap, 7, 0]), Status::Done);
    assert_eq!(entry(), 0);
    assert_eq!(serve(&memory, [unmap, 7, 0]), Status::NotMapped);
}

#[test]
fn a_request_that_changes_after_it_was_copied_is_served_as_it_was() {
    let memory = GuestMemory::new();
    post(&memory, [Operation::Map as u64, 3, page::FRAMES as u64]);
    let copied = Request::copy(&memory, 9);
    post(&memory, [Operation::Map as u64, u64::MAX, page::LEVEL_4 as u64]);
    assert_eq!(copied.serve(&memory), Status::Done);
    assert_eq!(memory.load(page::WINDOW, 3), (page::FRAMES as u64) << 12 | 7);
    assert_eq!(memory.load(page::REQUEST, request::ANSWERED), 9);
}

#[test]
fn guests_that_write_garbage_and_stop_leave_a_victim_its_answers() {
    let set = rustix::thread::sched_getaffinity(None).expect("the cores of this process");
    let core = (0..1024).find(|core| set.is_set(*core)).unwrap_or(0);
    let [victim, hostile] = [(); 2].map(|()| Arc::new(GuestMemory::new()));
    let guests = vec![Arc::clone(&hostile), Arc::clone(&victim)];
    let sidecore = Sidecore::start(core, guests, 100).expect("a sidecore");
    let waker = sidecore.waker().expect("it runs");
    for sequence in 1..=200_u64 {
        for word in 0..PAGE_WORDS {
            let garbage = sequence
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(word as u32);
            hostile.store(page::REQUEST, word, garbage);
        }
        post(&victim, [Operation::Identify as u64, 0, 0]);
        victim.store(page::REQUEST, request::SEQUENCE, sequence);
        while victim.load(page::REQUEST, request::ANSWERED) != sequence {
            waker.unpark();
            std::thread::yield_now();
        }
        assert_eq!(victim.load(page::REQUEST, request::STATUS), Status::Done as u64);
        assert_eq!(victim.load(page::REQUEST, request::VALUE), IDENTIFICATION);
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
        let memory = GuestMemory::new();
        let status = serve(&memory, [operation, index, frame]);
        for page in (0..page::COUNT).filter(|page| *page != page::REQUEST) {
            for word in 0..PAGE_WORDS {
                let value = memory.load(page, word);
                let is_asked = page == page::WINDOW && word as u64 == index && status == Status::Done;
                prop_assert!(value == 0 || is_asked && value == frame << 12 | 7);
            }
        }
        let is_frame = (page::FRAMES as u64..page::COUNT as u64).contains(&frame);
        let is_map = operation == Operation::Map as u64 && index < WINDOW_PAGES as u64 && is_frame;
        let is_idle = [Operation::Null as u64, Operation::Identify as u64].contains(&operation);
        prop_assert_eq!(status == Status::Done, is_map || is_idle);
    }
}
