//! How guests are told of packets: by the card itself, by the monitor on the core that its interrupt goes to, by
//! sidecores.

use sidestep_zerowait::{Context, Edge};

use super::program::Outlets;
use super::state::{Home, Place, State};
use super::{Card, ROOM};
use crate::costs::Cost;
use crate::cycle::Cycle;
use crate::host::sidecores::{board, host_time, locked};
use crate::nic::Delivery;
use crate::virtual_machine::{Debt, Reach, Signal, Whom};

/// Each new interval between frames counts so much of the average: one part of so many.
const INTERVAL_PARTS: u64 = 8;

impl Card {
    /// Has an interface's guest told of what is in its ring, if it wants to be.
    pub(super) fn announce(
        &self,
        cx: &mut Context<'_>,
        state: &mut State,
        interface: usize,
        outlets: &Outlets,
    ) {
        if !state.vifs[interface].wants_signal() {
            return;
        }
        match self.config.delivery {
            Delivery::Master => {
                state.vifs[interface].disarm();
                cx.spend(self.times.register);
                state.register |= 1 << (interface % self.config.register_bits);
                if !std::mem::replace(&mut state.is_asserted, true) {
                    cx.continue_to(outlets.interrupted, 0);
                }
            }
            Delivery::Vector | Delivery::Posted => {
                state.vifs[interface].disarm();
                cx.spend(self.times.message);
                self.message(state, interface, host_time(cx.now()));
            }
            Delivery::Sidecore | Delivery::Adaptive | Delivery::PostedBySidecore => {
                if !std::mem::replace(&mut state.is_noticed[interface], true) {
                    let look = outlets.looks[interface % self.sidecores];
                    let later = cx.continue_after(look, self.times.write, interface as u64);
                    assert!(later.is_ok(), "{ROOM}");
                }
            }
        }
    }

    /// The card names the interface's vector to the host.
    fn message(&self, state: &mut State, interface: usize, now: Cycle) {
        let time = now + self.costs.cycles(Cost::DeviceInterrupt);
        let Home { core, has_core } = state.homes[interface];
        if !has_core {
            // No guest is there to take it: the monitor does, on the core that it had last.
            state.counts.interrupts += 1;
            let debt = Debt {
                time,
                cycles: self.costs.round_trip() + self.signal_cycles(),
                whom: Whom::Others,
            };
            self.preempt(state, core, debt);
        }
        let reach = match self.config.delivery {
            Delivery::Posted => Reach::Posted,
            _ => Reach::Interrupt,
        };
        self.signal(state, interface, time, reach);
    }

    /// Finding a guest and its processor by interface, and marking a signal there.
    fn signal_cycles(&self) -> u64 {
        self.costs.cycles(Cost::CacheLine) + self.costs.cycles(Cost::Transfer)
    }

    /// Signals a guest, which sees it from `time` on.
    fn signal(&self, state: &mut State, interface: usize, time: Cycle, reach: Reach) {
        let is_redundant = state.vifs[interface].signalled();
        state.has_woken |= !state.homes[interface].has_core;
        if !is_redundant {
            let frame = state.last[interface];
            state.step(frame, Place::Machine(interface), "signal", time, time);
        }
        let pair = self.pair_of(interface);
        self.machine_of(interface)
            .signal(pair, time, Signal { reach, is_redundant });
    }

    /// Whoever has a core owes it the monitor's work there.
    pub(super) fn preempt(&self, state: &mut State, core: usize, debt: Debt) {
        state.counts.handling_cycles += debt.cycles;
        self.hand_debt(state, core, debt);
    }

    /// Hands a debt to whoever has a core.
    pub(super) fn hand_debt(&self, state: &mut State, core: usize, debt: Debt) {
        match state.holders.get(core).copied().flatten() {
            Some((machine, processor)) => {
                locked(&self.machines[machine]).owe(processor, debt);
            }
            None => {
                if let Some(unowned) = state.unowned.get_mut(core) {
                    *unowned += debt.cycles;
                }
            }
        }
    }

    /// Leaving whoever has the core, finding the handler and reading the identifier register.
    fn read_cycles(&self) -> u64 {
        let parts = [Cost::Exit, Cost::Dispatch, Cost::RegisterRead];
        parts.map(|cost| self.costs.cycles(cost)).iter().sum()
    }

    /// The card's interrupt is on its way to the core that gets it: the monitor will read the register there.
    pub(super) fn interrupted(&self, cx: &mut Context<'_>, read: Edge<u64>) {
        let core_time = host_time(cx.now()) + self.costs.cycles(Cost::DeviceInterrupt);
        let cycles = self.read_cycles();
        let mut state = self.state();
        let debt = Debt {
            time: core_time,
            cycles,
            whom: Whom::Unknown,
        };
        self.preempt(&mut state, self.config.interrupt_core, debt);
        cx.spend(cycles);
        cx.continue_to(read, 0);
    }

