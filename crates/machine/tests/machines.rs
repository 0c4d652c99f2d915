//! Whole machines: several processors that lock, interrupt and purge each other, on both executors.

mod guest;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use guest::Guest;
use sidestep_ia64::execution::Driver;
use sidestep_ia64::registers::application::ITC;
use sidestep_ia64::registers::system::control;
use sidestep_ia64::{Exit, PhysicalAddress, Processor};
use sidestep_machine::machine::timeline::Phase;
use sidestep_machine::machine::{Activity, HostThreads, MachineBuilder, Sidecore, VirtualTime};
use sidestep_machine::{End, GuestMemory, MemoryRange};

/// More instructions than any of these machines needs.
const MANY: u64 = 2_000_000_000;

/// Short rounds, but for a processor that executes while all others wait.
fn in_short_rounds() -> VirtualTime {
    VirtualTime {
        quantum_ticks: 97,
        alone_ticks: 10_000,
        ..VirtualTime::default()
    }
}

fn runs_right(parameters: &str) {
    for processors in [1, 2, 4] {
        for executor in [VirtualTime::default(), in_short_rounds()] {
            let limited = VirtualTime {
                instructions_max: MANY,
                ..executor
            };
            let Guest {
                machine: mut in_virtual_time,
                printed,
                ..
            } = Guest::new(processors, parameters);
            let outcome = limited.run(&mut in_virtual_time);
            assert_eq!(
                (outcome.end, printed.text().as_str()),
                (End::Exit(0), "right\n"),
                "{parameters}, {processors} processors in virtual time, {executor:?}"
            );
        }
        let threads = HostThreads {
            instructions_max: MANY,
            ..HostThreads::default()
        };
        let Guest {
            machine: mut on_threads,
            printed,
            ..
        } = Guest::new(processors, parameters);
        let outcome = threads.run(&mut on_threads);
        assert_eq!(
            (outcome.end, printed.text().as_str()),
            (End::Exit(0), "right\n"),
            "{parameters}, {processors} processors on host threads"
        );
    }
}

#[test]
fn spin_locks_exclude() {
    runs_right("lock 1000");
}

#[test]
fn interrupts_reach_the_processor_they_are_sent_to() {
    runs_right("interrupt 100");
}

#[test]
fn global_purges_are_done_when_they_return() {
    runs_right("purge 200");
}

#[test]
fn changed_code_is_executed_everywhere() {
    runs_right("code 60");
}

#[test]
fn virtual_time_repeats_to_the_instruction() {
    for processors in [1, 2, 4] {
        for parameters in ["lock 300", "interrupt 50", "purge 50"] {
            let run = |executor: VirtualTime| {
                let Guest {
                    mut machine, printed, ..
                } = Guest::new(processors, parameters);
                (executor.run(&mut machine), printed.text())
            };
            let all_in_short_rounds = VirtualTime {
                alone_ticks: 0,
                ..in_short_rounds()
            };
            for executor in [VirtualTime::default(), in_short_rounds(), all_in_short_rounds] {
                assert_eq!(
                    run(executor),
                    run(executor),
                    "{parameters}, {processors} processors, {executor:?}"
                );
            }
        }
    }
}

#[test]
fn the_instruction_limit_is_exact_in_virtual_time() {
    for processors in [1, 3] {
        let mut machine = Guest::new(processors, "compute 100000").machine;
        let executor = VirtualTime {
            instructions_max: 123_457,
            ..VirtualTime::default()
        };
        let outcome = executor.run(&mut machine);
        assert_eq!(outcome.end, End::Limit);
        assert_eq!(outcome.retired.iter().sum::<u64>(), 123_457);
        let outcome = executor.run(&mut machine);
        assert_eq!(outcome.retired.iter().sum::<u64>(), 2 * 123_457, "and it goes on");
    }
}

