//! Finds out the version of the experiments: a hash of all sources that decide what comes out of them.
//!
//! What two builds of the same sources compute in virtual time is the same, whatever they are part of: the command, a
//! library for another language. So they share kept points, and a change of a source makes all of them anew. A package
//! has only its own sources with it: there the version of the package stands for the others.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

fn main() {
    let own = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the folder"));
    let mut sources = BTreeSet::new();
    let workspace = own
        .ancestors()
        .nth(2)
        .filter(|root| root.join("Cargo.lock").exists());
    let root = workspace.unwrap_or(&own);
    if workspace.is_some() {
        for room in rooms_below(root) {
            // Images of guests are sources here: what they were built from is not read.
            let inner: &[&str] = match room.ends_with("guests") {
                true => &[""],
                false => &["src", "Cargo.toml"],
            };
            inner
                .iter()
                .for_each(|part| collect(&room.join(part), &mut sources));
        }
        collect(&root.join("Cargo.lock"), &mut sources);
    } else {
        collect(&own.join("src"), &mut sources);
    }
    let mut hash = Sha256::new();
    for source in &sources {
        println!("cargo::rerun-if-changed={}", source.display());
        let content = fs::read(source).expect("a source can be read");
        // Names relative to the workspace, lengths in between: another cut of the same bytes is another hash.
        let name = source.strip_prefix(root).unwrap_or(source).display().to_string();
        for part in [name.as_bytes(), &content] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    let digits: String = hash.finalize()[..6]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    println!("cargo::rustc-env=SIDESTEP_SOURCES={digits}");
}

/// The folders of this crate and of all crates of the workspace that it depends on.
fn rooms_below(root: &Path) -> BTreeSet<PathBuf> {
    let mut rooms = BTreeSet::new();
    let mut left = vec![root.join("crates/experiments")];
    while let Some(room) = left.pop() {
        let manifest = fs::read_to_string(room.join("Cargo.toml")).expect("a crate has a manifest");
        if !rooms.insert(room) {
            continue;
        }
        let names = manifest.lines().filter_map(|line| line.strip_prefix("sidestep-"));
        let names = names.filter_map(|line| line.split(['.', ' ']).next());
        left.extend(names.map(|name| match name {
            "guests" => root.join(name),
            _ => root.join("crates").join(name),
        }));
    }
    rooms
}

/// Adds a file, or all files below a folder.
fn collect(path: &Path, sources: &mut BTreeSet<PathBuf>) {
    match fs::read_dir(path) {
        Ok(entries) => {
            // A file that is new is a change of its folder.
            println!("cargo::rerun-if-changed={}", path.display());
            let paths = entries.map(|entry| entry.expect("an entry of a folder").path());
            paths.for_each(|path| collect(&path, sources));
        }
        Err(_) => drop(sources.insert(path.to_owned())),
    }
}
