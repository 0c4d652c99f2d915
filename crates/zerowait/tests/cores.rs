//! Cores: binding, back-pressure, panics, shutdown, cores that join and leave, and a stress run.
//!
//! `SIDESTEP_STRESS_SECONDS=60` makes the stress run that long; without it, it takes a moment.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sidestep_zerowait::cores::{Config, Cores, IdlePolicy, LeaveError, Shutdown, StartError};
use sidestep_zerowait::{Attributes, Bring, Graph, Mode, OnPanic, Policy, Port, Program, Reason};

const AMPLE: Shutdown = Shutdown::Drain {
    // Miri takes minutes where others take milliseconds.
    at_most: Duration::from_secs(if cfg!(miri) { 3600 } else { 60 }),
};
const MANY: u64 = if cfg!(miri) { 50 } else { 20_000 };

/// The usual configuration; for Miri, which takes seconds to allocate long queues, with short ones.
fn config(cores: usize) -> Config {
    let usual = Config::default();
    let short = |length: usize| if cfg!(miri) { length.min(256) } else { length };
    Config {
        cores,
        cores_max: cores,
        queue_capacity: short(usual.queue_capacity),
        inbox_capacity: short(usual.inbox_capacity),
        timers: short(usual.timers),
        ..usual
    }
}

/// A program that counts a number down, and how often it ran.
fn countdown() -> (Program, Port<u64>, Arc<AtomicU64>) {
    let runs = Arc::new(AtomicU64::new(0));
    let mut graph = Graph::new();
    let thread = graph.declare::<u64>("countdown", Mode::User);
    let next = graph.edge(thread, thread).unwrap();
    let start = graph.port(thread);
    let count = Arc::clone(&runs);
    graph.define(thread, move |cx, n| {
        count.fetch_add(1, Ordering::Relaxed);
        if n > 0 {
            cx.continue_to(next, n - 1);
        }
    });
    (graph.build().unwrap(), start, runs)
}

#[test]
fn two_programs_in_one_process_do_not_know_each_other() {
    let (first, start, runs) = countdown();
    let (second, other_start, other_runs) = countdown();
    let (first, second) = (
        Cores::start(first, config(1)).unwrap(),
        Cores::start(second, config(2)).unwrap(),
    );
    first.send(start, MANY).unwrap();
    second.send(other_start, 9).unwrap();
    assert!(first.shutdown(AMPLE).is_drained() && second.shutdown(AMPLE).is_drained());
    assert_eq!(
        (runs.load(Ordering::Relaxed), other_runs.load(Ordering::Relaxed)),
        (MANY + 1, 10)
    );
}

#[test]
fn bound_threads_run_where_they_are_bound() {
    let wrong = Arc::new(AtomicU64::new(0));
    let mut graph = Graph::new();
    let ping = graph.declare::<u64>("ping", Attributes::new(Mode::User).on_core(0));
    let pong = graph.declare::<u64>("pong", Attributes::new(Mode::User).on_core(1));
    for (thread, other, core) in [(ping, pong, 0), (pong, ping, 1)] {
        let to_other = graph.edge(thread, other).unwrap();
        let wrong = Arc::clone(&wrong);
        graph.define(thread, move |cx, n| {
            wrong.fetch_add(u64::from(cx.core() != core), Ordering::Relaxed);
            if n > 0 {
                cx.continue_to(to_other, n - 1);
            }
        });
    }
    let start = graph.port(ping);
    let cores = Cores::start(graph.build().unwrap(), config(2)).unwrap();
    let hops = MANY.min(2000);
    cores.send(start, hops).unwrap();
    let report = cores.shutdown(AMPLE);
    assert_eq!(wrong.load(Ordering::Relaxed), 0);
    assert_eq!(report.executed(), hops + 1);
    assert_eq!(report.cores.iter().map(|core| core.forwarded).sum::<u64>(), hops);
    let woken: u64 = report.cores.iter().map(|core| core.wake_latency.count()).sum();
    let waking: u64 = report.cores.iter().map(|core| core.wake_cost.count()).sum();
    assert!(
        woken >= waking,
        "each wake-up that a core paid for was one: {report}"
    );
}

