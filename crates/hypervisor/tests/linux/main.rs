//! Unmodified Linux in virtual machines with an interface of a card each: it finds a virtio device, and its own tools
//! reach its neighbours by every way of delivery, with intercepts and with ring compression.
//!
//! Needs a Linux/ia64 kernel, see [`tests_need::kernel`].

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use sidestep_hypervisor::description::Description;
use sidestep_hypervisor::host::sidecores::locked;
use sidestep_hypervisor::host::{Host, HostEnd, Report};
use sidestep_hypervisor::nic::Delivery;
use sidestep_hypervisor::sidecall::request::Kind;
use sidestep_hypervisor::virtual_machine::ExitReason;
use sidestep_machine::compressed::expand;
use sidestep_machine::description::parse;

/// The kernel, expanded, and the initramfs; made once.
fn files() -> Option<&'static (PathBuf, PathBuf)> {
    static FILES: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    let kernel = tests_need::kernel()?;
    Some(FILES.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let bytes = fs::read(&kernel).expect("the kernel can be read");
        let expanded = folder.join("vmlinux");
        fs::write(&expanded, expand(&bytes, 1 << 30).expect("a kernel"))
            .expect("a folder for temporary files");
        let initramfs = folder.join("initramfs.cpio");
        let packed = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/linux/pack"))
            .arg("-o")
            .arg(&initramfs)
            .status()
            .expect("bash runs");
        assert!(packed.success());
        (expanded, initramfs)
    }))
}

/// A virtual machine that runs a line of the shell.
fn machine(line: &str, keys: &str) -> Option<String> {
    let (kernel, initramfs) = files()?;
    Some(format!(
        "[[vm]]\nkernel = '{}'\ninitrd = '{}'\nmemory = '256M'\n\
         append = '''console=ttyS0 panic=-1 quiet lpj=1320960 -- sh -c \"{line}\"'''\n{keys}\n",
        kernel.display(),
        initramfs.display()
    ))
}

/// Runs a host to the end of its virtual machines.
fn run(host: &str, machines: &[String]) -> (Host, Report) {
    let text = format!("{host}\n{}", machines.concat());
    let description: Description = parse("host.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    let (mut host, _) = description
        .build(Path::new("."), false, None)
        .unwrap_or_else(|error| panic!("{error}"));
    let until = host.time() + 20_000_000_000;
    let end = host.run(until).expect("services end");
    let report = host.report();
    let said: Vec<String> = (0..machines.len()).map(|index| console(&host, index)).collect();
    assert_eq!(end, HostEnd::Ended, "{}\n{report:#?}", said.join("\n----\n"));
    (host, report)
}

fn console(host: &Host, index: usize) -> String {
    String::from_utf8_lossy(locked(&host.machines()[index]).console()).into_owned()
}

/// A server and a client: echoes, and a connection that gives back what it is sent.
fn pair(keys: [&str; 2]) -> Option<[String; 2]> {
    let [server, client] = keys;
    let serves = "ifconfig eth0 10.1.0.1 255.255.255.0; listen 7 & sleep 2; poweroff";
    let asks = "ifconfig eth0 10.1.0.2 255.255.255.0; ping 10.1.0.1 3; ping 10.1.0.1 20; \
                sum /bin/sort; cat /bin/sort | connect 10.1.0.1 7 > /tmp/back; sum /tmp/back; \
                cat /proc/interrupts; poweroff";
    Some([machine(serves, server)?, machine(asks, client)?])
}

fn has_talked(host: &Host, report: &Report) {
    let said = console(host, 1);
    assert!(
        said.contains("ping: 10.1.0.1 answered 20 of 20"),
        "{said}\n{}\n{report:#?}",
        console(host, 0)
    );
    let sums: Vec<&str> = (said
        .lines()
        .filter(|line| line.contains("/sort") || line.contains("/back")))
    .filter_map(|line| line.split_whitespace().next())
    .collect();
    assert!(sums.len() == 2 && sums[0] == sums[1], "{sums:?} {said}");
    let nic = report.nic.as_ref().expect("the host has a card");
    for interface in &nic.interfaces {
        assert!(
            interface.counts.sent > 20 && interface.counts.received > 20,
            "{report:#?}"
        );
        assert_eq!(
            (interface.counts.dropped, interface.counts.refused),
            (0, 0),
            "{report:#?}"
        );
    }
}

/// A host with a card.
fn card(delivery: Delivery, threads: usize) -> String {
    format!(
        "[host]\ncores = 5\nsidecores = 1\nhost-threads = {threads}\n[nic]\ndelivery = '{}'",
        delivery.name()
    )
}

/// A server and a client on a host with a card, and what they said.
fn talk(delivery: Delivery, threads: usize, keys: [&str; 2]) -> Option<(Report, String)> {
    let machines = pair(keys)?;
    let (host, report) = run(&card(delivery, threads), &machines);
    has_talked(&host, &report);
    let said = console(&host, 1);
    Some((report, said))
}

/// A file as a disk that both write to, each for itself.
fn disk() -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("disk");
    fs::write(&path, "from the host...".repeat(64)).expect("a folder for temporary files");
    path
}

