//! Memory accesses and transfers between the general and floating-point files: formats M1 to M19, M51 and M52.

use super::{Bits, Field, Form, field, form, major};
use crate::encoding::completers::{BaseUpdate, FloatFormat, FloatTransfer, LoadKind, Ordering, Size, StoreKind};
use crate::encoding::form::Hint;
use crate::encoding::instruction::UnitClass::M;
use crate::encoding::operand::Operand::{self, *};
use crate::encoding::operation::Operation;

const MODIFY: Field = field(36, 1);
const X: Field = field(27, 1);
const X6: Field = field(30, 6);

/// The locality hint of loads; the eight-valued one adds bit 19.
const LOAD_HINT: &[Hint] = &[Hint {
    fields: &[field(28, 2), field(19, 1)],
    suffixes: &[Some(""), Some("nt1"), Some("d2"), Some("nta"), Some("d4"), Some("d5"), Some("d6"), Some("d7")],
}];
/// The locality hint of loads with base update, of pairs and of semaphores.
const SHORT_HINT: &[Hint] =
    &[Hint { fields: &[field(28, 2)], suffixes: &[Some(""), Some("nt1"), None, Some("nta")] }];
/// The locality hint of stores; the eight-valued one adds bit 12.
const STORE_HINT: &[Hint] = &[Hint {
    fields: &[field(28, 2), field(12, 1)],
    suffixes: &[Some(""), Some("d1"), Some("d2"), Some("nta"), Some("d4"), Some("d5"), Some("d6"), Some("d7")],
}];
/// The locality hint of stores with base update.
const SHORT_STORE_HINT: &[Hint] = &[Hint { fields: &[field(28, 2)], suffixes: &[Some(""), None, None, Some("nta")] }];
/// The locality hint of `lfetch`.
const FETCH_HINT: &[Hint] = &[Hint {
    fields: &[field(28, 2), field(12, 1)],
    suffixes: &[Some(""), Some("nt1"), Some("nt2"), Some("nta"), Some("d4"), Some("d5"), Some("d6"), Some("d7")],
}];

/// Bits 2 to 5 of x6, suffix and kind of loads; not every unit knows all of them.
const LOAD_KINDS: [(u64, &str, LoadKind); 9] = [
    (0x0, "", LoadKind::Normal),
    (0x1, ".s", LoadKind::Speculative),
    (0x2, ".a", LoadKind::Advanced),
    (0x3, ".sa", LoadKind::SpeculativeAdvanced),
    (0x4, ".bias", LoadKind::Bias),
    (0x5, ".acq", LoadKind::Acquire),
    (0x8, ".c.clr", LoadKind::CheckClear),
    (0x9, ".c.nc", LoadKind::CheckKeep),
    (0xa, ".c.clr.acq", LoadKind::CheckClearAcquire),
];
/// The x6 of `ld8.fill` and `ldf.fill`, and of `st8.spill` and `stf.spill`.
const FILL: u64 = 0x1b;
const SPILL: u64 = 0x3b;

const SIZES: [Size; 4] = [Size::One, Size::Two, Size::Four, Size::Eight];
/// Floating-point formats by the low bits of x6.
const FORMATS: [(&str, FloatFormat); 4] = [
    ("e", FloatFormat::Extended),
    ("8", FloatFormat::Significand),
    ("s", FloatFormat::Single),
    ("d", FloatFormat::Double),
];

pub(super) fn rows(forms: &mut Vec<Form>) {
    loads(forms);
    stores(forms);
    pairs(forms);
    line_fetches(forms);
    semaphores(forms);
    sixteen_bytes(forms);
    transfers(forms);
}

/// The fixed bits of an access without base update or with a register to add (major opcode 4 or 6).
fn plain(opcode: u64, modify: u64, x: u64, x6: u64) -> Bits {
    major(opcode).set(MODIFY, modify).set(X, x).set(X6, x6)
}

/// The fixed bits of an access with an immediate to add (major opcode 5 or 7).
fn immediate(opcode: u64, x6: u64) -> Bits {
    major(opcode).set(X6, x6)
}

