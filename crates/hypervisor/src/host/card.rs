//! The threads of a self-virtualised card: its engines, the monitor's handler of its interrupt, and the sidecores'
//! looks at its receive rings.
//!
//! ```text
//!   stores        what guests store for the card, when it can see it             devices' core
//!   wire          frames come over the wire                                      devices' core
//!   transmit e    a frame is taken from a send ring                              engine e
//!   arrive e      a frame is looked at: whose it is, whether there is room       engine e
//!   fill e        a frame is moved into a receive ring                           engine e
//!   interrupted   the card's interrupt has been taken                            the handler's core
//!   handle        the identifier register is read and guests are signalled       the handler's core
//!   look k        a sidecore comes to a receive ring that has changed            sidecore k
//!   flush k       packets have waited for others long enough                     sidecore k
//! ```
//!
//! An interface's engine is its number modulo the engines, its sidecore likewise. The handler's core stands for the
//! monitor on the core that the interrupt is routed to: it does one thing after the other, and whoever has that core
//! owes it the time. An event here is the card's or the sender's: what a guest, or a core, sees of it comes later by
//! the way of the write or the signal. The host advances guests no further ahead than that ([`Card::notice`]).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use sidestep_zerowait::{Attributes, Context, Edge, Graph, GraphError, Mode, Port, Thread};

use super::sidecores::{Machines, Polling, SharedBoard, board, host_time, locked};
use crate::costs::{Cost, HostCosts};
use crate::cycle::Cycle;
use crate::nic::costs::CardCost;
use crate::nic::frame::{Address, FRAME_MAX, Frame};
use crate::nic::ring::{Status, Store};
use crate::nic::vif::{Followed, Vif, VifCounts};
use crate::nic::{Delivery, NicConfig, NicError, SIGNAL_CYCLES_MIN};
use crate::virtual_machine::{Fetched, Owed, Reach, Signal, Written};

/// Bytes of a line that the bus moves at a time.
const BUS_LINE: u64 = 64;
/// Each new interval between frames counts so much of the average: one part of so many.
const INTERVAL_PARTS: u64 = 8;

/// What the card did that is no single interface's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CardCounts {
    /// Interrupts of the card that the monitor has handled.
    pub interrupts: u64,
    /// Cycles of the core that it handled them on.
    pub handling_cycles: u64,
    /// Signals by a sidecore.
    pub sidecore_signals: u64,
    /// Cycles of sidecores for receive rings, looks in vain apart.
    pub sidecore_cycles: u64,
    /// Frames for an address that nobody has.
    pub unknown: u64,
    /// Frames for which the engines had no room.
    pub overrun: u64,
}

/// A step of a frame on its way, or of what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The frame.
    pub frame: u64,
    /// Who does it.
    pub place: Place,
    /// What is done.
    pub name: &'static str,
    /// From when on.
    pub start: Cycle,
    /// For how long.
    pub cycles: u64,
}

/// Who works on a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A micro-engine.
    Engine(usize),
    /// The monitor on a guest's core.
    Core(usize),
    /// A sidecore.
    Sidecore(usize),
    /// The virtual machine that it is for.
    Machine(usize),
}

/// Cycles of the host.
struct Times {
    poll: u64,
    notice: u64,
    descriptor: u64,
    packet: u64,
    line: u64,
    write: u64,
    register: u64,
    message: u64,
    drop: u64,
    latency_bound: u64,
}

/// The card of a host.
pub struct Card {
    config: NicConfig,
    machines: Machines,
    costs: Arc<HostCosts>,
    polling: Polling,
    board: SharedBoard,
    sidecores: usize,
    times: Times,
    state: Mutex<State>,
}

