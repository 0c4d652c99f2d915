//! How a host goes on with a card: windows of an epoch, who owes which core what, frames from elsewhere.

use super::Host;
use super::card::{Card, Home};
use super::sidecores::locked;
use crate::cycle::Cycle;
use crate::nic::frame::Frame;
use crate::virtual_machine::Debt;

impl Host {
    /// Up to where virtual machines may go on before the card and the sidecores have come after: what those do is
    /// seen some cycles later, and what a guest stores for them is noticed some cycles later than that.
    pub(super) fn window_end(&self, end: Cycle, floor: Cycle) -> Cycle {
        let Some(card) = self.sidecores.card() else {
            return end;
        };
        let (seen, noticed) = card.notice();
        let event = self
            .sidecores
            .next_event()
            .map(|event| event.max(floor).saturating_add(seen));
        let activities = self
            .machines
            .iter()
            .filter_map(|machine| locked(machine).next_store());
        let store = activities
            .min()
            .map(|time| time.max(floor).saturating_add(noticed + seen));
        let asked = self
            .queue
            .first_key_value()
            .map(|((time, ..), _)| time.max(&floor).saturating_add(seen));
        [event, store, asked]
            .into_iter()
            .flatten()
            .fold(end, Cycle::min)
            .max(floor + 1)
    }

    /// Whether a virtual processor has use for a core and none, while nobody has one, or somebody without use for it
    /// before `until`.
    pub(super) fn has_better_use(&self, until: Cycle) -> bool {
        let has_woken = self.sidecores.card().is_some_and(Card::has_woken);
        let has_free_core = || self.scheduler.has_free_core(self.config.cores - self.serving);
        let mut machines = self.machines.iter();
        has_woken && (has_free_core() || machines.any(|machine| locked(machine).wastes_core(until)))
    }

    /// Takes from whoever has a core what it owes it for interrupts of the card.
    pub(super) fn take_debts(&self) -> Vec<(usize, Vec<Debt>)> {
        if self.sidecores.card().is_none() {
            return Vec::new();
        }
        let holders = self.scheduler.holders(self.config.cores);
        let debts = holders.into_iter().enumerate().filter_map(|(core, holder)| {
            let (machine, processor) = holder?;
            Some((core, locked(&self.machines[machine]).take_debts(processor)))
        });
        debts.collect()
    }

    /// Tells the card who has which core; what was owed to a core goes with it.
    pub(super) fn place_card(&mut self, debts: Vec<(usize, Vec<Debt>)>) {
        let Some(card) = self.sidecores.card() else {
            return;
        };
        let homes = card.interfaces().iter().map(|(index, pair)| {
            let index = *index;
            let processor = locked(&self.machines[index]).ring_processor(*pair).unwrap_or(0);
            Home {
                core: self.scheduler.last_core_of(index, processor).unwrap_or(0),
                has_core: self.scheduler.core_of(index, processor).is_some(),
            }
        });
        let holders = self.scheduler.holders(self.config.cores);
        card.place(homes.collect(), holders, self.scheduler.keeps_waiting());
        for (core, debts) in debts {
            card.owe(core, debts);
        }
    }

    /// Has frames come from elsewhere from now on: it never ends because nothing can happen.
    pub fn link(&mut self) {
        self.is_linked = true;
    }

    /// Has a frame come over the wire at a time that has not passed; it goes nowhere without a card.
    pub fn receive(&mut self, time: Cycle, frame: Frame) {
        self.sidecores.receive(time, frame);
    }

    /// Without a link, what the card has put on the wire is lost.
    pub(super) fn lose_frames(&self) {
        if let Some(card) = self.sidecores.card().filter(|_| !self.is_linked) {
            card.lose_outgoing();
        }
    }

    /// Takes what the card has put on the wire, and when, in order.
    pub fn take_frames(&mut self) -> Vec<(Cycle, Frame)> {
        let card = self.sidecores.card();
        let mut frames: Vec<_> = card.map_or_else(Vec::new, |card| card.take_outgoing().into());
        frames.sort_by_key(|(time, frame)| (*time, frame.number));
        frames
    }
}
