//! Every result of the papers is judged by an experiment, or says why not.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use sidestep_experiments::all;
use sidestep_experiments::papers::{Judged, PaperResult, RESULTS};

fn book(page: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/src/reference")
        .join(page)
}

#[test]
fn who_judges_a_result_has_a_row_of_it_among_the_stored_results() {
    let stored = fs::read_to_string(book("results.md")).expect("the page of results");
    let names: Vec<&str> = all().iter().map(|experiment| experiment.about().name).collect();
    for result in RESULTS {
        let Judged::By(experiment, text) = result.judged else {
            continue;
        };
        assert!(names.contains(&experiment), "{result:?}");
        let row = format!("| `{experiment}` |");
        let has_row = stored
            .lines()
            .any(|line| line.starts_with(&row) && line.contains(text));
        assert!(has_row, "no row of {experiment} has `{text}`: {result:?}");
    }
}

#[test]
fn a_result_is_listed_once() {
    let mut seen = BTreeSet::new();
    for result in RESULTS {
        assert!(
            seen.insert((result.paper, result.place, result.of)),
            "twice: {result:?}"
        );
    }
}

/// The variable that writes the page instead of comparing it.
const UPDATE: &str = "SIDESTEP_UPDATE";

#[test]
fn the_books_page_of_what_is_not_judged_is_that_of_the_list() {
    let rows = RESULTS.iter().filter_map(|result| match result.judged {
        Judged::Nobody(reason) => Some(row(result, reason)),
        Judged::By(..) => None,
    });
    let page = format!(
        "# What is not judged\n\nResults of the papers that no experiment holds its own against, and why. A test keeps \
         the list complete.\n\n| paper | place | of | the paper | why not |\n|---|---|---|---|---|\n{}",
        rows.collect::<String>()
    );
    let path = book("unjudged.md");
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, &page).expect("the book can be written");
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/src/reference/unjudged.md is not what the list says; write it with \
         {UPDATE}=1 cargo test -p sidestep-experiments papers"
    );
}

fn row(result: &PaperResult, reason: &str) -> String {
    let of = result
        .of
        .iter()
        .filter(|part| !part.is_empty())
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    format!(
        "| {} | {} | {of} | {} | {reason} |\n",
        result.paper, result.place, result.value
    )
}

/// The papers' figures as data, where they are at hand: tables whose rows say whether they are results.
#[test]
fn every_result_of_the_collections_is_in_the_list() {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|folder| folder.join("shared/reference"));
    let Some(folder) = folders.find(|folder| folder.is_dir()) else {
        tests_need::leave_out(
            "the papers' figures as data are not here (shared/reference in a folder above)",
        );
        return;
    };
    let keys: [(&str, &[&str]); 5] = [
        ("itanium_pipeline_facts", &["", "fact"]),
        ("cefos_results", &["figure", "row"]),
        ("coscheduling_results", &["figure", "row"]),
        ("sidecore_results", &["figure", "row"]),
        ("itanium_results", &["table", "row", "column"]),
    ];
    for (collection, columns) in keys {
        let text = fs::read_to_string(folder.join(collection).with_extension("csv")).expect("a table");
        for row in results(&text) {
            let part = |column: &str| {
                row.iter()
                    .find(|(name, _)| name == column)
                    .map_or("", |(_, cell)| cell.as_str())
            };
            let [place, of @ ..] = columns else {
                unreachable!("a place and a row")
            };
            let number: String = part(place).chars().filter(char::is_ascii_digit).collect();
            let is_listed = RESULTS.iter().any(|result| {
                let same_place = number.is_empty() || result.place.rsplit(' ').next() == Some(&number);
                let same = of.iter().zip(result.of).all(|(column, of)| part(column) == of);
                result.collection == collection && same_place && same && result.value == part("value")
            });
            assert!(is_listed, "{collection}: not in the list: {row:?}");
        }
    }
}

/// The rows of a table whose role is to be a result, each cell with its column.
fn results(text: &str) -> Vec<Vec<(String, String)>> {
    let mut lines = text.lines().map(cells);
    let heading = lines.next().unwrap_or_default();
    let rows = lines.map(|cells| heading.iter().cloned().zip(cells).collect::<Vec<_>>());
    rows.filter(|row| {
        row.iter()
            .any(|(column, cell)| column == "role" && cell == "result")
    })
    .collect()
}

/// The cells of a line of comma-separated values, some of them between quotes.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            letter => cells.last_mut().expect("a cell").push(letter),
        }
    }
    cells
}
