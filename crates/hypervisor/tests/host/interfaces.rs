//! Virtual interfaces of a self-virtualised card: frames arrive once and in order by every way of delivery, guests are
//! signalled as the way says, and who misuses rings harms nobody else.

use proptest::prelude::*;
use sidestep_hypervisor::Cycle;
use sidestep_hypervisor::host::schedule::PolicyName;
use sidestep_hypervisor::host::sidecores::locked;
use sidestep_hypervisor::host::{Host, HostEnd, NicReport};
use sidestep_hypervisor::link::{Link, Linked};
use sidestep_hypervisor::nic::Delivery;
use sidestep_ia64::PhysicalAddress;

use crate::fixture::console;
use crate::hostile::{
    beside, driver_beside_victim, driver_is_harmless, networked, networked_host, rings_are_harmless,
};

const CLOCK_MHZ: u64 = 2800;

/// What a guest has logged.
fn logged(host: &Host, index: usize) -> Vec<u64> {
    let text = console(host, index);
    let address = text
        .strip_prefix("log ")
        .and_then(|rest| rest.trim().parse().ok());
    let address = PhysicalAddress(address.unwrap_or_else(|| panic!("no log: {text}")));
    let machine = locked(&host.machines()[index]);
    let word = |number: u64| {
        let word = machine.memory().read_value::<u64>(address + 8 * number);
        word.expect("the log is memory")
    };
    (1..=word(0)).map(word).collect()
}

fn nic(host: &Host) -> NicReport {
    host.report().nic.expect("the host has a card")
}

/// Guests of the same number on two hosts, by what those of each do.
fn joined(work: [Vec<String>; 2], delivery: Delivery, threads: usize, link: &Link) -> Linked {
    let mut number = 0;
    let hosts = work.map(|work| {
        let machines = work.iter().enumerate();
        let machines = machines.map(|(index, work)| networked(index, &format!("guest {index}"), work));
        number += 1;
        networked_host(
            number - 1,
            2,
            delivery,
            threads,
            PolicyName::Free,
            machines.collect(),
        )
    });
    Linked::new(hosts, link, CLOCK_MHZ).expect("a good link")
}

/// So many probes and their echoes.
fn probes(guests: usize, delivery: Delivery, threads: usize, cycles: u64) -> Linked {
    let clients = (0..guests)
        .map(|index| format!("probe 1 {index} 0 300000"))
        .collect();
    let servers = vec!["echo".to_owned(); guests];
    let mut linked = joined([clients, servers], delivery, threads, &Link::GIGABIT);
    assert_eq!(linked.run(Cycle(cycles)).expect("services end"), HostEnd::Time);
    linked
}

#[test]
fn echoes_come_back_by_every_way_and_none_is_lost_or_doubled() {
    for delivery in Delivery::ALL {
        let linked = probes(3, delivery, 1, 1_200_000);
        let [here, there] = linked.hosts();
        for index in 0..3 {
            let trips = logged(here, index).len() as u64;
            assert!(trips > 3, "{delivery:?}: {trips} round trips");
            let (here, there) = (nic(here).interfaces[index], nic(there).interfaces[index]);
            // One may be on its way.
            for count in [
                here.counts.sent,
                there.counts.received,
                there.counts.sent,
                here.counts.received,
            ] {
                assert!(
                    count >= trips && count <= trips + 1,
                    "{delivery:?}: {count} of {trips}"
                );
            }
            assert_eq!((here.counts.dropped, here.counts.refused), (0, 0));
            assert_eq!(
                here.counts.redundant, 0,
                "{delivery:?}: three guests have a bit each"
            );
        }
    }
}

#[test]
fn interfaces_that_share_a_bit_are_signalled_in_vain_and_a_sidecore_never_does_that() {
    let redundant = |delivery| {
        let linked = probes(10, delivery, 1, 1_800_000);
        let interfaces = nic(&linked.hosts()[0]).interfaces;
        (0..10)
            .map(|index| interfaces[index].counts.redundant)
            .collect::<Vec<_>>()
    };
    let by_master = redundant(Delivery::Master);
    // Numbers 0 and 8, 1 and 9 share a bit of eight.
    for (index, redundant) in by_master.iter().enumerate() {
        assert_eq!(*redundant > 0, [0, 1, 8, 9].contains(&index), "{by_master:?}");
    }
    assert_eq!(redundant(Delivery::Sidecore), [0; 10]);
}

