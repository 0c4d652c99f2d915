//! The VHPT and its walker, in both formats.

use sidestep_ia64::encoding::{DecodedSlot, Instruction};
use sidestep_ia64::execution::{Dynamic, Event, Observer};
use sidestep_ia64::mmu::vhpt::{PageTableAddress, RegionRegister, hash, tag};
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control;
use sidestep_ia64::{FaultKind, PhysicalAddress, VirtualAddress};

use super::harness::*;

#[test]
fn the_walker_fills_from_the_short_table() {
    let mut machine = translating();
    let table = PageTableAddress((1 << 61) - (1 << 15) & !0x7fff | 15 << 2 | 1);
    machine.set_control(control::PTA, table.0);
    machine.processor.system.region[1] |= 1;
    let region = RegionRegister(machine.processor.system.region[1]);
    let entry = hash(VirtualAddress(REGION_1 | 0x4008), region, table).0;
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
    let address = VirtualAddress(REGION_1 | 0x4008);
    let entry = hash(address, region, table).0;
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

/// A machine whose long-format table translates r9's page by the entry `words`; the entry's address.
fn long_format(words: [u64; 2], tag_bits: u64) -> (Machine, u64) {
    let mut machine = translating();
    let table = PageTableAddress(TABLE | 15 << 2 | 1 << 8 | 1);
    machine.set_control(control::PTA, table.0);
    machine.processor.system.region[1] |= 1;
    machine.processor.system.region[0] = 14 << 2;
    let region = RegionRegister(machine.processor.system.region[1]);
    let entry = hash(VirtualAddress(REGION_1 | 0x4008), region, table).0;
    machine.insert("itr.d", 0, TABLE, pte(TABLE, RWX, 0), 16);
    let tag = tag(VirtualAddress(REGION_1 | 0x4008), region) ^ tag_bits;
    machine.write_words(entry, &[words[0], words[1], tag, 0]);
    machine.write_words(DATA + 8, &[4711]);
    (machine, entry)
}

#[test]
fn each_field_of_a_long_entry_has_its_effect() {
    let page = pte(DATA, RWX, 0);
    let (found, missed) = (None, Some(FaultKind::DataTlb.vector()));
    let fault = |kind: FaultKind| Some(kind.vector());
    for (word, itir, tag_bits, expected, why) in [
        (page, 14 << 2, 0, found, "all as it should be"),
        (page, 14 << 2, 1, missed, "another page's tag"),
        (page, 14 << 2, 1 << 63, missed, "the tag-invalid bit"),
        (page, 15 << 2, 0, missed, "a page size that does not exist"),
        (page, 14 << 2 | 1, 0, missed, "a reserved bit of the second word"),
        (
            page | 1 << 1,
            14 << 2,
            0,
            missed,
            "a reserved bit of the first word",
        ),
        (page | 1 << 2, 14 << 2, 0, missed, "a reserved memory attribute"),
        (
            page & !1,
            14 << 2,
            0,
            fault(FaultKind::PageNotPresent),
            "not present",
        ),
        (
            1 << 52,
            14 << 2,
            0,
            fault(FaultKind::PageNotPresent),
            "not present, software's bits",
        ),
        (
            page | 7 << 2,
            14 << 2,
            0,
            fault(FaultKind::NatConsumption),
            "a NaT page",
        ),
        (
            page & !(1 << 5),
            14 << 2,
            0,
            fault(FaultKind::DataAccessBit),
            "not accessed",
        ),
        (page, 12 << 2, 0, found, "a smaller page than the region's"),
        (page, 16 << 2, 0, found, "a larger page than the region's"),
    ] {
        let (mut machine, entry) = long_format([word, itir], tag_bits);
        if itir == 12 << 2 || itir == 16 << 2 {
            // The entry's own page size rules: the address lies in the first page of 4 kB, or of 64 kB.
            machine.processor.general.set(9, REGION_1 | 0x4008);
            machine.write_words(DATA + (0x4008 & ((1 << (itir >> 2)) - 1)), &[4711]);
        }
        assert_eq!(machine.run(&[LOAD]), expected, "{why}");
        if expected == missed {
            assert_eq!(machine.control(control::IHA), entry, "{why}");
            assert_eq!(machine.control(control::ITIR), 14 << 2 | 7 << 8, "{why}");
        }
        if expected.is_none() {
            assert_eq!(machine.processor.general.value(8), 4711, "{why}");
        }
    }
}

#[test]
fn a_page_size_from_the_table_covers_exactly_its_page() {
    let (mut machine, _) = long_format([pte(DATA, RWX, 0), 12 << 2], 0);
    assert_eq!(machine.run(&[LOAD]), None);
    // The next 4 kB belong to the same page of the region, but not to the entry's: the walker is asked again, and its
    // insertion replaces the first.
    machine.processor.general.set(9, REGION_1 | 0x5008);
    machine.write_words(DATA + 8, &[5]);
    assert_eq!(machine.run(&[LOAD]), None);
    assert_eq!(machine.processor.general.value(8), 5);
    assert_eq!(
        machine.processor.mmu().expect("system mode").events.walker_hits,
        2
    );
}

#[test]
fn the_walker_waits_for_table_region_and_data_translation() {
    type Change = fn(&mut Machine);
    let cases: [(Change, Option<u64>); 5] = [
        (|_| {}, None),
        (
            |machine| machine.processor.system.region[1] &= !1,
            Some(FaultKind::AlternateDataTlb.vector()),
        ),
        (
            |machine| {
                let table = machine.control(control::PTA);
                machine.set_control(control::PTA, table & !1);
            },
            Some(FaultKind::AlternateDataTlb.vector()),
        ),
        // Collection off: the walker still serves data, and a miss nests.
        (|machine| machine.processor.status &= !psr::IC, None),
        (
            |machine| {
                machine.processor.status &= !psr::IC;
                machine.write_words(TABLE, &[0; 4096]);
            },
            Some(FaultKind::DataNestedTlb.vector()),
        ),
    ];
    for (index, (change, expected)) in cases.into_iter().enumerate() {
        let (mut machine, _) = long_format([pte(DATA, RWX, 0), 14 << 2], 0);
        change(&mut machine);
        assert_eq!(machine.run(&[LOAD]), expected, "case {index}");
    }
}

#[test]
fn the_table_itself_must_be_mapped_and_readable_by_the_walker() {
    let table_pte = pte(TABLE, RWX, 0);
    for (word, expected) in [
        (None, FaultKind::VhptTranslation),
        (Some(table_pte & !1), FaultKind::DataTlb),
        (Some(table_pte | 4 << 2), FaultKind::DataTlb),
        (Some(table_pte & !(1 << 5)), FaultKind::DataTlb),
    ] {
        let (mut machine, entry) = long_format([pte(DATA, RWX, 0), 14 << 2], 0);
        machine.processor.general.set(10, TABLE);
        machine.processor.general.set(11, 16 << 2);
        assert_eq!(machine.run_physically(&[("ptr.d", 0, &[10, 11])]), None);
        if let Some(word) = word {
            machine.insert("itr.d", 0, TABLE, word, 16);
        }
        assert_eq!(machine.run(&[LOAD]), Some(expected.vector()), "{word:x?}");
        assert_eq!(machine.control(control::IHA), entry);
        assert_eq!(machine.control(control::IFA), REGION_1 | 0x4008);
    }
}

#[test]
fn the_walker_serves_fetches_under_collection_only() {
    for (collects, expected) in [
        (true, None),
        (false, Some(FaultKind::AlternateInstructionTlb.vector())),
    ] {
        let mut machine = Machine::new();
        machine.translate_code();
        let table = PageTableAddress(TABLE | 15 << 2 | 1 << 8 | 1);
        machine.set_control(control::PTA, table.0);
        machine.processor.system.region[0] = 14 << 2;
        machine.processor.system.region[1] = 14 << 2 | 7 << 8 | 1;
        machine.insert("itr.d", 0, TABLE, pte(TABLE, RWX, 0), 16);
        let (target, region) = (
            VirtualAddress(REGION_1 | 0x4000),
            RegionRegister(machine.processor.system.region[1]),
        );
        let entry = hash(target, region, table).0;
        machine.write_words(entry, &[pte(DATA, 3, 0), 14 << 2, tag(target, region), 0]);
        machine.write_code(DATA, &[("break.m", 0, &[HYPERCALL as i64])]);
        machine.processor.status |= psr::DT | if collects { psr::IC } else { 0 };
        machine.processor.branch[6] = target.0;
        assert_eq!(machine.run(&[("br.cond B4", 0, &[6])]), expected);
    }
}

/// Where the entries lie that the walker has read, and whether each was found or had its fault.
#[derive(Default)]
struct Reads(Vec<(PhysicalAddress, bool)>);

impl Observer for Reads {
    type Static = ();

    fn decode(&mut self, _: &Instruction, _: &DecodedSlot) {}

    fn retired(&mut self, (): &(), _: &Dynamic<'_>) {}

    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Walk { entry, .. } => self.0.push((*entry, true)),
            Event::Interrupted(taken) => self.0.extend(taken.walked.map(|entry| (entry, false))),
            _ => {}
        }
    }
}

#[test]
fn an_observer_is_told_where_the_entry_lies_that_was_found_or_read_in_vain() {
    for (tag_bits, is_found) in [(0, true), (1, false)] {
        let (mut machine, entry) = long_format([pte(DATA, RWX, 0), 14 << 2], tag_bits);
        machine.write_code(CODE, &[LOAD, ("break.m", 0, &[HYPERCALL as i64])]);
        machine.processor.set_instruction_pointer(CODE, 0);
        let mut reads = Reads::default();
        machine.processor.run_observed(100, &mut reads);
        assert_eq!(reads.0, [(PhysicalAddress(entry), is_found)]);
    }
    // No entry was read where there is no translation for the table itself.
    let mut machine = translating();
    let table = PageTableAddress((1 << 61) - (1 << 15) & !0x7fff | 15 << 2 | 1);
    machine.set_control(control::PTA, table.0);
    machine.processor.system.region[1] |= 1;
    machine.write_code(CODE, &[LOAD]);
    machine.processor.set_instruction_pointer(CODE, 0);
    let mut reads = Reads::default();
    machine.processor.run_observed(100, &mut reads);
    assert_eq!(reads.0, []);
}
