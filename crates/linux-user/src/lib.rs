//! Linux/ia64 programs without a kernel: ELF loading, system calls, signals, threads.
//!
//! A program runs on [`sidestep_ia64`]'s processor in an address space made of host mappings; what it asks of
//! its kernel is passed on to the host's, translated where the two differ.
//!
//! - [`launch`]: from a command line to the first instruction; [`elf`]: reading and mapping programs.
//! - [`memory`]: guest memory, with the [`gate`] page that the kernel gives every process; [`files`]: files by name.
//! - [`process`]: what its threads share; [`signal`]: what it does with signals; [`world`]: stopping all threads.
//! - [`thread`]: who runs, and what is written as methods of a thread: [`syscalls`], the table of system calls and what
//!   they do; delivery of signals and faults; [`crash`] and [`strace`], what a user is told of them.
//! - [`host`]: the host kernel, and all assembly.
//! - [`inheritance`]: what an executed program finds; [`engine`]: what runs the processors, if it is not they
//!   themselves.
//! - [`control`]: what a debugger has of its threads; [`debugger`]: who that is, and what it sees of files.
//! - [`trace`], [`statistics`]: what a user can be told about a run; [`code_names`]: the names of its code.
//!
//! Signal dispositions, the working folder and process numbers are the host process's own, so one host process
//! runs one guest process; the parts below [`thread`] have no such bound.
//!
#![doc = include_str!("../README.md")]

pub mod code_names;
pub mod control;
pub mod debugger;
pub mod elf;
pub mod engine;
pub mod files;
pub mod host;
pub mod inheritance;
pub mod launch;
pub mod memory;
pub mod process;
pub mod signal;
pub mod statistics;
pub mod thread;
pub mod trace;
pub mod world;

pub use launch::{Launch, LaunchError, run, run_to_exit};
pub use memory::gate;
pub use process::{Ending, Options};
pub use thread::{crash, strace, syscalls};
