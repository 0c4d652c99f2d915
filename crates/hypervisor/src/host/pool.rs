//! Threads of this program that advance virtual machines side by side.
//!
//! Each thread has every `n`th virtual machine. A round begins when the caller hands out its limits and ends when every
//! thread has said that it is done; virtual machines share nothing meanwhile, so the division changes no result.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use crate::costs::HostCosts;
use crate::cycle::Cycle;
use crate::host::sidecores::{Machines, locked};

/// The limits of a round.
#[derive(Clone, Copy)]
struct Round {
    /// How far virtual machines go on.
    until: Cycle,
    /// Up to when all answers are known.
    floor: Cycle,
}

/// The threads of a host.
pub(super) struct Pool {
    machines: Machines,
    costs: Arc<HostCosts>,
    helpers: Vec<Helper>,
}

struct Helper {
    rounds: Option<Sender<Round>>,
    done: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Pool {
    pub fn new(threads: usize, machines: &Machines, costs: &Arc<HostCosts>) -> Pool {
        let threads = threads.clamp(1, machines.len());
        let helpers = (1..threads)
            .map(|number| {
                let mine: Machines = machines.iter().skip(number).step_by(threads).cloned().collect();
                let costs = Arc::clone(costs);
                let (rounds, orders) = channel::<Round>();
                let (says, done) = channel();
                let thread = std::thread::spawn(move || {
                    for round in orders {
                        advance(&mine, &costs, round);
                        if says.send(()).is_err() {
                            return;
                        }
                    }
                });
                Helper {
                    rounds: Some(rounds),
                    done,
                    thread: Some(thread),
                }
            })
            .collect();
        let machines = machines.iter().step_by(threads).cloned().collect();
        Pool {
            machines,
            costs: Arc::clone(costs),
            helpers,
        }
    }

    /// Advances every virtual machine up to `until`, or to where it cannot go on; `floor` is the time up to which all
    /// answers are known.
    ///
    /// # Panics
    /// If a helper has panicked.
    pub fn advance(&self, until: Cycle, floor: Cycle) {
        let round = Round { until, floor };
        for helper in &self.helpers {
            let rounds = helper.rounds.as_ref().expect("the pool is in use");
            rounds.send(round).expect("a helper lives as long as the pool");
        }
        advance(&self.machines, &self.costs, round);
        for helper in &self.helpers {
            helper.done.recv().expect("a helper has finished its round");
        }
    }
}

fn advance(machines: &Machines, costs: &HostCosts, round: Round) {
    for machine in machines {
        locked(machine).advance(costs, round.until, round.floor);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for helper in &mut self.helpers {
            helper.rounds = None;
            if let Some(thread) = helper.thread.take() {
                // A panic of the thread was reported where it happened.
                let _ = thread.join();
            }
        }
    }
}
