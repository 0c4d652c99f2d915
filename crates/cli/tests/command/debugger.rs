//! `sidestep exec --gdb`: programs under a debugger, in packets and with gdb itself.

#[path = "../../../machine/tests/gdb/packets.rs"]
mod packets;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use packets::{BSP, CFM, Debugger, R32, Symbols};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Eight threads that move amounts under a mutex.
const THREADS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guests/ia64/bin/contend-mutex");
/// Turns of each thread, enough to outlive any test.
const ENDLESS: &str = "1000000000";

/// A program that waits for a debugger.
struct Debugged {
    child: Child,
    socket: PathBuf,
    errors: BufReader<std::process::ChildStderr>,
    _folder: TempDir,
}

impl Debugged {
    fn start(options: &[&str], program: &[&str]) -> Debugged {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let socket = folder.path().join("gdb.socket");
        let mut child = Command::new(env!("CARGO_BIN_EXE_sidestep"))
            .arg("exec")
            .env_remove("SIDESTEP_SYSROOT")
            .arg(format!("--gdb=unix:{}", socket.display()))
            .args(options)
            .args(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("sidestep starts");
        let mut errors = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut announced = String::new();
        errors.read_line(&mut announced).expect("a line");
        assert!(
            announced.contains("waiting for gdb: target remote unix:"),
            "{announced}"
        );
        Debugged {
            child,
            socket,
            errors,
            _folder: folder,
        }
    }

    /// gdb's end of the connection, and the process's number as packets have it.
    fn connect(&self) -> (Debugger, String) {
        let mut debugger = Debugger(UnixStream::connect(&self.socket).expect("the stub listens"));
        let supported = debugger.ask("qSupported:multiprocess+;swbreak+;vContSupported+");
        for feature in ["qXfer:exec-file:read+", "qXfer:auxv:read+", "swbreak+"] {
            assert!(supported.contains(feature), "{supported}");
        }
        let stop = debugger.ask("?");
        // The stub writes whole bytes.
        let digits = format!("{:x}", self.child.id());
        let process = format!("{digits:0>width$}", width = digits.len().next_multiple_of(2));
        assert!(
            stop.starts_with(&format!("T05thread:p{process}.{process}")),
            "{stop}"
        );
        (debugger, process)
    }

    /// What it printed, and how it ended.
    fn end(mut self) -> (String, String, ExitStatus) {
        drop(self.child.stdin.take());
        let (mut output, mut errors) = (String::new(), String::new());
        let mut from = self.child.stdout.take().expect("a pipe");
        from.read_to_string(&mut output).expect("text");
        self.errors.read_to_string(&mut errors).expect("text");
        (output, errors, self.child.wait().expect("it ends"))
    }
}

fn symbol(name: &str) -> u64 {
    let image = fs::read(THREADS).expect("the image is committed");
    Symbols(image).address(name).expect("a symbol")
}

/// The threads that are listed.
fn threads(debugger: &mut Debugger) -> Vec<String> {
    let listed = debugger.ask("qfThreadInfo");
    let names = listed.strip_prefix('m').expect("a list");
    names.split(',').map(str::to_owned).collect()
}

fn hexadecimal(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn text_of(hexadecimal: &str) -> String {
    let bytes = hexadecimal.as_bytes().chunks(2);
    let byte = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).expect("digits"), 16);
    bytes
        .map(|digits| char::from(byte(digits).expect("digits")))
        .collect()
}

/// The thread of a stop.
fn stopped(stop: &str) -> String {
    let (_, rest) = stop.split_once("thread:").unwrap_or_else(|| panic!("{stop}"));
    rest.split(';').next().expect("a thread").to_owned()
}

#[test]
fn threads_come_stop_and_step_and_go() {
    let debugged = Debugged::start(&[], &[THREADS, "20"]);
    let (mut debugger, process) = debugged.connect();
    assert_eq!(debugger.ask("qAttached:1"), "1");
    let main = symbol("main");
    assert_eq!(debugger.ask(&format!("Z0,{main:x},0")), "OK");
    assert!(debugger.ask("vCont;c").contains("swbreak"));
    assert_eq!(debugger.place(), main);
    assert_eq!(threads(&mut debugger), [format!("p{process}.{process}")]);
    let work = symbol("work");
    assert_eq!(debugger.ask(&format!("Z0,{work:x},0")), "OK");
    let mut seen = Vec::new();
    for _ in 0..8 {
        let stop = debugger.ask("vCont;c");
        assert!(stop.contains("swbreak"), "{stop}");
        let thread = stopped(&stop);
        assert_eq!(debugger.ask(&format!("Hg{thread}")), "OK");
        assert_eq!(debugger.place(), work);
        assert!(threads(&mut debugger).contains(&thread));
        assert!(!seen.contains(&thread), "{thread} begins once");
        // It steps alone.
        let stop = debugger.ask(&format!("vCont;s:{thread}"));
        assert_eq!(stopped(&stop), thread, "{stop}");
        assert!(debugger.place() > work);
        seen.push(thread);
    }
    assert_eq!(debugger.ask(&format!("z0,{work:x},0")), "OK");
    assert_eq!(debugger.ask("vCont;c"), "W00");
    let (output, errors, status) = debugged.end();
    assert_eq!(
        output, "contend-mutex: 160 moves by 8 threads, sum 0\n",
        "{errors}"
    );
    assert!(status.success());
}

