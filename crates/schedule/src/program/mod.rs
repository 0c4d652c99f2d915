//! Functions of linked programs: their blocks, scheduled and written back to where they were.
//!
//! - [`image`]: the code of an ELF file and what branches to where; [`function`]: the blocks of one function, or why it
//!   cannot be scheduled; [`frames`]: what unwinding needs to stay.
//! - [`padding`]: a schedule with as many bundles as the block had; [`rewrite`]: the functions of a program that get
//!   shorter; [`asserted`]: a whole function over its branches, by what its source asserts.
//!
//! No block moves. So branches to blocks stay true, and what is written anew of a branch is its distance if its own
//! bundle is another one.

pub mod asserted;
pub mod frames;
pub mod function;
pub mod image;
pub mod padding;
pub mod rewrite;
