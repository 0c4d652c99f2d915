//! The list of experiments, as text and as data.

use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::about::Nature;
use crate::experiment::Experiment;
use crate::figure::{Figure, Measure};
use crate::input::Input;
use crate::report::prose::paragraph;

/// A line for each experiment: its name and its question, cut to `width` columns where that is given.
pub fn lines(experiments: &[&dyn Experiment], width: Option<usize>) -> String {
    let names = experiments.iter().map(|experiment| experiment.about().name);
    let column = names.map(str::len).max().unwrap_or(0);
    let mut text = String::new();
    for experiment in experiments {
        let about = experiment.about();
        let line = format!("{:column$}  {}", about.name, about.question);
        text.push_str(&cut(&line, width));
        text.push('\n');
    }
    text
}

/// A line that ends in an ellipsis where it is longer than `width` characters.
fn cut(line: &str, width: Option<usize>) -> String {
    match width {
        Some(width) if line.chars().count() > width => {
            let kept: String = line.chars().take(width.saturating_sub(3)).collect();
            format!("{}...", kept.trim_end())
        }
        _ => line.to_owned(),
    }
}

/// One experiment in detail: its question, source, nature, duration, setting, and every input with meaning, default
/// and source, in lines of at most `width` columns where that is given.
pub fn details(experiment: &dyn Experiment, width: Option<usize>) -> String {
    let width = width.unwrap_or(usize::MAX);
    let about = experiment.about();
    let (quick, full) = about.takes;
    let mut text = format!("{}\n", about.name);
    let mut write = |begin: &str, said: &str, indent| paragraph(&mut text, begin, said, indent, width);
    write("    ", about.question, 6);
    write("    ", about.source, 6);
    let takes = format!("about {} quick and {} in full", rough(quick), rough(full));
    write("    ", &format!("{}, {takes}", nature(about.nature)), 6);
    write("", "", 0);
    let parts = [
        ("setting", about.setting),
        ("baseline", about.baseline),
        ("sidestep", about.sidestep),
        ("reading", about.reading),
    ];
    for (what, about) in parts {
        write(&format!("    {what:9} "), about, 14);
    }
    for input in experiment.inputs() {
        let unit = match input.unit {
            "" => String::new(),
            unit => format!(" {unit}"),
        };
        write("", "", 0);
        write("    --set ", &format!("{}{unit}", setting(&input)), 10);
        write("        ", &format!("{}; {}", input.about, input.kind), 10);
        write("        source: ", input.source, 10);
        if let Some(quick) = &input.quick {
            write("        with --quick: ", &quick.to_string(), 10);
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
                        "axis": input.axis,
                        "source": input.source,
                    })
                })
                .collect();
            let figures: Vec<_> = experiment.figures().iter().map(figure).collect();
            json!({
                "experiment": about.name,
                "question": about.question,
                "source": about.source,
                "nature": about.nature,
                "setting": about.setting,
                "reading": about.reading,
                "baseline": about.baseline,
                "sidestep": about.sidestep,
                "metric": about.metric.name,
                "unit": about.metric.unit,
                "better": about.metric.better,
                "seconds_quick": about.takes.0.as_secs(),
                "seconds_full": about.takes.1.as_secs(),
                "inputs": inputs,
                "figures": figures,
            })
        })
        .collect();
    let document = json!({ "schema": "sidestep.list/1", "experiments": experiments });
    serde_json::to_string_pretty(&document).expect("text and lists are JSON") + "\n"
}

/// What a chart shows, as data.
fn figure(figure: &Figure) -> Json {
    let measure = match figure.y {
        Measure::Value => json!("value"),
        Measure::Ratio => json!("ratio"),
        Measure::Counter(name) => json!({ "counter": name }),
    };
    json!({
        "title": figure.title,
        "x": {
            "coordinate": figure.x.coordinate,
            "label": figure.x.label,
            "unit": figure.x.unit,
            "logarithmic": figure.x.logarithmic,
        },
        "y": {
            "measure": measure,
            "label": figure.y_label,
            "unit": figure.y_unit,
            "logarithmic": figure.y_logarithmic,
        },
        "lines": figure.lines,
        "bars": figure.bars,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_to_the_terminal() {
        assert_eq!(
            cut("gang.groups  Which tasks?", None),
            "gang.groups  Which tasks?"
        );
        assert_eq!(
            cut("gang.groups  Which tasks?", Some(25)),
            "gang.groups  Which tasks?"
        );
        assert_eq!(cut("gang.groups  Which tasks?", Some(20)), "gang.groups  Whic...");
        assert_eq!(cut("gang.groups  Which tasks?", Some(2)), "...");
    }
}
