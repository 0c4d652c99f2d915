//! File systems that this module and others make, and such as nobody would.

use std::cell::RefCell;
use std::process::Command;

use proptest::prelude::*;

use super::super::partitions::Source;
use super::*;

/// A volume in memory.
pub(crate) struct Bytes {
    bytes: RefCell<Vec<u8>>,
    is_read_only: bool,
}

impl Source for Bytes {
    fn size(&self) -> u64 {
        self.bytes.borrow().len() as u64
    }

    fn read(&self, start: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.bytes.borrow()[..].read(start, bytes)
    }
}

impl Volume for Bytes {
    fn write(&self, start: u64, bytes: &[u8]) -> io::Result<()> {
        let start = start as usize;
        let mut own = self.bytes.borrow_mut();
        let place = own.get_mut(start..start + bytes.len());
        place.ok_or(io::ErrorKind::UnexpectedEof)?.copy_from_slice(bytes);
        Ok(())
    }

    fn is_read_only(&self) -> bool {
        self.is_read_only
    }
}

/// An empty file system of so many sectors, with one in each cluster: the number decides the width of its table.
pub(crate) fn formatted(sectors: u32) -> Vec<u8> {
    let is_32 = sectors > 66_000;
    let table_sectors = (sectors * 4).div_ceil(512);
    let mut bytes = vec![0; sectors as usize * 512];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(11, &512_u16.to_le_bytes());
    put(13, &[1]);
    put(14, &32_u16.to_le_bytes());
    put(16, &[2]);
    put(32, &sectors.to_le_bytes());
    let label = if is_32 { 71 } else { 43 };
    put(label, b"NO NAME    ");
    put(label - 5, &[0x29]);
    put(510, &[0x55, 0xaa]);
    put(21, &[0xf8]);
    // What the first two entries have instead of clusters, and the end of the root directory's chain.
    let reserved: &[u8] = match sectors {
        ..4_000 => &[0xf8, 0xff, 0xff],
        _ if is_32 => &[
            0xf8, 0xff, 0xff, 0x0f, 0xff, 0xff, 0xff, 0x0f, 0xff, 0xff, 0xff, 0x0f,
        ],
        _ => &[0xf8, 0xff, 0xff, 0xff],
    };
    for table in [32, 32 + table_sectors] {
        put(table as usize * 512, reserved);
    }
    if is_32 {
        put(36, &table_sectors.to_le_bytes());
        put(44, &2_u32.to_le_bytes());
        put(48, &1_u16.to_le_bytes());
        put(50, &6_u16.to_le_bytes());
        for (at, signature) in [(0, 0x4161_5252_u32), (484, 0x6141_7272), (508, 0xaa55_0000)] {
            put(512 + at, &signature.to_le_bytes());
        }
    } else {
        put(17, &512_u16.to_le_bytes());
        put(22, &(table_sectors as u16).to_le_bytes());
    }
    if is_32 {
        bytes.copy_within(..1024, 6 * 512);
    }
    bytes
}

/// The same with these files in it, by their paths; what is before the last `\` is made as folders.
pub(crate) fn with_files(sectors: u32, files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut fat = open(formatted(sectors)).expect("a file system");
    for (path, contents) in files {
        let mut folder = fat.root();
        let (above, name) = path.rsplit_once('\\').unwrap_or(("", path));
        for part in above.split('\\').filter(|part| !part.is_empty()) {
            folder = match fat.find(&folder, part) {
                Ok(found) => found,
                Err(_) => fat
                    .create(&folder, part, Attributes(Attributes::DIRECTORY), (33, 0))
                    .expect("a folder"),
            };
        }
        let mut file = fat.create(&folder, name, Attributes(0), (33, 0)).expect("a file");
        fat.write(&mut file, &mut Cursor::default(), 0, contents)
            .expect("written");
    }
    fat.volume.bytes.into_inner()
}

pub(crate) fn open(bytes: Vec<u8>) -> Result<Fat<Bytes>, FatError> {
    Fat::open(Bytes {
        bytes: RefCell::new(bytes),
        is_read_only: false,
    })
}

fn contents(fat: &mut Fat<Bytes>, path: &str) -> Result<Vec<u8>, FatError> {
    let file = fat.find(&fat.root(), path)?;
    let mut bytes = vec![0; file.size as usize];
    let count = fat.read(&file, &mut Cursor::default(), 0, &mut bytes)?;
    bytes.truncate(count);
    Ok(bytes)
}

