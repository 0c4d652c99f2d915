//! Random programs, and the simple reference interpreter that says what must happen.
//!
//! A program is a list of nodes. A message brings a budget; a node logs it and continues to each of its
//! targets with one less. What a node does depends only on its message, so the log as a multiset is the same
//! in every order: the reference runs messages one after the other from a list, without queues, locks or
//! counters.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use sidestep_zerowait::{
    Activation, Attributes, Bring, Edge, Entry, Graph, Join, JoinEdge, Mode, OnPanic, Policy, Port, Program,
    Thread,
};

/// What a node is.
#[derive(Clone, Debug)]
pub enum Kind {
    /// An ordinary thread.
    Plain,
    /// A gate, with room for so many waiting entries, or without a queue.
    Gate(Option<usize>),
    /// A thread that continues to so many leaves, whose words a join adds up; the join goes on to the
    /// targets.
    Fork(u32),
}

/// A node of a random program.
#[derive(Clone, Debug)]
pub struct Node {
    pub kind: Kind,
    pub targets: Vec<usize>,
    pub partition: u16,
    pub spends: u64,
}

/// How often which node was reached with which value.
pub type Log = BTreeMap<(usize, u64), u64>;

/// Random nodes and start messages (node, budget). With `partitions` 1 everything may meet.
pub fn programs(partitions: u16) -> impl Strategy<Value = (Vec<Node>, Vec<(usize, u64)>)> {
    let kind = prop_oneof![
        4 => Just(Kind::Plain),
        1 => Just(Kind::Gate(None)),
        2 => (1usize..4).prop_map(|capacity| Kind::Gate(Some(capacity))),
        2 => (1u32..5).prop_map(Kind::Fork),
    ];
    let node = (
        kind,
        proptest::collection::vec(0usize..64, 0..3),
        0..partitions,
        0u64..4,
    );
    let nodes = proptest::collection::vec(node, 1..8);
    let starts = proptest::collection::vec((0usize..64, 0u64..6), 1..5);
    (nodes, starts).prop_map(|(nodes, starts)| {
        let node = |(kind, targets, partition, spends)| Node {
            kind,
            targets,
            partition,
            spends,
        };
        legal(nodes.into_iter().map(node).collect(), starts)
    })
}

/// Makes any nodes and starts a program: numbers of nodes that exist, and only arrows that a program can
/// have.
///
/// A gate's body and a join's cannot try again, so they continue only to what never refuses; a gate is
/// entered from its own partition; the host enters through plain nodes and forks.
pub fn legal(mut nodes: Vec<Node>, starts: Vec<(usize, u64)>) -> (Vec<Node>, Vec<(usize, u64)>) {
    let shapes: Vec<(bool, u16)> = nodes
        .iter()
        .map(|node| (matches!(node.kind, Kind::Gate(_)), node.partition))
        .collect();
    for node in &mut nodes {
        let plain = matches!(node.kind, Kind::Plain);
        let own = node.partition;
        node.targets.iter_mut().for_each(|target| *target %= shapes.len());
        node.targets.retain(|target| {
            let (gate, partition) = shapes[*target];
            !gate || (plain && partition == own)
        });
    }
    let entrances: Vec<usize> = (0..nodes.len()).filter(|node| !shapes[*node].0).collect();
    let starts = match entrances.as_slice() {
        [] => Vec::new(),
        some => starts
            .into_iter()
            .map(|(node, budget)| (some[node % some.len()], budget))
            .collect(),
    };
    (nodes, starts)
}

/// What must be logged.
pub fn reference(nodes: &[Node], starts: &[(usize, u64)]) -> Log {
    let mut log = Log::new();
    let mut messages = starts.to_vec();
    while let Some((node, budget)) = messages.pop() {
        *log.entry((node, budget)).or_default() += 1;
        if let Kind::Fork(width) = nodes[node].kind {
            // Each leaf adds the budget plus one; the join logs the sum under a number of its own.
            *log.entry((node + nodes.len(), (budget + 1) * u64::from(width)))
                .or_default() += 1;
        }
        if budget > 0 {
            messages.extend(nodes[node].targets.iter().map(|target| (*target, budget - 1)));
        }
    }
    log
}

/// A built random program.
pub struct Built {
    pub program: Program,
    pub ports: Vec<Option<Port<(u64, u64)>>>,
    pub log: Arc<Mutex<Log>>,
}

#[derive(Clone, Copy)]
enum Way {
    Edge(Edge<(u64, u64)>),
    Entry(Entry<(u64, u64)>),
}

#[derive(Clone, Copy)]
enum Handle {
    Plain(Thread<(u64, u64)>),
    Gate(sidestep_zerowait::Gate<(u64, u64)>),
}

/// A fork's leaf and its join.
type Fork = (Thread<(u64, u64)>, Join<(u64, u64)>);

