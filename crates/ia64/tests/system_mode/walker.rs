//! The VHPT and its walker, in both formats.

use sidestep_ia64::FaultKind;
use sidestep_ia64::mmu::vhpt::{PageTableAddress, RegionRegister, hash, tag};
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control;

use crate::harness::*;

#[test]
fn the_walker_fills_from_the_short_table() {
    let mut machine = translating();
    let table = PageTableAddress((1 << 61) - (1 << 15) & !0x7fff | 15 << 2 | 1);
    machine.set_control(control::PTA, table.0);
    machine.processor.system.region[1] |= 1;
    let region = RegionRegister(machine.processor.system.region[1]);
    let entry = hash(REGION_1 | 0x4008, region, table);
    // The walker reads the table through the data translations: without one it faults.
    assert_eq!(machine.run(&[LOAD]), Some(FaultKind::VhptTranslation.vector()));
    assert_eq!(machine.control(control::IHA), entry);
    machine.processor.status |= psr::DT | psr::IC;
    machine.insert("itr.d", 0, entry & !0x7fff, pte(TABLE, RWX, 0), 16 - 2);
    assert_eq!(
        machine.run(&[LOAD]),
        Some(FaultKind::PageNotPresent.vector()),
        "the entry is all zeros"
    );
    machine.processor.status |= psr::DT | psr::IC;
    machine.write_words(TABLE + (entry & 0x3fff), &[pte(DATA, RWX, 0)]);
    machine.write_words(DATA + 8, &[4711]);
    machine.processor.general.set(10, 14 << 2);
    assert_eq!(machine.run(&[("ptc.l", 0, &[9, 10]), LOAD]), None);
    assert_eq!(machine.processor.general.value(8), 4711);
    assert_eq!(machine.processor.mmu().unwrap().events.walker_hits, 2);
}

#[test]
fn the_long_table_needs_a_matching_tag_and_brings_page_size_and_key() {
    let mut machine = translating();
    let table = PageTableAddress(TABLE | 15 << 2 | 1 << 8 | 1);
    machine.set_control(control::PTA, table.0);
    machine.processor.system.region[1] |= 1;
    machine.processor.system.region[0] = 14 << 2;
    let region = RegionRegister(machine.processor.system.region[1]);
    let address = REGION_1 | 0x4008;
    let entry = hash(address, region, table);
    machine.insert("itr.d", 0, TABLE, pte(TABLE, RWX, 0), 16);
    machine.write_words(
        entry,
        &[pte(DATA, RWX, 0), 14 << 2 | 9 << 8, tag(address, region) ^ 1, 0],
    );
    assert_eq!(
        machine.run(&[LOAD]),
        Some(FaultKind::DataTlb.vector()),
        "another page's entry"
    );
    assert_eq!(machine.control(control::IHA), entry);
    machine.write_words(entry + 16, &[tag(address, region)]);
    // The table's own page has key 0, which the walker needs as well.
    machine.processor.system.protection_key[0] = 1;
    machine.processor.status |= psr::DT | psr::IC | psr::PK;
    assert_eq!(machine.run(&[LOAD]), Some(FaultKind::DataKeyMiss.vector()));
    machine.processor.system.protection_key[3] = 9 << 8 | 1 << 2 | 1;
    machine.processor.status |= psr::DT | psr::IC | psr::PK;
    assert_eq!(machine.run(&[LOAD]), Some(FaultKind::KeyPermission.vector()));
    machine.processor.system.protection_key[3] = 9 << 8 | 1;
    machine.processor.status |= psr::DT | psr::IC | psr::PK;
    assert_eq!(machine.run(&[LOAD]), None);
}
