//! Rotating general registers in a tight loop: in a buffer of the function's, in which a rotation moves the place where
//! they begin, and one register from their end to their beginning, instead of all of them.
//!
//! The processor keeps them as the rotation shows them, so they go back to their frame where the loop is left and where
//! something rare looks at it, and the rename bases change by as many rotations as there were meanwhile. Loops that
//! copy memory have two dozen registers in flight and few instructions. Floating-point registers stand unrotated:
//! where a loop names some, a variable has their rename base.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32, I64, I64X2};
use cranelift_codegen::ir::{BlockArg, InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, Type, Value};
use sidestep_ia64::encoding::Instruction;
use sidestep_ia64::layout;
use sidestep_ia64::registers::application::{EC, LC};
use sidestep_ia64::registers::frame::{
    FIRST_STACKED, ROTATING_FLOATING, ROTATING_PREDICATES, STACKED_REGISTERS,
};

use super::{Emitter, FIRST_ROTATING_PREDICATE, FLOATING_SIZE_LOG2, Predicates};
use crate::slots::{Slot, Slots};
use crate::tight_loops::Rotation;

/// Registers that the buffer has room for. A loop goes so far before they are back at the buffer's end.
const ROOM: u32 = 256;
const REGISTER_SIZE: u32 = size_of::<u64>() as u32;
const _: () = assert!(
    ROOM >= 2 * STACKED_REGISTERS,
    "all that may rotate, and as many rotations"
);

impl Emitter<'_, '_> {
    /// A value that is not zero where another number of general registers rotates, or one of those has its NaT bit set
    /// that are not the region's: its own have none.
    pub(super) fn is_rotation_unusual(&mut self, rotating: u8) -> Value {
        let size = self.load_state(I32, layout::FRAME_ROTATING);
        let differs = self.ins().icmp_imm_u(IntCC::NotEqual, size, i64::from(rotating));
        let rotating: Slots = rotating_slots(rotating).collect();
        let [low, high] = rotating.general_registers();
        let others = [
            low & !self.general_registers[0],
            high & !self.general_registers[1],
        ];
        match self.any_nat_of(others) {
            None => differs,
            Some(nats) => {
                let has_nat = self.ins().icmp_imm_u(IntCC::NotEqual, nats, 0);
                self.ins().bor(differs, has_nat)
            }
        }
    }

    /// Brings the general registers that rotate from their frame to the end of the buffer.
    pub(super) fn load_rotating(&mut self, rotation: Rotation) {
        let frame = self.builder.use_var(self.frame);
        let first = self.first_place(rotation.size);
        self.copy_rotating(rotation.size, frame, first);
        self.builder.def_var(self.rotating, first);
        if rotation.names_floats {
            let base = self.load_floating_base();
            self.builder.def_var(self.floating_base, base);
        }
        self.known.buffered = Some(rotation);
    }

    /// The same where they are in the buffer, but the interpreter's function has looked at their frame.
    pub(super) fn load_rotating_again(&mut self) {
        if let Some(rotation) = self.known.buffered {
            self.load_rotating(rotation);
        }
    }

    /// The rename base of floating-point registers, in bytes.
    pub(super) fn floating_base(&mut self) -> Value {
        match self.known.buffered {
            Some(Rotation {
                names_floats: true, ..
            }) => self.builder.use_var(self.floating_base),
            _ => self.load_floating_base(),
        }
    }

    fn load_floating_base(&mut self) -> Value {
        let base = self.load_state(I32, layout::FRAME_RENAME_FLOATING);
        let base = self.ins().uextend(I64, base);
        self.ins().ishl_imm_u(base, FLOATING_SIZE_LOG2)
    }

