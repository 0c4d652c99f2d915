//! Texts of instructions and of bundles, and what the assembler makes of them.

use std::fmt::Write as _;
use std::path::Path;

use object::{Object, ObjectSection, ObjectSymbol};
use sidestep_ia64::encoding::{Bundle, Instruction, Operation, Template, Unit};

use super::AssemblyError;
use crate::bundle::{Content, Placed};

/// What is written for an instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// A label for the bundle that it begins; none if that has none.
    pub label: String,
    /// Directives that stand before it: unwind information, assertions.
    pub directives: Vec<String>,
    /// The instruction.
    pub instruction: String,
    /// What was said beside it.
    pub comment: String,
}

/// The bundles of a function.
pub(crate) fn code(file: &object::File<'_>, name: &str) -> Option<Vec<Bundle>> {
    let symbol = file
        .symbols()
        .find(|symbol| symbol.name() == Ok(name) && symbol.section_index().is_some())?;
    let section = file.section_by_index(symbol.section_index()?).ok()?;
    let data = section.data().ok()?;
    let from = usize::try_from(symbol.address().checked_sub(section.address())?).ok()?;
    let size = usize::try_from(symbol.size()).ok()?;
    let bytes = data.get(from..from.checked_add(size)?)?;
    let bundles = bytes
        .chunks_exact(16)
        .map(|bytes| Bundle::from_bytes(bytes.try_into().expect("16 bytes")));
    Some(bundles.collect())
}

/// The bundles of an object file's code.
pub(crate) fn code_of(object: &[u8], path: &Path) -> Result<Vec<Bundle>, AssemblyError> {
    let damaged = |source| AssemblyError::Object {
        path: path.display().to_string(),
        source,
    };
    let file = object::File::parse(object).map_err(damaged)?;
    let section = file.section_by_name(".text");
    let data = section
        .map(|section| section.data())
        .transpose()
        .map_err(damaged)?;
    let bundles = data
        .unwrap_or_default()
        .chunks_exact(16)
        .map(|bytes| Bundle::from_bytes(bytes.try_into().expect("16 bytes")));
    Ok(bundles.collect())
}

/// The instructions of bundles that are no `nop`s, each with its bundle.
pub(crate) fn slots(bundles: &[Bundle]) -> Vec<(usize, Result<Instruction, ()>)> {
    let mut slots = Vec::new();
    for (index, bundle) in bundles.iter().enumerate() {
        for decoded in bundle.decode() {
            let instruction = decoded.instruction.map_err(|_| ());
            if instruction
                .as_ref()
                .is_ok_and(|instruction| instruction.operation == Operation::Nop)
            {
                continue;
            }
            slots.push((index, instruction));
        }
    }
    slots
}

/// The text of bundles.
pub fn write(out: &mut String, bundles: &[Placed], texts: &[Text]) {
    for placed in bundles {
        let template = Template::new(placed.template);
        let units = template.units().expect("a template that was chosen");
        let name = template.to_string().to_lowercase();
        // Writing to a string cannot fail.
        if let Content::Item(first) = placed.slots[0]
            && !texts[first].label.is_empty()
        {
            let _ = writeln!(out, "{}:", texts[first].label);
        }
        let _ = writeln!(out, "{{\t.{name}");
        for (slot, (content, unit)) in placed.slots.iter().zip(units).enumerate() {
            match *content {
                Content::Half => {}
                Content::Nop => {
                    let unit = match unit {
                        Unit::M => "m",
                        Unit::I => "i",
                        Unit::F => "f",
                        _ => "b",
                    };
                    let _ = writeln!(out, "\tnop.{unit}\t0");
                }
                Content::Item(item) => {
                    let text = &texts[item];
                    for directive in &text.directives {
                        let _ = writeln!(out, "\t{directive}");
                    }
                    let separator = if text.comment.is_empty() { "" } else { "\t" };
                    let _ = writeln!(out, "\t{}{separator}{}", text.instruction, text.comment);
                }
            }
            if template.stop_after(slot as u8) || slot == 2 && placed.stop {
                let _ = writeln!(out, "\t;;");
            }
        }
        let _ = writeln!(out, "}}");
    }
}

/// A load's text as that of a speculative one: `ld8.s` for `ld8`, hints behind that.
pub(crate) fn speculative(text: &str) -> String {
    let mnemonic = text.find("ld").map(|start| start + "ld8".len());
    let (load, rest) = text.split_at(mnemonic.unwrap_or(text.len()));
    format!("{load}.s{rest}")
}
