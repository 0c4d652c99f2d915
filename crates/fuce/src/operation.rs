//! The instruction set as one table.
//!
//! Each row names an operation, its opcode, its operands, the unit that executes it, how many cycles pass until its
//! result can be used, the faults it can raise, and what it does. Encoder, decoder, assembler, disassembler,
//! scoreboard and the manual all follow from this table; only the semantics are written elsewhere
//! (`chip::execute` for what happens inside a unit, `controller` for the continuation set).
//!
//! An instruction is 32 bits: the opcode in bits 31..24, then up to three 5-bit fields A (23..19), B (18..14) and
//! C (13..9), and an immediate that takes the low bits left over. Bits no operand uses must be zero.

use crate::controller::FaultCause;

/// An operand of an instruction: which bits hold it, and how it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// The register in field A that receives the result.
    Destination,
    /// A register that is read, in field A.
    SourceA,
    /// A register that is read, in field B.
    SourceB,
    /// A register that is read, in field C.
    SourceC,
    /// A signed 14-bit number.
    Signed14,
    /// An unsigned 14-bit number.
    Unsigned14,
    /// A shift amount, 0 to 31.
    Shift,
    /// An unsigned 19-bit number that fills the upper bits of a register.
    Upper19,
    /// `offset(register)`: a signed 14-bit byte offset and a register in field B.
    Address,
    /// A branch target, as a signed 14-bit distance in instructions.
    Branch14,
    /// A jump target, as a signed 24-bit distance in instructions.
    Jump24,
    /// A call target, as a signed 19-bit distance in instructions.
    Jump19,
    /// A word of a target's frame, 0 to 511.
    Slot9,
    /// A word of the thread's own frame, 0 to 16383.
    Slot14,
    /// A number of registers, 1 to 31, in field B.
    Count5,
    /// A thread mode, in field A: `user`, `interface` or `kernel`.
    Mode,
    /// A fan-in, 1 to 255.
    FanIn,
}

/// A range of bits of the instruction word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bits {
    /// The lowest bit.
    pub shift: u32,
    /// How many bits.
    pub width: u32,
}

impl Bits {
    /// The lowest `width` bits.
    const fn low(width: u32) -> Bits {
        Bits { shift: 0, width }
    }

    /// The bits as a mask of the instruction word.
    pub const fn mask(self) -> u32 {
        ((1u32 << self.width) - 1) << self.shift
    }
}

/// Field A.
pub const FIELD_A: Bits = Bits { shift: 19, width: 5 };
/// Field B.
pub const FIELD_B: Bits = Bits { shift: 14, width: 5 };
/// Field C.
pub const FIELD_C: Bits = Bits { shift: 9, width: 5 };

impl Operand {
    /// The bits of the operand's number, or of its register.
    pub const fn bits(self) -> Bits {
        match self {
            Operand::Destination | Operand::SourceA | Operand::Mode => FIELD_A,
            Operand::SourceB | Operand::Count5 => FIELD_B,
            Operand::SourceC => FIELD_C,
            Operand::Signed14 | Operand::Unsigned14 | Operand::Address => Bits::low(14),
            Operand::Branch14 | Operand::Slot14 => Bits::low(14),
            Operand::Shift => Bits::low(5),
            Operand::Upper19 | Operand::Jump19 => Bits::low(19),
            Operand::Jump24 => Bits::low(24),
            Operand::Slot9 | Operand::FanIn => Bits::low(9),
        }
    }

    /// The smallest and largest number the operand can hold; for a register, the register numbers.
    pub const fn range(self) -> (i64, i64) {
        match self {
            Operand::Destination | Operand::SourceA | Operand::SourceB | Operand::SourceC => (0, 31),
            Operand::Mode => (1, 3),
            Operand::Count5 => (1, 31),
            Operand::Shift => (0, 31),
            Operand::FanIn => (1, 255),
            Operand::Unsigned14 | Operand::Upper19 | Operand::Slot9 | Operand::Slot14 => {
                (0, (1 << self.bits().width) - 1)
            }
            Operand::Signed14 | Operand::Address => (-(1 << 13), (1 << 13) - 1),
            Operand::Branch14 | Operand::Jump19 | Operand::Jump24 => {
                let half = 1i64 << (self.bits().width - 1);
                (-half, half - 1)
            }
        }
    }

