//! What an interrupted thread is about to touch.
//!
//! A thread's registers say which code it executes next, and on what. That code is followed for some instructions
//! without executing it ([`state`]): what integers and addresses become is computed, loads of integers read the memory,
//! and a comparison whose operands are known decides a branch. Each address on the way is one that the thread touches.
//! Where it cannot be known, because it depends on what is not computed here, it is left out. Where it is not known
//! where the thread goes on the way ends: to guess leads around loops that the thread has left. A thread that waits for
//! others ([`waiting`]) does no work, and nothing of its way is reported.
//!
//! One interruption so gives the accesses of some hundred instructions, however long the thread was held up at any of
//! them: an instruction that waits for memory is interrupted more often than its neighbours, which are executed as
//! often. The way is to be longer than most loops' bodies, since what stands behind such an instruction is on more ways
//! than what stands before it.
//!
//! Limits. For x86-64. Memory that others write meanwhile may differ, and so may what the thread itself writes between
//! the interruption and the look, but for what it has on its stack. Instructions on strings, gathers and scatters, and
//! addresses in the thread's own segment (thread-local memory) are left out.

#[cfg(test)]
mod processor;
mod state;
mod waiting;

use std::collections::HashMap;

use foldhash::fast::FixedState;
use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind};

use state::State;
use waiting::Finding;

/// Registers of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// The integer registers, by the numbers that instructions have for them: `rax` is 0, `rsp` 4, `r15` 15.
    pub general: [u64; 16],
    /// Where it executes.
    pub instruction: u64,
    /// `rflags`.
    pub flags: u64,
}

/// The number of the register `rsp`.
pub(super) const STACK_POINTER: usize = 4;
/// The most bytes of an instruction.
const INSTRUCTION_BYTES: usize = 15;
/// The most instructions that are kept decoded.
const DECODED_MAX: usize = 1 << 16;

/// Reads memory of the thread's process; false if it is not known.
pub(super) trait Memory {
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool;

    /// Whether what is read there is as it was when the thread was interrupted, though it changes often: its stack.
    fn is_as_it_was(&self, _address: u64) -> bool {
        true
    }
}

/// A process's code, decoded where it was followed.
#[derive(Debug, Default)]
pub(super) struct Code {
    decoded: HashMap<u64, Option<Decoded>, FixedState>,
    /// What was found out of threads that execute there.
    findings: HashMap<u64, Vec<Finding>, FixedState>,
}

#[derive(Debug)]
struct Decoded {
    instruction: Instruction,
    /// Which of its operands is in memory and is touched.
    touched: Option<u32>,
    /// Whether it writes that operand.
    stores: bool,
    /// The integer registers that it writes, a bit each.
    written: u16,
}

impl Decoded {
    /// How many bytes its operand in memory has.
    fn bytes(&self) -> usize {
        self.instruction.memory_size().size()
    }

    /// How many words of eight bytes, begun ones included.
    fn words(&self) -> u64 {
        self.bytes().div_ceil(8) as u64
    }
}

impl Code {
    /// Follows a thread's code for at most so many instructions, and answers for how many; none if it waits for another
    /// thread. `touch` is told the address of each access, and of how many words of eight bytes it is.
    pub(super) fn follow(
        &mut self,
        registers: &Registers,
        most: usize,
        memory: &impl Memory,
        mut touch: impl FnMut(u64, u64),
    ) -> Option<usize> {
        if self.waits(registers, memory) {
            return None;
        }
        let (mut state, mut at) = (State::of(registers), registers.instruction);
        for followed in 0..most {
            let Some(decoded) = self.decode(at, memory) else {
                return Some(followed);
            };
            if decoded.instruction.mnemonic() == Mnemonic::Pause {
                return Some(followed);
            }
            let address = state.touched(decoded);
            if let Some(address) = address {
                touch(address, decoded.words());
            }
            let Some(next) = state.step(decoded, address, memory).known() else {
                return Some(followed + 1);
            };
            at = next;
        }
        Some(most)
    }

