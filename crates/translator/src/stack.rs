//! The register stack: frames that are made larger or smaller.

use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use sidestep_ia64::encoding::Instruction;
use sidestep_ia64::layout;
use sidestep_ia64::registers::application::PFS;

use crate::emitter::Emitter;
use crate::slots::Slot;

/// `alloc`: in line where no register of the callers has to make room, the rotating part stays as large as it is or
/// nothing is renamed, and no NaT bit could have to be forgotten.
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
    let position = emitter.load_state(I64, layout::STACK_POSITION);
    let capacity = emitter.load_state(I64, layout::STACK_CAPACITY);
    let end = emitter.ins().iadd_imm_s(position, size);
    let lowest = emitter.ins().isub(end, capacity);
    let loaded = emitter.load_state(I64, layout::STACK_LOADED);
    let is_excessive = emitter.ins().icmp(IntCC::SignedLessThan, loaded, lowest);
    let rare = emitter.ins().bor(refused, is_excessive);
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
        let state = emitter.get(Slot::application(PFS));
        emitter.set(Slot::general(instruction.r1()), state);
    });
    emitter.note_frame(instruction.sof());
}
