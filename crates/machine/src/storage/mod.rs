//! Disks of a machine, and what they answer to commands, whatever controller they are behind.
//!
//! - [`disk`]: a file of the host as a disk.
//! - [`scsi`]: a disk or a CD-ROM as a unit that takes SCSI commands.
//! - [`ata`]: a disk that takes ATA commands.

pub mod ata;
pub mod disk;
mod overlay;
pub mod scsi;