struct State {
    vifs: Vec<Vif>,
    adaptive: Vec<Rate>,
    frames: Vec<Option<Frame>>,
    free: Vec<usize>,
    /// Frames that each engine has not looked at yet.
    waiting: Vec<usize>,
    register: u64,
    /// Whether the interrupt line is asserted.
    is_asserted: bool,
    /// Whether a sidecore is going to look at a receive ring.
    is_noticed: Vec<bool>,
    /// What goes out over the wire, and when it is ready to.
    outgoing: VecDeque<(Cycle, Frame)>,
    /// Where each interface's virtual processor is, and who has which core.
    homes: Vec<Home>,
    holders: Vec<Option<(usize, usize)>>,
    /// What was owed to each core while nobody had it.
    unowned: Vec<u64>,
    /// Whether a guest without a core has use for one.
    has_woken: bool,
    /// The frame that each interface has got last.
    last: Vec<u64>,
    /// Frames in receive rings, while steps are recorded: each with its place among all that the ring has got.
    unread: Vec<VecDeque<(u64, u64)>>,
    numbers: u64,
    counts: CardCounts,
    steps: Option<Vec<Step>>,
}

/// Where the virtual processor of an interface is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Home {
    /// The core that it has, or had last: who wakes it does it there.
    pub core: usize,
    /// Whether it has that core.
    pub has_core: bool,
}

/// How quickly an interface's frames follow each other.
#[derive(Clone, Copy, Default)]
struct Rate {
    last: Cycle,
    interval: u64,
    /// How many frames it had when it was signalled last.
    told: u64,
    is_waiting: bool,
}

/// How threads of the card are reached from outside.
pub(super) struct Ports {
    pub stores: Port<(u64, u64, u64)>,
    pub wire: Port<u64>,
}

/// Where a thread that tells guests continues.
#[derive(Clone)]
struct Outlets {
    interrupted: Edge<u64>,
    looks: Vec<Edge<u64>>,
}

/// Threads that others continue to.
struct Targets {
    transmit: Vec<Thread<(u64, u64)>>,
    arrive: Vec<Thread<u64>>,
    fill: Vec<Thread<u64>>,
    interrupted: Thread<u64>,
    looks: Vec<Thread<u64>>,
}

impl Targets {
    fn outlets<T: sidestep_zerowait::Payload>(
        &self,
        graph: &mut Graph,
        from: Thread<T>,
    ) -> Result<Outlets, GraphError> {
        let looks = self.looks.iter().map(|look| graph.edge(from, *look));
        Ok(Outlets {
            looks: looks.collect::<Result<_, _>>()?,
            interrupted: graph.edge(from, self.interrupted)?,
        })
    }
}

fn edges<T: sidestep_zerowait::Payload, U: sidestep_zerowait::Payload>(
    graph: &mut Graph,
    from: Thread<T>,
    to: &[Thread<U>],
) -> Result<Vec<Edge<U>>, GraphError> {
    to.iter().map(|to| graph.edge(from, *to)).collect()
}

const ROOM: &str = "frames under way are bounded below the executor's capacity";

