//! A driver as small as one can be, a cable that keeps what it was given, and what no driver would do.

use std::collections::VecDeque;

use proptest::prelude::*;
use sidestep_ia64::PhysicalAddress;

use super::*;
use crate::machine::interrupt_block::InterruptBlock;
use crate::memory::MemoryRange;

const ADDRESS: HardwareAddress = [0x52, 0x54, 0x00, 0x12, 0x34, 0x56];
const RAM_BYTES: u64 = 1 << 20;
/// Where the driver has its rings and buffers.
const TRANSMIT_RING: u32 = 0x1000;
const RECEIVE_RING: u32 = 0x2000;
const BUFFERS: u32 = 0x1_0000;
const RING: u32 = 16;

/// Both ends of a cable.
#[derive(Clone, Default)]
struct Cable {
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
    coming: Arc<Mutex<VecDeque<Vec<u8>>>>,
}

impl Link for Cable {
    fn send(&mut self, frame: &[u8]) {
        self.sent.lock().expect("no panic").push(frame.to_vec());
    }

    fn has_frame(&self) -> bool {
        !self.coming.lock().expect("no panic").is_empty()
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        self.coming.lock().expect("no panic").pop_front()
    }

    fn advance(&mut self, _: u64) {}

    fn poll_interval(&self) -> u64 {
        LATENCY_TICKS
    }
}

struct Driver {
    adapter: Adapter,
    memory: Arc<GuestMemory>,
    timeline: Arc<Timeline>,
    cable: Cable,
    interrupts: Interrupts,
}

impl Driver {
    fn new() -> Driver {
        let memory = Arc::new(GuestMemory::new(&[MemoryRange::ram(0, RAM_BYTES)]).expect("a good layout"));
        let timeline = Arc::new(Timeline::new(Arc::default()));
        let processors = Arc::new(InterruptBlock::new(1, Arc::default()));
        let interrupts = Interrupts::new(0, Box::new(|_| {}), processors);
        let cable = Cable::default();
        let mut adapter = Adapter::new(
            ADDRESS,
            Box::new(cable.clone()),
            Arc::clone(&memory),
            interrupts.clone(),
            Arc::clone(&timeline),
            [0xe010_0000, 0x1000],
            17,
        );
        adapter.store_configuration(4, 2, 7);
        Driver {
            adapter,
            memory,
            timeline,
            cable,
            interrupts,
        }
    }

    /// With both rings, of [`RING`] descriptors each, and buffers of 2,048 bytes for all but one to receive.
    fn started() -> Driver {
        let mut driver = Driver::new();
        for (offset, value) in [
            (at::TDBAL, TRANSMIT_RING),
            (at::TDLEN, RING * DESCRIPTOR_BYTES),
            (at::RDBAL, RECEIVE_RING),
            (at::RDLEN, RING * DESCRIPTOR_BYTES),
            (at::TCTL, bit::TCTL_ENABLE | bit::TCTL_PAD),
            (at::IMS, cause::ALL),
        ] {
            driver.store(offset, value);
        }
        for number in 0..RING {
            driver.offer(number, BUFFERS + number * 2048);
        }
        driver.store(at::RDT, RING - 1);
        driver.store(
            at::RCTL,
            bit::RCTL_ENABLE | bit::RCTL_BROADCAST | bit::RCTL_STRIP_CHECKSUM,
        );
        driver
    }

    fn load(&mut self, offset: u32) -> u32 {
        self.adapter.load(u64::from(offset), 4) as u32
    }

    fn store(&mut self, offset: u32, value: u32) {
        self.adapter.store(u64::from(offset), 4, u64::from(value));
    }

    fn put(&self, at: u32, bytes: &[u8]) {
        self.memory
            .write(PhysicalAddress(u64::from(at)), bytes)
            .expect("memory");
    }

    fn get(&self, at: u32, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.memory
            .read(PhysicalAddress(u64::from(at)), &mut bytes)
            .expect("memory");
        bytes
    }

    /// Gives the adapter a buffer to receive into.
    fn offer(&self, number: u32, buffer: u32) {
        let descriptor = RECEIVE_RING + number * DESCRIPTOR_BYTES;
        self.put(descriptor, &[u64::from(buffer), 0].map(u64::to_le_bytes).concat());
    }

    /// Puts a descriptor into the ring to transmit.
    fn describe(&mut self, first: u64, second: u64) {
        let tail = self.load(at::TDT);
        let descriptor = [first, second].map(u64::to_le_bytes).concat();
        self.put(TRANSMIT_RING + tail * DESCRIPTOR_BYTES, &descriptor);
        self.store(at::TDT, (tail + 1) % RING);
    }

