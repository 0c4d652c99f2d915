//! Receive livelock: packets offered faster than a guest can do them, by interrupt and by polling.

use std::time::Duration;

use sidestep_hypervisor::Cycle;
use sidestep_hypervisor::host::Host;
use sidestep_hypervisor::link::Wire;
use sidestep_hypervisor::nic::Delivery;
use sidestep_hypervisor::nic::frame::{Address, FRAME_MIN, Frame};
use sidestep_lab::{
    About, Assumption, Axis, Context, Experiment, Figure, Finding, Input, Inputs, Measure, Measurement,
    Metric, Nature, Number, Point, PointError, Quantity, Row, Side, Verdict,
};

use super::network::{self, Network, card, delivery, logged, quantile};

const OTHERS: &str = "packets done of those offered to the others";
/// Cycles between two looks at what is offered.
const STRETCH_CYCLES: u64 = 400_000;
/// The bytes of a frame.
const FRAME_BYTES: u64 = 64;
/// Where a frame says when it was sent.
const STAMP: usize = 16;
/// The host that the traffic comes from.
const ELSEWHERE: Address = Address {
    host: 9,
    interface: 0,
};

/// Throughput and latency over the offered load.
pub struct Receive;

impl Experiment for Receive {
    fn about(&self) -> About {
        About {
            name: "sidecore.receive",
            question: "What does a guest still get done when packets come faster than it can do them?",
            source: "none: Kumar et al., The Sidecore Approach, III, claim isolation and measure latency alone; the \
                     question is that of Mogul and Ramakrishnan, Eliminating Receive Livelock",
            setting: "Frames of 64 bytes come over a link at a constant rate for one guest; with sixteen guests on two \
                      cores the other fifteen get a small share each. For each frame a guest computes some rounds.",
            baseline: "the card's one interrupt, asked for by the guest for each frame",
            sidestep: "a guest that polls its ring until it is empty and asks only then, signalled by a sidecore or \
                       another way",
            metric: Metric::higher("packets a second done by the flooded guest", "1/s"),
            nature: Nature::Deterministic,
            takes: (Duration::from_secs(5), Duration::from_secs(60)),
            reading: "Without livelock what is done stays level beyond saturation. What is not done is dropped by the \
                      card, whose ring and buffers are full. Latency is from the sender's clock to the end of the \
                      work.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = vec![
            Input::integers("offered-kpps", &[10, 50, 100, 150, 200, 300, 450])
                .between(1, 1_000)
                .quick("50,150,450")
                .about("thousands of packets a second for the flooded guest")
                .source("chosen: from idle to three times what 2000 rounds let a guest do")
                .axis(),
            Input::integers("guests", &[1, 16])
                .between(1, 64)
                .about("guests, of which the first is flooded")
                .source("chosen: one alone, and one of sixteen")
                .axis(),
            Input::choices("way", &["sidecore", "adaptive", "posted-by-sidecore"])
                .quick("sidecore")
                .about("how guests that poll learn of packets")
                .source("Sidecore III; a bound on latency; without an exit")
                .axis(),
            Input::integer("work", 2000)
                .between(0, 1_000_000)
                .about("rounds of computing for a frame, of some seven instructions")
                .source("chosen: five microseconds, a small request"),
            Input::integer("others-pps", 1000)
                .between(1, 100_000)
                .about("packets a second for each of the other guests")
                .source("chosen: a tenth of what their share of the cores can do"),
            Input::integer("milliseconds", 20)
                .between(1, 10_000)
                .quick("8")
                .about("how long packets come")
                .source("chosen: some thousand packets at saturation"),
            Input::integer("guest-cores", 2)
                .between(1, 64)
                .about("cores for guests")
                .source("Sidecore III: two CPUs run guests"),
        ];
        inputs.extend(network::inputs());
        inputs
    }

