//! Our own kernel in a virtual machine: its checks pass as on a bare machine, and so they do when it makes sidecalls.

use sidestep_hypervisor::Cycle;
use sidestep_hypervisor::host::dynamic::SidecorePolicy;
use sidestep_hypervisor::host::schedule::PolicyName;
use sidestep_hypervisor::host::sidecores::locked;
use sidestep_hypervisor::host::{Host, HostEnd, VirtualMachineReport};
use sidestep_hypervisor::nic::Delivery;
use sidestep_hypervisor::sidecall::request::Kind;
use sidestep_hypervisor::virtual_machine::{
    Method, SECTOR, VirtualMachine, VirtualMachineConfig, Virtualization,
};

use crate::fixture::{Setup, console};
use crate::hostile::networked_host;
use crate::sharing::watch;

/// The kernel, as an image of so many processors, with what it is told.
fn kernel(index: usize, image: &str, processors: usize, parameters: &str) -> VirtualMachine {
    let image = format!("{}/../../guests/ia64/bin/{image}", env!("CARGO_MANIFEST_DIR"));
    let image = std::fs::read(image).expect("the image is committed");
    let config = VirtualMachineConfig {
        processors,
        memory: 256 << 20,
        parameters: format!("memory=256 {parameters}"),
        disk: vec![0; 512 * SECTOR as usize],
        ..VirtualMachineConfig::new("kernel")
    };
    VirtualMachine::new(index, config, &image).expect("a good virtual machine")
}

/// Runs it to its end, with so many sidecores beside its processors' cores.
fn finish(
    image: &str,
    processors: usize,
    parameters: &str,
    sidecores: usize,
) -> (Host, VirtualMachineReport) {
    let setup = Setup {
        cores: processors + 1,
        sidecores: SidecorePolicy::Fixed(sidecores),
        ..Setup::default()
    };
    let (mut host, _) = setup.host_of(vec![kernel(0, image, processors, parameters)]);
    let end = host.run(Cycle(1_000_000_000)).expect("services end");
    let said = console(&host, 0);
    assert_eq!(end, HostEnd::Ended, "{parameters}: {said}");
    let report = host.report().machines.remove(0);
    assert_eq!(report.exit_code, Some(0), "{parameters}: {said}");
    (host, report)
}

/// How many requests of a kind were made, by sidecall and by exit.
fn made(report: &VirtualMachineReport, kind: Kind) -> [u64; 2] {
    [Method::Sidecall, Method::Exit].map(|method| {
        let of_kind =
            (report.requests.iter()).filter(|request| request.kind == Some(kind) && request.method == method);
        of_kind.map(|request| request.count).sum()
    })
}

fn exits(report: &VirtualMachineReport) -> u64 {
    report.exits.iter().map(|exit| exit.count).sum()
}

/// Runs the kernel's own tests with these boot parameters; what it printed.
fn run(
    image: &str,
    processors: usize,
    virtualization: Virtualization,
    parameters: &str,
    is_watched: bool,
) -> String {
    let image = format!("{}/../../guests/ia64/bin/{image}", env!("CARGO_MANIFEST_DIR"));
    let image = std::fs::read(image).expect("the image is committed");
    let mut config = VirtualMachineConfig::new("kernel");
    config.processors = processors;
    config.memory = 256 << 20;
    config.virtualization = virtualization;
    config.parameters = format!("memory=256 {parameters} program=tests");
    let machine = VirtualMachine::new(0, config, &image).expect("a good virtual machine");
    let setup = Setup {
        cores: processors,
        ..Setup::default()
    };
    let (mut host, _) = setup.host_of(vec![machine]);
    if is_watched {
        watch(&mut host);
    }
    let end = host.run(Cycle(200_000_000)).expect("services end");
    let said = console(&host, 0);
    let machines = host.report().machines;
    assert_eq!(end, HostEnd::Ended, "{said} {machines:#?}");
    let faults = machines[0].detection.as_ref().map(|found| found.counts.faults);
    assert_eq!(faults > Some(0), is_watched, "{machines:#?}");
    said
}

/// Every parameter with one processor or with two, while the monitor watches who shares memory and while it does not.
fn checks_pass(virtualization: Virtualization) {
    for (image, processors, parameters, is_watched) in [
        ("kernel-2", 2, "format=long sharing=key", true),
        ("kernel-2", 2, "format=long walker=off superpages=on", true),
        ("kernel-2", 2, "format=short", true),
        ("kernel-2", 2, "format=short", false),
        ("kernel-1", 1, "format=short walker=off", false),
        ("kernel-1", 1, "format=long", false),
    ] {
        all_right(image, processors, virtualization, parameters, is_watched);
    }
}

fn all_right(
    image: &str,
    processors: usize,
    virtualization: Virtualization,
    parameters: &str,
    is_watched: bool,
) {
    let said = run(image, processors, virtualization, parameters, is_watched);
    let complaints: Vec<&str> = (said.lines().skip(1))
        .filter(|line| !line.starts_with("ok ") && !line.starts_with("trace: "))
        .collect();
    let complaints = complaints.join("\n");
    assert_eq!(complaints, "all right", "{image} {parameters} {is_watched}");
}

