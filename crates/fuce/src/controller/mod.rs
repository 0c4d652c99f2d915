//! The thread activation controller: it alone decides when a thread becomes ready and which unit runs it.
//!
//! Units and the device hub each have one request port. In every cycle, in this order:
//! 1. **dispatch**: the oldest thread of the ready queue goes to the lowest-numbered idle unit, or, when none is idle,
//!    to the lowest-numbered unit whose preload slot is empty; at most one a cycle;
//! 2. **commit**: the request in service, if its service ends in this cycle, takes effect: the entry is read, checked,
//!    changed and written back, and a thread whose counter reached zero is queued (it can be dispatched from the next
//!    cycle on);
//! 3. **grant**: an idle controller takes the next request, first a refill from spilled threads, then the ports in
//!    turn after the one served last. The granted port is empty at once.
//!
//! A request is served for [`Controller::service_cycles`] cycles: the activation control memory has a single port and
//! an entry is read in one cycle and written in the next.
//!
//! **Nothing is lost.** A thread is ready at most once: whatever would make it ready again, or forget continuations it
//! has received, is refused with a fault and has no effect. A thread that becomes ready while the queue is full, or
//! while earlier ones wait outside, is marked *spilled* in its entry and moved into the queue when there is room; so no
//! unit ever waits for the queue, and the queue cannot deadlock. When no page is free, `create` answers -1.

mod activation;
mod queue;
mod request;
mod thread;

pub use activation::{ActivationMemory, CODE_ENTRIES, Entry, Level, Page};
pub use queue::{ReadyQueue, ReadyThread};
pub use request::{Completion, Effect, Issuer, NO_PAGE, Operation as ControllerOperation, Request};
pub use thread::{ENTRIES_PER_PAGE, Fault, FaultCause, Mode, ThreadId};

/// Sizes and speed of a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControllerConfig {
    /// Pages of the activation control memory, 1 to 1024.
    pub pages: u16,
    /// Threads the ready queue holds, 1 to 1024.
    pub queue: u16,
    /// Cycles a request is served for.
    pub service_cycles: u32,
    /// Instructions of the program's text; an entry's code must lie below.
    pub text_instructions: u32,
}

/// Which units can take a thread: one bit a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Acceptors {
    /// Units that run nothing and have nothing loaded.
    pub idle: u64,
    /// Units that run a thread but whose preload slot is empty.
    pub preload: u64,
}

/// What a cycle of the controller gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Step {
    /// A thread for a unit.
    pub dispatch: Option<(usize, ReadyThread)>,
    /// A request that took effect or was refused, and the port it came from.
    pub completion: Option<(usize, Completion)>,
}

/// What the controller counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ControllerCounters {
    /// Continuations that took effect, self-continuations not among them.
    pub continuations: u64,
    /// Self-continuations that took effect.
    pub self_continuations: u64,
    /// Locks that were granted.
    pub locks_granted: u64,
    /// Locks that were denied because the entry was locked.
    pub locks_denied: u64,
    /// Threads that became ready.
    pub activations: u64,
    /// Threads handed to units.
    pub dispatches: u64,
    /// Of those, the ones that went to a preload slot behind a running thread.
    pub preload_dispatches: u64,
    /// Threads that found the queue full.
    pub spills: u64,
    /// Pages handed out.
    pub creates: u64,
    /// `create` requests that found no free page.
    pub creates_denied: u64,
    /// Requests refused with a fault.
    pub faults: u64,
    /// Device signals that found their handler not armed and were kept.
    pub signals_deferred: u64,
    /// Cycles in which a request was in service.
    pub busy_cycles: u64,
}

/// What is in service.
#[derive(Debug, Clone, Copy)]
enum Service {
    Port { port: usize, request: Request },
    Refill,
}

/// The thread activation controller.
#[derive(Debug, Clone)]
pub struct Controller {
    config: ControllerConfig,
    memory: ActivationMemory,
    queue: ReadyQueue,
    ports: Vec<Option<Request>>,
    /// One bit a port that holds a request.
    waiting: u128,
    /// Requests put into ports since they were last forgotten.
    submissions: Vec<(usize, Request)>,
    /// The port served last.
    last_port: usize,
    service: Option<(Service, u64)>,
    counters: ControllerCounters,
}

impl Controller {
    /// A controller with `ports` request ports and all of its memory empty.
    ///
    /// # Panics
    /// When a size is zero or larger than the encoding of a thread number or a port mask can hold.
    pub fn new(config: ControllerConfig, ports: usize) -> Controller {
        assert!((1..=1024).contains(&config.pages), "1 to 1024 pages");
        assert!((1..=1024).contains(&config.queue), "1 to 1024 queue entries");
        assert!((1..=128).contains(&ports), "1 to 128 ports");
        assert!(config.service_cycles >= 1, "a request takes at least a cycle");
        Controller {
            config,
            memory: ActivationMemory::new(config.pages),
            queue: ReadyQueue::new(config.queue),
            ports: vec![None; ports],
            waiting: 0,
            submissions: Vec::new(),
            last_port: ports - 1,
            service: None,
            counters: ControllerCounters::default(),
        }
    }

