//! Speculative loads: which faults are deferred to a NaT.

use sidestep_ia64::FaultKind;
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control;

use super::harness::*;

#[test]
fn speculative_loads_defer_as_dcr_and_the_code_page_say() {
    let speculative: Line = ("ld8.s", 0, &[8, 9]);
    let mut machine = translating();
    assert_eq!(
        machine.run(&[speculative]),
        Some(FaultKind::AlternateDataTlb.vector())
    );
    assert_eq!(
        machine.control(control::ISR) >> 36 & 1,
        1,
        "a speculative reference"
    );
    let mut collecting_off = translating();
    collecting_off.processor.status &= !psr::IC;
    assert_eq!(collecting_off.run(&[speculative]), None);
    assert!(collecting_off.processor.general.nat(8));
    for (defer_misses, expected) in [(1 << 8, None), (0, Some(FaultKind::AlternateDataTlb.vector()))] {
        let mut machine = translating();
        machine.translate_code();
        machine.insert("itr.i", 0, CODE, pte(CODE, 3, 3) | 1 << 52, 16);
        machine.set_control(control::DCR, defer_misses);
        assert_eq!(machine.run(&[speculative]), expected);
    }
}

#[test]
fn a_check_load_sees_what_another_processor_has_stored() {
    let mut machine = Machine::new();
    machine.processor.general.set(9, DATA);
    machine.write_words(DATA, &[1]);
    assert_eq!(machine.run(&[("ld8.c.nc", 0, &[8, 9])]), None);
    machine.write_words(DATA, &[2]);
    assert_eq!(machine.run(&[("ld8.c.nc", 0, &[8, 9])]), None);
    assert_eq!(
        machine.processor.general.value(8),
        2,
        "a lock that spins so gets its turn"
    );
}

/// What a speculative load meets, how, and the bit of DCR that defers it.
const DEFERRABLE: [(FaultKind, u32); 8] = [
    (FaultKind::AlternateDataTlb, 8),
    (FaultKind::VhptTranslation, 8),
    (FaultKind::PageNotPresent, 9),
    (FaultKind::DataKeyMiss, 10),
    (FaultKind::KeyPermission, 11),
    (FaultKind::DataAccessRights, 12),
    (FaultKind::DataAccessBit, 13),
    (FaultKind::Debug, 14),
];

/// The protection key of the data.
const KEY: u64 = 9;

/// A machine on a code page that defers (or not), in which a load through r9 meets every fault of `kinds`.
fn meeting(kinds: &[FaultKind], code_page_defers: bool) -> Machine {
    let mut machine = translating();
    machine.translate_code();
    machine.insert(
        "itr.i",
        0,
        CODE,
        pte(CODE, 3, 3) | u64::from(code_page_defers) << 52,
        16,
    );
    let mut page = Some(pte(DATA, RWX, 0));
    let change = |page: Option<u64>, clear: u64, set: u64| page.map(|page| page & !clear | set);
    // Code has key 0.
    machine.processor.system.protection_key[..2].copy_from_slice(&[1, KEY << 8 | 1]);
    let mut status = machine.processor.status;
    for kind in kinds {
        match kind {
            FaultKind::AlternateDataTlb => page = None,
            FaultKind::VhptTranslation => {
                machine.set_control(control::PTA, REGION_1 | 0x10_0000 | 15 << 2 | 1);
                machine.processor.system.region[1] |= 1;
                page = None;
            }
            FaultKind::PageNotPresent => page = change(page, 1, 0),
            FaultKind::DataKeyMiss => {
                machine.processor.system.protection_key[1] = 0;
                status |= psr::PK;
            }
            FaultKind::KeyPermission => {
                machine.processor.system.protection_key[1] = KEY << 8 | 1 << 2 | 1;
                status |= psr::PK;
            }
            // Gate pages of level 3 can be read at level 0 only.
            FaultKind::DataAccessRights => page = change(page, 7 << 9, 7 << 9 | 3 << 7),
            FaultKind::DataAccessBit => page = change(page, 1 << 5, 0),
            FaultKind::NatConsumption => page = change(page, 0, 7 << 2),
            FaultKind::Debug => {
                machine.processor.system.data_breakpoint[0] = REGION_1 | 0x4008;
                machine.processor.system.data_breakpoint[1] = 1 << 63 | 0xf << 56 | (1 << 56) - 1;
                status |= psr::DB;
            }
            FaultKind::UnalignedReference => {
                machine.processor.general.set(9, REGION_1 | 0x4009);
                status |= psr::AC;
            }
            kind => unreachable!("{kind:?} is not met here"),
        }
    }
    if kinds.contains(&FaultKind::DataAccessRights) {
        status |= 3 << psr::CPL_SHIFT;
    }
    if let Some(page) = page {
        let address = machine.processor.general.value(9);
        machine.insert_with_key("itc.d", REGION_1 | 0x4000, page, 14, KEY);
        machine.processor.general.set(9, address);
    }
    machine.processor.set_status(status);
    machine
}

