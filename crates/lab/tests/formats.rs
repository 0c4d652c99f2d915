//! The machine-readable formats, read back by other means than those that wrote them.

#[allow(dead_code)] // Each test uses some of the samples.
mod sample;

use std::collections::{BTreeMap, BTreeSet};

use sample::RedundantSignals;
use sample::gallery::Gallery;
use serde_json::Value;
use sidestep_lab::{Comparison, Request, compare, report};

fn comparisons() -> Vec<Comparison> {
    let request = Request {
        trace: true,
        ..Request::default()
    };
    vec![
        compare(&RedundantSignals, &request).unwrap(),
        compare(&Gallery, &request).unwrap(),
    ]
}

/// A timeline's event, as the Trace Event Format has it.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    ph: String,
    name: String,
    pid: u64,
    tid: u64,
    ts: Option<f64>,
    dur: Option<f64>,
    s: Option<String>,
    args: Option<BTreeMap<String, Value>>,
}

#[test]
fn a_trace_is_in_the_trace_event_format() {
    let trace: Value = serde_json::from_str(&report::trace::render(&comparisons())).unwrap();
    assert_eq!(trace["displayTimeUnit"], "ns");
    let events: Vec<Event> = serde_json::from_value(trace["traceEvents"].clone()).unwrap();
    let mut named: BTreeSet<(u64, u64)> = BTreeSet::new();
    let mut open: BTreeMap<(u64, u64), Vec<f64>> = BTreeMap::new();
    let mut spans = 0;
    for event in &events {
        let thread = (event.pid, event.tid);
        match event.ph.as_str() {
            "M" => {
                assert!(["process_name", "thread_name"].contains(&event.name.as_str()));
                assert!(event.args.as_ref().unwrap()["name"].is_string());
                named.insert(thread);
            }
            "X" => {
                spans += 1;
                let (start, duration) = (event.ts.unwrap(), event.dur.unwrap());
                assert!(
                    duration >= 0.0 && named.contains(&thread),
                    "a span on a nameless thread"
                );
                // Spans of a thread follow or nest: Perfetto drops those that overlap partly.
                let open = open.entry(thread).or_default();
                open.retain(|end| *end > start);
                assert!(
                    open.iter().all(|end| start + duration <= *end),
                    "spans overlap partly"
                );
                open.push(start + duration);
            }
            "i" => assert_eq!(event.s.as_deref(), Some("t")),
            "C" => assert!(event.args.as_ref().unwrap()["value"].is_i64()),
            other => panic!("an event of phase {other}"),
        }
    }
    // One for each guest that each side of each point signals.
    assert_eq!(spans, (1 + 1 + 2 + 4) + 4);
    assert_eq!(report::trace::silent(&comparisons()), ["sample.gallery"]);
}

#[test]
fn csv_holds_a_row_for_each_point_and_a_column_for_each_name() {
    let (names, rows) = csv_rows(&comparisons());
    assert_eq!(rows.len(), 4 + 8);
    assert_eq!(
        names.iter().collect::<BTreeSet<_>>().len(),
        names.len(),
        "a column occurs twice"
    );
}

/// The names of the columns and the rows of the CSV file.
fn csv_rows(comparisons: &[Comparison]) -> (Vec<String>, Vec<csv::StringRecord>) {
    let text = report::csv::render(comparisons);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers().unwrap().iter().map(str::to_owned).collect();
    (names, reader.records().map(Result::unwrap).collect())
}

#[cfg(feature = "parquet")]
#[test]
fn csv_and_parquet_hold_the_same_rows() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    let comparisons = comparisons();
    let (names, rows) = csv_rows(&comparisons);
    let bytes = bytes::Bytes::from(report::parquet::render(&comparisons));
    let file = SerializedFileReader::new(bytes).unwrap();
    let mut read = 0;
    for (record, row) in file.get_row_iter(None).unwrap().zip(&rows) {
        for ((name, field), cell) in record.unwrap().get_column_iter().zip(row) {
            let position = names.iter().position(|each| each == name).unwrap();
            assert_eq!(&row[position], cell, "columns in another order");
            match field {
                Field::Null => assert_eq!(cell, "", "{name}"),
                Field::Str(text) => assert_eq!(text, cell, "{name}"),
                Field::Double(number) => assert_eq!(*number, cell.parse::<f64>().unwrap(), "{name}"),
                other => panic!("{name}: {other}"),
            }
        }
        read += 1;
    }
    assert_eq!(read, rows.len());
}

