//! The graph: which threads there are, and which may continue to which.
//!
//! A program is built in three steps: *declare* every thread with its mode; draw the *edges*; *define* the
//! bodies, which own the edges they continue by. An edge that figure 2 of the CEFOS paper forbids is an error
//! here, so a built [`Program`] cannot make a forbidden continuation: there is nothing to check when it runs
//! but that a body uses its own edges, one comparison.
//!
//! ```
//! use sidestep_zerowait::{Graph, GraphError, Mode};
//!
//! let mut graph = Graph::new();
//! let application = graph.declare::<u64>("application", Mode::User);
//! let driver = graph.declare::<u64>("driver", Mode::Kernel);
//! assert!(matches!(graph.edge(application, driver), Err(GraphError::Forbidden { .. })));
//! ```

mod error;

pub use error::GraphError;

use std::collections::BTreeSet;
use std::marker::PhantomData;

use crate::attributes::Attributes;
use crate::continuation::ANYWHERE;
use crate::gate::{OnPanic, Policy};
use crate::handle::{Edge, Entry, Gate, Join, JoinEdge, Origin, Port, Release, Shared, Thread};
use crate::join::{Activation, JoinTable};
use crate::payload::{Payload, Words};
use crate::program::context::Context;
use crate::program::gate::{GateBody, GateCell};
use crate::program::{Body, Program, SharedBody, ThreadEntry};

/// A program under construction.
#[derive(Default)]
pub struct Graph {
    threads: Vec<Declared>,
    gates: Vec<DeclaredGate>,
    joins: Vec<DeclaredJoin>,
    edges: Vec<(u32, u32)>,
    names: BTreeSet<String>,
    /// The first mistake in a step that returns a handle and therefore no error; [`Graph::build`] reports it.
    mistake: Option<GraphError>,
}

struct Declared {
    name: String,
    attributes: Attributes,
    role: Role,
    body: Option<SharedBody>,
}

#[derive(Clone, Copy)]
enum Role {
    Plain,
    Join(u32),
    Gate(u32),
}

struct DeclaredGate {
    policy: Policy,
    on_panic: OnPanic,
    body: Option<GateBody>,
}

struct DeclaredJoin {
    capacity: usize,
    predefined: Vec<u32>,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares a thread that each continuation starts once. Names are unique; [`Graph::build`] checks it.
    pub fn declare<T: Payload>(
        &mut self,
        name: impl Into<String>,
        attributes: impl Into<Attributes>,
    ) -> Thread<T> {
        let thread = self.add(name.into(), attributes.into(), Role::Plain);
        Thread {
            thread,
            data: PhantomData,
        }
    }

    /// Declares a thread that starts when an activation's counter reaches zero; at most `capacity`
    /// activations made at run time wait at once.
    pub fn declare_join<T: Payload>(
        &mut self,
        name: impl Into<String>,
        attributes: impl Into<Attributes>,
        capacity: usize,
    ) -> Join<T> {
        let join = self.joins.len() as u32;
        let thread = self.add(name.into(), attributes.into(), Role::Join(join));
        self.joins.push(DeclaredJoin {
            capacity,
            predefined: Vec::new(),
        });
        Join {
            thread,
            join,
            data: PhantomData,
        }
    }

    /// Declares a thread that never runs twice at once.
    pub fn declare_gate<T: Payload>(
        &mut self,
        name: impl Into<String>,
        attributes: impl Into<Attributes>,
        policy: Policy,
        on_panic: OnPanic,
    ) -> Gate<T> {
        let gate = self.gates.len() as u32;
        let thread = self.add(name.into(), attributes.into(), Role::Gate(gate));
        if policy == (Policy::Queue { capacity: 0 }) {
            self.note(GraphError::EmptyGateQueue {
                gate: self.threads[thread as usize].name.clone(),
            });
        }
        self.gates.push(DeclaredGate {
            policy,
            on_panic,
            body: None,
        });
        Gate {
            thread,
            gate,
            data: PhantomData,
        }
    }

    fn add(&mut self, name: String, attributes: Attributes, role: Role) -> u32 {
        if !self.names.insert(name.clone()) {
            self.note(GraphError::DuplicateName { name: name.clone() });
        }
        let thread = u32::try_from(self.threads.len()).expect("a graph has fewer than 2^32 threads");
        self.threads.push(Declared {
            name,
            attributes,
            role,
            body: None,
        });
        thread
    }

    fn note(&mut self, mistake: GraphError) {
        self.mistake.get_or_insert(mistake);
    }

