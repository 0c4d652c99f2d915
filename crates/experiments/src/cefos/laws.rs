//! The laws of growth of Figures 7 to 11, held against sweeps over the calls.
//!
//! The paper does not say how long its device took here. So each law is fitted at every round trip that was measured,
//! and holds where it does at all of them.

use sidestep_lab::{Finding, Number, Quantity, Row, Side, Standing, Value, Verdict};

use super::growth::exponent;
use super::machine;

/// Counters that findings and figures look at.
pub const CLOCKS_A_CALL: &str = "clocks a call";
pub const SENDER_RETRIES: &str = "self-continuations a sender";

/// The system calls of the paper's figures go up to here.
const PAPER_CALLS_MAX: u64 = 80;
/// With fewer calls at a time the first pass the empty kernel while the others are still being launched.
const JUDGED_CALLS_MIN: u64 = 20;
/// How far an exponent may lie from the law's: over the sixteenfold range of the paper's calls that is a factor of one
/// and a half from end to end.
const TOLERANCE: &str = "0.15";
/// The paper calls the clocks with the software queue significantly reduced and gives no number: a third at its most
/// calls is the least that is taken for that.
const SIGNIFICANTLY: &str = "1.5";

/// A quantity of one side by the number of calls.
type Points = Vec<(u64, Number)>;

/// What was measured with one round trip.
pub struct Sweep {
    round_trip: Value,
    hardware: Points,
    software: Points,
    /// Self-continuations a sender without, and in all with the software queue.
    retries: Points,
    queued: Points,
}

impl Sweep {
    /// The rows of a round trip.
    pub fn of(round_trip: Value, rows: &[Row]) -> Sweep {
        let read = |of: &dyn Fn(&Row) -> Option<Number>| -> Points {
            (rows.iter())
                .filter(|row| *row.point.value("round-trip") == round_trip)
                .filter_map(|row| Some((row.point.value("calls").count(), of(row)?)))
                .collect()
        };
        Sweep {
            hardware: read(&|row| row.quantity(Quantity::Baseline)),
            software: read(&|row| row.quantity(Quantity::Sidestep)),
            retries: read(&|row| counter(&row.measurement()?.baseline, SENDER_RETRIES)),
            queued: read(&|row| counter(&row.measurement()?.sidestep, machine::SELF_CONTINUATIONS)),
            round_trip,
        }
    }
}

fn counter(side: &Side, name: &str) -> Option<Number> {
    side.find(name).map(|counter| counter.value)
}

/// Every law, over the paper's calls and from there on.
pub fn findings(sweeps: &[Sweep]) -> Vec<Finding> {
    let laws: [Law; 3] = [
        Law {
            about: "clocks without software queue (Figure 7)",
            stated: "n^2",
            source: "CEFOS 4.1",
            power: 2,
            points: |sweep| &sweep.hardware,
        },
        Law {
            about: "self-continuations a sender without software queue (Figure 9)",
            stated: "linear",
            source: "CEFOS 4.1",
            power: 1,
            points: |sweep| &sweep.retries,
        },
        Law {
            about: "self-continuations with software queue (Figure 10)",
            stated: "almost proportional to the calls",
            source: "CEFOS 4.2",
            power: 1,
            points: |sweep| &sweep.queued,
        },
    ];
    let mut findings: Vec<Finding> = laws.iter().flat_map(|law| law.findings(sweeps)).collect();
    findings.extend(per_call(sweeps));
    findings.extend(reduced(sweeps));
    findings
}

/// A power of the calls that a quantity grows with.
struct Law {
    about: &'static str,
    stated: &'static str,
    source: &'static str,
    power: i32,
    points: fn(&Sweep) -> &Points,
}

