//! Floating-point instructions on a processor: registers, flags, faults, traps, memory, speculation.

use crate::machine::{CODE, DATA, Machine};
use sidestep_ia64::float::FloatRegister;
use sidestep_ia64::registers::application::FPSR;
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::{Fault, FaultKind};

const F6: u8 = 6;

fn double(value: f64) -> FloatRegister {
    FloatRegister::from_double(value.to_bits())
}

fn machine(registers: &[(u8, FloatRegister)]) -> Machine {
    let mut machine = Machine::new();
    for (register, value) in registers {
        machine.processor.set_floating(*register, *value);
    }
    machine.processor.status = 0;
    machine
}

/// Clears bits of the FPSR: enables traps.
fn enable(machine: &mut Machine, traps: u64) {
    let fpsr = machine.processor.application(FPSR);
    machine.processor.set_application(FPSR, fpsr & !traps);
}

/// The flags of a status field.
fn flags(machine: &Machine, field: u32) -> u64 {
    machine.processor.application(FPSR) >> (13 + 13 * field) & 0x3F
}

const INVALID: u64 = 1;
const DENORMAL: u64 = 2;
const ZERO_DIVIDE: u64 = 4;
const INEXACT: u64 = 0x20;

#[test]
fn a_result_goes_to_its_register_and_its_flags_to_their_field() {
    let mut machine = machine(&[(7, double(0.1)), (8, double(3.0)), (40, double(1.0))]);
    machine.run(&[("fma.d.s2", 0, &[6, 7, 8, 40])]).unwrap();
    assert_eq!(
        machine.processor.floating(F6).to_double(),
        0.1f64.mul_add(3.0, 1.0).to_bits()
    );
    assert_eq!(
        [0, 1, 2, 3].map(|field| flags(&machine, field)),
        [0, 0, INEXACT, 0]
    );
    assert_eq!(machine.processor.status, psr::MFL);
    machine.run(&[("fma.d.s0", 0, &[41, 7, 8, 40])]).unwrap();
    assert_eq!(machine.processor.status, psr::MFL | psr::MFH);
}

#[test]
fn precision_comes_from_the_completer_or_the_status_field() {
    let third = FloatRegister::new(false, 0xFFFD, 0xAAAA_AAAA_AAAA_AAAB);
    let mut machine = machine(&[(7, third)]);
    machine.run(&[("fma.s0", 0, &[6, 7, 1, 0])]).unwrap();
    assert_eq!(machine.processor.floating(F6), third);
    machine.run(&[("fma.s.s0", 0, &[6, 7, 1, 0])]).unwrap();
    assert_eq!(
        machine.processor.floating(F6).significand(),
        0xAAAA_AB00_0000_0000
    );
    // pc of s0 becomes double (2), rounding towards zero (3).
    machine
        .run(&[("fsetc.s0", 0, &[0, 0x38]), ("fma.s0", 0, &[6, 7, 1, 0])])
        .unwrap();
    assert_eq!(
        machine.processor.floating(F6).significand(),
        0xAAAA_AAAA_AAAA_A800
    );
}

#[test]
fn an_enabled_fault_changes_nothing_and_names_its_cause() {
    let infinity = FloatRegister::infinity(false);
    let mut machine = machine(&[
        (6, double(7.0)),
        (7, infinity),
        (8, FloatRegister::new(false, 5, 9)),
    ]);
    enable(&mut machine, 0x3F);
    let fault = machine.run(&[("fms.d.s0", 0, &[6, 7, 1, 7])]).unwrap_err();
    assert_eq!(fault, Fault::new(FaultKind::FloatingPointFault, INVALID));
    let fault = machine.run(&[("fma.d.s0", 0, &[6, 8, 1, 1])]).unwrap_err();
    assert_eq!(fault, Fault::new(FaultKind::FloatingPointFault, DENORMAL));
    let fault = machine.run(&[("frcpa.s0", 0, &[6, 5, 1, 0])]).unwrap_err();
    assert_eq!(fault, Fault::new(FaultKind::FloatingPointFault, ZERO_DIVIDE));
    assert_eq!(machine.processor.instruction_pointer(), (CODE, 1));
    assert_eq!(machine.processor.floating(F6), double(7.0));
    assert!(machine.processor.predicate(5));
    assert_eq!(flags(&machine, 0), 0);
    // s1 has its traps disabled.
    machine.run(&[("fms.d.s1", 0, &[6, 7, 1, 7])]).unwrap();
    assert_eq!(machine.processor.floating(F6), FloatRegister::DEFAULT_NAN);
    assert_eq!(flags(&machine, 1), INVALID);
}

