//! Hosts with virtual machines that ask for things: by exit and by sidecall, alone and beside hostile ones.

mod contention;
mod devices;
mod executors;
mod fixture;
#[path = "../hostile/mod.rs"]
mod hostile;
mod interfaces;
mod isolation;
mod kernel;
mod memory;
mod scale;
mod sharing;

use fixture::{Setup, guest, measured};
use sidestep_hypervisor::Cycle;
use sidestep_hypervisor::host::HostEnd;
use sidestep_hypervisor::host::dynamic::SidecorePolicy;
use sidestep_hypervisor::host::sidecores::locked;
use sidestep_hypervisor::virtual_machine::{ExitReason, Method, PurgeMethod, Virtualization};

/// What every guest can do alone, with numbers small enough for a test.
const WORK: &[&str] = &[
    "null 20",
    "identification 20",
    "map 20",
    "change 20",
    "unmap 20",
    "fault 20",
    "context 4 3",
    "build 2 5 5 10",
    "build-files-by-exit 2 5 5 10",
    "bursts 3 100",
    "disk 1",
    "blocks 2 5",
    "timer 2",
];

#[test]
fn the_same_image_works_by_exit_and_by_sidecall() {
    for work in WORK {
        for virtualization in [Virtualization::Hardware, Virtualization::RingCompression] {
            for sidecores in [0, 1] {
                let setup = Setup {
                    sidecores: SidecorePolicy::Fixed(sidecores),
                    ..Setup::default()
                };
                let mut config = guest("guest", work);
                config.virtualization = virtualization;
                let (host, report) = setup.run(vec![config]);
                let machine = &report.machines[0];
                assert_eq!(
                    machine.exit_code,
                    Some(0),
                    "{work}: {machine:?}\n{}",
                    fixture::console(&host, 0)
                );
                let by_sidecall = machine
                    .requests
                    .iter()
                    .any(|requests| requests.method == Method::Sidecall);
                assert_eq!(by_sidecall, sidecores > 0, "{work}");
            }
        }
    }
}

#[test]
fn sensitive_instructions_see_the_guests_state_with_and_without_intercepts() {
    for virtualization in [Virtualization::Hardware, Virtualization::RingCompression] {
        let mut config = guest("guest", "sensitive 20");
        config.virtualization = virtualization;
        let (host, _) = Setup::default().run(vec![config]);
        let exits = locked(&host.machines()[0]).exits();
        assert_eq!(exits.count(ExitReason::RegisterState), 20, "cover");
        assert_eq!(exits.count(ExitReason::TranslationQuery), 20, "thash");
        assert_eq!(
            locked(&host.machines()[0]).exit_code(),
            Some(0),
            "{}",
            fixture::console(&host, 0)
        );
    }
}

#[test]
fn a_sidecall_saves_one_exit_of_the_two_that_a_page_fault_takes() {
    let exits = |sidecores| {
        let setup = Setup {
            sidecores: SidecorePolicy::Fixed(sidecores),
            ..Setup::default()
        };
        let (host, _) = setup.run(vec![guest("guest", "fault 100")]);
        let exits = locked(&host.machines()[0]).exits();
        (
            exits.count(ExitReason::PageFault),
            exits.count(ExitReason::Request),
        )
    };
    let (faults, updates) = exits(0);
    assert!((100..110).contains(&faults), "{faults}");
    assert!(updates >= 100, "{updates}");
    let (faults, updates) = exits(1);
    assert!((100..110).contains(&faults), "{faults}");
    assert_eq!(updates, 0);
}

#[test]
fn a_full_ring_pushes_back_and_loses_nothing() {
    let setup = Setup {
        sidecores: SidecorePolicy::Fixed(1),
        ..Setup::default()
    };
    let (_, report) = setup.run(vec![guest("guest", "ring 1000")]);
    let requests = &report.machines[0].requests;
    assert_eq!(report.machines[0].exit_code, Some(0));
    assert_eq!(requests[0].count, 1000);
}

