//! Simple File System and File: the files of FAT file systems as applications see them (EFI 1.10, chapter 11).

use std::collections::BTreeMap;

use super::super::efi;
use super::guest::{Failure, Guest, Guid};
use super::memory::Memory;
use super::services::Service;
use super::volumes::{Device, Part, REVISION};
use crate::storage::fat::{Attributes, Cursor, Entry, Fat, FatError};

/// The protocol of file systems.
pub const FILE_SYSTEM: Guid = efi::guid(
    0x964e_5b22,
    0x6459,
    0x11d2,
    [0x8e, 0x39, 0, 0xa0, 0xc9, 0x69, 0x72, 0x3b],
);
/// What is asked of a file: what it is.
const FILE_INFO: Guid = efi::guid(
    0x0957_6e92,
    0x6d3f,
    0x11d2,
    [0x8e, 0x39, 0, 0xa0, 0xc9, 0x69, 0x72, 0x3b],
);
/// What its file system is.
const SYSTEM_INFO: Guid = efi::guid(
    0x0957_6e93,
    0x6d3f,
    0x11d2,
    [0x8e, 0x39, 0, 0xa0, 0xc9, 0x69, 0x72, 0x3b],
);
/// What its volume is called.
const LABEL_INFO: Guid = efi::guid(
    0xdb47_d7d3,
    0xfe81,
    0x11d3,
    [0x9a, 0x35, 0, 0x90, 0x27, 0x3f, 0xc1, 0x4d],
);

/// How a file is opened.
mod mode {
    pub const WRITE: u64 = 2;
    pub const CREATE: u64 = 1 << 63;
}

/// The most files that are open.
const OPEN_MAX: usize = 4096;
const NAME_MAX: usize = 1024;
/// The most bytes that are read or written at once.
const PIECE: u64 = 1 << 20;

/// A status that says why something cannot be done with a file.
pub fn status(error: FatError) -> Failure {
    match error {
        FatError::Io(_) => efi::DEVICE_ERROR,
        FatError::Corrupt(_) => efi::VOLUME_CORRUPTED,
        FatError::ReadOnly => efi::WRITE_PROTECTED,
        FatError::Full => efi::VOLUME_FULL,
        FatError::NotFound => efi::NOT_FOUND,
        FatError::Name => efi::INVALID_PARAMETER,
        FatError::NotEmpty => efi::ACCESS_DENIED,
    }
}

struct Open {
    /// The number of its file system.
    system: usize,
    entry: Entry,
    is_writable: bool,
    position: u64,
    cursor: Cursor,
}

/// File systems that are in use and open files.
#[derive(Default)]
pub struct Files {
    systems: Vec<(u64, Fat<Part>)>,
    open: BTreeMap<u64, Open>,
}

impl Files {
    /// Puts the interface of a device's file system into memory, if it has one.
    pub fn install(
        &mut self,
        guest: &mut Guest<'_, '_>,
        memory: &mut Memory,
        device: &mut Device,
        function: impl Fn(Service) -> u64,
    ) -> Result<Option<(Guid, u64)>, Failure> {
        let Some(fat) = device.open_fat() else {
            return Ok(None);
        };
        let interface = [REVISION, function(Service::OpenVolume)];
        let at = memory.place(guest, interface.map(u64::to_le_bytes).as_flattened())?;
        self.systems.push((at, fat));
        device.file_system = Some(at);
        Ok(Some((FILE_SYSTEM, at)))
    }

    /// The file system whose interface is there.
    pub fn system(&mut self, interface: u64) -> Option<&mut Fat<Part>> {
        let found = self.systems.iter_mut().find(|(at, _)| *at == interface);
        found.map(|(_, fat)| fat)
    }

