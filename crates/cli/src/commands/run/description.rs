//! Descriptions of machines: reading the file, and errors with a suggestion for a mistyped key.

use std::collections::BTreeMap;
use std::error::Error;

use serde::de::{DeserializeOwned, IgnoredAny};
use sidestep_lab::suggest::nearest;
use sidestep_machine::description;

/// Reads a description of one kind; `path` names it in errors.
pub fn parse<T: DeserializeOwned>(path: &str, text: &str) -> Result<T, Box<dyn Error>> {
    description::parse(path, text).map_err(|error| {
        let Some(unknown) = &error.unknown else {
            return error.into();
        };
        let place = format!("{}:{}:{}", error.file, error.line, error.column);
        let advice = match nearest(&unknown.key, unknown.known.iter().map(String::as_str)) {
            Some(known) => format!("did you mean `{known}`?"),
            None => format!("known here: {}", unknown.known.join(", ")),
        };
        format!("{place}: unknown key `{}` ({advice})", unknown.key).into()
    })
}

/// Whether a description's top level has one of these tables: that decides what it is of. A text that is no TOML has
/// none; whatever reads it says what is wrong with it.
pub fn has_table(text: &str, names: &[&str]) -> bool {
    description::parse::<BTreeMap<String, IgnoredAny>>("", text)
        .is_ok_and(|tables| names.iter().any(|name| tables.contains_key(*name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_however_they_are_written() {
        for text in [
            "[kernel] # a comment",
            "[ kernel ]",
            "kernel.file = 'vmlinux'",
            "kernel = { file = 'vmlinux' }",
        ] {
            assert!(has_table(text, &["host", "kernel"]), "{text}");
        }
        for text in ["", "[machine]", "[machine]\nkernel = 1", "# [kernel]", "[kernel"] {
            assert!(!has_table(text, &["host", "kernel"]), "{text}");
        }
    }
}
