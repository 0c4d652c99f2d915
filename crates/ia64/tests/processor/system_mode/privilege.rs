//! What needs privilege level 0, what a virtual machine is refused, and the gates between levels.

use sidestep_ia64::FaultKind;
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control;

use super::harness::*;

#[test]
fn privileged_instructions_fault_at_other_levels_and_in_virtual_machines() {
    for line in [
        ("rfi", 0, &[][..]),
        ("ssm", 0, &[1 << 13][..]),
        ("ptc.e", 0, &[9][..]),
        ("mov M33", 0, &[8, 16][..]),
    ] {
        let mut machine = Machine::new();
        machine.processor.status = psr::IC;
        machine.processor.set_privilege_level(3);
        assert_eq!(
            machine.run(&[line]),
            Some(FaultKind::GeneralException.vector()),
            "{}",
            line.0
        );
        assert_eq!(machine.control(control::ISR) & 0xff, 0x10);
        let mut machine = Machine::new();
        machine.processor.status = psr::IC | psr::VM;
        assert_eq!(
            machine.run(&[line]),
            Some(FaultKind::Virtualization.vector()),
            "{}",
            line.0
        );
    }
}

#[test]
fn a_virtual_machine_is_refused_what_shows_or_changes_the_monitors_state() {
    for line in [("cover", 0, &[][..]), ("thash", 0, &[8, 9]), ("ttag", 0, &[8, 9])] {
        let mut machine = Machine::new();
        machine.processor.status = psr::IC | psr::VM;
        let intercepted = Some(FaultKind::Virtualization.vector());
        assert_eq!(machine.run(&[line]), intercepted, "{}", line.0);
    }
    // Half of each region's addresses belongs to the monitor.
    let mut machine = translating();
    machine.processor.general.set(9, REGION_1 | 1 << 60);
    machine.processor.status |= psr::VM;
    assert_eq!(machine.run(&[LOAD]), Some(FaultKind::GeneralException.vector()));
    assert_eq!(machine.control(control::ISR) & 0xff, 0x30, "unimplemented");
}

#[test]
fn epc_on_a_gate_page_promotes_and_the_return_demotes() {
    let mut machine = Machine::new();
    machine.insert("itr.i", 0, VECTORS & !0xffff, pte(0, 3, 3), 16);
    machine.insert("itr.i", 1, CODE, pte(CODE, 7, 0), 16);
    machine.processor.status = psr::IC | psr::IT;
    machine.processor.set_privilege_level(3);
    machine
        .processor
        .set_application(sidestep_ia64::registers::application::PFS, 3 << 62);
    assert_eq!(
        machine.run(&[("epc", 0, &[])]),
        None,
        "the hypercall behind it needs level 0"
    );
    assert_eq!(machine.processor.privilege_level(), 0);
    machine.processor.branch[0] = CODE + 16;
    assert_eq!(
        machine.run(&[("br.ret", 0, &[0])]),
        Some(FaultKind::Break.vector()),
        "a break at level 3"
    );
    assert_eq!(machine.control(control::IIM), HYPERCALL);
    assert_eq!(machine.control(control::IPSR) >> 32 & 3, 3);
}

#[test]
fn a_program_does_not_inherit_what_the_gate_page_has_looked_up() {
    let mut machine = translating();
    machine.insert("itr.i", 0, VECTORS & !0xffff, pte(0, 3, 3), 16);
    machine.insert("itr.i", 1, CODE, pte(CODE, 7, 0), 16);
    machine.insert("itr.d", 0, REGION_1 | 0x4000, pte(DATA, RWX, 0), 14);
    machine.processor.status |= psr::IT;
    machine.processor.set_privilege_level(3);
    machine
        .processor
        .set_application(sidestep_ia64::registers::application::PFS, 3 << 62);
    machine.processor.branch[0] = CODE + 3 * 16;
    let program = [("epc", 0, &[][..]), LOAD, ("br.ret", 0, &[0]), LOAD];
    assert_eq!(machine.run(&program), Some(FaultKind::DataAccessRights.vector()));
    assert_eq!(machine.control(control::IIP), CODE + 3 * 16);
}

#[test]
fn a_byte_order_that_a_program_has_chosen_holds_on_the_gate_page_too() {
    let mut machine = translating();
    machine.insert("itr.i", 0, VECTORS & !0xffff, pte(0, 3, 3), 16);
    machine.insert("itr.i", 1, CODE, pte(CODE, 7, 0), 16);
    machine.insert("itr.d", 0, REGION_1 | 0x4000, pte(DATA, RWX, 3), 14);
    machine.write_words(DATA + 8, &[0x0102_0304_0506_0708]);
    machine.processor.status |= psr::IT;
    machine.processor.set_privilege_level(3);
    machine
        .processor
        .set_application(sidestep_ia64::registers::application::PFS, 3 << 62);
    machine.processor.branch[0] = CODE + 3 * 16;
    let program = [
        ("epc", 0, &[][..]),
        LOAD,
        ("br.ret", 0, &[0]),
        ("sum", 0, &[2]),
        ("epc", 0, &[]),
        LOAD,
    ];
    assert_eq!(machine.run(&program), None);
    assert_eq!(machine.processor.general.value(8), 0x0807_0605_0403_0201);
}
