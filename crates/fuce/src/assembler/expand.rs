//! From files to plain lines: `.include`, `.macro`, `.if` and `.equ` are carried out here.
//!
//! A macro's body is text; `\name` is replaced by the argument and `\@` by `$` and a number that differs in each
//! expansion; labels with a `$` are local and do not become symbols. A
//! condition must be known where it stands: it may use constants of `.equ` and of the command line, not labels.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::diagnostic::{Diagnostic, Place};
use super::expression::Cursor;
use super::lexer::{At, Kind, Token, at, in_name, tokens};

/// How deep macros and included files may nest.
const NESTING_MAX: usize = 64;
/// How many lines a program may have after expansion; more is a macro that expands for ever.
const LINES_MAX: usize = 1_000_000;

/// Gives an included file's text by its name.
pub type Include<'a> = dyn Fn(&str) -> Option<String> + 'a;

#[derive(Debug, Clone)]
struct Macro {
    parameters: Vec<String>,
    body: Vec<Place>,
}

#[derive(Debug, Clone)]
struct Line {
    place: Place,
    nesting: usize,
}

/// An `.if` that has not met its `.endif`.
#[derive(Debug, Clone)]
struct Condition {
    place: Place,
    column: usize,
    /// Whether the lines now read belong to the program.
    active: bool,
    /// Whether `.else` would be active.
    otherwise: bool,
    seen_else: bool,
}

/// The expander: feed it a file, then take lines.
pub struct Expander<'a> {
    include: &'a Include<'a>,
    lines: VecDeque<Line>,
    macros: BTreeMap<String, Macro>,
    conditions: Vec<Condition>,
    /// Constants known so far.
    pub constants: BTreeMap<String, i64>,
    expansions: usize,
    produced: usize,
}

/// A line that is left after expansion.
pub struct Plain {
    /// Where it stands.
    pub place: Place,
    /// Its tokens; never empty.
    pub tokens: Vec<Token>,
}

