//! How many events a second virtual time does: a million is promised.
//!
//! Chains of threads continue to themselves, each for a time of its own, so that hundreds of events wait in the queue
//! at once; alone, through one gate, and in four partitions that two host threads simulate. The rival is what one
//! writes by hand: closures in a binary heap by time and number. The summary at the end gives all of them from one run.

#![allow(missing_docs)] // criterion_group! makes a public function.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sidestep_zerowait::virtual_time::{Config, VirtualTime};
use sidestep_zerowait::{Attributes, Graph, Mode, OnPanic, Policy, Port};

const CHAINS: u64 = 256;
const LINKS: u64 = 1000;
const EVENTS: u64 = CHAINS * LINKS;
const PARTITIONS: u16 = 4;

/// How long a link of a chain lasts: chains drift apart.
fn ticks(chain: u64) -> u64 {
    1 + chain % 17
}

fn machine(graph: Graph, config: Config, starts: &[Port<(u64, u64)>]) -> VirtualTime {
    let mut machine =
        VirtualTime::new(graph.build().expect("a whole graph"), config).expect("a valid machine");
    for chain in 0..CHAINS {
        let start = starts[chain as usize % starts.len()];
        machine.send(start, (chain, LINKS)).expect("room for all chains");
    }
    machine
}

fn chains(partitions: u16, host_threads: usize) -> VirtualTime {
    let mut graph = Graph::new();
    let mut starts = Vec::new();
    for partition in 0..partitions {
        let attributes = Attributes::new(Mode::User).in_partition(partition);
        let link = graph.declare::<(u64, u64)>(&format!("link {partition}"), attributes);
        let next = graph.edge(link, link).expect("a thread may continue to itself");
        graph.define(link, move |cx, (chain, left)| {
            cx.spend(ticks(chain));
            if left > 1 {
                cx.continue_to(next, (chain, left - 1));
            }
        });
        starts.push(graph.port(link));
    }
    let config = Config {
        lookahead: 1000,
        host_threads,
        ..Config::default()
    };
    machine(graph, config, &starts)
}

/// Every link enters a gate with a software queue, which continues to the next: two events a link.
fn gated() -> VirtualTime {
    let mut graph = Graph::new();
    let caller = graph.declare::<(u64, u64)>("caller", Mode::User);
    let policy = Policy::Queue {
        capacity: CHAINS as usize,
    };
    let gate = graph.declare_gate::<(u64, u64)>("gate", Mode::User, policy, OnPanic::Poison);
    let enter = graph.entry(caller, gate).expect("a caller may enter");
    let next = graph.edge(gate, caller).expect("a gate may continue");
    graph.define(caller, move |cx, call| {
        cx.enter(enter, call).expect("the queue holds all callers");
    });
    graph.define_gate(gate, move |cx, (chain, left)| {
        cx.spend(ticks(chain));
        if left > 2 {
            cx.continue_to(next, (chain, left - 2));
        }
    });
    let start = graph.port(caller);
    machine(graph, Config::default(), &[start])
}

/// A closure with the moment at which it is due.
struct Event {
    due: u64,
    number: u64,
    run: Box<dyn FnOnce(u64) -> Option<u64>>,
    chain: u64,
    left: u64,
}

impl Event {
    fn key(&self) -> Reverse<(u64, u64)> {
        Reverse((self.due, self.number))
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// The chains as closures in a heap.
fn closures() -> u64 {
    let event = |due, number, chain, left| Event {
        due,
        number,
        run: Box::new(move |now| Some(now + ticks(chain))),
        chain,
        left,
    };
    let mut heap: BinaryHeap<Event> = (0..CHAINS).map(|chain| event(0, chain, chain, LINKS)).collect();
    let (mut now, mut numbers) = (0, CHAINS);
    while let Some(next) = heap.pop() {
        now = next.due;
        if let Some(due) = (next.run)(now).filter(|_| next.left > 1) {
            heap.push(event(due, numbers, next.chain, next.left - 1));
            numbers += 1;
        }
    }
    now
}

fn run(mut machine: VirtualTime) -> u64 {
    machine.run().expect("time passes");
    machine.report().executed()
}

type Shape = fn() -> u64;

/// What is compared; each has [`EVENTS`] events.
const SHAPES: [(&str, Shape); 4] = [
    ("closures in a heap", closures),
    ("chains", || run(chains(1, 1))),
    ("chains through one gate", || run(gated())),
    ("chains in four partitions, two host threads", || {
        run(chains(PARTITIONS, 2))
    }),
];

fn shapes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("virtual time");
    group.sample_size(10).measurement_time(Duration::from_secs(2));
    group.throughput(Throughput::Elements(EVENTS));
    for (name, shape) in SHAPES {
        group.bench_function(name, |bencher| bencher.iter(shape));
    }
    group.finish();
}

fn summary(_: &mut Criterion) {
    for (name, shape) in SHAPES {
        let mut seconds: Vec<f64> = (0..5)
            .map(|_| {
                let begun = Instant::now();
                black_box(shape());
                begun.elapsed().as_secs_f64()
            })
            .collect();
        seconds.sort_by(f64::total_cmp);
        println!(
            "{name}: {:.2} million events a second",
            EVENTS as f64 / seconds[2] / 1e6
        );
    }
}

criterion_group!(benches, shapes, summary);
criterion_main!(benches);
