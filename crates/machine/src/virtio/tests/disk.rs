//! What a disk does with requests, and with files.

use super::*;
use crate::storage::disk::DiskError;

#[test]
fn a_disk_reads_writes_and_flushes() {
    let file = disk_file(8);
    let mut driver = Driver::new(disk(file.path()));
    let data = BUFFERS + 0x1000;
    // Two sectors in three buffers whose bounds are no sectors'.
    let pieces = [
        (data, 100, true),
        (data + 100, 900, true),
        (data + 1000, 24, true),
    ];
    assert_eq!(driver.disk(0, 3, &pieces), (1025, 0));
    assert_eq!(driver.bytes(data, 1024), [[3; 512], [4; 512]].concat());
    driver
        .memory
        .write(PhysicalAddress(data), &[0xaa; 512])
        .expect("RAM");
    assert_eq!(
        driver.disk(1, 7, &[(data, 500, false), (data + 500, 12, false)]),
        (1, 0)
    );
    assert_eq!(
        driver.disk(1 | 1 << 31, 6, &[(data, 512, false)]),
        (1, 0),
        "with a barrier"
    );
    assert_eq!(driver.disk(4, 0, &[]), (1, 0));
    assert_eq!(driver.disk(8, 0, &[(data, 20, true)]), (21, 0));
    assert_eq!(&driver.bytes(data, 9), b"sidestep\0");
    let contents = fs::read(file.path()).expect("the disk");
    assert_eq!(contents[7 * 512..], [0xaa; 512]);
    assert_eq!(contents[6 * 512..7 * 512], [0xaa; 512]);
    assert_eq!(contents[5 * 512..6 * 512], [5; 512]);
    assert_eq!(driver.errors(), 0);
}

#[test]
fn requests_that_a_disk_cannot_serve_fail_alone() {
    let file = disk_file(8);
    let mut driver = Driver::new(disk(file.path()));
    let data = BUFFERS + 0x1000;
    for sector in [8, 7, u64::MAX, u64::MAX / 512] {
        let size = if sector == 7 { 1024 } else { 512 };
        assert_eq!(
            driver.disk(0, sector, &[(data, size, true)]),
            (1, 1),
            "behind the end"
        );
        assert_eq!(
            driver.disk(1, sector, &[(data, size, false)]),
            (1, 1),
            "behind the end"
        );
    }
    assert_eq!(driver.disk(0, 0, &[(data, 511, true)]), (1, 1), "no whole sector");
    assert_eq!(
        driver.disk(8, 0, &[(data, 19, true)]),
        (1, 1),
        "too short for the name"
    );
    assert_eq!(driver.disk(99, 0, &[]), (1, 2), "unknown");
    drop(driver);
    let mut driver = Driver::new(Block::open(file.path(), true).expect("a disk"));
    assert_ne!(driver.load(0x10) & 1 << 5, 0, "said to be read only");
    assert_eq!(driver.disk(1, 0, &[(data, 512, false)]), (1, 1));
    assert_eq!(driver.disk(0, 1, &[(data, 512, true)]), (513, 0));
    assert_eq!(fs::read(file.path()).expect("the disk")[..512], [0; 512]);
}

#[test]
fn what_is_copied_on_write_is_one_machines_own_and_the_file_stays() {
    let file = disk_file(8);
    let before = fs::read(file.path()).expect("the disk");
    let copied = || Block::copy_on_write(file.path(), 2 * SECTOR).expect("a disk");
    let (mut driver, mut other) = (Driver::new(copied()), Driver::new(copied()));
    let data = BUFFERS + 0x1000;
    let write = |driver: &mut Driver, byte: u8, sector: u64, sectors: u64| {
        let bytes = vec![byte; (sectors * SECTOR) as usize];
        driver.memory.write(PhysicalAddress(data), &bytes).expect("RAM");
        driver.disk(1, sector, &[(data, bytes.len() as u32, false)]).1
    };
    let read = |driver: &mut Driver, sector: u64| {
        assert_eq!(driver.disk(0, sector, &[(data, SECTOR as u32, true)]).1, 0);
        driver.value::<u8>(data + SECTOR - 1)
    };
    assert_eq!(write(&mut driver, 9, 2, 1), 0);
    assert_eq!([read(&mut driver, 1), read(&mut driver, 2)], [1, 9]);
    assert_eq!(read(&mut other, 2), 2);
    assert_eq!(write(&mut driver, 8, 3, 2), 1, "three sectors are too many");
    assert_eq!(read(&mut driver, 3), 3, "nothing of it");
    assert_eq!(write(&mut driver, 7, 2, 2), 0);
    assert_eq!([read(&mut driver, 2), read(&mut driver, 3)], [7, 7]);
    assert_eq!(driver.disk(4, 0, &[]), (1, 0), "a flush");
    assert_eq!(fs::read(file.path()).expect("the disk"), before);
}

#[test]
fn files_that_are_no_disks_are_named() {
    let error = |path: &Path| Block::open(path, false).err().expect("no disk");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let missing = error(&folder.path().join("none"));
    assert!(matches!(missing, DiskError::Open { .. }));
    assert!(missing.to_string().contains("none` cannot be opened"));
    assert!(matches!(error(folder.path()), DiskError::NoFile { .. }));
    let odd = folder.path().join("odd");
    for size in [0, 1, 513] {
        fs::write(&odd, vec![0; size]).expect("space");
        assert!(matches!(error(&odd), DiskError::Size { size: found, .. } if found == size as u64));
    }
    let file = disk_file(1);
    let first = disk(file.path());
    assert!(matches!(error(file.path()), DiskError::InUse { .. }));
    drop(first);
    let reader = Block::open(file.path(), true).expect("a disk");
    Block::open(file.path(), true).expect("readers share");
    assert!(matches!(error(file.path()), DiskError::InUse { .. }));
    drop(reader);
    disk(file.path());
}