#[test]
#[cfg_attr(miri, ignore = "spins for milliseconds, which take Miri minutes")]
fn a_core_with_much_to_do_shares_with_an_idle_one() {
    let ran_on: Arc<[AtomicU64; 2]> = Arc::default();
    let mut graph = Graph::new();
    let split = graph.declare::<()>("split", Mode::User);
    let work = graph.declare::<()>("work", Mode::User);
    let to_work = graph.edge(split, work).unwrap();
    graph.define(split, move |cx, ()| {
        (0..200).for_each(|_| cx.continue_to(to_work, ()))
    });
    let count = Arc::clone(&ran_on);
    graph.define(work, move |cx, ()| {
        count[cx.core() as usize].fetch_add(1, Ordering::Relaxed);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_micros(200) {
            std::hint::spin_loop();
        }
    });
    let start = graph.port(split);
    let cores = Cores::start(graph.build().unwrap(), config(2)).unwrap();
    cores.send(start, ()).unwrap();
    let report = cores.shutdown(AMPLE);
    let ran_on = [&ran_on[0], &ran_on[1]].map(|count| count.load(Ordering::Relaxed));
    assert_eq!(ran_on.iter().sum::<u64>(), 200, "{report}");
    assert!(
        report.cores.iter().map(|core| core.shared).sum::<u64>() > 0,
        "{report}"
    );
    assert!(ran_on.iter().all(|count| *count > 0), "{report}");
}

#[test]
fn a_tree_much_wider_than_the_queue_fits_because_the_newest_goes_first() {
    let mut graph = Graph::new();
    let node = graph.declare::<u64>("node", Mode::User);
    let child = graph.edge(node, node).unwrap();
    graph.define(node, move |cx, depth| {
        if depth > 0 {
            (0..2).for_each(|_| cx.continue_to(child, depth - 1));
        }
    });
    let start = graph.port(node);
    let depth = if cfg!(miri) { 6 } else { 16 };
    let cores = Cores::start(
        graph.build().unwrap(),
        Config {
            queue_capacity: 64,
            ..config(1)
        },
    )
    .unwrap();
    cores.send(start, depth).unwrap();
    let report = cores.shutdown(AMPLE);
    assert!(report.panics.is_empty(), "{report}");
    assert_eq!(report.executed(), (2 << depth) - 1);
    assert!(report.cores[0].longest_queue <= 64, "{report}");
}

