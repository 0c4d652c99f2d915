//! Creation, change and removal of page table entries, with other TLBs purged by interrupt or by broadcast.

use std::time::Duration;

use sidestep_hypervisor::host::dynamic::SidecorePolicy;
use sidestep_hypervisor::virtual_machine::PurgeMethod;
use sidestep_lab::{
    About, Assumption, Axis, Context, Experiment, Figure, Finding, Input, Inputs, Measure, Measurement,
    Metric, Nature, Number, Point, PointError, Quantity, Row, Standing, Stated, Verdict,
};

use super::setup::{self, Setup};

/// Purges by interrupt and by broadcast.
pub struct Unmap;

impl Experiment for Unmap {
    fn about(&self) -> About {
        About {
            name: "sidecore.unmap",
            question: "Do sidecalls pay for the removal of entries when the hardware can purge other TLBs?",
            source: "Kumar et al., The Sidecore Approach, section II-A, and its recommendation to hardware",
            setting: "One virtual machine with one core for each processor and one more. The first processor creates \
                      (`map`), changes or removes an entry; the others compute. A changed or removed entry must leave \
                      every TLB: `interrupt` makes each core leave its guest and purge, `broadcast` is Itanium's \
                      ptc.ga.",
            baseline: "each update leaves the guest; other cores are purged by the same method",
            sidestep: "each update goes to a sidecore",
            metric: Metric::lower("cycles an update", "cycles"),
            nature: Nature::Deterministic,
            takes: (Duration::from_secs(1), Duration::from_secs(1)),
            reading: "The paper found that removal by sidecall gains nothing, because the interrupt that purges is \
                      itself an exit, and asked for a hardware purge. With `broadcast` no core leaves its guest. A \
                      change and a removal include the guest's own check that the old page is gone, which for a change \
                      is a miss of the TLB on both sides.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = vec![
            Input::choices("operation", &["map", "change", "unmap"])
                .about("what is done to an entry")
                .source("Sidecore II-A")
                .axis(),
            Input::choices("purge", &["interrupt", "broadcast"])
                .about("how other cores' TLBs are purged")
                .source("Sidecore II-A: by interrupt; a hardware mechanism is recommended")
                .axis(),
            Input::integers("processors", &[1, 2, 4])
                .between(1, 8)
                .quick("1,2")
                .about("virtual processors")
                .source("Sidecore II has one; more purge more")
                .axis(),
            Input::integer("count", 300)
                .between(1, 100_000)
                .quick("50")
                .about("how many updates are measured")
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
        Ok(inputs.sweep(&["operation", "purge", "processors"]))
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        let work = format!("{} {}", point.value("operation"), inputs.count("count"));
        let processors = point.value("processors").count() as usize;
        let purge = match point.value("purge").to_string().as_str() {
            "interrupt" => PurgeMethod::Interrupt,
            _ => PurgeMethod::Broadcast,
        };
        let measure = |sidecores| {
            let setup = Setup::new(inputs, processors + 1, SidecorePolicy::Fixed(sidecores))?;
            let mut guest = setup.guest("guest", &work);
            guest.processors = processors;
            guest.purge = purge;
            setup.run(vec![guest], context)?.side()
        };
        Ok(Measurement::new(measure(0)?, measure(1)?))
    }

    fn stated(&self, _inputs: &Inputs, point: &Point) -> Vec<Stated> {
        let is = |key: &str, value: &str| point.value(key).to_string() == value;
        if !is("processors", "1") {
            return Vec::new();
        }
        match (is("operation", "map"), is("purge", "interrupt")) {
            // The same as sidecore.calls', where it is judged; the broadcast has nobody to reach.
            (true, true) => vec![
                Stated::at_least(Quantity::Ratio, setup::lower(), "Sidecore II-A: creation gains")
                    .standing(Standing::Reading),
            ],
            (false, true) => {
                vec![Stated::at_most(
                    Quantity::Ratio,
                    Number::decimal("1.1"),
                    "Sidecore II-A: the interrupt eliminates the benefit (a tenth is granted)",
                )]
            }
            (_, false) => Vec::new(),
        }
    }

    fn findings(&self, _inputs: &Inputs, rows: &[Row]) -> Vec<Finding> {
        let of = |purge: &str| {
            let ratios = rows.iter().filter(|row| {
                row.point.value("purge").to_string() == purge
                    && row.point.value("operation").to_string() != "map"
            });
            let ratios: Vec<_> = ratios.filter_map(|row| row.quantity(Quantity::Ratio)).collect();
            ratios.iter().min().copied().zip(ratios.iter().max().copied())
        };
        let (Some(interrupt), Some(broadcast)) = (of("interrupt"), of("broadcast")) else {
            return Vec::new();
        };
        vec![Finding {
            value: Some(broadcast.0),
            about: "a hardware purge of other TLBs makes sidecalls pay for changes and removals".to_owned(),
            stated: "recommended, not measured".to_owned(),
            source: "Sidecore II-A".to_owned(),
            ours: format!(
                "times better by sidecall: {} to {} with interrupts, {} to {} with broadcast",
                interrupt.0.to_fixed(2),
                interrupt.1.to_fixed(2),
                broadcast.0.to_fixed(2),
                broadcast.1.to_fixed(2)
            ),
            verdict: Verdict::BeyondThePaper,
            because: "an interrupt costs its target an exit and an entry, and the sidecore waits for them"
                .to_owned(),
        }]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::bars(
                "Updates by method",
                Axis::new("operation", "operation", ""),
                Measure::Ratio,
                "times faster with a sidecore",
                "",
            )
            .split_by(&["purge", "processors"]),
        ]
    }
}
