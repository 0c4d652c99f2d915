//! Files that are saved machines, and files that only look like it.

use std::fs;
use std::sync::LazyLock;

use ciborium::Value;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::description::Size;
use crate::description::bare::Clock;
use crate::description::devices::VirtioTransport;
use crate::description::disks::{DiskBus, DiskTable};
use crate::description::kernel::{EPOCH, KernelTable, MEMORY_MIN, MachineTable};
use crate::description::networks::{AdapterTable, NetworkModel, NetworkTable};
use crate::machine::timeline::Phase;
use crate::machine::{Sidecore, VirtualTime};
use crate::storage::scsi::Medium;

const STATE: usize = MAGIC.len() + 12;
const CHECKSUM_BYTES: usize = 4;

fn consoles() -> Consoles {
    Consoles {
        serial: Box::new(io::sink()),
        virtio: Some(Box::new(io::sink())),
    }
}

/// A machine with a device of each kind that has executed a little: zeros, which are no instructions.
fn saved(folder: &Path, virtio: VirtioTransport) -> PathBuf {
    let disk = folder.join("disk");
    let cd = folder.join("cd");
    for file in [&disk, &cd] {
        fs::write(file, [0; 4096]).expect("the folder is writable");
    }
    let table = |file, bus, media| {
        let mut table = DiskTable::at(file);
        (table.bus, table.media) = (bus, media);
        table
    };
    let description = Description {
        machine: MachineTable {
            processors: 2,
            memory: Size(MEMORY_MIN),
            clock: Clock::Virtual,
            quantum_ticks: 100,
            sidecore: Sidecore::None,
            nodes: 1,
            nvram: None,
            hpet: true,
            pci_bridges: 2,
            epoch_seconds: EPOCH,
            seed: 1,
            virtio,
        },
        kernel: Some(KernelTable {
            file: "none".into(),
            initrd: None,
            append: String::new(),
        }),
        disk: vec![
            table(disk, DiskBus::Virtio, Medium::Disk),
            table(cd, DiskBus::Scsi, Medium::Cdrom),
        ],
        folder: Vec::new(),
        network: [NetworkModel::Virtio, NetworkModel::E1000]
            .map(|model| AdapterTable {
                model,
                network: NetworkTable::User { hostfwd: Vec::new() },
            })
            .into(),
    };
    let assembled = description.assemble(consoles(), false);
    let (built, _) = assembled.unwrap_or_else(|error| panic!("{error}"));
    let mut built = built.build();
    execute(&mut built.machine);
    let file = folder.join("machine");
    save(&mut built.machine, &built.parts, &file).expect("the folder is writable");
    file
}

/// Executes for a short time, wherever the clocks are.
fn execute(machine: &mut Machine) {
    const TICKS: u64 = 3000;
    machine.round_end = None;
    let now = machine.cpus.iter().map(|cpu| cpu.ticks).min().unwrap_or(0);
    let platform = std::sync::Arc::downgrade(machine.platform());
    let timeline = &machine.platform().timeline;
    timeline.schedule(now + TICKS, Phase::Interrupt, move |_| {
        platform.upgrade().expect("it executes").request_stop();
    });
    VirtualTime::default().run(machine);
}

fn restored(file: &Path) -> Result<Built, String> {
    let saved = open(file).map_err(|error| error.to_string())?;
    let built = saved.restore(consoles(), ChangedDisks::Refuse);
    built.map_err(|error| error.to_string())
}

/// The state in a saved machine, and what stands behind it.
fn state(bytes: &[u8]) -> (Value, &[u8]) {
    let length = bytes[STATE - 8..STATE].try_into().expect("eight bytes");
    let (state, rest) = bytes[STATE..].split_at(u64::from_le_bytes(length) as usize);
    (ciborium::from_reader(state).expect("as it was saved"), rest)
}

/// A file with another state, whole as far as its checksum tells.
fn with_state(bytes: &[u8], state: &Value, rest: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::new();
    ciborium::into_writer(state, &mut encoded).expect("it was read");
    let mut file = bytes[..STATE - 8].to_vec();
    file.extend((encoded.len() as u64).to_le_bytes());
    file.extend(encoded);
    file.extend(&rest[..rest.len() - CHECKSUM_BYTES]);
    summed(file)
}

fn summed(mut file: Vec<u8>) -> Vec<u8> {
    file.extend(crc32fast::hash(&file).to_le_bytes());
    file
}

/// Every number and truth in a value.
fn leaves<'a>(value: &'a mut Value, found: &mut Vec<&'a mut Value>) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| leaves(value, found)),
        Value::Map(fields) => fields.iter_mut().for_each(|(_, value)| leaves(value, found)),
        Value::Integer(_) | Value::Bool(_) => found.push(value),
        _ => {}
    }
}

