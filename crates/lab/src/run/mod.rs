//! Running experiments: the points of all of them over the host's cores, each repeated, cached and contained.
//!
//! A [`Plan`] is an experiment with its checked inputs; a [`Runner`] turns plans into [`Comparison`]s. Points in
//! virtual time run side by side; points that measure real time run alone afterwards, one at a time, so that their
//! timings are honest. The outcome does not depend on the number of jobs, on their order, or on what came from the
//! cache.

pub mod cache;
mod repeat;

use std::any::Any;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::about::{About, Nature};
use crate::comparison::Comparison;
use crate::experiment::Experiment;
use crate::input::{Input, InputError, Inputs};
use crate::measurement::Measurement;
use crate::point::{Context, Point, PointError};
use crate::row::Row;
use crate::shared::Shared;
use cache::{Cache, CacheProblem, Key};

/// How experiments are to be run.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Settings of the form `key=value`.
    pub settings: Vec<String>,
    /// Whether the defaults are those of a quick run.
    pub quick: bool,
    /// The seed of the first repetition; each further one takes the next.
    pub seed: u64,
    /// How often to run each point of an experiment that is not deterministic; `None` for the usual count.
    pub repetitions: Option<u32>,
    /// Whether to record what happens when.
    pub trace: bool,
}

impl Request {
    /// A quick run with every default.
    pub fn quick() -> Request {
        Request {
            quick: true,
            ..Request::default()
        }
    }
}

/// How often a point that is not deterministic is run: seven are the fewest whose extremes hold the median with more
/// than 95%.
const REPETITIONS: u32 = 7;
/// The same for a quick run.
const QUICK_REPETITIONS: u32 = 3;

/// An experiment with its checked inputs and the points they give.
#[derive(Clone)]
pub struct Plan<'a> {
    experiment: &'a dyn Experiment,
    about: About,
    declared: Vec<Input>,
    inputs: Inputs,
    points: Vec<Point>,
    repetitions: u32,
    request: Request,
    shared: Arc<Shared>,
    /// Whether points of the sweep are left out, so that nothing can be found of it as a whole.
    is_part: bool,
}

/// Why an experiment cannot be run as requested.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A setting is wrong.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The inputs contradict each other.
    #[error("{experiment}: {reason}")]
    Contradiction {
        /// The experiment.
        experiment: &'static str,
        /// What contradicts what.
        reason: String,
    },
}

/// The request of each of several experiments that are run with one: each setting goes to the experiments that know its
/// key, and one of them must.
pub fn requests(experiments: &[&dyn Experiment], request: &Request) -> Result<Vec<Request>, PlanError> {
    let keys: Vec<Vec<&str>> = experiments
        .iter()
        .map(|experiment| experiment.inputs().iter().map(|input| input.key).collect())
        .collect();
    for setting in &request.settings {
        let (key, _) = setting.split_once('=').ok_or_else(|| InputError::NotASetting {
            setting: setting.clone(),
        })?;
        if !keys.iter().flatten().any(|known| *known == key) {
            let mut known: Vec<&str> = keys.concat();
            known.sort_unstable();
            known.dedup();
            let names: Vec<&str> = experiments.iter().map(|each| each.about().name).collect();
            return Err(InputError::unknown_key(&names.join(", "), key, &known).into());
        }
    }
    let of_keys = |keys: &Vec<&str>| {
        let known = |setting: &&String| keys.iter().any(|key| setting.split('=').next() == Some(key));
        Request {
            settings: request.settings.iter().filter(known).cloned().collect(),
            ..request.clone()
        }
    };
    Ok(keys.iter().map(of_keys).collect())
}

/// Plans several experiments with one request, as [`requests`] divides it.
pub fn plan_all<'a>(
    experiments: &[&'a dyn Experiment],
    request: &Request,
) -> Result<Vec<Plan<'a>>, PlanError> {
    let requests = requests(experiments, request)?;
    let pairs = experiments.iter().zip(&requests);
    pairs
        .map(|(experiment, request)| Plan::new(*experiment, request))
        .collect()
}

