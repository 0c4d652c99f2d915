//! A loop as it is, and with increments of addresses as instructions of their own.

use std::path::Path;

use sidestep_ia64::encoding::{BaseUpdate, Instruction};
use sidestep_itanium2::Parameters;

use super::Loop;
use crate::assembly::{AssemblyError, Text, code_of, slots};
use crate::block::{Block, Item};
use crate::tools::assemble;

/// A loop's instructions, its branch last in the block, with the texts of the others.
pub(super) struct Version {
    pub block: Block,
    pub texts: Vec<Text>,
}

impl Version {
    /// The loop as it is; and, if others name the registers that its references to memory increment, with additions of
    /// their own for these: a value that is added to in passing is in one register. With `parts_all` for all of them,
    /// so that a reference can be made before it is known whether there is an iteration.
    pub fn all(
        given: &Loop<'_>,
        parts_all: bool,
        parameters: &Parameters,
        path: &Path,
    ) -> Result<Vec<Version>, AssemblyError> {
        let (branch, body) = given.block.items.split_last().expect("it has a branch");
        let own = Version {
            block: given.block.clone(),
            texts: given.texts[..body.len()].to_vec(),
        };
        let is_shared = |index: usize| {
            let base = 1u128 << body[index].instruction.r3();
            let names =
                |item: &Item| (item.effects.reads.general | item.effects.all_writes().general) & base != 0;
            body.iter()
                .enumerate()
                .any(|(other, item)| other != index && names(item))
        };
        let mut texts: Vec<Text> = Vec::new();
        // By instruction, which it was.
        let mut origins = Vec::new();
        for (index, (item, text)) in body.iter().zip(&own.texts).enumerate() {
            origins.push(index);
            let increments =
                item.instruction.base_update() == BaseUpdate::Immediate && (parts_all || is_shared(index));
            match increments.then(|| parted(&text.instruction)).flatten() {
                None => texts.push(text.clone()),
                Some((reference, addition)) => {
                    texts.push(Text {
                        instruction: reference,
                        ..text.clone()
                    });
                    texts.push(Text {
                        instruction: addition,
                        ..Text::default()
                    });
                    origins.push(index);
                }
            }
        }
        if texts.len() == own.texts.len() {
            return Ok(vec![own]);
        }
        let lines: String = texts
            .iter()
            .map(|text| format!("\t{}\n\t;;\n", text.instruction))
            .collect();
        let bundles = code_of(&assemble(&format!("\t.text\n{lines}"), path)?, path)?;
        let mut instructions: Vec<Instruction> = slots(&bundles)
            .into_iter()
            .filter_map(|(_, instruction)| instruction.ok())
            .collect();
        instructions.push(branch.instruction);
        let Ok(mut block) = Block::new(&instructions, parameters) else {
            return Ok(vec![own]);
        };
        let place = |of: usize| {
            origins
                .iter()
                .position(|origin| *origin == of)
                .unwrap_or(origins.len())
        };
        let asserted = given.block.mutex.iter();
        block.mutex = asserted
            .map(|(before, registers)| (place(*before), *registers))
            .collect();
        for (index, origin) in origins.iter().enumerate() {
            let is_reference = place(*origin) == index;
            block.objects[index] = given.block.objects[*origin].filter(|_| is_reference);
            block.areas[index] = given.block.areas[*origin].filter(|_| is_reference);
            block.resident[index] = given.block.resident[*origin] && is_reference;
        }
        Ok(vec![own, Version { block, texts }])
    }

    /// The block without its branch.
    pub fn body(&self) -> Block {
        let mut body = self.block.clone();
        body.items.truncate(self.texts.len());
        body
    }
}

/// The text of a reference that increments its base by a constant, without that, and the addition.
fn parted(text: &str) -> Option<(String, String)> {
    let (reference, amount) = text.rsplit_once(',')?;
    let base = reference.split_once('[')?.1.split_once(']')?.0.trim();
    let qualifier = text.strip_prefix('(').and_then(|text| text.split_once(')'));
    let qualifier = qualifier.map_or(String::new(), |(qualifier, _)| format!("({qualifier}) "));
    Some((
        reference.trim_end().to_owned(),
        format!("{qualifier}adds {base} = {}, {base}", amount.trim()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_parted_from_its_increment() {
        let parts = |text| parted(text).expect("it increments its base");
        assert_eq!(
            parts("(p6) st8 [r33] = r14, 8"),
            (
                "(p6) st8 [r33] = r14".to_owned(),
                "(p6) adds r33 = 8, r33".to_owned()
            )
        );
        assert_eq!(
            parts("ldfd f6 = [r32], -16"),
            ("ldfd f6 = [r32]".to_owned(), "adds r32 = -16, r32".to_owned())
        );
    }
}
