//! The C preprocessor and binutils for IA-64, as everything here calls them.

use std::io;
use std::path::Path;
use std::process::{Command, Output};

/// The assembler.
const ASSEMBLER: &str = "ia64-linux-gnu-as";
/// The linker.
const LINKER: &str = "ia64-linux-gnu-ld";
/// The C preprocessor.
const PREPROCESSOR: &str = "cpp";

/// Why a tool has not done what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// A file that cannot be read or written.
    #[error("{path}: cannot be read")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A tool that is not there.
    #[error("{tool} is needed for {path}, and cannot be run (Debian: binutils-ia64-linux-gnu, cpp)")]
    NoTool {
        /// The tool.
        tool: &'static str,
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// What a tool says is wrong.
    #[error("{path}: {tool} refuses it:\n{message}")]
    Refused {
        /// The tool.
        tool: &'static str,
        /// The file.
        path: String,
        /// The tool's errors.
        message: String,
    },
}

/// The text of a source: of a `.S` file with directives, what the C preprocessor makes of it.
///
/// # Errors
/// [`ToolError`] if the file cannot be read or the preprocessor fails.
pub fn preprocess(path: &Path) -> Result<String, ToolError> {
    let read = |source| ToolError::Read {
        path: path.display().to_string(),
        source,
    };
    let bytes = sidestep_files::read(path, sidestep_files::TEXT_BYTES_MAX).map_err(read)?;
    let text = String::from_utf8(bytes).map_err(|error| read(io::Error::other(error)))?;
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
    String::from_utf8(output.stdout).map_err(|error| read(io::Error::other(error)))
}

/// Assembles a text, whose stops are the source's: the assembler adds none. `path` is what errors call it.
///
/// # Errors
/// [`ToolError`] if the assembler cannot be run or refuses the text.
pub fn assemble(text: &str, path: &Path) -> Result<Vec<u8>, ToolError> {
    let failed = |source| ToolError::Read {
        path: std::env::temp_dir().display().to_string(),
        source,
    };
    let folder = tempfile::tempdir().map_err(failed)?;
    let (source, object) = (folder.path().join("source.s"), folder.path().join("object.o"));
    std::fs::write(&source, text).map_err(failed)?;
    let mut command = Command::new(ASSEMBLER);
    // It checks them, as it does for GCC.
    command.arg("-x").arg("-o").arg(&object).arg(&source);
    let assembled = run(ASSEMBLER, &mut command, path);
    let (written, called) = (source.display().to_string(), path.display().to_string());
    assembled.map_err(|error| match error {
        ToolError::Refused { tool, path, message } => ToolError::Refused {
            tool,
            path,
            message: message.replace(&written, &called),
        },
        error => error,
    })?;
    std::fs::read(&object).map_err(failed)
}

/// Links an object file into a program without an entry point: its code from `text` on, and symbols that it lacks at
/// the addresses of `definitions`; weak ones without are zero, as in every program. `path` is what errors call it.
///
/// # Errors
/// [`ToolError`] if the linker cannot be run or refuses the object file.
pub fn link(
    object: &[u8],
    text: u64,
    definitions: &[(&str, u64)],
    path: &Path,
) -> Result<Vec<u8>, ToolError> {
    let failed = |source| ToolError::Read {
        path: std::env::temp_dir().display().to_string(),
        source,
    };
    let folder = tempfile::tempdir().map_err(failed)?;
    let (input, program) = (folder.path().join("object.o"), folder.path().join("program"));
    std::fs::write(&input, object).map_err(failed)?;
    let mut command = Command::new(LINKER);
    let symbols = definitions.iter();
    command.args(symbols.map(|(name, address)| format!("--defsym={name}={address:#x}")));
    command.args(["--unresolved-symbols=ignore-all", "-e", "0"]);
    command.arg(format!("-Ttext={text:#x}"));
    run(LINKER, command.arg("-o").arg(&program).arg(&input), path)?;
    std::fs::read(&program).map_err(failed)
}

/// Runs a tool for a file; what it says goes into the error, without the warnings around the errors.
fn run(tool: &'static str, command: &mut Command, path: &Path) -> Result<Output, ToolError> {
    let output = command.output().map_err(|source| ToolError::NoTool {
        tool,
        path: path.display().to_string(),
        source,
    })?;
    if output.status.success() {
        return Ok(output);
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let is_error = |line: &&str| line.to_ascii_lowercase().contains("error");
    let errors: Vec<&str> = text.lines().filter(is_error).collect();
    Err(ToolError::Refused {
        tool,
        path: path.display().to_string(),
        message: match errors.is_empty() {
            true => text.trim_end().to_owned(),
            false => errors.join("\n"),
        },
    })
}
