//! Our own kernel in a virtual machine: its checks pass as on a bare machine.

use sidestep_hypervisor::Cycle;
use sidestep_hypervisor::host::HostEnd;
use sidestep_hypervisor::virtual_machine::{VirtualMachine, VirtualMachineConfig, Virtualization};

use crate::fixture::{Setup, console};

/// Runs the kernel's own tests with these boot parameters; what it printed.
fn run(image: &str, processors: usize, virtualization: Virtualization, parameters: &str) -> String {
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
    let end = host.run(Cycle(200_000_000)).expect("services end");
    let said = console(&host, 0);
    assert_eq!(end, HostEnd::Ended, "{said} {:#?}", host.report().machines);
    said
}

fn checks_pass(virtualization: Virtualization) {
    for (image, processors, parameters) in [
        ("kernel-1", 1, "format=long"),
        ("kernel-1", 1, "format=short"),
        ("kernel-1", 1, "format=short walker=off"),
        ("kernel-1", 1, "format=long walker=off superpages=on"),
        ("kernel-2", 2, "format=long sharing=key"),
        ("kernel-2", 2, "format=short"),
    ] {
        let said = run(image, processors, virtualization, parameters);
        let complaints: Vec<&str> = (said.lines().skip(1))
            .filter(|line| !line.starts_with("ok ") && !line.starts_with("trace: "))
            .collect();
        let complaints = complaints.join("\n");
        assert_eq!(complaints, "all right", "{image} {parameters}");
    }
}

#[test]
fn the_kernels_own_checks_pass_with_intercepts() {
    checks_pass(Virtualization::Hardware);
}

#[test]
fn the_kernels_own_checks_pass_with_ring_compression() {
    checks_pass(Virtualization::RingCompression);
}
