//! Experiments as Python has them: a study is planned, a plan or parts of plans are run, a comparison is written.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::slice;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sidestep_experiments::VERSION;
use sidestep_lab::report::dataset::{self, Points};
use sidestep_lab::report::{self, catalogue};
use sidestep_lab::run::cache::{Cache, CacheProblem};
use sidestep_lab::{About, Experiment, Nature, Observer, Point, Request, Runner};

use crate::attention::attending;
use crate::errors::error;
use crate::own::Own;
use crate::policies::Governed;
use crate::services;

/// Adds what is here to the module.
pub fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Study>()?;
    module.add_class::<Plan>()?;
    module.add_class::<Comparison>()?;
    module.add_function(wrap_pyfunction!(names, module)?)?;
    module.add_function(wrap_pyfunction!(run_parts, module)?)?;
    module.add_function(wrap_pyfunction!(dataset_keys, module)?)
}

/// The names of the experiments that ship.
#[pyfunction]
fn names() -> Vec<&'static str> {
    let all = sidestep_experiments::all();
    all.into_iter().map(|each| each.about().name).collect()
}

/// The keys of the points in a part of a data set.
#[pyfunction]
fn dataset_keys(path: PathBuf) -> PyResult<Vec<String>> {
    dataset::keys(&path).map_err(error)
}

/// An experiment: one that ships, or one that is written in Python.
#[pyclass(frozen)]
pub struct Study {
    experiment: &'static dyn Experiment,
    /// The version of what computes its points; none where nothing says whether it has changed.
    version: Option<String>,
}

#[pymethods]
impl Study {
    /// The experiment of a name that ships.
    #[staticmethod]
    fn named(name: &str) -> PyResult<Study> {
        let found = sidestep_experiments::find(&[name.to_owned()]);
        match found.map_err(|unknown| PyKeyError::new_err(unknown.to_string()))?[..] {
            [experiment] if experiment.about().name == name => Ok(Study {
                experiment,
                version: Some(VERSION.to_owned()),
            }),
            _ => Err(PyKeyError::new_err(format!(
                "`{name}` is an area of several experiments"
            ))),
        }
    }

    /// An experiment that is written in Python, with the version of its source.
    #[staticmethod]
    fn own(definition: Bound<'_, PyAny>, version: Option<&str>) -> PyResult<Study> {
        Ok(Study {
            // As those that ship, it is there as long as the program: plans and comparisons refer to it.
            experiment: Box::leak(Box::new(Own::new(&definition)?)),
            version: version.map(|version| format!("{VERSION} {version}")),
        })
    }

    /// The simulated host of `gang` under a scheduling policy that is written in Python.
    #[staticmethod]
    fn governed(name: &str, policy: Py<PyAny>, version: Option<&str>) -> Study {
        Study {
            experiment: Box::leak(Box::new(Governed::new(name, policy))),
            version: version.map(|version| format!("{VERSION} {version}")),
        }
    }

    /// A service of a sidecore that is written in Python, asked by exit and by sidecall.
    #[staticmethod]
    fn served(name: &str, service: Py<PyAny>, version: Option<&str>) -> Study {
        Study {
            experiment: Box::leak(Box::new(services::experiment(name, service))),
            version: version.map(|version| format!("{VERSION} {version}")),
        }
    }

    /// What computes its points, if that is known.
    #[getter]
    fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// What it says about itself and its inputs, as JSON.
    fn description(&self) -> String {
        catalogue::json(&[self.experiment])
    }

    /// The same for people.
    fn details(&self, width: Option<usize>) -> String {
        catalogue::details(self.experiment, width)
    }

    /// The points of a request.
    fn plan(
        &self,
        settings: Vec<String>,
        quick: bool,
        seed: u64,
        repetitions: Option<u32>,
        trace: bool,
    ) -> PyResult<Plan> {
        let request = Request {
            settings,
            quick,
            seed,
            repetitions,
            trace,
        };
        Ok(Plan {
            plan: sidestep_lab::Plan::new(self.experiment, &request).map_err(error)?,
            version: self.version.clone(),
        })
    }
}

/// An experiment with checked inputs.
#[pyclass(frozen)]
pub struct Plan {
    plan: sidestep_lab::Plan<'static>,
    version: Option<String>,
}

impl Plan {
    /// Where its points are kept, if they are.
    fn cache(&self, folder: Option<PathBuf>) -> Option<Cache> {
        Some(Cache::at(folder?, self.version.clone()?))
    }
}

#[pymethods]
impl Plan {
    /// How many points it has.
    #[getter]
    fn points(&self) -> usize {
        self.plan.points()
    }

    /// Whether its points measure real time, and so run alone.
    #[getter]
    fn is_measured(&self) -> bool {
        self.plan.about().nature == Nature::Measured
    }

    /// About how many seconds it takes on two cores.
    #[getter]
    fn seconds(&self) -> f64 {
        self.plan.takes().as_secs_f64()
    }

    /// A key for each point, another whenever something is that its row depends on.
    fn keys(&self, py: Python<'_>) -> Vec<String> {
        let cache = Cache::at("", self.version.clone().unwrap_or_default());
        py.detach(|| self.plan.keys(&cache))
    }

    /// The files of each point in a cache.
    fn entries(&self, py: Python<'_>) -> Vec<Vec<String>> {
        let cache = Cache::at("", self.version.clone().unwrap_or_default());
        let names = py.detach(|| self.plan.names(&cache));
        let file = |name: String| name + ".point";
        names
            .into_iter()
            .map(|of_point| of_point.into_iter().map(file).collect())
            .collect()
    }