#[test]
fn files_are_read_as_they_were_written_with_each_width_of_table() {
    for sectors in [2_000, 20_000, 80_000] {
        let large: Vec<u8> = (0..100_000_u32).map(|index| (index * 7 / 3) as u8).collect();
        let files: [(&str, &[u8]); 4] = [
            ("\\EFI\\BOOT\\BOOTIA64.EFI", &large),
            ("a file with a long name and an \u{e4}.text", b"short"),
            ("a file with a long name and another.text", b"second"),
            ("EMPTY", b""),
        ];
        let mut fat = open(with_files(sectors, &files)).expect("a file system");
        assert_eq!(fat.label(), "NO NAME");
        for (path, expected) in files {
            let found = contents(&mut fat, &path.to_lowercase()).expect("it is there");
            assert_eq!(found, expected, "{path}");
        }
        let short = contents(&mut fat, "AFILEW~2.TEX").expect("it has a short name too");
        assert_eq!(short, b"second");
        assert!(matches!(contents(&mut fat, "nothing"), Err(FatError::NotFound)));
        let boot = fat.find(&fat.root(), "EFI\\BOOT").expect("a folder");
        assert!(fat.find(&boot, "..\\..\\EMPTY").is_ok());
    }
}

#[test]
fn what_is_removed_is_free_again_and_folders_are_removed_when_empty() {
    let mut fat =
        open(with_files(2_000, &[("F\\one", &[1; 5000]), ("F\\two", b"2")])).expect("a file system");
    let before = fat.free().expect("counted");
    let folder = fat.find(&fat.root(), "F").expect("a folder");
    assert!(matches!(fat.remove(&folder), Err(FatError::NotEmpty)));
    for name in ["one", "two"] {
        let file = fat.lookup(&folder, name).expect("a file");
        fat.remove(&file).expect("removed");
    }
    fat.remove(&folder).expect("removed");
    assert_eq!(fat.free().expect("counted"), before + (10 + 1 + 1) * 512);
    assert_eq!(fat.list(&fat.root()).expect("a folder"), []);
}

#[test]
fn a_volume_becomes_full_and_a_read_only_one_is_not_written() {
    let mut fat = open(with_files(2_000, &[("file", b"x")])).expect("a file system");
    let mut file = fat.find(&fat.root(), "file").expect("a file");
    let size = fat.size();
    let failed = fat.resize(&mut file, size + 1);
    assert!(matches!(failed, Err(FatError::Full)));
    assert_eq!(contents(&mut fat, "file").expect("it is there"), b"x");
    fat.volume.is_read_only = true;
    let failed = fat.write(&mut file, &mut Cursor::default(), 0, b"y");
    assert!(matches!(failed, Err(FatError::ReadOnly)));
    let root = fat.root();
    for name in ["a/b", "", ".", "a:", "x ", &"n".repeat(256)] {
        fat.volume.is_read_only = false;
        let failed = fat.create(&root, name, Attributes(0), (33, 0));
        assert!(matches!(failed, Err(FatError::Name)), "{name}");
    }
}

#[test]
fn a_chain_that_goes_round_is_an_error() {
    let mut bytes = with_files(80_000, &[("file", &[1; 2000])]);
    let fat = open(bytes.clone()).expect("a file system");
    let first = open(bytes.clone())
        .and_then(|mut fat| fat.find(&fat.root(), "file"))
        .expect("a file")
        .first;
    drop(fat);
    let at = 32 * 512 + (first as usize + 3) * 4;
    bytes[at..at + 4].copy_from_slice(&first.to_le_bytes());
    let mut fat = open(bytes.clone()).expect("a file system");
    let mut file = fat.find(&fat.root(), "file").expect("a file");
    assert!(matches!(fat.resize(&mut file, 10_000), Err(FatError::Corrupt(_))));
    // The root too.
    bytes[32 * 512 + 8..32 * 512 + 12].copy_from_slice(&2_u32.to_le_bytes());
    let mut fat = open(bytes).expect("a file system");
    assert!(matches!(fat.list(&fat.root()), Err(FatError::Corrupt(_))));
}

