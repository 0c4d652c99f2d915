//! The shapes as zero-wait threads.

use std::sync::mpsc;

use sidestep_lab::{PointError, Side};
use sidestep_zerowait::cores::{Config, Cores};
use sidestep_zerowait::{Activation, Attributes, Bring, Graph, GraphError, Mode, OnPanic, Policy, Port};

use super::super::stopwatch::Sample;
use super::shape::{Runtime, Shape};

/// A program for one shape on cores.
pub struct Zerowait {
    cores: Cores,
    start: Port<u64>,
    done: mpsc::Receiver<()>,
    shape: Shape,
    width: u64,
}

impl Zerowait {
    /// Starts the cores.
    pub fn start(shape: Shape, cores: usize, width: u64) -> Result<Zerowait, PointError> {
        let failed = |error: &dyn std::error::Error| PointError::Failed(error.to_string());
        let mut graph = Graph::new();
        let (finished, done) = mpsc::channel();
        let draw = match shape {
            Shape::Chain => chain,
            Shape::Fan => fan,
            Shape::Gate => gate,
            Shape::PingPong => ping_pong,
        };
        let start = draw(&mut graph, width, finished).map_err(|error| failed(&error))?;
        let program = graph.build().map_err(|error| failed(&error))?;
        let config = Config {
            cores,
            cores_max: cores,
            ..Config::default()
        };
        let cores = Cores::start(program, config).map_err(|error| failed(&error))?;
        Ok(Zerowait {
            cores,
            start,
            done,
            shape,
            width,
        })
    }

    /// Adds what the cores counted.
    pub fn explain(&self, side: Side) -> Side {
        let report = self.cores.report();
        let sum =
            |count: fn(&sidestep_zerowait::CoreReport) -> u64| report.cores.iter().map(count).sum::<u64>();
        side.count("threads run", sum(|core| core.executed))
            .count("handed to an idle core", sum(|core| core.shared))
            .count("sent to a bound core", sum(|core| core.forwarded))
            .count("sleeps", sum(|core| core.slept))
    }
}

impl Runtime for Zerowait {
    fn run(&mut self, operations: u64) -> Result<Sample, PointError> {
        let argument = match self.shape {
            Shape::Chain | Shape::PingPong => operations,
            Shape::Fan | Shape::Gate => self.shape.rounds(operations, self.width),
        };
        Ok(Sample::of(self.shape.operations(operations, self.width), || {
            self.cores.send(self.start, argument).expect("the cores are idle");
            self.done.recv().expect("a thread says when it is done");
        }))
    }
}

type Done = mpsc::Sender<()>;

fn say(done: &Done) {
    // The receiver is there as long as the cores are.
    let _ = done.send(());
}

fn chain(graph: &mut Graph, _: u64, done: Done) -> Result<Port<u64>, GraphError> {
    let link = graph.declare::<u64>("link", Mode::User);
    let next = graph.edge(link, link)?;
    graph.define(link, move |cx, left| match left {
        0 | 1 => say(&done),
        _ => cx.continue_to(next, left - 1),
    });
    Ok(graph.port(link))
}

fn fan(graph: &mut Graph, width: u64, done: Done) -> Result<Port<u64>, GraphError> {
    let split = graph.declare::<u64>("split", Mode::User);
    let leaf = graph.declare::<u64>("leaf", Mode::User);
    let join = graph.declare_join::<(u64, u64)>("join", Mode::User, 1);
    let (out, open, back) = (
        graph.edge(split, leaf)?,
        graph.join_edge(split, join)?,
        graph.join_edge(leaf, join)?,
    );
    let again = graph.edge(join, split)?;
    graph.define(split, move |cx, rounds| {
        let activation = cx.activate(open, width as u32 + 1).expect("one round at a time");
        for _ in 0..width {
            cx.continue_to(out, activation.into_word());
        }
        cx.signal(
            open,
            activation,
            Bring::Store {
                slot: 0,
                word: rounds,
            },
        )
        .expect("room for the join");
    });
    graph.define(leaf, move |cx, activation| {
        cx.signal(back, Activation::from_word(activation), Bring::Nothing)
            .expect("room for the join");
    });
    graph.define(join, move |cx, (rounds, _)| match rounds {
        0 | 1 => say(&done),
        _ => cx.continue_to(again, rounds - 1),
    });
    Ok(graph.port(split))
}

fn gate(graph: &mut Graph, width: u64, done: Done) -> Result<Port<u64>, GraphError> {
    let split = graph.declare::<u64>("split", Mode::User);
    let caller = graph.declare::<u64>("caller", Mode::User);
    let policy = Policy::Queue {
        capacity: width as usize,
    };
    let gate = graph.declare_gate::<u64>("gate", Mode::User, policy, OnPanic::Poison);
    let (out, enter, again) = (
        graph.edge(split, caller)?,
        graph.entry(caller, gate)?,
        graph.edge(gate, split)?,
    );
    graph.define(split, move |cx, rounds| {
        for _ in 0..width {
            cx.continue_to(out, rounds);
        }
    });
    graph.define(caller, move |cx, rounds| {
        cx.enter(enter, rounds).expect("the queue holds all callers")
    });
    let mut counted = 0;
    graph.define_gate(gate, move |cx, rounds| {
        counted += 1;
        if counted == width {
            counted = 0;
            match rounds {
                0 | 1 => say(&done),
                _ => cx.continue_to(again, rounds - 1),
            }
        }
    });
    Ok(graph.port(split))
}

fn ping_pong(graph: &mut Graph, _: u64, done: Done) -> Result<Port<u64>, GraphError> {
    let ping = graph.declare::<u64>("ping", Attributes::new(Mode::User).on_core(0));
    let pong = graph.declare::<u64>("pong", Attributes::new(Mode::User).on_core(1));
    for (thread, other) in [(ping, pong), (pong, ping)] {
        let to_other = graph.edge(thread, other)?;
        let done = done.clone();
        graph.define(thread, move |cx, left| match left {
            0 | 1 => say(&done),
            _ => cx.continue_to(to_other, left - 1),
        });
    }
    Ok(graph.port(ping))
}
