//! `sidestep explain FILE`: in which cycle each instruction of a piece of assembly issues, to which port, and what it
//! waits for.
//!
//! The table is static: the code runs from its first bundle to its last, no branch taken, every predicate on, with
//! its own lines in the caches and every load a hit. What a program really does is for `exec --timing --profile`.
//! Assembly source is assembled by binutils' `ia64-linux-gnu-as` first; object files and programs are read as they are.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;

use clap::Args;
use sidestep_ia64::encoding::{Bundle, NoSymbols};
use sidestep_ia64::execution::{Observer, Retired};
use sidestep_ia64::{Access, AddressSpace, HostPage, Processor, Refusal, VirtualAddress};
use sidestep_itanium2::profile::Group;
use sidestep_itanium2::{Counters, Parameters, Pipeline};

use super::Outcome;
use super::disasm::image::{Image, ImageError, Section};
use super::disasm::symbols::{Symbol, SymbolTable};
use super::perf::parse_processor;

/// The assembler for source files.
const ASSEMBLER: &str = "ia64-linux-gnu-as";
/// Cycles that the pipeline rests between the pass that warms the caches and the one that is shown.
const REST: u64 = 200;

/// Show cycle by cycle what issues where and what stalls on what.
#[derive(Args)]
pub struct Explain {
    /// Assembly source (.S, .s), an object file, or a program, for IA-64
    file: PathBuf,
    /// Only the function or label of this name
    #[arg(long, value_name = "NAME")]
    function: Option<String>,
    /// The processor
    #[arg(long, value_name = "PROCESSOR", default_value = "itanium2", value_parser = parse_processor)]
    timing: Parameters,
}

#[derive(Debug, thiserror::Error)]
enum ExplainError {
    #[error("{path}: cannot be read")]
    Read { path: String, source: std::io::Error },
    #[error("{path}")]
    Image { path: String, source: ImageError },
    #[error(
        "{ASSEMBLER} is needed to assemble {path}, and cannot be run (Debian: binutils-ia64-linux-gnu); or give an object file"
    )]
    NoAssembler { path: String, source: std::io::Error },
    #[error("{path}: does not assemble:\n{message}")]
    Assemble { path: String, message: String },
    #[error("{path}: no symbol `{name}` in its code; the nearest names are {near}")]
    NoSymbol {
        path: String,
        name: String,
        near: String,
    },
    #[error("{path}: holds no code")]
    Empty { path: String },
}

impl Explain {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let bytes = self.object()?;
        let path = self.file.display().to_string();
        let image = Image::parse(&bytes).map_err(|source| ExplainError::Image {
            path: path.clone(),
            source,
        })?;
        let symbols = SymbolTable::new(&image);
        let mut text = String::new();
        match &self.function {
            Some(name) => {
                let found: Vec<&Symbol> = symbols.named(name).collect();
                if found.is_empty() {
                    let near = symbols.nearest(name).join(", ");
                    let name = name.clone();
                    return Err(ExplainError::NoSymbol { path, name, near }.into());
                }
                for symbol in found {
                    if let Some(section) = image.sections.iter().find(|section| symbol.is_in(section)) {
                        self.explain(
                            &mut text,
                            &symbol.name,
                            section,
                            extent(symbol, section, &symbols),
                        );
                    }
                }
            }
            None if image.sections.is_empty() => return Err(ExplainError::Empty { path }.into()),
            None => {
                for section in &image.sections {
                    self.explain(&mut text, &section.name, section, 0..section.data.len());
                }
            }
        }
        super::print(text.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }

