//! What is known of a thread on its way: integers and where they lie, flags, and what it wrote.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use iced_x86::{ConditionCode, FlowControl, Instruction, MemorySize, Mnemonic, OpKind, Register};

use super::{Decoded, Memory, Registers, STACK_POINTER};

/// Room for so many words that are written on a way.
const STORED_EXPECTED: usize = 64;
/// The frame pointer's number.
const FRAME_POINTER: usize = 5;

/// Where a thread goes on after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// There.
    At(u64),
    /// At the target of a branch or behind it.
    Either {
        taken: u64,
        behind: u64,
        /// Which of the two, where what it hangs on is known.
        is_taken: Option<bool>,
    },
    /// In the kernel, which returns there.
    Kernel(u64),
    /// Not known.
    Unknown,
}

impl Next {
    /// Where that is, if it is known and in the thread's own code.
    pub(super) fn known(self) -> Option<u64> {
        match self {
            Self::At(next) => Some(next),
            Self::Either {
                taken,
                behind,
                is_taken,
            } => is_taken.map(|is_taken| if is_taken { taken } else { behind }),
            Self::Kernel(_) | Self::Unknown => None,
        }
    }
}

/// What the flags are of.
#[derive(Clone, Copy, Debug)]
enum Flags {
    /// Those that the thread had.
    Held(u64),
    /// Of two numbers that were compared.
    Compared(i64, i64),
    /// Of a result, which is taken not to have overflowed; whether it carried is not known.
    Result(i64),
    /// All but whether it carried, or was below, are not known.
    Carry(bool),
}

/// A word of eight bytes that was written on the way, a bit of each mask for each of its bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Written {
    value: u64,
    written: u8,
    known: u8,
}

/// What is known on the way.
#[derive(Clone, Debug)]
pub(super) struct State {
    general: [Option<u64>; 16],
    flags: Option<Flags>,
    /// By the address in words.
    stored: HashMap<u64, Written, FixedState>,
}

impl State {
    /// That of an interrupted thread.
    pub(super) fn of(registers: &Registers) -> Self {
        Self {
            general: registers.general.map(Some),
            flags: Some(Flags::Held(registers.flags)),
            stored: HashMap::with_capacity_and_hasher(STORED_EXPECTED, FixedState::default()),
        }
    }

    /// What an integer register holds.
    pub(super) fn general(&self, number: usize) -> Option<u64> {
        self.general[number]
    }

    /// The address that an instruction touches, if it touches one and it is known.
    pub(super) fn touched(&self, decoded: &Decoded) -> Option<u64> {
        self.address(&decoded.instruction, decoded.touched?)
    }

    fn register(&self, register: Register) -> Option<u64> {
        let segment = [Register::CS, Register::DS, Register::ES, Register::SS];
        if segment.contains(&register) {
            return Some(0);
        }
        let full = register.full_register();
        if !full.is_gpr64() {
            return None;
        }
        let whole = self.general[full.number()]?;
        Some(if is_high_byte(register) {
            whole >> 8 & 0xff
        } else {
            whole & ones(register.size())
        })
    }

    fn set_register(&mut self, register: Register, value: Option<u64>) {
        let full = register.full_register();
        if !full.is_gpr64() {
            return;
        }
        let mask = ones(register.size());
        let held = &mut self.general[full.number()];
        *held = match register.size() {
            4 | 8 => value.map(|value| value & mask),
            _ if is_high_byte(register) => None,
            _ => held.zip(value).map(|(held, value)| held & !mask | value & mask),
        };
    }

    fn address(&self, instruction: &Instruction, operand: u32) -> Option<u64> {
        instruction.virtual_address(operand, 0, |register, _, _| self.register(register))
    }

    /// At most eight bytes of memory, as the thread left them.
    fn load(&self, address: u64, bytes: usize, memory: &impl Memory) -> Option<u64> {
        let mut value = [0; 8];
        let loaded = value.get_mut(..bytes)?;
        let places = || (0..bytes as u64).map(|offset| address.wrapping_add(offset));
        if places().any(|place| self.written(place).is_none()) && !memory.read(address, loaded) {
            return None;
        }
        for (byte, place) in loaded.iter_mut().zip(places()) {
            if let Some(word) = self.written(place) {
                if word.known >> (place & 7) & 1 == 0 {
                    return None;
                }
                *byte = word.value.to_le_bytes()[(place & 7) as usize];
            }
        }
        Some(u64::from_le_bytes(value))
    }