    /// Lets `turns` pieces of work be done.
    fn wait(&mut self, turns: usize) {
        for _ in 0..turns {
            let Some(next) = self.timeline.next() else {
                return;
            };
            self.timeline.set_now(next);
            self.timeline.perform_until(next);
        }
    }

    fn sent(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.cable.sent.lock().expect("no panic"))
    }

    fn comes(&self, frame: &[u8]) {
        self.cable
            .coming
            .lock()
            .expect("no panic")
            .push_back(frame.to_vec());
    }

    /// The frames that have been received since descriptor `first`, and the tag of the last.
    fn received(&self, mut first: u32) -> (Vec<Vec<u8>>, u16) {
        let (mut frames, mut frame, mut tag) = (Vec::new(), Vec::new(), 0);
        loop {
            let descriptor = self.get(RECEIVE_RING + first % RING * DESCRIPTOR_BYTES, 16);
            let half = |at: usize| u16::from_le_bytes([descriptor[at], descriptor[at + 1]]);
            let status = descriptor[12];
            if status & 1 == 0 {
                return (frames, tag);
            }
            let buffer = u32::from(half(0)) | u32::from(half(2)) << 16;
            frame.extend(self.get(buffer, usize::from(half(8))));
            tag = half(14);
            if status & 2 != 0 {
                frames.push(std::mem::take(&mut frame));
            }
            first += 1;
        }
    }
}

/// A frame for the adapter, of so many bytes.
fn frame_for(address: HardwareAddress, bytes: usize) -> Vec<u8> {
    let mut frame = address.to_vec();
    frame.extend([2, 0, 0, 0, 0, 9, 8, 0]);
    frame.extend((frame.len()..bytes).map(|at| at as u8));
    frame
}

const END_AND_REPORT: u64 = 1 << 24 | 1 << 27;

#[test]
fn a_driver_finds_its_address_in_every_place() {
    let mut driver = Driver::new();
    assert_eq!(driver.load(at::RAL), 0x1200_5452);
    assert_eq!(driver.load(at::RAH), 0x8000_5634);
    driver.store(at::EERD, 1 | 2 << 8);
    assert_eq!(driver.load(at::EERD) >> 16, 0x5634);
    assert_ne!(driver.load(at::EERD) & 1 << 4, 0, "done");
    assert_ne!(driver.load(at::STATUS) & 2, 0, "the link is up");
    // The transceiver's number, as a driver asks for it.
    driver.store(at::MDIC, 2 << 26 | 1 << 21 | 2 << 16);
    assert_eq!(driver.load(at::MDIC) & (1 << 28 | 0xffff), 1 << 28 | 0x0141);
    driver.store(at::MDIC, 2 << 26 | 5 << 21 | 2 << 16);
    assert_ne!(driver.load(at::MDIC) & bit::MDIC_ERROR, 0, "there is one only");
}

#[test]
fn a_reset_by_the_ports_is_one() {
    let mut driver = Driver::started();
    let port = u64::from(REGISTERS_BYTES);
    driver.adapter.store(port, 4, u64::from(at::CTRL));
    driver.adapter.store(port + 4, 4, u64::from(bit::CTRL_RESET));
    assert_eq!(driver.load(at::RCTL), 0);
    driver.adapter.store(port, 4, u64::from(at::RAL));
    assert_eq!(driver.adapter.load(port + 4, 4), 0x1200_5452);
}

#[test]
fn frames_are_sent_in_order_and_reported() {
    let mut driver = Driver::started();
    let (long, short) = (frame_for([2; 6], 1514), frame_for([4; 6], 20));
    driver.put(BUFFERS, &long);
    driver.put(BUFFERS + 0x800, &short);
    // The first one in two pieces.
    driver.describe(u64::from(BUFFERS), 1000);
    driver.describe(u64::from(BUFFERS) + 1000, 514 | END_AND_REPORT);
    driver.describe(u64::from(BUFFERS) + 0x800, 20 | END_AND_REPORT);
    assert_eq!(driver.sent(), Vec::<Vec<u8>>::new(), "not before its turn");
    driver.wait(1);
    let mut padded = short;
    padded.resize(60, 0);
    assert_eq!(driver.sent(), [long, padded]);
    assert_eq!(driver.load(at::TDH), 3);
    let done = |number: u32| driver.get(TRANSMIT_RING + number * 16 + 12, 1)[0] & 1;
    assert_eq!([0, 1, 2].map(done), [0, 1, 1]);
    assert!(driver.interrupts.is_asserted());
    let causes = driver.load(at::ICR);
    assert_ne!(causes & cause::TRANSMITTED, 0);
    assert!(!driver.interrupts.is_asserted(), "read, and gone");
    let sent = at::STATISTICS + 4 * registers::statistic::TRANSMITTED;
    assert_eq!((driver.load(sent), driver.load(sent)), (2, 0));
}

