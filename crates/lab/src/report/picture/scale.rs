//! From numbers to positions along an axis, and the ticks that name them.

use crate::number::Number;
use crate::report::words::show;
use crate::statistics::binary_logarithm;

/// An axis' scale.
pub(super) struct Scale {
    kind: Kind,
    /// The ticks: position between 0 and 1, and what stands there.
    pub ticks: Vec<(f64, String)>,
}

enum Kind {
    Linear { low: f64, high: f64 },
    Logarithmic { low: f64, high: f64 },
    Names { names: Vec<String> },
}

/// About how many ticks an axis gets.
const TICKS: i128 = 5;

impl Scale {
    /// A linear scale from zero (or the least value below it) to at least the greatest value.
    pub fn linear(values: &[Number]) -> Scale {
        let least = values
            .iter()
            .copied()
            .min()
            .unwrap_or(Number::ZERO)
            .min(Number::ZERO);
        let greatest = values
            .iter()
            .copied()
            .max()
            .unwrap_or(Number::ONE)
            .max(Number::ZERO);
        let step = step(greatest - least);
        let (first, last) = (
            floor_multiple(least, step),
            -floor_multiple(Number::ZERO - greatest, step),
        );
        let last = last.max(first + 1);
        let ticks: Vec<Number> = (first..=last).map(|index| step * Number::from(index)).collect();
        let kind = Kind::Linear {
            low: ticks[0].to_f64(),
            high: ticks[ticks.len() - 1].to_f64(),
        };
        Scale::with_ticks(kind, &ticks)
    }

    /// A logarithmic scale over the positive values, with ticks at the values themselves if they are few, else at
    /// powers of ten with twos and fives between where there is room.
    pub fn logarithmic(values: &[Number], at_values: bool) -> Scale {
        let mut positive: Vec<Number> = values
            .iter()
            .copied()
            .filter(|value| *value > Number::ZERO)
            .collect();
        positive.sort();
        positive.dedup();
        let least = positive.first().copied().unwrap_or(Number::ONE);
        let greatest = positive.last().copied().unwrap_or(Number::from(10)).max(least);
        let ticks = match at_values && positive.len() <= 10 && positive.len() > 1 {
            true => positive,
            false => decades(least, greatest),
        };
        let kind = Kind::Logarithmic {
            low: binary_logarithm(ticks[0].min(least)),
            high: binary_logarithm(ticks[ticks.len() - 1].max(greatest)),
        };
        let mut scale = Scale::with_ticks(kind, &ticks);
        // Ticks too near to the one before would be drawn over each other.
        let mut last = f64::NEG_INFINITY;
        scale.ticks.retain(|(position, _)| {
            let keep = position - last > 0.055;
            last = if keep { *position } else { last };
            keep
        });
        scale
    }

    /// A scale of names, alike far apart.
    pub fn names(names: Vec<String>) -> Scale {
        let count = names.len().max(1) as f64;
        let ticks = (names.iter().enumerate())
            .map(|(index, name)| ((index as f64 + 0.5) / count, name.clone()))
            .collect();
        Scale {
            kind: Kind::Names { names },
            ticks,
        }
    }

    /// The position of a number between 0 and 1; `None` of a number that a logarithmic scale cannot show.
    pub fn place(&self, value: Number) -> Option<f64> {
        match self.kind {
            Kind::Linear { low, high } => Some((value.to_f64() - low) / (high - low)),
            Kind::Logarithmic { .. } if value <= Number::ZERO => None,
            Kind::Logarithmic { low, high } if low == high => Some(0.5),
            Kind::Logarithmic { low, high } => Some((binary_logarithm(value) - low) / (high - low)),
            Kind::Names { .. } => None,
        }
    }

    /// The scale for who draws it again at another size: its kind and the numbers at its ends (of a logarithmic one
    /// their binary logarithms).
    pub fn described(&self) -> String {
        match &self.kind {
            Kind::Linear { low, high } => format!("linear {low} {high}"),
            Kind::Logarithmic { low, high } => format!("logarithmic {low} {high}"),
            Kind::Names { .. } => "names".to_owned(),
        }
    }