#[test]
fn an_enabled_trap_comes_after_the_result() {
    let mut machine = machine(&[(7, double(1e300))]);
    enable(&mut machine, 0x3F);
    let trap = machine.run(&[("fma.d.s0", 0, &[6, 7, 7, 0])]).unwrap_err();
    assert_eq!(trap.kind, FaultKind::FloatingPointTrap);
    // Overflow (11) and inexact (13); the magnitude was rounded down, so no fpa (14). Bit 0 says floating point.
    assert_eq!(trap.isr & 0x3FFF, 0x2801);
    assert_eq!(machine.processor.trapped_instruction(), (CODE, 1));
    assert_eq!(machine.processor.instruction_pointer(), (CODE, 2));
    assert_eq!(machine.processor.floating(F6).exponent(), 0xFFFF + 1993);
    assert_eq!(flags(&machine, 0), 0x28);
}

#[test]
fn disabled_registers_fault_before_anything_else() {
    let mut machine = machine(&[(7, FloatRegister::infinity(false))]);
    enable(&mut machine, 0x3F);
    machine.processor.status = psr::DFL;
    let fault = machine.run(&[("fms.d.s0", 0, &[6, 7, 1, 40])]).unwrap_err();
    assert_eq!(fault, Fault::new(FaultKind::DisabledFloatingPoint, 1));
    machine.processor.status = psr::DFL | psr::DFH;
    let fault = machine.run(&[("fms.d.s0", 0, &[6, 7, 1, 40])]).unwrap_err();
    assert_eq!(fault.isr, 3);
    machine.processor.status = psr::DFH;
    machine.processor.general.set(14, DATA);
    let fault = machine.run(&[("ldfd", 0, &[33, 14])]).unwrap_err();
    assert_eq!(fault, Fault::new(FaultKind::DisabledFloatingPoint, 2 | 1 << 34));
    // The constants are never disabled.
    machine.run(&[("fcmp.eq.s0", 0, &[6, 7, 0, 1])]).unwrap();
}

#[test]
fn constants_are_no_targets() {
    let mut machine = machine(&[]);
    for line in [
        ("fma.d.s0", 0, &[1i64, 7, 8, 9][..]),
        ("fcvt.xf", 0, &[0, 7]),
        ("frcpa.s0", 0, &[1, 6, 7, 8]),
    ] {
        assert_eq!(machine.run(&[line]), Err(Fault::illegal_operation()), "{line:?}");
    }
    // Without its predicate the approximation only clears its target predicate.
    machine.processor.predicates = 1 << 6 | 1;
    machine.run(&[("frcpa.s0", 7, &[1, 6, 7, 8])]).unwrap();
    assert!(!machine.processor.predicate(6));
}

