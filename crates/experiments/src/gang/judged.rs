//! What the paper measured of its policies (section 5 and Figure 6, the host without SMT), held against the simulator.
//!
//! A kind of program stands for programs of the paper. Where it stands for two with different results, or for none, its
//! point is not judged.

use sidestep_lab::{Finding, Inputs, Number, Point, Quantity, Row, Standing, Stated, Verdict};

use super::PAPER;
use super::scenario::{CHANGES_OF_SETS, LOADS};

/// Close to an expected gain, a share of it.
const CLOSE: &str = "0.1";
/// A gain that is at most this is none: a round more or less within the horizon makes as much.
pub const NO_GAIN: &str = "1.01";

/// Whether the sweep is the paper's: made-up programs in its three scenarios, on its rule for idle cores.
pub fn is_the_papers(inputs: &Inputs) -> bool {
    inputs.text("matrix").is_empty() && inputs.text("idle-cores") == "kept"
}

/// The gain that the paper expects of given sets in `double` and `quad`, and in `single`.
fn expected(load: &str) -> Number {
    match load {
        "single" => Number::from(2),
        _ => Number::ratio(4, 3),
    }
}

/// What the paper measured of given sets with a kind of program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// Close to what it expected.
    Close,
    /// Below that.
    NotClose,
    /// The kind stands for programs that came out differently, or for none.
    Unknown,
}

fn measured(kind: &str, load: &str) -> Measured {
    match (load, kind) {
        (_, "locked") => Measured::Unknown,
        // All but LU and MG.
        ("quad", "regular") => Measured::NotClose,
        ("quad", _) => Measured::Close,
        // None.
        ("double", _) => Measured::NotClose,
        // BT and EP alone; BT's kind is SP's as well.
        (_, "bulk") => Measured::Unknown,
        (_, "independent") => Measured::Close,
        _ => Measured::NotClose,
    }
}

/// Programs that lose in `double` with sets that are found, by their kinds; whether the cause was an input.
const LOSING: &[(&str, &str, Standing)] = &[
    ("irregular", "CG and UA", Standing::Result),
    ("short", "IS, which ends before sets are found", Standing::Input),
];