impl<'a> Expander<'a> {
    /// An expander of one file.
    pub fn new(
        name: &str,
        source: &str,
        constants: BTreeMap<String, i64>,
        include: &'a Include<'a>,
    ) -> Expander<'a> {
        let lines = file_lines(name, source, 0).collect();
        Expander {
            include,
            lines,
            macros: BTreeMap::new(),
            conditions: Vec::new(),
            constants,
            expansions: 0,
            produced: 0,
        }
    }

    /// The next plain line; `None` at the end of the program.
    pub fn next_line(&mut self) -> Option<Result<Plain, Diagnostic>> {
        loop {
            let Some(Line { place, nesting }) = self.lines.pop_front() else {
                let open = self.conditions.pop()?;
                return Some(Err(Diagnostic {
                    place: open.place,
                    column: open.column,
                    message: "this `.if` has no `.endif`".to_string(),
                }));
            };
            self.produced += 1;
            let outcome = if self.produced > LINES_MAX {
                self.lines.clear();
                self.conditions.clear();
                at(
                    1,
                    format!("the program has more than {LINES_MAX} lines after expansion"),
                )
            } else {
                self.line(&place, nesting)
            };
            match outcome {
                Ok(Some(tokens)) => return Some(Ok(Plain { place, tokens })),
                Ok(None) => {}
                Err(At { column, message }) => {
                    return Some(Err(Diagnostic {
                        place,
                        column,
                        message,
                    }));
                }
            }
        }
    }

    fn active(&self) -> bool {
        self.conditions.iter().all(|condition| condition.active)
    }

    /// Carries out one line, or answers its tokens.
    fn line(&mut self, place: &Place, nesting: usize) -> Result<Option<Vec<Token>>, At> {
        // Lines that are passed over need not even consist of tokens.
        let word: String = place
            .text
            .trim_start()
            .chars()
            .take_while(|character| in_name(*character))
            .collect();
        if !self.active() && !matches!(word.as_str(), ".if" | ".else" | ".endif") {
            return Ok(None);
        }
        let tokens = tokens(&place.text)?;
        let Some(Token {
            kind: Kind::Name(name),
            column,
        }) = tokens.first()
        else {
            return Ok((!tokens.is_empty()).then_some(tokens));
        };
        let mut cursor = Cursor::new(&tokens, place.text.chars().count());
        cursor.take();
        match name.as_str() {
            ".if" => self.open_condition(place, *column, &mut cursor)?,
            ".else" | ".endif" => {
                cursor.expect_end(&format!("`{name}`"))?;
                self.turn_condition(name, *column)?;
            }
            ".include" => self.include(&mut cursor, nesting)?,
            ".macro" => self.define_macro(place, *column, &mut cursor)?,
            ".endm" => return at(*column, "`.endm` without `.macro`"),
            ".equ" => self.define_constant(&mut cursor)?,
            _ => return self.call(place, tokens, nesting),
        }
        Ok(None)
    }

    fn open_condition(&mut self, place: &Place, column: usize, cursor: &mut Cursor) -> Result<(), At> {
        // Inside passed-over lines a condition is only counted.
        let holds = if self.active() {
            let value = self.constant(cursor, "a condition")?;
            cursor.expect_end("the condition")?;
            value != 0
        } else {
            true
        };
        self.conditions.push(Condition {
            place: place.clone(),
            column,
            active: holds,
            otherwise: !holds,
            seen_else: false,
        });
        Ok(())
    }

    fn turn_condition(&mut self, name: &str, column: usize) -> Result<(), At> {
        let Some(condition) = self.conditions.last_mut() else {
            return at(column, format!("`{name}` without `.if`"));
        };
        if name == ".endif" {
            self.conditions.pop();
        } else if condition.seen_else {
            return at(column, "this `.if` has an `.else` already");
        } else {
            condition.seen_else = true;
            condition.active = condition.otherwise;
        }
        Ok(())
    }

    fn include(&mut self, cursor: &mut Cursor, nesting: usize) -> Result<(), At> {
        let column = cursor.column();
        let Some(Token {
            kind: Kind::Text(name),
            ..
        }) = cursor.take()
        else {
            return at(column, "expected a file name in double quotes");
        };
        cursor.expect_end("the file name")?;
        let name = String::from_utf8_lossy(name);
        if nesting >= NESTING_MAX {
            return at(column, format!("files and macros nest deeper than {NESTING_MAX}"));
        }
        let Some(source) = (self.include)(&name) else {
            return at(column, format!("cannot read `{name}`"));
        };
        let lines: Vec<Line> = file_lines(&name, &source, nesting + 1).collect();
        for line in lines.into_iter().rev() {
            self.lines.push_front(line);
        }
        Ok(())
    }

    fn define_constant(&mut self, cursor: &mut Cursor) -> Result<(), At> {
        let (name, column) = cursor.expect_name("a name for the constant")?;
        cursor.expect_sign(",", "after the constant's name")?;
        let value = self.constant(cursor, "the constant's value")?;
        cursor.expect_end("the constant's value")?;
        if self.constants.contains_key(&name) {
            return at(column, format!("`{name}` is defined already"));
        }
        self.constants.insert(name, value);
        Ok(())
    }

    /// An expression whose names are all known constants.
    fn constant(&self, cursor: &mut Cursor, what: &str) -> Result<i64, At> {
        let column = cursor.column();
        let expression = cursor.expression(what)?;
        if expression == super::expression::Expression::Here {
            return at(column, "the address is not known here");
        }
        expression.evaluate(0, &|name, column| match self.constants.get(name) {
            Some(value) => Ok(*value),
            None => at(
                column,
                format!("`{name}` must be a constant defined before this line"),
            ),
        })
    }

    fn define_macro(&mut self, place: &Place, column: usize, cursor: &mut Cursor) -> Result<(), At> {
        let (name, name_column) = cursor.expect_name("a name for the macro")?;
        let mut parameters = Vec::new();
        while cursor.peek().is_some() {
            if !parameters.is_empty() {
                cursor.expect_sign(",", "between parameters")?;
            }
            parameters.push(cursor.expect_name("a parameter's name")?.0);
        }
        let mut body = Vec::new();
        loop {
            let Some(line) = self.lines.pop_front() else {
                return at(column, format!("macro `{name}` has no `.endm`"));
            };
            let word = line.place.text.trim_start();
            if word.starts_with(".endm") && !word[5..].starts_with(in_name) {
                break;
            }
            if word.starts_with(".macro") && !word[6..].starts_with(in_name) {
                return at(
                    column,
                    format!(
                        "macro `{name}` contains another `.macro`, on line {}",
                        line.place.line
                    ),
                );
            }
            body.push(line.place);
        }
        if super::statement::is_reserved(&name) {
            return at(
                name_column,
                format!("`{name}` is an instruction or directive and cannot be a macro"),
            );
        }
        if self
            .macros
            .insert(name.clone(), Macro { parameters, body })
            .is_some()
        {
            return at(
                name_column,
                format!("macro `{name}` is defined already, {}", place.file),
            );
        }
        Ok(())
    }

    /// A line of the program: a macro's call is replaced by its body, and only the labels before it are left.
    fn call(
        &mut self,
        place: &Place,
        mut tokens: Vec<Token>,
        nesting: usize,
    ) -> Result<Option<Vec<Token>>, At> {
        let mut first = 0;
        while matches!(
            tokens.get(first + 1),
            Some(Token {
                kind: Kind::Sign(":"),
                ..
            })
        ) {
            first += 2;
        }
        match tokens.get(first) {
            Some(Token {
                kind: Kind::Name(name),
                ..
            }) if self.macros.contains_key(name) => {
                self.call_macro(name, place, &tokens[first..], nesting)?;
                tokens.truncate(first);
                Ok((first > 0).then_some(tokens))
            }
            _ => Ok(Some(tokens)),
        }
    }

    fn call_macro(&mut self, name: &str, place: &Place, tokens: &[Token], nesting: usize) -> Result<(), At> {
        let column = tokens[0].column;
        if nesting >= NESTING_MAX {
            return at(
                column,
                format!("files and macros nest deeper than {NESTING_MAX}; does `{name}` call itself?"),
            );
        }
        let arguments = arguments(&place.text, tokens);
        let definition = &self.macros[name];
        if arguments.len() != definition.parameters.len() {
            let expected = definition.parameters.len();
            return at(
                column,
                format!(
                    "macro `{name}` takes {expected} arguments, not {}",
                    arguments.len()
                ),
            );
        }
        self.expansions += 1;
        let outer = place
            .expansion
            .as_ref()
            .map_or(String::new(), |outer| format!(", {outer}"));
        let note: Rc<str> = format!(
            "in macro `{name}`, called at {}:{}{outer}",
            place.file, place.line
        )
        .into();
        let lines: Vec<Line> = definition
            .body
            .iter()
            .map(|line| {
                let text = substitute(&line.text, &definition.parameters, &arguments, self.expansions);
                let place = Place {
                    file: line.file.clone(),
                    line: line.line,
                    text: text.into(),
                    expansion: Some(note.clone()),
                };
                Line {
                    place,
                    nesting: nesting + 1,
                }
            })
            .collect();
        for line in lines.into_iter().rev() {
            self.lines.push_front(line);
        }
        Ok(())
    }
}

