//! The runtime services of EFI.
//!
//! EFI 1.10, chapter 7. Waking up by the clock and conversions of pointers are not there.

use std::sync::Arc;

use sidestep_ia64::{PhysicalAddress, VirtualAddress};

use super::efi::{self, service};
use super::gate::{self, Entry};
use super::variables::{self, Key};
use super::{Firmware, descriptor, return_stacked, stacked, stub, write};
use crate::machine::ending::Request;
use crate::machine::hypercall::{Call, Reaction};
use crate::machine::timeline::TICKS_PER_SECOND;
use crate::virtual_memory;

/// A value of memory as the caller addresses it.
fn read<const SIZE: usize>(call: &Call<'_>, address: u64) -> Option<[u8; SIZE]> {
    let mut bytes = [0; SIZE];
    let (processor, memory) = (&*call.processor, &call.platform.memory);
    let size = virtual_memory::read(processor, memory, VirtualAddress(address), &mut bytes);
    (size == SIZE).then_some(bytes)
}

/// The status of a service that may find an argument in no memory.
fn status(result: Option<u64>) -> u64 {
    result.unwrap_or(efi::INVALID_PARAMETER)
}

/// Success, if something was written.
fn written(is_written: bool) -> Option<u64> {
    is_written.then_some(0)
}

/// The key of a variable whose name and vendor are at these addresses.
fn key(call: &Call<'_>, name: u64, vendor: u64) -> Option<Key> {
    let mut characters = Vec::new();
    loop {
        let at = name.wrapping_add(2 * characters.len() as u64);
        match u16::from_le_bytes(read(call, at)?) {
            0 => break,
            _ if characters.len() == variables::NAME_MAX => return None,
            character => characters.push(character),
        }
    }
    Some(Key {
        name: characters,
        vendor: read(call, vendor)?,
    })
}

/// Writes bytes to a buffer whose size stands at `size`, and there how many they are.
fn answer(call: &mut Call<'_>, size: u64, buffer: u64, bytes: &[u8]) -> Option<u64> {
    let room = u64::from_le_bytes(read(call, size)?);
    let fits = room >= bytes.len() as u64;
    if !write(call, size, &(bytes.len() as u64).to_le_bytes()) {
        return None;
    }
    if !fits {
        return Some(efi::BUFFER_TOO_SMALL);
    }
    written(write(call, buffer, bytes))
}

impl Firmware {
    pub(super) fn runtime_service(&self, call: &mut Call<'_>, service: u8) -> Reaction {
        let status = match service {
            service::GET_TIME => self.get_time(call),
            service::SET_TIME => status(self.set_time(call)),
            service::SET_VIRTUAL_ADDRESS_MAP => status(self.set_virtual_address_map(call)),
            service::GET_VARIABLE => status(self.get_variable(call)),
            service::GET_NEXT_VARIABLE_NAME => status(self.next_variable(call)),
            service::SET_VARIABLE => status(self.set_variable(call)),
            service::GET_NEXT_HIGH_MONOTONIC_COUNT => {
                let mut state = self.state();
                state.monotonic_count += 1;
                let count = state.monotonic_count as u32;
                drop(state);
                let address = stacked(call, 0);
                status(written(write(call, address, &count.to_le_bytes())))
            }
            service::RESET_SYSTEM => {
                let request = if stacked(call, 0) == efi::RESET_SHUTDOWN {
                    Request::Exit(0)
                } else {
                    Request::Reset
                };
                call.platform.ending.request(request);
                return Reaction::Stop;
            }
            _ => efi::UNSUPPORTED,
        };
        return_stacked(call, [status, 0, 0, 0])
    }

    /// Seconds since 1970 as far as nobody has set the clock.
    pub(super) fn unset_seconds(&self, call: &Call<'_>) -> u64 {
        let now = call.platform.timeline.now();
        self.epoch.saturating_add(now / TICKS_PER_SECOND)
    }

    fn get_time(&self, call: &mut Call<'_>) -> u64 {
        let offset = self.state().clock_offset;
        let nanoseconds = call.platform.timeline.now() % TICKS_PER_SECOND;
        let time = efi::time(self.unset_seconds(call).wrapping_add(offset), nanoseconds as u32);
        let (address, capabilities) = (stacked(call, 0), stacked(call, 1));
        // A resolution of 1 Hz, an accuracy of 50 parts in a million; setting does not clear less than a second.
        let described: Vec<u8> = [1u32, 50_000_000, 0]
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let written =
            write(call, address, &time) && (capabilities == 0 || write(call, capabilities, &described[..9]));
        if written { 0 } else { efi::INVALID_PARAMETER }
    }

