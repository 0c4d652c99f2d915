//! The assembler's macros, expanded: a schedule has no room for them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::AssemblyError;

/// Macros within macros, at most.
const DEPTH_MAX: usize = 32;
/// Lines of an expanded source, at most.
const LINES_MAX: usize = 1 << 20;

/// A macro.
struct Macro {
    parameters: Vec<String>,
    body: Vec<String>,
}

/// The text with its macros expanded; definitions stay, as text outside functions may use them.
///
/// # Errors
/// [`AssemblyError`] for a macro without an end, or one that expands without end.
pub fn expand(text: &str, path: &Path) -> Result<String, AssemblyError> {
    let mut expansion = Expansion {
        macros: BTreeMap::new(),
        out: String::new(),
        lines: 0,
        uses: 0,
        path,
        file: path.display().to_string(),
    };
    let mut number = 0usize;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        number = number.wrapping_add(1);
        if let Some((next, file)) = marker(line) {
            number = next.wrapping_sub(1);
            expansion.file = file.to_owned();
        }
        if let Some(definition) = directive(line, ".macro") {
            let start = number;
            expansion.push(line);
            let mut body = Vec::new();
            loop {
                let line = lines
                    .next()
                    .ok_or_else(|| AssemblyError::statement(path, start, "the macro has no .endm"))?;
                number = number.wrapping_add(1);
                expansion.push(line);
                if directive(line, ".endm").is_some() {
                    break;
                }
                body.push(line.to_owned());
            }
            expansion.define(definition, body);
            continue;
        }
        if expansion.line(line, number, 0)? {
            // What follows is where it was.
            let marker = format!("# {} \"{}\"", number.wrapping_add(1), expansion.file);
            expansion.push(&marker);
        }
    }
    Ok(expansion.out)
}

/// The line and file of a marker of the preprocessor.
fn marker(line: &str) -> Option<(usize, &str)> {
    let (number, rest) = line.strip_prefix("# ")?.split_once(' ')?;
    Some((number.parse().ok()?, rest.split('"').nth(1)?))
}

/// What follows a directive, if the line is one.
fn directive<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line.trim_start().strip_prefix(name)?;
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then(|| rest.trim())
}

/// Arguments or parameters: parted by commas, or by spaces where there are none.
fn arguments(text: &str) -> Vec<String> {
    let mut arguments = vec![String::new()];
    let mut in_string = false;
    for character in text.trim().chars() {
        match character {
            '"' => in_string = !in_string,
            ',' if !in_string => arguments.push(String::new()),
            _ => arguments.last_mut().expect("there is always one").push(character),
        }
    }
    let trimmed = arguments.into_iter().map(|argument| argument.trim().to_owned());
    trimmed.filter(|argument| !argument.is_empty()).collect()
}

struct Expansion<'a> {
    macros: BTreeMap<String, Macro>,
    out: String,
    lines: usize,
    /// Macros that were used so far, which `\@` stands for.
    uses: usize,
    path: &'a Path,
    file: String,
}

impl Expansion<'_> {
    fn push(&mut self, line: &str) {
        self.lines += 1;
        // Writing to a string cannot fail.
        let _ = writeln!(self.out, "{line}");
    }

    fn define(&mut self, definition: &str, body: Vec<String>) {
        let (name, parameters) = definition
            .split_once([' ', '\t', ','])
            .unwrap_or((definition, ""));
        let names = match parameters.contains(',') {
            true => arguments(parameters),
            false => parameters.split_whitespace().map(str::to_owned).collect(),
        };
        let parameters = names.into_iter().map(|parameter| {
            parameter
                .split([':', '='])
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned()
        });
        self.macros.insert(
            name.to_owned(),
            Macro {
                parameters: parameters.collect(),
                body,
            },
        );
    }

    /// Writes a line, or what its macro says; whether it was a macro.
    fn line(&mut self, line: &str, number: usize, depth: usize) -> Result<bool, AssemblyError> {
        let code = line.split("//").next().unwrap_or_default().trim();
        let (word, rest) = code.split_once([' ', '\t']).unwrap_or((code, ""));
        let Some(used) = self.macros.get(word) else {
            self.push(line);
            return Ok(false);
        };
        if depth == DEPTH_MAX || self.lines > LINES_MAX {
            return Err(AssemblyError::statement(
                self.path,
                number,
                format!("macro `{word}` expands without end"),
            ));
        }
        let arguments = arguments(rest);
        let uses = self.uses.to_string();
        self.uses += 1;
        let body: Vec<String> = used
            .body
            .iter()
            .map(|line| {
                let mut line = line.clone();
                for (index, parameter) in used.parameters.iter().enumerate() {
                    let value = arguments.get(index).map_or("", String::as_str);
                    line = line.replace(&format!("\\{parameter}"), value);
                }
                line.replace("\\@", &uses).replace("\\()", "")
            })
            .collect();
        for line in body {
            // Every line of it is the line that asked for it.
            let marker = format!("# {number} \"{}\"", self.file);
            self.push(&marker);
            self.line(&line, number, depth + 1)?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_take_the_place_of_parameters() {
        let text =
            ".macro both first, second\nadd \\first = r2, r3\nmov \\second = \\first\n.endm\nboth r4, r5\n";
        let expanded = expand(text, Path::new("a.s")).expect("the macro has an end");
        let code: Vec<&str> = expanded
            .lines()
            .skip(4)
            .filter(|line| !line.starts_with('#'))
            .collect();
        assert_eq!(code, ["add r4 = r2, r3", "mov r5 = r4"]);
    }

    #[test]
    fn each_use_of_a_macro_has_a_number() {
        let text = ".macro on\n.Lhere\\@:\n.endm\non\non\n";
        let expanded = expand(text, Path::new("a.s")).expect("the macro has an end");
        assert!(
            expanded.contains("\n.Lhere0:\n") && expanded.contains("\n.Lhere1:\n"),
            "{expanded}"
        );
    }

    #[test]
    fn what_has_no_end_is_refused() {
        for text in [".macro open\nnop 0\n", ".macro again\nagain\n.endm\nagain\n"] {
            expand(text, Path::new("a.s")).expect_err("no end");
        }
    }
}
