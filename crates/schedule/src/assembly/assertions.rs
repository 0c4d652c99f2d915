//! What a source says beyond its instructions, in comments of a function:
//!
//! ```text
//! // schedule: dead at LABEL: r2-r8, r15, p6-p15, ar.rsc, stack
//! // schedule: dead at return: r2-r8
//! // schedule: apart: r2, r3, stack
//! // schedule: resident: r2, r3
//! // schedule: addressing kept
//! // schedule: fetching kept
//! ```
//!
//! Nobody reads what is dead where a branch goes; `stack` is how far the register stack is in memory. Addresses that
//! are made of r2 by adding constants, those made of r3 and the backing store never overlap. What is resident is in
//! memory and translated whenever the branches before a load of it are not taken: a speculative load of it defers no
//! fault, so it needs no check. Where addressing is kept, no reference is by what the function writes to psr.l, to
//! region registers and, as privilege and byte order of the register stack, to ar.rsc, and psr.l gets no other mask of
//! interrupts. Where fetching is kept, no instruction of it is fetched by that either: `srlz.d` serialises enough.

use std::collections::BTreeMap;
use std::path::Path;

use sidestep_ia64::encoding::{Form, Instruction, Operation, Side, decode};
use sidestep_ia64::registers::application::{BSPSTORE, RNAT, RSC};

use super::AssemblyError;
use super::function::is_side_exit;
use super::source::{Line, Source};
use crate::block::Block;
use crate::graph::facts::roots;
use crate::sequencing::{Parts, State};

/// How a comment that asserts something begins.
const MARK: &str = "schedule:";
/// The area of the backing store; the others have the numbers of registers.
const STACK: u8 = 0;

/// What a function's comments assert.
#[derive(Clone, Debug, Default)]
pub struct Assertions {
    /// What is dead, by the label of a branch, or `return`.
    dead: BTreeMap<String, Parts>,
    /// Registers whose addresses never meet those of another one; of the stack, 0.
    apart: Vec<u8>,
    /// Registers whose addresses are in memory and translated.
    resident: Vec<u8>,
    is_addressing_kept: bool,
    is_fetching_kept: bool,
}

impl Assertions {
    /// Reads the comments of lines.
    ///
    /// # Errors
    /// [`AssemblyError`] of a comment that says what is not known here.
    pub fn read(lines: &[Line], path: &Path) -> Result<Assertions, AssemblyError> {
        let mut assertions = Assertions::default();
        for line in lines {
            let comment = line.comment.trim_start_matches(['/', '*', ' ', '\t']);
            let Some(said) = comment.strip_prefix(MARK) else {
                continue;
            };
            let refuse = |reason: String| AssemblyError::statement(path, line.number, reason);
            let said = said.trim().trim_end_matches("*/");
            if let Some(rest) = said.strip_prefix("dead at ")
                && let Some((label, list)) = rest.split_once(':')
            {
                let parts = assertions.dead.entry(label.trim().to_owned()).or_default();
                for word in list.split(',') {
                    *parts = parts.or(dead(word.trim()).map_err(refuse)?);
                }
            } else if let Some(list) = said.strip_prefix("apart:") {
                for word in list.split(',') {
                    assertions.apart.push(area(word.trim()).map_err(refuse)?);
                }
            } else if let Some(list) = said.strip_prefix("resident:") {
                for word in list.split(',') {
                    assertions.resident.push(pointer(word.trim()).map_err(refuse)?);
                }
            } else if said.trim() == "addressing kept" {
                assertions.is_addressing_kept = true;
            } else if said.trim() == "fetching kept" {
                assertions.is_fetching_kept = true;
            } else {
                return Err(refuse(format!(
                    "`{MARK} {said}`: say `dead at LABEL: REGISTERS`, `dead at return: REGISTERS`, `apart: REGISTERS`, \
                     `resident: REGISTERS`, `addressing kept` or `fetching kept`"
                )));
            }
        }
        Ok(assertions)
    }

    /// What the comments of one function of a source assert, the lines from its `.proc` on.
    ///
    /// # Errors
    /// [`AssemblyError`] of a comment that says what is not known here, or if there is no such function.
    pub fn of_function(text: &str, name: &str, path: &Path) -> Result<Assertions, AssemblyError> {
        let source = Source::parse(text);
        let says = |line: &Line, directive: &str| {
            let mut words = line.text.split_whitespace();
            words.next() == Some(directive) && words.next() == Some(name)
        };
        let lines = source.lines.as_slice();
        let start = lines.iter().position(|line| says(line, ".proc"));
        let start = start.ok_or_else(|| AssemblyError::NoFunction {
            path: path.display().to_string(),
            name: name.to_owned(),
            known: "none of this name".to_owned(),
        })?;
        let end = lines.iter().position(|line| says(line, ".endp"));
        Assertions::read(&lines[start..end.unwrap_or(lines.len()).max(start)], path)
    }

