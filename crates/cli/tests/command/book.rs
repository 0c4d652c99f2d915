//! The book in `docs/`: every page is in its table of contents, every link inside it leads somewhere, and what the
//! README and the pages say came out is what is stored under "Results", which in turn is what the command says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src")
}

/// Every page below a folder.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(pages(&path)),
            false if path.extension().is_some_and(|extension| extension == "md") => found.push(path),
            false => {}
        }
    }
    found.sort();
    found
}

/// The targets of a page's links and pictures that are neither on another host nor in the page itself.
fn targets(page: &str) -> impl Iterator<Item = &str> {
    page.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|target| !target.contains("://") && !target.starts_with('#'))
        .map(|target| target.split('#').next().unwrap_or(target))
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let summary = fs::read_to_string(source().join("SUMMARY.md")).unwrap();
    let listed: Vec<PathBuf> = targets(&summary).map(|target| source().join(target)).collect();
    for page in pages(&source()) {
        let is_summary = page.file_name().is_some_and(|name| name == "SUMMARY.md");
        assert!(
            is_summary || listed.contains(&page),
            "{} is not in SUMMARY.md",
            page.display()
        );
    }
}

#[test]
fn every_link_leads_somewhere() {
    let roots = ["README", "ARCHITECTURE", "CONTRIBUTING", "CHANGELOG", "SECURITY"];
    let roots = roots.map(|page| source().join(format!("../../{page}.md")));
    for page in pages(&source()).into_iter().chain(roots) {
        let text = fs::read_to_string(&page).unwrap();
        for target in targets(&text) {
            let place = page.parent().unwrap().join(target);
            assert!(place.exists(), "{}: {target} leads nowhere", page.display());
        }
    }
}

/// What a verdict may be.
const VERDICTS: [&str; 7] = [
    "holds",
    "differs",
    "checked input",
    "other reading",
    "beyond the paper",
    "not judged",
    "not stated",
];

/// The rows of a page's tables of results: those that begin with an experiment's name and have a verdict in their
/// fourth cell. The README's have a fifth, which is left out here.
fn results(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter_map(|line| {
        line.starts_with("| `").then_some(())?;
        let end = VERDICTS.iter().filter_map(|verdict| {
            let cell = format!("| {verdict} |");
            Some(line.find(&cell)? + cell.len())
        });
        Some(&line[..end.min()?])
    })
}

/// The cells of a row.
fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split(" | ").map(str::trim).collect()
}

/// Rows of what turns a verdict: experiment, what it is of, ours, and the sentence.
fn turns(page: &str) -> impl Iterator<Item = &str> {
    let is_one = |line: &&str| {
        let cells = cells(line);
        let [experiment, _, _, sentence] = cells[..] else {
            return false;
        };
        let begins = |word: &str| {
            let rest = sentence.strip_prefix(word);
            rest.is_some_and(|rest| {
                [" for ", " whatever ", ", but "]
                    .iter()
                    .any(|next| rest.starts_with(next))
            })
        };
        experiment.starts_with('`') && ["holds", "differs"].into_iter().any(begins)
    };
    page.lines().filter(is_one)
}

/// The experiment of a row.
fn name(row: &str) -> &str {
    row.split('`').nth(1).unwrap_or_default()
}

fn stored_results() -> String {
    fs::read_to_string(source().join("reference/results.md")).unwrap()
}

/// Of experiments whose results are stored; those that are measured come out differently each time.
#[test]
fn every_result_that_a_page_states_is_a_stored_one() {
    let stored = stored_results();
    let readme = source().join("../../README.md");
    let mut seen = 0;
    for page in pages(&source()).into_iter().chain([readme]) {
        let text = fs::read_to_string(&page).unwrap();
        for row in results(&text).filter(|row| results(&stored).any(|other| name(other) == name(row))) {
            let is_stored = results(&stored).any(|other| other == row);
            assert!(
                is_stored,
                "{}: not among the stored results: {row}",
                page.display()
            );
            seen += 1;
        }
    }
    assert!(seen > 0, "no page states a result");
}

#[test]
fn what_turns_a_verdict_on_a_page_is_what_was_found() {
    let found = fs::read_to_string(source().join("reference/sensitivity.md")).unwrap();
    for page in pages(&source()) {
        let text = fs::read_to_string(&page).unwrap();
        for row in turns(&text) {
            let is_found = turns(&found).any(|other| other == row);
            assert!(
                is_found,
                "{}: not on the page of what turns verdicts: {row}",
                page.display()
            );
        }
    }
    // Each row of the README says what would turn it.
    let readme = fs::read_to_string(source().join("../../README.md")).unwrap();
    for row in results(&readme) {
        let line = readme.lines().find(|line| line.starts_with(row)).unwrap();
        let [experiment, paper, _, _, said] = cells(line)[..] else {
            panic!("the README does not say what turns: {line}")
        };
        let is_found = turns(&found)
            .map(cells)
            .any(|other| other[0] == experiment && paper.starts_with(other[1]) && other[3] == said);
        assert!(is_found, "not what was found: {line}");
    }
}

/// How many of a page's results end with a verdict.
fn verdicts(page: &str, verdict: &str) -> usize {
    results(page)
        .filter(|row| row.ends_with(&format!("| {verdict} |")))
        .count()
}

#[test]
fn the_readme_shows_ten_results_and_of_what_differs_no_smaller_a_part() {
    let readme = fs::read_to_string(source().join("../../README.md")).unwrap();
    let stored = stored_results();
    let [holding, differing] = ["holds", "differs"].map(|verdict| verdicts(&stored, verdict));
    let words = readme.split_whitespace().collect::<Vec<_>>().join(" ");
    let counted = format!("{holding} hold and {differing} differ");
    assert!(words.contains(&counted), "`{counted}` is not in the README");
    assert_eq!(results(&readme).count(), 10);
    assert!(verdicts(&readme, "differs") * (holding + differing) >= differing * 10);
}

/// The fastest experiment stands for the others, which `suites/results/run` repeats.
#[test]
fn a_stored_result_is_what_the_command_says() {
    let output = Command::new(env!("CARGO_BIN_EXE_sidestep"))
        .args(["compare", "gang.groups", "--no-cache", "--format", "markdown"])
        .output()
        .expect("the command starts");
    let said = String::from_utf8(output.stdout).unwrap();
    let stored = stored_results();
    let stored: Vec<&str> = results(&stored)
        .filter(|row| row.starts_with("| `gang.groups`"))
        .collect();
    assert_eq!(results(&said).collect::<Vec<_>>(), stored);
}
