//! `sidestep schedule --program PROG`: what GCC left behind in the hottest functions of a program.
//!
//! The program runs on the model as it is; its hottest functions are scheduled; it runs again. What makes any function
//! slower is put back ([`settle`](super::settle)). All runs are from one place under one name, so that what the program
//! is told of itself is the same.

use std::error::Error;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use sidestep_itanium2::{Event, Parameters, Profile};
use sidestep_runner::processes::Parts;
use sidestep_runner::program::Kept;
use sidestep_runner::recording::{Contents, profile_of};
use sidestep_schedule::Options;
use sidestep_schedule::program::function::{Function, Piece, Refused};
use sidestep_schedule::program::image::{Extent, Program};
use sidestep_schedule::program::rewrite::{Change, schedule, write};

use super::settle::{Measure, Settled, settle};
use crate::commands::Outcome;
use crate::commands::activity::Activity;
use crate::commands::perf::on_model;

/// What is asked beyond the program.
pub struct Way {
    /// How many functions.
    pub hot: u32,
    /// By how many percent of its cycles a function may get slower.
    pub slower: f64,
    /// Where the program is written.
    pub output: Option<PathBuf>,
    /// The program's arguments.
    pub arguments: Vec<OsString>,
}

/// A run on the model.
struct Run {
    /// Standard output.
    printed: Vec<u8>,
    /// As the host has it: exit code or signal.
    status: i32,
    cycles: u64,
    profile: Profile,
}

impl Run {
    fn cycles(&self, addresses: &Range<u64>) -> u64 {
        let places = self.profile.places.range(addresses.clone());
        places.map(|(_, place)| place.cycles()).sum()
    }

    fn executions(&self, addresses: &Range<u64>) -> u64 {
        let places = self.profile.places.range(addresses.clone());
        places.map(|(_, place)| place.executions).sum()
    }
}

/// The place that a program is run from, time and again.
struct Bench<'a> {
    folder: tempfile::TempDir,
    file: PathBuf,
    arguments: &'a [OsString],
    parameters: &'a Parameters,
}

impl Bench<'_> {
    fn run(&self, program: &[u8]) -> Result<Run, Box<dyn Error>> {
        fs::write(&self.file, program)?;
        fs::set_permissions(&self.file, fs::Permissions::from_mode(0o700))?;
        let mut parts = Parts::new().map_err(|error| format!("no file in memory can be had: {error}"))?;
        let printed = self.folder.path().join("printed");
        let status = on_model(self.parameters, &Kept::Profile, &parts)
            .arg(&self.file)
            .args(self.arguments)
            .stdin(Stdio::null())
            .stdout(fs::File::create(&printed)?)
            .stderr(Stdio::null())
            .status()?;
        let mut run = Run {
            printed: fs::read(&printed)?,
            status: status.into_raw(),
            cycles: 0,
            profile: Profile::default(),
        };
        for part in parts.read()? {
            run.cycles += part.counters().get(Event::CpuCycles);
            if let (Some(Contents::Places(places)), true) = (&part.contents, part.program == self.file) {
                run.profile.add(&profile_of(places, &self.file)?);
            }
        }
        Ok(run)
    }
}

/// A function that may get faster.
struct Work {
    extent: Extent,
    /// How many of its blocks are written anew, or why none can be.
    blocks: Result<usize, Refused>,
    /// How many blocks were put back, and a function that got slower by that of them.
    put_back: Vec<(usize, String)>,
}

/// Runs of a program with some of its blocks written anew.
struct Trial<'a> {
    bench: &'a Bench<'a>,
    program: &'a Program<'a>,
    file: &'a [u8],
    before: &'a Run,
    /// In percent.
    slower: f64,
}

impl Trial<'_> {
    fn rewritten(&self, changes: &[Change]) -> Vec<u8> {
        let mut rewritten = self.file.to_vec();
        write(&mut rewritten, self.program, changes.iter());
        rewritten
    }
}

impl Measure for Trial<'_> {
    type Run = Run;
    type Error = Box<dyn Error>;

    fn run(&mut self, changes: &[Change]) -> Result<Run, Box<dyn Error>> {
        self.bench.run(&self.rewritten(changes))
    }

    fn slowed(&self, run: &Run) -> Option<Extent> {
        let mut functions = self.program.functions.iter();
        functions
            .find(|extent| self.is_slower(run, &extent.addresses))
            .cloned()
    }

    fn is_slower(&self, run: &Run, addresses: &Range<u64>) -> bool {
        let (before, after) = (self.before.cycles(addresses), run.cycles(addresses));
        after > before && (after - before) as f64 > before as f64 * self.slower / 100.0
    }
}