#[test]
fn compares_write_two_predicates() {
    let mut machine = machine(&[(7, double(1.0)), (8, double(2.0)), (9, FloatRegister::NATVAL)]);
    let predicates = |machine: &Machine| (machine.processor.predicate(6), machine.processor.predicate(7));
    machine.run(&[("fcmp.lt.s0", 0, &[6, 7, 7, 8])]).unwrap();
    assert_eq!(predicates(&machine), (true, false));
    machine.run(&[("fcmp.le.unc.s0", 0, &[6, 7, 8, 7])]).unwrap();
    assert_eq!(predicates(&machine), (false, true));
    machine.run(&[("fcmp.eq.s0", 0, &[6, 7, 8, 9])]).unwrap();
    assert_eq!(predicates(&machine), (false, false));
    machine.run(&[("fclass.m", 0, &[6, 7, 8, 0x11])]).unwrap();
    assert_eq!(predicates(&machine), (true, false));
    machine.processor.set_predicate(9, false);
    machine.run(&[("fclass.m", 9, &[6, 7, 8, 0x12])]).unwrap();
    assert_eq!(predicates(&machine), (true, false));
    machine.run(&[("fclass.m.unc", 9, &[6, 7, 8, 0x11])]).unwrap();
    assert_eq!(predicates(&machine), (false, false));
    assert_eq!(
        machine.run(&[("fcmp.eq.s0", 0, &[6, 6, 7, 8])]),
        Err(Fault::illegal_operation())
    );
}

#[test]
fn the_division_sequence_divides() {
    // The minimum-latency double-precision sequence of the Itanium literature.
    for (a, b) in [
        (355.0, 113.0),
        (1.0, 3.0),
        (-5e-324, 7.0),
        (1e308, 1e-5),
        (2.0, 0.0),
        (0.0, 0.0),
    ] {
        let mut machine = machine(&[(8, double(a)), (9, double(b))]);
        let p = 6;
        machine
            .run(&[
                ("frcpa.s0", 0, &[10, p, 8, 9]),
                ("fma.s1", p as u8, &[11, 8, 10, 0]),
                ("fnma.s1", p as u8, &[12, 9, 10, 1]),
                ("fma.s1", p as u8, &[11, 12, 11, 11]),
                ("fma.s1", p as u8, &[13, 12, 12, 0]),
                ("fma.s1", p as u8, &[10, 12, 10, 10]),
                ("fma.s1", p as u8, &[11, 13, 11, 11]),
                ("fma.s1", p as u8, &[12, 13, 13, 0]),
                ("fma.s1", p as u8, &[10, 13, 10, 10]),
                ("fma.d.s1", p as u8, &[11, 12, 11, 11]),
                ("fma.s1", p as u8, &[10, 12, 10, 10]),
                ("fnma.d.s1", p as u8, &[14, 9, 11, 8]),
                ("fma.d.s0", p as u8, &[10, 14, 10, 11]),
            ])
            .unwrap();
        let quotient = f64::from_bits(machine.processor.floating(10).to_double());
        if (a / b).is_nan() {
            assert!(quotient.is_nan());
        } else {
            assert_eq!(quotient, a / b, "{a} / {b}");
        }
    }
}

#[test]
fn loads_and_stores_convert_and_update() {
    let mut machine = machine(&[
        (7, double(-1.5)),
        (9, FloatRegister::new(true, 0x1ABCD, 0x8123_4567_89AB_CDEF)),
    ]);
    machine.processor.general.set(14, DATA);
    machine
        .run(&[
            ("stfs", 0, &[14, 7, 4]),
            ("stfd", 0, &[14, 7, 12]),
            ("stf.spill", 0, &[14, 9, 16]),
            ("stfe", 0, &[14, 7, 16]),
            ("stf8", 0, &[14, 9]),
        ])
        .unwrap();
    assert_eq!(machine.processor.general.value(14), DATA + 48);
    let data = machine.data();
    assert_eq!(data[0..4], (-1.5f32).to_le_bytes());
    assert_eq!(data[4..12], (-1.5f64).to_le_bytes());
    assert_eq!(data[16..24], 0x8123_4567_89AB_CDEFu64.to_le_bytes());
    assert_eq!(data[24..32], 0x3_ABCDu64.to_le_bytes());
    assert_eq!(data[32..42], [0, 0, 0, 0, 0, 0, 0, 0xC0, 0xFF, 0xBF]);
    assert_eq!(data[48..56], 0x8123_4567_89AB_CDEFu64.to_le_bytes());

    machine.processor.general.set(14, DATA);
    machine
        .run(&[
            ("ldfs", 0, &[32, 14, 16]),
            ("ldf.fill", 0, &[33, 14, 16]),
            ("ldfe", 0, &[34, 14]),
            ("ldf8", 0, &[35, 14]),
        ])
        .unwrap();
    let registers = [32, 33, 34, 35].map(|register| machine.processor.floating(register));
    let negative = FloatRegister::new(true, 0xFFFF, 0xC000_0000_0000_0000);
    assert_eq!(registers[0], negative);
    assert_eq!(
        registers[1],
        FloatRegister::new(true, 0x1ABCD, 0x8123_4567_89AB_CDEF)
    );
    assert_eq!(registers[2], negative);
    assert_eq!(
        registers[3],
        FloatRegister::from_significand(0xC000_0000_0000_0000)
    );
}