/// Whether a speculative load of `machine` is deferred; the vector that it enters otherwise.
fn load_speculatively(machine: &mut Machine) -> Result<(), u64> {
    machine.processor.general.set(8, 1);
    let level = machine.processor.privilege_level();
    match machine.run(&[("ld8.s", 0, &[8, 9])]) {
        // At level 3 the end of the program is a break, too.
        Some(vector) if level == 0 || vector != FaultKind::Break.vector() => Err(vector),
        _ => Ok(()),
    }
}

#[test]
fn each_bit_of_dcr_defers_its_faults_and_no_others() {
    for (kind, own) in DEFERRABLE {
        for bit in 8..=14 {
            for code_page_defers in [false, true] {
                let mut machine = meeting(&[kind], code_page_defers);
                machine.set_control(control::DCR, 1 << bit);
                let deferred = load_speculatively(&mut machine);
                let expected = if code_page_defers && bit == own {
                    Ok(())
                } else {
                    Err(kind.vector())
                };
                assert_eq!(deferred, expected, "{kind:?}, bit {bit}, {code_page_defers}");
                assert_eq!(machine.processor.general.nat(8), expected.is_ok(), "{kind:?}");
                if expected.is_err() {
                    assert_eq!(machine.isr() >> 36 & 1, 1, "sp of {kind:?}");
                }
            }
        }
    }
}

#[test]
fn without_collection_or_with_psr_ed_everything_is_deferred() {
    for (kind, _) in DEFERRABLE {
        let mut machine = meeting(&[kind], false);
        machine.processor.status &= !psr::IC;
        assert_eq!(load_speculatively(&mut machine), Ok(()), "{kind:?}");
        assert!(machine.processor.general.nat(8));
        let mut machine = meeting(&[kind], false);
        machine.processor.status |= psr::ED;
        assert_eq!(load_speculatively(&mut machine), Ok(()), "{kind:?}");
        assert!(machine.processor.general.nat(8));
    }
    // PSR.ed makes a NaT of a load that nothing is wrong with, and only of the first one.
    let mut machine = meeting(&[], false);
    machine.processor.status |= psr::ED;
    assert_eq!(
        machine.run(&[("ld8.s", 0, &[8, 9]), ("ld8.s", 0, &[10, 9])]),
        None
    );
    assert!(machine.processor.general.nat(8) && !machine.processor.general.nat(10));
}

#[test]
fn nat_pages_defer_always_and_misalignment_where_the_code_page_does() {
    for code_page_defers in [false, true] {
        let mut machine = meeting(&[FaultKind::NatConsumption], code_page_defers);
        assert_eq!(load_speculatively(&mut machine), Ok(()));
        let mut machine = meeting(&[FaultKind::UnalignedReference], code_page_defers);
        let expected = if code_page_defers {
            Ok(())
        } else {
            Err(FaultKind::UnalignedReference.vector())
        };
        assert_eq!(load_speculatively(&mut machine), expected);
    }
}

#[test]
fn what_dcr_leaves_of_several_faults_is_raised() {
    use FaultKind::{DataAccessBit, DataAccessRights, DataKeyMiss, Debug, KeyPermission};
    let bit = |kind| {
        let own = DEFERRABLE.iter().find(|(other, _)| *other == kind);
        1 << own.expect("a deferrable fault").1
    };
    for (first, second) in [
        (DataKeyMiss, DataAccessRights),
        (DataKeyMiss, DataAccessBit),
        (KeyPermission, DataAccessRights),
        (KeyPermission, Debug),
        (DataAccessRights, DataAccessBit),
        (DataAccessRights, Debug),
        (DataAccessBit, Debug),
    ] {
        for (controls, expected) in [
            (0, Err(first.vector())),
            (bit(second), Err(first.vector())),
            (bit(first), Err(second.vector())),
            (bit(first) | bit(second), Ok(())),
        ] {
            let mut machine = meeting(&[first, second], true);
            machine.set_control(control::DCR, controls);
            let met = load_speculatively(&mut machine);
            assert_eq!(met, expected, "{first:?} before {second:?}, DCR {controls:#x}");
        }
    }
}

#[test]
fn a_nat_address_is_deferred_without_a_reference() {
    let mut machine = meeting(&[FaultKind::AlternateDataTlb], false);
    machine.processor.general.set_with_nat(9, 0, true);
    assert_eq!(load_speculatively(&mut machine), Ok(()));
    assert!(machine.processor.general.nat(8));
}

#[test]
fn a_device_is_not_read_speculatively() {
    let mut machine = Machine::new();
    machine.processor.general.set(9, DEVICE);
    assert_eq!(machine.run(&[("ld8.s", 0, &[8, 9])]), None);
    assert!(machine.processor.general.nat(8));
    assert_eq!(machine.loads(), 0);
    assert_eq!(machine.run(&[LOAD]), None);
    assert_eq!(machine.loads(), 1);
}
