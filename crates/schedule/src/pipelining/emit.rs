//! The text of a pipelined loop: what goes before it, its kernel, and what follows.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::condition::Condition;
use super::modulo::Modulo;
use super::rotation::{FIRST_STAGE, Numbers};
use super::values::{Home, Value, Values};
use super::{Frame, Surroundings};
use crate::assembly::registers::{mentioned, rename};
use crate::assembly::{Text, write};
use crate::block::Block;
use crate::bundle::Placed;
use crate::rename::{File, Names};

/// The first stacked register.
const FIRST_STACKED: u8 = 32;

/// A loop with everything that its text is made of.
pub(super) struct Emitter<'a> {
    pub block: &'a Block,
    pub texts: &'a [Text],
    pub values: &'a Values,
    pub schedule: &'a Modulo,
    pub numbers: &'a Numbers,
    pub surroundings: &'a Surroundings,
    /// By item, whether the predicate of its iteration goes before it.
    pub is_staged: &'a [bool],
    /// What ends the loop, if it is not ar.lc.
    pub condition: Option<&'a Condition>,
    /// The register that keeps the predicates, of those that the function does not use, and another one.
    pub spare: [u8; 2],
    /// The label of the kernel.
    pub label: &'a str,
}

impl Emitter<'_> {
    /// Whether general registers rotate, so that the stacked ones are elsewhere meanwhile.
    fn moves_frame(&self) -> bool {
        self.numbers.general.size > 0
    }

    /// Where a register is while the loop runs, if it does not rotate.
    fn during(&self, file: File, register: u8) -> u8 {
        match file {
            File::General if self.moves_frame() && register >= FIRST_STACKED => {
                register + self.numbers.general.size
            }
            _ => register,
        }
    }

    /// The name of a value, so many stages behind the begin of its iteration.
    fn name(&self, index: usize, stages: u32) -> u8 {
        let value = &self.values.values[index];
        match (value.home, self.numbers.numbers[index]) {
            (Home::Rotating, Some(number)) => self.numbers.region(value.file).name(number, stages),
            (Home::Fixed(register), _) => self.during(value.file, register),
            _ => self.during(value.file, value.register),
        }
    }

    /// The predicate that is on in a stage if the iteration exists.
    fn exists(&self, stage: u32) -> u8 {
        match self.condition {
            None => FIRST_STAGE + stage as u8,
            Some(condition) => self.name(condition.value, stage + 1),
        }
    }

    /// The text, from before the loop to behind it.
    pub fn text(&self, bundles: &[Placed]) -> String {
        let mut text = String::new();
        self.before(&mut text);
        // Writing to a string cannot fail.
        // The front end takes pairs of bundles.
        let _ = writeln!(text, "\t.align 32\n{}:", self.label);
        let branch = Text {
            instruction: match self.condition {
                None => format!("br.ctop.sptk.few {}", self.label),
                Some(condition) => format!(
                    "(p{}) br.wtop.sptk.few {}",
                    self.name(condition.value, self.schedule.condition),
                    self.label
                ),
            },
            ..Text::default()
        };
        let mut texts: Vec<Text> = (0..self.block.items.len())
            .map(|item| self.kernel(item))
            .collect();
        texts.push(branch);
        write(&mut text, bundles, &texts);
        self.behind(&mut text);
        text
    }

    /// The stacked registers that the function names, which are elsewhere while the loop runs.
    fn stacked(&self) -> impl DoubleEndedIterator<Item = u8> + '_ {
        let size = if self.moves_frame() {
            self.frame().size()
        } else {
            0
        };
        let is_used = |register: &u8| self.surroundings.used.general >> register & 1 != 0;
        (FIRST_STACKED..FIRST_STACKED + size).filter(is_used)
    }

    fn frame(&self) -> Frame {
        self.surroundings.frame.unwrap_or(Frame::OF_LEAF)
    }

    fn before(&self, text: &mut String) {
        let rotating = self.numbers.general.size;
        if self.moves_frame() {
            let all = rotating + self.frame().size() + 1;
            let _ = writeln!(
                text,
                "\talloc r{} = ar.pfs, 0, {all}, 0, {rotating}\n\t;;",
                FIRST_STACKED + all - 1
            );
        }
        let _ = writeln!(text, "\tmov r{} = pr", self.spare[0]);
        let epilogue = match self.condition {
            None => self.schedule.stages(),
            Some(condition) => condition.epilogue(self.schedule),
        };
        let _ = writeln!(text, "\tmov ar.ec = {epilogue}");
        // From above, as the places of the lower ones may be registers of the frame.
        for register in self.stacked().rev() {
            let _ = writeln!(text, "\tmov r{} = r{register}", register + rotating);
        }
        let exists = self.exists(0);
        let _ = writeln!(text, "\t;;\n\tmov pr.rot = 1 << {exists}");
        for (index, value) in self.values.values.iter().enumerate() {
            if !value.is_carried() || value.file == File::Predicate {
                continue;
            }
            let (to, from) = (self.name(index, 1), self.during(value.file, value.register));
            if to != from {
                let letter = if value.file == File::Float { 'f' } else { 'r' };
                let _ = writeln!(text, "\tmov {letter}{to} = {letter}{from}");
            }
        }
        text.push_str("\t;;\n");
    }

    fn behind(&self, text: &mut String) {
        let stages = self.schedule.stages();
        for (index, value) in self
            .values
            .values
            .iter()
            .enumerate()
            .filter(|(_, value)| value.is_last)
        {
            let (from, to) = (self.name(index, stages), self.during(value.file, value.register));
            if from == to {
                continue;
            }
            let _ = match value.file {
                File::Predicate => writeln!(text, "\t(p{from}) cmp.eq.unc p{to}, p0 = r0, r0"),
                File::Float => writeln!(text, "\tmov f{to} = f{from}"),
                File::General => writeln!(text, "\tmov r{to} = r{from}"),
            };
        }
        // Of the predicates those that rotate; what the others are the loop has said.
        let _ = writeln!(
            text,
            "\t;;\n\tclrrrb\n\t;;\n\tmov pr = r{}, -0x10000",
            self.spare[0]
        );
        for register in self.stacked() {
            let _ = writeln!(
                text,
                "\tmov r{register} = r{}",
                register + self.numbers.general.size
            );
        }
        text.push_str("\t;;\n");
        if let (true, Some(frame)) = (self.moves_frame(), self.surroundings.frame) {
            let _ = writeln!(
                text,
                "\talloc r{} = ar.pfs, 0, {}, {}, 0\n\t;;",
                self.spare[1], frame.locals, frame.outputs
            );
        }
    }

    /// The text of an instruction in the kernel.
    fn kernel(&self, item: usize) -> Text {
        let own = &self.texts[item];
        let stage = self.schedule.stage(item);
        let named = mentioned(&own.instruction);
        let place = |file: File, register: u8, is_written: bool| -> u8 {
            let holds = |value: &Value| {
                (value.file, value.register) == (file, register)
                    && value.accesses.iter().any(|access| {
                        access.item == item && if is_written { access.writes } else { access.reads }
                    })
            };
            match self.values.values.iter().position(holds) {
                Some(index) => {
                    let value = &self.values.values[index];
                    let mut accesses = value.accesses.iter();
                    let is_next = !is_written
                        && accesses.any(|access| access.item == item && access.reads && access.is_next);
                    self.name(index, stage + u32::from(is_next))
                }
                None => self.during(file, register),
            }
        };
        let pairs = |registers: std::collections::BTreeSet<(File, u8)>, is_written: bool| {
            let names: BTreeMap<(File, u8), u8> = registers
                .into_iter()
                .map(|(file, register)| ((file, register), place(file, register, is_written)))
                .collect();
            names
                .into_iter()
                .filter(|((_, from), to)| from != to)
                .map(|((file, from), to)| (file, from, to))
                .collect()
        };
        let names = Names {
            reads: pairs(named.reads, false),
            writes: pairs(named.writes, true),
        };
        let effects = &self.block.items[item].effects;
        let mut instruction = rename(&own.instruction, &names);
        let keeps = stage > 0 && self.condition.is_some_and(|condition| condition.maker == item);
        if keeps {
            instruction = instruction.replacen(".unc", "", 1);
        }
        if self.is_staged[item] {
            if effects.complements && !effects.writes_when_off && !keeps {
                instruction = unconditional(&instruction);
            }
            instruction = format!("(p{}) {instruction}", self.exists(stage));
        }
        Text {
            label: String::new(),
            // What the source's say of predicates holds of other ones now.
            directives: self.exclusive(item).into_iter().collect(),
            instruction,
            comment: own.comment.clone(),
        }
    }
}

