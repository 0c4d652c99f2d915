//! The structure of figure 4 of the CEFOS paper, on both executors: senders, gate, system call, semaphore,
//! device, handler, receivers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sidestep_zerowait::cores::{self, Cores, Shutdown};
use sidestep_zerowait::virtual_time::{self, VirtualTime};
use sidestep_zerowait::{Graph, Mode, OnPanic, Policy, Port, Program, Report};

const CALLS: u64 = if cfg!(miri) { 8 } else { 80 };

struct Machine {
    program: Program,
    start: Port<(u64, u64)>,
    received: Arc<Mutex<Vec<(u64, u64)>>>,
}

/// The program; the device squares its argument and takes `round_trip` ticks.
fn machine(gate_policy: Policy, round_trip: u64) -> Machine {
    let mut graph = Graph::new();
    let received: Arc<Mutex<Vec<(u64, u64)>>> = Arc::default();
    let queue = Policy::Queue {
        capacity: CALLS as usize,
    };
    let sender = graph.declare::<(u64, u64)>("sender", Mode::User);
    let receiver = graph.declare::<(u64, u64)>("receiver", Mode::User);
    let gate = graph.declare_gate::<(u64, u64)>("gate", Mode::KernelInterface, gate_policy, OnPanic::Poison);
    let syscall = graph.declare::<(u64, u64)>("syscall", Mode::Kernel);
    let device = graph.declare_gate::<(u64, u64)>("device", Mode::Kernel, queue, OnPanic::Poison);
    let handler = graph.declare::<(u64, u64)>("handler", Mode::Kernel);

    let again = graph.edge(sender, sender).unwrap();
    let into_gate = graph.entry(sender, gate).unwrap();
    let to_syscall = graph.edge(gate, syscall).unwrap();
    // The semaphore thread's part (lock the device, or queue) is what entering a gate with a queue does.
    let into_device = graph.entry(syscall, device).unwrap();
    let interrupt = graph.edge(device, handler).unwrap();
    let to_receiver = graph.edge(handler, receiver).unwrap();
    let next_request = graph.release(handler, device).unwrap();

    graph.define(sender, move |cx, call| {
        cx.spend(5);
        if let Err(refused) = cx.enter(into_gate, call) {
            cx.retry(again, refused.value);
        }
    });
    graph.define_gate(gate, move |cx, call| {
        cx.spend(7);
        cx.continue_to(to_syscall, call);
    });
    graph.define(syscall, move |cx, call| {
        cx.enter(into_device, call)
            .expect("the device's queue holds all calls")
    });
    let mut requests = 0;
    graph.define_gate(device, move |cx, (caller, argument)| {
        requests += 1;
        assert!(requests <= CALLS);
        // The device is busy until its handler has been continued to.
        cx.hold();
        cx.continue_after(interrupt, round_trip, (caller, argument * argument))
            .expect("room for a timer");
    });
    graph.define(handler, move |cx, answer| {
        cx.continue_to(to_receiver, answer);
        cx.release(next_request);
    });
    let inbox = Arc::clone(&received);
    graph.define(receiver, move |_, answer| inbox.lock().unwrap().push(answer));
    let start = graph.port(sender);
    Machine {
        program: graph.build().unwrap(),
        start,
        received,
    }
}

fn check(received: &Mutex<Vec<(u64, u64)>>, report: &Report) {
    let mut received = received.lock().unwrap().clone();
    received.sort_unstable();
    assert_eq!(
        received,
        (0..CALLS)
            .map(|caller| (caller, caller * caller))
            .collect::<Vec<_>>(),
        "{report}"
    );
    assert!(report.panics.is_empty() && report.is_drained(), "{report}");
    assert_eq!(report.gate("gate").unwrap().served, CALLS);
    assert_eq!(report.gate("device").unwrap().served, CALLS);
    assert!(!report.gate("device").unwrap().held, "{report}");
}

fn in_virtual_time(gate_policy: Policy, cores: u16) -> Report {
    let Machine {
        program,
        start,
        received,
    } = machine(gate_policy, 100);
    let mut machine = VirtualTime::new(
        program,
        virtual_time::Config {
            cores,
            ..Default::default()
        },
    )
    .unwrap();
    for caller in 0..CALLS {
        machine.send(start, (caller, caller)).unwrap();
    }
    machine.run().unwrap();
    let report = machine.report();
    check(&received, &report);
    report
}

#[test]
fn every_caller_gets_its_own_answer_in_virtual_time() {
    for cores in [1, 4] {
        for policy in [
            Policy::LockOrRetry,
            Policy::Queue { capacity: 3 },
            Policy::Queue { capacity: 1000 },
        ] {
            let report = in_virtual_time(policy, cores);
            // One device, held for each round trip: the calls cannot take less.
            assert!(report.time.0 >= CALLS * 100, "{report}");
        }
    }
}

#[test]
fn a_software_queue_spares_the_self_continuations() {
    let retried = |policy| {
        in_virtual_time(policy, 4)
            .cores
            .iter()
            .map(|core| core.retried)
            .sum::<u64>()
    };
    assert!(
        retried(Policy::LockOrRetry) > CALLS,
        "callers at a busy gate try again"
    );
    assert_eq!(
        retried(Policy::Queue {
            capacity: CALLS as usize
        }),
        0
    );
}

#[test]
fn every_caller_gets_its_own_answer_on_cores() {
    for cores in [1, 3] {
        for policy in [
            Policy::LockOrRetry,
            Policy::Queue { capacity: 3 },
            Policy::Queue { capacity: 1000 },
        ] {
            let Machine {
                program,
                start,
                received,
            } = machine(policy, 1000);
            let config = cores::Config {
                cores,
                cores_max: cores,
                sampling: 1,
                ..Default::default()
            };
            let executor = Cores::start(program, config).unwrap();
            for caller in 0..CALLS {
                executor.send(start, (caller, caller)).unwrap();
            }
            let report = executor.shutdown(Shutdown::Drain {
                at_most: Duration::from_secs(60),
            });
            check(&received, &report);
            let timed: u64 = report.threads.iter().map(|thread| thread.ran.count()).sum();
            assert!(timed > 0, "sampled runs are timed");
        }
    }
}
