//! Every register of every device at every width, by guests that mean no good.

mod probe;

use proptest::prelude::*;

#[test]
fn every_register_takes_every_width() {
    let mut data = Vec::new();
    // Stores and loads, at each width, of each device, up to the end of a transport's registers and beyond.
    for which in 0..7 {
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
fn broken_queues_are_counted() {
    // The available ring that all first queues share says there are more requests than entries. The disk, the console
    // where somebody types and the entropy device look at it; the network device has nothing to receive.
    let mut data = vec![5, 0, 0x02, 0x10];
    data.extend(0xffff_u64.to_le_bytes());
    data.extend([3, 3, 0x50, 0]);
    data.extend(0_u64.to_le_bytes());
    assert_eq!(probe::probe(&data), 3);
}

proptest! {
    #[test]
    fn no_guest_harms_the_host(data in prop::collection::vec(any::<u8>(), 0..2400)) {
        prop_assert_eq!(probe::probe(&data), probe::probe(&data), "the same each time");
    }
}
