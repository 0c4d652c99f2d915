//! The threads of a card, and which continues to which.

use std::sync::Arc;

use sidestep_zerowait::{Attributes, Edge, Graph, GraphError, Mode, Payload, Port, Thread};

use super::Card;

/// How threads of the card are reached from outside.
pub(in crate::host) struct Ports {
    pub stores: Port<(u64, u64, u64)>,
    pub wire: Port<u64>,
}

/// Where a thread that tells guests continues.
#[derive(Clone)]
pub(super) struct Outlets {
    pub interrupted: Edge<u64>,
    pub looks: Vec<Edge<u64>>,
}

/// Threads that others continue to.
struct Targets {
    transmit: Vec<Thread<(u64, u64)>>,
    arrive: Vec<Thread<u64>>,
    fill: Vec<Thread<u64>>,
    interrupted: Thread<u64>,
    looks: Vec<Thread<u64>>,
}

impl Targets {
    fn outlets<T: Payload>(&self, graph: &mut Graph, from: Thread<T>) -> Result<Outlets, GraphError> {
        let looks = self.looks.iter().map(|look| graph.edge(from, *look));
        Ok(Outlets {
            looks: looks.collect::<Result<_, _>>()?,
            interrupted: graph.edge(from, self.interrupted)?,
        })
    }
}

fn edges<T: Payload, U: Payload>(
    graph: &mut Graph,
    from: Thread<T>,
    to: &[Thread<U>],
) -> Result<Vec<Edge<U>>, GraphError> {
    to.iter().map(|to| graph.edge(from, *to)).collect()
}

impl Card {
    /// Declares the threads, on cores from `first` on, of which the first is the devices'.
    pub(in crate::host) fn declare(
        self: &Arc<Card>,
        graph: &mut Graph,
        first: u16,
    ) -> Result<Ports, GraphError> {
        let on = |core: u16| Attributes::new(Mode::Kernel).on_core(core);
        let engines = self.config.engines as u16;
        let engine = |engine: u16| on(first + 1 + engine);
        let handler = first + 1 + engines;
        let stores = graph.declare::<(u64, u64, u64)>("stores", on(first));
        let wire = graph.declare::<u64>("wire", on(first));
        let interrupted = graph.declare::<u64>("interrupted", on(handler));
        let handle = graph.declare::<u64>("handle", on(handler));
        let mut targets = Targets {
            transmit: Vec::new(),
            arrive: Vec::new(),
            fill: Vec::new(),
            interrupted,
            looks: Vec::new(),
        };
        for number in 0..engines {
            let attributes = engine(number);
            targets
                .transmit
                .push(graph.declare(format!("transmit {number}"), attributes));
            targets
                .arrive
                .push(graph.declare(format!("arrive {number}"), attributes));
            targets
                .fill
                .push(graph.declare(format!("fill {number}"), attributes));
        }
        for sidecore in 0..self.sidecores {
            targets
                .looks
                .push(graph.declare(format!("look at rings {sidecore}"), on(sidecore as u16)));
        }

        let transmit = edges(graph, stores, &targets.transmit)?;
        let fill = edges(graph, stores, &targets.fill)?;
        let card = Arc::clone(self);
        graph.define(stores, move |cx, told| card.stores(cx, told, &transmit, &fill));

        let arrive = edges(graph, wire, &targets.arrive)?;
        let card = Arc::clone(self);
        graph.define(wire, move |cx, ticket| card.wire(cx, ticket as usize, &arrive));

        for number in 0..self.config.engines {
            let transmit = targets.transmit[number];
            let again = graph.edge(transmit, transmit)?;
            let arrive = edges(graph, transmit, &targets.arrive)?;
            let card = Arc::clone(self);
            graph.define(transmit, move |cx, (interface, first)| {
                card.transmit(cx, interface as usize, first != 0, again, &arrive);
            });

            let fill = graph.edge(targets.arrive[number], targets.fill[number])?;
            let card = Arc::clone(self);
            graph.define(targets.arrive[number], move |cx, ticket| {
                card.arrive(cx, number, ticket as usize, fill);
            });

            let outlets = targets.outlets(graph, targets.fill[number])?;
            let again = graph.edge(targets.fill[number], targets.fill[number])?;
            let card = Arc::clone(self);
            graph.define(targets.fill[number], move |cx, interface| {
                card.fill(cx, interface as usize, again, &outlets);
            });
        }

        let read = graph.edge(interrupted, handle)?;
        let card = Arc::clone(self);
        graph.define(interrupted, move |cx, _| card.interrupted(cx, read));
        let card = Arc::clone(self);
        graph.define(handle, move |cx, _| card.handle(cx));

        for (sidecore, look) in targets.looks.iter().enumerate() {
            let flush = graph.declare::<u64>(format!("flush {sidecore}"), on(sidecore as u16));
            let later = graph.edge(*look, flush)?;
            let card = Arc::clone(self);
            graph.define(*look, move |cx, interface| {
                card.look(cx, interface as usize, later)
            });
            let card = Arc::clone(self);
            graph.define(flush, move |cx, interface| card.flush(cx, interface as usize));
        }
        Ok(Ports {
            stores: graph.port(stores),
            wire: graph.port(wire),
        })
    }
}
