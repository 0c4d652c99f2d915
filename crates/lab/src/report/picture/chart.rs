//! A chart: our numbers as lines or bars, the paper's beside them as diamonds, with axes that name what they show and
//! its unit.

use maud::{Markup, html};

use super::scale::Scale;
use super::series::{Mark, Series, place, series};
use super::{COLOURS, Length, figure as picture, text_width};
use crate::comparison::Comparison;
use crate::figure::{Figure, Measure};
use crate::input::Value;
use crate::number::Number;
use crate::paper::Quantity;
use crate::report::words;
use crate::row::Row;

const WIDTH: f64 = 460.0;
const PLOT_HEIGHT: f64 = 230.0;
const TITLE_HEIGHT: f64 = 26.0;
const LEGEND_LINE: f64 = 19.0;
const RIGHT: f64 = 16.0;
const AXIS_HEIGHT: f64 = 48.0;
/// Of a longer line about so many points bear a mark; the line goes through all.
const MARKS: usize = 256;
/// Beyond so many lines a chart is hard to read.
const READABLE_SERIES: usize = 12;

/// A chart's plot: where it lies in the picture, its scales and what it shows.
struct Plot<'a> {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
    horizontal: Scale,
    vertical: Scale,
    figure: &'a Figure,
    all: &'a [Series],
    groups: usize,
}

/// The charts of a figure: one, or where it would hold too many lines one for each value of the first coordinate that
/// splits them; none if there is nothing to show.
pub fn draw(comparison: &Comparison, figure: &Figure) -> Vec<Markup> {
    let rows: Vec<&Row> = comparison.rows.iter().collect();
    let (all, _) = series(&rows, figure);
    let [first, rest @ ..] = figure.lines else {
        return draw_one(&rows, figure, figure.title).into_iter().collect();
    };
    if all.len() <= READABLE_SERIES {
        return draw_one(&rows, figure, figure.title).into_iter().collect();
    }
    let mut values: Vec<String> = Vec::new();
    for value in rows
        .iter()
        .filter_map(|row| row.point.find(first))
        .map(ToString::to_string)
    {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let part = Figure {
        lines: rest,
        ..figure.clone()
    };
    let of_value = |value: &String| -> Option<Markup> {
        let has = |row: &&&Row| row.point.find(first).map(ToString::to_string).as_ref() == Some(value);
        let rows: Vec<&Row> = rows.iter().filter(has).copied().collect();
        let title = format!("{}, {}", figure.title, place(&rows, first, value));
        draw_one(&rows, &part, &title)
    };
    values.iter().filter_map(of_value).collect()
}

fn draw_one(rows: &[&Row], figure: &Figure, title: &str) -> Option<Markup> {
    let (all, groups) = series(rows, figure);
    if all.is_empty() {
        return None;
    }
    let legend = legend(&all, groups, figure);
    let vertical = vertical(&all, figure);
    let widest = (vertical.ticks.iter())
        .map(|(_, name)| text_width(name))
        .fold(0.0, f64::max);
    let top = TITLE_HEIGHT + legend.height + 14.0;
    let plot = Plot {
        left: widest + 34.0,
        top,
        right: WIDTH - RIGHT,
        bottom: top + PLOT_HEIGHT,
        horizontal: horizontal(&all, figure),
        vertical,
        figure,
        all: &all,
        groups,
    };
    let content = html! {
        text class="heading" x="4" y="17" { (title) }
        (legend.drawn)
        (plot.axes())
        g class="plot" data-box={ (Length(plot.left)) " " (Length(plot.top)) " " (Length(plot.right)) " " (Length(plot.bottom)) }
            data-x=(plot.horizontal.described()) data-y=(plot.vertical.described()) {
            (plot.even())
            @for (index, series) in all.iter().enumerate() {
                g class={ "series " (classes(series, groups)) } data-series=(index) {
                    @if figure.bars { (plot.bars(index, series)) } @else { (plot.line(series)) }
                }
            }
        }
    };
    Some(picture(title, WIDTH, plot.bottom + plot.axis_height(), content))
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
        Some(number) => words::show(number),
        None => value.to_string(),
    }
}

