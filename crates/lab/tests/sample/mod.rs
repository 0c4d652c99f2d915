//! A complete small experiment: what to copy when writing one. Handing over a packet to each of several guests, by
//! signalling all guests that share a bit of a register or by naming the one that is meant.

pub mod gallery;

use std::time::Duration;

use sidestep_lab::{
    About, Axis, Better, Breakdown, Context, Drawing, Experiment, Figure, Finding, Input, Inputs, Measure,
    Measurement, Metric, Nature, Part, Point, PointError, Quantity, Row, Side, Stated, Timeline, Verdict,
};

/// Signals that reach a guest without a packet for it.
pub struct RedundantSignals;

impl Experiment for RedundantSignals {
    fn about(&self) -> About {
        About {
            name: "sample.signals",
            question: "How many guests wake for a packet that is not theirs?",
            source: "Kumar et al., The Sidecore Approach (2007), section III",
            setting: "A network card names the guest by one bit of a register. With more guests than bits, guests \
                      share a bit, and all that share it are signalled.",
            baseline: "the card sets the guest's bit",
            sidestep: "a sidecore reads the packet and signals its guest",
            metric: Metric {
                name: "time to hand over",
                unit: "ns",
                better: Better::Lower,
            },
            nature: Nature::Deterministic,
            takes: (Duration::from_secs(1), Duration::from_secs(1)),
            reading: "The gain begins where guests share bits.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        vec![
            Input::integers("guests", &[1, 8, 16, 32])
                .between(1, 1024)
                .quick("8,32")
                .unit("guests")
                .about("how many guests there are")
                .source("Sidecore III")
                .axis(),
            Input::integer("bits", 8)
                .between(1, 64)
                .unit("bits")
                .about("the width of the card's register")
                .source("Sidecore III"),
            Input::duration("wake", 2000)
                .lasting(1, 1_000_000)
                .about("what waking a guest takes")
                .source("chosen: a round number"),
        ]
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        let guests = inputs.integers("guests");
        Ok(guests.iter().map(|&n| Point::new().at("guests", n)).collect())
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        let wake_ns = inputs.duration_ns("wake");
        let side = |signalled: u64| {
            let mut timeline = Timeline::default();
            if context.trace {
                let core = timeline.track("core 0");
                for guest in 0..signalled {
                    timeline.span(core, format!("wake guest {guest}"), guest * wake_ns, wake_ns);
                }
            }
            let redundant = Part::leaf("redundant", (signalled - 1) * wake_ns);
            let parts = vec![Part::leaf("for the packet", wake_ns), redundant];
            Side::new(signalled * wake_ns)
                .count("guests signalled", signalled)
                .count("redundant signals", signalled - 1)
                .draw(Drawing::Breakdown(Breakdown {
                    title: "Where the time went".to_owned(),
                    unit: "ns".to_owned(),
                    whole: Part::sum("waking", parts),
                }))
                .traced(timeline)
        };
        let sharing = point.value("guests").count().div_ceil(inputs.count("bits"));
        Ok(Measurement::new(side(sharing), side(1)))
    }

    fn stated(&self, inputs: &Inputs, point: &Point) -> Vec<Stated> {
        match point.value("guests").integer() {
            guests if guests <= inputs.integer("bits") => {
                vec![Stated::value(
                    Quantity::Ratio,
                    1,
                    "0",
                    "Sidecore III: no benefit up to 8 guests",
                )]
            }
            _ => Vec::new(),
        }
    }

    fn findings(&self, _inputs: &Inputs, rows: &[Row]) -> Vec<Finding> {
        let ratios: Vec<_> = rows
            .iter()
            .filter_map(|row| row.quantity(Quantity::Ratio))
            .collect();
        let grows = ratios.is_sorted();
        vec![Finding {
            value: None,
            about: "gain with the number of guests".to_owned(),
            stated: "larger at 32 guests than at 16".to_owned(),
            source: "Sidecore III".to_owned(),
            ours: if grows { "never shrinks" } else { "shrinks" }.to_owned(),
            verdict: Verdict::of(grows),
            because: "more guests share a bit".to_owned(),
        }]
    }

    fn figures(&self) -> Vec<Figure> {
        let guests = Axis::new("guests", "guests", "guests").logarithmic();
        vec![Figure::lines(
            "Time to hand over a packet",
            guests,
            Measure::Value,
            "time",
            "ns",
        )]
    }
}
