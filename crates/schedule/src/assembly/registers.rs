//! The text of an instruction with other registers.

use std::collections::BTreeSet;

use crate::rename::{File, Names};

/// The registers that a text names by file and number: those it reads, and those it writes, of which it may say more
/// by other names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mentioned {
    /// Behind the equals sign, in brackets, and the qualifying predicate.
    pub reads: BTreeSet<(File, u8)>,
    /// Before the equals sign.
    pub writes: BTreeSet<(File, u8)>,
}

/// The registers that an instruction's text names.
pub fn mentioned(text: &str) -> Mentioned {
    let mut mentioned = Mentioned::default();
    walk(text, |word, is_written| {
        if let Some(register) = numbered(word) {
            match is_written {
                true => mentioned.writes.insert(register),
                false => mentioned.reads.insert(register),
            };
        }
        None
    });
    mentioned
}

/// An instruction's text with the registers named otherwise. What stands before the equals sign is written, but for
/// the qualifying predicate and what is in brackets.
pub fn rename(text: &str, names: &Names) -> String {
    walk(text, |word, is_written| {
        let pairs = if is_written { &names.writes } else { &names.reads };
        let (file, number) = numbered(word)?;
        let pair = pairs
            .iter()
            .find(|(of, from, _)| (*of, *from) == (file, number))?;
        Some(format!("{}{}", letter(file), pair.2))
    })
}

/// Puts other words into a text; each is told with whether it stands where registers are written.
fn walk(text: &str, mut other: impl FnMut(&str, bool) -> Option<String>) -> String {
    let equals = text.find('=').unwrap_or(text.len());
    let has_outputs = equals < text.len();
    let mut renamed = String::new();
    let (mut in_brackets, mut in_parentheses) = (false, false);
    let is_part = |character: char| character.is_ascii_alphanumeric() || "._$@".contains(character);
    let mut at = 0;
    while let Some(character) = text[at..].chars().next() {
        if !is_part(character) {
            match character {
                '[' => in_brackets = true,
                ']' => in_brackets = false,
                '(' => in_parentheses = true,
                ')' => in_parentheses = false,
                _ => {}
            }
            renamed.push(character);
            at += character.len_utf8();
            continue;
        }
        let length = text[at..].find(|next| !is_part(next)).unwrap_or(text.len() - at);
        let word = &text[at..at + length];
        let is_written = has_outputs && at < equals && !in_brackets && !in_parentheses;
        renamed.push_str(&other(word, is_written).unwrap_or_else(|| word.to_owned()));
        at += length;
    }
    renamed
}

/// How the names of a file's registers begin.
fn letter(file: File) -> char {
    match file {
        File::General => 'r',
        File::Float => 'f',
        File::Predicate => 'p',
    }
}

/// The register that a word names by its number.
fn numbered(word: &str) -> Option<(File, u8)> {
    let file = match word.chars().next()? {
        'r' => File::General,
        'f' => File::Float,
        'p' => File::Predicate,
        _ => return None,
    };
    let number: u8 = word[1..].parse().ok()?;
    file.registers().contains(&number).then_some((file, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_of_one_register_get_different_names() {
        let names = Names {
            reads: vec![(File::General, 2, 40), (File::Predicate, 6, 20)],
            writes: vec![(File::General, 2, 41), (File::Predicate, 6, 21)],
        };
        for (text, wanted) in [
            ("add r2 = r2, r20", "add r41 = r40, r20"),
            ("(p6) st8 [r2] = r2, 16", "(p20) st8 [r40] = r40, 16"),
            (
                "(p6) cmp.ne.unc p6, p0 = r2, r3",
                "(p20) cmp.ne.unc p21, p0 = r40, r3",
            ),
            ("tnat.nz p6, p0 = r2", "tnat.nz p21, p0 = r40"),
            ("movl r2 = r2_table + 2", "movl r41 = r2_table + 2"),
            ("fc r2", "fc r40"),
        ] {
            assert_eq!(rename(text, &names), wanted);
        }
    }
}