    /// Writes bytes: those of a number, or ones that are not known.
    fn store(&mut self, address: u64, bytes: usize, value: Option<u64>) {
        let value = value.filter(|_| bytes <= 8);
        for offset in 0..bytes {
            let place = address.wrapping_add(offset as u64);
            let word = self.stored.entry(place >> 3).or_default();
            let (bit, shift) = (1 << (place & 7), 8 * (place & 7));
            word.written |= bit;
            match value {
                Some(value) => {
                    let byte = value >> (8 * offset) & 0xff;
                    word.value = word.value & !(0xff << shift) | byte << shift;
                    word.known |= bit;
                }
                None => word.known &= !bit,
            }
        }
    }

    /// The word of a byte that was written on the way.
    fn written(&self, address: u64) -> Option<&Written> {
        let word = self.stored.get(&(address >> 3))?;
        (word.written >> (address & 7) & 1 == 1).then_some(word)
    }

    /// Whether a byte was written on the way.
    pub(super) fn has_stored(&self, address: u64) -> bool {
        self.written(address).is_some()
    }

    fn push(&mut self, value: Option<u64>) {
        self.general[STACK_POINTER] = self.general[STACK_POINTER].map(|top| top.wrapping_sub(8));
        if let Some(top) = self.general[STACK_POINTER] {
            self.store(top, 8, value);
        }
    }

    fn pop(&mut self, memory: &impl Memory) -> Option<u64> {
        let value = self.load(self.general[STACK_POINTER]?, 8, memory);
        self.general[STACK_POINTER] = self.general[STACK_POINTER].map(|top| top.wrapping_add(8));
        value
    }

    /// What an operand is worth; `address` is that of the one in memory.
    fn operand(
        &self,
        instruction: &Instruction,
        operand: u32,
        address: Option<u64>,
        memory: &impl Memory,
    ) -> Option<u64> {
        match instruction.op_kind(operand) {
            OpKind::Register => self.register(instruction.op_register(operand)),
            OpKind::Memory => {
                let value = self.load(address?, instruction.memory_size().size(), memory)?;
                Some(match instruction.memory_size() {
                    MemorySize::Int8 => i64::from(value as i8) as u64,
                    MemorySize::Int16 => i64::from(value as i16) as u64,
                    MemorySize::Int32 => i64::from(value as i32) as u64,
                    _ => value,
                })
            }
            _ => instruction.try_immediate(operand).ok(),
        }
    }

