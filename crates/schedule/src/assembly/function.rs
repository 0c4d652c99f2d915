//! Functions of a source: their blocks, matched with the object file, and the text of the scheduled ones.

use std::path::Path;

use sidestep_ia64::encoding::{BranchKind, Bundle, Effects, Instruction, Operation, Unit};
use sidestep_itanium2::Parameters;

use super::AssemblyError;
use super::addresses::Addresses;
use super::assertions::Assertions;
use super::directives::{is_attached, is_between, unknown};
use super::places::{Labels, goes_back, operands};
use super::source::{Source, Statement, begins_section, names};
use super::text::{Text, code, slots};
use crate::block::{Block, Item};

/// A part of a function's lines.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Lines that stay as they are.
    Verbatim {
        /// The first line, from 0, and the one behind the last.
        lines: std::ops::Range<usize>,
    },
    /// Instructions that are placed anew.
    Block {
        /// Its lines.
        lines: std::ops::Range<usize>,
        /// Its instructions.
        block: Box<Block>,
        /// What is written for each: the directives that belong to it, its text, its comment.
        texts: Vec<Text>,
        /// The bundles that it came from.
        bundles: Vec<Bundle>,
        /// The instructions of these, without `nop`s.
        original: Vec<Instruction>,
    },
}

/// How far blocks go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speculation {
    /// To the next branch or label.
    #[default]
    None,
    /// To the next label: over branches, by what the source asserts; values get other registers.
    Asserted,
}

/// What may be done to functions beyond giving instructions other places in their blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    /// How far blocks go.
    pub speculation: Speculation,
    /// Whether loops of one block are pipelined.
    pub is_pipelined: bool,
    /// Whether predicates take the place of short forward branches.
    pub is_predicated: bool,
}

impl From<Speculation> for Ways {
    fn from(speculation: Speculation) -> Ways {
        Ways {
            speculation,
            is_pipelined: false,
            is_predicated: false,
        }
    }
}

/// A function between `.proc` and `.endp`.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its lines, from 0, with both directives.
    pub lines: std::ops::Range<usize>,
    /// Its parts, in order.
    pub pieces: Vec<Piece>,
    /// Its bundles as the source has them.
    pub bundles: Vec<Bundle>,
}

impl Function {
    /// The functions of a source, or the one of a name.
    ///
    /// # Errors
    /// [`AssemblyError`] with the line that stands in the way.
    pub fn all(
        source: &Source,
        object: &[u8],
        wanted: Option<&str>,
        way: (&Parameters, Ways),
        path: &Path,
    ) -> Result<Vec<Function>, AssemblyError> {
        let names = names(source);
        if names.is_empty() {
            return Err(AssemblyError::NoFunctions {
                path: path.display().to_string(),
            });
        }
        if let Some(wanted) = wanted.filter(|wanted| !names.iter().any(|(name, _)| name == wanted)) {
            return Err(AssemblyError::NoFunction {
                path: path.display().to_string(),
                name: wanted.to_owned(),
                known: names
                    .into_iter()
                    .map(|(name, _)| name)
                    .collect::<Vec<_>>()
                    .join(", "),
            });
        }
        let file = object::File::parse(object).map_err(|source| AssemblyError::Object {
            path: path.display().to_string(),
            source,
        })?;
        let chosen = names
            .into_iter()
            .filter(|(name, _)| wanted.is_none_or(|wanted| wanted == name));
        let labels = Labels::of(source);
        if let Some((line, operand)) = labels.data(source) {
            return Err(AssemblyError::counted(path, line, operand));
        }
        chosen
            .map(|(name, start)| Function::read((source, &labels), &file, (name, start), way, path))
            .collect()
    }

