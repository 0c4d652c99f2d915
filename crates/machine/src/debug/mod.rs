//! Looking into a machine while it runs: traces, and a stub for gdb and other debuggers.
//!
//! - [`trace`]: a line for each instruction, change of translations or interruption.
//! - [`registers`]: registers as gdb numbers them; memory is that of [`virtual_memory`](crate::virtual_memory).
//! - [`unwind`]: who called whom, through the unwind tables of the guest's kernel.
//! - [`architecture`]: IA-64 as the `gdbstub` crate is told of it, for whatever is debugged; [`target`] and [`server`]:
//!   gdb's remote protocol for machines; [`address`]: where debuggers connect.
//!
//! Nothing here touches guest memory or registers unless the user of the debugger says so: breakpoints are compared
//! with the instruction pointer by a [guard](sidestep_ia64::execution::guard), not patched into the code.

pub mod address;
pub mod architecture;
pub mod registers;
pub mod server;
pub mod target;
pub mod trace;
pub mod unwind;
