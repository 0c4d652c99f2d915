//! Machines that boot: the application of `guests/ia64/firmware` tries what the firmware serves, the shell and the menu
//! are typed at.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::super::gate::Entry;
use super::super::nvram;
use super::super::variables::Variables;
use super::services::{FIRST_FUNCTION, Service};
use crate::description::Size;
use crate::description::bare::Clock;
use crate::description::disks::DiskTable;
use crate::description::kernel::{Built, Consoles, Description, MEMORY_MIN, MachineTable};
use crate::machine::hypercall::{Call, Console, HypercallHandler};
use crate::machine::{End, Outcome, VirtualTime};
use crate::snapshot::{self, SnapshotError};
use crate::storage::fat::tests::with_files;
use crate::storage::partitions::tests::gpt_disk;

/// A console that keeps what is printed and has keys ready, behind which nothing comes.
#[derive(Clone, Default)]
struct Typist {
    typed: Arc<Mutex<VecDeque<u8>>>,
    printed: Arc<Mutex<Vec<u8>>>,
}

impl Typist {
    fn typing(text: &str) -> Typist {
        let typist = Typist::default();
        typist.typed.lock().expect("no panic").extend(text.bytes());
        typist
    }

    fn printed(&self) -> String {
        String::from_utf8_lossy(&self.printed.lock().expect("no panic")).into_owned()
    }
}

impl Console for Typist {
    fn write(&mut self, bytes: &[u8]) {
        self.printed.lock().expect("no panic").extend_from_slice(bytes);
    }

    fn read(&mut self) -> Option<u8> {
        self.typed.lock().expect("no panic").pop_front()
    }

    fn has_ended(&self) -> bool {
        self.typed.lock().expect("no panic").is_empty()
    }
}

pub fn application() -> Vec<u8> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guests/ia64/bin/firmware.efi");
    std::fs::read(file).expect("it is checked in")
}

/// A disk with a system partition that has these files.
fn disk(folder: &Path, name: &str, files: &[(&str, &[u8])]) -> DiskTable {
    const SYSTEM: [u8; 16] = [
        0x28, 0x73, 0x2a, 0xc1, 0x1f, 0xf8, 0xd2, 0x11, 0xba, 0x4b, 0x00, 0xa0, 0xc9, 0x3e, 0xc9, 0x3b,
    ];
    const SECTORS: usize = 4_000;
    let mut bytes = gpt_disk(SECTORS + 200, &[(SYSTEM, 100, 100 + SECTORS as u64 - 1)]);
    bytes[100 * 512..][..SECTORS * 512].copy_from_slice(&with_files(SECTORS as u32, files));
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("written");
    path.to_str().expect("a name").parse().expect("a disk")
}

fn machine(disks: Vec<DiskTable>, typist: &Typist) -> Built {
    machine_with(disks, None, typist)
}

fn machine_with(disks: Vec<DiskTable>, nvram: Option<PathBuf>, typist: &Typist) -> Built {
    let description = Description {
        machine: MachineTable {
            nvram,
            memory: Size(MEMORY_MIN),
            clock: Clock::Virtual,
            ..MachineTable::default()
        },
        kernel: None,
        disk: disks,
        network: Vec::new(),
        folder: Vec::new(),
    };
    let consoles = Consoles {
        serial: Box::new(typist.clone()),
        virtio: None,
    };
    description
        .build_with(consoles)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Enough for every application here; one that hangs ends there.
const INSTRUCTIONS_MAX: u64 = 20_000_000;

fn run(disks: Vec<DiskTable>, typed: &str) -> (Outcome, String) {
    let typist = Typist::typing(typed);
    let mut built = machine(disks, &typist);
    let executor = VirtualTime {
        instructions_max: INSTRUCTIONS_MAX,
        ..VirtualTime::default()
    };
    let outcome = executor.run(&mut built.machine);
    (outcome, typist.printed())
}

#[test]
fn an_application_finds_every_service_as_the_specification_has_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = || {
        disk(
            folder.path(),
            "disk",
            &[("EFI\\BOOT\\BOOTIA64.EFI", &application())],
        )
    };
    let (outcome, printed) = run(vec![disk()], "xy");
    assert!(printed.contains(" checks hold"), "{printed}");
    assert_eq!(outcome.end, End::Exit(0), "{printed}");
    let (again, same) = run(vec![disk()], "xy");
    assert_eq!((again, same), (outcome, printed), "virtual time has one run");
}

