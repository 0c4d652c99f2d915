//! The Itanium experiments in cycles: guests on machines with the pipeline model attached.

use crate::points::measure;
use sidestep_experiments::itanium::kernel::{Finished, Guest, Meter, Run};
use sidestep_ia64::execution::{Driver, Untimed};
use sidestep_ia64::{Exit, Processor};
use sidestep_itanium2::{Counters, Parameters, Pipeline};
use sidestep_lab::{Drawing, Measurement, Number, Side};
use sidestep_runner::machine::Timed;

fn value(side: &Side) -> Number {
    side.value.expect("a side has a value")
}

fn counter(side: &Side, name: &str) -> Number {
    side.find(name).map_or(Number::ZERO, |counter| counter.value)
}

/// Every cycle is an issue cycle or a bubble, and the tree of bubbles adds up.
fn adds_up(measurement: &Measurement) {
    for side in [&measurement.baseline, &measurement.sidestep] {
        let [Drawing::Breakdown(breakdown)] = &side.drawings[..] else {
            panic!("a tree of bubbles");
        };
        assert!(breakdown.whole.adds_up(), "{}", breakdown.title);
        let sum = counter(side, "issue cycles") + counter(side, "BACK_END_BUBBLE.ALL");
        assert_eq!(breakdown.whole.value, sum, "{}", breakdown.title);
    }
}

#[test]
fn guests_measure_the_latencies_of_tables_4_and_5_with_the_monitor() {
    let pairs = [
        ("to-rsc/from-bsp", 13),
        ("from-unat/float", 6),
        ("to-bspstore/flushrs", 12),
        ("loadrs/loadrs", 8),
        ("bsw/any", 6),
        ("rfi/any", 13),
        ("sum/srlz.d", 10),
        ("to-rr/mf", 14),
        ("thash/use", 5),
    ];
    for (pair, cycles) in pairs {
        for (_, measurement) in measure("itanium.latency", &[&format!("pair={pair}")]) {
            assert_eq!(value(&measurement.baseline), Number::from(cycles), "{pair}");
        }
    }
}

#[test]
fn a_context_switch_is_counted_in_cycles_on_both_kernels_with_either_format() {
    let settings = [
        "count=cycles",
        "workload=context",
        "working-set=0",
        "processes=2",
        "passes=2",
    ];
    let measured = measure("itanium.vhpt", &settings);
    assert_eq!(measured.len(), 2);
    for (point, measurement) in measured {
        adds_up(&measurement);
        for side in [&measurement.baseline, &measurement.sidestep] {
            assert!(counter(side, "instructions") > Number::from(100), "{point}");
            assert!(value(side) > counter(side, "issue cycles"), "{point}");
        }
    }
}

#[test]
fn a_gate_page_spares_a_system_call_the_exception_and_its_flushes() {
    for (point, measurement) in measure("itanium.syscall", &["calls=100", "link=static"]) {
        adds_up(&measurement);
        let (by_break, by_epc) = (value(&measurement.baseline), value(&measurement.sidestep));
        assert!(
            by_epc * Number::from(2) < by_break,
            "{point}: {by_epc:?}, {by_break:?}"
        );
        let exception = "BE_FLUSH_BUBBLE.XPN";
        assert!(
            counter(&measurement.baseline, exception) >= Number::from(16),
            "{point}"
        );
        assert_eq!(counter(&measurement.sidestep, exception), Number::ZERO, "{point}");
    }
}

#[test]
fn the_full_state_costs_a_signal_hundreds_of_cycles() {
    for (point, measurement) in measure("itanium.signal", &["signals=50", "dumps=2"]) {
        adds_up(&measurement);
        let more = value(&measurement.baseline) - value(&measurement.sidestep);
        match point.value("of").text() {
            "delivery" => assert!(more > Number::from(400), "{point}: {more:?}"),
            _ => assert!(
                more < Number::ZERO,
                "{point}: a dump unwinds with the minimal state"
            ),
        }
    }
}

#[test]
fn each_version_of_the_message_path_is_faster_than_the_one_before() {
    let rows = measure("itanium.ipc", &["rounds=50"]);
    let mut last = value(&rows[0].1.baseline);
    for (point, measurement) in &rows {
        adds_up(measurement);
        let cycles = value(&measurement.sidestep);
        assert!(cycles < last, "{point}: {cycles:?} against {last:?}");
        last = cycles;
    }
    assert_eq!(measure("itanium.ipc", &["rounds=50"]), rows, "the same again");
}

#[test]
fn a_kernel_does_the_same_with_the_model_attached() {
    let run = Run {
        guest: Guest::Kernel(2),
        parameters: "program=tests".to_owned(),
        memory_mb: 192,
        instructions_max: 200_000_000,
        quantum_ticks: Guest::Kernel(2).quantum_ticks(),
        keeps_dumps: false,
    };
    let mut meters = Timed::each(&Parameters::default(), 2);
    let finished = run
        .run(&mut meters, &|| false)
        .expect("the kernel passes its tests");
    assert!(finished.console.ends_with("all right\n"), "{}", finished.console);
}

/// A pipeline that leaves time alone: the guest's clock goes on with its instructions, as without a model.
struct Silent(Pipeline);

impl Driver for Silent {
    fn run(&mut self, processor: &mut Processor, limit: u64) -> Exit {
        self.0.run(processor, limit)
    }
}

impl Meter for Silent {
    fn counters(&self) -> Option<Counters> {
        Some(self.0.counters())
    }
}

#[test]
fn the_model_changes_neither_what_a_machine_writes_nor_what_it_retires() {
    fn run<M: Meter>(mut meters: Vec<M>) -> Finished {
        let run = Run {
            guest: Guest::Kernel(meters.len()),
            parameters: "program=context 2 0 20".to_owned(),
            memory_mb: 192,
            instructions_max: 100_000_000,
            quantum_ticks: Guest::Kernel(meters.len()).quantum_ticks(),
            keeps_dumps: false,
        };
        run.run(&mut meters, &|| false).expect("the program ends")
    }
    for processors in [1, 2] {
        let plain = run(vec![Untimed; processors]);
        let silent = || Silent(Pipeline::new(Parameters::default()));
        let timed = run((0..processors).map(|_| silent()).collect());
        assert_eq!(timed.console, plain.console);
        assert_eq!(timed.retired, plain.retired);
    }
}