    /// The instruction at an address, if one is there.
    fn decode(&mut self, at: u64, memory: &impl Memory) -> Option<&Decoded> {
        if self.decoded.len() >= DECODED_MAX {
            self.decoded.clear();
            self.findings.clear();
        }
        self.decoded
            .entry(at)
            .or_insert_with(|| decode(at, memory))
            .as_ref()
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
    let is_written = |access: OpAccess| {
        !matches!(
            access,
            OpAccess::None | OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
        )
    };
    let mut information = InstructionInfoFactory::new();
    let information = information.info(&instruction);
    let mut written = 0;
    for used in information.used_registers() {
        let whole = used.register().full_register();
        if whole.is_gpr64() && is_written(used.access()) {
            written |= 1 << whole.number();
        }
    }
    let names_memory_alone = matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Nop)
        || instruction.memory_size().size() == 0
        || instruction.is_vsib();
    let mut operands = 0..instruction.op_count();
    let touched = operands
        .find(|&operand| instruction.op_kind(operand) == OpKind::Memory)
        .filter(|_| !names_memory_alone);
    Some(Decoded {
        touched,
        stores: touched.is_some_and(|operand| is_written(information.op_access(operand))),
        instruction,
        written,
    })
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
    fn flags_that_the_thread_had_decide_its_next_branch() {
        for (flags, touches) in [(0, 2), (1 << 6, 0)] {
            let registers = Registers {
                flags,
                ..at(0x1011, &[(0, 8), (2, 9), (6, 0x9000), (7, 0x8000)])
            };
            assert_eq!(followed(LOOP, registers, 100).0.len(), touches, "{flags:#x}");
        }
    }

    #[test]
    fn a_branch_that_is_not_known_ends_the_way() {
        let code = [
            0x66, 0x0f, 0x2e, 0xc1, // ucomisd xmm0, xmm1
            0x75, 0xfa, // jne the first one
            0x48, 0x8b, 0x07, // mov rax, [rdi]
        ];
        assert_eq!(
            followed(&code, at(0x1000, &[(7, 0x8000)]), 100),
            (vec![], Some(2))
        );
    }

    /// Whatever memory says by now: another thread may have written what this one waits for.
    #[test]
    fn a_thread_that_waits_for_others_works_on_nothing() {
        let code = [
            0x8b, 0x07, // mov eax, [rdi]
            0x39, 0xd0, // cmp eax, edx
            0x75, 0x04, // jne behind the loop
            0xf3, 0x90, // pause
            0xeb, 0xf6, // jmp to the first one
            0x48, 0x8b, 0x06, // mov rax, [rsi]
            0xc3, // ret
        ];
        let registers = |from: u64, expected: u64| at(from, &[(2, expected), (6, 0x9000), (7, 0x1000)]);
        let first = u64::from(u32::from_le_bytes([0x8b, 0x07, 0x39, 0xd0]));
        for from in [0x1000, 0x1002, 0x1004, 0x1006, 0x1008] {
            for expected in [first, 7] {
                assert_eq!(
                    followed(&code, registers(from, expected), 100),
                    (vec![], None),
                    "{from:#x}"
                );
            }
        }
        assert_eq!(followed(&code, registers(0x100a, 7), 1), (vec![0x9000], Some(1)));
    }

    #[test]
    fn one_that_comes_to_wait_works_until_then() {
        let code = [
            0x48, 0x8b, 0x06, // mov rax, [rsi]
            0x8b, 0x07, // mov eax, [rdi]
            0x39, 0xd0, // cmp eax, edx
            0x75, 0x04, // jne behind the loop
            0xf3, 0x90, // pause
            0xeb, 0xf6, // jmp to the second one
        ];
        let second = u64::from(u32::from_le_bytes([0x8b, 0x07, 0x39, 0xd0]));
        let registers = at(0x1000, &[(2, second), (6, 0x9000), (7, 0x1003)]);
        assert_eq!(followed(&code, registers, 100), (vec![0x9000, 0x1003], Some(4)));
    }

