//! Any bytes as what firmware boots from: a disk with partitions, a CD-ROM, a FAT file system, an application.

#![no_main]

use std::cell::RefCell;
use std::io;

use libfuzzer_sys::fuzz_target;
use sidestep_machine::firmware::boot::pe::Image;
use sidestep_machine::storage::fat::{Attributes, Cursor, Fat, Volume};
use sidestep_machine::storage::partitions::{Source, of_cdrom, of_disk};

/// The least volume that a file system of the fuzzer's fits on.
const BYTES: usize = 256 << 10;
const IMAGE_BYTES_MAX: u32 = 1 << 22;

struct Bytes(RefCell<Vec<u8>>);

impl Source for Bytes {
    fn size(&self) -> u64 {
        self.0.borrow().len() as u64
    }

    fn read(&self, start: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.0.borrow()[..].read(start, bytes)
    }
}

impl Volume for Bytes {
    fn write(&self, start: u64, bytes: &[u8]) -> io::Result<()> {
        let mut own = self.0.borrow_mut();
        let place = own.get_mut(start as usize..).and_then(|rest| rest.get_mut(..bytes.len()));
        place.ok_or(io::ErrorKind::UnexpectedEof)?.copy_from_slice(bytes);
        Ok(())
    }

    fn is_read_only(&self) -> bool {
        false
    }
}

fn files(bytes: Vec<u8>) {
    let Ok(mut fat) = Fat::open(Bytes(RefCell::new(bytes))) else {
        return;
    };
    let root = fat.root();
    let mut entries = fat.list(&root).unwrap_or_default();
    entries.truncate(32);
    for entry in entries.clone() {
        entries.extend(fat.list(&entry).unwrap_or_default().into_iter().take(8));
    }
    for mut entry in entries {
        let _ = fat.find(&entry, "..");
        let _ = fat.read(&entry, &mut Cursor::default(), 0, &mut [0; 4096]);
        let _ = fat.write(&mut entry, &mut Cursor::default(), 1000, &[1; 3000]);
        let _ = fat.resize(&mut entry, 10);
        let _ = fat.remove(&entry);
    }
    let _ = fat.create(&root, "a new folder", Attributes(Attributes::DIRECTORY), (33, 0));
    let _ = fat.free();
}

fuzz_target!(|bytes: &[u8]| {
    let mut disk = bytes.to_vec();
    disk.resize(disk.len().max(BYTES) / 512 * 512, 0);
    for partition in of_disk(&disk[..]).into_iter().chain(of_cdrom(&disk[..])) {
        assert!(partition.start + partition.size <= disk.len() as u64);
    }
    if let Ok(image) = Image::parse(bytes)
        && image.size <= IMAGE_BYTES_MAX
        && let Ok(memory) = image.placed(0x10_0000)
    {
        assert_eq!(memory.len(), image.size as usize);
    }
    files(disk);
});
