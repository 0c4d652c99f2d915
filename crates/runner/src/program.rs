//! A program on the model of an Itanium 2.
//!
//! [`Model`] runs every thread of a process on a pipeline of its own; at the end it renders its [`Report`]. What
//! executes is the interpreter, or [`Executors`] that it was given.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard};

use sidestep_ia64::{Driver, Exit, Processor};
use sidestep_itanium2::pmu::sampling::Sampled;
use sidestep_itanium2::{Booking, Counters, Pace, Parameters, Pipeline, Profile, Sampler, Selection};
use sidestep_linux_user::code_names::CodeNames;
use sidestep_linux_user::engine::Engine;

use crate::annotate::{AnnotateError, Code, ProfiledCycles};
use crate::causes::with_causes;
use crate::shared::Shared;

/// What is told at the end of a run.
pub trait Report: std::fmt::Debug + Send + Sync {
    /// The text, from the sum of all threads; an error where what was wanted of the run could not be kept.
    fn render(&self, parameters: &Parameters, sum: &Sum) -> Result<String, String>;
}

/// What is kept of a run beside its counters.
#[derive(Clone, Debug)]
pub enum Kept {
    /// Nothing.
    Counters,
    /// The cycles of every bundle.
    Profile,
    /// Samples.
    Samples(Vec<(Selection, Pace)>),
}

impl fmt::Display for Kept {
    /// As [`FromStr`] reads it: `counters`, `profile`, or samples as `EVENT:EVENTS` and `EVENT@CYCLES`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kept::Counters => out.write_str("counters"),
            Kept::Profile => out.write_str("profile"),
            Kept::Samples(wanted) => {
                let sampled = |(selection, pace): &(Selection, Pace)| match pace {
                    Pace::Events(period) => format!("{}:{period}", selection.name()),
                    Pace::Cycles(cycles) => format!("{}@{cycles}", selection.name()),
                };
                out.write_str(&wanted.iter().map(sampled).collect::<Vec<_>>().join(","))
            }
        }
    }
}

impl FromStr for Kept {
    type Err = String;

    fn from_str(text: &str) -> Result<Kept, String> {
        let sampled = |text: &str| {
            let (name, separator, pace) = match (text.rsplit_once(':'), text.rsplit_once('@')) {
                (Some((name, pace)), _) => (name, ':', pace),
                (None, Some((name, pace))) => (name, '@', pace),
                (None, None) => return Err(format!("`{text}` is no event with its period")),
            };
            let selection = Selection::by_name(name).map_err(|error| error.to_string())?;
            let pace: NonZeroU64 = pace.parse().map_err(|_| format!("`{pace}` is no period"))?;
            Ok(match separator {
                ':' => (selection, Pace::Events(pace)),
                _ => (selection, Pace::Cycles(pace)),
            })
        };
        match text {
            "counters" => Ok(Kept::Counters),
            "profile" => Ok(Kept::Profile),
            _ => Ok(Kept::Samples(
                text.split(',').map(sampled).collect::<Result<_, _>>()?,
            )),
        }
    }
}

/// Executes threads under the eyes of their pipelines, in the place of the interpreter. Shown as text they tell what
/// they have done. No number depends on them.
pub trait Executors: fmt::Debug + fmt::Display + Send + Sync {
    /// What executes another thread.
    fn executor(&self) -> Box<dyn Executor + Send>;

    /// Forgets what was done so far: the process was forked, and this is the child.
    fn forget(&self);

    /// Ends the host threads that they have of their own, which may begin again later.
    fn rest(&self);
}

/// Executes one thread.
pub trait Executor {
    /// Executes at most `limit` instructions, telling a pipeline of them.
    fn run(&mut self, processor: &mut Processor, limit: u64, pipeline: &mut Pipeline) -> Exit;
}

/// A thread that an executor runs on a pipeline.
struct Executed {
    pipeline: Shared<Pipeline>,
    executor: Box<dyn Executor + Send>,
}

impl Driver for Executed {
    fn run(&mut self, processor: &mut Processor, limit: u64) -> Exit {
        self.executor.run(processor, limit, &mut self.pipeline.lock())
    }
}

/// The pipelines of a process.
#[derive(Debug)]
pub struct Model<R> {
    parameters: Parameters,
    kept: Kept,
    /// Whether blocks are booked as a whole where what they cost is known.
    books_blocks: bool,
    /// What executes in the place of the interpreter.
    executors: Option<Arc<dyn Executors>>,
    report: R,
    pipelines: Mutex<Vec<Shared<Pipeline>>>,
}