    /// The bytes of the object file or program.
    fn object(&self) -> Result<Vec<u8>, ExplainError> {
        let path = self.file.display().to_string();
        let is_source = self
            .file
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("s"));
        let read = |file: &Path| {
            std::fs::read(file).map_err(|source| ExplainError::Read {
                path: file.display().to_string(),
                source,
            })
        };
        if !is_source {
            return read(&self.file);
        }
        read(&self.file)?;
        let object = std::env::temp_dir().join(format!("sidestep-explain-{}.o", std::process::id()));
        let output = Command::new(ASSEMBLER)
            .arg("-x")
            .arg("-o")
            .arg(&object)
            .arg(&self.file)
            .output()
            .map_err(|source| ExplainError::NoAssembler {
                path: path.clone(),
                source,
            })?;
        let bytes = read(&object);
        let _ = std::fs::remove_file(&object);
        if !output.status.success() {
            return Err(ExplainError::Assemble {
                path,
                message: String::from_utf8_lossy(&output.stderr).trim_end().to_owned(),
            });
        }
        bytes
    }

    fn explain(&self, text: &mut String, name: &str, section: &Section<'_>, range: std::ops::Range<usize>) {
        let (groups, counters) = time(&self.timing, section, range);
        let _ = writeln!(text, "{name} on {}:\n", self.timing.description);
        let _ = writeln!(text, "{:>6}  {:<5} instruction", "cycle", "port");
        let Some(first) = groups.first().map(|group| group.cycle) else {
            return;
        };
        for group in &groups {
            for (stall, length, owner) in group.bubbles.iter().filter(|_| group.cycle != first) {
                let plural = if *length == 1 { "" } else { "s" };
                let name = stall.event().name();
                let _ = writeln!(
                    text,
                    "{:>13} {length} bubble{plural}: {name} (bundle {owner:x})",
                    ""
                );
            }
            for (index, issued) in group.instructions.iter().enumerate() {
                let cycle = if index == 0 {
                    (group.cycle - first).to_string()
                } else {
                    String::new()
                };
                let line = instruction_text(section, issued.ip, issued.slot);
                let (port, place) = (
                    issued.port.to_string(),
                    format!("{:x}.{}", issued.ip, issued.slot),
                );
                let _ = writeln!(text, "{cycle:>6}  {port:<5} {place:>8}  {line}");
            }
        }
        let _ = writeln!(text, "\n{counters}");
    }
}

/// The offsets of a symbol's bytes.
fn extent(symbol: &Symbol, section: &Section<'_>, symbols: &SymbolTable) -> std::ops::Range<usize> {
    let length = section.data.len();
    let offset = |address: u64| (address.saturating_sub(section.address) as usize).min(length);
    let place = symbols.find(symbol.address, section, true);
    let end = match (symbol.size, place.and_then(|place| symbols.next(place, section))) {
        (0, Some(next)) => offset(symbols.get(next).address),
        (0, None) => length,
        (size, _) => offset(symbol.address.saturating_add(size)),
    };
    let start = offset(symbol.address);
    start..end.max(start)
}

/// Shows the bundles to a pipeline twice: once to warm it, once for the table.
fn time(
    parameters: &Parameters,
    section: &Section<'_>,
    range: std::ops::Range<usize>,
) -> (Vec<Group>, Counters) {
    let mut pipeline = Pipeline::new(parameters.clone());
    let processor = Processor::new(Arc::new(Nothing));
    let start = range.start & !15;
    let pass = |pipeline: &mut Pipeline| {
        for offset in (start..range.end).step_by(16) {
            if let Some(bundle) = bundle_at(section, offset) {
                show(pipeline, &processor, section.address + offset as u64, bundle);
            }
        }
    };
    pass(&mut pipeline);
    pipeline.rest(REST);
    let before = pipeline.finish();
    pipeline.enable_timeline();
    pass(&mut pipeline);
    let groups = pipeline.take_timeline();
    (groups, pipeline.finish() - before)
}

fn bundle_at(section: &Section<'_>, offset: usize) -> Option<Bundle> {
    let bytes = section.data.get(offset..offset + 16)?;
    Some(Bundle::from_bytes(bytes.try_into().ok()?))
}

fn show(pipeline: &mut Pipeline, processor: &Processor, ip: u64, bundle: Bundle) {
    for decoded in bundle.decode() {
        let Ok(instruction) = decoded.instruction else {
            continue;
        };
        pipeline.retired(
            processor,
            &Retired {
                ip,
                slot: decoded.slot,
                instruction: &instruction,
                stop: decoded.stop,
                template: decoded.template,
                executed: true,
                reference: None,
                taken: None,
            },
        );
    }
}

fn instruction_text(section: &Section<'_>, ip: u64, slot: u8) -> String {
    let mut text = String::new();
    let offset = (ip - section.address) as usize;
    if let Some(bundle) = bundle_at(section, offset)
        && let Some(decoded) = bundle.decode().find(|decoded| decoded.slot == slot)
    {
        let _ = decoded.write(bundle, ip, &NoSymbols, &mut text);
    }
    text.trim_end().to_owned()
}

/// Memory that nobody looks at: nothing executes.
struct Nothing;

// SAFETY: no page is ever returned.
unsafe impl AddressSpace for Nothing {
    fn resolve(&self, _: VirtualAddress, _: Access) -> Result<HostPage, Refusal> {
        Err(Refusal::NotPresent)
    }
}
