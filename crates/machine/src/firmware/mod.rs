//! Firmware for IA-64 kernels: PAL, SAL, EFI and ACPI, as the host side of a documented call gate.
//!
//! There is no firmware image: in guest memory are tables and the stubs of [`gate`], whose hypercalls [`Firmware`]
//! answers. [`install`] puts them there.
//!
//! - [`layout`]: where everything is.
//! - [`gate`]: entry points. [`pal`], [`sal`], [`efi`]: what they do, and the tables of each.
//! - `runtime`: the runtime services of EFI; [`variables`]: what they keep; [`nvram`]: the file where.
//! - [`boot`]: the boot services of EFI, in machines that start what is on a disk.
//! - [`acpi`]: the tables of ACPI.

pub mod acpi;
pub mod boot;
pub mod efi;
pub mod gate;
pub mod layout;
pub mod nvram;
pub mod pal;
mod runtime;
pub mod sal;
pub mod variables;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control;
use sidestep_ia64::{PhysicalAddress, Processor, VirtualAddress};

use crate::machine::hypercall::{Call, HypercallHandler, Reaction};
use crate::memory::{GuestMemory, MemoryError};
use crate::pci;
use crate::virtual_memory;
use boot::{Boot, Service, Surroundings};
use gate::Entry;
use nvram::NvramError;
use sidestep_files::WriteError;
use variables::Variables;

/// The firmware's side of the call gate.
pub struct Firmware {
    /// Seconds since 1970 at machine time zero.
    epoch: u64,
    tables: Tables,
    pci: Arc<pci::Bus>,
    /// Boot services, as long as they are on. Locked before the state.
    boot: Mutex<Option<Box<Boot>>>,
    state: Mutex<FirmwareState>,
    /// Where variables are kept that outlive the machine.
    nvram: Option<PathBuf>,
    /// What is there.
    kept: Mutex<Variables>,
}

/// Where the tables are that EFI's services change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tables {
    /// The system table.
    pub system_table: u64,
    /// The runtime services table.
    pub runtime_services: u64,
}

/// What machines are saved with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirmwareState {
    /// Where processors go on from the rendezvous.
    rendezvous: Option<(u64, u64)>,
    monotonic_count: u64,
    /// Seconds by which the guest has set the clock forward, modulo 2^64.
    clock_offset: u64,
    variables: Variables,
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
    contents: &acpi::Contents,
    epoch: u64,
    pci: Arc<pci::Bus>,
) -> Result<Firmware, MemoryError> {
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
        tables: Tables {
            system_table: tables.system_table,
            runtime_services: tables.runtime_services,
        },
        pci,
        boot: Mutex::default(),
        state: Mutex::default(),
        nvram: None,
        kept: Mutex::default(),
    };
    Ok(firmware)
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
        let function = call.function();
        let service = Service::of_function(function);
        if service.is_some() || function == boot::AGAIN_FUNCTION {
            return Some(self.boot_service(call, service));
        }
        let entry = Entry::of_function(function)?;
        Some(match entry {
            Entry::Pal => pal_procedure(call),
            Entry::Sal => self.sal_procedure(call),
            Entry::Rendezvous => self.rendezvous(call),
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
    virtual_memory::write(
        call.processor,
        &call.platform.memory,
        VirtualAddress(address),
        bytes,
    )
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
    let local_id = call.processor.system.control[usize::from(control::LID)] >> 16 & 0xffff;
    let results = match pal::call(procedure, arguments, local_id) {
        pal::Work::Return(results) => results,
        pal::Work::EmptyTranslationCaches(results) => {
            call.processor.empty_translation_caches();
            results
        }
        pal::Work::Write(address, bytes, result) => {
            if write(call, address, &bytes) {
                [0, result, 0, 0]
            } else {
                [pal::INVALID_ARGUMENT, 0, 0, 0]
            }
        }
        pal::Work::ReadTranslationRegister {
            register,
            is_data,
            buffer,
        } => {
            let mmu = call.processor.mmu();
            let side = mmu.map(|mmu| if is_data { &mmu.data } else { &mmu.instruction });
            let entry = side.and_then(|side| side.register(register));
            let (words, valid) = pal::translation_register(entry);
            if write(call, buffer, words.map(u64::to_le_bytes).as_flattened()) {
                [0, valid, 0, 0]
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

    /// Gives it the variables of a file, which from now on has those that last.
    ///
    /// # Errors
    /// If the file cannot be used.
    pub fn keep_variables_in(&mut self, file: &Path) -> Result<(), NvramError> {
        let variables = nvram::read(file)?;
        self.nvram = Some(file.to_owned());
        *self.kept.get_mut().unwrap_or_else(PoisonError::into_inner) = variables.clone();
        self.state().variables = variables;
        Ok(())
    }

    /// The variables that outlive a reset.
    pub fn lasting_variables(&self) -> Variables {
        self.state().variables.clone().after_reset()
    }

    /// Begins with variables that have outlived a reset.
    pub fn begin_with(&self, variables: Variables) {
        self.state().variables = variables;
    }

    /// Writes variables that last to where they are kept, if they have changed.
    fn keep(&self, variables: &Variables) -> Result<(), WriteError> {
        let Some(file) = &self.nvram else { return Ok(()) };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if !variables.lasting().eq(kept.lasting()) {
            nvram::write(file, variables)?;
            *kept = variables.clone();
        }
        Ok(())
    }

    /// Where the tables are.
    pub fn tables(&self) -> Tables {
        self.tables
    }

    /// Switches boot services on.
    pub fn begin_boot(&self, boot: Boot) {
        *self.boot() = Some(Box::new(boot));
    }

    /// Whether boot services are on: such a machine cannot be saved.
    pub fn is_booting(&self) -> bool {
        self.boot().is_some()
    }

    fn boot(&self) -> MutexGuard<'_, Option<Box<Boot>>> {
        self.boot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A boot service, or none while one goes on.
    fn boot_service(&self, call: &mut Call<'_>, service: Option<Service>) -> Reaction {
        let mut boot = self.boot();
        let Some(on) = boot.as_mut() else {
            call.set_result(0, efi::UNSUPPORTED);
            return Reaction::Return;
        };
        let seconds = self.unset_seconds(call);
        let mut state = self.state();
        let mut surroundings = Surroundings {
            seconds: seconds.wrapping_add(state.clock_offset),
            variables: &mut state.variables,
        };
        let (reaction, stays_on) = on.call(call, service, &mut surroundings);
        // What names the next boot counts once. Where that cannot be kept it counts again.
        let _ = self.keep(&state.variables);
        if !stays_on {
            state.variables.end_boot();
            *boot = None;
        }
        reaction
    }

    fn state(&self) -> MutexGuard<'_, FirmwareState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sal_procedure(&self, call: &mut Call<'_>) -> Reaction {
        let arguments = std::array::from_fn(|index| stacked(call, 1 + index as u8));
        let (results, effect) = sal::call(stacked(call, 0), arguments, call.index as u64, &self.pci);
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
}
