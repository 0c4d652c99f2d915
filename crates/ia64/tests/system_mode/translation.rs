//! Where references of a processor in system mode go: physical and virtual addressing, insertions and purges, rights.

use sidestep_ia64::FaultKind;
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control;

use crate::harness::*;

#[test]
fn physical_addressing_reaches_memory_and_devices() {
    let mut machine = Machine::new();
    machine.write_words(DATA, &[0x1234]);
    machine.processor.general.set(9, DATA);
    assert_eq!(machine.run(&[LOAD]), None);
    assert_eq!(machine.processor.general.value(8), 0x1234);
    machine.processor.general.set(9, DEVICE);
    assert_eq!(machine.run(&[STORE, ("ld4", 0, &[8, 9])]), None);
    assert_eq!(machine.stored(), 0x1234);
    assert_eq!(machine.processor.general.value(8), 4);
    machine.processor.general.set(9, DEVICE + 8);
    assert_eq!(
        machine.run(&[LOAD]),
        Some(FaultKind::UnsupportedReference.vector())
    );
}

#[test]
fn a_data_reference_without_translation_collects_its_address() {
    let mut machine = translating();
    assert_eq!(
        machine.run(&[("nop.m", 0, &[0]), LOAD]),
        Some(FaultKind::AlternateDataTlb.vector())
    );
    assert_eq!(machine.control(control::IFA), REGION_1 | 0x4008);
    assert_eq!(machine.control(control::ITIR), 14 << 2 | 7 << 8);
    assert_eq!(machine.control(control::IIP), CODE + 16);
    assert_eq!(machine.control(control::ISR), 1 << 34, "a read in slot 0");
    assert_eq!(
        machine.control(control::IPSR) & (psr::DT | psr::IC),
        psr::DT | psr::IC
    );
    assert_eq!(machine.processor.status & psr::IC, 0);
    // Without collection the same reference nests, and the registers keep the first fault.
    let mut nested = translating();
    nested.processor.status &= !psr::IC;
    assert_eq!(nested.run(&[LOAD]), Some(FaultKind::DataNestedTlb.vector()));
    assert_eq!(nested.control(control::IIP), 0);
}

#[test]
fn an_inserted_page_translates_until_it_is_purged() {
    let mut machine = translating();
    machine.write_words(DATA + 8, &[77]);
    machine.insert("itc.d", 0, REGION_1 | 0x4000, pte(DATA, RWX, 0), 14);
    assert_eq!(machine.run(&[LOAD]), None);
    assert_eq!(machine.processor.general.value(8), 77);
    machine.processor.general.set(10, 14 << 2);
    assert_eq!(
        machine.run(&[("ptc.l", 0, &[9, 10]), LOAD]),
        Some(FaultKind::AlternateDataTlb.vector())
    );
}

#[test]
fn rights_and_dirty_and_accessed_bits_fault_in_the_order_of_the_manual() {
    let all = pte(DATA, RWX, 0);
    for (word, line, kind) in [
        (all & !1, LOAD, FaultKind::PageNotPresent),
        (all | 7 << 2, LOAD, FaultKind::NatConsumption),
        (all & !(7 << 9), STORE, FaultKind::DataAccessRights),
        (all & !(7 << 9) & !(1 << 6), STORE, FaultKind::DataAccessRights),
        (all & !(1 << 6), STORE, FaultKind::DirtyBit),
        (all & !(1 << 5), LOAD, FaultKind::DataAccessBit),
        (all & !(3 << 5), STORE, FaultKind::DirtyBit),
    ] {
        let mut machine = translating();
        machine.insert("itc.d", 0, REGION_1 | 0x4000, word, 14);
        assert_eq!(
            machine.run(&[line]),
            Some(kind.vector()),
            "{kind:?} for {word:#x}"
        );
    }
}
