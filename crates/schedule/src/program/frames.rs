//! Where a procedure makes its frame and gives it back: unwind descriptors count the slots, so their order has to stay.

use std::ops::Range;

use sidestep_ia64::encoding::Bundle;
use sidestep_machine::debug::unwind::descriptor::{Record, Records};
use sidestep_machine::debug::unwind::table::Procedure;

/// Slots of a bundle, as descriptors count: a long instruction has two.
const SLOTS: u64 = 3;

/// The addresses of bundles that a procedure's unwind descriptors tell of: those of prologues, of the ends of regions
/// that give the frame back, and of what no descriptor that is understood covers.
pub fn described(procedure: &Procedure<'_>) -> Vec<Range<u64>> {
    let all = procedure.end.saturating_sub(procedure.start) / Bundle::BYTES * SLOTS;
    let mut described = Vec::new();
    let mut region = 0..0_u64;
    let mut body = false;
    for record in Records::new(procedure.descriptors) {
        match record {
            Record::Region { is_body, slots, .. } => {
                region = region.end..region.end.saturating_add(slots).min(all);
                body = is_body;
                if !is_body {
                    described.push(region.clone());
                }
            }
            // The instruction before these slots is the one that gives the stack back.
            Record::Epilogue { slots, .. } => {
                let first = region.end.saturating_sub(slots.saturating_add(1));
                described.push(first.max(region.start)..region.end);
            }
            // What a body saves or restores, it does at a slot.
            Record::At(..) | Record::When(..) | Record::Predicated if body => described.push(region.clone()),
            _ => {}
        }
    }
    described.push(region.end..all);
    let address = |slot: u64| procedure.start + slot / SLOTS * Bundle::BYTES;
    let bundles = described.into_iter().filter(|slots| !slots.is_empty());
    bundles
        .map(|slots| address(slots.start)..address(slots.end - 1) + Bundle::BYTES)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(descriptors: &[u8]) -> Vec<(u64, u64)> {
        let ranges = described(&Procedure {
            start: 0x1000,
            end: 0x10a0,
            descriptors,
            has_handler: false,
        });
        ranges.into_iter().map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn prologues_and_epilogues_are_described_and_bodies_are_not() {
        // A prologue of 4 slots; a body of 26 whose stack is the caller's from the second slot before its end on.
        assert_eq!(of(&[0x04, 0x3a, 0xc0, 2]), [(0x1000, 0x1020), (0x1090, 0x10a0)]);
        assert_eq!(of(&[0x3e]), []);
    }

    #[test]
    fn what_no_descriptor_covers_is_described() {
        assert_eq!(of(&[]), [(0x1000, 0x10a0)]);
        assert_eq!(of(&[0x29]), [(0x1030, 0x10a0)]);
        // Of a descriptor that is none nothing behind it is known.
        assert_eq!(of(&[0x29, 0xff, 0x35]), [(0x1030, 0x10a0)]);
    }
}
