//! Calls and returns: the frame that follows, and where control goes on in it.
//!
//! A call moves the frame's beginning behind the caller's locals, a return moves it back. Emitted code does so where
//! nothing is renamed or NaT and all registers are at hand; a function of the processor's does where not, and control
//! goes on with another unit then.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use sidestep_ia64::layout;
use sidestep_ia64::registers::application::{EC, PFS};
use sidestep_ia64::registers::frame::{
    FrameMarker, STACKED_REGISTERS, previous_function_state as function_state,
};
use sidestep_ia64::registers::status::psr;

use super::{Emitter, Known};
use crate::chain::NEXT_BLOCK;
use crate::slots::{Slot, Slots};

/// Places behind calls that a return looks for before it leaves.
const RETURN_POINTS_MAX: usize = 6;

/// The sizes of the current frame.
const SIZES: [usize; 3] = [layout::FRAME_SIZE, layout::FRAME_LOCALS, layout::FRAME_ROTATING];
/// Where a frame marker's bits have the size of the locals, seven of them as for the whole frame.
const LOCALS_SHIFT: i64 = 7;
const SIZE_MASK: i64 = 0x7f;
/// How far the size of the rotating part has to be shifted down: it is there in units of eight registers.
const ROTATING_SHIFT: i64 = 14 - 3;
const ROTATING_MASK: i64 = 0xf << 3;
/// The rename bases in a frame marker's bits.
const RENAMES: i64 = FrameMarker::MASK.cast_signed() & -(1 << 18);

impl Emitter<'_, '_> {
    /// Calls a function of four or six numbers that looks at nothing else, and answers its two.
    pub fn call_function(&mut self, function: *const (), arguments: &[Value]) -> [Value; 2] {
        let signature = self.entry.number_signatures[usize::from(arguments.len() > 4)];
        let function = self.constant(function as i64);
        let call = self.ins().call_indirect(signature, function, arguments);
        let results = self.builder.inst_results(call);
        [results[0], results[1]]
    }

    /// Finds out where the frame's registers lie.
    pub(super) fn find_frame(&mut self) {
        let base = self.load_state(I64, layout::GENERAL_BASE);
        self.note_frame_base(base);
    }

    fn note_frame_base(&mut self, base: Value) {
        let distance = self.ins().ishl_imm_u(base, 3);
        let processor = self.processor();
        let frame = self.ins().iadd(processor, distance);
        self.builder.def_var(self.frame, frame);
    }

    /// Calls with the current operation what is so many bytes behind the node's first bundle.
    pub fn call_to(&mut self, offset: i64, link: u8) {
        self.begin_call(link, |emitter| emitter.exit_to(offset, 0));
        match self.region.node_at(self.node, offset, 0) {
            Some(next) if !self.leaves => self.go_on(next),
            _ => self.exit_to(offset, 0),
        }
    }

    /// Calls with the current operation what a branch register names.
    pub fn call_by(&mut self, register: u8, link: u8) {
        let target = self.get(Slot::branch(register));
        let target = self.ins().band_imm_s(target, -16);
        self.begin_call(link, |emitter| emitter.follow_to(target, false));
        self.follow_to(target, false);
    }

    /// Saves where a call returns to, and changes the frame; has control `go` on aside where the processor's function
    /// had to do it.
    fn begin_call(&mut self, link: u8, go: impl Fn(&mut Self)) {
        let after = self.bundle_offset() + 16;
        self.complete_block();
        self.complete();
        let after = self.address(after);
        self.set(Slot::branch(link), after);

        let [size, locals, rotating] = SIZES.map(|place| self.load_word(place));
        let base = self.load_state(I64, layout::GENERAL_BASE);
        let base = self.ins().iadd(base, locals);
        let unusual = self.unusual();
        self.aside_call(unusual, &go);
        let highest = self.constant(layout::GENERAL_BASE_MAX as i64);
        let is_too_far = self.ins().icmp(IntCC::UnsignedGreaterThan, base, highest);
        self.aside_call(is_too_far, &go);

        let state = self.function_state([size, locals, rotating]);
        self.store_state(state, Slot::application(PFS).offset());
        self.store_state(base, layout::GENERAL_BASE);
        self.note_frame_base(base);
        let position = self.load_state(I64, layout::STACK_POSITION);
        let position = self.ins().iadd(position, locals);
        self.store_state(position, layout::STACK_POSITION);
        // The upper half says that there are no locals.
        let outputs = self.ins().isub(size, locals);
        self.store_state(outputs, layout::FRAME_SIZE);
        let none = self.ins().iconst(I32, 0);
        self.store_state(none, layout::FRAME_ROTATING);
        self.know_beside_frame(PFS);
    }

