//! Block devices and network interfaces: one thread each, however a request comes; queues that push back.

use sidestep_hypervisor::host::dynamic::SidecorePolicy;
use sidestep_hypervisor::host::sidecores::locked;
use sidestep_hypervisor::host::{Report, Span};
use sidestep_hypervisor::sidecall::request::Kind;
use sidestep_hypervisor::virtual_machine::{Method, QUEUE_MAX, SECTOR, VirtualMachineConfig};

use crate::fixture::{Setup, console, guest, measured};

/// A virtual machine that does `work` with a block device of so many sectors.
fn with_disk(work: &str, sectors: u64) -> VirtualMachineConfig {
    VirtualMachineConfig {
        disk: vec![0; (sectors * SECTOR) as usize],
        ..guest("guest", work)
    }
}

/// What comes out with so many sidecores: the report, the timeline and what the guest measured.
fn outcome(sidecores: usize, work: &str, sectors: u64) -> (Report, Vec<Span>, u64, u64) {
    let setup = Setup {
        sidecores: SidecorePolicy::Fixed(sidecores),
        trace: true,
        ..Setup::default()
    };
    let (host, report) = setup.run(vec![with_disk(work, sectors)]);
    assert_eq!(report.machines[0].exit_code, Some(0), "{}", console(&host, 0));
    let (_, moved) = measured(&host, 0, "blocks");
    let (_, pushed_back) = measured(&host, 0, "pushed-back");
    (report, host.spans(), moved, pushed_back)
}

#[test]
fn checksummed_sectors_go_through_the_device_either_way_one_request_after_the_other() {
    for sidecores in [0, 1] {
        let (report, spans, moved, pushed_back) = outcome(sidecores, "blocks 2 8", 50);
        assert_eq!((moved, pushed_back), (100, 0));
        let way = if sidecores == 0 {
            Method::Exit
        } else {
            Method::Sidecall
        };
        assert!(
            report.machines[0]
                .requests
                .iter()
                .all(|requests| requests.method == way)
        );
        // The first virtual machine's block device is the first track behind the cores.
        let mut work: Vec<&Span> = spans
            .iter()
            .filter(|span| span.core == report.cores.len())
            .collect();
        assert!(work.len() > 50, "{spans:?}");
        work.sort_by_key(|span| span.start);
        for pair in work.windows(2) {
            assert!(pair[0].start + pair[0].cycles <= pair[1].start, "{pair:?}");
        }
        // Several at once: whoever waits for seven others waits seven times as long.
        let written = (report.machines[0].requests.iter())
            .find(|requests| requests.kind == Some(Kind::WriteBlock))
            .expect("sectors were written");
        assert!(written.median > 5 * written.least, "{written:?}");
    }
}

#[test]
fn a_device_whose_queue_is_full_pushes_back_and_loses_nothing() {
    for sidecores in [0, 1] {
        let (_, _, moved, none) = outcome(sidecores, &format!("blocks 1 {QUEUE_MAX}"), 300);
        assert_eq!((moved, none), (300, 0), "as many as the queue holds");
        let (_, _, moved, some) = outcome(sidecores, "blocks 1 63", 300);
        assert_eq!(moved, 300);
        assert!(some > 0, "more than the queue holds");
    }
}

#[test]
fn a_processor_that_asks_a_device_by_exit_waits_for_it_and_others_go_on() {
    let mut config = with_disk("blocks 1 1", 8);
    config.processors = 2;
    let (host, report) = Setup::default().run(vec![config]);
    assert_eq!(report.machines[0].exit_code, Some(0), "{}", console(&host, 0));
    let machine = locked(&host.machines()[0]);
    let (asking, computing) = (&machine.processors()[0], &machine.processors()[1]);
    assert!(asking.cycles().idle > 8 * 80_000, "{:?}", asking.cycles());
    assert!(computing.cycles().guest > 8 * 80_000, "{:?}", computing.cycles());
}

#[test]
fn packets_that_a_receiver_has_no_room_for_wait_at_the_sender() {
    // Far more than wait at sender and receiver together, for one that looks late.
    for sidecores in [0, 1] {
        let setup = Setup {
            cores: 4,
            sidecores: SidecorePolicy::Fixed(sidecores),
            ..Setup::default()
        };
        let (host, report) = setup.run(vec![
            guest("from", "send 1 1500"),
            guest("to", "compute-receive 3000000 1500"),
        ]);
        for (index, machine) in report.machines.iter().enumerate() {
            assert_eq!(machine.exit_code, Some(0), "{}", console(&host, index));
        }
        assert_eq!(measured(&host, 1, "receive").1, 1500);
    }
}

#[test]
fn a_change_of_method_leaves_no_request_behind() {
    let setup = Setup {
        sidecores: SidecorePolicy::Dynamic { most: 1 },
        ..Setup::default()
    };
    let (host, report) = setup.run(vec![with_disk("blocks 4 40", 100)]);
    assert_eq!(report.machines[0].exit_code, Some(0), "{}", console(&host, 0));
    assert_eq!(measured(&host, 0, "blocks").1, 400);
    assert!(matches!(
        locked(&host.machines()[0]).method(),
        Method::Exit | Method::Sidecall
    ));
}
