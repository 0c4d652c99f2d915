//! `[[disk]]`, or an option for one: what file a disk is, and what it is attached to.

use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::storage::disk::{Disk, DiskError, Format};
use crate::storage::overlay::Kept;
use crate::storage::scsi::Medium;

/// The most bytes that are kept of what is written to a disk whose file stays as it is.
const WRITTEN_MAX: u64 = 4 << 30;

/// What a disk is attached to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskBus {
    /// It is a virtio device of its own.
    #[default]
    Virtio,
    /// It is behind a SCSI controller, an LSI53C895A.
    Scsi,
    /// It is behind a Serial ATA controller.
    Ahci,
}

/// `[[disk]]`: a file as a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskTable {
    /// The image, relative to the description.
    pub file: PathBuf,
    /// How the disk is in its file: raw, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// Whether the guest may not write.
    #[serde(default)]
    pub read_only: bool,
    /// Whether the file stays as it is: what the guest writes is kept in memory, up to 4 GB, as long as the machine
    /// is there, resets included.
    #[serde(default)]
    pub snapshot: bool,
    /// What it is attached to.
    #[serde(default)]
    pub bus: DiskBus,
    /// Whether it is a disk or a CD-ROM; that is always read-only and needs a bus with commands for it.
    #[serde(default)]
    pub media: Medium,
    #[serde(skip)]
    written: Written,
}

/// What a guest has written over a file that stays as it is; the same for clones of its table. It is nothing that a
/// description says.
#[derive(Clone, Debug)]
struct Written(Kept);

impl Default for Written {
    fn default() -> Written {
        Written(Kept::new(WRITTEN_MAX))
    }
}

impl PartialEq for Written {
    fn eq(&self, _: &Written) -> bool {
        true
    }
}

impl Eq for Written {}

/// What is no disk.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoDisk {
    /// An unknown bus.
    #[error("`bus={0}` must be `bus=virtio`, `bus=scsi` or `bus=ahci`")]
    Bus(String),
    /// An unknown format.
    #[error("`format={0}` must be `format=raw` or `format=qcow2`")]
    Format(String),
    /// An unknown medium.
    #[error("`media={0}` must be `media=disk` or `media=cdrom`")]
    Medium(String),
}

impl FromStr for DiskTable {
    type Err = NoDisk;

    /// As an option says it: `FILE[,readonly][,snapshot][,format=FORMAT][,bus=BUS][,media=MEDIUM]`; a file may have
    /// commas in its name.
    fn from_str(text: &str) -> Result<DiskTable, NoDisk> {
        let mut disk = DiskTable::at(PathBuf::new());
        let mut file = text;
        while let Some((before, last)) = file.rsplit_once(',') {
            match last.split_once('=') {
                None if last == "readonly" => disk.read_only = true,
                None if last == "snapshot" => disk.snapshot = true,
                Some(("format", "raw")) => disk.format = Some(Format::Raw),
                Some(("format", "qcow2")) => disk.format = Some(Format::Qcow2),
                Some(("format", other)) => return Err(NoDisk::Format(other.to_owned())),
                Some(("bus", "virtio")) => disk.bus = DiskBus::Virtio,
                Some(("bus", "scsi")) => disk.bus = DiskBus::Scsi,
                Some(("bus", "ahci")) => disk.bus = DiskBus::Ahci,
                Some(("bus", other)) => return Err(NoDisk::Bus(other.to_owned())),
                Some(("media", "disk")) => disk.media = Medium::Disk,
                Some(("media", "cdrom")) => disk.media = Medium::Cdrom,
                Some(("media", other)) => return Err(NoDisk::Medium(other.to_owned())),
                _ => break,
            }
            file = before;
        }
        disk.file = file.into();
        Ok(disk)
    }
}

impl DiskTable {
    /// A file as a virtio disk that is written to.
    pub fn at(file: PathBuf) -> DiskTable {
        DiskTable {
            file,
            format: None,
            read_only: false,
            snapshot: false,
            bus: DiskBus::default(),
            media: Medium::default(),
            written: Written::default(),
        }
    }

    /// Whether nothing but the file is said.
    pub fn is_plain(&self) -> bool {
        let is_default = self.bus == DiskBus::default() && self.media == Medium::default();
        !self.read_only && !self.snapshot && self.format.is_none() && is_default
    }

    /// Whether the guest has written what is not in the file.
    pub fn is_written_over(&self) -> bool {
        !self.written.0.overlay().is_empty()
    }

    /// Opens the file.
    ///
    /// # Errors
    /// If it is no disk.
    pub fn open(&self) -> Result<Disk, DiskError> {
        let read_only = self.read_only || self.media == Medium::Cdrom;
        match self.snapshot && !read_only {
            true => Disk::copy_on_write_as(&self.file, self.format, self.written.0.clone()),
            false => Disk::open_as(&self.file, self.format, read_only),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_disk_is_a_file_that_may_be_read_only() {
        let parsed = |text: &str| text.parse::<DiskTable>().expect("a disk");
        assert_eq!(parsed("a,b.img").file, Path::new("a,b.img"));
        assert!(!parsed("a.img").read_only);
        let cd = parsed("a,bus=scsi,b.iso,bus=scsi,media=cdrom");
        assert_eq!(cd.file, Path::new("a,bus=scsi,b.iso"));
        assert_eq!((cd.bus, cd.media), (DiskBus::Scsi, Medium::Cdrom));
        assert_eq!(parsed("a.img,format=qcow2").format, Some(Format::Qcow2));
        assert!(parsed("a.img,snapshot,bus=ahci").snapshot);
        let wrong = "a.img,format=vdi".parse::<DiskTable>();
        assert_eq!(wrong, Err(NoDisk::Format("vdi".into())));
        let wrong = "a.img,bus=floppy".parse::<DiskTable>();
        assert_eq!(wrong, Err(NoDisk::Bus("floppy".into())));
        let read_only = parsed("a.img,readonly");
        assert_eq!(
            (read_only.file.as_path(), read_only.read_only),
            (Path::new("a.img"), true)
        );
    }

    #[test]
    fn what_is_written_to_a_snapshot_outlives_the_machine_and_not_its_table() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), [1; 1024]).expect("written");
        let table = DiskTable {
            snapshot: true,
            ..DiskTable::at(file.path().to_owned())
        };
        let read = |table: &DiskTable| {
            let mut bytes = [0; 512];
            let disk = table.open().expect("a disk");
            disk.read(512, &mut bytes).expect("read");
            bytes[0]
        };
        let again = table.clone();
        let disk = table.open().expect("a disk");
        assert!(disk.takes(512, 512) && !again.is_written_over());
        disk.write(512, &[2; 512]).expect("written");
        drop((disk, table));
        assert!(again.is_written_over());
        assert_eq!(read(&again), 2);
        let anew = DiskTable {
            snapshot: true,
            ..DiskTable::at(file.path().to_owned())
        };
        assert_eq!(read(&anew), 1);
        assert!(std::fs::read(file.path()).expect("read") == [1; 1024]);
    }
}
