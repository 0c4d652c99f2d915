//! From the text of a `--set` to a checked value.

use std::fmt;

use super::{InputError, Kind, Value};
use crate::number::Number;
use crate::suggest::nearest;

/// The units that a duration is written in, in nanoseconds; longer suffixes first.
const DURATION_UNITS: &[(&str, i64)] = &[
    ("ns", 1),
    ("us", 1000),
    ("µs", 1000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
];

/// Reads a value of a kind.
pub(super) fn value(key: &str, kind: &Kind, text: &str) -> Result<Value, InputError> {
    let bad = |nearest| InputError::BadValue {
        key: key.to_owned(),
        text: text.to_owned(),
        wanted: kind.to_string(),
        nearest,
    };
    match kind {
        Kind::Integer { minimum, maximum } => (text.parse().ok())
            .filter(|value| (*minimum..=*maximum).contains(value))
            .map(Value::Integer)
            .ok_or_else(|| bad(None)),
        Kind::Ratio { minimum, maximum } => (text.parse().ok())
            .filter(|value: &Number| minimum <= value && value <= maximum)
            .map(Value::Ratio)
            .ok_or_else(|| bad(None)),
        Kind::Duration {
            minimum_ns,
            maximum_ns,
        } => duration_ns(text)
            .filter(|ns| (*minimum_ns..=*maximum_ns).contains(ns))
            .map(|ns| Value::Duration { ns })
            .ok_or_else(|| bad(None)),
        Kind::Choice { choices } => match choices.contains(&text) {
            true => Ok(Value::Text(text.to_owned())),
            false => Err(bad(nearest(text, choices.iter().copied()))),
        },
        Kind::Switch => match text {
            "on" => Ok(Value::Switch(true)),
            "off" => Ok(Value::Switch(false)),
            _ => Err(bad(None)),
        },
        Kind::Text => Ok(Value::Text(text.to_owned())),
        Kind::File => match text.is_empty() {
            true => Ok(Value::Text(String::new())),
            false => readable(text)
                .map(|()| Value::Text(text.to_owned()))
                .map_err(|error| InputError::Unreadable {
                    key: key.to_owned(),
                    path: text.to_owned(),
                    reason: error.to_string(),
                }),
        },
        Kind::List(of) => list(key, of, text),
    }
}

fn list(key: &str, of: &Kind, text: &str) -> Result<Value, InputError> {
    let mut elements = Vec::new();
    for part in text.split(',') {
        let element = value(key, of, part.trim())?;
        if elements.contains(&element) {
            return Err(InputError::Twice {
                key: key.to_owned(),
                text: part.trim().to_owned(),
            });
        }
        elements.push(element);
    }
    Ok(Value::List(elements))
}

/// Whether a file can be opened and is one.
fn readable(path: &str) -> std::io::Result<()> {
    match std::fs::File::open(path)?.metadata()?.is_dir() {
        true => Err(std::io::ErrorKind::IsADirectory.into()),
        false => Ok(()),
    }
}

fn duration_ns(text: &str) -> Option<u64> {
    if text == "0" {
        return Some(0);
    }
    let (number, scale) = DURATION_UNITS
        .iter()
        .find_map(|(suffix, scale)| Some((text.strip_suffix(suffix)?.trim(), scale)))?;
    let number: Number = number.parse().ok()?;
    // Bounded first, so that the product cannot leave 128 bits.
    if number.abs() > Number::from(i64::MAX) {
        return None;
    }
    let ns = number * Number::from(*scale);
    if !ns.is_integer() {
        return None;
    }
    u64::try_from(ns.numerator()).ok()
}

/// What would be right, as a phrase that follows "is not".
impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Integer { minimum, maximum } => match (*minimum, *maximum) {
                (i64::MIN, i64::MAX) => formatter.write_str("a whole number"),
                (minimum, i64::MAX) => write!(formatter, "a whole number from {minimum}"),
                (minimum, maximum) => write!(formatter, "a whole number from {minimum} to {maximum}"),
            },
            Kind::Ratio { minimum, maximum } => write!(
                formatter,
                "a decimal or ratio from {minimum} to {maximum} (such as 1.5 or 3/2)"
            ),
            Kind::Duration {
                minimum_ns,
                maximum_ns,
            } => {
                write!(
                    formatter,
                    "a duration from {}",
                    Value::Duration { ns: *minimum_ns }
                )?;
                if *maximum_ns != u64::MAX {
                    write!(formatter, " to {}", Value::Duration { ns: *maximum_ns })?;
                }
                formatter.write_str(" (such as 500ns, 2us, 1.5ms, 3s)")
            }
            Kind::Choice { choices } => write!(formatter, "one of {}", choices.join(", ")),
            Kind::Switch => formatter.write_str("on or off"),
            Kind::Text => formatter.write_str("a text"),
            Kind::File => formatter.write_str("the path of a file"),
            Kind::List(of) => of.fmt(formatter),
        }
    }
}
