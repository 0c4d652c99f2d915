//! What a paper states, held against what was measured.
//!
//! The verdict is mechanical: an experiment says beforehand what the paper states and within which tolerance ours must
//! lie; [`Stated::judge`] does the rest. Values that a paper reports as results are used here and nowhere else: they
//! never enter a model.

use serde::{Deserialize, Serialize};

use crate::number::Number;

/// Whether ours agrees with the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The paper states nothing for this.
    NotStated,
    /// Within the stated tolerance.
    Holds,
    /// Outside it.
    Differs,
}

/// Which of our numbers a statement is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// The baseline's value.
    Baseline,
    /// The sidestep's value.
    Sidestep,
    /// How many times better the sidestep is: above one means that it gains.
    Ratio,
}

/// What the paper says that a quantity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A value.
    Value {
        /// As printed in the paper.
        value: Number,
        /// How far ours may lie from it, as a share of it: 1/10 is ten percent.
        tolerance: Number,
    },
    /// Nothing below a value: "lower than", "at least" without a number is a ratio of at least 1.
    AtLeast(Number),
    /// Nothing above a value.
    AtMost(Number),
}

/// A statement of the paper about one point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stated {
    /// What it is about.
    pub quantity: Quantity,
    /// What the paper says.
    pub expected: Expected,
    /// Where it says so: section, table, row.
    pub source: String,
}

impl Stated {
    /// The paper prints a value; ours holds when within `tolerance`, a share of it (`"0.1"` is ten percent).
    pub fn value(
        quantity: Quantity,
        value: impl Into<Number>,
        tolerance: &str,
        source: impl Into<String>,
    ) -> Stated {
        Stated {
            quantity,
            expected: Expected::Value {
                value: value.into(),
                tolerance: Number::decimal(tolerance),
            },
            source: source.into(),
        }
    }

    /// The paper states a lower bound.
    pub fn at_least(quantity: Quantity, value: impl Into<Number>, source: impl Into<String>) -> Stated {
        Stated {
            quantity,
            expected: Expected::AtLeast(value.into()),
            source: source.into(),
        }
    }

    /// The paper states an upper bound.
    pub fn at_most(quantity: Quantity, value: impl Into<Number>, source: impl Into<String>) -> Stated {
        Stated {
            quantity,
            expected: Expected::AtMost(value.into()),
            source: source.into(),
        }
    }

    /// Holds ours against the statement.
    pub fn judge(&self, ours: Number) -> Verdict {
        let holds = match self.expected {
            Expected::Value { value, tolerance } => (ours - value).abs() <= value.abs() * tolerance,
            Expected::AtLeast(value) => ours >= value,
            Expected::AtMost(value) => ours <= value,
        };
        if holds { Verdict::Holds } else { Verdict::Differs }
    }

    /// The paper's number, also when it is a bound.
    pub fn number(&self) -> Number {
        match self.expected {
            Expected::Value { value, .. } | Expected::AtLeast(value) | Expected::AtMost(value) => value,
        }
    }

    /// How far ours lies from the paper's, as a share of the paper's; `None` for a bound, or a paper's zero.
    pub fn difference(&self, ours: Number) -> Option<Number> {
        match self.expected {
            Expected::Value { value, .. } => (ours - value).over(value.abs()),
            Expected::AtLeast(_) | Expected::AtMost(_) => None,
        }
    }
}

/// A statement about a whole sweep: a law of growth, an order, a crossing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is about, a phrase: `growth of the clocks without software queue`.
    pub about: String,
    /// What the paper says; empty when it says nothing.
    pub stated: String,
    /// Where it says so.
    pub source: String,
    /// What was measured.
    pub ours: String,
    /// Whether they agree.
    pub verdict: Verdict,
    /// Why ours is what it is: the counters that explain it, the reason of a difference. May be empty.
    pub because: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tolerance_is_a_share_of_the_papers_value_and_its_edge_holds() {
        let stated = Stated::value(Quantity::Ratio, Number::decimal("2.5"), "0.1", "Figure 5");
        assert_eq!(stated.judge(Number::decimal("2.75")), Verdict::Holds);
        assert_eq!(stated.judge(Number::decimal("2.7501")), Verdict::Differs);
        assert_eq!(stated.judge(Number::decimal("2.25")), Verdict::Holds);
        assert_eq!(
            stated.difference(Number::decimal("2")),
            Some(Number::decimal("-0.2"))
        );
    }

    #[test]
    fn a_bound_includes_itself() {
        let stated = Stated::at_least(Quantity::Ratio, 1, "Figure 1");
        assert_eq!(stated.judge(Number::ONE), Verdict::Holds);
        assert_eq!(stated.judge(Number::ratio(99, 100)), Verdict::Differs);
        assert_eq!(stated.difference(Number::ONE), None);
        assert_eq!(
            Stated::at_most(Quantity::Sidestep, 5, "").judge(Number::from(6)),
            Verdict::Differs
        );
    }
}