#[test]
fn too_long_frames_and_those_from_nowhere_are_lost_alone() {
    let mut driver = Driver::started();
    driver.describe(u64::from(BUFFERS), 1515 | END_AND_REPORT);
    driver.describe(RAM_BYTES - 8, 64 | END_AND_REPORT);
    driver.describe(u64::from(BUFFERS), 64 | END_AND_REPORT);
    driver.wait(1);
    assert_eq!(driver.sent().len(), 1);
    assert_eq!(driver.load(at::TDH), 3);
}

#[test]
fn a_tag_is_put_in_and_taken_out() {
    let mut driver = Driver::started();
    driver.store(at::VET, 0x8100);
    let frame = frame_for([2; 6], 100);
    driver.put(BUFFERS, &frame);
    driver.describe(u64::from(BUFFERS), 100 | END_AND_REPORT | 1 << 30 | 0x2005 << 48);
    driver.wait(1);
    let sent = driver.sent().remove(0);
    assert_eq!(sent[12..16], [0x81, 0, 0x20, 5]);
    assert_eq!((&sent[..12], &sent[16..]), (&frame[..12], &frame[12..]));
    let mut tagged = frame_for(ADDRESS, 100);
    tagged.splice(12..12, [0x81, 0, 0x20, 5]);
    let control = driver.load(at::CTRL);
    driver.store(at::CTRL, control | bit::CTRL_VLAN);
    driver.comes(&tagged);
    driver.wait(1);
    assert_eq!(driver.received(0), (vec![frame_for(ADDRESS, 100)], 0x2005));
    // Only networks that the driver has named, once it filters.
    let receive = driver.load(at::RCTL);
    driver.store(at::RCTL, receive | bit::RCTL_VLAN_FILTER);
    driver.comes(&tagged);
    driver.wait(1);
    assert_eq!(driver.received(0).0.len(), 1);
    driver.store(at::VFTA, 1 << 5);
    driver.comes(&tagged);
    driver.wait(1);
    assert_eq!(driver.received(0).0.len(), 2);
}

#[test]
fn frames_are_received_by_address() {
    let mut driver = Driver::started();
    let all_hosts: HardwareAddress = [1, 0, 0x5e, 0, 0, 1];
    let frames = [[0xff; 6], ADDRESS, [2; 6], all_hosts].map(|address| frame_for(address, 80));
    for frame in &frames {
        driver.comes(frame);
    }
    driver.wait(1);
    assert_eq!(driver.received(0).0, frames[..2]);
    assert_ne!(driver.load(at::ICR) & cause::RECEIVED, 0);
    // The hash of the group: the highest twelve bits of its last sixteen.
    driver.store(at::MTA + 4, 1 << 0x10);
    driver.comes(&frames[3]);
    driver.wait(1);
    assert_eq!(driver.received(0).0.len(), 2, "another word");
    driver.store(at::MTA, 1 << 0x10);
    driver.comes(&frames[3]);
    driver.wait(1);
    assert_eq!(driver.received(0).0.len(), 3);
    let control = driver.load(at::RCTL);
    driver.store(at::RCTL, control | bit::RCTL_ALL_UNICAST);
    driver.comes(&frames[2]);
    driver.wait(1);
    assert_eq!(driver.received(0).0.len(), 4);
}

#[test]
fn a_frame_fills_as_many_buffers_as_it_needs_and_may_have_its_checksum() {
    let mut driver = Driver::started();
    // Buffers of 256 bytes, and the checksum.
    driver.store(at::RCTL, bit::RCTL_ENABLE | 3 << 16);
    let frame = frame_for(ADDRESS, 1514);
    driver.comes(&frame);
    driver.wait(1);
    let (received, _) = driver.received(0);
    assert_eq!(driver.load(at::RDH), 6);
    assert_eq!(received[0][..1514], frame);
    assert_eq!(received[0][1514..], crc32fast::hash(&frame).to_le_bytes());
}

