//! Real guests, where this host has `/dev/kvm` and two cores.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::sync::Arc;

use sidestep_sidecall::sidecore::{Sidecore, pin};
use sidestep_sidecall_kvm::devices::Devices;
use sidestep_sidecall_kvm::guest::Way;
use sidestep_sidecall_kvm::kind::Kind;
use sidestep_sidecall_kvm::layout::{FRAMES, order, page};
use sidestep_sidecall_kvm::machine::{Guest, GuestError, Order};
use sidestep_sidecall_kvm::notified::Notified;
use sidestep_sidecall_kvm::operation::{Operation, Status};
use sidestep_sidecall_kvm::program::{Interrupt, ZeroWaitSidecore};
use sidestep_sidecall_kvm::service::{GuestService, IDENTIFICATION};

/// Two cores of this process, where there is a KVM as well.
fn cores() -> Option<(usize, usize)> {
    let set = rustix::thread::sched_getaffinity(None).expect("the cores of this process");
    let mut cores = (0..1024).filter(|core| set.is_set(*core));
    let pair = cores.next().zip(cores.next());
    let has_both = pair.is_some() && Guest::new().is_ok();
    tests_need::host(has_both, "a sidecore needs /dev/kvm and two cores").then_some(pair?)
}

fn sidecore(core: usize, guests: &[&Guest], looks: u64) -> Sidecore<GuestService> {
    let callers = guests.iter().map(|guest| GuestService::new(guest.memory(), 0));
    Sidecore::start(Some(core), callers.collect(), looks).expect("a sidecore")
}

#[test]
fn both_ways_give_the_same_answers_and_one_leaves_the_guest() {
    let Some((own, other)) = cores() else { return };
    pin(own).expect("this process may use the core");
    let mut guest = Guest::new().expect("a guest");
    let sidecore = sidecore(other, &[&guest], u64::MAX);
    for (way, exits) in [(Way::Exit, 1), (Way::Sidecall, 0)] {
        let outcome = guest
            .run(Order::one(way, Operation::Identify))
            .expect("an answer");
        assert_eq!(
            (outcome.value, outcome.refused, outcome.exits),
            (IDENTIFICATION, 0, exits),
            "{way:?}"
        );
    }
    assert_eq!(sidecore.end().served, 1);
}

#[test]
fn the_guest_sees_what_was_mapped_and_dies_of_what_was_not() {
    let Some((own, other)) = cores() else { return };
    pin(own).expect("this process may use the core");
    for way in [Way::Exit, Way::Sidecall] {
        let mut guest = Guest::new().expect("a guest");
        let sidecore = sidecore(other, &[&guest], u64::MAX);
        guest.memory().store(page::FRAMES + 1, 0, 77);
        let map = Order {
            frame: page::FRAMES as u64 + 1,
            page: 5,
            after: order::TOUCH,
            ..Order::one(way, Operation::Map)
        };
        assert_eq!(guest.run(map).expect("an answer").touched, 77);
        let again = guest.run(map).expect("an answer");
        assert_eq!((again.status, again.refused), (Status::Mapped as u64, 1));
        let unmapped = Order { page: 6, ..map };
        let unmapped = Order {
            operation: Operation::Null,
            ..unmapped
        };
        assert!(matches!(guest.run(unmapped), Err(GuestError::Stopped(_))));
        drop(sidecore);
    }
}

#[test]
fn a_guest_that_runs_sees_what_was_changed_and_no_longer_what_was_unmapped() {
    let Some((own, other)) = cores() else { return };
    pin(own).expect("this process may use the core");
    for way in [Way::Exit, Way::Sidecall] {
        let mut guest = Guest::new().expect("a guest");
        let sidecore = sidecore(other, &[&guest], u64::MAX);
        for frame in FRAMES {
            guest.memory().store(frame, 0, frame as u64);
        }
        let map = Order {
            after: order::TOUCH,
            ..Order::one(way, Operation::Map)
        };
        assert_eq!(guest.run(map).expect("an answer").touched, FRAMES.start as u64);
        for round in 0..20 {
            let frame = FRAMES.start as u64 + round % 4;
            let change = Order {
                operation: Operation::Change,
                frame,
                ..map
            };
            let changed = guest.run(change).expect("an answer");
            assert_eq!((changed.touched, changed.refused), (frame, 0), "{way:?}");
        }
        let unmap = Order {
            operation: Operation::Unmap,
            ..map
        };
        assert!(matches!(guest.run(unmap), Err(GuestError::Stopped(_))), "{way:?}");
        drop(sidecore);
    }
}