    /// Has the processor's function call where a value is not zero.
    fn aside_call(&mut self, condition: Value, go: &impl Fn(&mut Self)) {
        self.aside(condition, |emitter| {
            let (signature, processor) = (emitter.entry.call_signature, emitter.processor());
            let begin = emitter.constant(emitter.entry.begin_call);
            emitter.ins().call_indirect(signature, begin, &[processor]);
            emitter.go_behind_function(go);
        });
    }

    /// Has control `go` on behind a function that may have left work for the processor.
    fn go_behind_function(&mut self, go: impl FnOnce(&mut Self)) {
        let was_pending = std::mem::replace(&mut self.is_pending, true);
        go(self);
        self.is_pending = was_pending;
    }

    /// What a call saves in PFS, where nothing is renamed.
    fn function_state(&mut self, [size, locals, rotating]: [Value; 3]) -> Value {
        let epilogue = self.get(Slot::application(EC));
        let status = self.load_state(I64, layout::STATUS);
        let level = self.ins().ushr_imm_u(status, i64::from(psr::CPL_SHIFT));
        let parts = [
            (locals, LOCALS_SHIFT),
            (rotating, ROTATING_SHIFT),
            (epilogue, i64::from(function_state::EPILOGUE_COUNT_SHIFT)),
            (level, i64::from(function_state::PRIVILEGE_SHIFT)),
        ];
        parts.into_iter().fold(size, |state, (part, shift)| {
            let part = self.ins().ishl_imm_u(part, shift);
            self.ins().bor(state, part)
        })
    }

    /// Returns with the current operation by a branch register.
    pub fn return_by(&mut self, register: u8) {
        self.complete_block();
        self.complete();
        let state = self.get(Slot::application(PFS));
        let target = self.get(Slot::branch(register));
        let target = self.ins().band_imm_s(target, -16);
        let size = self.ins().band_imm_u(state, SIZE_MASK);
        let locals = self.ins().ushr_imm_u(state, LOCALS_SHIFT);
        let locals = self.ins().band_imm_u(locals, SIZE_MASK);
        let rotating = self.ins().ushr_imm_u(state, ROTATING_SHIFT);
        let rotating = self.ins().band_imm_u(rotating, ROTATING_MASK);

        let unusual = self.unusual();
        let renames = self.ins().band_imm_s(state, RENAMES);
        let unusual = self.ins().bor(unusual, renames);
        self.aside_return(unusual, register);
        let base = self.load_state(I64, layout::GENERAL_BASE);
        let base = self.ins().isub(base, locals);
        let position = self.load_state(I64, layout::STACK_POSITION);
        let position = self.ins().isub(position, locals);
        let [stored, loaded] =
            [layout::STACK_STORED, layout::STACK_LOADED].map(|place| self.load_state(I64, place));
        let capacity = self.load_state(I64, layout::STACK_CAPACITY);
        let end = self.ins().iadd(position, size);
        let lowest = self.ins().isub(end, capacity);
        // Nothing of this may be negative: the sizes fit each other, the registers are dirty and have their places,
        // what is at hand of the callers fits the file beside the frame, and the privilege, of which programs have
        // the least, stays or becomes smaller.
        let full = self.constant(i64::from(STACKED_REGISTERS));
        let mut limits = vec![
            (size, locals),
            (size, rotating),
            (full, size),
            (position, stored),
            (loaded, lowest),
        ];
        if self.is_system {
            let status = self.load_state(I64, layout::STATUS);
            let level = self.ins().ushr_imm_u(status, i64::from(psr::CPL_SHIFT));
            let level = self.ins().band_imm_u(level, 3);
            let returned = self
                .ins()
                .ushr_imm_u(state, i64::from(function_state::PRIVILEGE_SHIFT));
            limits.push((level, returned));
        }
        let least = limits.into_iter().fold(base, |least, (more, less)| {
            let rest = self.ins().isub(more, less);
            self.ins().bor(least, rest)
        });
        let is_rare = self.ins().icmp_imm_s(IntCC::SignedLessThan, least, 0);
        self.aside_return(is_rare, register);

        let epilogue = self
            .ins()
            .ushr_imm_u(state, i64::from(function_state::EPILOGUE_COUNT_SHIFT));
        let epilogue = self.ins().band_imm_u(epilogue, 0x3f);
        self.store_state(epilogue, Slot::application(EC).offset());
        self.store_state(base, layout::GENERAL_BASE);
        self.note_frame_base(base);
        self.store_state(position, layout::STACK_POSITION);
        self.store_sizes([size, locals, rotating]);
        self.know_beside_frame(EC);
        self.return_to(target, false);
    }

