//! What the card's engines do: frames out of send rings, and into receive rings.

use sidestep_zerowait::{Context, Edge};

use super::Card;
use super::program::Outlets;
use super::state::{Place, State};
use crate::cycle::Cycle;
use crate::host::sidecores::host_time;
use crate::nic::frame::{FRAME_MAX, Frame};
use crate::nic::ring::{Status, Store};
use crate::nic::vif::{Followed, Vif};
use crate::virtual_machine::{Fetched, Written};

/// Bytes of a line that the bus moves at a time.
const BUS_LINE: u64 = 64;

impl Card {
    /// A guest's store can be seen.
    pub(super) fn stores(
        &self,
        cx: &mut Context<'_>,
        (interface, what, value): (u64, u64, u64),
        transmit: &[Edge<(u64, u64)>],
        fill: &[Edge<u64>],
    ) {
        let store = Store::from_words(what, value);
        let mut state = self.state();
        let index = interface as usize;
        let stored = Cycle(host_time(cx.now()).0.saturating_sub(self.times.notice));
        state.read(index, store, self.config.ring_entries, stored);
        let (followed, dropped) = state.vifs[index].note(store);
        dropped.into_iter().for_each(|ticket| drop(state.take(ticket)));
        match followed {
            Followed::Nothing => {}
            Followed::Sending => cx.continue_to(transmit[self.engine_of(index)], (interface, 1)),
            Followed::Filling | Followed::Wanting => cx.continue_to(fill[self.engine_of(index)], interface),
        }
    }

    /// A frame comes over the wire.
    pub(super) fn wire(&self, cx: &mut Context<'_>, ticket: usize, arrive: &[Edge<u64>]) {
        let mut state = self.state();
        if state.frame(ticket).is_for_many() {
            let frame = state.take(ticket);
            return self.pass_on_to_all(cx, &mut state, &frame, None, arrive);
        }
        let machine = state.frame(ticket).to().map_or(0, |to| usize::from(to.interface));
        self.pass_on(cx, &mut state, ticket, machine, arrive);
    }

    /// Hands a frame for many to the engines of all virtual machines but the one that sent it.
    fn pass_on_to_all(
        &self,
        cx: &mut Context<'_>,
        state: &mut State,
        frame: &Frame,
        from: Option<usize>,
        arrive: &[Edge<u64>],
    ) {
        for machine in (0..self.machines.len()).filter(|machine| Some(*machine) != from) {
            let ticket = state.keep(frame.clone(), Some(machine));
            self.pass_on(cx, state, ticket, machine, arrive);
        }
    }

    /// Hands a frame to the engine of a virtual machine's interface, if that has room.
    fn pass_on(
        &self,
        cx: &mut Context<'_>,
        state: &mut State,
        ticket: usize,
        machine: usize,
        arrive: &[Edge<u64>],
    ) {
        let first = self.first.get(machine).copied().unwrap_or(machine);
        let engine = self.engine_of(self.steered(state, first, ticket));
        if state.waiting[engine] >= self.config.input_frames {
            state.counts.overrun += 1;
            state.take(ticket);
            return;
        }
        state.waiting[engine] += 1;
        cx.continue_to(arrive[engine], ticket as u64);
    }

    /// An engine takes a frame from a send ring; `first`: its poll has to come there.
    pub(super) fn transmit(
        &self,
        cx: &mut Context<'_>,
        interface: usize,
        first: bool,
        again: Edge<(u64, u64)>,
        arrive: &[Edge<u64>],
    ) {
        let mut state = self.state();
        let start = host_time(cx.now());
        if first {
            let round = self.interfaces.len().div_ceil(self.config.engines) as u64 * self.times.poll;
            let place = (interface / self.config.engines) as u64 * self.times.poll;
            cx.spend(place.wrapping_sub(start.0) % round);
        }
        cx.spend(self.times.poll);
        let Some(number) = state.vifs[interface].next_to_send() else {
            return;
        };
        let generation = state.vifs[interface].generation();
        cx.spend(self.times.descriptor);
        let mut machine = self.machine_of(interface);
        let pair = self.pair_of(interface);
        let status = match machine.fetch(pair, number) {
            Fetched::Refused => {
                state.vifs[interface].counts.refused += 1;
                Status::Refused
            }
            Fetched::Frame(bytes) => {
                cx.spend(self.times.packet + self.lines(bytes.len()));
                state.vifs[interface].counts.sent += 1;
                state.numbers += 1;
                let frame = Frame {
                    number: u64::from(self.config.host) << 48 | state.numbers,
                    bytes,
                };
                let now = host_time(cx.now());
                let place = Place::Engine(self.engine_of(interface));
                state.step(frame.number, place, "transmit", start, now);
                match frame.to() {
                    _ if frame.is_for_many() => {
                        let from = Some(self.interfaces[interface].0);
                        self.pass_on_to_all(cx, &mut state, &frame, from, arrive);
                        state.outgoing.push_back((now, frame));
                    }
                    Some(to) if to.host == self.config.host => {
                        let ticket = state.keep(frame, None);
                        self.pass_on(cx, &mut state, ticket, to.interface.into(), arrive);
                    }
                    _ => state.outgoing.push_back((now, frame)),
                }
                Status::Done
            }
        };
        let time = host_time(cx.now()) + self.times.write;
        machine.write_from_card(time, (pair, generation), number, Written::Transmitted { status });
        cx.continue_to(again, (interface as u64, 0));
    }