#[test]
fn purges_reach_every_processor_by_interrupt_and_by_broadcast() {
    for purge in [PurgeMethod::Interrupt, PurgeMethod::Broadcast] {
        for sidecores in [0, 1] {
            let setup = Setup {
                cores: 4,
                sidecores: SidecorePolicy::Fixed(sidecores),
                ..Setup::default()
            };
            let mut config = guest("guest", "change 30");
            config.processors = 3;
            config.purge = purge;
            let (_, report) = setup.run(vec![config]);
            assert_eq!(report.machines[0].exit_code, Some(0));
            assert!(report.machines[0].remote_purges >= 30);
        }
    }
}

#[test]
fn virtual_machines_interrupt_and_send_to_each_other() {
    for sidecores in [0, 1] {
        let setup = Setup {
            cores: 4,
            sidecores: SidecorePolicy::Fixed(sidecores),
            ..Setup::default()
        };
        let mut ring = guest("ring", "interrupts 20");
        ring.processors = 3;
        let (host, report) = setup.run(vec![guest("from", "send 1 30"), guest("to", "receive 30"), ring]);
        for (index, machine) in report.machines.iter().enumerate() {
            assert_eq!(
                machine.exit_code,
                Some(0),
                "{machine:?} {}",
                fixture::console(&host, index)
            );
        }
    }
}

#[test]
fn host_threads_and_repetition_change_no_byte() {
    let run = |host_threads| {
        let setup = Setup {
            cores: 6,
            sidecores: SidecorePolicy::Dynamic { most: 2 },
            host_threads,
            trace: true,
            ..Setup::default()
        };
        let work = [
            "fault 60",
            "bursts 20 3000",
            "ring 200",
            "send 4 10",
            "receive 10",
            "hostile 7 300",
            "blocks 1 40",
        ];
        let mut machines: Vec<_> = work.iter().map(|work| guest(work, work)).collect();
        machines[1].processors = 2;
        let (host, report) = setup.run(machines);
        (report, host.spans(), fixture::console(&host, 0))
    };
    let once = run(1);
    assert_eq!(once, run(1));
    assert_eq!(once, run(2));
    assert_eq!(once, run(3));
}

#[test]
fn more_virtual_processors_than_cores_take_turns() {
    let setup = Setup {
        cores: 2,
        sidecores: SidecorePolicy::Fixed(0),
        ..Setup::default()
    };
    let (_, report) = setup.run(
        (0..5)
            .map(|number| guest(&format!("guest {number}"), "fault 30"))
            .collect(),
    );
    assert!(report.machines.iter().all(|machine| machine.exit_code == Some(0)));
}

#[test]
fn the_way_of_requests_can_change_while_the_guest_runs() {
    let setup = Setup {
        sidecores: SidecorePolicy::Dynamic { most: 1 },
        ..Setup::default()
    };
    let (host, report) = setup.run(vec![guest("guest", "bursts 300 200000")]);
    assert_eq!(
        report.machines[0].exit_code,
        Some(0),
        "{}",
        fixture::console(&host, 0)
    );
    let methods: Vec<Method> = report.machines[0]
        .requests
        .iter()
        .map(|requests| requests.method)
        .collect();
    assert!(
        methods.contains(&Method::Exit) && methods.contains(&Method::Sidecall),
        "{methods:?}"
    );
    assert_eq!(
        locked(&host.machines()[0]).method(),
        if host.serving() > 0 {
            Method::Sidecall
        } else {
            Method::Exit
        }
    );
    assert_eq!(measured(&host, 0, "bursts").1, 6000);
}

#[test]
fn a_host_where_nothing_can_happen_says_so() {
    let mut config = guest("waits", "timer 1");
    config.parameters = "receive 1".to_owned();
    let setup = Setup::default();
    let (mut host, _) = setup.build(vec![config]);
    // It polls for a packet that never comes: that is not nothing.
    assert_eq!(host.run(Cycle(3_000_000)).expect("services end"), HostEnd::Time);
}
