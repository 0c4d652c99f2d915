//! The shapes as tasks of rayon.

use std::sync::Mutex;

use rayon::{Scope, ThreadPool, ThreadPoolBuilder};
use sidestep_lab::PointError;

use super::super::stopwatch::Sample;
use super::shape::{Runtime, Shape};

/// A pool for one shape.
pub struct Rayon {
    pool: ThreadPool,
    shape: Shape,
    width: u64,
}

impl Rayon {
    /// Starts the pool.
    pub fn start(shape: Shape, cores: usize, width: u64) -> Result<Rayon, PointError> {
        let pool = ThreadPoolBuilder::new().num_threads(cores).build();
        let pool = pool.map_err(|error| PointError::Failed(format!("rayon: {error}")))?;
        Ok(Rayon { pool, shape, width })
    }
}

impl Runtime for Rayon {
    fn run(&mut self, operations: u64) -> Result<Sample, PointError> {
        let (shape, width) = (self.shape, self.width);
        let rounds = shape.rounds(operations, width);
        let work = move || match shape {
            Shape::Chain => rayon::scope(|scope| link(scope, operations)),
            Shape::Fan => (0..rounds).for_each(|_| fan(width)),
            Shape::Gate => {
                let counter = Mutex::new(0);
                (0..rounds).for_each(|_| gate(width, &counter));
                assert_eq!(counter.into_inner().ok(), Some(rounds * width));
            }
            Shape::PingPong => unreachable!("rayon binds no task to a core"),
        };
        Ok(Sample::of(shape.operations(operations, width), || {
            self.pool.install(work)
        }))
    }
}

fn link<'scope>(scope: &Scope<'scope>, left: u64) {
    if left > 0 {
        scope.spawn(move |scope| link(scope, left - 1));
    }
}

fn fan(width: u64) {
    rayon::scope(|scope| (0..width).for_each(|leaf| scope.spawn(move |_| _ = std::hint::black_box(leaf))));
}

fn gate(width: u64, counter: &Mutex<u64>) {
    rayon::scope(|scope| {
        for _ in 0..width {
            scope.spawn(|_| *counter.lock().expect("nobody panics in the section") += 1);
        }
    });
}
