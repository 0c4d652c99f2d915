//! Virtual machines under the monitor: the bare machine's guest runs in them unchanged.

use proptest::prelude::*;
use sidestep_hypervisor::Cycle;
use sidestep_hypervisor::costs::HostCosts;
use sidestep_hypervisor::sidecall::request::{Kind, Request};
use sidestep_hypervisor::virtual_machine::{
    ExitReason, Progress, PurgeMethod, Server, VirtualMachine, VirtualMachineConfig, Virtualization,
};
use sidestep_ia64::registers::system::control;
use sidestep_machine::End;
use sidestep_machine::machine::VirtualTime;

#[path = "../../machine/tests/guest/mod.rs"]
mod guest;

const IMAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guests/ia64/bin");

/// Runs the bare machine's guest in a virtual machine to its end.
fn run(
    processors: usize,
    parameters: &str,
    change: impl FnOnce(&mut VirtualMachineConfig),
) -> VirtualMachine {
    run_image("machine-smp", processors, parameters, change)
}

/// The same with another image for bare machines.
fn run_image(
    image: &str,
    processors: usize,
    parameters: &str,
    change: impl FnOnce(&mut VirtualMachineConfig),
) -> VirtualMachine {
    let image = std::fs::read(format!("{IMAGES}/{image}")).expect("the image is committed");
    let mut config = VirtualMachineConfig {
        processors,
        parameters: parameters.to_owned(),
        ..VirtualMachineConfig::new("guest")
    };
    change(&mut config);
    let mut machine = VirtualMachine::new(0, config, &image).expect("a good virtual machine");
    let costs = HostCosts::preset("itanium2-vti").expect("a preset");
    for until in (1..=2000).map(|round| Cycle(round * 1_000_000)) {
        machine.advance(&costs, until, until);
        if machine.exit_code().is_some() {
            break;
        }
    }
    let console = String::from_utf8_lossy(machine.console()).into_owned();
    assert_eq!(
        machine.exit_code(),
        Some(0),
        "{console} {:?} {:?}",
        machine.failure(),
        machine.exits()
    );
    machine
}

#[test]
fn a_guest_computes_translated_by_the_shadow() {
    let machine = run(1, "compute 10000", |_| ());
    let exits = machine.exits();
    assert!(exits.count(ExitReason::ShadowFill) > 0);
    assert!(exits.total() < 200, "{exits:?}");
    assert!(machine.instructions() > 50_000);
}

#[test]
fn locks_interrupts_and_purges_work_between_virtual_processors() {
    for processors in [2, 4] {
        run(processors, "lock 200", |_| ());
        run(processors, "interrupt 50", |_| ());
        for purge in [PurgeMethod::Broadcast, PurgeMethod::Interrupt] {
            let machine = run(processors, "purge 50", |config| config.purge = purge);
            assert!(machine.remote_purges() >= 50);
            let interrupted = machine.exits().count(ExitReason::HostInterrupt) > 0;
            assert_eq!(interrupted, purge == PurgeMethod::Interrupt);
        }
    }
}

#[test]
fn guests_run_by_ring_compression_as_well() {
    let machine = run(2, "interrupt 20", |config| {
        config.virtualization = Virtualization::RingCompression
    });
    assert_eq!(machine.exits().accelerated, 0);
}

#[test]
fn what_tells_of_the_processors_state_tells_of_the_guests() {
    let guest::Guest {
        mut machine, printed, ..
    } = guest::Guest::of("machine-state", 1, "");
    let outcome = VirtualTime::default().run(&mut machine);
    assert_eq!(outcome.end, End::Exit(0), "{}", printed.text());
    for virtualization in [Virtualization::Hardware, Virtualization::RingCompression] {
        let machine = run_image("machine-state", 1, "", |config| {
            config.virtualization = virtualization;
        });
        let said = String::from_utf8_lossy(machine.console()).into_owned();
        assert_eq!(said, printed.text(), "{virtualization:?}");
        assert!(
            machine.exits().count(ExitReason::Interpreted) > 0,
            "split translation"
        );
    }
}

/// An argument of a request: small, any, or an address of region 1.
fn argument() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..64,
        any::<u64>(),
        1u64 << 61..1 << 61 | 1 << 26,
        0u64..32 << 20
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_request_is_answered(
        requests in proptest::collection::vec((0u64..17, [argument(), argument(), argument()], any::<bool>()), 1..20)
    ) {
        const TABLE: u64 = 12 << 20 | 20 << 2 | 1 << 8 | 1;
        let costs = HostCosts::preset("itanium2-vti").expect("a preset");
        let config = VirtualMachineConfig {
            processors: 2,
            disk: vec![0; 4096],
            ..VirtualMachineConfig::new("guest")
        };
        let mut machine = VirtualMachine::empty(3, config).expect("a good virtual machine");
        let processor = machine.processor_mut(0).processor_mut();
        processor.system.control[usize::from(control::PTA)] = TABLE;
        processor.system.region[1] = 2 << 8 | 14 << 2 | 1;
        let mut time = Cycle::START;
        for (kind, arguments, by_exit) in requests {
            // A range of a gigabyte is cleared entry by entry: right, and slow.
            let arguments = if kind == 3 { [arguments[0], arguments[1].min(24), 0] } else { arguments };
            let request = Request::read(kind, arguments);
            let server = if by_exit { Server::OwnCore } else { Server::Sidecore };
            let served = machine.serve(&costs, 0, request, server, time);
            prop_assert_eq!(request.kind().is_some(), kind < Kind::ALL.len() as u64);
            if let Progress::Submitted(submitted) = served.progress {
                prop_assert_eq!(request, Request::Device(submitted));
                let _ = machine.transfer(&costs, &submitted, time);
            }
            time += served.cycles;
        }
    }
}
