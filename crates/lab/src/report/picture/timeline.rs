//! What happened when, as a picture: a lane for each track, spans as bars, instants as ticks, counters as steps, flows
//! as arrows between lanes.
//!
//! A run has more events than a picture can show: it shows a [`Window`], from the start to where it holds as many
//! events as are readable and a page can bear. `--trace` writes all of them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use maud::{Markup, html};

use super::scale::Scale;
use super::{COLOURS, Length, figure, text_width};
use crate::number::Number;
use crate::report::words::show;
use crate::timeline::{Event, EventKind, Timeline};

const WIDTH: f64 = 460.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 30.0;
const LEGEND_LINE: f64 = 19.0;
const LANE: f64 = 15.0;
const BETWEEN: f64 = 5.0;
const AXIS_HEIGHT: f64 = 44.0;
/// So many events of a side are drawn at most.
const EVENTS: usize = 400;
/// So many tracks of a side are drawn at most.
const TRACKS: usize = 32;
/// The names of tracks take so much room at most.
const NAMES: f64 = 120.0;
/// So many names of spans have an entry in the legend.
const ENTRIES: usize = 8;

/// From the start to when a picture shows what happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The end.
    pub end_ns: u64,
    /// Whether something happened later.
    pub is_cut: bool,
}

impl Window {
    /// The window that shows as much of each of some timelines as can be drawn, on one scale.
    pub fn of(timelines: &[&Timeline]) -> Window {
        let end = |event: &Event| match event.kind {
            EventKind::Span { duration_ns } => event.start_ns.saturating_add(duration_ns),
            _ => event.start_ns,
        };
        let ends = timelines.iter().flat_map(|each| &each.events).map(end);
        let last = ends.max().unwrap_or(0).max(1);
        let full = timelines.iter().filter_map(|timeline| {
            let mut starts: Vec<u64> = shown_events(timeline).map(|event| event.start_ns).collect();
            starts.sort_unstable();
            starts.get(EVENTS).copied()
        });
        let end_ns = full.min().unwrap_or(last).clamp(1, last);
        Window {
            end_ns,
            is_cut: end_ns < last,
        }
    }
}

/// The events of tracks that are drawn.
fn shown_events(timeline: &Timeline) -> impl Iterator<Item = &Event> {
    timeline.events.iter().filter(|event| event.track < TRACKS)
}

/// A span with the lane of its track that it lies in: spans within it lie in further ones.
struct Laid<'a> {
    event: &'a Event,
    duration_ns: u64,
    lane: usize,
}

