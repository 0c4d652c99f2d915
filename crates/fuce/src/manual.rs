//! The manual's table of instructions, made from the operation table.

use crate::controller::FaultCause;
use crate::operation::{Cycles, Description, OPERATIONS, Operand, Unit};

/// The chapters of the table: title, and which operations belong there.
type Chapter = (&'static str, fn(&Description) -> bool);

const CHAPTERS: &[Chapter] = &[
    ("Arithmetic", |row| {
        matches!(row.unit, Unit::Integer | Unit::Multiplier | Unit::Divider) && row.operands.len() > 1
    }),
    ("Memory", |row| row.unit == Unit::Memory),
    ("Branches inside a thread", |row| {
        row.cycles == Cycles::TakenBranch
    }),
    ("Continuations", |row| {
        row.unit == Unit::Controller || row.mnemonic == "end"
    }),
    ("The chip", |row| {
        row.mnemonic == "halt" || row.unit == Unit::Integer && row.operands == [Operand::Destination]
    }),
];

/// The instruction tables as Markdown: one chapter a group, one row an operation, and the list of faults.
pub fn instructions() -> String {
    let mut text = String::new();
    for (title, belongs) in CHAPTERS {
        text.push_str(&format!(
            "### {title}\n\n| instruction | encoding | cycles | faults | effect |\n"
        ));
        text.push_str("| --- | --- | --- | --- | --- |\n");
        for row in OPERATIONS.iter().filter(|row| belongs(row)) {
            text.push_str(&render(row));
        }
        text.push('\n');
    }
    text.push_str("### Faults\n\n| number | fault | raised by |\n| --- | --- | --- |\n");
    for cause in FaultCause::ALL {
        let raisers: Vec<String> = OPERATIONS
            .iter()
            .filter(|row| row.faults.contains(&cause))
            .map(|row| format!("`{}`", row.mnemonic))
            .collect();
        let raisers = if raisers.is_empty() {
            "any fetch".to_string()
        } else {
            raisers.join(", ")
        };
        text.push_str(&format!(
            "| {} | {} | {raisers} |\n",
            cause as u8,
            cause.description()
        ));
    }
    text
}

fn render(row: &Description) -> String {
    let operands: Vec<&str> = row.operands.iter().map(|operand| operand.placeholder()).collect();
    let syntax = format!("{} {}", row.mnemonic, operands.join(", "));
    let mut fields: Vec<String> = Vec::new();
    for operand in row.operands {
        let bits = operand.bits();
        let name = if *operand == Operand::Address {
            "offset"
        } else {
            operand.placeholder()
        };
        fields.push(format!("{name} {}..{}", bits.shift + bits.width - 1, bits.shift));
        if *operand == Operand::Address {
            fields.push("rb 18..14".to_string());
        }
    }
    let encoding = std::iter::once(format!("{:#04x}", row.opcode))
        .chain(fields)
        .collect::<Vec<_>>()
        .join("; ");
    let cycles = match row.cycles {
        Cycles::Fixed(cycles) => cycles.to_string(),
        Cycles::TakenBranch => "1, taken 3".to_string(),
        Cycles::Memory => "memory".to_string(),
        Cycles::Controller => "controller".to_string(),
    };
    let faults: Vec<String> = row
        .faults
        .iter()
        .map(|fault| (*fault as u8).to_string())
        .collect();
    let faults = if faults.is_empty() {
        "none".to_string()
    } else {
        faults.join(", ")
    };
    format!(
        "| `{}` | {encoding} | {cycles} | {faults} | {} |\n",
        syntax.trim_end(),
        row.summary
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_stands_in_one_chapter() {
        for row in OPERATIONS {
            let chapters = CHAPTERS.iter().filter(|(_, belongs)| belongs(row)).count();
            assert_eq!(chapters, 1, "{}", row.mnemonic);
        }
    }

    #[test]
    fn the_documented_tables_are_the_ones_this_crate_has() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/fuce/instructions.md");
        let page = std::fs::read_to_string(path).expect("the manual page is in the repository");
        let (_, tables) = page
            .split_once("<!-- tables -->\n")
            .expect("the page marks where the tables begin");
        if tables != instructions() {
            let path = std::env::temp_dir().join("fuce-instructions.md");
            std::fs::write(&path, instructions()).expect("the temporary folder can be written");
            panic!(
                "docs/src/fuce/instructions.md differs from the operation table; see {}",
                path.display()
            );
        }
    }
}
