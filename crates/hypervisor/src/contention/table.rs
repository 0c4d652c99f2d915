//! What cores share, as a table that is read from TOML.
//!
//! It is kept as strictly as a host's table of [costs](crate::costs): every entry is there and names its source.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sidestep_gang::Topology;
use sidestep_machine::description::{self, DescriptionError};
use thiserror::Error;

/// An entry of a table: key, what it is, least and greatest value.
type Known = (&'static str, &'static str, u64, u64);

macro_rules! entries {
    ($($(#[$doc:meta])* $name:ident = $key:literal, $text:literal, $least:literal to $most:literal;)+) => {
        /// An entry of the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Shared {
            $($(#[$doc])* $name,)+
        }

        impl Shared {
            /// Every entry, in the order of the table.
            const ALL: &'static [Known] = &[$(($key, $text, $least, $most),)+];

            /// Its key in a file.
            pub fn key(self) -> &'static str {
                match self { $(Shared::$name => $key,)+ }
            }
        }
    };
}

entries! {
    /// Sockets, each with a last-level cache and memory of its own.
    Sockets = "sockets", "sockets of the host", 1 to 64;
    /// Cores of a socket.
    Cores = "cores", "cores of a socket", 1 to 256;
    /// Hardware threads of a core.
    Threads = "threads", "hardware threads of a core", 1 to 8;
    /// What a hardware thread does while a sibling executes, in thousandths of what it does alone.
    ThreadPermille = "thread-permille", "speed of a hardware thread beside another", 1 to 1000;
    /// The size of a core's own cache in KiB.
    PrivateKib = "private-kib", "KiB of a core's own cache", 1 to 1048576;
    /// Its ways.
    PrivateWays = "private-ways", "ways of a core's own cache", 1 to 64;
    /// The size of the cache that the cores of a socket share, in KiB.
    SharedKib = "shared-kib", "KiB of a socket's shared cache", 1 to 1048576;
    /// Its ways.
    SharedWays = "shared-ways", "ways of a socket's shared cache", 1 to 64;
    /// What a hit there takes, in picoseconds.
    SharedPs = "shared-ps", "picoseconds of a hit in the shared cache", 0 to 1000000000;
    /// What a line from memory takes, in picoseconds.
    MemoryPs = "memory-ps", "picoseconds of a line from memory", 0 to 1000000000;
    /// How many lines of one stream are on their way at once.
    FillBuffers = "fill-buffers", "lines that a core has on their way at once", 1 to 1024;
    /// What the memory of a socket delivers, in MB (10^6 bytes) a second.
    SocketMbPerS = "socket-mb-per-s", "MB a second of a socket's memory", 1 to 1000000000;
}

/// The presets: name and contents.
pub const PRESETS: &[(&str, &str)] = &[
    (
        "gainestown",
        include_str!("../presets/hierarchies/gainestown.toml"),
    ),
    ("lynnfield", include_str!("../presets/hierarchies/lynnfield.toml")),
];

/// Why a table of what cores share cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HierarchyError {
    /// Not the structure of such a table.
    #[error("line {}, column {}: {}", .0.line, .0.column, .0.message)]
    Syntax(Box<DescriptionError>),
    /// An entry is missing.
    #[error("`hierarchy.{key}` is missing: {description}")]
    Missing {
        /// Its key.
        key: &'static str,
        /// What it is.
        description: &'static str,
    },
    /// A key that names no entry.
    #[error("`hierarchy.{key}` is no entry; there are {known}")]
    Unknown {
        /// The key.
        key: String,
        /// Every key.
        known: String,
    },
    /// An entry without a source.
    #[error("`hierarchy.{key}` names no source: where does the figure come from?")]
    NoSource {
        /// Its key.
        key: &'static str,
    },
    /// A number that makes no sense.
    #[error("`{key}` is {value}: {range} is possible")]
    OutOfRange {
        /// Its key.
        key: String,
        /// Its value.
        value: u64,
        /// What it may be.
        range: String,
    },
    /// A preset that does not exist.
    #[error("there is no preset `{name}`; there are {known}, and files that end in .toml")]
    NoPreset {
        /// The name.
        name: String,
        /// Every preset.
        known: String,
    },
}

/// The size of a cache line.
pub(super) const LINE_LOG2: u32 = 6;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    value: u64,
    source: String,
}

/// What the cores of a host share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hierarchy {
    /// The machine.
    pub name: String,
    hierarchy: BTreeMap<String, Entry>,
}

impl Hierarchy {
    /// Reads a table.
    ///
    /// # Errors
    /// What is missing, unknown, without source or out of range, by its key.
    pub fn parse(text: &str) -> Result<Hierarchy, HierarchyError> {
        let hierarchy: Hierarchy =
            description::parse("", text).map_err(|error| HierarchyError::Syntax(Box::new(error)))?;
        hierarchy.check()?;
        Ok(hierarchy)
    }

