//! The register stack instructions and the rename bases (manual volume 2, section 6.5; formats M34, M25, B8).

use crate::encoding::Instruction;
use crate::fault::{Fault, FaultKind};
use crate::processor::Processor;
use crate::processor::execution::{Flow, MicroOperation, Step};
use crate::registers::application::PFS;
use crate::registers::frame::STACKED_REGISTERS;
use crate::registers::status::{psr, rsc};
use crate::registers::system::control;

use super::frequent::{Handler, call};

/// IFS.v: the frame in IFS is valid.
const IFS_VALID: u64 = 1 << 63;

/// `alloc`, whose frame must be possible and hold its target.
pub(super) fn lower_allocate(instruction: &Instruction) -> MicroOperation {
    let (size, locals, rotating) = (instruction.sof(), instruction.sol(), instruction.sor());
    let fits = u32::from(size) <= STACKED_REGISTERS && locals <= size && rotating <= size;
    if !fits || u32::from(instruction.r1()) > 31 + u32::from(size) {
        return super::illegal(instruction.predicate());
    }
    MicroOperation {
        r2: size,
        r3: locals,
        r4: rotating,
        ..super::fields(call(allocate), instruction)
    }
}

pub(super) fn clear_rename_handler(predicates_only: bool) -> Handler {
    match predicates_only {
        false => call(clear_rename),
        true => call(clear_rename_predicates),
    }
}

fn allocate(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let frame = processor.frame;
    let (size, locals, rotating) = (
        u32::from(operation.r2),
        u32::from(operation.r3),
        u32::from(operation.r4),
    );
    let renamed = frame.rename_general | frame.rename_floating | frame.rename_predicate != 0;
    if rotating != frame.rotating && renamed {
        return Err(processor.raise(Fault::reserved_register_field()));
    }
    processor.resize_frame(size, locals, rotating)?;
    processor
        .general
        .set(operation.r1, processor.application[usize::from(PFS)]);
    Ok(Flow::Next)
}

pub(super) fn flush(processor: &mut Processor, _: &MicroOperation) -> Step {
    processor.flush_register_stack()?;
    Ok(Flow::Next)
}

pub(super) fn load(processor: &mut Processor, _: &MicroOperation) -> Step {
    let stack = &processor.register_stack;
    let distance = stack.configuration() >> rsc::LOAD_SHIFT & rsc::LOAD_MASK;
    if !stack.is_enforced_lazy() || distance != 0 && processor.frame.size != 0 {
        return Err(processor.raise(Fault::illegal_operation()));
    }
    processor.load_register_stack()?;
    Ok(Flow::Next)
}

/// Intercepted in a virtual machine, because a monitor must keep the guest's IFS.
pub(super) fn cover(processor: &mut Processor, _: &MicroOperation) -> Step {
    if processor.status & psr::VM != 0 {
        return Err(processor.raise(Fault::new(FaultKind::Virtualization, 0)));
    }
    let marker = processor.frame.bits();
    processor.cover_frame();
    if processor.status & psr::IC == 0 {
        processor.system.control[usize::from(control::IFS)] = IFS_VALID | marker;
    }
    Ok(Flow::Next)
}

fn clear_rename(processor: &mut Processor, _: &MicroOperation) -> Step {
    processor.unrotate_frame();
    Ok(Flow::Next)
}

fn clear_rename_predicates(processor: &mut Processor, _: &MicroOperation) -> Step {
    processor.unrotate_predicates();
    Ok(Flow::Next)
}