#[test]
fn one_and_two_host_threads_give_the_same_reports() {
    for delivery in [Delivery::Master, Delivery::Adaptive] {
        let [one, two] = [1, 2].map(|threads| {
            let linked = probes(5, delivery, threads, 900_000);
            let logs = (0..5).map(|index| logged(&linked.hosts()[0], index));
            (
                linked.hosts().each_ref().map(Host::report),
                logs.collect::<Vec<_>>(),
            )
        });
        assert_eq!(one, two, "{delivery:?}");
    }
}

#[test]
fn what_has_no_room_is_dropped_and_counted_and_the_rest_comes_once_and_in_order() {
    for delivery in [Delivery::Master, Delivery::Sidecore] {
        let work = [vec!["talk 1 0 600".to_owned()], vec!["take 100 3000".to_owned()]];
        let mut linked = joined(work, delivery, 1, &Link::GIGABIT);
        linked.run(Cycle(5_000_000)).expect("services end");
        let [from, to] = linked.hosts();
        assert!(console(to, 0).contains("taken 100"), "{}", console(to, 0));
        let (sent, counts) = (nic(from).interfaces[0].counts.sent, nic(to));
        assert_eq!(sent, 600);
        let interface = counts.interfaces[0].counts;
        assert!(interface.dropped > 0, "{counts:?}");
        // The guest has ended: its last buffers and the card hold what has come since.
        let held = sent - interface.received - interface.dropped - counts.counts.overrun;
        assert!(
            interface.received >= 100 && held <= 64 + 64,
            "{held} are held: {counts:?}"
        );
    }
}

#[test]
fn a_link_loses_what_it_is_told_to() {
    let link = Link {
        loss_one_in: 4,
        ..Link::GIGABIT
    };
    let work = [vec!["talk 1 0 100".to_owned()], vec!["echo".to_owned()]];
    let mut linked = joined(work, Delivery::Posted, 1, &link);
    linked.run(Cycle(2_000_000)).expect("services end");
    let [from, to] = linked.hosts();
    let sent = nic(from).interfaces[0].counts.sent;
    assert_eq!(sent, nic(to).interfaces[0].counts.received + linked.lost()[0]);
    assert!((10..50).contains(&linked.lost()[0]), "{:?}", linked.lost());
}

#[test]
fn neighbours_that_never_look_or_never_stop_sending_change_nothing_for_others() {
    for neighbour in ["deaf", "talk 0 1 1000000", "talk 7 7 1000000"] {
        for delivery in [Delivery::Vector, Delivery::Posted] {
            let (alone, with) = (beside(delivery, None), beside(delivery, Some(neighbour)));
            assert_eq!(with, alone, "{delivery:?} beside `{neighbour}`");
        }
    }
}

/// Here the neighbour ends a window early, and the victim has its core back eleven cycles before it would alone.
#[test]
fn rings_of_garbage_that_end_a_window_change_nothing_that_others_execute() {
    rings_are_harmless(&[189, 10, 195, 225, 180, 211, 78, 146]);
}

/// The device is set up, carries garbage, is stopped for it and set up again: else nobody would have tried anything.
#[test]
fn a_driver_that_breaks_every_rule_reaches_the_card() {
    let (counts, device_exits) = driver_beside_victim(Delivery::Sidecore, 1);
    assert!(
        counts.refused > 0 && device_exits > 100,
        "{counts:?} {device_exits}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3, max_shrink_iters: 8, ..ProptestConfig::default() })]

    #[test]
    fn rings_of_garbage_change_nothing_that_others_execute(bytes in proptest::collection::vec(any::<u8>(), 8)) {
        rings_are_harmless(&bytes);
    }

    #[test]
    fn a_driver_that_breaks_every_rule_changes_nothing_that_others_execute(
        bytes in proptest::collection::vec(any::<u8>(), 8),
    ) {
        driver_is_harmless(&bytes);
    }
}
