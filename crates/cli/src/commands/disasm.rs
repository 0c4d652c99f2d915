//! `sidestep disasm FILE`: the code of an IA-64 ELF file as assembly text, laid out as `objdump -d` does; and the text
//! of a FUCE image.

mod fuce;
mod groups;
mod listing;

use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use sidestep_symbols::{Image, ImageError, Symbol, SymbolTable, proposal};

use super::Outcome;

/// Print the instructions of an IA-64 program, library or object file, or of a FUCE image.
#[derive(Args)]
pub struct Disasm {
    /// An ELF file for IA-64, or a FUCE image.
    file: PathBuf,
    /// Only the function or label of this name.
    #[arg(long, value_name = "NAME")]
    symbol: Option<String>,
    /// Not the instructions, but those that depend on each other inside an instruction group, which the architecture
    /// leaves undefined and emulators hide. The exit code is 1 if there are any that do not hang on values of a run.
    #[arg(long)]
    check_groups: bool,
}

/// Why a file cannot be disassembled.
#[derive(Debug, thiserror::Error)]
enum DisasmError {
    #[error("{path}: cannot be read")]
    Read { path: String, source: io::Error },
    #[error("{path}")]
    Image { path: String, source: ImageError },
    #[error("{path}")]
    Fuce {
        path: String,
        source: sidestep_fuce::image::ImageError,
    },
    #[error("{path}: no symbol `{name}` in its code; {}", proposal(.near))]
    NoSymbol {
        path: String,
        name: String,
        near: Vec<String>,
    },
    #[error("{path}: a FUCE image has no instruction groups; --check-groups is for IA-64")]
    NoGroups { path: String },
    #[error("the listing cannot be written")]
    Write(#[from] io::Error),
}

impl Disasm {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let mut out = BufWriter::new(io::stdout().lock());
        match self
            .list(&mut out)
            .and_then(|code| out.flush().map(|()| code).map_err(DisasmError::from))
        {
            // Whoever reads the listing has read enough.
            Err(DisasmError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
            other => Ok(other?),
        }
    }

    fn list(&self, out: &mut dyn Write) -> Result<ExitCode, DisasmError> {
        let path = self.file.display().to_string();
        let bytes = sidestep_files::read(&self.file, sidestep_files::IMAGE_BYTES_MAX).map_err(|source| {
            DisasmError::Read {
                path: path.clone(),
                source,
            }
        })?;
        if sidestep_fuce::image::Image::is_image(&bytes) {
            if self.check_groups {
                return Err(DisasmError::NoGroups { path });
            }
            fuce::list(&path, &bytes, self.symbol.as_deref(), out)?;
            return Ok(ExitCode::SUCCESS);
        }
        let image = Image::parse(&bytes).map_err(|source| DisasmError::Image {
            path: path.clone(),
            source,
        })?;
        let symbols = SymbolTable::new(&image);
        if self.check_groups {
            if let Some(name) = self
                .symbol
                .as_ref()
                .filter(|name| symbols.named(name).next().is_none())
            {
                let (name, near) = (name.clone(), symbols.nearest(name));
                return Err(DisasmError::NoSymbol { path, name, near });
            }
            let count = groups::check(&image, &symbols, self.symbol.as_deref(), out)?;
            return Ok(ExitCode::from(u8::from(count.certain > 0)));
        }
        match &self.symbol {
            None => {
                write!(out, "\n{path}:     file format {}\n\n", image.format)?;
                for section in &image.sections {
                    listing::section(section, &symbols, out)?;
                }
            }
            Some(name) => {
                let found: Vec<&Symbol> = symbols.named(name).collect();
                if found.is_empty() {
                    let (name, near) = (name.clone(), symbols.nearest(name));
                    return Err(DisasmError::NoSymbol { path, name, near });
                }
                write!(out, "\n{path}:     file format {}\n\n", image.format)?;
                for symbol in found {
                    listing::symbol(symbol, &image, &symbols, out)?;
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
