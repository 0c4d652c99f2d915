//! Hosts of 16 to 256 cores, machines of mixed sizes, and what topology awareness adds.

use std::time::Duration;

use sidestep_gang::scatter::scatter;
use sidestep_gang::simulation::{Instance, Machine, Scenario};
use sidestep_gang::topology::Placement;
use sidestep_gang::{Selection, Topology};
use sidestep_lab::{
    About, Axis, Better, Context, Experiment, Figure, Input, Inputs, Measurement, Metric, Nature, Number,
    Point, PointError, Side,
};

use super::scenario::{
    KIND_NAMES, SHARES, Setup, UNCOORDINATED, both, gain_and_utilisation, inputs, side, uncoordinated_ns,
};

/// Larger hosts and machines of mixed sizes.
pub struct Scale;

/// Cores that share a cache, and caches of a socket.
const CORES_OF_CACHE: usize = 8;
const POLICIES: &[&str] = &["given", "automatic-no-factor"];
const PLACEMENTS: &[&str] = &["nearest", "first-fit"];

impl Experiment for Scale {
    fn about(&self) -> About {
        About {
            name: "gang.scale",
            question: "Does partial coscheduling still gain on large hosts with machines of many sizes?",
            source: "none: beyond Busse et al., Partial Coscheduling (2015), which stops at eight cores; topology is \
                     its future work (section 7)",
            setting: "A host of two sockets whose caches serve eight cores each. Machines of an eighth to all of the \
                      host's size, drawn by the seed several times, together twice its size; in each, programs of two \
                      to eight threads. A program that is spread over both sockets runs at nine tenths of its speed.",
            baseline: "full coscheduling, placed as the point says",
            sidestep: "sets given by the load, or found without a factor",
            metric: Metric {
                name: "execution times of all machines, a round each, mean over draws",
                unit: "ns",
                better: Better::Lower,
            },
            nature: Nature::Seeded,
            takes: (Duration::from_secs(40), Duration::from_secs(900)),
            reading: "Small sets fill the gaps that whole machines leave; a draw in which whole machines leave none \
                      has nothing to gain, so the mean over draws counts, and the counters tell in how many there was \
                      a gain and how great the greatest was. First fit tears sets over sockets, which nearest avoids \
                      where it can.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let mut all = vec![
            Input::integers("cores", &[16, 32, 64, 128, 256])
                .between(16, 1024)
                .quick("16,64")
                .unit("cores")
                .about("the host's size, a multiple of 16")
                .source("chosen")
                .axis(),
            Input::choices("policies", POLICIES)
                .about("where the sets come from")
                .source("chosen")
                .axis(),
            Input::choices("placements", PLACEMENTS)
                .quick("nearest")
                .about("how cores are chosen for a set")
                .source("Partial Coscheduling 7: topology awareness is future work")
                .axis(),
            Input::choice("workload", KIND_NAMES)
                .or("bulk")
                .about("the kind of programs")
                .source("Partial Coscheduling, Table 1, by focus; parameters chosen"),
            Input::integer("draws", 8)
                .between(1, 1000)
                .quick("4")
                .about("how many mixes of machines are drawn for a point")
                .source("chosen: enough for mixes with and without gaps"),
            Input::integer("across-sockets", 900)
                .between(1, 1000)
                .unit("permille")
                .about("the speed of a program that is spread over both sockets")
                .source("chosen"),
        ];
        all.extend(inputs().into_iter().map(|input| {
            match input.key {
                "horizon" => input
                    .or("10s")
                    .quick("6s")
                    .source("chosen: a re-evaluation and as long again"),
                _ => input,
            }
        }));
        all
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        let mut points = Vec::new();
        for cores in inputs.integers("cores") {
            if cores % 16 != 0 {
                return Err(format!(
                    "cores: {cores} is not a multiple of 16 (two sockets of caches of eight cores)"
                ));
            }
            for policy in inputs.texts("policies") {
                for placement in inputs.texts("placements") {
                    points.push(
                        Point::new()
                            .at("cores", cores)
                            .at("policy", policy)
                            .at("placement", placement),
                    );
                }
            }
        }
        Ok(points)
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        let setup = Setup::new(inputs, context);
        let cores = point.value("cores").count() as usize;
        let placement = match point.value("placement").text() {
            "first-fit" => Placement::FirstFit,
            _ => Placement::Nearest,
        };
        let (mut draws, mut uncoordinated) = (Vec::new(), Vec::new());
        for draw in 0..inputs.count("draws") {
            let seed = scatter(&[context.seed, draw]);
            let mut scenario = mixed(&setup, inputs.text("workload"), cores, seed);
            scenario.costs.across_sockets_permille = inputs.count("across-sockets");
            let schedule = match point.value("policy").text() {
                "given" => setup.sets(scenario.given_sets(), placement),
                _ => setup.automatic(Selection::Modularity, placement),
            };
            let full = setup.sets(scenario.full_sets(), placement);
            let outcomes = both(&scenario, [full, schedule], context)?;
            draws.push(outcomes.map(|outcome| side(&scenario, &outcome, context)));
            uncoordinated.push(uncoordinated_ns(&setup, &scenario));
        }
        Ok(over_draws(draws, uncoordinated))
    }

