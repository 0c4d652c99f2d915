//! A processor of a machine with a model of the Itanium 2's pipeline attached.
//!
//! The machine's time is then the model's cycles: processors take turns by cycles, the interval time counter and its
//! timer follow them, and guest code that programs the performance monitor counts what the model does.

use sidestep_itanium2::parameters::Cost;
use sidestep_itanium2::pmu::stall::{Row, TREE};
use sidestep_itanium2::{Counters, Event, Parameters};
use sidestep_lab::{Breakdown, Context, Drawing, Input, Inputs, Number, Part, PointError, Side};
use sidestep_runner::machine::Timed;

use super::kernel::{Finished, Guest, KernelError, Meter, Reading, Run};

impl Meter for Timed {
    fn counters(&self) -> Option<Counters> {
        Some(self.pipeline().counters())
    }
}

/// The presets, for the input `processor`.
const PROCESSORS: &[&str] = &[
    "itanium2",
    "itanium2-900",
    "itanium2-1000",
    "itanium2-1300",
    "itanium2-1500",
];
/// Instructions after which a point has gone wrong.
const INSTRUCTIONS_MAX: u64 = 4_000_000_000;

/// The model's latencies and penalties that no paper states, as inputs: key and cost.
const UNSTATED: &[(&str, Cost)] = &[
    ("semaphore", Cost::Semaphore),
    ("mispredict", Cost::Mispredict),
    ("return-resteer", Cost::ReturnResteer),
    ("instruction-l2", Cost::InstructionL2),
    ("store-window", Cost::StoreWindow),
    ("writeback-conflict", Cost::WritebackConflict),
    ("region-conflict", Cost::RegionConflict),
    ("stack-calculation", Cost::StackCalculation),
    ("stack-registers-a-cycle", Cost::StackRegistersPerCycle),
    ("tlb-transfer", Cost::TlbTransfer),
    ("instruction-tlb-transfer", Cost::InstructionTlbTransfer),
    ("walk", Cost::Walk),
    ("store-unit-log2", Cost::StoreUnitLog2),
    ("bank-conflict", Cost::BankConflict),
    ("line-crossing", Cost::LineCrossing),
    ("request-queue-entries", Cost::RequestQueueEntries),
];

/// Whether instructions are fetched ahead, the one of them that is no number.
const STREAMING_PREFETCH: &str = "streaming-prefetch";

/// The inputs of every timed experiment: the processor, and what is assumed of it.
pub fn inputs() -> Vec<Input> {
    let processor = Input::choice("processor", PROCESSORS)
        .about("the processor that the pipeline model is of")
        .source("Itanium 3.4: 900 MHz, 1.5 MB of third-level cache");
    let unstated = UNSTATED.iter().map(|(key, cost)| {
        Input::integer(key, i64::from(cost.usual()))
            .between(1, 1000)
            .about(cost.what())
            .source(cost.source())
            .assumed()
    });
    let streaming = Input::switch(STREAMING_PREFETCH, true)
        .about(Cost::StreamingPrefetch.what())
        .source(Cost::StreamingPrefetch.source())
        .assumed();
    [processor]
        .into_iter()
        .chain(unstated)
        .chain([streaming])
        .collect()
}

/// The processor that the inputs describe.
pub fn processor(inputs: &Inputs) -> Parameters {
    let parameters = Parameters::by_name(inputs.text("processor")).expect("the input offers the presets");
    let streams = u16::from(inputs.switch(STREAMING_PREFETCH));
    let parameters = parameters.with(Cost::StreamingPrefetch, streams);
    let set = |parameters: Parameters, (key, cost): &(&str, Cost)| {
        let value = u16::try_from(inputs.count(key)).expect("bounds of 16 bits");
        parameters.with(*cost, value)
    };
    UNSTATED.iter().fold(parameters, set)
}

/// Runs a guest with a pipeline model at each processor.
pub fn run(
    guest: Guest,
    parameters: String,
    inputs: &Inputs,
    context: &Context,
) -> Result<Finished, PointError> {
    run_from((guest, guest.image()), parameters, inputs, context)
}

/// The same of an image of the guest.
pub fn run_from(
    (guest, image): (Guest, &[u8]),
    parameters: String,
    inputs: &Inputs,
    context: &Context,
) -> Result<Finished, PointError> {
    let run = Run {
        guest,
        parameters,
        memory_mb: 512,
        instructions_max: INSTRUCTIONS_MAX,
        quantum_ticks: guest.quantum_ticks(),
        keeps_dumps: true,
    };
    let mut meters = Timed::each(&processor(inputs), guest.processors());
    run.run_from(image, &mut meters, &|| context.cancelled())
        .map_err(KernelError::into_point_error)
}

