//! Where references of a processor in system mode go: physical and virtual addressing, insertions and purges, rights.

use sidestep_ia64::FaultKind;
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control;

use super::harness::*;

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

#[test]
fn every_page_size_translates_its_first_and_last_doubleword_and_nothing_beyond() {
    for size_log2 in [12, 13, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32] {
        let (size, page) = (1u64 << size_log2, REGION_1 | 3 << 32);
        let mut machine = translating();
        machine.insert("itc.d", 0, page | 0x123 & (size - 1), pte(0, RWX, 0), size_log2);
        let last = (size - 8).min(MEMORY - 8);
        machine.write_words(last, &[size]);
        for (offset, is_mapped) in [
            (last, true),
            (0, true),
            (size, false),
            (0u64.wrapping_sub(8), false),
        ] {
            machine.processor.status |= psr::DT | psr::IC;
            machine.processor.general.set(9, page.wrapping_add(offset));
            let missed = machine.run(&[LOAD]);
            let expected = (!is_mapped).then_some(FaultKind::AlternateDataTlb.vector());
            assert_eq!(missed, expected, "2^{size_log2} bytes, offset {offset:#x}");
        }
        machine.processor.status |= psr::DT;
        machine.processor.general.set(9, page | last);
        assert_eq!(machine.run(&[LOAD]), None);
        assert_eq!(machine.processor.general.value(8), size);
    }
    // Other sizes are reserved: an insertion of 8 bits more raises the fault of a reserved field.
    for size_log2 in [11, 15, 17, 33, 63] {
        let mut machine = Machine::new();
        machine.set_control(control::ITIR, size_log2 << 2);
        machine.processor.general.set(2, pte(0, RWX, 0));
        assert_eq!(
            machine.run(&[("itc.d", 0, &[2])]),
            Some(FaultKind::GeneralException.vector())
        );
        assert_eq!(machine.isr() & 0xff, 0x30, "2^{size_log2} bytes");
    }
}

#[test]
fn a_purge_of_any_size_takes_every_page_that_it_touches() {
    for (page_log2, purge_log2, offset, is_gone) in [
        (14, 12, 0x2000, true),
        (14, 14, 0, true),
        (14, 14, 0x4000, false),
        (14, 16, 0x8000, true),
        (12, 24, 0x7f_0000, true),
        (22, 12, 0x3f_f000, true),
        (22, 12, 0x40_0000, false),
    ] {
        let mut machine = translating();
        machine.insert("itc.d", 0, REGION_1, pte(0, RWX, 0), page_log2);
        machine.processor.general.set(9, REGION_1 | 0x10);
        // Looked up once before, so that the purge has to reach what the processor keeps at hand.
        assert_eq!(machine.run(&[LOAD]), None);
        machine.processor.general.set(10, REGION_1 | offset);
        machine.processor.general.set(11, purge_log2 << 2);
        let purged = machine.run(&[("ptc.l", 0, &[10, 11]), LOAD]);
        let expected = is_gone.then_some(FaultKind::AlternateDataTlb.vector());
        assert_eq!(
            purged, expected,
            "2^{page_log2}, purge of 2^{purge_log2} at {offset:#x}"
        );
    }
}

#[test]
fn a_region_register_write_changes_the_translation_at_once() {
    let mut machine = translating();
    machine.write_words(DATA + 8, &[1]);
    machine.write_words(DATA + 0x1_0008, &[2]);
    machine.insert("itc.d", 0, REGION_1 | 0x4000, pte(DATA, RWX, 0), 14);
    machine.processor.system.region[1] = 14 << 2 | 8 << 8;
    machine.insert("itc.d", 0, REGION_1 | 0x4000, pte(DATA + 0x1_0000, RWX, 0), 14);
    machine.processor.general.set(10, REGION_1);
    machine.processor.general.set(11, 14 << 2 | 7 << 8);
    let program = [
        LOAD,
        ("mov M42 Region", 0, &[10, 11][..]),
        ("srlz.d", 0, &[]),
        ("ld8", 0, &[12, 9]),
    ];
    machine.processor.general.set(9, REGION_1 | 0x4008);
    assert_eq!(machine.run(&program), None);
    assert_eq!(machine.processor.general.value(8), 2, "region identifier 8");
    assert_eq!(machine.processor.general.value(12), 1, "region identifier 7");
}

#[test]
fn protection_keys_permit_by_kind_of_access_and_only_under_psr_pk() {
    const READ: u64 = 1 << 2;
    const WRITE: u64 = 1 << 1;
    let key = 0x1_2345 << 8;
    let (miss, denied) = (FaultKind::DataKeyMiss, FaultKind::KeyPermission);
    for (status, register, line, kind) in [
        (0, 0, LOAD, None),
        (psr::PK, 0, LOAD, Some(miss)),
        (psr::PK, key, LOAD, Some(miss)),
        (psr::PK, key | 1, LOAD, None),
        (psr::PK, key | READ | 1, LOAD, Some(denied)),
        (psr::PK, key | READ | 1, STORE, None),
        (psr::PK, key | WRITE | 1, STORE, Some(denied)),
        (psr::PK, key | WRITE | 1, LOAD, None),
        (psr::PK, key | READ | 1, ("xchg8", 0, &[8, 9, 10]), Some(denied)),
        (psr::PK, (key ^ 1 << 8) | 1, LOAD, Some(miss)),
    ] {
        let mut machine = translating();
        machine.insert_with_key("itc.d", REGION_1 | 0x4000, pte(DATA, RWX, 0), 14, 0x1_2345);
        machine.processor.system.protection_key[5] = register;
        machine.processor.status |= status;
        let vector = kind.map(FaultKind::vector);
        assert_eq!(machine.run(&[line]), vector, "{register:#x} {line:?}");
    }
}
