//! The statements of a source, line by line.

/// What a line says, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// A label.
    Label(String),
    /// A directive with its arguments, templates of bundles without braces as well.
    Directive(String),
    /// An instruction, with its predicate, as it was written.
    Instruction(String),
    /// A `nop`, which the assembler or the scheduler makes anew.
    Nop,
    /// The end of an instruction group.
    Stop,
    /// The begin or the end of a bundle.
    Brace,
}

/// A line of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// As it was written.
    pub text: String,
    /// Its number in the file that it is from.
    pub number: usize,
    /// What it says.
    pub statements: Vec<Statement>,
    /// Its comment, with the characters that begin it.
    pub comment: String,
}

/// A source.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// Its lines.
    pub lines: Vec<Line>,
}

/// Directives that name the units of a bundle.
const TEMPLATES: &[&str] = &[
    ".mii", ".mlx", ".mmi", ".mfi", ".mmf", ".mib", ".mbb", ".bbb", ".mmb", ".mfb",
];

impl Source {
    /// Reads a source; macros of the assembler are expanded.
    pub fn parse(text: &str) -> Source {
        let mut source = Source::default();
        let mut in_comment = false;
        let mut number = 0usize;
        for text in text.lines() {
            number = number.wrapping_add(1);
            // A line of its own is a comment: around what a compiler was given as assembly, `#APP`. The preprocessor
            // says where the next line is from.
            if let Some(marker) = text.strip_prefix('#').filter(|_| !in_comment) {
                if let Some(next) = marker
                    .trim_start()
                    .split(' ')
                    .next()
                    .and_then(|next| next.parse::<usize>().ok())
                {
                    number = next.wrapping_sub(1);
                }
                source.lines.push(Line {
                    text: text.to_owned(),
                    number,
                    statements: Vec::new(),
                    comment: String::new(),
                });
                continue;
            }
            let (code, comment) = split_comment(text, &mut in_comment);
            // What a label names begins on a line of its own.
            let mut rest = code.as_str();
            while let Some((_, next)) = label(rest.trim_start()).filter(|(_, next)| !next.trim().is_empty()) {
                let label = &rest[..rest.len() - next.len()];
                source.lines.push(Line {
                    text: label.to_owned(),
                    number,
                    statements: statements(label),
                    comment: String::new(),
                });
                rest = next;
            }
            let is_whole = rest.len() == code.len();
            source.lines.push(Line {
                text: if is_whole {
                    text.to_owned()
                } else {
                    format!("{rest}{comment}")
                },
                number,
                statements: statements(rest),
                comment,
            });
        }
        source
    }
}

/// The names of the functions of a source, and the lines of their `.proc`, from 0.
pub(super) fn names(source: &Source) -> Vec<(String, usize)> {
    let mut names = Vec::new();
    for (index, line) in source.lines.iter().enumerate() {
        for statement in &line.statements {
            if let Statement::Directive(text) = statement
                && let Some(rest) = text.strip_prefix(".proc")
            {
                let name = rest
                    .split(',')
                    .next()
                    .unwrap_or_default()
                    .trim()
                    .trim_end_matches('#');
                names.push((name.to_owned(), index));
            }
        }
    }
    names
}

/// Whether what follows is in another section.
pub(super) fn begins_section(statement: &Statement) -> bool {
    const SECTIONS: [&str; 3] = [".text", ".section", ".previous"];
    match statement {
        Statement::Directive(text) => text
            .split([' ', '\t'])
            .next()
            .is_some_and(|word| SECTIONS.contains(&word)),
        _ => false,
    }
}

/// A line without its comments, and these.
fn split_comment(text: &str, in_comment: &mut bool) -> (String, String) {
    let (mut code, mut comment) = (String::new(), String::new());
    let mut in_string = false;
    let mut rest = text.char_indices().peekable();
    while let Some((at, character)) = rest.next() {
        let follows = |next: &str| text[at..].starts_with(next);
        if *in_comment {
            comment.push(character);
            if follows("*/") {
                comment.push('/');
                rest.next();
                *in_comment = false;
            }
        } else if in_string {
            code.push(character);
            if character == '\\'
                && let Some((_, next)) = rest.next()
            {
                code.push(next);
            }
            in_string = character != '"';
        } else if follows("//") {
            comment.push_str(&text[at..]);
            break;
        } else if follows("/*") {
            comment.push_str("/*");
            rest.next();
            *in_comment = true;
            code.push(' ');
        } else {
            in_string = character == '"';
            code.push(character);
        }
    }
    (code, comment)
}

