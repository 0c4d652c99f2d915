//! EFI: system table, configuration tables, memory map and runtime services.
//!
//! EFI 1.10. Tables hold physical addresses until the kernel calls SetVirtualAddressMap; then the runtime services
//! table and the function descriptors of its services hold virtual ones.

use super::gate::{Entry, RUNTIME_SERVICES};
use super::{layout, sal};

/// A status with the error bit.
pub const fn error(code: u64) -> u64 {
    1 << 63 | code
}
/// An argument is wrong.
pub const INVALID_PARAMETER: u64 = error(2);
/// The service is not there.
pub const UNSUPPORTED: u64 = error(3);
/// The caller's buffer is too small.
pub const BUFFER_TOO_SMALL: u64 = error(5);
/// There is no room left.
pub const OUT_OF_RESOURCES: u64 = error(9);
/// A buffer has a wrong size.
pub const BAD_BUFFER_SIZE: u64 = error(4);
/// What was waited for is not there yet.
pub const NOT_READY: u64 = error(6);
/// The device does not work.
pub const DEVICE_ERROR: u64 = error(7);
/// The medium cannot be written to.
pub const WRITE_PROTECTED: u64 = error(8);
/// An image cannot be loaded.
pub const LOAD_ERROR: u64 = error(1);
/// A file system makes no sense.
pub const VOLUME_CORRUPTED: u64 = error(10);
/// There is no room left on a volume.
pub const VOLUME_FULL: u64 = error(11);
/// The medium has been changed.
pub const MEDIA_CHANGED: u64 = error(13);
/// There is no such variable, file or protocol.
pub const NOT_FOUND: u64 = error(14);
/// It is not allowed.
pub const ACCESS_DENIED: u64 = error(15);
/// It has been started already, or opened by the same.
pub const ALREADY_STARTED: u64 = error(20);
/// It was ended.
pub const ABORTED: u64 = error(21);

/// What a status is called, for messages.
pub fn status_name(status: u64) -> &'static str {
    match status {
        0 => "success",
        LOAD_ERROR => "load error",
        INVALID_PARAMETER => "invalid parameter",
        UNSUPPORTED => "unsupported",
        BAD_BUFFER_SIZE => "bad buffer size",
        BUFFER_TOO_SMALL => "buffer too small",
        NOT_READY => "not ready",
        DEVICE_ERROR => "device error",
        WRITE_PROTECTED => "write protected",
        OUT_OF_RESOURCES => "out of resources",
        VOLUME_CORRUPTED => "volume corrupted",
        VOLUME_FULL => "volume full",
        MEDIA_CHANGED => "media changed",
        NOT_FOUND => "not found",
        ACCESS_DENIED => "access denied",
        ALREADY_STARTED => "already started",
        ABORTED => "aborted",
        _ => "an error of its own",
    }
}

/// The places of the runtime services in their table.
pub mod service {
    /// The date and time.
    pub const GET_TIME: u8 = 0;
    /// Sets it.
    pub const SET_TIME: u8 = 1;
    /// From now on the services are called in virtual mode.
    pub const SET_VIRTUAL_ADDRESS_MAP: u8 = 4;
    /// The contents of a variable.
    pub const GET_VARIABLE: u8 = 6;
    /// The names of variables, one after the other.
    pub const GET_NEXT_VARIABLE_NAME: u8 = 7;
    /// Makes, changes or removes a variable.
    pub const SET_VARIABLE: u8 = 8;
    /// A counter that no reset sets back.
    pub const GET_NEXT_HIGH_MONOTONIC_COUNT: u8 = 9;
    /// Reset or power off.
    pub const RESET_SYSTEM: u8 = 10;
}

/// The kind of reset that switches off.
pub const RESET_SHUTDOWN: u64 = 2;

/// A GUID as memory holds it.
pub const fn guid(first: u32, second: u16, third: u16, rest: [u8; 8]) -> [u8; 16] {
    let (a, b, c) = (first.to_le_bytes(), second.to_le_bytes(), third.to_le_bytes());
    [
        a[0], a[1], a[2], a[3], b[0], b[1], c[0], c[1], rest[0], rest[1], rest[2], rest[3], rest[4], rest[5],
        rest[6], rest[7],
    ]
}

