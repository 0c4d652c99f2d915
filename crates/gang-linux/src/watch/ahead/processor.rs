//! What is computed of a thread's way, held against the processor.
//!
//! A child computes, step by step under `ptrace`. From where it is the way is followed on paper, with its memory as it
//! is then; after that it is stepped, and at each step what is thought to be known has to be what it has.

use std::fmt::Write;
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;

use super::state::State;
use super::{Code, Memory, Registers};

/// How many instructions are followed at once, and how often.
const FOLLOWED: usize = 256;
const TIMES: usize = 200;

/// Text on the stack, since a child of a process with threads must not allocate.
struct Text {
    bytes: [u8; 64],
    length: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for byte in text.bytes() {
            self.bytes[self.length % 64] = byte;
            self.length += 1;
        }
        Ok(())
    }
}

/// Integers of all widths, comparisons, shifts, divisions, bits, tables of jumps and calls.
fn compute(mut seed: u64) -> u64 {
    let mut numbers = [0_u64; 12];
    for number in &mut numbers {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        *number = seed >> 13;
    }
    numbers.sort_unstable_by_key(|number| (*number as i16, *number as u8));
    let mut text = Text {
        bytes: [0; 64],
        length: 0,
    };
    let mut sum = 0_i64;
    for (index, number) in numbers.iter().enumerate() {
        sum = sum.wrapping_add(match number % 7 {
            0 => i64::from(*number as i8),
            1 => i64::from(*number as u16) - i64::from(*number as i32),
            2 => (*number as i64) >> (number & 31),
            3 => (*number as i32).wrapping_neg().into(),
            4 => i64::from((*number as u32).rotate_left(index as u32) & 0xff_ffff),
            5 => i64::from(number.count_ones() + number.trailing_zeros()),
            _ => (*number / (index as u64 + 1)) as i64,
        });
        if number & 3 == 0 {
            let _ = write!(text, "{number} {index:x}");
        }
    }
    text.bytes
        .iter()
        .fold(sum as u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(31))
}

/// A child that waits to be stepped.
struct Child(i32);

impl Child {
    /// None where it may not be stepped.
    fn begin() -> Option<Self> {
        // SAFETY: the child calls nothing but what a signal handler may, and computes on its own stack until it is
        // killed.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "a process can have a child");
        if child == 0 {
            // SAFETY: as above.
            unsafe {
                libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
                libc::raise(libc::SIGSTOP);
            }
            for seed in 0.. {
                black_box(compute(black_box(seed)));
            }
        }
        let child = Self(child);
        child.stopped();
        child.registers().map(|_| child)
    }

    fn stopped(&self) {
        let mut status = 0;
        // SAFETY: the child is ours, and the status lives as long as the call.
        let waited = unsafe { libc::waitpid(self.0, &mut status, libc::WUNTRACED) };
        assert!(waited == self.0 && libc::WIFSTOPPED(status), "the child stops");
    }

    fn step(&self) {
        // SAFETY: the child is ours and stopped.
        let stepped = unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, self.0, 0, 0) };
        assert!(stepped == 0, "a stopped child can be stepped");
        self.stopped();
    }

    fn registers(&self) -> Option<Registers> {
        // SAFETY: numbers of which all bits may be zero.
        let mut read: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        // SAFETY: the child is ours and stopped; the kernel fills the structure in.
        let outcome = unsafe { libc::ptrace(libc::PTRACE_GETREGS, self.0, 0, &raw mut read) };
        (outcome == 0).then_some(Registers {
            general: [
                read.rax, read.rcx, read.rdx, read.rbx, read.rsp, read.rbp, read.rsi, read.rdi, read.r8,
                read.r9, read.r10, read.r11, read.r12, read.r13, read.r14, read.r15,
            ],
            instruction: read.rip,
            flags: read.eflags,
        })
    }
}

impl Memory for File {
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        self.read_exact_at(bytes, address).is_ok()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: the child is ours, and nobody waits for it any more.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), 0);
        }
    }
}

#[test]
fn what_is_thought_to_be_known_is_what_the_processor_computes() {
    let Some(child) = Child::begin() else {
        tests_need::leave_out("this user may not step a child");
        return;
    };
    let mut code = Code::default();
    let memory = File::open(format!("/proc/{}/mem", child.0)).expect("the memory of a child");
    let (mut followed, mut known) = (0, 0);
    for _ in 0..TIMES {
        let registers = child.registers().expect("a stopped child");
        let (mut state, mut at) = (State::of(&registers), registers.instruction);
        // Where it is thought to be after each instruction, and with what.
        let mut thought = Vec::new();
        while thought.len() < FOLLOWED {
            let Some(decoded) = code.decode(at, &memory) else {
                break;
            };
            let address = state.touched(decoded);
            let instruction = decoded.instruction;
            let Some(next) = state.step(decoded, address, &memory).known() else {
                break;
            };
            at = next;
            thought.push((instruction, at, state.clone()));
        }
        for (instruction, at, state) in &thought {
            child.step();
            let registers = child.registers().expect("a stopped child");
            assert_eq!(registers.instruction, *at, "behind {instruction:?}");
            for (number, holds) in registers.general.iter().enumerate() {
                if let Some(thought) = state.general(number) {
                    assert_eq!(thought, *holds, "register {number} behind {instruction:?}");
                    known += 1;
                }
            }
            followed += 1;
        }
        // Past what is not known.
        (0..100).for_each(|_| child.step());
    }
    assert!(followed > TIMES * 10, "{followed} instructions");
    assert!(
        known > followed * 12,
        "{known} registers of {followed} instructions"
    );
}
