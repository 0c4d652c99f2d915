//! Tables of samples: by what was executed, what was referred to, how long it took, where branches went.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sidestep_itanium2::{
    Parameters, Selection, pmu::event_address::DataEvents, pmu::event_address::FetchEvents,
    pmu::selection::Source,
};

use crate::annotate::{Measured, Names, percent};
use crate::recording::{RecordedBranch, RecordedEvent, RecordedSample, Translated};

macro_rules! keys {
    ($($key:ident = $name:literal, $heading:literal, $about:literal;)+) => {
        /// What the rows of a table are told apart by, under the names that `perf report` has for them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Key {
            $(#[doc = concat!($about, ".")] $key,)+
        }

        impl Key {
            /// Every key.
            pub const ALL: &'static [Key] = &[$(Key::$key,)+];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Key::$key => $name,)+ }
            }

            /// What it tells apart, in a few words.
            pub fn description(self) -> &'static str {
                match self { $(Key::$key => $about,)+ }
            }

            fn heading(self) -> &'static str {
                match self { $(Key::$key => $heading,)+ }
            }
        }
    };
}

keys! {
    Sym = "sym", "function", "The function";
    Symoff = "symoff", "place", "The place in the function, with the slot";
    Comm = "comm", "command", "The name of the program";
    Pid = "pid", "process", "The number of the process";
    Tid = "tid", "thread", "The process and its thread, in the order in which they were started";
    SymbolDaddr = "symbol_daddr", "data", "The variable that was referred to, or the address";
    Dcacheline = "dcacheline", "line", "The line of the first-level cache that was referred to";
    Mem = "mem", "from", "The level that the data or the instructions came from";
    Tlb = "tlb", "translated by", "Where the translation was found";
    LocalWeight = "local_weight", "cycles", "The cycles that the load or the fetch took";
    SymbolFrom = "symbol_from", "branch", "The place of the branch";
    SymbolTo = "symbol_to", "target", "The place that it went to";
    Taken = "taken", "taken", "Whether the branch was taken";
    Mispredict = "mispredict", "mispredicted", "What of the branch was predicted wrongly";
}

impl Key {
    /// What tells most about the samples of an event.
    fn usual(event: &RecordedEvent) -> &'static [Key] {
        let source = Selection::by_name(&event.event).map(|selection| selection.source());
        match source {
            Ok(Source::Loads(DataEvents::Latency(_))) => &[Key::Mem, Key::Sym],
            Ok(Source::Loads(DataEvents::Translation(_)) | Source::Fetches(FetchEvents::Translation(_))) => {
                &[Key::Tlb, Key::Sym]
            }
            Ok(Source::Fetches(FetchEvents::Latency(_))) => &[Key::Mem, Key::Sym],
            Ok(Source::Branches) => &[Key::SymbolFrom, Key::SymbolTo, Key::Taken, Key::Mispredict],
            _ => &[Key::Sym],
        }
    }
}

/// What stands where there is nothing to say.
const NOTHING: &str = "-";

/// The samples of one event in one process.
pub struct Part<'recording> {
    /// The number of the process.
    pub pid: u32,
    /// The name of its program.
    pub command: &'recording str,
    /// The names of its code.
    pub names: Names<'recording>,
    /// Its samples.
    pub event: &'recording RecordedEvent,
}

/// Where the values of keys come from.
struct Reader<'part, 'recording> {
    part: &'part Part<'recording>,
    parameters: &'part Parameters,
}

impl Reader<'_, '_> {
    fn value(&self, key: Key, sample: &RecordedSample) -> String {
        let said = match key {
            Key::Sym => Some(self.part.names.function(sample.ip)),
            Key::Symoff | Key::SymbolFrom => Some(self.place(sample)),
            Key::Comm => Some(self.part.command.to_owned()),
            Key::Pid => Some(self.part.pid.to_string()),
            Key::Tid => Some(format!("{}/{}", self.part.pid, sample.thread)),
            Key::SymbolDaddr => sample.address.map(|address| self.part.names.variable(address)),
            Key::Dcacheline => {
                let line = u64::from(self.parameters.l1d.line);
                sample
                    .address
                    .map(|address| format!("{:#x}", address / line * line))
            }
            Key::Mem => sample.latency.map(|latency| self.level(latency).to_owned()),
            Key::Tlb => sample.latency.map(|_| translated(sample.translated).to_owned()),
            Key::LocalWeight => sample.latency.map(|latency| latency.to_string()),
            Key::SymbolTo => {
                let target = sample.branch.as_ref().and_then(|branch| branch.target);
                target.map(|target| self.part.names.place(target))
            }
            Key::Taken => sample.branch.as_ref().map(|branch| match branch.target {
                Some(_) => "taken".to_owned(),
                None => "not taken".to_owned(),
            }),
            Key::Mispredict => sample
                .branch
                .as_ref()
                .map(|branch| mispredicted(branch).to_owned()),
        };
        said.unwrap_or_else(|| NOTHING.to_owned())
    }

