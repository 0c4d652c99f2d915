//! Devices of a whole machine under Linux: disks, networks, consoles, the prompt.
//!
//! They need a kernel, see [`linux`], and some of them what makes a file system.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::linux::*;

/// A folder with an empty file system in `disk.img`; `None` where the host has no tools for it.
fn file_system() -> Option<TempDir> {
    let mke2fs = tests_need::MKE2FS.find()?;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let made = Command::new(mke2fs)
        .args(["-q", "-t", "ext4", "disk.img", "16M"])
        .current_dir(&folder)
        .output()
        .expect("mke2fs starts");
    assert!(made.status.success(), "{}", text(&made.stderr));
    Some(folder)
}

/// Runs a tool of the file system; answers its exit code and what it printed.
fn tool(folder: &TempDir, words: &[&str]) -> (i32, String) {
    let output = Command::new(words[0])
        .args(&words[1..])
        .current_dir(folder)
        .output();
    let output = output.expect("it is installed beside mke2fs");
    let code = output.status.code().unwrap_or(-1);
    (code, text(&output.stdout) + &text(&output.stderr))
}

/// Takes a file out of the file system and compares it with a guest program.
fn holds_program(folder: &TempDir, name: &str, program: &str) {
    tool(
        folder,
        &["debugfs", "-R", &format!("dump /{name} {name}"), "disk.img"],
    );
    let program = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../guests/ia64/bin")
        .join(program);
    let (kept, written) = (fs::read(folder.path().join(name)), fs::read(program));
    assert!(
        kept.expect("it was written") == written.expect("a guest program"),
        "{name} differs"
    );
}

#[test]
fn a_file_system_on_a_disk_keeps_what_a_guest_writes() {
    let Some(folder) = file_system() else { return };
    let line = "mount -t ext4 /dev/vda /tmp && cp /bin/tour /tmp/tour && cp /bin/hash /tmp/hash && sync && umount /tmp";
    let Some(_) = succeed(folder.path(), &["--disk", "disk.img"], line) else {
        return;
    };
    let (code, checked) = tool(&folder, &["e2fsck", "-fn", "disk.img"]);
    assert_eq!(code, 0, "{checked}");
    holds_program(&folder, "tour", "tour");
    holds_program(&folder, "hash", "hash");
    // What was written is read by the next machine, and a disk that may only be read stays as it is.
    let before = fs::read(folder.path().join("disk.img")).expect("the disk");
    let line = "mount -t ext4 -o ro,noload /dev/vda /tmp && sum /tmp/tour /bin/tour; cp /bin/hash /dev/vda || echo refused";
    let printed = succeed(folder.path(), &["--disk", "disk.img,readonly"], line).expect("as before");
    let sums: Vec<&str> = printed
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(_, rest)| rest.ends_with("/tour"))
        .map(|(sum, _)| sum)
        .collect();
    assert!(sums.len() == 2 && sums[0] == sums[1], "{printed}");
    assert!(printed.contains("refused"), "{printed}");
    assert!(before == fs::read(folder.path().join("disk.img")).expect("the disk"));
}

#[test]
fn the_userland_starts_from_a_disk_and_leaves_it_clean() {
    let Some((kernel, _)) = files() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path().join("root");
    fs::create_dir(&root).expect("the folder is writable");
    let userland = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/linux/bin/userland");
    fs::copy(userland, root.join("init")).expect("the userland");
    let Some(mke2fs) = tests_need::MKE2FS.find() else {
        return;
    };
    let made = Command::new(mke2fs)
        .args(["-q", "-t", "ext4", "-d", "root", "disk.img", "16M"])
        .current_dir(&folder)
        .output()
        .expect("mke2fs starts");
    assert!(made.status.success(), "{}", text(&made.stderr));
    let start = |mode: &str, line: &str| {
        let append =
            format!("root=/dev/vda {mode} init=/init console=ttyS0 panic=-1 quiet -- sh -c \"{line}\"");
        let output = Command::new(env!("CARGO_BIN_EXE_sidestep"))
            .current_dir(&folder)
            .args(["run", "--disk", "disk.img", "--append", &append, "--kernel"])
            .arg(kernel)
            .stdin(Stdio::null())
            .output();
        successful(&output.expect("sidestep starts"))
    };
    start("rw", "echo remembered > /kept");
    let (code, checked) = tool(&folder, &["e2fsck", "-fn", "disk.img"]);
    assert_eq!(code, 0, "{checked}");
    let printed = start("ro", "cat /kept");
    assert!(printed.contains("remembered"), "{printed}");
}

