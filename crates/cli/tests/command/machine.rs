//! IA-64 machines from the command line: descriptions and their errors, the console, traces, the debugger, signals.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

fn images() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/ia64/bin")
}

fn command(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidestep"));
    command.arg("run").args(arguments).current_dir(folder);
    command
}

/// A folder with this description.
fn described(text: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = text.replace("IMAGES", &images().display().to_string());
    fs::write(folder.path().join("machine.toml"), text).expect("the folder is writable");
    folder
}

fn run(text: &str, arguments: &[&str]) -> Output {
    let arguments: Vec<&str> = ["machine.toml"]
        .into_iter()
        .chain(arguments.iter().copied())
        .collect();
    command(&arguments, described(text).path())
        .output()
        .expect("sidestep starts")
}

/// Several processors that do `parameters`.
fn processors(count: usize, parameters: &str) -> String {
    format!(
        "machine = {{ processors = {count}, parameters = '{parameters}' }}
         image.file = 'IMAGES/machine-smp'
         memory = [{{ start = 0x100000, size = '15M' }}]"
    )
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_machine_ends_with_its_guests_exit_code() {
    let output = run(&processors(2, "lock 10"), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "right\n");
    let output = run(&processors(2, "nonsense"), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).starts_with("parameters: "));
}

#[test]
fn examples_run() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let output = command(&["processors.toml"], &examples)
        .output()
        .expect("sidestep starts");
    assert_eq!(text(&output.stdout), "right\n");
    let mut child = command(&["console.toml"], &examples)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("sidestep starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"hello\nItanium 2").expect("the machine reads");
    drop(input);
    let output = child.wait_with_output().expect("it ends with the input");
    assert_eq!(text(&output.stdout), "Type a line:\nHELLO\nITANIUM 2\n\n");
    assert_eq!(output.status.code(), Some(2));
}

/// Needs the feature `translator`.
#[test]
fn translated_programs_of_machines_and_virtual_machines_do_the_same() {
    if !cfg!(feature = "translator") {
        return;
    }
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for example in ["kernel.toml", "sidecore-host.toml"] {
        let run = |options: &[&str]| {
            let arguments = [&[example], options].concat();
            let output = command(&arguments, &examples).output().expect("sidestep starts");
            assert!(
                output.status.success(),
                "{example} {options:?}: {}",
                text(&output.stderr)
            );
            output
        };
        let interpreted = run(&[]);
        for options in [
            &["--translate", "auto"][..],
            &["--translate", "auto", "--translate-synchronously"],
        ] {
            let translated = run(options);
            assert!(interpreted.stdout == translated.stdout, "{example} {options:?}");
            assert!(interpreted.stderr == translated.stderr, "{example} {options:?}");
        }
        let told = text(&run(&["--translate", "auto", "--translate-synchronously", "--stats"]).stderr);
        let line = told
            .lines()
            .find(|line| line.starts_with("instructions retired in translated code"));
        let count = line.and_then(|line| line.split_whitespace().last()?.parse::<u64>().ok());
        assert!(count.is_some_and(|count| count > 100_000), "{told}");
    }
}

