//! Linux in virtual machines on one host: the same console as on a machine, with intercepts and with ring compression,
//! on two processors, beside others, and the same bytes each time.

use std::fs;
use std::io::Write;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use sidestep_gang_linux::recording::Recording;

use crate::linux::{boot, files, successful, text, typing};

/// A virtual machine with the kernel that tests have, and these further keys.
fn virtual_machine(line: &str, keys: &str) -> Option<String> {
    let (kernel, initramfs) = files()?;
    Some(format!(
        "[[vm]]\nkernel = '{}'\ninitrd = '{}'\nappend = '''console=ttyS0 panic=-1 quiet -- sh -c \"{line}\"'''\n{keys}\n",
        kernel.display(),
        initramfs.display()
    ))
}

/// Runs a host with these virtual machines.
fn run(folder: &Path, host: &str, machines: &[String], arguments: &[&str]) -> Output {
    let description = format!("[host]\n{host}\n{}", machines.concat());
    fs::write(folder.join("host.toml"), description).expect("the folder is writable");
    Command::new(env!("CARGO_BIN_EXE_sidestep"))
        .args(["run", "host.toml"])
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("sidestep starts")
}

#[test]
fn the_console_is_that_of_a_machine() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let line = "uname; ls /bin; /bin/sieve; /bin/contend-mutex; sum /bin/sort; cat /proc/mounts; echo done; poweroff";
    let Some(mut machine) = boot(folder.path(), &["--memory", "256M"], line) else {
        return;
    };
    let machine = successful(&machine.output().expect("sidestep starts"));
    assert!(
        machine.contains("\ndone\r\n") || machine.contains("\ndone\n"),
        "{machine}"
    );
    let without_times = |printed: &str| -> Vec<String> {
        (printed.lines())
            .filter(|line| !line.starts_with("init: up after"))
            .map(str::to_owned)
            .collect()
    };
    for keys in ["", "virtualization = 'ring-compression'"] {
        let machines: Vec<_> = virtual_machine(line, keys).into_iter().collect();
        let printed = successful(&run(folder.path(), "", &machines, &[]));
        assert_eq!(without_times(&printed), without_times(&machine), "{keys}");
    }
}

#[test]
fn several_kernels_share_a_host_and_repeat_byte_for_byte() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let line = "cat /proc/cpuinfo; poweroff";
    let disk = folder.path().join("disk");
    fs::write(&disk, "from the host\n".repeat(512)).expect("the folder is writable");
    let Some(pair) = virtual_machine(line, "name = 'pair'\nprocessors = 2") else {
        return;
    };
    let reads = virtual_machine("cat /dev/vda; poweroff", "name = 'reads'\ndisk = 'disk'");
    let machines = [pair, reads.expect("a kernel is there")];
    let all = |threads: &str| {
        let host = format!("cores = 2\nhost-threads = {threads}");
        let output = run(folder.path(), &host, &machines, &["--format", "json"]);
        let printed = successful(&output);
        for expected in ["pair: processor  : 1", "reads: from the host"] {
            assert!(printed.contains(expected), "`{expected}` in {printed}");
        }
        printed
    };
    assert_eq!(all("1"), all("2"));
}

#[test]
fn threads_of_linux_that_share_memory_are_found_with_intercepts_and_with_ring_compression() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let line = "/bin/contend-pairs 700; poweroff";
    let Some(intercepts) = virtual_machine(line, "name = 'intercepts'\nprocessors = 4") else {
        return;
    };
    let keys = "name = 'compression'\nprocessors = 4\nvirtualization = 'ring-compression'";
    let machines = [
        intercepts,
        virtual_machine(line, keys).expect("a kernel is there"),
    ];
    // By then Linux has started. The paper's factor sees the pairs above what all processors share in the kernel.
    let host = "cores = 8\nhost-threads = 2\npolicy = 'partial'\n[detection]\nperiod-us = 200\nstart-up-ms = 200\n\
                evaluation-ms = 15\nwindow-ms = 20\nbudget-permille = 100\nfactor = 1.5\n";
    let printed = successful(&run(folder.path(), host, &machines, &["--matrix", "matrix.json"]));
    for name in ["intercepts", "compression"] {
        let expected = format!("{name}: contend-pairs: 700 steps by 4 threads, 4 of them bound");
        assert!(printed.contains(&expected), "`{expected}` in {printed}");
    }
    let found = Recording::read(&folder.path().join("matrix.json")).expect("a recording");
    assert_eq!(
        found.sets.to_string(),
        "{0 2} {1 3} {4 6} {5 7}",
        "{}",
        found.matrix
    );
}