    fn place(&self, sample: &RecordedSample) -> String {
        let place = self.part.names.place(sample.ip);
        match sample.slot {
            Some(slot) => format!("{place}.{slot}"),
            None => place,
        }
    }

    /// The level that answers after so many cycles, of the first kind of load.
    fn level(&self, latency: u64) -> &'static str {
        let parameters = &self.parameters;
        match latency {
            _ if latency >= parameters.memory.into() => "memory",
            _ if latency >= parameters.l3.latency.into() => "L3",
            _ if latency >= parameters.l2.latency.into() => "L2",
            _ => "L1",
        }
    }
}

fn translated(by: Option<Translated>) -> &'static str {
    match by {
        None => "first TLB",
        Some(Translated::Second) => "second TLB",
        Some(Translated::Walker) => "walker",
        Some(Translated::Software) => "software",
    }
}

fn mispredicted(branch: &RecordedBranch) -> &'static str {
    match (branch.wrong_path, branch.wrong_target) {
        (true, _) => "direction",
        (false, true) => "target",
        (false, false) => NOTHING,
    }
}

/// A table of an event's samples in all processes: by `keys`, or by what tells most of them and, of several programs,
/// the program, with at most so many rows.
///
/// # Panics
/// If there is no process.
pub fn table(parts: &[Part<'_>], parameters: &Parameters, keys: &[Key], rows: usize) -> String {
    let events: Vec<&RecordedEvent> = parts.iter().map(|part| part.event).collect();
    let event = &RecordedEvent::together(&events);
    let has_programs = parts.iter().any(|part| part.command != parts[0].command);
    let usual: Vec<Key> = has_programs
        .then_some(Key::Comm)
        .into_iter()
        .chain(Key::usual(event).iter().copied())
        .collect();
    let keys = if keys.is_empty() { &usual } else { keys };
    let mut counts: BTreeMap<Vec<String>, (u64, u64)> = BTreeMap::new();
    for part in parts {
        let reader = Reader { part, parameters };
        for sample in &part.event.samples {
            let row = keys.iter().map(|key| reader.value(*key, sample)).collect();
            let (samples, weight) = counts.entry(row).or_default();
            *samples += 1;
            *weight = weight.saturating_add(sample.weight);
        }
    }
    let total = total(counts.values().map(|(_, weight)| *weight));
    let mut order: Vec<(&Vec<String>, u64, u64)> = counts
        .iter()
        .map(|(row, (samples, weight))| (row, *samples, *weight))
        .collect();
    order.sort_by_key(|(row, _, weight)| (std::cmp::Reverse(*weight), *row));
    let shown = &order[..rows.min(order.len())];
    let mut widths: Vec<usize> = keys.iter().map(|key| key.heading().len()).collect();
    for (row, ..) in shown {
        for (width, value) in widths.iter_mut().zip(*row) {
            *width = (*width).max(value.chars().count());
        }
    }
    let mut text = heading(event);
    let line = |values: &mut dyn Iterator<Item = &str>| {
        let cells = widths
            .iter()
            .zip(values)
            .map(|(width, value)| format!("{value:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let headings = line(&mut keys.iter().map(|key| key.heading()));
    let _ = writeln!(text, "{:>8} {:>10}  {headings}", "overhead", "samples");
    for (row, samples, weight) in shown {
        let share = percent(*weight, total);
        let values = line(&mut row.iter().map(String::as_str));
        let _ = writeln!(text, "{share:>8} {samples:>10}  {values}");
    }
    if order.len() > shown.len() {
        let _ = writeln!(text, "... and {} more rows", order.len() - shown.len());
    }
    text
}

/// The sum of weights, whatever a file says that they are.
fn total(weights: impl Iterator<Item = u64>) -> u64 {
    weights.fold(0, u64::saturating_add)
}

/// What was sampled, how often; and of loads and fetches how long they took.
fn heading(event: &RecordedEvent) -> String {
    let pace = match (event.period, event.cycles) {
        (Some(period), _) => format!("one of {period}"),
        (None, cycles) => format!("one in {} cycles", cycles.unwrap_or(0)),
    };
    let mut text = format!(
        "{}: {} events, {} samples ({pace})",
        event.event,
        event.events,
        event.samples.len()
    );
    if event.lost > 0 {
        let _ = write!(text, ", {} lost", event.lost);
    }
    text.push('\n');
    let weighted = Latencies::of(event.samples.iter());
    if let Some(latencies) = weighted {
        let _ = writeln!(text, "{:>8} {latencies}", "");
        latencies.write_ranges(&mut text);
    }
    text
}

/// How long loads or fetches took.
struct Latencies {
    least: u64,
    most: u64,
    sum: u128,
    weight: u64,
    /// The weight by the power of two not above the latency.
    by_power: BTreeMap<u32, u64>,
}

impl Latencies {
    /// Of the samples that have a latency, if any has.
    fn of<'samples>(samples: impl Iterator<Item = &'samples RecordedSample>) -> Option<Latencies> {
        let mut latencies = Latencies {
            least: u64::MAX,
            most: 0,
            sum: 0,
            weight: 0,
            by_power: BTreeMap::new(),
        };
        for sample in samples {
            let Some(latency) = sample.latency.filter(|latency| *latency > 0) else {
                continue;
            };
            latencies.least = latencies.least.min(latency);
            latencies.most = latencies.most.max(latency);
            let cycles = u128::from(latency) * u128::from(sample.weight);
            latencies.sum = latencies.sum.saturating_add(cycles);
            latencies.weight = latencies.weight.saturating_add(sample.weight);
            let range = latencies.by_power.entry(latency.ilog2()).or_default();
            *range = range.saturating_add(sample.weight);
        }
        (latencies.weight > 0).then_some(latencies)
    }

    fn write_ranges(&self, text: &mut String) {
        for (power, weight) in &self.by_power {
            let share = percent(*weight, self.weight);
            let first = 1_u64 << power;
            let range = format!("{first} to {}", first + (first - 1));
            let _ = writeln!(text, "{share:>8} {range:>16} cycles");
        }
    }
}

impl std::fmt::Display for Latencies {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.least == self.most {
            return write!(out, "{} cycles", self.least);
        }
        let tenths = self.sum.saturating_mul(10) / u128::from(self.weight);
        write!(
            out,
            "{} to {} cycles, {}.{} on average",
            self.least,
            self.most,
            tenths / 10,
            tenths % 10
        )
    }
}

/// The samples of an event by instruction.
pub struct ByInstruction<'event> {
    event: &'event RecordedEvent,
    places: BTreeMap<(u64, u8), Vec<&'event RecordedSample>>,
    total: u64,
}

impl<'event> ByInstruction<'event> {
    /// The samples of an event; those of a whole bundle are shown at its first instruction.
    pub fn of(event: &'event RecordedEvent) -> ByInstruction<'event> {
        let mut places: BTreeMap<(u64, u8), Vec<&RecordedSample>> = BTreeMap::new();
        for sample in &event.samples {
            let place = (sample.ip, sample.slot.unwrap_or(0));
            places.entry(place).or_default().push(sample);
        }
        ByInstruction {
            event,
            places,
            total: total(event.samples.iter().map(|sample| sample.weight)),
        }
    }
}

impl Measured for ByInstruction<'_> {
    fn weights(&self) -> BTreeMap<u64, u64> {
        let mut weights: BTreeMap<u64, u64> = BTreeMap::new();
        for ((address, _), samples) in &self.places {
            let weight = weights.entry(*address).or_default();
            *weight = weight.saturating_add(total(samples.iter().map(|sample| sample.weight)));
        }
        weights
    }

    fn heading(&self) -> String {
        format!("{:>8} {:>10}  {}:", "overhead", "samples", self.event.event)
    }

    fn columns(&self, address: u64, slot: u8) -> String {
        match self.places.get(&(address, slot)) {
            Some(samples) => {
                let weight = total(samples.iter().map(|sample| sample.weight));
                format!("{:>8} {:>10}", percent(weight, self.total), samples.len())
            }
            None => format!("{:>19}", ""),
        }
    }

    fn notes(&self, address: u64, slot: u8) -> Vec<String> {
        let Some(samples) = self.places.get(&(address, slot)) else {
            return Vec::new();
        };
        let note = |said: String| format!("{:>19}  {:>18}^ {said}", "", "");
        let latencies = Latencies::of(samples.iter().copied()).map(|latencies| note(latencies.to_string()));
        let branches = branch_outcomes(samples).map(note);
        latencies.into_iter().chain(branches).collect()
    }
}

/// How often the branches among samples were taken and mispredicted, if there are any.
fn branch_outcomes(samples: &[&RecordedSample]) -> Option<String> {
    let weight = |is_counted: fn(&RecordedBranch) -> bool| {
        let counted = samples
            .iter()
            .filter(|sample| sample.branch.as_ref().is_some_and(is_counted));
        total(counted.map(|sample| sample.weight))
    };
    let all = weight(|_| true);
    let taken = percent(weight(|branch| branch.target.is_some()), all);
    let wrong = percent(weight(|branch| branch.wrong_path || branch.wrong_target), all);
    (all > 0).then(|| format!("{taken} taken, {wrong} mispredicted"))
}
