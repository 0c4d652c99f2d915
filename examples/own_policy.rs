//! A scheduling policy of one's own against free scheduling: `cargo run -p sidestep-experiments --example own_policy`.

use std::sync::Arc;

use sidestep_experiments::gang::scenario::{KIND_NAMES, Setup, inputs, side};
use sidestep_gang::TaskId;
use sidestep_gang::policy::{Assignment, Grant, Moment, Policy};
use sidestep_gang::simulation::{Schedule, simulate};
use sidestep_lab::{
    About, Context, Experiment, Input, Inputs, Measurement, Metric, PlanError, Point, PointError,
};
use sidestep_lab::{Request, compare};

const SLOT_NS: u64 = 10_000_000;

/// The machines take turns, as in full coscheduling; cores that the one in turn does not use go to the others.
#[derive(Debug)]
struct TurnsAndLeftovers;

impl Policy for TurnsAndLeftovers {
    fn assign(&self, moment: &Moment<'_>) -> Assignment {
        let (tasks, turn) = (moment.tasks, moment.now_ns / SLOT_NS);
        let mut first: Vec<usize> = (0..tasks.len()).filter(|&task| tasks[task].runnable).collect();
        first.sort_by_key(|&task| (tasks[task].program.index() as u64 % 2 != turn % 2, task));
        let mut grants: Vec<Grant> = first.iter().map(|&task| Grant::Run(TaskId::new(task))).collect();
        grants.resize(moment.topology.cores(), Grant::Idle);
        let until_ns = (turn + 1) * SLOT_NS;
        Assignment { grants, until_ns }
    }
}

struct OwnPolicy;

impl Experiment for OwnPolicy {
    fn about(&self) -> About {
        About::new("own.policy", Metric::lower("execution time", "ns"))
    }

    fn inputs(&self) -> Vec<Input> {
        [inputs(), vec![Input::choices("kind", KIND_NAMES).axis()]].concat()
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        Ok(inputs.sweep(&["kind"]))
    }

    fn run_point(&self, inputs: &Inputs, at: &Point, context: &Context) -> Result<Measurement, PointError> {
        let setup = Setup::new(inputs, context);
        let scenario = setup.scenario(Setup::kind(at.value("kind").text()), "double", 8);
        let run = |schedule| side(&scenario, &simulate(&scenario, &schedule), context);
        let own = Schedule::Other(Arc::new(TurnsAndLeftovers));
        Ok(Measurement::new(run(setup.free()), run(own)))
    }
}

fn main() -> Result<(), PlanError> {
    print!("{}", compare(&OwnPolicy, &Request::quick())?);
    Ok(())
}