    fn read(
        (source, labels): (&Source, &Labels),
        file: &object::File<'_>,
        (name, start): (String, usize),
        (parameters, ways): (&Parameters, Ways),
        path: &Path,
    ) -> Result<Function, AssemblyError> {
        let is_end = |statement: &Statement| match statement {
            Statement::Directive(text) => text.starts_with(".endp"),
            _ => false,
        };
        let end = (start..source.lines.len()).find(|line| source.lines[*line].statements.iter().any(is_end));
        let at =
            |line: usize, reason: String| AssemblyError::statement(path, source.lines[line].number, reason);
        let end = end.ok_or_else(|| at(start, format!("`{name}` has no .endp")))?;
        let bundles = code(file, &name).ok_or_else(|| {
            let reason = "whose label and size .proc and .endp should give";
            at(
                start,
                format!("the object file has no code of `{name}`, {reason}"),
            )
        })?;
        let assertions = match ways == Ways::default() {
            true => Assertions::default(),
            false => Assertions::read(&source.lines[start..end], path)?,
        };
        let mut reader = Reader {
            source,
            path,
            parameters,
            ways,
            assertions,
            slots: slots(&bundles),
            next: 0,
            bundles: &bundles,
            pieces: Vec::new(),
            open: None,
            pending: Vec::new(),
            closed_to: 0,
            in_handler_data: false,
            labels: labels.clone(),
            addresses: Addresses::default(),
        };
        for line in start + 1..end {
            reader.line(line)?;
        }
        reader.close(end);
        if reader.next != reader.slots.len() {
            let reason = format!(
                "the assembler makes {} instructions of `{name}`, its lines have {}: repeated and conditional \
                 parts of the assembler are not followed",
                reader.slots.len(),
                reader.next
            );
            return Err(at(start, reason));
        }
        let pieces = reader.pieces;
        Ok(Function {
            name,
            lines: start..end + 1,
            pieces,
            bundles,
        })
    }
}

/// A block that is being read.
struct Open {
    first_line: usize,
    first_slot: usize,
    texts: Vec<Text>,
    mutex: Vec<(usize, u64)>,
    objects: Vec<Option<(u64, i64)>>,
}

/// Reads the lines of a function.
struct Reader<'a> {
    source: &'a Source,
    path: &'a Path,
    parameters: &'a Parameters,
    ways: Ways,
    assertions: Assertions,
    slots: Vec<(usize, Result<Instruction, ()>)>,
    next: usize,
    bundles: &'a [Bundle],
    pieces: Vec<Piece>,
    open: Option<Open>,
    /// Directives for the next instruction.
    pending: Vec<String>,
    /// The line up to which all belong to blocks that have ended.
    closed_to: usize,
    /// Whether lines are in the section of data for the function's handlers.
    in_handler_data: bool,
    /// The labels of the source's code.
    labels: Labels,
    /// What registers hold of addresses in the code.
    addresses: Addresses,
}