const ACPI_20_GUID: [u8; 16] = guid(
    0x8868_e871,
    0xe4f1,
    0x11d3,
    [0xbc, 0x22, 0, 0x80, 0xc7, 0x3c, 0x88, 0x81],
);
const HCDP_GUID: [u8; 16] = guid(
    0xf951_938d,
    0x620b,
    0x42ef,
    [0x82, 0x79, 0xa8, 0x4b, 0x79, 0x61, 0x78, 0x98],
);

/// Types of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum MemoryType {
    /// An application's code.
    LoaderCode = 1,
    /// What the loader brought: the boot parameters; an application's data.
    LoaderData = 2,
    /// The code of boot services, and of their drivers.
    BootServicesCode = 3,
    /// Their data.
    BootServicesData = 4,
    /// Code that stays.
    RuntimeServicesCode = 5,
    /// Data that stay.
    RuntimeServicesData = 6,
    /// Free.
    Conventional = 7,
    /// ACPI tables.
    AcpiReclaim = 9,
    /// Registers of devices that the firmware uses.
    MappedPorts = 12,
    /// PAL's code.
    PalCode = 13,
}

/// Attributes of memory.
pub mod attribute {
    /// May be mapped uncacheable.
    pub const UNCACHEABLE: u64 = 1 << 0;
    /// May be mapped write-back.
    pub const WRITE_BACK: u64 = 1 << 3;
    /// Runtime services need it mapped.
    pub const RUNTIME: u64 = 1 << 63;
}

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Bytes of a memory descriptor, and its version.
pub const DESCRIPTOR_BYTES: u64 = 48;
/// The version of memory descriptors.
pub const DESCRIPTOR_VERSION: u32 = 1;

/// Memory of one type, in whole pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its first address.
    pub start: u64,
    /// The address behind it.
    pub end: u64,
    /// A [`MemoryType`], or another that an application has given.
    pub kind: u32,
    /// See [`attribute`].
    pub attributes: u64,
}

impl Region {
    /// Its descriptor in a memory map.
    pub fn descriptor(&self) -> [u8; DESCRIPTOR_BYTES as usize] {
        let pages = (self.end - self.start) / PAGE;
        let fields = [u64::from(self.kind), self.start, 0, pages, self.attributes, 0];
        let mut bytes = [0; DESCRIPTOR_BYTES as usize];
        bytes.copy_from_slice(fields.map(u64::to_le_bytes).as_flattened());
        bytes
    }
}

/// The memory map of a machine with this RAM (first address and size of each range), as descriptors.
pub fn memory_map(ram: &[(u64, u64)]) -> Vec<u8> {
    regions(ram).iter().flat_map(Region::descriptor).collect()
}

/// The memory of a machine with this RAM, in ascending order, with its boot parameters.
pub fn regions(ram: &[(u64, u64)]) -> Vec<Region> {
    use MemoryType::*;
    use attribute::{RUNTIME, UNCACHEABLE, WRITE_BACK};
    let mut map = Vec::new();
    let mut add = |kind: MemoryType, start: u64, end: u64, attributes: u64| {
        let kind = kind as u32;
        map.push(Region {
            start,
            end,
            kind,
            attributes,
        });
    };
    let (_, low) = ram[0];
    add(Conventional, 0, layout::FIRMWARE, WRITE_BACK);
    add(
        RuntimeServicesCode,
        layout::RUNTIME_CODE,
        layout::PAL_CODE,
        WRITE_BACK | RUNTIME,
    );
    add(
        PalCode,
        layout::PAL_CODE,
        layout::RUNTIME_DATA,
        WRITE_BACK | RUNTIME,
    );
    add(
        RuntimeServicesData,
        layout::RUNTIME_DATA,
        layout::ACPI_TABLES,
        WRITE_BACK | RUNTIME,
    );
    add(AcpiReclaim, layout::ACPI_TABLES, layout::BOOT_DATA, WRITE_BACK);
    add(LoaderData, layout::BOOT_DATA, layout::STACKS, WRITE_BACK);
    add(
        RuntimeServicesData,
        layout::STACKS,
        layout::FIRMWARE_END,
        WRITE_BACK | RUNTIME,
    );
    add(Conventional, layout::FIRMWARE_END, low, WRITE_BACK);
    for &(start, size) in &ram[1..] {
        add(Conventional, start, start + size, WRITE_BACK);
    }
    add(
        MappedPorts,
        layout::PORTS,
        layout::PORTS + layout::PORTS_SIZE,
        UNCACHEABLE | RUNTIME,
    );
    map
}

