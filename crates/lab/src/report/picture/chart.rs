//! A chart: our numbers as lines or bars, the paper's beside them as diamonds, with axes that name what they show and its unit.

use maud::{Markup, html};

use super::scale::Scale;
use super::series::{Mark, Series, series};
use super::{COLOURS, Length, figure as picture, text_width};
use crate::comparison::Comparison;
use crate::figure::{Figure, Measure};
use crate::input::Value;
use crate::number::Number;
use crate::paper::Quantity;

const WIDTH: f64 = 460.0;
const PLOT_HEIGHT: f64 = 230.0;
const TITLE_HEIGHT: f64 = 26.0;
const LEGEND_LINE: f64 = 19.0;
const RIGHT: f64 = 16.0;
const AXIS_HEIGHT: f64 = 48.0;

/// Where the plot lies in the picture.
struct Frame {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Frame {
    fn x(&self, share: f64) -> f64 {
        self.left + share * (self.right - self.left)
    }

    fn y(&self, share: f64) -> f64 {
        self.bottom - share * (self.bottom - self.top)
    }
}

/// A chart of a comparison; `None` if there is nothing to show.
pub fn draw(comparison: &Comparison, figure: &Figure) -> Option<Markup> {
    let (all, groups) = series(comparison, figure);
    if all.is_empty() {
        return None;
    }
    let marks = || all.iter().flat_map(|series| &series.marks);
    let (horizontal, vertical) = (horizontal(&all, figure), vertical(&all, figure));
    let has_stated = marks().any(|mark| mark.stated.is_some());
    let legend = legend(&all, groups, has_stated, figure);

    let widest = vertical
        .ticks
        .iter()
        .map(|(_, name)| text_width(name))
        .fold(0.0, f64::max);
    let top = TITLE_HEIGHT + legend.height + 14.0;
    let frame = Frame {
        left: widest + 34.0,
        top,
        right: WIDTH - RIGHT,
        bottom: top + PLOT_HEIGHT,
    };
    let content = html! {
        text class="heading" x="4" y="17" { (figure.title) }
        (legend.drawn)
        (axes(&frame, &horizontal, &vertical, figure))
        @if figure.y == Measure::Ratio && let Some(even) = vertical.place(Number::ONE) {
            line class="even" x1=(Length(frame.left)) x2=(Length(frame.right))
                y1=(Length(frame.y(even))) y2=(Length(frame.y(even))) {}
        }
        @for (index, series) in all.iter().enumerate() {
            @if figure.bars { (bars(&frame, &horizontal, &vertical, &all, index, groups)) }
            @else { (line(&frame, &horizontal, &vertical, series, groups, figure)) }
        }
    };
    Some(picture(figure.title, WIDTH, frame.bottom + AXIS_HEIGHT, content))
}

fn horizontal(all: &[Series], figure: &Figure) -> Scale {
    let values: Vec<&Value> = all
        .iter()
        .flat_map(|series| &series.marks)
        .map(|mark| &mark.x)
        .collect();
    let numbers: Option<Vec<Number>> = values.iter().map(|value| number(value, figure)).collect();
    match numbers {
        Some(numbers) if !figure.bars && figure.x.logarithmic => Scale::logarithmic(&numbers, true),
        Some(numbers) if !figure.bars => Scale::linear(&numbers),
        _ => {
            let mut names: Vec<String> = Vec::new();
            for value in values {
                let name = name(value, figure);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            Scale::names(names)
        }
    }
}

fn vertical(all: &[Series], figure: &Figure) -> Scale {
    let mut values = Vec::new();
    for mark in all.iter().flat_map(|series| &series.marks) {
        values.push(mark.y);
        values.extend(mark.interval.iter().flat_map(|(low, high)| [*low, *high]));
        values.extend(mark.stated.iter().map(|(value, _)| *value));
    }
    if figure.y == Measure::Ratio {
        values.push(Number::ONE);
    }
    match figure.y_logarithmic {
        true => Scale::logarithmic(&values, false),
        false => Scale::linear(&values),
    }
}

/// A coordinate as a number on the axis: durations in the axis' unit.
fn number(value: &Value, figure: &Figure) -> Option<Number> {
    let number = value.number()?;
    let unit_ns = match (value, figure.x.unit) {
        (Value::Duration { .. }, "us") => 1000,
        (Value::Duration { .. }, "ms") => 1_000_000,
        (Value::Duration { .. }, "s") => 1_000_000_000,
        _ => 1,
    };
    Some(number * Number::ratio(1, unit_ns))
}

fn name(value: &Value, figure: &Figure) -> String {
    match number(value, figure) {
        Some(number) => crate::report::words::show(number),
        None => value.to_string(),
    }
}

/// A label with its unit, unless the label is the unit.
fn with_unit(label: &str, unit: &str) -> String {
    let unit = match unit {
        "us" => "µs",
        unit => unit,
    };
    match unit.is_empty() || unit == label {
        true => label.to_owned(),
        false => format!("{label} ({unit})"),
    }
}

fn axes(frame: &Frame, horizontal: &Scale, vertical: &Scale, figure: &Figure) -> Markup {
    let middle = (frame.top + frame.bottom) / 2.0;
    let y_label = match figure.y {
        Measure::Ratio if figure.y_unit.is_empty() => format!("{} (×)", figure.y_label),
        _ => with_unit(figure.y_label, figure.y_unit),
    };
    // Names that would run into each other are drawn slanting.
    let share = (frame.right - frame.left) / horizontal.ticks.len().max(1) as f64;
    let slanting = horizontal
        .ticks
        .iter()
        .any(|(_, name)| text_width(name) > share + 2.0);
    html! {
        g class="y-axis" {
            @for (position, name) in &vertical.ticks {
                line class="grid" x1=(Length(frame.left)) x2=(Length(frame.right))
                    y1=(Length(frame.y(*position))) y2=(Length(frame.y(*position))) {}
                text class="minor" x=(Length(frame.left - 6.0)) y=(Length(frame.y(*position) + 4.0)) text-anchor="end" { (name) }
            }
            text class="axis-label" text-anchor="middle" transform={ "translate(14 " (Length(middle)) ") rotate(-90)" } { (y_label) }
        }
        g class="x-axis" {
            line class="axis" x1=(Length(frame.left)) x2=(Length(frame.right))
                y1=(Length(frame.bottom)) y2=(Length(frame.bottom)) {}
            @for (position, name) in &horizontal.ticks {
                @let x = frame.x(*position);
                line class="axis" x1=(Length(x)) x2=(Length(x)) y1=(Length(frame.bottom)) y2=(Length(frame.bottom + 4.0)) {}
                @if slanting {
                    text class="minor" text-anchor="end"
                        transform={ "translate(" (Length(x + 4.0)) " " (Length(frame.bottom + 15.0)) ") rotate(-18)" } { (name) }
                } @else {
                    text class="minor" x=(Length(x)) y=(Length(frame.bottom + 18.0)) text-anchor="middle" { (name) }
                }
            }
            text class="axis-label" x=(Length((frame.left + frame.right) / 2.0)) y=(Length(frame.bottom + 40.0))
                text-anchor="middle" { (with_unit(figure.x.label, figure.x.unit)) }
        }
    }
}

/// The classes of a series: its colour and its side.
fn classes(series: &Series, groups: usize) -> String {
    let side = match series.quantity {
        Quantity::Baseline => "baseline-side",
        Quantity::Sidestep | Quantity::Ratio => "sidestep-side",
    };
    match (groups, series.quantity) {
        (0 | 1, Quantity::Baseline) => format!("k-baseline {side}"),
        (0 | 1, _) => format!("k-sidestep {side}"),
        _ => format!("k{} {side}", series.group % COLOURS),
    }
}

fn place_x(horizontal: &Scale, mark: &Mark, figure: &Figure) -> Option<f64> {
    match number(&mark.x, figure).and_then(|number| horizontal.place(number)) {
        Some(share) => Some(share),
        None => horizontal.place_name(&name(&mark.x, figure)),
    }
}

fn line(
    frame: &Frame,
    horizontal: &Scale,
    vertical: &Scale,
    series: &Series,
    groups: usize,
    figure: &Figure,
) -> Markup {
    let classes = classes(series, groups);
    let mut placed: Vec<(f64, f64, &Mark)> = (series.marks.iter())
        .filter_map(|mark| {
            let x = frame.x(place_x(horizontal, mark, figure)?);
            Some((x, frame.y(vertical.place(mark.y)?), mark))
        })
        .collect();
    placed.sort_by(|one, other| one.0.total_cmp(&other.0));
    html! {
        g class=(classes) {
            @if placed.len() > 1 {
                polyline class={ "line " (classes) } points={
                    @for (x, y, _) in &placed { (Length(*x)) "," (Length(*y)) " " }
                } {}
            }
            @for (x, y, mark) in &placed {
                (interval(frame, vertical, *x, mark, &classes))
                circle class={ "mark " (classes) } cx=(Length(*x)) cy=(Length(*y)) r="3.5" {}
                (stated(frame, vertical, *x, mark))
            }
        }
    }
}

fn bars(
    frame: &Frame,
    horizontal: &Scale,
    vertical: &Scale,
    all: &[Series],
    index: usize,
    groups: usize,
) -> Markup {
    let series = &all[index];
    let classes = classes(series, groups);
    let share = (frame.right - frame.left) / horizontal.ticks.len().max(1) as f64;
    let width = (share * 0.8 / all.len() as f64).min(46.0);
    let offset = (index as f64 - all.len() as f64 / 2.0) * width;
    let floor = frame.y(vertical.place(Number::ZERO).unwrap_or(0.0));
    html! {
        g {
            @for mark in &series.marks {
                @if let (Some(x), Some(y)) = (position_of(horizontal, mark), vertical.place(mark.y)) {
                    @let (x, y) = (frame.x(x) + offset, frame.y(y));
                    rect class={ "bar " (classes) } x=(Length(x + 1.0)) width=(Length(width - 2.0))
                        y=(Length(y.min(floor))) height=(Length((y - floor).abs())) {}
                    (interval(frame, vertical, x + width / 2.0, mark, "axis"))
                    (stated(frame, vertical, x + width / 2.0, mark))
                }
            }
        }
    }
}

fn position_of(horizontal: &Scale, mark: &Mark) -> Option<f64> {
    let shown = match mark.x.number() {
        Some(number) => crate::report::words::show(number),
        None => mark.x.to_string(),
    };
    horizontal.place_name(&shown)
}

fn interval(frame: &Frame, vertical: &Scale, x: f64, mark: &Mark, classes: &str) -> Markup {
    let ends = (mark.interval).and_then(|(low, high)| Some((vertical.place(low)?, vertical.place(high)?)));
    html! {
        @if let Some((low, high)) = ends {
            line class={ "interval " (classes) } x1=(Length(x)) x2=(Length(x)) y1=(Length(frame.y(low))) y2=(Length(frame.y(high))) {}
        }
    }
}

/// The paper's value as a diamond, with its tolerance.
fn stated(frame: &Frame, vertical: &Scale, x: f64, mark: &Mark) -> Markup {
    let Some((value, place)) = mark
        .stated
        .and_then(|(value, _)| Some((value, vertical.place(value)?)))
    else {
        return Markup::default();
    };
    let tolerance = mark.stated.map_or(Number::ZERO, |(_, tolerance)| tolerance);
    let reach = |end: Number| vertical.place(end).map(|share| frame.y(share.clamp(0.0, 1.0)));
    let y = frame.y(place);
    html! {
        @if let (Some(low), Some(high)) = (reach(value - tolerance), reach(value + tolerance)) {
            line class="tolerance" x1=(Length(x)) x2=(Length(x)) y1=(Length(low)) y2=(Length(high)) {}
        }
        path class="stated" d={ "M" (Length(x)) " " (Length(y - 5.5)) "l5.5 5.5l-5.5 5.5l-5.5 -5.5z" } {
            title { "paper: " (crate::report::words::show(value)) }
        }
    }
}

struct Legend {
    drawn: Markup,
    height: f64,
}

/// The legend above the plot, in as many lines as it needs.
fn legend(all: &[Series], groups: usize, has_stated: bool, figure: &Figure) -> Legend {
    let mut entries: Vec<(String, Option<&Series>)> = all
        .iter()
        .map(|series| (series.label.clone(), Some(series)))
        .collect();
    if has_stated {
        entries.push(("paper".to_owned(), None));
    }
    let (mut x, mut line) = (4.0, 0.0);
    let mut placed = Vec::new();
    for (label, series) in entries {
        let width = 30.0 + text_width(&label) + 10.0;
        if x + width > WIDTH && x > 4.0 {
            x = 4.0;
            line += 1.0;
        }
        placed.push((x, TITLE_HEIGHT + line * LEGEND_LINE + 9.0, label, series));
        x += width;
    }
    let drawn = html! {
        g class="legend" {
            @for (x, y, label, series) in &placed {
                @if let Some(series) = series {
                    @let classes = classes(series, groups);
                    g class=(classes) {
                        @if figure.bars {
                            rect class={ "bar " (classes) } x=(Length(*x + 4.0)) y=(Length(*y - 5.0)) width="16" height="10" {}
                        } @else {
                            line class={ "line " (classes) } x1=(Length(*x)) x2=(Length(*x + 24.0)) y1=(Length(*y)) y2=(Length(*y)) {}
                            circle class={ "mark " (classes) } cx=(Length(*x + 12.0)) cy=(Length(*y)) r="3.5" {}
                        }
                    }
                } @else {
                    path class="stated" d={ "M" (Length(*x + 12.0)) " " (Length(*y - 5.5)) "l5.5 5.5l-5.5 5.5l-5.5 -5.5z" } {}
                }
                text class="minor" x=(Length(*x + 29.0)) y=(Length(*y + 4.0)) { (label) }
            }
        }
    };
    Legend {
        drawn,
        height: (line + 1.0) * LEGEND_LINE,
    }
}
