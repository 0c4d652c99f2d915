//! Services on handles and protocols (EFI 1.10, section 5.3).

use super::super::efi::{self, MemoryType};
use super::Boot;
use super::device_path::{BYTES_MAX, DevicePath};
use super::guest::{Failure, Guest, Guid};
use super::handles::{Opening, opening};
use super::services::Service;

/// The protocol that says where a device is.
pub const DEVICE_PATH: Guid = efi::guid(
    0x0957_6e91,
    0x6d3f,
    0x11d2,
    [0x8e, 0x39, 0, 0xa0, 0xc9, 0x69, 0x72, 0x3b],
);

/// The most registrations for new interfaces, and the most interfaces that are installed at once.
const REGISTRATIONS_MAX: usize = 1024;
const MULTIPLE_MAX: u64 = 64;
/// The most handles that are new to somebody who does not ask.
const NEW_MAX: usize = 4096;

/// Somebody who wants to know of new interfaces of a protocol.
pub struct Registration {
    guid: Guid,
    event: u64,
    /// Handles that are new to whoever asks.
    new: Vec<u64>,
}

/// Where registrations begin: numbers that no memory has.
const FIRST_REGISTRATION: u64 = 0xefee_2000_0000_0000;

impl Boot {
    /// Services on handles and protocols.
    pub(super) fn serve_protocols(
        &mut self,
        guest: &mut Guest<'_, '_>,
        service: Service,
    ) -> Result<(), Failure> {
        let [first, second, third, fourth, fifth, sixth] = guest.arguments();
        match service {
            Service::InstallProtocolInterface => {
                // Type of the interface: native code, the only one.
                if first == 0 || third as u32 != 0 {
                    return Err(efi::INVALID_PARAMETER);
                }
                let guid = guest.guid(second)?;
                let handle = guest.word(first)?;
                let handle = self.install(handle, guid, fourth)?;
                guest.set_word(first, handle)
            }
            Service::ReinstallProtocolInterface => {
                let guid = guest.guid(second)?;
                let interface = self.handles.interface(first, &guid)?;
                if interface.address != third {
                    return Err(efi::NOT_FOUND);
                }
                interface.address = fourth;
                self.announce(first, &guid);
                Ok(())
            }
            Service::UninstallProtocolInterface => {
                let guid = guest.guid(second)?;
                self.handles.uninstall(first, guid, third)
            }
            Service::InstallMultipleProtocolInterfaces => self.install_multiple(guest, first),
            Service::UninstallMultipleProtocolInterfaces => {
                let pairs = pairs(guest)?;
                let present =
                    |(guid, address): &(Guid, u64)| self.handles.find(first, guid) == Some(*address);
                if !pairs.iter().all(present) {
                    return Err(efi::INVALID_PARAMETER);
                }
                for (guid, address) in pairs {
                    self.handles.uninstall(first, guid, address)?;
                }
                Ok(())
            }
            Service::HandleProtocol => {
                let guid = guest.guid(second)?;
                let address = self.handles.interface(first, &guid)?.address;
                guest.set_word(third, address)
            }
            Service::OpenProtocol => {
                let guid = guest.guid(second)?;
                let opening = Opening {
                    agent: fourth,
                    controller: fifth,
                    attributes: sixth as u32,
                    count: 0,
                };
                let address = self.handles.open(first, &guid, opening)?;
                match opening.attributes {
                    opening::TEST_PROTOCOL => Ok(()),
                    _ => guest.set_optional(third, address),
                }
            }
            Service::CloseProtocol => {
                let guid = guest.guid(second)?;
                self.handles.close(first, &guid, third, fourth)
            }
            Service::OpenProtocolInformation => {
                let guid = guest.guid(second)?;
                let interface = self.handles.interface(first, &guid).map_err(|_| efi::NOT_FOUND)?;
                let openings = interface.openings.iter().map(|opening| {
                    let (attributes, count) = (u64::from(opening.attributes), u64::from(opening.count));
                    [opening.agent, opening.controller, attributes | count << 32]
                });
                let words: Vec<u64> = openings.flatten().collect();
                self.answer_buffer(guest, &words, third)?;
                guest.set_word(fourth, words.len() as u64 / 3)
            }
            Service::ProtocolsPerHandle => {
                let guids: Vec<Guid> = self
                    .handles
                    .interfaces(first)?
                    .iter()
                    .map(|interface| interface.guid)
                    .collect();
                let mut addresses = Vec::new();
                for guid in guids {
                    addresses.push(self.memory.place(guest, &guid)?);
                }
                self.answer_buffer(guest, &addresses, second)?;
                guest.set_word(third, addresses.len() as u64)
            }
            Service::RegisterProtocolNotify => {
                if self.registrations.len() >= REGISTRATIONS_MAX {
                    return Err(efi::OUT_OF_RESOURCES);
                }
                let guid = guest.guid(first)?;
                let new = self.handles.with(Some(&guid));
                self.registrations.push(Registration {
                    guid,
                    event: second,
                    new,
                });
                guest.set_word(third, FIRST_REGISTRATION + self.registrations.len() as u64)
            }
            Service::LocateHandle => {
                let found = self.locate(guest, [first, second, third])?;
                let bytes: Vec<u8> = found.iter().flat_map(|handle| handle.to_le_bytes()).collect();
                guest.answer(fourth, fifth, &bytes)
            }
            Service::LocateHandleBuffer => {
                let found = self.locate(guest, [first, second, third])?;
                self.answer_buffer(guest, &found, fifth)?;
                guest.set_word(fourth, found.len() as u64)
            }
            Service::LocateProtocol => {
                let guid = guest.guid(first)?;
                let handle = match second {
                    0 => self.handles.with(Some(&guid)).first().copied(),
                    key => self.take_new(key)?,
                };
                let address = handle.and_then(|handle| self.handles.find(handle, &guid));
                let found = address.ok_or(efi::NOT_FOUND);
                if found.is_err() {
                    guest.set_word(third, 0)?;
                }
                guest.set_word(third, found?)
            }
            Service::LocateDevicePath => {
                let guid = guest.guid(first)?;
                let at = guest.word(second)?;
                let path = read_path(guest, at)?;
                let (handle, length) = self.nearest(guest, &guid, &path).ok_or(efi::NOT_FOUND)?;
                guest.set_word(second, at + length as u64)?;
                guest.set_word(third, handle)
            }
            // Every device has its interfaces already.
            Service::ConnectController => self.handles.interfaces(first).map(|_| ()),
            Service::DisconnectController => self.handles.interfaces(first).map(|_| ()),
            _ => Err(efi::UNSUPPORTED),
        }
    }

