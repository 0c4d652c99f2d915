//! `perf report` and `perf annotate`: what a recording says.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use sidestep_itanium2::{Parameters, Profile};
use sidestep_runner::annotate::{AnnotateError, Code, ProfiledCycles};
use sidestep_runner::recording::{
    Contents, RecordError, RecordedEvent, RecordedProcess, Recording, profile_of,
};
use sidestep_runner::samples::{self, ByInstruction, Key, Part};

use crate::commands::Outcome;

/// Print a recording by function, address, latency, level or outcome.
#[derive(Args)]
pub struct Report {
    /// The recording
    #[arg(short, long, value_name = "FILE", default_value = "perf.json")]
    input: PathBuf,
    /// What tells rows apart, separated by commas; without any, what tells most about the event: of loads the level
    /// they came from, of misses of a TLB where the translation was, of branches where they went
    #[arg(short, long, value_name = "KEY", value_delimiter = ',')]
    sort: Vec<SortKey>,
    #[command(flatten)]
    processes: Processes,
    /// The rows of a table
    #[arg(long, value_name = "NUMBER", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    rows: u32,
}

/// Print the bundles of a function with what was recorded at each.
#[derive(Args)]
pub struct Annotate {
    /// The recording
    #[arg(short, long, value_name = "FILE", default_value = "perf.json")]
    input: PathBuf,
    /// Only the function of this name; without it all functions, and the bundles of the one with the most
    #[arg(long, value_name = "NAME")]
    symbol: Option<String>,
    #[command(flatten)]
    processes: Processes,
}

/// Of which processes.
#[derive(Args)]
struct Processes {
    /// Only these processes, by their numbers, separated by commas
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    pid: Vec<u32>,
    /// Only processes of programs with these names, separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    comm: Vec<String>,
}

impl Processes {
    /// Those of a recording.
    fn of<'recording>(
        &self,
        recording: &'recording Recording,
        input: &Path,
    ) -> Result<Vec<&'recording RecordedProcess>, String> {
        let is_wanted = |process: &&RecordedProcess| {
            (self.pid.is_empty() || self.pid.contains(&process.pid))
                && (self.comm.is_empty() || self.comm.contains(&process.command))
        };
        let wanted: Vec<_> = recording.processes.iter().filter(is_wanted).collect();
        if !wanted.is_empty() {
            return Ok(wanted);
        }
        let all = recording.processes.iter();
        let all: Vec<String> = all
            .map(|process| format!("{} {}", process.pid, process.command))
            .collect();
        Err(format!(
            "{}: has no such process, but {}",
            input.display(),
            all.join(", ")
        ))
    }
}

/// The processes of one program, and its code.
struct Group<'recording> {
    code: Code,
    processes: Vec<&'recording RecordedProcess>,
}

/// Processes by their programs, in the order of the first process of each.
fn grouped<'recording>(
    processes: &[&'recording RecordedProcess],
) -> Result<Vec<Group<'recording>>, Box<dyn Error>> {
    let mut groups: Vec<Group> = Vec::new();
    for process in processes {
        let same = |group: &&mut Group| group.processes[0].program == process.program;
        match groups.iter_mut().find(same) {
            Some(group) => group.processes.push(process),
            None => groups.push(Group {
                code: Code::read(&process.program)?,
                processes: vec![process],
            }),
        }
    }
    Ok(groups)
}

impl Group<'_> {
    /// `name (processes 12, 13)`.
    fn title(&self) -> String {
        let numbers: BTreeSet<u32> = self.processes.iter().map(|process| process.pid).collect();
        let processes = match numbers.len() {
            1 => "process",
            _ => "processes",
        };
        let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
        format!(
            "{} ({processes} {})\n",
            self.processes[0].command,
            numbers.join(", ")
        )
    }

    /// The cycles of its processes, if those were recorded.
    fn profile(&self, input: &Path) -> Result<Option<Profile>, RecordError> {
        let mut sum = None;
        for process in &self.processes {
            if let Contents::Places(places) = &process.contents {
                sum.get_or_insert_with(Profile::default)
                    .add(&profile_of(places, input)?);
            }
        }
        Ok(sum)
    }

    /// The samples of its processes, by event.
    fn events(&self) -> Vec<RecordedEvent> {
        let events = events_of(&self.processes);
        events
            .iter()
            .map(|parts| RecordedEvent::together(parts))
            .collect()
    }
}