#[test]
fn what_is_booted_next_counts_once_and_other_variables_stay_in_their_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("nvram.toml");
    let variable = |name: &str| {
        format!(
            "[[variable]]\nname = '{name}'\nvendor = '8be4df61-93ca-11d2-aa0d-00e098032b8c'\nattributes = 7\n\
             data = [1, 0]\n"
        )
    };
    let text = format!("version = 1\n{}{}", variable("BootNext"), variable("BootOrder"));
    std::fs::write(&file, text).expect("written");
    let typist = Typist::typing("");
    let mut built = machine_with(
        vec![disk(folder.path(), "disk", &[])],
        Some(file.clone()),
        &typist,
    );
    let names = |variables: &Variables| -> Vec<String> {
        let names = variables
            .lasting()
            .map(|(key, ..)| String::from_utf16_lossy(&key.name));
        names.collect()
    };
    assert_eq!(names(&built.parts.lasting_variables()), ["BootNext", "BootOrder"]);
    let executor = VirtualTime {
        instructions_max: INSTRUCTIONS_MAX,
        ..VirtualTime::default()
    };
    executor.run(&mut built.machine);
    let left = built.parts.lasting_variables();
    assert_eq!(names(&left), ["BootOrder"], "{}", typist.printed());
    assert_eq!(nvram::read(&file).expect("its file"), left);
    // A machine that a reset makes has no need of the file.
    let again = machine(vec![disk(folder.path(), "other", &[])], &typist);
    again.parts.begin_with(left.clone());
    assert_eq!(again.parts.lasting_variables(), left);
}

#[test]
fn a_machine_with_nothing_to_boot_says_so_and_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    let (outcome, printed) = run(vec![disk(folder.path(), "disk", &[("a", b"")])], "");
    assert!(
        printed.contains("Nothing to boot: no FAT file system of hd0, hd0p1 has"),
        "{printed}"
    );
    assert_eq!(outcome.end, End::Exit(1));
}

#[test]
fn what_is_no_application_is_named_and_the_next_is_tried() {
    let folder = tempfile::tempdir().expect("a folder");
    let wrong = disk(folder.path(), "wrong", &[("EFI\\BOOT\\BOOTIA64.EFI", b"MZ")]);
    let right = disk(
        folder.path(),
        "right",
        &[("EFI\\BOOT\\BOOTIA64.EFI", &application())],
    );
    let (outcome, printed) = run(vec![wrong, right], "m\rxy");
    assert!(
        printed.contains("hd0p1:\\EFI\\BOOT\\BOOTIA64.EFI: is no PE32+ file"),
        "{printed}"
    );
    assert!(printed.contains("Booting hd1p1:"), "{printed}");
    assert_eq!(outcome.end, End::Exit(0), "{printed}");
}

#[test]
fn the_menu_offers_what_there_is_and_the_shell() {
    let folder = tempfile::tempdir().expect("a folder");
    let one = |name: &str| {
        disk(
            folder.path(),
            name,
            &[("EFI\\BOOT\\BOOTIA64.EFI", &application())],
        )
    };
    let (outcome, printed) = run(vec![one("one"), one("two")], "m2xy");
    assert!(
        printed.contains("2  hd1p1:\\EFI\\BOOT\\BOOTIA64.EFI"),
        "{printed}"
    );
    assert!(
        printed.contains("Booting hd1p1:") && !printed.contains("Booting hd0p1:"),
        "{printed}"
    );
    assert_eq!(outcome.end, End::Exit(0), "{printed}");
}

#[test]
fn the_shell_shows_files_and_starts_applications() {
    let folder = tempfile::tempdir().expect("a folder");
    let files: [(&str, &[u8]); 3] = [
        ("notes.text", b"what was written down"),
        ("tools\\try.efi", &application()),
        ("tools\\inner\\file", b""),
    ];
    let typed = "map\nls\ncat notes.text\ncd tools\nls\ncd inner\\..\nnothing\nhd7:\nTRY.EFI child1\noff\n";
    let (outcome, printed) = run(vec![disk(folder.path(), "disk", &files)], typed);
    for expected in [
        "Nothing to boot",
        "hd0p1         2048000 bytes  FAT",
        "21  notes.text",
        "what was written down",
        "hd0p1:\\tools> ",
        "nothing: neither a command (see `help`) nor a file: there is no such file",
        "hd7:: there is no such device",
        "It has ended with status 0x11",
    ] {
        assert!(printed.contains(expected), "{expected} is not in {printed}");
    }
    assert_eq!(outcome.end, End::Exit(0));
}