    /// What an instruction computes, if that is known here.
    fn result(&self, instruction: &Instruction, address: Option<u64>, memory: &impl Memory) -> Option<u64> {
        let of = |operand| self.operand(instruction, operand, address, memory);
        // With three operands the first one is written alone.
        let last = instruction.op_count().checked_sub(1)?;
        let both = || Some((of(last.checked_sub(1)?)?, of(last)?));
        let bytes = first_operand_bytes(instruction);
        let shift = |count: u64| count & if bytes == 8 { 63 } else { 31 };
        Some(match instruction.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movzx => of(last)?,
            Mnemonic::Movsx | Mnemonic::Movsxd => match instruction.op_kind(last) {
                OpKind::Register => extended(of(last)?, instruction.op_register(last).size()) as u64,
                _ => of(last)?,
            },
            Mnemonic::Cdqe => extended(self.general[0]?, 4) as u64,
            Mnemonic::Lea => self.address(instruction, last)?,
            Mnemonic::Inc => of(0)?.wrapping_add(1),
            Mnemonic::Dec => of(0)?.wrapping_sub(1),
            Mnemonic::Neg => of(0)?.wrapping_neg(),
            Mnemonic::Not => !of(0)?,
            Mnemonic::Xor | Mnemonic::Sub if is_zero_idiom(instruction) => 0,
            Mnemonic::Add => both().map(|(left, right)| left.wrapping_add(right))?,
            Mnemonic::Sub => both().map(|(left, right)| left.wrapping_sub(right))?,
            Mnemonic::And => both().map(|(left, right)| left & right)?,
            Mnemonic::Or => both().map(|(left, right)| left | right)?,
            Mnemonic::Xor => both().map(|(left, right)| left ^ right)?,
            Mnemonic::Imul if last > 0 => both().map(|(left, right)| left.wrapping_mul(right))?,
            Mnemonic::Shl => both().map(|(left, right)| left << shift(right))?,
            Mnemonic::Shr => both().map(|(left, right)| left >> shift(right))?,
            Mnemonic::Sar => both().map(|(left, right)| (extended(left, bytes) >> shift(right)) as u64)?,
            // Conditional moves and sets.
            _ => match (instruction.condition_code(), last) {
                (ConditionCode::None, _) => return None,
                (code, 0) => self.condition(code)?.into(),
                (code, _) => of(u32::from(self.condition(code)?))?,
            },
        })
    }

    /// Quotient and remainder of `rdx` and `rax` together, where the upper half is zero, in so many bytes.
    fn divided(&self, divisor: u64, bytes: usize) -> Option<(u64, u64)> {
        let (low, high) = (self.general[0]? & ones(bytes), self.general[2]? & ones(bytes));
        let is_plain = bytes >= 4 && high == 0 && divisor != 0;
        is_plain.then(|| (low / divisor, low % divisor))
    }

    /// Takes in what an instruction does. `address` is the one that it touches.
    pub(super) fn step(&mut self, decoded: &Decoded, address: Option<u64>, memory: &impl Memory) -> Next {
        let instruction = &decoded.instruction;
        if instruction.flow_control() != FlowControl::Next {
            return self.go_on(instruction, address, memory);
        }
        let next = Next::At(instruction.next_ip());
        let of = |operand| self.operand(instruction, operand, address, memory);
        let bytes = first_operand_bytes(instruction);
        let result = self.result(instruction, address, memory);
        let divided = match instruction.mnemonic() {
            Mnemonic::Div => of(0).and_then(|divisor| self.divided(divisor, bytes)),
            _ => None,
        };
        let compared = || Some((extended(of(0)?, bytes), extended(of(1)?, bytes)));
        match instruction.mnemonic() {
            Mnemonic::Push => {
                let value = of(0);
                self.push(value);
                return next;
            }
            Mnemonic::Pop if decoded.touched.is_none() => {
                let value = self.pop(memory);
                self.set_register(instruction.op0_register(), value);
                return next;
            }
            Mnemonic::Leave => {
                self.general[STACK_POINTER] = self.general[FRAME_POINTER];
                self.general[FRAME_POINTER] = self.pop(memory);
                return next;
            }
            Mnemonic::Cmp | Mnemonic::Sub => {
                self.flags = compared().map(|(left, right)| Flags::Compared(left, right));
            }
            Mnemonic::Test => {
                self.flags = compared().map(|(left, right)| Flags::Compared(left & right, 0));
            }
            Mnemonic::And | Mnemonic::Or | Mnemonic::Xor => {
                self.flags = result.map(|result| Flags::Compared(extended(result, bytes), 0));
            }
            Mnemonic::Bt if decoded.touched.is_none() => {
                let bit = |of: u64, number: u64| of >> (number & (8 * bytes as u64 - 1)) & 1 == 1;
                self.flags = of(0).zip(of(1)).map(|(of, number)| Flags::Carry(bit(of, number)));
            }
            _ if instruction.rflags_modified() != 0 => {
                self.flags = result.map(|result| Flags::Result(extended(result, bytes)));
            }
            _ => {}
        }
        if decoded.stores
            && let Some(address) = address
        {
            self.store(address, decoded.bytes(), result);
        }
        let to = instruction.op0_register();
        let writes_first = instruction.op_count() > 0 && instruction.op0_kind() == OpKind::Register;
        let held = self.general.get(to.full_register().number()).copied().flatten();
        for number in (0..16).filter(|number| decoded.written >> number & 1 == 1) {
            self.general[number] = None;
        }
        if instruction.mnemonic() == Mnemonic::Cdqe {
            self.general[0] = result;
        } else if let Some((quotient, remainder)) = divided {
            self.set_register(Register::RAX, Some(quotient));
            self.set_register(Register::RDX, Some(remainder));
        } else if writes_first && decoded.written != 0 && to.full_register().is_gpr64() {
            self.general[to.full_register().number()] = held;
            self.set_register(to, result);
        }
        next
    }

    /// Where a branch, a call or a return leads.
    fn go_on(&mut self, instruction: &Instruction, address: Option<u64>, memory: &impl Memory) -> Next {
        let behind = instruction.next_ip();
        let known = |to: Option<u64>| to.map_or(Next::Unknown, Next::At);
        match instruction.flow_control() {
            FlowControl::UnconditionalBranch => Next::At(instruction.near_branch_target()),
            FlowControl::ConditionalBranch => Next::Either {
                taken: instruction.near_branch_target(),
                behind,
                is_taken: self.condition(instruction.condition_code()),
            },
            FlowControl::IndirectBranch => known(self.operand(instruction, 0, address, memory)),
            FlowControl::IndirectCall => {
                let to = self.operand(instruction, 0, address, memory);
                self.push(Some(behind));
                known(to)
            }
            FlowControl::Call if instruction.is_call_near() => {
                self.push(Some(behind));
                Next::At(instruction.near_branch_target())
            }
            FlowControl::Call if instruction.mnemonic() == Mnemonic::Syscall => {
                // The kernel returns a value, and its own address and flags in the two others.
                for register in [Register::RAX, Register::RCX, Register::R11] {
                    self.set_register(register, None);
                }
                Next::Kernel(behind)
            }
            FlowControl::Return if instruction.op_count() == 0 => known(self.pop(memory)),
            _ => Next::Unknown,
        }
    }

    fn condition(&self, code: ConditionCode) -> Option<bool> {
        let flags = self.flags?;
        let is_result = matches!(flags, Flags::Result(_));
        let Relation {
            is_equal,
            is_less,
            is_below,
            is_negative,
        } = match flags {
            Flags::Held(flags) => Relation::held(flags),
            Flags::Compared(left, right) => Relation::of(left, right),
            Flags::Result(result) => Relation::of(result, 0),
            Flags::Carry(carry) => {
                return match code {
                    ConditionCode::b => Some(carry),
                    ConditionCode::ae => Some(!carry),
                    _ => None,
                };
            }
        };
        Some(match code {
            ConditionCode::b | ConditionCode::ae | ConditionCode::be | ConditionCode::a if is_result => {
                return None;
            }
            ConditionCode::e => is_equal,
            ConditionCode::ne => !is_equal,
            ConditionCode::l => is_less,
            ConditionCode::ge => !is_less,
            ConditionCode::le => is_less || is_equal,
            ConditionCode::g => !is_less && !is_equal,
            ConditionCode::b => is_below,
            ConditionCode::ae => !is_below,
            ConditionCode::be => is_below || is_equal,
            ConditionCode::a => !is_below && !is_equal,
            ConditionCode::s => is_negative,
            ConditionCode::ns => !is_negative,
            _ => return None,
        })
    }
}

