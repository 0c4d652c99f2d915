//! `sidestep schedule --program PROG`: what GCC left behind in the hottest functions of a program.
//!
//! The program runs on the model as it is; its hottest functions are scheduled; it runs again. What got slower is put
//! back, block by block and then function by function, until nothing is. All runs are from one place under one name, so
//! that what the program is told of itself is the same.

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
use sidestep_schedule::program::function::{Function, Refused};
use sidestep_schedule::program::image::{Extent, Program};
use sidestep_schedule::program::rewrite::{Change, schedule, write};

use crate::commands::Outcome;
use crate::commands::activity::Activity;
use crate::commands::perf::on_model;

/// What is asked beyond the program.
pub struct Way {
    /// How many functions.
    pub hot: u32,
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
    /// Its blocks that are written anew, or why none can be.
    changes: Result<Vec<Change>, Refused>,
    /// Whether it got slower, and was put back.
    is_put_back: bool,
}

/// Runs the command.
pub fn run(path: &Path, way: Way, options: &Options) -> Outcome {
    let said = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = fs::read(path).map_err(|error| said(&error))?;
    let program = Program::parse(&file).map_err(|error| said(&error))?;
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
    let mut work = choose(&program, &before, way.hot, options)?;
    if work.is_empty() {
        let said = said(
            &"none of its functions ran at the address in its file: it is loaded elsewhere, or does not run",
        );
        return Err(said.into());
    }
    let (rewritten, after) = settle(&bench, &program, (&file, &before), &mut work)?;
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
    crate::commands::print_table(&table(&work, &before, &after))?;
    Ok(ExitCode::SUCCESS)
}

/// The hottest functions, scheduled where they were executed.
fn choose(
    program: &Program<'_>,
    before: &Run,
    hot: u32,
    options: &Options,
) -> Result<Vec<Work>, Box<dyn Error>> {
    let mut extents: Vec<&Extent> = program.functions.iter().collect();
    extents.retain(|extent| before.cycles(&extent.addresses) > 0);
    extents.sort_by_key(|extent| std::cmp::Reverse(before.cycles(&extent.addresses)));
    let mut work = Vec::new();
    for extent in extents.into_iter().take(hot as usize) {
        let changes = match Function::read(program, extent, &options.parameters) {
            Ok(function) => Ok(schedule(
                &function,
                |piece| before.executions(&piece.addresses) > 0,
                options,
            )?),
            Err(refused) => Err(refused),
        };
        work.push(Work {
            extent: extent.clone(),
            changes,
            is_put_back: false,
        });
    }
    Ok(work)
}

/// Puts back what got slower until no function is, and answers the program with its run.
fn settle(
    bench: &Bench<'_>,
    program: &Program<'_>,
    (file, before): (&[u8], &Run),
    work: &mut [Work],
) -> Result<(Vec<u8>, Run), Box<dyn Error>> {
    let mut is_by_blocks = true;
    loop {
        let mut rewritten = file.to_vec();
        let changes = work.iter().filter_map(|work| work.changes.as_ref().ok());
        write(&mut rewritten, program, changes.flatten());
        let after = bench.run(&rewritten)?;
        let mut is_settled = true;
        for work in work.iter_mut() {
            let is_slower = |addresses: &Range<u64>| after.cycles(addresses) > before.cycles(addresses);
            let Ok(changes) = &mut work.changes else { continue };
            if changes.is_empty() || !is_slower(&work.extent.addresses) {
                continue;
            }
            is_settled = false;
            put_back(changes, is_by_blocks, is_slower);
            work.is_put_back = changes.is_empty();
        }
        if is_settled {
            return Ok((rewritten, after));
        }
        is_by_blocks = false;
    }
}

/// Of a function that got slower puts back its blocks that did, or all of them if that is not asked for or none did.
fn put_back(changes: &mut Vec<Change>, is_by_blocks: bool, is_slower: impl Fn(&Range<u64>) -> bool) {
    let count = changes.len();
    if is_by_blocks {
        changes.retain(|change| !is_slower(&change.addresses));
    }
    if changes.len() == count {
        changes.clear();
    }
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
        let name = &work.extent.name;
        let (blocks, said) = match &work.changes {
            Ok(_) if work.is_put_back => (
                "0".to_owned(),
                format!("{name}: slower when scheduled, so put back"),
            ),
            Ok(changes) => (changes.len().to_string(), name.clone()),
            Err(refused) => ("-".to_owned(), format!("{name}: refused: {refused}")),
        };
        let addresses = &work.extent.addresses;
        line(before.cycles(addresses), after.cycles(addresses), &blocks, &said);
    }
    let blocks: usize = work
        .iter()
        .filter_map(|work| work.changes.as_ref().ok())
        .map(Vec::len)
        .sum();
    line(before.cycles, after.cycles, &blocks.to_string(), "the program");
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes() -> Vec<Change> {
        let change = |start: u64| Change {
            addresses: start..start + 16,
            ..Change::default()
        };
        vec![change(0), change(16), change(32)]
    }

    /// The starts of what is left.
    fn left(is_by_blocks: bool, slower: &[u64]) -> Vec<u64> {
        let mut changes = changes();
        put_back(&mut changes, is_by_blocks, |addresses| {
            slower.contains(&addresses.start)
        });
        changes.iter().map(|change| change.addresses.start).collect()
    }

    #[test]
    fn blocks_that_got_slower_are_put_back_and_else_the_function() {
        assert_eq!(left(true, &[16]), [0, 32]);
        // What got slower is none of them, but what is between them.
        assert_eq!(left(true, &[]), []);
        assert_eq!(left(false, &[16]), []);
    }
}