/// Formats M1, M2, M3 and M6, M7, M8.
fn loads(forms: &mut Vec<Form>) {
    let mut integer = |name: &str, x6, size, kind| {
        let load = |update| Operation::Load { size, kind, update };
        let (bits, register) = (plain(4, 0, 0, x6), plain(4, 1, 0, x6));
        let (none, by_register, by_immediate) =
            (load(BaseUpdate::None), load(BaseUpdate::Register), load(BaseUpdate::Immediate));
        forms.extend([
            form((M, "M1"), name, bits, 1, &[R1, Memory], none).hints(LOAD_HINT),
            form((M, "M2"), name, register, 1, &[R1, Memory, R2], by_register).hints(SHORT_HINT),
            form((M, "M3"), name, immediate(5, x6), 1, &[R1, Memory, Imm9b], by_immediate).hints(SHORT_HINT),
        ]);
    };
    for (kind_bits, suffix, kind) in LOAD_KINDS {
        for size in SIZES {
            integer(&format!("ld{}{suffix}", size.bytes()), kind_bits << 2 | size as u64, size, kind);
        }
    }
    integer("ld8.fill", FILL, Size::Eight, LoadKind::Fill);

    let mut float = |name: &str, x6, format, kind| {
        let load = |update| Operation::LoadFloat { format, kind, update };
        let (bits, register) = (plain(6, 0, 0, x6), plain(6, 1, 0, x6));
        let (none, by_register, by_immediate) =
            (load(BaseUpdate::None), load(BaseUpdate::Register), load(BaseUpdate::Immediate));
        forms.extend([
            form((M, "M6"), name, bits, 1, &[F1, Memory], none).hints(LOAD_HINT),
            form((M, "M7"), name, register, 1, &[F1, Memory, R2], by_register).hints(SHORT_HINT),
            form((M, "M8"), name, immediate(7, x6), 1, &[F1, Memory, Imm9b], by_immediate).hints(SHORT_HINT),
        ]);
    };
    for (kind_bits, suffix, kind) in LOAD_KINDS.into_iter().filter(|row| is_float_kind(row.2)) {
        for (format_bits, (letter, format)) in FORMATS.into_iter().enumerate() {
            float(&format!("ldf{letter}{suffix}"), kind_bits << 2 | format_bits as u64, format, kind);
        }
    }
    float("ldf.fill", FILL, FloatFormat::Register, LoadKind::Fill);
}

/// Whether floating-point loads know the kind: they have no ordered or biased form.
fn is_float_kind(kind: LoadKind) -> bool {
    !matches!(kind, LoadKind::Bias | LoadKind::Acquire | LoadKind::CheckClearAcquire)
}

/// Formats M4, M5 and M9, M10.
fn stores(forms: &mut Vec<Form>) {
    let mut integer = |name: &str, x6, size, kind| {
        let store = |update| Operation::Store { size, kind, update };
        let (none, by_immediate) = (store(BaseUpdate::None), store(BaseUpdate::Immediate));
        forms.extend([
            form((M, "M4"), name, plain(4, 0, 0, x6), 1, &[Memory, R2], none).hints(STORE_HINT),
            form((M, "M5"), name, immediate(5, x6), 1, &[Memory, R2, Imm9a], by_immediate).hints(SHORT_STORE_HINT),
        ]);
    };
    for size in SIZES {
        let bytes = size.bytes();
        integer(&format!("st{bytes}"), 0x30 | size as u64, size, StoreKind::Normal);
        integer(&format!("st{bytes}.rel"), 0x34 | size as u64, size, StoreKind::Release);
    }
    integer("st8.spill", SPILL, Size::Eight, StoreKind::Spill);

    let mut float = |name: &str, x6, format| {
        let store = |update| Operation::StoreFloat { format, update };
        let (none, by_immediate) = (store(BaseUpdate::None), store(BaseUpdate::Immediate));
        forms.extend([
            form((M, "M9"), name, plain(6, 0, 0, x6), 1, &[Memory, F2], none).hints(STORE_HINT),
            form((M, "M10"), name, immediate(7, x6), 1, &[Memory, F2, Imm9a], by_immediate).hints(SHORT_STORE_HINT),
        ]);
    };
    for (format_bits, (letter, format)) in FORMATS.into_iter().enumerate() {
        float(&format!("stf{letter}"), 0x30 | format_bits as u64, format);
    }
    float("stf.spill", SPILL, FloatFormat::Register);
}

/// Formats M11 and M12.
fn pairs(forms: &mut Vec<Form>) {
    for (kind_bits, suffix, kind) in LOAD_KINDS.into_iter().filter(|row| is_float_kind(row.2)) {
        for (format_bits, (letter, format)) in FORMATS.into_iter().enumerate().skip(1) {
            let name = format!("ldfp{letter}{suffix}");
            let x6 = kind_bits << 2 | format_bits as u64;
            let load = |update| Operation::LoadFloatPair { format, kind, update };
            let (none, update) = (load(BaseUpdate::None), load(BaseUpdate::Immediate));
            let updated: &[Operand] = match format {
                FloatFormat::Single => &[F1, F2, Memory, Eight],
                _ => &[F1, F2, Memory, Sixteen],
            };
            forms.extend([
                form((M, "M11"), &name, plain(6, 0, 1, x6), 2, &[F1, F2, Memory], none).hints(SHORT_HINT),
                form((M, "M12"), &name, plain(6, 1, 1, x6), 2, updated, update).hints(SHORT_HINT),
            ]);
        }
    }
}

