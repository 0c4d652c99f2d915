//! Constant expressions: numbers, names, and the operators of C with their precedence.

use super::lexer::{At, Kind, Token, at};

/// An expression whose names are not yet known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    /// A number.
    Number(i64),
    /// A label or constant, and where it was written.
    Name(String, usize),
    /// The address of the statement.
    Here,
    /// An operator before its operand, `hi` and `lo` among them.
    Unary(Unary, Box<Expression>),
    /// An operator between two operands, and its column.
    Binary(&'static str, usize, Box<Expression>, Box<Expression>),
}

/// Operators with one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unary {
    /// `-x`
    Negate,
    /// `~x`
    Invert,
    /// `!x`
    Not,
    /// `hi(x)`: what `lui` takes.
    High,
    /// `lo(x)`: what `ori` adds to it.
    Low,
}

/// The depth of parentheses and prefix operators that is understood.
const DEPTH_MAX: usize = 100;

/// Reads tokens one by one.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    tokens: &'a [Token],
    next: usize,
    /// The column after the last character, where something missing is reported.
    end: usize,
    depth: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor before the first token of a line of `length` characters.
    pub fn new(tokens: &'a [Token], length: usize) -> Cursor<'a> {
        Cursor {
            tokens,
            next: 0,
            end: length + 1,
            depth: 0,
        }
    }

    /// The next token.
    pub fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.next)
    }

    /// The token after the next.
    pub fn peek_second(&self) -> Option<&'a Token> {
        self.tokens.get(self.next + 1)
    }

    /// Takes the next token.
    pub fn take(&mut self) -> Option<&'a Token> {
        let token = self.peek();
        self.next += usize::from(token.is_some());
        token
    }

    /// The column of the next token, or of the end of the line.
    pub fn column(&self) -> usize {
        self.peek().map_or(self.end, |token| token.column)
    }

    /// The next token as an error message shows it.
    pub fn found(&self) -> String {
        self.peek()
            .map_or_else(|| "the end of the line".to_string(), |token| token.kind.show())
    }

    /// Takes the next token if it is this sign.
    pub fn take_sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token { kind: Kind::Sign(found), .. }) if *found == sign);
        self.next += usize::from(found);
        found
    }

    /// Takes this sign.
    ///
    /// # Errors
    /// When something else follows.
    pub fn expect_sign(&mut self, sign: &str, purpose: &str) -> Result<(), At> {
        if self.take_sign(sign) {
            return Ok(());
        }
        at(
            self.column(),
            format!("expected `{sign}` {purpose}, found {}", self.found()),
        )
    }

    /// Makes sure the line ends here.
    ///
    /// # Errors
    /// When something follows.
    pub fn expect_end(&self, after: &str) -> Result<(), At> {
        match self.peek() {
            None => Ok(()),
            Some(token) => at(
                token.column,
                format!(
                    "expected the end of the line after {after}, found {}",
                    token.kind.show()
                ),
            ),
        }
    }

    /// Takes a name.
    ///
    /// # Errors
    /// When something else follows.
    pub fn expect_name(&mut self, what: &str) -> Result<(String, usize), At> {
        match self.peek() {
            Some(Token {
                kind: Kind::Name(name),
                column,
            }) => {
                self.next += 1;
                Ok((name.clone(), *column))
            }
            _ => at(self.column(), format!("expected {what}, found {}", self.found())),
        }
    }

    /// Takes an expression.
    ///
    /// # Errors
    /// When none follows; `what` says what was expected.
    pub fn expression(&mut self, what: &str) -> Result<Expression, At> {
        self.binary(0, what)
    }

    fn binary(&mut self, lowest: u8, what: &str) -> Result<Expression, At> {
        let mut left = self.unary(what)?;
        while let Some(Token {
            kind: Kind::Sign(sign),
            column,
        }) = self.peek()
        {
            let Some(precedence) = precedence(sign).filter(|precedence| *precedence > lowest) else {
                break;
            };
            self.next += 1;
            let right = self.binary(precedence, &format!("an operand of `{sign}`"))?;
            left = Expression::Binary(sign, *column, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn unary(&mut self, what: &str) -> Result<Expression, At> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return at(
                self.column(),
                format!("the expression is nested deeper than {DEPTH_MAX} levels"),
            );
        }
        let result = self.unary_inside(what);
        self.depth -= 1;
        result
    }

    fn unary_inside(&mut self, what: &str) -> Result<Expression, At> {
        let column = self.column();
        let prefix = [("-", Unary::Negate), ("~", Unary::Invert), ("!", Unary::Not)];
        for (sign, operator) in prefix {
            if self.take_sign(sign) {
                let operand = self.unary(&format!("an operand of `{sign}`"))?;
                return Ok(Expression::Unary(operator, Box::new(operand)));
            }
        }
        if self.take_sign("(") {
            let inner = self.expression("an expression")?;
            self.expect_sign(")", "to close the parenthesis")?;
            return Ok(inner);
        }
        match self.peek().map(|token| &token.kind) {
            Some(Kind::Number(number)) => {
                self.next += 1;
                Ok(Expression::Number(*number))
            }
            Some(Kind::Name(name)) => {
                self.next += 1;
                if name == "." {
                    return Ok(Expression::Here);
                }
                let function = match name.as_str() {
                    "hi" => Some(Unary::High),
                    "lo" => Some(Unary::Low),
                    _ => None,
                };
                match function {
                    Some(function) if self.take_sign("(") => {
                        let inner = self.expression("an expression")?;
                        self.expect_sign(")", "to close the parenthesis")?;
                        Ok(Expression::Unary(function, Box::new(inner)))
                    }
                    _ => Ok(Expression::Name(name.clone(), column)),
                }
            }
            _ => at(column, format!("expected {what}, found {}", self.found())),
        }
    }
}

