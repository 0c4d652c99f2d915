//! The register files, one module a file, and the bit layouts of the registers that have fields.

pub mod application;
pub mod frame;
pub mod general;
pub mod predicate;
pub mod status;
pub mod system;
