//! Register frames across interruptions: `rfi`, `cover`, and fills that fault.

use sidestep_ia64::FaultKind;
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control;

use super::harness::*;

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

/// A frame of 90 registers behind `rfi`, whose backing store spans two pages of 4 kB and a NaT collection.
fn resuming_a_large_frame() -> Machine {
    let mut machine = Machine::new();
    machine.translate_code();
    machine.processor.system.region[1] = 12 << 2 | 7 << 8;
    machine.set_control(control::IIP, CODE + 16);
    machine.set_control(control::IPSR, psr::IC | psr::RT | psr::IT);
    machine.set_control(control::IFS, 1 << 63 | 90);
    machine
        .processor
        .register_stack_mut()
        .restart(REGION_1 | 0x1100, 0);
    // 90 registers and the collection at 0xff8 below 0x1100: they begin at 0xe28.
    for offset in (0xe28..0x1100).step_by(8) {
        machine.write_words(DATA + offset, &[if offset == 0xff8 { 1 << 60 } else { offset }]);
    }
    machine
}

#[test]
fn a_fill_goes_on_where_each_fault_stopped_it() {
    let mut machine = resuming_a_large_frame();
    assert_eq!(
        machine.run(&[("rfi", 0, &[])]),
        Some(FaultKind::AlternateDataTlb.vector())
    );
    // Youngest registers first: the upper page is missed first, the lower one in the middle of the fill.
    for (missing, page) in [(0x10f8, 0x1000), (0xff8, 0)] {
        assert_eq!(machine.control(control::IFA), REGION_1 | missing);
        assert_eq!(machine.isr() >> 37 & 3, 3, "rs and ir");
        assert_eq!(machine.control(control::IIP), CODE + 16);
        let frame = machine.control(control::IFS);
        assert_eq!(frame >> 63, 0, "not yet covered");
        let resumed = (machine.control(control::IPSR), machine.control(control::IIP));
        assert_eq!(machine.run_physically_translated(&[("cover", 0, &[])]), None);
        assert_eq!(machine.control(control::IFS) >> 63, 1, "cover saves the frame");
        let function = machine.control(control::IFS);
        machine.insert("itc.d", 0, REGION_1 | page, pte(DATA + page, RWX, 0), 12);
        machine.set_control(control::IPSR, resumed.0);
        machine.set_control(control::IIP, resumed.1);
        machine.set_control(control::IFS, function);
        let entered = machine.run_physically_translated(&[("rfi", 0, &[])]);
        assert_eq!(entered.is_some(), page == 0x1000);
    }
    let processor = &machine.processor;
    assert_eq!(processor.frame.size, 90);
    for register in 0..90u64 {
        // The collection's place is skipped, and one of its bits set.
        let place = 0xe28 + register * 8;
        let place = if place >= 0xff8 { place + 8 } else { place };
        assert_eq!(processor.general.value(32 + register as u8), place);
        assert_eq!(
            processor.general.nat(32 + register as u8),
            place < 0xff8 && place >> 3 & 63 == 60,
            "r{}",
            32 + register
        );
    }
}

#[test]
fn a_handler_may_call_and_return_between_two_parts_of_a_fill() {
    let mut machine = resuming_a_large_frame();
    machine.insert("itc.d", 0, REGION_1 | 0x1000, pte(DATA + 0x1000, RWX, 0), 12);
    assert_eq!(
        machine.run(&[("rfi", 0, &[])]),
        Some(FaultKind::AlternateDataTlb.vector())
    );
    let resumed = (machine.control(control::IPSR), machine.control(control::IIP));
    assert_eq!(machine.control(control::IFA), REGION_1 | 0xff8);
    machine.insert("itc.d", 0, REGION_1, pte(DATA, RWX, 0), 12);
    assert_eq!(machine.run_physically_translated(&[("cover", 0, &[])]), None);
    let function = machine.control(control::IFS);
    // The handler has a frame of its own, which it leaves before it returns.
    machine.processor.status |= psr::RT;
    let handler = [
        ("alloc", 0, &[2, 64, 8, 8, 0][..]),
        ("adds", 0, &[32, 77, 0]),
        ("alloc", 0, &[2, 64, 0, 0, 0]),
    ];
    assert_eq!(machine.run(&handler), None);
    machine.set_control(control::IPSR, resumed.0);
    machine.set_control(control::IIP, resumed.1);
    machine.set_control(control::IFS, function);
    assert_eq!(machine.run_physically_translated(&[("rfi", 0, &[])]), None);
    let values: Vec<u64> = (32..36)
        .map(|register| machine.processor.general.value(register))
        .collect();
    assert_eq!(values, [0xe28, 0xe30, 0xe38, 0xe40]);
}