/// Makes a program of nodes. A message is (budget, progress): 0 is a first run, more is a retry from target
/// `progress - 1` on.
pub fn build(nodes: &[Node]) -> Built {
    let log: Arc<Mutex<Log>> = Arc::default();
    let mut graph = Graph::new();
    let mut handles = Vec::new();
    let mut joins: Vec<Option<Fork>> = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        let attributes = Attributes::new(Mode::User).in_partition(node.partition);
        let name = format!("node {index}");
        handles.push(match node.kind {
            Kind::Plain | Kind::Fork(_) => Handle::Plain(graph.declare(name, attributes)),
            Kind::Gate(capacity) => {
                let policy = capacity.map_or(Policy::LockOrRetry, |capacity| Policy::Queue { capacity });
                Handle::Gate(graph.declare_gate(name, attributes, policy, OnPanic::Poison))
            }
        });
        joins.push(matches!(node.kind, Kind::Fork(_)).then(|| {
            let leaf = graph.declare(format!("leaf {index}"), attributes);
            (leaf, graph.declare_join(format!("join {index}"), attributes, 3))
        }));
    }
    for (index, node) in nodes.iter().enumerate() {
        let spends = node.spends;
        let note = {
            let log = Arc::clone(&log);
            move |node: usize, value: u64| *log.lock().unwrap().entry((node, value)).or_default() += 1
        };
        let ways = |graph: &mut Graph, from: &dyn Fn(&mut Graph, Handle) -> Way| -> Vec<Way> {
            node.targets
                .iter()
                .map(|target| from(graph, handles[*target]))
                .collect()
        };
        match (handles[index], &joins[index]) {
            (Handle::Plain(thread), None) => {
                let ways = ways(&mut graph, &|graph, to| match to {
                    Handle::Plain(to) => Way::Edge(graph.edge(thread, to).unwrap()),
                    Handle::Gate(to) => Way::Entry(graph.entry(thread, to).unwrap()),
                });
                let again = graph.edge(thread, thread).unwrap();
                graph.define(thread, move |cx, (budget, progress)| {
                    if progress == 0 {
                        note(index, budget);
                    }
                    cx.spend(spends);
                    for (position, way) in ways.iter().enumerate().skip(progress.saturating_sub(1) as usize) {
                        if budget == 0 {
                            return;
                        }
                        let message = (budget - 1, 0);
                        let sent = match way {
                            Way::Edge(edge) => cx.try_continue_to(*edge, message).is_ok(),
                            Way::Entry(entry) => cx.enter(*entry, message).is_ok(),
                        };
                        if !sent {
                            cx.retry(again, (budget, position as u64 + 1));
                            return;
                        }
                    }
                });
            }
            (Handle::Gate(gate), _) => {
                let ways = ways(&mut graph, &|graph, to| match to {
                    Handle::Plain(to) => Way::Edge(graph.edge(gate, to).unwrap()),
                    Handle::Gate(_) => unreachable!("a gate continues to plain nodes"),
                });
                let mut inside = false;
                graph.define_gate(gate, move |cx, (budget, _)| {
                    assert!(
                        !std::mem::replace(&mut inside, true),
                        "a gate runs once at a time"
                    );
                    note(index, budget);
                    cx.spend(spends);
                    forward(cx, &ways, budget);
                    inside = false;
                });
            }
            (Handle::Plain(fork), Some((leaf, join))) => {
                let Kind::Fork(width) = node.kind else {
                    unreachable!("only forks have joins")
                };
                define_fork(&mut graph, fork, *leaf, *join, width, index, note.clone());
                let ways = ways(&mut graph, &|graph, to| match to {
                    Handle::Plain(to) => Way::Edge(graph.edge(*join, to).unwrap()),
                    Handle::Gate(_) => unreachable!("a join continues to plain nodes"),
                });
                let count = nodes.len();
                graph.define(*join, move |cx, (sum, budget_plus_one)| {
                    note(index + count, sum);
                    forward(cx, &ways, budget_plus_one - 1);
                });
            }
        }
    }
    let ports = handles
        .iter()
        .map(|handle| match handle {
            Handle::Plain(thread) => Some(graph.port(*thread)),
            Handle::Gate(_) => None,
        })
        .collect();
    Built {
        program: graph.build().unwrap(),
        ports,
        log,
    }
}

fn forward(cx: &mut sidestep_zerowait::Context<'_>, ways: &[Way], budget: u64) {
    for way in ways {
        if let (Way::Edge(edge), 1..) = (way, budget) {
            cx.continue_to(*edge, (budget - 1, 0));
        }
    }
}

fn define_fork(
    graph: &mut Graph,
    fork: Thread<(u64, u64)>,
    leaf: Thread<(u64, u64)>,
    join: Join<(u64, u64)>,
    width: u32,
    index: usize,
    note: impl Fn(usize, u64) + Clone + Send + Sync + 'static,
) {
    let to_leaf = graph.edge(fork, leaf).unwrap();
    let open: JoinEdge<(u64, u64)> = graph.join_edge(fork, join).unwrap();
    let close = graph.join_edge(leaf, join).unwrap();
    let again = graph.edge(fork, fork).unwrap();
    graph.define(fork, move |cx, (budget, _)| {
        // One count more than leaves: the fork itself brings the budget.
        match cx.activate(open, width + 1) {
            Err(_) => cx.retry(again, (budget, 0)),
            Ok(activation) => {
                note(index, budget);
                for _ in 0..width {
                    cx.continue_to(to_leaf, (activation.into_word(), budget));
                }
                let bring = Bring::Store {
                    slot: 1,
                    word: budget + 1,
                };
                cx.signal(open, activation, bring).expect("room for one more");
            }
        }
    });
    graph.define(leaf, move |cx, (activation, budget)| {
        let bring = Bring::Add {
            slot: 0,
            word: budget + 1,
        };
        cx.signal(close, Activation::from_word(activation), bring)
            .expect("room for one");
    });
}