    fn figures(&self) -> Vec<Figure> {
        gain_and_utilisation(
            Figure::lines,
            "Gain over full coscheduling",
            || Axis::new("cores", "cores", "cores").logarithmic(),
            &["policy", "placement"],
        )
    }
}

/// Both sides over all draws: means, the timelines of the first, and how the gains are spread.
fn over_draws(draws: Vec<[Side; 2]>, uncoordinated: Vec<Option<Number>>) -> Measurement {
    let gains: Vec<Number> = draws
        .iter()
        .filter_map(|[full, ours]| full.value?.over(ours.value?))
        .collect();
    let count = draws.len() as u64;
    let (full, ours): (Vec<Side>, Vec<Side>) = draws.into_iter().map(|[full, ours]| (full, ours)).unzip();
    let gaining = gains
        .iter()
        .filter(|gain| **gain > Number::decimal("1.01"))
        .count();
    let mut ours = mean(ours)
        .count("draws", count)
        .count("draws with a gain of more than 1 %", gaining);
    if let Some(greatest) = gains.iter().max() {
        ours = ours.counter("greatest gain", *greatest, "times");
    }
    let mut full = mean(full);
    let times: Option<Vec<Number>> = uncoordinated.into_iter().collect();
    if let Some(sum) = times.map(|times| times.into_iter().sum::<Number>()) {
        full = full.counter(UNCOORDINATED, sum * Number::ratio(1, count), "ns");
    }
    Measurement::new(full, ours)
}

fn mean(sides: Vec<Side>) -> Side {
    let count = sides.len() as u64;
    let over_all = |numbers: Vec<Number>| {
        let sum = numbers
            .into_iter()
            .fold(Number::from(0u64), |sum, number| sum + number);
        sum.over(Number::from(count))
    };
    let values: Option<Vec<Number>> = sides.iter().map(|side| side.value).collect();
    let mut all = match values.and_then(over_all) {
        Some(mean) => Side::new(mean),
        None => Side::absent(),
    };
    for name in SHARES {
        let shares: Option<Vec<Number>> = sides.iter().map(|side| Some(side.find(name)?.value)).collect();
        if let Some(mean) = shares.and_then(over_all) {
            all = all.counter(name, mean, "%");
        }
    }
    match sides.into_iter().next() {
        Some(first) => all.traced(first.timeline),
        None => all,
    }
}

/// Machines of mixed sizes, together twice as large as the host.
fn mixed(setup: &Setup<'_>, workload: &str, cores: usize, seed: u64) -> Scenario {
    let kind = Setup::kind(workload);
    let mut machines: Vec<Machine> = Vec::new();
    let mut total = 0;
    while total < 2 * cores {
        let number = machines.len() as u64;
        let eighths = 1 + scatter(&[seed, number]) as usize % 8;
        let vcpus = (cores * eighths / 8).min(2 * cores - total);
        let mut instances = Vec::new();
        let mut next = 0;
        while next < vcpus {
            let threads = (2 << (scatter(&[seed, number, next as u64]) % 3)).min(vcpus - next);
            instances.push(Instance {
                vcpus: (next..next + threads).collect(),
                workload: Setup::workload(kind),
            });
            next += threads;
        }
        machines.push(Machine {
            name: format!("VM{}", number + 1),
            vcpus,
            instances,
        });
        total += vcpus;
    }
    setup.on(
        Topology::regular(2, cores / (2 * CORES_OF_CACHE), CORES_OF_CACHE, 1),
        machines,
    )
}