fn precedence(sign: &str) -> Option<u8> {
    Some(match sign {
        "||" => 1,
        "&&" => 2,
        "|" => 3,
        "^" => 4,
        "&" => 5,
        "==" | "!=" => 6,
        "<" | ">" | "<=" | ">=" => 7,
        "<<" | ">>" => 8,
        "+" | "-" => 9,
        "*" | "/" | "%" => 10,
        _ => return None,
    })
}

impl Expression {
    /// The expression's value at address `here`, with `lookup` for names.
    ///
    /// # Errors
    /// What `lookup` answers for an unknown name, a division by zero, or a value beyond 64 bits.
    pub fn evaluate(&self, here: i64, lookup: &dyn Fn(&str, usize) -> Result<i64, At>) -> Result<i64, At> {
        match self {
            Expression::Number(number) => Ok(*number),
            Expression::Name(name, column) => lookup(name, *column),
            Expression::Here => Ok(here),
            Expression::Unary(operator, operand) => {
                let value = operand.evaluate(here, lookup)?;
                Ok(match operator {
                    Unary::Negate => value.wrapping_neg(),
                    Unary::Invert => !value,
                    Unary::Not => i64::from(value == 0),
                    Unary::High => (value as u32 >> 13).into(),
                    Unary::Low => value & 0x1fff,
                })
            }
            Expression::Binary(operator, column, left, right) => {
                let (x, y) = (left.evaluate(here, lookup)?, right.evaluate(here, lookup)?);
                let truth = |value| Some(i64::from(value));
                let shift = u32::try_from(y).ok().filter(|amount| *amount < 64);
                let value = match *operator {
                    "+" => x.checked_add(y),
                    "-" => x.checked_sub(y),
                    "*" => x.checked_mul(y),
                    "/" | "%" if y == 0 => return at(*column, "division by zero"),
                    "/" => x.checked_div(y),
                    "%" => x.checked_rem(y),
                    "<<" => shift.and_then(|amount| x.checked_shl(amount)),
                    ">>" => shift.and_then(|amount| x.checked_shr(amount)),
                    "&" => Some(x & y),
                    "|" => Some(x | y),
                    "^" => Some(x ^ y),
                    "==" => truth(x == y),
                    "!=" => truth(x != y),
                    "<" => truth(x < y),
                    ">" => truth(x > y),
                    "<=" => truth(x <= y),
                    ">=" => truth(x >= y),
                    "&&" => truth(x != 0 && y != 0),
                    "||" => truth(x != 0 || y != 0),
                    _ => unreachable!("only signs with a precedence become operators"),
                };
                value.map_or_else(
                    || {
                        at(
                            *column,
                            format!("`{operator}` leaves the range of 64-bit numbers"),
                        )
                    },
                    Ok,
                )
            }
        }
    }
}
