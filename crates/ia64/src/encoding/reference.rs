//! The opcode table as a page to read: one line per form, in Markdown, for the documentation.

use std::fmt::{self, Write};

use super::bundle::Unit;
use super::decoder::decode;
use super::dependencies::{Resource, implicit};
use super::form::{Form, all_forms};
use super::instruction::UnitClass;
use super::operand::{Notation, Operand, application_register_name, control_register_name};

/// Writes the table of all forms that have a spelling: syntax, unit, format, what is written and read, and hints.
/// Predicates, which nearly every form reads, are only marked where a form cannot have one.
///
/// # Errors
/// Those of `out`.
pub fn write_reference(out: &mut dyn Write) -> fmt::Result {
    writeln!(out, "| instruction | unit | format | writes | reads | hints |")?;
    writeln!(out, "| --- | --- | --- | --- | --- | --- |")?;
    for (_, form) in all_forms().filter(|(_, form)| form.has_spelling) {
        let (reads, writes) = dependencies(form);
        let unit = match form.class {
            UnitClass::LX => "L+X".to_owned(),
            class => format!("{class:?}"),
        };
        let note = if form.predicated { "" } else { " (not predicated)" };
        let hints = hints(form);
        let format = form.format;
        writeln!(
            out,
            "| `{}`{note} | {unit} | {format} | {writes} | {reads} | {hints} |",
            syntax(form)
        )?;
    }
    Ok(())
}

/// The form as its reader would write it, such as `add r1=r2,r3`.
fn syntax(form: &Form) -> String {
    let mut text = form.mnemonic.clone();
    for (index, operand) in form.operands.iter().enumerate() {
        text.push(match index {
            0 => ' ',
            _ if index == form.outputs => '=',
            _ => ',',
        });
        text.push_str(&name(*operand));
    }
    text
}

/// The name of an operand's field.
fn name(operand: Operand) -> String {
    match operand.description().notation {
        Notation::Text(text) => text.to_owned(),
        Notation::Indirect(file) => format!("{file}[r3]"),
        _ => {
            let name = format!("{operand:?}").to_lowercase();
            // Fields of one kind are told apart by a last letter, inverted ones by a first one: encoding only.
            let name = name.trim_end_matches(['a', 'b', 'c']);
            match name.strip_prefix('c') {
                Some(rest) if rest.starts_with("count") || rest.starts_with("position") => rest.to_owned(),
                _ => name.replace("immu", "imm"),
            }
        }
    }
}

/// What the form reads and writes, by field names.
fn dependencies(form: &Form) -> (String, String) {
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for (index, operand) in form.operands.iter().enumerate() {
        let notation = operand.description().notation;
        let text = name(*operand);
        match notation {
            Notation::Register(_) | Notation::Application | Notation::Control => {
                if index < form.outputs {
                    &mut writes
                } else {
                    &mut reads
                }
                .push(text);
            }
            Notation::Text(text) if text.chars().all(|character| character.is_ascii_digit()) => {}
            Notation::Text(_) => if index < form.outputs {
                &mut writes
            } else {
                &mut reads
            }
            .push(text),
            Notation::Indirect(file) => {
                reads.push("r3".to_owned());
                if !file.is_empty() {
                    if index < form.outputs {
                        &mut writes
                    } else {
                        &mut reads
                    }
                    .push(file.to_owned());
                }
            }
            _ => {}
        }
    }
    let unit = match form.class {
        UnitClass::A | UnitClass::I => Unit::I,
        UnitClass::M => Unit::M,
        UnitClass::B => Unit::B,
        UnitClass::F => Unit::F,
        UnitClass::LX => Unit::X,
    };
    let instruction = decode(unit, form.value, 0).expect("a form's own bits decode");
    if instruction.base_update() != super::completers::BaseUpdate::None {
        writes.push("r3".to_owned());
    }
    let (more_reads, more_writes) = implicit(&instruction);
    reads.extend(more_reads.iter().map(Resource::to_string));
    writes.extend(more_writes.iter().map(Resource::to_string));
    (reads.join(", "), writes.join(", "))
}

/// The suffixes a form's hints can have.
fn hints(form: &Form) -> String {
    let sets = form.hints.iter().map(|hint| {
        let suffixes = hint.suffixes.iter().flatten().filter(|suffix| !suffix.is_empty());
        suffixes
            .map(|suffix| format!("`.{suffix}`"))
            .collect::<Vec<_>>()
            .join(" ")
    });
    sets.collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Resource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Resource::General(number) => write!(out, "r{number}"),
            Resource::Float(number) => write!(out, "f{number}"),
            Resource::Predicate(number) => write!(out, "p{number}"),
            Resource::Predicates => out.write_str("pr"),
            Resource::RotatingPredicates => out.write_str("pr.rot"),
            Resource::Branch(number) => write!(out, "b{number}"),
            Resource::Application(number) => match application_register_name(number) {
                Some(name) => write!(out, "ar.{name}"),
                None => write!(out, "ar{number}"),
            },
            Resource::Control(number) => match control_register_name(number) {
                Some(name) => write!(out, "cr.{name}"),
                None => write!(out, "cr{number}"),
            },
            Resource::Indirect(file) => out.write_str(file.name()),
            Resource::FrameMarker => out.write_str("cfm"),
            Resource::ProcessorStatus => out.write_str("psr"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_fields_and_implicit_registers() {
        let mut page = String::new();
        write_reference(&mut page).expect("writing to a string succeeds");
        for line in [
            "| `add r1=r2,r3` | A | A1 | r1 | r2, r3 |  |",
            "| `dep.z r1=r2,position6,length6` | I | I12 | r1 | r2 |  |",
            "| `ld8.fill r1=[r3],imm9` | M | M3 | r1, r3 | r3, ar.unat | `.nt1` `.nta` |",
            "| `alloc r1=ar.pfs,sizeofframe,sizeoflocals,sizeofrotating` (not predicated) | M | M34 | r1, cfm | \
             ar.pfs, cfm |  |",
            "| `mov rr[r3]=r2` | M | M42 | rr | r3, r2 |  |",
            "| `movl r1=imm64` | L+X | X2 | r1 |  |  |",
            "| `br.ret b2` | B | B4 | cfm, ar.ec, ar.bsp, psr | b2, ar.pfs | \
             `.sptk` `.spnt` `.dptk` `.dpnt`, `.few` `.many`, `.clr` |",
        ] {
            assert!(page.lines().any(|written| written == line), "{line}");
        }
        let spelt = all_forms().filter(|(_, form)| form.has_spelling).count();
        assert_eq!(page.lines().count(), spelt + 2);
    }
}
