//! Disks, CD-ROMs and their parts: Block I/O and Disk I/O of each, and what file system it has.

use std::io;

use super::super::efi;
use super::device_path::{DevicePath, Signature};
use super::guest::{Failure, Guest, Guid};
use super::memory::Memory;
use super::services::Service;
use crate::storage::disk::{Disk, SECTOR};
use crate::storage::fat::{Fat, Volume};
use crate::storage::partitions::{self, Identity, Partition, Source};
use crate::storage::scsi::Medium;

/// The protocol of blocks.
pub const BLOCK_IO: Guid = efi::guid(
    0x964e_5b21,
    0x6459,
    0x11d2,
    [0x8e, 0x39, 0, 0xa0, 0xc9, 0x69, 0x72, 0x3b],
);
/// The protocol of bytes.
pub const DISK_IO: Guid = efi::guid(
    0xce34_5171,
    0xba0b,
    0x11d2,
    [0x8e, 0x4f, 0, 0xa0, 0xc9, 0x69, 0x72, 0x3b],
);

/// The revision of both.
pub const REVISION: u64 = 1 << 16;
/// Media are never changed.
const MEDIUM: u32 = 1;
/// Bytes of a CD-ROM's block.
const CD_BLOCK: u64 = 2048;
/// How many bytes are carried at once.
const PIECE: u64 = 1 << 20;

/// A disk of the machine and where it is.
pub struct BootDisk {
    /// The disk.
    pub disk: Disk,
    /// Whether it is a CD-ROM.
    pub medium: Medium,
    /// Where it is.
    pub path: DevicePath,
}

/// A part of a disk, or all of it.
#[derive(Clone)]
pub struct Part {
    disk: Disk,
    start: u64,
    size: u64,
    is_read_only: bool,
}

impl Source for Part {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, start: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.check(start, bytes.len() as u64)?;
        self.disk.read(self.start + start, bytes)
    }
}

