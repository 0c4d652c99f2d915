//! How long the dependency tree takes to build: 1,024 tasks in under a second is promised.
//!
//! The rival is the form that reads like the paper's text and computes each dependency anew, on as many tasks as it
//! can do in reasonable time. The summary at the end gives both from one run.

#![allow(missing_docs)] // criterion_group! makes a public function.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use sidestep_gang::tree::{Dependency, DependencyTree, Join, NodeId, Pairing};
use sidestep_gang::{SharingMatrix, TaskId};

#[path = "../src/tree/naive.rs"]
mod naive;

const PAIRINGS: [(&str, Pairing); 2] = [("rounds", Pairing::Rounds), ("single", Pairing::Single)];
const TASKS: [u32; 3] = [64, 256, 1024];
/// The slow form takes minutes for more.
const TASKS_OF_RIVAL: u32 = 128;

fn build(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("dependency tree");
    group.sample_size(10).measurement_time(Duration::from_secs(2));
    for tasks in TASKS {
        let matrix = naive::groups_of_eight(tasks);
        for (name, pairing) in PAIRINGS {
            group.bench_function(BenchmarkId::new(name, tasks), |bencher| {
                bencher.iter(|| DependencyTree::build(&matrix, pairing));
            });
        }
    }
    group.finish();
}

/// The median of five.
fn seconds<T>(mut work: impl FnMut() -> T) -> f64 {
    let mut times: Vec<f64> = (0..5)
        .map(|_| {
            let begun = Instant::now();
            black_box(work());
            begun.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[2]
}

fn summary(_: &mut Criterion) {
    let (large, small) = (
        naive::groups_of_eight(1024),
        naive::groups_of_eight(TASKS_OF_RIVAL),
    );
    for (name, pairing) in PAIRINGS {
        let whole = seconds(|| DependencyTree::build(&large, pairing));
        let ours = seconds(|| DependencyTree::build(&small, pairing));
        let rival = seconds(|| naive::joins(&small, pairing));
        println!(
            "{name}: 1024 tasks in {:.1} ms; {TASKS_OF_RIVAL} tasks {:.0} times faster than computed anew ({:.1} ms)",
            whole * 1e3,
            rival / ours,
            rival * 1e3,
        );
    }
}

criterion_group!(benches, build, summary);
criterion_main!(benches);
