//! The paper's scenarios in the simulator: two virtual machines on eight cores, and the workloads in them.
//!
//! The paper ran the NAS Parallel Benchmarks. Here a workload stands for a kind of program, by how it waits (work
//! between barriers, locks) and what its threads share. These parameters are chosen, and none comes from the paper's
//! results.

use sidestep_gang::policy::{Free, IdleCores, Relaxed};
use sidestep_gang::simulation::{
    Automatic, Costs, Housekeeping, Instance, Machine, Outcome, Phase, Scenario, Schedule, Sharing, Workload,
    simulate,
};
use sidestep_gang::topology::Placement;
use sidestep_gang::{CoscheduledSets, DetectorSettings, Ratio, Selection, Topology};
use sidestep_lab::{Axis, Context, Figure, Input, Inputs, Measure, Number, PointError, Side};

use super::drawing;

const MS: u64 = 1_000_000;

/// A kind of program: its name, what it stands for, how it waits and shares, and whether it ends early.
pub struct Kind {
    /// The coordinate's value.
    pub name: &'static str,
    phases: &'static [Phase],
    sharing: Sharing,
    /// Whether a run lasts the input `short-run` instead of the horizon.
    is_short: bool,
}

/// The workloads.
pub const KINDS: &[Kind] = &[
    // As EP: no waiting, hardly any sharing. In the OpenMP version (NPB 3, EP) all threads read the same few numbers
    // for each batch, `an` and `k_offset`, and add up once at the end.
    Kind {
        name: "independent",
        phases: &[Phase::Compute {
            work_ns: 50 * MS,
            varies_permille: 50,
        }],
        sharing: Sharing::Everyone { regions: 1 },
        is_short: false,
    },
    // As BT and SP: long work between barriers, everything shared alike.
    Kind {
        name: "bulk",
        phases: &[
            Phase::Compute {
                work_ns: 10 * MS,
                varies_permille: 50,
            },
            Phase::Barrier,
        ],
        sharing: Sharing::Everyone { regions: 16 },
        is_short: false,
    },
    // As LU and MG: short work between barriers, neighbours share.
    Kind {
        name: "regular",
        phases: &[
            Phase::Compute {
                work_ns: MS,
                varies_permille: 100,
            },
            Phase::Barrier,
        ],
        sharing: Sharing::Neighbours { regions: 30 },
        is_short: false,
    },
    // As CG and UA: short uneven work between barriers, every pair shares another amount.
    Kind {
        name: "irregular",
        phases: &[
            Phase::Compute {
                work_ns: MS,
                varies_permille: 300,
            },
            Phase::Barrier,
        ],
        sharing: Sharing::Irregular { regions_max: 48 },
        is_short: false,
    },
    // A lock besides barriers.
    Kind {
        name: "locked",
        phases: &[
            Phase::Compute {
                work_ns: 2 * MS,
                varies_permille: 100,
            },
            Phase::Locked { work_ns: MS / 10 },
            Phase::Compute {
                work_ns: 2 * MS,
                varies_permille: 100,
            },
            Phase::Barrier,
        ],
        sharing: Sharing::Everyone { regions: 16 },
        is_short: false,
    },
    // As IS, of which the paper says that it ends before sets are found: here that is an input, `short-run`, and what
    // comes of it is no result.
    Kind {
        name: "short",
        phases: &[
            Phase::Compute {
                work_ns: 5 * MS,
                varies_permille: 50,
            },
            Phase::Barrier,
        ],
        sharing: Sharing::Everyone { regions: 16 },
        is_short: true,
    },
];

/// The names of the workloads.
pub const KIND_NAMES: &[&str] = &["independent", "bulk", "regular", "irregular", "locked", "short"];

/// The paper's load scenarios.
pub const LOADS: &[&str] = &["single", "double", "quad"];

/// The inputs that all simulated experiments have.
pub fn inputs() -> Vec<Input> {
    vec![
        Input::duration("horizon", 30_000 * MS)
            .lasting(1000 * MS, 1_000_000 * MS)
            .about("virtual time of a run")
            .quick("12s")
            .source("chosen: six re-evaluations"),
        Input::duration("short-run", 4_500 * MS)
            .lasting(100 * MS, 1_000_000 * MS)
            .about("virtual time of a run of the short programs")
            .quick("1800ms")
            .source("chosen: below `reevaluation`, as the paper says that IS ends before sets are found"),
        Input::duration("slot", 10 * MS)
            .lasting(MS, 1000 * MS)
            .about("the length of a slot")
            .source("chosen: of the order of the host scheduler's time slices"),
        Input::duration("switch", 5_000)
            .lasting(0, MS)
            .about("what putting another vCPU on a core takes")
            .source("chosen: a world switch and cold first-level caches"),
        Input::duration("fault", 1_000)
            .lasting(0, MS)
            .about("what a page fault made for detection takes")
            .source("chosen: a minor fault"),
        Input::duration("scan", 1000 * MS)
            .lasting(MS, 100_000 * MS)
            .about("how often shared pages are made to fault")
            .source("chosen: the default rate of Linux NUMA balancing"),
        Input::duration("reevaluation", 5_000 * MS)
            .lasting(MS, 100_000 * MS)
            .about("how often sets are found anew")
            .source("Partial Coscheduling 4: every five seconds"),
        Input::duration("housekeeping-period", 1000 * MS)
            .lasting(MS, 100_000 * MS)
            .about("how often the guest's kernel works on each vCPU, also on idle ones")
            .source("Linux, sysctl vm.stat_interval: once a second on each CPU, the shortest period of the kernel's own"),
        Input::duration("housekeeping-work", 100_000)
            .lasting(0, 100 * MS)
            .about("how long it then works")
            .source("chosen"),
        Input::integer("kernel-regions", 4)
            .between(0, 1000)
            .about("regions of the guest's kernel that its vCPUs share")
            .source("chosen"),
        Input::choice("idle-cores", &["kept", "filled"])
            .about("whether cores that no whole set can use stay idle, as in the paper, or are used by who waits")
            .source("Partial Coscheduling 1, Figure 2"),
    ]
}

