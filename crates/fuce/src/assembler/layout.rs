//! Where everything goes: statements get addresses, labels values, and operands their bits.

use std::collections::BTreeMap;

use super::Assembly;
use super::diagnostic::{Diagnostic, Place};
use super::expression::Expression;
use super::lexer::{At, at};
use super::listing;
use super::statement::{Item, Section, Statement, Written};
use crate::image::{Image, TEXT_BYTES_MAX};
use crate::instruction::Instruction;
use crate::operation::{Operand, Operation};

/// Sections begin at multiples of this.
const SECTION_ALIGN: u32 = 64;
/// The most bytes a data section may have: the paper's memory.
const DATA_BYTES_MAX: u32 = 256 << 20;

/// An item with its place in its section.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub(super) place: Place,
    pub(super) section: Section,
    pub(super) offset: u32,
    pub(super) size: u32,
    item: Item,
}

/// A label's section and offset, and where it was defined.
#[derive(Debug, Clone)]
struct Label {
    section: Section,
    offset: u32,
    place: Place,
}

/// A program as far as it has been read.
#[derive(Debug, Default)]
pub(super) struct Program {
    items: Vec<Placed>,
    labels: BTreeMap<String, Label>,
    section: Option<Section>,
    sizes: [u32; 3],
    entry: Option<(Expression, Place)>,
}

/// The value of a name.
type Lookup<'a> = dyn Fn(&str, usize) -> Result<i64, At> + 'a;

impl Program {
    fn section(&self) -> Section {
        self.section.unwrap_or(Section::Text)
    }

    fn size(&mut self, section: Section) -> &mut u32 {
        &mut self.sizes[section as usize]
    }

    /// Appends a statement to the current section.
    pub(super) fn add(
        &mut self,
        place: &Place,
        statement: Statement,
        constants: &BTreeMap<String, i64>,
        registers: &mut BTreeMap<String, u8>,
    ) -> Result<(), At> {
        for (name, column) in statement.labels {
            self.label(&name, column, place, constants)?;
        }
        for item in statement.items {
            match item {
                Item::Section(section) => self.section = Some(section),
                Item::Entry(expression) => {
                    if self.entry.replace((expression, place.clone())).is_some() {
                        return at(1, "the program has an `.entry` already");
                    }
                }
                Item::Register(name, number) => {
                    registers.insert(name, number);
                }
                item => self.place(place, item, constants)?,
            }
        }
        Ok(())
    }

    fn label(
        &mut self,
        name: &str,
        column: usize,
        place: &Place,
        constants: &BTreeMap<String, i64>,
    ) -> Result<(), At> {
        if let Some(first) = self.labels.get(name) {
            let Place { file, line, .. } = &first.place;
            return at(
                column,
                format!("label `{name}` is defined already, at {file}:{line}"),
            );
        }
        if constants.contains_key(name) || EDGES.contains(&name) {
            return at(column, format!("`{name}` is a constant and cannot be a label"));
        }
        if name.len() > 255 {
            return at(column, "a label has at most 255 characters");
        }
        let section = self.section();
        let label = Label {
            section,
            offset: *self.size(section),
            place: place.clone(),
        };
        self.labels.insert(name.to_string(), label);
        Ok(())
    }

