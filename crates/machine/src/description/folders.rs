//! `[[folder]]`, or an option for one: a folder of the host that the guest may use.

use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::devices::DeviceError;
use crate::folder::server::Server;
use crate::folder::tree::Tree;
use crate::virtio::folder::{Folder, TAG_BYTES_MAX};

/// `[[folder]]`: a folder of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FolderTable {
    /// The folder, relative to the description.
    pub path: PathBuf,
    /// What the guest mounts it by.
    #[serde(default = "usual_tag")]
    pub tag: String,
    /// Whether the guest may not change anything.
    #[serde(default)]
    pub read_only: bool,
}

fn usual_tag() -> String {
    "host".to_owned()
}

/// What is no folder to be shared.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoFolder {
    /// A tag that no guest can mount.
    #[error("`tag={0}` must have 1 to {TAG_BYTES_MAX} bytes")]
    Tag(String),
    /// No folder at all.
    #[error("`{0}` must be `FOLDER[,tag=NAME][,readonly]`")]
    Nothing(String),
}

impl FromStr for FolderTable {
    type Err = NoFolder;

    /// As an option says it: `FOLDER[,tag=NAME][,readonly]`; a folder may have commas in its name.
    fn from_str(text: &str) -> Result<FolderTable, NoFolder> {
        let (mut tag, mut read_only) = (usual_tag(), false);
        let mut path = text;
        while let Some((before, last)) = path.rsplit_once(',') {
            match last.split_once('=') {
                None if last == "readonly" => read_only = true,
                Some(("tag", name)) => name.clone_into(&mut tag),
                _ => break,
            }
            path = before;
        }
        if path.is_empty() {
            return Err(NoFolder::Nothing(text.to_owned()));
        }
        let table = FolderTable {
            path: path.into(),
            tag,
            read_only,
        };
        match table.has_tag() {
            true => Ok(table),
            false => Err(NoFolder::Tag(table.tag)),
        }
    }
}

impl FolderTable {
    fn has_tag(&self) -> bool {
        (1..=TAG_BYTES_MAX).contains(&self.tag.len())
    }

    /// The device for it.
    ///
    /// # Errors
    /// If it is no folder, or has no name that a guest could mount.
    pub fn device(&self) -> Result<Folder, DeviceError> {
        if !self.has_tag() {
            return Err(DeviceError::FolderTag(NoFolder::Tag(self.tag.clone())));
        }
        let tree = Tree::open(&self.path, self.read_only).map_err(|error| DeviceError::Folder {
            path: self.path.clone(),
            error,
        })?;
        Ok(Folder::new(&self.tag, Server::new(tree)))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_folder_has_a_name_for_the_guest_and_may_be_read_only() {
        let parsed = |text: &str| text.parse::<FolderTable>();
        let plain = parsed("a,b").expect("a folder");
        assert_eq!(
            (plain.path.as_path(), plain.tag.as_str()),
            (Path::new("a,b"), "host")
        );
        let named = parsed("a,readonly,tag=x").expect("a folder");
        assert_eq!((named.tag.as_str(), named.read_only), ("x", true));
        assert_eq!(parsed("a,tag="), Err(NoFolder::Tag(String::new())));
        assert!(parsed(&format!("a,tag={}", "x".repeat(33))).is_err());
        assert_eq!(
            parsed(",readonly"),
            Err(NoFolder::Nothing(",readonly".to_owned()))
        );
    }
}