#[test]
fn devices_are_found_on_pci_and_beside_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("disk.img"), pattern(1 << 16)).expect("a file");
    let line = "ls /sys/bus/pci/devices; sum /dev/vda; cat /proc/interrupts";
    let printed = |transport: &str| {
        let options = [
            "--disk",
            "disk.img,readonly",
            "--net",
            "user",
            "--virtio",
            transport,
        ];
        succeed(folder.path(), &options, line)
    };
    let Some(on_pci) = printed("pci") else { return };
    for expected in ["0000:00:00.0", "0000:00:01.0", "0000:00:02.0", "virtio0-req.0"] {
        assert!(on_pci.contains(expected), "{expected}: {on_pci}");
    }
    let beside = printed("mmio").expect("as before");
    assert!(
        beside.contains("0000:00:00.0") && !beside.contains("0000:00:01.0"),
        "{beside}"
    );
    let sum = |text: &str| {
        let mut lines = text.lines();
        let line = lines.find(|line| line.ends_with("/dev/vda"));
        line.map(str::to_owned).expect("the sum")
    };
    assert_eq!(sum(&on_pci), sum(&beside));
}

#[test]
fn a_driver_of_before_version_1_writes_to_a_disk() {
    let Some(folder) = file_system() else { return };
    let options = ["--disk", "disk.img", "--virtio", "transitional"];
    let append = "quiet virtio_pci.force_legacy=1";
    let line = "cat /sys/bus/virtio/devices/virtio0/features; \
                mount -t ext4 /dev/vda /tmp && cp /bin/tour /tmp/tour && umount /tmp";
    let Some(mut command) = boot_with(folder.path(), &options, append, line) else {
        return;
    };
    let printed = successful(&command.output().expect("sidestep starts"));
    let mut lines = printed.lines();
    let features = lines.find(|line| line.len() == 64 && line.bytes().all(|bit| b"01".contains(&bit)));
    let features = features.expect("64 bits").as_bytes();
    assert_eq!(features[9], b'1', "it flushes");
    assert_eq!(features[32], b'0', "not by version 1");
    let (code, checked) = tool(&folder, &["e2fsck", "-fn", "disk.img"]);
    assert_eq!(code, 0, "{checked}");
    holds_program(&folder, "tour", "tour");
}

#[test]
fn what_was_flushed_outlives_the_host_program() {
    let Some(folder) = file_system() else { return };
    let line = "mount -t ext4 /dev/vda /tmp; cp /bin/tour /tmp/kept; sync; echo flushed; \
                load 100 /tmp";
    let Some(mut command) = boot(folder.path(), &["--disk", "disk.img"], line) else {
        return;
    };
    let mut child = command.spawn().expect("sidestep starts");
    let printed = wait_for(&mut child, "flushed");
    wait_for_writes(&mut child, &folder.path().join("disk.img"));
    child.kill().expect("it runs");
    child.wait().expect("killed");
    assert!(printed.contains("flushed"));
    // As after a power cut: the journal is replayed, then there is nothing wrong.
    let (code, checked) = tool(&folder, &["e2fsck", "-fy", "disk.img"]);
    assert!(code <= 1, "{checked}");
    let (code, checked) = tool(&folder, &["e2fsck", "-fn", "disk.img"]);
    assert_eq!(code, 0, "{checked}");
    holds_program(&folder, "kept", "tour");
}

