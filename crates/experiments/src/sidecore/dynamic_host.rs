//! A core of this machine that serves its guests while that pays, and is theirs when it does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sidestep_hypervisor::calibration::allowed_cores;
use sidestep_hypervisor::host::dynamic::{Load, SidecorePolicy};
use sidestep_lab::{
    About, Axis, Better, Context, Experiment, Figure, Input, Inputs, Measure, Measurement, Metric, Nature,
    Number, Point, PointError, Side,
};
use sidestep_sidecall::sidecore::{Sidecore, pin};
use sidestep_sidecall_kvm::guest::Way;
use sidestep_sidecall_kvm::kind::{Kind, picoseconds};
use sidestep_sidecall_kvm::machine::{Guest, Order};
use sidestep_sidecall_kvm::operation::Operation;
use sidestep_sidecall_kvm::service::GuestService;

use super::unavailable;
use crate::failed;
use crate::zerowait::processor_ns;

/// How often the monitor decides.
const EPOCH: Duration = Duration::from_millis(5);
/// Requests of an order: the monitor changes its mind between orders.
const ORDER_CALLS: u64 = 20;
/// Rounds of the loop in an order, some milliseconds.
const PAUSE_PART: u64 = 10_000_000;
/// Calls that measure an exit and a sidecall.
const TRIAL_CALLS: u64 = 100;

/// Load that comes and goes, on this machine.
pub struct DynamicHost;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    None,
    Always,
    Dynamic,
}

impl Experiment for DynamicHost {
    fn about(&self) -> About {
        About {
            name: "sidecore.dynamic-host",
            question: "Does a core of this machine that serves guests only while that pays get more done?",
            source: "none: Kumar et al., The Sidecore Approach, VI, announce it as future work and measure nothing",
            setting: "Guests of KVM alternate between bursts of requests and computing. One guest leaves the second \
                      core to a sidecore; two guests want both cores, and share the first while a sidecore has the \
                      second. `always` has a sidecore that polls there from beginning to end, `dynamic` decides every \
                      5 ms by the policy of the modelled host, from the requests of the last epoch and what an exit \
                      and a sidecall took before.",
            baseline: "no sidecore: every request leaves the guest",
            sidestep: "the policy of the point",
            metric: Metric {
                name: "requests for each second of a core",
                unit: "1/s",
                better: Better::Higher,
            },
            nature: Nature::Measured,
            takes: (Duration::from_secs(10), Duration::from_secs(60)),
            reading: "Core time is that of all threads of the run, the polling ones included: what the policy burns \
                      counts against it. `time` says how long the guests took. Where exits are dear, as under a KVM \
                      that is nested, sidecalls pay even for a core that a guest wants.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        vec![
            Input::choices("policy", &["always", "dynamic"])
                .about("when a core serves")
                .source("chosen: the two that there are beside none")
                .axis(),
            Input::integers("guests", &[1, 2])
                .between(1, 8)
                .about("guests of one processor")
                .source("chosen: fewer than cores, and as many on two cores")
                .axis(),
            Input::integer("burst", 1000)
                .between(20, 1_000_000)
                .about("requests of a burst, in twenties")
                .source("chosen: several epochs by exit"),
            Input::integers("pause", &[10_000_000, 100_000_000])
                .between(0, 10_000_000_000)
                .quick("10000000")
                .about("rounds of the loop between bursts, of two instructions")
                .source("chosen: shorter than a burst by exit, and as long")
                .axis(),
            Input::integer("bursts", 10)
                .between(1, 1000)
                .quick("4")
                .about("bursts of each guest, by each side")
                .source("chosen: long against the start"),
        ]
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        Ok(inputs.sweep(&["guests", "pause", "policy"]))
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        let policy = match point.value("policy").text() {
            "always" => Policy::Always,
            _ => Policy::Dynamic,
        };
        let cores = allowed_cores().map_err(unavailable)?;
        let &[first, second, ..] = cores.as_slice() else {
            let reason = "a sidecore needs a second core, and this process may use one";
            return Err(PointError::Unavailable(reason.to_owned()));
        };
        let setting = Setting {
            cores: [first, second],
            guests: point.value("guests").count() as usize,
            orders: inputs.count("burst").div_ceil(ORDER_CALLS),
            pause: point.value("pause").count(),
            bursts: inputs.count("bursts"),
        };
        let run = |policy| {
            // Threads of its own are pinned, so that the caller may run where it could before.
            std::thread::scope(|scope| {
                let ran = scope.spawn(|| setting.run(policy, context)).join();
                ran.unwrap_or_else(|_| Err(PointError::Panicked("the monitor's thread".to_owned())))
            })
        };
        Ok(Measurement::new(run(Policy::None)?, run(policy)?))
    }

    fn figures(&self) -> Vec<Figure> {
        vec![Figure::bars(
            "Requests for each second of a core, on this machine",
            Axis::new("policy", "policy", ""),
            Measure::Ratio,
            "against no sidecore",
            "",
        )]
    }
}

struct Setting {
    cores: [usize; 2],
    guests: usize,
    orders: u64,
    pause: u64,
    bursts: u64,
}

/// What guests and monitor share.
struct State {
    /// Whether guests call the sidecore.
    serves: AtomicBool,
    /// Requests that were made.
    requests: AtomicU64,
    /// Guests that have work left.
    at_work: AtomicU64,
}

/// What a call takes, in nanoseconds.
struct Costs {
    exit: u64,
    sidecall: u64,
}