impl<R: Report> Model<R> {
    /// A model of the processor that `parameters` describe.
    pub fn new(parameters: Parameters, kept: Kept, report: R) -> Model<R> {
        Model {
            parameters,
            kept,
            books_blocks: true,
            executors: None,
            report,
            pipelines: Mutex::default(),
        }
    }

    /// The same, but for whether blocks are booked as a whole where what they cost is known. No number depends on it.
    pub fn book_blocks(self, wanted: bool) -> Model<R> {
        Model {
            books_blocks: wanted,
            ..self
        }
    }

    /// The same, but for what executes: the interpreter for `None`. No number depends on it.
    pub fn execute_by(self, executors: Option<Arc<dyn Executors>>) -> Model<R> {
        Model { executors, ..self }
    }

    fn pipelines(&self) -> MutexGuard<'_, Vec<Shared<Pipeline>>> {
        self.pipelines
            .lock()
            .expect("no thread panics while it adds a pipeline")
    }
}

impl<R: Report> Engine for Model<R> {
    fn attach(&self) -> Box<dyn Driver + Send> {
        let mut pipeline = Pipeline::new(self.parameters.clone());
        pipeline.book_blocks(self.books_blocks);
        match &self.kept {
            Kept::Counters => {}
            Kept::Profile => pipeline.enable_profile(),
            Kept::Samples(wanted) => pipeline.enable_samples(Sampler::new(wanted.iter().copied())),
        }
        let shared = Shared::new(pipeline);
        self.pipelines().push(shared.clone());
        match &self.executors {
            None => Box::new(shared),
            Some(executors) => Box::new(Executed {
                pipeline: shared,
                executor: executors.executor(),
            }),
        }
    }

    fn forget(&self) {
        self.pipelines().clear();
        if let Some(executors) = &self.executors {
            executors.forget();
        }
    }

    fn rest(&self) {
        if let Some(executors) = &self.executors {
            executors.rest();
        }
    }

    fn report(&self, _: &CodeNames) -> Result<String, String> {
        let mut sum = Sum::default();
        for pipeline in self.pipelines().iter() {
            sum.add(&mut pipeline.lock());
        }
        if let Some(executors) = &self.executors {
            sum.execution = executors.to_string();
        }
        self.report.render(&self.parameters, &sum)
    }
}

/// What several pipelines counted.
#[derive(Default)]
pub struct Sum {
    /// The counters.
    pub counters: Counters,
    /// The cycles by bundle, of those pipelines that keep them.
    pub profile: Profile,
    /// The samples of each pipeline, in the order in which the threads were started.
    pub samples: Vec<Vec<Sampled>>,
    /// How often blocks were booked as a whole.
    pub booking: Booking,
    /// What executors tell of themselves, in lines.
    pub execution: String,
}

impl Sum {
    /// Ends a pipeline's run and adds what it counted.
    pub fn add(&mut self, pipeline: &mut Pipeline) {
        self.counters += pipeline.finish();
        self.booking += pipeline.booking();
        if let Some(part) = pipeline.profile() {
            self.profile.add(part);
        }
        if let Some(sampler) = pipeline.sampler() {
            self.samples.push(sampler.sampled().to_vec());
        }
    }
}

/// Cycles and stalls; of a profiled program also its functions, and the slowest one's bundles.
pub fn text_of(
    parameters: &Parameters,
    counters: &Counters,
    profiled: Option<(&Profile, Result<Code, AnnotateError>)>,
) -> String {
    let mut text = heading(parameters, counters);
    text.push_str(&counters.to_string());
    if let Some((profile, code)) = profiled {
        let annotated = code.and_then(|code| {
            let (table, bundles) = (
                code.by_symbol(profile)?,
                code.annotate(&ProfiledCycles::of(profile), None)?,
            );
            Ok(format!("\n{table}\n{bundles}"))
        });
        text.push_str(&annotated.unwrap_or_else(|error| format!("sidestep: {}\n", with_causes(&error))));
    }
    text
}

/// The first line of every report.
pub fn heading(parameters: &Parameters, counters: &Counters) -> String {
    let cycles = counters.get(sidestep_itanium2::Event::CpuCycles);
    let nanoseconds = u128::from(cycles) * 1000 / u128::from(parameters.megahertz.max(1));
    format!(
        "{}: {} ({} MHz); {} us of processor time\n",
        parameters.name,
        parameters.description,
        parameters.megahertz,
        nanoseconds / 1000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_has_a_text_form() {
        for text in ["counters", "profile", "IA64_INST_RETIRED:1009,CPU_CYCLES@100000"] {
            assert_eq!(
                text.parse::<Kept>().map(|kept| kept.to_string()),
                Ok(text.to_owned())
            );
        }
        assert!("CPU_CYCLES".parse::<Kept>().is_err());
    }
}