#[test]
fn full_queues_push_back_to_threads_and_to_the_outside() {
    let refused = Arc::new(AtomicU64::new(0));
    let block = Arc::new(AtomicBool::new(true));
    let mut graph = Graph::new();
    let many = graph.declare::<()>("many", Mode::User);
    let one = graph.declare::<()>("one", Mode::User);
    let edge = graph.edge(many, one).unwrap();
    let (count, wait) = (Arc::clone(&refused), Arc::clone(&block));
    graph.define(many, move |cx, ()| {
        for _ in 0..20 {
            if let Err(back) = cx.try_continue_to(edge, ()) {
                assert_eq!(back.reason, Reason::QueueFull);
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
        while wait.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
    });
    graph.define(one, |_, ()| {});
    let start = graph.port(many);
    let config = Config {
        queue_capacity: 8,
        inbox_capacity: 4,
        sharing: false,
        ..config(1)
    };
    let cores = Cores::start(graph.build().unwrap(), config).unwrap();
    cores.send(start, ()).unwrap();
    // Eight fit, and one more that a thread always has room for.
    while refused.load(Ordering::Relaxed) < 11 {
        std::thread::yield_now();
    }
    let outside: Vec<bool> = (0..6).map(|_| cores.send(start, ()).is_ok()).collect();
    assert_eq!(outside, [true, true, true, true, false, false]);
    block.store(false, Ordering::Relaxed);
    let report = cores.shutdown(AMPLE);
    assert!(report.is_drained(), "{report}");
    let one = report.thread("one").unwrap().runs;
    assert_eq!(
        one + refused.load(Ordering::Relaxed),
        100,
        "each was run or refused"
    );
    assert_eq!(report.cores[0].refused, refused.load(Ordering::Relaxed));
}

#[test]
fn a_panic_is_contained_and_the_core_goes_on() {
    let mut graph = Graph::new();
    let thread = graph.declare::<u64>("picky", Mode::User);
    let gate = graph.declare_gate::<u64>(
        "gate",
        Mode::User,
        Policy::Queue { capacity: 100 },
        OnPanic::Resume,
    );
    let enter = graph.entry(thread, gate).unwrap();
    graph.define(thread, move |cx, n| {
        assert!(n % 3 != 0, "{n} is a multiple of three");
        cx.enter(enter, n).unwrap();
    });
    graph.define_gate(gate, |_, n| assert!(n % 2 != 0, "{n} is even"));
    let start = graph.port(thread);
    let cores = Cores::start(graph.build().unwrap(), config(2)).unwrap();
    for n in 0..12 {
        cores.send(start, n).unwrap();
    }
    let report = cores.shutdown(AMPLE);
    assert!(report.is_drained(), "{report}");
    assert_eq!(report.panic_count, 4 + 4, "{report}");
    assert_eq!(report.thread("picky").unwrap().runs, 12);
    assert_eq!(report.gate("gate").unwrap().served, 8);
    let messages: Vec<_> = report.panics.iter().map(|panic| panic.message.as_str()).collect();
    assert!(
        messages.contains(&"9 is a multiple of three") && messages.contains(&"10 is even"),
        "{messages:?}"
    );
    assert!(
        report
            .panics
            .iter()
            .any(|panic| panic.thread == "picky" && panic.words[0] == 9)
    );
}

#[test]
fn shutting_down_at_once_reports_what_was_left() {
    let (entered, leave) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let mut graph = Graph::new();
    let thread = graph.declare::<u64>("thread", Mode::User);
    let later = graph.declare::<()>("later", Mode::User);
    let join = graph.declare_join::<()>("join", Mode::User, 4);
    let (next, timer) = (
        graph.edge(thread, thread).unwrap(),
        graph.edge(thread, later).unwrap(),
    );
    let open = graph.join_edge(thread, join).unwrap();
    let (inside, go) = (Arc::clone(&entered), Arc::clone(&leave));
    graph.define(thread, move |cx, n| {
        if n == 0 {
            (1..=5).for_each(|n| cx.continue_to(next, n));
            cx.continue_after(timer, 3_600_000_000_000, ()).unwrap();
            let activation = cx.activate(open, 3).unwrap();
            cx.signal(open, activation, Bring::Nothing).unwrap();
            inside.store(true, Ordering::Release);
            while !go.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        }
    });
    graph.define(later, |_, ()| {});
    graph.define(join, |_, ()| {});
    let start = graph.port(thread);
    let cores = Cores::start(
        graph.build().unwrap(),
        Config {
            sharing: false,
            ..config(1)
        },
    )
    .unwrap();
    cores.send(start, 0).unwrap();
    while !entered.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    assert!(!cores.wait_idle(Duration::from_millis(1)));
    std::thread::scope(|scope| {
        // The core sees the end of the executor only after the thread that it runs.
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            leave.store(true, Ordering::Release);
        });
        let report = cores.shutdown(Shutdown::Now);
        assert!(!report.is_drained());
        let ran = report.thread("thread").unwrap().runs;
        let left: u64 = report.left.continuations.iter().map(|(_, count)| count).sum();
        assert_eq!(ran + left, 6, "{report}");
        assert_eq!(report.left.timers, 1, "{report}");
        assert_eq!(
            (report.joins[0].waiting, report.joins[0].missing),
            (1, 2),
            "{report}"
        );
    });
}

#[test]
fn nothing_comes_in_while_the_executor_drains_and_timers_are_waited_for() {
    let rang = Arc::new(AtomicU64::new(0));
    let mut graph = Graph::new();
    let set = graph.declare::<u64>("set", Mode::User);
    let ring = graph.declare::<u64>("ring", Mode::User);
    let timer = graph.edge(set, ring).unwrap();
    graph.define(set, move |cx, nanos| {
        cx.continue_after(timer, nanos, cx.now().0 + nanos).unwrap()
    });
    let early = Arc::clone(&rang);
    graph.define(ring, move |cx, due| {
        assert!(cx.now().0 >= due, "not before its time");
        early.fetch_add(1, Ordering::Relaxed);
    });
    let start = graph.port(set);
    let cores = Cores::start(graph.build().unwrap(), config(2)).unwrap();
    for nanos in [3_000_000, 1_000_000, 2_000_000, 0] {
        cores.send(start, nanos).unwrap();
    }
    let report = cores.shutdown(AMPLE);
    assert!(report.panics.is_empty() && report.is_drained(), "{report}");
    assert_eq!(rang.load(Ordering::Relaxed), 4);
}