    fn place(&mut self, place: &Place, item: Item, constants: &BTreeMap<String, i64>) -> Result<(), At> {
        let section = self.section();
        let offset = *self.size(section);
        let known = |expression: &Expression, column: usize| {
            let value = expression.evaluate(offset.into(), &|name, column| match constants.get(name) {
                Some(value) => Ok(*value),
                None => at(
                    column,
                    format!("`{name}` must be a constant defined before this line"),
                ),
            })?;
            u32::try_from(value).or_else(|_| at(column, format!("{value} is not a size")))
        };
        let size = match &item {
            Item::Instruction(..) => 4,
            Item::Numbers(width, numbers) => (width * numbers.len()) as u32,
            Item::Bytes(bytes) => bytes.len() as u32,
            Item::Space(bytes, column) => known(bytes, *column)?,
            Item::Align(multiple, column) => {
                let multiple = known(multiple, *column)?;
                if !multiple.is_power_of_two() || multiple > 4096 {
                    return at(
                        *column,
                        format!("expected a power of two from 1 to 4096, found {multiple}"),
                    );
                }
                // Sections begin at multiples of 64 only; a larger alignment would be a lie.
                if multiple > SECTION_ALIGN {
                    return at(
                        *column,
                        format!("sections are aligned to {SECTION_ALIGN}, not to {multiple}"),
                    );
                }
                offset.next_multiple_of(multiple) - offset
            }
            Item::Section(_) | Item::Entry(_) | Item::Register(..) => unreachable!("these take no place"),
        };
        let instruction = matches!(item, Item::Instruction(..));
        if instruction && section != Section::Text {
            return at(1, "instructions belong into `.text`");
        }
        if instruction && !offset.is_multiple_of(4) {
            return at(
                1,
                "an instruction must begin at a multiple of 4; put `.align 4` before it",
            );
        }
        if let Item::Numbers(width, _) = item
            && !offset.is_multiple_of(width as u32)
        {
            return at(
                1,
                format!(
                    "numbers of {width} bytes must begin at a multiple of {width}; put `.align {width}` before them"
                ),
            );
        }
        let limit = if section == Section::Text {
            TEXT_BYTES_MAX
        } else {
            DATA_BYTES_MAX
        };
        let end = offset.checked_add(size).filter(|end| *end <= limit);
        let Some(end) = end else {
            return at(1, format!("the section grows beyond {limit} bytes"));
        };
        *self.size(section) = end;
        self.items.push(Placed {
            place: place.clone(),
            section,
            offset,
            size,
            item,
        });
        Ok(())
    }

    /// Gives every name its value and every item its bytes.
    pub(super) fn finish(
        self,
        constants: &BTreeMap<String, i64>,
        errors_max: usize,
    ) -> Result<Assembly, Vec<Diagnostic>> {
        let [text_bytes, data_bytes, user_bytes] = self.sizes;
        let data_start = text_bytes.next_multiple_of(SECTION_ALIGN);
        let user_start = (data_start + data_bytes).next_multiple_of(SECTION_ALIGN);
        let user_end = (user_start + user_bytes).next_multiple_of(SECTION_ALIGN);
        let starts = [0, data_start, user_start];
        let address = |section: Section, offset: u32| starts[section as usize] + offset;
        let edges = [user_start, user_end, user_end];
        let lookup = |name: &str, column: usize| {
            if let Some(value) = constants.get(name) {
                return Ok(*value);
            }
            if let Some(label) = self.labels.get(name) {
                return Ok(address(label.section, label.offset).into());
            }
            if let Some(edge) = EDGES.iter().position(|edge| *edge == name) {
                return Ok(edges[edge].into());
            }
            at(
                column,
                format!("undefined label `{name}`{}", self.similar(name, constants)),
            )
        };
        let mut errors = Vec::new();
        let mut bytes = vec![0u8; (user_start + user_bytes) as usize];
        for placed in &self.items {
            let here = address(placed.section, placed.offset);
            match placed.encode(here, &lookup) {
                Ok(encoded) => {
                    let start = here as usize;
                    bytes[start..start + encoded.len()].copy_from_slice(&encoded);
                }
                Err(At { column, message }) => {
                    errors.push(Diagnostic {
                        place: placed.place.clone(),
                        column,
                        message,
                    });
                    if errors.len() >= errors_max {
                        break;
                    }
                }
            }
        }
        let entry = self.entry(text_bytes, &lookup);
        let entry = entry.unwrap_or_else(|error| {
            errors.push(error);
            0
        });
        if !errors.is_empty() {
            return Err(errors);
        }
        let mut symbols: Vec<(u32, String)> = self
            .labels
            .iter()
            .filter(|(name, _)| !name.contains('$'))
            .map(|(name, label)| (address(label.section, label.offset), name.clone()))
            .chain(
                EDGES
                    .iter()
                    .zip(edges)
                    .map(|(name, edge)| (edge, name.to_string())),
            )
            .collect();
        symbols.sort();
        let data = &bytes[data_start as usize..];
        let used = data
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last + 1);
        let image = Image {
            entry,
            text: bytes[..text_bytes as usize]
                .chunks(4)
                .map(|word| {
                    word.iter()
                        .rev()
                        .fold(0, |value, byte| value << 8 | u32::from(*byte))
                })
                .collect(),
            data_address: data_start,
            data: data[..used].to_vec(),
            zero_bytes: user_end - data_start - used as u32,
            user: (user_start, user_end),
            symbols,
        };
        let listing = listing::render(&self.items, &bytes, &image, starts);
        Ok(Assembly { image, listing })
    }

    fn entry(&self, text_bytes: u32, lookup: &Lookup) -> Result<u32, Diagnostic> {
        let Some((expression, place)) = &self.entry else {
            let nowhere = Place {
                file: "program".into(),
                line: 0,
                text: "".into(),
                expansion: None,
            };
            let place = self.items.first().map_or(nowhere, |item| item.place.clone());
            let message = "the program names no boot thread: expected `.entry label`".to_string();
            return Err(Diagnostic {
                place,
                column: 1,
                message,
            });
        };
        let error = |At { column, message }| Diagnostic {
            place: place.clone(),
            column,
            message,
        };
        let value = expression.evaluate(0, lookup).map_err(error)?;
        match u32::try_from(value) {
            Ok(entry) if entry.is_multiple_of(4) && entry < text_bytes => Ok(entry),
            _ => Err(error(At {
                column: 1,
                message: format!("the entry {value:#x} is no instruction of the text"),
            })),
        }
    }

    /// "; did you mean ...?" when some label or constant is close.
    fn similar(&self, name: &str, constants: &BTreeMap<String, i64>) -> String {
        let names = self.labels.keys().chain(constants.keys());
        match names
            .map(|known| (strsim::damerau_levenshtein(known, name), known))
            .min()
        {
            Some((distance, known)) if distance <= 2 && distance < name.len() => {
                format!("; did you mean `{known}`?")
            }
            _ => String::new(),
        }
    }
}

