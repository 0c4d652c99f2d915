//! Loop branches, rotation, calls, and the rules whose violation is an illegal operation.

use crate::machine::{CODE, Machine};
use sidestep_ia64::registers::application::{EC, LC, PFS};
use sidestep_ia64::registers::frame::FrameMarker;
use sidestep_ia64::{Exit, Fault, FaultKind};

const ILLEGAL: Result<(), Fault> = Err(Fault {
    kind: FaultKind::GeneralException,
    isr: 0,
    address: sidestep_ia64::VirtualAddress(0),
    immediate: 0,
});

/// Runs one loop branch whose target is the bundle behind it; returns whether it was taken.
fn taken(machine: &mut Machine, mnemonic: &str, predicate: u8) -> bool {
    // Not taken, it meets the `add`; taken, it skips it.
    machine.processor.general.set(8, 0);
    machine
        .run(&[(mnemonic, predicate, &[32]), ("adds", 0, &[8, 1, 0])])
        .unwrap();
    machine.processor.general.value(8) == 0
}

#[test]
fn counted_loops_follow_the_table_of_the_manual() {
    // LC, EC -> taken by ctop, LC, EC, p63 before rotation (p16 after), whether the bases move.
    let table = [
        (5, 3, true, 4, 3, true, true),
        (0, 3, true, 0, 2, false, true),
        (0, 1, false, 0, 0, false, true),
        (0, 0, false, 0, 0, false, false),
    ];
    for (count, epilogue, top, count_after, epilogue_after, stage, rotates) in table {
        for (mnemonic, expected) in [("br.ctop", top), ("br.cexit", !top)] {
            let mut machine = Machine::new();
            machine.processor.set_application(LC, count);
            machine.processor.set_application(EC, epilogue);
            assert_eq!(
                taken(&mut machine, mnemonic, 0),
                expected,
                "{mnemonic} at LC {count}, EC {epilogue}"
            );
            assert_eq!(machine.processor.application(LC), count_after);
            assert_eq!(machine.processor.application(EC), epilogue_after);
            let frame = machine.processor.frame;
            assert_eq!(
                (frame.rename_floating, frame.rename_predicate),
                if rotates { (95, 47) } else { (0, 0) }
            );
            assert_eq!(machine.processor.predicate(if rotates { 16 } else { 63 }), stage);
        }
    }
}

#[test]
fn while_loops_test_their_predicate_in_place_of_the_count() {
    let table = [
        (true, 0, true, 0, true),
        (false, 2, true, 1, true),
        (false, 1, false, 0, true),
        (false, 0, false, 0, false),
    ];
    for (condition, epilogue, top, epilogue_after, rotates) in table {
        for (mnemonic, expected) in [("br.wtop", top), ("br.wexit", !top)] {
            let mut machine = Machine::new();
            machine.processor.set_predicate(7, condition);
            machine.processor.set_application(EC, epilogue);
            assert_eq!(
                taken(&mut machine, mnemonic, 7),
                expected,
                "{mnemonic} when {condition}, EC {epilogue}"
            );
            assert_eq!(machine.processor.application(EC), epilogue_after);
            assert_eq!(machine.processor.frame.rename_predicate != 0, rotates);
        }
    }
}

#[test]
fn rotation_renames_general_registers_within_the_rotating_region() {
    let mut machine = Machine::new();
    machine.run(&[("alloc", 0, &[14, 64, 20, 20, 8])]).unwrap();
    for register in 32..52 {
        machine.processor.general.set(register, u64::from(register));
    }
    machine.processor.set_application(LC, 1);
    machine.run(&[("br.ctop", 0, &[16])]).unwrap();
    let general = &machine.processor.general;
    assert_eq!(
        [32, 33, 39, 40].map(|register| general.value(register)),
        [39, 32, 38, 40]
    );
    machine.run(&[("clrrrb", 0, &[])]).unwrap();
    assert_eq!(machine.processor.general.value(32), 32);
}

