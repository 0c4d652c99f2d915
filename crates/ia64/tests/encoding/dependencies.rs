//! What instructions read and write, for one or two of each kind.

use sidestep_ia64::encoding::Resource::{self, *};
use sidestep_ia64::encoding::{Form, IndirectFile, Instruction, Unit, UnitClass, decode};

/// The instruction of the form with the format, the mnemonic and as many operands.
fn instruction(format: &str, mnemonic: &str, predicate: u8, values: &[i64]) -> Instruction {
    let is_meant = |form: &&Form| form.format == format && form.operands.len() == values.len();
    let form = Form::named(mnemonic).find(is_meant).expect("the form exists");
    let encoded = form
        .encode(predicate, values, &[])
        .expect("the form takes the values");
    let unit = match form.class {
        UnitClass::A | UnitClass::I => Unit::I,
        UnitClass::M => Unit::M,
        UnitClass::B => Unit::B,
        UnitClass::F => Unit::F,
        UnitClass::LX => Unit::X,
    };
    decode(unit, encoded.slot, encoded.long).expect("an encoded instruction decodes")
}

const UNAT: Resource = Application(36);
const FPSR: Resource = Application(40);
const PFS: Resource = Application(64);
const LC: Resource = Application(65);
const EC: Resource = Application(66);
const BSP: Resource = Application(17);

#[test]
fn sources_and_destinations_follow_operands_and_implicit_registers() {
    // Format, mnemonic, predicate, operand values; what is read; what is written.
    type Row<'row> = (
        &'row str,
        &'row str,
        u8,
        &'row [i64],
        &'row [Resource],
        &'row [Resource],
    );
    #[rustfmt::skip]
    let rows: &[Row] = &[
        ("A1", "add", 0, &[10, 11, 12], &[General(11), General(12)], &[General(10)]),
        ("A1", "add", 6, &[10, 11, 12, 1], &[Predicate(6), General(11), General(12)], &[General(10)]),
        ("A5", "addl", 0, &[10, -5, 1], &[General(1)], &[General(10)]),
        ("A4", "adds", 0, &[10, 0, 0], &[], &[General(10)]),
        ("X2", "movl", 0, &[10, 1 << 40], &[], &[General(10)]),
        ("A6", "cmp.eq", 0, &[6, 7, 10, 11], &[General(10), General(11)], &[Predicate(6), Predicate(7)]),
        ("A8", "cmp.lt", 3, &[6, 0, -1, 11], &[Predicate(3), General(11)], &[Predicate(6)]),
        ("I16", "tbit.z", 0, &[6, 7, 10, 3], &[General(10)], &[Predicate(6), Predicate(7)]),
        ("M1", "ld8", 0, &[10, 11], &[General(11)], &[General(10)]),
        ("M2", "ld8.s", 0, &[10, 11, 12], &[General(11), General(12)], &[General(10), General(11)]),
        ("M3", "ld4", 0, &[10, 11, -4], &[General(11)], &[General(10), General(11)]),
        ("M1", "ld8.fill", 0, &[10, 11], &[General(11), UNAT], &[General(10)]),
        ("M1", "ld16", 0, &[10, 25, 11], &[General(11)], &[General(10), Application(25)]),
        ("M4", "st8", 0, &[11, 10], &[General(11), General(10)], &[]),
        ("M5", "st8.spill", 0, &[11, 10, 8], &[General(11), General(10)], &[General(11), UNAT]),
        ("M9", "stfd", 0, &[11, 10], &[General(11), Float(10)], &[]),
        ("M12", "ldfpd", 0, &[32, 33, 11, 16], &[General(11)], &[Float(32), Float(33), General(11)]),
        ("M15", "lfetch", 0, &[11, -64], &[General(11)], &[General(11)]),
        ("M16", "cmpxchg8.acq", 0, &[10, 11, 12, 32], &[General(11), General(12), Application(32)], &[General(10)]),
        ("M17", "fetchadd8.rel", 0, &[10, 11, -1], &[General(11)], &[General(10)]),
        ("M22", "chk.a.nc", 0, &[10, 64], &[], &[]),
        ("M20", "chk.s.m", 0, &[10, 64], &[General(10)], &[]),
        ("I26", "mov.i", 0, &[65, 10], &[General(10)], &[LC]),
        ("M29", "mov.m", 0, &[18, 10], &[General(10)], &[Application(18), BSP]),
        ("M31", "mov.m", 0, &[10, 36], &[UNAT], &[General(10)]),
        ("M34", "alloc", 0, &[10, 64, 8, 4, 0], &[PFS, FrameMarker], &[General(10), FrameMarker]),
        ("M18", "setf.sig", 0, &[8, 10], &[General(10)], &[Float(8)]),
        ("F1", "fma.d.s1", 2, &[8, 9, 10, 11], &[Predicate(2), Float(9), Float(10), Float(11), FPSR], &[Float(8)]),
        ("F1", "fma.d.s1", 0, &[8, 9, 1, 0], &[Float(9), FPSR], &[Float(8)]),
        ("F6", "frcpa.s0", 0, &[8, 6, 9, 10], &[Float(9), Float(10), FPSR], &[Float(8), Predicate(6)]),
        ("F2", "xma.l", 0, &[8, 9, 10, 11], &[Float(9), Float(10), Float(11)], &[Float(8)]),
        ("B1", "br.cond", 6, &[32], &[Predicate(6)], &[]),
        ("B2", "br.cloop", 0, &[-32], &[LC], &[LC]),
        ("B2", "br.ctop", 0, &[-32], &[LC, EC, FrameMarker], &[LC, EC, FrameMarker, Predicate(63)]),
        ("B3", "br.call", 0, &[0, 256], &[FrameMarker, EC], &[Branch(0), FrameMarker, PFS, BSP]),
        ("B4", "br.ret", 0, &[0], &[Branch(0), PFS], &[FrameMarker, EC, BSP, ProcessorStatus]),
        ("M42", "mov", 0, &[0, 10], &[General(10)], &[Indirect(IndirectFile::Region)]),
        ("I18", "nop.i", 0, &[0], &[], &[]),
    ];
    for (format, mnemonic, predicate, values, sources, destinations) in rows {
        let instruction = instruction(format, mnemonic, *predicate, values);
        assert_eq!(
            &*instruction.sources(),
            *sources,
            "sources of {mnemonic} {values:?}"
        );
        assert_eq!(
            &*instruction.destinations(),
            *destinations,
            "destinations of {mnemonic} {values:?}"
        );
    }
}
