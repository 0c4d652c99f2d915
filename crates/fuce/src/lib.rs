//! FUCE: a multicore processor whose hardware schedules zero-wait threads.
//!
//! A zero-wait thread runs to completion once started and is started by *continuations* alone: each entry of the
//! activation control memory counts the continuations its thread still waits for, and the last one puts the thread
//! into the ready queue. There are no interrupts; a device's signal and a fault are continuations too.
//!
//! - [`operation`]: the instruction set as one table; [`instruction`] encodes and decodes from it, [`disassembler`]
//!   and [`manual`] print it, [`assembler`] reads it.
//! - [`image`]: what the assembler writes and the chip loads.
//! - [`controller`]: the thread activation controller: activation control memory, ready queue, dispatch.
//! - [`device`]: what is attached to the chip.
//! - [`memory`]: shared memory. [`chip`]: the whole, cycle by cycle.
//!
//! The structure and the sizes follow S. Kusakabe, H. Taniguchi and M. Amamiya, "A Study of a Continuation-based
//! Fine-grain Multithreaded Operating System CEFOS", sections 2 and 3.1. The paper does not give an instruction
//! encoding or latencies; both are this project's own and are stated where they are defined.
//!
#![doc = include_str!("../README.md")]

pub mod assembler;
pub mod chip;
pub mod controller;
pub mod device;
pub mod disassembler;
pub mod image;
pub mod instruction;
pub mod manual;
pub mod memory;
pub mod operation;
