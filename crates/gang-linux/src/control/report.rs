//! What a run achieved: time given, fairness, waste, overhead, and the gain over the baseline with its interval.

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};

use serde::Serialize;
use sidestep_gang::CoscheduledSets;

use super::host::{Host, idle_ns};
use super::program::{Program, Thread};

/// What is counted at a moment.
#[derive(Clone, Debug)]
struct Count {
    time: Instant,
    idle_ns: u64,
    /// For each program: steps it counted, time it ran, time it waited for a core.
    programs: Vec<(u64, u64, u64)>,
}

/// What a program did in an epoch.
#[derive(Clone, Debug)]
struct Epoch {
    is_baseline: bool,
    seconds: f64,
    idle_ns: u64,
    programs: Vec<(u64, u64, u64)>,
}

/// The books of a run.
pub(super) struct Accounts {
    last: Option<Count>,
    epochs: Vec<Epoch>,
    slots: u64,
    changes: u64,
    switching: Duration,
    passed_over: BTreeSet<i32>,
    sets: Vec<(f64, CoscheduledSets)>,
    /// Seconds of computing that this process had used when the run began.
    own_time: f64,
    /// When the controller had used that.
    began: Instant,
}

/// One program in a report.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramReport {
    /// Its name.
    pub name: String,
    /// Steps it counted under the policy, a second; absent for programs that count none.
    pub steps_per_second: Option<f64>,
    /// Cores it used on average under the policy.
    pub cores_used: f64,
    /// The part of the time its threads wanted a core and had one.
    pub served: f64,
    /// How many times faster than under the baseline, if there was one.
    pub speedup: Option<Gain>,
    /// The exit code, if it was started here and ended by itself.
    pub exit_code: Option<i32>,
}

/// A mean of pairs of epochs, with a 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// The mean.
    pub mean: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
    /// How many pairs of epochs.
    pub pairs: usize,
}

/// What a run achieved.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Seconds in all.
    pub seconds: f64,
    /// Cores that were scheduled.
    pub cores: usize,
    /// The programs.
    pub programs: Vec<ProgramReport>,
    /// How many times faster than under the baseline, over all programs (the harmonic mean of their speedups, which is
    /// the sum of execution times under the baseline over that under the policy for programs of equal length).
    pub gain: Option<Gain>,
    /// Jain's index of how evenly programs were served: 1 is even, 1/n is one program alone.
    pub fairness: f64,
    /// The part of the cores' time that was idle under the policy.
    pub idle: f64,
    /// The part of one core that the controller used.
    pub overhead: f64,
    /// Mean microseconds that changing slots took.
    pub switch_us: f64,
    /// The length of a slot at the end, in milliseconds.
    pub slot_ms: f64,
    /// Slots.
    pub slots: u64,
    /// Changes of a thread's scheduling.
    pub changes: u64,
    /// Threads left alone because of their real-time class.
    pub passed_over: Vec<i32>,
    /// The sets of partial coscheduling, with the second from which; the last few.
    pub sets: Vec<(f64, CoscheduledSets)>,
    /// What progress was measured by.
    pub progress: &'static str,
    /// The epochs one after another: whether the baseline ruled, and for how many seconds.
    pub epochs: Vec<(bool, f64)>,
}

/// Changes of sets that a report keeps.
const SETS_MAX: usize = 16;

impl Accounts {
    pub fn new() -> Self {
        Self {
            last: None,
            epochs: Vec::new(),
            slots: 0,
            changes: 0,
            switching: Duration::ZERO,
            passed_over: BTreeSet::new(),
            sets: Vec::new(),
            began: Instant::now(),
            own_time: own_time(),
        }
    }

    pub fn begin(&mut self, host: &Host, programs: &[Program], threads: &[Thread]) {
        self.last = Some(count(host, programs, threads));
    }

    pub fn end_epoch(&mut self, is_baseline: bool, host: &Host, programs: &[Program], threads: &[Thread]) {
        let now = count(host, programs, threads);
        if let Some(last) = self.last.replace(now.clone()) {
            let difference = |(now, before): (&(u64, u64, u64), &(u64, u64, u64))| {
                (
                    now.0.saturating_sub(before.0),
                    now.1.saturating_sub(before.1),
                    now.2.saturating_sub(before.2),
                )
            };
            self.epochs.push(Epoch {
                is_baseline,
                seconds: (now.time - last.time).as_secs_f64(),
                idle_ns: now.idle_ns.saturating_sub(last.idle_ns),
                programs: now.programs.iter().zip(&last.programs).map(difference).collect(),
            });
        }
    }

