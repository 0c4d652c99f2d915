//! The command as its users run it.

mod benchmarks;
mod book;
mod boot;
mod calibrate;
mod compare;
mod debugger;
mod devices;
mod disasm;
mod documentation;
mod exec;
mod firmware;
mod fuce;
mod groups;
mod guests;
mod host;
mod inputs;
mod integration;
mod linux;
mod machine;
mod pipelining;
mod schedule;
mod sensitivity;
mod timing;
mod virtual_linux;
mod wires;
mod wrappers;
