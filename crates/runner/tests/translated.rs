//! Programs on the model, interpreted and translated: every number and every byte is the same.

#![cfg(feature = "translator")]

use std::path::Path;
use std::sync::{Arc, Mutex};

use sidestep_itanium2::{Counters, Parameters};
use sidestep_linux_user::engine::Engine;
use sidestep_linux_user::{Launch, Options};
use sidestep_runner::program::{Executors, Kept, Model, Report, Sum};
use sidestep_runner::translation::Translation;
use sidestep_translator::{Background, Settings};

/// Instructions of each program: enough for its main loop, and not for minutes.
const INSTRUCTIONS_MAX: u64 = 4_000_000;
/// The programs of `suites/speed`. Each has one thread: what several do depends on the host.
const PROGRAMS: &[&str] = &[
    "sieve",
    "sort",
    "hash",
    "strings",
    "records",
    "integer-matrix",
    "matmul",
    "nbody",
    "fft",
    "mandelbrot",
    "lu",
    "calls",
    "chase",
];

/// What a run has counted.
#[derive(Clone, Debug, Default)]
struct Counted(Arc<Mutex<Counters>>);

impl Report for Counted {
    fn render(&self, _: &Parameters, sum: &Sum) -> Result<String, String> {
        *self.0.lock().expect("one thread tells") = sum.counters;
        Ok(String::new())
    }
}

fn run(program: &str, executors: Option<Arc<dyn Executors>>) -> Counters {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/ia64/bin");
    let counted = Counted::default();
    let model = Model::new(Parameters::default(), Kept::Counters, counted.clone());
    let launch = Launch {
        program: path.join(program),
        arguments: vec![program.as_bytes().to_vec()],
        options: Options {
            engine: Some(Arc::new(model.execute_by(executors)) as Arc<dyn Engine>),
            instructions_max: Some(INSTRUCTIONS_MAX),
            ..Options::default()
        },
        ..Launch::default()
    };
    sidestep_linux_user::run(launch).expect("the program is in the repository");
    let counted = counted.0.lock().expect("one thread tells");
    *counted
}

fn translation(settings: Settings, background: Option<Arc<Background>>) -> Arc<Translation> {
    let translation = Translation::new(settings, background, (false, false));
    Arc::new(translation.expect("a host that code is emitted for"))
}

/// How many instructions have retired in translated code, as the statistics tell it.
fn translated(translation: &Translation) -> u64 {
    let told = translation.to_string();
    let line = told.lines().next().expect("a line for each count");
    let count = line.split_whitespace().last().expect("a count");
    count.parse().expect("a number")
}

/// A process runs one program at a time: this is one test.
#[test]
fn programs_cost_the_same_translated_and_interpreted() {
    for program in PROGRAMS {
        let interpreted = run(program, None);
        let always = translation(Settings::ALWAYS, None);
        assert_eq!(run(program, Some(always.clone())), interpreted, "{program}");
        let retired = translated(&always);
        assert!(retired > INSTRUCTIONS_MAX / 2, "{program}: {retired}");

        // What another thread has finished by when is up to the host.
        let settings = Settings {
            threshold: 10,
            ..Settings::ALWAYS
        };
        let behind = translation(settings, Some(Arc::default()));
        assert_eq!(run(program, Some(behind)), interpreted, "{program}");
    }
}
