//! The point of Figure 6: offered against completed load past saturation, interrupts against continuations.

use std::time::Duration;

use sidestep_fuce::chip::{Chip, InterruptConfig, Stop};
use sidestep_fuce::device::{Device, Packets};
use sidestep_lab::{
    About, Axis, Better, Context, Experiment, Figure, Finding, Input, Inputs, Measure, Measurement, Metric,
    Nature, Number, Point, PointError, Quantity, Row, Side, Verdict,
};

use super::guests::build;
use super::machine::{self, Tracer};
use crate::failed;

/// The counter of frames that the handler took in and no room was left for.
const LOST_AFTER_WORK: &str = "lost after the handler's work";
/// Words of an interface's frame, and where what is read of it stands (as in the guest).
const FRAME_BYTES: u32 = 32;
const FRAME_FIRST: u32 = 4;
const FRAME_LOST: u32 = 12;
/// Packets arrive from here on; before, the guest boots.
const FIRST_ARRIVAL: u64 = 5_000;

/// Completed packets against offered ones.
pub struct Livelock;

impl Experiment for Livelock {
    fn about(&self) -> About {
        About {
            name: "cefos.livelock",
            question: "What is still completed when more packets arrive than can be worked off?",
            source: "Kusakabe et al., CEFOS on FUCE, section 4, Figure 6 (after Mogul and Ramakrishnan)",
            setting: "Packets arrive at each network interface at a fixed interval. A handler thread does the \
                      protocol's work for each and puts it into a ring; an application thread works it off. One \
                      guest program on two chips: on FUCE the interface's signal continues to the handler, which \
                      waits its turn in the ready queue; on the conventional chip it interrupts the unit that the \
                      interface is wired to, whatever runs there. Interfaces are as many as units.",
            baseline: "interrupts on the same chip with preemptive units",
            sidestep: "continuations",
            metric: Metric {
                name: "packets completed",
                unit: "packets",
                better: Better::Higher,
            },
            nature: Nature::Deterministic,
            takes: (Duration::from_secs(1), Duration::from_secs(1)),
            reading: "Offered load grows to the right. Both chips follow it until saturation. Beyond, interrupts take \
                      the unit away from the application until nothing is completed: packets are lost in the ring \
                      after the handler's work was spent on them. Continuations hold their throughput: handler and \
                      application take turns, and what is too much is lost in the interface, where it has cost \
                      nothing. The figure of the paper has no numbers, and nothing limits the rate of these \
                      interrupts: nothing here is judged.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = vec![
            Input::integers("interval", &[8000, 4000, 3000, 2000, 1700, 1500, 1300, 1000, 800, 700, 600, 500, 400])
                .between(50, 1_000_000)
                .quick("4000,2000,1000,500")
                .unit("cycles")
                .about("between two packets of an interface")
                .source("CEFOS 3.1: 1000 to 2000 on 10 Gb Ethernet; beyond on both sides")
                .axis(),
            Input::integers("units", &[1, 4])
                .between(1, 48)
                .quick("1")
                .about("units, and as many interfaces")
                .source("CEFOS 3.1: at most four")
                .axis(),
            Input::integer("period", 1_000_000)
                .between(10_000, 1_000_000_000)
                .unit("cycles")
                .about("how long packets arrive and are worked off")
                .source("chosen: ten of the periods of CEFOS 3.1"),
            Input::integer("handler-work", 500)
                .between(0, 1_000_000)
                .unit("cycles")
                .about("the protocol's work for a packet")
                .source("chosen: with the application's, a packet takes as long as it takes to arrive"),
            Input::integer("application-work", 1000)
                .between(0, 1_000_000)
                .unit("cycles")
                .about("the application's work for a packet")
                .source("chosen: twice the protocol's"),
            Input::integer("interface-ring", 64)
                .between(1, 65536)
                .unit("packets")
                .about("packets an interface keeps")
                .source("chosen: as the ring behind it"),
            Input::integer("interrupt-entry", 55)
                .between(0, 100_000)
                .unit("cycles")
                .about("from an interrupt to the handler's first instruction")
                .source(
                    "Itanium Table 5 and 2.4: flush as of rfi 13, bank switch 6, read of an interrupt register 36",
                ),
            Input::integer("interrupt-exit", 55)
                .between(0, 100_000)
                .unit("cycles")
                .about("from the handler's end to the interrupted thread")
                .source("Itanium Table 5 and 2.4: write of an interrupt register 36, bank switch 6, rfi 13"),
        ];
        inputs.extend(machine::inputs());
        inputs
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        machine::check(inputs)?;
        let mut points = Vec::new();
        for units in inputs.integers("units") {
            for interval in inputs.integers("interval") {
                let offered = inputs.integer("period") / interval * units;
                points.push(
                    Point::new()
                        .at("units", units)
                        .at("interval", interval)
                        .at("offered", offered),
                );
            }
        }
        Ok(points)
    }

    fn run_point(
        &self,
        inputs: &Inputs,
        point: &Point,
        context: &Context,
    ) -> Result<Measurement, PointError> {
        Ok(Measurement::new(
            side(inputs, point, true, context)?,
            side(inputs, point, false, context)?,
        ))
    }

    fn findings(&self, _inputs: &Inputs, rows: &[Row]) -> Vec<Finding> {
        let mut units: Vec<u64> = rows.iter().map(|row| row.point.value("units").count()).collect();
        units.dedup();
        units
            .into_iter()
            .filter_map(|units| finding(units, rows))
            .collect()
    }

