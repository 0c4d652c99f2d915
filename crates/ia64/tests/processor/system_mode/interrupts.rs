//! External interrupts, their priorities, and the interval timer.

use sidestep_ia64::FaultKind;
use sidestep_ia64::encoding::{DecodedSlot, Instruction};
use sidestep_ia64::execution::{Dynamic, Observer};
use sidestep_ia64::registers::application::ITC;
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control;

use super::harness::*;

#[test]
fn external_interrupts_wait_for_psr_i_and_priority() {
    let mut machine = Machine::new();
    let interrupts = machine.processor.interrupts().unwrap();
    interrupts.request(0x41);
    machine.processor.status = psr::IC;
    assert_eq!(machine.run(&[("nop.m", 0, &[0])]), None);
    assert_eq!(
        machine.run(&[("ssm", 0, &[1 << 14]), ("srlz.d", 0, &[]), ("nop.m", 0, &[0])]),
        Some(FaultKind::ExternalInterrupt.vector())
    );
    // IVR gives the vector and puts it in service; a request of the same class then waits.
    let handler = [("mov M33", 0, &[8, i64::from(control::IVR)][..])];
    assert_eq!(machine.run(&handler), None);
    assert_eq!(machine.processor.general.value(8), 0x41);
    interrupts.request(0x42);
    assert_eq!(machine.run(&handler), None);
    assert_eq!(machine.processor.general.value(8), 15, "spurious");
    assert_eq!(
        machine.run(&[("mov M32", 0, &[i64::from(control::EOI), 0]), handler[0]]),
        None
    );
    assert_eq!(machine.processor.general.value(8), 0x42);
}

#[test]
fn the_interval_timer_interrupts_at_its_match() {
    let mut machine = Machine::new();
    machine.set_control(control::ITV, 0xef);
    machine.set_control(control::ITM, machine.processor.instructions_retired() + 300);
    machine.processor.status = psr::IC | psr::I;
    let spin = [("nop.m", 0, &[0][..]), ("brl.cond", 0, &[-16])];
    assert_eq!(machine.run(&spin), Some(FaultKind::ExternalInterrupt.vector()));
    assert!(machine.processor.instructions_retired() >= 300);
}

/// A clock that goes on by a tick in two instructions.
#[derive(Default)]
struct HalfSpeed {
    retired: u64,
    told: u64,
}

impl Observer for HalfSpeed {
    type Static = ();

    fn decode(&mut self, _: &Instruction, _: &DecodedSlot) {}

    fn retired(&mut self, (): &(), _: &Dynamic<'_>) {
        self.retired += 1;
    }

    fn clock(&mut self) -> Option<u64> {
        let behind = self.retired / 2;
        let told = std::mem::replace(&mut self.told, behind);
        Some((behind - told).wrapping_neg())
    }
}

#[test]
fn the_interval_timer_waits_for_a_clock_that_is_slower_than_instructions() {
    let mut machine = Machine::new();
    let match_at = machine.processor.instructions_retired() + 300;
    machine.set_control(control::ITV, 0xef);
    machine.set_control(control::ITM, match_at);
    machine.processor.status = psr::IC | psr::I;
    machine.write_code(CODE, &[("nop.m", 0, &[0]), ("brl.cond", 0, &[-16])]);
    machine.processor.set_instruction_pointer(CODE, 0);
    machine.processor.run_observed(10_000, &mut HalfSpeed::default());
    let taken = machine.processor.instructions_retired();
    assert!((598..620).contains(&taken), "{taken} instructions");
    assert_eq!(
        machine.processor.instruction_pointer().0 - VECTORS,
        FaultKind::ExternalInterrupt.vector()
    );
}

/// A clock that jumps ahead once, where the counter is read.
struct Jump(Option<u64>);

impl Observer for Jump {
    type Static = ();

    fn decode(&mut self, _: &Instruction, _: &DecodedSlot) {}

