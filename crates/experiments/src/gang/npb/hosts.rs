//! The paper's two virtual machines on a host of the monitor's, with benchmarks in them, and what a run shows.

use std::sync::Arc;

use sidestep_gang::policy::IdleCores;
use sidestep_gang::{CoscheduledSets, Selection, TaskId};
use sidestep_hypervisor::Cycle;
use sidestep_hypervisor::contention::{Contention, Hierarchy};
use sidestep_hypervisor::costs::HostCosts;
use sidestep_hypervisor::host::coscheduling::Coscheduling;
use sidestep_hypervisor::host::dynamic::SidecorePolicy;
use sidestep_hypervisor::host::schedule::{PolicyName, Scheduling};
use sidestep_hypervisor::host::sidecores::{Executor, Polling, locked};
use sidestep_hypervisor::host::{Host, HostConfig, Report};
use sidestep_hypervisor::virtual_machine::{
    CoreModel, DetectionReport, DetectionSettings, VirtualMachine, VirtualMachineConfig, VirtualProcessor,
};
use sidestep_lab::{Context, Input, Inputs, Number, PointError, Side};

use crate::gang::scenario::{CHANGES_OF_SETS, UTILISATION, factor_of_the_paper};
use crate::hosts::{console, ended_wrong, run_to_end};

/// Cores of the host, and the vCPUs of both virtual machines.
pub const CORES: usize = 8;
pub const VCPUS: [usize; 2] = [8, 4];

/// About a tenth of a second of work.
const STRETCH_CYCLES: u64 = 2_000_000;

/// The benchmarks that the paper runs and this one has, and how many steps are a sample: all of IS and MG, and of the
/// others so many that about one, or a good part of one, falls between two evaluations.
const SAMPLES: &[(&str, u64)] = &[
    ("bt", 4),
    ("cg", 1),
    ("ep", 4),
    ("ft", 1),
    ("is", 10),
    ("lu", 8),
    ("mg", 4),
    ("sp", 6),
    ("ua", 1),
];
/// Their names.
pub const KERNELS: &[&str] = &["bt", "cg", "ep", "ft", "is", "lu", "mg", "sp", "ua"];

/// What VM1 runs: instances, and threads of each.
pub fn instances(load: &str) -> (usize, usize) {
    match load {
        "single" => (1, 4),
        "double" => (2, 4),
        "quad" => (4, 2),
        other => unreachable!("{other} is not a load"),
    }
}

/// The sets of VM1 that the load makes; vCPUs without a thread are alone.
pub fn given(load: &str) -> CoscheduledSets {
    let (count, threads) = instances(load);
    let set = |first: usize| (first..first + threads).map(TaskId::new).collect();
    let mut sets: Vec<Vec<TaskId>> = (0..count).map(|instance| set(instance * threads)).collect();
    sets.extend((count * threads..VCPUS[0]).map(|alone| vec![TaskId::new(alone)]));
    CoscheduledSets::new(sets).expect("a partition")
}

/// How vCPUs are scheduled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Virtual machines as a whole.
    Full,
    /// By the sets of the load.
    Given,
    /// By sets that are found.
    Found(Selection),
    /// Not coordinated.
    None,
}

impl Policy {
    /// The policy of a name.
    pub fn of(name: &str) -> Policy {
        match name {
            "given" => Policy::Given,
            "found-1.5" => Policy::Found(factor_of_the_paper()),
            "found" => Policy::Found(Selection::Modularity),
            "none" => Policy::None,
            other => unreachable!("{other} is not a policy"),
        }
    }
}

/// The benchmarks that an experiment runs.
pub fn kernels() -> Input {
    Input::choices("kernels", KERNELS)
        .quick("is,lu")
        .about("the benchmark in both virtual machines")
        .source("Partial Coscheduling, Table 1")
        .axis()
}