impl Law {
    fn findings(&self, sweeps: &[Sweep]) -> Vec<Finding> {
        let ranges = [
            (
                format!("up to {PAPER_CALLS_MAX} calls"),
                0..=PAPER_CALLS_MAX,
                Standing::Result,
            ),
            (
                format!("from {PAPER_CALLS_MAX} calls on"),
                PAPER_CALLS_MAX..=u64::MAX,
                Standing::Beyond,
            ),
        ];
        let finding = |(range, calls, standing): (String, std::ops::RangeInclusive<u64>, Standing)| {
            let fitted: Vec<(&Value, Number)> = (sweeps.iter())
                .filter_map(|sweep| Some((&sweep.round_trip, fitted((self.points)(sweep), &calls)?)))
                .collect();
            let off = |found: &Number| (*found - Number::from(self.power)).abs();
            let worst = fitted.iter().map(|(_, found)| *found).max_by_key(off)?;
            let near = |found: &Number| off(found) <= Number::decimal(TOLERANCE);
            let because = match fitted.iter().all(|(_, found)| near(found)) {
                true => String::new(),
                false => format!(
                    "within {TOLERANCE} of {}: {}; one power is fitted, and a constant and lower powers weigh beside it",
                    self.power,
                    at_which(
                        fitted
                            .iter()
                            .map(|(round_trip, found)| (*round_trip, near(found)))
                    )
                ),
            };
            Some(Finding {
                about: format!("growth of {}, {range}", self.about),
                stated: self.stated.to_owned(),
                source: self.source.to_owned(),
                ours: format!(
                    "exponent {}",
                    at_each(fitted.iter().map(|(at, found)| (*at, found.to_fixed(2))))
                ),
                value: Some(worst),
                verdict: standing.verdict(near(&worst)),
                because,
            })
        };
        ranges.into_iter().filter_map(finding).collect()
    }
}

/// The exponent of the points within a range of calls.
fn fitted(points: &Points, calls: &std::ops::RangeInclusive<u64>) -> Option<Number> {
    // The smallest quantities are counts of a few; a thousandth is precise enough to take logarithms of.
    let whole = |number: Number| (number.numerator() * 1000 / number.denominator()) as u64;
    let scaled: Vec<(u64, u64)> = (points.iter())
        .filter(|(at, _)| calls.contains(at))
        .map(|(at, value)| (*at, whole(*value)))
        .collect();
    exponent(&scaled)
}

