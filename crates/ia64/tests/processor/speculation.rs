//! NaT bits through computation and memory, control and data speculation.

use crate::machine::{DATA, Machine};
use sidestep_ia64::registers::application::UNAT;
use sidestep_ia64::{Fault, FaultKind};

/// An address that is not mapped.
const NOWHERE: u64 = 0x9_0000;

fn machine_with(base: u64) -> Machine {
    let mut machine = Machine::new();
    machine.processor.general.set(9, base);
    machine
}

#[test]
fn a_speculative_load_of_nothing_is_a_nat_that_spreads_and_is_checked() {
    let mut machine = machine_with(NOWHERE);
    machine
        .run(&[
            ("ld8.s", 0, &[8, 9]),
            ("adds", 0, &[10, 1, 8]),
            ("add", 0, &[11, 10, 9]),
        ])
        .unwrap();
    let general = &machine.processor.general;
    assert!(general.nat(8) && general.nat(10) && general.nat(11) && !general.nat(9));
    // The check branches over the next bundle.
    machine
        .run(&[("chk.s.m", 0, &[11, 32]), ("adds", 0, &[12, 1, 0])])
        .unwrap();
    assert_eq!(machine.processor.general.value(12), 0);
    machine
        .run(&[
            ("movl", 0, &[8, 5]),
            ("chk.s.m", 0, &[8, 32]),
            ("adds", 0, &[12, 1, 0]),
        ])
        .unwrap();
    assert_eq!(machine.processor.general.value(12), 1);
}

#[test]
fn using_a_nat_without_speculation_faults() {
    let mut machine = machine_with(DATA);
    machine.processor.general.set_with_nat(8, 0, true);
    for line in [("st8", 0, &[9, 8][..]), ("ld8", 0, &[10, 8][..])] {
        let fault = machine.run(&[line]).unwrap_err();
        assert_eq!(fault.kind, FaultKind::NatConsumption);
        assert_eq!(fault.isr & 0xff, 0x10, "a register");
    }
}

#[test]
fn compares_of_a_nat_follow_their_type() {
    for (mnemonic, expected) in [
        ("cmp.eq", (false, false)),
        ("cmp.eq.and", (false, false)),
        ("cmp.eq.or", (true, true)),
    ] {
        let mut machine = Machine::new();
        machine.processor.general.set_with_nat(8, 7, true);
        machine.processor.set_predicate(6, true);
        machine.processor.set_predicate(7, true);
        machine.run(&[(mnemonic, 0, &[6, 7, 0, 8])]).unwrap();
        assert_eq!(
            (machine.processor.predicate(6), machine.processor.predicate(7)),
            expected,
            "{mnemonic}"
        );
    }
    let mut machine = Machine::new();
    machine.processor.set_predicate(5, false);
    machine.run(&[("cmp.eq.unc", 5, &[6, 7, 0, 0])]).unwrap();
    assert!(
        !machine.processor.predicate(6) && !machine.processor.predicate(7),
        ".unc clears under a false predicate"
    );
}

#[test]
fn spill_and_fill_carry_the_nat_bit_through_unat() {
    let mut machine = machine_with(DATA + 40);
    machine.processor.general.set_with_nat(8, 33, true);
    machine
        .run(&[
            ("st8.spill", 0, &[9, 8]),
            ("movl", 0, &[8, 1]),
            ("ld8.fill", 0, &[10, 9]),
        ])
        .unwrap();
    assert_eq!(machine.processor.application(UNAT), 1 << 5);
    assert_eq!(
        (
            machine.processor.general.value(10),
            machine.processor.general.nat(10)
        ),
        (33, true)
    );
}

#[test]
fn a_store_between_an_advanced_load_and_its_check_makes_the_check_load_again() {
    for (distance, value) in [(0, 99), (8, 0)] {
        let mut machine = machine_with(DATA);
        machine.processor.general.set(10, DATA + distance);
        machine.processor.general.set(11, 99);
        // A hit leaves the register alone, even if it was changed meanwhile; a miss loads.
        machine
            .run(&[
                ("ld8.a", 0, &[8, 9]),
                ("st8", 0, &[10, 11]),
                ("ld8.c.nc", 0, &[8, 9]),
            ])
            .unwrap();
        assert_eq!(
            machine.processor.general.value(8),
            value,
            "a store {distance} bytes on"
        );
    }
}

#[test]
fn chk_a_branches_to_recovery_after_a_conflicting_store() {
    for (distance, recovered) in [(4, true), (16, false)] {
        let mut machine = machine_with(DATA);
        machine.processor.general.set(10, DATA + distance);
        machine
            .run(&[
                ("ld8.a", 0, &[8, 9]),
                ("st4", 0, &[10, 9]),
                ("chk.a.clr M22", 0, &[8, 32]),
                ("adds", 0, &[12, 1, 0]),
            ])
            .unwrap();
        assert_eq!(machine.processor.general.value(12) == 0, recovered);
    }
}

#[test]
fn an_advanced_load_of_a_caller_is_not_the_callees() {
    let mut machine = machine_with(DATA);
    machine
        .run(&[("alloc", 0, &[14, 64, 4, 4, 0]), ("ld8.a", 0, &[33, 9])])
        .unwrap();
    machine
        .run(&[("brl.call", 0, &[0, 16]), ("alloc", 0, &[14, 64, 4, 4, 0])])
        .unwrap();
    machine
        .run(&[("chk.a.nc M22", 0, &[33, 32]), ("adds", 0, &[12, 1, 0])])
        .unwrap();
    assert_eq!(
        machine.processor.general.value(12),
        0,
        "the callee's r33 was never loaded"
    );
}

#[test]
fn a_fault_of_a_load_with_update_changes_nothing() {
    let mut machine = machine_with(NOWHERE);
    machine.processor.general.set(8, 5);
    let fault: Fault = machine.run(&[("ld8", 0, &[8, 9, 16])]).unwrap_err();
    assert_eq!(fault.kind, FaultKind::PageNotPresent);
    assert_eq!(fault.address.0, NOWHERE);
    assert_eq!(
        (
            machine.processor.general.value(8),
            machine.processor.general.value(9)
        ),
        (5, NOWHERE)
    );
}
