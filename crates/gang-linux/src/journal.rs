//! The journal: every change to the host, noted before it is made.
//!
//! One file for each controller, one JSON object a line, in a folder that only root writes (`/run/sidestep-gang`).
//! A controller holds a lock on its journal while it lives; the kernel releases it however the controller ends. A
//! journal that nobody locks belongs to a controller that died: [`restore`] undoes what it notes, last change first,
//! and removes it. Doing that twice, or half and then again, is harmless.
//!
//! A line is written with one call and in full before the change it announces; a last line that is cut off announces
//! a change that was never made, and is ignored. The file outlives the controller, not a reboot, and neither do the
//! changes.
//!
//! **Who is put back.** The threads that the journal names, and threads that may have inherited a change: those of the
//! named processes, of their descendants, and of processes whose environment names the journal (descendants of started
//! commands that have lost their parents). An inherited change is recognised: the thread is in the idle class or is
//! kept from cores that its program had.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::process::{self, ThreadName};
use crate::scheduling::Scheduling;
use crate::{HostError, setting};

/// Where journals are kept unless told otherwise.
pub const FOLDER: &str = "/run/sidestep-gang";
/// The variable that names the journal in the environment of started commands.
pub const ENVIRONMENT: &str = "SIDESTEP_GANG_JOURNAL";

/// A change that is about to be made, with what undoes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum Change {
    /// A thread's scheduling, with what it was.
    Thread {
        /// Which thread.
        name: ThreadName,
        /// What it was.
        before: Scheduling,
    },
    /// A kernel setting, with what it was.
    Setting {
        /// Its file.
        path: PathBuf,
        /// What it held.
        before: String,
    },
    /// A command that was started: nothing to undo, but its threads may inherit what is changed.
    Started {
        /// Its process.
        process: i32,
    },
}

/// A controller's journal, open and locked.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
}

/// What a restoration did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Journals of dead controllers.
    pub journals: usize,
    /// Threads put back.
    pub threads: usize,
    /// Settings put back.
    pub settings: usize,
}

impl Journal {
    /// Undoes what dead controllers left, then opens a journal for this one.
    ///
    /// # Errors
    /// When another controller is alive, or the folder cannot be used.
    pub fn open(folder: &Path) -> Result<(Self, Restored), HostError> {
        fs::create_dir_all(folder).map_err(HostError::file("create", folder))?;
        let gate = lock_folder(folder)?;
        for (path, file) in journals(folder)? {
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                let process = path
                    .file_stem()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                return Err(HostError::Busy {
                    process,
                    journal: path,
                });
            }
        }
        let restored = restore_locked(folder)?;
        let path = folder.join(format!("{}.journal", std::process::id()));
        let file = OpenOptions::new()
            .create_new(true)
            .append(true)
            .open(&path)
            .map_err(HostError::file("create", &path))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| HostError::file("lock", &path)(error.into()))?;
        drop(gate);
        Ok((Self { file, path }, restored))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Notes a change that is about to be made.
    ///
    /// # Errors
    /// When it cannot be written: the change must not be made then.
    pub fn note(&mut self, change: &Change) -> Result<(), HostError> {
        let mut line = serde_json::to_string(change).expect("a change has no keys that JSON lacks");
        line.push('\n');
        self.file
            .write_all(line.as_bytes())
            .map_err(HostError::file("write", &self.path))
    }

    /// Undoes everything that is noted and removes the journal: the regular end.
    ///
    /// # Errors
    /// When something could not be put back; the journal stays then.
    pub fn close(self) -> Result<Restored, HostError> {
        let mut restored = Restored {
            journals: 1,
            ..Restored::default()
        };
        undo(&self.path, &mut restored)?;
        fs::remove_file(&self.path).map_err(HostError::file("remove", &self.path))?;
        Ok(restored)
    }
}

/// Undoes what dead controllers left behind. Journals of living ones are not touched.
///
/// # Errors
/// When something could not be put back; the journal stays then.
pub fn restore(folder: &Path) -> Result<Restored, HostError> {
    if !folder.exists() {
        return Ok(Restored::default());
    }
    let gate = lock_folder(folder)?;
    let restored = restore_locked(folder);
    drop(gate);
    restored
}

/// Keeps two processes from restoring, or opening, at once.
fn lock_folder(folder: &Path) -> Result<File, HostError> {
    let gate = File::open(folder).map_err(HostError::file("open", folder))?;
    flock(&gate, FlockOperation::LockExclusive)
        .map_err(|error| HostError::file("lock", folder)(error.into()))?;
    Ok(gate)
}

fn journals(folder: &Path) -> Result<Vec<(PathBuf, File)>, HostError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(HostError::file("list", folder))? {
        let path = entry.map_err(HostError::file("list", folder))?.path();
        if path.extension().is_some_and(|extension| extension == "journal") {
            let file = File::open(&path).map_err(HostError::file("open", &path))?;
            found.push((path, file));
        }
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(found)
}

fn restore_locked(folder: &Path) -> Result<Restored, HostError> {
    let mut restored = Restored::default();
    for (path, file) in journals(folder)? {
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        undo(&path, &mut restored)?;
        fs::remove_file(&path).map_err(HostError::file("remove", &path))?;
        restored.journals += 1;
    }
    Ok(restored)
}

/// The changes in a journal. A cut-off last line is no change; any other line that cannot be read is an error.
///
/// # Errors
/// When a line is not a change.
pub fn parse(path: &Path, text: &str) -> Result<Vec<Change>, HostError> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut changes = Vec::new();
    for (number, line) in whole.lines().enumerate() {
        changes.push(serde_json::from_str(line).map_err(|error| HostError::Malformed {
            path: path.to_owned(),
            reason: format!("line {}: {error}; expected a change as JSON", number + 1),
        })?);
    }
    Ok(changes)
}