    /// Brings the rotating registers that are in the buffer back to their frame, and leaves what is known as it is.
    pub(super) fn store_rotating(&mut self) {
        let Some(Rotation { size, names_floats }) = self.known.buffered else {
            return;
        };
        let [frame, place] = [self.frame, self.rotating].map(|start| self.builder.use_var(start));
        self.copy_rotating(size, place, frame);
        let first = self.first_place(size);
        let distance = self.ins().isub(first, place);
        let rotations = self
            .ins()
            .ushr_imm_u(distance, i64::from(REGISTER_SIZE.trailing_zeros()));
        let rotations = self.ins().ireduce(I32, rotations);
        for (place, renamed) in rename_bases(size) {
            let is_variable = names_floats && place == layout::FRAME_RENAME_FLOATING;
            let base = match is_variable {
                true => {
                    let base = self.floating_base();
                    let base = self.ins().ushr_imm_u(base, FLOATING_SIZE_LOG2);
                    self.ins().ireduce(I32, base)
                }
                false => {
                    let base = self.load_state(I32, place);
                    let above = i64::from(ROOM.next_multiple_of(renamed));
                    let base = self.ins().iadd_imm_s(base, above);
                    let base = self.ins().isub(base, rotations);
                    let renamed = self.ins().iconst(I32, i64::from(renamed));
                    self.ins().urem(base, renamed)
                }
            };
            self.store_state(base, place);
        }
    }

    /// A loop branch whose so many rotating registers are in the buffer, or come to it: to what is so many bytes behind
    /// the node's first bundle. Where nothing rotates it is left to the interpreter.
    pub(super) fn branch_buffered(
        &mut self,
        instruction: &Instruction,
        (is_counted, is_top): (bool, bool),
        offset: i64,
        rotation: Rotation,
    ) {
        if self.known.buffered.is_none() {
            let aside = self.leave_unusual_later();
            let is_unusual = self.is_rotation_unusual(rotation.size);
            self.unless(is_unusual, aside);
            self.load_rotating(rotation);
        }
        let aside = self.leave_later();
        let word = self.predicate_word();
        let count = self.get(Slot::application(LC));
        let epilogue = self.get(Slot::application(EC));
        // Whether another iteration begins.
        let begins = match is_counted {
            true => count,
            false => match self.predicate(instruction.predicate()) {
                Some(predicate) => predicate,
                None => self.ins().iconst(I8, 1),
            },
        };
        let [drains, rest] = [(); 2].map(|()| self.builder.create_block());
        let [new_count, new_epilogue] = [(); 2].map(|()| self.builder.append_block_param(rest, I64));
        let [first, goes_on] = [(); 2].map(|()| self.builder.append_block_param(rest, I8));
        let [no, yes] = [0, 1].map(|truth| self.ins().iconst(I8, truth));
        let lower = match is_counted {
            true => self.ins().iadd_imm_s(count, -1),
            false => count,
        };
        let first_where_it_begins = if is_counted { yes } else { no };
        let values = [lower, epilogue, first_where_it_begins, yes].map(BlockArg::from);
        self.ins().brif(begins, rest, &values, drains, &[]);

        self.begin(drains);
        let is_drained = self.ins().icmp_imm_u(IntCC::Equal, epilogue, 0);
        self.unless(is_drained, aside);
        let lower = self.ins().iadd_imm_s(epilogue, -1);
        let is_first = self.ins().icmp_imm_u(IntCC::NotEqual, lower, 0);
        let values = [count, lower, no, is_first].map(BlockArg::from);
        self.ins().jump(rest, &values);

        self.begin(rest);
        if is_counted {
            self.set(Slot::application(LC), new_count);
        }
        self.set(Slot::application(EC), new_epilogue);
        let first = self.ins().uextend(I64, first);
        self.rotate_predicates(word, first);
        self.rotate_buffered(rotation);
        let is_taken = match is_top {
            true => goes_on,
            false => self.not(goes_on),
        };
        self.branch_near(Some(is_taken), offset, |emitter| emitter.go_to(offset, 0));
    }

    /// A rename base, of a type and of so many registers, that is lower by one register of so many bytes' size.
    pub(super) fn lower_rename_base(
        &mut self,
        base: Value,
        (kind, renamed): (Type, u32),
        size_log2: i64,
    ) -> Value {
        let is_lowest = self.ins().icmp_imm_u(IntCC::Equal, base, 0);
        let highest = self.ins().iconst(kind, i64::from(renamed - 1) << size_log2);
        let lower = self.ins().iadd_imm_s(base, -1 << size_log2);
        self.ins().select(is_lowest, highest, lower)
    }

