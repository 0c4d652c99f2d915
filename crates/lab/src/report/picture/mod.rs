//! Pictures as SVG: charts, heat maps and trees.
//!
//! A picture stands inside the report's page or in a file of its own. Colours are classes, so that a page or file shows
//! them in light and dark; [`STYLE`] defines them. Positions are computed with the four basic float operations, which
//! IEEE 754 fixes to the bit, and with integer logarithms: the same data gives the same bytes on every machine.

pub mod chart;
pub mod matrix;
pub mod timeline;
pub mod tornado;
pub mod tree;

mod scale;
mod series;

use maud::{Markup, Render, html};

use crate::comparison::Comparison;
use crate::drawing::Drawing;
use crate::row::Row;

/// The classes that pictures use.
pub const STYLE: &str = include_str!("style.css");

/// How many colours there are for groups; further groups begin anew.
pub(super) const COLOURS: usize = 8;

/// The width of a character of the small letters in pictures, about, in the picture's units.
const LETTER: f64 = 7.2;

/// About how wide a text is drawn, in the picture's units.
fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

/// A length or position as the text of an attribute: to a tenth of a unit.
struct Length(f64);

impl Render for Length {
    fn render_to(&self, buffer: &mut String) {
        let tenths = (self.0 * 10.0).round() as i64;
        let sign = if tenths < 0 { "-" } else { "" };
        let (whole, tenth) = (tenths.unsigned_abs() / 10, tenths.unsigned_abs() % 10);
        let text = match tenth {
            0 => format!("{sign}{whole}"),
            _ => format!("{sign}{whole}.{tenth}"),
        };
        text.render_to(buffer);
    }
}

/// A picture inside a page.
pub(super) fn figure(title: &str, width: f64, height: f64, content: Markup) -> Markup {
    html! {
        svg class="picture" viewBox={ "0 0 " (Length(width)) " " (Length(height)) } role="img" aria-label=(title)
            xmlns="http://www.w3.org/2000/svg" {
            title { (title) }
            (content)
        }
    }
}

/// Every chart and every drawing of the first point that has any, each as the name and content of a file.
pub fn files(comparison: &Comparison) -> Vec<(String, String)> {
    let charts = (comparison.figures.iter()).flat_map(|figure| chart::draw(comparison, figure));
    let first = comparison
        .rows
        .iter()
        .filter_map(Row::measurement)
        .find(|each| each.has_drawings());
    let drawings = first.into_iter().flat_map(|measurement| {
        let sides = [
            &measurement.drawings,
            &measurement.baseline.drawings,
            &measurement.sidestep.drawings,
        ];
        sides.into_iter().flatten().filter_map(|drawing| match drawing {
            Drawing::Matrix(matrix) => Some(matrix::draw(matrix)),
            Drawing::Tree(tree) => Some(tree::draw(tree)),
            // A table of the page, not a picture.
            Drawing::Breakdown(_) => None,
        })
    });
    (charts.chain(drawings).enumerate())
        .map(|(index, picture)| {
            (
                format!("{}-{}.svg", comparison.about.name, index + 1),
                file(&picture),
            )
        })
        .collect()
}

/// A picture as a file of its own, with its colours.
pub(super) fn file(picture: &Markup) -> String {
    let mut text = picture.0.clone();
    let inside = text.find('>').expect("a picture is an element") + 1;
    text.insert_str(
        inside,
        &format!("<style>{STYLE}svg {{ background: var(--background); }}</style>"),
    );
    text
}
