//! Random programs in user mode under an observer that takes the instructions of blocks together: translated it is told
//! exactly what it is told of them interpreted, whatever they do: with predicates on and off, faults, NaT bits, frames
//! that change and blocks that end anywhere.

#[path = "../../ia64/tests/machine/mod.rs"]
mod machine;
mod programs;

use programs::{cases, run, translator};
use proptest::prelude::*;
use sidestep_ia64::encoding::{DecodedSlot, Instruction};
use sidestep_ia64::execution::{Dynamic, Event, Observer, Together};
use sidestep_translator::Statistics;

/// What an observer was told.
#[derive(Default)]
struct Log {
    lines: Vec<String>,
    /// Every instruction stands apart whose number, which it gets when it is decoded, is a multiple of it; none for 0.
    apart: u64,
    is_telling_each: bool,
}

impl Observer for Log {
    type Static = u64;

    fn decode(&mut self, instruction: &Instruction, slot: &DecodedSlot) -> u64 {
        // The same for an instruction wherever its block begins.
        u64::from(slot.slot) + u64::from(instruction.r1()) + (instruction.immediate.cast_unsigned() & 0xff)
    }

    fn stands_apart(&self, known: &u64) -> bool {
        self.apart > 0 && known.is_multiple_of(self.apart)
    }

    fn gathers(&mut self, _: u64) -> bool {
        true
    }

    fn retired(&mut self, known: &u64, dynamic: &Dynamic<'_>) {
        let Dynamic {
            place,
            executed,
            reference,
            taken,
            ..
        } = dynamic;
        self.lines.push(format!(
            "{known} at {place:x?} {executed} {reference:x?} {taken:x?}, together: {}",
            self.is_telling_each
        ));
    }

    fn retired_together(&mut self, together: &Together<'_, u64>) {
        self.lines.push(format!(
            "{:#x}: {} of {} {:x?} {:x?} {:x?} {:?} {:?} {:#x}",
            together.start(),
            together.retired(),
            together.length(),
            together.executed(),
            together.taken(),
            together.branches(),
            together.frames(),
            together.advanced(),
            together.status(),
        ));
        self.is_telling_each = true;
        together.tell_each(self);
        self.is_telling_each = false;
    }

    fn event(&mut self, event: &Event<'_>) {
        self.lines.push(format!("{event:?}"));
    }
}

/// Runs a program both ways; answers what was translated.
fn compare(seed: u64, threshold: u32, apart: u64) -> Result<Statistics, TestCaseError> {
    let [mut interpreted, mut translated] = [(); 2].map(|()| Log {
        apart,
        ..Log::default()
    });
    let mut translator = translator(threshold);
    let one = run(seed, |processor, limit| {
        processor.run_observed(limit, &mut interpreted)
    });
    let other = run(seed, |processor, limit| {
        translator.run_observed(processor, limit, &mut translated)
    });
    for (interpreted, translated) in interpreted.lines.iter().zip(&translated.lines) {
        prop_assert_eq!(interpreted, translated);
    }
    prop_assert_eq!(interpreted.lines.len(), translated.lines.len());
    prop_assert!(one == other);
    Ok(translator.statistics())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

    #[test]
    fn an_observer_is_told_the_same_of_translated_code(seed: u64, threshold in 1u32..6, apart in 0u64..9) {
        compare(seed, threshold, apart)?;
    }
}

/// Otherwise the property says nothing.
#[test]
fn programs_of_the_property_are_translated_and_left_anywhere() {
    let mut sum = Statistics::default();
    for seed in 0..60 {
        sum += compare(seed, 1, 0).expect("the same is told");
    }
    assert!(sum.translated > 10_000, "{sum}");
    assert!(sum.raised > 100, "{sum}");
    assert!(sum.left_over > 40, "{sum}");
}
