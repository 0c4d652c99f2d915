//! A tornado: how far each assumed input alone moves a claim's number, the one that moves it most on top.

use maud::{Markup, html};

use super::scale::Scale;
use super::{Length, figure, text_width};
use crate::number::Number;
use crate::report::words::show;
use crate::sensitivity::{Sensitivity, Swing};

const WIDTH: f64 = 560.0;
const TOP: f64 = 34.0;
const BAR: f64 = 16.0;
const BETWEEN: f64 = 24.0;
const AXIS: f64 = 44.0;
/// So many bars are drawn.
const BARS: usize = 12;
/// Room for what an input was tried with, at the ends of its bar.
const ENDS: f64 = 60.0;

/// The chart of a claim; none where no input moves its number.
pub fn draw(analysis: &Sensitivity, claim: usize) -> Option<Markup> {
    let nominal = analysis.nominal[claim].value?;
    let mut swings = analysis.swings(claim);
    swings.truncate(BARS);
    if swings.is_empty() {
        return None;
    }
    let stated = &analysis.claims[claim];
    let ends = swings
        .iter()
        .map(|swing| swing.bounds(nominal))
        .flat_map(|(least, greatest)| [least, greatest]);
    let numbers: Vec<Number> = ends.chain(stated.number).collect();
    let scale = Scale::linear(&numbers);
    let widest = swings
        .iter()
        .map(|swing| text_width(&swing.assumption.key))
        .fold(0.0, f64::max);
    let left = widest + 12.0 + ENDS;
    let right = WIDTH - ENDS;
    let bottom = TOP + BETWEEN * swings.len() as f64 + 4.0;
    let x = |number: Number| left + scale.place(number).unwrap_or(0.0) * (right - left);
    let content = html! {
        text class="heading" x="4" y="17" { (shortened(&stated.about)) }
        @for (position, name) in &scale.ticks {
            @let x = left + position * (right - left);
            line class="grid" x1=(Length(x)) x2=(Length(x)) y1=(Length(TOP - 4.0)) y2=(Length(bottom)) {}
            text class="minor" x=(Length(x)) y=(Length(bottom + 18.0)) text-anchor="middle" { (name) }
        }
        @for (index, swing) in swings.iter().enumerate() {
            (bar(swing, nominal, analysis, claim, TOP + BETWEEN * index as f64, &x))
        }
        line class="axis" x1=(Length(x(nominal))) x2=(Length(x(nominal))) y1=(Length(TOP - 4.0)) y2=(Length(bottom)) {
            title { "ours: " (show(nominal)) }
        }
        @if let Some(number) = stated.number {
            line class="tolerance" x1=(Length(x(number))) x2=(Length(x(number))) y1=(Length(TOP - 4.0)) y2=(Length(bottom)) {
                title { "the paper: " (stated.stated) }
            }
        }
        text class="minor" x=(Length((left + right) / 2.0)) y=(Length(bottom + 36.0)) text-anchor="middle" {
            "ours " (show(nominal)) @if stated.number.is_some() { "; the paper " (stated.stated) }
            "; a dark bar's end turns the verdict"
        }
    };
    Some(figure(&stated.about, WIDTH, bottom + AXIS, content))
}

/// A heading that fits.
fn shortened(text: &str) -> String {
    let most = (WIDTH / super::LETTER) as usize;
    match text.chars().count() > most {
        true => text.chars().take(most - 3).chain("...".chars()).collect(),
        false => text.to_owned(),
    }
}

fn bar(
    swing: &Swing<'_>,
    nominal: Number,
    analysis: &Sensitivity,
    claim: usize,
    top: f64,
    x: &impl Fn(Number) -> f64,
) -> Markup {
    let verdict = analysis.nominal[claim].verdict;
    let key = &swing.assumption.key;
    // Where both ends lie on one side, the nearer is drawn above the farther.
    let mut ends: Vec<_> = (swing.ends.iter())
        .filter_map(|(value, reading)| Some((*value, reading.value?, reading.verdict != verdict)))
        .collect();
    ends.sort_by_key(|(_, ours, _)| std::cmp::Reverse((*ours - nominal).abs()));
    let (least, greatest) = swing.bounds(nominal);
    let leftmost = x(least.min(nominal));
    let middle = top + BAR / 2.0 + 4.0;
    let named = |ours: Number| {
        ends.iter()
            .find(|(_, other, _)| *other == ours)
            .map(|(value, ..)| value.to_string())
    };
    html! {
        text x=(Length(leftmost.min(x(nominal)) - ENDS)) y=(Length(middle)) text-anchor="end" { (key) }
        @for (value, ours, turns) in &ends {
            @let (from, to) = (x(nominal.min(*ours)), x(nominal.max(*ours)));
            rect class={ "bar sidestep-side " @if *turns { "k-sidestep" } @else { "k7" } }
                x=(Length(from)) y=(Length(top)) width=(Length((to - from).max(0.5))) height=(Length(BAR))
                fill-opacity=(if *turns { ".9" } else { ".35" }) {
                title { (key) "=" (value) ": " (show(*ours)) }
            }
        }
        @if let Some(name) = named(least).filter(|_| least < nominal) {
            text class="minor" x=(Length(x(least) - 4.0)) y=(Length(middle)) text-anchor="end" { (name) }
        }
        @if let Some(name) = named(greatest).filter(|_| greatest > nominal) {
            text class="minor" x=(Length(x(greatest) + 4.0)) y=(Length(middle)) { (name) }
        }
    }
}
