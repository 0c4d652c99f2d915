//! Operands that say where code stands otherwise than by a label alone: `.+32`, `1b+16`. Bundles between labels are
//! made anew, so what such an operand meant is elsewhere, or nowhere, then.

use std::collections::BTreeSet;

use super::source::{Source, Statement};

/// The labels of the code of a source's functions, without those that are numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels(BTreeSet<String>);

impl Labels {
    /// Those between `.proc` and `.endp`.
    pub fn of(source: &Source) -> Labels {
        let mut labels = BTreeSet::new();
        let mut is_inside = false;
        for statement in source.lines.iter().flat_map(|line| &line.statements) {
            match statement {
                Statement::Directive(text) if text.starts_with(".proc") => is_inside = true,
                Statement::Directive(text) if text.starts_with(".endp") => is_inside = false,
                Statement::Label(label) if is_inside && !is_number(label) => {
                    labels.insert(label.clone());
                }
                _ => {}
            }
        }
        Labels(labels)
    }

    /// Whether a word names a place in the code: one of the labels, or a number forward or backward.
    fn name(&self, word: &str) -> bool {
        self.0.contains(word) || word.strip_suffix(['f', 'b']).is_some_and(is_number)
    }

    /// Whether operands name a place in the code.
    pub fn are_in(&self, operands: &str) -> bool {
        words(operands).any(|(_, word)| self.name(word))
    }

    /// The operand that counts from a place, if one does: from here (`.`), or so many bytes from a label.
    pub fn counted<'a>(&self, operands: &'a str) -> Option<&'a str> {
        let here = parts(operands).find(|operand| words(operand).any(|(_, word)| word == "."));
        here.or_else(|| self.beside(operands)).map(str::trim)
    }

    /// The operand that names a place so many bytes from a label. The distance between two labels is that between them
    /// wherever they stand.
    fn beside<'a>(&self, operands: &'a str) -> Option<&'a str> {
        parts(operands).find(|operand| {
            let (mut places, mut numbers) = (0, 0);
            for (at, word) in words(operand) {
                let before = operand[..at].trim_end();
                let behind = operand[at + word.len()..].trim_start_matches('#').trim_start();
                if before.ends_with(['+', '-']) || behind.starts_with(['+', '-']) {
                    places += usize::from(self.name(word));
                    numbers += usize::from(is_constant(word) && !self.name(word));
                }
            }
            places == 1 && numbers > 0
        })
    }

    /// The first line of data that names a place in the code so many bytes from a label, and how. What debuggers read
    /// may.
    pub fn data<'a>(&self, source: &'a Source) -> Option<(usize, &'a str)> {
        let (mut is_inside, mut is_for_debuggers) = (false, false);
        for line in &source.lines {
            for statement in &line.statements {
                let (Statement::Directive(text) | Statement::Instruction(text)) = statement else {
                    continue;
                };
                match text.split_whitespace().next().unwrap_or_default() {
                    ".proc" => is_inside = true,
                    ".endp" => is_inside = false,
                    ".text" | ".data" | ".bss" | ".previous" => is_for_debuggers = false,
                    ".section" => is_for_debuggers = operands(text).trim_start().starts_with(".debug"),
                    ".size" | ".loc" => {}
                    _ if is_inside || is_for_debuggers => {}
                    _ => {
                        if let Some(operand) = self.beside(operands(text)) {
                            return Some((line.number, operand.trim()));
                        }
                    }
                }
            }
        }
        None
    }
}

/// The operands, one by one.
fn parts(operands: &str) -> impl Iterator<Item = &str> {
    operands.split([',', '=', '[', ']'])
}

/// Words of symbols and numbers, with where they begin.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || "._$".contains(character);
    let words = text.split(move |character| !is_part(character));
    let placed = words.map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word));
    placed.filter(|(_, word)| !word.is_empty())
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_constant(word: &str) -> bool {
    word.starts_with(|character: char| character.is_ascii_digit())
}

/// Whether a branch's target is a label before it: by its name, or by its number (`1b`).
pub(crate) fn goes_back(target: &str, label: &str) -> bool {
    target == label || is_number(label) && target.strip_suffix('b') == Some(label)
}

/// What stands behind the predicate and the mnemonic of an instruction, or behind the name of a directive.
pub(super) fn operands(text: &str) -> &str {
    let text = match text.strip_prefix('(') {
        Some(rest) => rest.split_once(')').map_or("", |(_, rest)| rest.trim_start()),
        None => text,
    };
    text.split_once([' ', '\t']).map_or("", |(_, operands)| operands)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_are_counted_from_others_are_found() {
        let labels = Labels::of(&Source::parse(
            "data:\n.proc f\nf: mov r8 = r9\n.L1: 1: br.ret.sptk b0\n.endp f",
        ));
        for (text, counted) in [
            ("(p6) br.cond.sptk .+32", Some(".+32")),
            ("br.cond.sptk . - 16", Some(". - 16")),
            ("br.cond.sptk 1f+16", Some("1f+16")),
            ("movl r14 = .L1 + 16", Some(".L1 + 16")),
            ("movl r14 = f#+16", Some("f#+16")),
            ("movl r14 = 0x10+.L1", Some("0x10+.L1")),
            ("data8 .L1+8", Some(".L1+8")),
            ("br.cond.sptk.many .L1", None),
            ("adds r14 = 1f-1b, r0", None),
            ("adds r14 = -8, r1", None),
            ("ld8 r14 = [r15], 8", None),
            ("addl r14 = @ltoff(data+8), gp", None),
            ("cmp.eq p6, p7 = r0, r9", None),
        ] {
            assert_eq!(labels.counted(operands(text)), counted, "{text}");
        }
        assert!(labels.are_in("r14 = .L1") && !labels.are_in("r14 = data"));
    }

    #[test]
    fn data_beside_labels_of_code_is_found_unless_it_is_for_debuggers() {
        let found = |data: &str| {
            let source = Source::parse(&format!(".proc f\nf: br.ret.sptk b0\n.endp f\n{data}"));
            Labels::of(&source)
                .data(&source)
                .map(|(line, operand)| (line, operand.to_owned()))
        };
        assert_eq!(found(".data\ndata8 f+16"), Some((5, "f+16".to_owned())));
        assert_eq!(found(".data\ndata8 f, 8, other+16"), None);
        assert_eq!(found(".section .debug_loc\ndata8.ua f-1"), None);
        assert_eq!(found(".size f, .-f"), None);
    }
}
