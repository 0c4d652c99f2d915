//! Advanced loads whose check follows in their own block, as compilers write them to move a load above a store: whether
//! one still stands is in a variable, and the table never has it, unless control leaves between the two.
//!
//! Of programs whose memory has windows, where a load or store either is done in line or leaves. In between may stand
//! what only computes, and loads and stores; each of these stores looks at the bytes that the load has read. The table
//! is to have a free row, as if the load were entered there: what would have to give way does.

use std::mem::replace;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use cranelift_frontend::Variable;
use sidestep_ia64::encoding::{BaseUpdate, Effects, Instruction, LoadKind, Operation, Size, UnitClass};
use sidestep_ia64::registers::frame::FIRST_STACKED;
use sidestep_ia64::{Processor, layout};

use crate::advanced;
use crate::chain;
use crate::emitter::Emitter;
use crate::memory::{find_for_load, load_extended, made, update_base};
use crate::slots::{Slot, Slots};

/// How many such loads may wait for their checks at once: so many rows of the table have to be free.
const WAITING_MAX: usize = 4;

/// An advanced load that waits for its check.
#[derive(Clone, Copy, Debug)]
pub struct CheckedLoad {
    register: u8,
    /// What it has read: from where, and how many bytes.
    address: Value,
    bytes: u32,
    /// Not zero unless a store has hit it.
    stands: Variable,
}

/// Where an instruction stands among those of its block, and the check of the advanced load that it is.
type Pair = (usize, usize);

/// The advanced loads of a block that are checked in it, as this module has it.
pub fn pairs<'a>(instructions: impl Iterator<Item = Option<&'a Instruction>>) -> Vec<Pair> {
    let instructions: Vec<Option<&Instruction>> = instructions.collect();
    let loads = (0..instructions.len()).filter_map(|load| {
        let register = loaded(instructions[load]?, LoadKind::Advanced)?;
        let mut behind = instructions[load + 1..].iter();
        let check = behind
            .position(|instruction| instruction.is_none_or(|instruction| !stays(instruction, register)))?;
        let check = load + 1 + check;
        let checked = loaded(instructions[check]?, LoadKind::CheckClear)?;
        let sizes =
            [load, check].map(|place| instructions[place].and_then(|one| one.operation.memory_access()));
        (checked == register && sizes[0]?.bytes == sizes[1]?.bytes).then_some((load, check))
    });
    let mut pairs: Vec<Pair> = loads.collect();
    // What uses the table in between would find others there than it should.
    let is_advanced =
        |place: &usize| instructions[*place].is_some_and(|one| one.effects() == Effects::ADVANCED);
    loop {
        let in_pairs = |place: usize| pairs.iter().any(|&(load, check)| place == load || place == check);
        let is_alone = |&(load, check): &Pair| (load..check).filter(is_advanced).all(in_pairs);
        let kept: Vec<Pair> = pairs.iter().copied().filter(is_alone).collect();
        if kept.len() == pairs.len() {
            break;
        }
        pairs = kept;
    }
    let waiting = |place: usize| {
        pairs
            .iter()
            .filter(|&&(load, check)| load <= place && place < check)
            .count()
    };
    match (0..instructions.len()).all(|place| waiting(place) <= WAITING_MAX) {
        true => pairs,
        false => Vec::new(),
    }
}

/// The static register that a load of one kind writes under any circumstances.
fn loaded(instruction: &Instruction, wanted: LoadKind) -> Option<u8> {
    let Operation::Load { kind, .. } = instruction.operation else {
        return None;
    };
    let register = instruction.r1();
    let is_static = (1..FIRST_STACKED).contains(&register);
    (kind == wanted && is_static && instruction.predicate() == 0).then_some(register)
}

/// Whether an instruction may stand between an advanced load to a register and its check: it does not write the
/// register, and control stays where it is unless something is rare.
fn stays(instruction: &Instruction, register: u8) -> bool {
    let is_other = !Slots::written_by(instruction).contains(Slot::general(register));
    let effects = instruction.effects();
    let is_within = match instruction.operation {
        Operation::Load { kind, .. } => kind != LoadKind::Acquire,
        Operation::Store { .. }
        | Operation::LoadFloat { .. }
        | Operation::LoadFloatPair { .. }
        | Operation::StoreFloat { .. }
        | Operation::MoveFromApplication
        | Operation::Nop => true,
        operation => {
            effects.contains(Effects::COMPUTES)
                || operation.memory_access().is_none() && instruction.unit_class() == UnitClass::F
        }
    };
    let rare = !(Effects::COMPUTES | Effects::ADVANCED | Effects::WRITES_BRANCH);
    is_other && is_within && !effects.intersects(rare)
}

/// An advanced load that is checked in its block.
pub fn load(emitter: &mut Emitter, instruction: &Instruction, size: Size, update: BaseUpdate) {
    let address = emitter.general(instruction.r3());
    let place = find_for_load(emitter, address, size.bytes(), LoadKind::Normal);
    let updated = update_base(emitter, instruction, address, update);
    emitter.access(instruction, |emitter, aside| {
        let (flags, host) = place.enter(emitter, aside);
        let value = load_extended(emitter, size, flags, host);
        made(emitter, updated);
        emitter.set(Slot::general(instruction.r1()), value);
    });
    let register = instruction.r1();
    make_room(emitter, register);
    let stands = emitter.builder.declare_var(I8);
    let is_standing = emitter.ins().iconst(I8, 1);
    emitter.builder.def_var(stands, is_standing);
    emitter.known.checked_loads.push(CheckedLoad {
        register,
        address,
        bytes: size.bytes(),
        stands,
    });
}