/// Waits until what runs has written to a file a few times more: it is in the middle of it then.
fn wait_for_writes(child: &mut Child, file: &Path) {
    let written = || {
        fs::metadata(file)
            .and_then(|file| file.modified())
            .expect("the file")
    };
    let mut last = written();
    for _ in 0..10 {
        while written() == last {
            assert!(child.try_wait().expect("a child").is_none(), "it has ended");
            thread::sleep(Duration::from_millis(1));
        }
        last = written();
    }
}

const UP: &str = "ifconfig eth0 10.0.2.15 255.255.255.0 10.0.2.2";

fn pattern(size: u32) -> Vec<u8> {
    (0..size).map(|index| (index * 31 + index / 251) as u8).collect()
}

#[test]
fn a_guest_fetches_a_file_from_the_host_and_sends_it_back() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = pattern(500_000);
    let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let (source, sink) = (listen(), listen());
    let port = |listener: &TcpListener| listener.local_addr().expect("bound").port();
    let line = format!(
        "{UP} && echo get | connect 10.0.2.2 {} > /tmp/file && connect 10.0.2.2 {} < /tmp/file",
        port(&source),
        port(&sink)
    );
    let Some(mut command) = boot(folder.path(), &["--net", "user"], &line) else {
        return;
    };
    let sent = data.clone();
    let server = thread::spawn(move || {
        let (mut stream, _) = source.accept().expect("the guest connects");
        let mut request = String::new();
        stream.read_to_string(&mut request).expect("a request");
        stream.write_all(&sent).expect("the guest reads");
        drop(stream);
        let (mut stream, _) = sink.accept().expect("the guest connects again");
        let mut back = Vec::new();
        stream.read_to_end(&mut back).expect("all of it");
        (request, back)
    });
    successful(&command.output().expect("sidestep starts"));
    let (request, back) = server.join().expect("no panic");
    assert_eq!(request, "get\n");
    assert!(back == data, "{} bytes came back", back.len());
}

#[test]
fn a_forwarded_port_leads_to_a_server_in_the_guest() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_kept, address) = kept_port();
    let network = format!("user,hostfwd=tcp:127.0.0.1:{}-:7", address.port());
    let line = format!("{UP}; echo serving; listen 7");
    let Some(mut command) = boot(folder.path(), &["--net", &network], &line) else {
        return;
    };
    let mut child = command.spawn().expect("sidestep starts");
    wait_for(&mut child, "serving");
    let data = pattern(200_000);
    // The server may not listen yet: then the connection is closed without an answer.
    let answer = (0..50).find_map(|_| {
        let answer = exchange(address, &data).unwrap_or_default();
        (!answer.is_empty()).then_some(answer).or_else(|| {
            thread::sleep(Duration::from_millis(100));
            None
        })
    });
    assert!(answer.expect("an answer") == data);
    child.kill().expect("it runs");
    child.wait().expect("killed");
}

/// A port that nobody else gets while the descriptor is open. Whoever names it can listen on it: a socket that does not
/// listen is in the way only of who takes any port.
fn kept_port() -> (OwnedFd, SocketAddr) {
    use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket, sockopt};
    let kept = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    sockopt::set_socket_reuseaddr(&kept, true).expect("an option of every socket");
    bind(&kept, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a free port");
    let address = getsockname(&kept)
        .expect("bound")
        .try_into()
        .expect("an IPv4 address");
    (kept, address)
}

/// Sends everything, and answers what comes back.
fn exchange(address: SocketAddr, data: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address)?;
    let mut sender = stream.try_clone()?;
    let sent = data.to_vec();
    let writer = thread::spawn(move || {
        sender.write_all(&sent)?;
        sender.shutdown(std::net::Shutdown::Write)
    });
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    writer.join().expect("no panic")?;
    Ok(answer)
}

