//! The threads of one instance: where each is in its loop, and how they wait for each other.

use std::collections::VecDeque;

use super::workload::{Phase, Workload};

/// Work is kept in thousandths of a nanosecond, so that slowed threads lose nothing to rounding.
pub(super) const PER_NS: u64 = 1000;

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// Working; this much is left.
    Working { left: u64 },
    /// Waiting busily; so much longer before it blocks.
    Spinning { left_ns: u64 },
    /// Waiting, off the core.
    Blocked,
}

/// One thread.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub doing: Doing,
    phase: usize,
    pub rounds: u64,
}

/// The threads of an instance and what they share to wait for each other.
#[derive(Clone, Debug)]
pub(super) struct Team {
    workload: Workload,
    seed: u64,
    pub threads: Vec<Thread>,
    at_barrier: Vec<usize>,
    lock_holder: Option<usize>,
    lock_queue: VecDeque<usize>,
}

impl Team {
    /// Threads at the beginning of their first round.
    ///
    /// # Panics
    /// When the workload's round contains no work: virtual time would stand still.
    pub fn new(workload: Workload, threads: usize, seed: u64) -> Self {
        let takes_time = |phase: &Phase| match *phase {
            Phase::Compute { work_ns, .. } | Phase::Locked { work_ns } => work_ns > 0,
            Phase::Barrier => false,
        };
        assert!(
            workload.phases.iter().any(takes_time),
            "a round of `{}` takes no time",
            workload.name
        );
        let thread = Thread {
            doing: Doing::Blocked,
            phase: 0,
            rounds: 0,
        };
        let mut team = Self {
            workload,
            seed,
            threads: vec![thread; threads],
            at_barrier: Vec::new(),
            lock_holder: None,
            lock_queue: VecDeque::new(),
        };
        for thread in 0..threads {
            team.begin(thread);
        }
        team
    }

    /// Ends a thread's current work and begins what follows. `is_on_core` says who could take a lock at once.
    pub fn work_done(&mut self, thread: usize, is_on_core: impl Fn(usize) -> bool) {
        if matches!(
            self.workload.phases[self.threads[thread].phase],
            Phase::Locked { .. }
        ) {
            debug_assert_eq!(self.lock_holder, Some(thread));
            let running = self.lock_queue.iter().position(|&waiter| is_on_core(waiter));
            let next = match running {
                Some(place) => self.lock_queue.remove(place),
                None => self.lock_queue.pop_front(),
            };
            self.lock_holder = next;
            if let Some(next) = next {
                self.hold_lock(next);
            }
        }
        self.advance(thread);
    }

    /// The threads that would run if they had a core.
    pub fn is_runnable(&self, thread: usize) -> bool {
        self.threads[thread].doing != Doing::Blocked
    }

    fn advance(&mut self, thread: usize) {
        let state = &mut self.threads[thread];
        state.phase += 1;
        if state.phase == self.workload.phases.len() {
            state.phase = 0;
            state.rounds += 1;
        }
        self.begin(thread);
    }

    /// Begins the phase a thread is at; phases that take no time are passed through. The depth is bounded by the
    /// phases of a round, as each round takes time.
    fn begin(&mut self, thread: usize) {
        let wait = Doing::Spinning {
            left_ns: self.workload.spin_ns,
        };
        let wait = if self.workload.spin_ns == 0 {
            Doing::Blocked
        } else {
            wait
        };
        match self.workload.phases[self.threads[thread].phase] {
            Phase::Compute {
                work_ns,
                varies_permille,
            } => {
                let state = &self.threads[thread];
                let inputs = [self.seed, thread as u64, state.rounds, state.phase as u64];
                let work_ns = Workload::vary(work_ns, varies_permille, &inputs);
                self.work(thread, work_ns);
            }
            Phase::Barrier => {
                self.threads[thread].doing = wait;
                self.at_barrier.push(thread);
                if self.at_barrier.len() == self.threads.len() {
                    for released in std::mem::take(&mut self.at_barrier) {
                        self.advance(released);
                    }
                }
            }
            Phase::Locked { .. } if self.lock_holder.is_none() => {
                self.lock_holder = Some(thread);
                self.hold_lock(thread);
            }
            Phase::Locked { .. } => {
                self.threads[thread].doing = wait;
                self.lock_queue.push_back(thread);
            }
        }
    }

    fn hold_lock(&mut self, thread: usize) {
        let Phase::Locked { work_ns } = self.workload.phases[self.threads[thread].phase] else {
            unreachable!("only a thread at a locked phase gets the lock");
        };
        self.work(thread, work_ns);
    }

    /// Work of no length is given the least length there is, so that every phase ends in the engine.
    fn work(&mut self, thread: usize, work_ns: u64) {
        self.threads[thread].doing = Doing::Working {
            left: (work_ns * PER_NS).max(1),
        };
    }
}
