//! Every register of every device at every width, by guests that mean no good.

mod probe;
mod requests;

use proptest::prelude::*;

#[test]
fn every_register_takes_every_width() {
    let mut data = Vec::new();
    // Stores and loads, at each width, of each device, up to the end of a transport's registers and beyond.
    for which in 0..probe::PLACES {
        for offset in (0..0x140_u16).chain(0xff0..0x1010) {
            for what in [0, 8, 16, 24, 4, 12, 20, 28] {
                data.extend([what, which]);
                data.extend(offset.to_le_bytes());
                data.extend(0x0123_4567_89ab_cdef_u64.to_le_bytes());
            }
        }
    }
    probe::probe(&data);
}

#[test]
fn every_register_on_pci_takes_every_width() {
    let mut data = Vec::new();
    // The pages of each virtio function, at the first place; then the configuration spaces, the bridge's and one
    // behind the last function included.
    for which in [0, 1, 2, 3].map(|function| function * probe::PLACES) {
        for offset in (0..6).flat_map(|page| (page << 12)..(page << 12 | 0x48)) {
            for what in [0, 8, 16, 24, 4, 12, 20, 28] {
                data.extend([what, which]);
                data.extend(u16::to_le_bytes(offset));
                data.extend(0x0123_4567_89ab_cdef_u64.to_le_bytes());
            }
        }
    }
    for slot in 0..=probe::FUNCTIONS {
        for register in (0..0x104_u16).rev() {
            for what in [6, 14, 22] {
                data.extend([what, slot]);
                data.extend(register.to_le_bytes());
                data.extend(0x0123_4567_89ab_cdef_u64.to_le_bytes());
            }
        }
    }
    probe::probe(&data);
}

#[test]
fn every_register_of_controllers_takes_every_width() {
    let mut data = Vec::new();
    for which in probe::PLACES - 3..probe::PLACES {
        // Registers are within the first 24 kB of each; controllers keep little apart that is less than 8 bytes.
        for offset in (0..0x6000_u16).step_by(4) {
            for what in [16, 20, if offset % 64 == 0 { 24 } else { 4 }] {
                data.extend([what, which]);
                data.extend(offset.to_le_bytes());
                data.extend(0x0123_4567_89ab_cdef_u64.to_le_bytes());
            }
        }
    }
    probe::probe(&data);
}

#[test]
fn broken_queues_are_counted() {
    // The available ring that all first queues share says there are more requests than entries. Disks, consoles where
    // somebody types and entropy devices look at it; network devices have nothing to receive.
    let mut data = vec![5, 0, 0x02, 0x10];
    data.extend(0xffff_u64.to_le_bytes());
    data.extend([3, 4, 0x50, 0]);
    data.extend(0_u64.to_le_bytes());
    assert_eq!(probe::probe(&data), 6);
}

#[test]
fn requests_that_nobody_changes_are_answered() {
    for device in requests::Device::ALL {
        assert!(requests::request(device, &[]), "{device:?}");
    }
}

proptest! {
    #[test]
    fn no_guest_harms_the_host(data in prop::collection::vec(any::<u8>(), 0..2400)) {
        prop_assert_eq!(probe::probe(&data), probe::probe(&data), "the same each time");
    }

    #[test]
    fn no_request_harms_the_host(
        device in prop::sample::select(&requests::Device::ALL),
        data in prop::collection::vec(any::<u8>(), 0..800),
    ) {
        requests::request(device, &data);
    }
}