#[test]
fn json_holds_what_the_schema_says() {
    let document: Value = serde_json::from_str(&report::json::render(&comparisons())).unwrap();
    assert_eq!(document["schema"], "sidestep.compare/2");
    let gallery = &document["comparisons"][1];
    assert_eq!(gallery["nature"], "seeded");
    assert_eq!(gallery["repetitions"], 7);
    assert_eq!(gallery["inputs"][0]["value"][1], 2000);
    let point = &gallery["points"][1];
    assert_eq!(point["at"]["round-trip_ns"], 2000);
    assert_eq!(point["intervals"]["ratio"]["confidence"], 0.984375);
    assert_eq!(point["stated"][0]["quantity"], "baseline");
    assert_eq!(point["stated"][0]["is"], "value");
    assert_eq!(point["stated"][1]["verdict"], "differs");
    let kinds: Vec<&Value> = (point["drawings"].as_array().unwrap().iter())
        .map(|each| &each["kind"])
        .collect();
    assert_eq!(kinds, ["matrix", "tree", "breakdown", "breakdown"]);
    let statuses: BTreeSet<&str> = (gallery["points"].as_array().unwrap().iter())
        .map(|point| point["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, BTreeSet::from(["measured", "unavailable", "failed"]));
    assert_eq!(gallery["findings"].as_array().unwrap().len(), 3);
}

#[test]
fn markdown_has_a_line_for_each_statement() {
    let text = report::markdown::render(&comparisons());
    let lines: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(lines[0], "| experiment | the paper | ours | verdict |");
    assert!(
        lines
            .iter()
            .all(|line| line.matches(" | ").count() == 3 || line.starts_with("|---")),
        "{text}"
    );
    assert!(
        text.contains("| guests=8: ratio 1 (Sidecore III: no benefit up to 8 guests) | 1 | holds |"),
        "{text}"
    );
}

#[test]
fn markdown_has_a_section_with_every_point_counter_and_finding() {
    let comparisons = comparisons();
    let text = report::markdown::render(&comparisons);
    let sections: Vec<&str> = text.split("\n## ").skip(1).collect();
    assert_eq!(sections.len(), comparisons.len());
    for (comparison, section) in comparisons.iter().zip(sections) {
        assert!(section.starts_with(comparison.about.name), "{section}");
        let points = section.lines().skip_while(|line| !line.starts_with("| ---"));
        let points = points.skip(1).take_while(|line| line.starts_with('|'));
        assert_eq!(points.count(), comparison.rows.len(), "{section}");
        let counters = comparison.counters().into_iter().map(|(name, _)| name);
        let findings = comparison.findings.iter().map(|finding| finding.about.clone());
        let errors = comparison.rows.iter().filter_map(|row| row.result.as_ref().err());
        for said in counters.chain(findings).chain(errors.map(ToString::to_string)) {
            assert!(section.contains(&said), "no {said} in {section}");
        }
    }
}

#[cfg(feature = "parquet")]
#[test]
fn a_part_of_a_data_set_says_what_its_points_depend_on() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use report::dataset::{Points, keys, render};
    use sidestep_lab::Plan;
    use sidestep_lab::run::cache::Cache;

    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path(), "1+sources");
    let points = |request: &Request| Points {
        comparison: compare(&RedundantSignals, request).unwrap(),
        keys: Plan::new(&RedundantSignals, request).unwrap().keys(&cache),
    };
    let other = Request {
        settings: vec!["guests=1".to_owned(), "bits=4".to_owned()],
        ..Request::default()
    };
    let both = [points(&Request::default()), points(&other)];
    let part = folder.path().join("part");
    std::fs::write(&part, render(&both, "1+sources")).unwrap();
    let distinct: BTreeSet<String> = keys(&part).unwrap().into_iter().collect();
    assert_eq!(
        distinct.len(),
        5,
        "a key for each point, another for another input"
    );

    let reader = SerializedFileReader::new(std::fs::File::open(&part).unwrap()).unwrap();
    let rows: Vec<String> = (reader.get_row_iter(None).unwrap())
        .map(|row| row.unwrap().to_string())
        .collect();
    assert!(rows[0].contains(r#"version: "1+sources""#), "{}", rows[0]);
    assert!(rows[0].contains("machine: null"), "{}", rows[0]);
    assert!(rows[4].contains("in.bits: 4"), "{}", rows[4]);

    std::fs::write(&part, "no parquet").unwrap();
    let error = keys(&part).unwrap_err().to_string();
    assert!(error.contains("is no part of a data set of points"), "{error}");
}
