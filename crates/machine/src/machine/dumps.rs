//! Dumps that a guest hands out: what its kernel writes of a process that died, as files of the host.
//!
//! The hypercall [`DUMP`] passes a dump on in pieces, straight from the guest's memory: r8 = physical address, r9 =
//! bytes, r10 = the number of the dump (its process). A piece of no bytes ends it. The result is 0, or all ones if the
//! host keeps no dumps, the piece is in no memory, or it cannot be written; the guest then sends no more of it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sidestep_ia64::PhysicalAddress;

use super::hypercall::{Call, FAILED, HypercallHandler, Reaction};

/// The hypercall's function.
pub const DUMP: u64 = 10;

/// The most bytes of one dump: nothing that runs here has more memory that a dump would hold.
const BYTES_MAX: u64 = 1 << 36;

/// Where dumps go.
pub trait DumpSink: Send {
    /// The next bytes of dump `number`.
    ///
    /// # Errors
    /// If they cannot be kept.
    fn write(&mut self, number: u64, bytes: &[u8]) -> io::Result<()>;

    /// Dump `number` is complete.
    ///
    /// # Errors
    /// If it cannot be kept.
    fn finish(&mut self, number: u64) -> io::Result<()>;
}

/// Dumps as files `PREFIX.NUMBER`, which appear when they are complete; until then they are `PREFIX.NUMBER.part`.
pub struct DumpFiles {
    prefix: PathBuf,
    open: BTreeMap<u64, (File, u64)>,
}

impl DumpFiles {
    /// With this beginning of their paths.
    pub fn new(prefix: &Path) -> DumpFiles {
        DumpFiles {
            prefix: prefix.to_owned(),
            open: BTreeMap::new(),
        }
    }

    fn path(&self, number: u64, suffix: &str) -> PathBuf {
        let mut path = self.prefix.clone().into_os_string();
        path.push(format!(".{number}{suffix}"));
        path.into()
    }
}

impl DumpSink for DumpFiles {
    fn write(&mut self, number: u64, bytes: &[u8]) -> io::Result<()> {
        let part = self.path(number, ".part");
        let (file, size) = match self.open.entry(number) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(place) => place.insert((File::create(part)?, 0)),
        };
        *size = size.saturating_add(bytes.len() as u64);
        if *size > BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        file.write_all(bytes)
    }

    fn finish(&mut self, number: u64) -> io::Result<()> {
        match self.open.remove(&number) {
            Some(_) => fs::rename(self.path(number, ".part"), self.path(number, "")),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl Drop for DumpFiles {
    /// The machine ended in the middle of a dump: half of one helps nobody.
    fn drop(&mut self) {
        for &number in self.open.keys() {
            let _ = fs::remove_file(self.path(number, ".part"));
        }
    }
}

/// Dumps by number that are kept in memory, complete or not; clones are the same ones.
#[derive(Clone, Debug, Default)]
pub struct KeptDumps(Arc<Mutex<BTreeMap<u64, Vec<u8>>>>);

impl KeptDumps {
    /// Takes what there is.
    pub fn take(&self) -> BTreeMap<u64, Vec<u8>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl DumpSink for KeptDumps {
    fn write(&mut self, number: u64, bytes: &[u8]) -> io::Result<()> {
        let mut dumps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        dumps.entry(number).or_default().extend_from_slice(bytes);
        Ok(())
    }

    fn finish(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

/// Answers the hypercall.
pub struct DumpCalls(Mutex<Box<dyn DumpSink>>);

impl DumpCalls {
    /// With dumps going there.
    pub fn new(sink: Box<dyn DumpSink>) -> DumpCalls {
        DumpCalls(Mutex::new(sink))
    }

    fn take(&self, call: &Call<'_>) -> io::Result<()> {
        let (start, size, number) = (call.argument(0), call.argument(1), call.argument(2));
        let mut sink = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if size == 0 {
            return sink.finish(number);
        }
        if !call.platform.memory.holds(PhysicalAddress(start), size) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut buffer = vec![0; size.min(1 << 16) as usize];
        let mut done = 0;
        while done < size {
            let part = (size - done).min(buffer.len() as u64) as usize;
            let bytes = &mut buffer[..part];
            call.platform
                .memory
                .read(PhysicalAddress(start + done), bytes)
                .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
            sink.write(number, bytes)?;
            done += part as u64;
        }
        Ok(())
    }
}

impl HypercallHandler for DumpCalls {
    fn call(&self, call: &mut Call<'_>) -> Option<Reaction> {
        if call.function() != DUMP {
            return None;
        }
        let result = if self.take(call).is_ok() { 0 } else { FAILED };
        call.set_result(0, result);
        Some(Reaction::Return)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_when_its_dump_is_complete_and_half_of_one_goes() {
        let folder = tempfile::tempdir().expect("a folder");
        let prefix = folder.path().join("core");
        let mut files = DumpFiles::new(&prefix);
        files.write(7, b"one ").expect("it is written");
        files.write(9, b"half").expect("it is written");
        files.write(7, b"two").expect("it is written");
        assert!(!folder.path().join("core.7").exists());
        files.finish(7).expect("it is complete");
        assert!(files.finish(7).is_err(), "there is none any more");
        drop(files);
        let names: Vec<_> = fs::read_dir(folder.path())
            .expect("the folder")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        assert_eq!(names, ["core.7"]);
        assert_eq!(
            fs::read(folder.path().join("core.7")).expect("the dump"),
            b"one two"
        );
    }
}
