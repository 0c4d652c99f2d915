//! The list of experiments, as text and as data.

use std::fmt::Write;
use std::time::Duration;

use serde_json::json;

use crate::about::Nature;
use crate::experiment::Experiment;
use crate::input::Input;

/// Every experiment with its question, source, nature, duration and inputs, in a few lines each.
pub fn text(experiments: &[&dyn Experiment]) -> String {
    let mut text = String::new();
    for experiment in experiments {
        let about = experiment.about();
        let (quick, full) = about.takes;
        let inputs: Vec<String> = experiment.inputs().iter().map(setting).collect();
        writeln!(
            text,
            "{}\n    {}\n    {}\n    {}, about {} quick and {} in full\n    inputs: {}\n",
            about.name,
            about.question,
            about.source,
            nature(about.nature),
            rough(quick),
            rough(full),
            inputs.join("  "),
        )
        .expect("writing to a string");
    }
    text
}

/// One experiment in detail: also its setting and every input with meaning, default and source.
pub fn details(experiment: &dyn Experiment) -> String {
    let about = experiment.about();
    let mut text = self::text(&[experiment]);
    let mut line =
        |what: &str, said: &str| writeln!(text, "    {what:9} {said}").expect("writing to a string");
    line("setting", about.setting);
    line("baseline", about.baseline);
    line("sidestep", about.sidestep);
    line("reading", about.reading);
    for input in experiment.inputs() {
        let unit = match input.unit {
            "" => String::new(),
            unit => format!(" {unit}"),
        };
        writeln!(
            text,
            "\n    --set {}{unit}\n        {}; {}\n        source: {}",
            setting(&input),
            input.about,
            input.kind,
            input.source
        )
        .expect("writing to a string");
        if let Some(quick) = &input.quick {
            writeln!(text, "        with --quick: {quick}").expect("writing to a string");
        }
    }
    text
}

/// The list as a JSON document.
pub fn json(experiments: &[&dyn Experiment]) -> String {
    let experiments: Vec<_> = experiments
        .iter()
        .map(|experiment| {
            let about = experiment.about();
            let inputs: Vec<_> = (experiment.inputs().iter())
                .map(|input| {
                    json!({
                        "key": input.key,
                        "about": input.about,
                        "values": input.kind.to_string(),
                        "default": input.default.to_string(),
                        "quick": input.quick.as_ref().map(ToString::to_string),
                        "unit": input.unit,
                        "source": input.source,
                    })
                })
                .collect();
            json!({
                "experiment": about.name,
                "question": about.question,
                "source": about.source,
                "nature": about.nature,
                "baseline": about.baseline,
                "sidestep": about.sidestep,
                "metric": about.metric.name,
                "unit": about.metric.unit,
                "seconds_quick": about.takes.0.as_secs(),
                "seconds_full": about.takes.1.as_secs(),
                "inputs": inputs,
            })
        })
        .collect();
    let document = json!({ "schema": "sidestep.list/1", "experiments": experiments });
    serde_json::to_string_pretty(&document).expect("text and lists are JSON") + "\n"
}

fn setting(input: &Input) -> String {
    format!("{}={}", input.key, input.default)
}

fn nature(nature: Nature) -> &'static str {
    match nature {
        Nature::Deterministic => "deterministic (virtual time)",
        Nature::Seeded => "virtual time with a seed",
        Nature::Measured => "measured on this host",
    }
}

fn rough(duration: Duration) -> String {
    match duration.as_secs() {
        0 => "a second".to_owned(),
        seconds @ 1..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}
