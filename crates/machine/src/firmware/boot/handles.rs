//! The database of handles: which protocols each has, where their interfaces are, and who has opened them.

use std::collections::BTreeMap;

use super::super::efi;
use super::guest::{Failure, Guid};

/// The most handles, and the most interfaces and openings of one.
const HANDLES_MAX: usize = 16 << 10;
const OF_HANDLE_MAX: usize = 256;
/// Handles are numbers that no memory has.
const FIRST_HANDLE: u64 = 0xefee_0000_0000_0010;

/// Attributes of an opening (EFI 1.10, section 5.3.1).
pub mod opening {
    /// A driver manages the handle.
    pub const BY_DRIVER: u32 = 0x10;
    /// Nobody else may.
    pub const EXCLUSIVE: u32 = 0x20;
    /// The interface is not wanted.
    pub const TEST_PROTOCOL: u32 = 4;
}

/// Who uses an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The image.
    pub agent: u64,
    /// The handle that it is for.
    pub controller: u64,
    /// See [`opening`].
    pub attributes: u32,
    /// How often.
    pub count: u32,
}

/// A protocol of a handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The protocol.
    pub guid: Guid,
    /// Where it is.
    pub address: u64,
    /// Who uses it.
    pub openings: Vec<Opening>,
}

/// All handles, in the order in which they were made.
pub struct Handles {
    next: u64,
    entries: BTreeMap<u64, Vec<Interface>>,
}

impl Handles {
    /// None yet.
    pub fn new() -> Handles {
        Handles {
            next: FIRST_HANDLE,
            entries: BTreeMap::new(),
        }
    }

    /// Gives a handle an interface; null is a new handle.
    ///
    /// # Errors
    /// If there is no such handle, it has one already, or there is no room left.
    pub fn install(&mut self, handle: u64, guid: Guid, address: u64) -> Result<u64, Failure> {
        let handle = match handle {
            0 if self.entries.len() >= HANDLES_MAX => return Err(efi::OUT_OF_RESOURCES),
            0 => {
                self.next += 16;
                self.entries.insert(self.next, Vec::new());
                self.next
            }
            handle => handle,
        };
        let interfaces = self.entries.get_mut(&handle).ok_or(efi::INVALID_PARAMETER)?;
        if interfaces.iter().any(|interface| interface.guid == guid) {
            return Err(efi::INVALID_PARAMETER);
        }
        if interfaces.len() >= OF_HANDLE_MAX {
            return Err(efi::OUT_OF_RESOURCES);
        }
        interfaces.push(Interface {
            guid,
            address,
            openings: Vec::new(),
        });
        Ok(handle)
    }

    /// Takes an interface from a handle; with its last the handle is gone.
    ///
    /// # Errors
    /// If it does not have it, or a driver uses it.
    pub fn uninstall(&mut self, handle: u64, guid: Guid, address: u64) -> Result<(), Failure> {
        let interfaces = self.entries.get_mut(&handle).ok_or(efi::INVALID_PARAMETER)?;
        let is_it = |interface: &Interface| interface.guid == guid && interface.address == address;
        let index = interfaces.iter().position(is_it).ok_or(efi::NOT_FOUND)?;
        let is_used = |opening: &Opening| opening.attributes & opening::BY_DRIVER != 0;
        if interfaces[index].openings.iter().any(is_used) {
            return Err(efi::ACCESS_DENIED);
        }
        interfaces.remove(index);
        if interfaces.is_empty() {
            self.entries.remove(&handle);
        }
        Ok(())
    }

    /// The interfaces of a handle.
    ///
    /// # Errors
    /// If there is no such handle.
    pub fn interfaces(&self, handle: u64) -> Result<&[Interface], Failure> {
        self.entries
            .get(&handle)
            .map(Vec::as_slice)
            .ok_or(efi::INVALID_PARAMETER)
    }

    /// An interface of a handle.
    ///
    /// # Errors
    /// If there is no such handle, or it does not have it.
    pub fn interface(&mut self, handle: u64, guid: &Guid) -> Result<&mut Interface, Failure> {
        let interfaces = self.entries.get_mut(&handle).ok_or(efi::INVALID_PARAMETER)?;
        let found = interfaces.iter_mut().find(|interface| interface.guid == *guid);
        found.ok_or(efi::UNSUPPORTED)
    }

    /// Where an interface of a handle is, if it has it.
    pub fn find(&self, handle: u64, guid: &Guid) -> Option<u64> {
        let interfaces = self.entries.get(&handle)?;
        let found = interfaces.iter().find(|interface| interface.guid == *guid)?;
        Some(found.address)
    }

    /// The handles that have a protocol; all of them, if none is named.
    pub fn with(&self, guid: Option<&Guid>) -> Vec<u64> {
        let has = |interfaces: &[Interface]| {
            guid.is_none_or(|guid| interfaces.iter().any(|interface| interface.guid == *guid))
        };
        let found = self.entries.iter().filter(|(_, interfaces)| has(interfaces));
        found.map(|(handle, _)| *handle).collect()
    }

    /// Notes that an agent uses an interface.
    ///
    /// # Errors
    /// If another one has it for itself.
    pub fn open(&mut self, handle: u64, guid: &Guid, opening: Opening) -> Result<u64, Failure> {
        let interface = self.interface(handle, guid)?;
        let is_same = |other: &Opening| Opening { count: 0, ..*other } == opening;
        if opening.attributes & (opening::BY_DRIVER | opening::EXCLUSIVE) != 0 {
            let blocks = |other: &Opening| {
                other.attributes & opening::EXCLUSIVE != 0
                    || other.attributes & opening::BY_DRIVER != 0
                        && opening.attributes & opening::BY_DRIVER != 0
            };
            if interface.openings.iter().any(is_same) {
                return Err(efi::ALREADY_STARTED);
            }
            if interface.openings.iter().any(blocks) {
                return Err(efi::ACCESS_DENIED);
            }
        }
        match interface.openings.iter().position(is_same) {
            Some(same) => {
                let count = &mut interface.openings[same].count;
                *count = count.saturating_add(1);
            }
            None if interface.openings.len() >= OF_HANDLE_MAX => return Err(efi::OUT_OF_RESOURCES),
            None => interface.openings.push(Opening { count: 1, ..opening }),
        }
        Ok(interface.address)
    }

    /// Forgets that an agent uses an interface for a controller.
    ///
    /// # Errors
    /// If it does not.
    pub fn close(&mut self, handle: u64, guid: &Guid, agent: u64, controller: u64) -> Result<(), Failure> {
        let interface = self.interface(handle, guid).map_err(|failure| match failure {
            efi::UNSUPPORTED => efi::NOT_FOUND,
            other => other,
        })?;
        let before = interface.openings.len();
        interface
            .openings
            .retain(|opening| (opening.agent, opening.controller) != (agent, controller));
        match interface.openings.len() < before {
            true => Ok(()),
            false => Err(efi::NOT_FOUND),
        }
    }

    /// Forgets all that an image uses.
    pub fn forget_agent(&mut self, agent: u64) {
        for interface in self.entries.values_mut().flatten() {
            interface.openings.retain(|opening| opening.agent != agent);
        }
    }
}
