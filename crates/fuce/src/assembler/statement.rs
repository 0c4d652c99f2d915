//! A plain line as a statement: labels, then an instruction, a pseudo-instruction or a directive.

use std::collections::BTreeMap;

use super::expression::{Cursor, Expression, Unary};
use super::lexer::{At, Kind, Token, at};
use crate::controller::Mode;
use crate::operation::{self, OPERATIONS, Operand, Operation};

/// One operand as written: a number, and for an address its register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Which operand of the operation.
    pub operand: Operand,
    /// Its number; a register's number is a constant.
    pub value: Expression,
    /// The register of an address.
    pub base: u8,
    /// Where it was written.
    pub column: usize,
}

/// Where the following statements go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// Instructions.
    Text,
    /// Data of the kernel.
    Data,
    /// Data that user threads may access.
    User,
}

/// What a statement puts into the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// An instruction.
    Instruction(Operation, Vec<Written>),
    /// Numbers of 1, 2 or 4 bytes.
    Numbers(usize, Vec<(Expression, usize)>),
    /// Bytes as they are.
    Bytes(Vec<u8>),
    /// So many bytes of zero.
    Space(Expression, usize),
    /// Zeros up to a multiple.
    Align(Expression, usize),
    /// The section of what follows.
    Section(Section),
    /// The boot thread's first instruction.
    Entry(Expression),
    /// A name for a register from here on.
    Register(String, u8),
}

/// A line's labels and items.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Statement {
    /// Labels, with their columns.
    pub labels: Vec<(String, usize)>,
    /// What the line puts into the program.
    pub items: Vec<Item>,
}

const DIRECTIVES: &[&str] = &[
    ".text",
    ".data",
    ".user",
    ".word",
    ".half",
    ".byte",
    ".ascii",
    ".asciz",
    ".space",
    ".align",
    ".entry",
    ".register",
    ".equ",
    ".macro",
    ".endm",
    ".if",
    ".else",
    ".endif",
    ".include",
];

/// Pseudo-instructions: name and what it stands for.
pub const PSEUDO: &[(&str, &str)] = &[
    ("nop", "add r0, r0, r0"),
    ("mv", "rd, ra: addi rd, ra, 0"),
    ("not", "rd, ra: sub rd, r0, ra; addi rd, rd, -1"),
    ("neg", "rd, ra: sub rd, r0, ra"),
    (
        "li",
        "rd, number: addi, lui or lui and ori; the number must be known where it stands",
    ),
    ("la", "rd, place: lui rd, hi(place); ori rd, rd, lo(place)"),
    ("beqz", "ra, label: beq ra, r0, label"),
    ("bnez", "ra, label: bne ra, r0, label"),
    ("bltz", "ra, label: blt ra, r0, label"),
    ("bgez", "ra, label: bge ra, r0, label"),
    ("bgt", "ra, rb, label: blt rb, ra, label"),
    ("ble", "ra, rb, label: bge rb, ra, label"),
    ("bgtu", "ra, rb, label: bltu rb, ra, label"),
    ("bleu", "ra, rb, label: bgeu rb, ra, label"),
    ("call", "label: jal r31, label"),
    ("ret", "jr r31"),
];

/// Whether a name is an instruction, a pseudo-instruction or a directive.
pub fn is_reserved(name: &str) -> bool {
    operation::by_mnemonic(name).is_some()
        || PSEUDO.iter().any(|(pseudo, _)| *pseudo == name)
        || DIRECTIVES.contains(&name)
}

/// What is known while lines are read one after the other.
pub struct Known<'a> {
    /// Names of registers.
    pub registers: &'a BTreeMap<String, u8>,
    /// Constants.
    pub constants: &'a BTreeMap<String, i64>,
}

