//! Figure 4: the round trip of a packet between guests of two hosts, by who tells guests that packets have come.

use std::time::Duration;

use sidestep_hypervisor::host::InterfaceReport;
use sidestep_hypervisor::link::Linked;
use sidestep_hypervisor::nic::Delivery;
use sidestep_lab::{
    About, Assumption, Axis, Context, Experiment, Figure, Finding, Input, Inputs, Measure, Measurement,
    Metric, Nature, Number, Point, PointError, Quantity, Row, Side, Verdict,
};

use super::network::{self, END, Network, card, delivery, logged, quantile};

const IQR: &str = "inter-quartile range";
const WOKEN: &str = "redundant guests scheduled a packet";
/// Cycles between two looks whether all flows have their samples.
const STRETCH_CYCLES: u64 = 400_000;
/// When clients begin, for each guest of a host: the servers have opened their interfaces by then, one after the other.
const START_CYCLES: u64 = 100_000;
/// Round trips of each flow that are not measured: rings and translations are set up by then.
const WARM_UP: usize = 3;

/// Round trips with a self-virtualised card, by way of delivery.
pub struct Interrupts;

impl Experiment for Interrupts {
    fn about(&self) -> About {
        About {
            name: "sidecore.interrupts",
            question: "Who should tell a guest that its card has packets for it?",
            source: "Kumar et al., The Sidecore Approach, section III, Figure 4",
            setting: "Two hosts with a self-virtualised card each, joined by a link. On each so many guests on two \
                      cores; every guest of the first sends a 64-byte probe to its partner on the second, which echoes \
                      it, and the next when the echo has come. The sidecore has a core of its own; that of the driver \
                      domain, which is on no packet's way, is left out. The samples of all flows are one set.",
            baseline: "the card's one interrupt, to the first core: the monitor there reads the identifier register",
            sidestep: "a sidecore that polls all receive rings, or another way",
            metric: Metric::lower("median round trip", "us"),
            nature: Nature::Deterministic,
            takes: (Duration::from_secs(10), Duration::from_secs(120)),
            reading: "A packet's signals show in the counters. With more guests than bits of the register the baseline \
                      signals guests for which nothing has come; they are scheduled, find an empty ring and wait \
                      again. What other guests lose to interrupts that are not theirs is counted as preemptions.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = vec![
            Input::integers("guests", &[1, 2, 4, 8, 16, 32])
                .between(1, 256)
                .quick("1,8,16,32")
                .about("guests on each host")
                .source("Sidecore III, Figure 4: n = 1 to 32")
                .axis(),
            Input::choices("way", &network::WAYS)
                .quick("sidecore")
                .about("how guests learn of packets instead")
                .source("Sidecore III: the sidecore; the others are what came later, or could")
                .axis(),
            Input::integer("guest-cores", 2)
                .between(1, 64)
                .about("cores for guests")
                .source("Sidecore III: of four CPUs one is the sidecore, one Dom0's, two run guests"),
            Input::switch("sidecore-takes-core", false)
                .about("whether the sidecore is one of the guests' cores instead of one more")
                .source("Sidecore III: without a sidecore its CPU seems to have been idle"),
            Input::integer("samples", 30)
                .between(1, 10_000)
                .quick("10")
                .about("round trips of each flow")
                .source("chosen: about a thousand with 32 flows"),
            Input::integer("pause", 0)
                .between(0, 100_000_000)
                .about("rounds of computing, of some seven instructions, between an echo and the next probe")
                .source("none: the paper does not say; the next probe follows at once"),
        ];
        inputs.extend(network::inputs());
        inputs
    }

    fn assumptions(&self, inputs: &Inputs, factor: u32) -> Result<Vec<Assumption>, String> {
        network::assumptions(&self.inputs(), inputs, factor)
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        Network::new(inputs)?;
        Ok(inputs.sweep(&["guests", "way"]))
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        let guests = point.value("guests").count() as usize;
        let way = delivery(&point.value("way").to_string());
        let baseline = round_trips(inputs, guests, Delivery::Master, context)?;
        Ok(Measurement::new(
            baseline,
            round_trips(inputs, guests, way, context)?,
        ))
    }