#[test]
fn cores_join_and_leave_while_threads_run() {
    let (program, start, runs) = countdown();
    let cores = Cores::start(
        program,
        Config {
            cores_max: 3,
            ..config(1)
        },
    )
    .unwrap();
    let rounds = if cfg!(miri) { 2 } else { 10 };
    let mut sent = 0;
    for _ in 0..rounds {
        let first = cores.join().unwrap();
        let second = cores.join().unwrap();
        assert!(matches!(
            cores.join(),
            Err(StartError::NoFreeCore { cores_max: 3 })
        ));
        for _ in 0..50 {
            cores.send(start, 20).unwrap();
            sent += 21;
        }
        cores.leave(first).unwrap();
        assert_eq!(cores.leave(first), Err(LeaveError::NotActive { core: first }));
        for _ in 0..50 {
            cores.send(start, 20).unwrap();
            sent += 21;
        }
        cores.leave(second).unwrap();
    }
    assert_eq!(cores.leave(0), Err(LeaveError::Last { core: 0 }));
    let report = cores.shutdown(AMPLE);
    assert!(report.is_drained(), "{report}");
    assert_eq!(runs.load(Ordering::Relaxed), sent);
    assert_eq!(
        report.executed(),
        sent,
        "what a core did counts after it has left"
    );
}

#[test]
fn a_core_with_a_bound_thread_does_not_leave_and_a_missing_core_is_named() {
    let program = || {
        let mut graph = Graph::new();
        let thread = graph.declare::<()>("bound", Attributes::new(Mode::User).on_core(1));
        graph.define(thread, |_, ()| {});
        graph.build().unwrap()
    };
    let cores = Cores::start(program(), config(2)).unwrap();
    assert_eq!(
        cores.leave(1),
        Err(LeaveError::Bound {
            core: 1,
            thread: "bound".into()
        })
    );
    cores.leave(0).unwrap();
    drop(cores);
    let refused = Cores::start(program(), config(1)).map(|_| ()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "thread `bound` is bound to core 1, but only 1 cores start"
    );
    for config in [
        Config {
            cores: 0,
            ..config(2)
        },
        Config {
            queue_capacity: 1,
            ..config(2)
        },
    ] {
        assert!(matches!(
            Cores::start(program(), config),
            Err(StartError::OutOfRange { .. })
        ));
    }
}

/// What the joins of the stress run answered: how often, the sum of the numbers, and what did not add up.
#[derive(Default)]
struct Answers {
    count: AtomicU64,
    sum: AtomicU64,
    wrong: Mutex<Vec<(u64, u64)>>,
}

