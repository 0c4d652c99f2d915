//! Advanced loads, their checks, and what stores make of them: in line as far as the table has a row at once. What has
//! to give way to another entry, and `chk.a` that fail, are the interpreter's functions' to do.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, SigRef, Value};
use cranelift_frontend::FunctionBuilder;
use sidestep_ia64::encoding::Instruction;
use sidestep_ia64::registers::frame::FIRST_STACKED;
use sidestep_ia64::{Processor, layout};

use crate::chain::{self, Request, Word};
use crate::emitter::Emitter;

const ROW_SIZE_LOG2: i64 = layout::ADVANCED_ROW_SIZE.trailing_zeros() as i64;
const _: () = assert!(layout::ADVANCED_ROW_SIZE.is_power_of_two());
/// The rows, a bit each.
const ROWS: i64 = ((1u64 << layout::ADVANCED_ROWS_COUNT) - 1).cast_signed();

/// A register that an advanced load writes.
#[derive(Clone, Copy)]
pub enum Target {
    /// A general register.
    General(u8),
    /// A floating-point register.
    Floating(u8),
}

/// A register as the table names it.
struct Register {
    number: Value,
    /// The address of the byte that tells the row of its tag, less [`layout::ADVANCED_ROW_OF_TAG`].
    tag: Value,
}

impl Register {
    /// Goes aside where registers are renamed and it is a stacked general one.
    fn of(emitter: &mut Emitter, target: Target, aside: Block) -> Register {
        match target {
            Target::General(register) => Register::general(emitter, register, aside),
            Target::Floating(register) => {
                let number = emitter.floating_number(register);
                let processor = emitter.processor();
                let tag = emitter.ins().iadd(processor, number);
                Register {
                    number: emitter
                        .ins()
                        .bor_imm_s(number, layout::ADVANCED_FLOATING.cast_signed()),
                    tag: emitter
                        .ins()
                        .iadd_imm_s(tag, layout::ADVANCED_FLOATING_TAGS as i64),
                }
            }
        }
    }

    fn general(emitter: &mut Emitter, register: u8, aside: Block) -> Register {
        let number = match register {
            0..FIRST_STACKED => emitter.constant(i64::from(register)),
            _ => {
                let renamed = emitter.load_state(I32, layout::FRAME_RENAME_GENERAL);
                emitter.unless(renamed, aside);
                let [position, origin] = [layout::STACK_POSITION, layout::STACK_ORIGIN]
                    .map(|place| emitter.load_state(I64, place));
                let depth = emitter.ins().isub(position, origin);
                let number = emitter.ins().iadd_imm_s(depth, i64::from(register));
                // Frames of who called before the first one known are below the origin.
                let general = !layout::ADVANCED_FLOATING;
                emitter.ins().band_imm_u(number, general.cast_signed())
            }
        };
        let processor = emitter.processor();
        let tag = emitter
            .ins()
            .band_imm_u(number, layout::ADVANCED_TAG_MASK.cast_signed());
        let tag = emitter.ins().iadd(processor, tag);
        Register { number, tag }
    }

    /// The number of the row of its tag, of 64 bits.
    fn row(&self, emitter: &mut Emitter) -> Value {
        let flags = emitter.state_memory();
        let place = layout::ADVANCED_ROW_OF_TAG as i32;
        let row = emitter.ins().load(I8, flags, self.tag, place);
        emitter.ins().uextend(I64, row)
    }

    /// Sets the row of its tag.
    fn set_row(&self, emitter: &mut Emitter, row: Value) {
        let flags = emitter.state_memory();
        let row = emitter.ins().ireduce(I8, row);
        emitter
            .ins()
            .store(flags, row, self.tag, layout::ADVANCED_ROW_OF_TAG as i32);
    }

    /// Whether a row is not its own.
    fn is_no_row(&self, emitter: &mut Emitter, row: Value) -> Value {
        let number = load_row(emitter, row, layout::ADVANCED_ROW_NUMBER);
        emitter.ins().icmp(IntCC::NotEqual, number, self.number)
    }
}

/// The address of a row, less [`layout::ADVANCED_ROWS`].
fn row_place(emitter: &mut Emitter, row: Value) -> Value {
    let offset = emitter.ins().ishl_imm_u(row, ROW_SIZE_LOG2);
    let processor = emitter.processor();
    emitter.ins().iadd(processor, offset)
}

fn load_row(emitter: &mut Emitter, row: Value, part: usize) -> Value {
    let place = row_place(emitter, row);
    let flags = emitter.state_memory();
    emitter
        .ins()
        .load(I64, flags, place, (layout::ADVANCED_ROWS + part) as i32)
}

/// The number of an address's place, of which the low six bits count, as where the host shifts.
fn place_of(builder: &mut FunctionBuilder, address: Value) -> Value {
    let [place, fold] = [layout::PLACE_LOG2, layout::PLACE_FOLD]
        .map(|unit| builder.ins().ushr_imm_u(address, i64::from(unit)));
    builder.ins().bxor(place, fold)
}

