//! `zerowait.gates`: the gates experiment of the CEFOS paper on real cores.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use sidestep_lab::{
    About, Axis, Better, Context, Experiment, Figure, Finding, Input, Inputs, Measure, Measurement, Metric,
    Nature, Number, Point, PointError, Row, Side, Verdict,
};
use sidestep_zerowait::cores::{Config, Cores, IdlePolicy, Shutdown};
use sidestep_zerowait::{Graph, Mode, OnPanic, Policy, Port};

use super::stopwatch::{Sample, in_turns};

/// Lock-or-retry against a software queue, from 5 callers to 10,000.
pub struct Gates;

impl Experiment for Gates {
    fn about(&self) -> About {
        About {
            name: "zerowait.gates",
            question: "What does a software queue in front of a gate save on real cores?",
            source: "Kusakabe et al., CEFOS, section 4, figures 7 to 11 (there on a simulated FUCE chip)",
            setting: "All callers are ready at once and make one call each. The gate's thread computes for a moment; \
                      whoever finds the gate taken continues to itself and tries again, or is queued. A core's queue \
                      is first in, first out, as the chip's is.",
            baseline: "lock-or-retry: a refused caller continues to itself",
            sidestep: "a software queue: a refused caller's entry waits at the gate",
            metric: Metric {
                name: "processor time a call",
                unit: "ns",
                better: Better::Lower,
            },
            nature: Nature::Measured,
            takes: (Duration::from_secs(5), Duration::from_secs(60)),
            reading: "Processor time of all cores, divided by the calls. Without a queue each turn of the gate costs \
                      every waiting caller one vain start, so a call's price grows with the number of callers; with \
                      one it does not. On several cores callers try while the gate runs elsewhere, so they try more \
                      often.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        vec![
            Input::integers("callers", &[5, 10, 20, 40, 60, 80, 320, 1250, 5000, 10_000])
                .between(1, 12_000)
                .quick("5,80,1250")
                .unit("callers")
                .about("how many callers come to the gate at once")
                .source("CEFOS 4.1: 5 to 80; beyond: chosen, to see the law go on")
                .axis(),
            Input::integers("cores", &[1, 2])
                .between(1, 64)
                .quick("1")
                .unit("cores")
                .about("how many cores run the threads")
                .source("chosen: one, and several")
                .axis(),
            Input::integer("work", 20)
                .between(0, 1_000_000)
                .unit("steps")
                .about("what the gate's thread computes in each call, in steps of a multiplicative hash")
                .source("chosen: some tens of nanoseconds, a short critical section"),
            Input::integer("rounds", 5)
                .between(1, 1000)
                .quick("3")
                .about("how often each side runs, in turns; the median counts")
                .source("chosen: enough for a median"),
        ]
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        let callers = inputs.integers("callers");
        let cores = inputs.integers("cores");
        let point = |&cores: &i64, &callers: &i64| Point::new().at("cores", cores).at("callers", callers);
        Ok(cores
            .iter()
            .flat_map(|cores| callers.iter().map(move |callers| point(cores, callers)))
            .collect())
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        let callers = point.value("callers").count();
        let cores = point.value("cores").count();
        let work = inputs.count("work");
        // Few callers make a short round: so many in a row that what starting and ending them costs does not show. A
        // round without a queue takes as long as the square of its callers.
        let calls = (2_000_000 / (callers * callers)).clamp(1, (20_000 / callers).max(1));
        let mut eager = Machine::start(Policy::LockOrRetry, callers, cores, work)?;
        let mut queued = Machine::start(
            Policy::Queue {
                capacity: callers as usize,
            },
            callers,
            cores,
            work,
        )?;
        let [(baseline, first), (sidestep, second)] = in_turns(
            inputs.count("rounds"),
            context,
            &mut || Ok(eager.round(calls)),
            &mut || Ok(queued.round(calls)),
        )?;
        Ok(Measurement::new(
            first.explain(eager.finish(baseline)),
            second.explain(queued.finish(sidestep)),
        ))
    }