/// Reads a line.
///
/// # Errors
/// At the first token that does not fit, with what was expected.
pub fn parse(tokens: &[Token], length: usize, known: &Known) -> Result<Statement, At> {
    let mut cursor = Cursor::new(tokens, length);
    let mut statement = Statement::default();
    while let (
        Some(Token {
            kind: Kind::Name(name),
            column,
        }),
        Some(Token {
            kind: Kind::Sign(":"),
            ..
        }),
    ) = (cursor.peek(), cursor.peek_second())
    {
        if register_number(name, known).is_some() || is_reserved(name) {
            return at(*column, format!("`{name}` is reserved and cannot be a label"));
        }
        statement.labels.push((name.clone(), *column));
        cursor.take();
        cursor.take();
    }
    if cursor.peek().is_none() {
        return Ok(statement);
    }
    let (name, column) = cursor.expect_name("a label, an instruction or a directive")?;
    let parser = Parser { cursor, known };
    statement.items = if name.starts_with('.') {
        vec![parser.directive(&name, column)?]
    } else if let Some(description) = operation::by_mnemonic(&name) {
        vec![parser.instruction(description.operation)?]
    } else {
        parser.pseudo(&name, column)?
    };
    Ok(statement)
}

fn register_number(name: &str, known: &Known) -> Option<u8> {
    if let Some(number) = known.registers.get(name) {
        return Some(*number);
    }
    let digits = name.strip_prefix('r')?;
    let plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let leading_zero = digits.len() > 1 && digits.starts_with('0');
    digits
        .parse::<u8>()
        .ok()
        .filter(|number| plain && !leading_zero && *number < 32)
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    known: &'a Known<'a>,
}