/// The inputs that every run has.
pub fn inputs() -> Vec<Input> {
    vec![
        Input::choice("costs", &["xeon", "itanium2-vti"])
            .about("the table of what transitions cost, with the clock")
            .source("the preset nearest to the paper's Xeons, with 2.8 GHz; the guests are programs for Itanium"),
        Input::integer("cache-divisor", 64)
            .between(1, 512)
            .about("by how much caches are smaller than the paper's, as the benchmarks are")
            .source(
                "chosen: a power of two near the 53 by which CG of class B has more rows than of class S, the least of \
                 all; LU, SP and BT have 614 times as many points, and MG 512 times",
            )
            .assumed()
            .range("16", "256"),
        Input::duration("slot", 100_000)
            .lasting(10_000, 10_000_000)
            .about("the length of a scheduling slot")
            .source("chosen: some ms, as Linux has, by the divisor of the caches: refilling one is the same share of a slot")
            .assumed(),
        Input::integer("rounds", 20)
            .between(1, 1_000_000)
            .about("rounds, in which pages are taken away, between two evaluations")
            .source("chosen: some for each slot in which a vCPU runs")
            .assumed(),
        Input::integer("sample", 16)
            .between(1, 8192)
            .about("pages that a round takes away from a vCPU at the most")
            .source("chosen: half of the monitor's default, of guests with some hundred pages")
            .assumed(),
        Input::integer("evaluations", 10)
            .between(1, 1_000_000)
            .about("evaluations of the sets in the time that the benchmark takes under full coscheduling")
            .source(
                "Partial Coscheduling 4: every five seconds; it gives no times of its runs, and those of class B lie \
                 around ten times as long",
            )
            .assumed(),
        Input::integer("evaluation-slots", 10)
            .between(1, 1_000_000)
            .about("the least time from one evaluation to the next, in slots")
            .source("chosen: each virtual machine has had its turn some times")
            .assumed(),
        Input::integer("start-up-percent", 50)
            .between(0, 10_000)
            .about(
                "how long after the benchmarks' initialisation what was seen until then is forgotten, in hundredths of \
                 the time between two evaluations",
            )
            .source("Partial Coscheduling 4: after starting the benchmark; here half an evaluation later")
            .assumed(),
        Input::integer("budget-permille", 50)
            .between(1, 1000)
            .about("the most that detection may cost, in thousandths of what vCPUs run")
            .source("chosen: five times the monitor's default, since runs are thousands of times shorter")
            .assumed(),
        Input::integer("workers", 1)
            .between(1, 64)
            .about("host threads that advance virtual machines; changes no result")
            .source("chosen: one is fastest for two virtual machines"),
    ]
}

/// Hosts of one experiment.
pub struct Hosts<'a> {
    inputs: &'a Inputs,
    costs: Arc<HostCosts>,
    /// The preset of what the cores share.
    name: &'a str,
    /// What they share; `None`: nothing.
    hierarchy: Option<Hierarchy>,
}

/// What the points of a benchmark and a load want of its run under full coscheduling.
pub struct Baseline {
    side: Side,
    /// When the benchmarks of VM1 were initialised, and what the one that took longest took from then on.
    initialised_ns: u64,
    longest_ns: u64,
}

impl Baseline {
    /// The point's side.
    pub fn side(&self) -> Side {
        self.side.clone()
    }
}

