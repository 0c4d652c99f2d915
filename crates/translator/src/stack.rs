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

/// `alloc`: in line where nothing has to be stored, the rotating part stays as large as it is or nothing is renamed,
/// and no NaT bit could have to be forgotten.
pub fn allocate(emitter: &mut Emitter, instruction: &Instruction) {
    if instruction.predicate() != 0 || instruction.r1() == 0 {
        return emitter.perform(Some(instruction));
    }
    let [size, locals, rotating] = [instruction.sof(), instruction.sol(), instruction.sor()].map(i64::from);
    let rotating_now = emitter.load_state(I32, layout::FRAME_ROTATING);
    let differs = emitter.ins().icmp_imm_u(IntCC::NotEqual, rotating_now, rotating);
    let mut renamed = emitter.load_state(I32, layout::FRAME_RENAME_GENERAL);
    for base in [layout::FRAME_RENAME_FLOATING, layout::FRAME_RENAME_PREDICATE] {
        let base = emitter.load_state(I32, base);
        renamed = emitter.ins().bor(renamed, base);
    }
    let is_renamed = emitter.ins().icmp_imm_u(IntCC::NotEqual, renamed, 0);
    let refused = emitter.ins().band(differs, is_renamed);
    let refused = emitter.ins().uextend(I32, refused);
    let dirty = emitter.load_state(I32, layout::DIRTY_REGISTERS);
    let available = emitter.ins().iconst(I32, i64::from(STACKED_REGISTERS) - size);
    let room = emitter.ins().isub(available, dirty);
    let excess = emitter.ins().sshr_imm_u(room, 31);
    let rare = emitter.ins().bor(refused, excess);
    let mut rare = emitter.ins().uextend(I64, rare);
    for word in 0..2 {
        let nats = emitter.load_state(I64, layout::GENERAL_NATS + word * 8);
        rare = emitter.ins().bor(rare, nats);
    }
    emitter.in_line(instruction, rare, |emitter, _| {
        let fields = [layout::FRAME_SIZE, layout::FRAME_LOCALS, layout::FRAME_ROTATING];
        for (value, place) in [size, locals, rotating].into_iter().zip(fields) {
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
    emitter.note_frame(instruction.sof());
}
