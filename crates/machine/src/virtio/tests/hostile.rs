//! Guests that mean harm or break their rings.

use proptest::prelude::*;

use super::*;

#[test]
fn broken_chains_stop_the_device_until_it_is_reset() {
    let file = disk_file(8);
    let mut driver = Driver::new(disk(file.path()));
    let header = (BUFFERS, 16, false);
    let status = (BUFFERS + 16, 1, true);
    let broken: [&[Buffer]; 7] = [
        &[header, (RAM_BYTES + GRANULE, 512, true), status],
        &[header, (RAM_BYTES, 512, true), status],
        &[header, (RAM_BYTES - 4, 512, true), status],
        &[header, (u64::MAX - 3, 512, true), status],
        &[header, (BUFFERS, u32::MAX, true), status],
        &[header, status, header],
        &[header],
    ];
    for (count, buffers) in broken.iter().enumerate() {
        driver.chain(DESCRIPTORS, buffers);
        driver.send();
        driver.wait();
        assert_eq!(driver.errors(), count as u64 + 1, "{buffers:x?}");
        assert_ne!(driver.load(0x70) & NEEDS_RESET, 0);
        assert_eq!(driver.load(0x60), 2, "told by an interrupt");
        driver.send();
        assert_eq!(driver.timeline.next(), None, "deaf until it is reset");
        driver.set_up();
        assert_eq!(driver.disk(4, 0, &[]), (1, 0), "and as good as new then");
    }
    let errors = driver.errors();
    driver.descriptor(DESCRIPTORS, 0, (BUFFERS, 16), NEXT, 0);
    driver.send();
    driver.wait();
    assert_eq!(driver.errors(), errors + 1, "a loop");
    driver.set_up();
    driver.write(AVAILABLE + 2, 1000_u16);
    driver.store(0x50, 0);
    driver.wait();
    assert_eq!(driver.errors(), errors + 2, "more requests than entries");
    for (register, address) in [
        (0x80, RAM_BYTES - 16),
        (0x90, RAM_BYTES - 4),
        (0xa0, RAM_BYTES),
        (0xa4, 1),
    ] {
        driver.set_up();
        driver.store(0x44, 0);
        for (register, address) in [(0x80, DESCRIPTORS), (0x90, AVAILABLE), (0xa0, USED)] {
            driver.store(register, address);
        }
        driver.store(register, address);
        driver.store(0x44, 1);
        assert_eq!(driver.load(0x44), 0, "rings outside RAM are refused");
        assert_ne!(driver.load(0x70) & NEEDS_RESET, 0);
    }
    assert_eq!(
        fs::read(file.path()).expect("the disk"),
        fs::read(disk_file(8).path()).expect("one like it"),
        "none of it was written"
    );
}

/// What a hostile guest does: writes of rings and descriptors, register accesses of every width, time passing.
#[derive(Clone, Debug)]
pub enum Act {
    Store(u64, u64, u64),
    Load(u64, u64),
    Descriptor(u64, (u64, u32), u16, u16),
    Available(u16),
    Wait,
    SetUp,
}

pub fn act() -> impl Strategy<Value = Act> {
    let width = prop::sample::select(vec![1_u64, 2, 4, 8]);
    let address = prop_oneof![
        4 => 0..RAM_BYTES + 2 * GRANULE,
        1 => any::<u64>(),
    ];
    let size = prop_oneof![4 => 0..2048_u32, 1 => any::<u32>()];
    let register = prop_oneof![
        3 => (0..0x40_u64).prop_map(|word| word * 4),
        1 => 0..SIZE - 8,
    ];
    let value = prop_oneof![2 => 0..16_u64, 1 => address.clone(), 1 => any::<u64>()];
    prop_oneof![
        4 => (register.clone(), width.clone(), value).prop_map(|(at, size, value)| Act::Store(at, size, value)),
        1 => (register, width).prop_map(|(at, size)| Act::Load(at, size)),
        6 => (0..QUEUE_ENTRIES, (address, size), 0..8_u16, 0..10_u16)
            .prop_map(|(index, buffer, flags, next)| Act::Descriptor(index, buffer, flags, next)),
        3 => (0..12_u16).prop_map(Act::Available),
        2 => Just(Act::Wait),
        1 => Just(Act::SetUp),
    ]
}

pub fn misbehave(driver: &mut Driver, acts: &[Act]) {
    for act in acts {
        match *act {
            Act::Store(at, size, value) => driver.transport.store(at, size, value),
            Act::Load(at, size) => {
                driver.transport.load(at, size);
            }
            Act::Descriptor(index, buffer, flags, next) => {
                driver.descriptor(DESCRIPTORS, index, buffer, flags, next);
            }
            Act::Available(more) => {
                driver.sent = driver.sent.wrapping_add(more);
                driver.write(AVAILABLE + 2, driver.sent);
                driver.store(0x50, 0);
            }
            // A queue that is never empty is served for ever; a guest gets that far and no farther.
            Act::Wait => {
                let until = driver.timeline.next().map_or(0, |next| next + 3 * LATENCY_TICKS);
                driver.timeline.perform_until(until);
            }
            Act::SetUp => driver.set_up(),
        }
    }
}

proptest! {
    #[test]
    fn no_guest_harms_the_host(acts in prop::collection::vec(act(), 1..80)) {
        let file = disk_file(8);
        let mut driver = Driver::new(disk(file.path()));
        let rom = driver.bytes(RAM_BYTES, GRANULE as usize);
        misbehave(&mut driver, &acts);
        prop_assert_eq!(driver.bytes(RAM_BYTES, GRANULE as usize), rom, "ROM stays");
        prop_assert_eq!(fs::metadata(file.path()).expect("the disk").len(), 8 * SECTOR, "and the disk's size");
        // Whatever happened: the device works again once it is set up.
        driver.set_up();
        driver.timeline.perform_until(u64::MAX);
        driver.store(0x64, 3);
        prop_assert_eq!(driver.disk(4, 0, &[]), (1, 0));
        let others: [Box<dyn VirtioDevice>; 3] = [
            Box::new(Entropy::new(Seeded(1))),
            Box::new(Network::new(ADDRESS, Box::new(Mirror::default()))),
            Box::new(VirtioConsole::new(Box::new(Typist::default()))),
        ];
        for device in others {
            let mut driver = Driver::with(device);
            driver.set_up_queue(1);
            misbehave(&mut driver, &acts);
        }
    }
}