    /// Allocates the lowest free page, as the loader does before the first cycle.
    pub fn allocate(&mut self, page: Page) -> Option<u16> {
        self.memory.allocate(page)
    }

    /// Installs an entry and makes it ready, as the loader does with the boot thread.
    pub fn boot(&mut self, thread: ThreadId, code: u32, mode: Mode) {
        *self.memory.entry_mut(thread) = Entry {
            code,
            fan_in: 1,
            mode: Some(mode),
            ..Entry::default()
        };
        self.activate(thread);
    }

    /// Cycles a request is served for.
    pub fn service_cycles(&self) -> u32 {
        self.config.service_cycles
    }

    /// The activation control memory, to look at.
    pub fn memory(&self) -> &ActivationMemory {
        &self.memory
    }

    /// The ready queue, to look at.
    pub fn queue(&self) -> &ReadyQueue {
        &self.queue
    }

    /// What was counted so far.
    pub fn counters(&self) -> &ControllerCounters {
        &self.counters
    }

    /// Whether a port can take a request.
    pub fn port_is_free(&self, port: usize) -> bool {
        self.waiting >> port & 1 == 0
    }

    /// Puts a request into a port.
    ///
    /// # Panics
    /// When the port holds one already.
    pub fn submit(&mut self, port: usize, request: Request) {
        assert!(self.port_is_free(port), "a port holds one request");
        self.ports[port] = Some(request);
        self.waiting |= 1 << port;
        self.submissions.push((port, request));
    }

    /// Requests put into ports since they were last forgotten, for observers.
    pub fn submissions(&self) -> &[(usize, Request)] {
        &self.submissions
    }

    /// Forgets them; the owner does so once a cycle.
    pub fn forget_submissions(&mut self) {
        self.submissions.clear();
    }

    /// Whether nothing will happen in the controller until a port is filled or a unit can take a thread.
    pub fn is_quiet(&self) -> bool {
        self.service.is_none() && self.waiting == 0 && self.memory.spilled() == 0
    }

    /// When the request in service takes effect.
    pub fn service_ends(&self) -> Option<u64> {
        self.service.map(|(_, at)| at)
    }

    /// One cycle, after units and devices have had theirs.
    #[inline]
    pub fn step(&mut self, now: u64, acceptors: Acceptors) -> Step {
        let mut step = Step::default();
        if !self.queue.is_empty() && acceptors.idle | acceptors.preload != 0 {
            step.dispatch = self.dispatch(acceptors);
        }
        if let Some((service, at)) = self.service {
            self.counters.busy_cycles += 1;
            if at == now {
                self.service = None;
                step.completion = self.commit(service);
            }
        }
        if self.service.is_none() && (self.waiting != 0 || self.memory.spilled() != 0) {
            self.grant(now);
        }
        step
    }

    fn dispatch(&mut self, acceptors: Acceptors) -> Option<(usize, ReadyThread)> {
        let preload = acceptors.idle == 0;
        let candidates = if preload {
            acceptors.preload
        } else {
            acceptors.idle
        };
        let thread = self.queue.pop()?;
        self.memory.entry_mut(thread.thread).ready = false;
        self.counters.dispatches += 1;
        self.counters.preload_dispatches += u64::from(preload);
        Some((candidates.trailing_zeros() as usize, thread))
    }

    fn commit(&mut self, service: Service) -> Option<(usize, Completion)> {
        match service {
            Service::Port { port, request } => Some((port, self.serve(request))),
            Service::Refill => {
                let thread = self
                    .memory
                    .unspill()
                    .expect("a refill is granted while threads are spilled");
                let ready = self.ready_thread(thread);
                self.queue.push(ready);
                None
            }
        }
    }

    fn grant(&mut self, now: u64) {
        let ends = now + u64::from(self.config.service_cycles);
        if self.memory.spilled() != 0 && !self.queue.is_full() {
            self.service = Some((Service::Refill, ends));
            return;
        }
        if self.waiting == 0 {
            return;
        }
        let after = self.waiting & !(u128::MAX >> (127 - self.last_port));
        let port = if after != 0 { after } else { self.waiting }.trailing_zeros() as usize;
        let request = self.ports[port].take().expect("a waiting port holds a request");
        self.waiting &= !(1 << port);
        self.last_port = port;
        self.service = Some((Service::Port { port, request }, ends));
    }

    /// The thread as the queue holds it.
    fn ready_thread(&self, thread: ThreadId) -> ReadyThread {
        let entry = self.memory.entry(thread);
        let page = self
            .memory
            .page(thread.page())
            .expect("a ready thread's page is in use");
        ReadyThread {
            thread,
            code: entry.code,
            mode: entry.mode.expect("a ready thread's entry is not empty"),
            frame: page.frame,
            words: page.words,
        }
    }

    /// Makes a thread ready whose counter is zero.
    fn activate(&mut self, thread: ThreadId) {
        let entry = self.memory.entry_mut(thread);
        assert!(!entry.ready && entry.count == 0, "a thread is ready once");
        entry.ready = true;
        self.counters.activations += 1;
        if self.queue.is_full() || self.memory.spilled() != 0 {
            self.counters.spills += 1;
            self.memory.spill(thread);
        } else {
            let ready = self.ready_thread(thread);
            self.queue.push(ready);
        }
    }
}