/// How two numbers compare.
struct Relation {
    is_equal: bool,
    /// With signs.
    is_less: bool,
    /// Without.
    is_below: bool,
    /// The difference's sign.
    is_negative: bool,
}

impl Relation {
    fn of(left: i64, right: i64) -> Self {
        Self {
            is_equal: left == right,
            is_less: left < right,
            is_below: (left as u64) < right as u64,
            is_negative: left.wrapping_sub(right) < 0,
        }
    }

    /// As the processor has it in `rflags`.
    fn held(flags: u64) -> Self {
        let [carry, zero, sign, overflow] = [0, 6, 7, 11].map(|bit| flags >> bit & 1 == 1);
        Self {
            is_equal: zero,
            is_less: sign != overflow,
            is_below: carry,
            is_negative: sign,
        }
    }
}

/// A register's difference with itself, which is zero whatever is in it.
fn is_zero_idiom(instruction: &Instruction) -> bool {
    instruction.op0_kind() == OpKind::Register
        && instruction.op1_kind() == OpKind::Register
        && instruction.op0_register() == instruction.op1_register()
}

/// A number of so many bytes, all of whose bits are ones.
fn ones(bytes: usize) -> u64 {
    match bytes {
        8.. => u64::MAX,
        _ => (1 << (8 * bytes)) - 1,
    }
}

