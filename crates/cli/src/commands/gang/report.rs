//! Reports as JSON files.

use std::fs;
use std::path::Path;

use serde::Serialize;

/// Writes a report: whole, or an error that names the file.
pub fn write(path: &Path, report: &impl Serialize) -> Result<(), String> {
    let text =
        serde_json::to_string_pretty(report).map_err(|error| format!("cannot write the report: {error}"))?;
    fs::write(path, text + "\n").map_err(|error| format!("cannot write {}: {error}", path.display()))
}