#[test]
fn the_kernels_own_checks_pass_with_intercepts() {
    checks_pass(Virtualization::Hardware);
}

#[test]
fn the_kernels_own_checks_pass_with_ring_compression() {
    checks_pass(Virtualization::RingCompression);
}

#[test]
fn its_checks_pass_whatever_it_asks_a_sidecore_for_and_whether_there_is_one() {
    for (processors, parameters, sidecores) in [
        (1, "format=long sidecalls=updates,purges", 1),
        (1, "format=long sidecalls=updates,purges", 0),
        (1, "format=short sidecalls=updates,purges superpages=on", 1),
        (1, "format=short walker=off sidecalls=updates", 1),
        (
            2,
            "format=long sharing=key superpages=on sidecalls=updates,purges",
            1,
        ),
        (2, "format=short sidecalls=purges", 1),
        (2, "format=long", 1),
    ] {
        let image = format!("kernel-{processors}-sidecalls");
        let (host, report) = finish(
            &image,
            processors,
            &format!("{parameters} program=tests"),
            sidecores,
        );
        let said = console(&host, 0);
        assert!(said.ends_with("all right\n"), "{parameters}: {said}");
        let asked = [Kind::Map, Kind::Fill, Kind::Unmap, Kind::Purge].map(|kind| made(&report, kind)[0]);
        let is_made = sidecores > 0 && parameters.contains("sidecalls");
        assert_eq!(asked.iter().sum::<u64>() > 0, is_made, "{parameters}: {asked:?}");
    }
}

#[test]
fn a_page_fault_takes_one_request_and_fewer_exits_by_sidecall_and_its_marks_are_kept() {
    let run = |sidecores| {
        let parameters = "format=long sidecalls=updates,purges program=fault 50 4";
        let (host, report) = finish("kernel-1-sidecalls", 1, parameters, sidecores);
        let marks = locked(&host.machines()[0]).marks().to_vec();
        assert_eq!(
            marks.iter().map(|(label, _)| *label).collect::<Vec<_>>(),
            [1, 2, 3, 4]
        );
        (
            marks[3].1 - marks[2].1,
            exits(&report),
            made(&report, Kind::Map)[0],
            made(&report, Kind::Unmap)[0],
        )
    };
    let (by_exit, by_sidecall) = (run(0), run(1));
    assert_eq!((by_exit.2, by_exit.3), (0, 0));
    // Five rounds of fifty pages, and the program's own.
    assert!((250..270).contains(&by_sidecall.2), "{by_sidecall:?}");
    assert!((250..270).contains(&by_sidecall.3), "{by_sidecall:?}");
    assert!(by_sidecall.0 < by_exit.0, "{by_sidecall:?} {by_exit:?}");
    // A request spares the exits of the handler that would have put the entry into the table, and of what takes it out.
    assert!(by_exit.1 - by_sidecall.1 > 8 * 200, "{by_sidecall:?} {by_exit:?}");
}

#[test]
fn its_disk_keeps_what_several_processes_write_by_exit_and_by_sidecall_on_one_and_two_processors() {
    for (processors, sidecores) in [(1, 0), (1, 1), (2, 0), (2, 1)] {
        let image = format!("kernel-{processors}-sidecalls");
        let (host, report) = finish(&image, processors, "sidecalls=disk program=disk 8 6", sidecores);
        assert!(console(&host, 0).ends_with("disk: 8 processes, all as written\n"));
        let expected = if sidecores == 1 { [48, 0] } else { [0, 48] };
        for kind in [Kind::ReadBlock, Kind::WriteBlock] {
            assert_eq!(made(&report, kind), expected, "{processors} {kind:?}");
        }
    }
}

#[test]
fn the_papers_probe_in_the_kernel_gets_every_echo_by_every_way_of_delivery() {
    for delivery in Delivery::ALL {
        let machines = ["program=psapp client 0 1 20", "program=psapp server"];
        let machines = (machines.iter().enumerate())
            .map(|(index, work)| kernel(index, "kernel-1-sidecalls", 1, work))
            .collect();
        let mut host = networked_host(0, 3, delivery, 1, PolicyName::Free, machines);
        host.run(Cycle(40_000_000)).expect("services end");
        let said = console(&host, 0);
        assert!(said.contains("psapp: 20 probes, "), "{delivery:?}: {said}");
        let counts = host.report().nic.expect("a card").interfaces[0].counts;
        assert_eq!(
            (counts.sent, counts.received, counts.dropped),
            (20, 20, 0),
            "{delivery:?}"
        );
    }
}

#[test]
fn what_it_asks_for_must_be_something_that_there_is() {
    for (parameters, complaint) in [
        (
            "sidecalls=updates,disc",
            "expected off, or a list of updates, purges, disk",
        ),
        ("sidecall=disk", "tick, clock, sidecalls, program"),
    ] {
        let setup = Setup::default();
        let machine = kernel(0, "kernel-1-sidecalls", 1, parameters);
        let (mut host, _) = setup.host_of(vec![machine]);
        host.run(Cycle(100_000_000)).expect("services end");
        assert!(console(&host, 0).contains(complaint), "{}", console(&host, 0));
        assert_eq!(host.report().machines[0].exit_code, Some(70));
    }
}
