//! The shapes of work that every runtime plays.

use sidestep_lab::PointError;

use super::super::stopwatch::Sample;

/// A shape of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Each operation starts the next.
    Chain,
    /// One starts many, and the last of them to end starts the next round.
    Fan,
    /// Many come to one critical section that one at a time may enter, round after round.
    Gate,
    /// Two cores start each other.
    PingPong,
}

impl Shape {
    const ALL: [Shape; 4] = [Shape::Chain, Shape::Fan, Shape::Gate, Shape::PingPong];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Chain => "chain",
            Shape::Fan => "fan",
            Shape::Gate => "gate",
            Shape::PingPong => "ping-pong",
        }
    }

    /// The shape of a name.
    ///
    /// # Panics
    /// If there is none.
    pub fn of(name: &str) -> Shape {
        let found = Shape::ALL.into_iter().find(|shape| shape.name() == name);
        found.unwrap_or_else(|| panic!("no shape is called {name}"))
    }

    /// How many rounds of `width` operations make at least `operations`; 1 for shapes without rounds.
    pub fn rounds(self, operations: u64, width: u64) -> u64 {
        match self {
            Shape::Chain | Shape::PingPong => 1,
            Shape::Fan | Shape::Gate => operations.div_ceil(width),
        }
    }

    /// How many operations are measured when so many are asked for.
    pub fn operations(self, operations: u64, width: u64) -> u64 {
        match self {
            Shape::Chain | Shape::PingPong => operations,
            Shape::Fan | Shape::Gate => self.rounds(operations, width) * width,
        }
    }
}

/// A runtime that has been started for one shape.
pub trait Runtime {
    /// Does about so many operations and measures them.
    fn run(&mut self, operations: u64) -> Result<Sample, PointError>;
}
