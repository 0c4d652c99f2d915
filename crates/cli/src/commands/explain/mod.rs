//! `sidestep explain FILE`: in which cycle each instruction of a piece of assembly issues, to which port, and what it
//! waits for.
//!
//! The table is static unless `--run` is given: the code goes from its first bundle to its last, no branch taken,
//! every predicate on, with its own lines in the caches and every load a hit. With `--run` a function is executed from
//! registers and memory that the options give, and the table is of what it did. What a whole program does is for
//! `exec --timing --profile`.
//!
//! Assembly source is assembled by binutils' `ia64-linux-gnu-as` first, `.S` after the host's C preprocessor; object
//! files and programs are read as they are. To run, an object is linked by `ia64-linux-gnu-ld`, with zero for symbols
//! that it lacks.

mod rules;
mod start;
mod table;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use sidestep_ia64::encoding::NoSymbols;
use sidestep_itanium2::Parameters;
use sidestep_itanium2::instruction::StaticInstruction;
use sidestep_runner::explain::execution::{self, Effect, Ending, Ran, Start};
use sidestep_runner::explain::{bundle_at, time};
use sidestep_schedule::tools::{self, ToolError};
use sidestep_symbols::{Image, ImageError, Section, Symbol, SymbolTable, proposal};

use super::Outcome;
use super::activity::Activity;
use super::perf::parse_processor;
use start::Setting;
use table::Line;

/// Where the linker puts code and data, away from small numbers that code may take for addresses.
const LINKED: u64 = 0x400_0000;

/// Show cycle by cycle what issues where and what stalls on what.
#[derive(Args)]
pub struct Explain {
    /// Assembly source (.S, .s), an object file, or a program, for IA-64
    #[arg(required_unless_present = "rules")]
    file: Option<PathBuf>,
    /// Print what the model goes by, with the source of each: ports and latencies of the classes of instructions, rules
    /// between pairs, caches, penalties
    #[arg(long, conflicts_with_all = ["file", "function"])]
    rules: bool,
    /// Only the function or label of this name
    #[arg(long, value_name = "NAME")]
    function: Option<String>,
    /// The processor
    #[arg(long, value_name = "PROCESSOR", default_value = "itanium2", value_parser = parse_processor)]
    timing: Parameters,
    /// Execute the function and show what it did, not its bundles in order
    #[arg(long, requires = "function")]
    run: bool,
    /// With --run: a register's value at the start (r8, in0, sp, p6, b0, rp, ar.k6, ...). Values are numbers, symbols,
    /// `return` (where the function returns to), `stack`, and sums such as `table+16`
    #[arg(long, value_name = "REGISTER=VALUE", requires = "run")]
    set: Vec<Setting>,
    /// With --run: the value of 8 bytes of memory at the start; what nothing says is zero
    #[arg(long, value_name = "ADDRESS=VALUE", requires = "run")]
    memory: Vec<Setting>,
    /// With --run: where a symbol is that the file refers to and does not define: a number, `return` or `stack`
    #[arg(long, value_name = "SYMBOL=VALUE", requires = "run")]
    define: Vec<Setting>,
    /// With --run: passes that warm up caches, translation buffers and branch prediction before the one that is shown
    #[arg(long, value_name = "PASSES", default_value_t = 2, requires = "run")]
    warm: u32,
    /// With --run: instructions after which to stop
    #[arg(long, value_name = "INSTRUCTIONS", default_value_t = 1000, requires = "run")]
    limit: u64,
}

#[derive(Debug, thiserror::Error)]
enum ExplainError {
    #[error("{path}: cannot be read")]
    Read { path: String, source: std::io::Error },
    #[error("{path}")]
    Image { path: String, source: ImageError },
    #[error(transparent)]
    Tool(#[from] ToolError),
    #[error(
        "{path}: refers to {}, which it does not define; say where with --define {}=ADDRESS (`return`, if it is not to \
         be reached)",
        names.join(", "),
        names[0]
    )]
    Undefined { path: String, names: Vec<String> },
    #[error("--{option} {setting}: {message}")]
    Setting {
        option: &'static str,
        setting: String,
        message: String,
    },
    #[error("{path}: no symbol `{name}` in its code; {}", proposal(.near))]
    NoSymbol {
        path: String,
        name: String,
        near: Vec<String>,
    },
    #[error("{path}: holds no code")]
    Empty { path: String },
}

impl Explain {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        if self.rules {
            super::print_table(&rules::text(&self.timing))?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut bytes = self.object()?;
        if self.run {
            bytes = self.linked(bytes)?;
        }
        let path = self.file().display().to_string();
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
                    let near = symbols.nearest(name);
                    let name = name.clone();
                    return Err(ExplainError::NoSymbol { path, name, near }.into());
                }
                for symbol in found {
                    if self.run {
                        let _activity = Activity::begin(&format!("{name} runs"));
                        let start = self.start(&image, symbol.address)?;
                        self.execute(&mut text, &symbol.name, &image, &start);
                        break;
                    }
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
        super::print_table(&text)?;
        Ok(ExitCode::SUCCESS)
    }

    /// The file, which only `--rules` does without.
    fn file(&self) -> &Path {
        self.file.as_deref().unwrap_or(Path::new(""))
    }