impl Emitter<'_> {
    /// For the assembler: the predicate of an instruction and the other one of its compare, which has become another
    /// register meanwhile.
    fn exclusive(&self, item: usize) -> Option<String> {
        let effects = &self.block.items[item].effects;
        let values = &self.values.values;
        let maker = |value: &Value| value.accesses.first().map(|access| access.item);
        let is_read = |value: &Value| {
            let mut accesses = value.accesses.iter();
            (value.file, value.register) == (File::Predicate, effects.qualifier)
                && accesses.any(|access| access.item == item && access.reads)
        };
        let own = values.iter().position(is_read)?;
        let is_other = |other: &usize| {
            *other != own
                && values[*other].file == File::Predicate
                && maker(&values[*other]) == maker(&values[own])
        };
        let other = (0..values.len()).find(is_other)?;
        let complements = self.block.items[maker(&values[own])?].effects.complements;
        let stage = self.schedule.stage(item);
        let (own, other) = (self.name(own, stage), self.name(other, stage));
        complements.then(|| format!(".pred.rel \"mutex\", p{own}, p{other}"))
    }
}

/// A compare's text as that of one that clears both predicates where its own is off.
fn unconditional(text: &str) -> String {
    let mnemonic = text.split_whitespace().next().unwrap_or_default();
    let mut parts: Vec<&str> = mnemonic.split('.').collect();
    if !parts.contains(&"unc") {
        parts.insert(2.min(parts.len()), "unc");
    }
    text.replacen(mnemonic, &parts.join("."), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_get_the_type_behind_their_relation() {
        for (text, wanted) in [
            ("cmp.eq p6, p7 = r14, r15", "cmp.eq.unc p6, p7 = r14, r15"),
            ("fcmp.lt.s0 p6, p7 = f6, f7", "fcmp.lt.unc.s0 p6, p7 = f6, f7"),
            ("tbit.z p6, p7 = r14, 3", "tbit.z.unc p6, p7 = r14, 3"),
            ("cmp4.ne.unc p6, p7 = r14, r15", "cmp4.ne.unc p6, p7 = r14, r15"),
        ] {
            assert_eq!(unconditional(text), wanted);
        }
    }
}
