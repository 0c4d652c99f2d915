//! Virtual time: order, cores, partitions, devices, and what it refuses.

use std::sync::{Arc, Mutex};

use sidestep_zerowait::device::{Completion, Operation};
use sidestep_zerowait::virtual_time::{Config, ConfigError, DeviceModel, Response, Stuck, VirtualTime};
use sidestep_zerowait::{Attributes, Bring, Graph, Mode, OnPanic, Phase, Policy, Reason, Time};

type Seen<T> = Arc<Mutex<Vec<T>>>;

fn taken<T>(seen: &Seen<T>) -> Vec<T> {
    std::mem::take(&mut *seen.lock().unwrap())
}

#[test]
fn one_moment_goes_by_phases_and_a_phase_in_order() {
    let seen: Seen<&'static str> = Arc::default();
    let mut graph = Graph::new();
    let mut ports = Vec::new();
    for (name, phase) in [
        ("observe", Phase::Observe),
        ("run", Phase::Run),
        ("device", Phase::Device),
        ("retry", Phase::Retry),
    ] {
        let thread = graph.declare::<()>(name, Attributes::new(Mode::User).in_phase(phase));
        let log = Arc::clone(&seen);
        graph.define(thread, move |_, ()| log.lock().unwrap().push(name));
        ports.push((thread, phase));
    }
    let starter = graph.declare::<()>("starter", Mode::User);
    let edges: Vec<_> = ports
        .iter()
        .map(|(thread, _)| graph.edge(starter, *thread).unwrap())
        .collect();
    graph.define(starter, move |cx, ()| {
        for edge in edges.iter().chain(&edges) {
            cx.continue_to(*edge, ());
        }
    });
    let start = graph.port(starter);
    let mut machine = VirtualTime::new(graph.build().unwrap(), Config::default()).unwrap();
    machine.send(start, ()).unwrap();
    machine.run().unwrap();
    assert_eq!(
        taken(&seen),
        [
            "device", "device", "run", "run", "retry", "retry", "observe", "observe"
        ]
    );
}

#[test]
fn a_busy_core_makes_threads_wait_and_threads_without_cost_do_not_get_stuck_behind_it() {
    let seen: Seen<(u64, Time, u16)> = Arc::default();
    let mut graph = Graph::new();
    let work = graph.declare::<(u64, u64)>("work", Mode::User);
    let log = Arc::clone(&seen);
    graph.define(work, move |cx, (number, ticks)| {
        log.lock().unwrap().push((number, cx.now(), cx.core()));
        cx.spend(ticks);
    });
    let start = graph.port(work);
    let mut machine = VirtualTime::new(
        graph.build().unwrap(),
        Config {
            cores: 2,
            ..Config::default()
        },
    )
    .unwrap();
    for (number, ticks) in [(0, 10), (1, 4), (2, 0), (3, 0), (4, 5)] {
        machine.send(start, (number, ticks)).unwrap();
    }
    assert_eq!(machine.run(), Ok(Time(10)));
    let expected = [(0, 0, 0), (1, 0, 1), (2, 4, 1), (3, 4, 1), (4, 4, 1)];
    assert_eq!(
        taken(&seen),
        expected.map(|(number, time, core)| (number, Time(time), core))
    );
    let report = machine.report();
    assert_eq!(
        report.cores.iter().map(|core| core.busy).collect::<Vec<_>>(),
        [10, 9]
    );
    assert_eq!(report.thread("work").unwrap().waited.max(), 4);
}

#[test]
fn a_gate_stays_taken_while_its_thread_spends_time() {
    let seen: Seen<(u64, Time)> = Arc::default();
    let mut graph = Graph::new();
    let caller = graph.declare::<u64>("caller", Mode::User);
    let gate = graph.declare_gate::<u64>("gate", Mode::User, Policy::Queue { capacity: 4 }, OnPanic::Poison);
    let enter = graph.entry(caller, gate).unwrap();
    graph.define(caller, move |cx, number| cx.enter(enter, number).unwrap());
    let log = Arc::clone(&seen);
    graph.define_gate(gate, move |cx, number| {
        log.lock().unwrap().push((number, cx.now()));
        cx.spend(10);
    });
    let start = graph.port(caller);
    let mut machine = VirtualTime::new(
        graph.build().unwrap(),
        Config {
            cores: 4,
            ..Config::default()
        },
    )
    .unwrap();
    for number in 0..3 {
        machine.send_at(start, Time(number), number).unwrap();
    }
    assert_eq!(machine.run(), Ok(Time(30)));
    assert_eq!(taken(&seen), [(0, Time(0)), (1, Time(10)), (2, Time(20))]);
}