#[test]
fn a_run_in_pieces_is_the_run_as_a_whole() {
    for executor in [VirtualTime::default(), in_short_rounds()] {
        for parameters in ["lock 200", "interrupt 30", "purge 40"] {
            let mut whole = Guest::new(3, parameters).machine;
            let expected = executor.run(&mut whole);
            for piece in [777, 12_345] {
                let mut pieces = Guest::new(3, parameters).machine;
                let executor = VirtualTime {
                    instructions_max: piece,
                    ..executor
                };
                let outcome = loop {
                    let outcome = executor.run(&mut pieces);
                    if outcome.end != End::Limit {
                        break outcome;
                    }
                };
                assert_eq!(
                    outcome, expected,
                    "{parameters} in pieces of {piece}, {executor:?}"
                );
            }
        }
    }
}

/// Counts how often it is asked to run.
#[derive(Default)]
struct Asked(u64);

impl Driver for Asked {
    fn run(&mut self, processor: &mut Processor, limit: u64) -> Exit {
        self.0 += 1;
        processor.run(limit)
    }
}

#[test]
fn one_that_executes_alone_is_not_cut_into_short_rounds() {
    const EXECUTED: u64 = 100_000;
    let asked = |executor: VirtualTime| {
        let mut machine = Guest::new(1, "compute 1000000000").machine;
        let mut drivers = [Asked::default()];
        let executor = VirtualTime {
            instructions_max: EXECUTED,
            ..executor
        };
        executor.run_driven(&mut machine, &mut drivers);
        drivers[0].0
    };
    let rounds = EXECUTED / in_short_rounds().quantum_ticks;
    let alone = asked(in_short_rounds());
    assert!(alone < rounds / 20, "{alone} times");
    let cut = asked(VirtualTime {
        alone_ticks: 0,
        ..in_short_rounds()
    });
    assert!(cut >= rounds, "{cut} times");
}

#[test]
fn one_that_executes_alone_does_what_it_is_asked_to() {
    let mut machine = Guest::new(1, "compute 1000000000").machine;
    let executor = VirtualTime {
        instructions_max: 1000,
        ..in_short_rounds()
    };
    assert_eq!(executor.run(&mut machine).end, End::Limit);
    let asked = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&asked);
    machine
        .platform()
        .start(0, move |_| told.store(true, Ordering::Relaxed));
    assert_eq!(executor.run(&mut machine).end, End::Limit);
    assert!(asked.load(Ordering::Relaxed));
}

#[test]
fn a_machine_that_was_stopped_goes_on_also_on_the_other_executor() {
    let Guest {
        mut machine, printed, ..
    } = Guest::new(2, "purge 30000");
    let executor = VirtualTime {
        instructions_max: 20_000,
        ..VirtualTime::default()
    };
    assert_eq!(executor.run(&mut machine).end, End::Limit);
    let threads = HostThreads {
        instructions_max: 20_000,
        ..HostThreads::default()
    };
    assert_eq!(threads.run(&mut machine).end, End::Limit);
    assert_eq!(VirtualTime::default().run(&mut machine).end, End::Exit(0));
    assert_eq!(printed.text(), "right\n");
}

#[test]
fn a_stop_can_be_requested_from_another_thread() {
    for on_threads in [false, true] {
        let mut machine = Guest::new(2, "compute 1000000000000").machine;
        let platform = Arc::clone(machine.platform());
        let outcome = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                platform.request_stop();
            });
            if on_threads {
                HostThreads::default().run(&mut machine)
            } else {
                VirtualTime::default().run(&mut machine)
            }
        });
        assert_eq!(outcome.end, End::Stopped);
        let executor = VirtualTime {
            instructions_max: 1000,
            ..VirtualTime::default()
        };
        assert_eq!(executor.run(&mut machine).end, End::Limit, "the request is over");
    }
}