    /// Makes a permanent activation of `join` whose counter is set back to `counter` each time the join
    /// starts.
    pub fn permanent_activation<T: Payload>(&mut self, join: Join<T>, counter: u32) -> Activation<T> {
        if counter == 0 {
            let join = self.threads[join.thread as usize].name.clone();
            self.note(GraphError::ZeroCounter { join });
        }
        let predefined = &mut self.joins[join.join as usize].predefined;
        predefined.push(counter.max(1));
        Activation::new(predefined.len() as u32 - 1, 0)
    }

    /// Gives `from` the right to continue to `to`; a thread may continue to itself.
    pub fn edge<T: Payload>(&mut self, from: impl Origin, to: Thread<T>) -> Result<Edge<T>, GraphError> {
        let place = self.draw(from.index(), to.thread)?;
        Ok(Edge {
            from: from.index(),
            to: to.thread,
            place,
            data: PhantomData,
        })
    }

    /// Gives `from` the right to activate `to` and to continue to its activations.
    ///
    /// From another partition only the continuing is possible.
    pub fn join_edge<T: Payload>(
        &mut self,
        from: impl Origin,
        to: Join<T>,
    ) -> Result<JoinEdge<T>, GraphError> {
        let place = self.draw(from.index(), to.thread)?;
        let near = self.partition(from.index()) == self.partition(to.thread);
        Ok(JoinEdge {
            from: from.index(),
            to: to.thread,
            place,
            join: to.join,
            near,
            data: PhantomData,
        })
    }

    /// Gives `from` the right to enter the gate `to`, which must be in its partition.
    pub fn entry<T: Payload>(&mut self, from: impl Origin, to: Gate<T>) -> Result<Entry<T>, GraphError> {
        self.same_partition(from.index(), to.thread)?;
        let place = self.draw(from.index(), to.thread)?;
        Ok(Entry {
            from: from.index(),
            to: to.thread,
            place,
            gate: to.gate,
            data: PhantomData,
        })
    }

    /// Gives `from` the right to end a hold of the gate `to`, which must be in its partition.
    pub fn release<T: Payload>(&mut self, from: impl Origin, to: Gate<T>) -> Result<Release<T>, GraphError> {
        self.same_partition(from.index(), to.thread)?;
        let place = self.draw(from.index(), to.thread)?;
        Ok(Release {
            from: from.index(),
            to: to.thread,
            place,
            gate: to.gate,
            data: PhantomData,
        })
    }

    /// Opens a port through which the host program continues to `to`. The host is trusted: any mode will do.
    pub fn port<T: Payload>(&mut self, to: Thread<T>) -> Port<T> {
        Port {
            to: to.thread,
            place: self.place(to.thread),
            data: PhantomData,
        }
    }

    fn partition(&self, thread: u32) -> u16 {
        self.threads[thread as usize].attributes.partition
    }

    fn place(&self, thread: u32) -> u16 {
        self.threads[thread as usize].attributes.core.unwrap_or(ANYWHERE)
    }

    /// Checks an arrow against the modes and records it; the target's place.
    fn draw(&mut self, from: u32, to: u32) -> Result<u16, GraphError> {
        let (origin, target) = (&self.threads[from as usize], &self.threads[to as usize]);
        if !origin.attributes.mode.may_continue_to(target.attributes.mode) {
            return Err(GraphError::Forbidden {
                from: origin.name.clone(),
                from_mode: origin.attributes.mode,
                to: target.name.clone(),
                to_mode: target.attributes.mode,
            });
        }
        self.edges.push((from, to));
        Ok(self.place(to))
    }

    fn same_partition(&self, from: u32, gate: u32) -> Result<(), GraphError> {
        if self.partition(from) == self.partition(gate) {
            return Ok(());
        }
        Err(GraphError::GateInOtherPartition {
            from: self.threads[from as usize].name.clone(),
            from_partition: self.partition(from),
            gate: self.threads[gate as usize].name.clone(),
            gate_partition: self.partition(gate),
        })
    }