    fn findings(&self, inputs: &Inputs, rows: &[Row]) -> Vec<Finding> {
        if inputs.count("register-bits") != 8 {
            return Vec::new();
        }
        let row = |guests: u64| {
            rows.iter().find(|row| {
                row.point.value("guests").count() == guests
                    && row.point.value("way").to_string() == "sidecore"
            })
        };
        let measured: Vec<(u64, &Row)> = [1, 2, 4, 8, 16, 32]
            .into_iter()
            .filter_map(|guests| Some((guests, row(guests)?)))
            .collect();
        let mut findings = Vec::new();
        findings.extend(few(&measured));
        findings.extend(row(16).and_then(Row::measurement).and_then(redundant));
        findings.extend(row(16).zip(row(32)).and_then(|(fewer, more)| gains(fewer, more)));
        findings.extend(variability(&measured));
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "Round trip by number of guests (Figure 4)",
                Axis::new("guests", "guests on each host", "").logarithmic(),
                Measure::Value,
                "median round trip",
                "us",
            )
            .split_by(&["way"]),
        ]
    }
}

/// Up to eight guests, each of which has a bit of its own.
fn few(rows: &[(u64, &Row)]) -> Option<Finding> {
    let gains: Vec<(u64, Number)> = (rows.iter())
        .filter(|(guests, _)| *guests <= 8)
        .filter_map(|(guests, row)| Some((*guests, row.quantity(Quantity::Ratio)?)))
        .collect();
    let off = |gain: &Number| (*gain - Number::ONE).abs();
    let worst = gains.iter().map(|(_, gain)| *gain).max_by_key(off)?;
    let ours = gains
        .iter()
        .map(|(guests, gain)| format!("{} with {guests}", gain.to_fixed(3)));
    Some(Finding {
        about: "gain by the sidecore with up to 8 guests".to_owned(),
        stated: "not much (a tenth is granted)".to_owned(),
        source: "Sidecore III".to_owned(),
        ours: format!("{} times", ours.collect::<Vec<_>>().join(", ")),
        value: Some(worst),
        verdict: Verdict::of(off(&worst) <= Number::decimal("0.1")),
        because: "each guest has a bit of its own".to_owned(),
    })
}

/// Sixteen guests: how many are scheduled for nothing.
fn redundant(measurement: &Measurement) -> Option<Finding> {
    let of = |side: &Side| Some(side.find(WOKEN)?.value);
    let (without, with) = (of(&measurement.baseline)?, of(&measurement.sidestep)?);
    let near = (without - Number::decimal("0.5")).abs() <= Number::decimal("0.05");
    Some(Finding {
        value: Some(without),
        about: "redundant guests scheduled a packet, of 16".to_owned(),
        stated: "0.5 without the sidecore, none with it (a tenth is granted)".to_owned(),
        source: "Sidecore III".to_owned(),
        ours: format!("{} without and {} with", without.to_fixed(2), with.to_fixed(2)),
        verdict: Verdict::of(near && with.is_zero()),
        because: "each bit stands for two guests; one that has packets of its own at that time, or runs already, is \
                  not scheduled for nothing"
            .to_owned(),
    })
}

/// The gain at 32 guests against that at 16.
fn gains(fewer: &Row, more: &Row) -> Option<Finding> {
    let gain = |row: &Row| {
        let measurement = row.measurement()?;
        Some(measurement.baseline.value? - measurement.sidestep.value?)
    };
    let (fewer, more) = (gain(fewer)?, gain(more)?);
    let holds = more > fewer && more > Number::from(0);
    Some(Finding {
        value: Some(more - fewer),
        about: "gain by the sidecore with 32 guests against 16".to_owned(),
        stated: "larger".to_owned(),
        source: "Sidecore III".to_owned(),
        ours: format!(
            "{} us with 16, {} us with 32",
            fewer.to_fixed(1),
            more.to_fixed(1)
        ),
        verdict: Verdict::of(holds),
        because: "each bit stands for four guests instead of two".to_owned(),
    })
}

