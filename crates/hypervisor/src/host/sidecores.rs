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
//! Each kind of device has a thread on a core of its own, the devices', whose time nobody is charged for. A request
//! starts it where a sidecore, or by exit the guest's core, has handed it over; it joins the queue of its virtual
//! machine's device, and once it is the first, `done` comes as much later as the device works. A queue that is full
//! refuses it.
//!
//! A sidecore polls its pages in turn. When it has found nothing for [`Polling::spin_cycles`] it waits without
//! executing (monitored wait) where [`Polling::saves_energy`], and then takes longer to notice the next request.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use sidestep_zerowait::cores::{self, Cores, StartError};
use sidestep_zerowait::virtual_time::{Config, ConfigError, Stuck, VirtualTime};
use sidestep_zerowait::{Attributes, Graph, GraphError, Mode, Port, Reason, Report, Thread, Time};
use thiserror::Error;

use crate::costs::{Cost, HostCosts};
use crate::cycle::Cycle;
use crate::sidecall::request::{Answer, DeviceRequest, Kind, Refusal, Request};
use crate::virtual_machine::{DeviceKind, Pending, Progress, QUEUE_MAX, Server, VirtualMachine};

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
struct Board {
    executor: Executor,
    /// Is told of every answer.
    answered: Arc<Condvar>,
    /// Requests by ticket.
    tickets: Vec<Option<Ticket>>,
    free: Vec<usize>,
    cores: Vec<Core>,
    /// The tickets of each device of each virtual machine, the one that it works on first.
    queues: Vec<[VecDeque<usize>; DeviceKind::ALL.len()]>,
    /// What was served when, if that is recorded.
    services: Option<Vec<Service>>,
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
struct Ticket {
    machine: usize,
    pending: Pending,
    /// The cycle that it has come to.
    time: Cycle,
}

impl Ticket {
    /// What it asks of a device, which is all that devices are given.
    ///
    /// # Panics
    /// If it asks the monitor.
    fn device_request(&self) -> DeviceRequest {
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

fn host_time(time: Time) -> Cycle {
    Cycle(time.0)
}

type SharedBoard = Arc<Mutex<Board>>;

fn board(board: &Mutex<Board>) -> MutexGuard<'_, Board> {
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
    ) -> Result<Sidecores, SidecoresError> {
        let count = count.max(1);
        let shared: SharedBoard = Arc::new(Mutex::new(Board {
            executor,
            answered: Arc::default(),
            tickets: Vec::new(),
            free: Vec::new(),
            cores: vec![Core::default(); count],
            queues: vec![Default::default(); machines.len()],
            services: trace.then(Vec::new),
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
        let program = graph.build()?;
        let running = match executor {
            Executor::VirtualTime => {
                let config = Config {
                    cores: count as u16 + 1,
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
        })
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

    /// Whether requests are under way.
    pub fn is_idle(&self) -> bool {
        board(&self.board).is_idle()
    }

    /// What a sidecore did so far.
    pub fn core_time(&self, core: usize) -> CoreTime {
        board(&self.board).cores[core].time
    }

    /// What was served when; empty unless recording was asked for.
    pub fn services(&self) -> Vec<Service> {
        board(&self.board).services.clone().unwrap_or_default()
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
        let core = &mut shared.cores[self.core];
        let idle = now.since(core.idle_since);
        let mut delay = if self.polling.saves_energy && idle > self.polling.spin_cycles {
            core.time.asleep += idle - self.polling.spin_cycles;
            self.costs.cycles(Cost::Wake)
        } else if idle > 0 {
            // The turn of its page comes when the loop gets there.
            let poll = self.costs.cycles(Cost::Poll);
            let round = (poll * core.pages.max(1)).max(1);
            (ticket.machine as u64 * poll).wrapping_sub(now.0) % round
        } else {
            0
        };
        delay += self.costs.cycles(Cost::Poll);
        core.time.busy += delay;
        core.idle_since = now + delay;
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
            services.push(Service {
                worker: Worker::Core(self.core),
                machine: ticket.machine,
                kind: request.kind(),
                start: now,
                cycles: served.cycles,
            });
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

/// The threads of all devices.
struct DeviceProgram {
    machines: Machines,
    costs: Arc<HostCosts>,
    board: SharedBoard,
}

impl DeviceProgram {
    fn declare(
        self,
        graph: &mut Graph,
        core: u16,
    ) -> Result<[Thread<u64>; DeviceKind::ALL.len()], GraphError> {
        let attributes = Attributes::new(Mode::Kernel).on_core(core);
        let program = Arc::new(self);
        let devices = DeviceKind::ALL.map(|device| graph.declare::<u64>(device.name(), attributes));
        for device in DeviceKind::ALL {
            let thread = devices[device as usize];
            let done = graph.declare::<u64>(format!("{} done", device.name()), attributes);
            let begun = graph.edge(thread, done)?;
            let next = graph.edge(done, done)?;
            const ROOM: &str = "a device works on one request at a time";
            let queues = Arc::clone(&program);
            graph.define(thread, move |cx, ticket| {
                if let Some(cycles) = queues.queue(device, ticket as usize, host_time(cx.now())) {
                    let later = cx.continue_after(begun, cycles, ticket);
                    assert!(later.is_ok(), "{ROOM}");
                }
            });
            let finishes = Arc::clone(&program);
            graph.define(done, move |cx, ticket| {
                if let Some((ticket, cycles)) = finishes.finish(device, ticket as usize, host_time(cx.now()))
                {
                    let later = cx.continue_after(next, cycles, ticket as u64);
                    assert!(later.is_ok(), "{ROOM}");
                }
            });
        }
        Ok(devices)
    }

    /// A request joins its device's queue, or is refused if that is full. How long the device works if it begins now.
    fn queue(&self, device: DeviceKind, number: usize, now: Cycle) -> Option<u64> {
        let mut shared = board(&self.board);
        let ticket = *shared.ticket(number);
        let now = shared.begins(now, &ticket, Cycle::START);
        let queue = &mut shared.queues[ticket.machine][device as usize];
        if queue.len() >= QUEUE_MAX {
            shared.complete(&self.machines, &self.costs, number, Err(Refusal::Full), now);
            return None;
        }
        queue.push_back(number);
        (queue.len() == 1).then(|| self.begin(&mut shared, device, number, now))
    }

    /// A device is done with a request; which one it begins then, and how long it works on it.
    fn finish(&self, device: DeviceKind, number: usize, now: Cycle) -> Option<(usize, u64)> {
        let mut shared = board(&self.board);
        let ticket = *shared.ticket(number);
        let now = shared.begins(now, &ticket, Cycle::START);
        let mut machine = locked(&self.machines[ticket.machine]);
        let answer = machine.transfer(&self.costs, &ticket.device_request(), now);
        drop(machine);
        let queue = &mut shared.queues[ticket.machine][device as usize];
        let first = queue.pop_front();
        assert_eq!(first, Some(number), "a device works on the first of its queue");
        let next = queue.front().copied();
        shared.complete(&self.machines, &self.costs, number, answer, now);
        next.map(|next| (next, self.begin(&mut shared, device, next, now)))
    }

    /// A device begins a request: how long it works. What it refuses takes it no time.
    fn begin(&self, shared: &mut Board, device: DeviceKind, number: usize, now: Cycle) -> u64 {
        let ticket = *shared.ticket(number);
        let request = ticket.device_request();
        let machine = locked(&self.machines[ticket.machine]);
        let cycles = machine.device_cycles(&self.costs, &request, now).unwrap_or(0);
        shared.ticket(number).time = now + cycles;
        if let Some(services) = &mut shared.services {
            services.push(Service {
                worker: Worker::Device(device),
                machine: ticket.machine,
                kind: Some(request.kind()),
                start: now,
                cycles,
            });
        }
        cycles
    }
}

impl Board {
    /// A request under way.
    fn ticket(&mut self, number: usize) -> &mut Ticket {
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
    fn begins(&self, executor_now: Cycle, ticket: &Ticket, free: Cycle) -> Cycle {
        match self.executor {
            Executor::VirtualTime => executor_now,
            Executor::PinnedCores => ticket.time.max(free),
        }
    }

    /// Answers: the guest sees it when the line has come over.
    fn complete(
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
