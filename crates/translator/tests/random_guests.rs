//! Random guests in system mode: translated they end in the same state as interpreted, at every number of
//! instructions.

#[path = "../../ia64/tests/random_guest/mod.rs"]
mod random_guest;

use proptest::prelude::*;
use random_guest::{Difference, Guest, Spectator};
use sidestep_translator::{Settings, Translator};

const INSTRUCTIONS: u64 = 1500;

/// The state of a guest after `end` instructions, run in pieces.
fn interpreted(bytes: &[u8], end: u64, piece: u64) -> Option<Vec<u64>> {
    let mut guest = Guest::new(bytes);
    let finished = guest.run(end, piece, sidestep_ia64::Processor::run);
    finished.then(|| guest.state())
}

/// The same by the translator, with how many of the instructions it has translated.
fn translated(bytes: &[u8], end: u64, piece: u64, threshold: u32) -> (Option<Vec<u64>>, u64) {
    let settings = Settings {
        threshold,
        code_bytes_max: 1 << 20,
        ..Settings::ALWAYS
    };
    let mut guest = Guest::new(bytes);
    let mut translator = Translator::new(settings, None).expect("a host that code can be emitted for");
    let finished = guest.run(end, piece, |processor, limit| {
        processor.run_with(limit, &mut translator, &mut ())
    });
    let count = translator.statistics().translated;
    (finished.then(|| guest.state()), count)
}

/// Whether a guest executes what it has written itself: what it does then depends on when that is decoded.
fn executes_data(bytes: &[u8]) -> bool {
    let mut spectator = Spectator::default();
    Guest::new(bytes).run(INSTRUCTIONS, 100, |processor, limit| {
        processor.run_observed(limit, &mut spectator)
    });
    spectator.executes_data
}

/// Where a guest is first otherwise when it is translated.
fn difference(bytes: &[u8], piece: u64, threshold: u32) -> Option<Difference> {
    let differs = |end: u64| {
        let one = interpreted(bytes, end, end)?;
        let other = translated(bytes, end, piece.min(end), threshold).0?;
        let words = one.into_iter().zip(other).enumerate();
        let words = words.filter(|(_, (one, other))| one != other);
        let words: Vec<_> = words.map(|(index, (one, other))| (index, one, other)).collect();
        (!words.is_empty()).then_some(words)
    };
    differs(INSTRUCTIONS)?;
    if executes_data(bytes) {
        return None;
    }
    let (mut low, mut high) = (0, INSTRUCTIONS);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if differs(middle).is_some() {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(Difference {
        instructions: high,
        ip: interpreted(bytes, low, low).map_or(0, |state| state[0]),
        words: differs(high)?,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

    #[test]
    fn a_translated_guest_does_what_an_interpreted_one_does(
        bytes: [u8; 16],
        threshold in 1u32..4,
        piece in 1u64..3000,
    ) {
        let difference = difference(&bytes, piece, threshold);
        prop_assert!(difference.is_none(), "{difference:#x?}");
    }
}

/// Guests that the property is tried on; `SIDESTEP_GUESTS` says otherwise.
fn cases() -> u32 {
    let given = std::env::var("SIDESTEP_GUESTS").ok();
    given.and_then(|count| count.parse().ok()).unwrap_or(32)
}

/// Guests that were once translated wrongly, with threshold and piece.
const ONCE_WRONG: &[([u8; 16], u32, u64)] = &[
    // A branch to IA-32 code that its predicate lets do nothing.
    (
        [
            205, 128, 143, 226, 34, 83, 68, 148, 212, 232, 157, 66, 250, 230, 184, 182,
        ],
        1,
        4,
    ),
];

#[test]
fn a_guest_that_was_translated_wrongly_is_right() {
    for (bytes, threshold, piece) in ONCE_WRONG {
        let difference = difference(bytes, *piece, *threshold);
        assert!(difference.is_none(), "{bytes:?}: {difference:#x?}");
    }
}
