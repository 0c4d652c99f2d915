//! The 82-bit floating-point register format and its arithmetic.