/// The inter-quartile range by number of guests.
fn variability(rows: &[(u64, &Row)]) -> Option<Finding> {
    let ranges: Vec<(u64, Number, Number)> = rows
        .iter()
        .filter_map(|(guests, row)| {
            let measurement = row.measurement()?;
            let of = |side: &Side| Some(side.find(IQR)?.value);
            Some((*guests, of(&measurement.baseline)?, of(&measurement.sidestep)?))
        })
        .collect();
    if ranges.is_empty() {
        return None;
    }
    let ours = ranges
        .iter()
        .map(|(guests, without, with)| format!("{guests}: {} and {}", without.to_fixed(1), with.to_fixed(1)));
    let holds = ranges.iter().all(|(_, without, with)| with <= without);
    Some(Finding {
        value: None,
        about: "inter-quartile range of the round trip, by guests".to_owned(),
        stated: "smaller with the sidecore".to_owned(),
        source: "Sidecore III".to_owned(),
        ours: format!("in us without and with the sidecore, {}", ours.collect::<Vec<_>>().join("; ")),
        verdict: Verdict::of(holds),
        because: "a signal by the sidecore costs the same wherever the guest is; an upcall on the interrupted core \
                  comes sooner than an interrupt to another"
            .to_owned(),
    })
}

fn round_trips(inputs: &Inputs, guests: usize, way: Delivery, context: &Context) -> Result<Side, PointError> {
    let network = Network::new(inputs).map_err(PointError::Failed)?;
    let samples = inputs.count("samples") as usize;
    let pause = inputs.count("pause");
    let taken = usize::from(way.needs_sidecore() && inputs.switch("sidecore-takes-core"));
    let cores = (inputs.count("guest-cores") as usize - taken).max(1);
    let start = START_CYCLES * guests as u64;
    let clients: Vec<String> = (0..guests)
        .map(|guest| format!("probe 1 {guest} {pause} {start}"))
        .collect();
    let servers = vec!["echo".to_owned(); guests];
    let hosts = [
        network.host(0, cores, way, &clients, context.trace)?,
        network.host(1, cores, way, &servers, context.trace)?,
    ];
    let linked = Linked::new(hosts, &network.link, network.costs.clock_mhz);
    let mut linked = linked.map_err(|error| PointError::Failed(error.to_string()))?;
    let enough = WARM_UP + samples;
    let mut trips = vec![Vec::new(); guests];
    while trips.iter().any(|trips: &Vec<u64>| trips.len() < enough) {
        let until = linked.time() + STRETCH_CYCLES;
        if until > END {
            return Err(PointError::Failed("the probes do not come back".to_owned()));
        }
        linked
            .run(until)
            .map_err(|error| PointError::Failed(error.to_string()))?;
        for (index, trips) in trips.iter_mut().enumerate() {
            if trips.len() < enough {
                *trips = logged(&linked.hosts()[0], index)?;
            }
        }
        if context.cancelled() {
            return Err(PointError::Cancelled);
        }
    }
    let measured = trips.iter().flat_map(|trips| &trips[WARM_UP..enough]);
    let mut measured: Vec<u64> = measured.copied().collect();
    measured.sort_unstable();
    let cards = linked.hosts().each_ref().map(card);
    let sum = |of: fn(&InterfaceReport) -> u64| -> u64 {
        cards.iter().flat_map(|card| &card.interfaces).map(of).sum()
    };
    let packets = sum(|interface| interface.counts.received).max(1);
    let each = |count: u64| Number::ratio(count, packets);
    let quartiles = [250, 500, 750].map(|part| quantile(&measured, part));
    Ok(Side::new(network.microseconds(quartiles[1]))
        .counter(IQR, network.microseconds(quartiles[2] - quartiles[0]), "us")
        .counter(
            "99th percentile",
            network.microseconds(quantile(&measured, 990)),
            "us",
        )
        .count(
            "signals a packet",
            each(sum(|interface| interface.counts.signals)),
        )
        .count(
            "redundant signals a packet",
            each(sum(|interface| interface.counts.redundant)),
        )
        .count(WOKEN, each(sum(|interface| interface.interrupts.woken_in_vain)))
        .count(
            "preemptions of other guests a packet",
            each(sum(|interface| interface.interrupts.preemptions)),
        )
        .counter(
            "monitor on the interrupted core, a packet",
            each(cards.iter().map(|card| card.counts.handling_cycles).sum()),
            "cycles",
        )
        .counter(
            "sidecore for receive rings, a packet",
            each(cards.iter().map(|card| card.counts.sidecore_cycles).sum()),
            "cycles",
        )
        .count("packets", packets)
        .traced(network.timeline(&linked.hosts()[0])))
}