impl<'a> Hosts<'a> {
    /// Hosts whose cores share what a preset says; `ideal`: nothing.
    pub fn new(inputs: &'a Inputs, name: &'a str) -> Result<Hosts<'a>, String> {
        let costs = HostCosts::preset(inputs.text("costs")).map_err(|error| error.to_string())?;
        let hierarchy = match name {
            "ideal" => None,
            _ => Some(Hierarchy::preset(name).map_err(|error| error.to_string())?),
        };
        if !inputs.count("cache-divisor").is_power_of_two() {
            return Err(format!(
                "input `cache-divisor`: {} is no power of two",
                inputs.count("cache-divisor")
            ));
        }
        Ok(Hosts {
            inputs,
            costs: Arc::new(costs),
            name,
            hierarchy,
        })
    }

    /// The run of a benchmark under full coscheduling, which all policies are held against.
    pub fn baseline(
        &self,
        kernel: &str,
        load: &str,
        context: &Context<'_>,
    ) -> Result<Arc<Baseline>, PointError> {
        context.once(&format!("{} {kernel} {load}", self.name), || {
            let run = self.run(kernel, load, &Policy::Full, None, context)?;
            Ok(Baseline {
                side: run.side(),
                initialised_ns: run.initialised_ns(&self.costs),
                longest_ns: run.longest_ns(),
            })
        })
    }

    /// How sharing is found out. When the benchmarks are initialised is known from a run of the same without that: as
    /// the paper's authors did, what was seen until then is forgotten.
    pub fn detection(&self, selection: Selection, without: &Baseline) -> DetectionSettings {
        let slots_ns = self.inputs.duration_ns("slot") * self.inputs.count("evaluation-slots");
        let evaluation_ns = (without.longest_ns / self.inputs.count("evaluations")).max(slots_ns);
        DetectionSettings {
            period_ns: (evaluation_ns / self.inputs.count("rounds")).max(1),
            sample: self.inputs.count("sample") as usize,
            // As the default's part of the time between evaluations.
            window_ns: evaluation_ns / 5 * 4,
            start_up_ns: without.initialised_ns + evaluation_ns * self.inputs.count("start-up-percent") / 100,
            evaluation_ns,
            budget_permille: self.inputs.count("budget-permille") as u32,
            selection,
            ..DetectionSettings::default()
        }
    }

    /// Runs a benchmark in both virtual machines to its end.
    pub fn run(
        &self,
        kernel: &str,
        load: &str,
        policy: &Policy,
        detection: Option<DetectionSettings>,
        context: &Context<'_>,
    ) -> Result<Run, PointError> {
        let scheduling = match policy {
            Policy::Full => PolicyName::Gang,
            Policy::Given | Policy::Found(_) => PolicyName::Partial,
            Policy::None => PolicyName::Free,
        };
        let whole = CoscheduledSets::one(VCPUS[1]);
        let given = match policy {
            Policy::Given => vec![Some(given(load)), Some(whole)],
            Policy::Full | Policy::Found(_) | Policy::None => vec![None, None],
        };
        let mut host = self.host(kernel, load, CORES, scheduling, None, context)?;
        let failed = |error: String| PointError::Failed(error);
        host.coschedule(&Coscheduling {
            given,
            detection,
            idle_cores: IdleCores::Kept,
        })
        .map_err(|error| failed(error.to_string()))?;
        if let Some(hierarchy) = &self.hierarchy {
            let contention = Contention {
                hierarchy: hierarchy.clone(),
                cache_divisor: self.inputs.count("cache-divisor"),
            };
            host.contend(&contention)
                .map_err(|error| failed(error.to_string()))?;
        }
        self.finish(host, context)
    }

    /// Runs it with a core for each vCPU, which a model watches.
    pub fn watch(
        &self,
        kernel: &str,
        load: &str,
        model: Arc<dyn CoreModel>,
        context: &Context<'_>,
    ) -> Result<Run, PointError> {
        let cores = VCPUS.iter().sum();
        let host = self.host(kernel, load, cores, PolicyName::Free, Some(model), context)?;
        self.finish(host, context)
    }

    fn host(
        &self,
        kernel: &str,
        load: &str,
        cores: usize,
        policy: PolicyName,
        core_model: Option<Arc<dyn CoreModel>>,
        context: &Context<'_>,
    ) -> Result<Host, PointError> {
        let steps = SAMPLES
            .iter()
            .find(|(name, _)| *name == kernel)
            .map_or(1, |(_, steps)| *steps);
        let (count, threads) = instances(load);
        let instance = |threads: usize| format!("{kernel} S --threads {threads} --steps {steps}");
        let works = [vec![instance(threads); count].join(" + "), instance(VCPUS[1])];
        let machines: Result<Vec<_>, _> = (works.into_iter().enumerate())
            .map(|(index, parameters)| {
                let config = VirtualMachineConfig {
                    processors: VCPUS[index],
                    memory: 64 << 20,
                    parameters,
                    ..VirtualMachineConfig::new(&format!("VM{}", index + 1))
                };
                VirtualMachine::new(index, config, sidestep_guests::ia64::BENCHMARKS)
            })
            .collect();
        let machines = machines.map_err(|error| PointError::Failed(error.to_string()))?;
        let config = HostConfig {
            cores,
            costs: Arc::clone(&self.costs),
            sidecores: SidecorePolicy::Fixed(0),
            polling: Polling {
                spin_cycles: 20_000,
                saves_energy: false,
            },
            scheduling: Scheduling {
                policy,
                slot_ns: self.inputs.duration_ns("slot"),
            },
            core_model,
            services: Executor::VirtualTime,
            threads: self.inputs.count("workers") as usize,
            trace: context.trace,
            nic: None,
        };
        Host::new(config, machines).map_err(|error| PointError::Failed(error.to_string()))
    }

    fn finish(&self, mut host: Host, context: &Context<'_>) -> Result<Run, PointError> {
        let report = run_to_end(&mut host, STRETCH_CYCLES, context)?;
        let mut times_ns = Vec::new();
        for index in 0..report.machines.len() {
            let console = console(&host, index);
            let times = console.lines().filter(|line| line.ends_with(" s"));
            let times: Option<Vec<u64>> = times.map(nanoseconds).collect();
            let times = times.filter(|times| !times.is_empty());
            times_ns.push(times.ok_or_else(|| ended_wrong(&host, &report, index))?);
        }
        Ok(Run {
            times_ns,
            report,
            host,
        })
    }
}

