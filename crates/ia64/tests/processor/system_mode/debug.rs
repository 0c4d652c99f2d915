//! Traps behind instructions, and breakpoint registers.

use sidestep_ia64::FaultKind;
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control;

use super::harness::*;

#[test]
fn single_step_traps_behind_each_instruction() {
    let mut machine = Machine::new();
    machine.set_control(control::IIP, CODE + 0x1000);
    machine.set_control(control::IPSR, psr::IC | psr::SS);
    machine.write_code(CODE + 0x1000, &[("adds", 0, &[8, 1, 0])]);
    assert_eq!(
        machine.run(&[("rfi", 0, &[])]),
        Some(FaultKind::SingleStep.vector())
    );
    assert_eq!(machine.processor.general.value(8), 1);
    assert_eq!(machine.control(control::IIP), CODE + 0x1000);
    assert_eq!(machine.control(control::IPSR) >> 41 & 3, 1, "at the next slot");
    assert_eq!(machine.control(control::IIPA), CODE + 0x1000);
}

/// Starts `lines` at level 0 by `rfi` with the PSR bits `status`; the vector that is entered.
fn run_under(machine: &mut Machine, status: u64, lines: &[Line]) -> Option<u64> {
    let start = CODE + 0x1000;
    machine.write_code(start, lines);
    let end = start + lines.len() as u64 * 16;
    machine.write_code(end, &[("break.m", 0, &[HYPERCALL as i64])]);
    machine.set_control(control::IIP, start);
    machine.set_control(control::IPSR, status);
    machine.set_control(control::IFS, 0);
    machine.run(&[("rfi", 0, &[])])
}

/// A data breakpoint on the `1 << size_log2` bytes at an address, for all levels.
fn watch(machine: &mut Machine, address: u64, size_log2: u32, kinds: u64) {
    let mask = (1 << 56) - 1 & !((1 << size_log2) - 1);
    machine.processor.system.data_breakpoint[2] = address;
    machine.processor.system.data_breakpoint[3] = mask | 0xf << 56 | kinds;
}

const READS: u64 = 1 << 63;
const WRITES: u64 = 1 << 62;

#[test]
fn a_data_breakpoint_covers_its_bytes_and_kinds_of_access() {
    let exchange: Line = ("xchg8", 0, &[8, 9, 10]);
    let fetch: Line = ("lfetch.fault", 0, &[9]);
    let (wide_load, wide_store): (Line, Line) = (("ld16", 0, &[8, 25, 9]), ("st16", 0, &[9, 8, 25]));
    let float_store: Line = ("stf.spill", 0, &[9, 8]);
    for (kinds, line, isr) in [
        (READS, LOAD, Some(1 << 34)),
        (READS, STORE, None),
        (WRITES, STORE, Some(1 << 33)),
        (WRITES, LOAD, None),
        (0, LOAD, None),
        (READS, exchange, Some(3 << 33)),
        (WRITES, exchange, Some(3 << 33)),
        (READS, fetch, Some(1 << 35 | 1 << 34 | 4)),
        (READS, ("probe.r.fault", 0, &[9, 3]), Some(1 << 35 | 1 << 34 | 5)),
        (WRITES, ("probe.w.fault", 0, &[9, 3]), Some(1 << 35 | 1 << 33 | 5)),
        (READS, ("probe.r", 0, &[8, 9, 3]), None),
        (READS, ("fc", 0, &[9]), None),
        (READS, wide_load, Some(1 << 34)),
        (WRITES, wide_store, Some(1 << 33)),
        (WRITES, float_store, Some(1 << 33)),
    ] {
        let mut machine = Machine::new();
        machine.processor.general.set(9, DATA);
        watch(&mut machine, DATA, 3, kinds);
        let entered = run_under(&mut machine, psr::IC | psr::DB, &[line]);
        assert_eq!(entered, isr.map(|_| FaultKind::Debug.vector()), "{line:?}");
        if let Some(isr) = isr {
            assert_eq!(machine.isr(), isr, "{line:?}");
            assert_eq!(machine.control(control::IFA), DATA);
        }
    }
}