    /// Puts a file's interface into memory.
    fn add(
        &mut self,
        guest: &mut Guest<'_, '_>,
        memory: &mut Memory,
        open: Open,
        function: impl Fn(Service) -> u64,
    ) -> Result<u64, Failure> {
        use Service::*;
        if self.open.len() >= OPEN_MAX {
            return Err(efi::OUT_OF_RESOURCES);
        }
        let services = [
            OpenFile,
            CloseFile,
            DeleteFile,
            ReadFile,
            WriteFile,
            GetPosition,
            SetPosition,
            GetInfo,
            SetInfo,
            FlushFile,
        ];
        let words: Vec<u64> = [REVISION].into_iter().chain(services.map(function)).collect();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let at = memory.place(guest, &bytes)?;
        self.open.insert(at, open);
        Ok(at)
    }

    /// A service of one of both protocols. `seconds` since 1970 is the time.
    pub fn serve(
        &mut self,
        guest: &mut Guest<'_, '_>,
        memory: &mut Memory,
        service: Service,
        seconds: u64,
        function: impl Fn(Service) -> u64,
    ) -> Result<(), Failure> {
        let [this, first, second, third, fourth] = guest.arguments();
        if service == Service::OpenVolume {
            let system = self.systems.iter().position(|(at, _)| *at == this);
            let system = system.ok_or(efi::INVALID_PARAMETER)?;
            let open = Open {
                entry: self.systems[system].1.root(),
                system,
                is_writable: true,
                position: 0,
                cursor: Cursor::default(),
            };
            let at = self.add(guest, memory, open, function)?;
            return guest.set_word(first, at);
        }
        let Files { systems, open } = self;
        let file = open.get_mut(&this).ok_or(efi::INVALID_PARAMETER)?;
        let fat = &mut systems[file.system].1;
        match service {
            Service::OpenFile => {
                let name = String::from_utf16_lossy(&guest.text(second, NAME_MAX)?);
                let opened = opened(fat, file, &name, third, fourth, seconds)?;
                let at = self.add(guest, memory, opened, function)?;
                guest.set_word(first, at)
            }
            Service::CloseFile => {
                open.remove(&this);
                memory.give(this)
            }
            Service::DeleteFile => {
                let removed = match file.is_writable {
                    true => fat.remove(&file.entry),
                    false => Err(FatError::ReadOnly),
                };
                let entry = file.entry.clone();
                open.retain(|at, other| *at != this && !(removed.is_ok() && other.entry.is_same(&entry)));
                memory.give(this)?;
                // The specification's warning that the file is still there.
                const NOT_DELETED: u64 = 2;
                removed.map_err(|_| NOT_DELETED)
            }
            Service::ReadFile if file.entry.attributes.is_directory() => {
                read_folder(guest, fat, file, first, second)
            }
            Service::ReadFile => read(guest, fat, file, first, second),
            Service::WriteFile => {
                if file.entry.attributes.is_directory() {
                    return Err(efi::UNSUPPORTED);
                }
                if !file.is_writable {
                    return Err(efi::ACCESS_DENIED);
                }
                let entry = write(guest, fat, file, first, second, seconds)?;
                let others = open.values_mut().filter(|other| other.entry.is_same(&entry));
                others.for_each(|other| other.entry = entry.clone());
                Ok(())
            }
            Service::GetPosition if file.entry.attributes.is_directory() => Err(efi::UNSUPPORTED),
            Service::GetPosition => guest.set_word(first, file.position),
            Service::SetPosition => {
                file.position = match first {
                    0 => 0,
                    _ if file.entry.attributes.is_directory() => return Err(efi::UNSUPPORTED),
                    u64::MAX => u64::from(file.entry.size),
                    position => position,
                };
                Ok(())
            }
            Service::GetInfo => {
                let info = match guest.guid(first)? {
                    FILE_INFO => file_info(&file.entry),
                    SYSTEM_INFO => system_info(fat).map_err(status)?,
                    LABEL_INFO => text(fat.label()),
                    _ => return Err(efi::UNSUPPORTED),
                };
                guest.answer(second, third, &info)
            }
            Service::SetInfo => {
                if guest.guid(first)? != FILE_INFO {
                    return Err(efi::UNSUPPORTED);
                }
                let entry = set_info(guest, fat, file, (second, third))?;
                let others = open.values_mut().filter(|other| other.entry.is_same(&entry));
                others.for_each(|other| other.entry = entry.clone());
                Ok(())
            }
            // What is written has reached the disk's file.
            Service::FlushFile => Ok(()),
            _ => Err(efi::UNSUPPORTED),
        }
    }
}

