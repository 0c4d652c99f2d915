//! No line of Rust or Markdown is wider than the repository's width; see CONTRIBUTING.md.

use std::fs;
use std::path::{Path, PathBuf};

/// Columns of a line.
const WIDTH: usize = 120;

/// Folders that hold nothing of the repository's own.
const FOREIGN: &[&str] = &["target", ".git", "book"];

/// Every file of Rust and Markdown below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the repository can be listed") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if path.is_dir() && !FOREIGN.contains(&name) {
            sources(&path, found);
        } else if name.ends_with(".rs") || name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// Whether a line may be wider: what cannot be broken without becoming something else.
fn is_excepted(path: &Path, line: &str, is_code: bool) -> bool {
    let text = line.trim_start();
    match path.extension().is_some_and(|extension| extension == "rs") {
        // A table in a comment, a literal, or what stands in a row of a table beside one.
        true => match text.starts_with("//") {
            true => text.trim_start_matches(['/', '!', ' ']).starts_with('|'),
            false => text.contains('"'),
        },
        // A table, a transcript, a picture, a link; and the page that the command writes of itself.
        false => {
            let is_generated = path.ends_with("reference/command.md");
            is_generated || is_code || text.starts_with(['|', '!']) || !text.contains(' ')
        }
    }
}

#[test]
fn no_line_is_wider_than_the_width() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = Vec::new();
    sources(&root, &mut paths);
    assert!(paths.len() > 300, "the repository is not found");
    let mut wide = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).expect("a text");
        let mut is_code = false;
        for (index, line) in text.lines().enumerate() {
            is_code ^= line.trim_start().starts_with("```");
            if line.chars().count() > WIDTH && !is_excepted(&path, line, is_code) {
                wide.push(format!("{}:{}", path.display(), index + 1));
            }
        }
    }
    assert!(wide.is_empty(), "wider than {WIDTH} columns: {wide:#?}");
}