#[test]
fn a_run_can_stop_and_go_on() {
    let mut graph = Graph::new();
    let tick = graph.declare::<u64>("tick", Mode::User);
    let next = graph.edge(tick, tick).unwrap();
    graph.define(tick, move |cx, left| {
        if left > 0 {
            cx.continue_after(next, 100, left - 1).unwrap();
        }
    });
    let start = graph.port(tick);
    let mut machine = VirtualTime::new(graph.build().unwrap(), Config::default()).unwrap();
    machine.send(start, 10).unwrap();
    assert_eq!(machine.run_until(Time(250)), Ok(Time(250)));
    let report = machine.report();
    assert_eq!(report.thread("tick").unwrap().runs, 3);
    assert_eq!(report.left.timers, 1);
    assert!(!report.is_drained());
    assert_eq!(machine.run(), Ok(Time(1000)));
    assert!(machine.report().is_drained());
}

#[test]
fn what_crosses_partitions_takes_the_lookahead_and_signals_cross_too() {
    let seen: Seen<(u64, Time)> = Arc::default();
    let mut graph = Graph::new();
    let here = Attributes::new(Mode::User);
    let fork = graph.declare::<()>("fork", here);
    let join = graph.declare_join::<u64>("join", here, 1);
    let far = graph.declare::<u64>("far", here.in_partition(1));
    let open = graph.join_edge(fork, join).unwrap();
    let out = graph.edge(fork, far).unwrap();
    let back = graph.join_edge(far, join).unwrap();
    graph.define(fork, move |cx, ()| {
        let activation = cx.activate(open, 2).unwrap();
        for _ in 0..2 {
            cx.continue_to(out, activation.into_word());
        }
    });
    graph.define(far, move |cx, activation| {
        let activation = sidestep_zerowait::Activation::from_word(activation);
        cx.signal(
            back,
            activation,
            Bring::Add {
                slot: 0,
                word: cx.now().0,
            },
        )
        .unwrap();
        cx.spend(3);
    });
    let log = Arc::clone(&seen);
    graph.define(join, move |cx, sum| log.lock().unwrap().push((sum, cx.now())));
    let start = graph.port(fork);
    let config = Config {
        lookahead: 50,
        host_threads: 2,
        ..Config::default()
    };
    let mut machine = VirtualTime::new(graph.build().unwrap(), config).unwrap();
    machine.send(start, ()).unwrap();
    machine.run().unwrap();
    // There at 50, one after the other on one core; back 50 later.
    assert_eq!(taken(&seen), [(50 + 53, Time(103))]);
}

#[test]
fn an_endless_moment_is_found() {
    let mut graph = Graph::new();
    let spin = graph.declare::<()>("spin", Mode::User);
    let again = graph.edge(spin, spin).unwrap();
    graph.define(spin, move |cx, ()| cx.continue_to(again, ()));
    let start = graph.port(spin);
    let config = Config {
        events_per_moment: 1000,
        ..Config::default()
    };
    let mut machine = VirtualTime::new(graph.build().unwrap(), config).unwrap();
    machine.send_at(start, Time(7), ()).unwrap();
    assert_eq!(
        machine.run(),
        Err(Stuck {
            time: Time(7),
            thread: "spin".into()
        })
    );
}

