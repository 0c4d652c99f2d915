//! The interruption status register field by field, and which of several faults at once is taken.

use sidestep_ia64::FaultKind;
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control;

use super::harness::*;

const X: u64 = 1 << 32;
const W: u64 = 1 << 33;
const R: u64 = 1 << 34;
const NA: u64 = 1 << 35;
const SP: u64 = 1 << 36;
const RS: u64 = 1 << 37;
const IR: u64 = 1 << 38;
const NI: u64 = 1 << 39;
const ED: u64 = 1 << 43;

#[test]
fn each_reference_describes_itself_in_isr() {
    let miss = FaultKind::AlternateDataTlb;
    let cases: &[(Line, u64)] = &[
        (("ld1", 0, &[8, 9]), R),
        (("ld8.a", 0, &[8, 9]), R),
        (("ld8.s", 0, &[8, 9]), R | SP),
        (("ld8.sa", 0, &[8, 9]), R | SP),
        (("ld8.fill", 0, &[8, 9]), R),
        (("ldfd", 0, &[8, 9]), R),
        (("ldfd.s", 0, &[8, 9]), R | SP),
        (("st1", 0, &[9, 8]), W),
        (("stfd", 0, &[9, 8]), W),
        (("xchg8", 0, &[8, 9, 10]), R | W),
        (("fetchadd8.acq", 0, &[8, 9, 1]), R | W),
        (("fc", 0, &[9]), R | NA | 1),
        (("tpa", 0, &[8, 9]), NA),
        (("probe.r", 0, &[8, 9, 0]), R | NA | 2),
        (("probe.w", 0, &[8, 9, 0]), W | NA | 2),
        (("lfetch.fault", 0, &[9]), R | NA | 4),
        (("probe.r.fault", 0, &[9, 0]), R | NA | 5),
        (("probe.w.fault", 0, &[9, 0]), W | NA | 5),
        (("probe.rw.fault", 0, &[9, 0]), R | W | NA | 5),
    ];
    for &(line, isr) in cases {
        let mut machine = translating();
        assert_eq!(machine.run(&[line]), Some(miss.vector()), "{line:?}");
        assert_eq!(machine.isr(), isr, "{line:?}");
        assert_eq!(machine.control(control::IFA), REGION_1 | 0x4008, "{line:?}");
    }
}

#[test]
fn a_nat_that_is_consumed_is_told_from_a_nat_page() {
    for (line, isr) in [
        (("ld8", 0, &[8, 9][..]), R | 0x10),
        (("st8", 0, &[9, 8]), W | 0x10),
        (("xchg8", 0, &[8, 9, 10]), R | W | 0x10),
        (("fc", 0, &[9]), R | NA | 0x11),
        (("probe.r", 0, &[8, 9, 0]), NA | 0x12),
        (("lfetch.fault", 0, &[9]), R | NA | 0x14),
        (("tpa", 0, &[8, 9]), NA | 0x10),
    ] {
        let mut machine = translating();
        machine.processor.general.set_with_nat(9, 0, true);
        assert_eq!(machine.run(&[line]), Some(FaultKind::NatConsumption.vector()));
        assert_eq!(machine.isr(), isr, "{line:?}");
    }
    let mut machine = translating();
    machine.insert("itc.d", 0, REGION_1 | 0x4000, pte(DATA, RWX, 0) | 7 << 2, 14);
    assert_eq!(machine.run(&[LOAD]), Some(FaultKind::NatConsumption.vector()));
    assert_eq!(machine.isr(), R | 0x20);
}

#[test]
fn the_slot_and_nesting_are_noted() {
    use sidestep_ia64::encoding::{Bundle, Form, Template};
    let encode = |mnemonic: &str, values: &[i64]| {
        let form = Form::named(mnemonic)
            .find(|form| form.operands.len() == values.len())
            .expect("the form exists");
        form.encode(0, values, &[]).expect("values fit").slot
    };
    // Memory, memory, integer: the second memory slot faults.
    let slots = [
        encode("nop.m", &[0]),
        encode("ld8", &[8, 9]),
        encode("nop.i", &[0]),
    ];
    for (status, nested) in [(psr::IC, 0), (0, NI)] {
        let mut machine = translating();
        machine.processor.status = psr::DT | status;
        machine.write(CODE, &Bundle::new(Template::new(0x09), slots).to_bytes());
        machine.processor.set_instruction_pointer(CODE, 0);
        let kind = if nested == 0 {
            FaultKind::AlternateDataTlb
        } else {
            FaultKind::DataNestedTlb
        };
        assert_eq!(machine.go_on(), Some(kind.vector()));
        assert_eq!(machine.isr(), R | 1 << 41 | nested);
        if nested == 0 {
            assert_eq!(machine.control(control::IPSR) >> 41 & 3, 1);
        }
    }
}

#[test]
fn iipa_names_the_bundle_that_completed_last() {
    // Blocks of the execution loop have 64 bundles at most.
    for before in [1, 2, 5, 64, 65] {
        let mut machine = translating();
        let mut lines = vec![("nop.m", 0, &[0][..]); before];
        lines.push(LOAD);
        assert!(machine.run(&lines).is_some());
        let ip = machine.control(control::IIP);
        assert_eq!(machine.control(control::IIPA), ip - 16, "{before} bundles before");
    }
}

