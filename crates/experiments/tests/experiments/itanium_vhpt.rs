//! `itanium.vhpt`: the events behind Table 1, on a few of its points.

use crate::points::measure;
use sidestep_lab::{Number, Side};

fn value(side: &Side) -> Number {
    side.value.expect("a side has a value")
}

fn counter(side: &Side, name: &str) -> Number {
    side.find(name).expect("the counter is there").value
}

#[test]
fn the_long_format_misses_less_once_the_ring_is_larger_than_the_tlb() {
    let settings = [
        "count=events",
        "workload=context",
        "working-set=0",
        "processes=2,48",
        "passes=2",
    ];
    for (point, measurement) in measure("itanium.vhpt", &settings) {
        let (short, long) = (value(&measurement.baseline), value(&measurement.sidestep));
        assert!(long <= short, "{point}: {long:?} against {short:?}");
        // On two CPUs the ring is spread over two TLBs, and a waiting one's instructions are not counted.
        if point.value("kernel").text() == "U" {
            let is_larger = point.value("processes").count() == 48;
            assert!(long < short || !is_larger, "{point}: {long:?} against {short:?}");
            assert!(counter(&measurement.baseline, "instructions") > Number::from(100));
        }
    }
}

#[test]
fn the_walker_refills_without_the_kernel_and_software_alone_does_not() {
    let settings = [
        "count=events",
        "workload=refill-walker,refill-software-tlb",
        "refill-pages=300",
        "passes=2",
    ];
    for (point, measurement) in measure("itanium.vhpt", &settings) {
        let few = Number::ratio(1, 20);
        let insertions = "insertions by software";
        assert!(counter(&measurement.sidestep, insertions) < few, "{point}");
        assert!(
            counter(&measurement.baseline, insertions) > Number::ratio(9, 10),
            "{point}"
        );
        assert!(value(&measurement.baseline) > Number::from(20), "{point}");
    }
}