    /// The interface that a frame goes to, of those that its receiver's driver uses: frames of one connection go to
    /// one, so that they stay in order.
    fn steered(&self, state: &State, first: usize, ticket: usize) -> usize {
        match state.vifs.get(first).map_or(1, Vif::pairs) {
            1 => first,
            pairs => first + (state.frame(ticket).flow() % pairs) as usize,
        }
    }

    fn lines(&self, bytes: usize) -> u64 {
        (bytes as u64).min(FRAME_MAX).div_ceil(BUS_LINE) * self.times.line
    }

    /// An engine looks whose a frame is, and whether there is room for it.
    pub(super) fn arrive(&self, cx: &mut Context<'_>, engine: usize, ticket: usize, fill: Edge<u64>) {
        let mut state = self.state();
        state.waiting[engine] -= 1;
        let start = host_time(cx.now());
        let (to, frame) = (state.frame(ticket).to(), state.frame(ticket).number);
        let named = to
            .filter(|to| to.host == self.config.host)
            .map(|to| usize::from(to.interface));
        let machine = state.kept(ticket).to.or(named);
        let first = machine.and_then(|machine| self.first.get(machine).copied());
        let Some(interface) = first.map(|first| self.steered(&state, first, ticket)) else {
            cx.spend(self.times.drop);
            state.counts.unknown += 1;
            state.take(ticket);
            return;
        };
        match state.vifs[interface].keep(ticket) {
            Err(ticket) => {
                cx.spend(self.times.drop);
                state.step(frame, Place::Engine(engine), "drop", start, host_time(cx.now()));
                state.take(ticket);
            }
            Ok(begins) => {
                cx.spend(self.times.packet);
                state.step(frame, Place::Engine(engine), "arrive", start, host_time(cx.now()));
                if begins {
                    cx.continue_to(fill, interface as u64);
                }
            }
        }
    }

    /// An engine moves a frame into a receive ring, and has its guest told.
    pub(super) fn fill(&self, cx: &mut Context<'_>, interface: usize, again: Edge<u64>, outlets: &Outlets) {
        let mut state = self.state();
        let start = host_time(cx.now());
        let Some((ticket, number)) = state.vifs[interface].next_to_fill() else {
            return self.announce(cx, &mut state, interface, outlets);
        };
        let frame = state.take(ticket);
        cx.spend(self.times.descriptor);
        let mut machine = self.machine_of(interface);
        let pair = self.pair_of(interface);
        let buffer = machine.buffer(pair, number, frame.bytes.len() as u64);
        match buffer {
            Some(_) => cx.spend(self.lines(frame.bytes.len())),
            None => state.vifs[interface].counts.refused += 1,
        }
        let now = host_time(cx.now());
        let generation = state.vifs[interface].generation();
        let bytes = frame.bytes;
        machine.write_from_card(
            now + self.times.write,
            (pair, generation),
            number,
            Written::Received { bytes, buffer },
        );
        drop(machine);
        if buffer.is_some() {
            state.vifs[interface].filled();
            state.last[interface] = frame.number;
            if state.steps.is_some() {
                state.unread[interface].push_back((number, frame.number));
            }
        }
        state.step(
            frame.number,
            Place::Engine(self.engine_of(interface)),
            "fill",
            start,
            now,
        );
        self.announce(cx, &mut state, interface, outlets);
        cx.continue_to(again, interface as u64);
    }
}
