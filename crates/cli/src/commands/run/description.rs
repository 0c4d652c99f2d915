//! Descriptions of machines: reading the file, and errors with a suggestion for a mistyped key.

use std::error::Error;

use serde::de::DeserializeOwned;
use sidestep_lab::suggest::nearest;
use sidestep_vmm::description;

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