    /// Whether the operand's number is held in two's complement.
    pub const fn signed(self) -> bool {
        self.range().0 < 0
    }

    /// Whether the operand is written as a place in the program and held as a distance from the instruction.
    pub const fn is_place(self) -> bool {
        matches!(self, Operand::Branch14 | Operand::Jump19 | Operand::Jump24)
    }

    /// What a reader is told to write here.
    pub const fn description(self) -> &'static str {
        match self {
            Operand::Destination | Operand::SourceA | Operand::SourceB | Operand::SourceC => {
                "a register (r0 to r31)"
            }
            Operand::Signed14 => "a number from -8192 to 8191",
            Operand::Unsigned14 => "a number from 0 to 16383",
            Operand::Shift => "a shift amount from 0 to 31",
            Operand::Upper19 => "a number from 0 to 524287",
            Operand::Address => "an address as offset(register)",
            Operand::Branch14 => "a label within 8192 instructions",
            Operand::Jump24 | Operand::Jump19 => "a label",
            Operand::Slot9 => "a frame slot from 0 to 511",
            Operand::Slot14 => "a frame slot from 0 to 16383",
            Operand::Count5 => "a number of registers from 1 to 31",
            Operand::Mode => "a mode (user, interface or kernel)",
            Operand::FanIn => "a fan-in from 1 to 255",
        }
    }

    /// How the operand appears in the manual's syntax line.
    pub const fn placeholder(self) -> &'static str {
        match self {
            Operand::Destination => "rd",
            Operand::SourceA => "ra",
            Operand::SourceB => "rb",
            Operand::SourceC => "rc",
            Operand::Signed14 | Operand::Unsigned14 | Operand::Upper19 => "number",
            Operand::Shift => "amount",
            Operand::Address => "offset(rb)",
            Operand::Branch14 | Operand::Jump24 | Operand::Jump19 => "label",
            Operand::Slot9 | Operand::Slot14 => "slot",
            Operand::Count5 => "count",
            Operand::Mode => "mode",
            Operand::FanIn => "fan-in",
        }
    }
}

/// The part of a thread execution unit, or of the chip, that carries out an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// The integer unit; fully pipelined.
    Integer,
    /// The multiplier; pipelined.
    Multiplier,
    /// The divider; it holds the pipeline until done.
    Divider,
    /// The path to shared memory.
    Memory,
    /// The branch unit.
    Branch,
    /// The thread activation controller, through the unit's request port.
    Controller,
}

impl Unit {
    /// The unit's name in the manual.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Integer => "integer",
            Unit::Multiplier => "multiplier",
            Unit::Divider => "divider",
            Unit::Memory => "memory",
            Unit::Branch => "branch",
            Unit::Controller => "controller",
        }
    }
}

/// Cycles from issue until the result can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cycles {
    /// Always the same number.
    Fixed(u32),
    /// One, and the chip's taken-branch penalty when the branch is taken.
    TakenBranch,
    /// As memory answers: bank latency and contention.
    Memory,
    /// As the controller answers: its queue of requests and its service time.
    Controller,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Description {
    /// The operation.
    pub operation: Operation,
    /// How it is written.
    pub mnemonic: &'static str,
    /// Bits 31..24 of its encoding.
    pub opcode: u8,
    /// Its operands, in the order they are written.
    pub operands: &'static [Operand],
    /// What carries it out.
    pub unit: Unit,
    /// When its result can be used.
    pub cycles: Cycles,
    /// The faults it can raise, besides a fault of the instruction's own fetch.
    pub faults: &'static [FaultCause],
    /// What it does, in one sentence.
    pub summary: &'static str,
}

impl Description {
    /// The bits of an instruction word that some operand or the opcode uses.
    pub fn used_bits(&self) -> u32 {
        self.operands.iter().fold(0xff00_0000, |used, operand| {
            let register = if *operand == Operand::Address {
                FIELD_B.mask()
            } else {
                0
            };
            used | operand.bits().mask() | register
        })
    }

    /// Whether the operation writes the register in field A.
    pub fn writes(&self) -> bool {
        self.operands.contains(&Operand::Destination)
    }
}