/// Runs one experiment on all the host's cores, without a cache: for use from Rust.
pub fn compare(experiment: &dyn Experiment, request: &Request) -> Result<Comparison, PlanError> {
    let runner = Runner {
        jobs: thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        cache: None,
        cancelled: &AtomicBool::new(false),
        observer: &(),
    };
    let plan = Plan::new(experiment, request)?;
    Ok(runner.run(&[plan]).remove(0))
}

/// Is told what a run is doing, from several threads.
pub trait Observer: Sync {
    /// A point of an experiment begins.
    fn begins(&self, _about: &About, _point: &Point) {}
    /// A point is done, or was given up.
    fn ends(&self, _about: &About, _point: &Point) {}
    /// The cache could not be used as it should; the point is run instead, or not kept.
    fn cache_problem(&self, _problem: &CacheProblem) {}
}

/// Nobody watches.
impl Observer for () {}

/// What runs plans.
pub struct Runner<'a> {
    /// How many points run side by side.
    pub jobs: NonZeroUsize,
    /// Where finished points are kept; `None` keeps and uses none.
    pub cache: Option<&'a Cache>,
    /// Turns true when the user wants to stop: no further point begins.
    pub cancelled: &'a AtomicBool,
    /// Who is told.
    pub observer: &'a dyn Observer,
}

/// A row with how many of its repetitions came from the cache.
type Finished = (Row, usize);

impl<'a> Plan<'a> {
    /// Checks the settings of a request and asks the experiment for its points.
    pub fn new(experiment: &'a dyn Experiment, request: &Request) -> Result<Plan<'a>, PlanError> {
        let about = experiment.about();
        let declared = experiment.inputs();
        let inputs = Inputs::new(about.name, &declared, request.quick, &request.settings)?;
        let points = experiment
            .points(&inputs)
            .map_err(|reason| PlanError::Contradiction {
                experiment: about.name,
                reason,
            })?;
        let usual = if request.quick {
            QUICK_REPETITIONS
        } else {
            REPETITIONS
        };
        let repetitions = match about.nature {
            Nature::Deterministic => 1,
            Nature::Seeded | Nature::Measured => request.repetitions.unwrap_or(usual),
        };
        Ok(Plan {
            experiment,
            about,
            declared,
            inputs,
            points,
            repetitions,
            request: request.clone(),
            shared: Arc::default(),
            is_part: false,
        })
    }

    /// The same with some of its points, numbered from 0; it has no findings.
    ///
    /// # Panics
    /// When there are not so many points.
    pub fn part(&self, points: Range<usize>) -> Plan<'a> {
        Plan {
            points: self.points[points].to_vec(),
            is_part: true,
            ..self.clone()
        }
    }