    /// Rotates the predicates of a word, and the first one becomes what is given.
    pub(super) fn rotate_predicates(&mut self, word: Value, first: Value) {
        const STATIC: i64 = (1 << FIRST_ROTATING_PREDICATE) - 1;
        let fixed = self.ins().band_imm_u(word, STATIC);
        let others = self.ins().bxor(word, fixed);
        let up = self.ins().ishl_imm_u(others, 1);
        let first = self.ins().ishl_imm_u(first, i64::from(FIRST_ROTATING_PREDICATE));
        let word = self.ins().bor(fixed, up);
        let word = self.ins().bor(word, first);
        self.known.predicates = Predicates::default();
        self.set(Slot::PREDICATES, word);
    }

    /// Rotates the registers that are in the buffer, and the floating-point ones.
    fn rotate_buffered(&mut self, rotation: Rotation) {
        let size = rotation.size;
        let place = self.builder.use_var(self.rotating);
        let rotated = self.ins().iadd_imm_s(place, -i64::from(REGISTER_SIZE));
        if let Some(last) = rotating_slots(size).last() {
            let flags = self.state_memory();
            let value = self.ins().load(I64, flags, place, last.offset() as i32);
            let first = Slot::general(FIRST_STACKED);
            self.ins().store(flags, value, rotated, first.offset() as i32);
        }
        self.builder.def_var(self.rotating, rotated);
        let renamed = rotating_slots(size).collect();
        self.known.held = self.known.held.without(renamed);
        self.known.floats.rotate();
        if rotation.names_floats {
            let base = self.floating_base();
            let base = self.lower_rename_base(base, (I64, ROTATING_FLOATING), FLOATING_SIZE_LOG2);
            self.builder.def_var(self.floating_base, base);
        }

        let [full, rest] = [(); 2].map(|()| self.builder.create_block());
        let end = self.place(0);
        let is_full = self.ins().icmp(IntCC::Equal, rotated, end);
        self.builder.set_cold_block(full);
        self.ins().brif(is_full, full, &[], rest, &[]);
        let begin_anew = |emitter: &mut Self| {
            emitter.store_rotating();
            emitter.load_rotating(rotation);
        };
        self.rarely(full, begin_anew, rest);
    }

    /// Copies the rotating registers from where they begin to where they are to begin: both as the frame's beginning.
    fn copy_rotating(&mut self, size: u8, from: Value, to: Value) {
        // Pairs of registers are not aligned as the host's vectors are.
        let flags = MemFlagsData::new()
            .with_notrap()
            .with_alias_region(self.state_memory().alias_region());
        for pair in rotating_slots(size).step_by(2) {
            let values = self.ins().load(I64X2, flags, from, pair.offset() as i32);
            self.ins().store(flags, values, to, pair.offset() as i32);
        }
    }

    /// Where registers begin that have just come to the buffer.
    fn first_place(&mut self, size: u8) -> Value {
        self.place(ROOM - u32::from(size))
    }

    /// Where registers begin of which so many places of the buffer are in front, as the frame's beginning.
    fn place(&mut self, before: u32) -> Value {
        let buffer = match self.buffer {
            Some(buffer) => buffer,
            None => {
                let (kind, align_shift) = (StackSlotKind::ExplicitSlot, REGISTER_SIZE.trailing_zeros());
                let data = StackSlotData::new(kind, ROOM * REGISTER_SIZE, align_shift as u8);
                *self.buffer.insert(self.builder.create_sized_stack_slot(data))
            }
        };
        let buffer = self.ins().stack_addr(I64, buffer, 0);
        let first = Slot::general(FIRST_STACKED).offset() as i64;
        self.ins()
            .iadd_imm_s(buffer, i64::from(before * REGISTER_SIZE) - first)
    }
}

/// The rename bases, each with how many registers it renames if so many general ones rotate.
pub(super) fn rename_bases(rotating: u8) -> impl Iterator<Item = (usize, u32)> {
    let bases = [
        (layout::FRAME_RENAME_GENERAL, u32::from(rotating)),
        (layout::FRAME_RENAME_FLOATING, ROTATING_FLOATING),
        (layout::FRAME_RENAME_PREDICATE, ROTATING_PREDICATES),
    ];
    bases.into_iter().filter(|&(_, size)| size > 0)
}

/// The general registers that rotate if so many do.
pub(super) fn rotating_slots(size: u8) -> impl DoubleEndedIterator<Item = Slot> + ExactSizeIterator {
    (FIRST_STACKED..FIRST_STACKED + size).map(Slot::general)
}
