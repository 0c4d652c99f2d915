//! Calls and returns: what changes of the frame is known of it in a unit, and where control goes on.
//!
//! What a unit calls or returns to is often another one's: a function that all units share changes
//! [the frame](crate::frames) then. Where it is the unit's own, the unit does.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, Value};
use sidestep_ia64::layout;
use sidestep_ia64::registers::application::{EC, PFS};

use super::{Emitter, Known};
use crate::chain::{NEXT_BLOCK, Word};
use crate::frames::{Call, Code, Return};
use crate::slots::{Slot, Slots};

/// Places behind calls that a return looks for before it leaves.
const RETURN_POINTS_MAX: usize = 6;

impl<'f> Emitter<'_, 'f> {
    /// Calls a function of four or six numbers that looks at nothing else, and answers its two.
    pub fn call_function(&mut self, function: *const (), arguments: &[Value]) -> [Value; 2] {
        let signature = self.entry.number_signatures[usize::from(arguments.len() > 4)];
        let function = self.constant(function as i64);
        let call = self.ins().call_indirect(signature, function, arguments);
        let results = self.builder.inst_results(call);
        [results[0], results[1]]
    }

    /// What emits code beside the emitter.
    pub(super) fn code(&mut self) -> Code<'_, 'f> {
        Code {
            flags: self.state,
            processor: self.processor(),
            builder: &mut self.builder,
        }
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

    /// A value that is not zero where registers are renamed, or one of the frame's has its NaT bit set.
    pub fn unusual_frame(&mut self) -> Value {
        self.code().unusual_frame()
    }

    /// Calls with the current operation what is so many bytes behind the node's first bundle.
    pub fn call_to(&mut self, offset: i64, link: u8) {
        let next = self.region.node_at(self.node, offset, 0);
        self.begin_call(link);
        if let Some(next) = next.filter(|_| !self.leaves) {
            let (call, is_rare) = Call::look(&mut self.code());
            self.aside(is_rare, |emitter| {
                emitter.change_frame_by(emitter.entry.begin_call);
                emitter.go_behind_function(|emitter| emitter.exit_to(offset, 0));
            });
            let base = call.make(&mut self.code());
            self.note_frame_base(base);
            self.know_beside_frame(PFS);
            return self.go_on(next);
        }
        self.change_frame_by_shared(Word::Call, |emitter| emitter.exit_to(offset, 0));
    }

    /// Calls with the current operation what a branch register names.
    pub fn call_by(&mut self, register: u8, link: u8) {
        let target = self.get(Slot::branch(register));
        let target = self.ins().band_imm_s(target, -16);
        self.begin_call(link);
        self.change_frame_by_shared(Word::Call, |emitter| emitter.follow_to(target, false));
    }

    /// Has a function that all units share change the frame, and control `go` on elsewhere.
    fn change_frame_by_shared(&mut self, function: Word, go: impl FnOnce(&mut Self)) {
        let (signature, function) = (self.entry.shared_signature, self.shared(function));
        self.ins().call_indirect(signature, function, &[]);
        self.go_behind_function(go);
    }

    /// Saves where a call returns to.
    fn begin_call(&mut self, link: u8) {
        let after = self.bundle_offset() + 16;
        self.complete_block();
        self.complete();
        let after = self.address(after);
        self.set(Slot::branch(link), after);
    }

    /// Has a function of the processor's change the frame.
    fn change_frame_by(&mut self, function: i64) {
        let (signature, processor) = (self.entry.call_signature, self.processor());
        let function = self.constant(function);
        self.ins().call_indirect(signature, function, &[processor]);
    }

    /// Has control `go` on behind a function that may have left work for the processor.
    fn go_behind_function(&mut self, go: impl FnOnce(&mut Self)) {
        let was_pending = std::mem::replace(&mut self.is_pending, true);
        go(self);
        self.is_pending = was_pending;
    }

    /// Returns with the current operation by a branch register.
    pub fn return_by(&mut self, register: u8) {
        self.complete_block();
        self.complete();
        let target = self.get(Slot::branch(register));
        let target = self.ins().band_imm_s(target, -16);
        if self.region.return_points[self.node].is_empty() {
            return self.change_frame_by_shared(Word::Return, |emitter| emitter.follow_to(target, false));
        }
        let is_system = self.is_system;
        let (changed, is_rare) = Return::look(&mut self.code(), is_system);
        self.aside(is_rare, |emitter| {
            emitter.change_frame_by(emitter.entry.finish_call);
            emitter.go_behind_function(|emitter| emitter.follow_to(target, false));
        });
        let base = changed.make(&mut self.code());
        self.note_frame_base(base);
        self.know_beside_frame(EC);
        self.return_to(target, false);
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
        for &point in region.return_points[self.node].iter().take(RETURN_POINTS_MAX) {
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
