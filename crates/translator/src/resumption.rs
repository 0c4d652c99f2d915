//! Where emitted code goes on that the host has stopped: a load or store in the windows of a program's memory which the
//! memory does not allow.
//!
//! Such an access stands right behind a conditional jump to the block where the interpreter's function does it
//! ([`are_resumable`] sees to that), and has changed nothing when the host raises its fault. So the jump's target is
//! where to go on: everything that is needed there is where it was when the jump was not taken.

use std::cell::Cell;
use std::ops::Range;
use std::ptr;

use cranelift_codegen::CompiledCode;
use cranelift_codegen::ir::TrapCode;

thread_local! {
    /// The code that this thread executes: from where, and how many bytes.
    static CODE: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// Bytes of a conditional jump: two of its operation, four of the distance.
const JUMP: usize = 6;

/// What marks accesses that may be stopped.
pub const STOPPED: TrapCode = TrapCode::unwrap_user(1);

/// The target of a conditional jump whose last byte is before an address.
fn target(jump: [u8; JUMP], behind: usize) -> Option<usize> {
    let [0x0f, 0x84 | 0x85, distance @ ..] = jump else {
        return None;
    };
    Some(behind.wrapping_add_signed(i32::from_le_bytes(distance) as isize))
}

/// Whether each access that may be stopped begins a block of the host's code and stands behind a jump into a block.
pub fn are_resumable(compiled: &CompiledCode) -> bool {
    let code = compiled.code_buffer();
    let begins_block = |offset: usize| compiled.bb_starts.binary_search(&(offset as u32)).is_ok();
    let accesses = compiled.buffer.traps().iter().filter(|trap| trap.code == STOPPED);
    accesses.map(|trap| trap.offset as usize).all(|offset| {
        let jump = offset.checked_sub(JUMP).and_then(|start| code.get(start..offset));
        let target = jump.and_then(|jump| target(jump.try_into().ok()?, offset));
        begins_block(offset) && target.is_some_and(begins_block)
    })
}

/// Notes what code this thread executes from now on.
#[inline(always)]
pub fn note_code(code: &Range<usize>) {
    CODE.set((code.start, code.len()));
}

/// Where to go on instead of an address at which the host has stopped this thread for touching memory that does not
/// allow it; `None` where that is no emitted code that is prepared for it. A signal handler may ask.
pub fn resumption(at: usize) -> Option<usize> {
    let (start, length) = CODE.get();
    let offset = at
        .checked_sub(start)
        .filter(|offset| (JUMP..length).contains(offset))?;
    let jump = ptr::with_exposed_provenance::<[u8; JUMP]>(start + offset - JUMP);
    // SAFETY: the thread executes code in this memory, so it is there and may be read up to where that stands.
    target(unsafe { jump.read() }, at)
}
