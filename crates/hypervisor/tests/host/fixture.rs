//! A host for a test, and the guest that asks for things.

use std::sync::Arc;

use sidestep_hypervisor::Cycle;
use sidestep_hypervisor::costs::{Cost, HostCosts};
use sidestep_hypervisor::host::dynamic::SidecorePolicy;
use sidestep_hypervisor::host::schedule::{PolicyName, Scheduling};
use sidestep_hypervisor::host::sidecores::{Executor, Polling, locked};
use sidestep_hypervisor::host::{Host, HostConfig, HostEnd, Report};
use sidestep_hypervisor::virtual_machine::{SECTOR, VirtualMachine, VirtualMachineConfig};

const IMAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../guests/ia64/bin/sidecore-requests"
);

/// What differs between tests.
pub struct Setup {
    pub cores: usize,
    pub sidecores: SidecorePolicy,
    pub services: Executor,
    pub host_threads: usize,
    pub trace: bool,
    pub policy: PolicyName,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            cores: 2,
            sidecores: SidecorePolicy::Fixed(0),
            services: Executor::VirtualTime,
            host_threads: 1,
            trace: false,
            policy: PolicyName::Free,
        }
    }
}

/// A virtual machine that does `work`.
pub fn guest(name: &str, work: &str) -> VirtualMachineConfig {
    let sectors = (0..8).flat_map(|sector: u64| (0..SECTOR).map(move |byte| (sector + byte) as u8));
    VirtualMachineConfig {
        parameters: work.to_owned(),
        disk: sectors.collect(),
        ..VirtualMachineConfig::new(name)
    }
}

/// The `index`th virtual machine of a host, with the guest in it.
pub fn boot(index: usize, config: VirtualMachineConfig) -> VirtualMachine {
    let image = std::fs::read(IMAGE).expect("the image is committed");
    VirtualMachine::new(index, config, &image).expect("a good virtual machine")
}

impl Setup {
    pub fn build(&self, machines: Vec<VirtualMachineConfig>) -> (Host, Arc<HostCosts>) {
        let machines = machines.into_iter().enumerate();
        self.host_of(machines.map(|(index, config)| boot(index, config)).collect())
    }

    /// A host of virtual machines that are there already.
    pub fn host_of(&self, machines: Vec<VirtualMachine>) -> (Host, Arc<HostCosts>) {
        let costs = HostCosts::preset("itanium2-vti").expect("a preset");
        let costs = costs.with(Cost::BlockDevice, 80_000, "a fast disk, so that tests are");
        let costs = Arc::new(costs.expect("a cost in range"));
        let config = HostConfig {
            cores: self.cores,
            costs: Arc::clone(&costs),
            sidecores: self.sidecores,
            polling: Polling {
                spin_cycles: 20_000,
                saves_energy: true,
            },
            scheduling: Scheduling {
                policy: self.policy,
                slot_ns: 100_000,
            },
            core_model: None,
            services: self.services,
            threads: self.host_threads,
            trace: self.trace,
            nic: None,
        };
        (Host::new(config, machines).expect("a good host"), costs)
    }

    /// Runs to the end of every virtual machine.
    pub fn run(&self, machines: Vec<VirtualMachineConfig>) -> (Host, Report) {
        let (mut host, _) = self.build(machines);
        let end = host.run(Cycle(1_000_000_000)).expect("services end");
        let report = host.report();
        let consoles: Vec<String> = (0..host.machines().len())
            .map(|index| console(&host, index))
            .collect();
        assert_eq!(end, HostEnd::Ended, "{report:#?} {consoles:?}");
        (host, report)
    }
}

/// What a virtual machine has printed.
pub fn console(host: &Host, index: usize) -> String {
    String::from_utf8_lossy(locked(&host.machines()[index]).console()).into_owned()
}

/// The cycles and the count of a measurement that a guest has printed.
pub fn measured(host: &Host, index: usize, name: &str) -> (u64, u64) {
    let console = console(host, index);
    let line = console.lines().find(|line| line.starts_with(name));
    let mut words = line
        .unwrap_or_else(|| panic!("no `{name}` in {console:?}"))
        .split(' ')
        .skip(1);
    let mut number = || words.next().and_then(|word| word.parse().ok()).expect("a number");
    (number(), number())
}