/// A label with its unit, unless the label is the unit.
fn with_unit(label: &str, unit: &str) -> String {
    match unit.is_empty() || unit == label {
        true => label.to_owned(),
        false => format!("{label} ({})", shown_unit(unit)),
    }
}

/// A unit as people write it.
fn shown_unit(unit: &str) -> &str {
    match unit {
        "us" => "µs",
        unit => unit,
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

/// Which of the names along an axis are drawn, by the middle and the width of each: the first, the last, and as many
/// between them as do not touch.
fn apart(names: &[(f64, f64)]) -> Vec<bool> {
    let mut drawn = vec![false; names.len()];
    let last = names.len().saturating_sub(1);
    for index in [0, last]
        .into_iter()
        .chain(1..last)
        .filter(|index| *index < names.len())
    {
        let (middle, width) = names[index];
        let touches = |(other, is_drawn): (&(f64, f64), &bool)| {
            *is_drawn && (other.0 - middle).abs() < (other.1 + width) / 2.0
        };
        drawn[index] = drawn[index] || !names.iter().zip(&drawn).any(touches);
    }
    drawn
}

impl Plot<'_> {
    fn x(&self, share: f64) -> f64 {
        self.left + share * (self.right - self.left)
    }

    fn y(&self, share: f64) -> f64 {
        self.bottom - share * (self.bottom - self.top)
    }

    /// How wide the share of one name on the horizontal axis is.
    fn share(&self) -> f64 {
        (self.right - self.left) / self.horizontal.ticks.len().max(1) as f64
    }

    /// Names that would run into each other are drawn slanting.
    fn slanting(&self) -> bool {
        (self.horizontal.ticks.iter()).any(|(_, name)| text_width(name) > self.share() + 2.0)
    }

    /// Which names stand below the horizontal axis.
    fn named(&self) -> Vec<bool> {
        /// The room between two names, and that of a slanting one.
        const GAP: f64 = 4.0;
        const SLANTING: f64 = 16.0;
        let slanting = self.slanting();
        let taken = |name: &str| {
            if slanting {
                SLANTING
            } else {
                text_width(name) + GAP
            }
        };
        let ticks = self.horizontal.ticks.iter();
        let names: Vec<(f64, f64)> = ticks
            .map(|(position, name)| (self.x(*position), taken(name)))
            .collect();
        apart(&names)
    }

    /// How much room the horizontal axis needs.
    fn axis_height(&self) -> f64 {
        /// How far a slanting name reaches down, of its width.
        const SLOPE: f64 = 0.31;
        let widths = self.horizontal.ticks.iter().map(|(_, name)| text_width(name));
        let longest = widths.fold(0.0, f64::max);
        match self.slanting() {
            true => AXIS_HEIGHT + (longest * SLOPE - 10.0).max(18.0),
            false => AXIS_HEIGHT,
        }
    }

    /// Where a mark stands along the horizontal axis.
    fn x_of(&self, mark: &Mark) -> Option<f64> {
        let share = number(&mark.x, self.figure)
            .and_then(|number| self.horizontal.place(number))
            .or_else(|| self.horizontal.place_name(&name(&mark.x, self.figure)))?;
        Some(self.x(share))
    }

    /// How high a number stands.
    fn y_of(&self, number: Number) -> Option<f64> {
        Some(self.y(self.vertical.place(number)?.clamp(0.0, 1.0)))
    }

    fn axes(&self) -> Markup {
        let middle = (self.top + self.bottom) / 2.0;
        let y_label = match self.figure.y {
            Measure::Ratio if self.figure.y_unit.is_empty() => format!("{} (×)", self.figure.y_label),
            _ => with_unit(self.figure.y_label, self.figure.y_unit),
        };
        let slanting = self.slanting();
        html! {
            g class="y-axis" {
                @for (position, name) in &self.vertical.ticks {
                    @let y = self.y(*position);
                    line class="grid tick" x1=(Length(self.left)) x2=(Length(self.right)) y1=(Length(y)) y2=(Length(y)) {}
                    text class="minor tick" x=(Length(self.left - 6.0)) y=(Length(y + 4.0)) text-anchor="end" { (name) }
                }
                text class="axis-label" text-anchor="middle"
                    transform={ "translate(14 " (Length(middle)) ") rotate(-90)" } { (y_label) }
            }
            g class="x-axis" {
                line class="axis" x1=(Length(self.left)) x2=(Length(self.right))
                    y1=(Length(self.bottom)) y2=(Length(self.bottom)) {}
                @for ((position, name), is_named) in self.horizontal.ticks.iter().zip(self.named()) {
                    @let x = self.x(*position);
                    line class="axis tick" x1=(Length(x)) x2=(Length(x))
                        y1=(Length(self.bottom)) y2=(Length(self.bottom + 4.0)) {}
                    @if is_named && slanting {
                        text class="minor tick" text-anchor="end"
                            transform={ "translate(" (Length(x + 4.0)) " " (Length(self.bottom + 15.0)) ") rotate(-18)" } { (name) }
                    } @else if is_named {
                        text class="minor tick" x=(Length(x)) y=(Length(self.bottom + 18.0)) text-anchor="middle" { (name) }
                    }
                }
                text class="axis-label" x=(Length((self.left + self.right) / 2.0)) y=(Length(self.bottom + self.axis_height() - 8.0))
                    text-anchor="middle" { (with_unit(self.figure.x.label, self.figure.x.unit)) }
            }
        }
    }

    /// The line on which the sidestep neither gains nor loses.
    fn even(&self) -> Markup {
        html! {
            @if self.figure.y == Measure::Ratio && let Some(y) = self.y_of(Number::ONE) {
                line class="even" x1=(Length(self.left)) x2=(Length(self.right)) y1=(Length(y)) y2=(Length(y)) {}
            }
        }
    }

    fn line(&self, series: &Series) -> Markup {
        let classes = classes(series, self.groups);
        let mut placed: Vec<(f64, f64, &Mark)> = (series.marks.iter())
            .filter_map(|mark| Some((self.x_of(mark)?, self.y_of(mark.y)?, mark)))
            .collect();
        placed.sort_by(|one, other| one.0.total_cmp(&other.0));
        html! {
            @if placed.len() > 1 {
                polyline class={ "line " (classes) } points={
                    @for (x, y, _) in &placed { (Length(*x)) "," (Length(*y)) " " }
                } {}
            }
            @for (x, y, mark) in placed.iter().step_by(placed.len().div_ceil(MARKS).max(1)) {
                (self.interval(*x, mark, &classes))
                circle class={ "mark " (classes) } cx=(Length(*x)) cy=(Length(*y)) r="3.5" {
                    title { (self.said(series, mark)) }
                }
                (self.stated(*x, series, mark))
            }
        }
    }

    fn bars(&self, index: usize, series: &Series) -> Markup {
        let classes = classes(series, self.groups);
        let count = self.all.len() as f64;
        let width = (self.share() * 0.8 / count).min(46.0);
        let offset = (index as f64 - count / 2.0) * width;
        let floor = self.y_of(Number::ZERO).unwrap_or(self.bottom);
        html! {
            @for mark in &series.marks {
                @if let (Some(x), Some(y)) = (self.x_of(mark), self.y_of(mark.y)) {
                    @let x = x + offset;
                    rect class={ "bar " (classes) } x=(Length(x + 1.0)) width=(Length(width - 2.0))
                        y=(Length(y.min(floor))) height=(Length((y - floor).abs())) {
                        title { (self.said(series, mark)) }
                    }
                    (self.interval(x + width / 2.0, mark, "axis"))
                    (self.stated(x + width / 2.0, series, mark))
                }
            }
        }
    }

    /// What a mark says to who points at it.
    fn said(&self, series: &Series, mark: &Mark) -> String {
        let with = |value: String, unit: &str| match unit {
            "" => value,
            unit => format!("{value} {}", shown_unit(unit)),
        };
        let x = with(name(&mark.x, self.figure), self.figure.x.unit);
        let mut text = format!("{}\n{} {x}\n", series.label, self.figure.x.label);
        text.push_str(&with(words::show(mark.y), self.figure.y_unit));
        if let Some((low, high)) = mark.interval {
            text.push_str(&format!(" ({} to {})", words::show(low), words::show(high)));
        }
        if let Some((stated, _)) = mark.stated {
            text.push_str(&format!("\nthe paper: {}", words::show(stated)));
        }
        text
    }

    fn interval(&self, x: f64, mark: &Mark, classes: &str) -> Markup {
        let ends = (mark.interval).and_then(|(low, high)| Some((self.y_of(low)?, self.y_of(high)?)));
        html! {
            @if let Some((low, high)) = ends {
                line class={ "interval " (classes) } x1=(Length(x)) x2=(Length(x)) y1=(Length(low)) y2=(Length(high)) {}
            }
        }
    }

    /// The paper's value as a diamond, with its tolerance.
    fn stated(&self, x: f64, series: &Series, mark: &Mark) -> Markup {
        let placed = (mark.stated).and_then(|(value, tolerance)| Some((value, tolerance, self.y_of(value)?)));
        html! {
            @if let Some((value, tolerance, y)) = placed {
                @if let (Some(low), Some(high)) = (self.y_of(value - tolerance), self.y_of(value + tolerance)) {
                    line class="tolerance" x1=(Length(x)) x2=(Length(x)) y1=(Length(low)) y2=(Length(high)) {}
                }
                (diamond(x, y, html! { title { (self.said(series, mark)) } }))
            }
        }
    }
}

/// The mark of a paper's value.
fn diamond(x: f64, y: f64, inside: Markup) -> Markup {
    html! {
        path class="stated" d={ "M" (Length(x)) " " (Length(y - 5.5)) "l5.5 5.5l-5.5 5.5l-5.5 -5.5z" } { (inside) }
    }
}

struct Legend {
    drawn: Markup,
    height: f64,
}

/// The legend above the plot, in as many lines as it needs.
fn legend(all: &[Series], groups: usize, figure: &Figure) -> Legend {
    let has_stated = (all.iter().flat_map(|series| &series.marks)).any(|mark| mark.stated.is_some());
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
            @for (index, (x, y, label, series)) in placed.iter().enumerate() {
                @let name = html! { text class="minor" x=(Length(*x + 29.0)) y=(Length(*y + 4.0)) { (label) } };
                @if let Some(series) = series {
                    @let classes = classes(series, groups);
                    g class={ "entry " (classes) } data-series=(index) {
                        @if figure.bars {
                            rect class={ "bar " (classes) } x=(Length(*x + 4.0)) y=(Length(*y - 5.0)) width="16" height="10" {}
                        } @else {
                            line class={ "line " (classes) } x1=(Length(*x)) x2=(Length(*x + 24.0)) y1=(Length(*y)) y2=(Length(*y)) {}
                            circle class={ "mark " (classes) } cx=(Length(*x + 12.0)) cy=(Length(*y)) r="3.5" {}
                        }
                        (name)
                    }
                } @else {
                    (diamond(*x + 12.0, *y, Markup::default()))
                    (name)
                }
            }
        }
    };
    Legend {
        drawn,
        height: (line + 1.0) * LEGEND_LINE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_touch_are_left_out_between_the_first_and_the_last() {
        assert!(apart(&[]).is_empty());
        assert_eq!(apart(&[(0.0, 10.0)]), [true]);
        assert_eq!(apart(&[(0.0, 10.0), (20.0, 10.0), (40.0, 10.0)]), [true; 3]);
        assert_eq!(
            apart(&[(0.0, 10.0), (20.0, 22.0), (28.0, 22.0), (60.0, 10.0)]),
            [true, true, false, true]
        );
        assert_eq!(
            apart(&[(0.0, 10.0), (20.0, 22.0), (29.0, 36.0)]),
            [true, false, true]
        );
        assert_eq!(
            apart(&[(0.0, 36.0), (29.0, 36.0)]),
            [true, false],
            "the first where both do not fit"
        );
    }
}
