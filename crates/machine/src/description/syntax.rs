//! Reading a description: from TOML to a structure, or to an error that names the place.

use serde::de::DeserializeOwned;
use thiserror::Error;

/// A key that no description of this kind has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKey {
    /// The key as written.
    pub key: String,
    /// The keys that could stand there.
    pub known: Vec<String>,
}

/// What is wrong with a description as a text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct DescriptionError {
    /// The file, as the caller names it.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// If it is a key that is not known: for a suggestion.
    pub unknown: Option<UnknownKey>,
}

/// Reads a description of one kind; `file` names it in errors.
///
/// # Errors
/// What is wrong first, and where.
pub fn parse<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, DescriptionError> {
    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let before = text.get(..start).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let message = in_words(&error.message().lines().collect::<Vec<_>>().join(", "));
        DescriptionError {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            unknown: unknown_key(&message),
            message,
        }
    })
}

/// How serde's messages name kinds of values, and how a file's writer does.
const WORDS: &[(&str, &str)] = &[
    (" as i128", ""),
    ("expected usize", "expected a whole number from 0 on"),
    ("expected u64", "expected a whole number from 0 on"),
    ("invalid type: map", "invalid type: a table"),
    ("invalid type: sequence", "invalid type: an array"),
    (
        "expected a sequence",
        "expected an array, as `[[name]]` tables make one",
    ),
    ("expected path string", "expected a path as a string"),
];

/// A message of serde's in the words of TOML.
fn in_words(message: &str) -> String {
    let message = WORDS.iter().fold(message.to_owned(), |message, (theirs, ours)| {
        message.replace(theirs, ours)
    });
    // What a table is called in the program means nothing to a file's writer.
    match message.split_once("expected struct ") {
        Some((before, _)) => format!("{before}expected a table"),
        None => message,
    }
}

/// The key and the alternatives in serde's message on an unknown field: ``unknown field `a`, expected `b` or `c` ``.
fn unknown_key(message: &str) -> Option<UnknownKey> {
    let rest = message.strip_prefix("unknown field ")?;
    let mut names = rest.split('`').skip(1).step_by(2).map(str::to_owned);
    Some(UnknownKey {
        key: names.next()?,
        known: names.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only whether it parses matters")]
    struct Sample {
        size: u32,
        start: u32,
    }

    #[test]
    fn errors_name_line_and_column() {
        let error = parse::<Sample>("a.toml", "size = 1\nstart = 'x'\n").expect_err("no number");
        assert_eq!((error.line, error.column), (2, 9));
        assert!(error.to_string().starts_with("a.toml:2:9: "), "{error}");
        assert_eq!(error.unknown, None);
    }

    #[test]
    fn kinds_of_values_are_said_in_the_words_of_toml() {
        #[derive(Debug, Deserialize)]
        #[allow(dead_code, reason = "only whether it parses matters")]
        struct Kinds {
            count: Option<usize>,
            ranges: Option<Vec<Sample>>,
            file: Option<std::path::PathBuf>,
        }
        for (text, expected) in [
            (
                "count = -1",
                "invalid value: integer `-1`, expected a whole number from 0 on",
            ),
            (
                "count = 'x'",
                "invalid type: string \"x\", expected a whole number from 0 on",
            ),
            (
                "count = 99999999999999999999",
                "invalid type: integer `99999999999999999999`, expected a whole number from 0 on",
            ),
            (
                "[ranges]\nsize = 1",
                "invalid type: a table, expected an array, as `[[name]]` tables make one",
            ),
            ("file = []", "invalid type: an array, expected a path as a string"),
        ] {
            let error = parse::<Kinds>("a.toml", text).expect_err("a wrong kind");
            assert_eq!(error.message, expected);
        }
    }

    #[test]
    fn an_unknown_key_comes_with_the_known_ones() {
        let error = parse::<Sample>("a.toml", "sizes = 1\n").expect_err("unknown");
        let unknown = error.unknown.expect("an unknown key");
        assert_eq!(unknown.key, "sizes");
        assert_eq!(unknown.known, ["size", "start"]);
    }
}
