//! Several virtual machines on one modelled host: who has which core, which cores are sidecores, and what each core
//! did.
//!
//! Time is the host's cycle. It goes on in *epochs*, no longer than a packet takes from one virtual machine to another:
//! at the start of one the [scheduler](schedule) gives cores to virtual processors and the [sidecore policy](dynamic)
//! decides how many cores serve. Within an epoch, in rounds, every virtual machine goes on until it cannot without an
//! answer; then the sidecores work up to the earliest time at which a new request could still be made, and their
//! answers let virtual machines go on.
//!
//! A host with a [card] goes through an epoch in *windows*, which end before anything that the card or a signal
//! does in one could be seen by a guest in it. An epoch then ends early when a virtual processor without a core has
//! got a signal and a core has nothing to do.
//!
//! Determinism. A virtual machine depends on its own state and on answers and packets that carry their times; requests
//! are handed to sidecores in the order of (time, virtual machine, processor, slot), and none before every earlier one
//! is known. So it does not matter in which order, or on how many threads of this program, virtual machines were
//! advanced: all results are the same bytes, which tests compare.

pub mod card;
mod contending;
pub mod coscheduling;
mod devices;
pub mod dynamic;
mod pool;
mod recorded;
mod report;
pub mod schedule;
pub mod sidecores;
mod windows;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use sidestep_ia64::execution::Drivers;
use thiserror::Error;

use crate::contention::{Contended, ContentionError};
use crate::costs::{Cost, HostCosts};
use crate::cycle::{Cycle, EPOCH_CYCLES_MAX};
use crate::host::sidecores::{CoreTime, Executor, Machines, Polling, Sidecores, SidecoresError, locked};
use crate::nic::{NicConfig, NicError};
use crate::virtual_machine::{
    Activity, Core, CoreModel, CycleAccount, Method, Pending, VirtualMachine, VirtualProcessor,
};
use card::Card;
use dynamic::{Load, SidecorePolicy};
use pool::Pool;
use recorded::Recorded;
pub use report::{
    ContentionReport, CoreReport, InterfaceReport, NicReport, Report, RequestReport, Span,
    VirtualMachineReport, kind_name,
};
use schedule::{Scheduler, Scheduling};

/// A host and how it is run.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// How many cores there are.
    pub cores: usize,
    /// What transitions cost.
    pub costs: Arc<HostCosts>,
    /// How many of the cores are sidecores: the highest-numbered ones.
    pub sidecores: SidecorePolicy,
    /// How sidecores look for requests.
    pub polling: Polling,
    /// What runs their services.
    pub services: Executor,
    /// Which virtual processor has which core.
    pub scheduling: Scheduling,
    /// What the cores are, if guest instructions are not to take what the table says.
    pub core_model: Option<Arc<dyn CoreModel>>,
    /// How many threads of this program advance virtual machines; changes nothing but the time it takes.
    pub threads: usize,
    /// Whether to record who was on which core.
    pub trace: bool,
    /// The card that gives each virtual machine a network interface, if there is one.
    pub nic: Option<NicConfig>,
}

/// The most cores of a host.
pub const CORES_MAX: usize = 1024;
/// The most sidecores of a host: cores of one partition of the executor, less the devices'.
pub const SIDECORES_MAX: usize = 63;

