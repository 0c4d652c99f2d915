//! Comparisons as text, data, a page and a timeline: one module for each format.

pub mod catalogue;
pub mod csv;
#[cfg(feature = "parquet")]
pub mod dataset;
pub mod html;
pub mod json;
pub mod markdown;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod picture;
pub mod sensitivity;
pub mod table;
pub mod trace;

mod columns;
mod prose;
mod words;

pub use words::{command, quoted};
