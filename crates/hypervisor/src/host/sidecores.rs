//! The cores that serve sidecalls, and the devices, as a program of zero-wait threads.
//!
//! Each sidecore is a core of the executor. A request starts the thread `look`, bound to the sidecore that polls its
//! page, when the store can first be seen there; `look` continues to the thread of the request's kind, which serves it
//! and answers, or hands it to its device.
//!
//! One program, two [executors](Executor). In deterministic virtual time the executor's time is the host's cycle. On
//! pinned cores the same threads really run side by side on cores of the machine that this program runs on. What a
//! request is charged follows from the table of costs there as well: a request carries the cycle that it has come to,
//! and a core the cycle from which it is free. But who is served first is whoever comes first, so that times, unlike
//! answers, may differ from run to run.
//!
//! The same program has the threads of the devices (`host/devices.rs`), and of the [card](super::card) if the host has
//! one: its engines, the monitor's handler of its interrupt, and the sidecores' looks at its receive rings.
//!
//! A sidecore polls its pages in turn. When it has found nothing for [`Polling::spin_cycles`] it waits without
//! executing (monitored wait) where [`Polling::saves_energy`], and then takes longer to notice the next request.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use sidestep_zerowait::cores::{self, Cores, StartError};
use sidestep_zerowait::virtual_time::{Config, ConfigError, Stuck, VirtualTime};
use sidestep_zerowait::{Attributes, Graph, GraphError, Mode, Payload, Port, Reason, Report, Thread, Time};
use thiserror::Error;

use super::card::{Card, Ports};
use super::devices::DeviceProgram;
use super::recorded::Recorded;
use crate::costs::{Cost, HostCosts};
use crate::cycle::Cycle;
use crate::nic::NicConfig;
use crate::nic::frame::Frame;
use crate::nic::ring::Store;
use crate::sidecall::request::{Answer, DeviceRequest, Kind, Request};
use crate::virtual_machine::{DeviceKind, Pending, Progress, Server, VirtualMachine};

/// How sidecores look for requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polling {
    /// How long without a request after which a core waits instead of polling on.
    pub spin_cycles: u64,
    /// Whether it does.
    pub saves_energy: bool,
}

/// What runs the services.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Executor {
    /// Deterministic virtual time.
    #[default]
    VirtualTime,
    /// Cores of the machine that this program runs on, one for each sidecore and one for the devices, in real time.
    PinnedCores,
}

