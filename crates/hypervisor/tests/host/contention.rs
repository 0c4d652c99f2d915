//! Virtual processors that share caches, memory and cores are slower beside each other, by the same on every run.

use sidestep_guests::ia64;
use sidestep_hypervisor::Cycle;
use sidestep_hypervisor::contention::{Contention, ContentionCounts, Hierarchy, Shared};
use sidestep_hypervisor::host::{Host, HostEnd, Report};
use sidestep_hypervisor::virtual_machine::{VirtualMachine, VirtualMachineConfig};

use crate::fixture::{Setup, console};

fn hierarchy(name: &str) -> Contention {
    Contention {
        hierarchy: Hierarchy::preset(name).expect("a preset"),
        cache_divisor: 64,
    }
}

/// A host of eight cores whose virtual machines do these works on two processors each.
fn run(contention: Option<&Contention>, works: &[&str], host_threads: usize) -> (Host, Report) {
    let machines = works.iter().enumerate().map(|(index, work)| {
        let config = VirtualMachineConfig {
            processors: 2,
            parameters: (*work).to_owned(),
            ..VirtualMachineConfig::new(&format!("vm {index}"))
        };
        VirtualMachine::new(index, config, ia64::BENCHMARKS).expect("a good virtual machine")
    });
    let setup = Setup {
        cores: 8,
        host_threads,
        ..Setup::default()
    };
    let (mut host, _) = setup.host_of(machines.collect());
    if let Some(contention) = contention {
        host.contend(contention).expect("a hierarchy of eight threads");
    }
    let end = host.run(Cycle(1 << 32)).expect("services end");
    let report = host.report();
    assert_eq!(end, HostEnd::Ended, "{}", console(&host, 0));
    for machine in &report.machines {
        assert_eq!(machine.exit_code, Some(0), "{machine:#?}");
    }
    (host, report)
}

fn sum(report: &Report, of: impl Fn(&ContentionCounts) -> u64) -> u64 {
    let contention = report.contention.as_ref().expect("contention is modelled");
    contention.cores.iter().map(of).sum()
}

#[test]
fn many_that_stream_lose_to_each_other_and_one_alone_does_not() {
    const STREAM: &str = "is S --threads 2 --steps 1";
    let mut narrow = hierarchy("gainestown");
    let hierarchy = narrow.hierarchy.with(Shared::SocketMbPerS, 1000);
    narrow.hierarchy = hierarchy.expect("a bandwidth in range");
    let (_, plain) = run(None, &[STREAM], 1);
    let (_, alone) = run(Some(&narrow), &[STREAM], 1);
    let (_, three) = run(Some(&narrow), &[STREAM; 3], 1);
    assert!(plain.contention.is_none());
    assert!(plain.time < alone.time, "memory takes time");
    assert!(alone.time < three.time, "and more for three");
    let waited = |report: &Report| sum(report, |counts| counts.bandwidth_cycles);
    assert!(
        waited(&three) > 3 * waited(&alone),
        "{} {}",
        waited(&three),
        waited(&alone)
    );
    assert_eq!(
        sum(&three, |counts| counts.sibling_cycles),
        0,
        "there is no second thread on a core"
    );
}

#[test]
fn siblings_slow_each_other_down_and_cores_are_shared_last() {
    const COMPUTE: &str = "ep S --threads 2 --steps 2";
    let lynnfield = hierarchy("lynnfield");
    let (_, two) = run(Some(&lynnfield), &[COMPUTE; 2], 1);
    let (_, four) = run(Some(&lynnfield), &[COMPUTE; 4], 1);
    assert_eq!(
        sum(&two, |counts| counts.sibling_cycles),
        0,
        "four threads have a core each"
    );
    // Siblings have 650 thousandths of the speed alone, so they lose 538 for a thousand.
    let executed =
        |report: &Report| -> u64 { report.machines.iter().map(|machine| machine.instructions).sum() };
    let lost = sum(&four, |counts| counts.sibling_cycles);
    assert!(
        (450..=538).contains(&(lost * 1000 / executed(&four))),
        "{lost} of {}",
        executed(&four)
    );
    assert!(four.time > two.time);
}

#[test]
fn it_does_not_matter_on_how_many_threads_virtual_machines_advance() {
    let works = [
        "is S --threads 2 --steps 2",
        "is S --threads 2 --steps 1",
        "ep S --threads 2 --steps 1",
    ];
    let reports = [1, 2].map(|host_threads| {
        let (host, report) = run(Some(&hierarchy("lynnfield")), &works, host_threads);
        let consoles: Vec<String> = (0..works.len()).map(|index| console(&host, index)).collect();
        (format!("{report:?}"), consoles)
    });
    assert_eq!(reports[0], reports[1]);
}

#[test]
fn what_cannot_be_is_named() {
    let (mut host, _) = Setup::default().build(vec![crate::fixture::guest("guest", "")]);
    let error =
        |host: &mut Host, contention| host.contend(&contention).expect_err("it cannot be").to_string();
    assert_eq!(
        error(&mut host, hierarchy("lynnfield")),
        "the host has 2 cores, and `Core i7 860, SMT` 8 hardware threads: as many are expected"
    );
    let setup = Setup {
        cores: 8,
        ..Setup::default()
    };
    let (mut host, _) = setup.build(vec![crate::fixture::guest("guest", "")]);
    let divided = Contention {
        cache_divisor: 3,
        ..hierarchy("gainestown")
    };
    assert_eq!(
        error(&mut host, divided),
        "the caches' divisor is 3: a power of two from 1 to 512 is possible"
    );
}