    /// Gives a thread or a join its body. It may run on several cores at the same time.
    pub fn define<T: Payload>(
        &mut self,
        target: impl Shared<T>,
        body: impl Fn(&mut Context<'_>, T) + Send + Sync + 'static,
    ) {
        let declared = &mut self.threads[target.index() as usize];
        let body: SharedBody =
            Box::new(move |context: &mut Context<'_>, a, b, c, d| body(context, T::from_words([a, b, c, d])));
        if declared.body.replace(body).is_some() {
            let thread = declared.name.clone();
            self.note(GraphError::DefinedTwice { thread });
        }
    }

    /// Gives a gate its body, which owns the gate's state.
    pub fn define_gate<T: Payload>(
        &mut self,
        gate: Gate<T>,
        mut body: impl FnMut(&mut Context<'_>, T) + Send + 'static,
    ) {
        let declared = &mut self.gates[gate.gate as usize];
        let body: GateBody =
            Box::new(move |context: &mut Context<'_>, words: Words| body(context, T::from_words(words)));
        if declared.body.replace(body).is_some() {
            let thread = self.threads[gate.thread as usize].name.clone();
            self.note(GraphError::DefinedTwice { thread });
        }
    }

    /// Checks that the graph is whole, and makes it a program.
    pub fn build(mut self) -> Result<Program, GraphError> {
        if let Some(mistake) = self.mistake.take() {
            return Err(mistake);
        }
        let undefined = |thread: &str| GraphError::Undefined {
            thread: thread.to_owned(),
        };
        let mut threads = Vec::with_capacity(self.threads.len());
        let mut gates: Vec<Option<DeclaredGate>> = self.gates.into_iter().map(Some).collect();
        let mut gate_cells = Vec::with_capacity(gates.len());
        for declared in self.threads {
            let body = match (declared.role, declared.body) {
                (Role::Plain, Some(body)) => Body::Shared(body),
                (Role::Join(join), Some(body)) => Body::Join(join, body),
                (Role::Gate(gate), None) => {
                    // Gates are declared in the order of their indices, so the cells come out in that order
                    // too.
                    let gate_declared = gates[gate as usize].take().expect("a gate has one thread");
                    let body = gate_declared.body.ok_or_else(|| undefined(&declared.name))?;
                    gate_cells.push(GateCell::new(gate_declared.policy, gate_declared.on_panic, body));
                    Body::Gate(gate)
                }
                (_, _) => return Err(undefined(&declared.name)),
            };
            threads.push(ThreadEntry::new(declared.name, declared.attributes, body));
        }
        let joins = self
            .joins
            .iter()
            .map(|join| JoinTable::new(join.capacity, &join.predefined))
            .collect();
        Ok(Program::new(threads, gate_cells, joins, self.edges))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_thread_reaches_the_kernel_only_through_its_interface() {
        let mut graph = Graph::new();
        let user = graph.declare::<()>("user", Mode::User);
        let interface = graph.declare_gate::<()>(
            "interface",
            Mode::KernelInterface,
            Policy::LockOrRetry,
            OnPanic::Poison,
        );
        let kernel = graph.declare::<()>("kernel", Mode::Kernel);
        let join = graph.declare_join::<()>("kernel join", Mode::Kernel, 1);
        let forbidden = graph.edge(user, kernel).expect_err("user to kernel");
        assert_eq!(
            forbidden,
            GraphError::Forbidden {
                from: "user".into(),
                from_mode: Mode::User,
                to: "kernel".into(),
                to_mode: Mode::Kernel
            }
        );
        assert!(graph.join_edge(user, join).is_err());
        assert!(graph.entry(user, interface).is_ok());
        assert!(graph.edge(interface, kernel).is_ok());
        assert!(graph.edge(kernel, user).is_ok());
    }

    use crate::mode::Mode;

    #[test]
    fn a_graph_with_a_hole_is_refused() {
        let mut graph = Graph::new();
        graph.declare::<()>("nobody", Mode::User);
        assert_eq!(
            graph.build().expect_err("no body"),
            GraphError::Undefined {
                thread: "nobody".into()
            }
        );

        let mut graph = Graph::new();
        let twice = graph.declare::<()>("twice", Mode::User);
        graph.define(twice, |_, ()| {});
        graph.define(twice, |_, ()| {});
        assert_eq!(
            graph.build().expect_err("two bodies"),
            GraphError::DefinedTwice {
                thread: "twice".into()
            }
        );

        let mut graph = Graph::new();
        graph.declare::<()>("same", Mode::User);
        graph.declare::<()>("same", Mode::Kernel);
        assert_eq!(
            graph.build().expect_err("one name"),
            GraphError::DuplicateName { name: "same".into() }
        );

        let mut graph = Graph::new();
        graph.declare_gate::<()>("gate", Mode::User, Policy::Queue { capacity: 0 }, OnPanic::Poison);
        assert_eq!(
            graph.build().expect_err("no room"),
            GraphError::EmptyGateQueue { gate: "gate".into() }
        );

        let mut graph = Graph::new();
        let join = graph.declare_join::<()>("join", Mode::User, 1);
        graph.permanent_activation(join, 0);
        assert_eq!(
            graph.build().expect_err("never starts"),
            GraphError::ZeroCounter { join: "join".into() }
        );
    }

    #[test]
    fn a_gate_is_entered_from_its_own_partition() {
        let mut graph = Graph::new();
        let far = graph.declare::<()>("far", Attributes::new(Mode::User).in_partition(1));
        let gate = graph.declare_gate::<()>("gate", Mode::User, Policy::LockOrRetry, OnPanic::Poison);
        assert!(matches!(
            graph.entry(far, gate),
            Err(GraphError::GateInOtherPartition { .. })
        ));
    }
}
