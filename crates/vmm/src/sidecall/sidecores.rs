//! The cores that serve sidecalls, as a program of zero-wait threads in deterministic virtual time.
//!
//! Each sidecore is a core of the executor. A request starts the thread `look`, bound to the sidecore that polls its
//! page, when the store can first be seen there; `look` continues to the thread of the request's kind, which serves it
//! and answers, or, where a device works, to `complete` when it is done. The time of the executor is the host's cycle.
//!
//! A sidecore polls its pages in turn. When it has found nothing for [`Polling::spin`] cycles it waits without
//! executing (monitored wait) where [`Polling::saves_energy`], and then takes longer to notice the next request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sidestep_zerowait::virtual_time::{Config, ConfigError, Stuck, VirtualTime};
use sidestep_zerowait::{Attributes, Graph, GraphError, Mode, Port, Time};
use thiserror::Error;

use super::request::Kind;
use crate::host::{Cost, HostCosts};
use crate::hypervisor::{Pending, Server, VirtualMachine};

/// How sidecores look for requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polling {
    /// Cycles without a request after which a core waits instead of polling on.
    pub spin: u64,
    /// Whether it does.
    pub saves_energy: bool,
}

/// Why sidecores cannot be made.
#[derive(Debug, Error)]
pub enum SidecoresError {
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

/// What the threads share. They run one after another.
struct Board {
    /// Requests by ticket.
    tickets: Vec<Option<Ticket>>,
    free: Vec<usize>,
    cores: Vec<Core>,
    /// What was served when, if that is recorded.
    services: Option<Vec<Service>>,
}

/// A request that was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// The sidecore.
    pub core: usize,
    /// The virtual machine that asked.
    pub machine: usize,
    /// What it asked for; `None` for an unknown kind.
    pub kind: Option<Kind>,
    /// When the service began.
    pub start: u64,
    /// Cycles of the core.
    pub cycles: u64,
}

#[derive(Clone, Copy)]
struct Ticket {
    machine: usize,
    pending: Pending,
    served: Option<crate::hypervisor::Served>,
}

#[derive(Clone, Copy, Default)]
struct Core {
    time: CoreTime,
    /// Since when it has had nothing to do.
    idle_since: u64,
    /// How many pages it polls.
    pages: u64,
}

type SharedBoard = Arc<Mutex<Board>>;

fn board(board: &Mutex<Board>) -> MutexGuard<'_, Board> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The sidecores of a host.
pub struct Sidecores {
    executor: VirtualTime,
    looks: Vec<Port<u64>>,
    board: SharedBoard,
    costs: Arc<HostCosts>,
}

impl Sidecores {
    /// As many sidecores as a host can have, for these virtual machines.
    pub fn new(
        count: usize,
        machines: &Machines,
        costs: &Arc<HostCosts>,
        polling: Polling,
        trace: bool,
    ) -> Result<Sidecores, SidecoresError> {
        let count = count.max(1);
        let shared: SharedBoard = Arc::new(Mutex::new(Board {
            tickets: Vec::new(),
            free: Vec::new(),
            cores: vec![Core::default(); count],
            services: trace.then(Vec::new),
        }));
        let mut graph = Graph::new();
        let mut looks = Vec::new();
        for core in 0..count {
            let program = CoreProgram {
                core,
                machines: machines.clone(),
                costs: Arc::clone(costs),
                polling,
                board: Arc::clone(&shared),
            };
            looks.push(program.declare(&mut graph)?);
        }
        let config = Config {
            cores: count as u16,
            ..Config::default()
        };
        Ok(Sidecores {
            executor: VirtualTime::new(graph.build()?, config)?,
            looks,
            board: shared,
            costs: Arc::clone(costs),
        })
    }

    /// Says how many request pages a sidecore polls from `time` on; without any it is none.
    pub fn set_pages(&mut self, core: usize, pages: usize, time: u64) {
        let core = &mut board(&self.board).cores[core];
        if core.pages == 0 {
            core.idle_since = core.idle_since.max(time);
        }
        core.pages = pages as u64;
    }