    /// Gives a handle an interface and tells whoever wants to know.
    pub(super) fn install(&mut self, handle: u64, guid: Guid, address: u64) -> Result<u64, Failure> {
        let handle = self.handles.install(handle, guid, address)?;
        self.announce(handle, &guid);
        Ok(handle)
    }

    fn announce(&mut self, handle: u64, guid: &Guid) {
        for registration in self.registrations.iter_mut().filter(|one| one.guid == *guid) {
            if !registration.new.contains(&handle) && registration.new.len() < NEW_MAX {
                registration.new.push(handle);
            }
            // The event may have been closed since.
            let _ = self.events.signal(registration.event);
        }
    }

    fn take_new(&mut self, key: u64) -> Result<Option<u64>, Failure> {
        let index = key
            .checked_sub(FIRST_REGISTRATION + 1)
            .ok_or(efi::INVALID_PARAMETER)?;
        let registration = usize::try_from(index)
            .ok()
            .and_then(|index| self.registrations.get_mut(index));
        let new = &mut registration.ok_or(efi::INVALID_PARAMETER)?.new;
        Ok((!new.is_empty()).then(|| new.remove(0)))
    }

    /// All pairs, or none of them.
    fn install_multiple(&mut self, guest: &mut Guest<'_, '_>, at: u64) -> Result<(), Failure> {
        let pairs = pairs(guest)?;
        let mut handle = guest.word(at)?;
        for (index, (guid, address)) in pairs.iter().enumerate() {
            match self.install(handle, *guid, *address) {
                Ok(installed) => handle = installed,
                Err(failure) => {
                    for (guid, address) in &pairs[..index] {
                        self.handles.uninstall(handle, *guid, *address)?;
                    }
                    return Err(failure);
                }
            }
        }
        guest.set_word(at, handle)
    }

    /// The handles that a search finds: how, protocol, key.
    fn locate(&mut self, guest: &Guest<'_, '_>, [how, protocol, key]: [u64; 3]) -> Result<Vec<u64>, Failure> {
        let found = match how as u32 {
            0 => self.handles.with(None),
            1 => self.take_new(key)?.into_iter().collect(),
            2 => self.handles.with(Some(&guest.guid(protocol)?)),
            _ => return Err(efi::INVALID_PARAMETER),
        };
        match found.is_empty() {
            true => Err(efi::NOT_FOUND),
            false => Ok(found),
        }
    }

    /// The handle with a protocol whose device path is the longest that a path begins with, and how long that is.
    fn nearest(&self, guest: &Guest<'_, '_>, guid: &Guid, path: &DevicePath) -> Option<(u64, usize)> {
        let handles = self.handles.with(Some(guid)).into_iter();
        let lengths = handles.filter_map(|handle| {
            let at = self.handles.find(handle, &DEVICE_PATH)?;
            let own = read_path(guest, at).ok()?;
            own.behind(path).map(|_| (handle, own.length()))
        });
        lengths.max_by_key(|(_, length)| *length)
    }

    /// Puts words into a buffer from the pool that the application gives back, and its address to `at`.
    fn answer_buffer(&mut self, guest: &mut Guest<'_, '_>, words: &[u64], at: u64) -> Result<(), Failure> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let buffer = self
            .memory
            .place_as(guest, MemoryType::BootServicesData, &bytes)?;
        guest.set_word(at, buffer)
    }
}

/// Pairs of a protocol and an interface behind the first argument, up to a null.
fn pairs(guest: &Guest<'_, '_>) -> Result<Vec<(Guid, u64)>, Failure> {
    let mut pairs = Vec::new();
    for index in 0..MULTIPLE_MAX {
        match guest.argument(1 + 2 * index)? {
            0 => return Ok(pairs),
            guid => pairs.push((guest.guid(guid)?, guest.argument(2 + 2 * index)?)),
        }
    }
    Err(efi::INVALID_PARAMETER)
}

/// The device path at an address.
pub fn read_path(guest: &Guest<'_, '_>, at: u64) -> Result<DevicePath, Failure> {
    const HEADER: u64 = 4;
    const END: u8 = 0x7f;
    let mut bytes = Vec::new();
    while at != 0 && bytes.len() < BYTES_MAX {
        let from = at.wrapping_add(bytes.len() as u64);
        let header = guest.bytes(from, HEADER)?;
        let length = u64::from(u16::from_le_bytes([header[2], header[3]])).max(HEADER);
        bytes.extend(guest.bytes(from, length)?);
        if header[0] == END {
            return DevicePath::parse(&bytes).ok_or(efi::INVALID_PARAMETER);
        }
    }
    Err(efi::INVALID_PARAMETER)
}
