//! A virtual processor's pages, taken away for a while to see which it touches.
//!
//! The monitor takes the present bits of some of the shadow's entries away. The next reference to such a page is an
//! exit that needs nothing of the guest's: the bit comes back, and what was touched is noted for
//! [detection](super::detection). An ordinary fill of the shadow tells the same. Code is not among it: a fetch says
//! nothing of communication.
//!
//! Limits. A page smaller than its region's preferred size is in no table but the TLB's, and is seen only when the
//! guest's reference misses there. Of a page that was touched the next touch is seen after it was taken away again.

use sidestep_ia64::memory::GlobalPurge;
use sidestep_ia64::{PhysicalAddress, VirtualAddress};

use super::exit::ExitReason;
use super::processor::VirtualProcessor;
use super::shadow::ShadowedPage;
use crate::costs::{Cost, HostCosts};

/// What detection sees of one virtual processor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampling {
    /// Whether nothing is to be noted now, because too little was saved.
    pub is_paused: bool,
    /// What it touched last, since that was asked for.
    touched: Option<Touched>,
    /// How many instructions it had executed when pages were taken away last.
    instructions: u64,
}

impl Sampling {
    /// Notes nothing for now.
    pub(super) fn paused() -> Sampling {
        Sampling {
            is_paused: true,
            touched: None,
            instructions: 0,
        }
    }
}

/// A page that was touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touched {
    /// The guest-physical address.
    pub address: PhysicalAddress,
    /// The cycles that it took to see it.
    pub cycles: u64,
    /// Whether it had been taken away; else the shadow was filled.
    pub was_taken: bool,
}

/// What a round took away, and the cycles that it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    pub pages: u64,
    pub cycles: u64,
}

impl VirtualProcessor {
    /// What a round of so many pages takes of a processor that executes, and what it takes to give all of them back.
    pub(super) fn round_cost(costs: &HostCosts, pages: u64) -> u64 {
        // The table's bits, and for each page its entry and the TLB.
        let each = costs.cycles(Cost::CacheLine) + costs.cycles(Cost::Purge);
        let taken = costs.round_trip() + costs.cycles(Cost::CacheLine) + pages * each;
        taken + pages * Self::giving_cost(costs)
    }

    fn giving_cost(costs: &HostCosts) -> u64 {
        costs.round_trip() + costs.cycles(Cost::SampledPage)
    }

    /// Takes up to `most` pages away, in an interrupt of the host; none from one that has executed nothing since the
    /// last time.
    pub(super) fn take_away(&mut self, costs: &HostCosts, most: usize) -> Taken {
        let instructions = self.instructions();
        let Some(sampling) = &mut self.sampling else {
            return Taken::default();
        };
        if std::mem::replace(&mut sampling.instructions, instructions) == instructions {
            return Taken::default();
        }
        let mut pages = 0;
        while pages < most as u64
            && let Some(taken) = self.shadow.take_away()
        {
            self.purge_from_tlb(&taken);
            pages += 1;
        }
        let cycles = Self::round_cost(costs, pages) - pages * Self::giving_cost(costs);
        self.charge(ExitReason::HostInterrupt, cycles);
        Taken { pages, cycles }
    }

    /// Gives the page of an address back that was taken away, and notes the touch; false if it was not taken away.
    pub(super) fn give_back(&mut self, costs: &HostCosts, address: VirtualAddress) -> bool {
        let region = self.shadow_region(address);
        let Some(given) = self.shadow.give_back(address, region) else {
            return false;
        };
        // The walker has put the page into the TLB as it found it.
        self.purge_from_tlb(&given);
        self.touch_shadow(address);
        let cycles = Self::giving_cost(costs);
        self.charge(ExitReason::SampledPage, cycles);
        let first = given.machine.to_guest(self.owner);
        let offset = address.0 - address.aligned_down(given.size_log2).0;
        if let (Some(sampling), Some(first)) = (&mut self.sampling, first) {
            sampling.touched = Some(Touched {
                address: first + offset,
                cycles,
                was_taken: true,
            });
        }
        true
    }

    /// Notes that the shadow was filled for a reference to a guest-physical address.
    pub(super) fn note_fill(&mut self, costs: &HostCosts, address: PhysicalAddress) {
        let cycles = costs.cycles(Cost::SampledPage);
        if let Some(sampling) = self.sampling.as_mut().filter(|sampling| !sampling.is_paused) {
            sampling.touched = Some(Touched {
                address,
                cycles,
                was_taken: false,
            });
            self.charge_more(cycles);
        }
    }

    /// Takes what it touched last.
    pub(super) fn take_touched(&mut self) -> Option<Touched> {
        self.sampling.as_mut()?.touched.take()
    }

    fn purge_from_tlb(&mut self, page: &ShadowedPage) {
        let purge = GlobalPurge {
            address: page.page,
            region: page.region,
            size_log2: page.size_log2,
            // Memory is where it was: advanced loads stay.
            advanced_loads: false,
        };
        self.in_real_state(|processor| processor.purge_translations(purge));
    }
}