/// Runs the command.
pub fn run(path: &Path, way: Way, options: &Options) -> Outcome {
    let said = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = fs::read(path).map_err(|error| said(&error))?;
    let program = Program::parse(&file).map_err(|error| said(&error))?;
    program.expect_constant_code().map_err(|error| said(&error))?;
    let folder = tempfile::tempdir()?;
    let bench = Bench {
        file: folder
            .path()
            .join(path.file_name().ok_or_else(|| said(&"is no file"))?),
        folder,
        arguments: &way.arguments,
        parameters: &options.parameters,
    };
    let activity = Activity::begin("the program runs on the model, and its functions are scheduled");
    let before = bench.run(&file)?;
    let (mut work, changes) = choose(&program, &before, way.hot, options)?;
    if work.is_empty() {
        let said = said(
            &"none of its functions ran at the address in its file: it is loaded elsewhere, or does not run",
        );
        return Err(said.into());
    }
    let mut trial = Trial {
        bench: &bench,
        program: &program,
        file: &file,
        before: &before,
        slower: way.slower,
    };
    let settled = settle(&mut trial, &changes)?;
    work.iter_mut().for_each(|work| work.count(&settled));
    let rewritten = trial.rewritten(&settled.kept);
    let after = settled.run.as_ref().unwrap_or(&before);
    drop(activity);
    if (&after.printed, after.status) != (&before.printed, before.status) {
        return Err(said(
            &"prints or returns something else when its functions are scheduled; nothing was written, \
             and this is a defect of the scheduler or a program that depends on time",
        )
        .into());
    }
    if let Some(output) = &way.output {
        sidestep_files::write(output, &rewritten)?;
        fs::set_permissions(output, fs::metadata(path)?.permissions())?;
    }
    crate::commands::print_table(&table(&work, &before, after))?;
    Ok(ExitCode::SUCCESS)
}

impl Work {
    /// Counts what is written of its blocks.
    fn count<R>(&mut self, settled: &Settled<R>) {
        let is_inside = |change: &Change| self.extent.addresses.contains(&change.addresses.start);
        if let Ok(blocks) = &mut self.blocks {
            *blocks = settled.kept.iter().filter(|change| is_inside(change)).count();
        }
        for (_, slowed) in settled.put_back.iter().filter(|(change, _)| is_inside(change)) {
            match self.put_back.iter_mut().find(|(_, name)| *name == slowed.name) {
                Some((count, _)) => *count += 1,
                None => self.put_back.push((1, slowed.name.clone())),
            }
        }
    }

    /// Its name, and what is to be said of it.
    fn remark(&self) -> String {
        let mut said = self.extent.name.clone();
        if let Err(refused) = &self.blocks {
            let _ = write!(said, ": refused: {refused}");
        }
        for (place, (count, slowed)) in self.put_back.iter().enumerate() {
            let mark = if place == 0 { ":" } else { ";" };
            let _ = match *slowed == self.extent.name {
                true => write!(said, "{mark} {count} put back, slower when scheduled"),
                false => write!(said, "{mark} {count} put back, `{slowed}` gets slower by it"),
            };
        }
        said
    }
}

/// The hottest functions, and their blocks that were executed, scheduled.
fn choose(
    program: &Program<'_>,
    before: &Run,
    hot: u32,
    options: &Options,
) -> Result<(Vec<Work>, Vec<Change>), Box<dyn Error>> {
    let mut extents: Vec<&Extent> = program.functions.iter().collect();
    extents.retain(|extent| before.cycles(&extent.addresses) > 0);
    extents.sort_by_key(|extent| std::cmp::Reverse(before.cycles(&extent.addresses)));
    let mut work = Vec::new();
    let mut changes: Vec<Change> = Vec::new();
    for extent in extents.into_iter().take(hot as usize) {
        let blocks = match Function::read(program, extent, &options.parameters) {
            Ok(function) => {
                let is_executed = |piece: &Piece| before.executions(&piece.addresses) > 0;
                let mut found = schedule(&function, is_executed, options)?;
                // A function may lie in another one.
                found.retain(|change| {
                    changes
                        .iter()
                        .all(|other| is_apart(&other.addresses, &change.addresses))
                });
                changes.extend(found);
                Ok(0)
            }
            Err(refused) => Err(refused),
        };
        work.push(Work {
            extent: extent.clone(),
            blocks,
            put_back: Vec::new(),
        });
    }
    Ok((work, changes))
}

fn is_apart(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.end <= other.start || other.end <= one.start
}

/// A line for each function, and one for the program.
fn table(work: &[Work], before: &Run, after: &Run) -> String {
    let mut table = "          before           after    gain  blocks  function\n".to_owned();
    let mut line = |first: u64, second: u64, blocks: &str, name: &str| {
        let gain = match first {
            0 => 0.0,
            _ => 100.0 * (first as f64 - second as f64) / first as f64,
        };
        // Writing to a string cannot fail.
        let _ = writeln!(table, "{first:>16}{second:>16}{gain:>7.1}%{blocks:>8}  {name}");
    };
    for work in work {
        let blocks = work.blocks.as_ref().map_or("-".to_owned(), usize::to_string);
        let addresses = &work.extent.addresses;
        line(
            before.cycles(addresses),
            after.cycles(addresses),
            &blocks,
            &work.remark(),
        );
    }
    let blocks: usize = work.iter().filter_map(|work| work.blocks.as_ref().ok()).sum();
    line(before.cycles, after.cycles, &blocks.to_string(), "the program");
    table
}
