//! The shapes as tasks of tokio.

use std::sync::Arc;
use std::thread;

use sidestep_lab::PointError;
use tokio::runtime::{Builder, Runtime as TokioRuntime};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinSet;

use super::super::stopwatch::Sample;
use super::shape::{Runtime, Shape};

/// A runtime for one shape: of the current thread on one core, else with workers.
pub struct Tokio {
    runtime: TokioRuntime,
    shape: Shape,
    width: u64,
}

impl Tokio {
    /// Starts the runtime.
    pub fn start(shape: Shape, cores: usize, width: u64) -> Result<Tokio, PointError> {
        let runtime = match (shape, cores) {
            (Shape::PingPong, _) | (_, 1) => Builder::new_current_thread().build(),
            (_, cores) => Builder::new_multi_thread().worker_threads(cores).build(),
        };
        let runtime = runtime.map_err(|error| PointError::Failed(format!("tokio: {error}")))?;
        Ok(Tokio {
            runtime,
            shape,
            width,
        })
    }
}

impl Runtime for Tokio {
    fn run(&mut self, operations: u64) -> Result<Sample, PointError> {
        let (shape, width) = (self.shape, self.width);
        let rounds = shape.rounds(operations, width);
        let runtime = &self.runtime;
        Ok(Sample::of(shape.operations(operations, width), || match shape {
            Shape::Chain => runtime.block_on(chain(operations)),
            Shape::Fan => runtime.block_on(fan(rounds, width)),
            Shape::Gate => runtime.block_on(gate(rounds, width)),
            Shape::PingPong => ping_pong(runtime, operations),
        }))
    }
}

async fn chain(links: u64) {
    let (done, end) = oneshot::channel();
    link(links, done);
    end.await.expect("the last link says so");
}

fn link(left: u64, done: oneshot::Sender<()>) {
    tokio::spawn(async move {
        match left {
            // The receiver waits for just this.
            0 | 1 => _ = done.send(()),
            _ => link(left - 1, done),
        }
    });
}

/// From a worker, where spawning is cheapest.
async fn fan(rounds: u64, width: u64) {
    let all = tokio::spawn(async move {
        for _ in 0..rounds {
            let mut leaves = JoinSet::new();
            (0..width).for_each(|leaf| _ = leaves.spawn(async move { std::hint::black_box(leaf) }));
            while leaves.join_next().await.is_some() {}
        }
    });
    all.await.expect("no leaf panics");
}

async fn gate(rounds: u64, width: u64) {
    let all = tokio::spawn(async move {
        let counter = Arc::new(Mutex::new(0));
        for _ in 0..rounds {
            let mut callers = JoinSet::new();
            for _ in 0..width {
                let counter = Arc::clone(&counter);
                callers.spawn(async move { *counter.lock().await += 1 });
            }
            while callers.join_next().await.is_some() {}
        }
        assert_eq!(*counter.lock().await, rounds * width);
    });
    all.await.expect("no caller panics");
}

/// Two runtimes of one thread each, two channels between them.
fn ping_pong(runtime: &TokioRuntime, hops: u64) {
    let (to_pong, mut from_ping) = mpsc::channel::<u64>(1);
    let (to_ping, mut from_pong) = mpsc::channel::<u64>(1);
    thread::scope(|scope| {
        scope.spawn(move || {
            let runtime = Builder::new_current_thread()
                .build()
                .expect("a second runtime like the first");
            runtime.block_on(async move {
                while let Some(left) = from_ping.recv().await {
                    if to_ping.send(left.saturating_sub(1)).await.is_err() {
                        return;
                    }
                }
            });
        });
        runtime.block_on(async move {
            let mut left = hops;
            while left > 1 && to_pong.send(left - 1).await.is_ok() {
                left = from_pong.recv().await.unwrap_or(0);
            }
        });
    });
}
