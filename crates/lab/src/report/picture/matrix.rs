//! A heat map: the darker, the more; with the numbers in the cells while they can be read.

use maud::{Markup, html};

use super::{Length, figure, text_width};
use crate::drawing::Matrix;
use crate::number::Number;
use crate::report::words::show;

const WIDTH: f64 = 460.0;
/// Beyond so many columns cells bear no numbers and not every name is written.
const READABLE: usize = 12;

/// A heat map.
pub fn draw(matrix: &Matrix) -> Markup {
    let (row_title, rows) = &matrix.rows;
    let (column_title, columns) = &matrix.columns;
    let widest = rows.iter().map(|name| text_width(name)).fold(0.0, f64::max);
    let left = widest + 30.0;
    let top = 66.0;
    let side = ((WIDTH - left - 10.0) / columns.len().max(1) as f64).min(44.0);
    let height = if rows.len() > READABLE {
        side
    } else {
        side.clamp(20.0, 36.0)
    };
    let bottom = top + height * rows.len() as f64;
    let greatest = (matrix.cells.iter().flatten().flatten().copied().max())
        .unwrap_or(Number::ONE)
        .max(Number::ZERO);
    let readable = columns.len() <= READABLE && rows.len() <= READABLE;
    let every = |count: usize| count.div_ceil(READABLE).max(1);
    // Names of columns that would run into each other are left out evenly.
    let broadest = columns.iter().map(|name| text_width(name)).fold(0.0, f64::max);
    let column_step = every(columns.len()).max((broadest / side).ceil() as usize);
    let strength = |value: Number| value.over(greatest).map_or(0.0, Number::to_f64).clamp(0.0, 1.0);
    let unit = match matrix.unit.as_str() {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    let content = html! {
        text class="heading" x="4" y="17" { (matrix.title) }
        text class="axis-label" x=(Length(left + side * columns.len() as f64 / 2.0)) y="40" text-anchor="middle" { (column_title) }
        text class="axis-label" text-anchor="middle"
            transform={ "translate(14 " (Length((top + bottom) / 2.0)) ") rotate(-90)" } { (row_title) }
        @for (index, name) in columns.iter().enumerate().step_by(column_step) {
            text class="minor" x=(Length(left + side * (index as f64 + 0.5))) y="59" text-anchor="middle" { (name) }
        }
        @for (row, cells) in matrix.cells.iter().enumerate() {
            @let y = top + height * row as f64;
            @if row % every(rows.len()) == 0 {
                text class="minor" x=(Length(left - 6.0)) y=(Length(y + height / 2.0 + 4.0)) text-anchor="end" { (rows[row]) }
            }
            @for (column, cell) in cells.iter().enumerate() {
                @let x = left + side * column as f64;
                @if let Some(value) = cell {
                    @let strength = strength(*value);
                    rect class="cell" x=(Length(x)) y=(Length(y)) width=(Length(side)) height=(Length(height))
                        fill-opacity={ "." (format!("{:02}", (strength * 85.0) as u32 + 4)) } {
                        title { (rows[row]) ", " (columns[column]) ": " (show(*value)) (unit) }
                    }
                    @if readable {
                        text class=(if strength > 0.5 { "minor over" } else { "minor" }) x=(Length(x + side / 2.0))
                            y=(Length(y + height / 2.0 + 4.0)) text-anchor="middle" { (show(*value)) }
                    }
                } @else {
                    rect class="none" x=(Length(x)) y=(Length(y)) width=(Length(side)) height=(Length(height)) {}
                }
            }
        }
        @for (index, share) in [4, 25, 46, 68, 89].into_iter().enumerate() {
            rect class="cell" x=(Length(left + 22.0 * index as f64)) y=(Length(bottom + 14.0)) width="22" height="10"
                fill-opacity={ "." (format!("{share:02}")) } {}
        }
        text class="minor" x=(Length(left - 6.0)) y=(Length(bottom + 23.0)) text-anchor="end" { "0" }
        text class="minor" x=(Length(left + 116.0)) y=(Length(bottom + 23.0)) { (show(greatest)) (unit) }
    };
    figure(&matrix.title, WIDTH, bottom + 36.0, content)
}