/// What the paper states of a point.
pub fn stated(point: &Point) -> Vec<Stated> {
    let (kind, load) = (point.value("workload").text(), point.value("load").text());
    match point.value("policy").text() {
        "given" => given(kind, load),
        "automatic" if load == "double" => (LOSING.iter())
            .filter(|(losing, _, _)| *losing == kind)
            .map(|(_, programs, standing)| {
                let source = format!("Partial Coscheduling 5: {programs} lose against full coscheduling");
                Stated::at_most(Quantity::Ratio, Number::decimal(NO_GAIN), source).standing(*standing)
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn given(kind: &str, load: &str) -> Vec<Stated> {
    vec![measured(kind, load).stated(load)]
}

impl Measured {
    /// The statement, of given sets under a load.
    pub fn stated(self, load: &str) -> Stated {
        let expected = expected(load);
        let close = || {
            Stated::value(
                Quantity::Ratio,
                expected,
                CLOSE,
                "Partial Coscheduling 5: close to what is expected",
            )
        };
        match self {
            Measured::Close => close(),
            Measured::NotClose => Stated::at_most(
                Quantity::Ratio,
                expected * (Number::ONE - Number::decimal(CLOSE)),
                "Partial Coscheduling 5: not close to what is expected",
            ),
            Measured::Unknown => close().standing(Standing::Unjudged),
        }
    }
}

/// A row with its gain.
pub struct Gain<'a> {
    kind: &'a str,
    load: &'a str,
    pub policy: &'a str,
    pub gain: Number,
    /// Whether sets were found, of a policy that looks for them.
    has_found: bool,
}

impl<'g> Gain<'g> {
    /// The gain of a row whose program is at the coordinate `program`.
    pub fn of(row: &'g Row, program: &str) -> Option<Gain<'g>> {
        let sidestep = &row.measurement()?.sidestep;
        Some(Gain {
            kind: row.point.value(program).text(),
            load: row.point.value("load").text(),
            policy: row.point.value("policy").text(),
            gain: row.quantity(Quantity::Ratio)?,
            has_found: sidestep
                .find(CHANGES_OF_SETS)
                .is_some_and(|changes| !changes.value.is_zero()),
        })
    }
}

/// What the paper states of the whole.
pub fn findings(rows: &[Row]) -> Vec<Finding> {
    let gains: Vec<Gain<'_>> = rows.iter().filter_map(|row| Gain::of(row, "workload")).collect();
    let of = |policy: &'static str| gains.iter().filter(move |gain| gain.policy == policy);
    let mut findings = Vec::new();
    findings.extend(expected_third(&of("given").collect::<Vec<_>>()));
    findings.extend(greatest(
        &of("given").collect::<Vec<_>>(),
        "given",
        Number::from(2),
        "100 %",
    ));
    let automatic: Vec<&Gain> = of("automatic").collect();
    findings.extend(greatest(&automatic, "automatic", Number::ratio(3, 2), "50 %"));
    findings.extend(lower(&automatic, &of("given").collect::<Vec<_>>()));
    findings.extend(mostly_better(&automatic));
    findings.extend(uncoordinated(&of("none").collect::<Vec<_>>()));
    findings
}

/// What the paper calculates before it measures: a third in `double` and in `quad`.
fn expected_third(given: &[&Gain]) -> Option<Finding> {
    let full: Vec<Number> = given
        .iter()
        .filter(|gain| gain.load != "single")
        .map(|gain| gain.gain)
        .collect();
    let (least, most) = (full.iter().min()?, full.iter().max()?);
    Some(Finding {
        about: "given sets in double and quad, beside what the paper calculates".to_owned(),
        stated: "1.33 times expected, of the cores that full coscheduling leaves idle".to_owned(),
        source: format!("{PAPER}, section 5"),
        ours: format!("{} to {} times", least.to_fixed(2), most.to_fixed(2)),
        value: None,
        verdict: Verdict::OtherReading,
        because: "without caches the simulator has what follows from the cores alone; what was measured is held against \
                  each point"
            .to_owned(),
    })
}

/// The most that a policy gains.
pub fn greatest(gains: &[&Gain], policy: &str, stated: Number, percent: &str) -> Option<Finding> {
    let greatest = gains.iter().max_by_key(|gain| gain.gain)?;
    let near = (greatest.gain - stated).abs() <= stated * Number::decimal(CLOSE);
    Some(Finding {
        about: format!("the greatest gain of {policy} sets"),
        stated: format!(
            "up to {percent}, so {} times (a tenth is granted)",
            stated.to_decimal(2)
        ),
        source: format!("{PAPER}, section 7"),
        ours: format!(
            "{} times, {} {}",
            greatest.gain.to_fixed(2),
            greatest.kind,
            greatest.load
        ),
        value: Some(greatest.gain),
        verdict: Verdict::of(near),
        because: String::new(),
    })
}

/// Found sets gain less than given ones, where any were found.
pub fn lower(automatic: &[&Gain], given: &[&Gain]) -> Option<Finding> {
    let same = |one: &Gain, other: &Gain| (one.kind, one.load) == (other.kind, other.load);
    let compared: Vec<bool> = (automatic.iter())
        .filter(|found| found.has_found && found.gain > Number::decimal(NO_GAIN))
        .filter_map(|found| Some(found.gain < given.iter().find(|given| same(found, given))?.gain))
        .collect();
    let below = compared.iter().filter(|lower| **lower).count();
    (!compared.is_empty()).then(|| Finding {
        about: "automatic sets against given ones, where automatic ones gain".to_owned(),
        stated: "a lower improvement".to_owned(),
        source: format!("{PAPER}, section 5"),
        ours: format!("lower in {below} of {}", compared.len()),
        value: Some(Number::ratio(below as u64, compared.len() as u64)),
        verdict: Verdict::of(below == compared.len()),
        because: "until the first re-evaluation a machine runs whole, and faults take time".to_owned(),
    })
}

/// Found sets are better than full coscheduling most of the time; where none are found they are not.
pub fn mostly_better(automatic: &[&Gain]) -> Option<Finding> {
    if automatic.is_empty() {
        return None;
    }
    let gains = |gain: &&&Gain| gain.has_found && gain.gain > Number::decimal(NO_GAIN);
    let better = automatic.iter().filter(gains).count();
    let losing: Vec<String> = (automatic.iter())
        .filter(|gain| !gains(gain))
        .map(|gain| format!("{} {}", gain.kind, gain.load))
        .collect();
    let unfound = automatic.iter().filter(|gain| !gain.has_found).count();
    let all = automatic.len();
    Some(Finding {
        about: "automatic sets against full coscheduling".to_owned(),
        stated: "better most of the time, but for CG, UA and IS in double".to_owned(),
        source: format!("{PAPER}, section 5"),
        ours: format!("better in {better} of {all}; in {unfound} no sets were found"),
        value: Some(Number::ratio(better as u64, all as u64)),
        verdict: Verdict::of(2 * better > all),
        because: match losing.is_empty() {
            true => String::new(),
            false => format!(
                "not better: {}; short programs end before sets are found, and the walk with a factor stops at a node \
                 whose two parts are no denser than it is, however dense their own parts are",
                losing.join(", ")
            ),
        },
    })
}

/// What nobody's coordination gains over full coscheduling, which the paper leaves out.
pub fn uncoordinated(free: &[&Gain]) -> Option<Finding> {
    let of_load = |load: &str| -> Option<String> {
        let gains: Vec<Number> = free
            .iter()
            .filter(|gain| gain.load == load)
            .map(|gain| gain.gain)
            .collect();
        let (least, most) = (gains.iter().min()?, gains.iter().max()?);
        Some(format!("{} to {} in {load}", least.to_fixed(2), most.to_fixed(2)))
    };
    let loads: Vec<String> = LOADS.iter().filter_map(|load| of_load(load)).collect();
    (!loads.is_empty()).then(|| Finding {
        about: "uncoordinated scheduling, as a stock Linux does it, over full coscheduling".to_owned(),
        stated: "not measured".to_owned(),
        source: PAPER.to_owned(),
        ours: format!("{} times", loads.join(", ")),
        value: None,
        verdict: Verdict::BeyondThePaper,
        because:
            "it keeps no core idle; programs that wait often lose what they spin for vCPUs without a core"
                .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gang::scenario::KIND_NAMES;

    fn gain<'a>(kind: &'a str, load: &'a str, gain: &str, has_found: bool) -> Gain<'a> {
        let gain = Number::decimal(gain);
        Gain {
            kind,
            load,
            policy: "automatic",
            gain,
            has_found,
        }
    }

    #[test]
    fn a_point_where_nothing_was_found_is_not_better() {
        let found = gain("bulk", "double", "1.2", true);
        let none = gain("bulk", "quad", "1.2", false);
        let lost = gain("bulk", "single", "1.005", true);
        let verdict = |of: &[&Gain]| mostly_better(of).map(|finding| finding.verdict);
        assert_eq!(verdict(&[&found]), Some(Verdict::Holds));
        assert_eq!(verdict(&[&found, &none]), Some(Verdict::Differs));
        assert_eq!(verdict(&[&found, &lost]), Some(Verdict::Differs));
    }

    #[test]
    fn fifty_percent_is_what_automatic_sets_gain_at_the_most() {
        let at = |text| {
            let gain = gain("bulk", "single", text, true);
            greatest(&[&gain], "automatic", Number::ratio(3, 2), "50 %").map(|finding| finding.verdict)
        };
        assert_eq!(at("1.5"), Some(Verdict::Holds));
        assert_eq!(at("1.83"), Some(Verdict::Differs));
        assert_eq!(at("1.1"), Some(Verdict::Differs));
    }

    #[test]
    fn every_kind_and_load_is_judged_or_says_why_not() {
        for kind in KIND_NAMES {
            for load in LOADS {
                let [stated] = &given(kind, load)[..] else {
                    panic!("one statement of {kind} {load}")
                };
                let unknown = measured(kind, load) == Measured::Unknown;
                assert_eq!(stated.standing == Standing::Unjudged, unknown, "{kind} {load}");
            }
        }
        assert!(given("bulk", "double")[0].judge(Number::ratio(4, 3)) == Verdict::Differs);
        assert!(given("bulk", "quad")[0].judge(Number::ratio(4, 3)) == Verdict::Holds);
    }
}
