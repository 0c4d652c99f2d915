//! Several processors that update one guest's page tables: by a lock in the exit path, and without one on a sidecore.
//! The second of the paper's arguments for sidecores.

use std::time::Duration;

use sidestep_hypervisor::host::dynamic::SidecorePolicy;
use sidestep_lab::{
    About, Assumption, Axis, Context, Experiment, Figure, Finding, Input, Inputs, Measure, Measurement,
    Metric, Nature, Number, Point, PointError, Quantity, Row, Side, Verdict,
};

use super::setup::{self, Run, Setup};

const WAITED: &str = "cycles an update waits for the lock";

/// Updates by one to eight processors.
pub struct Updates;

impl Experiment for Updates {
    fn about(&self) -> About {
        About {
            name: "sidecore.updates",
            question: "Does a sidecore spare several processors of one guest the lock of its page tables?",
            source: "Kumar et al., The Sidecore Approach, section I: the second argument for sidecores; stated, not \
                     measured",
            setting: "One virtual machine with one core for each processor and one more. All processors create entries \
                      of the one page table at the same time, each after some computing. By exit a core takes the \
                      table's lock for the update; cores get it in the order in which they ask, with the transfer of \
                      its cache line.",
            baseline: "each update leaves the guest, and takes the lock",
            sidestep: "each update goes to the one sidecore, which takes no lock",
            metric: Metric::lower(
                "cycles from one update to the next, of all processors together",
                "cycles",
            ),
            nature: Nature::Deterministic,
            takes: (Duration::from_secs(1), Duration::from_secs(3)),
            reading: "A lock costs a wait and the transfer of its line, as long as the update itself is short against \
                      the exits around it. A sidecore needs no lock because it does one update after the other: it is \
                      the queue itself, and an update takes it longer, because it fetches lines that are near on the \
                      guest's core. So it gains as long as it has time to spare, and is the bottleneck where many \
                      processors do nothing but update. `without a lock` is what the exit path would take if it needed \
                      none: the lock's price is the difference.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = vec![
            Input::integers("processors", &[1, 2, 4, 8])
                .between(1, 8)
                .quick("1,4")
                .about("virtual processors")
                .source("Sidecore I: the scalability of SMP guests")
                .axis(),
            Input::integers("work", &[0, 500, 5000])
                .between(0, 1_000_000)
                .about("rounds of computing before each update on average, at random, of some eight instructions")
                .source("chosen: nothing but updates, one in some 4000 and one in some 40,000 instructions")
                .axis(),
            Input::integer("count", 200)
                .between(1, 512)
                .quick("50")
                .about("updates of each processor")
                .source("chosen: the model has no noise"),
        ];
        inputs.extend(setup::inputs());
        inputs
    }

    fn assumptions(&self, inputs: &Inputs, factor: u32) -> Result<Vec<Assumption>, String> {
        setup::assumptions(&self.inputs(), inputs, factor)
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        setup::costs(inputs)?;
        Ok(inputs.sweep(&["processors", "work"]))
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        let run = |sidecores, has_lock| run(inputs, point, (sidecores, has_lock), context);
        let (cycles, count) = run(0, false)?.measured(0)?;
        let locked = run(0, true)?;
        let counts = locked.report.machines[0].page_table_lock.unwrap_or_default();
        let each = |number: u64| Number::ratio(number, counts.taken.max(1));
        let baseline = (locked.side()?)
            .counter(WAITED, each(counts.cycles), "cycles")
            .count(
                "updates that found the lock taken, of one",
                each(counts.contended),
            )
            .counter("without a lock", Number::ratio(cycles, count.max(1)), "cycles");
        Ok(Measurement::new(baseline, run(1, false)?.side()?))
    }

    fn findings(&self, _inputs: &Inputs, rows: &[Row]) -> Vec<Finding> {
        let waited = |row: &Row| {
            let baseline: &Side = &row.measurement()?.baseline;
            Some(baseline.find(WAITED)?.value)
        };
        let most =
            (rows.iter()).filter_map(|row| Some((row.point.value("processors").count(), waited(row)?)));
        let ratios = || rows.iter().filter_map(|row| row.quantity(Quantity::Ratio));
        let (Some((processors, waited)), Some(least), Some(best)) = (
            most.max_by_key(|(_, waited)| *waited),
            ratios().min(),
            ratios().max(),
        ) else {
            return Vec::new();
        };
        vec![Finding {
            value: None,
            about: "fewer locks: updates by several processors of one guest".to_owned(),
            stated: "locking requirements may be reduced, which can positively impact SMP guests".to_owned(),
            source: "Sidecore I".to_owned(),
            ours: format!(
                "an update waits {} cycles for the lock at the most, with {processors} processors; by sidecall {} to \
                 {} times better",
                waited.to_fixed(0),
                least.to_fixed(2),
                best.to_fixed(2)
            ),
            verdict: Verdict::BeyondThePaper,
            because: "the paper measures nothing of it; without a lock the sidecore is the queue".to_owned(),
        }]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "Updates of one page table by several processors",
                Axis::new("processors", "virtual processors", ""),
                Measure::Value,
                "cycles from one update to the next",
                "cycles",
            )
            .split_by(&["work"]),
        ]
    }
}

fn run(
    inputs: &Inputs,
    point: &Point,
    (sidecores, has_lock): (usize, bool),
    context: &Context,
) -> Result<Run, PointError> {
    let processors = point.value("processors").count() as usize;
    let setup = Setup::new(inputs, processors + 1, SidecorePolicy::Fixed(sidecores))?;
    let work = format!("updates {} {}", inputs.count("count"), point.value("work"));
    let mut guest = setup.guest("guest", &work);
    guest.processors = processors;
    guest.page_table_lock = has_lock;
    setup.run_image(sidestep_guests::ia64::MEMORY, vec![guest], context)
}
