//! The book in `docs/`: every page is in its table of contents, and every link inside it leads somewhere.

use std::fs;
use std::path::{Path, PathBuf};

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
    let readme = source().join("../../README.md");
    for page in pages(&source()).into_iter().chain([readme]) {
        let text = fs::read_to_string(&page).unwrap();
        for target in targets(&text) {
            let place = page.parent().unwrap().join(target);
            assert!(place.exists(), "{}: {target} leads nowhere", page.display());
        }
    }
}