macro_rules! operations {
    ($(
        $variant:ident $mnemonic:literal $opcode:literal
        $operands:expr, $unit:ident, $cycles:expr, $faults:expr, $summary:literal;
    )*) => {
        /// An operation of the FUCE instruction set.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Operation {
            $(#[doc = $summary] $variant),*
        }

        /// Every operation, in the manual's order. A row's index is its operation's number.
        pub const OPERATIONS: &[Description] = &[
            $(Description {
                operation: Operation::$variant,
                mnemonic: $mnemonic,
                opcode: $opcode,
                operands: $operands,
                unit: Unit::$unit,
                cycles: $cycles,
                faults: $faults,
                summary: $summary,
            }),*
        ];
    };
}

use Cycles::{Controller as Answer, Fixed, Memory as Access, TakenBranch};
use FaultCause as F;
use Operand as O;

const REGISTER: &[Operand] = &[O::Destination, O::SourceB, O::SourceC];
const IMMEDIATE: &[Operand] = &[O::Destination, O::SourceB, O::Signed14];
const LOGICAL: &[Operand] = &[O::Destination, O::SourceB, O::Unsigned14];
const SHIFT: &[Operand] = &[O::Destination, O::SourceB, O::Shift];
const LOAD: &[Operand] = &[O::Destination, O::Address];
const STORE: &[Operand] = &[O::SourceA, O::Address];
const BRANCH: &[Operand] = &[O::SourceA, O::SourceB, O::Branch14];
const TARGET: &[Operand] = &[O::SourceB];

const ACCESS: &[FaultCause] = &[F::Misaligned, F::MemoryProtection];
const TARGETED: &[FaultCause] = &[F::MissingEntry, F::ModeProtection];

