//! Any bytes are a program: virtual time does with it what the reference interpreter does, whatever the
//! machine.

#![no_main]

#[allow(dead_code)]
#[path = "../../tests/random/mod.rs"]
mod random;

use libfuzzer_sys::fuzz_target;
use random::{Kind, Node, build, legal, reference};
use sidestep_zerowait::Time;
use sidestep_zerowait::virtual_time::{Config, VirtualTime};

/// The machine, then nodes of five bytes each, then starts of two bytes each.
fn program(data: &[u8]) -> Option<(Config, Vec<Node>, Vec<(usize, u64)>)> {
    let ([machine, nodes, starts], rest) = data.split_first_chunk()?;
    let config = Config {
        cores: u16::from(machine & 3) + 1,
        host_threads: usize::from(machine >> 2 & 1) + 1,
        lookahead: u64::from(machine >> 3) + 1,
        events_per_moment: 1 << 20,
        ..Config::default()
    };
    let nodes = rest.get(..5 * (usize::from(nodes % 8) + 1))?;
    let rest = &rest[nodes.len()..];
    let starts = rest.get(..2 * usize::from(starts % 6))?;
    let node = |bytes: &[u8]| Node {
        kind: match bytes[0] % 4 {
            0 | 1 => Kind::Plain,
            2 => Kind::Gate((bytes[0] > 127).then_some(usize::from(bytes[0] >> 2 & 3) + 1)),
            _ => Kind::Fork(u32::from(bytes[0] >> 2) % 4 + 1),
        },
        targets: bytes[1..3].iter().filter(|byte| **byte != 0).map(|byte| usize::from(*byte)).collect(),
        partition: u16::from(bytes[3] % 3),
        spends: u64::from(bytes[4] % 8),
    };
    let nodes = nodes.chunks_exact(5).map(node).collect();
    let starts = starts.chunks_exact(2).map(|bytes| (usize::from(bytes[0]), u64::from(bytes[1] % 6)));
    let (nodes, starts) = legal(nodes, starts.collect());
    Some((config, nodes, starts))
}

fuzz_target!(|data: &[u8]| {
    let Some((config, nodes, starts)) = program(data) else { return };
    let built = build(&nodes);
    let mut machine = VirtualTime::new(built.program, config).expect("a machine within its ranges");
    for (node, budget) in &starts {
        machine.send(built.ports[*node].expect("an entrance"), (*budget, 0)).expect("room for all starts");
    }
    machine.run_until(Time(1 << 20)).expect("a program in which time passes");
    let report = machine.report();
    assert!(report.is_drained() && report.panics.is_empty(), "{report}");
    assert_eq!(*built.log.lock().expect("no panic holds it"), reference(&nodes, &starts));
});
