//! A source line as tokens. `#` and `//` begin a comment.

/// What a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A name: letters, digits, `_`, `.` and `$`, not beginning with a digit.
    Name(String),
    /// A number: decimal, `0x`, `0o`, `0b`, or a character in single quotes.
    Number(i64),
    /// A string in double quotes, escapes resolved.
    Text(Vec<u8>),
    /// An operator or punctuation.
    Sign(&'static str),
}

impl Kind {
    /// The token as an error message shows it.
    pub fn show(&self) -> String {
        match self {
            Kind::Name(name) => format!("`{name}`"),
            Kind::Number(number) => format!("the number {number}"),
            Kind::Text(_) => "a string".to_string(),
            Kind::Sign(sign) => format!("`{sign}`"),
        }
    }
}

/// A token and the column it begins in, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Where it begins.
    pub column: usize,
}

/// An error in a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct At {
    /// The column, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

/// An error in a column.
pub fn at<T>(column: usize, message: impl Into<String>) -> Result<T, At> {
    Err(At {
        column,
        message: message.into(),
    })
}

const SIGNS: &[&str] = &[
    "<<", ">>", "==", "!=", "<=", ">=", "&&", "||", ",", ":", "(", ")", "+", "-", "*", "/", "%", "&", "|",
    "^", "~", "<", ">", "!", "=",
];

/// Whether a character can be part of a name.
pub fn in_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '$')
}

/// The tokens of a line.
///
/// # Errors
/// At the first character that begins no token, an unfinished string, or a number that does not fit 64 bits.
pub fn tokens(line: &str) -> Result<Vec<Token>, At> {
    let characters: Vec<char> = line.chars().collect();
    let mut tokens = Vec::new();
    let mut next = 0;
    while next < characters.len() {
        let column = next + 1;
        let character = characters[next];
        let rest = &characters[next..];
        if character.is_whitespace() {
            next += 1;
            continue;
        }
        if character == '#' || rest.starts_with(&['/', '/']) {
            break;
        }
        let (kind, length) = if character.is_ascii_digit() {
            number(rest, column)?
        } else if in_name(character) {
            let name: String = rest.iter().take_while(|character| in_name(**character)).collect();
            let length = name.len();
            (Kind::Name(name), length)
        } else if character == '"' {
            string(rest, column)?
        } else if character == '\'' {
            let (byte, length) = escaped(&rest[1..], column + 1)?;
            if rest.get(1 + length) != Some(&'\'') {
                return at(column, "expected a closing `'` after one character");
            }
            (Kind::Number(byte.into()), length + 2)
        } else {
            let sign = SIGNS
                .iter()
                .find(|sign| sign.chars().eq(rest.iter().copied().take(sign.len())));
            match sign {
                Some(sign) => (Kind::Sign(sign), sign.len()),
                None => return at(column, format!("unexpected character `{character}`")),
            }
        };
        tokens.push(Token { kind, column });
        next += length;
    }
    Ok(tokens)
}

fn number(rest: &[char], column: usize) -> Result<(Kind, usize), At> {
    let word: String = rest
        .iter()
        .take_while(|character| character.is_ascii_alphanumeric() || **character == '_')
        .collect();
    let digits = word.replace('_', "");
    let (radix, digits) = match digits.get(..2) {
        Some("0x" | "0X") => (16, &digits[2..]),
        Some("0b" | "0B") => (2, &digits[2..]),
        Some("0o" | "0O") => (8, &digits[2..]),
        _ => (10, digits.as_str()),
    };
    match i64::from_str_radix(digits, radix) {
        Ok(number) => Ok((Kind::Number(number), word.len())),
        Err(_) => at(
            column,
            format!("`{word}` is not a number of base {radix}, or too large"),
        ),
    }
}

fn string(rest: &[char], column: usize) -> Result<(Kind, usize), At> {
    let mut bytes = Vec::new();
    let mut next = 1;
    loop {
        match rest.get(next) {
            None => return at(column, "the string has no closing `\"`"),
            Some('"') => return Ok((Kind::Text(bytes), next + 1)),
            Some(character) if *character != '\\' => {
                bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                next += 1;
            }
            Some(_) => {
                let (byte, length) = escaped(&rest[next..], column + next)?;
                bytes.push(byte);
                next += length;
            }
        }
    }
}

/// One character, or a backslash and what it stands for.
fn escaped(rest: &[char], column: usize) -> Result<(u8, usize), At> {
    let byte = match rest {
        ['\\', escape, ..] => match escape {
            'n' => b'\n',
            't' => b'\t',
            'r' => b'\r',
            '0' => 0,
            '\\' => b'\\',
            '"' => b'"',
            '\'' => b'\'',
            other => {
                return at(
                    column,
                    format!("unknown escape `\\{other}`; known are n t r 0 \\ \" '"),
                );
            }
        },
        [character, ..] if character.is_ascii() && *character != '\'' => *character as u8,
        _ => return at(column, "expected one ASCII character"),
    };
    Ok((byte, if rest[0] == '\\' { 2 } else { 1 }))
}
