//! Random guests in system mode: none harms the host program, and none behaves otherwise when it is stopped or watched.

mod random_guest;

use proptest::prelude::*;

const INSTRUCTIONS: u64 = 1500;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]

    #[test]
    fn a_guest_does_the_same_in_one_run_in_pieces_and_under_an_observer(bytes: [u8; 16]) {
        let difference = random_guest::compare(&bytes, INSTRUCTIONS);
        prop_assert!(difference.is_none(), "{difference:#x?}");
    }
}
