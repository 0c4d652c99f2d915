//! Queues that somebody else carries: doorbells only leave word, chains are taken and answered when their time has
//! come.

use proptest::prelude::*;

use super::hostile::{act, misbehave};
use super::*;
use crate::virtio::interface::{HEADER, Interface, PAIRS_MAX};

const EVENT_INDEX: u64 = 1 << 29;
const COMMANDS: u64 = 1 << 17;
const PAIRS: u64 = 1 << 22;

/// A driver of the device that has accepted these features.
fn driver(pairs: usize, features: u64) -> Driver {
    let mut driver = Driver::unset(Interface::new(ADDRESS, pairs));
    let queue = [
        (0x30, 0),
        (0x38, QUEUE_ENTRIES),
        (0x80, DESCRIPTORS),
        (0x90, AVAILABLE),
        (0xa0, USED),
        (0x44, 1),
    ];
    let accepted = [
        (0x70, 0),
        (0x70, 3),
        (0x24, 1),
        (0x20, 1),
        (0x24, 0),
        (0x20, features),
        (0x70, 0xb),
    ];
    for (register, value) in accepted.into_iter().chain(queue) {
        driver.store(register, value);
    }
    driver.set_up_queue(1);
    driver.store(0x70, 0xf);
    driver
}

fn fill(driver: &mut Driver, buffers: &[Buffer]) {
    driver.chain(DESCRIPTORS, buffers);
    driver.send();
}

#[test]
fn a_doorbell_leaves_word_and_a_frame_comes_into_the_buffer_that_was_taken() {
    let mut driver = driver(1, EVENT_INDEX);
    let facilities = driver.transport.facilities().clone();
    driver.wait();
    assert!(facilities.take_news() && !facilities.take_news(), "it was set up");
    assert_eq!(facilities.available(0), Some(0));
    fill(&mut driver, &[(BUFFERS, 12, true), (BUFFERS + 0x100, 100, true)]);
    assert!(facilities.take_news());
    assert_eq!(driver.timeline.next(), None, "nobody but the carrier serves it");
    assert_eq!(facilities.available(0), Some(1));
    assert_eq!(
        driver.value::<u16>(USED + 4 + 8 * QUEUE_ENTRIES),
        1,
        "it is to ring for the next"
    );

    let chain = facilities.take(0).expect("a chain");
    assert!(facilities.take(0).is_none());
    let request = facilities.request(&chain);
    request.write(0, &HEADER);
    request.write(12, b"a frame");
    assert!(
        facilities.answer_chain(0, &chain, 19),
        "the driver waits for the first"
    );
    assert_eq!(driver.value::<u16>(USED + 2), 1);
    assert_eq!(driver.value::<u32>(USED + 8), 19);
    assert_eq!(driver.bytes(BUFFERS + 0x100, 7), b"a frame");
    assert!(!driver.is_interrupting(), "whoever carries it says when");
    facilities.interrupt(0);
    assert!(driver.is_interrupting());
}

#[test]
fn a_driver_is_owed_an_interrupt_as_its_index_or_its_flag_says() {
    for (features, silence) in [(EVENT_INDEX, 4 + 2 * QUEUE_ENTRIES), (0, 0)] {
        let mut driver = driver(1, features);
        let facilities = driver.transport.facilities().clone();
        // Far ahead, or: no interrupts.
        driver.write(AVAILABLE + silence, if silence == 0 { 1_u16 } else { 100 });
        fill(&mut driver, &[(BUFFERS, 64, true)]);
        let chain = facilities.take(0).expect("a chain");
        assert!(!facilities.answer_chain(0, &chain, 12), "{features:#x}");
    }
}

#[test]
fn an_index_that_cannot_be_and_a_broken_chain_stop_the_device_until_it_is_reset() {
    for is_chain in [false, true] {
        let mut driver = driver(1, EVENT_INDEX);
        let facilities = driver.transport.facilities().clone();
        if is_chain {
            fill(&mut driver, &[(RAM_BYTES - 4, 64, true)]);
            assert_eq!(facilities.available(0), Some(1));
            assert!(facilities.take(0).is_none());
        } else {
            driver.write(AVAILABLE + 2, QUEUE_ENTRIES as u16 + 1);
            assert_eq!(facilities.available(0), None);
        }
        assert_eq!(driver.errors(), 1);
        assert_eq!(driver.load(0x70) & NEEDS_RESET, NEEDS_RESET);
        assert_eq!(facilities.setup(), None);
        driver.store(0x70, 0);
        assert!(facilities.take_news());
    }
}

#[test]
fn commands_say_how_many_pairs_are_used_and_commands_without_pairs_are_refused() {
    let mut device = Interface::new(ADDRESS, PAIRS_MAX);
    let used = device.used_pairs();
    assert_eq!(device.queue_sizes().len(), 2 * PAIRS_MAX + 1);
    assert!(device.is_carried(2 * PAIRS_MAX - 1) && !device.is_carried(2 * PAIRS_MAX));
    let mut driver = Driver::unset(Interface::new(ADDRESS, 2));
    for (features, accepted) in [
        (0, true),
        (COMMANDS, false),
        (PAIRS, false),
        (COMMANDS | PAIRS, true),
    ] {
        for (register, value) in [
            (0x70, 0),
            (0x70, 3),
            (0x24, 1),
            (0x20, 1),
            (0x24, 0),
            (0x20, features),
            (0x70, 0xb),
        ] {
            driver.store(register, value);
        }
        assert_eq!(driver.load(0x70) & 8 != 0, accepted, "{features:#x}");
    }
    used.store(3, Ordering::Relaxed);
    device.reset();
    assert_eq!(used.load(Ordering::Relaxed), 1);
}

proptest! {
    #[test]
    fn no_driver_harms_who_carries_its_queues(acts in prop::collection::vec(act(), 1..80)) {
        let mut driver = driver(1, EVENT_INDEX);
        let facilities = driver.transport.facilities().clone();
        let rom = driver.bytes(RAM_BYTES, GRANULE as usize);
        let mut taken = Vec::new();
        for act in acts {
            misbehave(&mut driver, &[act]);
            for queue in [0, 1] {
                let _ = facilities.available(queue);
                taken.extend(facilities.take(queue).map(|chain| (queue, chain)));
            }
            if taken.len() > 3 {
                let (queue, chain) = taken.remove(0);
                let request = facilities.request(&chain);
                let size = request.writable().min(64);
                request.write(0, &[7; 64][..size as usize]);
                if facilities.answer_chain(queue, &chain, size as u32) {
                    facilities.interrupt(queue);
                }
            }
        }
        prop_assert_eq!(driver.bytes(RAM_BYTES, GRANULE as usize), rom, "ROM stays");
    }
}