    /// Runs every point, so many at a time, and keeps them in a folder. `progress` is told now and then how many are
    /// done.
    #[pyo3(signature = (cache, jobs, progress=None))]
    fn run(
        &self,
        py: Python<'_>,
        cache: Option<PathBuf>,
        jobs: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Comparison> {
        let cache = self.cache(cache);
        let plan = self.plan.clone();
        let (mut comparisons, problems) = run(
            py,
            slice::from_ref(&plan),
            cache.as_ref(),
            jobs,
            |py, done| match &progress {
                Some(progress) => progress.call1(py, (done,)).map(drop),
                None => Ok(()),
            },
        )?;
        Ok(Comparison {
            comparison: comparisons.remove(0),
            plan,
            cache,
            problems,
        })
    }
}

/// Counts points, and keeps what is said of the cache.
#[derive(Default)]
struct Witness {
    done: AtomicUsize,
    problems: Mutex<Vec<String>>,
}

impl Observer for Witness {
    fn ends(&self, _: &About, _: &Point) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    fn cache_problem(&self, problem: &CacheProblem) {
        let mut problems = self.problems.lock().expect("no holder panics");
        problems.push(problem.to_string());
    }
}

fn run(
    py: Python<'_>,
    plans: &[sidestep_lab::Plan<'static>],
    cache: Option<&Cache>,
    jobs: usize,
    progress: impl Fn(Python<'_>, usize) -> PyResult<()>,
) -> PyResult<(Vec<sidestep_lab::Comparison>, Vec<String>)> {
    let witness = Witness::default();
    let cancelled = AtomicBool::new(false);
    let runner = Runner {
        jobs: NonZeroUsize::new(jobs).unwrap_or(NonZeroUsize::MIN),
        cache,
        cancelled: &cancelled,
        observer: &witness,
    };
    let stop = || cancelled.store(true, Ordering::Relaxed);
    let beat = |py: Python<'_>| progress(py, witness.done.load(Ordering::Relaxed));
    let comparisons = attending(py, stop, beat, || runner.run(plans))?;
    progress(py, witness.done.load(Ordering::Relaxed))?;
    Ok((
        comparisons,
        witness.problems.into_inner().expect("no holder panics"),
    ))
}

/// Runs parts of plans, from one point up to another, and answers them as a part of a data set, with how many
/// repetitions of points came from the cache.
#[pyfunction]
fn run_parts<'py>(
    py: Python<'py>,
    parts: Vec<(PyRef<'py, Plan>, usize, usize)>,
    cache: Option<PathBuf>,
) -> PyResult<(Bound<'py, PyBytes>, usize)> {
    let version = parts.first().and_then(|(plan, ..)| plan.version.clone());
    let cache = cache
        .zip(version.clone())
        .map(|(folder, version)| Cache::at(folder, version));
    let version = version.unwrap_or_default();
    let plans: Vec<_> = (parts.iter())
        .map(|(plan, first, end)| plan.plan.part(*first..*end))
        .collect();
    let (comparisons, _) = run(py, &plans, cache.as_ref(), 1, |_, _| Ok(()))?;
    let from_cache = comparisons.iter().map(|each| each.from_cache).sum();
    let names = Cache::at("", version.as_str());
    let points: Vec<Points> = (comparisons.into_iter().zip(&plans))
        .map(|(comparison, plan)| Points {
            keys: plan.keys(&names),
            comparison,
        })
        .collect();
    let bytes = py.detach(|| dataset::render(&points, &version));
    Ok((PyBytes::new(py, &bytes), from_cache))
}

/// The outcome of an experiment.
#[pyclass(frozen)]
pub struct Comparison {
    comparison: sidestep_lab::Comparison,
    /// What it came of, and where its points are kept: its page shows a timeline too.
    plan: sidestep_lab::Plan<'static>,
    cache: Option<Cache>,
    problems: Vec<String>,
}

#[pymethods]
impl Comparison {
    /// What the cache could not do, in words.
    #[getter]
    fn problems(&self) -> Vec<String> {
        self.problems.clone()
    }

    /// How many repetitions of points came from the cache.
    #[getter(from_cache)]
    fn kept_before(&self) -> usize {
        self.comparison.from_cache
    }

    /// As the command writes it, in its formats.
    fn json(&self) -> String {
        report::json::render(slice::from_ref(&self.comparison))
    }

    fn table(&self, width: usize) -> String {
        report::table::render(slice::from_ref(&self.comparison), width)
    }

    fn csv(&self) -> String {
        report::csv::render(slice::from_ref(&self.comparison))
    }

    fn markdown(&self) -> String {
        report::markdown::render(slice::from_ref(&self.comparison))
    }

    fn html(&self, py: Python<'_>) -> PyResult<String> {
        let cancelled = AtomicBool::new(false);
        let runner = Runner {
            jobs: NonZeroUsize::MIN,
            cache: self.cache.as_ref(),
            cancelled: &cancelled,
            observer: &(),
        };
        let mut comparisons = [self.comparison.clone()];
        let plans = slice::from_ref(&self.plan);
        let stop = || cancelled.store(true, Ordering::Relaxed);
        attending(py, stop, |_| Ok(()), || runner.record(plans, &mut comparisons))?.map_err(error)?;
        Ok(report::html::render(&comparisons))
    }

    fn parquet<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &report::parquet::render(slice::from_ref(&self.comparison)))
    }

    /// Timelines in the Trace Event Format, where the plan asked for them.
    fn trace(&self) -> String {
        report::trace::render(slice::from_ref(&self.comparison))
    }

    /// The charts: file name and SVG.
    fn charts(&self) -> Vec<(String, String)> {
        report::picture::files(&self.comparison)
    }
}