#[test]
fn processors_of_one_guest_call_at_once_and_see_each_others_changes() {
    let Some((own, other)) = cores() else { return };
    let mut guest = Guest::with_processors(2).expect("a guest");
    let memory = std::sync::Arc::clone(guest.memory());
    let callers = (0..2).map(|processor| GuestService::new(&memory, processor));
    let sidecore = Sidecore::start(None, callers.collect(), 1000).expect("a sidecore");
    for frame in FRAMES {
        memory.store(frame, 0, frame as u64);
    }
    let map = Order {
        after: order::TOUCH,
        ..Order::one(Way::Sidecall, Operation::Map)
    };
    guest.run(map).expect("an answer");
    std::thread::scope(|scope| {
        for (processor, core) in guest.processors().iter_mut().zip([own, other]) {
            scope.spawn(move || {
                pin(core).expect("this process may use the core");
                let calls = Order {
                    batch: 300,
                    ..Order::one(Way::Sidecall, Operation::Identify)
                };
                let outcome = processor.run(calls).expect("answers");
                assert_eq!((outcome.value, outcome.refused), (IDENTIFICATION, 0));
            });
        }
    });
    // What the one has changed the other sees, though it has seen it otherwise.
    let look = Order {
        operation: Operation::Null,
        ..map
    };
    for round in 1..9 {
        let frame = FRAMES.start as u64 + round % 4;
        let change = Order {
            operation: Operation::Change,
            frame,
            ..map
        };
        let [first, second] = guest.processors() else {
            unreachable!("two")
        };
        assert_eq!(first.run(change).expect("an answer").touched, frame);
        assert_eq!(second.run(look).expect("an answer").touched, frame);
    }
    drop(sidecore);
    assert!(matches!(
        Guest::with_processors(5),
        Err(GuestError::Processors(5))
    ));
}

#[test]
fn the_kernel_wakes_a_thread_for_a_guest_that_runs_on() {
    let Some((own, other)) = cores() else { return };
    pin(own).expect("this process may use the core");
    let mut guest = Guest::new().expect("a guest");
    let event = guest.notification().expect("an eventfd");
    let callers = vec![GuestService::new(guest.memory(), 0)];
    let notified = Notified::start(other, event, callers).expect("a thread");
    let calls = Order {
        batch: 50,
        ..Order::one(Way::Notify, Operation::Identify)
    };
    let outcome = guest.run(calls).expect("answers");
    assert_eq!(
        (outcome.value, outcome.refused, outcome.exits),
        (IDENTIFICATION, 0, 0)
    );
    drop(notified);
}

#[test]
fn a_guest_that_waits_for_an_interrupt_gets_one_with_each_answer() {
    let Some((own, other)) = cores() else { return };
    pin(own).expect("this process may use the core");
    let (mut guest, interrupt) = Guest::interrupt().expect("a guest that can be interrupted");
    let service = GuestService::new(guest.memory(), 0).interrupting(interrupt);
    let sidecore = Sidecore::start(Some(other), vec![service], u64::MAX).expect("a sidecore");
    for _ in 0..20 {
        let outcome = guest.run(Order::one(Way::Posted, Operation::Identify));
        let outcome = outcome.expect("an answer");
        assert_eq!(
            (outcome.value, outcome.refused, outcome.exits),
            (IDENTIFICATION, 0, 0)
        );
    }
    assert_eq!(sidecore.end().served, 20);
}

