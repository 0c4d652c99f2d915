//! The text of an instruction with other registers.

use crate::rename::{File, Names};

/// An instruction's text with the registers named otherwise. What stands before the equals sign is written, but for
/// the qualifying predicate and what is in brackets.
pub fn rename(text: &str, names: &Names) -> String {
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
        let pairs = if is_written { &names.writes } else { &names.reads };
        renamed.push_str(&register(word, pairs).unwrap_or_else(|| word.to_owned()));
        at += length;
    }
    renamed
}

/// The name that a word gets, if it is a register with another one.
fn register(word: &str, pairs: &[(File, u8, u8)]) -> Option<String> {
    let (file, letter) = match word.chars().next()? {
        'r' => (File::General, 'r'),
        'p' => (File::Predicate, 'p'),
        _ => return None,
    };
    let number: u8 = word[1..].parse().ok()?;
    let pair = pairs
        .iter()
        .find(|(of, from, _)| (*of, *from) == (file, number))?;
    Some(format!("{letter}{}", pair.2))
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
