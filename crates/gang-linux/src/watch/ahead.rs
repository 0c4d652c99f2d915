//! What an interrupted thread is about to touch.
//!
//! A thread's registers say which code it executes next, and on what. That code is followed for some instructions
//! without executing it: what integers and addresses become is computed, loads of integers read the memory as it is
//! now, and a comparison whose operands are known decides a branch. Each address on the way is one that the thread
//! touches. Where it cannot be known, because it depends on what is not computed here, it is left out. Where it is not
//! known whether a branch is taken the way ends, as it does at a return, a call, an indirect jump or a system call: to
//! guess leads around loops that the thread has left. A way that comes to a `pause`, the processor's hint of a loop
//! that waits, is of a thread that waits for others; what it touches for that is no work, and nothing of it is
//! reported.
//!
//! One interruption so gives the accesses of some hundred instructions, however long the thread was held up at any of
//! them: an instruction that waits for memory is interrupted more often than its neighbours, which are executed as
//! often. The way is to be longer than most loops' bodies, since what stands behind such an instruction is on more ways
//! than what stands before it.
//!
//! Limits. For x86-64. Memory that others write meanwhile may differ. Instructions on strings, gathers and scatters,
//! and addresses in the thread's own segment (thread-local memory) are left out.

use std::collections::HashMap;

use iced_x86::{
    ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, MemorySize,
    Mnemonic, OpAccess, OpKind, Register,
};

/// Registers of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// The integer registers, by the numbers that instructions have for them: `rax` is 0, `rsp` 4, `r15` 15.
    pub general: [u64; 16],
    /// Where it executes.
    pub instruction: u64,
}

/// The most bytes of an instruction.
const INSTRUCTION_BYTES: usize = 15;
/// The most instructions that are kept decoded.
const DECODED_MAX: usize = 1 << 16;

/// Reads memory of the thread's process; false if there is none.
pub(super) trait Memory {
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool;
}

/// A process's code, decoded where it was followed.
#[derive(Debug, Default)]
pub(super) struct Code {
    decoded: HashMap<u64, Option<Decoded>>,
}

#[derive(Debug)]
struct Decoded {
    instruction: Instruction,
    /// Which of its operands is in memory and is touched.
    touched: Option<u32>,
    /// The integer registers that it writes, a bit each.
    written: u16,
}

impl Decoded {
    /// How many words of eight bytes its operand in memory has, begun ones included.
    fn words(&self) -> u64 {
        self.instruction.memory_size().size().div_ceil(8) as u64
    }
}

impl Code {
    /// Follows a thread's code for at most so many instructions, and answers for how many; none if it leads to a wait
    /// for another thread. `touch` is told the address of each access, and of how many words of eight bytes it is.
    pub(super) fn follow(
        &mut self,
        registers: &Registers,
        most: usize,
        memory: &impl Memory,
        mut touch: impl FnMut(u64, u64),
    ) -> Option<usize> {
        let mut state = State {
            general: registers.general.map(Some),
            compared: None,
        };
        let mut at = registers.instruction;
        for followed in 0..most {
            if self.decoded.len() >= DECODED_MAX {
                self.decoded.clear();
            }
            let Some(decoded) = self.decoded.entry(at).or_insert_with(|| decode(at, memory)) else {
                return Some(followed);
            };
            if decoded.instruction.mnemonic() == Mnemonic::Pause {
                return None;
            }
            let address = decoded
                .touched
                .and_then(|operand| state.address(&decoded.instruction, operand));
            if let Some(address) = address {
                touch(address, decoded.words());
            }
            let Some(next) = state.step(decoded, address, memory) else {
                return Some(followed + 1);
            };
            at = next;
        }
        Some(most)
    }
}

