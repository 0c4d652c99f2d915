//! The programs of the repository under an engine.

use std::path::Path;
use std::sync::Arc;

use sidestep_linux_user::engine::Engine;
use sidestep_linux_user::{Launch, Options};

/// Instructions of each program: enough for its main loop, and not for minutes.
pub const INSTRUCTIONS_MAX: u64 = 4_000_000;
/// The programs of `suites/speed`. Each has one thread: what several do depends on the host.
pub const OF_SPEED: &[&str] = &[
    "sieve",
    "sort",
    "hash",
    "strings",
    "records",
    "integer-matrix",
    "matmul",
    "nbody",
    "fft",
    "mandelbrot",
    "lu",
    "calls",
    "chase",
];

/// Runs a program for as many instructions.
pub fn run(program: &str, engine: Arc<dyn Engine>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/ia64/bin");
    let launch = Launch {
        program: path.join(program),
        arguments: vec![program.as_bytes().to_vec()],
        options: Options {
            engine: Some(engine),
            instructions_max: Some(INSTRUCTIONS_MAX),
            ..Options::default()
        },
        ..Launch::default()
    };
    sidestep_linux_user::run(launch).expect("the program is in the repository");
}