#[test]
fn another_program_finds_what_was_written_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("fat.img");
    for sectors in [2_000, 20_000, 80_000] {
        let mut fat = open(with_files(
            sectors,
            &[("F\\a long name.text", &[1; 5000]), ("two", b"2")],
        ))
        .expect("fat");
        let mut two = fat.find(&fat.root(), "two").expect("a file");
        fat.resize(&mut two, 3000).expect("longer");
        fat.resize(&mut two, 700).expect("shorter");
        std::fs::write(&image, fat.volume.bytes.into_inner()).expect("written");
        let checked = Command::new("fsck.fat").arg("-n").arg(&image).output();
        let Ok(checked) = checked else {
            return tests_need::leave_out("there is no fsck.fat");
        };
        let said = String::from_utf8_lossy(&checked.stdout);
        assert!(checked.status.success(), "{sectors}: {said}");
    }
}

/// What somebody does with a file.
#[derive(Clone, Debug)]
enum Act {
    Write(usize, u16, Vec<u8>),
    Resize(usize, u16),
    Remove(usize),
}

fn act() -> impl Strategy<Value = Act> {
    let file = 0usize..4;
    let bytes = prop::collection::vec(any::<u8>(), 0..1500);
    prop_oneof![
        (file.clone(), 0u16..4000, bytes).prop_map(|(file, at, bytes)| Act::Write(file, at, bytes)),
        (file.clone(), 0u16..6000).prop_map(|(file, size)| Act::Resize(file, size)),
        file.prop_map(Act::Remove),
    ]
}

proptest! {
    #[test]
    fn files_are_what_was_done_with_them(acts in prop::collection::vec(act(), 1..24)) {
        const NAMES: [&str; 4] = ["one", "a second file", "a third file", "FOUR.TXT"];
        let mut fat = open(formatted(2_000)).expect("a file system");
        let mut expected: [Option<Vec<u8>>; 4] = Default::default();
        let root = fat.root();
        for act in acts {
            let (Act::Write(index, ..) | Act::Resize(index, _) | Act::Remove(index)) = act;
            let found = fat.lookup(&root, NAMES[index]);
            prop_assert_eq!(found.is_ok(), expected[index].is_some());
            if let Act::Remove(_) = act {
                if let Ok(found) = found {
                    fat.remove(&found).expect("removed");
                }
                expected[index] = None;
                continue;
            }
            let mut file = match found {
                Ok(found) => found,
                Err(_) => fat.create(&root, NAMES[index], Attributes(0), (33, 0)).expect("made"),
            };
            let contents = expected[index].get_or_insert_default();
            match act {
                Act::Write(_, at, bytes) => {
                    let end = usize::from(at) + bytes.len();
                    contents.resize(contents.len().max(end), 0);
                    contents[usize::from(at)..end].copy_from_slice(&bytes);
                    fat.write(&mut file, &mut Cursor::default(), u64::from(at), &bytes).expect("written");
                }
                Act::Resize(_, size) => {
                    contents.resize(usize::from(size), 0);
                    fat.resize(&mut file, u64::from(size)).expect("resized");
                }
                Act::Remove(_) => {}
            }
        }
        for (name, expected) in NAMES.iter().zip(expected) {
            prop_assert_eq!(contents(&mut fat, name).ok(), expected);
        }
    }

    #[test]
    fn a_damaged_file_system_is_an_error_or_what_is_left_of_it(
        damage in prop::collection::vec((0usize..60_000, any::<u8>()), 1..40),
        header in prop::collection::vec((11usize..90, any::<u8>()), 0..4),
    ) {
        let mut bytes = with_files(2_000, &[("F\\a long name.text", &[1; 5000]), ("two", b"2")]);
        for (at, value) in damage.into_iter().chain(header) {
            bytes[at] = value;
        }
        if let Ok(mut fat) = open(bytes) {
            let root = fat.root();
            let mut entries = fat.list(&root).unwrap_or_default();
            for entry in entries.clone() {
                entries.extend(fat.list(&entry).unwrap_or_default().into_iter().take(9));
            }
            for mut entry in entries.into_iter().take(40) {
                let _ = fat.read(&entry, &mut Cursor::default(), 0, &mut [0; 3000]);
                let _ = fat.write(&mut entry, &mut Cursor::default(), 100, &[1; 2000]);
                let _ = fat.remove(&entry);
            }
            let _ = fat.create(&root, "a new file", Attributes(0), (33, 0));
            let _ = fat.free();
        }
    }
}