#[test]
fn what_has_no_room_waits_and_comes_once() {
    let mut driver = Driver::started();
    let frames: Vec<_> = (0..RING + 5)
        .map(|number| frame_for(ADDRESS, 64 + number as usize))
        .collect();
    for frame in &frames {
        driver.comes(frame);
    }
    driver.wait(20);
    let room = RING as usize - 1;
    assert_eq!(driver.received(0).0, frames[..room]);
    let causes = driver.load(at::ICR);
    assert_ne!(causes & cause::RECEIVE_OVERRUN, 0);
    assert_ne!(causes & cause::RECEIVE_LOW, 0);
    driver.wait(20);
    assert_eq!(driver.load(at::ICR), 0, "said once");
    for number in 0..10 {
        driver.offer(number, BUFFERS + number * 2048);
    }
    driver.store(at::RDT, 9);
    driver.wait(3);
    assert_eq!(driver.received(RING - 1).0, frames[room..]);
}

#[test]
fn interrupts_keep_their_distance() {
    let mut driver = Driver::started();
    driver.store(at::ITR, 1000);
    driver.store(at::ICS, 4);
    assert!(driver.interrupts.is_asserted());
    let first = driver.timeline.now();
    assert_eq!(driver.load(at::ICR), 4);
    driver.store(at::ICS, 4);
    assert!(!driver.interrupts.is_asserted(), "too soon");
    while !driver.interrupts.is_asserted() {
        driver.wait(1);
    }
    assert_eq!(driver.timeline.now() - first, 256_000);
}

#[test]
fn an_adapter_goes_on_as_another_was_saved() {
    let mut old = Driver::started();
    old.put(BUFFERS, &frame_for([2; 6], 100));
    old.describe(u64::from(BUFFERS), 50);
    old.comes(&frame_for(ADDRESS, 100));
    old.wait(1);
    old.describe(u64::from(BUFFERS) + 50, 50 | END_AND_REPORT);
    let saved = old.adapter.save();
    let mut new = Driver::started();
    new.timeline.restore(old.timeline.now(), old.timeline.sequence());
    assert!(new.interrupts.restore(&old.interrupts.save()));
    assert!(new.adapter.restore(&saved));
    assert!(new.adapter.save() == saved);
    for driver in [&mut old, &mut new] {
        driver.put(BUFFERS, &frame_for([2; 6], 100));
        driver.put(TRANSMIT_RING + 16, &(u64::from(BUFFERS) + 50).to_le_bytes());
        driver.put(TRANSMIT_RING + 24, &(50 | END_AND_REPORT).to_le_bytes());
        driver.wait(3);
        assert_eq!(driver.sent(), [frame_for([2; 6], 100)]);
    }
    assert!(new.adapter.save() == old.adapter.save());
    assert!(!new.adapter.restore(&saved[..saved.len() / 2]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a driver stores, there is an end to each turn, and nothing outside memory is touched.
    #[test]
    fn no_driver_is_too_wrong(
        acts in prop::collection::vec((0usize..40, any::<u32>(), 0u64..4), 1..120),
        descriptors in prop::collection::vec(any::<u64>(), 64),
    ) {
        const OFTEN: [u32; 20] = [
            at::CTRL, at::EECD, at::MDIC, at::ICS, at::IMS, at::ITR, at::RCTL, at::TCTL, at::RDBAL, at::RDBAH,
            at::RDLEN, at::RDH, at::RDT, at::TDBAL, at::TDBAH, at::TDLEN, at::TDH, at::TDT, at::VET, at::RXCSUM,
        ];
        let mut driver = Driver::started();
        for (word, value) in (0..).step_by(8).zip(&descriptors) {
            // Addresses that are memory now and then.
            let value = if word % 16 == 0 { value % (2 * RAM_BYTES) } else { *value };
            driver.put(TRANSMIT_RING + word, &value.to_le_bytes());
            driver.put(RECEIVE_RING + word, &value.to_le_bytes());
        }
        for (which, value, log) in acts {
            let offset = match OFTEN.get(which) {
                Some(&offset) => u64::from(offset),
                None => u64::from(value) % (u64::from(REGISTERS_BYTES) + 64),
            };
            let value = match offset as u32 {
                at::RDBAH | at::TDBAH => value % 2,
                at::RDLEN | at::TDLEN => value % 0x400,
                at::RDH | at::RDT | at::TDH | at::TDT => value % 64,
                _ => value,
            };
            let size = 1 << log;
            let offset = offset / size * size;
            driver.adapter.store(offset, size.max(4), u64::from(value));
            driver.adapter.load(offset, size);
            driver.comes(&frame_for([value as u8; 6], 14 + (value % 1500) as usize));
            driver.wait(2);
        }
        let longest = driver.sent().iter().map(Vec::len).max();
        prop_assert!(longest.unwrap_or(0) <= FRAME_BYTES_MAX + TAG_BYTES);
        let saved = driver.adapter.save();
        prop_assert!(driver.adapter.restore(&saved));
    }
}
