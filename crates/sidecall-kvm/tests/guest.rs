//! Real guests, where this host has `/dev/kvm` and two cores.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::sync::Arc;

use sidestep_sidecall_kvm::guest::Way;
use sidestep_sidecall_kvm::kind::Kind;
use sidestep_sidecall_kvm::layout::{order, page};
use sidestep_sidecall_kvm::machine::{Guest, GuestError, Order};
use sidestep_sidecall_kvm::service::{IDENTIFICATION, Operation, Status};
use sidestep_sidecall_kvm::sidecore::{Sidecore, pin};

/// Two cores of this process, where there is a KVM as well.
fn cores() -> Option<(usize, usize)> {
    let set = rustix::thread::sched_getaffinity(None).expect("the cores of this process");
    let mut cores = (0..1024).filter(|core| set.is_set(*core));
    let pair = cores.next().zip(cores.next());
    let has_both = pair.is_some() && Guest::new().is_ok();
    tests_need::host(has_both, "a sidecore needs /dev/kvm and two cores").then_some(pair?)
}

fn sidecore(core: usize, guests: &mut [&mut Guest], looks: u64) -> Sidecore {
    let memories = guests.iter().map(|guest| Arc::clone(guest.memory())).collect();
    let sidecore = Sidecore::start(core, memories, looks).expect("a sidecore");
    for guest in guests {
        guest.wakes(sidecore.waker());
    }
    sidecore
}

#[test]
fn both_ways_give_the_same_answers_and_one_leaves_the_guest() {
    let Some((own, other)) = cores() else { return };
    pin(own).expect("this process may use the core");
    let mut guest = Guest::new().expect("a guest");
    let sidecore = sidecore(other, &mut [&mut guest], u64::MAX);
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
        let sidecore = sidecore(other, &mut [&mut guest], u64::MAX);
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
fn a_sidecore_that_sleeps_is_woken_by_an_exit() {
    let Some((own, other)) = cores() else { return };
    pin(own).expect("this process may use the core");
    let mut guest = Guest::new().expect("a guest");
    let sidecore = sidecore(other, &mut [&mut guest], 0);
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
    let _sidecore = sidecore(other, &mut [&mut victim, &mut hostile], 1000);
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
