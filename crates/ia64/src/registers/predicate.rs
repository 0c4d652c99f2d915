//! The 64 predicate registers as one word, rotated in place.
//!
//! Bit `p` is predicate `p` as instructions of the current rotation see it; p0 is always one.

/// The predicates that never rotate, p0 to p15.
const STATIC: u64 = 0xffff;

/// Rotates p16 to p63 upwards by `distance` (below 48), as a decrement of the rename base does.
#[inline]
pub fn rotate_up(predicates: u64, distance: u32) -> u64 {
    let rotating = predicates >> 16;
    let rotated = if distance == 0 {
        rotating
    } else {
        rotating << distance | rotating >> (48 - distance)
    };
    predicates & STATIC | rotated << 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_full_turn_changes_nothing(predicates: u64, distance in 0u32..48) {
            let there = rotate_up(predicates, distance);
            prop_assert_eq!(there & STATIC, predicates & STATIC);
            prop_assert_eq!(rotate_up(there, (48 - distance) % 48), predicates);
        }
    }

    #[test]
    fn one_step_moves_p16_to_p17_and_p63_to_p16() {
        assert_eq!(rotate_up(1 << 16 | 1 << 63, 1), 1 << 17 | 1 << 16);
    }
}