#[test]
fn one_byte_in_common_is_enough_and_a_neighbour_is_not() {
    for (line, address, is_hit) in [
        (("ld8", 0, &[8, 9][..]), DATA, true),
        (("ld4", 0, &[8, 9]), DATA, false),
        (("ld4", 0, &[8, 9]), DATA + 4, true),
        (("ld4", 0, &[8, 9]), DATA + 8, false),
        (("ld8", 0, &[8, 9]), DATA - 3, true),
        (("ldf.fill", 0, &[8, 9]), DATA, true),
        (("ldfpd", 0, &[8, 9, 9]), DATA, true),
    ] {
        let mut machine = Machine::new();
        machine.processor.general.set(9, address);
        watch(&mut machine, DATA + 4, 2, READS);
        let entered = run_under(&mut machine, psr::IC | psr::DB, &[line]);
        assert_eq!(entered.is_some(), is_hit, "{line:?} at {address:#x}");
    }
    // The second half of a wide store is watched: the first half is not stored either.
    let mut machine = Machine::new();
    machine.write_words(DATA, &[1, 2]);
    machine.processor.general.set(9, DATA);
    watch(&mut machine, DATA + 8, 3, WRITES);
    let lines = [("stf.spill", 0, &[9, 1][..])];
    let entered = run_under(&mut machine, psr::IC | psr::DB, &lines);
    assert_eq!(entered, Some(FaultKind::Debug.vector()));
    assert_eq!(machine.run(&[LOAD]), None);
    assert_eq!(machine.processor.general.value(8), 1);
}

#[test]
fn a_data_breakpoint_waits_for_psr_db_its_level_and_psr_dd() {
    for (status, levels, is_hit) in [
        (0, 0xf, false),
        (psr::DB, 0xf, true),
        (psr::DB, 0xe, false),
        (psr::DB | psr::DD, 0xf, false),
    ] {
        let mut machine = Machine::new();
        machine.processor.general.set(9, DATA);
        watch(&mut machine, DATA, 3, READS);
        machine.processor.system.data_breakpoint[3] &= !(0xf << 56) | levels << 56;
        let entered = run_under(&mut machine, psr::IC | status, &[LOAD]);
        assert_eq!(entered.is_some(), is_hit, "{status:#x} {levels:#x}");
    }
    // PSR.dd holds for one instruction.
    let mut machine = Machine::new();
    machine.processor.general.set(9, DATA);
    watch(&mut machine, DATA, 3, READS);
    let entered = run_under(&mut machine, psr::IC | psr::DB | psr::DD, &[LOAD, LOAD]);
    assert_eq!(entered, Some(FaultKind::Debug.vector()));
    assert_eq!(machine.control(control::IIP), CODE + 0x1010);
}

#[test]
fn the_register_stack_engine_meets_data_breakpoints_at_its_own_level() {
    for (level, is_hit) in [(0, false), (3, true)] {
        let mut machine = Machine::new();
        watch(&mut machine, DATA, 3, WRITES);
        machine.processor.system.data_breakpoint[3] &= !(7 << 56);
        machine.processor.set_application(16, level << 2);
        machine.processor.register_stack_mut().restart(DATA, 0);
        let lines = [
            ("alloc", 0, &[14, 64, 4, 4, 0][..]),
            ("cover", 0, &[]),
            ("flushrs", 0, &[]),
        ];
        let entered = run_under(&mut machine, psr::IC | psr::DB, &lines);
        assert_eq!(entered.is_some(), is_hit, "level {level}");
        if is_hit {
            assert_eq!(machine.isr(), 1 << 33 | 1 << 37, "a register stack store");
            assert_eq!(machine.control(control::IFA), DATA);
        }
    }
}