    /// The register is read, and with that cleared: the monitor signals every guest of a bit that was set.
    pub(super) fn handle(&self, cx: &mut Context<'_>) {
        let mut state = self.state();
        let bits = std::mem::take(&mut state.register);
        state.is_asserted = false;
        state.counts.interrupts += 1;
        let named: Vec<usize> = (0..state.vifs.len())
            .filter(|interface| bits >> (interface % self.config.register_bits) & 1 != 0)
            .filter(|interface| state.vifs[*interface].generation() > 0)
            .collect();
        let signals = named.len() as u64 * self.signal_cycles();
        let back = self.costs.cycles(Cost::Entry);
        // The core is interrupted as much later as the way takes.
        let core_time = host_time(cx.now()) + self.costs.cycles(Cost::DeviceInterrupt);
        let here = self.config.interrupt_core;
        let holder = state.holders.get(here).copied().flatten();
        let is_own = holder.is_some_and(|(machine, _)| {
            named
                .iter()
                .any(|interface| self.interfaces[*interface].0 == machine)
        });
        let whom = if is_own { Whom::Itself } else { Whom::Others };
        let debt = Debt {
            time: core_time,
            cycles: signals + back,
            whom,
        };
        self.preempt(&mut state, here, debt);
        if let Some(frame) = named.first().map(|interface| state.last[*interface]) {
            let begun = Cycle(core_time.0.saturating_sub(self.read_cycles()));
            let place = Place::Core(here);
            state.step(
                frame,
                place,
                "master interrupt",
                begun,
                core_time + signals + back,
            );
        }
        let mut marked = core_time;
        for interface in named {
            marked += self.signal_cycles();
            let (time, reach) = if state.homes[interface].core == here {
                (core_time + signals + back, Reach::Upcall)
            } else {
                (marked + self.costs.cycles(Cost::Interrupt), Reach::Interrupt)
            };
            self.signal(&mut state, interface, time, reach);
        }
        cx.spend(signals + back);
    }

    /// A sidecore's loop comes to a receive ring that has changed.
    pub(super) fn look(&self, cx: &mut Context<'_>, interface: usize, flush: Edge<u64>) {
        let mut state = self.state();
        state.is_noticed[interface] = false;
        let sidecore = interface % self.sidecores;
        let start = host_time(cx.now());
        let place = self.machines.len() + interface / self.sidecores;
        let delay = board(&self.board).turn((sidecore, place), start, self.polling, &self.costs);
        state.counts.sidecore_cycles += delay;
        cx.spend(delay);
        if !state.vifs[interface].wants_signal() {
            return;
        }
        if self.config.delivery != Delivery::Adaptive {
            return self.signal_from_sidecore(cx, &mut state, interface, start);
        }
        let received = state.vifs[interface].received();
        let bound = self.times.latency_bound;
        let rate = &mut state.adaptive[interface];
        let interval = start.since(rate.last);
        rate.interval = (rate.interval * (INTERVAL_PARTS - 1) + interval) / INTERVAL_PARTS;
        rate.last = start;
        let is_batch = received.wrapping_sub(rate.told) >= self.config.batch;
        let others_come = rate.interval.saturating_mul(2) <= bound;
        if is_batch || !others_come && !rate.is_waiting {
            self.signal_from_sidecore(cx, &mut state, interface, start);
        } else if !std::mem::replace(&mut rate.is_waiting, true) {
            let later = cx.continue_after(flush, bound, interface as u64);
            assert!(later.is_ok(), "{ROOM}");
        }
    }

    /// Packets have waited for others long enough.
    pub(super) fn flush(&self, cx: &mut Context<'_>, interface: usize) {
        let mut state = self.state();
        state.adaptive[interface].is_waiting = false;
        if state.vifs[interface].wants_signal() {
            let start = host_time(cx.now());
            self.signal_from_sidecore(cx, &mut state, interface, start);
        }
    }

    /// A sidecore signals a guest: by an interrupt to its core, or posted.
    fn signal_from_sidecore(&self, cx: &mut Context<'_>, state: &mut State, interface: usize, start: Cycle) {
        let work = self.signal_cycles();
        cx.spend(work);
        let now = host_time(cx.now());
        let sidecore = interface % self.sidecores;
        board(&self.board).works(sidecore, work, now);
        state.counts.sidecore_signals += 1;
        state.counts.sidecore_cycles += work;
        state.step(
            state.last[interface],
            Place::Sidecore(sidecore),
            "find and signal",
            start,
            now,
        );
        state.vifs[interface].disarm();
        state.adaptive[interface].told = state.vifs[interface].received();
        let reach = match self.config.delivery {
            Delivery::PostedBySidecore => Reach::Posted,
            _ => Reach::Interrupt,
        };
        self.signal(state, interface, now + self.costs.cycles(Cost::Interrupt), reach);
    }
}
