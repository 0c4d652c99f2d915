//! Our own kernel in a virtual machine: its checks pass as on a bare machine.

use sidestep_hypervisor::Cycle;
use sidestep_hypervisor::host::HostEnd;
use sidestep_hypervisor::virtual_machine::{VirtualMachine, VirtualMachineConfig, Virtualization};

use crate::fixture::{Setup, console};
use crate::sharing::watch;

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