fn file_lines(name: &str, source: &str, nesting: usize) -> impl Iterator<Item = Line> {
    let file: Rc<str> = name.into();
    source
        .lines()
        .enumerate()
        .map(|(index, text)| Line {
            place: Place {
                file: file.clone(),
                line: index + 1,
                text: text.into(),
                expansion: None,
            },
            nesting,
        })
        .collect::<Vec<_>>()
        .into_iter()
}

/// The texts between the commas after the macro's name; commas inside parentheses do not count.
fn arguments(text: &str, tokens: &[Token]) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let mut starts = Vec::new();
    let mut depth = 0;
    for token in &tokens[1..] {
        match &token.kind {
            Kind::Sign("(") => depth += 1,
            Kind::Sign(")") => depth -= 1,
            Kind::Sign(",") if depth == 0 => starts.push(token.column),
            _ => {}
        }
    }
    if tokens.len() == 1 {
        return Vec::new();
    }
    // A comment after the last argument is no part of it: it ends where the last token does.
    let last = &tokens[tokens.len() - 1];
    let end = comment_start(&characters, last.column - 1);
    let first = tokens[1].column - 1;
    let mut edges = vec![first];
    edges.extend(starts.iter().copied());
    let mut arguments = Vec::new();
    for (index, from) in edges.iter().enumerate() {
        let to = edges.get(index + 1).map_or(end, |next| next - 1);
        arguments.push(
            characters[*from..to.max(*from)]
                .iter()
                .collect::<String>()
                .trim()
                .to_string(),
        );
    }
    arguments
}

/// Where the comment after the token at `from` begins, or the line's length.
fn comment_start(characters: &[char], from: usize) -> usize {
    let mut quote = None;
    let mut position = from;
    while position < characters.len() {
        let character = characters[position];
        match quote {
            Some(_) if character == '\\' => position += 1,
            Some(open) if character == open => quote = None,
            Some(_) => {}
            None if character == '"' || character == '\'' => quote = Some(character),
            None if character == '#' || characters[position..].starts_with(&['/', '/']) => return position,
            None => {}
        }
        position += 1;
    }
    characters.len()
}

fn substitute(text: &str, parameters: &[String], arguments: &[String], expansion: usize) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(position) = rest.find('\\') {
        result.push_str(&rest[..position]);
        rest = &rest[position + 1..];
        if let Some(after) = rest.strip_prefix('@') {
            result.push_str(&format!("${expansion}"));
            rest = after;
            continue;
        }
        let length = rest
            .find(|character| !in_name(character) || character == '.')
            .unwrap_or(rest.len());
        match parameters
            .iter()
            .position(|parameter| *parameter == rest[..length])
        {
            Some(index) => {
                result.push_str(&arguments[index]);
                rest = &rest[length..];
            }
            None => result.push('\\'),
        }
    }
    result.push_str(rest);
    result
}