impl Volume for Part {
    fn write(&self, start: u64, bytes: &[u8]) -> io::Result<()> {
        self.check(start, bytes.len() as u64)?;
        match !self.is_read_only && self.disk.takes(self.start + start, bytes.len() as u64) {
            true => self.disk.write(self.start + start, bytes),
            false => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    fn is_read_only(&self) -> bool {
        self.is_read_only
    }
}

impl Part {
    fn check(&self, start: u64, count: u64) -> io::Result<()> {
        let end = start.checked_add(count);
        match end.is_some_and(|end| end <= self.size) {
            true => Ok(()),
            false => Err(io::ErrorKind::InvalidInput.into()),
        }
    }
}

/// What applications see of a disk or a part of one.
pub struct Device {
    /// Where it is.
    pub path: DevicePath,
    /// Which partition it is, if it is one.
    pub partition: Option<Partition>,
    /// What is called `hd0` or `cd1` in messages, with a partition's number behind it.
    pub name: String,
    part: Part,
    block: u64,
    is_removable: bool,
    /// Its handle, and where the interfaces are.
    pub handle: u64,
    block_io: u64,
    disk_io: u64,
    /// Where the interface of its file system is, if it has one.
    pub file_system: Option<u64>,
}

impl Device {
    /// The file system on it, if it is a FAT file system.
    pub fn open_fat(&self) -> Option<Fat<Part>> {
        Fat::open(self.part.clone()).ok()
    }

    /// Whether firmware starts what is on it.
    pub fn is_for_firmware(&self) -> bool {
        self.partition
            .is_some_and(|partition| partition.is_for_firmware())
    }

    /// The signature of the partition, if it has one.
    pub fn signature(&self) -> Option<Signature> {
        match self.partition?.identity {
            Identity::Gpt { identifier, .. } => Some(Signature::Gpt(identifier)),
            Identity::Mbr { signature, .. } => Some(Signature::Mbr(signature)),
            Identity::ElTorito { .. } => None,
        }
    }

    /// Bytes of it.
    pub fn size(&self) -> u64 {
        self.part.size
    }

    /// Puts the interfaces of blocks and bytes into memory; answers where.
    pub fn install(
        &mut self,
        guest: &mut Guest<'_, '_>,
        memory: &mut Memory,
        function: impl Fn(Service) -> u64,
    ) -> Result<[(Guid, u64); 2], Failure> {
        let mut media = vec![0; 32];
        media[..4].copy_from_slice(&MEDIUM.to_le_bytes());
        let flags = [
            self.is_removable,
            true,
            self.partition.is_some(),
            self.part.is_read_only,
            false,
        ];
        for (at, flag) in (4..).zip(flags) {
            media[at] = u8::from(flag);
        }
        media[12..16].copy_from_slice(&(self.block as u32).to_le_bytes());
        let last = (self.part.size / self.block).saturating_sub(1);
        media[24..32].copy_from_slice(&last.to_le_bytes());
        let media = memory.place(guest, &media)?;
        let blocks = [
            REVISION,
            media,
            function(Service::ResetBlocks),
            function(Service::ReadBlocks),
            function(Service::WriteBlocks),
            function(Service::FlushBlocks),
        ];
        let bytes = [
            REVISION,
            function(Service::ReadDisk),
            function(Service::WriteDisk),
        ];
        self.block_io = memory.place(guest, blocks.map(u64::to_le_bytes).as_flattened())?;
        self.disk_io = memory.place(guest, bytes.map(u64::to_le_bytes).as_flattened())?;
        Ok([(BLOCK_IO, self.block_io), (DISK_IO, self.disk_io)])
    }

    /// Carries bytes between the device and memory.
    fn carry(
        &self,
        guest: &mut Guest<'_, '_>,
        is_write: bool,
        (start, size): (u64, u64),
        buffer: u64,
    ) -> Result<(), Failure> {
        let failed = |_| efi::DEVICE_ERROR;
        let mut done = 0;
        while done < size {
            let count = (size - done).min(PIECE);
            let at = buffer.checked_add(done).ok_or(efi::INVALID_PARAMETER)?;
            let mut bytes = vec![0; count as usize];
            if is_write {
                guest.read(at, &mut bytes)?;
                self.part.write(start + done, &bytes).map_err(failed)?;
            } else {
                self.part.read(start + done, &mut bytes).map_err(failed)?;
                guest.write(at, &bytes)?;
            }
            done += count;
        }
        Ok(())
    }

    /// This, medium, block, size, buffer.
    fn blocks(&self, guest: &mut Guest<'_, '_>, is_write: bool) -> Result<(), Failure> {
        let [_, medium, block, size, buffer] = guest.arguments();
        self.check(medium, is_write)?;
        if !size.is_multiple_of(self.block) {
            return Err(efi::BAD_BUFFER_SIZE);
        }
        let start = block.checked_mul(self.block);
        let end = start.and_then(|start| start.checked_add(size));
        match (start, end) {
            (Some(start), Some(end)) if end <= self.part.size => {
                self.carry(guest, is_write, (start, size), buffer)
            }
            _ => Err(efi::INVALID_PARAMETER),
        }
    }

    /// This, medium, first byte, size, buffer.
    fn bytes(&self, guest: &mut Guest<'_, '_>, is_write: bool) -> Result<(), Failure> {
        let [_, medium, start, size, buffer] = guest.arguments();
        self.check(medium, is_write)?;
        let end = start.checked_add(size).filter(|end| *end <= self.part.size);
        let end = end.ok_or(efi::INVALID_PARAMETER)?;
        let (first, behind) = (start / SECTOR * SECTOR, end.next_multiple_of(SECTOR));
        if (first, behind) == (start, end) {
            return self.carry(guest, is_write, (start, size), buffer);
        }
        let failed = |_| efi::DEVICE_ERROR;
        let mut at = first;
        while at < behind {
            let count = (behind - at).min(PIECE);
            let mut sectors = vec![0; count as usize];
            self.part.read(at, &mut sectors).map_err(failed)?;
            let (from, to) = (start.max(at), end.min(at + count));
            let wanted = &mut sectors[(from - at) as usize..(to - at) as usize];
            let memory = buffer.checked_add(from - start).ok_or(efi::INVALID_PARAMETER)?;
            if is_write {
                guest.read(memory, wanted)?;
                self.part.write(at, &sectors).map_err(failed)?;
            } else {
                guest.write(memory, wanted)?;
            }
            at += count;
        }
        Ok(())
    }

    fn check(&self, medium: u64, is_write: bool) -> Result<(), Failure> {
        if medium as u32 != MEDIUM {
            return Err(efi::MEDIA_CHANGED);
        }
        match is_write && self.part.is_read_only {
            true => Err(efi::WRITE_PROTECTED),
            false => Ok(()),
        }
    }
}

/// The disks of a machine and their parts, each disk before its parts.
pub fn devices(disks: &[BootDisk]) -> Vec<Device> {
    let mut devices = Vec::new();
    let mut counts = [0, 0];
    for BootDisk { disk, medium, path } in disks {
        let is_cdrom = *medium == Medium::Cdrom;
        let count = &mut counts[usize::from(is_cdrom)];
        let name = format!("{}{count}", if is_cdrom { "cd" } else { "hd" });
        *count += 1;
        let block = if is_cdrom { CD_BLOCK } else { SECTOR };
        let part = Part {
            disk: disk.clone(),
            start: 0,
            size: disk.size() / block * block,
            is_read_only: is_cdrom || disk.is_read_only(),
        };
        let device = |path: DevicePath, partition: Option<Partition>, name: String, part: Part| Device {
            path,
            partition,
            name,
            part,
            block,
            is_removable: is_cdrom,
            handle: 0,
            block_io: 0,
            disk_io: 0,
            file_system: None,
        };
        devices.push(device(path.clone(), None, name.clone(), part.clone()));
        let mut found = match is_cdrom {
            true => Vec::new(),
            false => partitions::of_disk(disk),
        };
        // A CD-ROM's image that was written to a disk boots as well.
        found.extend(partitions::of_cdrom(disk));
        for partition in found {
            let (start, blocks) = (partition.start / block, partition.size.div_ceil(block));
            let number = partition.number;
            let node = path.clone();
            let path = match partition.identity {
                Identity::Gpt { identifier, .. } => {
                    node.hard_drive(number, start, blocks, Signature::Gpt(identifier))
                }
                Identity::Mbr { signature, .. } => {
                    node.hard_drive(number, start, blocks, Signature::Mbr(signature))
                }
                Identity::ElTorito { .. } => {
                    // Always in blocks of a CD-ROM.
                    let blocks = partition.size.div_ceil(CD_BLOCK);
                    node.cdrom(number, partition.start / CD_BLOCK, blocks)
                }
            };
            let part = Part {
                start: partition.start,
                size: partition.size / SECTOR * SECTOR,
                ..part.clone()
            };
            devices.push(device(path, Some(partition), format!("{name}p{number}"), part));
        }
    }
    devices
}

/// A service of Block I/O or Disk I/O.
pub fn serve(devices: &[Device], guest: &mut Guest<'_, '_>, service: Service) -> Result<(), Failure> {
    let [this] = guest.arguments();
    let of = |address: fn(&Device) -> u64| {
        let found = devices.iter().find(|device| address(device) == this);
        found.ok_or(efi::INVALID_PARAMETER)
    };
    let blocks = || of(|device| device.block_io);
    let bytes = || of(|device| device.disk_io);
    match service {
        Service::ResetBlocks => blocks().map(|_| ()),
        Service::ReadBlocks => blocks()?.blocks(guest, false),
        Service::WriteBlocks => blocks()?.blocks(guest, true),
        Service::FlushBlocks => {
            let device = blocks()?;
            device.part.disk.flush().map_err(|_| efi::DEVICE_ERROR)
        }
        Service::ReadDisk => bytes()?.bytes(guest, false),
        Service::WriteDisk => bytes()?.bytes(guest, true),
        _ => Err(efi::UNSUPPORTED),
    }
}
