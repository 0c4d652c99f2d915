//! What the paper measured (section 5, Figure 6), held against the monitor's virtual machines. Of Figure 7 the text has
//! no number.

use sidestep_lab::{Finding, Number, Point, Quantity, Row, Stated, Verdict};

use super::{CORRELATION, FOUND_AT};
use crate::gang::PAPER;
use crate::gang::judged::{Gain, Measured, NO_GAIN, greatest, lower, mostly_better, uncoordinated};

/// What the paper measured of given sets, benchmark by benchmark, on the host without SMT.
fn measured(kernel: &str, load: &str) -> Measured {
    match (load, kernel) {
        ("quad", "lu" | "mg") => Measured::NotClose,
        ("quad", _) => Measured::Close,
        ("single", "bt" | "ep") => Measured::Close,
        _ => Measured::NotClose,
    }
}

/// What the paper states of a point.
pub fn stated(point: &Point) -> Vec<Stated> {
    let text = |axis: &str| point.value(axis).text();
    if text("host") != "gainestown" {
        return Vec::new();
    }
    let (kernel, load) = (text("kernel"), text("load"));
    match text("policy") {
        "given" => vec![measured(kernel, load).stated(load)],
        "found-1.5" if load == "double" && matches!(kernel, "cg" | "is" | "ua") => vec![Stated::at_most(
            Quantity::Ratio,
            Number::decimal(NO_GAIN),
            "Partial Coscheduling 5: CG, UA and IS lose against full coscheduling in double",
        )],
        _ => Vec::new(),
    }
}

/// What the paper states of the whole, and what it does not.
pub fn findings(rows: &[Row]) -> Vec<Finding> {
    let on = |host: &'static str| move |row: &&Row| row.point.value("host").text() == host;
    let gains: Vec<Gain<'_>> = rows
        .iter()
        .filter(on("gainestown"))
        .filter_map(|row| Gain::of(row, "kernel"))
        .collect();
    let of =
        |policy: &'static str| -> Vec<&Gain> { gains.iter().filter(|gain| gain.policy == policy).collect() };
    let found = of("found-1.5");
    let mut findings = Vec::new();
    findings.extend(greatest(&of("given"), "given", Number::from(2), "100 %"));
    findings.extend(greatest(&found, "found", Number::ratio(3, 2), "50 %"));
    findings.extend(lower(&found, &of("given")));
    findings.extend(mostly_better(&found));
    findings.extend(uncoordinated(&of("none")));
    findings.extend(spread(rows));
    findings.extend(found_sets(rows));
    findings.extend(correlation(rows));
    findings
}

/// Figure 7: on the host with SMT gains are less predictable.
fn spread(rows: &[Row]) -> Option<Finding> {
    let of = |host: &str| -> Option<Number> {
        let of_load = |load: &str| -> Option<Number> {
            let at = |axis: &str, row: &Row| row.point.value(axis).text().to_owned();
            let gains = rows.iter().filter(|row| {
                at("host", row) == host && at("load", row) == load && at("policy", row) == "given"
            });
            let gains: Vec<Number> = gains.filter_map(|row| row.quantity(Quantity::Ratio)).collect();
            Some(*gains.iter().max()? - *gains.iter().min()?)
        };
        ["single", "double", "quad"].into_iter().filter_map(of_load).max()
    };
    let (without, with) = (of("gainestown")?, of("lynnfield")?);
    Some(Finding {
        about: "how far the gains of given sets lie apart, over benchmarks of one load".to_owned(),
        stated: "not as predictable on the host with SMT".to_owned(),
        source: format!("{PAPER}, section 5 and Figure 7"),
        ours: format!("up to {} times without SMT, {} with", without.to_fixed(2), with.to_fixed(2)),
        value: with.over(without),
        verdict: Verdict::of(with > without),
        because: "a sibling slows every instruction down by the same factor here; what benchmarks lose to each other's \
                  caches and bandwidth differs"
            .to_owned(),
    })
}

/// Whether sets are found without a factor chosen by hand, and how soon.
fn found_sets(rows: &[Row]) -> Option<Finding> {
    let is_of = |row: &&Row| {
        row.point.value("policy").text() == "found"
            && row.point.value("host").text() == "gainestown"
            && row.point.value("load").text() != "single"
            // Its threads share nothing until the end.
            && row.point.value("kernel").text() != "ep"
    };
    let rows: Vec<&Row> = rows.iter().filter(is_of).collect();
    let at = |row: &Row| {
        let counter = row.measurement()?.sidestep.find(FOUND_AT)?;
        Some(counter.value)
    };
    let soon = rows
        .iter()
        .filter(|row| at(row).is_some_and(|at| at <= Number::from(2)))
        .count();
    let late: Vec<String> = (rows.iter())
        .filter(|row| at(row).is_none_or(|at| at > Number::from(2)))
        .map(|row| {
            format!(
                "{} {}",
                row.point.value("kernel").text(),
                row.point.value("load").text()
            )
        })
        .collect();
    (!rows.is_empty()).then(|| Finding {
        about: "found sets without a factor, in double and quad: those of the load within two evaluations"
            .to_owned(),
        stated: "no factor fits most programs".to_owned(),
        source: format!("{PAPER}, section 5"),
        ours: format!("in {soon} of {}", rows.len()),
        value: Some(Number::ratio(soon as u64, rows.len() as u64)),
        verdict: Verdict::BeyondThePaper,
        because: match late.is_empty() {
            true => String::new(),
            false => format!("not {}", late.join(", ")),
        },
    })
}

/// How well what was detected ranks the pairs.
fn correlation(rows: &[Row]) -> Option<Finding> {
    let correlations = rows
        .iter()
        .filter(|row| row.point.value("host").text() == "gainestown");
    let correlations =
        correlations.filter_map(|row| Some(row.measurement()?.sidestep.find(CORRELATION)?.value));
    let mut correlations: Vec<Number> = correlations.collect();
    correlations.sort_unstable();
    let (least, most) = (correlations.first()?, correlations.last()?);
    let median = correlations[correlations.len() / 2];
    Some(Finding {
        about: "what was detected beside all accesses: rank correlation of the pairs of VM1".to_owned(),
        stated: "not measured".to_owned(),
        source: PAPER.to_owned(),
        ours: format!(
            "{} to {}, {} in the middle",
            least.to_fixed(2),
            most.to_fixed(2),
            median.to_fixed(2)
        ),
        value: Some(median),
        verdict: Verdict::BeyondThePaper,
        because:
            "pairs that share nothing but code's data are all alike in both, and their order says little"
                .to_owned(),
    })
}