    /// A function gives the processor away for whoever calls it, or writes for whoever does. Who waits is told by where
    /// it returns to.
    #[test]
    fn who_gives_the_processor_away_in_a_loop_waits() {
        let mut code = vec![
            0xbf, 0x18, 0, 0, 0, // mov edi, 24
            0xe8, 0x16, 0, 0, 0, // call 0x1020
            0x39, 0x16, // cmp [rsi], edx
            0x75, 0xf2, // jne 0x1000
            0xc3,
        ];
        code.resize(0x10, 0x90);
        code.extend([
            0xbf, 0x01, 0, 0, 0, // mov edi, 1
            0xe8, 0x06, 0, 0, 0, // call 0x1020
            0xeb, 0xf4, // jmp 0x1010
        ]);
        code.resize(0x20, 0x90);
        code.extend([
            0x89, 0xf8, // mov eax, edi
            0x0f, 0x05, // syscall
            0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff, // cmp rax, -4095
            0xc3, // ret
        ]);
        let stacks = 0x30;
        code.resize(stacks, 0);
        code.extend([0x100a_u64, 0x101a].map(u64::to_le_bytes).concat());
        let memory = Bytes {
            from: 0x1000,
            bytes: code,
        };
        let mut code = Code::default();
        // In turns, since what was found of one is kept.
        for _ in 0..2 {
            for (stack, waits) in [(0x1030, true), (0x1038, false)] {
                let registers = at(0x1024, &[(4, stack), (6, 0x9000)]);
                assert_eq!(code.follow(&registers, 1, &memory, |_, _| {}).is_none(), waits);
            }
        }
    }

    #[test]
    fn one_that_takes_a_lock_for_each_piece_of_its_work_does_not_wait() {
        let code = [
            0x48, 0x8b, 0x06, // mov rax, [rsi]
            0x48, 0x83, 0xc6, 0x08, // add rsi, 8
            0x86, 0x0f, // xchg [rdi], cl
            0x84, 0xc9, // test cl, cl
            0x74, 0x04, // je behind the pause
            0xf3, 0x90, // pause
            0xeb, 0xf6, // jmp to the xchg
            0x48, 0x39, 0xd6, // cmp rsi, rdx
            0x75, 0xea, // jne the first one
            0xc3,
        ];
        let waits = [
            0x1000, 0x1003, 0x1007, 0x1009, 0x100b, 0x100d, 0x100f, 0x1011, 0x1014,
        ]
        .map(|from| {
            let registers = at(from, &[(1, 1), (2, 0x9100), (6, 0x9000), (7, 0x8000)]);
            followed(&code, registers, 1).1.is_none()
        });
        assert_eq!(waits, [false, false, true, true, true, true, true, false, false]);
    }

    #[test]
    fn calls_are_followed_and_what_they_keep_on_the_stack_is_known() {
        let code = [
            0x57, // push rdi
            0xe8, 0x05, 0, 0, 0, // call 0x100b
            0x48, 0x8b, 0x01, // mov rax, [rcx]
            0x0f, 0x0b, // ud2
            0x48, 0x8b, 0x4c, 0x24, 0x08, // mov rcx, [rsp + 8]
            0xc3, // ret
        ];
        let (touched, count) = followed(&code, at(0x1000, &[(4, 0x5000), (7, 0x8000)]), 100);
        assert_eq!(touched, [0x4ff8, 0x8000]);
        assert_eq!(count, Some(6));
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
            code in proptest::collection::vec(any::<u8>(), 1..200),
            general: [u64; 16],
            flags: u64,
            most in 0..200_usize,
        ) {
            let (touched, count) = followed(&code, Registers { general, instruction: 0x1000, flags }, most);
            prop_assert!(count.is_none_or(|count| count <= most && touched.len() <= count));
        }
    }
}