/// The samples of processes, by event.
fn events_of<'recording>(processes: &[&'recording RecordedProcess]) -> Vec<Vec<&'recording RecordedEvent>> {
    let mut events: Vec<Vec<&RecordedEvent>> = Vec::new();
    for process in processes {
        if let Contents::Samples(parts) = &process.contents {
            events.resize(events.len().max(parts.len()), Vec::new());
            for (event, part) in events.iter_mut().zip(parts) {
                event.push(part);
            }
        }
    }
    events
}

/// A key on the command line.
#[derive(Clone, Copy, Debug)]
struct SortKey(Key);

impl ValueEnum for SortKey {
    fn value_variants<'a>() -> &'a [SortKey] {
        const KEYS: [SortKey; Key::ALL.len()] = {
            let mut keys = [SortKey(Key::Sym); Key::ALL.len()];
            let mut index = 0;
            while index < keys.len() {
                keys[index] = SortKey(Key::ALL[index]);
                index += 1;
            }
            keys
        };
        &KEYS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.description()))
    }
}

impl Report {
    /// Prints the tables.
    pub fn run(self) -> Outcome {
        let recording = Recording::read(&self.input)?;
        let processes = self.processes.of(&recording, &self.input)?;
        let groups = grouped(&processes)?;
        let mut texts = Vec::new();
        for group in &groups {
            let Some(profile) = group.profile(&self.input)? else {
                continue;
            };
            if self.sort.iter().any(|key| key.0 != Key::Sym) {
                return Err(format!(
                    "{}: is a recording of all cycles, which has no key but `sym`; record with --event",
                    self.input.display()
                )
                .into());
            }
            let title = match recording.processes.len() {
                1 => String::new(),
                _ => group.title(),
            };
            texts.push(title + &group.code.by_symbol(&profile)?);
        }
        let rows = usize::try_from(self.rows).unwrap_or(usize::MAX);
        let keys: Vec<Key> = self.sort.iter().map(|key| key.0).collect();
        let parameters = parameters_of(&recording, &self.input)?;
        for event in 0..events_of(&processes).len() {
            texts.push(table(&groups, event, &parameters, &keys, rows)?);
        }
        crate::commands::print_table(&texts.join("\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn parameters_of(recording: &Recording, input: &Path) -> Result<Parameters, String> {
    Parameters::by_name(&recording.processor).map_err(|error| format!("{}: {error}", input.display()))
}

/// The table of an event, by its number.
fn table(
    groups: &[Group<'_>],
    event: usize,
    parameters: &Parameters,
    keys: &[Key],
    rows: usize,
) -> Result<String, AnnotateError> {
    let mut parts = Vec::new();
    for group in groups {
        for process in &group.processes {
            if let Contents::Samples(events) = &process.contents
                && let Some(event) = events.get(event)
            {
                parts.push(Part {
                    pid: process.pid,
                    command: &process.command,
                    names: group.code.names()?,
                    event,
                });
            }
        }
    }
    Ok(samples::table(&parts, parameters, keys, rows))
}

impl Annotate {
    /// Prints the bundles.
    pub fn run(self) -> Outcome {
        let recording = Recording::read(&self.input)?;
        let processes = self.processes.of(&recording, &self.input)?;
        let parameters = parameters_of(&recording, &self.input)?;
        let groups = grouped(&processes)?;
        let (mut texts, mut unknown) = (Vec::new(), None);
        for group in &groups {
            match self.of_group(group, &parameters) {
                Ok(text) if groups.len() > 1 => texts.push(group.title() + &text),
                Ok(text) => texts.push(text),
                // Another program may have the function.
                Err(error) => unknown = Some(error),
            }
        }
        match unknown {
            Some(error) if texts.is_empty() => return Err(error),
            _ => crate::commands::print_table(&texts.join("\n"))?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn of_group(&self, group: &Group<'_>, parameters: &Parameters) -> Result<String, Box<dyn Error>> {
        let symbol = self.symbol.as_deref();
        let code = &group.code;
        let mut texts = Vec::new();
        if let Some(profile) = group.profile(&self.input)? {
            let functions = match symbol {
                None => format!("{}\n", code.by_symbol(&profile)?),
                Some(_) => String::new(),
            };
            texts.push(functions + &code.annotate(&ProfiledCycles::of(&profile), symbol)?);
        }
        for (number, event) in group.events().iter().enumerate() {
            let one = std::slice::from_ref(group);
            let functions = match symbol {
                None => format!("{}\n", table(one, number, parameters, &[Key::Sym], FUNCTIONS)?),
                Some(_) => String::new(),
            };
            texts.push(functions + &code.annotate(&ByInstruction::of(event), symbol)?);
        }
        Ok(texts.join("\n"))
    }
}

/// Functions in the table above the bundles.
const FUNCTIONS: usize = 30;
