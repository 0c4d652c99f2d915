//! Files that grow by lines while something runs: traces.
//!
//! A trace outgrows any disk in minutes. It is written up to a limit, and ends there with a line that says so.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes that are collected before they are written, where nobody reads along.
const COLLECTED_BYTES: usize = 1 << 16;

/// Where lines are added, up to a limit.
pub struct Lines {
    target: Target,
    collected: Vec<u8>,
    /// How many bytes are collected before they are written.
    collected_bytes: usize,
    limit_bytes: u64,
    is_cut: bool,
}

enum Target {
    /// A regular file, to which others may add as well.
    File(File),
    /// Something else, and how many bytes it was given.
    Stream(Box<dyn Write + Send>, u64),
}

impl Lines {
    /// A new file in the place of what has its name.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn create(path: &Path, limit_bytes: u64) -> io::Result<Lines> {
        Lines::open(
            path,
            OpenOptions::new().write(true).create(true).truncate(true),
            limit_bytes,
        )
    }

    /// A file that several processes add lines to.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn append(path: &Path, limit_bytes: u64) -> io::Result<Lines> {
        Lines::open(path, OpenOptions::new().create(true).append(true), limit_bytes)
    }

    /// A stream that somebody reads while it is written.
    pub fn to(stream: impl Write + Send + 'static, limit_bytes: u64) -> Lines {
        let mut lines = Lines::of_target(Target::Stream(Box::new(stream), 0), limit_bytes);
        lines.collected_bytes = 0;
        lines
    }

    fn open(path: &Path, options: &mut OpenOptions, limit_bytes: u64) -> io::Result<Lines> {
        // A pipe that is held open for reading would never tell that nobody reads it.
        let is_regular = fs::metadata(path).map_or(true, |metadata| metadata.is_file());
        let file = options.read(is_regular).open(path)?;
        let target = match is_regular {
            true => Target::File(file),
            false => Target::Stream(Box::new(file), 0),
        };
        Ok(Lines::of_target(target, limit_bytes))
    }

    fn of_target(target: Target, limit_bytes: u64) -> Lines {
        Lines {
            target,
            collected: Vec::new(),
            collected_bytes: COLLECTED_BYTES,
            limit_bytes,
            is_cut: false,
        }
    }

    /// Adds a line, which ends with its line feed. Beyond the limit it is left out.
    ///
    /// # Errors
    /// If lines up to this one could not be written.
    pub fn add(&mut self, line: &str) -> io::Result<()> {
        if self.is_cut {
            return Ok(());
        }
        self.collected.extend_from_slice(line.as_bytes());
        match self.collected.len() < self.collected_bytes {
            true => Ok(()),
            false => self.flush(),
        }
    }

    /// Writes what was collected.
    ///
    /// # Errors
    /// If it cannot be written; it is lost then.
    pub fn flush(&mut self) -> io::Result<()> {
        let mut lines = std::mem::take(&mut self.collected);
        if lines.is_empty() {
            return Ok(());
        }
        let end = format!(
            "cut here: the trace has reached its limit of {} bytes\n",
            self.limit_bytes
        );
        let before_bytes = match &self.target {
            Target::File(file) => {
                let length = file.metadata()?.len();
                if ends_with(file, length, end.as_bytes())? {
                    self.is_cut = true;
                    return Ok(());
                }
                length
            }
            Target::Stream(_, given) => *given,
        };
        let room = usize::try_from(self.limit_bytes.saturating_sub(before_bytes)).unwrap_or(usize::MAX);
        if lines.len() > room {
            self.is_cut = true;
            let last = lines[..room].iter().rposition(|byte| *byte == b'\n');
            lines.truncate(last.map_or(0, |last| last + 1));
            lines.extend(end.bytes());
        }
        match &mut self.target {
            Target::File(file) => file.write_all(&lines)?,
            Target::Stream(stream, given) => {
                *given += lines.len() as u64;
                stream.write_all(&lines)?;
                stream.flush()?;
            }
        }
        lines.clear();
        self.collected = lines;
        Ok(())
    }

    /// Whether lines are left out, since the limit is reached.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }
}

/// Whether a file of this length ends with some bytes.
fn ends_with(file: &File, length: u64, end: &[u8]) -> io::Result<bool> {
    let Some(start) = length.checked_sub(end.len() as u64) else {
        return Ok(false);
    };
    let mut bytes = vec![0; end.len()];
    file.read_exact_at(&mut bytes, start)?;
    Ok(bytes == end)
}

impl Drop for Lines {
    fn drop(&mut self) {
        // Whoever wants to know has flushed.
        let _ = self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_their_limit_with_one_that_says_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace");
        let cut = "cut here: the trace has reached its limit of 20 bytes\n";
        for (lines, expected) in [
            (2, "line 0\nline 1\n".to_owned()),
            (3, format!("line 0\nline 1\n{cut}")),
            (100_000, format!("line 0\nline 1\n{cut}")),
        ] {
            let mut file = Lines::create(&path, 20).expect("a file");
            for number in 0..lines {
                file.add(&format!("line {number}\n")).expect("room");
            }
            file.flush().expect("room");
            assert_eq!(fs::read_to_string(&path).expect("a file"), expected);
        }
    }

    #[test]
    fn those_who_share_a_file_share_its_limit() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace");
        let mut all = [(); 3].map(|()| Lines::append(&path, 10).expect("a file"));
        for lines in &mut all {
            lines.add("line\nline\n").expect("room");
            lines.flush().expect("room");
        }
        let text = fs::read_to_string(&path).expect("a file");
        assert_eq!(
            text,
            "line\nline\ncut here: the trace has reached its limit of 10 bytes\n"
        );
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let mut lines = Lines::append(Path::new("/dev/full"), u64::MAX).expect("a device");
        lines.add("line\n").expect("it is collected");
        let error = lines.flush().expect_err("it is full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
