//! What a command is replayed from: the machine and its disks as they were when it was typed.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rustix::fs::SeekFrom as Place;
use rustix::io::Errno;
use sidestep_machine::snapshot;
use sidestep_runner::machine::execution::Prepared;

/// The folder of the recording, in that of the results.
const FOLDER: &str = "recording";
/// The machine, in the recording's folder.
const MACHINE: &str = "machine";
/// What is typed, in the recording's folder.
const INPUT: &str = "input";

/// The recording of the command that runs, or of the first that failed.
pub struct Recording {
    folder: PathBuf,
    /// The disks that the guest writes to.
    disks: Vec<PathBuf>,
    /// What the disks were when it was made.
    copies: Vec<PathBuf>,
    /// How many instructions the machine had executed when the command failed.
    failed_at: Option<u64>,
}

impl Recording {
    /// Nothing is recorded yet.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new(output: &Path, disks: Vec<PathBuf>) -> io::Result<Recording> {
        let folder = output.join(FOLDER);
        fs::create_dir_all(&folder)?;
        let copy = |index| folder.join(format!("disk{index}"));
        let copies = (0..disks.len()).map(copy).collect();
        Ok(Recording {
            folder,
            disks,
            copies,
            failed_at: None,
        })
    }

    /// Records how a command begins, with what will be typed, unless one has failed already.
    ///
    /// # Errors
    /// The machine or a disk cannot be saved.
    pub fn begin(&self, prepared: &mut Prepared, typed: &[u8]) -> Result<(), Box<dyn Error>> {
        if self.failed_at.is_some() {
            return Ok(());
        }
        let parts = prepared
            .parts
            .as_ref()
            .ok_or("only whole machines are recorded")?;
        for (disk, copy) in self.disks.iter().zip(&self.copies) {
            copy_image(disk, copy)
                .map_err(|error| format!("{}: cannot be copied: {error}", disk.display()))?;
        }
        snapshot::save(&mut prepared.machine, parts, &self.folder.join(MACHINE))?;
        sidestep_files::write(&self.folder.join(INPUT), typed)?;
        Ok(())
    }

    /// Notes that the command has failed, after so many instructions of the machine; only the first one counts.
    pub fn fail(&mut self, executed: u64) {
        self.failed_at.get_or_insert(executed);
    }

    /// Puts the disks back to what they were, now that the machine is gone; answers the command that replays what
    /// failed. A recording of what did not fail is removed.
    ///
    /// # Errors
    /// The disks cannot be put back.
    pub fn finish(self) -> io::Result<Option<String>> {
        let Some(executed) = self.failed_at else {
            fs::remove_dir_all(&self.folder)?;
            return Ok(None);
        };
        for (disk, copy) in self.disks.iter().zip(&self.copies) {
            fs::rename(copy, disk)?;
        }
        let [machine, input] = [MACHINE, INPUT].map(|name| self.folder.join(name));
        let disks: String = self
            .disks
            .iter()
            .map(|disk| format!(" --disk {}", disk.display()))
            .collect();
        Ok(Some(format!(
            "sidestep run --restore {}{disks} --snapshot --max-instructions {executed} <{}",
            machine.display(),
            input.display()
        )))
    }
}

/// Copies an image with its time and without its holes; where the file system can, the copy shares its blocks.
///
/// # Errors
/// Those of reading and writing.
pub fn copy_image(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = File::open(from)?;
    let mut copy = File::create(to)?;
    let metadata = source.metadata()?;
    if rustix::fs::ioctl_ficlone(&copy, &source).is_err() {
        copy.set_len(metadata.len())?;
        let mut place = 0;
        loop {
            let data = match rustix::fs::seek(&source, Place::Data(place)) {
                Ok(data) => data,
                // No data behind this place.
                Err(Errno::NXIO) => break,
                Err(error) => return Err(error.into()),
            };
            let hole = rustix::fs::seek(&source, Place::Hole(data))?;
            source.seek(SeekFrom::Start(data))?;
            copy.seek(SeekFrom::Start(data))?;
            io::copy(&mut (&source).take(hole - data), &mut copy)?;
            place = hole;
        }
    }
    copy.flush()?;
    copy.set_modified(metadata.modified()?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileExt, MetadataExt};

    use super::*;

    #[test]
    fn a_copy_has_the_bytes_the_time_and_no_more_blocks() {
        let folder = tempfile::tempdir().expect("a folder");
        let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
        let image = File::create(&from).expect("a file");
        image.set_len(16 << 20).expect("room");
        image.write_all_at(b"first", 5).expect("a write");
        image.write_all_at(b"last", 12 << 20).expect("a write");
        drop(image);
        copy_image(&from, &to).expect("a copy");
        assert!(fs::read(&from).expect("the image") == fs::read(&to).expect("the copy"));
        let [from, to] = [from, to].map(|path| fs::metadata(path).expect("a file"));
        assert_eq!((from.mtime(), from.mtime_nsec()), (to.mtime(), to.mtime_nsec()));
        assert!(
            to.blocks() <= from.blocks() + 16,
            "{} of {}",
            to.blocks(),
            from.blocks()
        );
    }
}