    /// One of its points, once, with what happens when.
    fn recorded(&self, point: usize) -> Plan<'a> {
        let mut recorded = self.part(point..point + 1);
        recorded.request.trace = true;
        recorded.repetitions = 1;
        recorded
    }

    /// For each point what its repetitions depend on: their names in a cache.
    pub fn names(&self, cache: &Cache) -> Vec<Vec<String>> {
        let readable = self.inputs.without_axes(&self.declared);
        let of_point = |point| {
            let seeds = self.seeds();
            let name = |seed| cache.name(&self.key(&readable, point, seed));
            seeds.map(name).collect()
        };
        self.points.iter().map(of_point).collect()
    }

    /// A key for each point, another whenever something is that its row depends on.
    pub fn keys(&self, cache: &Cache) -> Vec<String> {
        let names = self.names(cache).into_iter();
        names
            .map(|names| cache::hash(names.join("\n").as_bytes()))
            .collect()
    }

    /// The seed of each repetition.
    fn seeds(&self) -> impl Iterator<Item = u64> + use<> {
        let (nature, first) = (self.about.nature, self.request.seed);
        (0..self.repetitions).map(move |repetition| match nature {
            Nature::Deterministic => 0,
            Nature::Seeded | Nature::Measured => first.wrapping_add(u64::from(repetition)),
        })
    }

    /// What a repetition of a point depends on; `readable` holds no axes.
    fn key<'k>(&'k self, readable: &'k Inputs, point: &'k Point, seed: u64) -> Key<'k> {
        Key {
            about: &self.about,
            declared: &self.declared,
            inputs: readable,
            point,
            seed,
            trace: self.request.trace,
        }
    }

    /// How many points there are.
    pub fn points(&self) -> usize {
        self.points.len()
    }

    /// About how long all of them take, by the experiment's own words: as much for each point and repetition as usual.
    pub fn takes(&self) -> Duration {
        let quick = self.request.quick;
        let (in_all, usual) = match quick {
            true => (self.about.takes.0, QUICK_REPETITIONS),
            false => (self.about.takes.1, REPETITIONS),
        };
        let inputs = Inputs::new(self.about.name, &self.declared, quick, &[]).ok();
        let points = inputs.and_then(|inputs| self.experiment.points(&inputs).ok());
        let usual = match self.about.nature {
            Nature::Deterministic => 1,
            Nature::Seeded | Nature::Measured => usual,
        };
        let usual = points.map_or(1, |points| points.len().max(1)) as f64 * f64::from(usual);
        in_all.mul_f64(self.points.len() as f64 * f64::from(self.repetitions) / usual)
    }

    /// What the experiment asks.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// The checked inputs.
    pub fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    /// How it is to be run.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// How often each point is run.
    pub fn repetitions(&self) -> u32 {
        self.repetitions
    }

    fn is_measured(&self) -> bool {
        self.about.nature == Nature::Measured
    }
}

