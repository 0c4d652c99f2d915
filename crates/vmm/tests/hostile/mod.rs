//! Virtual machines whose guests are garbage: random code at random levels, random registers, translations, page tables
//! and request pages. They may do anything but harm the host program or another virtual machine.
//!
//! The fuzz target `guests` and the tests of hosts share it.

#![allow(dead_code, reason = "each user needs a part of it")]

use std::sync::Arc;

use sidestep_ia64::PhysicalAddress;
use sidestep_ia64::encoding::{Bundle, Template};
use sidestep_ia64::registers::status::psr;
use sidestep_vmm::consolidation::dynamic::SidecorePolicy;
use sidestep_vmm::consolidation::schedule::{PolicyName, Scheduling};
use sidestep_vmm::consolidation::{Host, HostConfig, Report};
use sidestep_vmm::host::HostCosts;
use sidestep_vmm::hypervisor::{VirtualMachine, VirtualMachineConfig, Virtualization};
use sidestep_vmm::sidecall::call;
use sidestep_vmm::sidecall::sidecores::{Polling, locked};

#[path = "../../../ia64/tests/random_guest/mod.rs"]
mod random_guest;

use random_guest::{MEMORY, ROM, ROM_SIZE, Source};

/// The monitor's immediate, in the place that `break.m` has for it.
const BREAK: u64 = 0x5ede << 6;
const NOP: u64 = 1 << 27;
/// Where guests put a request page that register one.
const REQUESTS: u64 = 0x4000;
/// The register with the number of a call.
const FUNCTION: u8 = 15;

/// The virtual machine that follows from some bytes.
pub fn guest(index: usize, bytes: &[u8]) -> VirtualMachine {
    let mut source = Source::new(bytes);
    let mut config = VirtualMachineConfig::new("hostile");
    config.memory = 2 << 20;
    config.processors = 1 + source.below(2) as usize;
    config.disk = vec![0; 4096];
    if source.one_in(2) {
        config.virtualization = Virtualization::RingCompression;
    }
    let mut machine = VirtualMachine::empty(index, config).expect("a good virtual machine");
    let mut bundles = random_guest::code(&mut source);
    for bundle in &mut bundles {
        if source.one_in(12) {
            let call = Bundle::new(Template::new(0), [BREAK, NOP, NOP]);
            *bundle = call.to_bytes();
        }
    }
    let code: Vec<u8> = bundles
        .iter()
        .cycle()
        .flatten()
        .copied()
        .take(ROM_SIZE as usize)
        .collect();
    let memory = machine.memory();
    memory
        .write(PhysicalAddress(ROM), &code)
        .expect("memory for code");
    for address in (0..MEMORY).step_by(8).filter(|address| address / 8 % 3 == 0) {
        let word = source.value();
        memory
            .write_value(PhysicalAddress(address), word)
            .expect("memory for data");
    }
    for index in 0..machine.processors().len() {
        machine.start_processor(index, ROM, 0, 0);
        let processor = machine.processor_mut(index).processor_mut();
        random_guest::fill_registers(processor, &mut source);
        random_guest::fill_system_registers(processor, &mut source);
        // No guest can set it in its own state.
        processor.set_status(processor.status & !psr::VM);
        // Most calls are those that there are.
        if !source.one_in(4) {
            let function = [0, 2, 4, 5, 7, 8, 9, call::REGISTER, call::REQUEST];
            let chosen = function[source.below(function.len() as u64) as usize];
            processor.general.set(FUNCTION, chosen);
            let first = if chosen == call::REGISTER {
                REQUESTS
            } else {
                source.value()
            };
            processor.general.set(8, first);
        }
    }
    machine
}

/// What becomes of the virtual machine alone on a host with a sidecore: the report and what it printed.
pub fn outcome(bytes: &[u8]) -> (Report, Vec<u8>) {
    let costs = HostCosts::preset("itanium2-vti").expect("a preset");
    let config = HostConfig {
        cores: 2,
        costs: Arc::new(costs),
        sidecores: SidecorePolicy::Dynamic { most: 1 },
        polling: Polling {
            spin: 1000,
            saves_energy: true,
        },
        scheduling: Scheduling {
            policy: PolicyName::Free,
            slot_ns: 50_000,
        },
        host_threads: 1,
        trace: true,
    };
    let mut host = Host::new(config, vec![guest(0, bytes)]).expect("a good host");
    host.run(500_000).expect("services end");
    let console = locked(&host.machines()[0]).console().to_vec();
    (host.report(), console)
}