#[test]
fn an_interrupt_stops_threads_in_system_calls_too() {
    let debugged = Debugged::start(&[], &[THREADS, ENDLESS]);
    let (mut debugger, process) = debugged.connect();
    let main = format!("p{process}.{process}");
    // Until the last thread has begun, and the first waits for another.
    let work = symbol("work");
    assert_eq!(debugger.ask(&format!("Z0,{work:x},0")), "OK");
    for _ in 0..8 {
        let stop = debugger.ask("vCont;c");
        assert!(stop.contains("swbreak"), "{stop}");
    }
    assert_eq!(debugger.ask(&format!("z0,{work:x},0")), "OK");
    let waits = |debugger: &mut Debugger| {
        debugger.send("vCont;c");
        debugger.0.write_all(&[3]).expect("the stub listens");
        let stop = debugger.receive();
        assert!(stop.starts_with("T02thread:"), "{stop}");
        text_of(&debugger.ask(&format!("qThreadExtraInfo,{main}"))) == "contend-mutex, in futex"
    };
    while !waits(&mut debugger) {}
    assert_eq!(threads(&mut debugger).len(), 9);
    assert_eq!(debugger.ask(&format!("Hg{main}")), "OK");
    let place = debugger.place();
    let stored = debugger.register(BSP) - (debugger.register(CFM) & 0x7f) * 8;
    assert_eq!(
        debugger.word(stored),
        debugger.register(R32),
        "a stacked register"
    );
    // Its call goes on, so its registers stay.
    assert!(debugger.ask("P1=0100000000000000").starts_with('E'));
    assert!(waits(&mut debugger));
    assert_eq!(debugger.ask(&format!("Hg{main}")), "OK");
    assert_eq!(debugger.place(), place, "the call was not interrupted");
    debugger.kill();
    let (_, _, status) = debugged.end();
    assert_eq!(status.signal(), Some(9));
}

#[test]
fn watchpoints_and_memory_are_those_of_all_threads() {
    let debugged = Debugged::start(&[], &[THREADS, "20"]);
    let (mut debugger, _) = debugged.connect();
    let moves = symbol("moves");
    assert_eq!(debugger.ask(&format!("Z2,{moves:x},8")), "OK");
    for count in 1..=10 {
        let stop = debugger.ask("vCont;c");
        assert!(stop.contains(&format!(";watch:{moves:x}")), "{stop}");
        assert_eq!(debugger.word(moves), count);
    }
    assert_eq!(debugger.ask(&format!("z2,{moves:x},8")), "OK");
    assert_eq!(debugger.ask(&format!("M{moves:x},8:1400000000000000")), "OK");
    assert_eq!(debugger.word(moves), 20);
    // Code can be written: the program never comes back from there, and nothing else is harmed.
    let main = symbol("main");
    let code = debugger.word(main);
    assert_eq!(
        debugger.ask(&format!("M{main:x},8:{:016x}", code.swap_bytes())),
        "OK"
    );
    for bad in ["m10000,8", "me000000000000000,8", "M10000,1:00"] {
        assert!(debugger.ask(bad).starts_with('E'), "{bad}");
    }
    assert_eq!(debugger.ask("vCont;c"), "W01", "ten moves too many");
    let (output, _, _) = debugged.end();
    assert_eq!(output, "contend-mutex: 170 moves by 8 threads, sum 0\n");
}

#[test]
fn signals_stop_before_they_are_delivered() {
    let debugged = Debugged::start(&[], &[THREADS, ENDLESS]);
    let (mut debugger, _) = debugged.connect();
    let process = Pid::from_child(&debugged.child);
    for _ in 0..3 {
        debugger.send("vCont;c");
        kill_process(process, Signal::USR1).expect("it runs");
        let stop = debugger.receive();
        assert!(stop.starts_with("T1ethread:"), "{stop}");
    }
    // Two were dropped; this one is another that the debugger makes of it.
    debugger.send("vCont;c");
    kill_process(process, Signal::USR1).expect("it runs");
    let thread = stopped(&debugger.receive());
    assert_eq!(debugger.ask(&format!("vCont;C0f:{thread};c")), "X0f");
    let (_, _, status) = debugged.end();
    assert_eq!(status.signal(), Some(15));
}

