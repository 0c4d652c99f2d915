//! Firmware for IA-64 kernels: PAL, SAL, EFI and ACPI, as the host side of a documented call gate.
//!
//! There is no firmware image: in guest memory are tables and the stubs of [`gate`], whose hypercalls [`Firmware`]
//! answers. [`install`] puts them there.
//!
//! - [`layout`]: where everything is.
//! - [`gate`]: entry points. [`pal`], [`sal`], [`efi`]: what they do, and the tables of each.
//! - [`acpi`]: the tables of ACPI.

pub mod acpi;
pub mod efi;
pub mod gate;
pub mod layout;
pub mod pal;
pub mod sal;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::{PhysicalAddress, Processor};

use crate::debug::memory as virtual_memory;
use crate::machine::ending::Request;
use crate::machine::hypercall::{Call, HypercallHandler, Reaction};
use crate::machine::timeline::TICKS_PER_SECOND;
use crate::memory::{GuestMemory, MemoryError};
use crate::pci;
use efi::service;
use gate::Entry;

/// The firmware's side of the call gate.
pub struct Firmware {
    /// Seconds since 1970 at machine time zero.
    epoch: u64,
    runtime_services: u64,
    pci: Arc<pci::Bus>,
    state: Mutex<FirmwareState>,
}

/// What machines are saved with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirmwareState {
    /// Where processors go on from the rendezvous.
    rendezvous: Option<(u64, u64)>,
    monotonic_count: u64,
}

/// Where the code of an entry is.
fn stub(entry: Entry) -> u64 {
    let start = if entry == Entry::Pal {
        layout::PAL_CODE
    } else {
        layout::RUNTIME_CODE
    };
    start + entry.offset()
}

/// Function descriptors are behind the stubs.
fn descriptor(entry: Entry) -> u64 {
    layout::RUNTIME_CODE + 0x1000 + entry.offset()
}

/// Puts the firmware's code and tables into memory. `epoch` is the time in seconds since 1970 at machine time zero;
/// configuration accesses reach `pci`.
///
/// # Errors
/// If memory does not hold [`layout::FIRMWARE`] to [`layout::FIRMWARE_END`].
pub fn install(
    memory: &GuestMemory,
    contents: acpi::Contents,
    epoch: u64,
    pci: Arc<pci::Bus>,
) -> Result<(Firmware, u64), MemoryError> {
    let write = |address: u64, bytes: &[u8]| memory.write(PhysicalAddress(address), bytes);
    let stubs = gate::stubs();
    write(layout::RUNTIME_CODE, &stubs)?;
    write(layout::PAL_CODE, &stubs)?;
    for entry in Entry::all() {
        write(descriptor(entry), &stub(entry).to_le_bytes())?;
    }
    let tables = efi::tables(stub, descriptor);
    write(layout::RUNTIME_DATA, &tables.bytes)?;
    write(layout::ACPI_TABLES, &acpi::tables(layout::ACPI_TABLES, contents))?;
    let firmware = Firmware {
        epoch,
        runtime_services: tables.runtime_services,
        pci,
        state: Mutex::default(),
    };
    Ok((firmware, tables.system_table))
}

/// Gives a processor the state in which firmware leaves it: at `entry` in physical mode, with a register stack.
pub fn prepare(processor: &mut Processor, index: usize, entry: u64) {
    const IO_BASE: u8 = 0;
    const STACK_BYTES: u64 = 1 << 10;
    let stack = layout::STACKS + index as u64 * STACK_BYTES;
    processor.set_status(psr::BN);
    processor.set_instruction_pointer(entry, 0);
    processor.register_stack_mut().restart(stack, 0);
    processor.general.set(12, stack + STACK_BYTES - 16);
    processor.set_application(IO_BASE, layout::PORTS);
}

/// Gives a processor that waits to be started its first state.
pub fn prepare_waiting(processor: &mut Processor, index: usize) {
    let rendezvous = stub(Entry::Rendezvous);
    prepare(processor, index, rendezvous);
    processor.branch[0] = rendezvous;
}

impl HypercallHandler for Firmware {
    fn call(&self, call: &mut Call<'_>) -> Option<Reaction> {
        let entry = Entry::of_function(call.function())?;
        Some(match entry {
            Entry::Pal => pal_procedure(call),
            Entry::Sal => self.sal_procedure(call),
            Entry::Rendezvous => self.rendezvous(call),
            Entry::BootService => return_stacked(call, [efi::UNSUPPORTED, 0, 0, 0]),
            Entry::RuntimeService(service) => self.runtime_service(call, service),
        })
    }
}

/// Argument `index` of a stacked call.
fn stacked(call: &Call<'_>, index: u8) -> u64 {
    call.processor.general.value(32 + index)
}

