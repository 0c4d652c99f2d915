//! Reports and recordings as JSON files.

use std::error::Error;
use std::path::Path;

use serde::Serialize;

/// Writes a report whole, or not at all.
pub fn write(path: &Path, report: &impl Serialize) -> Result<(), Box<dyn Error>> {
    let text = serde_json::to_string_pretty(report)?;
    Ok(sidestep_files::write(path, (text + "\n").as_bytes())?)
}