fn with_bit(builder: &mut FunctionBuilder, bits: Value, number: Value) -> Value {
    let one = builder.ins().iconst(I64, 1);
    let bit = builder.ins().ishl(one, number);
    builder.ins().bor(bits, bit)
}

fn is_none(emitter: &mut Emitter, row: Value) -> Value {
    let none = i64::from(layout::ADVANCED_NO_ROW);
    emitter.ins().icmp_imm_u(IntCC::Equal, row, none)
}

/// The row that an advanced load to a register gets, which it goes aside for where another entry has to give
/// way. Nothing is changed yet.
pub struct Entry {
    register: Register,
    row: Value,
}

impl Entry {
    pub fn find(emitter: &mut Emitter, target: Target, aside: Block) -> Entry {
        let register = Register::of(emitter, target, aside);
        let known = register.row(emitter);
        let [again, fresh, join] = [(); 3].map(|()| emitter.builder.create_block());
        let row = emitter.builder.append_block_param(join, I64);
        let is_fresh = is_none(emitter, known);
        emitter.ins().brif(is_fresh, fresh, &[], again, &[]);
        emitter.begin(again);
        let is_other = register.is_no_row(emitter, known);
        emitter.ins().brif(is_other, aside, &[], join, &[known.into()]);
        emitter.begin(fresh);
        let valid = emitter.load_state(I64, layout::ADVANCED_VALID);
        let free = emitter.ins().bxor_imm_u(valid, ROWS);
        let first = emitter.ins().ctz(free);
        emitter.ins().brif(free, join, &[first.into()], aside, &[]);
        emitter.begin(join);
        Entry { register, row }
    }

    /// Enters that so many bytes were read from an address, aligned.
    pub fn enter(self, emitter: &mut Emitter, address: Value, bytes: u32) {
        let Entry { register, row } = self;
        let place = row_place(emitter, row);
        let age = emitter.load_state(I64, layout::ADVANCED_COUNT);
        let size = emitter.constant(i64::from(bytes));
        let parts = [
            (layout::ADVANCED_ROW_NUMBER, register.number),
            (layout::ADVANCED_ROW_AGE, age),
            (layout::ADVANCED_ROW_ADDRESS, address),
            (layout::ADVANCED_ROW_BYTES, size),
        ];
        let flags = emitter.state_memory();
        for (part, value) in parts {
            emitter
                .ins()
                .store(flags, value, place, (layout::ADVANCED_ROWS + part) as i32);
        }
        let count = emitter.ins().iadd_imm_s(age, 1);
        emitter.store_state(count, layout::ADVANCED_COUNT);
        register.set_row(emitter, row);
        let memory = place_of(&mut emitter.builder, address);
        for (number, place) in [(row, layout::ADVANCED_VALID), (memory, layout::ADVANCED_LOADS)] {
            let bits = emitter.load_state(I64, place);
            let bits = with_bit(&mut emitter.builder, bits, number);
            emitter.store_state(bits, place);
        }
    }
}

/// The entry of an advanced load to a register that still stands.
pub struct Standing {
    register: Register,
    row: Value,
}

impl Standing {
    /// Goes aside where registers are renamed, and elsewhere where there is none.
    pub fn find(emitter: &mut Emitter, target: Target, aside: Block, elsewhere: Block) -> Standing {
        let register = Register::of(emitter, target, aside);
        let row = register.row(emitter);
        let is_none = is_none(emitter, row);
        emitter.unless(is_none, elsewhere);
        let is_other = register.is_no_row(emitter, row);
        emitter.unless(is_other, elsewhere);
        Standing { register, row }
    }

    /// Forgets it.
    pub fn forget(self, emitter: &mut Emitter) {
        let none = emitter.constant(i64::from(layout::ADVANCED_NO_ROW));
        self.register.set_row(emitter, none);
        let one = emitter.constant(1);
        let bit = emitter.ins().ishl(one, self.row);
        let valid = emitter.load_state(I64, layout::ADVANCED_VALID);
        let valid = emitter.ins().band_not(valid, bit);
        emitter.store_state(valid, layout::ADVANCED_VALID);
        let places = emitter.load_state(I64, layout::ADVANCED_LOADS);
        let places = emitter.ins().select(valid, places, valid);
        emitter.store_state(places, layout::ADVANCED_LOADS);
    }
}