/// Returns from a stacked call.
fn return_stacked(call: &mut Call<'_>, results: [u64; 4]) -> Reaction {
    for (index, value) in results.into_iter().enumerate() {
        call.set_result(index as u8, value);
    }
    let (bundle, _) = call.processor.instruction_pointer();
    call.processor
        .set_instruction_pointer(bundle + gate::RETURN_FROM_STACKED, 0);
    Reaction::Resume
}

/// Writes to memory as the caller addresses it.
fn write(call: &mut Call<'_>, address: u64, bytes: &[u8]) -> bool {
    virtual_memory::write(call.processor, &call.platform.memory, address, bytes)
}

fn pal_procedure(call: &mut Call<'_>) -> Reaction {
    let procedure = call.processor.general.value(28);
    let is_stacked = pal::is_stacked(procedure);
    let arguments = [0, 1, 2].map(|index| {
        if is_stacked {
            stacked(call, 1 + index)
        } else {
            call.processor.general.value(29 + index)
        }
    });
    let results = match pal::call(procedure, arguments) {
        pal::Work::Return(results) => results,
        pal::Work::Write(address, bytes, result) => {
            if write(call, address, &bytes) {
                [0, result, 0, 0]
            } else {
                [pal::INVALID_ARGUMENT, 0, 0, 0]
            }
        }
        pal::Work::Halt => {
            call.set_result(0, 0);
            return Reaction::Wait;
        }
    };
    if is_stacked {
        return return_stacked(call, results);
    }
    for (index, value) in results.into_iter().enumerate() {
        call.set_result(index as u8, value);
    }
    Reaction::Return
}

impl Firmware {
    /// Everything, to be saved.
    pub fn save(&self) -> FirmwareState {
        self.state().clone()
    }

    /// Goes on from what was saved.
    pub fn restore(&self, state: FirmwareState) {
        *self.state() = state;
    }

    fn state(&self) -> MutexGuard<'_, FirmwareState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sal_procedure(&self, call: &mut Call<'_>) -> Reaction {
        let arguments = std::array::from_fn(|index| stacked(call, 1 + index as u8));
        let (results, effect) = sal::call(stacked(call, 0), arguments, &self.pci);
        if let sal::Effect::SetRendezvous {
            entry,
            global_pointer,
        } = effect
        {
            self.state().rendezvous = Some((entry, global_pointer));
        }
        return_stacked(call, results)
    }

    /// A processor has accepted the interrupt whose vector is in r8.
    fn rendezvous(&self, call: &mut Call<'_>) -> Reaction {
        let target = self.state().rendezvous;
        match target {
            Some((entry, global_pointer)) if call.argument(0) == u64::from(sal::WAKEUP_VECTOR) => {
                call.processor.general.set(1, global_pointer);
                call.processor.set_instruction_pointer(entry, 0);
                Reaction::Resume
            }
            _ => Reaction::Wait,
        }
    }

    fn runtime_service(&self, call: &mut Call<'_>, service: u8) -> Reaction {
        let status = match service {
            service::GET_TIME => self.get_time(call),
            service::SET_VIRTUAL_ADDRESS_MAP => self
                .set_virtual_address_map(call)
                .unwrap_or(efi::INVALID_PARAMETER),
            service::GET_VARIABLE | service::GET_NEXT_VARIABLE_NAME => efi::NOT_FOUND,
            service::GET_NEXT_HIGH_MONOTONIC_COUNT => {
                let mut state = self.state();
                state.monotonic_count += 1;
                let count = state.monotonic_count as u32;
                drop(state);
                let address = stacked(call, 0);
                if write(call, address, &count.to_le_bytes()) {
                    0
                } else {
                    efi::INVALID_PARAMETER
                }
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

    fn get_time(&self, call: &mut Call<'_>) -> u64 {
        let now = call.platform.timeline.now();
        let time = efi::time(
            self.epoch.saturating_add(now / TICKS_PER_SECOND),
            (now % TICKS_PER_SECOND) as u32,
        );
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

    /// Puts virtual addresses into the runtime services table and the function descriptors of its services.
    fn set_virtual_address_map(&self, call: &mut Call<'_>) -> Option<u64> {
        let (size, step, version, map) = (
            stacked(call, 0),
            stacked(call, 1),
            stacked(call, 2),
            stacked(call, 3),
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
            let at = virtual_memory::translate(call.processor, &memory, map.wrapping_add(index * step));
            let word = |offset: u64| {
                memory
                    .read_value::<u64>(PhysicalAddress(at.0.wrapping_add(offset)))
                    .ok()
            };
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
            let in_table = self.runtime_services + efi::HEADER_BYTES + u64::from(service) * 8;
            memory
                .write_value(PhysicalAddress(at), convert(stub(entry))?)
                .ok()?;
            memory.write_value(PhysicalAddress(in_table), convert(at)?).ok()?;
        }
        Some(0)
    }
}
