//! Random programs on both executors against the reference interpreter: no continuation is lost, none runs
//! twice.

mod random;

use std::time::Duration;

use proptest::prelude::*;
use random::{Built, build, programs, reference};
use sidestep_zerowait::Time;
use sidestep_zerowait::cores::{Config, Cores, IdlePolicy, Shutdown};
use sidestep_zerowait::virtual_time::{self, VirtualTime};

/// Longer than any of these programs takes on any machine.
const AMPLE: Duration = Duration::from_secs(60);

/// Later than any of these programs ends in virtual time.
const FAR: Time = Time(1_000_000);

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 96 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn virtual_time_does_what_the_reference_does(
        (nodes, starts) in programs(3),
        cores in 1u16..4,
        host_threads in 1usize..4,
        lookahead in 1u64..20,
    ) {
        let Built { program, ports, log } = build(&nodes);
        let config = virtual_time::Config { cores, host_threads, lookahead, ..Default::default() };
        let mut machine = VirtualTime::new(program, config).unwrap();
        for (node, budget) in &starts {
            machine.send(ports[*node].unwrap(), (*budget, 0)).unwrap();
        }
        machine.run_until(FAR).unwrap();
        let report = machine.report();
        prop_assert!(report.is_drained(), "{report}");
        prop_assert!(report.panics.is_empty(), "{report}");
        prop_assert_eq!(&*log.lock().unwrap(), &reference(&nodes, &starts));
    }

    #[test]
    fn virtual_time_gives_the_same_bytes_on_any_number_of_host_threads(
        (nodes, starts) in programs(4),
        cores in 1u16..3,
        lookahead in 1u64..10,
    ) {
        let run = |host_threads| {
            let Built { program, ports, .. } = build(&nodes);
            let config = virtual_time::Config { cores, host_threads, lookahead, trace: true, ..Default::default() };
            let mut machine = VirtualTime::new(program, config).unwrap();
            for (node, budget) in &starts {
                machine.send(ports[*node].unwrap(), (*budget, 0)).unwrap();
            }
            machine.run_until(FAR).unwrap();
            let mut text = machine.report().to_string();
            machine.trace().iter().for_each(|entry| text.push_str(&format!("{entry}\n")));
            text
        };
        let alone = run(1);
        prop_assert_eq!(&run(2), &alone);
        prop_assert_eq!(&run(4), &alone);
    }

    #[test]
    fn cores_do_what_the_reference_does(
        (nodes, starts) in programs(1),
        cores in 1usize..4,
        queue_capacity in prop_oneof![Just(64usize), Just(1 << 10)],
        gate_batch in 1u32..4,
    ) {
        let Built { program, ports, log } = build(&nodes);
        // Several cores on one processor, too: the order of things is the host's whim.
        let config = Config {
            cores,
            cores_max: cores,
            queue_capacity,
            inbox_capacity: 256,
            timers: 256,
            gate_batch,
            sampling: 1,
            idle: IdlePolicy { spin: Duration::ZERO, pause: Duration::from_micros(1), sleep: true },
            ..Config::default()
        };
        let executor = Cores::start(program, config).unwrap();
        for (node, budget) in &starts {
            executor.send(ports[*node].unwrap(), (*budget, 0)).unwrap();
        }
        let report = executor.shutdown(Shutdown::Drain { at_most: AMPLE });
        prop_assert!(report.panics.is_empty(), "{report}");
        prop_assert!(report.is_drained(), "{report}");
        prop_assert_eq!(&*log.lock().unwrap(), &reference(&nodes, &starts));
    }
}
