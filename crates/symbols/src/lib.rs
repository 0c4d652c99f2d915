//! The code in ELF files and the names of addresses.
//!
//! An [`Image`] is what a file says: sections of code, segments, symbols. A [`SymbolTable`] finds the symbol that names
//! an address of a section best; [`Names`] finds one for an address of a whole image or map, where sections are not
//! known.
//!
#![doc = include_str!("../README.md")]

mod image;
mod names;
mod table;

pub use image::{Binding, Image, ImageError, Kind, Section, Segment, Symbol};
pub use names::{Names, NamesError};
pub use table::{SymbolTable, SymbolsInSection, proposal};
