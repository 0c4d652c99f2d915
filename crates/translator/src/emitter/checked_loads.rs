//! Advanced loads that are checked in their block: which of them wait, and what the table is told of them.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I64};
use cranelift_codegen::ir::{Block, InstBuilder, Value};
use sidestep_ia64::{Processor, layout};

use super::Emitter;
use crate::chain;
use crate::checked_loads::{CheckedLoad, Pair, WAITING_MAX, pairs};

impl Emitter<'_, '_> {
    /// The advanced loads of a node that are checked in it, where stores are in line or leave.
    pub(super) fn find_checked_loads(&self, node: usize) -> Vec<Pair> {
        let instructions = self.region.nodes[node].block.instructions.iter();
        match self.has_windows() && !self.is_system && self.region.gathers.is_none() {
            true => pairs(
                instructions.map(|entry| entry.decoded.instruction.as_ref().ok()),
                self.has_exceptions(),
            ),
            false => Vec::new(),
        }
    }

    /// Whether the current instruction is an advanced load that is checked in its block.
    pub fn is_checked_load(&self) -> bool {
        self.checked_loads.iter().any(|&(load, _)| load == self.index)
    }

    /// Notes an advanced load that was done and waits for its check, to the register of a tag.
    pub fn note_checked_load(&mut self, tag: u8, address: Value, bytes: u32) {
        self.make_room(tag);
        let stands = self.builder.declare_var(I8);
        let is_standing = self.ins().iconst(I8, 1);
        self.builder.def_var(stands, is_standing);
        self.known.checked_loads.push(CheckedLoad {
            tag,
            address,
            bytes,
            stands,
        });
    }

    /// Has the table forget what would give way to the entry of a register, by its tag.
    fn make_room(&mut self, tag: u8) {
        let [full, rest] = [(); 2].map(|()| self.builder.create_block());
        let row_of_tag = layout::ADVANCED_ROW_OF_TAG + usize::from(tag);
        let row = self.load_state(I8, row_of_tag);
        let none = i64::from(layout::ADVANCED_NO_ROW);
        let has_row = self.ins().icmp_imm_u(IntCC::NotEqual, row, none);
        self.unless(has_row, full);
        let valid = self.load_state(I64, layout::ADVANCED_VALID);
        let last = 1i64 << (layout::ADVANCED_ROWS_COUNT - WAITING_MAX);
        let is_full = self
            .ins()
            .icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, valid, last);
        self.ins().brif(is_full, full, &[], rest, &[]);
        let others = self.known.checked_loads.len() as u32;
        let argument = packed(tag, others);
        let function = give_way as *const () as i64;
        self.rarely(full, |emitter| emitter.call_preserving(argument, function), rest);
    }

    /// Looks, behind a store to so many bytes at an address, which of the loads that wait it has hit.
    pub fn look_at_checked_loads(&mut self, address: Value, bytes: u32) {
        for load in self.known.checked_loads.clone() {
            let within = [
                (address, load.address, load.bytes),
                (load.address, address, bytes),
            ];
            let [is_behind, is_before] = within.map(|(place, start, size)| {
                let distance = self.ins().isub(place, start);
                self.ins()
                    .icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, distance, i64::from(size))
            });
            let is_apart = self.ins().band(is_behind, is_before);
            let stands = self.builder.use_var(load.stands);
            let stands = self.ins().band(stands, is_apart);
            self.builder.def_var(load.stands, stands);
        }
    }

    /// The load to a register that waits for the check at hand, which it does no longer: by the register's tag.
    pub fn take_checked_load(&mut self, tag: u8) -> Option<CheckedLoad> {
        let waiting = &mut self.known.checked_loads;
        let place = waiting.iter().position(|load| load.tag == tag)?;
        Some(waiting.remove(place))
    }

    /// Goes on in `join` with what a load that no longer waits has kept in its register, or in `again` where a store
    /// has hit that, or others may have written memory.
    pub fn keep_or_load_again(&mut self, load: &CheckedLoad, kept: Value, (again, join): (Block, Block)) {
        let stands = self.builder.use_var(load.stands);
        let is_hit = self.ins().icmp_imm_u(IntCC::Equal, stands, 0);
        self.unless(is_hit, again);
        let is_shared = self.load_state(I64, layout::SHARED);
        self.ins().brif(is_shared, again, &[], join, &[kept.into()]);
    }

    /// Enters the loads that wait for their checks in the table, where control leaves before these.
    pub fn enter_checked_loads(&mut self) {
        for load in self.known.checked_loads.clone() {
            let [enter, rest] = [(); 2].map(|()| self.builder.create_block());
            let stands = self.builder.use_var(load.stands);
            self.ins().brif(stands, enter, &[], rest, &[]);
            self.begin(enter);
            let argument = packed(load.tag, load.bytes);
            self.call_preserving_at(load.address, argument, remember as *const () as i64);
            self.ins().jump(rest, &[]);
            self.begin(rest);
        }
    }
}

/// A tag and a small number in one.
fn packed(tag: u8, number: u32) -> u64 {
    u64::from(tag) | u64::from(number) << 8
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

/// Enters an advanced load in the table, for emitted code, which has stored the address: of the register of a tag,
/// and so many bytes.
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