/// What follows from the inputs.
pub struct Setup<'a> {
    inputs: &'a Inputs,
    seed: u64,
}

impl<'a> Setup<'a> {
    /// The inputs of a point.
    pub fn new(inputs: &'a Inputs, context: &Context<'_>) -> Self {
        Self {
            inputs,
            seed: context.seed,
        }
    }

    /// A kind's workload. Threads of the paper's programs spin without end, as OpenMP's do on dedicated cores.
    pub fn workload(kind: &Kind) -> Workload {
        Workload {
            name: kind.name.to_owned(),
            phases: kind.phases.to_vec(),
            spin_ns: u64::MAX,
            sharing: kind.sharing,
        }
    }

    /// The kind of a name.
    pub fn kind(name: &str) -> &'static Kind {
        KINDS
            .iter()
            .find(|kind| kind.name == name)
            .expect("a name from the list of choices")
    }

    /// The paper's scenario: the first machine as large as the host, the second half as large, one instance in it.
    pub fn scenario(&self, kind: &Kind, load: &str, cores: usize) -> Scenario {
        let half = cores / 2;
        let groups: Vec<Vec<usize>> = match load {
            "single" => vec![(0..half).collect()],
            "double" => vec![(0..half).collect(), (half..cores).collect()],
            "quad" => {
                let quarter = cores / 4;
                (0..4)
                    .map(|part| (part * quarter..(part + 1) * quarter).collect())
                    .collect()
            }
            other => unreachable!("{other} is not a load"),
        };
        let instance = |vcpus: Vec<usize>| Instance {
            vcpus,
            workload: Self::workload(kind),
        };
        let first = Machine {
            name: "VM1".to_owned(),
            vcpus: cores,
            instances: groups.into_iter().map(instance).collect(),
        };
        let second = Machine {
            name: "VM2".to_owned(),
            vcpus: half,
            instances: vec![instance((0..half).collect())],
        };
        let mut scenario = self.on(Topology::flat(cores), vec![first, second]);
        if kind.is_short {
            scenario.horizon_ns = self.inputs.duration_ns("short-run");
        }
        scenario
    }

    /// Machines on a host, with the inputs' costs.
    pub fn on(&self, topology: Topology, machines: Vec<Machine>) -> Scenario {
        let inputs = self.inputs;
        Scenario {
            topology,
            machines,
            costs: Costs {
                switch_ns: inputs.duration_ns("switch"),
                fault_ns: inputs.duration_ns("fault"),
                shared_core_permille: 1000,
                across_sockets_permille: 1000,
            },
            housekeeping: Some(Housekeeping {
                period_ns: inputs.duration_ns("housekeeping-period"),
                work_ns: inputs.duration_ns("housekeeping-work"),
                regions: inputs.count("kernel-regions") as u32,
            }),
            horizon_ns: inputs.duration_ns("horizon"),
            seed: self.seed,
        }
    }

    /// Coscheduling by given sets.
    pub fn sets(&self, sets: CoscheduledSets, placement: Placement) -> Schedule {
        Schedule::Sets {
            sets,
            slot_ns: self.slot_ns(),
            idle: self.idle(),
            placement,
        }
    }

    /// Sets found while running.
    pub fn automatic(&self, selection: Selection, placement: Placement) -> Schedule {
        let automatic = Automatic {
            selection,
            scan_period_ns: self.inputs.duration_ns("scan"),
            reevaluation_ns: self.inputs.duration_ns("reevaluation"),
            reset_ns: self.inputs.duration_ns("scan") / 2,
            keep_permille: 500,
            detector: DetectorSettings::default(),
        };
        Schedule::Automatic {
            automatic,
            slot_ns: self.slot_ns(),
            idle: self.idle(),
            placement,
        }
    }

    /// Nobody coordinates.
    pub fn free(&self) -> Schedule {
        Schedule::Free(Free {
            slot_ns: self.slot_ns(),
        })
    }

    /// Bounded skew: half a slot.
    pub fn relaxed(&self) -> Schedule {
        Schedule::Relaxed(Relaxed {
            slot_ns: self.slot_ns(),
            skew_max_ns: (self.slot_ns() / 2).max(1),
            placement: Placement::Nearest,
        })
    }

    fn slot_ns(&self) -> u64 {
        self.inputs.duration_ns("slot")
    }

    fn idle(&self) -> IdleCores {
        match self.inputs.text("idle-cores") {
            "filled" => IdleCores::Filled,
            _ => IdleCores::Kept,
        }
    }
}

