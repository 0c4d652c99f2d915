//! Branches, calls, returns, the modulo-scheduled loop branches, and the checks that branch (manual volume
//! 1, section 4.5; formats B1 to B5, M20 to M23, I20).

use crate::alat;
use crate::encoding::{BranchKind, Instruction, Target};
use crate::fault::{Fault, FaultKind, isr};
use crate::processor::execution::{Flow, MicroOperation, Step};
use crate::processor::{Gate, Processor, Raised, pending};
use crate::registers::application::{EC, LC, PFS};
use crate::registers::frame::{FrameMarker, previous_function_state as pfs};

use super::frequent::{Code, Handler, call, inline};

pub(super) fn lower_branch(instruction: &Instruction, kind: BranchKind, target: Target) -> MicroOperation {
    let handler = match (kind, target) {
        (BranchKind::Conditional, Target::Indirect) => inline(Code::BranchIndirect),
        (BranchKind::Conditional, _) => inline(Code::Branch),
        (BranchKind::CountedLoop, _) => inline(Code::BranchCountedLoop),
        (BranchKind::CountedTop, _) => call(branch_counted::<true>),
        (BranchKind::CountedExit, _) => call(branch_counted::<false>),
        (BranchKind::WhileTop, _) => return super::always(call(branch_while::<true>), instruction),
        (BranchKind::WhileExit, _) => return super::always(call(branch_while::<false>), instruction),
    };
    super::fields(handler, instruction)
}

pub(super) fn call_handler(target: Target) -> Handler {
    match target {
        Target::Indirect => call(call_indirect),
        Target::Relative | Target::Long => call(call_relative),
    }
}

pub(super) fn check_advanced_handler(clear: bool) -> Handler {
    match clear {
        true => call(check_advanced::<true>),
        false => call(check_advanced::<false>),
    }
}

/// Takes a relative branch.
#[inline(always)]
pub(super) fn branch(processor: &mut Processor, operation: &MicroOperation) -> Step {
    processor.target = processor.block_start.wrapping_add(operation.immediate);
    Ok(Flow::Branch)
}

#[inline(always)]
pub(super) fn branch_indirect(processor: &mut Processor, operation: &MicroOperation) -> Step {
    processor.target = processor.branch[usize::from(operation.r2 & 7)] & !15;
    Ok(Flow::Branch)
}

#[inline(always)]
pub(super) fn branch_counted_loop(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let count = &mut processor.application[usize::from(LC)];
    if *count == 0 {
        return Ok(Flow::Next);
    }
    *count -= 1;
    branch(processor, operation)
}

/// `br.ctop` (branches while the loop goes on) and `br.cexit` (branches when it ends).
fn branch_counted<const TOP: bool>(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let count = processor.application[usize::from(LC)];
    let epilogue = processor.application[usize::from(EC)];
    let goes_on = count != 0 || epilogue > 1;
    processor.set_predicate(63, count != 0);
    if count != 0 {
        processor.application[usize::from(LC)] = count - 1;
        processor.rotate_once();
    } else if epilogue != 0 {
        processor.application[usize::from(EC)] = epilogue - 1;
        processor.rotate_once();
    }
    if goes_on == TOP {
        branch(processor, operation)
    } else {
        Ok(Flow::Next)
    }
}

/// `br.wtop` and `br.wexit`: the qualifying predicate takes the place of the loop count.
fn branch_while<const TOP: bool>(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let condition = processor.predicate(operation.extra);
    let epilogue = processor.application[usize::from(EC)];
    let goes_on = condition || epilogue > 1;
    processor.set_predicate(63, false);
    if condition {
        processor.rotate_once();
    } else if epilogue != 0 {
        processor.application[usize::from(EC)] = epilogue - 1;
        processor.rotate_once();
    }
    if goes_on == TOP {
        branch(processor, operation)
    } else {
        Ok(Flow::Next)
    }
}