#[test]
fn pairs_load_into_an_even_and_an_odd_register() {
    let mut machine = machine(&[]);
    machine.data()[..8].copy_from_slice(&0x4000_0000_3F80_0000u64.to_le_bytes());
    machine.processor.general.set(14, DATA);
    machine.run(&[("ldfps", 0, &[7, 12, 14, 8])]).unwrap();
    assert_eq!(
        [7, 12].map(|register| machine.processor.floating(register)),
        [double(1.0), double(2.0)]
    );
    assert_eq!(machine.processor.general.value(14), DATA + 8);
    assert_eq!(
        machine.run(&[("ldfpd", 0, &[6, 12, 14])]),
        Err(Fault::illegal_operation())
    );
}

#[test]
fn a_store_that_reaches_an_unmapped_page_writes_nothing() {
    let mut machine = machine(&[(7, double(3.0))]);
    machine.processor.general.set(14, DATA + 4096 - 8);
    for mnemonic in ["stfe", "stf.spill"] {
        let fault = machine.run(&[(mnemonic, 0, &[14, 7])]).unwrap_err();
        assert_eq!(fault.kind, FaultKind::PageNotPresent);
        assert_eq!(machine.data()[4096 - 8..], [0; 8]);
    }
}

#[test]
fn natval_travels_and_is_consumed_by_stores() {
    let mut machine = machine(&[(7, FloatRegister::NATVAL)]);
    machine.processor.general.set(14, DATA);
    machine.processor.general.set_with_nat(15, 5, true);
    machine
        .run(&[("fma.d.s0", 0, &[8, 7, 1, 0]), ("setf.sig", 0, &[9, 15])])
        .unwrap();
    assert!(machine.processor.floating(8).is_natval() && machine.processor.floating(9).is_natval());
    machine.run(&[("getf.d", 0, &[16, 8])]).unwrap();
    assert!(machine.processor.general.nat(16));
    let fault = machine.run(&[("stfd", 0, &[14, 7])]).unwrap_err();
    assert_eq!(fault.kind, FaultKind::NatConsumption);
    machine
        .run(&[("stf.spill", 0, &[14, 7]), ("ldf.fill", 0, &[10, 14])])
        .unwrap();
    assert!(machine.processor.floating(10).is_natval());
}

#[test]
fn speculative_loads_defer_and_advanced_loads_are_checked() {
    let mut machine = machine(&[]);
    machine.processor.general.set(14, DATA + 0x1000);
    machine.run(&[("ldfd.s", 0, &[6, 14])]).unwrap();
    assert!(machine.processor.floating(F6).is_natval());

    machine.processor.general.set(14, DATA);
    machine.processor.set_floating(8, double(4.0));
    machine
        .run(&[
            ("ldfd.a", 0, &[6, 14]),
            ("stfd", 0, &[14, 8]),
            ("ldfd.c.clr", 0, &[6, 14]),
        ])
        .unwrap();
    assert_eq!(machine.processor.floating(F6), double(4.0));
    machine.processor.set_floating(F6, double(9.0));
    machine.run(&[("ldfd.a", 0, &[7, 14])]).unwrap();
    machine.processor.set_floating(7, double(5.0));
    machine.run(&[("ldfd.c.nc", 0, &[7, 14])]).unwrap();
    assert_eq!(
        machine.processor.floating(7),
        double(5.0),
        "a hit keeps the register"
    );
}