#[test]
fn wrong_descriptions_are_refused_with_what_is_wrong() {
    let good = "image.file = 'IMAGES/machine-smp'\nmemory = [{ start = 0x100000, size = '15M' }]\n";
    let cases: &[(&str, &str)] = &[
        ("procesors = 2", "machine.toml:1:1: unknown key `procesors`"),
        (
            "machine.procesors = 2",
            "machine.toml:1:9: unknown key `procesors` (did you mean `processors`?)",
        ),
        (
            "machine.processors = 0",
            "[machine] processors = 0: a machine has 1 to 256",
        ),
        ("machine.processors = 257", "[machine] processors = 257"),
        (
            "machine.processors = -1",
            "machine.toml:1:22: invalid value: integer `-1`, expected a whole number from 0 on",
        ),
        (
            "machine.processors = 99999999999999999999",
            "machine.toml:1:22: invalid type: integer `99999999999999999999`, expected a whole number",
        ),
        (
            "machine.processors = 2.5",
            "machine.toml:1:22: invalid type: floating point `2.5`",
        ),
        (
            "machine.start = 'none'",
            "unknown variant `none`, expected `first` or `all`",
        ),
        (
            "machine.parameters = 5",
            "machine.toml:1:22: invalid type: integer `5`, expected a string",
        ),
        ("machine = { processors = 2, processors = 3 }", "duplicate key"),
        (
            "machin.processors = 2",
            "unknown key `machin` (did you mean `machine`?)",
        ),
        (
            "image.entry = 0x90000000",
            "[image] entry = 0x0000000090000000: the machine has no memory there",
        ),
        ("kernel.file = 'vmlinux'", "unknown key `image`"),
        ("host.cores = 2", "unknown key `image`"),
        ("machine.quantum = 0", "[machine] quantum = 0"),
        ("machine.sidecore = 'always'", "[machine] sidecore: devices have"),
        (
            "machine.clock = 'wall'",
            "unknown variant `wall`, expected `virtual` or `host`",
        ),
        (
            "image.entry = 0x100008",
            "[image] entry = 0x100008: must be a multiple of 16",
        ),
        (
            "image.entry = 0x40",
            "[image] entry = 0x0000000000000040: the machine has no memory there",
        ),
        ("image.entry = ", "machine.toml:1:"),
    ];
    for (line, expected) in cases {
        refused(&format!("{line}\n{good}"), expected);
    }
    let image = "image.file = 'IMAGES/machine-smp'";
    let cases: &[(&str, &str)] = &[
        ("", "[[memory]]: the machine has no memory"),
        (
            "memory = [{ start = 0, size = '64K' }]",
            "where the machine has no memory: it has 0x0 to 0x10000",
        ),
        (
            "memory = { start = 0, size = '64K' }",
            "expected an array, as `[[name]]` tables make one",
        ),
        (
            "memory = [{ start = -1, size = '64K' }]",
            "expected a whole number from 0 on",
        ),
        ("memory = [{ start = 0, size = 0 }]", "not be empty"),
        ("memory = [{ start = 0 }]", "missing field `size`"),
        (
            "memory = [{ start = 0x4000000000000, size = '1M' }]",
            "beyond the 50 implemented address bits",
        ),
        (
            "memory = [{ start = 0, size = '64K', kind = 'flash' }]",
            "expected `ram` or `rom`",
        ),
        ("memory = [{ start = 1, size = '64K' }]", "multiples of 0x10000"),
        (
            "memory = [{ start = 0, size = 'much' }]",
            "a number of bytes, such as 65536",
        ),
        (
            "memory = [{ start = 0, size = -65536 }]",
            "a number of bytes, such as 65536",
        ),
        (
            "memory = [{ start = 0, size = '16M' }, { start = 0xf00000, size = '1M', kind = 'rom' }]",
            "[[memory]]: the memory at 0x0000000000000000 with 0x1000000 bytes overlaps",
        ),
        (
            "memory = [{ start = 0, size = '4G' }]",
            "overlaps the processor interrupt block",
        ),
        (
            "memory = [{ start = 0x100000, size = '15M', file = 'gone' }]",
            "gone: cannot be read",
        ),
        (
            "memory = [{ start = 0x100000, size = '64K', file = 'IMAGES/machine-smp' }]",
            "bytes, more than the 0x10000 of the memory at 0x0000000000100000",
        ),
        (
            "memory = [{ start = 0x100000, size = '15M', kid = 'rom' }]",
            "unknown key `kid` (did you mean `kind`?)",
        ),
    ];
    for (line, expected) in cases {
        refused(&format!("{image}\n{line}"), expected);
    }
    let memory = "memory = [{ start = 0x100000, size = '15M' }]";
    refused(
        &format!("image.file = 'gone'\n{memory}"),
        "gone: cannot be read: No such file",
    );
    refused(
        &format!("image.file = 'machine.toml'\n{memory}"),
        "is no ELF executable",
    );
    refused(memory, "missing field `image`");
    refused("not toml", "machine.toml:1:");
}

