//! What is known of floating-point registers at a place of the emitted code, beside what memory has of them, which is
//! everything: their values as the host's doubles, and that PSR says that they were written.

use std::collections::BTreeMap;
use std::mem::take;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::immediates::Ieee64;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value};
use sidestep_ia64::encoding::{Effects, Instruction, Resource, StatusField};
use sidestep_ia64::float::StatusRegister;
use sidestep_ia64::registers::application::FPSR;
use sidestep_ia64::registers::frame::{FIRST_ROTATING_FLOATING, ROTATING_FLOATING};

use super::{Emitter, NO_DOUBLE};
use crate::chain::Word;
use crate::held::changes_controls;
use crate::slots::Slot;

/// The size of a floating-point register in the processor's state: 16 bytes.
pub const FLOATING_SIZE_LOG2: i64 = 4;

/// The value of a register as a double, which has it exactly: a normal value, a zero or an infinity. It is
/// [`NO_DOUBLE`] where the register holds something else, of which memory alone knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Double {
    /// The value, of the host's 64-bit type.
    pub value: Value,
    /// Whether it is one of single precision, too.
    pub is_single: bool,
}

/// Whether a register rotates.
pub fn rotates(register: u8) -> bool {
    register >= FIRST_ROTATING_FLOATING
}

/// The name of a register after a rotation.
pub fn rotated(register: u8) -> u8 {
    match register {
        127 => FIRST_ROTATING_FLOATING,
        register if rotates(register) => register + 1,
        register => register,
    }
}

/// What is known of floating-point registers.
#[derive(Clone, Debug, Default)]
pub struct Floats {
    /// By register, as the current rotation names them.
    doubles: BTreeMap<u8, Double>,
    /// The significands of registers that hold integers, by register as well.
    integers: BTreeMap<u8, Value>,
    /// The integers, with their signs, that registers hold as numbers, by register as well; zero for other ones.
    converted: BTreeMap<u8, Value>,
    /// The addresses of registers that rotate, less where the first of all lies in the processor.
    places: BTreeMap<u8, Value>,
    /// Registers that are likely to hold more bits than a double has, f0 the lowest bit.
    extended: u128,
    /// By register what memory lacks, in a tight loop. It has the registers whose values here are [`NO_DOUBLE`],
    /// whatever those are.
    late: BTreeMap<u8, Value>,
    /// Registers that stand in memory as doubles, f0 the lowest bit. They may do so where the bit is not set.
    stored: u128,
    /// Whether the host may have raised an exception for which nobody has looked since: a double that was loaded may be
    /// denormal until then.
    is_unlooked: bool,
    /// Bits of PSR that are set, of those that say which registers were written.
    marked: u64,
    /// By status field, whether the host may compute under it and its inexact flag is set. It is true only where it
    /// holds, and may be false where it has come to hold since.
    usual_status: BTreeMap<StatusField, Value>,
}

impl Floats {
    /// Whether a register is known to stand in memory as a double.
    pub fn is_stored(&self, register: u8) -> bool {
        self.stored >> register & 1 != 0
    }

    /// Notes whether a register stands in memory as a double.
    pub fn note_stored(&mut self, register: u8, is_double: bool) {
        self.stored = self.stored & !(1 << register) | u128::from(is_double) << register;
    }

    /// Notes that the host may have raised an exception.
    pub fn note_unlooked(&mut self) {
        self.is_unlooked = true;
    }

    /// The value of a register, if it is at hand.
    pub fn double(&self, register: u8) -> Option<Double> {
        self.doubles.get(&register).copied()
    }

    /// Notes a register's new value; `None` for one that is no double, or not at hand as one.
    pub fn note(&mut self, register: u8, double: Option<Double>) {
        self.extended &= !(1 << register);
        self.integers.remove(&register);
        self.converted.remove(&register);
        self.late.remove(&register);
        match double {
            Some(double) => self.doubles.insert(register, double),
            None => self.doubles.remove(&register),
        };
    }

    /// What memory lacks, in order of the registers: values that it has got where they are [`NO_DOUBLE`].
    pub fn late(&self) -> impl Iterator<Item = (u8, Value)> {
        self.late.iter().map(|(&register, &value)| (register, value))
    }

    /// What memory lacks of a register.
    pub fn late_value(&self, register: u8) -> Option<Value> {
        self.late.get(&register).copied()
    }

    /// Notes that memory lacks the value that a register has got, unless it is [`NO_DOUBLE`].
    pub fn note_late(&mut self, register: u8, value: Value) {
        self.late.insert(register, value);
    }

    /// Notes that memory has a register.
    pub fn note_settled(&mut self, register: u8) {
        self.late.remove(&register);
    }

    /// Whether memory lacks nothing.
    pub fn are_complete(&self) -> bool {
        self.late.is_empty()
    }

    /// Notes that memory lacks nothing.
    pub fn note_complete(&mut self) {
        self.late.clear();
    }