fn decode(at: u64, memory: &impl Memory) -> Option<Decoded> {
    let mut bytes = [0; INSTRUCTION_BYTES];
    if !memory.read(at, &mut bytes) {
        return None;
    }
    let instruction = Decoder::with_ip(64, &bytes, at, DecoderOptions::NONE).decode();
    if instruction.is_invalid() {
        return None;
    }
    let mut written = 0;
    for used in InstructionInfoFactory::new().info(&instruction).used_registers() {
        let is_read = matches!(
            used.access(),
            OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
        );
        let whole = used.register().full_register();
        if whole.is_gpr64() && !is_read {
            written |= 1 << whole.number();
        }
    }
    let names_memory_alone = matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Nop)
        || instruction.memory_size().size() == 0
        || instruction.is_vsib();
    let mut operands = 0..instruction.op_count();
    let touched = operands.find(|&operand| instruction.op_kind(operand) == OpKind::Memory);
    Some(Decoded {
        touched: touched.filter(|_| !names_memory_alone),
        instruction,
        written,
    })
}

/// What is known on the way.
struct State {
    general: [Option<u64>; 16],
    /// Two numbers that compare as the flags say.
    compared: Option<(i64, i64)>,
}

impl State {
    fn register(&self, register: Register) -> Option<u64> {
        let segment = [Register::CS, Register::DS, Register::ES, Register::SS];
        if segment.contains(&register) {
            return Some(0);
        }
        if !register.is_gpr32() && !register.is_gpr64() {
            return None;
        }
        let whole = self.general[register.full_register().number()]?;
        Some(if register.is_gpr32() {
            whole & 0xffff_ffff
        } else {
            whole
        })
    }

    fn address(&self, instruction: &Instruction, operand: u32) -> Option<u64> {
        instruction.virtual_address(operand, 0, |register, _, _| self.register(register))
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
                let (mut bytes, size) = ([0; 8], instruction.memory_size().size());
                if size > bytes.len() || !memory.read(address?, &mut bytes[..size]) {
                    return None;
                }
                let value = u64::from_le_bytes(bytes);
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
        Some(match instruction.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movzx => of(last)?,
            Mnemonic::Movsx | Mnemonic::Movsxd => match instruction.op_kind(last) {
                OpKind::Register => i64::from(of(last)? as i32) as u64,
                _ => of(last)?,
            },
            Mnemonic::Lea => self.address(instruction, last)?,
            Mnemonic::Inc => of(0)?.wrapping_add(1),
            Mnemonic::Dec => of(0)?.wrapping_sub(1),
            Mnemonic::Xor if is_zero_idiom(instruction) => 0,
            Mnemonic::Add => both().map(|(left, right)| left.wrapping_add(right))?,
            Mnemonic::Sub => both().map(|(left, right)| left.wrapping_sub(right))?,
            Mnemonic::And => both().map(|(left, right)| left & right)?,
            Mnemonic::Or => both().map(|(left, right)| left | right)?,
            Mnemonic::Xor => both().map(|(left, right)| left ^ right)?,
            Mnemonic::Imul => both().map(|(left, right)| left.wrapping_mul(right))?,
            Mnemonic::Shl => both().map(|(left, right)| left << (right & 63))?,
            Mnemonic::Shr => both().map(|(left, right)| left >> (right & 63))?,
            _ => return None,
        })
    }

    /// Takes in what an instruction does; the next one, if that is known.
    fn step(&mut self, decoded: &Decoded, address: Option<u64>, memory: &impl Memory) -> Option<u64> {
        let instruction = &decoded.instruction;
        let next = instruction.next_ip();
        match instruction.flow_control() {
            FlowControl::Next => {}
            FlowControl::UnconditionalBranch => return Some(instruction.near_branch_target()),
            FlowControl::ConditionalBranch => {
                let target = instruction.near_branch_target();
                return Some(match self.condition(instruction.condition_code())? {
                    true => target,
                    false => next,
                });
            }
            _ => return None,
        }
        let result = self.result(instruction, address, memory);
        let of = |operand| self.operand(instruction, operand, address, memory);
        match instruction.mnemonic() {
            Mnemonic::Cmp => {
                let is_short = (0..2).any(|operand| instruction.op_register(operand).is_gpr32());
                let extended = |value: u64| {
                    if is_short {
                        i64::from(value as i32)
                    } else {
                        value as i64
                    }
                };
                self.compared = of(0)
                    .zip(of(1))
                    .map(|(left, right)| (extended(left), extended(right)));
            }
            Mnemonic::Test => {
                self.compared = of(0).zip(of(1)).map(|(left, right)| ((left & right) as i64, 0));
            }
            _ if instruction.rflags_modified() != 0 => {
                self.compared = result.map(|result| (result as i64, 0));
            }
            _ => {}
        }
        for number in (0..16).filter(|number| decoded.written >> number & 1 == 1) {
            self.general[number] = None;
        }
        let to = instruction.op0_register();
        if instruction.op_count() > 0 && instruction.op0_kind() == OpKind::Register && decoded.written != 0 {
            if to.is_gpr64() {
                self.general[to.number()] = result;
            } else if to.is_gpr32() {
                self.general[to.full_register().number()] = result.map(|result| result & 0xffff_ffff);
            }
        }
        Some(next)
    }

    fn condition(&self, code: ConditionCode) -> Option<bool> {
        let (left, right) = self.compared?;
        let (low, high) = (left as u64, right as u64);
        Some(match code {
            ConditionCode::e => left == right,
            ConditionCode::ne => left != right,
            ConditionCode::l => left < right,
            ConditionCode::ge => left >= right,
            ConditionCode::le => left <= right,
            ConditionCode::g => left > right,
            ConditionCode::b => low < high,
            ConditionCode::ae => low >= high,
            ConditionCode::be => low <= high,
            ConditionCode::a => low > high,
            ConditionCode::s => left.wrapping_sub(right) < 0,
            ConditionCode::ns => left.wrapping_sub(right) >= 0,
            _ => return None,
        })
    }
}

