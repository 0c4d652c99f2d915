//! Looking into a machine while it runs: traces, and a stub for gdb and other debuggers.
//!
//! - [`trace`]: a line for each instruction, change of translations or interruption.
//! - [`guard`]: breakpoints, watchpoints and steps as an observer that halts before an instruction.
//! - [`registers`]: registers as gdb numbers them; memory is that of [`virtual_memory`](crate::virtual_memory).
//! - [`unwind`]: who called whom, through the unwind tables of the guest's kernel.
//! - [`target`] and [`server`]: gdb's remote protocol, with the `gdbstub` crate.
//!
//! Nothing here touches guest memory or registers unless the user of the debugger says so: breakpoints are compared
//! with the instruction pointer, not patched into the code.

pub mod guard;

pub mod registers;
pub mod server;
pub mod target;
pub mod trace;
pub mod unwind;
