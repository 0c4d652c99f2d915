//! The register stack: frames that are made larger or smaller.

use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use sidestep_ia64::encoding::Instruction;
use sidestep_ia64::layout;
use sidestep_ia64::registers::application::PFS;
use sidestep_ia64::registers::frame::STACKED_REGISTERS;

use crate::emitter::Emitter;
use crate::slots::Slot;

/// `alloc`: in line where nothing has to be stored, the rotating part stays as large as it is, and no NaT bit could
/// have to be forgotten.
pub fn allocate(emitter: &mut Emitter, instruction: &Instruction) {
    if instruction.predicate() != 0 || instruction.r1() == 0 {
        return emitter.perform(Some(instruction));
    }
    let [size, locals, rotating] = [instruction.sof(), instruction.sol(), instruction.sor()].map(i64::from);
    let rotating_now = emitter.load_state(I32, layout::FRAME_ROTATING);
    let differs = emitter.ins().bxor_imm_u(rotating_now, rotating);
    let dirty = emitter.load_state(I32, layout::DIRTY_REGISTERS);
    let available = emitter.ins().iconst(I32, i64::from(STACKED_REGISTERS) - size);
    let room = emitter.ins().isub(available, dirty);
    let excess = emitter.ins().sshr_imm_u(room, 31);
    let rare = emitter.ins().bor(differs, excess);
    let mut rare = emitter.ins().uextend(I64, rare);
    for word in 0..2 {
        let nats = emitter.load_state(I64, layout::GENERAL_NATS + word * 8);
        rare = emitter.ins().bor(rare, nats);
    }
    emitter.in_line(instruction, rare, |emitter, _| {
        for (value, place) in [(size, layout::FRAME_SIZE), (locals, layout::FRAME_LOCALS)] {
            let value = emitter.ins().iconst(I32, value);
            emitter.store_state(value, place);
        }
        // The frame has grown over clean registers.
        let clean = emitter.load_state(I32, layout::CLEAN_REGISTERS);
        let fits = emitter.ins().icmp(IntCC::UnsignedLessThan, clean, room);
        let clean = emitter.ins().select(fits, clean, room);
        emitter.store_state(clean, layout::CLEAN_REGISTERS);
        let state = emitter.get(Slot::application(PFS));
        emitter.set(Slot::general(instruction.r1()), state);
    });
}
