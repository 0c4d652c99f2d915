//! Virtual machines whose guests are garbage: random code at random levels, random registers, translations, page
//! tables and request pages; [scripts](script) of random requests and calls; and rings of garbage. They may do
//! anything but harm the host program or another virtual machine.
//!
//! The fuzz targets `guests`, `requests`, `rings` and `drivers` and the tests of hosts share it.

#![allow(dead_code, reason = "each user needs a part of it")]

use std::sync::Arc;

use sidestep_hypervisor::Cycle;
use sidestep_hypervisor::costs::{Cost, HostCosts};
use sidestep_hypervisor::description::Description;
use sidestep_hypervisor::host::dynamic::SidecorePolicy;
use sidestep_hypervisor::host::schedule::{PolicyName, Scheduling};
use sidestep_hypervisor::host::sidecores::{Executor, Polling, locked};
use sidestep_hypervisor::host::{Host, HostConfig, InterfaceReport, Report, VirtualMachineReport};
use sidestep_hypervisor::nic::frame::{Address, Frame};
use sidestep_hypervisor::nic::vif::VifCounts;
use sidestep_hypervisor::nic::{Delivery, NicConfig};
use sidestep_hypervisor::sidecall::call;
use sidestep_hypervisor::virtual_machine::{
    ExitReason, SECTOR, VirtualMachine, VirtualMachineConfig, Virtualization,
};
use sidestep_ia64::PhysicalAddress;
use sidestep_ia64::encoding::{Bundle, Template};
use sidestep_ia64::registers::status::psr;
use sidestep_machine::description::parse;

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
        machine.start_processor(index, PhysicalAddress(ROM), 0, Cycle::START);
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

/// The guest that asks for things.
const REQUESTS_IMAGE: &[u8] = sidestep_guests::ia64::REQUESTS;
/// Words of an operation of its script.
const OPERATION_WORDS: usize = 8;

/// A virtual machine that does `work` with this block device.
fn asking(index: usize, name: &str, work: &str, disk: Vec<u8>) -> VirtualMachine {
    let config = VirtualMachineConfig {
        parameters: work.to_owned(),
        disk,
        processors: 2,
        ..VirtualMachineConfig::new(name)
    };
    VirtualMachine::new(index, config, REQUESTS_IMAGE).expect("a good virtual machine")
}

/// The virtual machine whose requests, slots and calls follow from some bytes.
pub fn script(index: usize, bytes: &[u8]) -> VirtualMachine {
    let mut source = Source::new(bytes);
    let operations = 1 + source.below(64);
    let words = (0..operations).flat_map(|_| operation(&mut source));
    let mut disk: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    disk.resize(disk.len().next_multiple_of(SECTOR as usize), 0xff);
    asking(index, "script", "script", disk)
}

fn operation(source: &mut Source<'_>) -> [u64; OPERATION_WORDS] {
    const CALLS: [u64; 9] = [1, 4, 5, 6, 8, 9, call::REGISTER, call::REQUEST, call::SUBMIT];
    let what = source.below(6);
    let kind = match (what, source.below(8)) {
        (_, 0) => source.value(),
        (4, _) => CALLS[source.below(CALLS.len() as u64) as usize],
        _ => source.below(16),
    };
    let mut argument = || match source.below(6) {
        0 => source.next(),
        1 => source.value(),
        // Region 1, which is paged; memory behind the image; small numbers.
        2 => 1 << 61 | source.below(1 << 26),
        3 => (13 << 20) + source.below(4 << 20),
        _ => source.below(80),
    };
    [
        what,
        argument(),
        kind,
        argument(),
        argument(),
        argument(),
        argument(),
        0,
    ]
}

/// Whether a virtual machine beside that script gets what it gets alone: to the cycle with requests by exit, and the
/// same answers with a sidecore that both use.
pub fn script_is_harmless(bytes: &[u8]) {
    let results = |sidecores, neighbour: Option<VirtualMachine>| {
        let victim = asking(0, "victim", "blocks 1 3", vec![0; 4 * SECTOR as usize]);
        let machines = [Some(victim), neighbour].into_iter().flatten().collect();
        let mut host = host_of(5, SidecorePolicy::Fixed(sidecores), machines);
        while locked(&host.machines()[0]).exit_code().is_none() {
            let until = host.time() + 1_000_000;
            host.run(until).expect("services end");
            assert!(until < Cycle(4_000_000_000), "the victim does not end");
        }
        host.report().machines[0].clone()
    };
    let alone = results(0, None);
    assert_eq!(alone.exit_code, Some(0), "{alone:?}");
    assert_eq!(results(0, Some(script(1, bytes))), alone);
    let answers = |neighbour| {
        let report = results(1, neighbour);
        let requests = report.requests.iter().map(|made| (made.kind, made.method));
        (
            report.exit_code,
            report.failure.clone(),
            requests.collect::<Vec<_>>(),
        )
    };
    assert_eq!(answers(Some(script(1, bytes))), answers(None));
}

