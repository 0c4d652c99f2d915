//! What the processes of a run leave for whoever started it.
//!
//! A program forks and executes others; each process has a model of its own. At its end, or where another program takes
//! its place, it leaves what it counted in a file in memory that belongs to the process which waits for the first one.
//! That puts the [parts](ProcessPart) together and reports once. A process that outlives it is left out.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};
use sidestep_itanium2::{Counters, Parameters};

use crate::program::{Report, Sum};
use crate::recording::Contents;

/// What one process has counted, as the run of one program.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProcessPart {
    /// The number of the process.
    pub pid: u32,
    /// The name of its program, without folders.
    pub command: String,
    /// The program.
    pub program: PathBuf,
    /// Its counters, as [`Counters::to_numbers`] gives them.
    counters: Vec<u64>,
    /// What else was kept.
    pub contents: Option<Contents>,
}

impl ProcessPart {
    /// Its counters.
    pub fn counters(&self) -> Counters {
        Counters::from_numbers(&self.counters).unwrap_or_default()
    }
}

/// Where processes leave their parts.
pub struct Parts {
    file: File,
}

impl Parts {
    /// A place without parts.
    ///
    /// # Errors
    /// If the host grants none.
    pub fn new() -> io::Result<Parts> {
        let file = memfd_create("sidestep-parts", MemfdFlags::CLOEXEC)?;
        Ok(Parts { file: file.into() })
    }

    /// Its path for other processes, as long as this one lives.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }

    /// What was left so far: by the number of the process, and of each in the order in which it executed programs.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(&mut self) -> io::Result<Vec<ProcessPart>> {
        let mut text = String::new();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_to_string(&mut text)?;
        let parts = text.lines().map(serde_json::from_str);
        let mut parts = parts.collect::<Result<Vec<ProcessPart>, _>>()?;
        parts.sort_by_key(|part| part.pid);
        Ok(parts)
    }
}

/// Leaves what a process counted.
#[derive(Debug)]
pub struct Leave {
    to: PathBuf,
    program: PathBuf,
    /// Whether more than counters is left.
    has_contents: bool,
}

impl Leave {
    /// Leaves what processes of a program count where [`Parts::path`] says.
    pub fn new(to: &Path, program: &Path, has_contents: bool) -> Leave {
        Leave {
            to: to.to_owned(),
            program: std::path::absolute(program).unwrap_or_else(|_| program.to_owned()),
            has_contents,
        }
    }
}

impl Report for Leave {
    fn render(&self, _: &Parameters, sum: &Sum) -> Result<String, String> {
        let command = self.program.file_name().unwrap_or_default();
        let part = ProcessPart {
            pid: std::process::id(),
            command: command.to_string_lossy().into_owned(),
            program: self.program.clone(),
            counters: sum.counters.to_numbers(),
            contents: self.has_contents.then(|| match sum.samples.is_empty() {
                true => Contents::of_profile(&sum.profile),
                false => Contents::of_samples(&sum.samples),
            }),
        };
        let mut line = serde_json::to_vec(&part).expect("a part has a text form");
        line.push(b'\n');
        // One write at the end of the file: parts of several processes do not mix.
        let left = OpenOptions::new()
            .append(true)
            .open(&self.to)
            .and_then(|mut file| file.write_all(&line));
        match left {
            Ok(()) => Ok(String::new()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(format!(
                "sidestep: process {} has outlived what counts it, and is left out\n",
                part.pid
            )),
            Err(error) => Err(format!(
                "sidestep: process {}: what it counted cannot be left: {error}\n",
                part.pid
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidestep_itanium2::{Event, Pipeline};

    #[test]
    fn parts_come_back_by_process() {
        let mut parts = Parts::new().expect("memory");
        let leave = Leave::new(&parts.path(), Path::new("/bin/program"), true);
        let parameters = Parameters::by_name("itanium2").expect("a processor");
        let mut sum = Sum::default();
        sum.add(&mut Pipeline::new(parameters.clone()));
        for _ in 0..2 {
            assert_eq!(leave.render(&parameters, &sum), Ok(String::new()));
        }
        let read = parts.read().expect("what was left");
        assert_eq!(read.len(), 2);
        assert_eq!(read[0].command, "program");
        let cycles = read[0].counters().get(Event::CpuCycles);
        assert_eq!(cycles, sum.counters.get(Event::CpuCycles));
    }
}
