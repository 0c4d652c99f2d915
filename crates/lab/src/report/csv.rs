//! Comparisons as comma-separated values (RFC 4180): a heading, then a row a point; empty where there is no value.

use super::columns::{Cells, Column, columns};
use crate::comparison::Comparison;

/// Comparisons as one table.
pub fn render(comparisons: &[Comparison]) -> String {
    write(&columns(comparisons))
}

/// Columns as text.
pub(super) fn write(columns: &[Column]) -> String {
    let rows = columns.first().map_or(0, |column| column.cells.len());
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write = |record: Vec<String>| writer.write_record(record).expect("writing to memory");
    write(columns.iter().map(|column| column.name.clone()).collect());
    for row in 0..rows {
        write(columns.iter().map(|column| column.cells.text(row)).collect());
    }
    let bytes = writer.into_inner().expect("writing to memory");
    String::from_utf8(bytes).expect("text of text")
}

impl Cells {
    fn len(&self) -> usize {
        match self {
            Cells::Text(cells) => cells.len(),
            Cells::Number(cells) => cells.len(),
        }
    }

    fn text(&self, row: usize) -> String {
        match self {
            Cells::Text(cells) => cells[row].clone().unwrap_or_default(),
            Cells::Number(cells) => cells[row].map_or(String::new(), |number| number.to_significant(9)),
        }
    }
}
