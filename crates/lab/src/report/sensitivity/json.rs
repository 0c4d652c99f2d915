//! Analyses as one JSON document, documented in the book under *Formats*.

use serde_json::{Value as Json, json};

use super::words;
use crate::report::json::{number, value};
use crate::sensitivity::{Change, Sensitivity, Variation};

/// The name and version of the schema.
pub const SCHEMA: &str = "sidestep.sensitivity/1";

/// Analyses as one document, indented, with a newline at its end.
pub(super) fn render(analyses: &[Sensitivity]) -> String {
    let document = json!({
        "schema": SCHEMA,
        "program": concat!("sidestep ", env!("CARGO_PKG_VERSION")),
        "analyses": analyses.iter().map(analysis).collect::<Vec<_>>(),
    });
    serde_json::to_string_pretty(&document).expect("text, numbers and lists are JSON") + "\n"
}

fn analysis(analysis: &Sensitivity) -> Json {
    let inputs: Vec<Json> = (analysis.assumptions.iter())
        .map(|assumption| {
            json!({
                "key": assumption.key,
                "about": assumption.about,
                "unit": assumption.unit,
                "source": assumption.source,
                "value": value(&assumption.nominal),
                "tried": assumption.others.iter().map(value).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "experiment": analysis.about.name,
        "question": analysis.about.question,
        "command": super::command(analysis),
        "quick": analysis.request.quick,
        "seed": analysis.request.seed,
        "repetitions": analysis.repetitions,
        "factor": analysis.design.factor,
        "paired": analysis.design.paired,
        "halvings": analysis.design.halvings,
        "inputs": inputs,
        "claims": (0..analysis.claims.len()).map(|index| claim(analysis, index)).collect::<Vec<_>>(),
        "problems": words::problems(analysis),
    })
}

fn claim(analysis: &Sensitivity, index: usize) -> Json {
    let (claim, reading) = (&analysis.claims[index], &analysis.nominal[index]);
    let key = |assumption: usize| &analysis.assumptions[assumption].key;
    let changes = |changes: &[Change]| -> Json {
        let each = changes
            .iter()
            .map(|(at, changed)| json!({ "input": key(*at), "value": value(changed) }));
        each.collect()
    };
    let varied = |variation: &Variation| -> Option<Json> {
        let reading = variation.reading(index)?;
        Some(json!({
            "changes": changes(&variation.changes),
            "ours": reading.ours,
            "value": reading.value.map(number),
            "verdict": reading.verdict,
        }))
    };
    let crossings = analysis
        .crossings
        .iter()
        .filter(|crossing| crossing.claim == index);
    let crossings: Vec<Json> = crossings
        .map(|crossing| {
            json!({
                "input": key(crossing.assumption),
                "keeps": value(&crossing.keeps),
                "turns": value(&crossing.turns),
            })
        })
        .collect();
    json!({
        "about": claim.about,
        "stated": claim.stated,
        "source": claim.source,
        "paper": claim.number.map(number),
        "ours": reading.ours,
        "value": reading.value.map(number),
        "verdict": reading.verdict,
        "stands": words::sentence(analysis, index),
        "crossings": crossings,
        "alone": analysis.alone.iter().filter_map(varied).collect::<Vec<_>>(),
        "pairs": analysis.pairs.iter().filter_map(varied).collect::<Vec<_>>(),
    })
}