/// `1.23 at 0ns, 1.01 at 2us`.
fn at_each<'a>(values: impl Iterator<Item = (&'a Value, String)>) -> String {
    values
        .map(|(round_trip, value)| format!("{value} at {round_trip}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// At which round trips something is so, in words.
fn at_which<'a>(holds: impl Iterator<Item = (&'a Value, bool)>) -> String {
    let at: Vec<String> = holds
        .filter(|(_, holds)| *holds)
        .map(|(at, _)| at.to_string())
        .collect();
    match at.as_slice() {
        [] => "at no round trip".to_owned(),
        at => format!("at {} alone", at.join(" and ")),
    }
}

/// Figure 8, clocks a call grow linearly: the clocks of Figure 7 divided by the calls, so the same numbers read in
/// another way. Read by the slope between neighbouring points, which for a line is the same.
fn per_call(sweeps: &[Sweep]) -> Option<Finding> {
    let slopes = |sweep: &Sweep| -> Vec<Number> {
        let judged: Vec<(u64, Number)> = (sweep.hardware.iter())
            .filter(|(calls, _)| (JUDGED_CALLS_MIN..=PAPER_CALLS_MAX).contains(calls))
            .map(|(calls, clocks)| (*calls, *clocks * Number::ratio(1, *calls)))
            .collect();
        let slope = |pair: &[(u64, Number)]| {
            (pair[1].1 - pair[0].1).over(Number::from(pair[1].0) - Number::from(pair[0].0))
        };
        judged.windows(2).filter_map(slope).collect()
    };
    let all: Vec<(&Value, Vec<Number>)> = (sweeps.iter())
        .map(|sweep| (&sweep.round_trip, slopes(sweep)))
        .filter(|(_, slopes)| !slopes.is_empty())
        .collect();
    let is_line = |slopes: &[Number]| {
        let least = slopes.iter().min().copied().unwrap_or(Number::ZERO);
        least > Number::ZERO && slopes.iter().all(|slope| *slope <= least * Number::from(2))
    };
    let shown = |slopes: &[Number]| {
        slopes
            .iter()
            .map(|slope| slope.to_fixed(1))
            .collect::<Vec<_>>()
            .join(" ")
    };
    (!all.is_empty()).then(|| Finding {
        about: "growth of clocks a call without software queue (Figure 8)".to_owned(),
        stated: "linear".to_owned(),
        source: "CEFOS 4.1".to_owned(),
        ours: format!(
            "clocks a call more for each further call, from {JUDGED_CALLS_MIN} calls on: {}",
            at_each(all.iter().map(|(at, slopes)| (*at, shown(slopes))))
        ),
        value: None,
        verdict: Verdict::OtherReading,
        because: format!(
            "the clocks of Figure 7 divided by the calls; positive slopes within a factor of two are a line: {}",
            at_which(all.iter().map(|(at, slopes)| (*at, is_line(slopes))))
        ),
    })
}

/// Figure 11: the clocks with the software queue are significantly reduced as calls increase.
fn reduced(sweeps: &[Sweep]) -> Option<Finding> {
    let gains = |sweep: &Sweep| -> Vec<Number> {
        let pairs = sweep.hardware.iter().zip(&sweep.software);
        pairs
            .filter(|((calls, _), _)| (JUDGED_CALLS_MIN..=PAPER_CALLS_MAX).contains(calls))
            .filter_map(|((_, hardware), (_, software))| hardware.over(*software))
            .collect()
    };
    let all: Vec<(&Value, Vec<Number>)> = (sweeps.iter())
        .map(|sweep| (&sweep.round_trip, gains(sweep)))
        .filter(|(_, gains)| gains.len() > 1)
        .collect();
    let reduces = |gains: &[Number]| {
        let last = gains.last().copied().unwrap_or(Number::ZERO);
        gains.is_sorted() && last >= Number::decimal(SIGNIFICANTLY)
    };
    let least = all.iter().filter_map(|(_, gains)| gains.last().copied()).min()?;
    let shown = |gains: &[Number]| {
        gains
            .iter()
            .map(|gain| gain.to_fixed(2))
            .collect::<Vec<_>>()
            .join(" ")
    };
    Some(Finding {
        about: format!(
            "clocks without software queue over those with it (Figure 11), {JUDGED_CALLS_MIN} to {PAPER_CALLS_MAX} calls"
        ),
        stated: format!(
            "significantly reduced as calls increase: the ratio grows, to {SIGNIFICANTLY} at the least"
        ),
        source: "CEFOS 4.2; the number is ours".to_owned(),
        ours: at_each(all.iter().map(|(at, gains)| (*at, shown(gains)))),
        value: Some(least),
        verdict: Verdict::of(all.iter().all(|(_, gains)| reduces(gains))),
        because: format!(
            "so {}; where the device takes most of the time, senders spin in time that is lost anyway",
            at_which(all.iter().map(|(at, gains)| (*at, reduces(gains))))
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(round_trip: u64, clocks: fn(u64) -> u64) -> Sweep {
        let points = |of: &dyn Fn(u64) -> u64| {
            [5, 10, 20, 40, 60, 80, 160]
                .map(|calls| (calls, Number::from(of(calls))))
                .to_vec()
        };
        Sweep {
            round_trip: Value::Duration { ns: round_trip },
            hardware: points(&clocks),
            software: points(&|calls| 100 * calls),
            retries: points(&|calls| 3 * calls),
            queued: points(&|calls| 2 * calls),
        }
    }

    fn verdicts(sweeps: &[Sweep]) -> Vec<Verdict> {
        findings(sweeps).iter().map(|finding| finding.verdict).collect()
    }

    #[test]
    fn a_law_holds_where_it_does_at_every_round_trip() {
        use Verdict::{BeyondThePaper, Differs, Holds, OtherReading};
        let square = || sweep(0, |calls| 10 * calls * calls);
        let line = || sweep(2000, |calls| 105 * calls);
        let rest = [Holds, BeyondThePaper, Holds, BeyondThePaper, OtherReading];
        let with = |first: Verdict, last: Verdict| [&[first, BeyondThePaper], &rest[..], &[last]].concat();
        assert_eq!(verdicts(&[square()]), with(Holds, Holds));
        assert_eq!(verdicts(&[line()]), with(Differs, Differs));
        let both = findings(&[square(), line()]);
        assert_eq!(verdicts(&[square(), line()]), with(Differs, Differs));
        assert_eq!(both[0].ours, "exponent 2.00 at 0ns, 1.00 at 2us");
        assert!(both[0].because.contains("at 0ns alone"), "{}", both[0].because);
    }

    #[test]
    fn a_gain_that_shrinks_with_the_calls_is_no_reduction() {
        let shrinking = sweep(0, |calls| 100 * calls + 9000);
        assert_eq!(
            findings(&[shrinking]).last().map(|finding| finding.verdict),
            Some(Verdict::Differs)
        );
    }
}
