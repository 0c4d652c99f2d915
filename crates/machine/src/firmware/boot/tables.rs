//! What applications find by the system table: boot services, the console, devices, and tables by their identifiers.

use super::super::efi::{self, MemoryType};
use super::device_path::DevicePath;
use super::guest::{Failure, Guest};
use super::protocols::DEVICE_PATH;
use super::services::Service;
use super::{Boot, console, events};

impl Boot {
    /// Puts tables and protocols into memory.
    pub(super) fn install_all(&mut self, guest: &mut Guest<'_, '_>) -> Result<(), Failure> {
        let function = Boot::function(self.descriptors);
        let services: Vec<u64> = Service::of_table().map(function).collect();
        let table = efi::table(b"BOOTSERV", &services);
        let services = self.memory.place(guest, &table)?;
        let wait = events::kind::NOTIFY_WAIT;
        // Its notification is the firmware's own, and never called.
        let priority = events::priority::APPLICATION + 1;
        self.wait_for_key = self.events.create(wait, priority, self.code, 0, None)?;
        self.console
            .install(guest, &mut self.memory, self.wait_for_key, function)?;
        let (input, output) = (self.console.input, self.console.output);
        let console = self.install(0, console::INPUT, input)?;
        self.install(console, console::OUTPUT, output)?;
        let path = self.memory.place(guest, &DevicePath::console().bytes())?;
        self.install(console, DEVICE_PATH, path)?;
        let fields = [console, input, console, output, console, output];
        self.set_system_table(guest, fields, services)?;
        for index in 0..self.devices.len() {
            let device = &mut self.devices[index];
            let path = self.memory.place(guest, &device.path.bytes())?;
            let interfaces = device.install(guest, &mut self.memory, function)?;
            let system = self.files.install(guest, &mut self.memory, device, function)?;
            let handle = self.install(0, DEVICE_PATH, path)?;
            for (guid, address) in interfaces.into_iter().chain(system) {
                self.install(handle, guid, address)?;
            }
            self.devices[index].handle = handle;
        }
        Ok(())
    }

    /// Writes the system table's console and boot services, which it has as long as they are on.
    pub(super) fn set_system_table(
        &self,
        guest: &mut Guest<'_, '_>,
        console: [u64; 6],
        services: u64,
    ) -> Result<(), Failure> {
        const CONSOLE: u64 = efi::HEADER_BYTES + 16;
        const SERVICES: u64 = CONSOLE + 7 * 8;
        for (index, value) in (0..).zip(console) {
            guest.set_word(self.system_table + CONSOLE + 8 * index, value)?;
        }
        guest.set_word(self.system_table + SERVICES, services)?;
        self.sum_system_table(guest)
    }

    fn sum_system_table(&self, guest: &mut Guest<'_, '_>) -> Result<(), Failure> {
        const BYTES: u64 = efi::HEADER_BYTES + 12 * 8;
        const SUM: usize = 16;
        let mut table = guest.bytes(self.system_table, BYTES)?;
        table[SUM..SUM + 4].fill(0);
        let sum = crc32fast::hash(&table);
        guest.write(self.system_table + SUM as u64, &sum.to_le_bytes())
    }

    /// Identifier, table: adds, changes or, with null, removes a configuration table.
    pub(super) fn install_configuration(&mut self, guest: &mut Guest<'_, '_>) -> Result<(), Failure> {
        const COUNT: u64 = efi::HEADER_BYTES + 10 * 8;
        const ENTRIES_MAX: u64 = 1024;
        let [guid, address] = guest.arguments();
        let guid = guest.guid(guid)?;
        let count = guest.word(self.system_table + COUNT)?.min(ENTRIES_MAX);
        let at = guest.word(self.system_table + COUNT + 8)?;
        let mut entries: Vec<[u8; 24]> = guest.bytes(at, count * 24)?.as_chunks().0.to_vec();
        let existing = entries.iter().position(|entry| entry[..16] == guid);
        match (existing, address) {
            (None, 0) => return Err(efi::NOT_FOUND),
            (Some(index), 0) => {
                entries.remove(index);
            }
            (Some(index), _) => entries[index][16..].copy_from_slice(&address.to_le_bytes()),
            (None, _) if count == ENTRIES_MAX => return Err(efi::OUT_OF_RESOURCES),
            (None, _) => {
                let mut entry = [0; 24];
                entry[..16].copy_from_slice(&guid);
                entry[16..].copy_from_slice(&address.to_le_bytes());
                entries.push(entry);
            }
        }
        let bytes = entries.as_flattened();
        let new = self
            .memory
            .place_as(guest, MemoryType::RuntimeServicesData, bytes)?;
        guest.set_word(self.system_table + COUNT, entries.len() as u64)?;
        guest.set_word(self.system_table + COUNT + 8, new)?;
        self.sum_system_table(guest)
    }
}