/// The statements of a line of code.
fn statements(code: &str) -> Vec<Statement> {
    let mut statements = Vec::new();
    let mut rest = code.trim();
    while !rest.is_empty() {
        if let Some(next) = rest.strip_prefix(";;") {
            statements.push(Statement::Stop);
            rest = next.trim_start();
        } else if let Some(next) = rest.strip_prefix([';', '{', '}']) {
            if !rest.starts_with(';') {
                statements.push(Statement::Brace);
            }
            rest = next.trim_start();
        } else if let Some((label, next)) = label(rest) {
            statements.push(Statement::Label(label.to_owned()));
            rest = next.trim_start();
        } else {
            let (statement, next) = statement(rest);
            statements.push(statement);
            rest = next.trim_start();
        }
    }
    statements
}

/// A label at the begin of a text. One in brackets is a tag, which names the place of an instruction.
fn label(text: &str) -> Option<(&str, &str)> {
    let (inner, closing) = match text.strip_prefix('[') {
        Some(inner) => (inner, ":]"),
        None => (text, ":"),
    };
    let is_name = |character: char| character.is_alphanumeric() || "._$".contains(character);
    let end = inner
        .find(|character| !is_name(character))
        .filter(|end| *end > 0)?;
    let next = inner[end..].strip_prefix(closing)?;
    Some((&inner[..end], next.strip_prefix(':').unwrap_or(next)))
}

/// A directive or an instruction at the begin of a text, to the next separator.
fn statement(text: &str) -> (Statement, &str) {
    let mut in_string = false;
    let end = text
        .char_indices()
        .find(|(_, character)| {
            in_string ^= *character == '"';
            !in_string && ";{}".contains(*character)
        })
        .map_or(text.len(), |(at, _)| at);
    let (own, next) = (text[..end].trim(), &text[end..]);
    if own.starts_with('.') {
        let word = own.split_whitespace().next().unwrap_or_default();
        if TEMPLATES.contains(&word.to_ascii_lowercase().as_str()) {
            // What follows on the line is an instruction.
            return (Statement::Brace, &text[word.len()..]);
        }
        return (Statement::Directive(own.to_owned()), next);
    }
    let mnemonic = match own.starts_with('(') {
        true => own.split_once(')').map_or("", |(_, rest)| rest.trim_start()),
        false => own,
    };
    let word = mnemonic.split_whitespace().next().unwrap_or_default();
    let is_nop = word == "nop" || word.starts_with("nop.");
    let statement = match is_nop {
        true => Statement::Nop,
        false => Statement::Instruction(own.to_owned()),
    };
    (statement, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: &str) -> Vec<Statement> {
        Source::parse(code)
            .lines
            .into_iter()
            .flat_map(|line| line.statements)
            .collect()
    }

    #[test]
    fn lines_fall_into_labels_directives_instructions_and_stops() {
        let instruction = |text: &str| Statement::Instruction(text.to_owned());
        assert_eq!(
            of("f: { .mmi; add r1 = r2, r3; nop.m 0 // no\n(p6) cmp.eq p7, p8 = 1, r4 ;; }"),
            [
                Statement::Label("f".to_owned()),
                Statement::Brace,
                Statement::Brace,
                instruction("add r1 = r2, r3"),
                Statement::Nop,
                instruction("(p6) cmp.eq p7, p8 = 1, r4"),
                Statement::Stop,
                Statement::Brace,
            ]
        );
        assert_eq!(of("[.LEHB0:]"), [Statement::Label(".LEHB0".to_owned())]);
        assert_eq!(of(".string \"a;b//\" ;;").len(), 2);
        assert_eq!(
            of("/* add r1 = r2, r3\n ;; */ mov r1 = r2"),
            [instruction("mov r1 = r2")]
        );
    }

    #[test]
    fn labels_stand_on_lines_of_their_own() {
        let source = Source::parse("one: two: add r1 = r2, r3 // sum\nthree:");
        let texts: Vec<&str> = source.lines.iter().map(|line| line.text.trim()).collect();
        assert_eq!(texts, ["one:", "two:", "add r1 = r2, r3 // sum", "three:"]);
        let numbers: Vec<usize> = source.lines.iter().map(|line| line.number).collect();
        assert_eq!(numbers, [1, 1, 1, 2]);
    }

    #[test]
    fn numbers_follow_the_line_markers() {
        let source = Source::parse("# 7 \"a.S\"\nmov r1 = r2\n# 1 \"b.h\" 1\nmov r3 = r4");
        let numbers: Vec<usize> = source.lines.iter().map(|line| line.number).collect();
        assert_eq!(numbers[1], 7);
        assert_eq!(numbers[3], 1);
    }
}
