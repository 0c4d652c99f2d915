//! Machines as TOML files.
//!
//! - [`syntax`](self): reading a file into a structure, with errors that name file, line and column; the kinds of
//!   number that descriptions share.
//! - [`bare`]: the description of a bare machine: memory, processors, an image.
//! - [`kernel`]: the description of a whole machine that starts a kernel; [`devices`]: what is attached to it, such as
//!   [`disks`], [`networks`] and [`folders`].

pub mod bare;
pub mod devices;
pub mod disks;
pub mod folders;
pub mod kernel;
pub mod networks;
pub mod number;
mod syntax;

pub use number::Size;
pub use syntax::{DescriptionError, UnknownKey, parse};
