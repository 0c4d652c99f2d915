//! What a request leaves of the guest's caches: the first of the paper's arguments for sidecores.

use std::time::Duration;

use sidestep_hypervisor::host::dynamic::SidecorePolicy;
use sidestep_itanium2::{Counters, Event};
use sidestep_lab::{
    About, Assumption, Axis, Context, Experiment, Figure, Finding, Input, Inputs, Measure, Measurement,
    Metric, Nature, Number, Point, PointError, Row, Side, Verdict,
};

use super::setup::{self, Setup};

/// Bytes of a line of the first-level cache, of which each names the next.
const LINE: u64 = 64;
const LOST: &str = "cycles lost to a request";

/// Misses and lost cycles of a guest after a request.
pub struct Pollution;

impl Experiment for Pollution {
    fn about(&self) -> About {
        About {
            name: "sidecore.pollution",
            question: "What does a request take from the guest's caches, by leaving the guest and by sidecall?",
            source: "Kumar et al., The Sidecore Approach, section I: the first argument for sidecores; stated, not \
                     measured",
            setting: "One virtual machine of one processor on two cores with the model of an Itanium 2's pipeline and \
                      caches. The guest makes a request and then walks over its working set, line by line, each line \
                      naming the next; only the walk is measured. What is lost is what the walk takes longer than \
                      between no requests at all.",
            baseline: "each request leaves the guest; its handler uses the caches of the guest's core",
            sidestep: "each request goes to a sidecore, whose caches are its own",
            metric: Metric::lower("cycles of the guest's walk behind a request", "cycles"),
            nature: Nature::Deterministic,
            takes: (Duration::from_secs(2), Duration::from_secs(10)),
            reading: "With `handler-kb` 0 an exit touches what the monitor is known to touch: 512 bytes of the \
                      processor's record, the shadow's entry and the guest's. A handler of a real monitor touches \
                      more, code among it, and how much nobody published: it is an axis. The walk finds those lines \
                      gone from the first-level cache, and where the working set fills the second level from that as \
                      well; a set that is larger than a cache loses nothing there, since it misses anyway. The lines \
                      that a sidecore writes stay in the guest's caches in the model, which spares the sidecall up to \
                      two misses.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = vec![
            Input::choices("request", &["null", "map"])
                .about("what is asked for")
                .source("Sidecore II, Figure 1")
                .axis(),
            Input::integers("working-set-kb", &[12, 64, 240, 1024])
                .between(1, 2048)
                .quick("12,64")
                .about("what the guest walks over")
                .source("chosen: within the first-level cache of 16 kB, the second of 256 kB, just so, and the third")
                .axis(),
            Input::integers("handler-kb", &[0, 4, 16])
                .between(0, 1024)
                .about("what the handler of an exit touches beside the records that it works on")
                .source("assumed: nobody published what a monitor's handlers touch")
                .axis(),
            Input::integer("count", 100)
                .between(1, 4096)
                .quick("20")
                .about("how many requests are made")
                .source("chosen: the model has no noise"),
            Input::choice("processor", &["itanium2", "itanium2-900", "itanium2-1000", "itanium2-1300", "itanium2-1500"])
                .about("the processor that is modelled")
                .source("the one of the other experiments with a pipeline; there is no model of a core of 2005"),
        ];
        let of_setup = setup::inputs().into_iter();
        inputs.extend(of_setup.filter(|input| input.key != "processor"));
        inputs
    }

    fn assumptions(&self, inputs: &Inputs, factor: u32) -> Result<Vec<Assumption>, String> {
        setup::assumptions(&self.inputs(), inputs, factor)
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        setup::costs(inputs)?;
        Ok(inputs.sweep(&["request", "working-set-kb", "handler-kb"]))
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        let request = point.value("request").to_string();
        let undisturbed = Walks::of(inputs, point, "nothing", 0, context)?;
        let side = |sidecores| {
            let walks = Walks::of(inputs, point, &request, sidecores, context)?;
            Ok::<_, PointError>(walks.beside(&undisturbed))
        };
        Ok(Measurement::new(side(0)?, side(1)?))
    }

    fn findings(&self, _inputs: &Inputs, rows: &[Row]) -> Vec<Finding> {
        let lost = |side: &Side| Some(side.find(LOST)?.value);
        let lost: Vec<(Number, Number)> = (rows.iter())
            .filter_map(|row| {
                let measurement = row.measurement()?;
                Some((lost(&measurement.baseline)?, lost(&measurement.sidestep)?))
            })
            .collect();
        let range = |of: fn(&(Number, Number)) -> Number| {
            let numbers = || lost.iter().map(of);
            let ends = (numbers().min()?, numbers().max()?);
            Some(format!("{} to {}", ends.0.to_fixed(0), ends.1.to_fixed(0)))
        };
        let (Some(exit), Some(sidecall)) = (range(|both| both.0), range(|both| both.1)) else {
            return Vec::new();
        };
        vec![Finding {
            value: None,
            about: "cycles that a guest loses to cache pollution for a request".to_owned(),
            stated: "VMM code and data are less likely to pollute a guest VM's cache state".to_owned(),
            source: "Sidecore I".to_owned(),
            ours: format!("{exit} by exit and {sidecall} by sidecall"),
            verdict: Verdict::BeyondThePaper,
            because: "the paper measures nothing of it, and how much a handler touches is an input here"
                .to_owned(),
        }]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "What a walk takes behind a request",
                Axis::new("handler-kb", "what a handler touches", "kB"),
                Measure::Value,
                "cycles of the walk",
                "cycles",
            )
            .split_by(&["request", "working-set-kb"]),
        ]
    }
}

/// What walks behind requests took, and what the caches counted.
struct Walks {
    side: Side,
    cycles: u64,
    count: u64,
    counters: Counters,
}

impl Walks {
    fn of(
        inputs: &Inputs,
        point: &Point,
        request: &str,
        sidecores: usize,
        context: &Context,
    ) -> Result<Walks, PointError> {
        let lines = point.value("working-set-kb").count() * 1024 / LINE;
        let setup = Setup::new(inputs, 2, SidecorePolicy::Fixed(sidecores))?;
        let mut guest = setup.guest(
            "guest",
            &format!("pollution {request} {lines} {}", inputs.count("count")),
        );
        guest.handler_bytes = point.value("handler-kb").count() << 10;
        let run = setup.run_image(sidestep_guests::ia64::MEMORY, vec![guest], context)?;
        let (cycles, count) = run.measured(0)?;
        Ok(Walks {
            side: run.side()?,
            cycles,
            count,
            counters: setup.counters(),
        })
    }

    /// What it shows beside walks that nothing disturbed.
    fn beside(self, undisturbed: &Walks) -> Side {
        let count = self.count.max(1);
        let more =
            |ours: u64, others: u64| (Number::from(ours) - Number::from(others)).over(Number::from(count));
        let misses = |event: Event| more(self.counters.get(event), undisturbed.counters.get(event));
        let counters = [
            (LOST, more(self.cycles, undisturbed.cycles), "cycles"),
            (
                "first-level misses more a request",
                misses(Event::L1dReadMisses),
                "",
            ),
            ("second-level misses more a request", misses(Event::L2Misses), ""),
            ("third-level misses more a request", misses(Event::L3Misses), ""),
        ];
        let mut side = self.side;
        for (name, number, unit) in counters {
            if let Some(number) = number {
                side = side.counter(name, number, unit);
            }
        }
        side.counter(
            "the walk between no requests",
            Number::ratio(undisturbed.cycles, undisturbed.count.max(1)),
            "cycles",
        )
    }
}
