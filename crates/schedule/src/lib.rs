//! Instruction scheduling for Itanium 2.
pub mod sequencing;
