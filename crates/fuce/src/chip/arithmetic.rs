//! What the integer units compute, without a chip around it.

use crate::controller::FaultCause;
use crate::operation::Operation;

/// The result of an arithmetic operation on two words; for immediate forms `y` is the number.
///
/// # Errors
/// A division by zero.
///
/// # Panics
/// When the operation is not arithmetic.
#[inline(always)]
pub fn compute(operation: Operation, x: u32, y: u32) -> Result<u32, FaultCause> {
    Ok(match operation {
        Operation::Add | Operation::Addi => x.wrapping_add(y),
        Operation::Sub => x.wrapping_sub(y),
        Operation::And | Operation::Andi => x & y,
        Operation::Or | Operation::Ori => x | y,
        Operation::Xor | Operation::Xori => x ^ y,
        Operation::Sll | Operation::Slli => x << (y & 31),
        Operation::Srl | Operation::Srli => x >> (y & 31),
        Operation::Sra | Operation::Srai => ((x as i32) >> (y & 31)) as u32,
        Operation::Slt | Operation::Slti => u32::from((x as i32) < y as i32),
        Operation::Sltu | Operation::Sltiu => u32::from(x < y),
        Operation::Lui => y << 13,
        Operation::Mul => x.wrapping_mul(y),
        Operation::Mulhu => ((u64::from(x) * u64::from(y)) >> 32) as u32,
        Operation::Div | Operation::Divu | Operation::Rem | Operation::Remu if y == 0 => {
            return Err(FaultCause::DivideByZero);
        }
        Operation::Div => (x as i32).wrapping_div(y as i32) as u32,
        Operation::Divu => x / y,
        Operation::Rem => (x as i32).wrapping_rem(y as i32) as u32,
        Operation::Remu => x % y,
        _ => unreachable!("{operation:?} is not arithmetic"),
    })
}

/// Whether a conditional branch is taken.
///
/// # Panics
/// When the operation is not a conditional branch.
#[inline(always)]
pub fn branches(operation: Operation, x: u32, y: u32) -> bool {
    match operation {
        Operation::Beq => x == y,
        Operation::Bne => x != y,
        Operation::Blt => (x as i32) < y as i32,
        Operation::Bge => x as i32 >= y as i32,
        Operation::Bltu => x < y,
        Operation::Bgeu => x >= y,
        _ => unreachable!("{operation:?} is not a conditional branch"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corner_cases_of_arithmetic() {
        let minimum = i32::MIN as u32;
        let cases = [
            (Operation::Add, u32::MAX, 1, Ok(0)),
            (Operation::Sub, 0, 1, Ok(u32::MAX)),
            (Operation::Sra, minimum, 31, Ok(u32::MAX)),
            (Operation::Srl, minimum, 31, Ok(1)),
            (Operation::Sll, 1, 32, Ok(1)),
            (Operation::Slt, minimum, 0, Ok(1)),
            (Operation::Sltu, minimum, 0, Ok(0)),
            (Operation::Mulhu, u32::MAX, u32::MAX, Ok(u32::MAX - 1)),
            (Operation::Div, minimum, u32::MAX, Ok(minimum)),
            (Operation::Rem, minimum, u32::MAX, Ok(0)),
            (Operation::Div, -7i32 as u32, 2, Ok(-3i32 as u32)),
            (Operation::Rem, -7i32 as u32, 2, Ok(-1i32 as u32)),
            (Operation::Divu, 7, 0, Err(FaultCause::DivideByZero)),
            (Operation::Lui, 0, (1 << 19) - 1, Ok(0xffff_e000)),
        ];
        for (operation, x, y, expected) in cases {
            assert_eq!(compute(operation, x, y), expected, "{operation:?} {x:#x} {y:#x}");
        }
    }

    #[test]
    fn branches_compare_as_their_names_say() {
        let minus_one = u32::MAX;
        assert!(branches(Operation::Blt, minus_one, 0) && !branches(Operation::Bltu, minus_one, 0));
        assert!(branches(Operation::Bge, 0, minus_one) && !branches(Operation::Bgeu, 0, minus_one));
        assert!(branches(Operation::Beq, 3, 3) && branches(Operation::Bne, 3, 4));
    }
}
