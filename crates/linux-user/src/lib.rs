//! Linux/ia64 programs without a kernel: ELF loading, system calls, signals, threads.
//!
//! A program runs on [`sidestep_ia64`]'s processor in an address space made of host mappings; what it asks of
//! its kernel is passed on to the host's, translated where the two differ.

pub mod elf;
pub mod gate;
pub mod host;
pub mod memory;
pub mod world;