#[test]
fn the_prompt_tells_how_the_machine_is_and_quits() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(mut command) = boot(folder.path(), &[], "echo ready; sleep 100000000") else {
        return;
    };
    let (mut child, mut input) = typing(&mut command);
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    read_to(&mut output, "ready");
    input
        .write_all(
            b"\x01cinfo cpus\ninfo registers\ninfo tlb\ninfo devices\ninfo mem\nstop\ninfo cpu\ncont\nquit\n",
        )
        .expect("it reads");
    let mut said = String::new();
    output.read_to_string(&mut said).expect("text");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(0), "{said}");
    for expected in [
        "instructions",
        "cr.iva",
        "data translations",
        "entropy",
        "1G  RAM",
        "did you mean `cpus`?",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn the_prompt_resets_the_machine_even_one_that_stands_still() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(mut command) = boot(folder.path(), &[], "echo ready; sleep 100000000") else {
        return;
    };
    let (mut child, mut input) = typing(&mut command);
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    for keys in [&b"\x01cstop\nreset\n\x01c"[..], b"\x01cquit\n"] {
        read_to(&mut output, "ready");
        input.write_all(keys).expect("it reads");
    }
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn a_signal_ends_a_machine_that_stands_still() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(mut command) = boot(folder.path(), &[], "echo ready; sleep 100000000") else {
        return;
    };
    let (mut child, mut input) = typing(&mut command);
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    read_to(&mut output, "ready");
    // The answer to what follows it says that the machine has stopped.
    input.write_all(b"\x01cstop\ninfo mem\n").expect("it reads");
    read_to(&mut output, "1G  RAM");
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::TERM).expect("it is alive");
    assert_eq!(child.wait().expect("it ends").code(), Some(128 + 15));
}

/// What stands behind the last command: the prompt, and the line that leaves it.
const LEFT: &str = "(sidestep) \r\n";

#[test]
fn a_restored_machine_goes_on_as_the_one_that_was_saved() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("disk.img"), pattern(1 << 20)).expect("a file");
    let line =
        "echo ready; tour > /dev/null; sieve; sort; sum /dev/vda; time sleep 3; hash; cat /proc/interrupts";
    let Some(mut command) = boot(folder.path(), &["--disk", "disk.img"], line) else {
        return;
    };
    let (mut child, mut input) = typing(&mut command);
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut printed = Vec::new();
    while !text(&printed).contains("ready") {
        let size = output.read_until(b'\n', &mut printed).expect("output");
        assert!(size > 0, "{}", text(&printed));
    }
    input
        .write_all(b"\x01cstop\nsave machine\nsave /none/machine\ncont\n\x01c")
        .expect("it reads");
    let mut rest = Vec::new();
    output.read_to_end(&mut rest).expect("output");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{}", text(&rest));
    let rest = text(&rest);
    assert!(
        rest.contains("saved to machine") && rest.contains("/none/machine: No such file"),
        "{rest}"
    );
    let after = rest.rsplit_once(LEFT).expect("it left the prompt").1;

    let restore = |file: &str| {
        Command::new(env!("CARGO_BIN_EXE_sidestep"))
            .args(["run", "--restore", file])
            .current_dir(&folder)
            .stdin(Stdio::null())
            .output()
            .expect("sidestep starts")
    };
    let again = successful(&restore("machine"));
    assert_eq!(again, after, "every byte, with the times that the guest measured");
    assert!(again.contains("virtio0"), "{again}");

    // Damage is found before anything runs.
    let file = folder.path().join("machine");
    let mut bytes = fs::read(&file).expect("it was saved");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(folder.path().join("flipped"), &bytes).expect("a file");
    bytes.truncate(middle);
    fs::write(folder.path().join("cut"), &bytes).expect("a file");
    for file in ["flipped", "cut"] {
        let output = restore(file);
        let said = text(&output.stderr);
        assert!(
            !output.status.success() && said.contains("checksum is wrong"),
            "{file}: {said}"
        );
    }

    // A disk that is no longer what the guest remembers of it.
    let mut disk = pattern(1 << 20);
    fs::write(folder.path().join("disk.img"), &disk).expect("a file");
    let said = text(&restore("machine").stderr);
    assert!(said.contains("disk.img` was changed after"), "{said}");
    disk.truncate(1 << 19);
    fs::write(folder.path().join("disk.img"), &disk).expect("a file");
    let said = text(&restore("machine").stderr);
    assert!(said.contains("had 1048576 bytes"), "{said}");
}

