//! A processor in system mode, mechanism by mechanism, from the manual's rules.

mod debug;
mod frames;
mod harness;
mod interrupts;
mod monitors;
mod ordering;
mod privilege;
mod speculation;
mod status;
mod translation;
mod walker;
