//! What the performance monitoring unit keeps of single events: the event address registers and the branch trace
//! buffer.
//!
//! ```text
//!   PMC10  instruction EAR:  0..3 privilege levels   4 privileged   5..12 unit mask   13 caches, not TLBs
//!          PMD0: 0..1 valid, or where it was translated   5..63 line       PMD1: 0..11 latency   12 more than that
//!   PMC11  data EAR:         0..3 privilege levels   6 privileged   7..8 caches, TLBs, ALAT   16..19 unit mask
//!          PMD2: address     PMD3: 0..12 latency   13 more than that   14..15 where it was translated
//!          PMD17: 0..1 slot   2 second bundle of   4..63 the window of two   3 valid
//!   PMC12  branches:         0..3 privilege levels   6 privileged   8..9 taken   10..11 target   12..13 path
//!                          14..15 kind
//!          PMD8..15: 0 branch, not target   1 mispredicted   2..3 slot, 3 of one not taken   4..63 bundle
//!          PMD16: 0..2 next   3 full   then four bits for each: 0 second bundle of its window   1 flushed
//! ```
//!
//! The fields are those of libpfm's definitions for Itanium 2; that bit 1 of a mask of PMC12 wants what is taken or
//! predicted rightly, and bit 0 the rest, is assumed, as is its coding of kinds. What the unit masks select:
//! [`event_address`](super::event_address). A register keeps the last event until the unit is frozen. Each one kept
//! counts as DATA_EAR_EVENTS, L1I_EAR_EVENTS or BRANCH_EVENT. A miss that software serves is kept when it interrupts,
//! with a latency of 0; of a failed check of the ALAT there is the instruction alone.
//!
//! Limits: PMC12's selection of the predictor's bits is not there.

use sidestep_ia64::execution::PerformanceRegisters;

use super::event_address::{Branched, DataEvents, FetchEvents, Fetched, Loaded};

/// The registers.
mod register {
    pub const INSTRUCTION_CONFIGURATION: usize = 10;
    pub const DATA_CONFIGURATION: usize = 11;
    pub const BRANCH_CONFIGURATION: usize = 12;
    pub const INSTRUCTION_LINE: usize = 0;
    pub const INSTRUCTION_LATENCY: usize = 1;
    pub const DATA_ADDRESS: usize = 2;
    pub const DATA_LATENCY: usize = 3;
    pub const BRANCH_FIRST: usize = 8;
    pub const BRANCH_INDEX: usize = 16;
    pub const DATA_INSTRUCTION: usize = 17;
}

/// Entries of the branch trace buffer.
const BRANCHES: usize = 8;

/// The event address registers, and the branch trace buffer beside them.
#[derive(Default)]
pub struct EventAddressRegisters {
    data: Option<DataEvents>,
    fetches: Option<FetchEvents>,
    /// The configuration of the branch trace buffer while it traces.
    branches: Option<u64>,
    /// PMD2, PMD3 and PMD17, if they are new.
    data_kept: Option<[u64; 3]>,
    /// PMD0 and PMD1.
    fetch_kept: Option<[u64; 2]>,
    /// Entries of the trace that are not in the registers yet: the word, and its four bits of PMD16.
    branches_kept: Vec<(u64, u64)>,
}

impl EventAddressRegisters {
    /// Looks at the configuration anew; `is_enabled` says whether control bits with `privileged` as the bit for
    /// privileged monitors hold in the processor's state.
    pub fn configure(&mut self, registers: &PerformanceRegisters, is_enabled: impl Fn(u64, u32) -> bool) {
        let configuration = |index: usize, privileged: u32| {
            let control = registers.configuration[index];
            (control & 0xf != 0 && is_enabled(control, privileged)).then_some(control)
        };
        self.data = configuration(register::DATA_CONFIGURATION, 6)
            .map(|control| DataEvents::of(control >> 7 & 3, control >> 16 & 0xf));
        self.fetches = configuration(register::INSTRUCTION_CONFIGURATION, 4)
            .and_then(|control| FetchEvents::of(control >> 5 & 0x1ff));
        self.branches = configuration(register::BRANCH_CONFIGURATION, 6);
    }

