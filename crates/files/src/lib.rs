//! Files that a user names: read whole within a limit, written whole or not at all, or grown line by line.
//!
//! A name may lead to anything: [`read`] and [`read_text`] take what their caller allows and no more. What [`write()`]
//! cannot finish leaves the target as it was, and [`probe`] finds that out before any work is done. [`Lines`] are
//! traces, which grow up to a limit.
//!
#![doc = include_str!("../README.md")]

mod lines;
mod read;
mod write;

pub use lines::Lines;
pub use read::{IMAGE_BYTES_MAX, STREAM_BYTES_MAX, TEXT_BYTES_MAX, read, read_stream, read_text};
pub use write::{WriteError, probe, write};