operations! {
    Add   "add"   0x01 REGISTER, Integer, Fixed(1), &[], "rd = rb + rc, modulo 2^32.";
    Sub   "sub"   0x02 REGISTER, Integer, Fixed(1), &[], "rd = rb - rc, modulo 2^32.";
    And   "and"   0x03 REGISTER, Integer, Fixed(1), &[], "rd = rb and rc, bit by bit.";
    Or    "or"    0x04 REGISTER, Integer, Fixed(1), &[], "rd = rb or rc, bit by bit.";
    Xor   "xor"   0x05 REGISTER, Integer, Fixed(1), &[], "rd = rb exclusive-or rc, bit by bit.";
    Sll   "sll"   0x06 REGISTER, Integer, Fixed(1), &[], "rd = rb shifted left by rc modulo 32.";
    Srl   "srl"   0x07 REGISTER, Integer, Fixed(1), &[], "rd = rb shifted right by rc modulo 32, zeros entering.";
    Sra   "sra"   0x08 REGISTER, Integer, Fixed(1), &[], "rd = rb shifted right by rc modulo 32, the sign entering.";
    Slt   "slt"   0x09 REGISTER, Integer, Fixed(1), &[], "rd = 1 if rb < rc as signed numbers, else 0.";
    Sltu  "sltu"  0x0a REGISTER, Integer, Fixed(1), &[], "rd = 1 if rb < rc as unsigned numbers, else 0.";
    Mul   "mul"   0x0b REGISTER, Multiplier, Fixed(3), &[], "rd = the low 32 bits of rb times rc.";
    Mulhu "mulhu" 0x0c REGISTER, Multiplier, Fixed(3), &[], "rd = the high 32 bits of rb times rc, both unsigned.";
    Div   "div"   0x0d REGISTER, Divider, Fixed(34), &[F::DivideByZero], "rd = rb divided by rc, both signed, rounded towards zero; -2^31 by -1 gives -2^31.";
    Divu  "divu"  0x0e REGISTER, Divider, Fixed(34), &[F::DivideByZero], "rd = rb divided by rc, both unsigned.";
    Rem   "rem"   0x0f REGISTER, Divider, Fixed(34), &[F::DivideByZero], "rd = the remainder of rb by rc, both signed, with the sign of rb; -2^31 by -1 gives 0.";
    Remu  "remu"  0x10 REGISTER, Divider, Fixed(34), &[F::DivideByZero], "rd = the remainder of rb by rc, both unsigned.";
    Addi  "addi"  0x11 IMMEDIATE, Integer, Fixed(1), &[], "rd = rb + number, modulo 2^32.";
    Andi  "andi"  0x12 LOGICAL, Integer, Fixed(1), &[], "rd = rb and number.";
    Ori   "ori"   0x13 LOGICAL, Integer, Fixed(1), &[], "rd = rb or number.";
    Xori  "xori"  0x14 LOGICAL, Integer, Fixed(1), &[], "rd = rb exclusive-or number.";
    Slti  "slti"  0x15 IMMEDIATE, Integer, Fixed(1), &[], "rd = 1 if rb < number as signed numbers, else 0.";
    Sltiu "sltiu" 0x16 IMMEDIATE, Integer, Fixed(1), &[], "rd = 1 if rb < number as unsigned numbers (the number sign-extended first), else 0.";
    Slli  "slli"  0x17 SHIFT, Integer, Fixed(1), &[], "rd = rb shifted left by amount.";
    Srli  "srli"  0x18 SHIFT, Integer, Fixed(1), &[], "rd = rb shifted right by amount, zeros entering.";
    Srai  "srai"  0x19 SHIFT, Integer, Fixed(1), &[], "rd = rb shifted right by amount, the sign entering.";
    Lui   "lui"   0x1a &[O::Destination, O::Upper19], Integer, Fixed(1), &[], "rd = number shifted left by 13.";
    Ldw   "ldw"   0x20 LOAD, Memory, Access, ACCESS, "rd = the word at rb + offset.";
    Ldh   "ldh"   0x21 LOAD, Memory, Access, ACCESS, "rd = the half-word at rb + offset, sign-extended.";
    Ldhu  "ldhu"  0x22 LOAD, Memory, Access, ACCESS, "rd = the half-word at rb + offset, zero-extended.";
    Ldb   "ldb"   0x23 LOAD, Memory, Access, ACCESS, "rd = the byte at rb + offset, sign-extended.";
    Ldbu  "ldbu"  0x24 LOAD, Memory, Access, ACCESS, "rd = the byte at rb + offset, zero-extended.";
    Stw   "stw"   0x25 STORE, Memory, Access, ACCESS, "The word at rb + offset = ra.";
    Sth   "sth"   0x26 STORE, Memory, Access, ACCESS, "The half-word at rb + offset = the low half of ra.";
    Stb   "stb"   0x27 STORE, Memory, Access, ACCESS, "The byte at rb + offset = the low byte of ra.";
    Preload "preload" 0x28 &[O::Destination, O::Slot14, O::Count5], Memory, Access, &[F::FrameBounds, F::IllegalInstruction], "Loads count registers from rd on with consecutive words of the thread's own frame from slot on; as the first instruction of a thread it is done by the preload unit while the unit's previous thread still runs.";
    Beq   "beq"   0x30 BRANCH, Branch, TakenBranch, &[], "Branches if ra = rb.";
    Bne   "bne"   0x31 BRANCH, Branch, TakenBranch, &[], "Branches if ra and rb differ.";
    Blt   "blt"   0x32 BRANCH, Branch, TakenBranch, &[], "Branches if ra < rb as signed numbers.";
    Bge   "bge"   0x33 BRANCH, Branch, TakenBranch, &[], "Branches if ra >= rb as signed numbers.";
    Bltu  "bltu"  0x34 BRANCH, Branch, TakenBranch, &[], "Branches if ra < rb as unsigned numbers.";
    Bgeu  "bgeu"  0x35 BRANCH, Branch, TakenBranch, &[], "Branches if ra >= rb as unsigned numbers.";
    Jmp   "jmp"   0x36 &[O::Jump24], Branch, TakenBranch, &[], "Jumps to label.";
    Jal   "jal"   0x37 &[O::Destination, O::Jump19], Branch, TakenBranch, &[], "rd = the address of the next instruction; jumps to label.";
    Jr    "jr"    0x38 TARGET, Branch, TakenBranch, &[F::Misaligned], "Jumps to the address in rb.";
    Cont  "cont"  0x40 TARGET, Controller, Fixed(1), &[F::MissingEntry, F::ModeProtection, F::NotArmed], "Continues to the thread rb: decrements its synchronisation counter; at zero the thread becomes ready.";
    Contd "contd" 0x41 &[O::SourceB, O::SourceC, O::Slot9], Controller, Fixed(1), &[F::MissingEntry, F::ModeProtection, F::NotArmed, F::FrameBounds], "Continues to the thread rb after writing rc into word slot of its frame.";
    Contu "contu" 0x4b TARGET, Controller, Fixed(1), &[F::MissingEntry, F::ModeProtection, F::NotArmed], "Continues as `cont` does, with no more rights than a user thread: for targets that a user thread has named.";
    Contdu "contdu" 0x4c &[O::SourceB, O::SourceC, O::Slot9], Controller, Fixed(1), &[F::MissingEntry, F::ModeProtection, F::NotArmed, F::FrameBounds], "Continues as `contd` does, with no more rights than a user thread.";
    SelfContinue "self" 0x42 &[], Controller, Fixed(1), &[F::MissingEntry, F::NotSpent], "Makes the running thread ready again at its code entry, counter untouched, and ends it.";
    Lock  "lock"  0x43 &[O::Destination, O::SourceB], Controller, Answer, TARGETED, "rd = 1 and sets the lock of thread rb's entry if it was clear, else rd = 0.";
    Unlock "unlock" 0x44 TARGET, Controller, Fixed(1), &[F::MissingEntry, F::ModeProtection, F::NotLocked], "Clears the lock of thread rb's entry. A user thread may unlock user threads only.";
    Create "create" 0x45 &[O::Destination, O::SourceB, O::Unsigned14], Controller, Answer, &[F::MemoryProtection], "Allocates a page of the activation control memory for an instance whose frame is number words at rb; rd = the identifier of its entry 0, or -1 when no page is free.";
    Delete "delete" 0x46 TARGET, Controller, Fixed(1), &[F::MissingEntry, F::ModeProtection, F::NotSpent], "Frees the page that holds thread rb; refused while one of its threads is ready.";
    Install "install" 0x47 &[O::Mode, O::SourceB, O::SourceC, O::FanIn], Controller, Fixed(1), &[F::MissingEntry, F::ModeProtection, F::NotSpent, F::CodeBounds], "Sets entry rb: code entry rc, mode, fan-in; counter = fan-in, lock clear. Refused while the thread is ready.";
    SetCount "setcount" 0x48 &[O::SourceB, O::SourceC], Controller, Fixed(1), &[F::MissingEntry, F::ModeProtection, F::NotSpent, F::CounterRange], "Sets counter and fan-in of entry rb to rc, 1 to 255. Refused while the thread is ready.";
    Rearm "rearm" 0x49 &[], Controller, Fixed(1), &[F::MissingEntry, F::NotSpent], "Sets the running thread's own counter back to its fan-in, so that it can be continued to again.";
    End   "end"   0x4a &[], Branch, Fixed(1), &[], "Ends the thread.";
    Cycle "cycle" 0x50 &[O::Destination], Integer, Fixed(1), &[], "rd = the chip's cycle counter, modulo 2^32.";
    UnitNumber "unit" 0x51 &[O::Destination], Integer, Fixed(1), &[], "rd = the number of the executing unit.";
    Halt  "halt"  0x52 &[O::SourceB], Branch, Fixed(1), &[F::Privileged], "Stops the chip with the exit code in rb; kernel threads only.";
}

impl Operation {
    /// The operation's row.
    pub const fn description(self) -> &'static Description {
        &OPERATIONS[self as usize]
    }
}

const fn opcode_index() -> [u8; 256] {
    let mut index = [u8::MAX; 256];
    let mut row = 0;
    while row < OPERATIONS.len() {
        let description = &OPERATIONS[row];
        assert!(
            description.operation as usize == row,
            "a row stands at its operation's number"
        );
        assert!(
            index[description.opcode as usize] == u8::MAX,
            "an opcode belongs to one operation"
        );
        index[description.opcode as usize] = row as u8;
        row += 1;
    }
    index
}

const BY_OPCODE: [u8; 256] = opcode_index();

/// The operation an opcode names.
pub fn by_opcode(opcode: u8) -> Option<&'static Description> {
    OPERATIONS.get(usize::from(BY_OPCODE[usize::from(opcode)]))
}

/// The operation a mnemonic names.
pub fn by_mnemonic(mnemonic: &str) -> Option<&'static Description> {
    OPERATIONS
        .iter()
        .find(|description| description.mnemonic == mnemonic)
}
