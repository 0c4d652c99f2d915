//! Words back to assembly: the text the assembler reads as the same word.

use crate::controller::Mode;
use crate::instruction::Instruction;
use crate::operation::Operand;

/// The instruction's text. `address` is the byte address it stands at, from which places are written as absolute
/// addresses, and `symbol` names an address where it can.
pub fn format_instruction(
    instruction: &Instruction,
    address: u32,
    symbol: impl Fn(u32) -> Option<String>,
) -> String {
    let description = instruction.operation.description();
    let mut text = description.mnemonic.to_string();
    for (position, operand) in description.operands.iter().enumerate() {
        text.push_str(if position == 0 { " " } else { ", " });
        let value = instruction.operand(*operand);
        match operand {
            Operand::Destination | Operand::SourceA | Operand::SourceB | Operand::SourceC => {
                text.push_str(&format!("r{value}"));
            }
            Operand::Address => text.push_str(&format!("{value}(r{})", instruction.b)),
            Operand::Mode => text.push_str(Mode::from_bits(value as u8).map_or("?", Mode::name)),
            _ if operand.is_place() => {
                let target = address.wrapping_add((instruction.number as u32).wrapping_mul(4));
                text.push_str(&symbol(target).unwrap_or_else(|| format!("{target:#x}")));
            }
            _ => text.push_str(&value.to_string()),
        }
    }
    text
}

/// A word's text: its instruction, or `.word` where it is none.
pub fn format_word(word: u32, address: u32, symbol: impl Fn(u32) -> Option<String>) -> String {
    match Instruction::decode(word) {
        Ok(instruction) => format_instruction(&instruction, address, symbol),
        Err(_) => format!(".word {word:#010x}"),
    }
}
