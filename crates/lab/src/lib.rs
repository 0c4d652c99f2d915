//! The laboratory: a figure or table of a paper as an experiment, baseline against sidestep, swept and judged.
//!
//! An [`Experiment`] is a small trait: what it asks, its inputs, the points of its sweep, and how one point is
//! measured. Results are exact numbers ([`Number`]): in virtual time the same inputs give the same bytes on every
//! machine.
//!
#![doc = include_str!("../README.md")]

pub mod about;
pub mod comparison;
pub mod drawing;
pub mod experiment;
pub mod figure;
pub mod input;
pub mod measurement;
pub mod number;
pub mod paper;
pub mod point;
pub mod report;
pub mod rounds;
pub mod row;
pub mod run;
pub mod sensitivity;
pub mod shared;
pub mod statistics;
pub mod suggest;
pub mod timeline;

pub use about::{About, Better, Metric, Nature};
pub use comparison::Comparison;
pub use drawing::{Breakdown, Drawing, Matrix, Node, Part, Tree};
pub use experiment::Experiment;
pub use figure::{Axis, Figure, Measure};
pub use input::{Assumption, Input, InputError, Inputs, Value};
pub use measurement::{Counter, Measurement, Side};
pub use number::Number;
pub use paper::{Expected, Finding, Quantity, Standing, Stated, Verdict};
pub use point::{Context, Point, PointError};
pub use rounds::Rounds;
pub use row::{Row, Spread};
pub use run::{Observer, Plan, PlanError, Request, Runner, compare};
pub use sensitivity::Sensitivity;
pub use shared::Shared;
pub use timeline::{Event, EventKind, Timeline};
