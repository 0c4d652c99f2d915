//! The file in which a machine's variables outlive it: what flash memory is to a real one.
//!
//! Text in TOML, which may be written by hand as well:
//!
//! ```toml
//! version = 1
//!
//! [[variable]]
//! name = "BootNext"
//! vendor = "8be4df61-93ca-11d2-aa0d-00e098032b8c"
//! attributes = 7
//! data = [1, 0]
//! ```
//!
//! A name that is no text, as UTF-16 allows, is a list of its units.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sidestep_files::{TEXT_BYTES_MAX, WriteError};
use thiserror::Error;
use uuid::Uuid;

use super::variables::{Key, NAME_MAX, Variables};

/// The version of the format; others are refused.
const VERSION: u32 = 1;

/// Why a file of variables cannot be used.
#[derive(Debug, Error)]
pub enum NvramError {
    /// It cannot be read.
    #[error("{}: cannot be read: {error}", file.display())]
    File {
        /// Which.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It could not be written once a variable changes.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// It is no such file.
    #[error("{}: is no file of EFI variables: {error}", file.display())]
    Format {
        /// Which.
        file: PathBuf,
        /// Where, and what would be right.
        error: Box<toml::de::Error>,
    },
    /// It is of another version.
    #[error("{}: has version {version} of the format; this program knows version {VERSION}", file.display())]
    Version {
        /// Which.
        file: PathBuf,
        /// Its version.
        version: u32,
    },
    /// A firmware would not have taken a variable.
    #[error(
        "{}: variable {number} cannot be: it needs a name that no other of its vendor has, contents, attributes 3 or 7, \
         and all together have at most {limit} bytes", file.display(), limit = super::variables::BYTES_MAX)]
    Variable {
        /// Which.
        file: PathBuf,
        /// The variable's, from 1 on.
        number: usize,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    version: u32,
    #[serde(default)]
    variable: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Name,
    vendor: Uuid,
    attributes: u32,
    data: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "a name is a text or a list of numbers below 65536")]
enum Name {
    Text(String),
    Units(Vec<u16>),
}

/// The variables in a file; none if there is no file yet. Finds out whether it can be written.
///
/// # Errors
/// If it cannot be read or written, or is no such file.
pub fn read(file: &Path) -> Result<Variables, NvramError> {
    sidestep_files::probe(file)?;
    let text = match sidestep_files::read_text(file, TEXT_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Variables::default()),
        Err(error) => {
            let file = file.to_owned();
            return Err(NvramError::File { file, error });
        }
    };
    let contents: Contents = toml::from_str(&text).map_err(|error| NvramError::Format {
        file: file.to_owned(),
        error: Box::new(error),
    })?;
    if contents.version != VERSION {
        let (file, version) = (file.to_owned(), contents.version);
        return Err(NvramError::Version { file, version });
    }
    let mut variables = Variables::default();
    for (number, entry) in (1..).zip(contents.variable) {
        let key = Key {
            name: match entry.name {
                Name::Text(text) => text.encode_utf16().collect(),
                Name::Units(units) => units,
            },
            vendor: entry.vendor.to_bytes_le(),
        };
        let is_name = key.name.len() < NAME_MAX && !key.name.contains(&0);
        let before = variables.lasting().count();
        let status = variables.set(key, entry.attributes, entry.data, true);
        if !is_name || status != 0 || variables.lasting().count() != before + 1 {
            let file = file.to_owned();
            return Err(NvramError::Variable { file, number });
        }
    }
    Ok(variables)
}

/// Writes those variables that last to a file, whole or not at all.
///
/// # Errors
/// If the file cannot be written.
pub fn write(file: &Path, variables: &Variables) -> Result<(), WriteError> {
    let entry = |(key, attributes, data): (&Key, u32, &[u8])| Entry {
        name: match String::from_utf16(&key.name) {
            Ok(text) => Name::Text(text),
            Err(_) => Name::Units(key.name.clone()),
        },
        vendor: Uuid::from_bytes_le(key.vendor),
        attributes,
        data: data.to_vec(),
    };
    let contents = Contents {
        version: VERSION,
        variable: variables.lasting().map(entry).collect(),
    };
    let text = toml::to_string(&contents).expect("texts, numbers and lists of them");
    sidestep_files::write(file, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_no_firmware_would_have_taken_is_refused_by_file_and_place() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("nvram.toml");
        let good = "[[variable]]\nname = 'a'\nvendor = '8be4df61-93ca-11d2-aa0d-00e098032b8c'\nattributes = 7\n\
                    data = [1]\n";
        let cases = [
            ("version = 2\n".to_owned(), "has version 2"),
            ("version =\n".to_owned(), "line 1"),
            (
                format!("version = 1\n{}", good.replace("= 7", "= 6")),
                "variable 1 cannot be",
            ),
            (
                format!("version = 1\n{}", good.replace("[1]", "[]")),
                "variable 1 cannot be",
            ),
            (format!("version = 1\n{}", good.replace("[1]", "[256]")), "256"),
            (
                format!("version = 1\n{}", good.replace("'a'", "3")),
                "a name is a text",
            ),
            (
                format!("version = 1\n{}", good.replace("8be4", "gbe4")),
                "is no file of EFI variables",
            ),
            (format!("version = 1\n{good}{good}"), "variable 2 cannot be"),
        ];
        for (text, expected) in cases {
            std::fs::write(&file, &text).expect("a file");
            let error = read(&file).expect_err(&text).to_string();
            assert!(
                error.contains("nvram.toml") && error.contains(expected),
                "{error}"
            );
        }
        std::fs::write(&file, format!("version = 1\n{good}")).expect("a file");
        assert_eq!(read(&file).expect("a good one").lasting().count(), 1);
    }

    proptest! {
        #[test]
        fn variables_come_back_as_they_were_written(
            entries in prop::collection::vec(
                (prop::collection::vec(1u16.., 1..5), any::<[u8; 16]>(), prop::collection::vec(any::<u8>(), 1..20)),
                0..6,
            ),
        ) {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let file = folder.path().join("nvram.toml");
            let mut variables = Variables::default();
            for (name, vendor, data) in entries {
                variables.set(Key { name, vendor }, 3 | u32::from(data[0]) & 4, data, true);
            }
            write(&file, &variables).expect("a new file");
            prop_assert_eq!(read(&file).expect("what was written"), variables);
        }
    }
}
