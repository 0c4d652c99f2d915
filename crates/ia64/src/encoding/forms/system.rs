//! The M unit's checks, moves, register stack and system operations: formats M20 to M50.

use super::{Bits, Field, Form, field, form, major};
use crate::encoding::completers::{IndirectFile, ProbeAccess, PurgeScope, Side, Source};
use crate::encoding::instruction::UnitClass::M;
use crate::encoding::operand::Operand::{self, *};
use crate::encoding::operation::Operation;

const X3: Field = field(33, 3);
const X4: Field = field(27, 4);
const X2: Field = field(31, 2);
const X6: Field = field(27, 6);

/// The fixed bits of a form of major opcode 0 with x3 = 0.
fn by_x4(x4: u64) -> Bits {
    major(0).set(X3, 0).set(X4, x4)
}

/// The fixed bits of a form of major opcode 1 with x3 = 0.
fn by_x6(x6: u64) -> Bits {
    major(1).set(X3, 0).set(X6, x6)
}

pub(super) fn rows(forms: &mut Vec<Form>) {
    checks(forms);
    ordering(forms);
    any_unit(forms);
    register_stack(forms);
    register_moves(forms);
    indirect_moves(forms);
    masks(forms);
    translation(forms);
}

/// Formats M20 to M23.
fn checks(forms: &mut Vec<Form>) {
    let by_x3 = |opcode, x3| major(opcode).set(X3, x3);
    let integer = |clear| Operation::CheckAdvanced { clear };
    let float = |clear| Operation::CheckAdvancedFloat { clear };
    let speculative_float = Operation::CheckSpeculativeFloat;
    forms.extend([
        form((M, "M20"), "chk.s.m", by_x3(1, 1), 0, &[R2, Target25b], Operation::CheckSpeculative),
        form((M, "M21"), "chk.s", by_x3(1, 3), 0, &[F2, Target25b], speculative_float),
        form((M, "M22"), "chk.a.nc", by_x3(0, 4), 0, &[R1, Target25c], integer(false)),
        form((M, "M22"), "chk.a.clr", by_x3(0, 5), 0, &[R1, Target25c], integer(true)),
        form((M, "M23"), "chk.a.nc", by_x3(0, 6), 0, &[F1, Target25c], float(false)),
        form((M, "M23"), "chk.a.clr", by_x3(0, 7), 0, &[F1, Target25c], float(true)),
    ]);
}

/// ALAT, fences, serialization and cache flushes: formats M24, M26, M27 and M28.
fn ordering(forms: &mut Vec<Form>) {
    let bits = |x4, x2| by_x4(x4).set(X2, x2);
    let none = &[];
    let serialize = |side| Operation::Serialize { side };
    let flush_cache = |instruction_cache| Operation::FlushCache { instruction_cache };
    let flush = |x| by_x6(0x30).set(field(36, 1), x);
    forms.extend([
        form((M, "M24"), "invala", bits(0, 1), 0, none, Operation::InvalidateAlat),
        form((M, "M26"), "invala.e", bits(2, 1), 0, &[R1], Operation::InvalidateAlatEntry),
        form((M, "M27"), "invala.e", bits(3, 1), 0, &[F1], Operation::InvalidateAlatEntryFloat),
        form((M, "M24"), "fwb", bits(0, 2), 0, none, Operation::FlushWriteBuffers),
        form((M, "M24"), "mf", bits(2, 2), 0, none, Operation::MemoryFence),
        form((M, "M24"), "mf.a", bits(3, 2), 0, none, Operation::MemoryFenceAcceptance),
        form((M, "M24"), "srlz.d", bits(0, 3), 0, none, serialize(Side::Data)),
        form((M, "M24"), "srlz.i", bits(1, 3), 0, none, serialize(Side::Instruction)),
        form((M, "M24"), "sync.i", bits(3, 3), 0, none, Operation::SynchronizeInstructionCache),
        form((M, "M28"), "fc", flush(0), 0, &[R3], flush_cache(false)),
        form((M, "M28"), "fc.i", flush(1), 0, &[R3], flush_cache(true)),
    ]);
}