/// Formats M13, M14, M15, M51 and M52.
fn line_fetches(forms: &mut Vec<Form>) {
    /// Tells `lfetch` from `lfetch.count`.
    const Y: Field = field(19, 1);
    const KINDS: [(u64, &str, bool, bool); 4] = [
        (0x2c, "lfetch", false, false),
        (0x2d, "lfetch.excl", false, true),
        (0x2e, "lfetch.fault", true, false),
        (0x2f, "lfetch.fault.excl", true, true),
    ];
    for (x6, name, fault, exclusive) in KINDS {
        let fetch = |update| Operation::LineFetch { fault, exclusive, update };
        let (none, by_register, by_immediate) =
            (fetch(BaseUpdate::None), fetch(BaseUpdate::Register), fetch(BaseUpdate::Immediate));
        let bits = match name {
            "lfetch" => plain(6, 0, 0, x6).set(Y, 0),
            _ => plain(6, 0, 0, x6),
        };
        forms.extend([
            form((M, "M13"), name, bits, 0, &[Memory], none).hints(FETCH_HINT),
            form((M, "M14"), name, plain(6, 1, 0, x6), 0, &[Memory, R2], by_register).hints(FETCH_HINT),
            form((M, "M15"), name, immediate(7, x6), 0, &[Memory, Imm9b], by_immediate).hints(FETCH_HINT),
        ]);
    }
    let bits = plain(6, 0, 0, 0x2c).set(Y, 1);
    let operands = &[Memory, Count6a, Stride5];
    let operation = Operation::LineFetchCount;
    forms.push(form((M, "M52"), "lfetch.count", bits, 0, operands, operation).hints(FETCH_HINT));
}

/// Formats M16 and M17.
fn semaphores(forms: &mut Vec<Form>) {
    let orderings = [(0, ".acq", Ordering::Acquire), (4, ".rel", Ordering::Release)];
    for (ordering_bits, suffix, ordering) in orderings {
        for size in SIZES {
            let name = format!("cmpxchg{}{suffix}", size.bytes());
            let bits = plain(4, 0, 1, ordering_bits | size as u64);
            let operation = Operation::CompareExchange { size, ordering };
            forms.push(form((M, "M16"), name, bits, 1, &[R1, Memory, R2, ArCcv], operation).hints(SHORT_HINT));
        }
        let name = format!("cmp8xchg16{suffix}");
        let bits = plain(4, 0, 1, 0x20 | ordering_bits);
        let operands = &[R1, Memory, R2, ArCsd, ArCcv];
        let operation = Operation::CompareExchangeSixteen { ordering };
        forms.push(form((M, "M16"), name, bits, 1, operands, operation).hints(SHORT_HINT));
        for size in [Size::Four, Size::Eight] {
            let name = format!("fetchadd{}{suffix}", size.bytes());
            let bits = plain(4, 0, 1, 0x10 | ordering_bits | size as u64);
            let operation = Operation::FetchAdd { size, ordering };
            forms.push(form((M, "M17"), name, bits, 1, &[R1, Memory, Increment3], operation).hints(SHORT_HINT));
        }
    }
    for size in SIZES {
        let bits = plain(4, 0, 1, 0x8 | size as u64);
        let name = format!("xchg{}", size.bytes());
        let operation = Operation::Exchange { size };
        forms.push(form((M, "M16"), name, bits, 1, &[R1, Memory, R2], operation).hints(SHORT_HINT));
    }
}

/// `ld16` and `st16`, which share their second half with AR.CSD (formats M1 and M4).
fn sixteen_bytes(forms: &mut Vec<Form>) {
    let load = |ordering| Operation::LoadSixteen { ordering };
    let store = |ordering| Operation::StoreSixteen { ordering };
    let (loaded, stored) = (&[R1, ArCsd, Memory], &[Memory, R2, ArCsd]);
    let x = |x6| plain(4, 0, 1, x6);
    let (none, acquire, release) = (Ordering::None, Ordering::Acquire, Ordering::Release);
    forms.extend([
        form((M, "M1"), "ld16", x(0x28), 2, loaded, load(none)).hints(LOAD_HINT),
        form((M, "M1"), "ld16.acq", x(0x2c), 2, loaded, load(acquire)).hints(LOAD_HINT),
        form((M, "M4"), "st16", x(0x30), 1, stored, store(none)).hints(STORE_HINT),
        form((M, "M4"), "st16.rel", x(0x34), 1, stored, store(release)).hints(STORE_HINT),
    ]);
}

/// Formats M18 and M19.
fn transfers(forms: &mut Vec<Form>) {
    const TRANSFERS: [(u64, &str, FloatTransfer); 4] = [
        (0x1c, "sig", FloatTransfer::Significand),
        (0x1d, "exp", FloatTransfer::Exponent),
        (0x1e, "s", FloatTransfer::Single),
        (0x1f, "d", FloatTransfer::Double),
    ];
    for (x6, suffix, transfer) in TRANSFERS {
        let (set, get) = (Operation::SetFloat { form: transfer }, Operation::GetFloat { form: transfer });
        forms.extend([
            form((M, "M18"), format!("setf.{suffix}"), plain(6, 0, 1, x6), 1, &[F1, R2], set),
            form((M, "M19"), format!("getf.{suffix}"), plain(4, 0, 1, x6), 1, &[R1, F2], get),
        ]);
    }
}