/// A register's difference with itself, which is zero whatever is in it.
fn is_zero_idiom(instruction: &Instruction) -> bool {
    instruction.op0_kind() == OpKind::Register
        && instruction.op1_kind() == OpKind::Register
        && instruction.op0_register() == instruction.op1_register()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Code, and behind it numbers.
    struct Bytes {
        from: u64,
        bytes: Vec<u8>,
    }

    impl Memory for Bytes {
        fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
            // What is behind the end reads as zero, as code's end does in a page.
            for (offset, byte) in bytes.iter_mut().enumerate() {
                let place = address.wrapping_add(offset as u64).wrapping_sub(self.from) as usize;
                *byte = self.bytes.get(place).copied().unwrap_or(0);
            }
            address >= self.from
        }
    }

    fn followed(code: &[u8], registers: Registers, most: usize) -> (Vec<u64>, Option<usize>) {
        let memory = Bytes {
            from: 0x1000,
            bytes: code.to_vec(),
        };
        let mut touched = Vec::new();
        let count = Code::default().follow(&registers, most, &memory, |address, _| touched.push(address));
        (touched, count)
    }

    #[test]
    fn a_vector_counts_by_its_words() {
        let code = [
            0x8b, 0x07, // mov eax, [rdi]
            0x0f, 0x28, 0x07, // movaps xmm0, [rdi]
            0xc5, 0xfc, 0x28, 0x07, // vmovaps ymm0, [rdi]
            0xd9, 0xfa, // fsqrt
            0xdb, 0x2f, // fld tbyte [rdi]
            0xc3,
        ];
        let memory = Bytes {
            from: 0x1000,
            bytes: code.to_vec(),
        };
        let mut words = Vec::new();
        Code::default().follow(&at(0x1000, &[(7, 0x8000)]), 100, &memory, |_, of| words.push(of));
        assert_eq!(words, [1, 2, 4, 2]);
    }

    fn at(instruction: u64, general: &[(usize, u64)]) -> Registers {
        let mut registers = Registers {
            instruction,
            ..Registers::default()
        };
        general
            .iter()
            .for_each(|&(number, value)| registers.general[number] = value);
        registers
    }

    const LOOP: &[u8] = &[
        0xf2, 0x0f, 0x10, 0x04, 0xc7, // movsd xmm0, [rdi + 8 * rax]
        0xf2, 0x0f, 0x11, 0x04, 0xc6, // movsd [rsi + 8 * rax], xmm0
        0x48, 0x83, 0xc0, 0x01, // add rax, 1
        0x48, 0x39, 0xd0, // cmp rax, rdx
        0x75, 0xed, // jne the first one
        0xc3, // ret
    ];

    #[test]
    fn a_loop_is_followed_to_its_end() {
        let registers = at(0x1000, &[(0, 1), (2, 3), (6, 0x9000), (7, 0x8000)]);
        let (touched, count) = followed(LOOP, registers, 100);
        assert_eq!(touched, [0x8008, 0x9008, 0x8010, 0x9010]);
        assert_eq!(count, Some(11));
        assert_eq!(followed(LOOP, registers, 6).0, [0x8008, 0x9008, 0x8010]);
    }

    #[test]
    fn interruptions_anywhere_in_a_loop_see_the_whole_of_it() {
        let registers = at(0x100a, &[(0, 1), (2, 9), (6, 0x9000), (7, 0x8000)]);
        assert_eq!(followed(LOOP, registers, 5).0, [0x8010, 0x9010]);
    }

    #[test]
    fn a_branch_that_is_not_known_ends_the_way() {
        let registers = at(0x1011, &[(0, 2), (2, 9), (6, 0x9000), (7, 0x8000)]);
        assert_eq!(followed(LOOP, registers, 100), (vec![], Some(1)));
    }

    #[test]
    fn a_thread_that_waits_for_others_works_on_nothing() {
        let code = [
            0x8b, 0x07, // mov eax, [rdi]
            0x39, 0xd0, // cmp eax, edx
            0x75, 0x04, // jne behind the loop
            0xf3, 0x90, // pause
            0xeb, 0xf6, // jmp to the first one
            0xc3, // ret
        ];
        let registers = |expected: u64| at(0x1000, &[(2, expected), (7, 0x1000)]);
        let first = u64::from(u32::from_le_bytes([0x8b, 0x07, 0x39, 0xd0]));
        assert_eq!(followed(&code, registers(first), 100).1, None);
        assert_eq!(followed(&code, registers(7), 100), (vec![0x1000], Some(4)));
    }

    #[test]
    fn indices_are_read_from_memory() {
        let mut code = vec![
            0x48, 0x63, 0x47, 0x40, // movsxd rax, dword [rdi + 0x40]
            0xf2, 0x0f, 0x59, 0x04, 0xc6, // mulsd xmm0, [rsi + 8 * rax]
            0xc3,
        ];
        code.resize(0x40, 0);
        code.extend((-2_i32).to_le_bytes());
        let (touched, count) = followed(&code, at(0x1000, &[(6, 0x9000), (7, 0x1000)]), 100);
        assert_eq!((touched, count), (vec![0x1040, 0x8ff0], Some(3)));
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let code = [
            0x48, 0xf7, 0xe1, // mul rcx
            0x48, 0x8b, 0x18, // mov rbx, [rax]
            0x48, 0x8b, 0x0f, // mov rcx, [rdi]
            0x48, 0x8d, 0x77, 0x08, // lea rsi, [rdi + 8]
            0x64, 0x48, 0x8b, 0x0e, // mov rcx, fs:[rsi]
            0x48, 0x89, 0x0e, // mov [rsi], rcx
            0x0f, 0x05, // syscall
        ];
        assert_eq!(
            followed(&code, at(0x1000, &[(7, 0x8000)]), 100),
            (vec![0x8000, 0x8008], Some(7))
        );
        assert_eq!(
            followed(&code, at(0x10, &[]), 100),
            (vec![], Some(0)),
            "no code is there"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_followed_no_further_than_asked(
            code in proptest::collection::vec(any::<u8>(), 1..200), general: [u64; 16], most in 0..200_usize,
        ) {
            let (touched, count) = followed(&code, Registers { general, instruction: 0x1000 }, most);
            prop_assert!(count.is_none_or(|count| count <= most && touched.len() <= count));
        }
    }
}