impl Card {
    /// A card for these virtual machines, whose receive rings so many sidecores poll.
    pub(super) fn new(
        config: &NicConfig,
        machines: &Machines,
        costs: &Arc<HostCosts>,
        polling: Polling,
        board: &SharedBoard,
        sidecores: usize,
        trace: bool,
    ) -> Card {
        let cycles = |cost| config.costs.host_cycles(cost, costs.clock_mhz);
        let times = Times {
            poll: cycles(CardCost::Poll).max(1),
            notice: cycles(CardCost::Notice),
            descriptor: cycles(CardCost::Descriptor),
            packet: cycles(CardCost::Packet),
            line: cycles(CardCost::Line),
            write: cycles(CardCost::Write),
            register: cycles(CardCost::Register),
            message: cycles(CardCost::Message),
            drop: cycles(CardCost::Drop),
            latency_bound: config.latency_bound_ns * costs.clock_mhz / 1000,
        };
        let interfaces = machines.len();
        for (interface, machine) in machines.iter().enumerate() {
            let address = Address {
                host: config.host,
                interface: interface as u16,
            };
            locked(machine).attach_interface(address, config.ring_entries);
        }
        let state = State {
            vifs: vec![Vif::new(config.ring_entries, config.card_frames); interfaces],
            adaptive: vec![Rate::default(); interfaces],
            frames: Vec::new(),
            free: Vec::new(),
            waiting: vec![0; config.engines],
            register: 0,
            is_asserted: false,
            is_noticed: vec![false; interfaces],
            outgoing: VecDeque::new(),
            homes: vec![Home::default(); interfaces],
            holders: Vec::new(),
            unowned: Vec::new(),
            has_woken: false,
            last: vec![0; interfaces],
            unread: vec![VecDeque::new(); interfaces],
            numbers: 0,
            counts: CardCounts::default(),
            steps: trace.then(Vec::new),
        };
        Card {
            polling: Polling {
                saves_energy: polling.saves_energy || config.delivery == Delivery::Adaptive,
                ..polling
            },
            config: config.clone(),
            machines: machines.clone(),
            costs: Arc::clone(costs),
            board: Arc::clone(board),
            sidecores,
            times,
            state: Mutex::new(state),
        }
    }

    /// How many cores of the executor its threads have, beside the devices'.
    pub(super) fn cores(config: &NicConfig) -> u16 {
        config.engines as u16 + 1
    }

