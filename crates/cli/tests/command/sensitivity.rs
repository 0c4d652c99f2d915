//! `sidestep sensitivity` as a user meets it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// An analysis of a moment.
const QUICK: &[&str] = &[
    "sensitivity",
    "sidecore.calls",
    "--quick",
    "--set",
    "operation=map",
    "--set",
    "count=20",
    "--set",
    "transfer=350",
    "--pairs",
    "2",
];

fn run(cache: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidestep"));
    command
        .env("XDG_CACHE_HOME", cache)
        .args(arguments)
        .output()
        .expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[test]
fn an_analysis_says_what_turns_the_verdict_with_the_same_bytes_however_it_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("page.html");
    let once = |jobs: &str| {
        let further = [
            "--jobs",
            jobs,
            "--format",
            "json",
            "--html",
            page.to_str().expect("UTF-8"),
        ];
        let output = run(folder.path(), &[QUICK, &further].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        (output.stdout, fs::read(&page).expect("the page"))
    };
    let first = once("1");
    assert_eq!(first, once("2"), "from the cache");
    fs::remove_dir_all(folder.path().join("sidestep")).expect("the cache is there");
    assert_eq!(first, once("3"), "anew");
    let document: Value = serde_json::from_slice(&first.0).expect("JSON");
    assert_eq!(document["schema"], "sidestep.sensitivity/1");
    let analysis = &document["analyses"][0];
    assert!(
        analysis["command"]
            .as_str()
            .expect("a text")
            .contains("--set transfer=350")
    );
    let claim = &analysis["claims"][0];
    assert_eq!(claim["verdict"], "differs");
    let crossing = &claim["crossings"][0];
    assert_eq!(crossing["input"], "transfer");
    let (keeps, turns) = (crossing["keeps"].as_u64(), crossing["turns"].as_u64());
    assert!(
        keeps < turns && keeps >= Some(350) && turns <= Some(700),
        "{crossing}"
    );
    assert!(
        claim["stands"]
            .as_str()
            .expect("a sentence")
            .starts_with("differs for `transfer` from 175 to ")
    );
}

#[test]
fn every_format_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let charts = folder.path().join("charts");
    let write = |format: &str| {
        let further = ["--format", format, "--charts", charts.to_str().expect("UTF-8")];
        let output = run(folder.path(), &[QUICK, &further].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    assert!(write("table").starts_with("sidecore.calls: "));
    assert!(write("csv").starts_with("schema,experiment,claim,"));
    assert!(write("markdown").starts_with("| experiment | of | ours | turns |\n"));
    let chart = fs::read_to_string(charts.join("sidecore.calls-sensitivity-1.svg")).expect("a chart");
    assert!(
        chart.starts_with("<svg") && chart.contains(">transfer<"),
        "{chart}"
    );
}

#[test]
fn what_is_wrong_is_said_in_one_line_before_any_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = |arguments: &[&str]| {
        let output = run(folder.path(), &[&["sensitivity"], arguments].concat());
        assert!(
            !output.status.success() && output.stdout.is_empty(),
            "{arguments:?}"
        );
        text(&output.stderr).lines().next().unwrap_or_default().to_owned()
    };
    assert!(error(&["sidecore.call"]).contains("did you mean `sidecore.calls`?"));
    assert!(error(&["zerowait.tasks"]).contains("zerowait.tasks: measured on this host"));
    assert!(error(&["gang.groups", "--set", "t=1"]).contains("gang.groups has no input `t`"));
    assert!(
        error(&["sidecore.calls", "--set", "transfer=much"])
            .contains("`transfer` must be a number of cycles")
    );
    assert!(error(&["gang.groups", "--factor", "1"]).contains("invalid value '1'"));
    let missing = folder.path().join("missing/page.html");
    assert!(error(&["gang.groups", "--html", missing.to_str().expect("UTF-8")]).contains("cannot write"));
    assert!(
        !folder.path().join("sidestep").exists(),
        "a point ran all the same"
    );
}