    /// The significand of a register that is known to hold an integer, if it is at hand.
    pub fn integer(&self, register: u8) -> Option<Value> {
        self.integers.get(&register).copied()
    }

    /// Notes that a register holds an integer, which is no double at hand.
    pub fn note_integer(&mut self, register: u8, significand: Value) {
        self.note(register, None);
        self.integers.insert(register, significand);
    }

    /// Notes that a register was found to hold an integer.
    pub fn note_found_integer(&mut self, register: u8, significand: Value) {
        self.integers.insert(register, significand);
    }

    /// The integer that a register is known to hold as a number, if it is at hand; zero if it may be another one.
    pub fn converted(&self, register: u8) -> Option<Value> {
        self.converted.get(&register).copied()
    }

    /// Notes the integer that was made a number in a register; zero for none.
    pub fn note_converted(&mut self, register: u8, integer: Value) {
        self.converted.insert(register, integer);
    }

    /// Notes the value that a register was found to have.
    pub fn note_found(&mut self, register: u8, double: Double) {
        self.doubles.insert(register, double);
    }

    /// Notes that a register is likely to hold more bits than a double has.
    pub fn note_extended(&mut self, register: u8) {
        self.extended |= 1 << register;
    }

    /// Whether a register is likely to hold more bits than a double has.
    pub fn is_extended(&self, register: u8) -> bool {
        self.extended >> register & 1 != 0
    }

    /// The place of a register that rotates, if it is at hand.
    pub fn place(&self, register: u8) -> Option<Value> {
        self.places.get(&register).copied()
    }

    /// Notes the place of a register that rotates.
    pub fn note_place(&mut self, register: u8, place: Value) {
        self.places.insert(register, place);
    }

    /// Forgets what is known of the registers that rotate: others have their names.
    pub fn forget_rotating(&mut self) {
        self.doubles.retain(|&register, _| !rotates(register));
        self.integers.retain(|&register, _| !rotates(register));
        self.converted.retain(|&register, _| !rotates(register));
        self.places.clear();
        self.stored &= (1 << FIRST_ROTATING_FLOATING) - 1;
    }

    /// Gives what is known of the registers that rotate the names that they have after a rotation.
    pub fn rotate(&mut self) {
        self.doubles = take(&mut self.doubles)
            .into_iter()
            .map(|(register, double)| (rotated(register), double))
            .collect();
        self.integers = take(&mut self.integers)
            .into_iter()
            .map(|(register, integer)| (rotated(register), integer))
            .collect();
        // Divisions are found in static registers.
        self.converted.retain(|&register, _| !rotates(register));
        self.places = take(&mut self.places)
            .into_iter()
            .map(|(register, place)| (rotated(register), place))
            .collect();
        let rotate = |set: u128| {
            let names = (0..128).filter(|&register| set >> register & 1 != 0);
            names.fold(0, |all, register| all | 1 << rotated(register))
        };
        (self.extended, self.stored) = (rotate(self.extended), rotate(self.stored));
    }

    /// The values of registers that are at hand, in order.
    pub fn doubles(&self) -> impl Iterator<Item = (u8, Double)> {
        self.doubles.iter().map(|(&register, &double)| (register, double))
    }

    /// Whether the host may compute under a status field and its inexact flag is set, if that was looked at.
    pub fn usual_status(&self, field: StatusField) -> Option<Value> {
        self.usual_status.get(&field).copied()
    }

    /// Notes whether the host may compute under a status field and its inexact flag is set.
    pub fn note_usual_status(&mut self, field: StatusField, is_usual: Value) {
        self.usual_status.insert(field, is_usual);
    }

    /// Notes that PSR has a bit set, and answers whether that was known.
    pub fn mark(&mut self, bit: u64) -> bool {
        let is_known = self.marked & bit != 0;
        self.marked |= bit;
        is_known
    }

    /// What is left of it once the interpreter's function has executed an instruction; nothing for one that is unknown.
    pub fn perform(&mut self, instruction: Option<&Instruction>) {
        let nothing = Floats {
            is_unlooked: self.is_unlooked,
            ..Floats::default()
        };
        let Some(instruction) = instruction else {
            return *self = nothing;
        };
        // A rotation names other registers, and another status may have lost its bits.
        let renames = Effects::CHANGES_FRAME | Effects::CHANGES_STATUS;
        if instruction.effects().intersects(renames) {
            return *self = nothing;
        }
        if changes_controls(instruction) {
            self.usual_status.clear();
        }
        for target in instruction.destinations().iter() {
            if let Resource::Float(register) = target {
                self.doubles.remove(register);
                self.integers.remove(register);
                self.converted.remove(register);
                self.late.remove(register);
                self.note_stored(*register, false);
            }
        }
    }