#[test]
fn a_retry_lets_time_pass() {
    let mut graph = Graph::new();
    let wait = graph.declare::<()>("wait", Mode::User);
    let again = graph.edge(wait, wait).unwrap();
    graph.define(wait, move |cx, ()| {
        if cx.now() < Time(5) {
            cx.retry(again, ());
        }
    });
    let start = graph.port(wait);
    let mut machine = VirtualTime::new(graph.build().unwrap(), Config::default()).unwrap();
    machine.send(start, ()).unwrap();
    assert_eq!(machine.run(), Ok(Time(5)));
    assert_eq!(machine.report().thread("wait").unwrap().runs, 6);
}

#[test]
fn a_full_partition_pushes_back() {
    let refused = Arc::new(Mutex::new(0));
    let mut graph = Graph::new();
    let many = graph.declare::<()>("many", Mode::User);
    let one = graph.declare::<()>("one", Mode::User);
    let edge = graph.edge(many, one).unwrap();
    let count = Arc::clone(&refused);
    graph.define(many, move |cx, ()| {
        for _ in 0..10 {
            if let Err(back) = cx.try_continue_to(edge, ()) {
                assert_eq!(back.reason, Reason::QueueFull);
                *count.lock().unwrap() += 1;
            }
        }
    });
    graph.define(one, |_, ()| {});
    let start = graph.port(many);
    let mut machine = VirtualTime::new(
        graph.build().unwrap(),
        Config {
            capacity: 4,
            ..Config::default()
        },
    )
    .unwrap();
    machine.send(start, ()).unwrap();
    machine.run().unwrap();
    // Four fit, and one more that a thread always has room for.
    assert_eq!(*refused.lock().unwrap(), 5);
    assert_eq!(machine.report().thread("one").unwrap().runs, 5);
    for _ in 0..4 {
        machine.send(start, ()).unwrap();
    }
    assert_eq!(machine.send(start, ()).unwrap_err().reason, Reason::QueueFull);
}

/// A disk of zeros and counting: a read takes its length in ticks and fills the buffer with its offset.
struct Disk;

impl DeviceModel for Disk {
    fn start(&mut self, _: Time, operation: &Operation, bytes: &mut [u8]) -> Response {
        match operation {
            Operation::Read { offset, length, .. } => {
                bytes.fill(*offset as u8);
                Response {
                    after: u64::from(*length),
                    outcome: *length as i32,
                }
            }
            _ => Response {
                after: 1,
                outcome: -22,
            },
        }
    }
}

#[test]
fn a_device_is_a_model_and_its_completion_a_continuation() {
    let seen: Seen<(Time, u64, Option<usize>, u8)> = Arc::default();
    let mut graph = Graph::new();
    let reader = graph.declare::<u64>("reader", Mode::User);
    let done = graph.declare::<Completion>("done", Mode::User);
    let completion = graph.edge(reader, done).unwrap();
    let file = std::fs::File::open("/dev/null").unwrap().into();
    graph.define(reader, move |cx, offset| {
        let buffer = cx.take_buffer().expect("a free buffer");
        cx.submit(
            completion,
            Operation::Read {
                file,
                offset,
                buffer,
                length: 100,
            },
            offset,
        )
        .unwrap();
        cx.submit(completion, Operation::Synchronise { file }, 99)
            .unwrap();
    });
    let log = Arc::clone(&seen);
    graph.define(done, move |cx, completion: Completion| {
        let (now, token, result) = (cx.now(), completion.token, completion.result().ok());
        let mut first = 0;
        if let Some(mut buffer) = completion.buffer {
            first = cx.buffer(&mut buffer)[0];
            cx.return_buffer(buffer);
        }
        log.lock().unwrap().push((now, token, result, first));
    });
    let start = graph.port(reader);
    let mut machine = VirtualTime::new(graph.build().unwrap(), Config::default()).unwrap();
    machine.send(start, 7).unwrap();
    machine.run().unwrap();
    assert_eq!(machine.report().panic_count, 1, "there is no device yet");
    machine.set_devices(0, Box::new(Disk));
    machine.send(start, 7).unwrap();
    machine.run().unwrap();
    assert_eq!(
        taken(&seen),
        [(Time(1), 99, None, 0), (Time(100), 7, Some(100), 7)]
    );
}