/// Has what a store to so many bytes at an address, aligned, has hit forgotten, once it is done.
pub fn store(emitter: &mut Emitter, address: Value, bytes: u32) {
    let places = emitter.load_state(I64, layout::ADVANCED_LOADS);
    let [near, hit, rest] = [(); 3].map(|()| emitter.builder.create_block());
    emitter.builder.set_cold_block(near);
    emitter.builder.set_cold_block(hit);
    // Most programs have no advanced load in flight where they store.
    emitter.ins().brif(places, near, &[], rest, &[]);
    emitter.begin(near);
    let place = place_of(&mut emitter.builder, address);
    let bit = emitter.ins().ushr(places, place);
    let bit = emitter.ins().band_imm_u(bit, 1);
    emitter.back_unless(bit, hit, rest);
    emitter.begin(hit);
    emitter.call_store_hit(address, bytes, forget_hit as *const () as i64);
    emitter.ins().jump(rest, &[]);
    emitter.begin(rest);
}

/// Forgets the advanced loads that a store to so many bytes has hit, for emitted code, which has stored the address.
///
/// # Safety
/// The processor is the one that the code was entered with, and nobody else uses it.
unsafe extern "C" fn forget_hit(processor: *mut Processor, bytes: u64) -> i64 {
    // SAFETY: as the caller says.
    let processor = unsafe { &mut *processor };
    let address = chain::argument(processor);
    processor.forget_advanced_loads_of(address, bytes);
    0
}

/// The body of the function that units call where a store's place has its bit: looks at each entry, and calls another
/// function where one was hit. Else the bits become those of the entries, since places of earlier ones were among them.
pub fn look_at_entries(builder: &mut FunctionBuilder, preserving: SigRef) {
    let flags = MemFlagsData::trusted();
    let processor = builder.ins().get_pinned_reg(I64);
    let load = |builder: &mut FunctionBuilder, place: Value, offset: usize| {
        builder.ins().load(I64, flags, place, offset as i32)
    };
    let request = load(builder, processor, Word::Request.offset());
    let bytes = load(builder, request, offset_of!(Request, argument));
    let address = load(builder, processor, Word::Argument.offset());
    let valid = load(builder, processor, layout::ADVANCED_VALID);
    let [next, entry, apart, hit, done] = [(); 5].map(|()| builder.create_block());
    let [left, places] = [(); 2].map(|()| builder.append_block_param(next, I64));
    let none = builder.ins().iconst(I64, 0);
    builder.ins().jump(next, &[valid.into(), none.into()]);

    builder.switch_to_block(next);
    builder.ins().brif(left, entry, &[], done, &[]);

    builder.switch_to_block(entry);
    let row = builder.ins().ctz(left);
    let rest = builder.ins().iadd_imm_s(left, -1);
    let rest = builder.ins().band(left, rest);
    let offset = builder.ins().ishl_imm_u(row, ROW_SIZE_LOG2);
    let row = builder.ins().iadd(processor, offset);
    let [read, size] = [layout::ADVANCED_ROW_ADDRESS, layout::ADVANCED_ROW_BYTES]
        .map(|part| load(builder, row, layout::ADVANCED_ROWS + part));
    let within = [(address, read, size), (read, address, bytes)].map(|(place, start, size)| {
        let distance = builder.ins().isub(place, start);
        builder.ins().icmp(IntCC::UnsignedLessThan, distance, size)
    });
    let is_hit = builder.ins().bor(within[0], within[1]);
    builder.ins().brif(is_hit, hit, &[], apart, &[]);

    builder.switch_to_block(apart);
    let last = builder.ins().iadd(read, size);
    let last = builder.ins().iadd_imm_s(last, -1);
    let places = [read, last].into_iter().fold(places, |places, address| {
        let place = place_of(builder, address);
        with_bit(builder, places, place)
    });
    builder.ins().jump(next, &[rest.into(), places.into()]);

    builder.switch_to_block(hit);
    let function = load(builder, processor, Word::Preserving.offset());
    builder.ins().call_indirect(preserving, function, &[]);
    builder.ins().return_(&[]);

    builder.switch_to_block(done);
    let places = builder.block_params(next)[1];
    builder
        .ins()
        .store(flags, places, processor, layout::ADVANCED_LOADS as i32);
    builder.ins().return_(&[]);
    builder.seal_all_blocks();
}

/// Counts a check that has found no entry, or one that must not be kept.
pub fn count_failed(emitter: &mut Emitter) {
    let before = emitter.load_state(I64, layout::ADVANCED_FAILED);
    let count = emitter.ins().iadd_imm_s(before, 1);
    emitter.store_state(count, layout::ADVANCED_FAILED);
}

/// `chk.a` of a general register: goes on behind it where the advanced load still stands. Where it does not, control
/// goes elsewhere.
pub fn check(emitter: &mut Emitter, instruction: &Instruction, clear: bool) {
    if instruction.predicate() != 0 {
        return emitter.perform(Some(instruction));
    }
    let [failed, rest] = [(); 2].map(|()| emitter.builder.create_block());
    let standing = Standing::find(emitter, Target::General(instruction.r1()), failed, failed);
    if clear {
        standing.forget(emitter);
    }
    emitter.ins().jump(rest, &[]);
    emitter.fail(instruction, failed);
    emitter.begin(rest);
}
