//! Random guests in system mode: none harms the host program, and none behaves otherwise when it is stopped or watched.

use proptest::prelude::*;

const INSTRUCTIONS: u64 = 1500;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]

    #[test]
    fn a_guest_does_the_same_in_one_run_in_pieces_and_under_an_observer(bytes: [u8; 16]) {
        let difference = crate::random_guest::compare(&bytes, INSTRUCTIONS);
        prop_assert!(difference.is_none(), "{difference:#x?}");
    }
}

/// This guest writes a stacked register behind a `cover`: an illegal operation, however it is run.
#[test]
fn an_emptied_frame_is_seen_by_what_was_decoded_for_a_larger_one() {
    let bytes = [
        237, 141, 202, 112, 183, 113, 87, 67, 5, 73, 196, 111, 136, 48, 245, 41,
    ];
    let difference = crate::random_guest::compare(&bytes, INSTRUCTIONS);
    assert!(difference.is_none(), "{difference:#x?}");
}

/// This guest, big-endian and with translation off, stores to memory that cannot be written and that it executes.
#[test]
fn memory_that_is_not_writable_stays_as_it_is() {
    let bytes = [
        150, 17, 124, 44, 205, 228, 145, 178, 5, 112, 86, 227, 194, 102, 173, 28,
    ];
    let difference = crate::random_guest::compare(&bytes, INSTRUCTIONS);
    assert!(difference.is_none(), "{difference:#x?}");
}