/// A file that is opened from another.
fn opened(
    fat: &mut Fat<Part>,
    from: &Open,
    name: &str,
    mode: u64,
    attributes: u64,
    seconds: u64,
) -> Result<Open, Failure> {
    let is_writable = mode & mode::WRITE != 0;
    if is_writable && fat.is_read_only() {
        return Err(efi::WRITE_PROTECTED);
    }
    let folder = match from.entry.attributes.is_directory() {
        true => from.entry.clone(),
        false => fat.root(),
    };
    let entry = match fat.find(&folder, name) {
        Err(FatError::NotFound) if mode & mode::CREATE != 0 && is_writable => {
            let (path, own) = name.rsplit_once(['\\', '/']).unwrap_or(("", name));
            // `\NAME` is in the root, `NAME` is not.
            let path = if name.len() > own.len() && path.is_empty() {
                "\\"
            } else {
                path
            };
            let folder = fat.find(&folder, path).map_err(status)?;
            let kept = Attributes::CHANGEABLE | Attributes::DIRECTORY;
            let attributes = Attributes(attributes as u8 & kept);
            fat.create(&folder, own, attributes, stamp(seconds))
        }
        found => found,
    };
    let entry = entry.map_err(status)?;
    if is_writable && entry.attributes.is_read_only() {
        return Err(efi::ACCESS_DENIED);
    }
    Ok(Open {
        system: from.system,
        entry,
        is_writable,
        position: 0,
        cursor: Cursor::default(),
    })
}

/// Reads to a buffer whose size stands at `size`.
fn read(
    guest: &mut Guest<'_, '_>,
    fat: &mut Fat<Part>,
    file: &mut Open,
    size: u64,
    buffer: u64,
) -> Result<(), Failure> {
    if file.position > u64::from(file.entry.size) {
        return Err(efi::DEVICE_ERROR);
    }
    let wanted = guest.word(size)?.min(u64::from(file.entry.size) - file.position);
    let mut done = 0;
    while done < wanted {
        let mut bytes = vec![0; (wanted - done).min(PIECE) as usize];
        let at = buffer.checked_add(done).ok_or(efi::INVALID_PARAMETER)?;
        let count = fat
            .read(&file.entry, &mut file.cursor, file.position + done, &mut bytes)
            .map_err(status)?;
        guest.write(at, &bytes[..count])?;
        done += count as u64;
    }
    file.position += wanted;
    guest.set_word(size, wanted)
}

/// Reads the next entry of a folder to a buffer whose size stands at `size`; behind the last that size becomes zero.
fn read_folder(
    guest: &mut Guest<'_, '_>,
    fat: &mut Fat<Part>,
    file: &mut Open,
    size: u64,
    buffer: u64,
) -> Result<(), Failure> {
    let entries = fat.list(&file.entry).map_err(status)?;
    let index = usize::try_from(file.position).unwrap_or(usize::MAX);
    let info = entries.get(index).map(file_info).unwrap_or_default();
    guest.answer(size, buffer, &info)?;
    file.position += u64::from(!info.is_empty());
    Ok(())
}

/// Writes from a buffer whose size stands at `size`; answers the file as it is then.
fn write(
    guest: &mut Guest<'_, '_>,
    fat: &mut Fat<Part>,
    file: &mut Open,
    size: u64,
    buffer: u64,
    seconds: u64,
) -> Result<Entry, Failure> {
    let wanted = guest.word(size)?;
    let mut done = 0;
    file.entry.stamps[1] = stamp(seconds);
    while done < wanted {
        let mut bytes = vec![0; (wanted - done).min(PIECE) as usize];
        let at = buffer.checked_add(done).ok_or(efi::INVALID_PARAMETER)?;
        guest.read(at, &mut bytes)?;
        let written = fat.write(&mut file.entry, &mut file.cursor, file.position, &bytes);
        guest.set_word(size, done)?;
        written.map_err(status)?;
        file.position += bytes.len() as u64;
        done += bytes.len() as u64;
    }
    guest.set_word(size, wanted)?;
    fat.update(&file.entry).map_err(status)?;
    Ok(file.entry.clone())
}

