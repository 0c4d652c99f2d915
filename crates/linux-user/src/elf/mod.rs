//! From a file to a process about to run: reading headers ([`image`]), mapping segments ([`load`]), and
//! building the first stack ([`stack`]).

pub mod image;
pub mod load;
pub mod stack;