#[test]
fn a_debugger_sends_signals_and_reads_files() {
    let debugged = Debugged::start(&[], &[THREADS, ENDLESS]);
    let (mut debugger, process) = debugged.connect();
    let number = u32::from_str_radix(&process, 16).expect("a number");
    assert_eq!(debugger.ask("vFile:setfs:0"), "F0");
    let open =
        |debugger: &mut Debugger, path: &str| debugger.ask(&format!("vFile:open:{},0,0", hexadecimal(path)));
    assert_eq!(open(&mut debugger, &format!("/proc/{number}/maps")), "F00");
    let maps = debugger.ask("vFile:pread:0,1000,0");
    assert!(
        maps.contains("[stack]") && maps.contains("contend-mutex"),
        "{maps}"
    );
    assert!(!maps.contains("[heap]x86"), "{maps}");
    let program = debugger.ask(&format!("qXfer:exec-file:read:{process}:0,1000"));
    let program = program.strip_prefix(['l', 'm']).expect("a path");
    assert!(Path::new(program).ends_with("contend-mutex"), "{program}");
    assert_eq!(open(&mut debugger, program), "F01");
    assert!(debugger.ask("vFile:pread:1,4,0").ends_with(";\u{7f}ELF"));
    assert!(debugger.ask("vFile:fstat:1").starts_with("F40;"));
    assert_eq!(debugger.ask("vFile:close:1"), "F0");
    assert_eq!(debugger.ask("vFile:close:1"), "F-1,09");
    assert_eq!(open(&mut debugger, "/nowhere"), "F-1,02");
    assert_eq!(open(&mut debugger, &format!("/proc/{number}/mem")), "F-1,01");
    let made = debugger.ask(&format!("vFile:open:{},201,1a4", hexadecimal("/tmp/x")));
    assert!(made.starts_with("F-1,"), "{made}");
    let link = debugger.ask(&format!(
        "vFile:readlink:{}",
        hexadecimal(&format!("/proc/{number}/exe"))
    ));
    assert!(link.ends_with("contend-mutex"), "{link}");
    assert!(debugger.ask("qXfer:auxv:read::0,1000").starts_with('m'));
    // `signal SIGTERM` at the first instruction.
    let main = format!("p{process}.{process}");
    assert_eq!(debugger.ask(&format!("vCont;C0f:{main};c")), "X0f");
    let (_, _, status) = debugged.end();
    assert_eq!(status.signal(), Some(15));
}

#[test]
fn a_debugger_that_leaves_lets_the_program_run_on() {
    for detaches in [true, false] {
        let debugged = Debugged::start(&[], &[THREADS, "20"]);
        let (mut debugger, _) = debugged.connect();
        let work = symbol("work");
        assert_eq!(debugger.ask(&format!("Z0,{work:x},0")), "OK");
        assert!(debugger.ask("vCont;c").contains("swbreak"));
        if detaches {
            assert_eq!(debugger.ask("D;1"), "OK");
        }
        drop(debugger);
        let (output, errors, status) = debugged.end();
        assert!(output.contains("160 moves"), "{output}{errors}");
        assert!(status.success());
    }
}

#[test]
fn what_excludes_a_debugger_is_said() {
    for options in [
        &["--timing", "itanium2"][..],
        &["--trace", "insn"],
        &["--translate", "auto"],
        &["--check-groups"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_sidestep"))
            .args(["exec", "--gdb", ":0"])
            .args(options)
            .arg(THREADS)
            .output()
            .expect("sidestep starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            errors.contains("cannot be used with") && errors.contains("--gdb"),
            "{errors}"
        );
        assert_eq!(output.status.code(), Some(2));
    }
}

/// What gdb says to commands, once it is connected to a program.
fn gdb(debugged: &Debugged, arguments: &[&str], commands: &[&str]) -> Option<String> {
    let connect = format!("target remote {}", debugged.socket.display());
    let commands = ["set confirm off", "set pagination off", &connect]
        .into_iter()
        .chain(commands.iter().copied());
    let output = Command::new(tests_need::GDB.find()?)
        .args(["-nx", "-batch"])
        .args(commands.flat_map(|command| ["-ex", command]))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("gdb starts");
    Some(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

#[test]
fn gdb_sees_the_threads_and_files_of_a_program() {
    if tests_need::GDB.find().is_none() {
        return;
    }
    let debugged = Debugged::start(&[], &[THREADS, "20"]);
    // gdb reads the program through the stub.
    let said = gdb(
        &debugged,
        &[],
        &[
            "break work",
            "continue",
            "info threads",
            "backtrace",
            "thread 1",
            "info proc mappings",
            "info auxv",
            "delete",
            "watch *(long *)&moves",
            "continue",
            "stepi",
            "delete",
            "continue",
        ],
    );
    let said = said.expect("it was found");
    let (output, errors, status) = debugged.end();
    for expected in [
        "hit Breakpoint 1",
        "work (",
        "(contend-mutex)",
        "[stack]",
        "AT_PAGESZ",
        "atchpoint 2: *(long *)&moves",
        "exited normally",
    ] {
        assert!(said.contains(expected), "`{expected}` in {said}\n{errors}");
    }
    assert!(
        output.contains("160 moves") && status.success(),
        "{output}{errors}"
    );
}
