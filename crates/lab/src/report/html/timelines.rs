//! What happened when, beside the numbers: the timelines of the first point that has any, both sides on one scale.

use maud::{Markup, html};

use crate::comparison::Comparison;
use crate::number::Number;
use crate::report::picture::timeline::{self, Window};
use crate::report::words;

/// The timelines of a comparison; nothing where none was recorded.
pub(super) fn section(comparison: &Comparison) -> Markup {
    let recorded = (comparison.rows.iter()).find_map(|row| {
        let measurement = row.measurement()?;
        measurement.has_timeline().then_some((&row.point, measurement))
    });
    let Some((point, measurement)) = recorded else {
        return Markup::default();
    };
    let sides = [
        ("Baseline", &measurement.baseline.timeline),
        ("Sidestep", &measurement.sidestep.timeline),
    ]
    .into_iter()
    .filter(|(_, timeline)| !timeline.is_empty());
    let timelines: Vec<_> = sides.clone().map(|(_, timeline)| timeline).collect();
    let window = Window::of(&timelines);
    html! {
        section.timelines {
            h3 { "What happened when" }
            p.note {
                "At " (point) ", both sides on one scale"
                @if window.is_cut {
                    ": the first " (words::show(Number::from(window.end_ns))) " ns. " code { "--trace FILE" }
                    " writes all of every point, for Perfetto"
                }
                "."
            }
            div.charts {
                @for (side, timeline) in sides { figure { (timeline::draw(side, timeline, window)) } }
            }
        }
    }
}