#[test]
fn checks_of_speculation_branch_on_natval_and_on_forgotten_loads() {
    let mut machine = machine(&[(7, FloatRegister::NATVAL), (8, double(0.0))]);
    machine.processor.general.set(14, DATA);
    let set = ("fma.d.s0", 0, &[6i64, 1, 1, 0][..]);
    let mut skips = |line| {
        machine.processor.set_floating(F6, FloatRegister::ZERO);
        machine.run(&[("ldfd.a", 0, &[9, 14]), line, set]).unwrap();
        machine.processor.floating(F6) == FloatRegister::ZERO
    };
    assert!(skips(("chk.s", 0, &[7, 32])));
    assert!(!skips(("chk.s", 0, &[8, 32])));
    assert!(!skips(("chk.a.nc", 0, &[9, 32])));
    assert!(skips(("chk.a.clr", 0, &[10, 32])));
}

#[test]
fn status_fields_are_set_cleared_and_checked() {
    let mut machine = machine(&[(7, double(0.1))]);
    machine.run(&[("fma.s.s2", 0, &[6, 7, 1, 0])]).unwrap();
    assert_eq!(flags(&machine, 2), INEXACT);
    machine
        .run(&[("fchkf.s2", 0, &[32]), ("fma.d.s0", 0, &[6, 1, 1, 0])])
        .unwrap();
    assert_ne!(
        machine.processor.floating(F6),
        FloatRegister::ONE,
        "the check branches over the next bundle"
    );
    machine
        .run(&[
            ("fclrf.s2", 0, &[]),
            ("fchkf.s2", 0, &[32]),
            ("fma.d.s0", 0, &[6, 1, 1, 0]),
        ])
        .unwrap();
    assert_eq!(machine.processor.floating(F6), FloatRegister::ONE);
    let fault = machine.run(&[("fsetc.s0", 0, &[0x7F, 0x40])]).unwrap_err();
    assert_eq!(fault, Fault::reserved_register_field());
}

#[test]
fn moves_and_parallel_operations_reach_the_arithmetic() {
    let mut machine = machine(&[(7, double(-2.0)), (8, double(3.0))]);
    machine.processor.general.set(14, 0x4000_0000_C040_0000);
    machine
        .run(&[
            ("fmerge.s", 0, &[9, 0, 7]),
            ("fmerge.ns", 0, &[10, 8, 8]),
            ("fpack", 0, &[11, 7, 8]),
            ("setf.sig", 0, &[12, 14]),
            ("fpma.s0", 0, &[13, 11, 12, 0]),
            ("fpcvt.fx.trunc.s0", 0, &[15, 13]),
            ("xma.l", 0, &[16, 12, 12, 12]),
            ("fcvt.fx.trunc.s0", 0, &[17, 7]),
            ("fcvt.xf", 0, &[18, 17]),
            ("fmin.s0", 0, &[19, 7, 8]),
            ("fselect", 0, &[20, 11, 12, 0]),
        ])
        .unwrap();
    let register = |index| machine.processor.floating(index);
    assert_eq!(register(9), double(2.0));
    assert_eq!(register(10), double(-3.0));
    assert_eq!(register(11).significand(), 0xC000_0000_4040_0000);
    assert_eq!(register(13).significand(), 0xC080_0000_C110_0000);
    assert_eq!(register(15).significand(), 0xFFFF_FFFC_FFFF_FFF7);
    let square = 0x4000_0000_C040_0000u64.wrapping_mul(0x4000_0000_C040_0000);
    assert_eq!(
        register(16).significand(),
        square.wrapping_add(0x4000_0000_C040_0000)
    );
    assert_eq!(register(17).significand(), -2i64 as u64);
    assert_eq!(register(18), double(-2.0));
    assert_eq!(register(19), double(-2.0));
    assert_eq!(register(20).significand(), 0x4000_0000_C040_0000);
}
