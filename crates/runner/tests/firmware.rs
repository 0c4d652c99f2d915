//! What the firmware says of the processor is what the model computes with: a kernel that asks PAL for its caches
//! learns those whose misses it is charged for. Neither crate knows the other.

use sidestep_itanium2::Parameters;
use sidestep_machine::firmware::pal::{Work, call};

// Procedures (manual volume 2, tables 11-13 and 11-14).
const CACHE_INFO: u64 = 2;
const CACHE_SUMMARY: u64 = 4;
const VM_INFO: u64 = 7;

/// A cache as both sides know it.
#[derive(Debug, PartialEq)]
struct Cache {
    /// PAL's level, from 0, and type: 1 for instructions, 2 for data or both.
    place: (u64, u64),
    is_unified: bool,
    size: u64,
    ways: u64,
    line: u64,
    latency: u64,
}

fn results(procedure: u64, arguments: [u64; 3]) -> [u64; 4] {
    match call(procedure, arguments, 0) {
        Work::Return(results) => results,
        other => panic!("procedure {procedure} does {other:?}"),
    }
}

/// The caches of PAL's description: the fields of its first and second result.
fn described() -> Vec<Cache> {
    let [status, levels, ..] = results(CACHE_SUMMARY, [0; 3]);
    assert_eq!(status, 0);
    let places = (0..levels).flat_map(|level| [(level, 1), (level, 2)]);
    let described = |place: (u64, u64)| {
        let [status, first, second, _] = results(CACHE_INFO, [place.0, place.1, 0]);
        let field = |from: u32| first >> from & 0xff;
        (status == 0).then(|| Cache {
            place,
            is_unified: first & 1 != 0,
            size: second & 0xffff_ffff,
            ways: field(8),
            line: 1 << field(16),
            latency: field(40),
        })
    };
    places.filter_map(described).collect()
}

#[test]
fn pal_describes_the_caches_of_the_usual_preset() {
    let preset = Parameters::default();
    let computed = [
        ((0, 1), false, preset.l1i),
        ((0, 2), false, preset.l1d),
        ((1, 2), true, preset.l2),
        ((2, 2), true, preset.l3),
    ]
    .map(|(place, is_unified, shape)| Cache {
        place,
        is_unified,
        size: shape.size.into(),
        ways: shape.ways.into(),
        line: shape.line.into(),
        latency: shape.latency.into(),
    });
    assert_eq!(described(), computed);
}

/// The first level of each TLB, which the model has too, is no level of PAL's.
#[test]
fn pal_describes_the_second_level_of_the_usual_presets_tlbs() {
    let entries = Parameters::default().tlb_second as u64;
    for kind in [1, 2] {
        let [status, shape, ..] = results(VM_INFO, [0, kind, 0]);
        assert_eq!((status, shape >> 16 & 0xffff), (0, entries), "type {kind}");
        assert_ne!(results(VM_INFO, [1, kind, 0])[0], 0, "type {kind}");
    }
}