    fn assumptions(&self, inputs: &Inputs, factor: u32) -> Result<Vec<Assumption>, String> {
        network::assumptions(&self.inputs(), inputs, factor)
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        Network::new(inputs)?;
        Ok(inputs.sweep(&["offered-kpps", "guests", "way"]))
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        let load = Load {
            guests: point.value("guests").count() as usize,
            flood_pps: point.value("offered-kpps").count() * 1000,
            others_pps: inputs.count("others-pps"),
        };
        let way = delivery(&point.value("way").to_string());
        let baseline = run(inputs, &load, Delivery::Master, "sink-interrupted", context)?;
        Ok(Measurement::new(
            baseline,
            run(inputs, &load, way, "sink", context)?,
        ))
    }

    fn findings(&self, _inputs: &Inputs, rows: &[Row]) -> Vec<Finding> {
        let mut findings = Vec::new();
        for guests in [1, 16] {
            let of: Vec<&Row> = rows
                .iter()
                .filter(|row| row.point.value("guests").count() == guests)
                .filter(|row| row.point.value("way").to_string() == "sidecore")
                .collect();
            findings.extend(livelock(guests, &of));
            findings.extend(share(guests, &of));
        }
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "Packets done by packets offered",
                Axis::new("offered-kpps", "thousand packets a second offered", ""),
                Measure::Value,
                "packets a second done",
                "1/s",
            )
            .split_by(&["guests", "way"]),
        ]
    }
}

/// Whether what is done at the highest load is still nearly the most that is done at any.
fn livelock(guests: u64, rows: &[&Row]) -> Option<Finding> {
    let done = |quantity| -> Option<(Number, Number)> {
        let done: Vec<Number> = rows.iter().filter_map(|row| row.quantity(quantity)).collect();
        Some((*done.last()?, done.iter().copied().max()?))
    };
    let (baseline, sidestep) = (done(Quantity::Baseline)?, done(Quantity::Sidestep)?);
    Some(Finding {
        value: None,
        about: format!("done at the highest load against the most done at any, {guests} guests"),
        stated: "no receive livelock: level beyond saturation".to_owned(),
        source: "the question's own measure".to_owned(),
        ours: format!(
            "{} of {} a second by interrupt, {} of {} by polling",
            baseline.0.to_fixed(0),
            baseline.1.to_fixed(0),
            sidestep.0.to_fixed(0),
            sidestep.1.to_fixed(0)
        ),
        verdict: Verdict::BeyondThePaper,
        because:
            "a guest that polls pays no interrupt while it has packets, and the card drops what has no buffer"
                .to_owned(),
    })
}

/// Whether the guests that are not flooded get their packets done.
fn share(guests: u64, rows: &[&Row]) -> Option<Finding> {
    let last = rows.last()?.measurement()?;
    let of = |side: &Side| Some(side.find(OTHERS)?.value);
    let (baseline, sidestep) = (of(&last.baseline)?, of(&last.sidestep)?);
    Some(Finding {
        value: None,
        about: format!("packets done of those offered to the others, at the highest load, {guests} guests"),
        stated: "the others keep their share".to_owned(),
        source: "the question's own measure".to_owned(),
        ours: format!(
            "{} by interrupt, {} by polling",
            baseline.to_fixed(3),
            sidestep.to_fixed(3)
        ),
        verdict: Verdict::BeyondThePaper,
        because: "a scheduling slot ends for a flooded guest as for any other".to_owned(),
    })
}

/// What is offered.
struct Load {
    guests: usize,
    flood_pps: u64,
    others_pps: u64,
}

/// Frames that come at a constant rate.
struct Source {
    to: Address,
    interval: u64,
    next: Cycle,
    offered: u64,
}

/// Frames from elsewhere for the guests of a host, in the order of their times.
pub(super) struct Traffic {
    sources: Vec<Source>,
    wire: Wire,
}

impl Traffic {
    /// For each guest so many packets a second, 0 for none.
    pub fn new(network: &Network, host: u16, rates: &[u64]) -> Traffic {
        let clock_mhz = network.costs.clock_mhz;
        let sources = rates.iter().enumerate().filter(|(_, rate)| **rate > 0);
        let sources = sources.map(|(interface, rate)| {
            let interval = (clock_mhz * 1_000_000 / rate).max(1);
            Source {
                to: Address {
                    host,
                    interface: interface as u16,
                },
                interval,
                // Not all at one time.
                next: Cycle::START + interval * (interface as u64 + 1) / (rates.len() as u64 + 1),
                offered: 0,
            }
        });
        Traffic {
            sources: sources.collect(),
            wire: Wire::new(&network.link, clock_mhz, 0),
        }
    }