impl Runner<'_> {
    /// Runs every point of every plan. Points not begun when the user stops are [`PointError::Cancelled`].
    pub fn run(&self, plans: &[Plan]) -> Vec<Comparison> {
        let tasks = |measured: bool| -> Vec<(usize, usize)> {
            plans
                .iter()
                .enumerate()
                .filter(|(_, plan)| plan.is_measured() == measured)
                .flat_map(|(plan, of)| (0..of.points.len()).map(move |point| (plan, point)))
                .collect()
        };
        let mut finished = self.run_tasks(plans, &tasks(false), self.jobs);
        finished.extend(self.run_tasks(plans, &tasks(true), NonZeroUsize::MIN));
        finished.sort_by_key(|(task, _)| *task);
        let mut finished = finished.into_iter().map(|(_, row)| row);
        plans
            .iter()
            .map(|plan| conclude(plan, finished.by_ref().take(plan.points.len()).collect()))
            .collect()
    }

    /// Gives the comparisons of plans a timeline each, for a page to show: where none was recorded, that of the first
    /// point with a measurement, which is run once more for it. Nothing is measured anew: an experiment in real time
    /// gets none.
    ///
    /// # Errors
    /// [`PointError::Cancelled`] when the user stops meanwhile.
    pub fn record(&self, plans: &[Plan], comparisons: &mut [Comparison]) -> Result<(), PointError> {
        let pairs = plans.iter().zip(comparisons.iter_mut());
        let (recorded, rows): (Vec<Plan>, Vec<&mut Row>) = pairs
            .filter(|(plan, comparison)| {
                !plan.is_measured() && !plan.request.trace && comparison.is_complete()
            })
            .filter_map(|(plan, comparison)| {
                let first = comparison.rows.iter().position(|row| row.result.is_ok())?;
                Some((plan.recorded(first), &mut comparison.rows[first]))
            })
            .unzip();
        for (row, recorded) in rows.into_iter().zip(self.run(&recorded)) {
            match (
                &mut row.result,
                recorded.rows.into_iter().next().map(|row| row.result),
            ) {
                (Ok(measurement), Some(Ok(recorded))) => {
                    measurement.baseline.timeline = recorded.baseline.timeline;
                    measurement.sidestep.timeline = recorded.sidestep.timeline;
                }
                (_, Some(Err(PointError::Cancelled))) => return Err(PointError::Cancelled),
                // It was measured without: the page has the numbers, and no timeline.
                _ => {}
            }
        }
        Ok(())
    }

    fn run_tasks(
        &self,
        plans: &[Plan],
        tasks: &[(usize, usize)],
        jobs: NonZeroUsize,
    ) -> Vec<((usize, usize), Finished)> {
        let next = AtomicUsize::new(0);
        let finished = Mutex::new(Vec::with_capacity(tasks.len()));
        let work = || {
            while let Some(&task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                let plan = &plans[task.0];
                let row = self.run_point(plan, &plan.points[task.1]);
                finished.lock().expect("no holder panics").push((task, row));
            }
        };
        thread::scope(|scope| {
            for _ in 1..jobs.get().min(tasks.len()) {
                scope.spawn(work);
            }
            work();
        });
        finished.into_inner().expect("no holder panics")
    }

    /// Runs every repetition of a point.
    fn run_point(&self, plan: &Plan, point: &Point) -> Finished {
        let readable = plan.inputs.without_axes(&plan.declared);
        let mut measurements = Vec::new();
        let mut from_cache = 0;
        let mut failure = None;
        self.observer.begins(&plan.about, point);
        for seed in plan.seeds() {
            match self.run_once(plan, &readable, point, seed) {
                Ok((measurement, cached)) => {
                    from_cache += usize::from(cached);
                    measurements.push(measurement);
                }
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        self.observer.ends(&plan.about, point);
        let metric = plan.about.metric;
        let (stated, failure) = match contain(|| plan.experiment.stated(&readable, point)) {
            Ok(stated) => (stated, failure),
            Err(panicked) => (Vec::new(), failure.or(Some(panicked))),
        };
        let (result, spread) = match failure {
            Some(error) => (Err(error), None),
            None => {
                let (measurement, spread) = repeat::merge(metric, measurements);
                (Ok(measurement), spread)
            }
        };
        let row = Row {
            point: point.clone(),
            result,
            stated,
            metric,
            spread,
        };
        (row, from_cache)
    }

    /// Runs a point once, or takes it from the cache; says which.
    fn run_once(
        &self,
        plan: &Plan,
        inputs: &Inputs,
        point: &Point,
        seed: u64,
    ) -> Result<(Measurement, bool), PointError> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(PointError::Cancelled);
        }
        let kept = self
            .cache
            .map(|cache| (cache, cache.entry(&plan.key(inputs, point, seed))));
        if let Some((cache, entry)) = &kept {
            match cache.load(entry) {
                Ok(Some(measurement)) => return Ok((measurement, true)),
                Ok(None) => {}
                Err(problem) => self.observer.cache_problem(&problem),
            }
        }
        let context = Context::new(seed, plan.request.trace, self.cancelled, &plan.shared);
        let measurement = contain(|| plan.experiment.run_point(inputs, point, &context))??;
        if let Some((cache, entry)) = &kept
            && let Err(problem) = cache.store(entry, &measurement)
        {
            self.observer.cache_problem(&problem);
        }
        Ok((measurement, false))
    }
}

/// Puts an experiment's rows together and asks what they show as a whole.
fn conclude(plan: &Plan, finished: Vec<Finished>) -> Comparison {
    let from_cache = finished.iter().map(|(_, cached)| cached).sum();
    let rows: Vec<Row> = finished.into_iter().map(|(row, _)| row).collect();
    let findings = match !plan.is_part && rows.iter().any(|row| row.result.is_ok()) {
        true => contain(|| plan.experiment.findings(&plan.inputs, &rows)),
        false => Ok(Vec::new()),
    };
    let (findings, defect) = match findings {
        Ok(findings) => (findings, None),
        Err(panicked) => (Vec::new(), Some(panicked)),
    };
    Comparison {
        about: plan.about.clone(),
        declared: plan.declared.clone(),
        inputs: plan.inputs.clone(),
        settings: plan.request.settings.clone(),
        quick: plan.request.quick,
        seed: plan.request.seed,
        repetitions: plan.repetitions,
        rows,
        findings,
        defect,
        figures: plan.experiment.figures(),
        from_cache,
    }
}

/// Runs an experiment's code and turns its panic into an error.
fn contain<T>(code: impl FnOnce() -> T) -> Result<T, PointError> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| PointError::Panicked(panic_text(payload.as_ref())))
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a message".to_owned())
}