/// After so long without an answer something is wrong with a service on pinned cores.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why sidecores cannot be made, or cannot go on.
#[derive(Debug, Error)]
pub enum SidecoresError {
    /// The pinned cores do not start.
    #[error("the pinned cores of the sidecores: {0}")]
    Start(#[from] StartError),
    /// A service that never ends.
    #[error(transparent)]
    Stuck(#[from] Stuck),
    /// A service on a pinned core that did not answer.
    #[error("a service on a pinned core has not answered for {} s", PATIENCE.as_secs())]
    Unanswered,
    /// The program is not one.
    #[error("the program of the sidecores: {0}")]
    Graph(#[from] GraphError),
    /// The executor does not take it.
    #[error("the executor of the sidecores: {0}")]
    Config(#[from] ConfigError),
}

/// What one sidecore did, in cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreTime {
    /// Serving requests.
    pub busy: u64,
    /// Waiting without executing.
    pub asleep: u64,
    /// Requests served.
    pub requests: u64,
}

/// Virtual machines that the services work on.
pub type Machines = Vec<Arc<Mutex<VirtualMachine>>>;

/// Locks a virtual machine; a panic while it was locked has been reported where it happened.
pub fn locked(machine: &Mutex<VirtualMachine>) -> MutexGuard<'_, VirtualMachine> {
    machine.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the threads share.
pub(super) struct Board {
    executor: Executor,
    /// Is told of every answer.
    answered: Arc<Condvar>,
    /// Requests by ticket.
    tickets: Vec<Option<Ticket>>,
    free: Vec<usize>,
    cores: Vec<Core>,
    /// The tickets of each device of each virtual machine, the one that it works on first.
    pub queues: Vec<[VecDeque<usize>; DeviceKind::ALL.len()]>,
    /// What was served when, if that is recorded.
    pub services: Option<Recorded<Service>>,
}

/// Who served a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worker {
    /// A sidecore.
    Core(usize),
    /// The device of the virtual machine that asked.
    Device(DeviceKind),
}

/// A request that was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Who served it.
    pub worker: Worker,
    /// The virtual machine that asked.
    pub machine: usize,
    /// What it asked for; `None` for an unknown kind.
    pub kind: Option<Kind>,
    /// When the service began.
    pub start: Cycle,
    /// Cycles that it took.
    pub cycles: u64,
}

#[derive(Clone, Copy)]
pub(super) struct Ticket {
    pub machine: usize,
    pending: Pending,
    /// The cycle that it has come to.
    pub time: Cycle,
}

impl Ticket {
    /// What it asks of a device, which is all that devices are given.
    ///
    /// # Panics
    /// If it asks the monitor.
    pub fn device_request(&self) -> DeviceRequest {
        match self.pending.request {
            Request::Device(request) => request,
            request => panic!("{request:?} is for no device"),
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Core {
    time: CoreTime,
    /// Since when it has had nothing to do.
    idle_since: Cycle,
    /// How many pages it polls.
    pages: u64,
}

/// The executor's time at a host's: in virtual time they are the same.
fn executor_time(time: Cycle) -> Time {
    Time(time.0)
}

pub(super) fn host_time(time: Time) -> Cycle {
    Cycle(time.0)
}

pub(super) type SharedBoard = Arc<Mutex<Board>>;

pub(super) fn board(board: &Mutex<Board>) -> MutexGuard<'_, Board> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A program that runs.
enum Running {
    VirtualTime(VirtualTime),
    PinnedCores(Cores),
}

/// The sidecores of a host.
pub struct Sidecores {
    running: Running,
    looks: Vec<Port<u64>>,
    devices: [Port<u64>; DeviceKind::ALL.len()],
    board: SharedBoard,
    costs: Arc<HostCosts>,
    card: Option<Attached>,
}

/// A card and how its threads are reached from outside.
struct Attached {
    card: Arc<Card>,
    ports: Ports,
}

impl Sidecores {
    /// As many sidecores as a host can have, for these virtual machines.
    ///
    /// # Errors
    /// If this machine does not start the pinned cores that were asked for.
    pub fn new(
        count: usize,
        machines: &Machines,
        costs: &Arc<HostCosts>,
        polling: Polling,
        executor: Executor,
        trace: bool,
        nic: Option<&NicConfig>,
    ) -> Result<Sidecores, SidecoresError> {
        let count = count.max(1);
        let shared: SharedBoard = Arc::new(Mutex::new(Board {
            executor,
            answered: Arc::default(),
            tickets: Vec::new(),
            free: Vec::new(),
            cores: vec![Core::default(); count],
            queues: vec![Default::default(); machines.len()],
            services: trace.then(Recorded::new),
        }));
        let mut graph = Graph::new();
        let mut looks = Vec::new();
        let device = DeviceProgram {
            machines: machines.clone(),
            costs: Arc::clone(costs),
            board: Arc::clone(&shared),
        };
        let devices = device.declare(&mut graph, count as u16)?;
        for core in 0..count {
            let program = CoreProgram {
                core,
                machines: machines.clone(),
                costs: Arc::clone(costs),
                polling,
                board: Arc::clone(&shared),
            };
            looks.push(program.declare(&mut graph, &devices)?);
        }
        let devices = devices.map(|device| graph.port(device));
        let card = nic.map(|nic| {
            let card = Arc::new(Card::new(nic, machines, costs, polling, &shared, count, trace));
            let ports = card.declare(&mut graph, count as u16)?;
            Ok::<_, GraphError>(Attached { card, ports })
        });
        let card = card.transpose()?;
        let cores = count as u16 + 1 + nic.map_or(0, Card::cores);
        let program = graph.build()?;
        let running = match executor {
            Executor::VirtualTime => {
                let config = Config {
                    cores,
                    ..Config::default()
                };
                Running::VirtualTime(VirtualTime::new(program, config)?)
            }
            Executor::PinnedCores => {
                let config = cores::Config {
                    cores: count + 1,
                    cores_max: count + 1,
                    // Every thread is bound to its core.
                    sharing: false,
                    sampling: 1,
                    ..cores::Config::default()
                };
                Running::PinnedCores(Cores::start(program, config)?)
            }
        };
        Ok(Sidecores {
            running,
            looks,
            devices,
            board: shared,
            costs: Arc::clone(costs),
            card,
        })
    }

    /// The card, if the host has one.
    pub(super) fn card(&self) -> Option<&Card> {
        self.card.as_ref().map(|attached| &*attached.card)
    }

    /// Tells the card what a guest has stored for a pair of its rings, and when.
    pub(super) fn tell_card(&mut self, pair: (usize, usize), time: Cycle, store: Store) {
        if let Some(Attached { card, ports }) = &self.card {
            let (time, words) = card.told(pair, time, store);
            send(&mut self.running, ports.stores, time, words);
        }
    }

    /// Has a frame come over the wire at a time.
    pub(super) fn receive(&mut self, time: Cycle, frame: Frame) {
        if let Some(Attached { card, ports }) = &self.card {
            let ticket = card.ticket(frame);
            send(&mut self.running, ports.wire, time, ticket as u64);
        }
    }

    /// Says how many request pages a sidecore polls from `time` on; without any it is none.
    pub fn set_pages(&mut self, core: usize, pages: usize, time: Cycle) {
        let core = &mut board(&self.board).cores[core];
        if core.pages == 0 {
            core.idle_since = core.idle_since.max(time);
        }
        core.pages = pages as u64;
    }

    /// Hands a request to the sidecore that polls its page, or to the device that it is for already. Requests come in
    /// the order of their times.
    pub fn submit(&mut self, core: usize, machine: usize, pending: Pending) {
        let seen = pending.time + self.costs.cycles(Cost::Transfer);
        let ticket = Ticket {
            machine,
            pending,
            time: seen,
        };
        let mut shared = board(&self.board);
        let number = match shared.free.pop() {
            Some(number) => {
                shared.tickets[number] = Some(ticket);
                number
            }
            None => {
                shared.tickets.push(Some(ticket));
                shared.tickets.len() - 1
            }
        };
        drop(shared);
        let port = match (pending.server, pending.request) {
            (Server::OwnCore, Request::Device(request)) => self.devices[DeviceKind::of(&request) as usize],
            _ => self.looks[core],
        };
        match &mut self.running {
            Running::VirtualTime(executor) => {
                let sent = executor.send_at(port, executor_time(seen), number as u64);
                assert!(
                    sent.is_ok(),
                    "slots bound the requests under way below the executor's capacity"
                );
            }
            Running::PinnedCores(cores) => {
                while let Err(back) = cores.send(port, number as u64) {
                    assert_ne!(back.reason, Reason::Stopping, "the cores run as long as the host");
                    std::thread::yield_now();
                }
            }
        }
    }

    /// Lets the sidecores do what they do before `time` in virtual time, and on pinned cores until all is answered.
    ///
    /// # Errors
    /// If time stands still there, or no answer comes, which is a defect of a service.
    pub fn run_before(&mut self, time: Cycle) -> Result<(), SidecoresError> {
        match &mut self.running {
            Running::VirtualTime(executor) => {
                // Up to a time and including it.
                Ok(executor.run_until(Time(time.0 - 1)).map(|_| ())?)
            }
            Running::PinnedCores(_) => {
                let shared = board(&self.board);
                let answered = Arc::clone(&shared.answered);
                let waited = answered.wait_timeout_while(shared, PATIENCE, |shared| !shared.is_idle());
                let shared = waited.unwrap_or_else(PoisonError::into_inner).0;
                match shared.is_idle() {
                    true => Ok(()),
                    false => Err(SidecoresError::Unanswered),
                }
            }
        }
    }

    /// When the sidecores do something next by themselves. A guest can see an answer no earlier than a transfer later.
    pub fn next_event(&self) -> Option<Cycle> {
        match &self.running {
            Running::VirtualTime(executor) => executor.next_event().map(host_time),
            // Whatever was asked has been answered.
            Running::PinnedCores(_) => None,
        }
    }

    /// What the services really took, in nanoseconds of this machine, if they run on pinned cores.
    pub fn measured(&self) -> Option<Report> {
        match &self.running {
            Running::VirtualTime(_) => None,
            Running::PinnedCores(cores) => Some(cores.report()),
        }
    }

    /// Whether neither requests nor the card's work are under way.
    pub fn is_idle(&self) -> bool {
        let card_is_idle = self.card.is_none() || self.next_event().is_none();
        board(&self.board).is_idle() && card_is_idle
    }

    /// What a sidecore did so far.
    pub fn core_time(&self, core: usize) -> CoreTime {
        board(&self.board).cores[core].time
    }

    /// What was served when, if recording was asked for.
    pub(super) fn services(&self) -> Option<Recorded<Service>> {
        board(&self.board).services.clone()
    }
}

/// Starts a thread of the card, which is in virtual time.
fn send<T: Payload>(running: &mut Running, port: Port<T>, time: Cycle, value: T) {
    match running {
        Running::VirtualTime(executor) => {
            let sent = executor.send_at(port, executor_time(time), value);
            assert!(
                sent.is_ok(),
                "stores and frames under way are bounded below the executor's capacity"
            );
        }
        Running::PinnedCores(_) => unreachable!("a host with a card is in virtual time"),
    }
}

/// The threads of one sidecore.
struct CoreProgram {
    core: usize,
    machines: Machines,
    costs: Arc<HostCosts>,
    polling: Polling,
    board: SharedBoard,
}

impl CoreProgram {
    fn declare(self, graph: &mut Graph, devices: &[Thread<u64>]) -> Result<Port<u64>, GraphError> {
        let core = self.core;
        let attributes = Attributes::new(Mode::Kernel).on_core(core as u16);
        let look = graph.declare::<u64>(format!("look {core}"), attributes);
        // The last serves requests of unknown kinds: it refuses them.
        let names = Kind::ALL.iter().map(|kind| kind.name()).chain(["unknown kind"]);
        let mut services = Vec::new();
        for name in names {
            let service = graph.declare::<u64>(format!("{name} {core}"), attributes);
            services.push((graph.edge(look, service)?, service));
        }
        let program = Arc::new(self);
        for (_, service) in &services {
            let mut submit = Vec::new();
            for device in devices {
                submit.push(graph.edge(*service, *device)?);
            }
            let serves = Arc::clone(&program);
            graph.define(*service, move |cx, ticket| {
                let now = host_time(cx.now());
                let served = serves.serve(ticket as usize, now, &mut |cycles| cx.spend(cycles));
                if let Some(device) = served {
                    let now = cx.continue_after(submit[device as usize], 0, ticket);
                    assert!(
                        now.is_ok(),
                        "a service continues once, for which there is always room"
                    );
                }
            });
        }
        let edges: Vec<_> = services.iter().map(|(edge, _)| *edge).collect();
        let port = graph.port(look);
        graph.define(look, move |cx, ticket| {
            let place = program.look(ticket as usize, host_time(cx.now()), &mut |cycles| {
                cx.spend(cycles)
            });
            cx.continue_to(edges[place], ticket);
        });
        Ok(port)
    }

    /// Notices a request. Which service it is for.
    fn look(&self, number: usize, now: Cycle, spend: &mut dyn FnMut(u64)) -> usize {
        let mut shared = board(&self.board);
        let ticket = *shared.ticket(number);
        let now = shared.begins(now, &ticket, shared.cores[self.core].idle_since);
        let delay = shared.turn((self.core, ticket.machine), now, self.polling, &self.costs);
        shared.ticket(number).time = now + delay;
        spend(delay);
        let kind = ticket.pending.request.kind();
        kind.map_or(Kind::ALL.len(), |kind| kind as usize)
    }

    /// Serves a request and answers it, or says which device it goes to.
    fn serve(&self, number: usize, now: Cycle, spend: &mut dyn FnMut(u64)) -> Option<DeviceKind> {
        let mut shared = board(&self.board);
        let ticket = *shared.ticket(number);
        let now = shared.begins(now, &ticket, shared.cores[self.core].idle_since);
        // Others serve meanwhile.
        drop(shared);
        let Pending {
            processor, request, ..
        } = ticket.pending;
        let served = locked(&self.machines[ticket.machine]).serve(
            &self.costs,
            processor,
            request,
            Server::Sidecore,
            now,
        );
        let mut shared = board(&self.board);
        if let Some(services) = &mut shared.services {
            let service = Service {
                worker: Worker::Core(self.core),
                machine: ticket.machine,
                kind: request.kind(),
                start: now,
                cycles: served.cycles,
            };
            services.push(now, service);
        }
        let core = &mut shared.cores[self.core];
        core.time.busy += served.cycles;
        core.time.requests += 1;
        core.idle_since = now + served.cycles;
        shared.ticket(number).time = now + served.cycles;
        spend(served.cycles);
        match served.progress {
            Progress::Answered(answer) => {
                shared.complete(&self.machines, &self.costs, number, answer, now + served.cycles);
                None
            }
            Progress::Submitted(request) => Some(DeviceKind::of(&request)),
        }
    }
}

impl Board {
    /// A request under way.
    pub fn ticket(&mut self, number: usize) -> &mut Ticket {
        self.tickets[number]
            .as_mut()
            .expect("a ticket is valid until it is completed")
    }

    fn is_idle(&self) -> bool {
        self.free.len() == self.tickets.len()
    }

    /// The cycle at which a stage of a request begins: in virtual time the executor's. Pinned cores have a clock of
    /// their own, which says nothing of the modelled host: there it is the one that the request has come to, unless
    /// whoever works on it is free only later.
    pub fn begins(&self, executor_now: Cycle, ticket: &Ticket, free: Cycle) -> Cycle {
        match self.executor {
            Executor::VirtualTime => executor_now,
            Executor::PinnedCores => ticket.time.max(free),
        }
    }

    /// How long after `now` a core's polling loop comes to a place of its round, or the core out of its wait.
    pub fn turn(
        &mut self,
        (core, place): (usize, usize),
        now: Cycle,
        polling: Polling,
        costs: &HostCosts,
    ) -> u64 {
        let core = &mut self.cores[core];
        let idle = now.since(core.idle_since);
        let poll = costs.cycles(Cost::Poll);
        let mut delay = if polling.saves_energy && idle > polling.spin_cycles {
            core.time.asleep += idle - polling.spin_cycles;
            costs.cycles(Cost::Wake)
        } else if idle > 0 {
            // The turn of its page comes when the loop gets there.
            let round = (poll * core.pages.max(1)).max(1);
            (place as u64 * poll).wrapping_sub(now.0) % round
        } else {
            0
        };
        delay += poll;
        core.time.busy += delay;
        core.idle_since = now + delay;
        delay
    }

    /// A core works for so many cycles more, up to `now`.
    pub fn works(&mut self, core: usize, cycles: u64, now: Cycle) {
        self.cores[core].time.busy += cycles;
        self.cores[core].idle_since = now;
    }

    /// Answers: the guest sees it when the line has come over.
    pub fn complete(
        &mut self,
        machines: &Machines,
        costs: &HostCosts,
        number: usize,
        answer: Answer,
        now: Cycle,
    ) {
        let ticket = self.tickets[number].take().expect("a ticket is completed once");
        self.free.push(number);
        let seen = now + costs.cycles(Cost::Transfer);
        locked(&machines[ticket.machine]).answer(costs, &ticket.pending, answer, seen);
        self.answered.notify_all();
    }
}