    /// Has what is sent before a time come over the link to a host that has not gone on so far.
    pub fn offer(&mut self, host: &mut Host, until: Cycle) {
        while let Some(source) = self
            .sources
            .iter_mut()
            .min_by_key(|source| (source.next, source.to))
        {
            let sent = source.next;
            if sent >= until {
                return;
            }
            source.next += source.interval;
            source.offered += 1;
            let mut frame = Frame::between(ELSEWHERE, source.to, FRAME_BYTES, source.offered);
            frame.bytes[STAMP..STAMP + 8].copy_from_slice(&sent.0.to_le_bytes());
            if let Some(arrival) = self.wire.carry(sent, &frame) {
                host.receive(arrival, frame);
            }
        }
    }

    /// How many frames were sent to a guest.
    pub fn offered(&self, interface: usize) -> u64 {
        let source = self
            .sources
            .iter()
            .find(|source| usize::from(source.to.interface) == interface);
        source.map_or(0, |source| source.offered)
    }
}

const _: () = assert!(STAMP as u64 + 8 <= FRAME_BYTES && STAMP as u64 >= FRAME_MIN);

/// Lets a host and what comes to it go on for some milliseconds.
pub(super) fn play(
    host: &mut Host,
    traffic: &mut Traffic,
    cycles: u64,
    context: &Context,
) -> Result<(), PointError> {
    host.link();
    let end = Cycle::START + cycles;
    while host.time() < end {
        let until = (host.time() + STRETCH_CYCLES).min(end);
        traffic.offer(host, until);
        host.run(until)
            .map_err(|error| PointError::Failed(error.to_string()))?;
        if context.cancelled() {
            return Err(PointError::Cancelled);
        }
    }
    Ok(())
}

fn run(
    inputs: &Inputs,
    load: &Load,
    way: Delivery,
    what: &str,
    context: &Context,
) -> Result<Side, PointError> {
    let network = Network::new(inputs).map_err(PointError::Failed)?;
    let cores = inputs.count("guest-cores") as usize;
    let works = vec![format!("{what} {}", inputs.count("work")); load.guests];
    let mut host = network.host(0, cores, way, &works, context.trace)?;
    let rates: Vec<u64> = (0..load.guests)
        .map(|guest| {
            if guest == 0 {
                load.flood_pps
            } else {
                load.others_pps
            }
        })
        .collect();
    let mut traffic = Traffic::new(&network, 0, &rates);
    let milliseconds = inputs.count("milliseconds");
    play(
        &mut host,
        &mut traffic,
        milliseconds * network.costs.clock_mhz * 1000,
        context,
    )?;
    let mut flooded = logged(&host, 0)?;
    flooded.sort_unstable();
    let done = flooded.len() as u64;
    let (mut others, mut others_offered) = (Vec::new(), 0);
    for guest in 1..load.guests {
        others.extend(logged(&host, guest)?);
        others_offered += traffic.offered(guest);
    }
    others.sort_unstable();
    let card = card(&host);
    let latency = |samples: &[u64], part| network.microseconds(quantile(samples, part));
    let mut side = Side::new(Number::ratio(done * 1000, milliseconds))
        .count("offered", traffic.offered(0))
        .count(
            "dropped by the card",
            card.interfaces[0].counts.dropped + card.counts.overrun,
        )
        .count("signals", card.interfaces[0].counts.signals)
        .counter("latency, median", latency(&flooded, 500), "us")
        .counter("latency, 99 %", latency(&flooded, 990), "us")
        .counter("latency, 99.9 %", latency(&flooded, 999), "us");
    if others_offered > 0 {
        side = side
            .count(OTHERS, Number::ratio(others.len() as u64, others_offered))
            .counter("latency of the others, median", latency(&others, 500), "us")
            .counter("latency of the others, 99 %", latency(&others, 990), "us");
    }
    Ok(side.traced(network.timeline(&host)))
}
