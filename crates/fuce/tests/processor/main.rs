//! The processor, its assembler and its programs.

mod assembler;
mod cefos;
mod chip;
mod continuations;
mod hardware;
mod random_text;
mod reference;
