//! Virtual interfaces of a self-virtualised card: frames arrive once and in order by every way of delivery.

use std::sync::Arc;

use sidestep_hypervisor::Cycle;
use sidestep_hypervisor::costs::HostCosts;
use sidestep_hypervisor::host::dynamic::SidecorePolicy;
use sidestep_hypervisor::host::schedule::{PolicyName, Scheduling};
use sidestep_hypervisor::host::sidecores::{Executor, Polling, locked};
use sidestep_hypervisor::host::{Host, HostConfig, HostEnd, NicReport};
use sidestep_hypervisor::link::{Link, Linked};
use sidestep_hypervisor::nic::{Delivery, NicConfig};
use sidestep_hypervisor::virtual_machine::{VirtualMachine, VirtualMachineConfig};
use sidestep_ia64::PhysicalAddress;

use crate::fixture::console;

const CLOCK_MHZ: u64 = 2800;

/// A virtual machine that does this with its interface.
fn guest(index: usize, work: &str) -> VirtualMachine {
    let config = VirtualMachineConfig {
        parameters: work.to_owned(),
        ..VirtualMachineConfig::new(&format!("guest {index}"))
    };
    VirtualMachine::new(index, config, sidestep_guests::ia64::PACKETS).expect("a good virtual machine")
}

/// A host with so many cores for guests, and one more that serves where that is needed.
fn host_of(
    number: u16,
    cores: usize,
    delivery: Delivery,
    threads: usize,
    machines: Vec<VirtualMachine>,
) -> Host {
    let sidecores = usize::from(delivery.needs_sidecore());
    let config = HostConfig {
        cores: cores + sidecores,
        costs: Arc::new(HostCosts::preset("xeon").expect("a preset")),
        sidecores: SidecorePolicy::Fixed(sidecores),
        polling: Polling {
            spin_cycles: 20_000,
            saves_energy: false,
        },
        scheduling: Scheduling {
            policy: PolicyName::Free,
            slot_ns: 1_000_000,
        },
        core_model: None,
        services: Executor::VirtualTime,
        threads,
        trace: true,
        nic: Some(NicConfig {
            host: number,
            ..NicConfig::new(delivery)
        }),
    };
    Host::new(config, machines).expect("a good host")
}

/// What a guest has logged.
fn logged(host: &Host, index: usize) -> Vec<u64> {
    let text = console(host, index);
    let address = text
        .strip_prefix("log ")
        .and_then(|rest| rest.trim().parse().ok());
    let address = PhysicalAddress(address.unwrap_or_else(|| panic!("no log: {text}")));
    let machine = locked(&host.machines()[index]);
    let word = |number: u64| {
        machine
            .memory()
            .read_value::<u64>(address + 8 * number)
            .expect("memory")
    };
    (1..=word(0)).map(word).collect()
}

fn nic(host: &Host) -> NicReport {
    host.report().nic.expect("the host has a card")
}

/// So many probes between guests of the same number on two hosts, for so long.
fn probes(guests: usize, delivery: Delivery, threads: usize, link: Link, until: Cycle) -> Linked {
    let hosts = [0, 1].map(|number: u16| {
        let machines = (0..guests).map(|index| match number {
            0 => guest(index, &format!("probe 1 {index} 0")),
            _ => guest(index, "echo"),
        });
        host_of(number, 2, delivery, threads, machines.collect())
    });
    let mut linked = Linked::new(hosts, &link, CLOCK_MHZ).expect("a good link");
    assert_eq!(linked.run(until).expect("services end"), HostEnd::Time);
    linked
}

#[test]
fn echoes_come_back_by_every_way_and_none_is_lost_or_doubled() {
    for delivery in Delivery::ALL {
        let linked = probes(3, delivery, 1, Link::GIGABIT, Cycle(3_000_000));
        let [here, there] = linked.hosts();
        for index in 0..3 {
            let trips = logged(here, index).len() as u64;
            assert!(trips > 10, "{delivery:?}: {trips} round trips");
            let (here, there) = (nic(here).interfaces[index], nic(there).interfaces[index]);
            // One may be on its way.
            for count in [
                here.counts.sent,
                there.counts.received,
                there.counts.sent,
                here.counts.received,
            ] {
                assert!(
                    count >= trips && count <= trips + 2,
                    "{delivery:?}: {count} of {trips}"
                );
            }
            assert_eq!(
                (here.counts.dropped, here.counts.refused, here.counts.redundant),
                (0, 0, 0)
            );
        }
    }
}