/// A timeline within a window.
pub fn draw(title: &str, timeline: &Timeline, window: Window) -> Markup {
    let mut events: Vec<&Event> = shown_events(timeline)
        .filter(|event| event.start_ns < window.end_ns)
        .collect();
    events.sort_by_key(|event| (event.start_ns, Reverse(duration(event))));
    // Where all begins at once the window alone does not bound it.
    events.truncate(EVENTS);
    let spans = laid(&events);
    let tracks = timeline.tracks.len().min(TRACKS);
    let lanes: Vec<usize> = (0..tracks)
        .map(|track| {
            let of_track = spans.iter().filter(|span| span.event.track == track);
            of_track.map(|span| span.lane + 1).max().unwrap_or(1)
        })
        .collect();
    let mut names: Vec<&str> = Vec::new();
    for span in &spans {
        if !names.contains(&span.event.name.as_str()) {
            names.push(&span.event.name);
        }
    }
    let colour = |name: &str| names.iter().position(|each| *each == name).unwrap_or(0) % COLOURS;
    let (unit, unit_ns) = unit(window.end_ns);
    let scale = Scale::linear(&[Number::ratio(i128::from(window.end_ns), unit_ns)]);
    let widest = (timeline.tracks.iter().take(tracks)).map(|name| text_width(name));
    let left = widest.fold(0.0, f64::max).min(NAMES) + 14.0;
    let right = WIDTH - RIGHT;
    let (legend, legend_height) = legend(&names);
    let top = TOP + legend_height;
    let tops: Vec<f64> = (0..=tracks)
        .map(|track| {
            top + lanes[..track]
                .iter()
                .map(|lanes| *lanes as f64 * LANE + BETWEEN)
                .sum::<f64>()
        })
        .collect();
    let bottom = tops[tracks];
    let x = |at_ns: u64| {
        let share = scale
            .place(Number::ratio(i128::from(at_ns), unit_ns))
            .unwrap_or(0.0);
        left + share.clamp(0.0, 1.0) * (right - left)
    };
    let content = html! {
        text class="heading" x="4" y="17" { (title) }
        (legend)
        g class="y-axis" {
            @for (track, name) in timeline.tracks.iter().take(tracks).enumerate() {
                line class="grid" x1=(Length(left)) x2=(Length(right)) y1=(Length(tops[track + 1] - BETWEEN / 2.0)) y2=(Length(tops[track + 1] - BETWEEN / 2.0)) {}
                text class="minor" x=(Length(left - 6.0)) y=(Length(tops[track] + 12.0)) text-anchor="end" { (fitting(name)) }
            }
        }
        g class="x-axis" {
            line class="axis" x1=(Length(left)) x2=(Length(right)) y1=(Length(bottom)) y2=(Length(bottom)) {}
            @for (position, name) in &scale.ticks {
                @let x = left + position * (right - left);
                line class="axis tick" x1=(Length(x)) x2=(Length(x)) y1=(Length(bottom)) y2=(Length(bottom + 4.0)) {}
                text class="minor tick" x=(Length(x.min(WIDTH - text_width(name) / 2.0 - 1.0))) y=(Length(bottom + 17.0)) text-anchor="middle" { (name) }
            }
            text class="axis-label" x=(Length((left + right) / 2.0)) y=(Length(bottom + 35.0)) text-anchor="middle" { "time (" (unit) ")" }
        }
        g class="plot" data-box={ (Length(left)) " " (Length(top)) " " (Length(right)) " " (Length(bottom)) }
            data-x=(scale.described()) data-y="names" {
            @for (index, name) in names.iter().enumerate() {
                g class={ "series k" (index % COLOURS) } data-series=(index) {
                    @for span in spans.iter().filter(|span| span.event.name == *name) {
                        @let from = x(span.event.start_ns);
                        @let to = x(span.event.start_ns.saturating_add(span.duration_ns));
                        rect class="span" x=(Length(from)) width=(Length((to - from).max(0.5)))
                            y=(Length(tops[span.event.track] + span.lane as f64 * LANE)) height=(Length(LANE - 2.0)) {
                            title { (said(timeline, span.event)) }
                        }
                    }
                }
            }
            @for event in events.iter().filter(|event| event.kind == EventKind::Instant) {
                line class={ "instant k" (colour(&event.name)) } x1=(Length(x(event.start_ns))) x2=(Length(x(event.start_ns)))
                    y1=(Length(tops[event.track])) y2=(Length(tops[event.track + 1] - BETWEEN)) {
                    title { (said(timeline, event)) }
                }
            }
            @for (track, values) in counters(&events) {
                (steps(&values, &tops, track, &x, x(window.end_ns)))
            }
            @for path in flows(&events) {
                polyline class="flow" points={
                    @for event in path { (Length(x(event.start_ns))) "," (Length(tops[event.track] + LANE / 2.0)) " " }
                } {}
            }
        }
    };
    figure(title, WIDTH, bottom + AXIS_HEIGHT, content)
}

fn duration(event: &Event) -> u64 {
    match event.kind {
        EventKind::Span { duration_ns } => duration_ns,
        EventKind::Instant | EventKind::Counter { .. } | EventKind::Flow { .. } => 0,
    }
}

/// The spans of events in the order of their starts, each in its lane.
fn laid<'a>(events: &[&'a Event]) -> Vec<Laid<'a>> {
    let mut open: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    let mut laid = Vec::new();
    for event in events {
        let EventKind::Span { duration_ns } = event.kind else {
            continue;
        };
        let open = open.entry(event.track).or_default();
        while open.last().is_some_and(|end| *end <= event.start_ns) {
            open.pop();
        }
        laid.push(Laid {
            event,
            duration_ns,
            lane: open.len(),
        });
        open.push(event.start_ns.saturating_add(duration_ns));
    }
    laid
}

/// The unit in which so long a time is read, and how many nanoseconds it has.
fn unit(ns: u64) -> (&'static str, i128) {
    match ns {
        0..10_000 => ("ns", 1),
        10_000..10_000_000 => ("µs", 1000),
        10_000_000.. => ("ms", 1_000_000),
    }
}

/// A time in words.
fn time(ns: u64) -> String {
    let (unit, unit_ns) = unit(ns);
    format!("{} {unit}", show(Number::ratio(i128::from(ns), unit_ns)))
}

fn said(timeline: &Timeline, event: &Event) -> String {
    let (track, name, start) = (&timeline.tracks[event.track], &event.name, time(event.start_ns));
    match event.kind {
        EventKind::Span { duration_ns } => {
            format!("{name}\n{track}\nfrom {start}, for {}", time(duration_ns))
        }
        EventKind::Counter { value } => format!("{name}\n{track}\n{value} from {start}"),
        EventKind::Instant | EventKind::Flow { .. } => format!("{name}\n{track}\nat {start}"),
    }
}

/// A name that fits beside its lane.
fn fitting(name: &str) -> String {
    match text_width(name) > NAMES {
        false => name.to_owned(),
        true => {
            let most = (NAMES / super::LETTER) as usize - 1;
            name.chars().take(most).chain(['…']).collect()
        }
    }
}

