//! The checks of [advanced loads that are checked in their block](crate::checked_loads).

use std::mem::replace;

use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::types::I64;
use sidestep_ia64::encoding::{BaseUpdate, Instruction, LoadKind, Size};

use super::{find_for_load, load_extended, made, update_base};
use crate::advanced;
use crate::checked_loads::CheckedLoad;
use crate::emitter::Emitter;
use crate::slots::Slot;

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
        emitter.keep_or_load_again(&load, kept, (again, join));
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
