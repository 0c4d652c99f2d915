//! The Itanium (IA-64) architecture, correct with no notion of cost.

pub mod encoding;
pub mod float;
