//! Ring compression: guests on a processor without PSR.vm ("Itanium: a system implementor's tale", section 4).
//!
//! The monitor keeps level 0. The guest's levels 0, 1 and 2 run one level lower, level 3 as it is: a guest that uses
//! levels 2 and 3 loses the protection between them. Three instructions show or change the monitor's state without
//! privilege: `cover` (which writes IFS while collection is off), `thash` and `ttag` (which show the page table). They
//! are replaced, when their page becomes executable, by `break`s of [`REPLACEMENT`] in the same slot.
//!
//! Limits. A guest that reads its own code sees the replacements. A page that holds some is not writable without an
//! exit, and is looked at anew after a write; one that held none when it became executable is looked at again when its
//! translation is filled again, not at once.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use sidestep_ia64::PhysicalAddress;
use sidestep_ia64::encoding::{Bundle, Effects, Form, Unit};
use sidestep_ia64::mmu::entry::TranslationEntry;
use sidestep_machine::memory::GuestMemory;

/// The immediate of the `break` that stands for a replaced instruction.
pub(super) const REPLACEMENT: u64 = 0x1_fade;

/// The largest piece of a page that is scanned for such instructions at once, and that shares the exits of stores to
/// replaced code: kernels map themselves by pages of many megabytes.
pub(super) const PIECE_LOG2: u32 = 14;

/// The bundles of a guest in which instructions are replaced, by guest-physical address, as they were.
#[derive(Default)]
pub(super) struct Replaced(Mutex<BTreeMap<PhysicalAddress, Bundle>>);

impl Replaced {
    /// Replaces what must be in the `1 << size_log2` bytes from a guest-physical address on. Whether anything is
    /// replaced there.
    pub fn scan(&self, memory: &GuestMemory, start: PhysicalAddress, size_log2: u32) -> bool {
        let mut originals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let end = start + (1 << size_log2);
        for address in (start.0..end.0).step_by(16).map(PhysicalAddress) {
            let Ok(bits) = memory.read_value::<[u8; 16]>(address) else {
                break;
            };
            let bundle = Bundle::from_bytes(bits);
            let is_ours = originals
                .get(&address)
                .is_some_and(|original| replaced(*original) == Some(bundle));
            if is_ours {
                continue;
            }
            originals.remove(&address);
            if let Some(replacement) = replaced(bundle)
                && memory.write(address, &replacement.to_bytes()).is_ok()
            {
                originals.insert(address, bundle);
            }
        }
        originals.range(start..end).next().is_some()
    }

    /// Whether something in a range is replaced.
    pub fn concerns(&self, start: PhysicalAddress, size_log2: u32) -> bool {
        let originals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        originals.range(start..start + (1 << size_log2)).next().is_some()
    }

    /// The bundle that was at a guest-physical address.
    pub fn original(&self, address: PhysicalAddress) -> Option<Bundle> {
        let originals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        originals.get(&address.aligned_down(4)).copied()
    }
}

/// A bundle with its sensitive unprivileged instructions replaced, if it has any.
fn replaced(bundle: Bundle) -> Option<Bundle> {
    let mut slots = [0, 1, 2].map(|slot| bundle.slot(slot));
    let mut found = false;
    for decoded in bundle.decode() {
        let Ok(instruction) = decoded.instruction else {
            continue;
        };
        if !instruction.effects().contains(Effects::SENSITIVE) {
            continue;
        }
        let mnemonic = match instruction.unit {
            Unit::B => "break.b",
            Unit::F => "break.f",
            Unit::I => "break.i",
            Unit::M => "break.m",
            Unit::L | Unit::X => "break.x",
        };
        let form = Form::named(mnemonic).next().expect("break exists for every unit");
        let encoded = form
            .encode(instruction.predicate(), &[REPLACEMENT as i64], &[])
            .expect("the immediate has 21 bits");
        slots[usize::from(decoded.slot)] = encoded.slot;
        found = true;
    }
    found.then(|| Bundle::new(bundle.template(), slots))
}

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
