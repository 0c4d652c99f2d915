//! What a guest that computes loses to the packets of others.

use std::time::Duration;

use sidestep_hypervisor::nic::Delivery;
use sidestep_lab::{
    About, Assumption, Axis, Context, Experiment, Figure, Finding, Input, Inputs, Measure, Measurement,
    Metric, Nature, Number, Point, PointError, Row, Side, Verdict,
};

use super::network::{self, Network, card, delivery, logged};
use super::receive::{Traffic, play};

const PREEMPTIONS: &str = "preemptions for others";

/// Lost cycles and pauses of a guest that has nothing to do with packets.
pub struct Isolation;

impl Experiment for Isolation {
    fn about(&self) -> About {
        About {
            name: "sidecore.isolation",
            question: "What does a guest that only computes lose to packets that are for others?",
            source: "Kumar et al., The Sidecore Approach, section III: a signal unnecessarily preempts the guest that \
                     runs on the interrupted core; stated, not measured",
            setting: "Every guest has a core of its own. The first computes, on the core that the card interrupts; the \
                      others take packets that come at a constant rate.",
            baseline: "the card's one interrupt, to the core of the guest that computes",
            sidestep: "a sidecore that polls all receive rings, or another way",
            metric: Metric::lower("cycles lost of a million", "cycles"),
            nature: Nature::Deterministic,
            takes: (Duration::from_secs(3), Duration::from_secs(30)),
            reading: "Lost is what the monitor takes on the guest's core for packets of others. A pause is how much \
                      longer the longest stretch of computing took than the shortest.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = vec![
            Input::integers("packets-kpps", &[1, 10, 50, 100])
                .between(1, 1_000)
                .quick("10,100")
                .about("thousands of packets a second, for all receivers together")
                .source("chosen: up to a tenth of what the link carries")
                .axis(),
            Input::choices("way", &network::WAYS)
                .quick("sidecore,vector")
                .about("how guests learn of packets instead")
                .source("Sidecore III: the sidecore; the others are what came later, or could")
                .axis(),
            Input::integer("receivers", 4)
                .between(1, 32)
                .about("guests that take packets")
                .source("chosen: fewer than the register has bits"),
            Input::integer("work", 1000)
                .between(1, 1_000_000)
                .about("rounds of computing in a stretch, of some seven instructions")
                .source("chosen: short against the time between packets"),
            Input::integer("milliseconds", 20)
                .between(1, 10_000)
                .quick("5")
                .about("how long packets come")
                .source("chosen: some hundred packets at the least but one rate"),
        ];
        inputs.extend(network::inputs());
        inputs
    }

    fn assumptions(&self, inputs: &Inputs, factor: u32) -> Result<Vec<Assumption>, String> {
        network::assumptions(&self.inputs(), inputs, factor)
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        Network::new(inputs)?;
        Ok(inputs.sweep(&["packets-kpps", "way"]))
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        let packets_pps = point.value("packets-kpps").count() * 1000;
        let way = delivery(&point.value("way").to_string());
        let baseline = run(inputs, packets_pps, Delivery::Master, context)?;
        Ok(Measurement::new(
            baseline,
            run(inputs, packets_pps, way, context)?,
        ))
    }

    fn findings(&self, _inputs: &Inputs, rows: &[Row]) -> Vec<Finding> {
        let by_sidecore = |row: &&Row| row.point.value("way").to_string() == "sidecore";
        let preempted: Vec<(Number, Number)> = (rows.iter().filter(by_sidecore))
            .filter_map(|row| {
                let measurement = row.measurement()?;
                let of = |side: &Side| Some(side.find(PREEMPTIONS)?.value);
                Some((of(&measurement.baseline)?, of(&measurement.sidestep)?))
            })
            .collect();
        let Some((without, with)) = preempted.last() else {
            return Vec::new();
        };
        vec![Finding {
            value: None,
            about: "preemptions of a guest for packets of others, at the highest rate".to_owned(),
            stated: "the sidecore does not interrupt any guest unnecessarily".to_owned(),
            source: "Sidecore III".to_owned(),
            ours: format!("{} without and {} with", without.to_fixed(0), with.to_fixed(0)),
            // It could not come out otherwise.
            verdict: Verdict::NotJudged,
            because: "so by construction: nothing but a signal of its own reaches a guest's core".to_owned(),
        }]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "Cycles lost to the packets of others",
                Axis::new("packets-kpps", "thousand packets a second", "").logarithmic(),
                Measure::Value,
                "cycles lost of a million",
                "cycles",
            )
            .split_by(&["way"]),
        ]
    }
}

fn run(inputs: &Inputs, packets_pps: u64, way: Delivery, context: &Context) -> Result<Side, PointError> {
    let network = Network::new(inputs).map_err(PointError::Failed)?;
    let receivers = inputs.count("receivers") as usize;
    let mut works = vec![format!("compute {}", inputs.count("work"))];
    works.extend(vec!["sink 100".to_owned(); receivers]);
    let mut host = network.host(0, works.len(), way, &works, context.trace)?;
    let share = packets_pps / receivers as u64;
    let rates: Vec<u64> = (0..works.len())
        .map(|guest| if guest == 0 { 0 } else { share })
        .collect();
    let mut traffic = Traffic::new(&network, 0, &rates);
    let cycles = inputs.count("milliseconds") * network.costs.clock_mhz * 1000;
    play(&mut host, &mut traffic, cycles, context)?;
    let stretches = logged(&host, 0)?;
    let (least, most) = (stretches.iter().min(), stretches.iter().max());
    let pause = most.zip(least).map_or(0, |(most, least)| most - least);
    let card = card(&host);
    let counts = card.interfaces[0].interrupts;
    let taken: u64 = card.interfaces[1..]
        .iter()
        .map(|interface| interface.counts.received)
        .sum();
    Ok(
        Side::new(Number::ratio(counts.preempted_cycles * 1_000_000, cycles))
            .count(PREEMPTIONS, counts.preemptions)
            .counter(
                "longest preemption",
                network.microseconds(counts.preempted_most),
                "us",
            )
            .counter("longest pause", network.microseconds(pause), "us")
            .count("stretches computed", stretches.len() as u64)
            .count("packets of the others", taken)
            .traced(network.timeline(&host)),
    )
}