    /// Sets the clock to whole seconds; the fraction goes on as it was.
    fn set_time(&self, call: &mut Call<'_>) -> Option<u64> {
        let seconds = efi::seconds(&read(call, stacked(call, 0))?)?;
        self.state().clock_offset = seconds.wrapping_sub(self.unset_seconds(call));
        Some(0)
    }

    /// Name, vendor, attributes or null, size of the buffer, buffer.
    fn get_variable(&self, call: &mut Call<'_>) -> Option<u64> {
        let key = key(call, stacked(call, 0), stacked(call, 1))?;
        let (attributes, size, buffer) = (stacked(call, 2), stacked(call, 3), stacked(call, 4));
        let is_booting = self.is_booting();
        let state = self.state();
        let Some((value, data)) = state.variables.get(&key, is_booting) else {
            return Some(efi::NOT_FOUND);
        };
        let status = answer(call, size, buffer, data)?;
        if attributes != 0 && status == 0 && !write(call, attributes, &value.to_le_bytes()) {
            return None;
        }
        Some(status)
    }

    /// Size of the buffer for the name, name and vendor of the one before.
    fn next_variable(&self, call: &mut Call<'_>) -> Option<u64> {
        let (size, name, vendor) = (stacked(call, 0), stacked(call, 1), stacked(call, 2));
        let before = key(call, name, vendor)?;
        let is_booting = self.is_booting();
        let state = self.state();
        let Some(next) = state.variables.next(&before, is_booting) else {
            return Some(efi::NOT_FOUND);
        };
        let characters = next.name.iter().chain(&[0]);
        let bytes: Vec<u8> = characters.flat_map(|character| character.to_le_bytes()).collect();
        match answer(call, size, name, &bytes)? {
            0 => written(write(call, vendor, &next.vendor)),
            status => Some(status),
        }
    }

    /// Name, vendor, attributes, size, contents.
    fn set_variable(&self, call: &mut Call<'_>) -> Option<u64> {
        let key = key(call, stacked(call, 0), stacked(call, 1))?;
        let (attributes, size) = (stacked(call, 2), stacked(call, 3));
        let address = VirtualAddress(stacked(call, 4));
        if size > variables::BYTES_MAX as u64 {
            return Some(efi::OUT_OF_RESOURCES);
        }
        let mut data = vec![0; size as usize];
        let got = virtual_memory::read(call.processor, &call.platform.memory, address, &mut data);
        let is_whole = got == data.len();
        let is_booting = self.is_booting();
        is_whole.then(|| {
            let mut state = self.state();
            let before = state.variables.clone();
            let status = state.variables.set(key, attributes as u32, data, is_booting);
            if self.keep(&state.variables).is_err() {
                state.variables = before;
                return efi::DEVICE_ERROR;
            }
            status
        })
    }

    /// Puts virtual addresses into the runtime services table and the function descriptors of its services.
    fn set_virtual_address_map(&self, call: &mut Call<'_>) -> Option<u64> {
        let (size, step, version, map) = (
            stacked(call, 0),
            stacked(call, 1),
            stacked(call, 2),
            VirtualAddress(stacked(call, 3)),
        );
        const DESCRIPTORS_MAX: u64 = 4096;
        if version != u64::from(efi::DESCRIPTOR_VERSION)
            || step < efi::DESCRIPTOR_BYTES
            || size / step > DESCRIPTORS_MAX
        {
            return None;
        }
        let memory = Arc::clone(&call.platform.memory);
        let mut ranges = Vec::new();
        for index in 0..size / step {
            let at = virtual_memory::translate(call.processor, &memory, map + index * step);
            let word = |offset: u64| memory.read_value::<u64>(at + offset).ok();
            let (start, virtual_start, pages) = (word(8)?, word(16)?, word(24)?);
            let attributes = word(32)?;
            if attributes & efi::attribute::RUNTIME != 0 {
                ranges.push((start, virtual_start, pages << 12));
            }
        }
        let convert = |address: u64| {
            let found = ranges
                .iter()
                .find(|(start, _, size)| address.wrapping_sub(*start) < *size);
            found.map(|(start, virtual_start, _)| (address - start).wrapping_add(*virtual_start))
        };
        for service in 0..gate::RUNTIME_SERVICES {
            let entry = Entry::RuntimeService(service);
            let at = descriptor(entry);
            let in_table = self.tables.runtime_services + efi::HEADER_BYTES + u64::from(service) * 8;
            memory
                .write_value(PhysicalAddress(at), convert(stub(entry))?)
                .ok()?;
            memory.write_value(PhysicalAddress(in_table), convert(at)?).ok()?;
        }
        Some(0)
    }
}