    pub fn switch(&mut self, changes: usize, took: Duration) {
        self.slots += 1;
        self.changes += changes as u64;
        self.switching += took;
    }

    pub fn mean_switch(&self) -> Duration {
        self.switching
            .checked_div(self.slots.try_into().unwrap_or(u32::MAX))
            .unwrap_or_default()
    }

    pub fn pass_over(&mut self, thread: i32) {
        self.passed_over.insert(thread);
    }

    pub fn sets_changed(&mut self, at: Duration, sets: &CoscheduledSets) {
        if self.sets.len() == SETS_MAX {
            self.sets.remove(0);
        }
        self.sets.push((at.as_secs_f64(), sets.clone()));
    }

    pub fn report(
        &mut self,
        host: &Host,
        programs: &mut [Program],
        threads: &[Thread],
        elapsed: Duration,
        slot: Duration,
    ) -> Report {
        if self.epochs.is_empty() {
            self.end_epoch(false, host, programs, threads);
        }
        let own: Vec<&Epoch> = self.epochs.iter().filter(|epoch| !epoch.is_baseline).collect();
        let seconds: f64 = own
            .iter()
            .map(|epoch| epoch.seconds)
            .sum::<f64>()
            .max(f64::MIN_POSITIVE);
        let counts_steps = |program: usize| self.epochs.iter().any(|epoch| epoch.programs[program].0 > 0);
        let all_count = (0..programs.len()).all(counts_steps);
        let sum = |program: usize, part: fn(&(u64, u64, u64)) -> u64| {
            own.iter()
                .map(|epoch| part(&epoch.programs[program]))
                .sum::<u64>() as f64
        };
        let reports: Vec<ProgramReport> = programs
            .iter_mut()
            .enumerate()
            .map(|(number, program)| {
                let (ran, waited) = (sum(number, |count| count.1), sum(number, |count| count.2));
                ProgramReport {
                    name: program.name.clone(),
                    steps_per_second: counts_steps(number).then(|| sum(number, |count| count.0) / seconds),
                    cores_used: ran / 1e9 / seconds,
                    served: if ran + waited > 0.0 {
                        ran / (ran + waited)
                    } else {
                        1.0
                    },
                    speedup: interval(&self.speedups(number, all_count)),
                    exit_code: program.exit_code(),
                }
            })
            .collect();
        let served: Vec<f64> = reports.iter().map(|report| report.served).collect();
        let idle: u64 = own.iter().map(|epoch| epoch.idle_ns).sum();
        Report {
            seconds: elapsed.as_secs_f64(),
            cores: host.cores.len(),
            gain: interval(&self.gains(programs.len(), all_count)),
            fairness: fairness(&served),
            idle: idle as f64 / 1e9 / seconds / host.cores.len() as f64,
            overhead: (own_time() - self.own_time)
                / self.began.elapsed().as_secs_f64().max(f64::MIN_POSITIVE),
            switch_us: self.mean_switch().as_secs_f64() * 1e6,
            slot_ms: slot.as_secs_f64() * 1e3,
            slots: self.slots,
            changes: self.changes,
            passed_over: self.passed_over.iter().copied().collect(),
            sets: self.sets.clone(),
            progress: if all_count {
                "steps that the programs count"
            } else {
                "time on a core"
            },
            programs: reports,
            epochs: self
                .epochs
                .iter()
                .map(|epoch| (epoch.is_baseline, epoch.seconds))
                .collect(),
        }
    }

    /// Rates under the policy over those under the baseline, of neighbouring epochs.
    fn speedups(&self, program: usize, by_steps: bool) -> Vec<f64> {
        let rate = |epoch: &Epoch| {
            let (steps, ran_ns, _) = epoch.programs[program];
            (if by_steps { steps } else { ran_ns }) as f64 / epoch.seconds
        };
        let pairs = self
            .epochs
            .chunks_exact(2)
            .filter(|pair| !pair[0].is_baseline && pair[1].is_baseline);
        let ratios = pairs.map(|pair| (rate(&pair[0]), rate(&pair[1])));
        ratios
            .filter(|&(own, base)| own > 0.0 && base > 0.0)
            .map(|(own, base)| own / base)
            .collect()
    }

    fn gains(&self, programs: usize, by_steps: bool) -> Vec<f64> {
        let speedups: Vec<Vec<f64>> = (0..programs)
            .map(|program| self.speedups(program, by_steps))
            .collect();
        let pairs = speedups.iter().map(Vec::len).min().unwrap_or(0);
        let mean = |pair: usize| programs as f64 / speedups.iter().map(|own| 1.0 / own[pair]).sum::<f64>();
        (0..pairs).map(mean).collect()
    }
}

