//! The gdb stub on a host: its virtual processors are threads.

#[path = "../../machine/tests/gdb/mod.rs"]
mod gdb;

use std::sync::Arc;

use gdb::{Symbols, between, disturb};
use sidestep_hypervisor::debug::DebuggedHost;
use sidestep_hypervisor::host::dynamic::SidecorePolicy;
use sidestep_hypervisor::host::schedule::{PolicyName, Scheduling};
use sidestep_hypervisor::host::sidecores::{Executor, Polling};
use sidestep_hypervisor::host::{Host, HostConfig};
use sidestep_hypervisor::virtual_machine::{VirtualMachine, VirtualMachineConfig};
use sidestep_hypervisor::{Cycle, HostCosts};
use sidestep_machine::End;
use sidestep_machine::debug::server::Finish;

/// A host of two virtual machines, the second of two processors.
fn host() -> (Host, Symbols) {
    const IMAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guests/ia64/bin/machine-smp");
    let image = std::fs::read(IMAGE).expect("the image is committed");
    let machine = |index, (processors, parameters): (usize, &str)| {
        let mut config = VirtualMachineConfig::new(&format!("guest {index}"));
        config.processors = processors;
        config.parameters = parameters.to_owned();
        VirtualMachine::new(index, config, &image).expect("a good virtual machine")
    };
    let machines = [(1, "compute 1000"), (2, "lock 100")].into_iter().enumerate();
    let config = HostConfig {
        cores: 2,
        costs: Arc::new(HostCosts::preset("itanium2-vti").expect("a preset")),
        sidecores: SidecorePolicy::Fixed(0),
        polling: Polling {
            spin_cycles: 20_000,
            saves_energy: true,
        },
        scheduling: Scheduling {
            policy: PolicyName::Free,
            slot_ns: 100_000,
        },
        core_model: None,
        services: Executor::VirtualTime,
        threads: 2,
        trace: true,
        nic: None,
    };
    let machines = machines.map(|(index, what)| machine(index, what)).collect();
    let host = Host::new(config, machines).expect("a good host");
    (host, Symbols(image))
}

#[test]
fn every_virtual_processor_of_a_host_is_a_thread_with_its_own_memory() {
    let (mut host, symbols) = host();
    let mut shown = 0;
    let mut debugged = DebuggedHost::new(&mut host, Cycle::NEVER, |_| shown += 1);
    let finish = between(&mut debugged, |debugger| {
        assert_eq!(debugger.ask("qfThreadInfo"), "mp01.01,p01.02,p01.03");
        let main = symbols.address("main").expect("a symbol");
        let counter = symbols.address("counter").expect("a symbol");
        assert_eq!(debugger.ask(&format!("Z0,{main:x},0")), "OK");
        for thread in ["p01.01", "p01.02", "p01.03"] {
            let stop = debugger.ask("vCont;c");
            assert!(
                stop.contains("swbreak") && stop.contains(&format!("thread:{thread}")),
                "{stop}"
            );
            assert_eq!(debugger.place(), main);
        }
        assert_eq!(debugger.ask("Hgp1.1"), "OK");
        let first = debugger.place();
        assert!(debugger.ask("vCont;s:p1.3").contains("thread:p01.03"));
        assert_eq!(debugger.place(), main + 1, "a step is an instruction");
        assert_eq!(debugger.ask("Hgp1.1"), "OK");
        assert_eq!(debugger.place(), first, "the others were held");
        assert_eq!(debugger.ask(&format!("M{counter:x},8:efbe000000000000")), "OK");
        assert_eq!(debugger.word(counter), 0xbeef);
        assert_eq!(debugger.ask("Hgp1.2"), "OK");
        let before = debugger.word(counter);
        assert_ne!(before, 0xbeef, "another virtual machine's memory");
        assert_eq!(debugger.ask(&format!("Z2,{counter:x},8")), "OK");
        let stop = debugger.ask("vCont;c");
        assert!(stop.contains(&format!("watch:{counter:x}")), "{stop}");
        assert_eq!(debugger.word(counter), before + 1);
        debugger.kill();
    });
    assert_eq!(finish, Finish::Killed);
    drop(debugged);
    assert!(shown > 0);
}

#[test]
fn debugging_does_not_change_what_a_host_does() {
    let (mut undisturbed, _) = host();
    undisturbed.run(Cycle::NEVER).expect("services end");
    let (mut host, symbols) = host();
    let mut debugged = DebuggedHost::new(&mut host, Cycle::NEVER, |_| ());
    let finish = between(&mut debugged, |debugger| disturb(debugger, &symbols));
    assert_eq!(finish, Finish::Ended(End::Exit(0)));
    drop(debugged);
    assert_eq!(host.report(), undisturbed.report());
    assert_eq!(host.spans(), undisturbed.spans());
}
