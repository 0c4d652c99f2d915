//! A breakdown as a table: each part under its whole, with its share as a bar.

use maud::{Markup, html};

use crate::drawing::{Breakdown, Part};
use crate::number::Number;
use crate::report::words::show;

/// A breakdown.
pub(super) fn draw(breakdown: &Breakdown) -> Markup {
    html! {
        table.breakdown {
            caption { (breakdown.title) @if !breakdown.unit.is_empty() { " (" (breakdown.unit) ")" } }
            thead {
                tr {
                    th scope="col" { "part" } th.number scope="col" { (breakdown.unit) } th.number scope="col" { "share" }
                    td {}
                }
            }
            tbody { (part(&breakdown.whole, breakdown.whole.value, 0)) }
        }
    }
}

fn part(each: &Part, whole: Number, depth: usize) -> Markup {
    let share = each.value.over(whole).map(|share| share * Number::from(100));
    html! {
        tr {
            td { span.indent style={ "padding-left:" (depth) "em" } { (each.name) } }
            td.number { (show(each.value)) }
            td.number { @if let Some(share) = share { (share.to_fixed(1)) "%" } }
            td.bar {
                @if let Some(share) = share { span style={ "width:" (share.to_decimal(1)) "%" } {} }
            }
        }
        @for below in &each.parts { (part(below, whole, depth + 1)) }
    }
}