    /// The instruction of a text as it is scheduled, and its text: serialisation of data, where that is enough.
    pub fn weakened(&self, instruction: Instruction, text: &str) -> (Instruction, String) {
        let is_weaker = self.is_fetching_kept
            && instruction.operation
                == Operation::Serialize {
                    side: Side::Instruction,
                };
        if !is_weaker {
            return (instruction, text.to_owned());
        }
        let form = Form::named("srlz.d").next().expect("it is an instruction");
        let encoded = form
            .encode(instruction.predicate(), &[], &[])
            .expect("it has no operands");
        let weaker = decode(instruction.unit, encoded.slot, 0).expect("what was encoded");
        (weaker, text.replace("srlz.i", "srlz.d"))
    }

    /// Puts down in a block which areas of memory are asserted to lie apart.
    pub fn apply_areas(&self, block: &mut Block) {
        for (index, root) in roots(&block.items).into_iter().enumerate() {
            let area = match block.items[index].instruction.operation {
                Operation::FlushRegisterStack | Operation::LoadRegisterStack => Some(STACK),
                _ => root.filter(|root| *root != STACK),
            };
            block.areas[index] = area.filter(|area| self.apart.contains(area));
        }
    }

    /// Puts down in a block what is asserted; `texts` are its instructions as written.
    pub fn apply<'a>(&self, block: &mut Block, texts: impl Iterator<Item = &'a str>) {
        let roots = roots(&block.items);
        self.apply_areas(block);
        block.is_addressing_kept = self.is_addressing_kept;
        let mut labels: Vec<&str> = Vec::new();
        for (index, text) in texts.enumerate() {
            let item = &block.items[index];
            let label = match item.instruction.operation {
                Operation::Return => "return",
                _ => text.split_whitespace().next_back().unwrap_or_default(),
            };
            if item.is_branch()
                && let Some(dead) = self.dead.get(label)
            {
                block.dead[index] = *dead;
                let known = labels.iter().position(|known| *known == label);
                let number = known.unwrap_or(labels.len());
                if known.is_none() {
                    labels.push(label);
                }
                block.targets[index] = is_side_exit(&item.instruction).then_some(number as u32);
            }
            block.resident[index] = roots[index].is_some_and(|root| self.resident.contains(&root));
        }
    }
}

/// A range of registers, as `r2` or `r2-r8`.
fn range(word: &str, file: char) -> Option<std::ops::RangeInclusive<u32>> {
    let number = |word: &str| word.trim().strip_prefix(file)?.parse::<u32>().ok();
    match word.split_once('-') {
        Some((first, last)) => Some(number(first)?..=number(last)?),
        None => Some(number(word)?..=number(word)?),
    }
}

/// What a word calls dead.
fn dead(word: &str) -> Result<Parts, String> {
    let mut parts = Parts::NONE;
    if let Some(registers) = range(word, 'r').filter(|registers| *registers.end() < 128) {
        registers.for_each(|register| parts.general |= 1 << register);
    } else if let Some(registers) = range(word, 'p').filter(|registers| *registers.end() < 64) {
        registers.for_each(|register| parts.predicate |= 1 << register);
    } else if word == "ar.rsc" {
        parts.application |= 1 << RSC;
    } else if word == "stack" {
        parts.application |= 1 << BSPSTORE | 1 << RNAT;
        parts.state |= State::STACK;
    } else {
        return Err(format!(
            "`{word}` cannot be called dead: general and predicate registers can, as `r2` or `p6-p15`, `ar.rsc`, and `stack`"
        ));
    }
    Ok(parts)
}

/// The area that a word names.
fn area(word: &str) -> Result<u8, String> {
    if word == "stack" {
        return Ok(STACK);
    }
    one(word).ok_or_else(|| {
        format!("`{word}` names no area: say a general register that addresses are made of, or `stack`")
    })
}

/// The register whose addresses a word calls resident.
fn pointer(word: &str) -> Result<u8, String> {
    one(word).ok_or_else(|| format!("`{word}` is no general register that addresses are made of"))
}

/// The general register that a word names.
fn one(word: &str) -> Option<u8> {
    let register = range(word, 'r').filter(|registers| registers.start() == registers.end());
    let register = register.map(|registers| *registers.start());
    register
        .filter(|register| (1..128).contains(register))
        .map(|register| register as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Assertions, AssemblyError> {
        Assertions::read(&Source::parse(text).lines, Path::new("a.s"))
    }

    #[test]
    fn comments_say_what_is_dead_and_what_never_overlaps() {
        let text =
            "// schedule: dead at slow: r2-r4, p6, ar.rsc, stack\n\t// schedule: apart: r2, stack\n// other";
        let assertions = read(text).expect("it is right");
        let dead = assertions.dead["slow"];
        assert_eq!((dead.general, dead.predicate), (0b11100, 1 << 6));
        assert!(dead.state.contains(State::STACK));
        assert_eq!(dead.application, 1 << RSC | 1 << BSPSTORE | 1 << RNAT);
        assert_eq!(assertions.apart, [2, STACK]);
    }

    #[test]
    fn what_is_not_known_is_refused_with_its_line() {
        for (text, part) in [
            (
                "\n// schedule: dead at slow: f2",
                "a.s: line 2: `f2` cannot be called dead",
            ),
            ("// schedule: dead at slow: r2-r200", "`r2-r200` cannot"),
            ("// schedule: apart: r0", "`r0` names no area"),
            ("// schedule: resident: stack", "`stack` is no general register"),
            ("// schedule: quickly", "say `dead at LABEL"),
        ] {
            let error = read(text).expect_err("it is wrong").to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