fn refused(description: &str, expected: &str) {
    let output = run(description, &[]);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{description}: {error}");
    assert!(error.contains(expected), "{description}: {error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn wrong_arguments_are_refused() {
    for (arguments, expected) in [
        (&["--trace", "everything"][..], "none of insn, mmu, interruption"),
        (
            &["--trace", "insn=/nowhere/trace"],
            "/nowhere/trace: cannot be written as the trace",
        ),
        (&["--gdb", "nowhere"], "must be :PORT, HOST:PORT or unix:PATH"),
        (
            &["--gdb", "unix:/nowhere/socket"],
            "--gdb unix:/nowhere/socket: cannot wait",
        ),
        (&["--symbols", "/nowhere"], "/nowhere: cannot be read"),
    ] {
        let output = run(&processors(1, "compute 1"), arguments);
        assert!(!output.status.success());
        assert!(
            text(&output.stderr).contains(expected),
            "{}",
            text(&output.stderr)
        );
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = command(&["gone.toml"], folder.path())
        .output()
        .expect("sidestep starts");
    assert!(text(&output.stderr).contains("gone.toml: cannot be read"));
}

#[test]
fn the_instruction_limit_ends_a_machine() {
    let output = run(
        &processors(1, "compute 1000000000"),
        &["--max-instructions", "100000"],
    );
    assert_eq!(output.status.code(), Some(124));
    assert!(text(&output.stderr).contains("stopped after 100000 instructions"));
}

/// A machine whose handlers are zeros: `break 0` in the handler of `break`, for ever.
const WITHOUT_HANDLERS: &str = "image = { file = 'IMAGES/machine-smp', entry = 0x8000 }
     memory = [{ start = 0, size = '16M' }]";

#[test]
fn a_guest_that_only_takes_interruptions_is_named_and_reaches_the_limit() {
    for clock in ["virtual", "host"] {
        let description = format!("machine.clock = '{clock}'\n{WITHOUT_HANDLERS}");
        let output = run(&description, &["--max-instructions", "100000"]);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(124), "{error}");
        let said = "machine.toml: processor 0 executes nothing any more, it takes one interruption after another: \
                    break instruction fault at 0x2c00, with its handler at 0x2c00";
        assert_eq!(error.matches(said).count(), 1, "once: {error}");
        assert!(error.contains("stopped after 100000 instructions"), "{error}");
    }
}

#[test]
fn a_trace_ends_at_its_limit_and_the_machine_goes_on() {
    let folder = described(WITHOUT_HANDLERS);
    let limited = |arguments: &[&str]| {
        let arguments = [
            &[
                "machine.toml",
                "--max-instructions",
                "100000",
                "--trace-limit",
                "10K",
            ],
            arguments,
        ];
        let mut command = command(&arguments.concat(), folder.path());
        command.output().expect("sidestep starts")
    };
    let cut = "cut here: the trace has reached its limit of 10240 bytes\n";
    let output = limited(&["--trace", "interruption=trace"]);
    assert_eq!(output.status.code(), Some(124), "{}", text(&output.stderr));
    let trace = fs::read_to_string(folder.path().join("trace")).expect("the trace was written");
    assert!(
        trace.ends_with(cut) && trace.len() <= 10240 + cut.len(),
        "{}",
        trace.len()
    );
    let error = text(&limited(&["--trace", "interruption"]).stderr);
    assert_eq!(error.matches(cut).count(), 1);
    assert!(error.ends_with("stopped after 100000 instructions\n"), "{error}");
}

#[test]
fn a_trace_on_a_full_disk_ends_the_machine() {
    for (description, kind) in [
        (processors(2, "compute 1000000000000"), "insn"),
        (WITHOUT_HANDLERS.to_owned(), "interruption"),
    ] {
        let output = run(&description, &["--trace", &format!("{kind}=/dev/full")]);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(
            error.ends_with("the trace cannot be written: No space left on device (os error 28)\n"),
            "{error}"
        );
    }
}

#[test]
fn traces_say_what_happens() {
    let folder = described(&processors(2, "purge 3"));
    let trace = |kinds: &str| {
        let request = format!("{kinds}=trace");
        let output = command(&["machine.toml", "--trace", &request], folder.path())
            .output()
            .expect("sidestep starts");
        assert_eq!(text(&output.stdout), "right\n");
        fs::read_to_string(folder.path().join("trace")).expect("the trace was written")
    };
    let instructions = trace("insn");
    assert!(instructions.starts_with("0 0000000000108000.0   mov r15=5;; <_start>\n"));
    assert!(instructions.contains(" movl r11=0x2000000000000000"));
    assert_eq!(instructions, trace("insn"), "the same each time");
    let others = trace("mmu,interruption");
    for expected in [
        "0 mmu itr.i 0000000000000000 pte 0000000000000661 size 24 register 0 <_start+0x",
        "1 mmu ptc.ga 2000000000004000 size 14 <main+0x",
        "0 int alternate data TLB fault at 0000000000109",
        " ifa 2000000000000000 isr 0000",
        "0 mmu itc.d 2000000000000000 pte 0000000000318661 size 14 <interruption_vectors+0x10",
        "0 int return to 0000000000109",
    ] {
        assert!(others.contains(expected), "{expected}:\n{others}");
    }
    assert!(!others.contains("mov r15"));
}

#[test]
fn both_clocks_run_and_virtual_time_is_deterministic() {
    for clock in ["virtual", "host"] {
        let description = format!("{}\nmachine.clock = '{clock}'", processors(2, "purge 20")).replace(
            "machine = { processors = 2, parameters = 'purge 20' }",
            "machine.processors = 2\nmachine.parameters = 'purge 20'",
        );
        let output = run(&description, &[]);
        assert_eq!(text(&output.stdout), "right\n", "{}", text(&output.stderr));
        let traced = run(&description, &["--deterministic", "--trace", "mmu"]);
        let again = run(&description, &["--deterministic", "--trace", "mmu"]);
        assert!(!traced.stderr.is_empty());
        assert_eq!(text(&traced.stderr), text(&again.stderr));
    }
}

/// A machine that computes for ever, with what it says on the standard error.
fn endless(arguments: &[&str]) -> (TempDir, Child) {
    let folder = described(&processors(1, "compute 1000000000000"));
    let arguments: Vec<&str> = ["machine.toml"]
        .into_iter()
        .chain(arguments.iter().copied())
        .collect();
    let child = command(&arguments, folder.path())
        .stderr(Stdio::piped())
        .spawn()
        .expect("sidestep starts");
    (folder, child)
}

#[test]
fn signals_end_a_machine_as_shells_expect() {
    use rustix::process::{Pid, Signal, kill_process};
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let (_folder, mut child) = endless(&["--trace", "interruption=trace"]);
        let trace = _folder.path().join("trace");
        // The trace is opened after signals are caught.
        while !trace.exists() {
            std::thread::yield_now();
        }
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        assert_eq!(child.wait().expect("it ends").code(), Some(code));
    }
}