impl Reader<'_> {
    fn line(&mut self, index: usize) -> Result<(), AssemblyError> {
        if index < self.closed_to {
            return Ok(());
        }
        let line = &self.source.lines[index];
        if self.in_handler_data {
            self.verbatim(index);
            self.in_handler_data = !line.statements.iter().any(begins_section);
            return Ok(());
        }
        let has_code = line
            .statements
            .iter()
            .any(|statement| matches!(statement, Statement::Instruction(_) | Statement::Nop));
        for statement in &line.statements {
            match statement {
                Statement::Label(_) => {
                    self.close(index);
                    self.verbatim(index);
                }
                Statement::Directive(text) => {
                    let word = text.split([' ', '\t']).next().unwrap_or_default();
                    if is_attached(word) {
                        self.open(index);
                        self.pending.push(text.clone());
                    } else if is_between(word) && !has_code {
                        if [".set", ".equ"].contains(&word) {
                            self.expect_place(line.number, operands(text))?;
                        }
                        self.close(index);
                        self.verbatim(index);
                        self.in_handler_data |= word == ".handlerdata";
                    } else {
                        return Err(AssemblyError::statement(self.path, line.number, unknown(word)));
                    }
                }
                Statement::Nop | Statement::Stop | Statement::Brace => self.open(index),
                Statement::Instruction(text) => self.instruction(index, text)?,
            }
        }
        Ok(())
    }

    fn verbatim(&mut self, index: usize) {
        match self.pieces.last_mut() {
            Some(Piece::Verbatim { lines }) if lines.end == index => lines.end = index + 1,
            _ => self.pieces.push(Piece::Verbatim {
                lines: index..index + 1,
            }),
        }
    }

    fn open(&mut self, index: usize) {
        let first_slot = self.next;
        self.open.get_or_insert_with(|| Open {
            first_line: index,
            first_slot,
            texts: Vec::new(),
            mutex: Vec::new(),
            objects: Vec::new(),
        });
    }

    fn instruction(&mut self, index: usize, text: &str) -> Result<(), AssemblyError> {
        self.open(index);
        let line = &self.source.lines[index];
        let refuse = |reason: String| AssemblyError::statement(self.path, line.number, reason);
        let Some((_, instruction)) = self.slots.get(self.next).copied() else {
            return Err(refuse(format!(
                "`{text}` is nothing that the assembler made an instruction of its own of"
            )));
        };
        let instruction =
            instruction.map_err(|()| refuse(format!("`{text}` is not an instruction of this processor")))?;
        let predicate = text.strip_prefix("(p").and_then(|rest| rest.split(')').next());
        let written = predicate.and_then(|number| number.trim().parse::<u8>().ok());
        if written.is_some_and(|written| written != instruction.predicate()) {
            return Err(refuse(format!(
                "`{text}` is not what the assembler made at this place: conditional and repeated parts are not followed"
            )));
        }
        let item = Item::new(instruction, self.parameters)
            .map_err(|refusal| AssemblyError::refused(self.path, line.number, refusal))?;
        self.expect_place(line.number, operands(text))?;
        if self.addresses.stores(&item) {
            return Err(refuse(format!(
                "`{text}` stores into code: code that changes is not scheduled"
            )));
        }
        self.addresses.follow(&item, text, &self.labels);
        let open = self.open.as_mut().expect("it was opened");
        self.next += 1;
        let directives = std::mem::take(&mut self.pending);
        let place = open.texts.len();
        let mut object = None;
        for directive in &directives {
            if directive.starts_with(".pred.rel") && directive.contains("mutex") {
                open.mutex.push((place, predicates(directive)));
            }
            if let Some(arguments) = directive.strip_prefix(".mem.offset") {
                object = memory_offset(arguments);
            }
        }
        open.objects.push(object);
        let is_last_on_line = line
            .statements
            .iter()
            .rev()
            .find_map(|statement| match statement {
                Statement::Instruction(last) => Some(last == text),
                _ => None,
            });
        open.texts.push(Text {
            label: String::new(),
            directives,
            instruction: text.to_owned(),
            comment: match is_last_on_line {
                Some(true) => line.comment.clone(),
                _ => String::new(),
            },
        });
        // A block ends with the line of its last branch; what goes on behind branches may be one all the same.
        let is_back = self.ways.is_pipelined && is_side_exit(&instruction) && self.goes_back(text);
        let goes_on =
            self.ways.speculation == Speculation::Asserted && is_side_exit(&instruction) && !is_back;
        if is_branch(&instruction) && !goes_on {
            // Where a call returns to is a bundle of its own.
            let returns = matches!(instruction.operation, Operation::Call { .. });
            let next = self.slots.get(self.next);
            let is_more = next.is_some_and(|(_, next)| next.is_ok_and(|next| is_branch(&next)));
            // A loop is a block of its own.
            let is_loop = matches!(
                instruction.operation,
                Operation::Branch { kind, .. } if kind != BranchKind::Conditional
            );
            let ends_loop = (is_loop || is_back)
                && next.is_some_and(|(bundle, _)| *bundle != self.slots[self.next - 1].0);
            if returns || !is_more || ends_loop {
                self.end_behind(index);
            }
        }
        Ok(())
    }

    /// Refuses operands that count bundles: there are others when blocks are scheduled.
    fn expect_place(&self, line: usize, operands: &str) -> Result<(), AssemblyError> {
        let counted = self.labels.counted(operands);
        counted.map_or(Ok(()), |operand| {
            Err(AssemblyError::counted(self.path, line, operand))
        })
    }

    /// Whether a branch goes to the label before the block that is being read.
    fn goes_back(&self, branch: &str) -> bool {
        let target = branch.split_whitespace().next_back().unwrap_or_default();
        let target = target.trim_end_matches('#');
        let (Some(Piece::Verbatim { lines }), Some(open)) = (self.pieces.last(), &self.open) else {
            return false;
        };
        let mut statements = self.source.lines[lines.start..open.first_line.max(lines.start)]
            .iter()
            .flat_map(|line| &line.statements);
        statements.any(|statement| matches!(statement, Statement::Label(label) if goes_back(target, label)))
    }

    /// Ends the block behind a line and the stops and braces that follow it.
    fn end_behind(&mut self, index: usize) {
        let is_closing = |line: &super::Line| {
            line.statements
                .iter()
                .all(|statement| matches!(statement, Statement::Stop | Statement::Brace | Statement::Nop))
                && !line.text.contains('{')
                && !line.text.trim_start().starts_with('.')
                && !line.text.trim().is_empty()
                && line.comment.is_empty()
        };
        let lines = &self.source.lines;
        let end = (index + 1..lines.len())
            .find(|line| !is_closing(&lines[*line]))
            .unwrap_or(lines.len());
        self.closed_to = end;
        self.close(end);
    }

    /// Ends the block that is being read before a line.
    fn close(&mut self, end: usize) {
        let Some(open) = self.open.take() else { return };
        if end <= open.first_line {
            self.open = Some(open);
            return;
        }
        if open.texts.is_empty() {
            self.pending.clear();
            self.pieces.push(Piece::Verbatim {
                lines: open.first_line..end,
            });
            return;
        }
        let slots = &self.slots[open.first_slot..self.next];
        let instructions: Vec<Instruction> = slots
            .iter()
            .filter_map(|(_, instruction)| instruction.ok())
            .collect();
        let mut open = open;
        let mut scheduled = instructions.clone();
        let is_speculated = self.ways.speculation == Speculation::Asserted;
        for (instruction, text) in scheduled
            .iter_mut()
            .zip(&mut open.texts)
            .filter(|_| is_speculated)
        {
            (*instruction, text.instruction) = self.assertions.weakened(*instruction, &text.instruction);
        }
        let mut block = Block::new(&scheduled, self.parameters).expect("each instruction was looked at");
        block.mutex = open.mutex;
        block.objects = open.objects;
        if is_speculated {
            let texts = open.texts.iter().map(|text| text.instruction.as_str());
            self.assertions.apply(&mut block, texts);
        } else {
            self.assertions.apply_areas(&mut block);
        }
        let (first, last) = (slots[0].0, slots[slots.len() - 1].0);
        self.pieces.push(Piece::Block {
            lines: open.first_line..end,
            block: Box::new(block),
            texts: open.texts,
            bundles: self.bundles[first..=last].to_vec(),
            original: instructions,
        });
    }
}