    /// Has the processor's function return by a branch register where a value is not zero.
    fn aside_return(&mut self, condition: Value, register: u8) {
        self.aside(condition, |emitter| {
            let (signature, processor) = (emitter.entry.perform_signature, emitter.processor());
            let finish = emitter.constant(emitter.entry.finish_call);
            let register = emitter.constant(i64::from(register));
            let call = emitter
                .ins()
                .call_indirect(signature, finish, &[processor, register]);
            let target = emitter.builder.inst_results(call)[0];
            emitter.go_behind_function(|emitter| emitter.follow_to(target, false));
        });
    }

    /// A value that is not zero where registers are renamed, or the frame's or the callers' have a NaT bit set, or the
    /// frame is still being loaded.
    fn unusual(&mut self) -> Value {
        let stack = self.load_word(layout::STACK_UNUSUAL);
        let frame = self.unusual_frame();
        self.ins().bor(stack, frame)
    }

    /// A value that is not zero where registers are renamed, or one of the frame's has its NaT bit set.
    pub fn unusual_frame(&mut self) -> Value {
        let general = self.load_word(layout::FRAME_RENAME_GENERAL);
        // Those of the predicates lie behind those of the floating-point registers.
        let others = self.load_state(I64, layout::FRAME_RENAME_FLOATING);
        let has_nat = self.load_state(I64, layout::GENERAL_HAS_NAT);
        let renamed = self.ins().bor(general, others);
        self.ins().bor(renamed, has_nat)
    }

    /// A word of 32 bits of the processor's state.
    fn load_word(&mut self, place: usize) -> Value {
        let (flags, processor) = (self.state, self.processor());
        self.ins().uload32(flags, processor, place as i32)
    }

    fn store_sizes(&mut self, sizes: [Value; 3]) {
        for (size, place) in sizes.into_iter().zip(SIZES) {
            let size = self.ins().ireduce(I32, size);
            self.store_state(size, place);
        }
    }

    /// Notes that another frame is there, with nothing renamed, and that memory has an application register.
    fn know_beside_frame(&mut self, stored: u8) {
        let mut held: Slots = self.known.held.iter().filter(|slot| !slot.is_stacked()).collect();
        held.remove(Slot::application(stored));
        self.known = Known {
            held,
            ..Known::default()
        };
    }

    /// Goes on behind a call of the region where that is the target of a return, and with the unit there elsewhere.
    /// Where nobody `is_there` yet, the processor is put there before the function is left, and no NaT bit is set.
    pub(super) fn return_to(&mut self, target: Value, is_there: bool) {
        let region = self.region;
        for &point in region.return_points.iter().take(RETURN_POINTS_MAX) {
            let address = self.address_from_root(region.offset(point));
            let is_at_point = self.ins().icmp(IntCC::Equal, target, address);
            self.branch(Some(is_at_point), |emitter| {
                if is_there {
                    emitter.leave_if_nat_arrives(|emitter| emitter.answer(NEXT_BLOCK));
                }
                emitter.go_on(point);
            });
        }
        self.follow_to(target, is_there);
    }

    /// Leaves where one of the region's registers has its NaT bit set: another frame shows other registers.
    pub(super) fn leave_if_nat_arrives(&mut self, leave: impl FnOnce(&mut Self)) {
        if let Some(found) = self.any_nat() {
            self.aside(found, leave);
        }
    }
}