#[test]
fn a_debugger_connects_to_the_port_that_is_announced() {
    let (_folder, mut child) = endless(&["--gdb", ":0"]);
    let mut announced = String::new();
    let mut output = BufReader::new(child.stderr.take().expect("a pipe"));
    output.read_line(&mut announced).expect("a line");
    let address = announced.trim().rsplit(' ').next().expect("an address");
    let mut stub = TcpStream::connect(address).expect("the stub listens");
    stub.write_all(b"$?#3f").expect("the stub listens");
    let mut answer = [0; 5];
    stub.read_exact(&mut answer).expect("an answer");
    assert!(text(&answer).starts_with("+$"), "{}", text(&answer));
    stub.write_all(b"+$k#6b").expect("the stub listens");
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
}

#[test]
fn a_terminal_gives_keys_one_by_one_and_is_given_back() {
    use rustix::fs::{Mode, OFlags, open};
    use rustix::process::{Pid, Signal, kill_process};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{LocalModes, tcgetattr};
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&controller).expect("ours");
    unlockpt(&controller).expect("ours");
    let name = ptsname(&controller, Vec::new()).expect("a name");
    let terminal = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("ours");
    let modes = || tcgetattr(&terminal).expect("a terminal").local_modes;
    let before = modes();
    assert!(before.contains(LocalModes::ICANON | LocalModes::ECHO));
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut child = command(&["console.toml"], &examples)
        .stdin(terminal.try_clone().expect("a descriptor"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("sidestep starts");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    while modes().intersects(LocalModes::ICANON | LocalModes::ECHO) {
        assert!(child.try_wait().expect("a child").is_none(), "it waits for keys");
        std::thread::yield_now();
    }
    rustix::io::write(&controller, b"q").expect("a key");
    let mut answer = [0];
    output
        .read_exact(&mut answer)
        .expect("an answer without a line feed");
    assert_eq!(answer, *b"Q");
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert_eq!(modes(), before);
}

#[test]
fn a_silent_machine_on_the_model_says_on_a_terminal_how_far_it_is() {
    use rustix::fs::{Mode, OFlags, open};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&controller).expect("ours");
    unlockpt(&controller).expect("ours");
    let name = ptsname(&controller, Vec::new()).expect("a name");
    let terminal = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("ours");
    let folder = described(&processors(1, "compute 1000000000000"));
    let mut child = command(&["machine.toml", "--timing", "itanium2"], folder.path())
        .stdin(Stdio::null())
        .stderr(terminal.try_clone().expect("a descriptor"))
        .spawn()
        .expect("sidestep starts");
    let mut said = String::new();
    let mut bytes = [0; 256];
    while !said.contains("ms of its time have passed") {
        assert!(child.try_wait().expect("a child").is_none(), "{said}");
        let size = rustix::io::read(&controller, &mut bytes).expect("it says something");
        said.push_str(&text(&bytes[..size]));
    }
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

#[test]
fn options_of_other_machines_are_refused() {
    for (arguments, said) in [
        (&["--units", "3"][..], "--units is not for descriptions"),
        (&["--word", "a=1"], "--word is not for descriptions"),
        (&["--max-cycles", "5"], "--max-cycles is not for descriptions"),
        (
            &["--max-host-cycles", "5"],
            "--max-host-cycles is not for machines without a host",
        ),
    ] {
        let output = run(&processors(1, "compute 10"), arguments);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(text(&output.stderr).contains(said), "{}", text(&output.stderr));
    }
}
