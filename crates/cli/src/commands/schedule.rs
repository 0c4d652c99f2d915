//! `sidestep schedule FILE.S`: the functions of a source with the fewest cycles on the model of the pipeline.
//!
//! Instructions of a block change places, and get new bundles; nothing else changes. GNU as has to be installed.
//! [`program`]: `sidestep schedule --program PROG`, the same for the hottest functions of a linked program.

mod program;
mod settle;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use sidestep_itanium2::Parameters;
use sidestep_schedule::Options;
use sidestep_schedule::assembly::{Speculation, Ways};
use sidestep_schedule::pipelining::LoopReport;
use sidestep_schedule::rewrite::{FunctionReport, PredicatedBranch, rewrite};
use sidestep_schedule::tools::preprocess;

use super::Outcome;
use super::activity::Activity;
use super::perf::parse_processor;

/// Schedule IA-64 assembly for the fewest cycles, with a proof.
///
/// Each block is scheduled by a list scheduler and then by an exact one, which finds the shortest schedule or says
/// how far from it the best one is at most. The table has the cycles of each block on the model before and after;
/// `limit` is what the architecture would allow: unlimited units, each result in the next group.
#[derive(Args)]
pub struct Schedule {
    /// Assembly source in GNU syntax (.S, .s)
    #[arg(required_unless_present = "program")]
    file: Option<PathBuf>,
    /// Instead: a linked program, whose hottest functions are scheduled where they are. It runs on the model, with an
    /// empty standard input, before and after; what makes any function slower is put back
    #[arg(long, value_name = "PROG", conflicts_with_all = ["file", "function", "speculate"])]
    program: Option<PathBuf>,
    /// How many functions of a program, those with the most cycles
    #[arg(long, value_name = "N", default_value_t = 10, conflicts_with = "file",
        value_parser = clap::value_parser!(u32).range(1..))]
    hot: u32,
    /// By how many percent of its cycles any function of a program may get slower for what others gain: waits move
    /// between functions
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, conflicts_with = "file",
        value_parser = parse_percent)]
    slower: f64,
    /// Only this function
    #[arg(long, value_name = "NAME")]
    function: Option<String>,
    /// The processor
    #[arg(long, value_name = "PROCESSOR", default_value = "itanium2", value_parser = parse_processor)]
    timing: Parameters,
    /// Write the source with the scheduled functions; of a .S file, as the C preprocessor left it. Of a program, the
    /// program with them
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Let instructions pass branches before them, and choose registers anew, as far as comments of the source say who
    /// reads what: `// schedule: dead at LABEL: r2-r8, p6`
    #[arg(long)]
    speculate: bool,
    /// Pipeline loops of one block: several iterations at once, by rotating registers. With --speculate, also what is
    /// not known to be executed yet in loops that a condition ends
    #[arg(long, conflicts_with = "program")]
    pipeline: bool,
    /// Let predicates take the place of forward branches where that is slower neither way
    #[arg(long, conflicts_with = "program")]
    predicate: bool,
    /// Seconds that the exact scheduler may take for a block; 0: the list scheduler alone
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    time_limit: u64,
    /// The program's arguments
    #[arg(value_name = "ARGS", last = true, conflicts_with = "file")]
    arguments: Vec<OsString>,
}

impl Schedule {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let options = Options {
            parameters: self.timing,
            time_limit: Duration::from_secs(self.time_limit),
        };
        if let Some(program) = self.program {
            let way = program::Way {
                hot: self.hot,
                slower: self.slower,
                output: self.output,
                arguments: self.arguments,
            };
            return program::run(&program, way, &options);
        }
        let file = self.file.ok_or("say which file")?;
        let text = preprocess(&file)?;
        let activity = Activity::begin("blocks are scheduled");
        let speculation = match self.speculate {
            true => Speculation::Asserted,
            false => Speculation::None,
        };
        let ways = Ways {
            speculation,
            is_pipelined: self.pipeline,
            is_predicated: self.predicate,
        };
        let rewritten = rewrite(&text, &file, self.function.as_deref(), ways, &options)?;
        drop(activity);
        let mut table = String::new();
        for function in &rewritten.functions {
            describe(&mut table, function);
        }
        if let Some(output) = &self.output {
            sidestep_files::write(output, rewritten.text.as_bytes())?;
        }
        super::print_table(&table)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok();
    let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
    percent.ok_or_else(|| format!("`{text}` is no percentage: give a number from 0 to 100"))
}

