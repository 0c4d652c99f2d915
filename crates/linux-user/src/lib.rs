//! Linux/ia64 programs without a kernel.
#![warn(missing_docs)]
pub mod gate;
pub mod host;
pub mod memory;
pub mod world;
