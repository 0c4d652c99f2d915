//! What a paper states, held against what was measured.
//!
//! The verdict is mechanical: an experiment says beforehand what the paper states, what agreement with it is worth
//! ([`Standing`]) and within which tolerance ours must lie; [`Stated::judge`] does the rest. Values that a paper
//! reports as results are used here and nowhere else: they never enter a model.
//!
//! Only a result of the paper that could come out otherwise is said to hold. What went in as an input, what lies beyond
//! the paper's own range, and a claim that is read in a second way have verdicts of their own, so that nothing is
//! counted that could not fail, and nothing twice.

use serde::{Deserialize, Serialize};

use crate::number::Number;

/// Whether ours agrees with the paper's. Of several, the last in this order says the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The paper states nothing for this.
    NotStated,
    /// The paper states it, and nothing here could come out otherwise, or against it: the row says why.
    NotJudged,
    /// Beyond what the paper measured or stated.
    BeyondThePaper,
    /// A second reading of a claim, or of numbers, that are judged in another row.
    OtherReading,
    /// A value that went in as an input came out again.
    CheckedInput,
    /// Within the stated tolerance.
    Holds,
    /// Outside it.
    Differs,
}

impl Verdict {
    /// Every verdict, those that are counted for or against a paper first.
    pub const ALL: [Verdict; 7] = [
        Verdict::Holds,
        Verdict::Differs,
        Verdict::CheckedInput,
        Verdict::OtherReading,
        Verdict::BeyondThePaper,
        Verdict::NotJudged,
        Verdict::NotStated,
    ];

    /// The verdict on a result of the paper.
    pub fn of(holds: bool) -> Verdict {
        Standing::Result.verdict(holds)
    }

    /// Whether it counts for or against the paper.
    pub fn is_judged(self) -> bool {
        matches!(self, Verdict::Holds | Verdict::Differs)
    }
}

/// What agreement with a statement is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// A result of the paper, which nothing here was made from: ours is judged.
    #[default]
    Result,
    /// An input of ours: that it comes out again checks the way from input to output. Where it does not, it differs.
    Input,
    /// A second reading of a claim, or of numbers, that are judged in another row.
    Reading,
    /// Beyond what the paper measured or stated.
    Beyond,
    /// Stated, but nothing here could come out otherwise, or be held against it.
    Unjudged,
}

impl Standing {
    /// Every standing.
    pub const ALL: [Standing; 5] = [
        Standing::Result,
        Standing::Input,
        Standing::Reading,
        Standing::Beyond,
        Standing::Unjudged,
    ];

    /// The verdict on what does or does not agree.
    pub fn verdict(self, agrees: bool) -> Verdict {
        match (self, agrees) {
            (Standing::Result, true) => Verdict::Holds,
            (Standing::Result | Standing::Input, false) => Verdict::Differs,
            (Standing::Input, true) => Verdict::CheckedInput,
            (Standing::Reading, _) => Verdict::OtherReading,
            (Standing::Beyond, _) => Verdict::BeyondThePaper,
            (Standing::Unjudged, _) => Verdict::NotJudged,
        }
    }
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
    /// What agreement with it is worth.
    pub standing: Standing,
}

impl Stated {
    fn new(quantity: Quantity, expected: Expected, source: impl Into<String>) -> Stated {
        Stated {
            quantity,
            expected,
            source: source.into(),
            standing: Standing::Result,
        }
    }

    /// Says that agreement is worth something else than usual.
    pub fn standing(mut self, standing: Standing) -> Stated {
        self.standing = standing;
        self
    }

    /// The paper prints a value; ours holds when within `tolerance`, a share of it (`"0.1"` is ten percent).
    pub fn value(
        quantity: Quantity,
        value: impl Into<Number>,
        tolerance: &str,
        source: impl Into<String>,
    ) -> Stated {
        let expected = Expected::Value {
            value: value.into(),
            tolerance: Number::decimal(tolerance),
        };
        Stated::new(quantity, expected, source)
    }

    /// The paper states a lower bound.
    pub fn at_least(quantity: Quantity, value: impl Into<Number>, source: impl Into<String>) -> Stated {
        Stated::new(quantity, Expected::AtLeast(value.into()), source)
    }

    /// The paper states an upper bound.
    pub fn at_most(quantity: Quantity, value: impl Into<Number>, source: impl Into<String>) -> Stated {
        Stated::new(quantity, Expected::AtMost(value.into()), source)
    }

    /// Whether ours lies within what is stated.
    pub fn agrees(&self, ours: Number) -> bool {
        match self.expected {
            Expected::Value { value, tolerance } => (ours - value).abs() <= value.abs() * tolerance,
            Expected::AtLeast(value) => ours >= value,
            Expected::AtMost(value) => ours <= value,
        }
    }

    /// Holds ours against the statement.
    pub fn judge(&self, ours: Number) -> Verdict {
        self.standing.verdict(self.agrees(ours))
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
    /// The number in it that decides, where there is one.
    pub value: Option<Number>,
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
    fn only_a_result_of_the_paper_holds() {
        let at = |standing| Stated::value(Quantity::Ratio, 2, "0", "").standing(standing);
        let judged = Standing::ALL.map(|standing| [2, 3].map(|ours| at(standing).judge(Number::from(ours))));
        let holding = judged
            .iter()
            .flatten()
            .filter(|verdict| **verdict == Verdict::Holds);
        assert_eq!(holding.count(), 1);
        assert_eq!(judged[1], [Verdict::CheckedInput, Verdict::Differs]);
        assert_eq!(judged[2], [Verdict::OtherReading; 2]);
        assert_eq!(judged[3], [Verdict::BeyondThePaper; 2]);
        assert_eq!(judged[4], [Verdict::NotJudged; 2]);
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