/// Size and attributes of a file as the structure says; it keeps its name.
fn set_info(
    guest: &mut Guest<'_, '_>,
    fat: &mut Fat<Part>,
    file: &mut Open,
    (size, buffer): (u64, u64),
) -> Result<Entry, Failure> {
    const FIXED: u64 = 80;
    if size < FIXED {
        return Err(efi::BAD_BUFFER_SIZE);
    }
    if !file.is_writable {
        return Err(efi::ACCESS_DENIED);
    }
    let (length, attributes) = (guest.word(buffer + 8)?, guest.word(buffer + 72)?);
    let name = String::from_utf16_lossy(&guest.text(buffer + FIXED, NAME_MAX)?);
    let is_named_so = name.is_empty() || name.eq_ignore_ascii_case(&file.entry.name);
    if !is_named_so || attributes & !u64::from(Attributes::CHANGEABLE | Attributes::DIRECTORY) != 0 {
        return Err(efi::ACCESS_DENIED);
    }
    let kept = file.entry.attributes.0 & !Attributes::CHANGEABLE;
    file.entry.attributes = Attributes(kept | attributes as u8 & Attributes::CHANGEABLE);
    file.cursor = Cursor::default();
    match file.entry.attributes.is_directory() {
        false if length != u64::from(file.entry.size) => fat.resize(&mut file.entry, length),
        _ => fat.update(&file.entry),
    }
    .map_err(status)?;
    Ok(file.entry.clone())
}

fn text(text: &str) -> Vec<u8> {
    text.encode_utf16()
        .chain([0])
        .flat_map(u16::to_le_bytes)
        .collect()
}

/// The structure that says what a file is.
fn file_info(entry: &Entry) -> Vec<u8> {
    let name = text(&entry.name);
    let size = u64::from(entry.size);
    let mut info = Vec::new();
    for word in [80 + name.len() as u64, size, size] {
        info.extend(word.to_le_bytes());
    }
    let [created, changed, read] = entry.stamps.map(time);
    for time in [created, read, changed] {
        info.extend(time);
    }
    info.extend(u64::from(entry.attributes.0).to_le_bytes());
    info.extend(name);
    info
}

fn system_info(fat: &mut Fat<Part>) -> Result<Vec<u8>, FatError> {
    let label = text(fat.label());
    let mut info = (36 + label.len() as u64).to_le_bytes().to_vec();
    info.extend(u64::from(fat.is_read_only()).to_le_bytes());
    info.extend(fat.size().to_le_bytes());
    info.extend(fat.free()?.to_le_bytes());
    info.extend((fat.cluster_bytes() as u32).to_le_bytes());
    info.extend(label);
    Ok(info)
}

/// A time as EFI has it, of one as FAT has it.
fn time((date, of_day): (u16, u16)) -> [u8; efi::TIME_BYTES] {
    let mut time = [0; efi::TIME_BYTES];
    if date == 0 {
        return time;
    }
    time[..2].copy_from_slice(&(1980 + (date >> 9)).to_le_bytes());
    time[2] = (date >> 5 & 0xf) as u8;
    time[3] = (date & 0x1f) as u8;
    time[4] = (of_day >> 11) as u8;
    time[5] = (of_day >> 5 & 0x3f) as u8;
    time[6] = (of_day & 0x1f) as u8 * 2;
    time[12..14].copy_from_slice(&0x07ff_u16.to_le_bytes());
    time
}

/// A time as FAT has it.
fn stamp(seconds: u64) -> (u16, u16) {
    let time = efi::time(seconds, 0);
    let year = u16::from_le_bytes([time[0], time[1]]);
    let [month, day, hour, minute, second] = [2, 3, 4, 5, 6].map(|index| u16::from(time[index]));
    let date = (year.clamp(1980, 2107) - 1980) << 9 | month << 5 | day;
    (date, hour << 11 | minute << 5 | second / 2)
}