impl Parser<'_> {
    fn register(&mut self) -> Result<u8, At> {
        let column = self.cursor.column();
        let found = self.cursor.found();
        let known = self.known;
        match self.cursor.peek() {
            Some(Token {
                kind: Kind::Name(name),
                ..
            }) => match register_number(name, known) {
                Some(number) => {
                    self.cursor.take();
                    Ok(number)
                }
                None => at(column, format!("expected a register (r0 to r31), found {found}")),
            },
            _ => at(column, format!("expected a register (r0 to r31), found {found}")),
        }
    }

    fn comma(&mut self) -> Result<(), At> {
        self.cursor.expect_sign(",", "before the next operand")
    }

    fn end(&self, what: &str) -> Result<(), At> {
        self.cursor.expect_end(what)
    }

    /// A number that has to be known now.
    fn constant(&mut self, what: &str) -> Result<i64, At> {
        let expression = self.cursor.expression(what)?;
        let constants = self.known.constants;
        expression.evaluate(0, &|name, column| match constants.get(name) {
            Some(value) => Ok(*value),
            None => at(
                column,
                format!("`{name}` must be a constant defined before this line"),
            ),
        })
    }

    fn instruction(mut self, operation: Operation) -> Result<Item, At> {
        let description = operation.description();
        let mut written = Vec::new();
        for (position, operand) in description.operands.iter().enumerate() {
            if position > 0 {
                self.comma()?;
            }
            written.push(self.operand(*operand)?);
        }
        self.end(&format!("the last operand of `{}`", description.mnemonic))?;
        Ok(Item::Instruction(operation, written))
    }

    fn operand(&mut self, operand: Operand) -> Result<Written, At> {
        let column = self.cursor.column();
        let number = |value| {
            Ok(Written {
                operand,
                value,
                base: 0,
                column,
            })
        };
        match operand {
            Operand::Destination | Operand::SourceA | Operand::SourceB | Operand::SourceC => {
                let register = self.register()?;
                number(Expression::Number(register.into()))
            }
            Operand::Mode => {
                let found = self.cursor.found();
                let (name, column) = self.cursor.expect_name(operand.description())?;
                match [Mode::User, Mode::Interface, Mode::Kernel]
                    .into_iter()
                    .find(|mode| mode.name() == name)
                {
                    Some(mode) => number(Expression::Number(mode as i64)),
                    None => at(
                        column,
                        format!("expected {}, found {found}", operand.description()),
                    ),
                }
            }
            Operand::Address => {
                // `(r1)` alone is an address with offset 0, not a parenthesis.
                let opens = matches!(
                    self.cursor.peek(),
                    Some(Token {
                        kind: Kind::Sign("("),
                        ..
                    })
                );
                let bare = opens
                    && matches!(self.cursor.peek_second(), Some(Token { kind: Kind::Name(name), .. })
                        if register_number(name, self.known).is_some());
                let value = if bare {
                    Expression::Number(0)
                } else {
                    self.cursor.expression(operand.description())?
                };
                self.cursor.expect_sign("(", "before the address register")?;
                let base = self.register()?;
                self.cursor.expect_sign(")", "after the address register")?;
                Ok(Written {
                    operand,
                    value,
                    base,
                    column,
                })
            }
            _ => {
                if let Some(Token {
                    kind: Kind::Name(name),
                    column,
                }) = self.cursor.peek()
                    && register_number(name, self.known).is_some()
                {
                    return at(
                        *column,
                        format!("expected {}, found the register `{name}`", operand.description()),
                    );
                }
                let value = self.cursor.expression(operand.description())?;
                number(value)
            }
        }
    }

    fn directive(mut self, name: &str, column: usize) -> Result<Item, At> {
        let item = match name {
            ".text" => Item::Section(Section::Text),
            ".data" => Item::Section(Section::Data),
            ".user" => Item::Section(Section::User),
            ".word" | ".half" | ".byte" => {
                let width = match name {
                    ".word" => 4,
                    ".half" => 2,
                    _ => 1,
                };
                let mut numbers = Vec::new();
                loop {
                    let column = self.cursor.column();
                    numbers.push((self.cursor.expression("a number")?, column));
                    if !self.cursor.take_sign(",") {
                        break;
                    }
                }
                Item::Numbers(width, numbers)
            }
            ".ascii" | ".asciz" => {
                let column = self.cursor.column();
                let Some(Token {
                    kind: Kind::Text(text),
                    ..
                }) = self.cursor.take()
                else {
                    return at(column, "expected a string in double quotes");
                };
                let mut bytes = text.clone();
                bytes.extend((name == ".asciz").then_some(0));
                Item::Bytes(bytes)
            }
            ".space" => Item::Space(self.cursor.expression("a number of bytes")?, column),
            ".align" => Item::Align(self.cursor.expression("a power of two")?, column),
            ".entry" => Item::Entry(self.cursor.expression("a label")?),
            ".register" => {
                let (alias, alias_column) = self.cursor.expect_name("a name for the register")?;
                if is_reserved(&alias) {
                    return at(
                        alias_column,
                        format!("`{alias}` is reserved and cannot name a register"),
                    );
                }
                self.comma()?;
                Item::Register(alias, self.register()?)
            }
            _ => return at(column, format!("unknown directive `{name}`{}", suggestion(name))),
        };
        self.end(&format!("`{name}`"))?;
        Ok(item)
    }

    fn pseudo(mut self, name: &str, column: usize) -> Result<Vec<Item>, At> {
        let number = |operand, value| Written {
            operand,
            value,
            base: 0,
            column,
        };
        let register = |operand, number: u8| Written {
            operand,
            value: Expression::Number(number.into()),
            base: 0,
            column,
        };
        use Operand as O;
        let items = match name {
            "nop" => vec![Item::Instruction(
                Operation::Add,
                vec![
                    register(O::Destination, 0),
                    register(O::SourceB, 0),
                    register(O::SourceC, 0),
                ],
            )],
            "ret" => vec![Item::Instruction(Operation::Jr, vec![register(O::SourceB, 31)])],
            "call" => {
                let target = self.operand(O::Jump19)?;
                vec![Item::Instruction(
                    Operation::Jal,
                    vec![register(O::Destination, 31), target],
                )]
            }
            "mv" | "neg" | "not" => {
                let (to, from) = (self.register()?, {
                    self.comma()?;
                    self.register()?
                });
                let add = |source, value| {
                    Item::Instruction(
                        Operation::Addi,
                        vec![
                            register(O::Destination, to),
                            register(O::SourceB, source),
                            number(O::Signed14, Expression::Number(value)),
                        ],
                    )
                };
                let negate = Item::Instruction(
                    Operation::Sub,
                    vec![
                        register(O::Destination, to),
                        register(O::SourceB, 0),
                        register(O::SourceC, from),
                    ],
                );
                match name {
                    "mv" => vec![add(from, 0)],
                    "neg" => vec![negate],
                    _ => vec![negate, add(to, -1)],
                }
            }
            "li" => {
                let to = self.register()?;
                self.comma()?;
                let column = self.cursor.column();
                let value = self.constant("a number")?;
                if !(-(1i64 << 31)..1 << 32).contains(&value) {
                    return at(column, format!("{value} does not fit 32 bits"));
                }
                load_number(to, value, column)
            }
            "la" => {
                let to = self.register()?;
                self.comma()?;
                let column = self.cursor.column();
                let place = self.cursor.expression("a label")?;
                load_place(to, &place, column)
            }
            "beqz" | "bnez" | "bltz" | "bgez" => {
                let operation = match name {
                    "beqz" => Operation::Beq,
                    "bnez" => Operation::Bne,
                    "bltz" => Operation::Blt,
                    _ => Operation::Bge,
                };
                let source = self.register()?;
                self.comma()?;
                let target = self.operand(O::Branch14)?;
                let operands = vec![register(O::SourceA, source), register(O::SourceB, 0), target];
                vec![Item::Instruction(operation, operands)]
            }
            "bgt" | "ble" | "bgtu" | "bleu" => {
                let operation = match name {
                    "bgt" => Operation::Blt,
                    "ble" => Operation::Bge,
                    "bgtu" => Operation::Bltu,
                    _ => Operation::Bgeu,
                };
                let left = self.register()?;
                self.comma()?;
                let right = self.register()?;
                self.comma()?;
                let target = self.operand(O::Branch14)?;
                let operands = vec![register(O::SourceA, right), register(O::SourceB, left), target];
                vec![Item::Instruction(operation, operands)]
            }
            _ => {
                return at(
                    column,
                    format!("unknown instruction `{name}`{}", suggestion(name)),
                );
            }
        };
        self.end(&format!("the last operand of `{name}`"))?;
        Ok(items)
    }
}