    /// Checks that what guests see of the card comes late enough to be modelled.
    pub(super) fn check_times(config: &NicConfig, costs: &HostCosts) -> Result<(), NicError> {
        let write = config.costs.host_cycles(CardCost::Write, costs.clock_mhz);
        let signals =
            [Cost::Interrupt, Cost::DeviceInterrupt].map(|cost| (cost.description(), costs.cycles(cost)));
        let soonest = signals
            .into_iter()
            .chain([("a write of the card", write)])
            .min_by_key(|(_, cycles)| *cycles);
        match soonest {
            Some((what, cycles)) if cycles < SIGNAL_CYCLES_MIN => Err(NicError::TooSoon { what, cycles }),
            _ => Ok(()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long after an event here a guest sees something of it, at the soonest; and how long after a guest's store
    /// an event here follows.
    pub(super) fn notice(&self) -> (u64, u64) {
        let ways = [
            self.times.write,
            self.costs.cycles(Cost::Interrupt),
            self.costs.cycles(Cost::DeviceInterrupt),
        ];
        (ways.into_iter().min().unwrap_or(1), self.times.notice)
    }

    /// What the card did.
    pub(super) fn counts(&self) -> (CardCounts, Vec<VifCounts>) {
        let state = self.state();
        (state.counts, state.vifs.iter().map(|vif| vif.counts).collect())
    }

    /// What became of frames when; empty unless recording was asked for.
    pub(super) fn steps(&self) -> Vec<Step> {
        self.state().steps.clone().unwrap_or_default()
    }

    /// How guests learn of packets.
    pub(super) fn delivery(&self) -> Delivery {
        self.config.delivery
    }

    /// What steps are done by beside cores, in the order in which tracks name them behind those of devices.
    pub(super) fn tracks(&self) -> Vec<String> {
        let engines = (0..self.config.engines).map(|engine| format!("engine {engine} of the card"));
        let handler = format!("the card's interrupt on core {}", self.config.interrupt_core);
        let interfaces = self
            .machines
            .iter()
            .map(|machine| format!("interface of {}", locked(machine).name()));
        engines.chain([handler]).chain(interfaces).collect()
    }

    /// The place of a step in those tracks, or the sidecore that did it.
    pub(super) fn track(&self, place: Place) -> Result<usize, usize> {
        match place {
            Place::Engine(engine) => Ok(engine),
            Place::Core(_) => Ok(self.config.engines),
            Place::Machine(machine) => Ok(self.config.engines + 1 + machine),
            Place::Sidecore(sidecore) => Err(sidecore),
        }
    }

    /// How many receive rings a sidecore polls.
    pub(super) fn rings(&self, sidecore: usize) -> usize {
        if !self.config.delivery.needs_sidecore() {
            return 0;
        }
        (sidecore..self.machines.len()).step_by(self.sidecores).count()
    }

    /// Says where each interface's virtual processor is from now on, and who has which core.
    /// `waits`: some virtual processor that could use a core has none.
    pub(super) fn place(&self, homes: Vec<Home>, holders: Vec<Option<(usize, usize)>>, waits: bool) {
        let mut state = self.state();
        state.homes = homes;
        state.unowned.resize(holders.len(), 0);
        state.holders = holders;
        state.has_woken = waits;
    }

    /// Whether a guest without a core has use for one.
    pub(super) fn has_woken(&self) -> bool {
        self.state().has_woken
    }

    /// Takes what was owed to each core while nobody had it.
    pub(super) fn take_unowned(&self) -> Vec<u64> {
        let mut state = self.state();
        let cores = state.unowned.len();
        std::mem::replace(&mut state.unowned, vec![0; cores])
    }

    /// Has whoever has a core now owe it what others have left.
    pub(super) fn owe(&self, core: usize, owed: Vec<(Cycle, u64, Owed)>) {
        let mut state = self.state();
        for (time, cycles, why) in owed {
            self.preempt(&mut state, core, time, cycles, why);
        }
    }

    /// Takes what goes out over the wire, and when it is ready to.
    pub(super) fn take_outgoing(&self) -> VecDeque<(Cycle, Frame)> {
        std::mem::take(&mut self.state().outgoing)
    }

    /// What the thread `stores` is told of a store, and when.
    pub(super) fn told(&self, machine: usize, time: Cycle, store: Store) -> (Cycle, (u64, u64, u64)) {
        let (what, value) = match store {
            Store::Registered(value) => (0, value),
            Store::Sent(value) => (1, value),
            Store::Posted(value) => (2, value),
            Store::Wanted(value) => (3, value),
        };
        (time + self.times.notice, (machine as u64, what, value))
    }

    /// The ticket of a frame that is under way here.
    pub(super) fn ticket(&self, frame: Frame) -> usize {
        self.state().keep(frame)
    }

    /// Declares the threads, on cores from `first` on, of which the first is the devices'.
    pub(super) fn declare(self: &Arc<Card>, graph: &mut Graph, first: u16) -> Result<Ports, GraphError> {
        let on = |core: u16| Attributes::new(Mode::Kernel).on_core(core);
        let engines = self.config.engines as u16;
        let engine = |engine: u16| on(first + 1 + engine);
        let handler = first + 1 + engines;
        let stores = graph.declare::<(u64, u64, u64)>("stores", on(first));
        let wire = graph.declare::<u64>("wire", on(first));
        let interrupted = graph.declare::<u64>("interrupted", on(handler));
        let handle = graph.declare::<u64>("handle", on(handler));
        let mut targets = Targets {
            transmit: Vec::new(),
            arrive: Vec::new(),
            fill: Vec::new(),
            interrupted,
            looks: Vec::new(),
        };
        for number in 0..engines {
            let attributes = engine(number);
            targets
                .transmit
                .push(graph.declare(format!("transmit {number}"), attributes));
            targets
                .arrive
                .push(graph.declare(format!("arrive {number}"), attributes));
            targets
                .fill
                .push(graph.declare(format!("fill {number}"), attributes));
        }
        for sidecore in 0..self.sidecores {
            targets
                .looks
                .push(graph.declare(format!("look at rings {sidecore}"), on(sidecore as u16)));
        }

        let outlets = targets.outlets(graph, stores)?;
        let transmit = edges(graph, stores, &targets.transmit)?;
        let fill = edges(graph, stores, &targets.fill)?;
        let card = Arc::clone(self);
        graph.define(stores, move |cx, told| {
            card.stores(cx, told, &transmit, &fill, &outlets)
        });

        let arrive = edges(graph, wire, &targets.arrive)?;
        let card = Arc::clone(self);
        graph.define(wire, move |cx, ticket| card.wire(cx, ticket as usize, &arrive));

        for number in 0..self.config.engines {
            let transmit = targets.transmit[number];
            let again = graph.edge(transmit, transmit)?;
            let arrive = edges(graph, transmit, &targets.arrive)?;
            let card = Arc::clone(self);
            graph.define(transmit, move |cx, (interface, first)| {
                card.transmit(cx, interface as usize, first != 0, again, &arrive);
            });

            let fill = graph.edge(targets.arrive[number], targets.fill[number])?;
            let card = Arc::clone(self);
            graph.define(targets.arrive[number], move |cx, ticket| {
                card.arrive(cx, number, ticket as usize, fill);
            });

            let outlets = targets.outlets(graph, targets.fill[number])?;
            let again = graph.edge(targets.fill[number], targets.fill[number])?;
            let card = Arc::clone(self);
            graph.define(targets.fill[number], move |cx, interface| {
                card.fill(cx, interface as usize, again, &outlets);
            });
        }

        let read = graph.edge(interrupted, handle)?;
        let card = Arc::clone(self);
        graph.define(interrupted, move |cx, _| card.interrupted(cx, read));
        let card = Arc::clone(self);
        graph.define(handle, move |cx, _| card.handle(cx));

        for (sidecore, look) in targets.looks.iter().enumerate() {
            let flush = graph.declare::<u64>(format!("flush {sidecore}"), on(sidecore as u16));
            let later = graph.edge(*look, flush)?;
            let card = Arc::clone(self);
            graph.define(*look, move |cx, interface| {
                card.look(cx, interface as usize, later)
            });
            let card = Arc::clone(self);
            graph.define(flush, move |cx, interface| card.flush(cx, interface as usize));
        }
        Ok(Ports {
            stores: graph.port(stores),
            wire: graph.port(wire),
        })
    }

    fn engine_of(&self, interface: usize) -> usize {
        interface % self.config.engines
    }

    /// A guest's store can be seen.
    fn stores(
        &self,
        cx: &mut Context<'_>,
        (interface, what, value): (u64, u64, u64),
        transmit: &[Edge<(u64, u64)>],
        fill: &[Edge<u64>],
        outlets: &Outlets,
    ) {
        let store = match what {
            0 => Store::Registered(value),
            1 => Store::Sent(value),
            2 => Store::Posted(value),
            _ => Store::Wanted(value),
        };
        let mut state = self.state();
        let index = interface as usize;
        let stored = Cycle(host_time(cx.now()).0.saturating_sub(self.times.notice));
        state.read(index, store, self.config.ring_entries, stored);
        let (followed, dropped) = state.vifs[index].note(store);
        dropped.into_iter().for_each(|ticket| drop(state.take(ticket)));
        match followed {
            Followed::Nothing => {}
            Followed::Sending => cx.continue_to(transmit[self.engine_of(index)], (interface, 1)),
            Followed::Filling => cx.continue_to(fill[self.engine_of(index)], interface),
            Followed::Wanting => self.announce(cx, &mut state, index, outlets),
        }
    }

    /// A frame comes over the wire.
    fn wire(&self, cx: &mut Context<'_>, ticket: usize, arrive: &[Edge<u64>]) {
        let mut state = self.state();
        let interface = state.frame(ticket).to().map_or(0, |to| usize::from(to.interface));
        self.pass_on(cx, &mut state, ticket, interface, arrive);
    }

    /// Hands a frame to the engine of an interface, if that has room.
    fn pass_on(
        &self,
        cx: &mut Context<'_>,
        state: &mut State,
        ticket: usize,
        interface: usize,
        arrive: &[Edge<u64>],
    ) {
        let engine = self.engine_of(interface);
        if state.waiting[engine] >= self.config.input_frames {
            state.counts.overrun += 1;
            state.take(ticket);
            return;
        }
        state.waiting[engine] += 1;
        cx.continue_to(arrive[engine], ticket as u64);
    }

    /// An engine takes a frame from a send ring; `first`: its poll has to come there.
    fn transmit(
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
            let round = self.machines.len().div_ceil(self.config.engines) as u64 * self.times.poll;
            let place = (interface / self.config.engines) as u64 * self.times.poll;
            cx.spend(place.wrapping_sub(start.0) % round);
        }
        cx.spend(self.times.poll);
        let Some(number) = state.vifs[interface].next_to_send() else {
            return;
        };
        let generation = state.vifs[interface].generation();
        cx.spend(self.times.descriptor);
        let mut machine = locked(&self.machines[interface]);
        let status = match machine.fetch(number) {
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
                    Some(to) if to.host == self.config.host => {
                        let ticket = state.keep(frame);
                        self.pass_on(cx, &mut state, ticket, to.interface.into(), arrive);
                    }
                    _ => state.outgoing.push_back((now, frame)),
                }
                Status::Done
            }
        };
        let time = host_time(cx.now()) + self.times.write;
        machine.write_from_card(time, generation, number, Written::Transmitted { status });
        cx.continue_to(again, (interface as u64, 0));
    }