#[test]
fn a_machine_is_not_saved_while_it_boots() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = disk(
        folder.path(),
        "disk",
        &[("EFI\\BOOT\\BOOTIA64.EFI", &application())],
    );
    let mut built = machine(vec![disk], &Typist::default());
    let executor = VirtualTime {
        instructions_max: 10_000,
        ..VirtualTime::default()
    };
    executor.run(&mut built.machine);
    let Built { machine, parts, .. } = &mut built;
    let saved = snapshot::save(machine, parts, &folder.path().join("saved"));
    assert!(matches!(saved, Err(SnapshotError::Booting)), "{saved:?}");
}

/// What a hostile application may give as an argument: numbers, handles, events, interfaces, memory.
#[derive(Clone, Copy, Debug)]
enum Argument {
    Number(u64),
    Handle(u64),
    Event(u64),
    Interface(usize),
    Memory(u64),
}

/// Memory that holds what the test puts there: far from what the firmware takes.
const SCRATCH: u64 = 0x20_0000;
const SCRATCH_BYTES: usize = 4096;

fn argument() -> impl Strategy<Value = Argument> {
    prop_oneof![
        prop_oneof![
            0u64..40,
            any::<u64>(),
            (0u32..64).prop_map(|bit| 1 << bit),
            Just(u64::MAX)
        ]
        .prop_map(Argument::Number),
        (0u64..12).prop_map(Argument::Handle),
        (0u64..6).prop_map(Argument::Event),
        (0usize..64).prop_map(Argument::Interface),
        (0u64..SCRATCH_BYTES as u64).prop_map(Argument::Memory),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_calls_leave_the_host_alone(
        memory in prop::collection::vec(any::<u8>(), SCRATCH_BYTES),
        calls in prop::collection::vec((0u64..100, prop::array::uniform8(argument())), 1..120),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = disk(folder.path(), "disk", &[("tools\\a long name", b"contents")]);
        let Built { mut machine, parts, .. } = machine(vec![disk], &Typist::typing("help\nmap\nls\n"));
        let platform = Arc::clone(machine.platform());
        let processor = &mut machine.cpus[0].processor;
        let scratch = sidestep_ia64::PhysicalAddress(SCRATCH);
        platform.memory.write(scratch, &memory).expect("memory");
        let first = (Service::Boot.function(), [Argument::Number(0); 8]);
        let rest = calls.into_iter().map(|(number, arguments)| (FIRST_FUNCTION - 1 + number, arguments));
        for (ticks, (function, arguments)) in (0..).zip([first].into_iter().chain(rest)) {
            let interfaces: Vec<u64> = match parts.firmware.boot().as_ref() {
                Some(boot) => {
                    let handles = boot.handles.with(None).into_iter();
                    let of = |handle| boot.handles.interfaces(handle).unwrap_or_default().iter();
                    handles.flat_map(of).map(|interface| interface.address).collect()
                }
                None => Vec::new(),
            };
            processor.general.set(15, function);
            for (register, argument) in (32..).zip(arguments) {
                processor.general.set(register, match argument {
                    Argument::Number(number) => number,
                    Argument::Handle(number) => 0xefee_0000_0000_0020 + 16 * number,
                    Argument::Event(number) => 0xefee_1000_0000_0010 + 16 * number,
                    Argument::Interface(index) => interfaces.get(index).copied().unwrap_or(0),
                    Argument::Memory(offset) => SCRATCH + offset,
                });
            }
            let mut call = Call {
                index: 0,
                ticks: ticks * 1_000_000,
                processor,
                platform: &platform,
            };
            prop_assert!(Entry::of_function(function).is_none());
            let answered = parts.firmware.call(&mut call).is_some();
            let is_one = function + 1 == FIRST_FUNCTION || Service::of_function(function).is_some();
            prop_assert_eq!(answered, is_one);
        }
    }
}