    /// The bytes of the object file or program.
    fn object(&self) -> Result<Vec<u8>, ExplainError> {
        let path = self.file().display().to_string();
        let is_source = self
            .file()
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("s"));
        if !is_source {
            return sidestep_files::read(self.file(), sidestep_files::IMAGE_BYTES_MAX)
                .map_err(|source| ExplainError::Read { path, source });
        }
        Ok(tools::assemble(&tools::preprocess(self.file())?, self.file())?)
    }

    /// A program as it is; an object file linked.
    fn linked(&self, bytes: Vec<u8>) -> Result<Vec<u8>, ExplainError> {
        let path = self.file().display().to_string();
        let undefined = match Image::parse(&bytes) {
            Ok(image) if image.is_object => self.undefined(&image),
            _ => return Ok(bytes),
        };
        if !undefined.is_empty() {
            return Err(ExplainError::Undefined {
                path,
                names: undefined,
            });
        }
        let definitions = self.define.iter().map(|definition| {
            let value = start::value(&definition.value, |_| None);
            let value = value.map_err(|message| wrong("define", definition, message))?;
            Ok((definition.name.as_str(), value))
        });
        let definitions: Vec<(&str, u64)> = definitions.collect::<Result<_, ExplainError>>()?;
        Ok(tools::link(&bytes, LINKED, &definitions, self.file())?)
    }

    /// The symbols that neither an object file nor the command defines.
    fn undefined(&self, image: &Image<'_>) -> Vec<String> {
        let is_defined = |name: &String| self.define.iter().any(|definition| definition.name == *name);
        let undefined = image.undefined.iter();
        undefined.filter(|name| !is_defined(name)).cloned().collect()
    }

    /// What a run starts with.
    fn start(&self, image: &Image<'_>, entry: u64) -> Result<Start, ExplainError> {
        let symbol = |name: &str| image.address_of(name);
        let segments = image.segments.iter();
        let mut start = Start {
            entry,
            segments: segments
                .map(|segment| (segment.address, segment.data.to_vec()))
                .collect(),
            ..Start::default()
        };
        if let Some(gp) = symbol("__gp") {
            start.registers.push((execution::Register::General(1), gp));
        }
        for setting in &self.set {
            let both = start::register(&setting.name)
                .and_then(|register| Ok((register, start::value(&setting.value, symbol)?)));
            start
                .registers
                .push(both.map_err(|message| wrong("set", setting, message))?);
        }
        for setting in &self.memory {
            let both = start::value(&setting.name, symbol)
                .and_then(|address| Ok((address, start::value(&setting.value, symbol)?)))
                .and_then(|(address, value)| match address % 8 {
                    0 => Ok((address, value)),
                    _ => Err(format!("{address:#x} is no multiple of 8")),
                });
            start
                .words
                .push(both.map_err(|message| wrong("memory", setting, message))?);
        }
        Ok(start)
    }

    fn explain(&self, text: &mut String, name: &str, section: &Section<'_>, range: std::ops::Range<usize>) {
        let groups = time(&self.timing, section, range);
        let _ = writeln!(text, "{name} on {}:\n", self.timing.description);
        table::write(text, &groups, |issued| {
            self.line(std::slice::from_ref(section), issued.ip, issued.slot)
        });
        table::write_sum(text, &groups);
        text.push('\n');
    }

    /// Runs a function and shows what it did.
    fn execute(&self, text: &mut String, name: &str, image: &Image<'_>, start: &Start) {
        let Ran { groups, effects, end } = execution::run(start, &self.timing, self.warm, self.limit);
        let _ = writeln!(text, "{name} as executed on {}:\n", self.timing.description);
        let mut effects = effects.iter();
        table::write(text, &groups, |issued| {
            let mut line = self.line(&image.sections, issued.ip, issued.slot);
            if let Some(effect) = effects.next() {
                line.effect = effect_text(effect);
            }
            line
        });
        table::write_sum(text, &groups);
        let end = match end {
            Ending::Returned => "It returned.".to_owned(),
            Ending::Interruption(fault, ip) => format!("It ended at {ip:x}: {fault}."),
            Ending::Limit => format!("It was stopped after {} instructions (--limit).", self.limit),
            Ending::Memory => "It was stopped: it refers to more memory than there is here.".to_owned(),
        };
        let _ = writeln!(text, "{end}");
    }

    /// An instruction of the file.
    fn line(&self, sections: &[Section<'_>], ip: u64, slot: u8) -> Line {
        let mut line = Line {
            text: String::new(),
            effect: String::new(),
            known: None,
        };
        let found = sections.iter().find_map(|section| {
            let offset = usize::try_from(ip.checked_sub(section.address)?).ok()?;
            let bundle = bundle_at(section, offset)?;
            let decoded = bundle.decode().find(|decoded| decoded.slot == slot)?;
            Some((bundle, decoded))
        });
        if let Some((bundle, decoded)) = found {
            let _ = decoded.write(bundle, ip, &NoSymbols, &mut line.text);
            line.text.truncate(line.text.trim_end().len());
            line.known = decoded
                .instruction
                .ok()
                .map(|instruction| StaticInstruction::new(&instruction, &decoded, &self.timing));
        }
        line
    }
}

fn wrong(option: &'static str, setting: &Setting, message: String) -> ExplainError {
    ExplainError::Setting {
        option,
        setting: format!("{}={}", setting.name, setting.value),
        message,
    }
}

/// What an instruction did, for the end of its row.
fn effect_text(effect: &Effect) -> String {
    match effect {
        Effect { executed: false, .. } => "off".to_owned(),
        Effect {
            taken: Some(execution::RETURN),
            ..
        } => "-> return".to_owned(),
        Effect {
            taken: Some(target), ..
        } => format!("-> {target:x}"),
        Effect {
            reference: Some(address),
            ..
        } => format!("[{address:x}]"),
        _ => String::new(),
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