/// The changes of each counter, in the order of their times, by track and name.
fn counters<'a>(events: &[&'a Event]) -> Vec<(usize, Vec<(&'a Event, i64)>)> {
    let mut all: BTreeMap<(usize, &str), Vec<(&Event, i64)>> = BTreeMap::new();
    for event in events {
        if let EventKind::Counter { value } = event.kind {
            all.entry((event.track, &event.name))
                .or_default()
                .push((event, value));
        }
    }
    all.into_iter()
        .map(|((track, _), values)| (track, values))
        .collect()
}

/// A counter as steps as high as its track.
fn steps(
    values: &[(&Event, i64)],
    tops: &[f64],
    track: usize,
    x: &impl Fn(u64) -> f64,
    right: f64,
) -> Markup {
    let greatest = values.iter().map(|(_, value)| *value).max().unwrap_or(0).max(1);
    let (top, bottom) = (tops[track], tops[track + 1] - BETWEEN);
    let y = |value: i64| bottom - (value.max(0) as f64 / greatest as f64) * (bottom - top);
    let ends = values
        .iter()
        .skip(1)
        .map(|(event, _)| x(event.start_ns))
        .chain([right]);
    html! {
        polyline class="counter" points={
            @for ((event, value), end) in values.iter().zip(ends) {
                (Length(x(event.start_ns))) "," (Length(y(*value))) " " (Length(end)) "," (Length(y(*value))) " "
            }
        } { title { (values[0].0.name) ", up to " (greatest) } }
    }
}

/// The events of each flow, in the order of their times.
fn flows<'a>(events: &[&'a Event]) -> Vec<Vec<&'a Event>> {
    let mut all: BTreeMap<u64, Vec<&Event>> = BTreeMap::new();
    for event in events {
        if let EventKind::Flow { id, .. } = event.kind {
            all.entry(id).or_default().push(event);
        }
    }
    all.into_values().filter(|steps| steps.len() > 1).collect()
}

/// The names of spans with their colours, and how high that is.
fn legend(names: &[&str]) -> (Markup, f64) {
    let (mut at, mut line) = (4.0, 0.0);
    let mut placed = Vec::new();
    for name in names.iter().take(ENTRIES) {
        let width = text_width(name) + 30.0;
        if at + width > WIDTH && at > 4.0 {
            (at, line) = (4.0, line + 1.0);
        }
        placed.push((at, TOP + line * LEGEND_LINE + 6.0, name));
        at += width;
    }
    let drawn = html! {
        g class="legend" {
            @for (index, (x, y, name)) in placed.iter().enumerate() {
                g class={ "entry k" (index) } data-series=(index) {
                    rect class="span" x=(Length(*x)) y=(Length(*y - 5.0)) width="14" height="10" {}
                    text class="minor" x=(Length(*x + 19.0)) y=(Length(*y + 4.0)) { (name) }
                }
            }
        }
    };
    let height = if names.is_empty() {
        0.0
    } else {
        (line + 1.0) * LEGEND_LINE
    };
    (drawn, height)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(events: u64) -> Timeline {
        let spans = (0..events).map(|index| (0, "call".to_owned(), index * 10, 5));
        Timeline::of_spans(vec!["core 0".to_owned()], spans)
    }

    #[test]
    fn a_window_ends_where_the_busiest_side_is_full() {
        let (short, long) = (busy(10), busy(10_000));
        assert_eq!(
            Window::of(&[&short]),
            Window {
                end_ns: 95,
                is_cut: false
            }
        );
        let both = Window::of(&[&short, &long]);
        assert_eq!((both.end_ns, both.is_cut), (EVENTS as u64 * 10, true));
        let spans = draw("a run", &long, both).0.matches("class=\"span\"").count();
        assert_eq!(spans, EVENTS + 1, "and one in the legend");
    }

    #[test]
    fn spans_within_a_span_lie_in_a_lane_of_their_own() {
        let spans = [
            ("whole", 0, 100),
            ("first", 0, 40),
            ("inner", 10, 10),
            ("second", 40, 60),
            ("next", 100, 5),
        ];
        let spans = spans.map(|(name, start, duration)| (0, name.to_owned(), start, duration));
        let timeline = Timeline::of_spans(vec!["core".to_owned()], spans);
        let events: Vec<&Event> = timeline.events.iter().collect();
        let lanes: Vec<usize> = laid(&events).iter().map(|span| span.lane).collect();
        assert_eq!(lanes, [0, 1, 2, 1, 0]);
    }

    #[test]
    fn what_begins_at_once_is_bounded_too() {
        let mut timeline = Timeline::default();
        for track in 0..100 {
            timeline.track(format!("core {track}"));
        }
        for index in 0..10_000 {
            timeline.instant(index % 100, "wake", 0);
        }
        let picture = draw("a storm", &timeline, Window::of(&[&timeline])).0;
        assert!(picture.len() < 100_000, "{} bytes", picture.len());
    }
}
