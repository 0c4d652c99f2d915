//! Ring compression: guests on a processor without PSR.vm ("Itanium: a system implementor's tale", section 4).
//!
//! The monitor keeps level 0. The guest's levels 0, 1 and 2 run one level lower, level 3 as it is: a guest that uses
//! levels 2 and 3 loses the protection between them. Three instructions show or change the monitor's state without
//! privilege: `cover` (which writes IFS while collection is off), `thash` and `ttag` (which show the page table). They
//! are replaced, when their page becomes executable, by `break`s of [`REPLACEMENT`] in the same slot.

use sidestep_ia64::mmu::entry::TranslationEntry;

/// The real level of a guest's level.
pub(super) fn real_level(level: u8) -> u8 {
    (level + 1).min(3)
}

/// The guest's level behind a real one, which at 3 is what it was unless a transfer lowered it.
pub(super) fn guest_level(real: u8, before: u8) -> u8 {
    if real == 3 {
        if before == 2 { 2 } else { 3 }
    } else {
        real.saturating_sub(1)
    }
}

/// A translation whose page is for the compressed levels.
pub(super) fn compressed(entry: TranslationEntry) -> TranslationEntry {
    TranslationEntry {
        level: real_level(entry.level),
        ..entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_come_back_except_between_two_and_three() {
        for level in 0..4 {
            assert_eq!(guest_level(real_level(level), level), level);
        }
        assert_eq!(guest_level(3, 0), 3, "a return to a less privileged level");
        assert_eq!(guest_level(1, 3), 0, "a promotion by a gate page");
    }
}
