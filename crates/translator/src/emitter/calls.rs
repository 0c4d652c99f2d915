//! Calls and returns: the frame that follows, and where control goes on in it.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};

use super::{Emitter, Known};
use crate::chain::NEXT_BLOCK;
use crate::slots::Slot;

/// Places behind calls that a return looks for before it leaves.
const RETURN_POINTS_MAX: usize = 6;

impl Emitter<'_, '_> {
    /// Calls a function of four or six numbers that looks at nothing else, and answers its two.
    pub fn call_function(&mut self, function: *const (), arguments: &[Value]) -> [Value; 2] {
        let signature = self.entry.number_signatures[usize::from(arguments.len() > 4)];
        let function = self.constant(function as i64);
        let call = self.ins().call_indirect(signature, function, arguments);
        let results = self.builder.inst_results(call);
        [results[0], results[1]]
    }

    /// Calls with the current operation what is so many bytes behind the node's first bundle.
    pub fn call_to(&mut self, offset: i64, link: u8) {
        let after = self.bundle_offset() + 16;
        self.complete_block();
        self.complete();
        let after = self.address(after);
        self.set(Slot::branch(link), after);
        let (signature, processor) = (self.entry.call_signature, self.processor());
        let begin = self.constant(self.entry.begin_call);
        self.ins().call_indirect(signature, begin, &[processor]);
        self.known = Known::default();
        match self.region.node_at(self.node, offset, 0) {
            Some(next) if !self.leaves => {
                self.leave_if_nat_arrives(|emitter| emitter.exit_to(offset, 0));
                self.go_on(next);
            }
            _ => self.exit_to(offset, 0),
        }
    }

    /// Returns with the current operation by a branch register.
    pub fn return_by(&mut self, register: u8) {
        self.complete_block();
        self.complete();
        let (signature, processor) = (self.entry.perform_signature, self.processor());
        let finish = self.constant(self.entry.finish_call);
        let register = self.constant(i64::from(register));
        let call = self
            .ins()
            .call_indirect(signature, finish, &[processor, register]);
        let target = self.builder.inst_results(call)[0];
        self.known = Known::default();
        self.is_pending = true;
        self.return_to(target, false);
    }

    /// Goes on behind a call of the region where that is the target of a return, and with the unit there elsewhere.
    /// Where nobody `is_there` yet, the processor is put there before the function is left.
    pub(super) fn return_to(&mut self, target: Value, is_there: bool) {
        let region = self.region;
        for &point in region.return_points.iter().take(RETURN_POINTS_MAX) {
            let address = self.address_from_root(region.offset(point));
            let is_at_point = self.ins().icmp(IntCC::Equal, target, address);
            self.branch(Some(is_at_point), |emitter| {
                emitter.leave_if_nat_arrives(|emitter| {
                    if !is_there {
                        emitter.leave_for(target, 0);
                    }
                    emitter.answer(NEXT_BLOCK);
                });
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