#[test]
fn work_is_done_in_time_by_a_thread_that_sleeps_and_by_one_that_polls() {
    for sidecore in [Sidecore::None, Sidecore::Always, Sidecore::Dynamic] {
        let mut machine = Guest::new(2, "compute 1000000000000").machine;
        let platform = Arc::clone(machine.platform());
        let (again, stopping) = (Arc::clone(&platform), Arc::clone(&platform));
        let later = platform.timeline.now() + 20_000;
        platform.timeline.schedule(later, Phase::Device, move |due| {
            let later = due + 20_000;
            let work = move |_| stopping.request_stop();
            again.timeline.schedule(later, Phase::Device, work);
        });
        let executor = HostThreads {
            sidecore,
            ..HostThreads::default()
        };
        assert_eq!(executor.run(&mut machine).end, End::Stopped);
        let waits = machine.waits();
        match sidecore {
            Sidecore::None => assert_eq!(waits.polled, 0),
            Sidecore::Always => assert_eq!(waits.slept, 0),
            Sidecore::Dynamic => {}
        }
    }
}

#[test]
fn processors_that_all_wait_for_nothing_are_noticed() {
    // Processor 1 is told to stop before processor 0 has interrupted it: here nobody ever interrupts.
    for on_threads in [false, true] {
        let mut machine = Guest::new(2, "interrupt 1").machine;
        for cpu in &mut machine.cpus {
            cpu.activity = Activity::Waiting;
        }
        let outcome = if on_threads {
            HostThreads::default().run(&mut machine)
        } else {
            VirtualTime::default().run(&mut machine)
        };
        assert_eq!(outcome.end, End::Deadlock);
    }
}

#[test]
fn time_that_comes_to_its_end_is_no_panic() {
    let mut machine = Guest::new(1, "compute 1").machine;
    for _ in 0..5 {
        let cpu = &mut machine.cpus[0];
        cpu.activity = Activity::Waiting;
        let far = cpu
            .processor
            .application(ITC)
            .wrapping_add(cpu.processor.instructions_retired())
            .wrapping_add(1 << 62);
        cpu.processor.system.control[usize::from(control::ITM)] = far;
        // The timer is masked: nothing is pending when it matches.
        cpu.processor.system.control[usize::from(control::ITV)] = 1 << 16;
        assert_eq!(VirtualTime::default().run(&mut machine).end, End::Deadlock);
    }
}

#[test]
fn what_a_device_writes_is_executed_without_a_flush() {
    /// A bundle that branches so many bundles on.
    fn branch(bundles: u128) -> [u8; 16] {
        const NO_OPERATION: u128 = 1 << 27;
        let template = 0x10; // memory, integer, branch
        let branch = 4 << 37 | bundles << 13;
        (template | NO_OPERATION << 5 | NO_OPERATION << 46 | branch << 87).to_le_bytes()
    }
    const PAGE_BUNDLES: u64 = 0x1000 / 16;
    let memory = GuestMemory::new(&[MemoryRange::ram(0, 1 << 16)]).expect("a good layout");
    let builder = MachineBuilder::new(memory, 2);
    let memory = builder.memory();
    // All places stay where they are until a device has them branch to the next.
    let places = [0, 8, PAGE_BUNDLES, 2 * PAGE_BUNDLES + 1].map(|bundle| bundle * 16);
    for place in places {
        memory
            .write_ram(PhysicalAddress(place), &branch(0))
            .expect("memory");
    }
    let mut machine = builder.build();
    let executor = |executed: u64| VirtualTime {
        instructions_max: executed,
        ..in_short_rounds()
    };
    for (turn, pair) in places.windows(2).enumerate() {
        let turns = 2 * turn as u64;
        executor((turns + 1) * 100_000).run(&mut machine);
        assert_eq!(machine.cpus[0].processor.instruction_pointer().0, pair[0]);
        let written = memory.write_ram(
            PhysicalAddress(pair[0]),
            &branch(u128::from(pair[1] - pair[0]) / 16),
        );
        written.expect("memory");
        executor((turns + 2) * 100_000).run(&mut machine);
        assert_eq!(machine.cpus[0].processor.instruction_pointer().0, pair[1]);
    }
}
