//! Isolation: whatever a virtual machine does, another one's results stay what they are alone.
//!
//! Beside a neighbour on its own core, and with requests by exit, the whole report of the victim is the same to the
//! cycle. A sidecore is shared: there the victim may have to wait, but gets the same answers.

use proptest::prelude::*;
use sidestep_hypervisor::Cycle;
use sidestep_hypervisor::host::dynamic::SidecorePolicy;
use sidestep_hypervisor::host::sidecores::locked;
use sidestep_hypervisor::host::{HostEnd, VirtualMachineReport};
use sidestep_hypervisor::virtual_machine::VirtualMachine;

use crate::fixture::{Setup, boot, console, guest};
use crate::hostile;

/// Work whose results depend on memory, page tables, timers, a disk and answers.
const VICTIMS: &[&str] = &["fault 40", "build 2 4 4 10", "disk 1", "timer 2"];

/// The victim's report, and its console without the cycles that it measured.
fn results(
    victim: &str,
    sidecores: usize,
    neighbours: Vec<VirtualMachine>,
) -> (VirtualMachineReport, String) {
    let setup = Setup {
        cores: 4,
        sidecores: SidecorePolicy::Fixed(sidecores),
        ..Setup::default()
    };
    let mut machines = vec![boot(0, guest("victim", victim))];
    machines.extend(neighbours);
    let (mut host, _) = setup.host_of(machines);
    // Neighbours need not end: what counts is the victim.
    while locked(&host.machines()[0]).exit_code().is_none() {
        let until = host.time() + 200_000;
        let end = host.run(until).expect("services end");
        assert!(
            end == HostEnd::Time && until < Cycle(1_000_000_000)
                || locked(&host.machines()[0]).exit_code().is_some(),
            "the victim does not end"
        );
    }
    let words = console(&host, 0);
    let words: Vec<&str> = words
        .split_whitespace()
        .enumerate()
        .filter(|(place, _)| place % 3 != 1)
        .map(|(_, word)| word)
        .collect();
    (host.report().machines[0].clone(), words.join(" "))
}

/// What a victim gets that shares a sidecore: everything but time, and what waiting takes.
fn answers((report, console): &(VirtualMachineReport, String)) -> impl PartialEq + std::fmt::Debug {
    let requests: Vec<_> = report
        .requests
        .iter()
        .map(|requests| (requests.kind, requests.method, requests.count))
        .collect();
    (
        report.exit_code,
        report.failure.clone(),
        requests,
        console.clone(),
    )
}

fn is_unharmed(victim: &str, neighbour: impl Fn(usize) -> VirtualMachine) {
    let alone = results(victim, 0, Vec::new());
    assert_eq!(alone.0.exit_code, Some(0), "{}", alone.1);
    assert_eq!(
        results(victim, 0, vec![neighbour(1)]),
        alone,
        "`{victim}` by exit"
    );
    let alone = results(victim, 1, Vec::new());
    let beside = results(victim, 1, vec![neighbour(1)]);
    assert_eq!(answers(&beside), answers(&alone), "`{victim}` by sidecall");
}

#[test]
fn garbage_floods_and_silence_in_request_pages_and_calls_change_nothing_for_others() {
    for neighbour in [
        "hostile 1 500",
        "hostile 2 500",
        "hostile 3 500",
        "silent 50",
        "ring 500",
    ] {
        for victim in VICTIMS {
            is_unharmed(victim, |index| boot(index, guest("neighbour", neighbour)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 32, ..ProptestConfig::default() })]

    #[test]
    fn a_guest_of_random_code_does_the_same_each_time(bytes in proptest::collection::vec(any::<u8>(), 8..64)) {
        prop_assert_eq!(hostile::outcome(&bytes), hostile::outcome(&bytes));
    }

    #[test]
    fn random_requests_slots_and_calls_change_nothing_for_others(
        bytes in proptest::collection::vec(any::<u8>(), 8..64),
    ) {
        hostile::script_is_harmless(&bytes);
    }

    #[test]
    fn guests_of_random_code_and_tables_change_nothing_for_others(
        bytes in proptest::collection::vec(any::<u8>(), 8..64),
        victim in 0..VICTIMS.len(),
    ) {
        is_unharmed(VICTIMS[victim], |index| hostile::guest(index, &bytes));
    }
}
