//! The protocol without a guest: whatever stands in the shared page, only what a request may change changes.

use std::sync::Arc;

use proptest::prelude::*;
use sidestep_sidecall::line::{Answer, Request};
use sidestep_sidecall::sidecore::Sidecore;
use sidestep_sidecall_kvm::devices::{BLOCK_BYTES, Devices};
use sidestep_sidecall_kvm::layout::{FRAMES, PAGE_BYTES, PAGE_WORDS, WINDOW_PAGES, page};
use sidestep_sidecall_kvm::memory::GuestMemory;
use sidestep_sidecall_kvm::operation::{Operation, Status};
use sidestep_sidecall_kvm::program::ZeroWaitSidecore;
use sidestep_sidecall_kvm::service::{GuestService, IDENTIFICATION, serve as answer};

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
    answer(&request(1, words), memory, None).status
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
    assert_eq!(answer(&copied, &memory, None).status, Status::Done as u64);
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
        let answer = call(&victim, 0, &request(sequence, [Operation::Identify as u64, 0, 0]));
        assert_eq!((answer.status, answer.value), (0, IDENTIFICATION));
    }
    let tally = sidecore.end();
    assert!(tally.served >= 200, "{tally:?}");
}

/// A sidecore of zero-wait threads on the first core that this process may use, which the caller may share.
fn zero_wait_sidecore(memory: &Arc<GuestMemory>, devices: &Arc<Devices>) -> ZeroWaitSidecore {
    let set = rustix::thread::sched_getaffinity(None).expect("the cores of this process");
    let core = (0..1024).find(|core| set.is_set(*core)).expect("a core");
    ZeroWaitSidecore::start(core, memory, devices, None).expect("a sidecore")
}

/// Calls as a processor and waits for the answer.
fn call(memory: &GuestMemory, processor: usize, request: &Request) -> Answer {
    let line = memory.line(processor);
    if line.call(request) {
        line.wake();
    }
    loop {
        match line.answer_to(request.sequence) {
            Some(answer) => return answer,
            None => std::thread::yield_now(),
        }
    }
}

#[test]
fn blocks_are_read_and_packets_sent_at_once_and_by_zero_wait_threads() {
    let memory = Arc::new(memory());
    let (devices, receiver) = Devices::temporary(3).expect("devices");
    let devices = Arc::new(devices);
    let sidecore = zero_wait_sidecore(&memory, &devices);
    let frame = FRAMES.start as u64 + 1;
    let mut sequence = 0;
    let mut both = |words: [u64; 3]| {
        sequence += 1;
        let request = request(sequence, words);
        let at_once = answer(&request, &memory, Some(&devices));
        memory.write_page(frame as usize, &[0xa5; PAGE_BYTES]);
        assert_eq!(call(&memory, 0, &request), at_once, "{words:?}");
        (at_once.status, at_once.value)
    };
    let [read, send] = [Operation::Read, Operation::Send].map(|it| it as u64);
    let done = Status::Done as u64;
    assert_eq!(both([read, 2, frame]), (done, BLOCK_BYTES as u64));
    let words = |page: usize| {
        (0..PAGE_WORDS)
            .map(|word| memory.load(page, word))
            .collect::<Vec<_>>()
    };
    assert_eq!(words(frame as usize), [2; PAGE_WORDS]);
    let other = words(FRAMES.start);
    assert_eq!(other, [0; PAGE_WORDS]);
    assert_eq!(both([send, 13, frame]), (done, 13));
    let mut packet = [0; PAGE_BYTES];
    for content in [2, 0xa5] {
        assert_eq!(receiver.recv(&mut packet).expect("a packet"), 13);
        let expected = if content == 2 {
            [2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0]
        } else {
            [0xa5; 13]
        };
        assert_eq!(packet[..13], expected);
    }
    for (words, status) in [
        ([read, 3, frame], Status::NoBlock),
        ([read, u64::MAX, frame], Status::NoBlock),
        ([read, 0, page::LEVEL_4 as u64], Status::NoFrame),
        ([send, 0, frame], Status::NoLength),
        ([send, PAGE_BYTES as u64 + 1, frame], Status::NoLength),
        ([send, 1, page::ORDER as u64], Status::NoFrame),
        ([8, 0, 0], Status::NoOperation),
    ] {
        assert_eq!(both(words), (status as u64, 0), "{words:?}");
    }
    drop(sidecore);
    assert_eq!(serve(&memory, [read, 0, frame]), Status::NoDevice as u64);
}

#[test]
fn a_processor_that_floods_a_device_leaves_another_its_answers() {
    let memory = Arc::new(memory());
    let (devices, _receiver) = Devices::temporary(8).expect("devices");
    let _sidecore = zero_wait_sidecore(&memory, &Arc::new(devices));
    for sequence in 1..=200_u64 {
        for word in 0..sidestep_sidecall::line::WORDS {
            let garbage = sequence
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(word as u32);
            memory.store(page::REQUEST + page::PROCESSOR, word, garbage);
        }
        let send = request(sequence << 32, [Operation::Send as u64, 100, FRAMES.start as u64]);
        memory.line(2).call(&send);
        let read = request(
            sequence,
            [Operation::Read as u64, sequence % 8, FRAMES.start as u64 + 2],
        );
        assert_eq!(call(&memory, 0, &read).status, Status::Done as u64);
        assert_eq!(memory.load(FRAMES.start + 2, PAGE_WORDS - 1), sequence % 8);
    }
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