    /// Hands a request to the sidecore that polls its page. Requests come in the order of their times.
    pub fn submit(&mut self, core: usize, machine: usize, pending: Pending) {
        let ticket = Ticket {
            machine,
            pending,
            served: None,
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
        let seen = Time(pending.time) + self.costs.cycles(Cost::Transfer);
        let sent = self.executor.send_at(self.looks[core], seen, number as u64);
        assert!(
            sent.is_ok(),
            "slots bound the requests under way below the executor's capacity"
        );
    }

    /// Lets the sidecores work up to and including `time`.
    ///
    /// # Errors
    /// If time stands still there, which is a defect of a service.
    pub fn run_until(&mut self, time: u64) -> Result<(), Stuck> {
        self.executor.run_until(Time(time)).map(|_| ())
    }

    /// When the sidecores do something next. A guest can see an answer no earlier than a transfer later.
    pub fn next_event(&self) -> Option<u64> {
        self.executor.next_event().map(|time| time.0)
    }

    /// Whether requests are under way.
    pub fn is_idle(&self) -> bool {
        let shared = board(&self.board);
        shared.free.len() == shared.tickets.len()
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
    fn declare(self, graph: &mut Graph) -> Result<Port<u64>, GraphError> {
        let core = self.core;
        let attributes = Attributes::new(Mode::Kernel).on_core(core as u16);
        let look = graph.declare::<u64>(format!("look {core}"), attributes);
        let complete = graph.declare::<u64>(format!("complete {core}"), attributes);
        // The last serves requests of unknown kinds: it refuses them.
        let names = Kind::ALL.iter().map(|kind| kind.name()).chain(["unknown kind"]);
        let mut services = Vec::new();
        for name in names {
            let service = graph.declare::<u64>(format!("{name} {core}"), attributes);
            services.push((graph.edge(look, service)?, service));
        }
        let program = Arc::new(self);
        for (_, service) in &services {
            let done = graph.edge(*service, complete)?;
            let serves = Arc::clone(&program);
            graph.define(*service, move |cx, ticket| {
                let device = serves.serve(ticket as usize, cx.now().0, &mut |cycles| cx.spend(cycles));
                // The core is free while a device works; a completion at once costs it nothing more.
                let later = cx.continue_after(done, device, ticket);
                assert!(
                    later.is_ok(),
                    "a service continues once, for which there is always room"
                );
            });
        }
        let completes = Arc::clone(&program);
        graph.define(complete, move |cx, ticket| {
            completes.complete(ticket as usize, cx.now().0)
        });
        let edges: Vec<_> = services.iter().map(|(edge, _)| *edge).collect();
        let port = graph.port(look);
        graph.define(look, move |cx, ticket| {
            let place = program.look(ticket as usize, cx.now().0, &mut |cycles| cx.spend(cycles));
            cx.continue_to(edges[place], ticket);
        });
        Ok(port)
    }

    /// Notices a request. Which service it is for.
    fn look(&self, number: usize, now: u64, spend: &mut dyn FnMut(u64)) -> usize {
        let mut shared = board(&self.board);
        let ticket = shared.tickets[number].expect("a ticket is valid until it is completed");
        let core = &mut shared.cores[self.core];
        let idle = now.saturating_sub(core.idle_since);
        let mut delay = if self.polling.saves_energy && idle > self.polling.spin {
            core.time.asleep += idle - self.polling.spin;
            self.costs.cycles(Cost::Wake)
        } else if idle > 0 {
            // The turn of its page comes when the loop gets there.
            let poll = self.costs.cycles(Cost::Poll);
            let round = (poll * core.pages.max(1)).max(1);
            (ticket.machine as u64 * poll).wrapping_sub(now) % round
        } else {
            0
        };
        delay += self.costs.cycles(Cost::Poll);
        core.time.busy += delay;
        core.idle_since = now + delay;
        spend(delay);
        Kind::from_number(ticket.pending.request.kind).map_or(Kind::ALL.len(), |kind| kind as usize)
    }

    /// Serves a request. The cycles that a device works for it afterwards.
    fn serve(&self, number: usize, now: u64, spend: &mut dyn FnMut(u64)) -> u64 {
        let mut shared = board(&self.board);
        let ticket = shared.tickets[number]
            .as_mut()
            .expect("a ticket is valid until it is completed");
        let mut machine = locked(&self.machines[ticket.machine]);
        let Pending {
            processor, request, ..
        } = ticket.pending;
        let served = machine.serve(&self.costs, processor, &request, Server::Sidecore, now);
        ticket.served = Some(served);
        let machine_index = ticket.machine;
        drop(machine);
        if let Some(services) = &mut shared.services {
            services.push(Service {
                core: self.core,
                machine: machine_index,
                kind: served.kind,
                start: now,
                cycles: served.cycles,
            });
        }
        let core = &mut shared.cores[self.core];
        core.time.busy += served.cycles;
        core.time.requests += 1;
        core.idle_since = now + served.cycles;
        spend(served.cycles);
        served.device
    }

    /// Answers: the guest sees it when the line has come over.
    fn complete(&self, number: usize, now: u64) {
        let mut shared = board(&self.board);
        let ticket = shared.tickets[number].take().expect("a ticket is completed once");
        shared.free.push(number);
        let served = ticket.served.expect("a request is completed after it was served");
        let mut machine = locked(&self.machines[ticket.machine]);
        let seen = now + self.costs.cycles(Cost::Transfer);
        machine.answer(&self.costs, &ticket.pending, served.kind, served.answer, seen);
    }
}
