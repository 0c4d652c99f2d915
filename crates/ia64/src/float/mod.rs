//! Itanium floating-point arithmetic as functions of values, with no processor around them.
//!
//! - [`register`]: the 82-bit register format and its classes; [`memory`]: its images in memory and general registers.
//! - [`status`]: the FPSR; [`control`]: what an operation takes from it and what it reports back.
//! - [`mod@multiply_add`]: `fma` and everything written with it; [`integer`]: `xma`.
//! - [`compare`]: `fcmp`, `fclass`, minima and maxima; [`convert`]: integers; [`reciprocal`]: `frcpa`, `frsqrta`.
//! - [`bits`]: merges, mixes, swaps and logic; [`parallel`]: all of it on pairs of singles.
//! - [`nearest`]: multiply-adds of usual operands, in the fewest steps.
//! - Inside: `round`, the one rounding of exact sums; `host`, the host's floating-point unit where it is the same;
//!   `control_table`, decoded controls kept until the FPSR changes; `register_file`, a processor's registers.
//!
//! An operation takes registers and a [`Control`] and returns a [`Rounded`] (value, flags, trap) or a [`FloatFault`];
//! nothing is changed anywhere, so a caller commits the result or takes the fault.
//!
//! **Software assistance.** Itanium processors leave some operations (denormal operands and results, extreme
//! exponents in `frcpa` and `frsqrta`) to a handler through a Software Assistance fault or trap; when it returns, the
//! program sees the architected result. These functions deliver that final result and never ask for assistance.

pub mod bits;
pub mod compare;
pub mod control;
mod control_table;
pub mod convert;
pub mod division;
mod host;
pub mod integer;
pub mod memory;
pub mod multiply_add;
pub mod nearest;
pub mod parallel;
pub mod reciprocal;
pub mod register;
pub(crate) mod register_file;
mod round;
pub mod status;

pub use crate::encoding::{Extremum, FixedPart, FloatRelation, MultiplyAdd, Signedness, StatusField};
pub use control::{Completer, Control, Flags, FloatFault, FloatTrap, Precision, Range, Rounded, Rounding};
pub(crate) use control_table::{ControlIndex, ControlTable};
pub use multiply_add::{add, multiply, multiply_add};
pub use register::{Class, FloatRegister};
pub use status::{ReservedField, StatusRegister};