/// The names the assembler defines itself.
const EDGES: [&str; 3] = ["user_start", "user_end", "program_end"];

impl Placed {
    fn encode(&self, here: u32, lookup: &Lookup) -> Result<Vec<u8>, At> {
        match &self.item {
            Item::Instruction(operation, written) => {
                Ok(encode(*operation, written, here, lookup)?.to_le_bytes().to_vec())
            }
            Item::Numbers(width, numbers) => {
                let mut bytes = Vec::with_capacity(width * numbers.len());
                for (index, (expression, column)) in numbers.iter().enumerate() {
                    let value = expression.evaluate(i64::from(here) + (width * index) as i64, lookup)?;
                    let bits = width * 8;
                    let fits = (-(1i64 << (bits - 1))..1i64 << bits).contains(&value);
                    if !fits {
                        return at(*column, format!("{value} does not fit {bits} bits"));
                    }
                    bytes.extend_from_slice(&value.to_le_bytes()[..*width]);
                }
                Ok(bytes)
            }
            Item::Bytes(bytes) => Ok(bytes.clone()),
            Item::Space(..) | Item::Align(..) => Ok(Vec::new()),
            Item::Section(_) | Item::Entry(_) | Item::Register(..) => unreachable!("these take no place"),
        }
    }
}

fn encode(operation: Operation, written: &[Written], here: u32, lookup: &Lookup) -> Result<u32, At> {
    let mnemonic = operation.description().mnemonic;
    let mut instruction = Instruction::new(operation);
    for Written {
        operand,
        value,
        base,
        column,
    } in written
    {
        let mut value = value.evaluate(here.into(), lookup)?;
        if operand.is_place() {
            let distance = value - i64::from(here);
            if distance % 4 != 0 {
                return at(
                    *column,
                    format!("the target {value:#x} of `{mnemonic}` is no instruction"),
                );
            }
            value = distance / 4;
        }
        let (low, high) = operand.range();
        if !(low..=high).contains(&value) {
            let found = if operand.is_place() {
                format!("one {value} instructions away")
            } else {
                value.to_string()
            };
            return at(
                *column,
                format!("`{mnemonic}` takes {} here, not {found}", operand.description()),
            );
        }
        instruction.set_operand(*operand, value);
        if *operand == Operand::Address {
            instruction.b = *base;
        }
    }
    if operation == Operation::Preload && instruction.a + instruction.b > 32 {
        let message = format!(
            "`preload` of {} registers from r{} on goes beyond r31",
            instruction.b, instruction.a
        );
        return at(written[0].column, message);
    }
    Ok(instruction.encode())
}
