//! Scheduling policies that are written in Python, on the simulated host of `gang`.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sidestep_experiments::gang::scenario::{KIND_NAMES, LOADS, Setup, inputs, side};
use sidestep_gang::policy::{Assignment, Grant, Moment, Policy};
use sidestep_gang::simulation::{Schedule, simulate};
use sidestep_gang::{CoreId, TaskId};
use sidestep_lab::{About, Context, Experiment, Input, Inputs, Measurement, Metric, Point, PointError};

use crate::own::failure;

/// An experiment: nobody coordinates the two machines, or a policy of one's own does.
pub struct Governed {
    name: &'static str,
    policy: Arc<Py<PyAny>>,
}

impl Governed {
    /// Under a policy: an object with a method `assign`.
    pub fn new(name: &str, policy: Py<PyAny>) -> Governed {
        Governed {
            name: Box::leak(name.to_owned().into_boxed_str()),
            policy: Arc::new(policy),
        }
    }
}

impl Experiment for Governed {
    fn about(&self) -> About {
        About {
            question: "What does a policy of one's own buy over free scheduling?",
            source: "none: the policy that is asked about",
            setting: "The simulated host of `gang`: two virtual machines on its cores, and the workloads in them.",
            baseline: "free scheduling",
            sidestep: "the policy",
            ..About::new(self.name, Metric::lower("execution time", "ns"))
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let own = [
            Input::choices("kind", KIND_NAMES)
                .about("what the machines run")
                .source("chosen: all")
                .axis(),
            Input::choices("load", LOADS)
                .about("how many instances the first machine runs")
                .source("Partial Coscheduling: its three loads")
                .axis(),
            Input::integer("cores", 8)
                .between(4, 64)
                .about("cores of the host, a multiple of 4")
                .source("Partial Coscheduling: its host"),
        ];
        [inputs(), own.to_vec()].concat()
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        match inputs.count("cores").is_multiple_of(4) {
            true => Ok(inputs.sweep(&["kind", "load"])),
            false => Err("`cores` must be a multiple of 4: a machine runs on a quarter of them".to_owned()),
        }
    }

    fn run_point(&self, inputs: &Inputs, at: &Point, context: &Context) -> Result<Measurement, PointError> {
        let setup = Setup::new(inputs, context);
        let kind = Setup::kind(at.value("kind").text());
        let scenario = setup.scenario(kind, at.value("load").text(), inputs.count("cores") as usize);
        let run = |schedule| side(&scenario, &simulate(&scenario, &schedule), context);
        let own = Schedule::Other(Arc::new(InPython(Arc::clone(&self.policy))));
        let governed = catch_unwind(AssertUnwindSafe(|| run(own))).map_err(|payload| {
            match payload.downcast::<Raised>() {
                Ok(raised) => Python::attach(|py| failure(py, &raised.0)),
                Err(panic) => resume_unwind(panic),
            }
        })?;
        Ok(Measurement::new(run(setup.free()), governed))
    }
}

/// What a policy raised: it unwinds through the simulation, which knows no policy that fails.
struct Raised(PyErr);

/// A policy that is asked in Python.
struct InPython(Arc<Py<PyAny>>);

impl fmt::Debug for InPython {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("InPython")
    }
}

impl Policy for InPython {
    fn assign(&self, moment: &Moment<'_>) -> Assignment {
        let asked = Python::attach(|py| self.ask(py, moment));
        asked.unwrap_or_else(|error| resume_unwind(Box::new(Raised(error))))
    }
}

/// A task as a policy sees it: number, program, whether it is runnable, whether it was signalled, times in nanoseconds,
/// the core that it ran on last.
type Task = (usize, usize, bool, bool, u64, Option<u64>, u64, Option<usize>);

impl InPython {
    fn ask(&self, py: Python<'_>, moment: &Moment<'_>) -> PyResult<Assignment> {
        let cores = moment.topology.cores();
        let tasks: Vec<Task> = (moment.tasks.iter().enumerate())
            .map(|(number, task)| {
                let program = task.program.index();
                let core = task.core.map(CoreId::index);
                let (served, since) = (task.served_ns, task.granted_ns);
                (
                    number,
                    program,
                    task.runnable,
                    task.signalled,
                    served,
                    since,
                    task.progress_ns,
                    core,
                )
            })
            .collect();
        let answer = self
            .0
            .bind(py)
            .call_method1("decide", (moment.now_ns, tasks, cores))?;
        let (given, until_ns): (Vec<Option<usize>>, u64) = answer.extract()?;
        let wrong = |what: String| Err(PyValueError::new_err(format!("the policy's decision: {what}")));
        if given.len() > cores {
            return wrong(format!("{} grants for {cores} cores", given.len()));
        }
        if until_ns <= moment.now_ns {
            return wrong(format!(
                "until {until_ns} ns, which is not after {} ns",
                moment.now_ns
            ));
        }
        let mut grants = vec![Grant::Idle; cores];
        for (core, task) in given
            .iter()
            .enumerate()
            .filter_map(|(core, task)| Some((core, (*task)?)))
        {
            match moment.tasks.get(task) {
                None => return wrong(format!("there is no task {task}")),
                Some(view) if !view.runnable => return wrong(format!("task {task} is not runnable")),
                Some(_) if given[..core].contains(&Some(task)) => {
                    return wrong(format!("task {task} has two cores"));
                }
                Some(_) => grants[core] = Grant::Run(TaskId::new(task)),
            }
        }
        Ok(Assignment { grants, until_ns })
    }
}