    fn retired(&mut self, (): &(), _: &Dynamic<'_>) {}

    fn clock(&mut self) -> Option<u64> {
        Some(self.0.take().unwrap_or(0))
    }
}

/// The block that reads the counter goes on behind that: its rest may hold the match.
#[test]
fn a_match_is_not_lost_in_a_block_in_whose_middle_the_clock_was_moved() {
    let read = ("mov.m M31", 0, &[8, i64::from(ITC)][..]);
    let nop = ("nop.m", 0, &[0][..]);
    let program = [nop, nop, read, nop, nop, nop, ("brl.cond", 0, &[-6 * 16][..])];
    for ahead in 980..=1_000 {
        let mut machine = Machine::new();
        machine.set_control(control::ITV, 0xef);
        machine.set_control(control::ITM, machine.processor.instructions_retired() + 1_000);
        machine.processor.status = psr::IC | psr::I;
        machine.write_code(CODE, &program);
        machine.processor.set_instruction_pointer(CODE, 0);
        let begin = machine.processor.instructions_retired();
        machine.processor.run_observed(300, &mut Jump(Some(ahead)));
        let vector = machine.processor.instruction_pointer().0 - VECTORS;
        assert_eq!(
            vector,
            FaultKind::ExternalInterrupt.vector(),
            "{ahead} ticks ahead"
        );
        let taken = machine.processor.instructions_retired() - begin;
        assert!(taken < 60, "{taken} instructions, {ahead} ticks ahead");
    }
}

#[test]
fn a_match_is_not_lost_in_the_block_that_sets_the_timer() {
    let nop = ("nop.m", 0, &[0][..]);
    for (set, distance) in [
        (("mov M32", 0, &[i64::from(control::ITM), 9][..]), 0),
        (("mov.m M29", 0, &[i64::from(ITC), 10][..]), 400),
    ] {
        let mut machine = Machine::new();
        let now = machine.processor.instructions_retired();
        machine.set_control(control::ITV, 0xef);
        machine.set_control(control::ITM, now + distance);
        // Three bundles of three slots go before the match.
        machine.processor.general.set(9, now + 9);
        machine
            .processor
            .general
            .set(10, now + distance - distance.min(5));
        machine.processor.status = psr::IC | psr::I;
        let program = [set, nop, nop, nop, nop, nop, nop, ("brl.cond", 0, &[0][..])];
        machine.write_code(CODE, &program);
        machine.processor.set_instruction_pointer(CODE, 0);
        machine.processor.run(100);
        assert_eq!(
            machine.processor.instruction_pointer().0 - VECTORS,
            FaultKind::ExternalInterrupt.vector(),
            "{set:?}"
        );
    }
}

#[test]
fn a_match_is_not_lost_where_an_interruption_is_taken_at_the_same_instruction() {
    for distance in 1..=12 {
        let mut machine = Machine::new();
        machine.translate_code();
        machine.set_control(control::ITV, 0xef);
        let begin = machine.processor.instructions_retired();
        machine.set_control(control::ITM, begin + distance);
        machine.processor.status |= psr::IC;
        // To a page that cannot be fetched.
        let program = [("nop.m", 0, &[0][..]), ("brl.cond", 0, &[1 << 24])];
        assert_eq!(
            machine.run(&program),
            Some(FaultKind::AlternateInstructionTlb.vector())
        );
        let passed = machine.processor.instructions_retired() - begin;
        let requests = machine.processor.interrupts().expect("system mode").requests(3);
        assert_eq!(
            requests >> (0xef - 192) & 1 != 0,
            passed >= distance,
            "{passed} instructions, the match at {distance}"
        );
    }
}

#[test]
fn the_task_priority_masks_classes_and_all_but_the_non_maskable() {
    // The lowest four bits of TPR are ignored, as kernels that write whole vectors expect.
    for (priority, vector, is_delivered) in [
        (0u64, 0x10, true),
        (0x41, 0x4f, false),
        (0x4f, 0x50, true),
        (0xff, 0xef, false),
        (1 << 16, 0xff, false),
        (1 << 16, 2, true),
    ] {
        let mut machine = Machine::new();
        machine.processor.general.set(9, priority);
        machine.processor.status = psr::IC;
        assert_eq!(
            machine.run(&[("mov M32", 0, &[i64::from(control::TPR), 9])]),
            None
        );
        machine
            .processor
            .interrupts()
            .expect("system mode")
            .request(vector);
        machine.processor.status = psr::IC | psr::I;
        let entered = machine.run(&[("nop.m", 0, &[0])]);
        let expected = is_delivered.then_some(FaultKind::ExternalInterrupt.vector());
        assert_eq!(entered, expected, "TPR {priority:#x}, vector {vector:#x}");
        assert_eq!(machine.processor.has_deliverable_interrupt(), is_delivered);
    }
    let mut machine = Machine::new();
    machine.processor.status = psr::IC;
    machine.processor.general.set(9, 1 << 17);
    let refused = machine.run(&[("mov M32", 0, &[i64::from(control::TPR), 9])]);
    assert_eq!(refused, Some(FaultKind::GeneralException.vector()));
    assert_eq!(machine.isr(), 0x30);
}