#[test]
fn an_instruction_breakpoint_waits_for_psr_db_its_level_and_psr_id() {
    let place = CODE + 0x1010;
    for (status, controls, is_hit) in [
        (psr::DB, 1 << 63 | 0xf << 56, true),
        (psr::DB, 1 << 63 | 0xe << 56, false),
        (psr::DB, 0xf << 56, false),
        (0, 1 << 63 | 0xf << 56, false),
    ] {
        let mut machine = Machine::new();
        machine.processor.system.instruction_breakpoint[4] = place;
        machine.processor.system.instruction_breakpoint[5] = controls | (1 << 56) - 1;
        let lines = [("nop.m", 0, &[0][..]), ("nop.m", 0, &[0])];
        let entered = run_under(&mut machine, psr::IC | status, &lines);
        assert_eq!(entered, is_hit.then_some(FaultKind::Debug.vector()));
        if is_hit {
            assert_eq!(machine.control(control::IIP), place);
            assert_eq!(machine.control(control::IFA), place);
            assert_eq!(machine.isr(), 1 << 32, "a fetch");
            let lines = &lines[1..];
            machine.processor.system.instruction_breakpoint[4] = CODE + 0x1000;
            let entered = run_under(&mut machine, psr::IC | psr::DB | psr::ID, &[LOAD]);
            assert_eq!(
                entered,
                Some(FaultKind::Debug.vector()),
                "slots 1 and 2 are watched again"
            );
            assert_eq!(machine.isr() >> 41 & 3, 1, "{lines:?}");
        }
    }
}

#[test]
fn traps_that_come_together_are_taken_once_and_show_each_other() {
    let branch: Line = ("brl.cond", 0, &[32]);
    for (status, line, kind, code) in [
        (psr::SS, LOAD, FaultKind::SingleStep, 8),
        (psr::TB, branch, FaultKind::TakenBranch, 4),
        (psr::TB | psr::SS, branch, FaultKind::TakenBranch, 12),
    ] {
        let mut machine = Machine::new();
        machine.processor.general.set(9, DATA);
        let entered = if line == branch {
            // The branch stands behind a `nop`, which steps first.
            run_under(&mut machine, psr::IC | status & !psr::SS, &[("nop.m", 0, &[0])]);
            machine.set_control(control::IPSR, psr::IC | status | 1 << psr::RI_SHIFT);
            machine.set_control(control::IIP, CODE + 0x1000);
            machine.write_code(CODE + 0x1000, &[line]);
            machine.processor.status = 0;
            machine.run(&[("rfi", 0, &[])])
        } else {
            run_under(&mut machine, psr::IC | status, &[line])
        };
        assert_eq!(entered, Some(kind.vector()));
        assert_eq!(machine.isr() & 0xf, code, "{kind:?}");
    }
    for (status, kind, code) in [
        (psr::LP, FaultKind::LowerPrivilegeTransfer, 2),
        (psr::LP | psr::TB, FaultKind::LowerPrivilegeTransfer, 6),
    ] {
        let mut machine = Machine::new();
        machine.processor.set_application(64, 3 << 62);
        machine.processor.branch[0] = CODE;
        let entered = run_under(&mut machine, psr::IC | status, &[("br.ret", 0, &[0])]);
        assert_eq!(entered, Some(kind.vector()));
        assert_eq!(machine.isr() & 0xf, code);
        assert_eq!(machine.control(control::IIP), CODE);
        assert_eq!(machine.control(control::IIPA), CODE + 0x1000);
        assert_eq!(machine.control(control::IPSR) >> 32 & 3, 3, "already demoted");
    }
}

#[test]
fn a_line_fetch_that_is_restarted_with_deferral_fetches_nothing() {
    let fetch: Line = ("lfetch.fault", 0, &[9]);
    for (status, expected) in [(psr::ED, None), (0, Some(FaultKind::Debug.vector()))] {
        let mut machine = Machine::new();
        machine.processor.general.set(9, DATA);
        watch(&mut machine, DATA, 3, READS);
        assert_eq!(
            run_under(&mut machine, psr::IC | psr::DB | status, &[fetch]),
            expected
        );
    }
    // For one instruction: the next one faults again.
    let mut machine = Machine::new();
    machine.processor.general.set(9, DATA);
    watch(&mut machine, DATA, 3, READS);
    let entered = run_under(&mut machine, psr::IC | psr::DB | psr::ED, &[fetch, fetch]);
    assert_eq!(entered, Some(FaultKind::Debug.vector()));
}