    fn lines(&self, bytes: usize) -> u64 {
        (bytes as u64).min(FRAME_MAX).div_ceil(BUS_LINE) * self.times.line
    }

    /// An engine looks whose a frame is, and whether there is room for it.
    fn arrive(&self, cx: &mut Context<'_>, engine: usize, ticket: usize, fill: Edge<u64>) {
        let mut state = self.state();
        state.waiting[engine] -= 1;
        let start = host_time(cx.now());
        let (to, frame) = (state.frame(ticket).to(), state.frame(ticket).number);
        let interface = to
            .filter(|to| to.host == self.config.host)
            .map(|to| usize::from(to.interface))
            .filter(|interface| *interface < state.vifs.len());
        let Some(interface) = interface else {
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

    /// An engine moves a frame into a receive ring.
    fn fill(&self, cx: &mut Context<'_>, interface: usize, again: Edge<u64>, outlets: &Outlets) {
        let mut state = self.state();
        let start = host_time(cx.now());
        let Some((ticket, number)) = state.vifs[interface].next_to_fill() else {
            return;
        };
        let frame = state.take(ticket);
        cx.spend(self.times.descriptor);
        let mut machine = locked(&self.machines[interface]);
        let buffer = machine.buffer(number, frame.bytes.len() as u64);
        match buffer {
            Some(_) => cx.spend(self.lines(frame.bytes.len())),
            None => state.vifs[interface].counts.refused += 1,
        }
        let now = host_time(cx.now());
        let generation = state.vifs[interface].generation();
        let bytes = frame.bytes;
        machine.write_from_card(
            now + self.times.write,
            generation,
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

    /// Has an interface's guest told of what is in its ring, if it wants to be.
    fn announce(&self, cx: &mut Context<'_>, state: &mut State, interface: usize, outlets: &Outlets) {
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
        let arrival = now + self.costs.cycles(Cost::DeviceInterrupt);
        let Home { core, has_core } = state.homes[interface];
        if has_core {
            let reach = match self.config.delivery {
                Delivery::Posted => Reach::Posted,
                _ => Reach::Interrupt,
            };
            return self.signal(state, interface, arrival, reach);
        }
        // No guest is there to take it: the monitor on the core that it had last does.
        let found = [Cost::Exit, Cost::Dispatch]
            .map(|cost| self.costs.cycles(cost))
            .iter()
            .sum::<u64>();
        let marked = found + self.signal_cycles();
        let handling = marked + self.costs.cycles(Cost::Entry);
        state.counts.interrupts += 1;
        state.counts.handling_cycles += handling;
        self.preempt(state, core, arrival, handling, Owed::ForOthers);
        self.signal(state, interface, arrival + marked, Reach::Upcall);
    }

    /// Finding a guest and its processor by interface, and marking a signal there.
    fn signal_cycles(&self) -> u64 {
        self.costs.cycles(Cost::CacheLine) + self.costs.cycles(Cost::Transfer)
    }

    /// Signals a guest, which sees it from `time` on.
    fn signal(&self, state: &mut State, interface: usize, time: Cycle, reach: Reach) {
        let has_core = state.homes[interface].has_core;
        let is_redundant = state.vifs[interface].signalled(has_core);
        state.has_woken |= !has_core;
        if !is_redundant {
            let frame = state.last[interface];
            state.step(frame, Place::Machine(interface), "signal", time, time);
        }
        locked(&self.machines[interface]).signal(time, Signal { reach, is_redundant });
    }

    /// Whoever has a core owes it the monitor's work there.
    fn preempt(&self, state: &mut State, core: usize, time: Cycle, cycles: u64, why: Owed) {
        match state.holders.get(core).copied().flatten() {
            Some((machine, processor)) => {
                locked(&self.machines[machine]).preempt(processor, time, cycles, why);
            }
            None => {
                if let Some(unowned) = state.unowned.get_mut(core) {
                    *unowned += cycles;
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
    fn interrupted(&self, cx: &mut Context<'_>, read: Edge<u64>) {
        let core_time = host_time(cx.now()) + self.costs.cycles(Cost::DeviceInterrupt);
        let cycles = self.read_cycles();
        let mut state = self.state();
        state.counts.handling_cycles += cycles;
        self.preempt(
            &mut state,
            self.config.interrupt_core,
            core_time,
            cycles,
            Owed::Begun,
        );
        cx.spend(cycles);
        cx.continue_to(read, 0);
    }

    /// The register is read, and with that cleared: the monitor signals every guest of a bit that was set.
    fn handle(&self, cx: &mut Context<'_>) {
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
        let is_own = holder.is_some_and(|(machine, _)| named.contains(&machine));
        let why = if is_own { Owed::ForItself } else { Owed::ForOthers };
        state.counts.handling_cycles += signals + back;
        self.preempt(&mut state, here, core_time, signals + back, why);
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
    fn look(&self, cx: &mut Context<'_>, interface: usize, flush: Edge<u64>) {
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
    fn flush(&self, cx: &mut Context<'_>, interface: usize) {
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

impl State {
    fn keep(&mut self, frame: Frame) -> usize {
        match self.free.pop() {
            Some(ticket) => {
                self.frames[ticket] = Some(frame);
                ticket
            }
            None => {
                self.frames.push(Some(frame));
                self.frames.len() - 1
            }
        }
    }

    fn frame(&self, ticket: usize) -> &Frame {
        self.frames[ticket]
            .as_ref()
            .expect("a ticket is valid until its frame is taken")
    }

    fn take(&mut self, ticket: usize) -> Frame {
        self.free.push(ticket);
        self.frames[ticket].take().expect("a frame is taken once")
    }

    /// The guest gives buffers back: it has read what was in them.
    fn read(&mut self, interface: usize, store: Store, entries: u64, time: Cycle) {
        match store {
            Store::Registered(_) => self.unread[interface].clear(),
            Store::Posted(count) => {
                while let Some((number, frame)) = self.unread[interface].front().copied()
                    && number.saturating_add(entries) < count
                {
                    self.unread[interface].pop_front();
                    self.step(frame, Place::Machine(interface), "read", time, time);
                }
            }
            Store::Sent(_) | Store::Wanted(_) => {}
        }
    }

    fn step(&mut self, frame: u64, place: Place, name: &'static str, start: Cycle, end: Cycle) {
        if let Some(steps) = &mut self.steps {
            steps.push(Step {
                frame,
                place,
                name,
                start,
                cycles: end.since(start),
            });
        }
    }
}