/// Whether an instruction is a branch of the B or X unit: a check, which may go elsewhere too, ends no block.
fn is_branch(instruction: &Instruction) -> bool {
    instruction.effects().contains(Effects::TRANSFERS) && matches!(instruction.unit, Unit::B | Unit::X)
}

/// Whether an instruction goes to a label if its predicate is on, and on if not.
pub(crate) fn is_side_exit(instruction: &Instruction) -> bool {
    let is_conditional = matches!(
        instruction.operation,
        Operation::Branch {
            kind: BranchKind::Conditional,
            ..
        }
    );
    is_conditional && instruction.is_relative() && instruction.predicate() != 0
}

/// The predicate registers that a directive names.
fn predicates(text: &str) -> u64 {
    let words = text.split(|character: char| !character.is_alphanumeric());
    let numbers = words.filter_map(|word| {
        word.strip_prefix('p')
            .and_then(|number| number.parse::<u32>().ok())
    });
    numbers
        .filter(|number| *number < 64)
        .fold(0, |set, number| set | 1 << number)
}

/// What `.mem.offset offset, object` says.
fn memory_offset(arguments: &str) -> Option<(u64, i64)> {
    let (offset, object) = arguments.split_once(',')?;
    Some((object.trim().parse().ok()?, offset.trim().parse().ok()?))
}