#[test]
fn a_machine_is_restored_to_the_byte() {
    for transport in [
        VirtioTransport::Pci,
        VirtioTransport::Transitional,
        VirtioTransport::Mmio,
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = saved(folder.path(), transport);
        let mut again = restored(&file).unwrap_or_else(|error| panic!("{error}"));
        let second = folder.path().join("second");
        save(&mut again.machine, &again.parts, &second).expect("the folder is writable");
        assert!(fs::read(&file).expect("a file") == fs::read(&second).expect("a file"));
    }
}

#[test]
fn disks_that_changed_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = saved(folder.path(), VirtioTransport::Pci);
    let disk = folder.path().join("disk");
    let change = |size: u64, seconds: u64| {
        let disk = File::options().write(true).open(&disk).expect("the disk");
        disk.set_len(size).expect("space");
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        disk.set_modified(time).expect("it is ours");
    };
    let refused = |file: &Path| restored(file).err().expect("it is refused");
    change(8192, 1);
    assert!(refused(&file).contains("had 4096 bytes when the machine was saved, and has 8192 now"));
    change(4096, 1);
    assert!(refused(&file).contains("was changed after the machine was saved"));
    let accepted = open(&file)
        .expect("it is whole")
        .restore(consoles(), ChangedDisks::Accept);
    assert!(accepted.is_ok());
    drop(accepted);
    fs::remove_file(&disk).expect("it is there");
    assert!(refused(&file).contains("cannot be opened"));
}

#[test]
fn a_file_that_is_cut_short_anywhere_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = saved(folder.path(), VirtioTransport::Pci);
    let bytes = fs::read(&file).expect("it was saved");
    let places = (0..64).chain((64..bytes.len()).step_by(1 + bytes.len() / 64));
    for length in places {
        fs::write(&file, &bytes[..length]).expect("the folder is writable");
        assert!(restored(&file).is_err(), "{length} bytes");
        // Also if whoever cut it summed it up again.
        fs::write(&file, summed(bytes[..length].to_vec())).expect("the folder is writable");
        assert!(restored(&file).is_err(), "{length} bytes, summed");
    }
}

/// A saved machine with each transport, and the folder that it is in with its disk.
static SAVED: LazyLock<[(TempDir, Vec<u8>); 2]> = LazyLock::new(|| {
    [VirtioTransport::Mmio, VirtioTransport::Pci].map(|transport| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = saved(folder.path(), transport);
        let bytes = fs::read(file).expect("it was saved");
        (folder, bytes)
    })
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_state_harms_the_host(
        edits in prop::collection::vec((any::<prop::sample::Index>(), hostile_number()), 1..6),
        pci: bool,
    ) {
        let (folder, bytes) = &SAVED[usize::from(pci)];
        let file = folder.path().join("changed");
        let (mut state, rest) = state(bytes);
        let mut found = Vec::new();
        leaves(&mut state, &mut found);
        for (place, number) in edits {
            let place = place.index(found.len());
            *found[place] = match &found[place] {
                Value::Bool(value) => Value::Bool(!*value),
                _ => Value::Integer(number.into()),
            };
        }
        fs::write(&file, with_state(bytes, &state, rest)).expect("the folder is writable");
        if let Ok(mut built) = restored(&file) {
            execute(&mut built.machine);
            let second = folder.path().join("second");
            let _ = save(&mut built.machine, &built.parts, &second);
        }
    }
}

/// Numbers around the bounds of whatever they are.
fn hostile_number() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..300_u64,
        (0..64_u32).prop_map(|bit| 1 << bit),
        (0..64_u32).prop_map(|bit| (1 << bit) - 1),
        (0..8_u64).prop_map(|below| u64::MAX - below),
    ]
}

#[test]
fn files_that_are_no_saved_machines_are_told_apart() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("machine");
    let refused = |bytes: &[u8]| {
        std::fs::write(&file, bytes).expect("the folder is writable");
        match open(&file) {
            Ok(_) => panic!("it was opened"),
            Err(error) => error,
        }
    };
    assert!(matches!(refused(b""), SnapshotError::Foreign(_)));
    assert!(matches!(
        refused(b"#!/bin/sh\nexit 1\n"),
        SnapshotError::Foreign(_)
    ));
    assert!(matches!(refused(&MAGIC), SnapshotError::Damaged { .. }));
    let mut bytes = MAGIC.to_vec();
    bytes.extend(9_u32.to_le_bytes());
    assert!(matches!(
        refused(&bytes),
        SnapshotError::Version { version: 9, .. }
    ));
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(u64::MAX.to_le_bytes());
    let what = |error| match error {
        SnapshotError::Damaged { what, .. } => what,
        error => panic!("{error}"),
    };
    assert_eq!(what(refused(&bytes)), "its checksum is wrong");
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    assert_eq!(what(refused(&bytes)), "its state is too long");
    let length = MAGIC.len() + 4;
    bytes.truncate(length);
    bytes.extend(4_u64.to_le_bytes());
    bytes.extend(b"junk");
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    assert_eq!(what(refused(&bytes)), "its state makes no sense");
    assert!(matches!(
        open(&folder.path().join("none")),
        Err(SnapshotError::File { .. })
    ));
}