impl Setting {
    fn run(&self, policy: Policy, context: &Context) -> Result<Side, PointError> {
        let mut guests = (0..self.guests)
            .map(|_| Guest::new())
            .collect::<Result<Vec<_>, _>>()
            .map_err(unavailable)?;
        let callers = guests.iter().map(|guest| GuestService::new(guest.memory(), 0));
        let sidecore =
            Sidecore::start(Some(self.cores[1]), callers.collect(), u64::MAX).map_err(unavailable)?;
        let costs = self.costs(&mut guests[0])?;
        let state = Arc::new(State {
            serves: AtomicBool::new(policy == Policy::Always),
            requests: AtomicU64::new(0),
            at_work: AtomicU64::new(self.guests as u64),
        });
        if policy != Policy::Always {
            sidecore.set_looks(0);
        }
        let (start, before) = (Instant::now(), processor_ns());
        let (changes, outcomes) = std::thread::scope(|scope| {
            let threads: Vec<_> = guests
                .iter_mut()
                .enumerate()
                .map(|(index, guest)| {
                    let state = Arc::clone(&state);
                    scope.spawn(move || {
                        let done = self.guest(guest, self.cores[index % 2], &state, context);
                        state.at_work.fetch_sub(1, Ordering::Release);
                        done
                    })
                })
                .collect();
            let changes = match policy {
                Policy::Dynamic => self.decide(&state, &sidecore, &costs),
                _ => 0,
            };
            let outcomes: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
            (changes, outcomes)
        });
        for outcome in outcomes {
            outcome.unwrap_or_else(|_| Err(PointError::Panicked("a guest's thread".to_owned())))?;
        }
        let (elapsed, processor) = (start.elapsed().as_nanos() as u64, processor_ns() - before);
        let tally = sidecore.end();
        let requests = state.requests.load(Ordering::Acquire);
        let per_second = u128::from(requests) * 1_000_000_000 / u128::from(processor.max(1));
        Ok(Side::new(Number::ratio(per_second as u64, 1))
            .counter("time", Number::ratio(elapsed, 1_000_000), "ms")
            .counter("core time", Number::ratio(processor, 1_000_000), "ms")
            .count(
                "requests by sidecall",
                tally.served.saturating_sub(TRIAL_CALLS) as i64,
            )
            .count("changes of mind", changes))
    }

    /// What each way takes, as the first guest sees it.
    fn costs(&self, guest: &mut Guest) -> Result<Costs, PointError> {
        pin(self.cores[0]).map_err(unavailable)?;
        let kind = Kind::of(guest).map_err(unavailable)?;
        let mut measure = |way| {
            let order = Order {
                batch: TRIAL_CALLS,
                ..Order::one(way, Operation::Identify)
            };
            let outcome = guest.run(order).map_err(failed)?;
            Ok(picoseconds(outcome.ticks[0], kind.tick_ps) / 1000 / TRIAL_CALLS)
        };
        Ok(Costs {
            exit: measure(Way::Exit)?,
            sidecall: measure(Way::Sidecall)?,
        })
    }

    /// The life of a guest. Between orders it goes where the monitor wants it: off the core that serves.
    fn guest(
        &self,
        guest: &mut Guest,
        core: usize,
        state: &State,
        context: &Context,
    ) -> Result<(), PointError> {
        let mut has_left = None;
        let mut order = |order: fn(bool) -> Order, amount: u64| {
            if context.cancelled() {
                return Err(PointError::Cancelled);
            }
            let serves = state.serves.load(Ordering::Acquire);
            if has_left != Some(serves) {
                has_left = Some(serves);
                pin(if serves { self.cores[0] } else { core }).map_err(unavailable)?;
            }
            let order = order(serves);
            let order = match order.way {
                Way::Count => Order {
                    frame: amount,
                    ..order
                },
                _ => Order {
                    batch: amount,
                    ..order
                },
            };
            guest.run(order).map(drop).map_err(failed)
        };
        let calls = |serves| match serves {
            true => Order::one(Way::Sidecall, Operation::Identify),
            false => Order::one(Way::Exit, Operation::Identify),
        };
        let pause = |_| Order::one(Way::Count, Operation::Null);
        for _ in 0..self.bursts {
            for _ in 0..self.orders {
                order(calls, ORDER_CALLS)?;
                state.requests.fetch_add(ORDER_CALLS, Ordering::Relaxed);
            }
            let mut left = self.pause;
            while left > 0 {
                let part = left.min(PAUSE_PART);
                order(pause, part)?;
                left -= part;
            }
        }
        Ok(())
    }

    /// Gives the core to the sidecore and takes it back, until the guests are done; how often.
    fn decide(&self, state: &State, sidecore: &Sidecore<GuestService>, costs: &Costs) -> i64 {
        let policy = SidecorePolicy::Dynamic { most: 1 };
        let (mut now, mut changes) = (0, 0);
        let (mut seen, mut last) = (0, Instant::now());
        while state.at_work.load(Ordering::Acquire) > 0 {
            std::thread::sleep(EPOCH);
            let requests = state.requests.load(Ordering::Relaxed);
            let elapsed = last.elapsed();
            last += elapsed;
            let load = Load {
                cycles: elapsed.as_nanos() as u64,
                cores: self.cores.len(),
                runnable: state.at_work.load(Ordering::Relaxed) as usize,
                requests: requests - seen,
                requests_total: requests,
                serving_cycles: 0,
                round_trip_cycles: costs.exit,
                sidecall_cycles: costs.sidecall,
            };
            seen = requests;
            let next = policy.decide(&load, now, self.cores.len());
            if next != now {
                now = next;
                changes += 1;
                // A guest whose order has begun calls a sidecore that sleeps, and wakes it.
                sidecore.set_looks(if now > 0 { u64::MAX } else { 0 });
                state.serves.store(now > 0, Ordering::Release);
            }
        }
        changes
    }
}
