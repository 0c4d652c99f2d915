//! Disks of a machine, and what they answer to commands, whatever controller they are behind.
//!
//! - [`disk`]: a file of the host as a disk, raw or in QEMU's format qcow2.
//! - [`scsi`]: a disk or a CD-ROM as a unit that takes SCSI commands.
//! - [`ata`]: a disk that takes ATA commands.
//! - [`partitions`]: what parts a disk has. [`fat`]: files on one.

pub mod ata;
pub mod disk;
pub mod fat;
pub mod overlay;
pub mod partitions;
#[cfg(feature = "qcow2")]
mod qcow2;
pub mod scsi;
