//! Register frames across interruptions: `rfi`, `cover`, and fills that fault.

use sidestep_ia64::FaultKind;
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control;

use crate::harness::*;

#[test]
fn rfi_restores_psr_place_and_frame() {
    let mut machine = Machine::new();
    let handler = CODE + 0x1000;
    machine.write_code(
        handler,
        &[("nop.m", 0, &[0]), ("break.m", 0, &[HYPERCALL as i64])],
    );
    machine.set_control(control::IIP, handler);
    machine.set_control(control::IPSR, psr::IC | psr::BN | 1 << psr::RI_SHIFT);
    machine.set_control(control::IFS, 1 << 63 | 5 | 3 << 7);
    machine.processor.register_stack_mut().restart(DATA, 0);
    // The five registers below the collection that stands just below DATA.
    machine.write_words(DATA - 48, &[1, 2, 3, 4, 5]);
    machine.processor.system.other_bank.0[0] = 99;
    assert_eq!(machine.run(&[("rfi", 0, &[])]), None);
    assert_eq!(machine.processor.instruction_pointer(), (handler + 16, 0));
    assert_eq!(machine.processor.general.value(16), 99, "bank 1");
    assert_eq!(
        (machine.processor.frame.size, machine.processor.frame.locals),
        (5, 3)
    );
    let frame: Vec<u64> = (32..37)
        .map(|register| machine.processor.general.value(register))
        .collect();
    assert_eq!(frame, [1, 2, 3, 4, 5], "filled from the backing store");
}

#[test]
fn a_fill_that_faults_is_reported_at_the_target_with_an_incomplete_frame() {
    let mut machine = Machine::new();
    machine.translate_code();
    machine.processor.system.region[1] = 14 << 2 | 7 << 8;
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
    let status = machine.control(control::ISR);
    assert_eq!(
        status >> 37 & 3,
        3,
        "a register stack reference in an incomplete frame"
    );
    assert_eq!(machine.control(control::IIP), CODE + 16);
    assert_eq!(machine.control(control::IFA), REGION_1 | 0xf8);
}

#[test]
fn cover_and_rfi_carry_an_incomplete_frame_through_its_handler() {
    let mut machine = Machine::new();
    machine.translate_code();
    machine.processor.system.region[1] = 14 << 2 | 7 << 8;
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
    // The handler covers, maps the backing store and returns: now the frame is filled.
    machine.write_words(DATA + 0xe0, &[10, 11, 12, 13]);
    machine.insert("itc.d", 0, REGION_1, pte(DATA, RWX, 0), 14);
    machine.processor.status = psr::IT;
    let store_pointer = machine.processor.register_stack().store_pointer();
    assert_eq!(machine.run(&[("cover", 0, &[])]), None);
    assert_eq!(
        machine.processor.register_stack().backing_store_pointer(),
        REGION_1 | 0x100
    );
    assert_eq!(store_pointer, REGION_1 | 0xe0);
    machine.write_code(CODE + 0x1000, &[("rfi", 0, &[])]);
    machine.processor.set_instruction_pointer(CODE + 0x1000, 0);
    machine.set_control(control::IPSR, psr::IC | psr::RT | psr::IT);
    assert_eq!(machine.go_on(), None);
    let frame: Vec<u64> = (32..36)
        .map(|register| machine.processor.general.value(register))
        .collect();
    assert_eq!(frame, [10, 11, 12, 13]);
}

#[test]
fn cover_saves_the_frame_in_ifs_while_collection_is_off() {
    let mut machine = Machine::new();
    assert_eq!(
        machine.run(&[("alloc", 0, &[14, 64, 6, 4, 0]), ("cover", 0, &[])]),
        None
    );
    assert_eq!(machine.control(control::IFS), 1 << 63 | 6 | 4 << 7);
    machine.set_control(control::IFS, 0);
    machine.processor.status = psr::IC;
    assert_eq!(machine.run(&[("cover", 0, &[])]), None);
    assert_eq!(machine.control(control::IFS), 0);
}
