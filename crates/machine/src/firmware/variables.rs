//! The variables of EFI: named bytes that a guest keeps in its firmware.
//!
//! EFI 1.10, section 7.2. They are part of a saved machine. Those that last outlive a reset, and in a file
//! ([`nvram`](super::nvram)) the machine as well.

use serde::{Deserialize, Serialize};

use super::efi;

/// The most bytes of all variables with their names.
pub const BYTES_MAX: usize = 64 << 10;
/// The most characters of a name, its end included.
pub const NAME_MAX: usize = 512;

/// Attributes of a variable.
mod attribute {
    pub const NON_VOLATILE: u32 = 1 << 0;
    pub const BOOT_SERVICE: u32 = 1 << 1;
    pub const RUNTIME: u32 = 1 << 2;
}

/// The attributes of a variable that outlives a reset and that everybody sees.
pub const LASTING: u32 = attribute::NON_VOLATILE | attribute::BOOT_SERVICE | attribute::RUNTIME;

/// What a variable is called: a name in UTF-16 and the identifier of whoever gave it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// The name, without its end.
    pub name: Vec<u16>,
    /// The identifier.
    pub vendor: [u8; 16],
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Variable {
    key: Key,
    attributes: u32,
    data: Vec<u8>,
}

impl Variable {
    fn lasts(&self) -> bool {
        self.attributes & attribute::NON_VOLATILE != 0
    }

    /// Whether it is seen: once boot services have ended, not all are.
    fn is_seen(&self, is_booting: bool) -> bool {
        is_booting || self.attributes & attribute::RUNTIME != 0
    }
}

/// All variables, in the order in which they were made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variables(Vec<Variable>);

impl Variables {
    fn seen(&self, is_booting: bool) -> impl Iterator<Item = &Variable> {
        self.0.iter().filter(move |variable| variable.is_seen(is_booting))
    }

    /// Attributes and contents of a variable.
    pub fn get(&self, key: &Key, is_booting: bool) -> Option<(u32, &[u8])> {
        let variable = self.seen(is_booting).find(|variable| variable.key == *key)?;
        Some((variable.attributes, &variable.data))
    }

    /// The variable behind this one; with an empty name the first. `None` if there is none.
    pub fn next(&self, key: &Key, is_booting: bool) -> Option<&Key> {
        let mut seen = self.seen(is_booting);
        if !key.name.is_empty() {
            seen.find(|variable| variable.key == *key)?;
        }
        seen.next().map(|variable| &variable.key)
    }

    /// Those that outlive a reset, with their attributes and contents.
    pub fn lasting(&self) -> impl Iterator<Item = (&Key, u32, &[u8])> {
        let lasting = self.0.iter().filter(|variable| variable.lasts());
        lasting.map(|variable| (&variable.key, variable.attributes, variable.data.as_slice()))
    }

    /// What is left of them after a reset.
    pub fn after_reset(mut self) -> Variables {
        self.0.retain(Variable::lasts);
        self
    }

    /// Forgets what boot services alone see and nobody keeps: they have ended.
    pub fn end_boot(&mut self) {
        self.0
            .retain(|variable| variable.is_seen(false) || variable.lasts());
    }