    /// Whether anything is kept.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.data.is_some() || self.fetches.is_some() || self.branches.is_some()
    }

    /// A load was executed, or a reference interrupted; whether it is kept.
    #[inline]
    pub fn load(&mut self, load: &Loaded) -> bool {
        let is_kept = self.data.is_some_and(|wanted| wanted.want_load(load));
        if is_kept {
            let translation = match self.data {
                Some(DataEvents::Translation(_)) => load.translated.map_or(0, |by| by as u64),
                _ => 0,
            };
            let overflow = u64::from(load.latency > 0x1fff) << 13;
            let latency = load.latency.min(0x1fff) | overflow | translation << 14;
            self.data_kept = Some([load.address, latency, instruction(load.ip, load.slot)]);
        }
        is_kept
    }

    /// A check of an advanced load has failed; whether it is kept.
    pub fn failed_check(&mut self, ip: u64, slot: u8) -> bool {
        let is_kept = self.data.is_some_and(DataEvents::want_failed_checks);
        if is_kept {
            self.data_kept = Some([0, 0, instruction(ip, slot)]);
        }
        is_kept
    }

    /// A line was fetched, or a fetch interrupted; whether it is kept.
    #[inline]
    pub fn fetched(&mut self, fetch: &Fetched) -> bool {
        let is_kept = self.fetches.is_some_and(|wanted| wanted.want(fetch));
        if is_kept {
            let status = match self.fetches {
                Some(FetchEvents::Translation(_)) => fetch.translated.map_or(0, |by| by as u64),
                _ => 1,
            };
            let overflow = u64::from(fetch.latency > 0xfff) << 12;
            self.fetch_kept = Some([fetch.ip & !0x1f | status, fetch.latency.min(0xfff) | overflow]);
        }
        is_kept
    }

    /// A branch has retired; whether it is kept.
    #[inline]
    pub fn branch(&mut self, branch: &Branched) -> bool {
        let Some(control) = self.branches else {
            return false;
        };
        // A mask's bit 1 wants what is taken or right, bit 0 the rest.
        let wants = |shift: u32, is: bool| control >> shift >> u32::from(is) & 1 != 0;
        let kind = control >> 14 & 3;
        if !wants(8, branch.taken.is_some())
            || !wants(10, !branch.wrong_target)
            || !wants(12, !branch.wrong_path)
            || (kind != 0 && kind != branch.kind as u64)
        {
            return false;
        }
        let is_wrong = branch.wrong_path || branch.wrong_target;
        let slot = if branch.taken.is_some() {
            u64::from(branch.slot)
        } else {
            3
        };
        let source = branch.ip & !0x1f | slot << 2 | u64::from(is_wrong) << 1 | 1;
        self.keep(source, branch.ip >> 4 & 1 | u64::from(is_wrong) << 1);
        if let Some(target) = branch.taken {
            self.keep(target & !0xf, 0);
        }
        true
    }

    fn keep(&mut self, word: u64, more: u64) {
        if self.branches_kept.len() == 2 * BRANCHES {
            // Overwritten before anybody could read it; the index goes on by as many.
            self.branches_kept.drain(..BRANCHES);
        }
        self.branches_kept.push((word, more));
    }

    /// Puts what was kept into the data registers.
    pub fn store(&mut self, registers: &mut PerformanceRegisters) {
        let data = &mut registers.data;
        if let Some([address, latency, instruction]) = self.data_kept.take() {
            data[register::DATA_ADDRESS] = address;
            data[register::DATA_LATENCY] = latency;
            data[register::DATA_INSTRUCTION] = instruction;
        }
        if let Some([line, latency]) = self.fetch_kept.take() {
            data[register::INSTRUCTION_LINE] = line;
            data[register::INSTRUCTION_LATENCY] = latency;
        }
        for (word, more) in self.branches_kept.drain(..) {
            let index = data[register::BRANCH_INDEX] & 7;
            data[register::BRANCH_FIRST + index as usize] = word;
            let shift = 4 + 4 * index;
            let full = data[register::BRANCH_INDEX] & 8 | u64::from(index == 7) << 3;
            let others = data[register::BRANCH_INDEX] & !0xf & !(0xf << shift);
            data[register::BRANCH_INDEX] = others | more << shift | full | (index + 1) & 7;
        }
    }
}

