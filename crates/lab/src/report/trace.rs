//! What happened when, in the Trace Event Format that Perfetto opens.
//!
//! A side of a point is a process, a track of its timeline a thread of it. Times are microseconds with three digits
//! after the point, so nanoseconds exactly.

use std::fmt::Write;

use serde_json::Value as Json;

use crate::comparison::Comparison;
use crate::timeline::{Event, EventKind, FlowStage, Timeline};

/// Every timeline of some comparisons as one trace.
pub fn render(comparisons: &[Comparison]) -> String {
    let mut events = Vec::new();
    let mut process = 0;
    for (comparison, row) in rows(comparisons) {
        let Ok(measurement) = &row.result else { continue };
        for (name, side) in [
            ("baseline", &measurement.baseline),
            ("sidestep", &measurement.sidestep),
        ] {
            if side.timeline.is_empty() {
                continue;
            }
            process += 1;
            let title = format!("{} {} {name}", comparison.about.name, row.point);
            side_events(&mut events, process, &title, &side.timeline);
        }
    }
    document(&events)
}

/// One timeline as a trace of at most `limit_bytes`, and whether it was cut for that; `title` names its process. What
/// begins last is left out.
pub fn render_timeline(title: &str, timeline: &Timeline, limit_bytes: u64) -> (String, bool) {
    let mut events = Vec::new();
    side_events(&mut events, 1, title, timeline);
    let mut bytes = document(&[]).len() as u64;
    let fits = |event: &&String| {
        bytes += event.len() as u64 + SEPARATOR.len() as u64;
        bytes <= limit_bytes
    };
    let kept = events.iter().take_while(fits).count();
    (document(&events[..kept]), kept < events.len())
}

/// What stands between two events.
const SEPARATOR: &str = ",\n";

fn document(events: &[String]) -> String {
    let mut text = String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    for (index, event) in events.iter().enumerate() {
        text.push_str(if index == 0 { "\n" } else { SEPARATOR });
        text.push_str(event);
    }
    text.push_str("\n]}\n");
    text
}

/// The experiments that recorded nothing.
pub fn silent(comparisons: &[Comparison]) -> Vec<&'static str> {
    let recorded = |comparison: &&Comparison| {
        comparison
            .rows
            .iter()
            .filter_map(|row| row.measurement())
            .any(|each| !each.baseline.timeline.is_empty() || !each.sidestep.timeline.is_empty())
    };
    comparisons
        .iter()
        .filter(|comparison| !recorded(comparison))
        .map(|comparison| comparison.about.name)
        .collect()
}

fn rows(comparisons: &[Comparison]) -> impl Iterator<Item = (&Comparison, &crate::row::Row)> {
    comparisons
        .iter()
        .flat_map(|comparison| comparison.rows.iter().map(move |row| (comparison, row)))
}

fn side_events(events: &mut Vec<String>, process: usize, title: &str, timeline: &Timeline) {
    let name = |kind: &str, thread: usize, name: &str| {
        let name = Json::from(name);
        format!(
            "{{\"ph\":\"M\",\"name\":\"{kind}\",\"pid\":{process},\"tid\":{thread},\"args\":{{\"name\":{name}}}}}"
        )
    };
    events.push(name("process_name", 0, title));
    for (index, track) in timeline.tracks.iter().enumerate() {
        events.push(name("thread_name", index + 1, track));
    }
    let mut ordered: Vec<&Event> = timeline.events.iter().collect();
    // A span that holds another begins no later and ends no earlier: it comes first.
    ordered.sort_by_key(|event| {
        let duration = match event.kind {
            EventKind::Span { duration_ns } => duration_ns,
            EventKind::Instant | EventKind::Counter { .. } | EventKind::Flow { .. } => 0,
        };
        (event.start_ns, std::cmp::Reverse(duration))
    });
    for event in ordered {
        let mut text = String::from("{");
        let thread = event.track + 1;
        let (name, start) = (Json::from(event.name.as_str()), microseconds(event.start_ns));
        write!(
            text,
            "\"name\":{name},\"pid\":{process},\"tid\":{thread},\"ts\":{start}"
        )
        .expect("writing to a string");
        match event.kind {
            EventKind::Span { duration_ns } => {
                write!(text, ",\"ph\":\"X\",\"dur\":{}", microseconds(duration_ns))
            }
            EventKind::Flow { id, stage } => {
                let phase = match stage {
                    FlowStage::Begin => "s",
                    FlowStage::Step => "t",
                    FlowStage::End => "f",
                };
                // It binds to the span that encloses it.
                write!(
                    text,
                    ",\"cat\":\"flow\",\"id\":{id},\"ph\":\"{phase}\",\"bp\":\"e\""
                )
            }
            EventKind::Instant => write!(text, ",\"ph\":\"i\",\"s\":\"t\""),
            EventKind::Counter { value } => write!(text, ",\"ph\":\"C\",\"args\":{{\"value\":{value}}}"),
        }
        .expect("writing to a string");
        text.push('}');
        events.push(text);
    }
}

fn microseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}
