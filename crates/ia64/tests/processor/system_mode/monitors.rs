//! Performance monitor registers and the interval timer, as programs see them.

use sidestep_ia64::FaultKind;
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control;

use super::harness::*;

const READ: Line = ("mov M43 MonitorData", 0, &[8, 9]);

#[test]
fn programs_read_monitors_that_are_neither_secured_nor_privileged() {
    for (level, status, configuration, expected) in [
        (0, 0, 0, 42),
        (3, 0, 0, 42),
        (3, psr::SP, 0, 0),
        (0, psr::SP, 0, 42),
        (3, 0, 1 << 6, 0),
        (0, 0, 1 << 6, 42),
    ] {
        let mut machine = Machine::new();
        machine.processor.system.performance_data[4] = 42;
        machine.processor.system.performance_configuration[4] = configuration;
        machine.processor.general.set(9, 4);
        machine.processor.status = psr::IC | status;
        machine.processor.set_privilege_level(level);
        machine.run(&[READ]);
        assert_eq!(
            machine.processor.general.value(8),
            expected,
            "level {level}, {status:#x}"
        );
    }
}

#[test]
fn only_level_0_writes_monitors_and_reads_their_configuration() {
    for line in [
        ("mov M42 MonitorData", 0, &[9, 8][..]),
        ("mov M42 MonitorConfiguration", 0, &[9, 8]),
        ("mov M43 MonitorConfiguration", 0, &[8, 9]),
        ("mov M42 DataBreakpoint", 0, &[9, 8]),
        ("mov M43 DataBreakpoint", 0, &[8, 9]),
        ("mov M42 InstructionBreakpoint", 0, &[9, 8]),
    ] {
        for level in [0, 3] {
            let mut machine = Machine::new();
            machine.processor.general.set(9, 4);
            machine.processor.status = psr::IC;
            machine.processor.set_privilege_level(level);
            let entered = machine.run(&[line]);
            if level == 0 {
                assert_eq!(entered, None, "{line:?}");
            } else {
                assert_eq!(entered, Some(FaultKind::GeneralException.vector()), "{line:?}");
                assert_eq!(machine.isr(), 0x10, "a privileged operation");
            }
        }
    }
}

#[test]
fn psr_si_hides_the_interval_timer_from_programs() {
    for (level, status, is_refused) in [(3, psr::SI, true), (0, psr::SI, false), (3, 0, false)] {
        let mut machine = Machine::new();
        machine.processor.status = psr::IC | status;
        machine.processor.set_privilege_level(level);
        let entered = machine.run(&[("mov.m M31", 0, &[8, 44])]);
        assert_eq!(entered == Some(FaultKind::GeneralException.vector()), is_refused);
        if is_refused {
            assert_eq!(machine.control(control::ISR), 0x20, "a privileged register");
        }
    }
}
