//! Our own kernel in a virtual machine: its checks pass as on a bare machine.

use sidestep_vmm::consolidation::HostEnd;
use sidestep_vmm::hypervisor::{VirtualMachine, VirtualMachineConfig, Virtualization};

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
    let end = host.run(200_000_000).expect("services end");
    let said = console(&host, 0);
    assert_eq!(end, HostEnd::Ended, "{said} {:#?}", host.report().machines);
    said
}

/// Of what the kernel printed, what is not `ok`.
fn complaints(said: &str) -> String {
    let complaints: Vec<&str> = (said.lines().skip(1))
        .filter(|line| !line.starts_with("ok "))
        .collect();
    complaints.join("\n")
}

#[test]
fn the_kernels_own_checks_pass_with_intercepts() {
    for parameters in [
        "format=long",
        "format=short",
        "format=long walker=off superpages=on",
    ] {
        let said = run("kernel-1", 1, Virtualization::Hardware, parameters);
        assert_eq!(complaints(&said), "all right", "{parameters}");
    }
    let said = run("kernel-2", 2, Virtualization::Hardware, "format=long sharing=key");
    assert_eq!(complaints(&said), "all right");
}

/// What is right with ring compression. The rest of the checks is not: stacked registers that a fork leaves in memory come
/// back wrong.
#[test]
fn the_kernel_boots_with_ring_compression() {
    let said = run("kernel-1", 1, Virtualization::RingCompression, "format=long");
    for check in [
        "a page comes when it is touched, and once",
        "a child sees its parent's memory",
        "a signal reaches its handler",
        "a privileged instruction is SIGILL",
        "processes keep their floating-point registers",
        "a hundred messages there and back",
        "ended processes give their memory back",
    ] {
        assert!(
            said.lines().any(|line| line == format!("ok    {check}")),
            "{check}: {said}"
        );
    }
}
