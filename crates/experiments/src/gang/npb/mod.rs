//! Figures 6 and 7: what coscheduling parts of a virtual machine gains, with benchmarks in virtual machines of the
//! monitor's, on hosts whose cores share caches and memory.

pub mod hosts;
mod judged;
mod truth;

use std::sync::Arc;
use std::time::Duration;

use sidestep_gang::SharingMatrix;
use sidestep_lab::{
    About, Axis, Better, Context, Experiment, Figure, Finding, Input, Inputs, Measurement, Metric, Nature,
    Number, Point, PointError, Row, Side, Stated,
};

use self::hosts::{FOUND_AT, Hosts, Policy, Run, VCPUS};
use super::drawing;
use super::scenario::{LOADS, gain_and_utilisation};

/// The benchmarks of the paper in virtual machines.
pub struct Npb;

/// The policies held against full coscheduling.
const POLICIES: &[&str] = &["given", "found-1.5", "found", "none"];
/// What the cores share.
const HOSTS: &[&str] = &["gainestown", "lynnfield", "ideal"];

/// Counters of a side whose sets were found.
pub const PRECISION: &str = "precision of the sets";
pub const RECALL: &str = "recall of the sets";
pub const CORRELATION: &str = "rank correlation with all accesses";

impl Experiment for Npb {
    fn about(&self) -> About {
        About {
            name: "gang.npb",
            question: "What do virtual machines that run parallel benchmarks gain when only those vCPUs run together \
                       that share memory?",
            source: "Busse et al., Partial Coscheduling (2015), sections 4 and 5, Figures 5 to 7",
            setting: "The monitor runs two virtual machines on eight cores, VM1 with eight vCPUs and VM2 with four, and \
                      in them samples of the NAS benchmarks of class S, a thread on each vCPU. VM1 runs one instance \
                      of four threads (single), two (double), or four of two (quad). The cores share caches and memory \
                      as those of the paper's hosts do, with caches as much smaller as the benchmarks are. On \
                      `lynnfield` two hardware threads share a core; on `ideal` nothing is shared.",
            baseline: "full coscheduling: all vCPUs of a machine at once",
            sidestep: "the policy of the point: sets of the load, sets found by the monitor while it runs (with the \
                       paper's t = 1.5, and without a factor), or no coordination",
            metric: Metric {
                name: "execution times of both machines",
                unit: "ns",
                better: Better::Lower,
            },
            nature: Nature::Deterministic,
            takes: (Duration::from_secs(50), Duration::from_secs(900)),
            reading: "A gain of 1.33 is the third that full coscheduling leaves idle in double and quad, 2 the half in \
                      single. `waste` is what cores spend on nobody, `turns of waiting loops` what guests spin. Policy \
                      `none` is uncoordinated scheduling, as a stock Linux does it.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let mut all = vec![
            Input::choices("hosts", HOSTS)
                .or("gainestown,lynnfield")
                .quick("gainestown")
                .about("what the cores share")
                .source("Partial Coscheduling 4; each entry's source is in the table")
                .axis(),
            hosts::kernels(),
            Input::choices("loads", LOADS)
                .about("what VM1 runs")
                .source("Partial Coscheduling 4, Figure 5")
                .axis(),
            Input::choices("policies", POLICIES)
                .about("what is held against full coscheduling")
                .source("Partial Coscheduling 4")
                .axis(),
        ];
        all.extend(hosts::inputs());
        all
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        Hosts::new(inputs, "ideal")?;
        let mut points = Vec::new();
        for host in inputs.texts("hosts") {
            for kernel in inputs.texts("kernels") {
                for load in inputs.texts("loads") {
                    for policy in inputs.texts("policies") {
                        let point = Point::new().at("host", host).at("kernel", kernel);
                        points.push(point.at("load", load).at("policy", policy));
                    }
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
        let text = |axis: &str| point.value(axis).text();
        let hosts = Hosts::new(inputs, text("host")).map_err(PointError::Failed)?;
        let (kernel, load) = (text("kernel"), text("load"));
        let policy = Policy::of(text("policy"));
        let Policy::Found(selection) = policy else {
            // First, so that points beside this one may compute the baseline meanwhile.
            let ours = hosts.run(kernel, load, &policy, None, context)?;
            let full = hosts.baseline(kernel, load, context)?;
            return Ok(Measurement::new(full.side(), ours.side()));
        };
        let full = hosts.baseline(kernel, load, context)?;
        let settings = hosts.detection(selection, &full);
        let ours = hosts.run(kernel, load, &policy, Some(settings), context)?;
        let mut side = ours.side();
        if let Some(evaluations) = ours.evaluations_until_right(load, &settings, ours.costs(&hosts)) {
            side = side.count(FOUND_AT, evaluations);
        }
        side = sets_compared(side, &ours, load);
        // What is accessed is the same on every host, and what is detected hardly hangs on the factor.
        if text("policy") == "found" && text("host") == HOSTS[0] {
            let every_access = Arc::new(truth::EveryAccess::default());
            drop(hosts.watch(kernel, load, every_access.clone(), context)?);
            side = matrices_compared(side, &ours, &every_access.matrix(0, VCPUS[0]));
        }
        Ok(Measurement::new(full.side(), side))
    }

    fn stated(&self, _inputs: &Inputs, point: &Point) -> Vec<Stated> {
        judged::stated(point)
    }

    fn findings(&self, _inputs: &Inputs, rows: &[Row]) -> Vec<Finding> {
        judged::findings(rows)
    }

    fn figures(&self) -> Vec<Figure> {
        gain_and_utilisation(
            Figure::bars,
            "Gain over full coscheduling (Figures 6 and 7)",
            || Axis::new("kernel", "benchmark", ""),
            &["host", "load", "policy"],
        )
    }
}

/// Holds the sets that were found last against those of the load.
fn sets_compared(mut side: Side, run: &Run, load: &str) -> Side {
    let percent = |share: Number| share * Number::from(100);
    if let Some(last) = run.detection().and_then(|detection| detection.found.last()) {
        let (precision, recall) = truth::precision_and_recall(&last.sets, &hosts::given(load));
        for (name, share) in [(PRECISION, precision), (RECALL, recall)] {
            if let Some(share) = share {
                side = side.counter(name, percent(share), "%");
            }
        }
    }
    side
}

/// Holds what was detected against all accesses.
fn matrices_compared(side: Side, run: &Run, right: &SharingMatrix) -> Side {
    let Some(detection) = run.detection() else {
        return side;
    };
    let side = side
        .draw(drawing::matrix("What was detected in VM1", &detection.matrix))
        .draw(drawing::matrix(
            "All accesses in VM1: of each page those of the one that touches it less",
            right,
        ));
    match truth::rank_correlation(&detection.matrix, right) {
        Some(correlation) => side.count(CORRELATION, correlation),
        None => side,
    }
}
