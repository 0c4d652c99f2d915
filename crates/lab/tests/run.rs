//! Running experiments: side by side, repeated, kept, contained, interrupted.

#[allow(dead_code)] // Each test uses some of the samples.
mod sample;

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::slice::from_ref;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use sample::RedundantSignals;
use sidestep_lab::run::cache::{Cache, CacheProblem};
use sidestep_lab::run::plan_all;
use sidestep_lab::{
    About, Comparison, Context, Experiment, Input, Inputs, Measurement, Nature, Number, Observer, Plan,
    Point, PointError, Request, Runner, Side, report,
};

/// Of what computes the points that these tests keep.
const VERSION: &str = "tests";

/// Keeps what it is told.
#[derive(Default)]
struct Witness(Mutex<Vec<String>>);

impl Observer for Witness {
    fn cache_problem(&self, problem: &CacheProblem) {
        self.0.lock().unwrap().push(problem.to_string());
    }
}

fn run(
    experiment: &dyn Experiment,
    request: &Request,
    cache: Option<&Cache>,
    jobs: usize,
) -> (Comparison, Vec<String>) {
    let cancelled = AtomicBool::new(false);
    let witness = Witness::default();
    let runner = Runner {
        jobs: NonZeroUsize::new(jobs).unwrap(),
        cache,
        cancelled: &cancelled,
        observer: &witness,
    };
    let plan = Plan::new(experiment, request).unwrap();
    let comparison = runner.run(&[plan]).remove(0);
    (comparison, witness.0.into_inner().unwrap())
}

fn traced() -> Request {
    Request {
        trace: true,
        ..Request::default()
    }
}

/// An experiment made of closures' worth of behaviour: what each point does is chosen by its number.
struct Misbehaving {
    nature: Nature,
    runs: AtomicUsize,
    at_once: AtomicU64,
    most_at_once: AtomicU64,
}

impl Misbehaving {
    fn new(nature: Nature) -> Misbehaving {
        Misbehaving {
            nature,
            runs: AtomicUsize::new(0),
            at_once: AtomicU64::new(0),
            most_at_once: AtomicU64::new(0),
        }
    }
}

impl Experiment for Misbehaving {
    fn about(&self) -> About {
        About {
            name: "sample.misbehaving",
            nature: self.nature,
            ..RedundantSignals.about()
        }
    }

    fn inputs(&self) -> Vec<Input> {
        vec![
            Input::integers("step", &[0, 1, 2, 3]).between(0, 100).axis(),
            Input::switch("panic", false),
            Input::file("recording"),
        ]
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        match inputs.integers("step").as_slice() {
            [100] => Err("`step` alone at 100 measures nothing".to_owned()),
            steps => Ok(steps.iter().map(|&step| Point::new().at("step", step)).collect()),
        }
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        let running = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_once.fetch_max(running, Ordering::SeqCst);
        self.runs.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(2));
        self.at_once.fetch_sub(1, Ordering::SeqCst);
        if inputs.switch("panic") {
            assert!(point.value("step").integer() != 1, "step one was not expected");
            if point.value("step").integer() == 2 {
                return Err(PointError::Unavailable("no second step".to_owned()));
            }
        }
        Ok(Measurement::new(Side::new(10 + context.seed), Side::new(10)))
    }
}

#[test]
fn the_outcome_does_not_depend_on_jobs_or_cache() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path(), VERSION);
    let (alone, _) = run(&RedundantSignals, &traced(), None, 1);
    let (first, _) = run(&RedundantSignals, &traced(), Some(&cache), 4);
    let (second, problems) = run(&RedundantSignals, &traced(), Some(&cache), 3);
    assert_eq!((first.from_cache, second.from_cache), (0, 4));
    assert_eq!(problems, [""; 0]);
    for render in [
        report::json::render,
        report::csv::render,
        report::trace::render,
        report::html::render,
    ] {
        let expected = render(from_ref(&alone));
        assert_eq!(render(from_ref(&first)), expected);
        assert_eq!(render(from_ref(&second)), expected);
    }
}

#[test]
fn a_longer_sweep_keeps_the_points_of_a_shorter_one_but_an_input_changes_them() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path(), VERSION);
    let with = |settings: &[&str]| Request {
        settings: settings.iter().map(|text| text.to_string()).collect(),
        ..Request::default()
    };
    run(&RedundantSignals, &with(&["guests=1,8"]), Some(&cache), 1);
    let (longer, _) = run(&RedundantSignals, &with(&["guests=1,8,64"]), Some(&cache), 1);
    assert_eq!(longer.from_cache, 2);
    let (other, _) = run(
        &RedundantSignals,
        &with(&["guests=1,8", "bits=4"]),
        Some(&cache),
        1,
    );
    assert_eq!(other.from_cache, 0);
}