#[test]
fn a_panic_is_contained_reported_and_a_gate_goes_on_as_it_was_told() {
    for (on_panic, served, refused) in [(OnPanic::Resume, 3, 0), (OnPanic::Poison, 1, 1)] {
        let refusals = Arc::new(Mutex::new(0));
        let mut graph = Graph::new();
        let caller = graph.declare::<u64>("caller", Mode::User);
        let gate = graph.declare_gate::<u64>("gate", Mode::User, Policy::Queue { capacity: 4 }, on_panic);
        let enter = graph.entry(caller, gate).unwrap();
        let count = Arc::clone(&refusals);
        graph.define(caller, move |cx, number| {
            if let Err(back) = cx.enter(enter, number) {
                assert_eq!(back.reason, Reason::GatePoisoned);
                *count.lock().unwrap() += 1;
            }
        });
        graph.define_gate(gate, |cx, number| {
            cx.spend(10);
            assert!(number != 0, "number {number} is not welcome");
        });
        let start = graph.port(caller);
        let mut machine = VirtualTime::new(
            graph.build().unwrap(),
            Config {
                cores: 2,
                ..Config::default()
            },
        )
        .unwrap();
        for (time, number) in [(0, 0), (1, 1), (20, 2)] {
            machine.send_at(start, Time(time), number).unwrap();
        }
        machine.run().unwrap();
        let report = machine.report();
        assert_eq!(report.gate("gate").unwrap().served, served, "{report}");
        assert_eq!(*refusals.lock().unwrap(), refused);
        let [panic] = report.panics.as_slice() else {
            panic!("one panic: {report}")
        };
        assert_eq!((panic.thread.as_str(), panic.words[0]), ("gate", 0));
        assert_eq!(panic.message, "number 0 is not welcome");
        assert_eq!(report.is_drained(), on_panic == OnPanic::Resume, "{report}");
    }
}

#[test]
fn a_body_cannot_use_another_threads_edge() {
    let mut graph = Graph::new();
    let honest = graph.declare::<()>("honest", Mode::KernelInterface);
    let thief = graph.declare::<()>("thief", Mode::User);
    let kernel = graph.declare::<()>("kernel", Mode::Kernel);
    let privilege = graph.edge(honest, kernel).unwrap();
    graph.define(honest, |_, ()| {});
    graph.define(kernel, |_, ()| unreachable!("nobody may come here"));
    graph.define(thief, move |cx, ()| cx.continue_to(privilege, ()));
    let start = graph.port(thief);
    let mut machine = VirtualTime::new(graph.build().unwrap(), Config::default()).unwrap();
    machine.send(start, ()).unwrap();
    machine.run().unwrap();
    let report = machine.report();
    assert_eq!(
        report.panics[0].message,
        "thread `thief` continues by an edge that belongs to `honest`"
    );
    assert_eq!(report.thread("kernel").unwrap().runs, 0);
}

#[test]
fn a_machine_that_cannot_be_is_refused() {
    let program = || {
        let mut graph = Graph::new();
        let thread = graph.declare::<()>("bound", Attributes::new(Mode::User).on_core(2).in_partition(1));
        graph.define(thread, |_, ()| {});
        graph.build().unwrap()
    };
    let refused = |config| VirtualTime::new(program(), config).map(|_| ()).unwrap_err();
    let usual = Config {
        cores: 3,
        ..Config::default()
    };
    assert!(VirtualTime::new(program(), usual.clone()).is_ok());
    assert_eq!(
        refused(Config {
            cores: 2,
            ..usual.clone()
        }),
        ConfigError::NoSuchCore {
            thread: "bound".into(),
            core: 2,
            cores: 2
        }
    );
    for config in [
        Config {
            cores: 0,
            ..usual.clone()
        },
        Config {
            cores: 65,
            ..usual.clone()
        },
        Config {
            lookahead: 0,
            ..usual.clone()
        },
        Config {
            retry_ticks: 0,
            ..usual.clone()
        },
        Config {
            capacity: 0,
            ..usual.clone()
        },
        Config {
            fan_out: 0,
            ..usual.clone()
        },
        Config {
            host_threads: 0,
            ..usual
        },
    ] {
        assert!(matches!(refused(config), ConfigError::OutOfRange { .. }));
    }
}
