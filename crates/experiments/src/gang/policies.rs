//! Figures 6 and 7: what each policy makes of the paper's three scenarios, on eight simulated cores.

use std::time::Duration;

use sidestep_gang::simulation::{Instance, Machine, Scenario, Schedule};
use sidestep_gang::topology::Placement;
use sidestep_gang::{CoscheduledSets, Selection, SharingMatrix, Topology};
use sidestep_lab::{
    About, Axis, Better, Context, Experiment, Figure, Finding, Input, Inputs, Measurement, Metric, Nature,
    Point, PointError, Row, Stated,
};

use super::scenario::{
    KIND_NAMES, LOADS, Setup, both, factor_of_the_paper, gain_and_utilisation, inputs, side,
};
use super::{drawing, groups, judged};

/// What each policy makes of the paper's scenarios.
pub struct Policies;

/// The policies held against full coscheduling.
const POLICIES: &[&str] = &["given", "automatic", "automatic-no-factor", "relaxed", "none"];
/// The load when the machine's matrix comes from a file.
const RECORDED: &str = "recorded";

impl Experiment for Policies {
    fn about(&self) -> About {
        About {
            name: "gang.policies",
            question: "What does coscheduling parts of a virtual machine gain over coscheduling it whole?",
            source: "Busse et al., Partial Coscheduling (2015), sections 4 and 5, Figures 5 to 7",
            setting: "Two virtual machines on eight simulated cores, VM1 with eight vCPUs and VM2 with four. VM2 runs \
                      one program with four threads; VM1 runs one such (single), two (double), or four with two \
                      threads each (quad). Programs work, wait for each other and share memory as their kind says (the \
                      parameters are chosen, none is a result of the paper's); every vCPU, also an idle one, does \
                      housekeeping.",
            baseline: "full coscheduling: all vCPUs of a machine at once",
            sidestep: "the policy of the point: sets given by the load, found while running with t = 1.5, found \
                       without a factor, bounded skew, or no coordination",
            metric: Metric {
                name: "execution times of both machines, a round each",
                unit: "ns",
                better: Better::Lower,
            },
            nature: Nature::Seeded,
            takes: (Duration::from_secs(2), Duration::from_secs(40)),
            reading: "A gain of 1.33 is the third that full coscheduling leaves idle in double and quad. `kept idle` \
                      is what stays empty though a vCPU waits, `spinning` what is spent on waiting for one that has no \
                      core. Caches are not modelled: what the paper explains by contention is not seen here. Policy \
                      `none` is uncoordinated scheduling, as a stock Linux does it.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let mut all = vec![
            Input::choices("workloads", KIND_NAMES)
                .quick("bulk,irregular")
                .about("the kinds of programs")
                .source("Partial Coscheduling, Table 1, by focus; parameters chosen")
                .axis(),
            Input::choices("loads", LOADS)
                .about("what VM1 runs")
                .source("Partial Coscheduling 4, Figure 5")
                .axis(),
            Input::choices("policies", POLICIES)
                .about("what is held against full coscheduling")
                .source("Partial Coscheduling 4; relaxed after section 6")
                .axis(),
            Input::file("matrix")
                .about("a recording of `sidestep gang watch --save`: VM1 is the recorded program, its sets the load")
                .source("none: beyond the paper"),
        ];
        all.extend(inputs());
        all
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        let loads = match inputs.text("matrix") {
            "" => inputs.texts("loads"),
            path => {
                recorded_matrix(path)?;
                vec![RECORDED]
            }
        };
        let mut points = Vec::new();
        for workload in inputs.texts("workloads") {
            for load in &loads {
                for policy in inputs.texts("policies") {
                    points.push(
                        Point::new()
                            .at("workload", workload)
                            .at("load", *load)
                            .at("policy", policy),
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
        let kind = Setup::kind(point.value("workload").text());
        let scenario = match point.value("load").text() {
            RECORDED => recorded(&setup, kind, inputs.text("matrix"))?,
            load => setup.scenario(kind, load, 8),
        };
        let schedule = schedule(&setup, &scenario, point.value("policy").text());
        let full = setup.sets(scenario.full_sets(), Placement::Nearest);
        let [full, ours] = both(&scenario, [full, schedule], context)?;
        let mut sidestep =
            side(&scenario, &ours, context).draw(drawing::core_time("Where the cores' time went", &ours));
        if let Some(matrix) = &ours.matrix {
            sidestep = sidestep.draw(drawing::matrix("What was detected", matrix));
        }
        let baseline =
            side(&scenario, &full, context).draw(drawing::core_time("Where the cores' time went", &full));
        Ok(Measurement::new(baseline, sidestep))
    }

    fn stated(&self, inputs: &Inputs, point: &Point) -> Vec<Stated> {
        match judged::is_the_papers(inputs) {
            true => judged::stated(point),
            false => Vec::new(),
        }
    }

    fn findings(&self, inputs: &Inputs, rows: &[Row]) -> Vec<Finding> {
        match judged::is_the_papers(inputs) {
            true => judged::findings(rows),
            false => Vec::new(),
        }
    }

    fn figures(&self) -> Vec<Figure> {
        gain_and_utilisation(
            Figure::bars,
            "Gain over full coscheduling (Figures 6 and 7)",
            || Axis::new("workload", "workload", ""),
            &["load", "policy"],
        )
    }
}

fn schedule(setup: &Setup<'_>, scenario: &Scenario, policy: &str) -> Schedule {
    let placement = Placement::Nearest;
    match policy {
        "given" => setup.sets(scenario.given_sets(), placement),
        "automatic" => setup.automatic(factor_of_the_paper(), placement),
        "automatic-no-factor" => setup.automatic(Selection::Modularity, placement),
        "relaxed" => setup.relaxed(),
        "none" => setup.free(),
        other => unreachable!("{other} is not a policy"),
    }
}

/// The matrix of a recording of two tasks or more.
fn recorded_matrix(path: &str) -> Result<SharingMatrix, String> {
    let matrix = groups::read_matrix(path)?;
    match matrix.tasks() {
        tasks @ ..2 => Err(format!(
            "input `matrix`: {path} has {tasks} tasks, expected two or more"
        )),
        _ => Ok(matrix),
    }
}

/// VM1 as recorded: a vCPU for each thread, a program for each set; VM2 half as large, on a host of VM1's size.
fn recorded(setup: &Setup<'_>, kind: &super::scenario::Kind, path: &str) -> Result<Scenario, PointError> {
    let matrix = recorded_matrix(path).map_err(PointError::Failed)?;
    let sets = CoscheduledSets::find(&matrix, Selection::Modularity);
    let instance = |vcpus: Vec<usize>| Instance {
        vcpus,
        workload: Setup::workload(kind),
    };
    let (cores, half) = (matrix.tasks(), matrix.tasks().div_ceil(2));
    let first = Machine {
        name: "recorded".to_owned(),
        vcpus: cores,
        instances: sets
            .sets()
            .iter()
            .map(|set| instance(set.iter().map(|task| task.index()).collect()))
            .collect(),
    };
    let second = Machine {
        name: "VM2".to_owned(),
        vcpus: half,
        instances: vec![instance((0..half).collect())],
    };
    Ok(setup.on(Topology::flat(cores), vec![first, second]))
}