#[test]
fn a_corrupt_entry_is_named_and_its_point_runs_anew() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path(), VERSION);
    let (first, _) = run(&RedundantSignals, &traced(), Some(&cache), 1);
    let mut entries: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    type Damage<'a> = (&'a str, &'a dyn Fn(&Path));
    let damage: [Damage; 4] = [
        ("cut short", &|path| fs::write(path, b"").unwrap()),
        ("not an entry", &|path| {
            fs::write(path, b"something\nelse").unwrap()
        }),
        ("its checksum does not match", &|path| {
            let mut bytes = fs::read(path).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            fs::write(path, bytes).unwrap();
        }),
        ("not text", &|path| fs::write(path, [0xff, 0xfe]).unwrap()),
    ];
    for (path, (_, damage)) in entries.iter().zip(&damage) {
        damage(path);
    }
    let (second, mut problems) = run(&RedundantSignals, &traced(), Some(&cache), 2);
    assert_eq!(second.from_cache, 0);
    assert_eq!(second.rows, first.rows);
    problems.sort();
    let expected: Vec<String> = (entries.iter().zip(&damage))
        .map(|(path, (what, _))| {
            format!(
                "cache entry {} is corrupt ({what}); its point runs anew",
                path.display()
            )
        })
        .collect();
    assert_eq!(problems, expected);
    let (third, problems) = run(&RedundantSignals, &traced(), Some(&cache), 2);
    assert_eq!((third.from_cache, problems.len()), (4, 0));
}

#[test]
fn an_entry_under_another_points_name_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path(), VERSION);
    run(&RedundantSignals, &traced(), Some(&cache), 1);
    let entries: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    fs::copy(&entries[0], &entries[1]).unwrap();
    let (_, problems) = run(&RedundantSignals, &traced(), Some(&cache), 1);
    assert_eq!(problems.len(), 1);
    assert!(
        problems[0].contains("it belongs to another point"),
        "{problems:?}"
    );
}

#[test]
fn a_cache_that_cannot_be_written_costs_no_result() {
    let cache = Cache::at("/proc/no-such-folder", VERSION);
    let (comparison, problems) = run(&RedundantSignals, &Request::default(), Some(&cache), 1);
    assert!(comparison.rows.iter().all(|row| row.result.is_ok()));
    assert_eq!(problems.len(), 4);
    assert!(
        problems[0].starts_with("a finished point cannot be kept"),
        "{problems:?}"
    );
}

#[test]
fn the_content_of_a_file_is_part_of_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path().join("cache"), VERSION);
    let recording = folder.path().join("recording");
    let request = Request {
        settings: vec![format!("recording={}", recording.display())],
        ..Request::default()
    };
    let experiment = Misbehaving::new(Nature::Deterministic);
    for (content, cached) in [("one", 0), ("one", 4), ("two", 0)] {
        fs::write(&recording, content).unwrap();
        let (comparison, _) = run(&experiment, &request, Some(&cache), 1);
        assert_eq!(comparison.from_cache, cached, "{content}");
    }
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(&recording, &elsewhere).unwrap();
    let request = Request {
        settings: vec![format!("recording={}", elsewhere.display())],
        ..Request::default()
    };
    let (comparison, _) = run(&experiment, &request, Some(&cache), 1);
    assert_eq!(comparison.from_cache, 4, "where a file lies changes nothing");
}

#[test]
fn another_version_has_points_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    for (version, cached) in [("1", 0), ("2", 0), ("1", 4)] {
        let cache = Cache::at(folder.path(), version);
        let (comparison, _) = run(&RedundantSignals, &Request::default(), Some(&cache), 1);
        assert_eq!(comparison.from_cache, cached, "{version}");
    }
}

#[test]
fn a_part_of_a_sweep_has_the_rows_of_the_whole() {
    let plan = Plan::new(&RedundantSignals, &Request::default()).unwrap();
    let part = plan.part(1..3);
    let runner = Runner {
        jobs: NonZeroUsize::MIN,
        cache: None,
        cancelled: &AtomicBool::new(false),
        observer: &(),
    };
    let [whole, part] = &runner.run(&[plan, part])[..] else {
        panic!("a comparison for each plan");
    };
    assert_eq!(part.rows, whole.rows[1..3]);
    assert!(!whole.findings.is_empty() && part.findings.is_empty());
}

