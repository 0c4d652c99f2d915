//! `zerowait.io`: an echo and a file service, up to and past what they can do.

mod client;
#[cfg(feature = "rivals")]
mod monoio;
mod service;
#[cfg(feature = "rivals")]
mod tokio;
mod zerowait;

use std::time::Duration;

use sidestep_lab::{
    About, Axis, Better, Context, Experiment, Figure, Finding, Input, Inputs, Measure, Measurement, Metric,
    Nature, Number, Point, PointError, Rounds, Row, Side, Verdict,
};

use client::{Load, Outcome};
use service::{Kind, Service, Start};

/// Requests a second of a service whose devices are continuations.
pub struct Io;

const TAIL: &str = "latency, 99 %";

impl Experiment for Io {
    fn about(&self) -> About {
        About {
            name: "zerowait.io",
            question: "How many requests does a service of zero-wait threads answer, and how late, past saturation too?",
            source: "none: CEFOS section 4 argues against receive livelock (figure 6) without measuring it",
            setting: "A service on one core and a client on another, over loopback. echo answers 64 bytes with the \
                      same; file answers with a block of 4096 bytes of a file in the page cache. Each connection has \
                      at most one request under way. The client offers requests at a fixed rate whether or not they \
                      are answered, or (offered 0) sends on each connection as soon as the answer is there, which is \
                      as much as the service can do. A late answer counts from when its request was due.",
            baseline: "the rival that the point names: tokio (epoll, file reads on its blocking pool) or monoio \
                       (io_uring), one thread",
            sidestep: "zero-wait threads on one core, devices through io_uring (epoll where that is not permitted)",
            metric: Metric {
                name: "requests answered",
                unit: "requests/s",
                better: Better::Higher,
            },
            nature: Nature::Measured,
            takes: (Duration::from_secs(20), Duration::from_secs(480)),
            reading: "Below saturation all answer what is offered and the latency tells them apart; past it, what is \
                      answered must not fall as more is offered (no receive livelock). Client and service share the \
                      host, so the most that is possible is about half of what the host can do. Processor time a \
                      request counts the service alone and is the number to trust on a busy host.",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        vec![
            Input::choices("rivals", &["tokio", "monoio"])
                .about("which runtimes to compare with")
                .source("chosen: the common runtime over epoll, a maintained one over io_uring")
                .axis(),
            Input::choices("services", &["echo", "file"])
                .about("which services")
                .source("chosen: sockets alone, and sockets with files")
                .axis(),
            Input::integers("connections", &[1, 10, 100, 1000])
                .between(1, 4000)
                .quick("1,100")
                .unit("connections")
                .about("how many connections the client has open")
                .source("chosen: one, to as many as a service has")
                .axis(),
            Input::integers("offered", &[0, 10_000, 100_000, 200_000, 400_000, 800_000])
                .between(0, 10_000_000)
                .quick("0")
                .unit("requests/s")
                .about("requests the client offers each second; 0 is as many as are answered")
                .source("chosen: saturation, below it, about it, and far past it")
                .axis(),
            Input::duration("time", 300_000_000)
                .lasting(10_000_000, 60_000_000_000)
                .quick("150ms")
                .about("how long a round lasts; a fifth more before it warms up")
                .source("chosen: thousands of requests"),
            Input::integer("rounds", 1)
                .between(1, 100)
                .about("how often each side runs in a repetition, in turns; the median counts")
                .source("chosen: the repetitions take turns already"),
        ]
    }

    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String> {
        let mut points = Vec::new();
        for rival in inputs.texts("rivals") {
            for service in inputs.texts("services") {
                for connections in inputs.integers("connections") {
                    for offered in inputs.integers("offered") {
                        let point = Point::new().at("rival", rival).at("service", service);
                        points.push(point.at("connections", connections).at("offered", offered));
                    }
                }
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
        let service = Service::new(Kind::of(point.value("service").text()))
            .map_err(|error| PointError::Failed(format!("the file to serve: {error}")))?;
        let load = Load {
            connections: point.value("connections").count() as usize,
            offered: point.value("offered").count(),
            time: Duration::from_nanos(inputs.duration_ns("time")),
        };
        let starts: [Start; 2] = [rival(point.value("rival").text())?, zerowait::start];
        let mut records = Rounds::of_both_sides(context);
        let mut outcomes = [Vec::new(), Vec::new()];
        for round in 1..=inputs.count("rounds") {
            for ((start, record), outcomes) in starts.iter().zip(&mut records).zip(&mut outcomes) {
                if context.cancelled() {
                    return Err(PointError::Cancelled);
                }
                let measure = || client::measure(*start, &service, &load);
                outcomes.push(record.note(format!("round {round}"), measure)?);
            }
        }
        let ([baseline, sidestep], [first, second]) = (outcomes.map(side), records);
        Ok(Measurement::new(
            first.explain(baseline),
            second.explain(sidestep),
        ))
    }

    fn findings(&self, _: &Inputs, rows: &[Row]) -> Vec<Finding> {
        let mut findings = Vec::new();
        for saturated in rows.iter().filter(|row| row.point.value("offered").count() == 0) {
            let same_service = |row: &&Row| {
                ["rival", "service", "connections"]
                    .iter()
                    .all(|key| row.point.value(key) == saturated.point.value(key))
            };
            let Some(flooded) = rows
                .iter()
                .filter(same_service)
                .max_by_key(|row| row.point.value("offered").count())
            else {
                continue;
            };
            findings.extend(kept(saturated, flooded));
        }
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        let connections = || Axis::new("connections", "connections", "connections").logarithmic();
        let split: &[&str] = &["rival", "service", "offered"];
        vec![
            Figure::lines(
                "Requests answered",
                connections(),
                Measure::Value,
                "requests answered",
                "requests/s",
            )
            .split_by(split),
            Figure::lines(
                "Completed over offered load",
                Axis::new("offered", "requests offered", "requests/s").logarithmic(),
                Measure::Value,
                "requests answered",
                "requests/s",
            )
            .split_by(&["rival", "service", "connections"]),
            Figure::lines(
                "Latency of 99 %",
                connections(),
                Measure::Counter(TAIL),
                "latency",
                "us",
            )
            .split_by(split)
            .logarithmic(),
        ]
    }
}

/// What both sides still answer under a load past saturation, of what they answer at saturation. `None` where so many
/// requests are not too many, or fewer than a hundred connections bound what can wait at the service.
fn kept(saturated: &Row, flooded: &Row) -> Option<Finding> {
    let (most, under_load) = (saturated.measurement()?, flooded.measurement()?);
    let share = |most: &Side, under_load: &Side| {
        let (most, under_load) = (most.value?, under_load.value?);
        let is_flooded = Number::from(flooded.point.value("offered").count()) > Number::from(2) * most;
        is_flooded.then(|| under_load.over(most)).flatten()
    };
    let ours = share(&most.sidestep, &under_load.sidestep)?;
    let rivals = share(&most.baseline, &under_load.baseline)?;
    if saturated.point.value("connections").count() < 100 {
        return None;
    }
    let percent = |share: Number| (Number::from(100) * share).to_significant(3);
    Some(Finding {
        value: None,
        about: format!("answered at {} of what is answered at saturation", flooded.point),
        stated: "an event that is a continuation causes no receive livelock".to_owned(),
        source: "CEFOS 4, figure 6".to_owned(),
        ours: format!(
            "{} %, {} {} %",
            percent(ours),
            saturated.point.value("rival").text(),
            percent(rivals)
        ),
        verdict: if ours >= Number::decimal("0.8") {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        because: "what is not taken up waits in the sockets; nothing is interrupted to be told of it"
            .to_owned(),
    })
}

/// The outcome in the middle by requests a second.
fn side(mut outcomes: Vec<Outcome>) -> Side {
    outcomes.sort_by_key(Outcome::per_second);
    let outcome = &outcomes[outcomes.len() / 2];
    let microseconds = |per_mille| Number::ratio(outcome.latency.quantile(per_mille), 1000);
    Side::new(outcome.per_second())
        .counter("offered", outcome.offered_per_second(), "requests/s")
        .counter("latency, median", microseconds(500), "us")
        .counter(TAIL, microseconds(990), "us")
        .counter("latency, 99.9 %", microseconds(999), "us")
        .counter("processor time a request", outcome.service_per_request(), "ns")
}

fn rival(name: &str) -> Result<Start, PointError> {
    match name {
        #[cfg(feature = "rivals")]
        "tokio" => Ok(tokio::start),
        #[cfg(feature = "rivals")]
        "monoio" => Ok(monoio::start),
        other => Err(PointError::Unavailable(format!(
            "this build has no {other}; `cargo install --path crates/cli --features rivals` brings it"
        ))),
    }
}
