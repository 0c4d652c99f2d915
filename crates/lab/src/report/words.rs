//! How numbers, statements and commands are worded, alike in every format that people read.

use crate::about::{About, Nature};
use crate::comparison::Comparison;
use crate::number::Number;
use crate::paper::{Expected, Quantity, Standing, Stated, Verdict};
use crate::row::Row;

/// A number for people: integers and large numbers in full with the thousands apart, others to four digits.
pub(super) fn show(number: Number) -> String {
    let text = number.to_significant(4);
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("−", digits),
        None => ("", text.as_str()),
    };
    let (whole, part) = match digits.split_once('.') {
        Some((whole, part)) => (whole, format!(".{part}")),
        None => (digits, String::new()),
    };
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{part}")
}

/// A number for people, or the mark of none.
pub(super) fn show_or_none(number: Option<Number>) -> String {
    number.map_or("–".to_owned(), show)
}

/// A share as a percentage with its sign.
pub(super) fn percent(share: Number) -> String {
    let text = (share * Number::from(100)).to_decimal(1);
    match text.strip_prefix('-') {
        Some(digits) => format!("−{digits}%"),
        None if text == "0" => "0%".to_owned(),
        None => format!("+{text}%"),
    }
}

/// A metric with its unit, unless its name already says it.
pub(super) fn metric(about: &About) -> String {
    let (name, unit) = (about.metric.name, about.metric.unit);
    match unit.is_empty() || name.split(' ').any(|word| word == unit) {
        true => name.to_owned(),
        false => format!("{name} in {unit}"),
    }
}

/// The name of a verdict.
pub(super) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Differs => "differs",
        Verdict::CheckedInput => "checked input",
        Verdict::OtherReading => "other reading",
        Verdict::BeyondThePaper => "beyond the paper",
        Verdict::NotJudged => "not judged",
        Verdict::NotStated => "not stated",
    }
}

/// The name of a quantity.
pub(super) fn quantity(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Baseline => "baseline",
        Quantity::Sidestep => "sidestep",
        Quantity::Ratio => "ratio",
    }
}

/// What the paper states: `18`, `≥ 1`.
pub(super) fn stated(stated: &Stated) -> String {
    match stated.expected {
        Expected::Value { value, .. } => show(value),
        Expected::AtLeast(value) => format!("≥ {}", show(value)),
        Expected::AtMost(value) => format!("≤ {}", show(value)),
    }
}

/// What agreement with some statements is worth, after their count.
pub(super) fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::Result => "stated values",
        Standing::Input => "values that are inputs",
        Standing::Reading => "values in another reading",
        Standing::Beyond => "values beyond the paper",
        Standing::Unjudged => "values that are not judged",
    }
}

/// A quantity of a row with its confidence interval, if it was repeated.
pub(super) fn measured(row: &Row, quantity: Quantity) -> String {
    match row.spread.and_then(|spread| spread.of(quantity)) {
        Some(median) => format!(
            "{} [{}, {}]",
            show(median.value),
            show(median.low),
            show(median.high)
        ),
        None => show_or_none(row.quantity(quantity)),
    }
}

/// The same without its interval.
pub(super) fn median(row: &Row, quantity: Quantity) -> String {
    match row.spread.and_then(|spread| spread.of(quantity)) {
        Some(median) => show(median.value),
        None => show_or_none(row.quantity(quantity)),
    }
}

/// How the numbers came about.
pub(super) fn nature(comparison: &Comparison) -> String {
    let repeated = match comparison.rows.iter().find_map(|row| row.spread?.sidestep) {
        Some(median) => format!(
            "median of {} with the interval that holds it with {}% probability",
            comparison.repetitions,
            (median.confidence * Number::from(100)).to_decimal(0)
        ),
        None => "run once".to_owned(),
    };
    match comparison.about.nature {
        Nature::Deterministic => "deterministic, virtual time".to_owned(),
        Nature::Seeded => format!("virtual time, seed {}, {repeated}", comparison.seed),
        Nature::Measured => format!("measured on this host, {repeated}"),
    }
}

/// The name of a verdict after a count.
pub(super) fn verdicts(verdict: Verdict, count: usize) -> &'static str {
    match (verdict, count) {
        (Verdict::Holds, 1) => "holds",
        (Verdict::Holds, _) => "hold",
        (Verdict::Differs, 1) => "differs",
        (Verdict::Differs, _) => "differ",
        (Verdict::CheckedInput, 1) => "checked input",
        (Verdict::CheckedInput, _) => "checked inputs",
        (Verdict::OtherReading, 1) => "other reading",
        (Verdict::OtherReading, _) => "other readings",
        (Verdict::BeyondThePaper, _) => "beyond the paper",
        (Verdict::NotJudged, _) => "not judged",
        (Verdict::NotStated, _) => "not stated",
    }
}

/// The verdicts counted: `3 hold, 1 differs, 4 not stated`. Those that are counted for or against a paper are always
/// there, the others where there are any.
pub(super) fn tally(comparison: &Comparison) -> String {
    let counted = Verdict::ALL.into_iter().filter_map(|verdict| {
        let count = comparison.count(verdict);
        let is_shown = count > 0 || verdict.is_judged();
        is_shown.then(|| format!("{count} {}", verdicts(verdict, count)))
    });
    counted.collect::<Vec<_>>().join(", ")
}

/// The exact command that reproduces a comparison.
pub fn command(comparison: &Comparison) -> String {
    let mut words = vec![
        "sidestep".to_owned(),
        "compare".to_owned(),
        comparison.about.name.to_owned(),
    ];
    if comparison.quick {
        words.push("--quick".to_owned());
    }
    for setting in &comparison.settings {
        words.push("--set".to_owned());
        words.push(quoted(setting));
    }
    if comparison.about.nature != Nature::Deterministic {
        words.push(format!("--seed {}", comparison.seed));
        words.push(format!("--repeat {}", comparison.repetitions));
    }
    words.join(" ")
}

/// A word as a shell reads it back.
pub fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"=,.-_/+:@%".contains(&byte);
    match !word.is_empty() && word.bytes().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_to_four_digits_with_thousands_apart() {
        for (number, text) in [
            (Number::from(1_234_567), "1,234,567"),
            (Number::from(-1000), "−1,000"),
            (Number::ratio(123_456, 10), "12,346"),
            (Number::ratio(2, 3), "0.6667"),
            (Number::from(999), "999"),
        ] {
            assert_eq!(show(number), text);
        }
        assert_eq!(percent(Number::ratio(-1, 8)), "−12.5%");
        assert_eq!(percent(Number::ZERO), "0%");
    }

    #[test]
    fn a_shell_reads_the_setting_back() {
        assert_eq!(quoted("calls=5,10"), "calls=5,10");
        assert_eq!(quoted("matrix=it's here"), r"'matrix=it'\''s here'");
    }
}