/// Runs a guest that marks an empty loop (1 to 2) and one with as many operations (3 to 4); the side is made of their
/// difference, and traced.
pub fn measure(
    guest: Guest,
    parameters: String,
    operations: u64,
    (inputs, context): (&Inputs, &Context),
    side: impl FnOnce(&Difference<'_>) -> Side,
) -> Result<Side, PointError> {
    let finished = run(guest, parameters, inputs, context)?;
    Ok(compare(&finished, operations, (inputs, context), side))
}

/// The side that a finished run of such a guest makes.
pub fn compare(
    finished: &Finished,
    operations: u64,
    (inputs, context): (&Inputs, &Context),
    side: impl FnOnce(&Difference<'_>) -> Side,
) -> Side {
    let side = side(&Difference {
        empty: &finished.between(1, 2),
        full: &finished.between(3, 4),
        operations,
    });
    side.traced(finished.timeline(processor(inputs).megahertz, context))
}

/// The difference of two readings of a timed run, for each of `operations`.
pub struct Difference<'a> {
    /// What is there without the operations: an empty loop.
    pub empty: &'a Reading,
    /// What is there with them.
    pub full: &'a Reading,
    /// How many operations.
    pub operations: u64,
}

impl Difference<'_> {
    /// How often something happens in an operation.
    pub fn event(&self, event: Event) -> Number {
        self.each(|reading| counters(reading).get(event))
    }

    fn each(&self, count: impl Fn(&Reading) -> u64) -> Number {
        let more = i128::from(count(self.full)) - i128::from(count(self.empty));
        Number::ratio(more, i128::from(self.operations))
    }

    /// Cycles of the machine.
    pub fn cycles(&self) -> Number {
        self.each(|reading| reading.time)
    }

    /// A side whose value is the cycles, with what explains them: instructions, issue cycles, the tree of bubbles.
    pub fn side(&self, title: &str) -> Side {
        let mut side = Side::new(self.cycles())
            .count("instructions", self.each(|reading| reading.instructions))
            .count(
                ISSUE_CYCLES,
                self.each(|reading| counters(reading).issue_cycles()),
            );
        let mut rows = Vec::new();
        for (index, row) in TREE.iter().enumerate() {
            let value = self.each(|reading| counters(reading).tree()[index].1);
            let own = row.own.map_or(Number::ZERO, |stall| {
                self.each(|reading| counters(reading).booked()[stall as usize])
            });
            if row.depth < 2 || !value.is_zero() {
                side = side.count(row.event.name(), value);
            }
            rows.push((row, value, own));
        }
        let issue = self.each(|reading| counters(reading).issue_cycles());
        let parts = vec![Part::leaf(ISSUE_CYCLES, issue), part(&rows)];
        side.draw(Drawing::Breakdown(Breakdown {
            title: title.to_owned(),
            unit: "cycles".to_owned(),
            whole: Part::sum("cycles", parts),
        }))
    }
}

/// The name under which [`Difference::side`] counts issue cycles.
const ISSUE_CYCLES: &str = "issue cycles";

/// The issue cycles of a side that [`Difference::side`] made.
///
/// # Panics
/// If it did not make it: a defect of the experiment.
pub fn issue_cycles(side: &Side) -> Number {
    side.find(ISSUE_CYCLES)
        .expect("the side counts issue cycles")
        .value
}

/// The bubbles of a row of the tree in a side that [`Difference::side`] made, which leaves rows without any out.
///
/// # Panics
/// If the event is no row of the tree, or the side another: a defect of the experiment.
pub fn bubbles(side: &Side, event: Event) -> Number {
    let is_row = TREE.iter().any(|row| row.event == event);
    assert!(
        is_row && side.find(ISSUE_CYCLES).is_some(),
        "{} is in the side's tree",
        event.name()
    );
    side.find(event.name())
        .map_or(Number::ZERO, |counter| counter.value)
}

fn counters(reading: &Reading) -> &Counters {
    reading.counters.as_ref().expect("a timed run counts")
}

/// The first row with what is below it; rows without cycles are left out.
fn part(rows: &[(&Row, Number, Number)]) -> Part {
    let (row, value, own) = rows[0];
    let below = &rows[1..];
    let mut parts = Vec::new();
    for (index, (other, value, _)) in below.iter().enumerate() {
        if other.depth <= row.depth {
            break;
        }
        if other.depth == row.depth + 1 && !value.is_zero() {
            parts.push(part(&below[index..]));
        }
    }
    if !parts.is_empty() && !own.is_zero() {
        parts.push(Part::leaf("of its own", own));
    }
    Part {
        name: row.event.name().to_owned(),
        value,
        parts,
    }
}