/// A number of so many bytes with its sign.
fn extended(value: u64, bytes: usize) -> i64 {
    match bytes {
        1 => i64::from(value as i8),
        2 => i64::from(value as i16),
        4 => i64::from(value as i32),
        _ => value as i64,
    }
}

/// How many bytes an instruction's first operand has.
fn first_operand_bytes(instruction: &Instruction) -> usize {
    match instruction.op0_kind() {
        OpKind::Register => instruction.op0_register().size(),
        _ => instruction.memory_size().size(),
    }
}

fn is_high_byte(register: Register) -> bool {
    matches!(
        register,
        Register::AH | Register::BH | Register::CH | Register::DH
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Each byte of it is the lower one of its address.
    struct Ramp;

    impl Memory for Ramp {
        fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
            let places = (0..).map(|offset| address.wrapping_add(offset) as u8);
            bytes
                .iter_mut()
                .zip(places)
                .for_each(|(byte, place)| *byte = place);
            true
        }
    }

    #[test]
    fn conditions_are_those_of_the_processor_s_flags() {
        let state = |flags: u64| {
            State::of(&Registers {
                flags,
                ..Registers::default()
            })
        };
        let [carry, zero, sign, overflow] = [0, 6, 7, 11].map(|bit| 1 << bit);
        for (code, holds, does_not) in [
            (ConditionCode::e, zero, sign),
            (ConditionCode::ne, sign, zero),
            (ConditionCode::l, overflow, overflow | sign),
            (ConditionCode::ge, overflow | sign, sign),
            (ConditionCode::le, zero, carry),
            (ConditionCode::g, carry, sign),
            (ConditionCode::b, carry, zero),
            (ConditionCode::ae, overflow, carry | overflow),
            (ConditionCode::be, zero, sign),
            (ConditionCode::a, sign, carry | sign),
            (ConditionCode::s, sign, overflow),
            (ConditionCode::ns, carry, sign | carry),
        ] {
            assert_eq!(state(holds).condition(code), Some(true), "{code:?}");
            assert_eq!(state(does_not).condition(code), Some(false), "{code:?}");
        }
        assert_eq!(state(0).condition(ConditionCode::p), None);
    }

    #[test]
    fn the_sign_of_a_difference_that_overflows_is_not_which_is_less() {
        let mut state = State::of(&Registers::default());
        state.flags = Some(Flags::Compared(i64::MIN, 1));
        assert_eq!(state.condition(ConditionCode::l), Some(true));
        assert_eq!(state.condition(ConditionCode::s), Some(false));
    }

    proptest! {
        /// Stores of all sizes that overlap, of what is known and what is not.
        #[test]
        fn memory_is_what_was_stored_last(
            stores in proptest::collection::vec(
                (0..40_u64, prop_oneof![1..=8_usize, Just(32)], any::<Option<u64>>()),
                0..12,
            ),
            loads in proptest::collection::vec((0..64_u64, 1..=8_usize), 1..12),
        ) {
            let mut state = State::of(&Registers::default());
            let mut bytes: BTreeMap<u64, Option<u8>> = (0..100).map(|at| (at, Some(at as u8))).collect();
            for (at, size, value) in stores {
                state.store(at, size, value);
                for (offset, place) in (at..at + size as u64).enumerate() {
                    let known = value.filter(|_| size <= 8);
                    bytes.insert(place, known.map(|value| value.to_le_bytes()[offset]));
                }
            }
            for (at, size) in loads {
                let expected = (0..size as u64).try_fold(0, |value, offset| {
                    bytes[&(at + offset)].map(|byte| value | u64::from(byte) << (8 * offset))
                });
                prop_assert_eq!(state.load(at, size, &Ramp), expected);
            }
        }
    }
}
