//! Experiments, run for what must hold of their results.

mod cefos;
mod held;
mod itanium_core;
mod itanium_cycles;
mod itanium_kernel;
mod itanium_messages;
mod itanium_monitor;
mod itanium_vhpt;
mod own_policy;
mod papers;
mod points;
mod replay;
mod standard;