fn undo(path: &Path, restored: &mut Restored) -> Result<(), HostError> {
    let text = fs::read_to_string(path).map_err(HostError::file("read", path))?;
    let changes = parse(path, &text)?;
    // The first note of a thread or setting tells what it was before any change.
    let mut threads: BTreeMap<ThreadName, &Scheduling> = BTreeMap::new();
    let mut settings: BTreeMap<&Path, &str> = BTreeMap::new();
    let mut commands = Vec::new();
    for change in &changes {
        match change {
            Change::Thread { name, before } => {
                threads.entry(*name).or_insert(before);
            }
            Change::Setting { path, before } => {
                settings.entry(path).or_insert(before);
            }
            Change::Started { process } => commands.push(*process),
        }
    }
    for (path, before) in settings {
        if setting::read(path)? != before {
            setting::write(path, before)?;
            restored.settings += 1;
        }
    }
    // A thread may start another while it is being put back, so look until a whole pass finds nothing.
    for _ in 0..PASSES_MAX {
        let found = restore_threads(path, &threads, &commands)?;
        restored.threads += found;
        if found == 0 {
            break;
        }
    }
    Ok(())
}

/// Passes over the threads: each can only be prolonged by threads born while the one before it ran.
const PASSES_MAX: usize = 20;

fn restore_threads(
    journal: &Path,
    named: &BTreeMap<ThreadName, &Scheduling>,
    commands: &[i32],
) -> Result<usize, HostError> {
    let mut found = 0;
    for (name, before) in named {
        found += put_back(name, before, |now| now != *before)?;
    }
    // What a process's threads were like, for threads that inherited a change from them.
    let mut models: BTreeMap<i32, &Scheduling> = BTreeMap::new();
    for (name, before) in named {
        models.entry(name.process).or_insert(before);
    }
    let fallback = named.values().next().copied();
    let mut roots: Vec<(i32, &Scheduling)> =
        models.iter().map(|(&process, &model)| (process, model)).collect();
    if let Some(model) = fallback {
        roots.extend(
            commands
                .iter()
                .filter(|process| !models.contains_key(process))
                .map(|&process| (process, model)),
        );
        roots.extend(tagged(journal).into_iter().map(|process| (process, model)));
    }
    for (root, model) in roots {
        for process in process::family(root) {
            let model = models.get(&process).copied().unwrap_or(model);
            for thread in process::threads(process) {
                let Some(name) = ThreadName::of(process, thread) else {
                    continue;
                };
                if named.contains_key(&name) {
                    continue;
                }
                let inherited = |now: &Scheduling| now.is_inherited_from(model);
                found += put_back(&name, model, inherited)?;
            }
        }
    }
    Ok(found)
}

/// Puts a thread back if it needs it; says how many were.
fn put_back(
    name: &ThreadName,
    before: &Scheduling,
    needs_it: impl Fn(&Scheduling) -> bool,
) -> Result<usize, HostError> {
    if !name.is_alive() {
        return Ok(0);
    }
    let result = Scheduling::of(name.thread).and_then(|now| {
        if !needs_it(&now) {
            return Ok(0);
        }
        before.apply(name.thread)?;
        Ok(1)
    });
    // A thread that ended in the meantime needs nothing.
    result.or_else(|error| if name.is_alive() { Err(error) } else { Ok(0) })
}

/// The processes whose environment names the journal.
fn tagged(journal: &Path) -> Vec<i32> {
    let tag = format!("{ENVIRONMENT}={}", journal.display());
    let names_it = |process: &i32| {
        let Ok(environment) = fs::read(format!("/proc/{process}/environ")) else {
            return false;
        };
        environment
            .split(|&byte| byte == 0)
            .any(|variable| variable == tag.as_bytes())
    };
    process::all().into_iter().filter(names_it).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("sidestep-journal-{}-{name}", std::process::id()))
    }

    #[test]
    fn a_changed_setting_is_put_back_by_the_next_controller() {
        let folder = folder("setting");
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("setting");
        fs::write(&path, "old\n").expect("a file");
        let (mut journal, _) = Journal::open(&folder).expect("a journal");
        std::mem::forget(crate::changed::Changed::to(&mut journal, &path, "new").expect("a change"));
        assert_eq!(setting::read(&path).expect("a value"), "new");
        assert!(
            matches!(Journal::open(&folder), Err(HostError::Busy { .. })),
            "one controller at a time"
        );
        assert_eq!(
            restore(&folder).expect("nothing to do"),
            Restored::default(),
            "the controller lives"
        );
        drop(journal);
        let (journal, restored) = Journal::open(&folder).expect("a journal");
        assert_eq!(
            restored,
            Restored {
                journals: 1,
                settings: 1,
                threads: 0
            }
        );
        assert_eq!(setting::read(&path).expect("a value"), "old");
        journal.close().expect("a regular end");
        fs::remove_dir_all(&folder).expect("the folder goes");
    }

    #[test]
    fn a_cut_off_last_line_is_no_change_and_garbage_before_it_is_an_error() {
        let path = Path::new("some.journal");
        let line = serde_json::to_string(&Change::Started { process: 7 }).expect("JSON");
        let text = format!("{line}\n{}", &line[..5]);
        assert_eq!(
            parse(path, &text).expect("one change"),
            [Change::Started { process: 7 }]
        );
        let error = parse(path, "garbage\n").expect_err("no change");
        assert!(error.to_string().contains("line 1"), "{error}");
    }

    proptest! {
        #[test]
        fn any_journal_is_read_or_refused(text in ".{0,200}") {
            let _ = parse(Path::new("some.journal"), &text);
        }
    }
}