/// Formats M37, M48 and M50, which share their opcode.
fn any_unit(forms: &mut Vec<Form>) {
    const Y: Field = field(26, 1);
    const Z: Field = field(10, 2);
    let bits = |x4| by_x4(x4).set(X2, 0);
    let set_hint_register = bits(1).set(Y, 1).set(Z, 1);
    forms.extend([
        form((M, "M37"), "break.m", bits(0), 0, &[Immu21], Operation::Break),
        form((M, "M48"), "nop.m", bits(1).set(Y, 0), 0, &[Immu21], Operation::Nop),
        form((M, "M48"), "hint.m", bits(1).set(Y, 1).set(Z, 0), 0, &[Immu19], Operation::Hint),
        form((M, "M50"), "mov", set_hint_register, 1, &[Dahr, Immu16], Operation::MoveToDataAccessHint),
    ]);
}

/// Formats M25 and M34.
fn register_stack(forms: &mut Vec<Form>) {
    let bits = |x4| by_x4(x4).set(X2, 0);
    let frame = &[R1, ArPfs, SizeOfFrame, SizeOfLocals, SizeOfRotating];
    forms.extend([
        form((M, "M25"), "flushrs", bits(0xc), 0, &[], Operation::FlushRegisterStack).unpredicated(),
        form((M, "M25"), "loadrs", bits(0xa), 0, &[], Operation::LoadRegisterStack).unpredicated(),
        form((M, "M34"), "alloc", major(1).set(X3, 6), 1, frame, Operation::Allocate).unpredicated(),
    ]);
}

/// Formats M29 to M33, M35 and M36.
fn register_moves(forms: &mut Vec<Form>) {
    let to_application = |value| Operation::MoveToApplication { value };
    let (register, immediate) = (to_application(Source::Register), to_application(Source::Immediate));
    forms.extend([
        form((M, "M29"), "mov.m", by_x6(0x2a), 1, &[Ar3, R2], register),
        form((M, "M30"), "mov.m", by_x4(8).set(X2, 2), 1, &[Ar3, Imm8], immediate),
        form((M, "M31"), "mov.m", by_x6(0x22), 1, &[R1, Ar3], Operation::MoveFromApplication),
        form((M, "M32"), "mov", by_x6(0x2c), 1, &[Cr3, R2], Operation::MoveToControl),
        form((M, "M33"), "mov", by_x6(0x24), 1, &[R1, Cr3], Operation::MoveFromControl),
        form((M, "M35"), "mov", by_x6(0x2d), 1, &[PsrLower, R2], Operation::MoveToPsrLower),
        form((M, "M35"), "mov", by_x6(0x29), 1, &[PsrUserMask, R2], Operation::MoveToUserMask),
        form((M, "M36"), "mov", by_x6(0x25), 1, &[R1, Psr], Operation::MoveFromPsr),
        form((M, "M36"), "mov", by_x6(0x21), 1, &[R1, PsrUserMask], Operation::MoveFromUserMask),
    ]);
}

/// Formats M42 and M43.
fn indirect_moves(forms: &mut Vec<Form>) {
    /// x6 of the move from the file; the file; the operands of the move to it and from it.
    const FILES: [(u64, IndirectFile, &[Operand], &[Operand]); 7] = [
        (0x10, IndirectFile::Region, &[Rr, R2], &[R1, Rr]),
        (0x11, IndirectFile::DataBreakpoint, &[Dbr, R2], &[R1, Dbr]),
        (0x12, IndirectFile::InstructionBreakpoint, &[Ibr, R2], &[R1, Ibr]),
        (0x13, IndirectFile::ProtectionKey, &[Pkr, R2], &[R1, Pkr]),
        (0x14, IndirectFile::MonitorConfiguration, &[Pmc, R2], &[R1, Pmc]),
        (0x15, IndirectFile::MonitorData, &[Pmd, R2], &[R1, Pmd]),
        (0x16, IndirectFile::ModelSpecific, &[Msr, R2], &[R1, Msr]),
    ];
    for (x6, file, to, from) in FILES {
        let (write, read) = (Operation::MoveToIndirect { file }, Operation::MoveFromIndirect { file });
        forms.extend([
            form((M, "M42"), "mov", by_x6(x6 - 0x10), 1, to, write),
            form((M, "M43"), "mov", by_x6(x6), 1, from, read),
        ]);
    }
    let read = |file| Operation::MoveFromIndirect { file };
    let (identification, hints) = (read(IndirectFile::ProcessorIdentification), read(IndirectFile::DataAccessHint));
    forms.extend([
        form((M, "M43"), "mov", by_x6(0x17), 1, &[R1, Cpuid], identification),
        form((M, "M43"), "mov", by_x6(0x20), 1, &[R1, DahrIndirect], hints),
    ]);
}