    /// The position of a name between 0 and 1.
    pub fn place_name(&self, name: &str) -> Option<f64> {
        match &self.kind {
            Kind::Names { names } => {
                let index = names.iter().position(|each| each == name)?;
                Some(self.ticks[index].0)
            }
            _ => None,
        }
    }

    fn with_ticks(kind: Kind, ticks: &[Number]) -> Scale {
        let mut scale = Scale {
            kind,
            ticks: Vec::new(),
        };
        scale.ticks = ticks
            .iter()
            .filter_map(|tick| Some((scale.place(*tick)?, show(*tick))))
            .collect();
        scale
    }
}

/// The round step (1, 2 or 5 times a power of ten) that cuts a span into about five.
fn step(span: Number) -> Number {
    if span.is_zero() {
        return Number::ONE;
    }
    let wanted = span * Number::ratio(1, TICKS);
    let mut power = Number::ONE;
    while power > wanted {
        power = power * Number::ratio(1, 10);
    }
    while power * Number::from(10) <= wanted {
        power = power * Number::from(10);
    }
    [1, 2, 5, 10]
        .map(|factor| power * Number::from(factor))
        .into_iter()
        .find(|step| *step >= wanted)
        .expect("ten times the power is not less than what is wanted")
}

/// How many whole steps lie below a value.
fn floor_multiple(value: Number, step: Number) -> i128 {
    let steps = value.over(step).expect("a step is not zero");
    steps.numerator().div_euclid(steps.denominator())
}

/// The powers of ten around a span; with twos and fives if they are few.
fn decades(least: Number, greatest: Number) -> Vec<Number> {
    let mut power = Number::ONE;
    while power > least {
        power = power * Number::ratio(1, 10);
    }
    while power * Number::from(10) <= least {
        power = power * Number::from(10);
    }
    let mut powers = vec![power];
    while power < greatest {
        power = power * Number::from(10);
        powers.push(power);
    }
    if powers.len() > 4 {
        return powers;
    }
    let mut ticks: Vec<Number> = powers
        .iter()
        .flat_map(|power| [1, 2, 5].map(|factor| *power * Number::from(factor)))
        .collect();
    // No more of them than reach around the values.
    let first = ticks.iter().rposition(|tick| *tick <= least).unwrap_or(0);
    let last = ticks
        .iter()
        .position(|tick| *tick >= greatest)
        .unwrap_or(ticks.len() - 1);
    ticks.truncate(last + 1);
    ticks.split_off(first.min(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(scale: &Scale) -> Vec<&str> {
        scale.ticks.iter().map(|(_, name)| name.as_str()).collect()
    }

    #[test]
    fn linear_ticks_are_round_and_hold_every_value() {
        let scale = Scale::linear(&[3, 47].map(Number::from));
        assert_eq!(names(&scale), ["0", "10", "20", "30", "40", "50"]);
        assert_eq!(scale.place(Number::from(25)), Some(0.5));
        let scale = Scale::linear(&[Number::ratio(-1, 2), Number::ratio(1, 3)]);
        assert_eq!(names(&scale), ["−0.6", "−0.4", "−0.2", "0", "0.2", "0.4"]);
        assert_eq!(names(&Scale::linear(&[Number::ZERO])), ["0", "1"]);
        assert_eq!(names(&Scale::linear(&[])), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
    }

    #[test]
    fn logarithmic_ticks_hold_every_value() {
        let scale = Scale::logarithmic(&[3, 47].map(Number::from), false);
        assert_eq!(names(&scale), ["2", "5", "10", "20", "50"]);
        let scale = Scale::logarithmic(&[1, 1_000_000].map(Number::from), false);
        assert_eq!(scale.ticks.len(), 7);
        assert_eq!(scale.place(Number::ZERO), None);
        let scale = Scale::logarithmic(&[5, 10, 20].map(Number::from), true);
        assert_eq!(names(&scale), ["5", "10", "20"]);
    }

    #[test]
    fn names_stand_in_the_middle_of_their_share() {
        let scale = Scale::names(vec!["single".to_owned(), "double".to_owned()]);
        assert_eq!(scale.place_name("single"), Some(0.25));
        assert_eq!(scale.place_name("quad"), None);
    }
}