#[test]
fn ctrl_a_x_quits() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(mut command) = boot(folder.path(), &[], "sleep 100000000") else {
        return;
    };
    let (child, mut input) = typing(&mut command);
    input.write_all(b"\x01x").expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// What stands behind `mark` on the standard error.
fn said_place(child: &mut Child, mark: &str) -> String {
    let mut errors = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    errors.read_line(&mut line).expect("text");
    let place = line.trim().split_once(mark);
    place.unwrap_or_else(|| panic!("`{mark}` in {line}")).1.to_owned()
}

#[test]
fn consoles_may_be_elsewhere() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let options = ["--virtio-console", "tcp:0"];
    let line = "echo over virtio > /dev/hvc0; sleep 1";
    let Some(mut command) = boot(folder.path(), &options, line) else {
        return;
    };
    let mut child = command.spawn().expect("sidestep starts");
    let address = said_place(&mut child, "virtio console at ");
    let mut stream = TcpStream::connect(&address).expect("it waits there");
    let mut received = String::new();
    stream.read_to_string(&mut received).expect("text");
    assert!(received.contains("over virtio"), "{received}");
    child.wait().expect("it ends");

    let mut command =
        boot(folder.path(), &["--console", "pty"], "echo over a pty; sleep 1").expect("as before");
    let mut child = command.spawn().expect("sidestep starts");
    let path = said_place(&mut child, "serial console is at ");
    let mut terminal = fs::File::open(path).expect("a terminal");
    let mut received = Vec::new();
    let mut bytes = [0; 256];
    while let Ok(size) = terminal.read(&mut bytes) {
        if size == 0 {
            break;
        }
        received.extend_from_slice(&bytes[..size]);
    }
    assert!(text(&received).contains("over a pty"), "{}", text(&received));
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn options_that_say_nothing_of_a_machine_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let bare = "image.file = 'x'\nmemory = [{ start = 0x100000, size = '1M' }]\n";
    fs::write(folder.path().join("bare.toml"), bare).expect("a file");
    for (options, expected) in [
        (
            &["bare.toml", "--console", "pty"][..],
            "--console is not for machines that start no kernel",
        ),
        (&["bare.toml", "--disk", "x"], "--disk is not for descriptions"),
        (
            &["--restore", "bare.toml", "--smp", "2"],
            "--smp is not for saved machines",
        ),
        (&["--restore", "bare.toml"], "bare.toml: is not a saved machine"),
        (&["--restore", "none"], "none: No such file"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_sidestep"))
            .current_dir(&folder)
            .arg("run")
            .args(options)
            .output()
            .expect("sidestep starts");
        let said = text(&output.stderr);
        assert!(
            !output.status.success() && said.contains(expected),
            "{options:?}: {said}"
        );
    }
}

#[test]
fn devices_that_cannot_be_had_are_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("odd"), [0; 700]).expect("a file");
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let forward = format!(
        "user,hostfwd=tcp:127.0.0.1:{}-:7",
        taken.local_addr().expect("bound").port()
    );
    for (options, expected) in [
        (["--disk", "none"], "/none` cannot be opened"),
        (
            ["--disk", "odd"],
            "/odd` has 700 bytes; it must have a multiple of 512",
        ),
        (["--disk", "."], "is not a regular file"),
        (["--net", "usr"], "`usr` must be `user`"),
        (
            ["--net", "user,hostfwd=tcp:1"],
            "`tcp:1` must be `tcp:[ADDRESS]:PORT-[ADDRESS]:PORT`",
        ),
        (["--net", &forward], "the host does not listen at 127.0.0.1:"),
        (
            ["--net", "tap=a/b"],
            "the tap interface `a/b` cannot be used: an interface's name",
        ),
        (["--console", "vga"], "`vga` is none of stdio, pty, tcp:PORT"),
        (["--virtio-console", "stdio"], "the serial console is there"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_sidestep"))
            .current_dir(&folder)
            .args(["run", "--kernel", "odd"])
            .args(options)
            .output()
            .expect("sidestep starts");
        let said = text(&output.stderr);
        assert!(
            !output.status.success() && said.contains(expected),
            "{options:?}: {said}"
        );
    }
}