/// The tables of [`layout::RUNTIME_DATA`] and where they are.
pub struct Tables {
    /// Their bytes.
    pub bytes: Vec<u8>,
    /// The physical address of the system table.
    pub system_table: u64,
    /// The physical address of the runtime services table.
    pub runtime_services: u64,
}

const SIGNATURE_SYSTEM: &[u8; 8] = b"IBI SYST";
const SIGNATURE_RUNTIME: &[u8; 8] = b"RUNTSERV";
const REVISION: u32 = 1 << 16 | 10;
/// Bytes of a table's header; in the runtime services table the services follow it.
pub const HEADER_BYTES: u64 = 24;

/// Builds the tables. `stub` says where the code of an entry is, `descriptor` where its function descriptor is.
pub fn tables(stub: impl Fn(Entry) -> u64, descriptor: impl Fn(Entry) -> u64) -> Tables {
    let start = layout::RUNTIME_DATA;
    let mut bytes: Vec<u8> = Vec::new();
    let mut place = |table: &[u8]| {
        bytes.resize(bytes.len().next_multiple_of(64), 0);
        let at = start + bytes.len() as u64;
        bytes.extend_from_slice(table);
        at
    };
    let vendor: Vec<u8> = "Sidestep\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let vendor = place(&vendor);
    let console = place(&console_table());
    let sal = place(&sal::system_table(stub(Entry::Pal), stub(Entry::Sal), 0));
    let mut configuration = Vec::new();
    let found = [
        (ACPI_20_GUID, layout::ACPI_TABLES),
        (sal::TABLE_GUID, sal),
        (HCDP_GUID, console),
    ];
    for (guid, address) in found {
        configuration.extend_from_slice(&guid);
        configuration.extend_from_slice(&address.to_le_bytes());
    }
    let configuration = place(&configuration);
    let services: Vec<u64> = (0..RUNTIME_SERVICES)
        .map(|service| descriptor(Entry::RuntimeService(service)))
        .collect();
    let runtime_services = place(&table(SIGNATURE_RUNTIME, &services));
    let console_handles = [0; 6];
    let mut fields = vec![vendor, 1];
    fields.extend_from_slice(&console_handles);
    fields.extend_from_slice(&[runtime_services, 0, found.len() as u64, configuration]);
    let system_table = place(&table(SIGNATURE_SYSTEM, &fields));
    Tables {
        bytes,
        system_table,
        runtime_services,
    }
}

/// A table: its header with the checksum, then its fields.
pub(super) fn table(signature: &[u8; 8], fields: &[u64]) -> Vec<u8> {
    let mut table = signature.to_vec();
    let size = HEADER_BYTES as u32 + fields.len() as u32 * 8;
    for value in [REVISION, size, 0, 0] {
        table.extend_from_slice(&value.to_le_bytes());
    }
    for field in fields {
        table.extend_from_slice(&field.to_le_bytes());
    }
    let sum = crc32fast::hash(&table);
    table[16..20].copy_from_slice(&sum.to_le_bytes());
    table
}

