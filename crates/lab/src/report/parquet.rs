//! Comparisons as an Apache Parquet file: the same columns as CSV, text as UTF-8, numbers as doubles, all of them
//! optional.

use std::sync::Arc;

use parquet::basic::{ConvertedType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

use super::columns::{Cells, Column, columns};
use crate::comparison::Comparison;

/// Comparisons as the bytes of a file.
pub fn render(comparisons: &[Comparison]) -> Vec<u8> {
    bytes(&columns(comparisons))
}

/// Columns as the bytes of a file.
pub(super) fn bytes(columns: &[Column]) -> Vec<u8> {
    write(columns).expect("columns of one length, in memory")
}

fn write(columns: &[Column]) -> Result<Vec<u8>> {
    let fields = columns.iter().map(field).collect::<Result<Vec<_>>>()?;
    let schema = Type::group_type_builder("points").with_fields(fields).build()?;
    let properties = WriterProperties::builder()
        .set_created_by(concat!("sidestep ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for column in columns {
        let mut writer = group.next_column()?.expect("a column for each field");
        match &column.cells {
            Cells::Text(cells) => {
                write_cells::<ByteArrayType, _>(&mut writer, cells, |text| ByteArray::from(text.as_str()))?;
            }
            Cells::Number(cells) => {
                write_cells::<DoubleType, _>(&mut writer, cells, |number| number.to_f64())?
            }
        }
        writer.close()?;
    }
    group.close()?;
    file.close()?;
    Ok(bytes)
}

fn field(column: &Column) -> Result<TypePtr> {
    let builder = match column.cells {
        Cells::Text(_) => Type::primitive_type_builder(&column.name, PhysicalType::BYTE_ARRAY)
            .with_converted_type(ConvertedType::UTF8),
        Cells::Number(_) => Type::primitive_type_builder(&column.name, PhysicalType::DOUBLE),
    };
    Ok(Arc::new(builder.with_repetition(Repetition::OPTIONAL).build()?))
}

fn write_cells<T: DataType, C>(
    writer: &mut SerializedColumnWriter<'_>,
    cells: &[Option<C>],
    convert: impl Fn(&C) -> T::T,
) -> Result<()> {
    let present: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    let values: Vec<T::T> = cells.iter().flatten().map(convert).collect();
    writer.typed::<T>().write_batch(&values, Some(&present), None)?;
    Ok(())
}
