//! The register stack: frames that are made larger or smaller.

use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::types::{I32, I64};
use sidestep_ia64::encoding::Instruction;
use sidestep_ia64::layout;
use sidestep_ia64::registers::application::PFS;

use crate::emitter::Emitter;
use crate::slots::Slot;

/// `alloc`: in line where no register of the callers has to make room, nothing is renamed, and no NaT bit could have to
/// be forgotten.
pub fn allocate(emitter: &mut Emitter, instruction: &Instruction) {
    if instruction.predicate() != 0 || instruction.r1() == 0 {
        return emitter.perform(Some(instruction));
    }
    let [size, locals, rotating] = [instruction.sof(), instruction.sol(), instruction.sor()].map(i64::from);
    let position = emitter.load_state(I64, layout::STACK_POSITION);
    let capacity = emitter.load_state(I64, layout::STACK_CAPACITY);
    let end = emitter.ins().iadd_imm_s(position, size);
    let lowest = emitter.ins().isub(end, capacity);
    let loaded = emitter.load_state(I64, layout::STACK_LOADED);
    let room = emitter.ins().isub(loaded, lowest);
    let is_excessive = emitter.ins().sshr_imm_u(room, 63);
    let unusual = emitter.unusual_frame();
    let rare = emitter.ins().bor(unusual, is_excessive);
    emitter.in_line(instruction, rare, |emitter, _| {
        let fields = [layout::FRAME_SIZE, layout::FRAME_LOCALS, layout::FRAME_ROTATING];
        for (value, place) in [size, locals, rotating].into_iter().zip(fields) {
            let value = emitter.ins().iconst(I32, value);
            emitter.store_state(value, place);
        }
        let state = emitter.get(Slot::application(PFS));
        emitter.set(Slot::general(instruction.r1()), state);
    });
    emitter.note_frame(instruction.sof());
}
