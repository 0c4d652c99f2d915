//! Inputs that nobody published or measured: which they are, and which other values they may have.

use super::{Input, Kind, Value};
use crate::number::Number;

/// The first words of a source that say that a value is nobody's measurement.
const WORDS: [&str; 4] = ["chosen", "estimate", "assumed", "none"];

/// An input whose value is assumed, with the other values that it is tried with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumption {
    /// The key of the input.
    pub key: String,
    /// What it is.
    pub about: String,
    /// Its unit; may be empty.
    pub unit: String,
    /// Where the value comes from.
    pub source: String,
    /// The value.
    pub nominal: Value,
    /// The others: the least and the greatest of a number, where they differ from the value; every other choice.
    pub others: Vec<Value>,
}

impl Assumption {
    /// A number that is tried from its `factor`th part to its `factor`fold, within bounds.
    pub fn number(key: &str, nominal: Value, factor: u32, bounds: (&Value, &Value)) -> Assumption {
        let (least, greatest) = scaled(&nominal, factor);
        Assumption::between(
            key,
            nominal,
            least.max(bounds.0.clone()),
            greatest.min(bounds.1.clone()),
        )
    }

    /// A number that is tried from one value to another.
    fn between(key: &str, nominal: Value, least: Value, greatest: Value) -> Assumption {
        let others = [least, greatest]
            .into_iter()
            .filter(|other| *other != nominal)
            .collect();
        Assumption {
            key: key.to_owned(),
            about: String::new(),
            unit: String::new(),
            source: String::new(),
            nominal,
            others,
        }
    }

    /// Says what it is, in which unit, and where its value comes from.
    pub fn of(mut self, about: &str, unit: &str, source: &str) -> Assumption {
        self.about = about.to_owned();
        self.unit = unit.to_owned();
        self.source = source.to_owned();
        self
    }

    /// Whether there are values between the nominal one and the others.
    pub fn is_number(&self) -> bool {
        self.nominal.number().is_some()
    }
}

/// A number's `factor`th part and its `factor`fold.
fn scaled(value: &Value, factor: u32) -> (Value, Value) {
    match value {
        Value::Integer(value) => (
            Value::Integer(value / i64::from(factor)),
            Value::Integer(value.saturating_mul(i64::from(factor))),
        ),
        Value::Ratio(value) => (
            Value::Ratio(*value * Number::ratio(1, factor)),
            Value::Ratio(*value * Number::from(factor)),
        ),
        Value::Duration { ns } => (
            Value::Duration {
                ns: ns / u64::from(factor),
            },
            Value::Duration {
                ns: ns.saturating_mul(factor.into()),
            },
        ),
        other => (other.clone(), other.clone()),
    }
}

impl Input {
    /// Whether nobody published or measured the default: its source begins with `chosen`, `estimate`, `assumed` or
    /// `none`, or the input is declared so.
    pub fn is_assumed(&self) -> bool {
        let first = self
            .source
            .split(|letter: char| !letter.is_ascii_alphabetic())
            .next();
        self.assumed || first.is_some_and(|first| WORDS.contains(&first))
    }

    /// The values that it is tried with in place of `value`, of an input that is assumed and no axis: a number over its
    /// range, or else from its `factor`th part to its `factor`fold; every other choice. A text or a list is not tried.
    pub fn assumption(&self, value: &Value, factor: u32) -> Option<Assumption> {
        if self.axis || !self.is_assumed() {
            return None;
        }
        let assumption = match (&self.kind, &self.range) {
            (Kind::Integer { .. } | Kind::Ratio { .. } | Kind::Duration { .. }, Some((least, greatest))) => {
                Assumption::between(self.key, value.clone(), least.clone(), greatest.clone())
            }
            (Kind::Integer { minimum, maximum }, None) => {
                let bounds = (&Value::Integer(*minimum), &Value::Integer(*maximum));
                Assumption::number(self.key, value.clone(), factor, bounds)
            }
            (Kind::Ratio { minimum, maximum }, None) => {
                let bounds = (&Value::Ratio(*minimum), &Value::Ratio(*maximum));
                Assumption::number(self.key, value.clone(), factor, bounds)
            }
            (
                Kind::Duration {
                    minimum_ns,
                    maximum_ns,
                },
                None,
            ) => {
                let bounds = (
                    &Value::Duration { ns: *minimum_ns },
                    &Value::Duration { ns: *maximum_ns },
                );
                Assumption::number(self.key, value.clone(), factor, bounds)
            }
            (Kind::Choice { choices }, _) => {
                self.among(value, choices.iter().map(|choice| Value::from(*choice)))
            }
            (Kind::Switch, _) => self.among(value, [true, false].map(Value::from)),
            (Kind::Text | Kind::File | Kind::List(_), _) => return None,
        };
        Some(assumption.of(self.about, self.unit, self.source))
    }

    fn among(&self, value: &Value, choices: impl IntoIterator<Item = Value>) -> Assumption {
        let others = choices.into_iter().filter(|other| other != value).collect();
        Assumption {
            others,
            ..Assumption::between(self.key, value.clone(), value.clone(), value.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn others(input: &Input) -> Vec<String> {
        let assumption = input.assumption(&input.default, 2).expect("an assumption");
        assumption.others.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_number_is_halved_and_doubled_within_its_bounds_or_tried_over_its_range() {
        let transfer = Input::integer("transfer", 330).source("estimate: a memory access");
        assert_eq!(others(&transfer), ["165", "660"]);
        assert_eq!(others(&transfer.clone().between(200, 5000)), ["200", "660"]);
        assert_eq!(others(&transfer.range("150", "700")), ["150", "700"]);
        let slot = Input::duration("slot", 10_000_000).source("chosen");
        assert_eq!(others(&slot), ["5ms", "20ms"]);
        let none = Input::integer("pause", 0).source("none: the paper does not say");
        assert!(others(&none).is_empty());
    }

    #[test]
    fn every_other_choice_is_tried() {
        let gates = Input::choice("gates", &["one", "two", "three"]).source("chosen: the paper does not say");
        assert_eq!(others(&gates), ["two", "three"]);
        assert_eq!(others(&Input::switch("preload", true).source("assumed")), ["off"]);
    }

    #[test]
    fn what_a_paper_or_manual_says_is_no_assumption() {
        for source in ["CEFOS 3.1", "the table", "Itanium 3.4: 900 MHz", "chosenness"] {
            let input = Input::integer("units", 4).source(source);
            assert_eq!(input.assumption(&input.default, 2), None, "{source}");
        }
        let axis = Input::integers("units", &[4]).source("chosen").axis();
        assert_eq!(axis.assumption(&axis.default, 2), None);
    }
}
