//! What several processors do to one guest's page tables, and page tables that a guest writes itself.

use sidestep_hypervisor::Cycle;
use sidestep_hypervisor::host::dynamic::SidecorePolicy;
use sidestep_hypervisor::host::{HostEnd, VirtualMachineReport};
use sidestep_hypervisor::sidecall::request::Kind;
use sidestep_hypervisor::virtual_machine::{
    ExitReason, LockCounts, PurgeMethod, VirtualMachine, VirtualMachineConfig, Virtualization,
};

use crate::fixture::{Setup, console, measured};

/// What becomes of the guest that does `work`, and what it has measured.
fn run(
    work: &str,
    sidecores: usize,
    host_threads: usize,
    config: VirtualMachineConfig,
) -> (VirtualMachineReport, u64) {
    let setup = Setup {
        cores: config.processors + 1,
        sidecores: SidecorePolicy::Fixed(sidecores),
        host_threads,
        ..Setup::default()
    };
    let config = VirtualMachineConfig {
        parameters: work.to_owned(),
        ..config
    };
    let machine =
        VirtualMachine::new(0, config, sidestep_guests::ia64::MEMORY).expect("a good virtual machine");
    let (mut host, _) = setup.host_of(vec![machine]);
    let end = host.run(Cycle(1_000_000_000)).expect("services end");
    assert_eq!(end, HostEnd::Ended, "{}", console(&host, 0));
    let report = host.report().machines[0].clone();
    assert_eq!(report.exit_code, Some(0), "{}", console(&host, 0));
    let name = work.split(' ').next().expect("a word");
    let (cycles, _) = measured(&host, 0, name);
    (report, cycles)
}

fn updating(processors: usize, page_table_lock: bool) -> VirtualMachineConfig {
    VirtualMachineConfig {
        processors,
        page_table_lock,
        ..VirtualMachineConfig::new("guest")
    }
}

#[test]
fn every_update_by_exit_takes_the_lock_and_none_by_sidecall() {
    let counts = |sidecores, processors| {
        let (report, _) = run("updates 30 0", sidecores, 1, updating(processors, true));
        report.page_table_lock.expect("it has a lock")
    };
    assert_eq!(
        counts(0, 1),
        LockCounts {
            taken: 30,
            ..LockCounts::default()
        }
    );
    let contended = counts(0, 4);
    assert_eq!(contended.taken, 120);
    assert!(contended.contended > 0 && contended.cycles > 0, "{contended:?}");
    assert_eq!(counts(1, 4), LockCounts::default());
    assert_eq!(
        run("updates 30 0", 0, 1, updating(4, false)).0.page_table_lock,
        None
    );
}

#[test]
fn a_lock_costs_what_its_waits_say_and_threads_of_this_program_change_nothing() {
    let locked = run("updates 30 100", 0, 1, updating(4, true));
    let free = run("updates 30 100", 0, 1, updating(4, false));
    assert!(locked.1 > free.1, "{} with and {} without", locked.1, free.1);
    assert_eq!(run("updates 30 100", 0, 2, updating(4, true)), locked);
    let served = run("updates 30 100", 1, 1, updating(4, true));
    assert_eq!(run("updates 30 100", 1, 2, updating(4, true)), served);
}

#[test]
fn what_a_guest_writes_into_its_tables_is_filled_and_purged_by_request() {
    for virtualization in [Virtualization::Hardware, Virtualization::RingCompression] {
        for purge in [PurgeMethod::Interrupt, PurgeMethod::Broadcast] {
            for sidecores in [0, 1] {
                let config = VirtualMachineConfig {
                    virtualization,
                    purge,
                    ..VirtualMachineConfig::new("guest")
                };
                let none = run("tables 0", sidecores, 1, config.clone()).0;
                let (report, _) = run("tables 20", sidecores, 1, config);
                let made = |kind| {
                    let of_kind = report
                        .requests
                        .iter()
                        .filter(|request| request.kind == Some(kind));
                    of_kind.map(|request| request.count).sum::<u64>()
                };
                assert_eq!((made(Kind::Fill), made(Kind::Purge)), (21, 21), "{report:#?}");
                // The frames are touched for the first time, 40 of them, and each page behind its purge; a page that
                // was filled is in the shadow before it is touched.
                let fills = |report: &VirtualMachineReport| {
                    let fills = (report.exits.iter()).find(|exit| exit.reason == ExitReason::ShadowFill);
                    fills.map_or(0, |exit| exit.count)
                };
                let more = fills(&report) - fills(&none);
                assert!((60..70).contains(&more), "{more} {report:#?}");
            }
        }
    }
}
