//! `itanium.latency`: Tables 4 and 5, the cycles between two system instructions, measured by guest code on gate pages.

use std::time::Duration;

use sidestep_itanium2::Event;
use sidestep_lab::{
    About, Context, Experiment, Input, Inputs, Measurement, Metric, Nature, Point, PointError, Quantity,
    Side, Standing, Stated,
};

use super::kernel::Guest;
use super::timed;

/// Pairs of instructions, next to each other and far enough apart.
pub struct Latencies;

/// What everything but flushes is measured with where the paper names no counter.
const ANY: &[Event] = &[Event::BackEndBubbleAll];
const DEPENDENCY: &[Event] = &[Event::RseDependency];
const SYSTEM: &[Event] = &[Event::ExecutionSystem];
const LOAD: &[Event] = &[Event::RseLoad];
const GENERAL: &[Event] = &[Event::ExecutionGeneral];
const FLUSH: &[Event] = &[Event::FlushException, Event::BackEndBubbleFrontEnd];
const RETURN: &[Event] = &[
    Event::FlushBranch,
    Event::FlushException,
    Event::BackEndBubbleFrontEnd,
];

/// A pair by its name in guests/ia64/kernel/programs/sequences.S, its table, the paper's cycles, the paper's counters.
type Pair = (&'static str, u8, i64, &'static [Event]);

const PAIRS: &[Pair] = &[
    ("to-rsc/from-rsc", 4, 13, DEPENDENCY),
    ("to-rsc/from-bsp", 4, 13, DEPENDENCY),
    ("to-rsc/from-bspstore", 4, 13, DEPENDENCY),
    ("to-rsc/from-rnat", 4, 13, DEPENDENCY),
    ("to-rsc/to-bspstore", 4, 13, DEPENDENCY),
    ("to-rsc/to-rnat", 4, 13, DEPENDENCY),
    ("to-bspstore/from-rsc", 4, 6, DEPENDENCY),
    ("to-bspstore/from-bsp", 4, 6, DEPENDENCY),
    ("to-bspstore/to-rnat", 4, 6, DEPENDENCY),
    ("from-bspstore/to-rnat", 4, 8, SYSTEM),
    ("from-bsp/to-rnat", 4, 8, SYSTEM),
    ("from-rnat/to-unat", 4, 6, SYSTEM),
    ("from-unat/to-rnat", 4, 6, SYSTEM),
    ("to-unat/from-unat", 4, 6, SYSTEM),
    ("to-rnat/from-rnat", 4, 6, SYSTEM),
    ("from-unat/float", 4, 6, SYSTEM),
    ("to-bspstore/flushrs", 4, 12, &[Event::RseOverflow]),
    ("to-rsc/loadrs", 4, 12, LOAD),
    ("to-bspstore/loadrs", 4, 12, LOAD),
    ("from-bspstore/loadrs", 4, 2, LOAD),
    ("loadrs/loadrs", 4, 8, LOAD),
    ("epc/any", 5, 1, ANY),
    ("bsw/any", 5, 6, &[Event::RseBankSwitch]),
    ("rfi/any", 5, 13, RETURN),
    ("srlz.d/any", 5, 1, ANY),
    ("srlz.i/any", 5, 12, FLUSH),
    ("sum/any", 5, 5, SYSTEM),
    ("rum/any", 5, 5, SYSTEM),
    ("to-psr.um/any", 5, 5, SYSTEM),
    ("sum/srlz.d", 5, 10, SYSTEM),
    ("rum/srlz.d", 5, 10, SYSTEM),
    ("to-psr.um/srlz.i", 5, 10, SYSTEM),
    ("ssm/srlz.d", 5, 5, SYSTEM),
    ("rsm/srlz.i", 5, 5, SYSTEM),
    ("to-psr.l/srlz.d", 5, 5, SYSTEM),
    ("from-psr/srlz.d", 5, 2, SYSTEM),
    ("from-psr.um/srlz.d", 5, 2, SYSTEM),
    ("to-rr/srlz.d", 5, 14, SYSTEM),
    ("to-rr/sync", 5, 14, SYSTEM),
    ("to-rr/fwb", 5, 14, SYSTEM),
    ("to-rr/mf", 5, 14, SYSTEM),
    ("to-rr/invala", 5, 14, SYSTEM),
    ("to-pkr/srlz.d", 5, 14, SYSTEM),
    ("to-pkr/mf", 5, 14, SYSTEM),
    ("probe/use", 5, 5, GENERAL),
    ("tpa/use", 5, 5, GENERAL),
    ("tak/use", 5, 5, GENERAL),
    ("thash/use", 5, 5, GENERAL),
    ("ttag/use", 5, 5, GENERAL),
];

