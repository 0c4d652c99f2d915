//! A built program: its threads, gates and joins, ready for an executor.
//!
//! What a body is given is here as well: a body takes a [`Context`](context::Context), which reaches the program that the
//! body belongs to.

pub(crate) mod context;
pub(crate) mod gate;

use std::fmt::{self, Write as _};

use crate::attributes::{Attributes, Phase};
use crate::continuation::ANYWHERE;
use crate::histogram::Live;
use crate::join::JoinTable;
use crate::mode::Mode;
use crate::payload::Words;
use context::Context;
use gate::GateCell;

/// The body of a thread that may run several times at once. The words are arguments of their own so that they
/// stay in registers.
pub(crate) type SharedBody = Box<dyn Fn(&mut Context<'_>, u64, u64, u64, u64) + Send + Sync>;

/// A program of zero-wait threads; an executor takes it over and runs it.
pub struct Program {
    pub(crate) threads: Box<[ThreadEntry]>,
    pub(crate) gates: Box<[GateCell]>,
    pub(crate) joins: Box<[JoinTable]>,
    edges: Box<[(u32, u32)]>,
}

/// One thread: what it is called, where it belongs, what it does, and how long it took.
pub(crate) struct ThreadEntry {
    pub(crate) name: String,
    pub(crate) mode: Mode,
    pub(crate) place: u16,
    pub(crate) partition: u16,
    pub(crate) phase: Phase,
    pub(crate) body: Body,
    /// From the start of the body to its end.
    pub(crate) ran: Live,
    /// From the continuation to the start of the body.
    pub(crate) waited: Live,
}

pub(crate) enum Body {
    Shared(SharedBody),
    /// The index of the join, and the body.
    Join(u32, SharedBody),
    /// The index of the gate, which owns the body.
    Gate(u32),
}

impl ThreadEntry {
    pub(crate) fn new(name: String, attributes: Attributes, body: Body) -> Self {
        Self {
            name,
            mode: attributes.mode,
            place: attributes.core.unwrap_or(ANYWHERE),
            partition: attributes.partition,
            phase: attributes.phase,
            body,
            ran: Live::default(),
            waited: Live::default(),
        }
    }

    /// The gate that this thread is, if it is one.
    pub(crate) fn gate(&self) -> Option<u32> {
        match self.body {
            Body::Gate(gate) => Some(gate),
            Body::Shared(_) | Body::Join(..) => None,
        }
    }
}

impl Program {
    pub(crate) fn new(
        threads: Vec<ThreadEntry>,
        gates: Vec<GateCell>,
        joins: Vec<JoinTable>,
        edges: Vec<(u32, u32)>,
    ) -> Self {
        Self {
            threads: threads.into(),
            gates: gates.into(),
            joins: joins.into(),
            edges: edges.into(),
        }
    }

    /// The name of a thread by its index.
    pub(crate) fn name(&self, thread: u32) -> &str {
        &self.threads[thread as usize].name
    }

    /// The highest core number that a thread is bound to.
    pub(crate) fn highest_place(&self) -> Option<(u16, &str)> {
        let placed = self.threads.iter().filter(|thread| thread.place != ANYWHERE);
        placed
            .max_by_key(|thread| thread.place)
            .map(|thread| (thread.place, thread.name.as_str()))
    }

    /// Runs a thread to its end.
    ///
    /// On cores a gate serves what waits at it in the same go, up to the context's batch; then it continues
    /// to itself, so that others have their turn. In virtual time a gate stays taken until its time is over,
    /// and the executor passes it on.
    #[inline(always)]
    pub(crate) fn run(&self, context: &mut Context<'_>, thread: u32, words: Words) {
        match &self.threads[thread as usize].body {
            Body::Shared(body) | Body::Join(_, body) => {
                let [a, b, c, d] = words;
                body(context, a, b, c, d);
            }
            Body::Gate(gate) => self.serve(context, *gate, words),
        }
    }

    #[inline(never)]
    fn serve(&self, context: &mut Context<'_>, gate: u32, first: Words) {
        let gate = &self.gates[gate as usize];
        let mut words = first;
        let mut served = 1;
        loop {
            gate.run(context, words);
            if context.is_virtual() {
                return;
            }
            let Some(next) = gate.next() else { return };
            // With little room each entry goes through the queue, which makes room for what it continues to.
            if served >= context.gate_batch() || !context.local.has_room() {
                context.continue_gate(next);
                return;
            }
            served += 1;
            words = next;
            context.count_batched(words);
        }
    }

    /// The graph in the DOT language: a box for each thread, an arrow for each edge.
    pub fn to_dot(&self) -> String {
        let mut dot = String::from("digraph program {\n");
        for (index, thread) in self.threads.iter().enumerate() {
            let shape = match thread.body {
                Body::Shared(_) => "box",
                Body::Join(..) => "invhouse",
                Body::Gate(_) => "octagon",
            };
            let name = thread.name.replace('\\', "\\\\").replace('"', "\\\"");
            writeln!(
                dot,
                "  t{index} [label=\"{name}\\n{}\", shape={shape}];",
                thread.mode
            )
            .expect("a string takes all");
        }
        for (from, to) in &self.edges {
            writeln!(dot, "  t{from} -> t{to};").expect("a string takes all");
        }
        dot.push_str("}\n");
        dot
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.threads.iter().map(|thread| &thread.name))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Graph, Mode};

    #[test]
    fn a_program_draws_itself() {
        let mut graph = Graph::new();
        let a = graph.declare::<()>("say \"a\"", Mode::User);
        let b = graph.declare::<()>("b", Mode::Kernel);
        graph.edge(b, a).expect("kernel to user");
        graph.define(a, |_, ()| {});
        graph.define(b, |_, ()| {});
        let dot = graph.build().expect("whole").to_dot();
        assert_eq!(
            dot,
            "digraph program {\n  t0 [label=\"say \\\"a\\\"\\nuser\", shape=box];\n  \
             t1 [label=\"b\\nkernel\", shape=box];\n  t1 -> t0;\n}\n"
        );
    }
}
