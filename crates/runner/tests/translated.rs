//! Programs on the model, interpreted and translated: every number and every byte is the same.

#![cfg(feature = "translator")]

mod programs;

use std::sync::{Arc, Mutex};

use programs::{INSTRUCTIONS_MAX, OF_SPEED};
use sidestep_itanium2::{Counters, Parameters};
use sidestep_runner::program::{Executors, Kept, Model, Report, Sum};
use sidestep_runner::translation::Translation;
use sidestep_translator::{Background, Settings};

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
    let counted = Counted::default();
    let model = Model::new(Parameters::default(), Kept::Counters, counted.clone());
    programs::run(program, Arc::new(model.execute_by(executors)));
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
    for program in OF_SPEED {
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