/// Format M44.
fn masks(forms: &mut Vec<Form>) {
    forms.extend([
        form((M, "M44"), "sum", by_x4(4), 0, &[Immu24], Operation::SetUserMask),
        form((M, "M44"), "rum", by_x4(5), 0, &[Immu24], Operation::ResetUserMask),
        form((M, "M44"), "ssm", by_x4(6), 0, &[Immu24], Operation::SetSystemMask),
        form((M, "M44"), "rsm", by_x4(7), 0, &[Immu24], Operation::ResetSystemMask),
    ]);
}

/// Formats M38 to M41 and M45 to M47.
fn translation(forms: &mut Vec<Form>) {
    let probe = |access, level| Operation::Probe { access, level };
    let fault = |access| Operation::ProbeFault { access };
    let (read, write) = (ProbeAccess::Read, ProbeAccess::Write);
    let (register, immediate) = (Source::Register, Source::Immediate);
    let insert_cache = |side| Operation::InsertTranslationCache { side };
    let insert_register = |side| Operation::InsertTranslationRegister { side };
    let purge_cache = |scope| Operation::PurgeTranslationCache { scope };
    let purge_register = |side| Operation::PurgeTranslationRegister { side };
    let (data, instruction) = (Side::Data, Side::Instruction);
    forms.extend([
        form((M, "M38"), "probe.r", by_x6(0x38), 1, &[R1, R3, R2], probe(read, register)),
        form((M, "M38"), "probe.w", by_x6(0x39), 1, &[R1, R3, R2], probe(write, register)),
        form((M, "M39"), "probe.r", by_x6(0x18), 1, &[R1, R3, Immu2], probe(read, immediate)),
        form((M, "M39"), "probe.w", by_x6(0x19), 1, &[R1, R3, Immu2], probe(write, immediate)),
        form((M, "M40"), "probe.rw.fault", by_x6(0x31), 0, &[R3, Immu2], fault(ProbeAccess::ReadWrite)),
        form((M, "M40"), "probe.r.fault", by_x6(0x32), 0, &[R3, Immu2], fault(read)),
        form((M, "M40"), "probe.w.fault", by_x6(0x33), 0, &[R3, Immu2], fault(write)),
        form((M, "M41"), "itc.d", by_x6(0x2e), 0, &[R2], insert_cache(data)),
        form((M, "M41"), "itc.i", by_x6(0x2f), 0, &[R2], insert_cache(instruction)),
        form((M, "M42"), "itr.d", by_x6(0x0e), 1, &[Dtr, R2], insert_register(data)),
        form((M, "M42"), "itr.i", by_x6(0x0f), 1, &[Itr, R2], insert_register(instruction)),
        form((M, "M45"), "ptc.l", by_x6(0x09), 0, &[R3, R2], purge_cache(PurgeScope::Local)),
        form((M, "M45"), "ptc.g", by_x6(0x0a), 0, &[R3, R2], purge_cache(PurgeScope::Global)),
        form((M, "M45"), "ptc.ga", by_x6(0x0b), 0, &[R3, R2], purge_cache(PurgeScope::GlobalAlat)),
        form((M, "M45"), "ptr.d", by_x6(0x0c), 0, &[R3, R2], purge_register(data)),
        form((M, "M45"), "ptr.i", by_x6(0x0d), 0, &[R3, R2], purge_register(instruction)),
        form((M, "M46"), "thash", by_x6(0x1a), 1, &[R1, R3], Operation::TranslationHash),
        form((M, "M46"), "ttag", by_x6(0x1b), 1, &[R1, R3], Operation::TranslationTag),
        form((M, "M46"), "tpa", by_x6(0x1e), 1, &[R1, R3], Operation::TranslateToPhysical),
        form((M, "M46"), "tak", by_x6(0x1f), 1, &[R1, R3], Operation::TranslationAccessKey),
        form((M, "M47"), "ptc.e", by_x6(0x34), 0, &[R3], Operation::PurgeTranslationCacheEntry),
    ]);
}