    fn figures(&self) -> Vec<Figure> {
        let offered = || Axis::new("offered", "packets offered", "packets");
        vec![
            Figure::lines(
                "Completed load (Figure 6)",
                offered(),
                Measure::Value,
                "packets completed",
                "packets",
            )
            .split_by(&["units"]),
            Figure::lines(
                "Packets lost after work",
                offered(),
                Measure::Counter(LOST_AFTER_WORK),
                "packets lost",
                "packets",
            )
            .split_by(&["units"]),
        ]
    }
}

/// How much of its best throughput each chip keeps under the heaviest load, with so many units.
fn finding(units: u64, rows: &[Row]) -> Option<Finding> {
    let rows: Vec<&Row> = rows
        .iter()
        .filter(|row| row.point.value("units").count() == units)
        .collect();
    let heaviest = rows.iter().max_by_key(|row| row.point.value("offered").count())?;
    let keeps = |quantity: Quantity| {
        let most = rows.iter().filter_map(|row| row.quantity(quantity)).max()?;
        heaviest.quantity(quantity)?.over(most)
    };
    let (interrupts, continuations) = (keeps(Quantity::Baseline)?, keeps(Quantity::Sidestep)?);
    let percent = |share: Number| (share * Number::from(100)).to_decimal(1);
    let lost = |side: &Side| {
        let lost = side.find(LOST_AFTER_WORK).map(|counter| counter.value);
        lost.map_or_else(String::new, |lost| lost.to_decimal(0))
    };
    let measurement = heaviest.measurement()?;
    Some(Finding {
        about: format!("throughput under the heaviest load, of the best, with {units} units"),
        stated: "interrupt-driven systems can fall into receive livelock, in which no useful work is done"
            .to_owned(),
        source: "CEFOS 4, Figure 6".to_owned(),
        ours: format!(
            "interrupts keep {} %, continuations {} %",
            percent(interrupts),
            percent(continuations)
        ),
        value: Some(continuations),
        // The paper's figure illustrates what others measured; it has no numbers, and says nothing of continuations.
        verdict: Verdict::NotJudged,
        because: format!(
            "the figure is a sketch without numbers, and these interrupts, without a limit to their rate, go before \
             every thread by construction; a continuation waits in the queue behind the application; packets \
             lost after the handler's work: {} with interrupts, {} with continuations (a handler that runs beside its \
             application on another unit can still get ahead of it)",
            lost(&measurement.baseline),
            lost(&measurement.sidestep)
        ),
    })
}

fn side(inputs: &Inputs, point: &Point, interrupts: bool, context: &Context) -> Result<Side, PointError> {
    let units = point.value("units").count();
    let number = |key: &str| inputs.count(key) as u32;
    let mut chip = machine::config(inputs, units);
    chip.interrupts = interrupts.then(|| InterruptConfig {
        entry_cycles: number("interrupt-entry"),
        exit_cycles: number("interrupt-exit"),
    });
    let mut image = build("programs/overload.s", false)?;
    image
        .set_word("interrupts", u32::from(interrupts))
        .map_err(failed)?;
    image
        .set_word("handler_work", number("handler-work"))
        .map_err(failed)?;
    image
        .set_word("application_work", number("application-work"))
        .map_err(failed)?;
    let ends = FIRST_ARRIVAL + inputs.count("period");
    let interval = point.value("interval").count();
    let ring = inputs.count("interface-ring") as usize;
    let interfaces = (0..units)
        .map(|_| Box::new(Packets::new(interval, FIRST_ARRIVAL, ends - 1, ring)) as Box<dyn Device>)
        .collect();
    let mut chip = Chip::new(&chip, &image, interfaces).map_err(failed)?;
    let mut tracer = context.trace.then(|| Tracer::new(&image, units));
    let stop = chip.run_observed(ends, |observation| {
        if let Some(tracer) = &mut tracer {
            tracer.observe(observation);
        }
    });
    // Under a light load everything is done, and nothing can happen any more, before the period ends.
    if !matches!(stop, Stop::CycleLimit | Stop::Idle) {
        return Err(PointError::Failed(format!("the guest stopped: {stop:?}")));
    }
    let frames = image.symbol("frames").map_err(failed)?;
    let sum = |offset: u32| -> Result<u64, PointError> {
        (0..units as u32)
            .map(|interface| {
                let word = chip.memory().word(frames + interface * FRAME_BYTES + offset);
                let word =
                    word.ok_or_else(|| failed(format!("interface {interface} has no frames in memory")));
                word.map(u64::from)
            })
            .sum()
    };
    let interfaces: Vec<&Packets> = (1..=units as usize)
        .filter_map(|number| chip.bus().get::<Packets>(number))
        .collect();
    let counters = chip.counters();
    let side = Side::new(sum(FRAME_FIRST)?)
        .count(
            "packets arrived",
            interfaces.iter().map(|each| each.arrived()).sum::<u64>(),
        )
        .count(
            "lost in the interface",
            interfaces.iter().map(|each| each.dropped()).sum::<u64>(),
        )
        .count(LOST_AFTER_WORK, sum(FRAME_LOST)?)
        .count(
            "interrupts",
            counters.units.iter().map(|unit| unit.interrupts).sum::<u64>(),
        );
    Ok(machine::explain(side, &counters).traced(tracer.map(Tracer::finish).unwrap_or_default()))
}