/// A virtual machine with an interface of a card that does `work` with it.
pub fn networked(index: usize, name: &str, work: &str) -> VirtualMachine {
    let config = VirtualMachineConfig {
        parameters: work.to_owned(),
        ..VirtualMachineConfig::new(name)
    };
    VirtualMachine::new(index, config, sidestep_guests::ia64::PACKETS).expect("a good virtual machine")
}

/// Host `number` with so many cores for guests whose card signals in some way.
pub fn networked_host(
    number: u16,
    cores: usize,
    delivery: Delivery,
    threads: usize,
    policy: PolicyName,
    machines: Vec<VirtualMachine>,
) -> Host {
    let sidecores = usize::from(delivery.needs_sidecore());
    let config = HostConfig {
        cores: cores + sidecores,
        costs: Arc::new(HostCosts::preset("xeon").expect("a preset")),
        sidecores: SidecorePolicy::Fixed(sidecores),
        polling: Polling {
            spin_cycles: 1000,
            saves_energy: false,
        },
        scheduling: Scheduling {
            policy,
            slot_ns: 50_000,
        },
        core_model: None,
        services: Executor::VirtualTime,
        threads,
        trace: false,
        nic: Some(NicConfig {
            host: number,
            ..NicConfig::new(delivery)
        }),
    };
    Host::new(config, machines).expect("a good host")
}

/// When the first of them comes, and how far they are apart. A driver's every store to a register is an exit.
const TIMES: (u64, u64) = (120_000, 15_000);
const DRIVER_TIMES: (u64, u64) = (400_000, 400_000);
/// Frames for the victim of [`beside`], and for its neighbour four at a time.
const FRAMES: u64 = 12;

/// What becomes of a guest that takes packets, beside a neighbour that has an interface, an engine and a core of its
/// own but the card and the host in common with it.
pub fn beside(
    delivery: Delivery,
    neighbour: Option<&str>,
) -> (VirtualMachineReport, InterfaceReport, Vec<u8>) {
    let victim = networked(0, "victim", &format!("take {FRAMES} 100"));
    let neighbour = neighbour.map(|work| networked(1, "neighbour", work));
    let machines = [Some(victim), neighbour].into_iter().flatten().collect();
    let mut host = networked_host(0, 2, delivery, 1, PolicyName::Free, machines);
    offer_frames(&mut host, TIMES)
}

/// Sends frames to the first guest of a host and to its neighbour, and runs it until the first has ended.
fn offer_frames(
    host: &mut Host,
    (first, apart): (u64, u64),
) -> (VirtualMachineReport, InterfaceReport, Vec<u8>) {
    host.link();
    let from = Address {
        host: 9,
        interface: 0,
    };
    let mut number = 0;
    for time in 0..FRAMES {
        let mut send = |interface, at| {
            number += 1;
            let mut frame = Frame::between(from, Address { host: 0, interface }, 64, number);
            frame.bytes[16..24].copy_from_slice(&number.to_le_bytes());
            host.receive(Cycle(at), frame);
        };
        let at = first + time * apart;
        send(0, at);
        (0..4).for_each(|_| send(1, at + 1));
    }
    while locked(&host.machines()[0]).exit_code().is_none() {
        let until = host.time() + 20_000;
        host.run(until).expect("services end");
        assert!(until < Cycle(20_000_000), "the victim does not end");
    }
    let report = host.report();
    let console = locked(&host.machines()[0]).console().to_vec();
    let nic = report.nic.expect("the host has a card");
    (report.machines[0].clone(), nic.interfaces[0], console)
}

/// Whether a guest with an interface gets what it gets alone, whatever a neighbour does to its own rings: to the cycle
/// that it executes where nobody but the card signals it, and all its packets in any case.
pub fn rings_are_harmless(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let work = format!("garbage {}", source.next() >> 1);
    for delivery in [Delivery::Vector, Delivery::Posted] {
        let alone = beside(delivery, None);
        assert_eq!(beside(delivery, Some(&work)), alone, "{delivery:?} {work}");
    }
    for delivery in [Delivery::Master, Delivery::Sidecore, Delivery::Adaptive] {
        let (report, interface, _) = beside(delivery, Some(&work));
        assert_eq!(report.exit_code, Some(0), "{delivery:?} {work}");
        assert_eq!((interface.counts.received, interface.counts.dropped), (FRAMES, 0));
    }
}