/// Everything at once, for as long as the environment says: callers at gates of both kinds, joins, timers,
/// panics, and cores that come and go. What was started must have been answered, exactly.
#[test]
fn stress() {
    let seconds = std::env::var("SIDESTEP_STRESS_SECONDS").ok().map(|text| {
        text.parse().unwrap_or_else(|_| {
            panic!("SIDESTEP_STRESS_SECONDS is `{text}`: a number of seconds is possible")
        })
    });
    let until = Instant::now() + seconds.map_or(Duration::from_millis(300), Duration::from_secs);
    let mut graph = Graph::new();
    let caller = graph.declare::<(u64, u64)>("caller", Mode::User);
    let eager = graph.declare_gate::<(u64, u64)>(
        "eager",
        Mode::KernelInterface,
        Policy::LockOrRetry,
        OnPanic::Resume,
    );
    let short = Policy::Queue { capacity: 5 };
    let queued = graph.declare_gate::<(u64, u64)>("queued", Mode::KernelInterface, short, OnPanic::Resume);
    let fork = graph.declare::<(u64, u64)>("fork", Mode::Kernel);
    let leaf = graph.declare::<(u64, u64)>("leaf", Mode::Kernel);
    let join = graph.declare_join::<(u64, u64)>("join", Mode::Kernel, 64);
    let again = graph.edge(caller, caller).unwrap();
    let gates = [
        graph.entry(caller, eager).unwrap(),
        graph.entry(caller, queued).unwrap(),
    ];
    let forks = [
        graph.edge(eager, fork).unwrap(),
        graph.edge(queued, fork).unwrap(),
    ];
    let fork_again = graph.edge(fork, fork).unwrap();
    let (open, close) = (
        graph.join_edge(fork, join).unwrap(),
        graph.join_edge(leaf, join).unwrap(),
    );
    let to_leaf = graph.edge(fork, leaf).unwrap();
    graph.define(caller, move |cx, (number, _)| {
        if let Err(back) = cx.enter(gates[(number % 2) as usize], (number, 0)) {
            cx.retry(again, back.value);
        }
    });
    let inside = [AtomicBool::new(false), AtomicBool::new(false)].map(Arc::new);
    for ((gate, to_fork), inside) in [(eager, forks[0]), (queued, forks[1])].into_iter().zip(inside) {
        graph.define_gate(gate, move |cx, (number, _)| {
            assert!(!inside.swap(true, Ordering::Acquire), "two inside");
            cx.continue_to(to_fork, (number, 0));
            inside.store(false, Ordering::Release);
            assert!(number % 101 != 0, "a thread may fail after it has continued");
        });
    }
    graph.define(fork, move |cx, (number, _)| match cx.activate(open, 3) {
        Err(_) => cx.retry(fork_again, (number, 0)),
        Ok(activation) => {
            cx.signal(
                open,
                activation,
                Bring::Store {
                    slot: 1,
                    word: number,
                },
            )
            .unwrap();
            cx.continue_to(to_leaf, (activation.into_word(), number));
            cx.continue_after(to_leaf, number % 5000, (activation.into_word(), number))
                .unwrap();
        }
    });
    graph.define(leaf, move |cx, (activation, number)| {
        let activation = sidestep_zerowait::Activation::from_word(activation);
        cx.signal(
            close,
            activation,
            Bring::Add {
                slot: 0,
                word: number,
            },
        )
        .unwrap();
    });
    let answered: Arc<Answers> = Arc::default();
    let answers = Arc::clone(&answered);
    graph.define(join, move |_, (sum, number)| {
        answers.count.fetch_add(1, Ordering::Relaxed);
        answers.sum.fetch_add(number, Ordering::Relaxed);
        if sum != 2 * number {
            answers.wrong.lock().unwrap().push((sum, number));
        }
    });
    let start = graph.port(caller);
    let config = Config {
        cores: 2,
        cores_max: 4,
        idle: IdlePolicy {
            spin: Duration::from_micros(1),
            pause: Duration::from_micros(5),
            sleep: true,
        },
        ..config(2)
    };
    let cores = Cores::start(graph.build().unwrap(), config).unwrap();
    std::panic::set_hook(Box::new(|_| {}));
    let (mut sent, mut sum, mut extra) = (0, 0, None);
    for round in 1u64.. {
        // Callers at a taken gate cost each other turns, n of them n * n: a few hundred at a time are stress
        // enough.
        while sent - answered.count.load(Ordering::Relaxed) > 200 {
            std::thread::sleep(Duration::from_micros(50));
        }
        for _ in 0..if cfg!(miri) { 5 } else { 200 } {
            if cores.send(start, (sent + 1, 0)).is_ok() {
                sent += 1;
                sum += sent;
            }
        }
        extra = match extra {
            None => Some(cores.join().unwrap()),
            Some(core) => {
                cores.leave(core).unwrap();
                None
            }
        };
        if round.is_multiple_of(3) {
            std::thread::sleep(Duration::from_micros(200));
        }
        if Instant::now() > until {
            break;
        }
    }
    let report = cores.shutdown(AMPLE);
    drop(std::panic::take_hook());
    assert!(report.is_drained(), "{report}");
    assert_eq!(answered.count.load(Ordering::Relaxed), sent, "{report}");
    assert_eq!(answered.sum.load(Ordering::Relaxed), sum, "{report}");
    assert_eq!(*answered.wrong.lock().unwrap(), []);
    assert_eq!(report.panic_count, sent / 101, "{report}");
}