/// What a benchmark's last line says that it took: `lu.S: steps done, 4 threads, 0.012345 s`.
fn nanoseconds(line: &str) -> Option<u64> {
    let seconds = line.strip_suffix(" s")?.rsplit(' ').next()?;
    let (whole, millionths) = seconds.split_once('.')?;
    let digits = |text: &str| text.parse::<u64>().ok();
    Some(digits(whole)? * 1_000_000_000 + digits(millionths)? * 1000)
}

/// A run that has ended.
pub struct Run {
    /// Of each virtual machine what each instance took.
    times_ns: Vec<Vec<u64>>,
    pub report: Report,
    host: Host,
}

/// Counters of [`Run::side`].
pub const WASTE: &str = "waste";
pub const PAUSES: &str = "turns of waiting loops";
pub const EVALUATIONS: &str = "evaluations";
pub const FOUND_AT: &str = "evaluations until the sets are the load's";

impl Run {
    /// The execution times of both virtual machines, the average of its instances each, as the paper adds them up.
    pub fn execution_time_ns(&self) -> Number {
        let averages = self.times_ns.iter().map(|times| {
            let sum: u64 = times.iter().sum();
            Number::ratio(sum, times.len() as u64)
        });
        averages.fold(Number::ZERO, |sum, average| sum + average)
    }

    /// When the benchmarks of VM1 were initialised: so long before its end as the one that took longest says.
    fn initialised_ns(&self, costs: &HostCosts) -> u64 {
        let ended = locked(&self.host.machines()[0])
            .processors()
            .iter()
            .map(VirtualProcessor::clock)
            .max();
        let ended_ns = ended.map_or(0, |ended| costs.nanoseconds(ended.since(Cycle::START)));
        ended_ns.saturating_sub(self.longest_ns())
    }

    /// What the instance of VM1 took that took longest.
    fn longest_ns(&self) -> u64 {
        self.times_ns[0].iter().copied().max().unwrap_or(0)
    }

    /// What was found out of VM1.
    pub fn detection(&self) -> Option<&DetectionReport> {
        self.report.machines[0].detection.as_ref()
    }

