//! What a finding violates.

use std::fmt;

use crate::groups::Kind;
use crate::sequencing::Position;

/// A rule of the architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// A dependency inside an instruction group.
    Group(Kind),
    /// The place that an instruction must have in its group.
    Position(Position),
    /// What is written takes effect behind data serialisation.
    DataSerialization,
    /// What is written takes effect behind instruction serialisation.
    InstructionSerialization,
    /// Registers outside the frame have no defined value.
    OutsideFrame,
    /// Output registers that the callee's frame did not hold have no defined value when it returns.
    BehindReturn,
}

impl Rule {
    /// All of them.
    pub const ALL: [Rule; 9] = [
        Rule::Group(Kind::ReadAfterWrite),
        Rule::Group(Kind::WriteAfterWrite),
        Rule::Group(Kind::WriteAfterRead),
        Rule::Position(Position::First),
        Rule::Position(Position::Last),
        Rule::DataSerialization,
        Rule::InstructionSerialization,
        Rule::OutsideFrame,
        Rule::BehindReturn,
    ];

    /// A short name, for files of suppressions.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Group(Kind::ReadAfterWrite) => "raw",
            Rule::Group(Kind::WriteAfterWrite) => "waw",
            Rule::Group(Kind::WriteAfterRead) => "war",
            Rule::Position(Position::First) => "first",
            Rule::Position(Position::Last) => "last",
            Rule::DataSerialization => "srlz.d",
            Rule::InstructionSerialization => "srlz.i",
            Rule::OutsideFrame => "frame",
            Rule::BehindReturn => "return",
        }
    }
}

impl fmt::Display for Rule {
    /// The rule and the section of the manual.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Rule::Group(kind) => kind.rule(),
            Rule::Position(Position::First) => {
                "must begin its group, in slot 0 or behind a stop there, manual 3:2.2"
            }
            Rule::Position(Position::Last) => "must end its group, manual 3:2.2",
            Rule::DataSerialization => {
                "RAW dependency without srlz.d between, manual 3:5.3.2, table 5-2, and 2:3.2.2"
            }
            Rule::InstructionSerialization => {
                "RAW dependency without srlz.i in a group between, manual 3:5.3.2, table 5-2, and 2:3.2.1"
            }
            Rule::OutsideFrame => "read of a register outside the frame, manual 1:4.1.1",
            Rule::BehindReturn => {
                "read of an output that the callee's frame did not hold, manual 1:4.1.1 and 2:6.3"
            }
        })
    }
}
