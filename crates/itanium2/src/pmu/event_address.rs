//! Single events with what is known of each: loads, failed advanced loads, fetches, branches; and which of them are
//! wanted.
//!
//! The event address registers and the branch trace buffer keep such events for guest code
//! ([`event_address_registers`](super::event_address_registers)), and a host samples them
//! ([`sampling`](super::sampling)). Which ones is said alike, in the terms of the processor's unit masks: a least
//! latency, or where a translation was found, or failed checks of the ALAT.

/// Where a reference found its translation, if not in the first level of the TLB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TranslatedBy {
    /// The second level of the TLB.
    SecondLevel = 1,
    /// The walker.
    Walker = 2,
    /// Software: a miss interrupted, and its handler inserts the translation.
    Software = 3,
}

impl TranslatedBy {
    /// Its bit in the unit masks of the data event address register; those of instructions are shifted right by one.
    fn bit(self) -> u64 {
        1 << self as u64
    }
}

/// A load that was executed, or a reference that missed the translation buffers and interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Its bundle.
    pub ip: u64,
    /// Its slot.
    pub slot: u8,
    /// What it referred to.
    pub address: u64,
    /// Cycles until its result could be used; 0 of one that interrupted.
    pub latency: u64,
    /// Where its translation was found, if not in the first level.
    pub translated: Option<TranslatedBy>,
}

/// A line of instructions that was fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The first bundle that was wanted of it.
    pub ip: u64,
    /// Cycles that it took; 0 if it was in the first level.
    pub latency: u64,
    /// Where its translation was found, if not in the first level.
    pub translated: Option<TranslatedBy>,
}

/// What a branch did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branched {
    /// Its bundle.
    pub ip: u64,
    /// Its slot.
    pub slot: u8,
    /// Where it went, if anywhere.
    pub taken: Option<u64>,
    /// Whether the path was predicted wrongly.
    pub wrong_path: bool,
    /// Whether the target was.
    pub wrong_target: bool,
    /// What kind it is.
    pub kind: BranchKind,
}

/// The kinds of branches that the branch trace buffer tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchKind {
    /// To an address relative to its own.
    Relative = 1,
    /// A return.
    Return = 2,
    /// To any other branch register.
    Indirect = 3,
}

/// Which events of data references are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataEvents {
    /// Loads of at least this many cycles.
    Latency(u64),
    /// References whose translation was found where the mask's bits say: 1 the second level, 2 the walker, 3 software.
    Translation(u64),
    /// Checks of advanced loads that failed.
    Alat,
}

impl DataEvents {
    /// What a mode and a unit mask of PMC11 select.
    pub fn of(mode: u64, mask: u64) -> DataEvents {
        match mode {
            0 => DataEvents::Latency(4 << mask),
            1 => DataEvents::Translation(mask),
            _ => DataEvents::Alat,
        }
    }

    /// Whether a reference is wanted.
    #[inline]
    pub fn want_load(self, load: &Loaded) -> bool {
        match self {
            DataEvents::Latency(least) => {
                load.latency >= least && load.translated != Some(TranslatedBy::Software)
            }
            DataEvents::Translation(mask) => load.translated.is_some_and(|by| by.bit() & mask != 0),
            DataEvents::Alat => false,
        }
    }

    /// Whether failed checks of advanced loads are.
    #[inline]
    pub fn want_failed_checks(self) -> bool {
        self == DataEvents::Alat
    }
}

/// Which fetches are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchEvents {
    /// Of lines that took at least this many cycles.
    Latency(u64),
    /// Of pages whose translation was found where the mask's bits say: 0 the second level, 1 the walker, 2 software.
    Translation(u64),
}

/// Unit masks of the instruction event address register for caches, and the least latency each stands for.
pub const FETCH_LATENCIES: [(u64, u64); 9] = [
    (0x40, 1),
    (0xff, 4),
    (0xfe, 8),
    (0xfc, 16),
    (0xf8, 32),
    (0xf0, 128),
    (0xe0, 256),
    (0xc0, 1024),
    (0x80, 4096),
];

impl FetchEvents {
    /// What the unit mask of PMC10, nine bits with those of the mode, selects: nothing where no such mask is
    /// documented.
    pub fn of(mode_and_mask: u64) -> Option<FetchEvents> {
        const CACHES: u64 = 1 << 8;
        const NOTHING: u64 = 1 << 7;
        if mode_and_mask & CACHES == 0 {
            return (mode_and_mask & NOTHING == 0).then_some(FetchEvents::Translation(mode_and_mask & 7));
        }
        let known = |&&(mask, _): &&(u64, u64)| mask == mode_and_mask & 0xff;
        let (_, latency) = FETCH_LATENCIES.iter().find(known)?;
        Some(FetchEvents::Latency(*latency))
    }

    /// Whether a fetch is wanted.
    #[inline]
    pub fn want(self, fetch: &Fetched) -> bool {
        match self {
            FetchEvents::Latency(least) => fetch.latency >= least,
            FetchEvents::Translation(mask) => fetch.translated.is_some_and(|by| by.bit() >> 1 & mask != 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Loaded = Loaded {
        ip: 0x1000,
        slot: 0,
        address: 0x50,
        latency: 16,
        translated: None,
    };

    #[test]
    fn loads_are_wanted_from_a_latency_on_or_by_where_they_were_translated() {
        let by = |by: TranslatedBy| Loaded {
            translated: Some(by),
            ..LOAD
        };
        assert!(DataEvents::of(0, 2).want_load(&LOAD));
        assert!(!DataEvents::of(0, 3).want_load(&LOAD));
        assert!(!DataEvents::of(1, 0xe).want_load(&LOAD));
        for (mask, wanted) in [
            (2, TranslatedBy::SecondLevel),
            (4, TranslatedBy::Walker),
            (8, TranslatedBy::Software),
        ] {
            assert!(DataEvents::of(1, mask).want_load(&by(wanted)));
            assert!(!DataEvents::of(1, !mask & 0xf).want_load(&by(wanted)));
        }
        assert!(!DataEvents::of(2, 0xf).want_load(&LOAD));
    }

    #[test]
    fn fetches_are_wanted_by_latency_or_translation_and_not_at_all_with_masks_that_mean_nothing() {
        let fetch = Fetched {
            ip: 0x1000,
            latency: 8,
            translated: Some(TranslatedBy::Walker),
        };
        assert_eq!(FetchEvents::of(0x1fe), Some(FetchEvents::Latency(8)));
        assert!(FetchEvents::Latency(8).want(&fetch) && !FetchEvents::Latency(9).want(&fetch));
        assert_eq!(FetchEvents::of(0x2), Some(FetchEvents::Translation(2)));
        assert!(FetchEvents::Translation(2).want(&fetch) && !FetchEvents::Translation(5).want(&fetch));
        assert_eq!(FetchEvents::of(0x80), None);
        assert_eq!(FetchEvents::of(0x101), None);
    }
}