/// An instruction in the form of PMD17.
fn instruction(ip: u64, slot: u8) -> u64 {
    ip & !0x1f | (ip >> 4 & 1) << 2 | 1 << 3 | u64::from(slot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pmu::event_address::{BranchKind, TranslatedBy};

    #[test]
    fn loads_are_kept_with_address_latency_and_instruction() {
        let mut registers = EventAddressRegisters {
            data: Some(DataEvents::Latency(16)),
            ..EventAddressRegisters::default()
        };
        let load = Loaded {
            ip: 0x1030,
            slot: 2,
            address: 0x58,
            latency: 16,
            translated: None,
        };
        assert!(registers.load(&load));
        assert_eq!(registers.data_kept, Some([0x58, 16, 0x1020 | 0xc | 2]));
        registers.data = Some(DataEvents::Translation(4));
        let walked = Loaded {
            latency: 9000,
            translated: Some(TranslatedBy::Walker),
            ..load
        };
        assert!(registers.load(&walked));
        let status = 0x1fff | 1 << 13 | 2 << 14;
        assert_eq!(registers.data_kept, Some([0x58, status, 0x1020 | 0xc | 2]));
        assert!(!registers.failed_check(0x1000, 0));
        registers.data = Some(DataEvents::Alat);
        assert!(registers.failed_check(0x1000, 1) && !registers.load(&walked));
        assert_eq!(registers.data_kept, Some([0, 0, 0x1009]));
    }

    #[test]
    fn fetches_are_kept_with_their_line_and_where_they_were_translated() {
        let fetch = Fetched {
            ip: 0x1050,
            latency: 5000,
            translated: Some(TranslatedBy::Walker),
        };
        let mut registers = EventAddressRegisters {
            fetches: Some(FetchEvents::Latency(4)),
            ..EventAddressRegisters::default()
        };
        assert!(registers.fetched(&fetch));
        assert_eq!(registers.fetch_kept, Some([0x1041, 0xfff | 1 << 12]));
        registers.fetches = Some(FetchEvents::Translation(2));
        assert!(registers.fetched(&fetch));
        assert_eq!(registers.fetch_kept, Some([0x1042, 0xfff | 1 << 12]));
    }

    #[test]
    fn branches_are_kept_as_the_masks_want() {
        let branch = Branched {
            ip: 0x2010,
            slot: 2,
            taken: Some(0x3000),
            wrong_path: false,
            wrong_target: false,
            kind: BranchKind::Relative,
        };
        let not_taken = Branched {
            taken: None,
            wrong_path: true,
            ..branch
        };
        let kept = |control: u64, branch: &Branched| {
            let mut registers = EventAddressRegisters {
                branches: Some(control),
                ..EventAddressRegisters::default()
            };
            registers.branch(branch);
            registers.branches_kept
        };
        let all = 0x3f << 8;
        assert_eq!(kept(all, &branch), [(0x2000 | 2 << 2 | 1, 1), (0x3000, 0)]);
        assert_eq!(kept(all, &not_taken), [(0x2000 | 3 << 2 | 2 | 1, 3)]);
        assert_eq!(kept(all & !(1 << 8), &not_taken), [], "taken ones only");
        assert_eq!(kept(all & !(1 << 13), &branch), [], "mispredicted paths only");
        assert_eq!(kept(all | 2 << 14, &branch), [], "returns only");
        assert_eq!(kept(all | 1 << 14, &branch).len(), 2);
    }
}