/// The blocks of a function, one a line.
fn describe(table: &mut String, function: &FunctionReport) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        table,
        "{}: {} cycles, {} before\n",
        function.name, function.after, function.before
    );
    let _ = writeln!(
        table,
        "  line  instructions  before  listed  cycles  at least  limit"
    );
    for block in &function.blocks {
        let outcome = &block.outcome;
        let proof = match (outcome.is_optimal(), block.is_written) {
            (true, true) => "optimal".to_owned(),
            (true, false) => "optimal as it was".to_owned(),
            (false, _) => format!("at most {} more than the best", outcome.modelled - outcome.bound),
        };
        // Code that faults whatever its registers hold was compared by its dependencies alone.
        let unseen = match block.is_written && block.compared.completed == 0 {
            true => "; faults in every random state, so its values were not compared",
            false => "",
        };
        let cycles = match block.is_written {
            true => outcome.modelled,
            false => block.before,
        };
        let checked = match block.checks {
            0 => String::new(),
            count => format!("; {count} loads pass branches, with a check"),
        };
        let _ = writeln!(
            table,
            "{:>6}{:>14}{:>8}{:>8}{:>8}{:>10}{:>7}  {proof}{checked}{unseen}",
            block.line,
            block.instructions,
            block.before,
            outcome.listed,
            cycles,
            outcome.bound,
            outcome.architectural
        );
    }
    table.push('\n');
    describe_branches(table, &function.branches);
    if function.loops.is_empty() {
        return;
    }
    let _ = writeln!(
        table,
        "  loop  instructions  before  cycles  at least: units  recurrence  stages  rotating  from"
    );
    function
        .loops
        .iter()
        .for_each(|report| describe_loop(table, report));
    table.push('\n');
}

/// The branches that predicates have taken the place of, one a line.
fn describe_branches(table: &mut String, branches: &[PredicatedBranch]) {
    if branches.is_empty() {
        return;
    }
    let _ = writeln!(table, "branch  instructions   taken   not taken  cycles");
    for branch in branches {
        let [taken, not_taken] = branch.before;
        let _ = writeln!(
            table,
            "{:>6}{:>14}{taken:>8}{not_taken:>12}{:>8}  predicates",
            branch.line, branch.instructions, branch.after
        );
    }
    table.push('\n');
}

/// A loop in cycles an iteration.
fn describe_loop(table: &mut String, report: &LoopReport) {
    let each = |cycles: u64| cycles as f64 / LoopReport::ITERATIONS as f64;
    let _ = write!(table, "{:>6}{:>14}", report.line, report.instructions);
    let _ = match &report.outcome {
        Err(reason) if report.before == 0 => writeln!(table, "  not pipelined: {reason}"),
        Err(reason) => writeln!(
            table,
            "{:>8.2}{:>8.2}{:>17}{:>12}  not pipelined: {reason}",
            each(report.before),
            each(report.before),
            report.units,
            report.recurrence
        ),
        Ok(found) => {
            let from = found
                .worth_from
                .map_or("never".to_owned(), |count| count.to_string());
            let least = report.units.max(report.recurrence);
            let is_optimal = found.cycles <= u64::from(least) * LoopReport::ITERATIONS;
            writeln!(
                table,
                "{:>8.2}{:>8.2}{:>17}{:>12}{:>8}{:>10}{from:>6}{}",
                each(report.before),
                each(found.cycles),
                report.units,
                report.recurrence,
                found.stages,
                found.rotating,
                if is_optimal { "  optimal" } else { "" }
            )
        }
    };
}