    /// The preset of this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn preset(name: &str) -> Result<Hierarchy, HierarchyError> {
        let found = PRESETS.iter().find(|(preset, _)| *preset == name);
        let (_, text) = found.ok_or_else(|| HierarchyError::NoPreset {
            name: name.to_owned(),
            known: PRESETS
                .iter()
                .map(|(name, _)| *name)
                .collect::<Vec<_>>()
                .join(", "),
        })?;
        Hierarchy::parse(text)
    }

    fn check(&self) -> Result<(), HierarchyError> {
        let out_of_range = |key: &str, value, range: String| HierarchyError::OutOfRange {
            key: format!("hierarchy.{key}"),
            value,
            range,
        };
        for (key, text, least, most) in Shared::ALL {
            let Some(entry) = self.hierarchy.get(*key) else {
                return Err(HierarchyError::Missing {
                    key,
                    description: text,
                });
            };
            if entry.source.trim().is_empty() {
                return Err(HierarchyError::NoSource { key });
            }
            if !(*least..=*most).contains(&entry.value) {
                return Err(out_of_range(key, entry.value, format!("{least} to {most}")));
            }
        }
        let is_known = |key: &String| Shared::ALL.iter().any(|(known, ..)| known == key);
        if let Some(key) = self.hierarchy.keys().find(|key| !is_known(key)) {
            return Err(HierarchyError::Unknown {
                key: key.clone(),
                known: Shared::ALL
                    .iter()
                    .map(|(key, ..)| *key)
                    .collect::<Vec<_>>()
                    .join(", "),
            });
        }
        for (kib, ways) in [
            (Shared::PrivateKib, Shared::PrivateWays),
            (Shared::SharedKib, Shared::SharedWays),
        ] {
            let lines = self.value(kib) << (10 - LINE_LOG2);
            let ways = self.value(ways);
            if !lines.is_multiple_of(ways) || !(lines / ways).is_power_of_two() {
                let range = format!("so much that {ways} ways have a power of two of lines each");
                return Err(out_of_range(kib.key(), self.value(kib), range));
            }
        }
        Ok(())
    }

    /// An entry.
    pub fn value(&self, entry: Shared) -> u64 {
        self.hierarchy[entry.key()].value
    }

    /// The same with another value of an entry, which keeps its bounds; for what varies an estimate.
    ///
    /// # Errors
    /// A value out of range.
    pub fn with(mut self, entry: Shared, value: u64) -> Result<Hierarchy, HierarchyError> {
        let key = entry.key().to_owned();
        let source = "given".to_owned();
        self.hierarchy.insert(key, Entry { value, source });
        self.check()?;
        Ok(self)
    }

    /// How many hardware threads there are.
    pub fn hardware_threads(&self) -> usize {
        [Shared::Sockets, Shared::Cores, Shared::Threads]
            .map(|entry| self.value(entry) as usize)
            .iter()
            .product()
    }

    /// Which hardware threads are close. Threads of one core have neighbouring numbers.
    pub fn topology(&self) -> Topology {
        let [sockets, cores, threads] =
            [Shared::Sockets, Shared::Cores, Shared::Threads].map(|entry| self.value(entry) as usize);
        Topology::regular(sockets, 1, cores, threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_complete_and_mistakes_are_named() {
        for (name, text) in PRESETS {
            let hierarchy = Hierarchy::preset(name).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(hierarchy.hardware_threads(), 8, "{name}");
            assert_eq!(hierarchy.topology().cores(), 8, "{name}");
            let error = |from: &str, to: &str| {
                Hierarchy::parse(&text.replacen(from, to, 1))
                    .expect_err("a bad table")
                    .to_string()
            };
            assert!(error("hierarchy.cores", "hierarchy.coers").contains("`hierarchy.cores` is missing"));
            assert!(error("value = 4\n", "value = 0\n").contains("`hierarchy.cores` is 0: 1 to 256"));
            assert!(error("value = 8192", "value = 8191").contains("`hierarchy.shared-kib` is 8191"));
        }
        let extra = format!("{}\n[hierarchy.more]\nvalue = 1\nsource = \"x\"\n", PRESETS[0].1);
        let error = Hierarchy::parse(&extra).expect_err("a bad table").to_string();
        assert!(
            error.contains("`hierarchy.more` is no entry; there are sockets"),
            "{error}"
        );
        let error = Hierarchy::preset("nehalem")
            .expect_err("no such preset")
            .to_string();
        assert!(error.contains("gainestown, lynnfield"), "{error}");
    }
}
