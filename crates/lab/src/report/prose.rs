//! Paragraphs of text: sentences broken between words, where a terminal would break them inside.

/// Columns of text that a line has at least, however narrow the terminal is.
const TEXT_MIN: usize = 20;

/// Appends `begin` and the words of `said` in lines of at most `width` characters; the second and further ones are
/// indented by `indent`. A word that is too long for a line has one of its own.
pub(super) fn paragraph(text: &mut String, begin: &str, said: &str, indent: usize, width: usize) {
    let width = width.max(indent + TEXT_MIN);
    let mut used = begin.chars().count();
    let mut is_first_word = true;
    text.push_str(begin);
    for word in said.split_whitespace() {
        let length = word.chars().count();
        let room = usize::from(!is_first_word) + length;
        if used + room > width && used > indent {
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
            text.extend(std::iter::repeat_n(' ', indent));
            used = indent;
        } else if !is_first_word {
            text.push(' ');
            used += 1;
        }
        text.push_str(word);
        used += length;
        is_first_word = false;
    }
    text.truncate(text.trim_end_matches(' ').len());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(begin: &str, said: &str, indent: usize, width: usize) -> String {
        let mut text = String::new();
        paragraph(&mut text, begin, said, indent, width);
        text
    }

    #[test]
    fn lines_break_between_words_and_hang_below_their_beginning() {
        let said = "the policy of the point: sets of the load";
        assert_eq!(
            written("  sidestep  ", said, 12, 35),
            "  sidestep  the policy of the\n            point: sets of the load\n"
        );
        assert_eq!(
            written("  sidestep  ", said, 12, 120),
            format!("  sidestep  {said}\n")
        );
    }

    #[test]
    fn what_fits_exactly_stays_and_a_word_too_long_stands_alone() {
        assert_eq!(
            written("", "0123456789 012345678 x", 0, 20),
            "0123456789 012345678\nx\n"
        );
        let long = "x".repeat(40);
        assert_eq!(
            written("a: ", &format!("b {long} c"), 2, 22),
            format!("a: b\n  {long}\n  c\n")
        );
        assert_eq!(written("  nothing  ", "", 4, 30), "  nothing\n");
    }
}