/// The table that names the primary console (HCDP, also called PCDP): the serial port, 115200 8N1.
fn console_table() -> Vec<u8> {
    const PRIMARY: u8 = 1 << 2;
    let mut port = vec![0, 8, 1, 1, 0, 0, 0, 0]; // a console UART; 8 bits, no parity, one stop bit; no PCI device
    port.extend_from_slice(&crate::device::serial::BAUD_MAX.to_le_bytes());
    port.extend_from_slice(&[0, 8, 0, 0]); // in memory, 8 bits wide
    port.extend_from_slice(&layout::SERIAL.to_le_bytes());
    port.extend_from_slice(&[0; 4]);
    port.extend_from_slice(&layout::SERIAL_INTERRUPT.to_le_bytes());
    port.extend_from_slice(&((crate::device::serial::BAUD_MAX * 16) as u32).to_le_bytes());
    port.extend_from_slice(&[0, PRIMARY, 0, 0, 0, 0, 0, 0]);
    let mut table = b"HCDP".to_vec();
    table.extend_from_slice(&(40 + port.len() as u32).to_le_bytes());
    table.extend_from_slice(&[3, 0]);
    table.extend_from_slice(b"SIDSTPSIDESTEP");
    for value in [1, u32::from_le_bytes(*b"SDST"), 1, 1] {
        table.extend_from_slice(&value.to_le_bytes());
    }
    table.extend_from_slice(&port);
    table[9] = sal::checksum(&table);
    table
}

/// Bytes of a time.
pub const TIME_BYTES: usize = 16;