    /// Forgets what does not hold at another place as well, from which control comes together with this one. Memory
    /// lacks no two values of one register there, but of one that is noted again.
    pub fn meet(&mut self, other: &Floats) {
        self.doubles
            .retain(|register, double| other.doubles.get(register) == Some(double));
        self.integers
            .retain(|register, integer| other.integers.get(register) == Some(integer));
        self.converted
            .retain(|register, integer| other.converted.get(register) == Some(integer));
        self.places
            .retain(|register, place| other.places.get(register) == Some(place));
        self.extended |= other.extended;
        self.stored &= other.stored;
        self.is_unlooked |= other.is_unlooked;
        // What is stored on one way only may be stored on both.
        for (register, value) in other.late() {
            self.late.entry(register).or_insert(value);
        }
        self.marked &= other.marked;
        self.usual_status
            .retain(|field, is_usual| other.usual_status.get(field) == Some(is_usual));
    }
}

impl Emitter<'_, '_> {
    /// Whether the inexact flag of a status field is likely to be set.
    pub fn is_inexact(&self, status: StatusField) -> bool {
        self.entry.fpsr & StatusRegister::inexact_flag(status) != 0
    }

    /// What stands for a double that is not at hand.
    pub fn no_double(&mut self) -> Value {
        let bits = Ieee64::with_bits(NO_DOUBLE.cast_unsigned());
        self.ins().f64const(bits)
    }

    /// Whether a value stands for one that is not at hand.
    pub fn is_no_double(&mut self, value: Value) -> Value {
        let bits = self.ins().bitcast(I64, MemFlagsData::new(), value);
        let none = self.constant(NO_DOUBLE);
        self.ins().icmp(IntCC::Equal, bits, none)
    }

    /// Whether blocks are left to the interpreter where a number is none that the unit is made for.
    pub fn leaves_for_numbers(&self) -> bool {
        self.entry.leaves_for_numbers
    }

    /// Whether the host says by exceptions where numbers are not usual.
    pub fn has_exceptions(&self) -> bool {
        self.entry.has_exceptions
    }

    /// Goes elsewhere where the host has raised an exception in this run.
    pub fn unless_exception(&mut self, elsewhere: Block) {
        let raised = self.shared(Word::Exception);
        self.unless(raised, elsewhere);
        self.known.floats.is_unlooked = false;
    }

    /// Unless nobody needs to look, leaves the block to the interpreter where the host has raised an exception.
    pub fn look_for_exceptions(&mut self) {
        if self.known.floats.is_unlooked {
            let aside = self.leave_unusual_later();
            self.unless_exception(aside);
        }
    }

    /// Whether the host may raise an exception where it loads a denormal: there is a place behind to look for it.
    pub fn may_raise_by_loading(&self) -> bool {
        let last = self.region.nodes[self.node].operations.len() - 1;
        self.has_exceptions() && self.index < last
    }

    /// Notes that a value is a double wherever it is at hand: control goes elsewhere for good where it would be none.
    /// So it is not one that was at hand before.
    pub fn note_number(&mut self, value: Value) {
        self.numbers.insert(value);
    }

    /// Whether a value is known to be a double.
    pub fn is_number(&self, value: Value) -> bool {
        self.numbers.contains(&value)
    }

    /// Whether bits of FPSR are known to have values, both of which are given as the status register has them.
    pub fn is_settled(&self, (mask, bits): (u64, u64)) -> bool {
        let (known, values) = self.entry.settled;
        mask & !known == 0 && values & mask == bits
    }

    /// Whether the host is known to be allowed to compute under a status field, exact results at least.
    pub fn has_host_controls(&self, status: StatusField) -> bool {
        self.is_settled(StatusRegister::host_controls(status))
    }

    /// Whether bits of FPSR do not have values, both of which are given as the status register has them.
    pub fn status_differs(&mut self, (mask, bits): (u64, u64)) -> Value {
        // Emitted code does not change it, so memory has it.
        let fpsr = self.load_state(I64, Slot::application(FPSR).offset());
        let mask = self.constant(mask.cast_signed());
        let found = self.ins().band(fpsr, mask);
        let bits = self.constant(bits.cast_signed());
        self.ins().icmp(IntCC::NotEqual, found, bits)
    }

    /// The number of a floating-point register without rotation, of 64 bits.
    pub fn floating_number(&mut self, register: u8) -> Value {
        let register = register & 127;
        if !rotates(register) {
            return self.constant(i64::from(register));
        }
        let offset = self.rotating_floating_offset(register);
        self.ins().ushr_imm_u(offset, FLOATING_SIZE_LOG2)
    }

    /// How many bytes a floating-point register that rotates is behind the first one of all.
    pub fn rotating_floating_offset(&mut self, register: u8) -> Value {
        const ALL: i64 = 128 << FLOATING_SIZE_LOG2;
        const ROTATING: i64 = (ROTATING_FLOATING as i64) << FLOATING_SIZE_LOG2;
        let base = self.floating_base();
        let renamed = self
            .ins()
            .iadd_imm_s(base, i64::from(register & 127) << FLOATING_SIZE_LOG2);
        let wrapped = self.ins().iadd_imm_s(renamed, -ROTATING);
        let is_beyond = self
            .ins()
            .icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, renamed, ALL);
        self.ins().select(is_beyond, wrapped, renamed)
    }
}