    /// How many evaluations of VM1 it took until the sets were those that the load makes, among the vCPUs that have
    /// threads; `None` if they never were.
    pub fn evaluations_until_right(
        &self,
        load: &str,
        settings: &DetectionSettings,
        costs: &HostCosts,
    ) -> Option<u64> {
        let right = within_load(&given(load), load);
        let found = &self.detection()?.found;
        let first = found
            .iter()
            .find(|found| within_load(&found.sets, load) == right)?;
        let since_ns = costs
            .nanoseconds(first.time.since(Cycle::START))
            .saturating_sub(settings.start_up_ns);
        Some((since_ns / settings.evaluation_ns).max(1))
    }

    /// The costs of the host.
    pub fn costs<'a>(&self, hosts: &'a Hosts<'_>) -> &'a HostCosts {
        &hosts.costs
    }

    /// One side of a point.
    pub fn side(&self) -> Side {
        let cores = self.report.cores.len() as u64;
        let total = self.report.time.since(Cycle::START) * cores;
        let used: u64 = self
            .report
            .cores
            .iter()
            .map(|core| core.guest + core.monitor)
            .sum();
        let share = |part: u64| Number::ratio(100 * part, total.max(1));
        let monitor: u64 = self.report.cores.iter().map(|core| core.monitor).sum();
        let mut side = Side::new(self.execution_time_ns())
            .counter(UTILISATION, share(used), "%")
            .counter(WASTE, share(total.saturating_sub(used)), "%")
            .counter("monitor", share(monitor), "%");
        if let Some((_, counts)) = self.host.contention() {
            let sum = |of: fn(&sidestep_hypervisor::contention::ContentionCounts) -> u64| {
                counts.iter().map(of).sum()
            };
            side = side
                .count(PAUSES, sum(|counts| counts.pauses))
                .counter("shared cache", share(sum(|counts| counts.shared_cycles)), "%")
                .counter("memory", share(sum(|counts| counts.memory_cycles)), "%")
                .counter(
                    "memory, for bandwidth",
                    share(sum(|counts| counts.bandwidth_cycles)),
                    "%",
                )
                .counter("siblings", share(sum(|counts| counts.sibling_cycles)), "%");
        }
        if let Some(detection) = self.detection() {
            let ran: u64 = self.report.machines[0].cycles[..2].iter().sum();
            side = side
                .count(EVALUATIONS, detection.counts.evaluations)
                .count(CHANGES_OF_SETS, changes(detection))
                .counter(
                    "detection in VM1",
                    Number::ratio(100 * detection.cycles, ran.max(1)),
                    "%",
                );
        }
        side
    }
}

/// How often other sets were found, the whole machine being the first.
fn changes(detection: &DetectionReport) -> usize {
    let whole = CoscheduledSets::one(detection.matrix.tasks());
    let all: Vec<&CoscheduledSets> = std::iter::once(&whole)
        .chain(detection.found.iter().map(|found| &found.sets))
        .collect();
    all.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// The sets among the vCPUs that have threads, in order.
pub fn within_load(sets: &CoscheduledSets, load: &str) -> Vec<Vec<TaskId>> {
    let (count, threads) = instances(load);
    let has_thread = |task: &TaskId| task.index() < count * threads;
    let within = sets.sets().iter().map(|set| {
        let mut own: Vec<TaskId> = set.iter().copied().filter(has_thread).collect();
        own.sort_unstable();
        own
    });
    let mut within: Vec<_> = within.filter(|set| !set.is_empty()).collect();
    within.sort_unstable();
    within
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_has_a_sample_and_every_load_its_sets() {
        assert_eq!(SAMPLES.iter().map(|(name, _)| *name).collect::<Vec<_>>(), KERNELS);
        assert_eq!(given("single").sets().len(), 5);
        assert_eq!(given("double").sets().len(), 2);
        assert_eq!(given("quad").sets().len(), 4);
        assert_eq!(within_load(&given("single"), "single").len(), 1);
    }

    #[test]
    fn a_benchmarks_time_is_in_its_line() {
        assert_eq!(
            nanoseconds("1 lu.S: steps done, 4 threads, 1.002003 s"),
            Some(1_002_003_000)
        );
        assert_eq!(nanoseconds("lu.S: steps done"), None);
    }
}
