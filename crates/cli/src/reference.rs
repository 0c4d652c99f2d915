//! The book's page on the command line, written from the arguments' own definitions.

use std::path::Path;
use std::{env, fs};

use clap_markdown::MarkdownOptions;

use crate::Arguments;

/// The environment variable that writes the page instead of comparing it.
const UPDATE: &str = "SIDESTEP_UPDATE";

#[test]
fn the_books_page_is_what_the_command_says() {
    let options = MarkdownOptions::new()
        .title("The command line".to_owned())
        .show_footer(false);
    let said = clap_markdown::help_markdown_custom::<Arguments>(&options);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/reference/command.md");
    if env::var_os(UPDATE).is_some() {
        fs::create_dir_all(page.parent().expect("a folder")).expect("the book can be written");
        fs::write(&page, &said).expect("the book can be written");
    }
    let written = fs::read_to_string(&page).unwrap_or_default();
    assert!(
        written == said,
        "docs/src/reference/command.md is not what the command says; write it with \
         {UPDATE}=1 cargo test -p sidestep reference"
    );
}