#[test]
fn a_guest_reads_blocks_and_sends_packets_by_every_way() {
    let Some((own, other)) = cores() else { return };
    pin(own).expect("this process may use the core");
    let (devices, receiver) = Devices::temporary(64).expect("devices");
    let devices = Arc::new(devices);
    let (mut guest, interrupt) = Guest::interrupt().expect("a guest that can be interrupted");
    guest.attach(&devices);
    let event = guest.notification().expect("an eventfd");
    for way in [Way::Exit, Way::Notify, Way::Sidecall, Way::Posted] {
        let memory = Arc::clone(guest.memory());
        let notified = (way == Way::Notify).then(|| {
            let callers = vec![GuestService::new(&memory, 0).with_devices(&devices)];
            let event = event.try_clone().expect("an eventfd");
            Notified::start(other, event, callers).expect("a thread")
        });
        let signal = interrupt.try_clone().expect("an eventfd");
        let posts: Option<Interrupt> = (way == Way::Posted)
            .then(|| Box::new(move || signal.write(1).expect("a count with room")) as Interrupt);
        let zero_wait = matches!(way, Way::Sidecall | Way::Posted)
            .then(|| ZeroWaitSidecore::start(other, &memory, &devices, posts).expect("a sidecore"));
        let read = Order {
            page: 20,
            ..Order::one(way, Operation::Read)
        };
        let outcome = guest.run(read).expect("an answer");
        assert_eq!((outcome.status, outcome.refused), (0, 0), "{way:?}");
        assert_eq!(memory.load(page::FRAMES, 100), 20, "{way:?}");
        memory.store(page::FRAMES, 0, way as u64);
        let send = Order {
            page: 8,
            ..Order::one(way, Operation::Send)
        };
        let outcome = guest.run(send).expect("an answer");
        assert_eq!((outcome.value, outcome.refused), (8, 0), "{way:?}");
        assert_eq!(outcome.exits, u64::from(way == Way::Exit), "{way:?}");
        let mut packet = [0; 16];
        assert_eq!(receiver.recv(&mut packet).expect("a packet"), 8);
        assert_eq!(packet[..8], (way as u64).to_le_bytes());
        drop((notified, zero_wait));
    }
}

#[test]
fn a_sidecore_that_sleeps_is_woken_by_an_exit() {
    let Some((own, other)) = cores() else { return };
    pin(own).expect("this process may use the core");
    let mut guest = Guest::new().expect("a guest");
    let sidecore = sidecore(other, &[&guest], 0);
    for _ in 0..20 {
        while sidecore.tally().slept == 0 {
            std::thread::yield_now();
        }
        let outcome = guest
            .run(Order::one(Way::Sidecall, Operation::Identify))
            .expect("an answer");
        assert_eq!((outcome.value, outcome.refused), (IDENTIFICATION, 0));
    }
    let tally = sidecore.end();
    assert_eq!(tally.served, 20);
}

#[test]
fn a_guest_that_floods_and_stops_in_the_middle_leaves_a_victim_its_answers() {
    let Some((own, other)) = cores() else { return };
    let [mut victim, mut hostile] = [(); 2].map(|()| Guest::new().expect("a guest"));
    let _sidecore = sidecore(other, &[&victim, &hostile], 1000);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let flood = Order {
                batch: 5000,
                step: 1,
                ..Order::one(Way::Abandon, Operation::Map)
            };
            hostile.run(flood).expect("the flood ends");
            // The processor is never run again: the guest has stopped with a request that it did not wait for.
        });
        pin(own).expect("this process may use the core");
        let calls = Order {
            batch: 500,
            ..Order::one(Way::Sidecall, Operation::Identify)
        };
        let outcome = victim.run(calls).expect("answers");
        assert_eq!((outcome.value, outcome.refused), (IDENTIFICATION, 0));
    });
}

#[test]
fn the_kind_of_kvm_is_told() {
    let Some((own, _)) = cores() else { return };
    pin(own).expect("this process may use the core");
    let mut guest = Guest::new().expect("a guest");
    let kind = Kind::of(&mut guest).expect("the guest runs");
    assert!(
        kind.guest_ps > 0 && kind.host_ps > 0 && kind.tick_ps > 0,
        "{kind:?}"
    );
    let text = kind.to_string();
    assert_eq!(text.contains("emulated"), !kind.is_native(), "{text}");
}
