//! `sidestep assemble`: from FUCE assembly to an image that `sidestep run` boots.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use sidestep_fuce::assembler;

use super::Outcome;

/// Assemble a program for FUCE, the processor that schedules zero-wait threads.
///
/// The image runs with `sidestep run IMAGE` and lists with `sidestep disasm IMAGE`. The instruction set and the
/// assembler's directives are described in the book under "FUCE".
#[derive(Args)]
pub struct Assemble {
    /// The source.
    source: PathBuf,
    /// Where the image goes [default: the source's name with `.fuce`].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Define a constant, as `.equ` does (may be repeated).
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE", value_parser = parse_define)]
    define: Vec<(String, i64)>,
    /// Look here for included files, after the source's own folder (may be repeated).
    #[arg(short = 'I', long = "include", value_name = "DIR")]
    include: Vec<PathBuf>,
    /// Write addresses and bytes beside the source lines to this file.
    #[arg(short, long, value_name = "FILE")]
    listing: Option<PathBuf>,
}

/// A constant's name and value; the value is decimal or `0x` hexadecimal, and 1 when it is left out.
fn parse_define(text: &str) -> Result<(String, i64), String> {
    let (name, value) = text.split_once('=').unwrap_or((text, "1"));
    let number = match value.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16),
        None => value.parse(),
    };
    match number {
        Ok(number) if !name.is_empty() => Ok((name.to_owned(), number)),
        _ => Err("must be NAME or NAME=NUMBER".to_owned()),
    }
}

impl Assemble {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let read = |path: &Path| sidestep_files::read_text(path, sidestep_files::IMAGE_BYTES_MAX);
        let name = self.source.display().to_string();
        let source = read(&self.source).map_err(|error| format!("{name}: cannot be read: {error}"))?;
        let beside = self.source.parent().map(Path::to_path_buf).unwrap_or_default();
        let folders: Vec<PathBuf> = std::iter::once(beside).chain(self.include).collect();
        let include = |wanted: &str| folders.iter().find_map(|folder| read(&folder.join(wanted)).ok());
        let constants = BTreeMap::from_iter(self.define);
        let assembly = assembler::assemble(&name, &source, &constants, &include)?;
        let target = self.output.unwrap_or_else(|| self.source.with_extension("fuce"));
        if target == self.source {
            return Err(
                format!("{name}: the image would replace its source; name another with --output").into(),
            );
        }
        sidestep_files::write(&target, &assembly.image.to_bytes())?;
        if let Some(listing) = &self.listing {
            sidestep_files::write(listing, assembly.listing.as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