/// Has the table forget what would give way to the entry of a register.
fn make_room(emitter: &mut Emitter, register: u8) {
    let [full, rest] = [(); 2].map(|()| emitter.builder.create_block());
    let row_of_tag = layout::ADVANCED_ROW_OF_TAG + usize::from(register);
    let row = emitter.load_state(I8, row_of_tag);
    let none = i64::from(layout::ADVANCED_NO_ROW);
    let has_row = emitter.ins().icmp_imm_u(IntCC::NotEqual, row, none);
    emitter.unless(has_row, full);
    let valid = emitter.load_state(I64, layout::ADVANCED_VALID);
    let last = 1i64 << (layout::ADVANCED_ROWS_COUNT - WAITING_MAX);
    let is_full = emitter
        .ins()
        .icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, valid, last);
    emitter.ins().brif(is_full, full, &[], rest, &[]);
    let others = emitter.known.checked_loads.len() as u32;
    let argument = packed(register, others);
    let function = give_way as *const () as i64;
    emitter.rarely(full, |emitter| emitter.call_preserving(argument, function), rest);
}

/// Looks, behind a store to so many bytes at an address, which of the loads that wait it has hit.
pub fn store(emitter: &mut Emitter, address: Value, bytes: u32) {
    for load in emitter.known.checked_loads.clone() {
        let within = [
            (address, load.address, load.bytes),
            (load.address, address, bytes),
        ];
        let [is_behind, is_before] = within.map(|(place, start, size)| {
            let distance = emitter.ins().isub(place, start);
            emitter
                .ins()
                .icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, distance, i64::from(size))
        });
        let is_apart = emitter.ins().band(is_behind, is_before);
        let stands = emitter.builder.use_var(load.stands);
        let stands = emitter.ins().band(stands, is_apart);
        emitter.builder.def_var(load.stands, stands);
    }
}

/// The check of a load that waits for it: done again where a store has hit that, or others may have written memory.
pub fn check(
    emitter: &mut Emitter,
    instruction: &Instruction,
    load: CheckedLoad,
    size: Size,
    update: BaseUpdate,
) {
    let target = Slot::general(instruction.r1());
    let kept = emitter.get(target);
    let address = emitter.general(instruction.r3());
    let place = find_for_load(emitter, address, size.bytes(), LoadKind::Normal);
    let updated = update_base(emitter, instruction, address, update);
    emitter.access(instruction, |emitter, aside| {
        let [again, join] = [(); 2].map(|()| emitter.builder.create_block());
        let value = emitter.builder.append_block_param(join, I64);
        let stands = emitter.builder.use_var(load.stands);
        let is_hit = emitter.ins().icmp_imm_u(IntCC::Equal, stands, 0);
        emitter.unless(is_hit, again);
        let is_shared = emitter.load_state(I64, layout::SHARED);
        emitter.ins().brif(is_shared, again, &[], join, &[kept.into()]);
        let was_rare = replace(&mut emitter.known.is_rare, true);
        emitter.begin(again);
        let (flags, host) = place.enter(emitter, aside);
        let loaded = load_extended(emitter, size, flags, host);
        advanced::count_failed(emitter);
        emitter.ins().jump(join, &[loaded.into()]);
        emitter.known.is_rare = was_rare;
        emitter.begin(join);
        made(emitter, updated);
        emitter.set(target, value);
    });
}

impl Emitter<'_, '_> {
    /// The load to a register that waits for the check at hand, which it does no longer.
    pub fn take_checked_load(&mut self, register: u8) -> Option<CheckedLoad> {
        let waiting = &mut self.known.checked_loads;
        let place = waiting.iter().position(|load| load.register == register)?;
        Some(waiting.remove(place))
    }

    /// Enters the loads that wait for their checks in the table, where control leaves before these.
    pub fn enter_checked_loads(&mut self) {
        for load in self.known.checked_loads.clone() {
            let [enter, rest] = [(); 2].map(|()| self.builder.create_block());
            let stands = self.builder.use_var(load.stands);
            self.ins().brif(stands, enter, &[], rest, &[]);
            self.begin(enter);
            let argument = packed(load.register, load.bytes);
            self.call_preserving_at(load.address, argument, remember as *const () as i64);
            self.ins().jump(rest, &[]);
            self.begin(rest);
        }
    }
}

/// A register and a small number in one.
fn packed(register: u8, number: u32) -> u64 {
    u64::from(register) | u64::from(number) << 8
}

/// Has the table forget what gives way to an advanced load, for emitted code: of a register, beside so many others that
/// the table lacks as well.
///
/// # Safety
/// The processor is the one that the code was entered with, and nobody else uses it.
unsafe extern "C" fn give_way(processor: *mut Processor, argument: u64) -> i64 {
    // SAFETY: as the caller says.
    let processor = unsafe { &mut *processor };
    processor.make_room_for_advanced_load(argument as u8, (argument >> 8) as usize);
    0
}

/// Enters an advanced load in the table, for emitted code, which has stored the address: of a register, and so many
/// bytes.
///
/// # Safety
/// As [`give_way`].
unsafe extern "C" fn remember(processor: *mut Processor, argument: u64) -> i64 {
    // SAFETY: as the caller says.
    let processor = unsafe { &mut *processor };
    let address = chain::argument(processor);
    processor.remember_advanced_load(argument as u8, address, argument >> 8);
    0
}