fn call_relative(processor: &mut Processor, operation: &MicroOperation) -> Step {
    link(processor, operation);
    processor.call_frame();
    branch(processor, operation)
}

fn call_indirect(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let target = processor.branch[usize::from(operation.r2 & 7)] & !15;
    if target == processor.gate && operation.r1 & 7 == Gate::LINK && processor.serve_call_of_gate() {
        // What the gate's return restores is as it was: the frame, the epilogue count, the privilege level.
        link(processor, operation);
        processor.target = processor.branch[usize::from(Gate::LINK)];
        return Ok(Flow::Branch);
    }
    link(processor, operation);
    processor.call_frame();
    processor.target = target;
    Ok(Flow::Branch)
}

/// Saves the return address and the caller's frame.
#[inline(always)]
fn link(processor: &mut Processor, operation: &MicroOperation) {
    processor.branch[usize::from(operation.r1 & 7)] = processor.bundle_address(operation).wrapping_add(16);
    processor.save_function_state();
}

pub(super) fn return_(processor: &mut Processor, operation: &MicroOperation) -> Step {
    processor.target = processor.branch[usize::from(operation.r2 & 7)] & !15;
    processor.finish_call();
    Ok(Flow::Branch)
}

impl Processor {
    /// Saves the caller's frame, epilogue count and privilege level in AR.PFS.
    #[inline(always)]
    fn save_function_state(&mut self) {
        let epilogue = self.application[usize::from(EC)];
        self.application[usize::from(PFS)] = self.frame.bits()
            | epilogue << pfs::EPILOGUE_COUNT_SHIFT
            | u64::from(self.privilege_level()) << pfs::PRIVILEGE_SHIFT;
    }

    /// What `br.call` does beside branching and saving the return address: for a back end that does the rest.
    #[inline]
    pub fn begin_call(&mut self) {
        self.save_function_state();
        self.call_frame();
    }

    /// What `br.ret` does beside branching: for a back end that does the rest. It may leave something to be done before
    /// the next block, see [`PENDING`](crate::processor::layout::PENDING).
    #[inline]
    pub fn finish_call(&mut self) {
        let state = self.application[usize::from(PFS)];
        let level = (state >> pfs::PRIVILEGE_SHIFT) as u8;
        self.application[usize::from(EC)] = state >> pfs::EPILOGUE_COUNT_SHIFT & 0x3f;
        if level > self.privilege_level() {
            self.set_privilege_level(level);
            self.pending |= pending::DEMOTED;
        }
        let marker = FrameMarker::from_bits(state);
        if let Err(Raised) = self.return_frame(marker, marker.locals) {
            // The return itself is complete; the fill goes on, and faults again, at the target.
            self.raised = None;
            self.pending |= pending::FRAME_INCOMPLETE;
        }
    }
}

/// IA-32 code cannot run: the transition is always disabled.
pub(super) fn branch_ia32(processor: &mut Processor, _: &MicroOperation) -> Step {
    Err(processor.raise(Fault::new(
        FaultKind::GeneralException,
        isr::general_exception::DISABLED_TRANSITION,
    )))
}

pub(super) fn check_speculative(processor: &mut Processor, operation: &MicroOperation) -> Step {
    if processor.general.nat(operation.r2) {
        branch(processor, operation)
    } else {
        Ok(Flow::Next)
    }
}

fn check_advanced<const CLEAR: bool>(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let target = processor.advanced_general(operation.r1);
    check_advanced_load::<CLEAR>(processor, operation, target)
}

/// `chk.a` of a register of either file: branches unless its advanced load still stands.
pub(super) fn check_advanced_load<const CLEAR: bool>(
    processor: &mut Processor,
    operation: &MicroOperation,
    target: alat::Target,
) -> Step {
    let hit = match CLEAR {
        true => processor.advanced_loads.remove(target),
        false => processor.advanced_loads.contains(target),
    };
    if hit {
        Ok(Flow::Next)
    } else {
        processor.advanced_loads.note_failed_check();
        branch(processor, operation)
    }
}