#[test]
fn a_call_unrotates_the_frame_and_the_return_rotates_it_again() {
    let mut machine = Machine::new();
    machine.run(&[("alloc", 0, &[14, 64, 16, 12, 8])]).unwrap();
    for register in 32..48 {
        machine.processor.general.set(register, u64::from(register));
    }
    machine.processor.set_application(LC, 9);
    machine
        .run(&[
            ("br.ctop", 0, &[16]),
            ("br.ctop", 0, &[16]),
            ("br.ctop", 0, &[16]),
        ])
        .unwrap();
    let before: Vec<u64> = (32..44)
        .map(|register| machine.processor.general.value(register))
        .collect();
    let predicates = machine.processor.predicates;
    machine.run(&[("brl.call", 0, &[3, 16])]).unwrap();
    assert_eq!(
        machine.processor.frame,
        FrameMarker {
            size: 4,
            ..FrameMarker::default()
        }
    );
    assert_eq!(machine.processor.general.value(32), 44, "the first output");
    assert_eq!(machine.processor.branch[3], CODE + 16);
    machine.run(&[("br.ret", 0, &[3])]).unwrap();
    let after: Vec<u64> = (32..44)
        .map(|register| machine.processor.general.value(register))
        .collect();
    assert_eq!(before, after);
    assert_eq!(machine.processor.predicates, predicates);
}

#[test]
fn calls_save_the_epilogue_count_in_pfs() {
    let mut machine = Machine::new();
    machine.processor.set_application(EC, 21);
    machine.run(&[("brl.call", 0, &[0, 16])]).unwrap();
    assert_eq!(machine.processor.application(PFS) >> 52 & 0x3f, 21);
    machine.processor.set_application(EC, 0);
    machine.run(&[("br.ret", 0, &[0])]).unwrap();
    assert_eq!(machine.processor.application(EC), 21);
}

#[test]
fn illegal_operations_are_found_whatever_the_state() {
    let mut machine = Machine::new();
    for (line, why) in [
        (("adds", 0, &[0, 1, 2][..]), "r0 as a target"),
        (("ld8", 0, &[5, 5, 8][..]), "a load into its own base"),
        (("cmp.eq", 0, &[6, 6, 1, 2][..]), "the same predicate twice"),
        (("adds", 0, &[32, 1, 2][..]), "a target outside the frame"),
        (("mov.m", 0, &[8, 15][..]), "a reserved application register"),
    ] {
        assert_eq!(machine.run(&[line]), ILLEGAL, "{why}");
    }
    machine.processor.set_predicate(9, false);
    assert_eq!(
        machine.run(&[("adds", 9, &[0, 1, 2])]),
        Ok(()),
        "under a false predicate nothing happens"
    );
    assert_eq!(
        machine.run(&[("alloc", 0, &[14, 64, 8, 8, 0]), ("adds", 0, &[39, 1, 0])]),
        Ok(())
    );
    assert_eq!(
        machine.run(&[("adds", 0, &[40, 1, 0])]),
        ILLEGAL,
        "just outside the new frame"
    );
}

#[test]
fn a_limit_stops_at_the_exact_instruction() {
    let mut machine = Machine::new();
    machine
        .run(&[
            ("adds", 0, &[8, 1, 8]),
            ("adds", 0, &[8, 1, 8]),
            ("adds", 0, &[8, 1, 8]),
        ])
        .unwrap();
    machine.processor.general.set(8, 0);
    machine.processor.set_instruction_pointer(CODE, 0);
    for (limit, place, sum) in [
        (1, (CODE, 1), 1),
        (2, (CODE + 16, 0), 1),
        (1, (CODE + 16, 1), 2),
        (4, (CODE + 32, 2), 3),
    ] {
        let before = machine.processor.instructions_retired();
        assert_eq!(machine.processor.run(limit), Exit::Limit);
        assert_eq!(machine.processor.instructions_retired() - before, limit);
        assert_eq!(machine.processor.instruction_pointer(), place);
        assert_eq!(machine.processor.general.value(8), sum);
    }
}
