//! Speculative loads: which faults are deferred to a NaT.

use sidestep_ia64::FaultKind;
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control;

use crate::harness::*;

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