/// Seconds since 1970 of a time as GetTime has it, the reverse of [`time`]; `None` if it is none.
pub fn seconds(time: &[u8; TIME_BYTES]) -> Option<u64> {
    let year = u64::from(u16::from_le_bytes([time[0], time[1]]));
    let [month, day, hour, minute, second] = [2, 3, 4, 5, 6].map(|index| u64::from(time[index]));
    if !(1998..=2099).contains(&year) || !(1..=12).contains(&month) || hour > 23 || minute > 59 || second > 59
    {
        return None;
    }
    // The day whose date this is, among those that come into question.
    let first = (year - 1970) * 365;
    let of_year = (month - 1) * 28 + day;
    let days = (first + of_year.checked_sub(1)?..).take(62);
    let days = days.into_iter().find(|&days| date(days) == (year, month, day))?;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

/// The time of GetTime: year to nanosecond, time zone unspecified.
pub fn time(seconds: u64, nanoseconds: u32) -> Vec<u8> {
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let mut time = (year as u16).to_le_bytes().to_vec();
    time.extend_from_slice(&[
        month as u8,
        day as u8,
        (of_day / 3600) as u8,
        (of_day / 60 % 60) as u8,
        (of_day % 60) as u8,
        0,
    ]);
    time.extend_from_slice(&nanoseconds.to_le_bytes());
    time.extend_from_slice(&0x07ffu16.to_le_bytes());
    time.extend_from_slice(&[0, 0]);
    time
}

/// Year, month and day, so many days after 1 January 1970, in the Gregorian calendar.
fn date(days: u64) -> (u64, u64, u64) {
    const ERA: u64 = 146_097;
    // Years begin in March here, so that the leap day is the last.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / ERA, shifted % ERA);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year + carry, month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::firmware;

    fn words(bytes: &[u8]) -> Vec<u64> {
        let word = |part: &[u8]| u64::from_le_bytes(part.try_into().expect("eight bytes"));
        bytes.chunks_exact(8).map(word).collect()
    }

    /// Type, first address, address behind and attributes of each descriptor.
    fn descriptors(map: &[u8]) -> Vec<(u64, u64, u64, u64)> {
        assert_eq!(map.len() as u64 % DESCRIPTOR_BYTES, 0);
        let of = |fields: &[u64]| (fields[0], fields[1], fields[1] + fields[3] * PAGE, fields[4]);
        words(map)
            .chunks_exact(DESCRIPTOR_BYTES as usize / 8)
            .map(of)
            .collect()
    }

    proptest! {
        #[test]
        fn the_memory_map_covers_all_memory_once(megabytes in 64u64..20_000) {
            let ram: Vec<_> = layout::memory(megabytes << 20).iter().map(|range| (range.start.0, range.size)).collect();
            let map = descriptors(&memory_map(&ram));
            for pair in map.windows(2) {
                prop_assert!(pair[0].1 < pair[0].2 && pair[0].2 <= pair[1].1, "ascending, none twice: {pair:x?}");
            }
            let is_memory = |entry: &&(u64, u64, u64, u64)| entry.3 & attribute::WRITE_BACK != 0;
            let covered: u64 = map.iter().filter(is_memory).map(|entry| entry.2 - entry.1).sum();
            prop_assert_eq!(covered, ram.iter().map(|range| range.1).sum::<u64>());
            for (kind, start, ..) in map {
                let is_firmware = (layout::FIRMWARE..layout::FIRMWARE_END).contains(&start);
                prop_assert!(!(is_firmware && kind == MemoryType::Conventional as u64), "kernels leave firmware alone");
            }
        }

        #[test]
        fn any_second_is_a_date(seconds in 0u64..253_402_300_800) {
            let time = time(seconds, 5);
            let year = u16::from_le_bytes([time[0], time[1]]);
            prop_assert!((1970..=9999).contains(&year));
            prop_assert!((1..=12).contains(&time[2]) && (1..=31).contains(&time[3]));
            prop_assert!(time[4] < 24 && time[5] < 60 && time[6] < 60);
        }
    }

    #[test]
    fn times_are_read_as_they_are_written() {
        for seconds_since in (883_612_800..4_102_444_800).step_by(86_399) {
            let written = time(seconds_since, 0).try_into().expect("sixteen bytes");
            assert_eq!(seconds(&written), Some(seconds_since));
        }
        let written: [u8; TIME_BYTES] = time(951_782_400, 0).try_into().expect("sixteen bytes");
        assert_eq!((written[2], written[3]), (2, 29));
        for (at, value) in [
            (0, 0),
            (2, 0),
            (2, 13),
            (3, 0),
            (3, 30),
            (4, 24),
            (5, 60),
            (6, 60),
        ] {
            let mut wrong = written;
            wrong[at] = value;
            assert_eq!(seconds(&wrong), None, "{at} {value}");
        }
    }

    #[test]
    fn days_around_leap_days_are_right() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(11_016), (2000, 2, 29));
        assert_eq!(date(11_017), (2000, 3, 1));
        assert_eq!(date(20_454), (2026, 1, 1));
        assert_eq!(date(47_540), (2100, 2, 28));
        assert_eq!(date(47_541), (2100, 3, 1), "no leap year");
    }

    #[test]
    fn tables_have_their_checksums_and_name_each_other() {
        let tables = tables(firmware::stub, firmware::descriptor);
        assert!(tables.bytes.len() as u64 <= layout::ACPI_TABLES - layout::RUNTIME_DATA);
        let at = |address: u64| &tables.bytes[(address - layout::RUNTIME_DATA) as usize..];
        for (address, signature) in [
            (tables.system_table, SIGNATURE_SYSTEM),
            (tables.runtime_services, SIGNATURE_RUNTIME),
        ] {
            let table = at(address);
            assert_eq!(&table[..8], signature);
            let size = u32::from_le_bytes(table[12..16].try_into().expect("four bytes")) as usize;
            let mut bytes = table[..size].to_vec();
            let sum = bytes[16..20].to_vec();
            bytes[16..20].fill(0);
            assert_eq!(sum, crc32fast::hash(&bytes).to_le_bytes());
        }
        let system = words(&at(tables.system_table)[HEADER_BYTES as usize..][..96]);
        let (services, count, configuration) = (system[8], system[10], system[11]);
        assert_eq!(services, tables.runtime_services);
        let found: Vec<&[u8]> = at(configuration)[..count as usize * 24]
            .chunks_exact(24)
            .collect();
        for (guid, signature) in [
            (ACPI_20_GUID, None),
            (sal::TABLE_GUID, Some(b"SST_")),
            (HCDP_GUID, Some(b"HCDP")),
        ] {
            let entry = found.iter().find(|entry| entry[..16] == guid).expect("an entry");
            let address = words(&entry[16..])[0];
            match signature {
                None => assert_eq!(address, layout::ACPI_TABLES),
                Some(signature) => {
                    let table = at(address);
                    assert_eq!(&table[..4], signature);
                    let size = u32::from_le_bytes(table[4..8].try_into().expect("four bytes"));
                    assert_eq!(sal::checksum(&table[..size as usize]), 0);
                }
            }
        }
        assert_eq!(
            crc32fast::hash(b"123456789"),
            0xcbf4_3926,
            "the check value of CRC-32"
        );
    }
}
