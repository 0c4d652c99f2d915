//! A value of an input, or a coordinate of a point.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::number::Number;

/// A value of an input, or a coordinate of a point. Its text reads back as the same value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Value {
    /// A whole number.
    Integer(i64),
    /// A decimal or ratio.
    Ratio(Number),
    /// A time.
    Duration {
        /// In nanoseconds.
        ns: u64,
    },
    /// A name out of some, or any text.
    Text(String),
    /// On or off.
    Switch(bool),
    /// Several of one kind.
    List(Vec<Value>),
}

impl Value {
    /// A list.
    pub fn list<T: Into<Value>>(elements: impl IntoIterator<Item = T>) -> Value {
        Value::List(elements.into_iter().map(Into::into).collect())
    }

    /// The whole number. Panics when it is of another kind, as do the functions below.
    pub fn integer(&self) -> i64 {
        match self {
            Value::Integer(value) => *value,
            other => other.mismatch("a whole number"),
        }
    }

    /// The whole number, which is not negative.
    pub fn count(&self) -> u64 {
        u64::try_from(self.integer()).expect("bounds that exclude negative numbers")
    }

    /// The decimal or ratio; a whole number is one too.
    pub fn ratio(&self) -> Number {
        match self {
            Value::Ratio(value) => *value,
            Value::Integer(value) => Number::from(*value),
            other => other.mismatch("a ratio"),
        }
    }

    /// The time in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        match self {
            Value::Duration { ns } => *ns,
            other => other.mismatch("a duration"),
        }
    }

    /// The name or text.
    pub fn text(&self) -> &str {
        match self {
            Value::Text(value) => value,
            other => other.mismatch("a name"),
        }
    }

    /// Whether it is on.
    pub fn switch(&self) -> bool {
        match self {
            Value::Switch(value) => *value,
            other => other.mismatch("a switch"),
        }
    }

    /// The elements of the list.
    pub fn elements(&self) -> &[Value] {
        match self {
            Value::List(elements) => elements,
            other => other.mismatch("a list"),
        }
    }

    /// The value as a number on an axis, durations in nanoseconds; `None` for what is no number.
    pub fn number(&self) -> Option<Number> {
        match self {
            Value::Integer(value) => Some(Number::from(*value)),
            Value::Ratio(value) => Some(*value),
            Value::Duration { ns } => Some(Number::from(*ns)),
            Value::Text(_) | Value::Switch(_) | Value::List(_) => None,
        }
    }

    fn mismatch(&self, wanted: &str) -> ! {
        panic!("`{self}` is not {wanted}")
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Integer(value)
    }
}

impl From<Number> for Value {
    fn from(value: Number) -> Value {
        Value::Ratio(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Text(value.to_owned())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Switch(value)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Integer(value) => write!(formatter, "{value}"),
            Value::Ratio(value) => exact(*value, formatter),
            Value::Duration { ns } => {
                let (unit, divisor) = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000)]
                    .into_iter()
                    .find(|(_, divisor)| *ns != 0 && ns % divisor == 0)
                    .unwrap_or(("ns", 1));
                write!(formatter, "{}{unit}", ns / divisor)
            }
            Value::Text(value) => formatter.write_str(value),
            Value::Switch(value) => formatter.write_str(if *value { "on" } else { "off" }),
            Value::List(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(formatter, "{comma}{element}")?;
                }
                Ok(())
            }
        }
    }
}

/// A number as text that loses nothing: a decimal where one is exact, else a ratio.
fn exact(number: Number, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    let decimal = number.to_string();
    if decimal.parse() == Ok(number) {
        formatter.write_str(&decimal)
    } else {
        write!(formatter, "{}/{}", number.numerator(), number.denominator())
    }
}