/// The paper's factor for all benchmarks.
pub fn factor_of_the_paper() -> Selection {
    Selection::Factor(Ratio::new(3, 2))
}

/// The execution times of both machines together, for one round of each: of a machine with several instances their
/// mean, as the paper computes it. `None` when an instance finished no round.
pub fn execution_time_ns(scenario: &Scenario, outcome: &Outcome) -> Option<Number> {
    let mut sum = Number::ZERO;
    for machine in 0..scenario.machines.len() {
        let own: Vec<usize> = (0..outcome.instances.len())
            .filter(|&at| outcome.instances[at].machine == machine)
            .collect();
        let mut rounds = Number::ZERO;
        for &instance in &own {
            rounds = rounds + Number::from(outcome.round_ns(instance)?);
        }
        sum = sum + rounds.over(Number::from(own.len()))?;
    }
    Some(sum)
}

/// The counter of [`uncoordinated_ns`] in experiments whose points have no policy `none`.
pub const UNCOORDINATED: &str = "without coordination";

/// The execution times of both machines when nobody coordinates, as on a stock Linux; `None` when an instance finished
/// no round.
pub fn uncoordinated_ns(setup: &Setup<'_>, scenario: &Scenario) -> Option<Number> {
    execution_time_ns(scenario, &simulate(scenario, &setup.free()))
}

/// Simulates a scenario under both schedules: baseline, then sidestep.
pub fn both(
    scenario: &Scenario,
    schedules: [Schedule; 2],
    context: &Context<'_>,
) -> Result<[Outcome; 2], PointError> {
    let [baseline, sidestep] = schedules;
    let baseline = simulate(scenario, &baseline);
    if context.cancelled() {
        return Err(PointError::Cancelled);
    }
    Ok([baseline, simulate(scenario, &sidestep)])
}

/// Counters of [`side`]: parts of the cores' time, which make it up.
pub const UTILISATION: &str = "utilisation";
const SPINNING: &str = "spinning";
const KEPT_IDLE: &str = "kept idle";
const IDLE: &str = "idle";
const SWITCHING: &str = "switching";
/// How often other sets were found, of a schedule that looks for them.
pub const CHANGES_OF_SETS: &str = "changes of sets";
/// All parts.
pub const SHARES: [&str; 5] = [UTILISATION, SPINNING, KEPT_IDLE, IDLE, SWITCHING];

/// One side of a point: the execution time, and where the cores' time went.
pub fn side(scenario: &Scenario, outcome: &Outcome, context: &Context<'_>) -> Side {
    let host = outcome.host();
    let share = |part_ns: u64| Number::ratio(100 * part_ns, host.total_ns());
    let found = outcome.sets.last().map(|(_, sets)| sets.sets().len());
    let is_given = outcome
        .sets
        .last()
        .is_some_and(|(_, sets)| *sets == scenario.given_sets());
    let mut side = match execution_time_ns(scenario, outcome) {
        Some(time) => Side::new(time),
        None => Side::absent(),
    };
    side = side
        .counter(UTILISATION, share(host.working_ns), "%")
        .counter(SPINNING, share(host.spinning_ns), "%")
        .counter(KEPT_IDLE, share(host.kept_idle_ns), "%")
        .counter(IDLE, share(host.idle_ns), "%")
        .counter(SWITCHING, share(host.overhead_ns), "%")
        .count("switches", outcome.switches)
        .counter(
            "longest wait",
            outcome.longest_wait_ns.iter().max().copied().unwrap_or(0),
            "ns",
        );
    if let Some(found) = found {
        side = side
            .count("sets", found)
            .count(CHANGES_OF_SETS, outcome.sets.len() - 1);
        side = side.count("last sets are those of the load", u64::from(is_given));
    }
    if context.trace {
        let names = |machine: &Machine| {
            let name = machine.name.clone();
            (0..machine.vcpus)
                .map(move |vcpu| format!("{name} vCPU {vcpu}"))
                .collect::<Vec<_>>()
        };
        let names: Vec<String> = scenario.machines.iter().flat_map(names).collect();
        side = side.traced(drawing::timeline(outcome, &names));
    }
    side
}

/// The figures of a sweep: the gain, and how much of the cores' time was used.
pub fn gain_and_utilisation(
    draw: fn(&'static str, Axis, Measure, &'static str, &'static str) -> Figure,
    gain: &'static str,
    across: fn() -> Axis,
    split_by: &'static [&'static str],
) -> Vec<Figure> {
    let utilisation = Measure::Counter(UTILISATION);
    vec![
        draw(gain, across(), Measure::Ratio, "times faster", "").split_by(split_by),
        draw("Utilisation", across(), utilisation, "of the cores' time", "%").split_by(split_by),
    ]
}
