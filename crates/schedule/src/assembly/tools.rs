//! The C preprocessor and GNU as.

use std::path::Path;
use std::process::{Command, Output};

use super::AssemblyError;

/// The assembler.
const ASSEMBLER: &str = "ia64-linux-gnu-as";
/// The C preprocessor.
const PREPROCESSOR: &str = "cpp";

/// The text of a source: of a `.S` file with directives, what the C preprocessor makes of it.
///
/// # Errors
/// [`AssemblyError`] if the file cannot be read or the preprocessor fails.
pub fn preprocess(path: &Path) -> Result<String, AssemblyError> {
    let read = |source| AssemblyError::Read {
        path: path.display().to_string(),
        source,
    };
    let bytes = std::fs::read(path).map_err(read)?;
    let text = String::from_utf8(bytes).map_err(|error| read(std::io::Error::other(error)))?;
    let is_preprocessed = path.extension().is_some_and(|extension| extension == "S");
    let has_directives = text.lines().any(|line| line.trim_start().starts_with('#'));
    if !is_preprocessed || !has_directives {
        return Ok(text);
    }
    let mut command = Command::new(PREPROCESSOR);
    // Comments stay; nothing of the host comes in.
    command.args([
        "-C",
        "-ffreestanding",
        "-undef",
        "-x",
        "assembler-with-cpp",
        "-D__ASSEMBLER__",
        "-D__ia64__",
    ]);
    let output = run(PREPROCESSOR, command.arg(path), path)?;
    String::from_utf8(output.stdout).map_err(|error| read(std::io::Error::other(error)))
}

/// Assembles a text; `path` is for messages.
///
/// # Errors
/// [`AssemblyError`] if the assembler cannot be run or refuses the text.
pub fn assemble(text: &str, path: &Path) -> Result<Vec<u8>, AssemblyError> {
    let failed = |source| AssemblyError::Read {
        path: std::env::temp_dir().display().to_string(),
        source,
    };
    let folder = tempfile::tempdir().map_err(failed)?;
    let (source, object) = (folder.path().join("source.s"), folder.path().join("object.o"));
    std::fs::write(&source, text).map_err(failed)?;
    let mut command = Command::new(ASSEMBLER);
    // Stops are the source's, as GCC has its output assembled; the assembler adds none.
    run(
        ASSEMBLER,
        command.arg("-x").arg("-o").arg(&object).arg(&source),
        path,
    )?;
    std::fs::read(&object).map_err(failed)
}

fn run(tool: &'static str, command: &mut Command, path: &Path) -> Result<Output, AssemblyError> {
    let output = command.output().map_err(|source| AssemblyError::NoTool {
        tool,
        path: path.display().to_string(),
        source,
    })?;
    if output.status.success() {
        return Ok(output);
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let errors: Vec<&str> = text
        .lines()
        .filter(|line| line.to_ascii_lowercase().contains("error"))
        .collect();
    Err(AssemblyError::Tool {
        path: path.display().to_string(),
        message: match errors.is_empty() {
            true => text.trim_end().to_owned(),
            false => errors.join("\n"),
        },
    })
}