/// The shortest instructions that load a number.
fn load_number(to: u8, value: i64, column: usize) -> Vec<Item> {
    let (low, high) = Operand::Signed14.range();
    if (low..=high).contains(&value) {
        let operands = [
            (Operand::Destination, i64::from(to)),
            (Operand::SourceB, 0),
            (Operand::Signed14, value),
        ];
        return vec![Item::Instruction(Operation::Addi, fixed(&operands, column))];
    }
    let mut items = load_place(to, &Expression::Number(value), column);
    if value & 0x1fff == 0 {
        items.truncate(1);
    }
    items
}

/// `lui` and `ori`, for numbers that are known only at the end.
fn load_place(to: u8, place: &Expression, column: usize) -> Vec<Item> {
    let half = |operand, operator| Written {
        operand,
        value: Expression::Unary(operator, Box::new(place.clone())),
        base: 0,
        column,
    };
    let mut upper = fixed(&[(Operand::Destination, to.into())], column);
    upper.push(half(Operand::Upper19, Unary::High));
    let mut lower = fixed(
        &[(Operand::Destination, to.into()), (Operand::SourceB, to.into())],
        column,
    );
    lower.push(half(Operand::Unsigned14, Unary::Low));
    vec![
        Item::Instruction(Operation::Lui, upper),
        Item::Instruction(Operation::Ori, lower),
    ]
}

fn fixed(operands: &[(Operand, i64)], column: usize) -> Vec<Written> {
    operands
        .iter()
        .map(|(operand, value)| Written {
            operand: *operand,
            value: Expression::Number(*value),
            base: 0,
            column,
        })
        .collect()
}

/// "; did you mean ...?" when some known word is close.
fn suggestion(name: &str) -> String {
    let words = OPERATIONS
        .iter()
        .map(|description| description.mnemonic)
        .chain(PSEUDO.iter().map(|(name, _)| *name))
        .chain(DIRECTIVES.iter().copied());
    let best = words
        .map(|word| (strsim::damerau_levenshtein(word, name), word))
        .min();
    match best {
        Some((distance, word)) if distance <= 2 && distance < name.len() => {
            format!("; did you mean `{word}`?")
        }
        _ => String::new(),
    }
}