const fn names<const N: usize>() -> [&'static str; N] {
    let mut names = [""; N];
    let mut index = 0;
    while index < N {
        names[index] = PAIRS[index].0;
        index += 1;
    }
    names
}

const NAMES: &[&str] = &names::<{ PAIRS.len() }>();

impl Experiment for Latencies {
    fn about(&self) -> About {
        About {
            name: "itanium.latency",
            question: "How many cycles must lie between two system instructions?",
            source: "Gray et al., Itanium: A System Implementor's Tale, section 5.3.3, Tables 4 and 5",
            setting: "A program of the kernel in guests/ia64/kernel has pages of its code made gate pages, raises its \
                      privilege by epc, programs two counters of the performance monitor and reads them around the two \
                      instructions: in issue groups that follow each other, with 13 groups between them, and around \
                      two nops, which is subtracted. A latency is one cycle and the bubbles that the counter shows \
                      which the paper names; several counters add up. Each pair is measured the third time, with warm \
                      caches.",
            baseline: "the two in issue groups that follow each other",
            sidestep: "13 issue groups of other work between them",
            metric: Metric::lower("cycles from the first to the second", "cycles"),
            nature: Nature::Deterministic,
            takes: (Duration::from_secs(1), Duration::from_secs(1)),
            reading: "The two tables are inputs of the pipeline model, so that its numbers come back shows that the \
                      whole way holds: guest code, privilege, monitor registers, model. What the sidestep still waits \
                      for is unavoidable: flushes, and the cycle in front of flushrs and loadrs.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = vec![
            Input::choices("pair", NAMES)
                .about("which instruction comes first, and which second; to- and from- are moves to and from a register")
                .source("Itanium Tables 4 and 5")
                .axis(),
        ];
        inputs.extend(timed::inputs());
        inputs
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        let pairs = inputs.texts("pair");
        Ok(pairs
            .into_iter()
            .map(|pair| Point::new().at("pair", pair))
            .collect())
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        let (name, _, _, events) = pair(point);
        let codes: Vec<String> = events.iter().map(|event| event.code().to_string()).collect();
        let parameters = format!("program=latency {name} {}", codes.join(" "));
        let finished = timed::run(Guest::Kernel(1), parameters, inputs, context)?;
        let lines = read(&finished.console);
        if lines.len() != events.len() {
            return Err(PointError::Failed(format!(
                "the guest printed {} lines of {}",
                lines.len(),
                events.len()
            )));
        }
        let side = |index: usize| {
            let bubbles = lines.iter().map(|line| line[index].1 - line[2].1).sum::<i64>();
            let mut side =
                Side::new(1 + bubbles).count("cycles more than two nops", lines[0][index].0 - lines[0][2].0);
            for (event, line) in events.iter().zip(&lines) {
                side = side.count(event.name(), line[index].1 - line[2].1);
            }
            side
        };
        let timeline = finished.timeline(timed::processor(inputs).megahertz, context);
        Ok(Measurement::new(side(0).traced(timeline), side(1)))
    }

    fn stated(&self, _: &Inputs, point: &Point) -> Vec<Stated> {
        let (name, table, cycles, _) = pair(point);
        let source = format!("Itanium Table {table}: {name}");
        vec![Stated::value(Quantity::Baseline, cycles, "0", source).standing(Standing::Input)]
    }
}

fn pair(point: &Point) -> Pair {
    let name = point.value("pair").text();
    *PAIRS
        .iter()
        .find(|pair| pair.0 == name)
        .expect("the input offers no other")
}

/// Cycles and bubbles of the two near each other, apart, and of nothing, from each line of the guest.
fn read(console: &str) -> Vec<[(i64, i64); 3]> {
    let lines = console.lines().filter_map(|line| line.strip_prefix("latency: "));
    lines
        .filter_map(|line| {
            let numbers: Vec<i64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
            match numbers[..] {
                [_, a, b, c, d, e, f] => Some([(a, b), (c, d), (e, f)]),
                _ => None,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_guest_are_read_and_others_are_not() {
        let console = "kernel: up\nlatency: 2 near 30 12 apart 41 0 none 18 0\nlatency: no pair x\n";
        assert_eq!(read(console), [[(30, 12), (41, 0), (18, 0)]]);
    }
}
