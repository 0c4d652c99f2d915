//! `[contention]`: what cores share, and what that costs those who run beside each other.

use std::path::Path;

use serde::Deserialize;

use super::{BuildError, table};
use crate::contention::{Contention, Hierarchy};

/// `[contention]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ContentionTable {
    /// What cores share: the name of a preset, or a file.
    pub hierarchy: String,
    /// By how much caches are smaller than that.
    #[serde(default = "undivided")]
    pub cache_divisor: u64,
}

fn undivided() -> u64 {
    1
}

impl ContentionTable {
    /// What is to be modelled; paths are relative to `folder`.
    pub(super) fn contention(&self, folder: &Path) -> Result<Contention, BuildError> {
        let wrong = |name, error| BuildError::Hierarchy { name, error };
        Ok(Contention {
            hierarchy: table(
                folder,
                &self.hierarchy,
                Hierarchy::preset,
                Hierarchy::parse,
                wrong,
            )?,
            cache_divisor: self.cache_divisor,
        })
    }
}
