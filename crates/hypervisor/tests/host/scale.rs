//! Large hosts.

use sidestep_hypervisor::Cycle;
use sidestep_hypervisor::host::dynamic::SidecorePolicy;

use crate::fixture::{Setup, guest};

#[test]
fn a_host_of_64_cores_runs_32_virtual_machines_to_their_ends() {
    let setup = Setup {
        cores: 64,
        sidecores: SidecorePolicy::Fixed(4),
        host_threads: 2,
        ..Setup::default()
    };
    let machines = (0..32).map(|number| {
        let mut config = guest(
            &format!("guest {number}"),
            ["fault 20", "change 10", "interrupts 5"][number % 3],
        );
        config.processors = 1 + number % 2 * 2;
        config
    });
    let (_, report) = setup.run(machines.collect());
    assert_eq!(report.cores.len(), 64);
    assert!(report.machines.iter().all(|machine| machine.exit_code == Some(0)));
    // Sidecores serve a share of the virtual machines each.
    for core in &report.cores[60..] {
        assert!(core.serving > 0 && core.guest == 0, "{core:?}");
    }
    // Every core's time is accounted for, to the cycle.
    let passed = report.time.since(Cycle::START);
    for core in &report.cores {
        let sum =
            core.guest + core.monitor + core.polling + core.serving + core.looking + core.asleep + core.idle;
        assert!(
            sum >= passed && sum - passed < passed / 10,
            "{core:?} of {passed}"
        );
    }
}