const COMPRESSION: &str = "virtualization = 'ring-compression'";

#[test]
fn linux_talks_to_linux_by_the_cards_interrupt_with_intercepts_and_ring_compression() {
    talk(Delivery::Master, 1, ["", COMPRESSION]);
}

#[test]
fn linux_of_two_processors_uses_two_pairs_of_queues_and_host_threads_change_no_byte() {
    let keys = ["", "processors = 2"];
    let Some((report, said)) = talk(Delivery::Sidecore, 1, keys) else {
        return;
    };
    for queue in ["input.0", "output.0", "input.1", "output.1"] {
        assert!(said.contains(queue), "{queue}: {said}");
    }
    let again = talk(Delivery::Sidecore, 2, keys).expect("a kernel is there");
    assert_eq!((report, said), again, "with two threads of this program");
}

#[test]
fn a_disk_is_written_to_by_each_for_itself_and_its_file_stays() {
    let disk = disk();
    let line = |word: &str| {
        format!(
            "echo {word} {} > /dev/vda; sync; cat /dev/vda; poweroff",
            "x".repeat(20)
        )
    };
    let keys = format!("disk = '{}'", disk.display());
    let Some(first) = machine(&line("first"), &keys) else {
        return;
    };
    let second = machine(&line("second"), &keys).expect("a kernel is there");
    let before = fs::read(&disk).expect("the disk");
    let (host, _) = run("[host]\ncores = 2", &[first, second]);
    for (index, word) in ["first", "second"].into_iter().enumerate() {
        let said = console(&host, index);
        assert!(
            said.contains(&format!("{word} xxx")) && said.contains("from the host"),
            "{said}"
        );
    }
    assert_eq!(fs::read(&disk).expect("the disk"), before);
}

#[test]
fn a_sidecore_looks_at_the_doorbell_of_a_disk_and_host_threads_change_no_byte() {
    let disk = Path::new(env!("CARGO_TARGET_TMPDIR")).join("doorbell-disk");
    fs::write(&disk, "from the host...".repeat(1 << 14)).expect("a folder for temporary files");
    let line = "sum /dev/vda; cp /bin/sort /dev/vda; sync; sum /dev/vda; poweroff";
    let Some(vm) = machine(line, &format!("disk = '{}'\ninput = '/dev/null'", disk.display())) else {
        return;
    };
    let outcome = |sidecores: usize, threads: usize| {
        let host = format!("[host]\ncores = 2\nsidecores = {sidecores}\nhost-threads = {threads}");
        let (host, report) = run(&host, std::slice::from_ref(&vm));
        let said = console(&host, 0);
        let sums: Vec<String> = (said.lines().filter(|line| line.contains("/dev/vda")))
            .map(str::to_owned)
            .collect();
        assert!(sums.len() == 2 && sums[0] != sums[1], "{said}");
        (sums, report)
    };
    let (sums, by_exit) = outcome(0, 1);
    let (same, by_sidecall) = outcome(1, 1);
    assert_eq!(same, sums);
    let device_exits = |report: &Report| {
        let exits = report.machines[0].exits.iter();
        exits
            .filter(|exit| exit.reason == ExitReason::Device)
            .map(|exit| exit.count)
            .sum::<u64>()
    };
    let made = by_sidecall.machines[0].requests.iter();
    let rung: u64 = (made.filter(|request| request.kind == Some(Kind::Doorbell)))
        .map(|request| request.count)
        .sum();
    assert!(rung > 0, "{by_sidecall:#?}");
    assert!(by_exit.machines[0].requests.is_empty(), "{by_exit:#?}");
    assert_eq!(device_exits(&by_exit), device_exits(&by_sidecall) + rung);
    assert_eq!(outcome(1, 2).1, by_sidecall, "with two threads of this program");
}

#[test]
fn linux_gets_answers_by_every_other_way_of_delivery() {
    let rest = Delivery::ALL.into_iter();
    for delivery in rest.filter(|delivery| !matches!(delivery, Delivery::Master | Delivery::Sidecore)) {
        let machines = [
            machine("ifconfig eth0 10.1.0.1 255.255.255.0; sleep 2; poweroff", ""),
            machine(
                "ifconfig eth0 10.1.0.2 255.255.255.0; ping 10.1.0.1 20; poweroff",
                "",
            ),
        ];
        let [Some(answers), Some(asks)] = machines else {
            return;
        };
        let (host, report) = run(&card(delivery, 1), &[answers, asks]);
        let said = console(&host, 1);
        assert!(
            said.contains("ping: 10.1.0.1 answered 20 of 20"),
            "{delivery:?}: {said}\n{report:#?}"
        );
    }
}
