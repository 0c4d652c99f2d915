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
//! A virtual machine with a virtio device has an interface here for each of its pairs of queues; any other has one. An
//! interface's engine is its number modulo the engines, its sidecore likewise. The handler's core stands for the
//! monitor on the core that the interrupt is routed to: it does one thing after the other, and whoever has that core
//! owes it the time. An event here is the card's or the sender's: what a guest, or a core, sees of it comes later by
//! the way of the write or the signal. The host advances guests no further ahead than that (`Card::notice`).

mod engines;
mod program;
mod signals;
mod state;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::sidecores::{Machines, Polling, SharedBoard, locked};
use crate::costs::{Cost, HostCosts};
use crate::cycle::Cycle;
use crate::host::recorded::Recorded;
use crate::nic::costs::CardCost;
use crate::nic::frame::{Address, Frame};
use crate::nic::ring::Store;
use crate::nic::vif::{Vif, VifCounts};
use crate::nic::{Delivery, NicConfig, NicError, SIGNAL_CYCLES_MIN};
use crate::virtual_machine::{Debt, VirtualMachine};

pub(super) use program::Ports;
pub(super) use state::Home;
pub use state::{CardCounts, Place, Step};
use state::{Rate, State};

const ROOM: &str = "frames under way are bounded below the executor's capacity";

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
    /// Of each interface, its virtual machine and which pair of rings it is there.
    interfaces: Vec<(usize, usize)>,
    /// Of each virtual machine, its first interface.
    first: Vec<usize>,
    state: Mutex<State>,
}

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
        let (mut rings, mut first, mut vifs) = (Vec::new(), Vec::new(), Vec::new());
        for (index, machine) in machines.iter().enumerate() {
            let address = Address {
                host: config.host,
                interface: index as u16,
            };
            let mut machine = locked(machine);
            machine.attach_interface(address, config.ring_entries);
            let (pairs, entries) = machine.ring_pairs();
            first.push(rings.len());
            rings.extend((0..pairs).map(|pair| (index, pair)));
            vifs.extend((0..pairs).map(|_| Vif::new(entries, config.card_frames)));
        }
        let interfaces = rings.len();
        let state = State {
            vifs,
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
            steps: trace.then(Recorded::new),
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
            interfaces: rings,
            first,
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
        let mut sums = vec![VifCounts::default(); self.machines.len()];
        for ((machine, _), vif) in self.interfaces.iter().zip(&state.vifs) {
            sums[*machine] += vif.counts;
        }
        (state.counts, sums)
    }

    /// Its interfaces: the virtual machine of each, and which pair of rings it is there.
    pub(super) fn interfaces(&self) -> &[(usize, usize)] {
        &self.interfaces
    }

    /// The virtual machine of an interface.
    fn machine_of(&self, interface: usize) -> MutexGuard<'_, VirtualMachine> {
        locked(&self.machines[self.interfaces[interface].0])
    }

    fn pair_of(&self, interface: usize) -> usize {
        self.interfaces[interface].1
    }

    /// What became of frames when, if recording was asked for.
    pub(super) fn steps(&self) -> Option<Recorded<Step>> {
        self.state().steps.clone()
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
            Place::Machine(interface) => Ok(self.config.engines + 1 + self.interfaces[interface].0),
            Place::Sidecore(sidecore) => Err(sidecore),
        }
    }

    /// How many receive rings a sidecore polls.
    pub(super) fn rings(&self, sidecore: usize) -> usize {
        if !self.config.delivery.needs_sidecore() {
            return 0;
        }
        (sidecore..self.interfaces.len()).step_by(self.sidecores).count()
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
    pub(super) fn owe(&self, core: usize, debts: Vec<Debt>) {
        let mut state = self.state();
        for debt in debts {
            self.hand_debt(&mut state, core, debt);
        }
    }

    /// Takes what goes out over the wire, and when it is ready to.
    pub(super) fn take_outgoing(&self) -> VecDeque<(Cycle, Frame)> {
        std::mem::take(&mut self.state().outgoing)
    }

    /// What goes out over the wire is lost: nobody is there.
    pub(super) fn lose_outgoing(&self) {
        let mut state = self.state();
        state.counts.unknown += state.outgoing.len() as u64;
        state.outgoing.clear();
    }

    /// What the thread `stores` is told of a store, and when.
    pub(super) fn told(
        &self,
        (machine, pair): (usize, usize),
        time: Cycle,
        store: Store,
    ) -> (Cycle, (u64, u64, u64)) {
        let (what, value) = store.to_words();
        let interface = self.first[machine] + pair;
        (time + self.times.notice, (interface as u64, what, value))
    }

    /// The ticket of a frame that is under way here.
    pub(super) fn ticket(&self, frame: Frame) -> usize {
        self.state().keep(frame, None)
    }

    fn engine_of(&self, interface: usize) -> usize {
        interface % self.config.engines
    }
}