    fn findings(&self, _: &Inputs, rows: &[Row]) -> Vec<Finding> {
        let range = "5 to 80 callers on one core";
        let at = |callers: i64, counter: &str, baseline: bool| -> Option<Number> {
            let row = rows.iter().find(|row| {
                row.point.value("cores").integer() == 1 && row.point.value("callers").integer() == callers
            })?;
            let measurement = row.measurement()?;
            let side = if baseline {
                &measurement.baseline
            } else {
                &measurement.sidestep
            };
            side.find(counter).map(|counter| counter.value)
        };
        let mut findings = Vec::new();
        if let (Some(few), Some(many)) = (at(5, RETRIES, true), at(80, RETRIES, true)) {
            // (80 - 1) / (5 - 1) is what one vain start for each waiting caller and turn would give.
            let growth = many.over(few);
            let linear = growth.is_some_and(|growth| growth >= Number::from(8) && growth <= Number::from(40));
            findings.push(Finding {
                value: None,
                about: format!("self-continuations a caller without a queue, {range}"),
                stated: "increase linearly with the callers".to_owned(),
                source: "CEFOS 4.1, figure 9".to_owned(),
                ours: format!("{} at 5, {} at 80", few.to_significant(3), many.to_significant(3)),
                verdict: Verdict::of(linear),
                because: "each turn of the gate starts every waiting caller once in vain".to_owned(),
            });
        }
        if let (Some(few), Some(many)) = (at(5, RETRIES, false), at(80, RETRIES, false)) {
            let none = many <= few + Number::ONE;
            findings.push(Finding {
                value: None,
                about: format!("self-continuations a caller with a queue, {range}"),
                stated: "almost proportional to the calls in all, so constant for each".to_owned(),
                source: "CEFOS 4.2, figure 10".to_owned(),
                ours: format!("{} at 5, {} at 80", few.to_significant(3), many.to_significant(3)),
                verdict: Verdict::of(none),
                because: "a queued entry needs no further start; the paper's senders still continue to themselves once"
                    .to_owned(),
            });
        }
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        let callers = || Axis::new("callers", "callers", "callers").logarithmic();
        vec![
            Figure::lines(
                "Processor time a call (figures 8 and 11)",
                callers(),
                Measure::Value,
                "time a call",
                "ns",
            )
            .split_by(&["cores"])
            .logarithmic(),
            Figure::lines(
                "Self-continuations a caller (figures 9 and 10)",
                callers(),
                Measure::Counter(RETRIES),
                "self-continuations",
                "",
            )
            .split_by(&["cores"]),
        ]
    }
}

const RETRIES: &str = "self-continuations a call";

/// Callers and a gate on cores of their own.
struct Machine {
    cores: Cores,
    start: Port<u64>,
    callers: u64,
    calls: u64,
    done: mpsc::Receiver<()>,
    result: Arc<AtomicU64>,
}

impl Machine {
    fn start(policy: Policy, callers: u64, cores: u64, work: u64) -> Result<Machine, PointError> {
        let failed = |error: &dyn std::error::Error| PointError::Failed(error.to_string());
        let mut graph = Graph::new();
        let release = graph.declare::<u64>("release", Mode::User);
        let caller = graph.declare::<(u64, u64)>("caller", Mode::User);
        let gate = graph.declare_gate::<(u64, u64)>("gate", Mode::KernelInterface, policy, OnPanic::Poison);
        let to_caller = graph.edge(release, caller).map_err(|error| failed(&error))?;
        let again = graph.edge(caller, caller).map_err(|error| failed(&error))?;
        let enter = graph.entry(caller, gate).map_err(|error| failed(&error))?;
        let next = graph.edge(gate, release).map_err(|error| failed(&error))?;
        let start = graph.port(release);
        graph.define(release, move |cx, rounds| {
            for caller in 0..callers {
                cx.continue_to(to_caller, (caller, rounds));
            }
        });
        graph.define(caller, move |cx, call| {
            if let Err(refused) = cx.enter(enter, call) {
                cx.retry(again, refused.value);
            }
        });
        let (finished, done) = mpsc::channel();
        let result = Arc::new(AtomicU64::new(0));
        let (shown, mut hash, mut served) = (Arc::clone(&result), 0u64, 0);
        graph.define_gate(gate, move |cx, (caller, rounds)| {
            for step in 0..work {
                hash = (hash ^ caller ^ step).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            }
            served += 1;
            if served == callers {
                served = 0;
                if rounds > 1 {
                    cx.continue_to(next, rounds - 1);
                } else {
                    shown.store(hash, Ordering::Relaxed);
                    // The receiver is there until the machine is finished.
                    let _ = finished.send(());
                }
            }
        });
        let config = Config {
            cores: cores as usize,
            cores_max: cores as usize,
            // Twice the callers: the queue stays first in, first out.
            queue_capacity: (callers as usize * 2 + 64).next_power_of_two(),
            idle: IdlePolicy::SHARED,
            ..Config::default()
        };
        let cores = Cores::start(graph.build().map_err(|error| failed(&error))?, config)
            .map_err(|error| failed(&error))?;
        Ok(Machine {
            cores,
            start,
            callers,
            calls: 0,
            done,
            result,
        })
    }

    /// All callers call once, `times` times in a row.
    fn round(&mut self, times: u64) -> Sample {
        self.calls += times * self.callers;
        Sample::of(times * self.callers, || {
            self.cores.send(self.start, times).expect("the cores are idle");
            self.done
                .recv()
                .expect("the gate's thread lives as long as the cores");
        })
    }

    fn finish(self, sample: Sample) -> Side {
        let report = self.cores.shutdown(Shutdown::Drain {
            at_most: Duration::from_secs(60),
        });
        let retried: u64 = report.cores.iter().map(|core| core.retried).sum();
        let gate = &report.gates[0];
        std::hint::black_box(self.result.load(Ordering::Relaxed));
        Side::new(sample.processor_per_operation())
            .counter("time of day a call", sample.wall_per_operation(), "ns")
            .counter(RETRIES, Number::ratio(retried, self.calls), "")
            .counter("refused a call", Number::ratio(gate.pushed_back, self.calls), "")
            .count("longest queue", gate.longest_queue)
    }
}