#[test]
fn a_fetch_and_a_fill_are_told_from_data() {
    let mut machine = Machine::new();
    machine.translate_code();
    machine.processor.status |= psr::IC;
    machine.processor.branch[6] = CODE + (1 << 20);
    assert_eq!(
        machine.run(&[("br.cond B4", 0, &[6])]),
        Some(FaultKind::AlternateInstructionTlb.vector())
    );
    assert_eq!(machine.isr(), X);
    assert_eq!(machine.control(control::IFA), CODE + (1 << 20));
    // A store of the register stack engine is an instruction's, a load behind a return is nobody's.
    let mut machine = Machine::new();
    machine.translate_code();
    machine.processor.system.region[1] = 14 << 2;
    machine.processor.status |= psr::IC | psr::RT;
    machine.processor.register_stack_mut().restart(REGION_1, 0);
    let program = [
        ("alloc", 0, &[14, 64, 4, 4, 0][..]),
        ("cover", 0, &[]),
        ("flushrs", 0, &[]),
    ];
    assert_eq!(machine.run(&program), Some(FaultKind::AlternateDataTlb.vector()));
    assert_eq!(machine.isr(), W | RS);
    machine.set_control(control::IIP, CODE + 16);
    machine.set_control(control::IPSR, psr::IC | psr::RT | psr::IT);
    machine.set_control(control::IFS, 1 << 63 | 4);
    machine
        .processor
        .register_stack_mut()
        .restart(REGION_1 | 0x100, 0);
    assert_eq!(
        machine.run(&[("rfi", 0, &[])]),
        Some(FaultKind::AlternateDataTlb.vector())
    );
    assert_eq!(machine.isr(), R | RS | IR);
}

#[test]
fn a_deferring_code_page_shows_in_the_ed_bit_of_references_only() {
    for (line, expected) in [
        (LOAD, R | ED),
        (STORE, W | ED),
        (("ld8.s", 0, &[8, 9]), R | SP | ED),
        (("break.m", 0, &[5]), 0),
    ] {
        let mut machine = translating();
        machine.translate_code();
        machine.insert("itr.i", 0, CODE, pte(CODE, 3, 3) | 1 << 52, 16);
        assert!(machine.run(&[line]).is_some());
        assert_eq!(machine.isr(), expected, "{line:?}");
    }
}

#[test]
fn general_exceptions_say_what_was_wrong() {
    for (level, line, code) in [
        (0, ("mov M33", 0, &[8, 3][..]), 0x00),
        (3, ("mov M33", 0, &[8, 0]), 0x10),
        (3, ("mov.m M29", 0, &[0, 8]), 0x20),
        (0, ("mov M32", 0, &[0, 9]), 0x30),
        (0, ("rum", 0, &[1 << 6]), 0x30),
        (0, ("break.m", 0, &[7]), 0),
    ] {
        let mut machine = Machine::new();
        machine.processor.status = psr::IC;
        machine.processor.general.set(9, u64::MAX);
        machine.processor.set_privilege_level(level);
        let entered = machine.run(&[line]);
        let kind = if line.0 == "break.m" {
            assert_eq!(machine.control(control::IIM), 7);
            FaultKind::Break
        } else {
            FaultKind::GeneralException
        };
        assert_eq!(entered, Some(kind.vector()), "{line:?}");
        assert_eq!(machine.isr(), code, "{line:?}");
    }
}

/// Conditions of a store that is wrong in every way, in the manual's order of priority (volume 2, table 5-6): what
/// mends each, so that the next one shows.
#[test]
fn of_faults_at_once_the_first_in_the_manuals_order_is_taken() {
    let page = REGION_1 | 0x4000;
    let wrong = pte(DATA, 0, 0) & !(3 << 5) & !1;
    let mut machine = translating();
    machine.processor.status |= psr::PK | psr::AC | psr::DB;
    machine.processor.system.data_breakpoint[0] = page | 0x9;
    machine.processor.system.data_breakpoint[1] = (1 << 56) - 1 | 0xf << 56 | 1 << 62;
    machine.processor.general.set(9, page | 0x9);
    machine.processor.general.set_with_nat(8, 1, true);
    let status = machine.processor.status;
    let next = |machine: &mut Machine, kind: FaultKind| {
        machine.processor.status = status;
        assert_eq!(machine.run(&[STORE]), Some(kind.vector()), "{kind:?}");
    };
    next(&mut machine, FaultKind::NatConsumption);
    machine.processor.general.set(8, 1);
    next(&mut machine, FaultKind::AlternateDataTlb);
    let remap = |machine: &mut Machine, pte: u64| {
        machine.insert_with_key("itc.d", page, pte, 14, 6);
        machine.processor.general.set(8, 1);
        machine.processor.general.set(9, page | 0x9);
    };
    remap(&mut machine, wrong);
    next(&mut machine, FaultKind::PageNotPresent);
    remap(&mut machine, wrong | 1 | 7 << 2);
    next(&mut machine, FaultKind::NatConsumption);
    remap(&mut machine, wrong | 1);
    next(&mut machine, FaultKind::DataKeyMiss);
    machine.processor.system.protection_key[0] = 6 << 8 | 1 << 1 | 1;
    next(&mut machine, FaultKind::KeyPermission);
    machine.processor.system.protection_key[0] = 6 << 8 | 1;
    next(&mut machine, FaultKind::DataAccessRights);
    remap(&mut machine, wrong | 1 | RWX << 9);
    next(&mut machine, FaultKind::DirtyBit);
    remap(&mut machine, wrong | 1 | RWX << 9 | 1 << 6);
    next(&mut machine, FaultKind::DataAccessBit);
    remap(&mut machine, pte(DATA, RWX, 0));
    next(&mut machine, FaultKind::Debug);
    machine.processor.system.data_breakpoint[1] = 0;
    next(&mut machine, FaultKind::UnalignedReference);
    machine.processor.status = status & !psr::AC;
    assert_eq!(machine.run(&[STORE]), None, "nothing is left");
}
