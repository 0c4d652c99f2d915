//! Published numbers, pinned: a change of a model that moves one of them is seen here, and belongs into the change log
//! beside the renewed pages of results.

use crate::points::measure;
use sidestep_lab::Number;

/// An experiment, its settings, and the values of both sides, to a hundredth, point by point.
type Pin = (
    &'static str,
    &'static [&'static str],
    &'static [[&'static str; 2]],
);

const PINS: &[Pin] = &[
    // Table 3 on the kernel for one CPU, static: getpid, getppid, gettimeofday.
    (
        "itanium.syscall",
        &["kernel=U", "link=static", "call=getpid,getppid,gettimeofday"],
        &[["281.25", "32.99"], ["282.25", "34.97"], ["391.25", "120.98"]],
    ),
    // Table 2: a signal with the full and with the minimal state.
    (
        "itanium.signal",
        &["kernel=U", "of=delivery"],
        &[["2659.45", "1868.53"]],
    ),
    // Table 6: the generic path, and those in assembly, three of them as they are scheduled in the run.
    (
        "itanium.ipc",
        &[],
        &[
            ["340.99", "132.00"],
            ["340.99", "85.00"],
            ["340.99", "66.00"],
            ["340.99", "61.00"],
            ["340.99", "36.00"],
        ],
    ),
    // Figure 1: null call, identification, page table update, page fault.
    (
        "sidecore.calls",
        &["count=1000"],
        &[
            ["5456.02", "776.01"],
            ["5798.02", "1112.02"],
            ["5931.78", "1870.94"],
            ["16693.75", "12591.76"],
        ],
    ),
    // What walks take behind a null call with handlers of 16 kB, and updates by one and four processors.
    (
        "sidecore.pollution",
        &["request=null", "working-set-kb=12", "handler-kb=16", "count=100"],
        &[["1154.00", "397.64"]],
    ),
    (
        "sidecore.updates",
        &["processors=1,8", "work=0", "count=200"],
        &[["6019.79", "1932.75"], ["793.97", "1010.57"]],
    ),
    // Figure 5: one device and one unit, and three of each, at 2 and at 6 us.
    (
        "cefos.scaling",
        &["round-trip=2us,6us", "devices=3", "units=3"],
        &[["38.00", "99.00"], ["15.00", "40.00"]],
    ),
    // Figure 6: IS in double with given sets and with none, where two host threads advance virtual machines: with one
    // they are rows of the stored results.
    (
        "gang.npb",
        &[
            "hosts=gainestown",
            "kernels=is",
            "loads=double",
            "policies=given,none",
            "workers=2",
        ],
        &[["7316000.00", "5705500.00"], ["7316000.00", "5439000.00"]],
    ),
    // Figure 3 cut at t = 1.5: all five tasks at once, and the largest set.
    ("gang.groups", &["factors=1.5"], &[["5.00", "4.00"]]),
];

#[test]
fn published_numbers_are_what_they_were() {
    let mut moved = Vec::new();
    for (name, settings, pinned) in PINS {
        let measured = measure(name, settings);
        assert_eq!(measured.len(), pinned.len(), "{name}: points");
        for ((point, measurement), pinned) in measured.iter().zip(*pinned) {
            let shown = |value: Option<Number>| value.map_or_else(String::new, |value| value.to_fixed(2));
            let ours = [&measurement.baseline, &measurement.sidestep].map(|side| shown(side.value));
            if ours != *pinned {
                moved.push(format!("{name} {point}: {ours:?}, published {pinned:?}"));
            }
        }
    }
    assert!(
        moved.is_empty(),
        "published numbers have moved:\n{}",
        moved.join("\n")
    );
}