/// Why a host cannot be made or cannot go on.
#[derive(Debug, Error)]
pub enum HostError {
    /// Too few or too many cores.
    #[error("the host has {0} cores: 1 to {CORES_MAX} are possible")]
    Cores(usize),
    /// No core is left for guests.
    #[error("{sidecores} sidecores of {cores} cores leave none for guests, or are more than {SIDECORES_MAX}")]
    Sidecores {
        /// Sidecores.
        sidecores: usize,
        /// Cores.
        cores: usize,
    },
    /// A set of processors that a virtual machine does not have.
    #[error("virtual machine `{name}`: `sets` names processor {processor}: it has processors 0 to {}", count - 1)]
    Sets {
        /// The virtual machine.
        name: String,
        /// The processor.
        processor: usize,
        /// How many it has.
        count: usize,
    },
    /// Cores that cannot contend as they are to.
    #[error(transparent)]
    Contention(#[from] ContentionError),
    /// No virtual machine.
    #[error("the host has no virtual machine")]
    Empty,
    /// The card.
    #[error(transparent)]
    Nic(#[from] NicError),
    /// The services' program.
    #[error(transparent)]
    Services(#[from] SidecoresError),
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostEnd {
    /// Every virtual machine has ended.
    Ended,
    /// Nothing will ever happen any more.
    Deadlock,
    /// The time was up.
    Time,
    /// A debugger has halted a virtual processor, in the middle of an epoch.
    Halted,
}

/// What one core did in the epochs so far, in cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CoreAccount {
    cycles: CycleAccount,
    /// As a sidecore: serving, polling for requests, waiting without executing.
    serving: u64,
    looking: u64,
    asleep: u64,
    /// As a sidecore, whatever it did.
    sidecore: u64,
}

/// Virtual machines on a host.
pub struct Host {
    config: HostConfig,
    machines: Machines,
    sidecores: Sidecores,
    scheduler: Scheduler,
    /// Whether it is found out who shares memory.
    detects: bool,
    /// The cores that are modelled, while no virtual processor has them.
    cores: Vec<Option<Box<dyn Core>>>,
    /// What the cores share, if that is modelled.
    contended: Option<Contended>,
    time: Cycle,
    /// How many cores serve in this epoch.
    serving: usize,
    accounts: Vec<CoreAccount>,
    /// Requests that were made and not handed over, in order.
    queue: BTreeMap<(Cycle, usize, usize, usize), Pending>,
    load: Load,
    spans: Recorded<Span>,
    pool: Pool,
    /// The epoch that a debugger has interrupted.
    interrupted: Option<Epoch>,
    /// Whether frames may come from elsewhere.
    is_linked: bool,
}

/// An epoch under way.
struct Epoch {
    end: Cycle,
    /// The end of its window under way, if that has begun.
    window: Option<Cycle>,
    /// Up to when all answers are known.
    floor: Cycle,
    /// What virtual machines and sidecores had done when it began.
    before: Spent,
}

/// What cycles were spent on so far.
struct Spent {
    /// By each processor of each virtual machine.
    processors: Vec<Vec<CycleAccount>>,
    /// By each sidecore.
    sidecores: Vec<CoreTime>,
}

impl Host {
    /// A host with these virtual machines.
    ///
    /// # Errors
    /// Numbers out of range.
    pub fn new(config: HostConfig, machines: Vec<VirtualMachine>) -> Result<Host, HostError> {
        if !(1..=CORES_MAX).contains(&config.cores) {
            return Err(HostError::Cores(config.cores));
        }
        let most = config.sidecores.most();
        if most >= config.cores || most > SIDECORES_MAX {
            return Err(HostError::Sidecores {
                sidecores: most,
                cores: config.cores,
            });
        }
        if machines.is_empty() {
            return Err(HostError::Empty);
        }
        if let Some(nic) = &config.nic {
            let always = match config.sidecores {
                SidecorePolicy::Fixed(count) => count,
                SidecorePolicy::Dynamic { .. } => 0,
            };
            nic.check(config.cores - most, always)?;
            Card::check_times(nic, &config.costs)?;
            if config.services != Executor::VirtualTime {
                return Err(NicError::NotVirtual.into());
            }
        }
        let processors: Vec<usize> = machines
            .iter()
            .map(|machine| machine.processors().len())
            .collect();
        let machines: Machines = machines
            .into_iter()
            .map(|machine| Arc::new(Mutex::new(machine)))
            .collect();
        let sidecores = Sidecores::new(
            most,
            &machines,
            &config.costs,
            config.polling,
            config.services,
            config.trace,
            config.nic.as_ref(),
        )?;
        let scheduler = Scheduler::new(config.scheduling.clone(), &processors);
        let serving = config.sidecores.first();
        let modelled = || config.core_model.as_ref().map(|model| model.core());
        let mut host = Host {
            cores: (0..config.cores).map(|_| modelled()).collect(),
            contended: None,
            accounts: vec![CoreAccount::default(); config.cores],
            pool: Pool::new(config.threads, &machines, &config.costs),
            config,
            machines,
            sidecores,
            scheduler,
            detects: false,
            time: Cycle::START,
            serving,
            queue: BTreeMap::new(),
            load: Load::default(),
            spans: Recorded::new(),
            interrupted: None,
            is_linked: false,
        };
        host.tell_guests();
        Ok(host)
    }

    /// The virtual machines.
    pub fn machines(&self) -> &[Arc<Mutex<VirtualMachine>>] {
        &self.machines
    }

    /// Has virtual processors executed by other drivers than the interpreter: the same guests' instructions, in another
    /// way. Modelled cores execute them themselves.
    pub fn execute_by(&mut self, drivers: &dyn Drivers) {
        for machine in &self.machines {
            for processor in locked(machine).processors_mut() {
                processor.set_driver(drivers.driver());
            }
        }
    }

    /// How many cores it has.
    pub fn cores(&self) -> usize {
        self.config.cores
    }

    /// The time.
    pub fn time(&self) -> Cycle {
        self.time
    }

    /// The largest exit code of its virtual machines, as far as they have ended.
    pub fn exit_code(&self) -> Option<u64> {
        let codes = self
            .machines
            .iter()
            .filter_map(|machine| locked(machine).exit_code());
        codes.max()
    }

    /// What the services of the sidecores really took on this machine, in nanoseconds, if they run on pinned cores.
    pub fn measured(&self) -> Option<sidestep_zerowait::Report> {
        self.sidecores.measured()
    }

    /// How many cores are sidecores now.
    pub fn serving(&self) -> usize {
        self.serving
    }

    /// The length of an epoch in cycles: what a packet takes, because that is how soon one virtual machine can affect
    /// another; and not so long that decisions come late.
    fn epoch_cycles(&self) -> u64 {
        self.config.costs.cycles(Cost::Network).clamp(1, EPOCH_CYCLES_MAX)
    }

    /// Goes on until every virtual machine has ended, nothing can happen any more, or `until` is reached.
    ///
    /// # Errors
    /// If a service never ends: a defect.
    pub fn run(&mut self, until: Cycle) -> Result<HostEnd, HostError> {
        while self.time < until {
            if self
                .machines
                .iter()
                .all(|machine| locked(machine).exit_code().is_some())
            {
                return Ok(HostEnd::Ended);
            }
            if self.is_dead() {
                return Ok(HostEnd::Deadlock);
            }
            let epoch = match self.interrupted.take() {
                Some(epoch) => epoch,
                None => self.begin_epoch((self.time + self.epoch_cycles()).min(until)),
            };
            if !self.run_epoch(epoch)? {
                return Ok(HostEnd::Halted);
            }
        }
        Ok(HostEnd::Time)
    }

    /// Whether no virtual processor executes: all wait, for time or for somebody.
    pub fn is_resting(&self) -> bool {
        self.machines.iter().all(|machine| {
            let machine = locked(machine);
            machine.exit_code().is_some()
                || (machine.processors().iter())
                    .all(|processor| matches!(processor.activity(), Activity::Waiting | Activity::Stopped))
        })
    }

    fn is_dead(&self) -> bool {
        if self.is_linked {
            return false;
        }
        let asleep = |machine: &Arc<Mutex<VirtualMachine>>| {
            let machine = locked(machine);
            machine.exit_code().is_some() || machine.is_asleep()
        };
        self.queue.is_empty() && self.sidecores.is_idle() && self.machines.iter().all(asleep)
    }

    fn begin_epoch(&mut self, end: Cycle) -> Epoch {
        Epoch {
            end,
            window: None,
            floor: self.time,
            before: self.decide(end),
        }
    }

    /// Goes on to the end of an epoch; false if a debugger has interrupted it.
    fn run_epoch(&mut self, mut epoch: Epoch) -> Result<bool, HostError> {
        loop {
            let window = epoch.window.take();
            let window = window.unwrap_or_else(|| self.window_end(epoch.end, epoch.floor));
            if !self.run_window(window, &mut epoch.floor)? {
                epoch.window = Some(window);
                self.interrupted = Some(epoch);
                return Ok(false);
            }
            if window >= epoch.end || self.has_better_use(epoch.end) {
                self.exchange_packets();
                self.lose_frames();
                self.account(window, &epoch.before);
                // Spans were begun for the whole epoch.
                let begun = self
                    .spans
                    .events_mut()
                    .iter_mut()
                    .rev()
                    .take_while(|span| span.start == self.time);
                begun.for_each(|span| span.cycles = window - span.start);
                self.time = window;
                return Ok(true);
            }
        }
    }

    /// Goes on to the end of a window; false if a debugger has interrupted it.
    fn run_window(&mut self, end: Cycle, floor: &mut Cycle) -> Result<bool, HostError> {
        loop {
            self.pool.advance(end, *floor);
            self.collect();
            if self.machines.iter().any(|machine| locked(machine).is_halted()) {
                return Ok(false);
            }
            if !self.machines.iter().any(|machine| locked(machine).is_behind(end)) {
                break;
            }
            // Sidecores work until a virtual machine can go on: with an answer, or because time has.
            while *floor < end
                && !self
                    .machines
                    .iter()
                    .any(|machine| locked(machine).can_advance(end, *floor))
            {
                *floor = self.reach(end, *floor);
                self.hand_over(*floor);
                self.sidecores.run_before(*floor)?;
            }
            if *floor >= end {
                // Who is left waits for an answer that comes in a later window.
                self.machines.iter().for_each(|machine| locked(machine).pass(end));
            }
        }
        // What was asked in this window and waits for nobody is served in it as well.
        self.hand_over(end);
        self.sidecores.run_before(end)?;
        *floor = end;
        Ok(true)
    }

    /// Gives cores to virtual processors and says which cores serve. What was spent until then.
    fn decide(&mut self, end: Cycle) -> Spent {
        let wanted = self
            .config
            .sidecores
            .decide(&self.load, self.serving, self.config.cores);
        if wanted != self.serving {
            self.serving = wanted;
            self.tell_guests();
        }
        for core in 0..self.config.sidecores.most() {
            let pages: usize = (self.machines.iter().enumerate())
                .filter(|(index, _)| self.serving > 0 && index % self.serving == core)
                .map(|(_, machine)| locked(machine).processors().len())
                .sum();
            let rings = self.sidecores.card().map_or(0, |card| card.rings(core));
            self.sidecores.set_pages(core, pages + rings, self.time);
        }
        let guests = self.config.cores - self.serving;
        self.collect_cores();
        let debts = self.take_debts();
        self.evaluate(guests);
        let epoch = (self.time, end);
        let changes = self
            .scheduler
            .assign(epoch, guests, &self.machines, &self.config.costs);
        self.hand_out_cores();
        self.contend_in_epoch();
        self.place_card(debts);
        if self.config.trace {
            for (core, task) in changes {
                let span = Span {
                    core,
                    name: task,
                    start: self.time,
                    cycles: end - self.time,
                };
                self.spans.push(self.time, span);
            }
        }
        let before = self.spent();
        self.sample();
        before
    }

    fn spent(&self) -> Spent {
        let of_processors = |machine: &Arc<Mutex<VirtualMachine>>| {
            let machine = locked(machine);
            machine
                .processors()
                .iter()
                .map(VirtualProcessor::cycles)
                .collect()
        };
        let sidecores = 0..self.config.sidecores.most();
        Spent {
            processors: self.machines.iter().map(of_processors).collect(),
            sidecores: sidecores.map(|core| self.sidecores.core_time(core)).collect(),
        }
    }

    /// Takes the cores that are modelled from the virtual processors that had them.
    fn collect_cores(&mut self) {
        for (index, machine) in self.machines.iter().enumerate() {
            let mut machine = locked(machine);
            for (number, processor) in machine.processors_mut().iter_mut().enumerate() {
                if let (Some(core), Some(modelled)) =
                    (self.scheduler.core_of(index, number), processor.take_core())
                {
                    self.cores[core] = Some(modelled);
                }
            }
        }
    }

    /// Gives the cores that are modelled to the virtual processors that have them now.
    fn hand_out_cores(&mut self) {
        for (index, machine) in self.machines.iter().enumerate() {
            let mut machine = locked(machine);
            for (number, processor) in machine.processors_mut().iter_mut().enumerate() {
                let core = self.scheduler.core_of(index, number);
                if let Some(modelled) = core.and_then(|core| self.cores[core].take()) {
                    processor.give_core(modelled);
                }
            }
        }
    }

    /// Tells every guest how requests are made now.
    fn tell_guests(&mut self) {
        let method = if self.serving > 0 {
            Method::Sidecall
        } else {
            Method::Exit
        };
        for machine in &self.machines {
            locked(machine).set_method(method);
        }
    }

    /// How far sidecores can work: no request may still be made before, neither by a guest that executes nor by one
    /// that gets an answer, which it sees a transfer later at the earliest.
    fn reach(&self, end: Cycle, floor: Cycle) -> Cycle {
        let transfer = self.config.costs.cycles(Cost::Transfer).max(1);
        let asked = self
            .queue
            .first_key_value()
            .map(|((time, ..), _)| *time + transfer);
        let next = self.sidecores.next_event().into_iter().chain(asked).min();
        let answered = next.map(|next| next + transfer);
        let horizons = self
            .machines
            .iter()
            .filter_map(|machine| locked(machine).horizon(end));
        let reach = horizons.chain(answered).min().unwrap_or(end);
        reach.clamp(floor + 1, end)
    }

    /// Takes the requests that were made, and what was stored for the card.
    fn collect(&mut self) {
        let mut stores = Vec::new();
        for (index, machine) in self.machines.iter().enumerate() {
            let mut machine = locked(machine);
            for pending in machine.take_pending() {
                self.queue
                    .insert((pending.time, index, pending.processor, pending.slot), pending);
            }
            stores.extend(
                (machine.take_stores().into_iter()).map(|(time, pair, store)| (time, (index, pair), store)),
            );
        }
        stores.sort_by_key(|(time, pair, _)| (*time, *pair));
        for (time, pair, store) in stores {
            self.sidecores.tell_card(pair, time, store);
        }
    }

    /// Hands the requests made before `reach` to their sidecores, in order.
    fn hand_over(&mut self, reach: Cycle) {
        while let Some(entry) = self.queue.first_entry() {
            let (time, machine, ..) = *entry.key();
            if time >= reach {
                break;
            }
            let pending = entry.remove();
            // A sidecore that has become a guest's core serves what was asked of it before.
            let core = machine % self.serving.max(1);
            self.sidecores.submit(core, machine, pending);
        }
    }

    fn exchange_packets(&mut self) {
        let mut packets: Vec<_> = (self.machines.iter().enumerate())
            .flat_map(|(from, machine)| {
                locked(machine)
                    .take_sent()
                    .into_iter()
                    .map(move |packet| (packet.time, from, packet))
            })
            .collect();
        packets.sort_by_key(|(time, from, _)| (*time, *from));
        for (_, from, packet) in packets {
            let to = usize::try_from(packet.to)
                .ok()
                .and_then(|to| self.machines.get(to));
            // One that is for nobody is lost, as on any wire.
            let back = to.and_then(|to| locked(to).deliver(packet));
            if let Some(packet) = back {
                locked(&self.machines[from]).keep_sent(packet);
            }
        }
    }

    /// Notes what cores did in the epoch that ends at `end`, and the load that the next decision looks at.
    fn account(&mut self, end: Cycle, before: &Spent) {
        let length = end - self.time;
        let mut load = Load {
            cycles: length,
            cores: self.config.cores,
            round_trip_cycles: self.config.costs.round_trip(),
            sidecall_cycles: 2 * self.config.costs.cycles(Cost::Transfer),
            ..Load::default()
        };
        for (index, machine) in self.machines.iter().enumerate() {
            let machine = locked(machine);
            for (number, processor) in machine.processors().iter().enumerate() {
                let spent = difference(processor.cycles(), before.processors[index][number]);
                if let Some(core) = self.scheduler.core_of(index, number) {
                    self.accounts[core].cycles = sum(self.accounts[core].cycles, spent);
                }
                let wants = machine.exit_code().is_none()
                    && matches!(processor.activity(), Activity::Running | Activity::Polling);
                load.runnable += usize::from(wants);
            }
            load.requests_total += machine.requests();
        }
        if let Some(card) = self.sidecores.card() {
            for (account, cycles) in self.accounts.iter_mut().zip(card.take_unowned()) {
                account.cycles.monitor += cycles;
            }
        }
        load.requests = load.requests_total - self.load.requests_total;
        let first = self.config.cores - self.serving;
        for core in 0..self.config.sidecores.most() {
            let was = before.sidecores[core];
            let now = self.sidecores.core_time(core);
            let (busy, asleep) = (now.busy - was.busy, now.asleep - was.asleep);
            load.serving_cycles += busy;
            if core < self.serving {
                let account = &mut self.accounts[first + core];
                account.serving += busy;
                account.asleep += asleep;
                account.sidecore += length;
            } else {
                self.accounts[self.config.cores - 1 - core].serving += busy;
            }
        }
        self.load = load;
    }
}

fn difference(now: CycleAccount, before: CycleAccount) -> CycleAccount {
    CycleAccount {
        guest: now.guest - before.guest,
        monitor: now.monitor - before.monitor,
        polling: now.polling - before.polling,
        idle: now.idle - before.idle,
    }
}

fn sum(one: CycleAccount, other: CycleAccount) -> CycleAccount {
    CycleAccount {
        guest: one.guest + other.guest,
        monitor: one.monitor + other.monitor,
        polling: one.polling + other.polling,
        idle: one.idle + other.idle,
    }
}
