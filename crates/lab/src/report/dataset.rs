//! Points as a part of a data set: an Apache Parquet file, a row a point, with everything that the point depends on.
//!
//! A row is that of CSV and Parquet, behind the point's key, version, machine, seed and number of repetitions, and
//! before one column for each input that is no axis, `in.KEY`. A part's bytes depend on its points alone: who computed
//! them, how fast and beside what is not in them. The schema is documented in the book, under *Formats*.

use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use super::columns::{Cells, Column, columns, coordinate_name};
use super::parquet::bytes;
use crate::about::Nature;
use crate::comparison::Comparison;
use crate::input::Value;
use crate::number::Number;
use crate::run::cache::{content_of, host_identifier};

/// The name and version of the schema.
pub const SCHEMA: &str = "sidestep.points/1";
/// The column of the points' keys.
const KEY: &str = "key";

/// Points of one sweep, with their keys.
pub struct Points {
    /// The points, finished.
    pub comparison: Comparison,
    /// A key for each, as [`Plan::keys`](crate::Plan::keys) gives them.
    pub keys: Vec<String>,
}

/// Why a part of a data set cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: is no part of a data set of points", path.display())]
pub struct ReadError {
    path: PathBuf,
    #[source]
    cause: ParquetError,
}

/// Points as the bytes of a part; `version` is that of what computed them.
pub fn render(points: &[Points], version: &str) -> Vec<u8> {
    let comparisons: Vec<Comparison> = points.iter().map(|each| each.comparison.clone()).collect();
    let text = |name: &str, of: &dyn Fn(&Points, usize) -> Option<String>| Column {
        name: name.to_owned(),
        cells: Cells::Text(each_row(points, of)),
    };
    let number = |name: &str, of: &dyn Fn(&Points, usize) -> Option<Number>| Column {
        name: name.to_owned(),
        cells: Cells::Number(each_row(points, of)),
    };
    let nature = |points: &Points| points.comparison.about.nature;
    let mut all = vec![
        text("schema", &|_, _| Some(SCHEMA.to_owned())),
        text(KEY, &|points, row| Some(points.keys[row].clone())),
        text("version", &|_, _| Some(version.to_owned())),
        // What is computed in virtual time is the same on every machine.
        text("machine", &|points, _| {
            (nature(points) == Nature::Measured).then(host_identifier)
        }),
        number("seed", &|points, _| {
            (nature(points) != Nature::Deterministic).then(|| points.comparison.seed.into())
        }),
        number("repetitions", &|points, _| {
            Some(points.comparison.repetitions.into())
        }),
    ];
    all.extend(
        columns(&comparisons)
            .into_iter()
            .filter(|column| column.name != "schema"),
    );
    all.extend(inputs(points));
    bytes(&all)
}

/// The keys of the points in a part.
///
/// # Errors
/// The file cannot be read, or is something else.
pub fn keys(path: &Path) -> Result<Vec<String>, ReadError> {
    let read = || -> Result<Vec<String>, ParquetError> {
        let reader = SerializedFileReader::new(File::open(path)?)?;
        let schema = reader.metadata().file_metadata().schema();
        let missing = || ParquetError::General(format!("it has no column `{KEY}`"));
        let column = schema.get_fields().iter().find(|field| field.name() == KEY);
        let wanted = parquet::schema::types::Type::group_type_builder(schema.name())
            .with_fields(vec![column.ok_or_else(missing)?.clone()])
            .build()?;
        let rows = reader.get_row_iter(Some(wanted))?;
        rows.map(|row| match row?.get_column_iter().next() {
            Some((_, Field::Str(key))) => Ok(key.clone()),
            _ => Err(missing()),
        })
        .collect()
    };
    read().map_err(|cause| ReadError {
        path: path.to_owned(),
        cause,
    })
}

fn each_row<T>(points: &[Points], of: &dyn Fn(&Points, usize) -> Option<T>) -> Vec<Option<T>> {
    let rows = |points: &Points| 0..points.comparison.rows.len();
    let of_points = |each| rows(each).map(move |row| of(each, row));
    points.iter().flat_map(of_points).collect()
}

/// A column for each input that is no axis, files by their content.
fn inputs(points: &[Points]) -> Vec<Column> {
    let value = |points: &Points, name: &str| -> Option<Value> {
        let comparison = &points.comparison;
        let inputs = comparison.inputs.without_axes(&comparison.declared);
        let (key, value) = inputs
            .iter()
            .find(|(key, value)| coordinate_name(key, value) == name)?;
        Some(match content_of(&comparison.declared, key, value) {
            Some(hash) => Value::Text(format!("sha256:{hash}")),
            None => value.clone(),
        })
    };
    let mut names: Vec<String> = Vec::new();
    for Points { comparison, .. } in points {
        let inputs = comparison.inputs.without_axes(&comparison.declared);
        for (key, each) in inputs.iter() {
            let name = coordinate_name(key, each);
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names.sort();
    let column = |name: String| {
        let of_points: Vec<Option<Value>> = points.iter().map(|each| value(each, &name)).collect();
        let rows = points.iter().zip(&of_points);
        let cells: Vec<Option<&Value>> = rows
            .flat_map(|(each, value)| vec![value.as_ref(); each.comparison.rows.len()])
            .collect();
        let is_numeric = cells.iter().flatten().all(|value| value.number().is_some());
        Column {
            name: format!("in.{name}"),
            cells: match is_numeric {
                true => Cells::Number(cells.iter().map(|value| value.and_then(Value::number)).collect()),
                false => Cells::Text(cells.iter().map(|value| value.map(Value::to_string)).collect()),
            },
        }
    };
    names.into_iter().map(column).collect()
}