#[test]
fn what_is_typed_is_run_and_a_file_types_the_same_each_time() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some((kernel, initramfs)) = files() else {
        return;
    };
    let machine = |key: &str| {
        format!(
            "[[vm]]\nkernel = '{}'\ninitrd = '{}'\nappend = 'console=ttyS0 quiet'\n{key}\n",
            kernel.display(),
            initramfs.display()
        )
    };
    let keys = b"uname\npoweroff\n";
    fs::write(folder.path().join("keys"), keys).expect("the folder is writable");
    let by_file = || run(folder.path(), "", &[machine("input = 'keys'")], &[]);
    let output = by_file();
    assert!(
        successful(&output).contains("# Linux (none)"),
        "{}",
        text(&output.stdout)
    );
    assert_eq!(output, by_file());

    fs::write(
        folder.path().join("typed.toml"),
        format!("[host]\n{}", machine("")),
    )
    .expect("writable");
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidestep"));
    command.args(["run", "typed.toml"]).current_dir(folder.path());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let (child, mut input) = typing(&mut command);
    input.write_all(keys).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(
        successful(&output).contains("# Linux (none)"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn a_panic_and_a_reset_end_a_virtual_machine_and_say_so() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (line, expected) in [
        ("sh -c reboot", "its kernel has reset the machine"),
        ("cat /nothing", "its kernel panicked: Attempted to kill init!"),
    ] {
        let Some(machine) = virtual_machine("LINE", "name = 'a'") else {
            return;
        };
        let machine = machine.replace("sh -c \"LINE\"", line);
        let output = run(folder.path(), "", &[machine], &[]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(255), "{said}");
        assert!(
            said.contains(&format!("virtual machine `a`: {expected}")),
            "{said}"
        );
    }
}

/// Addresses of IPv4.
const OUTSIDE: [u8; 4] = [10, 1, 0, 9];
const INSIDE: [u8; 4] = [10, 1, 0, 1];
/// Addresses of Ethernet: ours, and that of interface 0 of host 0.
const OUR_HARDWARE: [u8; 6] = [2, 0, 0, 0, 0, 9];
const GUEST_HARDWARE: [u8; 6] = [2, b'S', 0, 0, 0, 0];

/// The checksum of the Internet's protocols (RFC 1071).
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let sum: u32 = words.sum();
    (!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes()
}

/// A request for an echo, as `ping` sends it.
fn echo_request() -> Vec<u8> {
    let mut echo = vec![8, 0, 0, 0, 0x12, 0x34, 0, 1];
    echo.extend(b"from outside");
    let sum = checksum(&echo);
    echo[2..4].copy_from_slice(&sum);
    let mut header = vec![0x45, 0, 0, 20 + echo.len() as u8, 0, 1, 0, 0, 64, 1, 0, 0];
    header.extend(OUTSIDE.iter().chain(&INSIDE));
    let sum = checksum(&header);
    header[10..12].copy_from_slice(&sum);
    [&GUEST_HARDWARE[..], &OUR_HARDWARE, &[8, 0], &header, &echo].concat()
}

#[test]
fn a_guest_answers_ping_from_outside() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let line = "ifconfig eth0 10.1.0.1 255.255.255.0; echo up; sleep 1000";
    let Some(machine) = virtual_machine(line, "") else {
        return;
    };
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket
        .set_read_timeout(Some(Duration::from_millis(300)))
        .expect("a time");
    let peer = socket.local_addr().expect("an address");
    // A port that was free a moment ago.
    let listen = UdpSocket::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let listen = listen.expect("an address");
    let description = format!(
        "[host]\n[nic]\ndelivery = 'vector'\n[uplink]\nkind = 'udp'\nlisten = '{listen}'\npeer = '{peer}'\n{machine}"
    );
    fs::write(folder.path().join("host.toml"), description).expect("the folder is writable");
    let mut host = Command::new(env!("CARGO_BIN_EXE_sidestep"));
    host.args(["run", "host.toml"]).current_dir(folder.path());
    let mut host = host
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("sidestep starts");
    let mut frame = [0; 1514];
    let mut answered = false;
    while !answered && host.try_wait().expect("a state").is_none() {
        // The guest may not be up yet: another one goes out whenever nothing comes for a while.
        let Ok((size, _)) = socket.recv_from(&mut frame) else {
            socket.send_to(&echo_request(), listen).expect("room");
            continue;
        };
        if size < 42 {
            continue;
        }
        match frame[12..14] {
            // It asks who has our address (RFC 826).
            [8, 6] if frame[38..42] == OUTSIDE => {
                let mut reply = frame[..size].to_vec();
                reply[..6].copy_from_slice(&GUEST_HARDWARE);
                reply[6..12].copy_from_slice(&OUR_HARDWARE);
                reply[20..22].copy_from_slice(&[0, 2]);
                reply.copy_within(22..32, 32);
                reply[22..28].copy_from_slice(&OUR_HARDWARE);
                reply[28..32].copy_from_slice(&OUTSIDE);
                socket.send_to(&reply, listen).expect("room");
            }
            [8, 0] => {
                let is_reply = frame[23] == 1 && frame[34] == 0;
                answered = is_reply && frame[42..54] == *b"from outside";
            }
            _ => {}
        }
    }
    host.kill().expect("it can be ended");
    host.wait().expect("it ends");
    assert!(answered, "the host ended before");
}