/// What becomes of a guest that takes packets, beside a kernel whose driver breaks every rule, if there is one.
fn beside_driver(delivery: Delivery, seed: Option<u64>) -> (VirtualMachineReport, InterfaceReport, Vec<u8>) {
    offer_frames(&mut host_of_driver(delivery, seed), DRIVER_TIMES)
}

/// What the card counted for a driver that breaks every rule, and its exits for device registers.
pub fn driver_beside_victim(delivery: Delivery, seed: u64) -> (VifCounts, u64) {
    let mut host = host_of_driver(delivery, Some(seed));
    offer_frames(&mut host, DRIVER_TIMES);
    let report = host.report();
    let exits = report.machines[1].exits.iter();
    let of_device = exits.filter(|exit| exit.reason == ExitReason::Device);
    let nic = report.nic.expect("the host has a card");
    (nic.interfaces[1].counts, of_device.map(|exit| exit.count).sum())
}

/// A host with a guest that takes packets, and a kernel whose driver breaks every rule, if there is one.
fn host_of_driver(delivery: Delivery, seed: Option<u64>) -> Host {
    const SEED: u64 = 0x5eed_5eed_5eed_5eed;
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let put = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).expect("a file");
    put("packets", sidestep_guests::ia64::PACKETS);
    let sidecores = usize::from(delivery.needs_sidecore());
    let mut text = format!(
        "[host]\ncores = {}\ncosts = 'xeon'\nsidecores = {sidecores}\n[nic]\ndelivery = '{}'\n\
         [[vm]]\nname = 'victim'\nimage = 'packets'\nparameters = 'take {FRAMES} 100'\n",
        2 + sidecores,
        delivery.name()
    );
    if let Some(seed) = seed {
        let mut kernel = sidestep_guests::ia64::HOSTILE_DRIVER.to_vec();
        let place = kernel.windows(8).position(|word| word == SEED.to_le_bytes());
        let place = place.expect("the kernel has a place for its seed");
        kernel[place..place + 8].copy_from_slice(&seed.to_le_bytes());
        put("driver", &kernel);
        text += "[[vm]]\nname = 'driver'\nkernel = 'driver'\nmemory = '256M'\n";
    }
    let description: Description = parse("host.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    let built = description.build(folder.path(), false, None);
    let (host, _) = built.unwrap_or_else(|error| panic!("{error}"));
    host
}

/// Whether a guest with an interface gets what it gets alone, whatever another one's driver does to the virtio device
/// in front of its own.
pub fn driver_is_harmless(bytes: &[u8]) {
    let seed = Source::new(bytes).next();
    for delivery in [Delivery::Vector, Delivery::Posted] {
        let alone = beside_driver(delivery, None);
        assert_eq!(
            beside_driver(delivery, Some(seed)),
            alone,
            "{delivery:?} {seed:#x}"
        );
    }
    for delivery in [Delivery::Master, Delivery::Sidecore, Delivery::Adaptive] {
        let (report, interface, _) = beside_driver(delivery, Some(seed));
        assert_eq!(report.exit_code, Some(0), "{delivery:?} {seed:#x}");
        assert_eq!((interface.counts.received, interface.counts.dropped), (FRAMES, 0));
    }
}

/// What becomes of the virtual machine alone on a host with a sidecore: the report and what it printed.
pub fn outcome(bytes: &[u8]) -> (Report, Vec<u8>) {
    let mut host = host_of(2, SidecorePolicy::Dynamic { most: 1 }, vec![guest(0, bytes)]);
    host.run(Cycle(500_000)).expect("services end");
    let console = locked(&host.machines()[0]).console().to_vec();
    (host.report(), console)
}

fn host_of(cores: usize, sidecores: SidecorePolicy, machines: Vec<VirtualMachine>) -> Host {
    // A disk of flash memory: with one that turns, a run would be waiting for it, nearly all of it.
    let costs = HostCosts::preset("itanium2-vti")
        .and_then(|costs| costs.with(Cost::BlockDevice, 80_000, "a fast disk"));
    let config = HostConfig {
        cores,
        costs: Arc::new(costs.expect("a preset")),
        sidecores,
        polling: Polling {
            spin_cycles: 1000,
            saves_energy: true,
        },
        scheduling: Scheduling {
            policy: PolicyName::Free,
            slot_ns: 50_000,
        },
        core_model: None,
        services: Executor::VirtualTime,
        threads: 1,
        trace: true,
        nic: None,
    };
    Host::new(config, machines).expect("a good host")
}