#[test]
fn a_panic_is_the_failure_of_its_point_alone_and_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path(), VERSION);
    let request = Request {
        settings: vec!["panic=on".to_owned()],
        ..Request::default()
    };
    let (comparison, _) = run(
        &Misbehaving::new(Nature::Deterministic),
        &request,
        Some(&cache),
        4,
    );
    let errors: Vec<_> = comparison
        .rows
        .iter()
        .map(|row| row.result.as_ref().err().cloned())
        .collect();
    let panicked = PointError::Panicked("step one was not expected".to_owned());
    let unavailable = PointError::Unavailable("no second step".to_owned());
    assert_eq!(errors, [None, Some(panicked), Some(unavailable), None]);
    assert_eq!(comparison.failures().count(), 1);
    assert!(comparison.is_complete());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn measured_points_run_alone_and_are_repeated() {
    let experiment = Misbehaving::new(Nature::Measured);
    let request = Request {
        seed: 5,
        repetitions: Some(3),
        ..Request::default()
    };
    let (comparison, _) = run(&experiment, &request, None, 4);
    assert_eq!(experiment.runs.load(Ordering::SeqCst), 12);
    assert_eq!(experiment.most_at_once.load(Ordering::SeqCst), 1);
    let spread = comparison.rows[0].spread.unwrap();
    assert_eq!(spread.repetitions, 3);
    let baseline = spread.baseline.unwrap();
    assert_eq!(
        (baseline.low, baseline.value, baseline.high),
        (15.into(), 16.into(), 17.into())
    );
    assert_eq!(baseline.confidence, Number::ratio(3, 4));
}

#[test]
fn a_deterministic_experiment_runs_once_and_never_sees_a_seed() {
    let experiment = Misbehaving::new(Nature::Deterministic);
    let request = Request {
        seed: 5,
        repetitions: Some(3),
        ..Request::default()
    };
    let (comparison, _) = run(&experiment, &request, None, 4);
    assert_eq!(experiment.runs.load(Ordering::SeqCst), 4);
    assert_eq!(comparison.rows[0].spread, None);
    assert_eq!(
        comparison.rows[0].measurement().unwrap().baseline.value,
        Some(10.into())
    );
}

#[test]
fn after_an_interruption_the_finished_points_are_there() {
    /// Stops after two points.
    struct Stopping<'a>(&'a AtomicBool, AtomicUsize);
    impl Observer for Stopping<'_> {
        fn ends(&self, _about: &About, _point: &Point) {
            let stop = self.1.fetch_add(1, Ordering::SeqCst) == 1;
            self.0.fetch_or(stop, Ordering::SeqCst);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path(), VERSION);
    let cancelled = AtomicBool::new(false);
    let stopping = Stopping(&cancelled, AtomicUsize::new(0));
    let runner = Runner {
        jobs: NonZeroUsize::MIN,
        cache: Some(&cache),
        cancelled: &cancelled,
        observer: &stopping,
    };
    let plan = Plan::new(&RedundantSignals, &Request::default()).unwrap();
    let part = runner.run(&[plan]).remove(0);
    assert!(!part.is_complete());
    assert_eq!(part.rows.iter().filter(|row| row.result.is_ok()).count(), 2);
    let (whole, _) = run(&RedundantSignals, &Request::default(), Some(&cache), 1);
    assert_eq!((whole.is_complete(), whole.from_cache), (true, 2));
}

#[test]
fn settings_go_to_the_experiments_that_know_them() {
    let misbehaving = Misbehaving::new(Nature::Deterministic);
    let both: [&dyn Experiment; 2] = [&RedundantSignals, &misbehaving];
    let plan = |settings: &[&str]| {
        let settings = settings.iter().map(|text| text.to_string()).collect();
        plan_all(
            &both,
            &Request {
                settings,
                ..Request::default()
            },
        )
        .map(|plans| plans.iter().map(Plan::points).collect::<Vec<_>>())
    };
    assert_eq!(plan(&["guests=3", "step=1,2"]).unwrap(), [1, 2]);
    assert_eq!(
        plan(&["guest=3"]).unwrap_err().to_string(),
        "sample.signals, sample.misbehaving has no input `guest` (did you mean `guests`?); its inputs are bits, \
         guests, panic, recording, step, wake"
    );
    assert_eq!(
        plan(&["step=100"]).unwrap_err().to_string(),
        "sample.misbehaving: `step` alone at 100 measures nothing"
    );
}