fn count(host: &Host, programs: &[Program], threads: &[Thread]) -> Count {
    let of_program = |(number, program): (usize, &Program)| {
        let own = || threads.iter().filter(|thread| thread.program == number);
        // Of a thread that ended the last that was seen.
        let now = |thread: &Thread| {
            let (ran, waited) = thread.name.run_and_wait_ns().unwrap_or(thread.run_and_wait_ns);
            (ran + thread.before_it_ns.0, waited + thread.before_it_ns.1)
        };
        (
            program.steps(),
            own().map(|thread| now(thread).0).sum(),
            own().map(|thread| now(thread).1).sum(),
        )
    };
    Count {
        time: Instant::now(),
        idle_ns: idle_ns(&host.cores),
        programs: programs.iter().enumerate().map(of_program).collect(),
    }
}

/// Seconds of computing that this process has used.
fn own_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn fairness(shares: &[f64]) -> f64 {
    let (sum, squares) = (
        shares.iter().sum::<f64>(),
        shares.iter().map(|share| share * share).sum::<f64>(),
    );
    if squares > 0.0 {
        sum * sum / (shares.len() as f64 * squares)
    } else {
        1.0
    }
}

/// Two-sided 95 % quantiles of Student's distribution, by degrees of freedom from 1; beyond, the normal one.
const STUDENT: [f64; 20] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086,
];

/// The mean of some values and its interval; none of fewer than two.
fn interval(values: &[f64]) -> Option<Gain> {
    let pairs = values.len();
    if pairs < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / pairs as f64;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (pairs - 1) as f64;
    let quantile = STUDENT.get(pairs - 2).copied().unwrap_or(1.96);
    let half = quantile * (variance / pairs as f64).sqrt();
    Some(Gain {
        mean,
        low: mean - half,
        high: mean + half,
        pairs,
    })
}

impl fmt::Display for Gain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            mean,
            low,
            high,
            pairs,
        } = self;
        write!(
            formatter,
            "{mean:.3}x (95 % of {low:.3} to {high:.3}, {pairs} pairs of epochs)"
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "{:.1} s on {} cores, {} slots of {:.0} ms",
            self.seconds, self.cores, self.slots, self.slot_ms
        )?;
        for program in &self.programs {
            write!(
                formatter,
                "  {:<16} {:.2} cores",
                program.name, program.cores_used
            )?;
            write!(
                formatter,
                ", served {:.0} % of its demand",
                program.served * 100.0
            )?;
            if let Some(rate) = program.steps_per_second {
                write!(formatter, ", {rate:.1} steps/s")?;
            }
            if let Some(speedup) = &program.speedup {
                write!(formatter, ", {speedup}")?;
            }
            writeln!(formatter)?;
        }
        if let Some(gain) = &self.gain {
            writeln!(formatter, "gain over the baseline, by {}: {gain}", self.progress)?;
        }
        for (from, sets) in self.sets.iter().rev().take(1) {
            writeln!(formatter, "sets from {from:.1} s: {sets}")?;
        }
        writeln!(
            formatter,
            "fairness {:.3} (1 is even), cores idle {:.1} %",
            self.fairness,
            self.idle * 100.0
        )?;
        if !self.passed_over.is_empty() {
            writeln!(
                formatter,
                "left alone, being in a real-time class: threads {:?}",
                self.passed_over
            )?;
        }
        write!(
            formatter,
            "controller: {:.2} % of a core, {:.0} us to change slots, {} changes",
            self.overhead * 100.0,
            self.switch_us,
            self.changes
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_equal_values_is_a_point_and_one_value_has_none() {
        assert_eq!(interval(&[1.5]), None);
        assert_eq!(
            interval(&[1.5, 1.5]),
            Some(Gain {
                mean: 1.5,
                low: 1.5,
                high: 1.5,
                pairs: 2
            })
        );
        let wide = interval(&[1.0, 2.0, 3.0]).expect("three values");
        assert!((wide.high - 2.0 - 4.303 / 3.0_f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn fairness_is_one_for_equal_shares_and_a_half_for_one_of_two() {
        assert!((fairness(&[0.3, 0.3]) - 1.0).abs() < 1e-9);
        assert!((fairness(&[1.0, 0.0]) - 0.5).abs() < 1e-9);
    }
}