    /// Makes or changes a variable; removes it if it has no contents or attributes. Answers a status. Once boot
    /// services have ended, there are only variables that last and that everybody sees.
    pub fn set(&mut self, key: Key, attributes: u32, data: Vec<u8>, is_booting: bool) -> u64 {
        if key.name.is_empty() || attributes & !LASTING != 0 {
            return efi::INVALID_PARAMETER;
        }
        let existing = self.0.iter().position(|variable| variable.key == key);
        if existing.is_some_and(|index| !self.0[index].is_seen(is_booting)) {
            return efi::WRITE_PROTECTED;
        }
        if attributes == 0 || data.is_empty() {
            return match existing {
                Some(index) => {
                    self.0.remove(index);
                    0
                }
                None => efi::NOT_FOUND,
            };
        }
        // What operating systems see, boot services do too; what these alone see, and what does not last, can no longer
        // be made behind their end.
        let is_seen = attributes & attribute::BOOT_SERVICE != 0;
        let stays = existing.is_none_or(|index| self.0[index].attributes == attributes);
        if !is_seen || !stays || !is_booting && attributes != LASTING {
            return efi::INVALID_PARAMETER;
        }
        let others = self.0.iter().filter(|variable| variable.key != key);
        let used: usize = others
            .map(|variable| variable.data.len() + 2 * variable.key.name.len())
            .sum();
        if used + data.len() + 2 * key.name.len() > BYTES_MAX {
            return efi::OUT_OF_RESOURCES;
        }
        match existing {
            Some(index) => self.0[index].data = data,
            None => self.0.push(Variable {
                key,
                attributes,
                data,
            }),
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(name: &str) -> Key {
        Key {
            name: name.encode_utf16().collect(),
            vendor: [1; 16],
        }
    }

    #[test]
    fn variables_are_made_changed_listed_and_removed() {
        let mut variables = Variables::default();
        assert_eq!(variables.next(&key(""), false), None);
        assert_eq!(variables.set(key("Boot0000"), LASTING, vec![1], false), 0);
        assert_eq!(variables.set(key("BootOrder"), LASTING, vec![0, 0], false), 0);
        assert_eq!(variables.set(key("Boot0000"), LASTING, vec![2, 3], false), 0);
        assert_eq!(
            variables.get(&key("Boot0000"), false),
            Some((LASTING, &[2, 3][..]))
        );
        let other = Key {
            vendor: [2; 16],
            ..key("Boot0000")
        };
        assert_eq!(variables.get(&other, false), None);
        let first = variables.next(&key(""), false).expect("two").clone();
        let second = variables.next(&first, false).expect("another").clone();
        assert_eq!((&first, &second), (&key("Boot0000"), &key("BootOrder")));
        assert_eq!(variables.next(&second, false), None);
        assert_eq!(variables.next(&other, false), None);
        assert_eq!(variables.set(key("Boot0000"), LASTING, Vec::new(), false), 0);
        assert_eq!(variables.set(key("BootOrder"), 0, vec![1], false), 0);
        assert_eq!(variables, Variables::default());
        assert_eq!(
            variables.set(key("BootOrder"), LASTING, Vec::new(), false),
            efi::NOT_FOUND
        );
    }

    #[test]
    fn what_would_not_last_or_not_fit_is_refused() {
        let mut variables = Variables::default();
        for (name, attributes) in [("", LASTING), ("v", 3), ("v", 6), ("v", 0x47), ("v", 1 << 31)] {
            assert_eq!(
                variables.set(key(name), attributes, vec![1], false),
                efi::INVALID_PARAMETER
            );
        }
        assert_eq!(
            variables.set(key("v"), LASTING, vec![0; BYTES_MAX], false),
            efi::OUT_OF_RESOURCES
        );
        assert_eq!(variables.set(key("v"), LASTING, vec![0; BYTES_MAX - 2], false), 0);
        assert_eq!(
            variables.set(key("w"), LASTING, vec![0], false),
            efi::OUT_OF_RESOURCES
        );
        assert_eq!(variables.set(key("v"), LASTING, vec![0], false), 0);
        assert_eq!(variables.set(key("w"), LASTING, vec![0], false), 0);
    }

    #[test]
    fn boot_services_have_variables_of_their_own_which_end_with_them() {
        let mut variables = Variables::default();
        assert_eq!(variables.set(key("own"), 2, vec![1], true), 0);
        assert_eq!(variables.set(key("seen"), 6, vec![1], true), 0);
        assert_eq!(
            variables.set(key("none"), 4, vec![1], true),
            efi::INVALID_PARAMETER
        );
        assert_eq!(
            variables.set(key("seen"), LASTING, vec![1], true),
            efi::INVALID_PARAMETER
        );
        assert_eq!(variables.set(key("kept"), 3, vec![1], true), 0);
        variables.end_boot();
        assert_eq!(variables.get(&key("own"), true), None);
        // What boot services alone see, but keep, is there for the next ones.
        assert_eq!(variables.get(&key("kept"), false), None);
        assert_eq!(variables.next(&key(""), false), Some(&key("seen")));
        assert_eq!(variables.next(&key("seen"), false), None);
        assert_eq!(
            variables.set(key("kept"), 0, Vec::new(), false),
            efi::WRITE_PROTECTED
        );
        assert_eq!(variables.get(&key("seen"), false), Some((6, &[1][..])));
        let variables = variables.after_reset();
        assert_eq!(variables.get(&key("kept"), true), Some((3, &[1][..])));
        assert_eq!(variables.get(&key("seen"), true), None);
    }

    proptest! {
        #[test]
        fn a_listing_names_every_variable_once(names in prop::collection::vec("[a-d]{1,2}", 0..12)) {
            let mut variables = Variables::default();
            for name in &names {
                variables.set(key(name), LASTING, vec![1], false);
            }
            let mut listed = Vec::new();
            let mut at = key("");
            while let Some(next) = variables.next(&at, false) {
                at = next.clone();
                listed.push(String::from_utf16(&at.name).expect("letters"));
            }
            let mut expected = names;
            expected.sort();
            expected.dedup();
            listed.sort();
            prop_assert_eq!(listed, expected);
        }
    }
}
