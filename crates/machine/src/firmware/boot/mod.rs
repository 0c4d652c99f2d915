//! EFI boot services and protocols, and what boots with them: an application on a disk, such as a boot loader.
//!
//! EFI 1.10, chapters 3, 5 and 8 to 11, as far as boot loaders use them. An application calls through `stub`; a call is
//! one of `services`, which the host performs on [`Boot`] and then lets the processor go on as a `Flow` says: it
//! returns, calls a function of the guest, or lets time pass.
//!
//! - `stub`, `services`, `guest`: the way in. `memory`, `handles`, `events`: what services keep. `protocols`, `images`,
//!   `context`, `pe`, `waiting`, `tables`: services on these.
//! - `console`, `volumes`, `files`, `device_path`: protocols of devices.
//! - `manager`, `shell`: what is booted.
//!
//! Nothing here runs by itself: what an application wants done later (timers, notifications) is done when it calls a
//! service. So a machine in virtual time boots the same way each time.

mod console;
mod context;
mod device_path;
mod events;
mod files;
mod guest;
mod handles;
mod images;
mod manager;
mod memory;
pub mod pe;
mod protocols;
mod services;
mod shell;
mod stub;
mod tables;
#[cfg(test)]
mod tests;
mod volumes;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sidestep_ia64::{PhysicalAddress, Processor};

use super::efi::{self, MemoryType, PAGE};
use super::{Tables, layout};
use crate::device::serial::Serial;
use crate::machine::hypercall::{Call, Reaction};
use crate::machine::timeline::{Phase, TICKS_PER_SECOND};
use crate::memory::{GuestMemory, MemoryError};
use console::Console;
use events::{Events, Notification};
use files::Files;
use guest::{Failure, Guest};
use handles::Handles;
use images::{Images, Running};
use manager::Manager;
use memory::{Memory, Place};
use protocols::Registration;
use volumes::Device;

pub use device_path::DevicePath;
pub use services::Service;
pub use shell::GREETING as SHELL_GREETING;
pub use stub::AGAIN_FUNCTION;
pub use volumes::BootDisk;

/// Bytes of the stack of whatever is booted: the register stack from below, memory's from above. EFI 1.10, section
/// 2.3.3, wants 128 kB.
const STACK_BYTES: u64 = 1 << 20;
/// How long an application that looks for input or an event waits before it is told that there is none.
const IDLE_TICKS: u64 = TICKS_PER_SECOND / 1000;
/// How many calls may be inside each other.
const PENDING_MAX: usize = 256;

/// Where the boot begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    entry: u64,
    stack: u64,
}

impl Start {
    /// Has the first processor begin there.
    pub fn prepare(self, processor: &mut Processor) {
        super::prepare(processor, 0, self.entry);
        processor.register_stack_mut().restart(self.stack, 0);
        processor.general.set(12, self.stack + STACK_BYTES - 32);
    }
}

/// What is to be done when a function of the guest has returned, or time has passed.
enum Pending {
    /// The service returns this.
    Return(u64),
    /// It returns success from this tick on.
    Until(u64),
    /// A notification was done, after which the service returns this, and the task priority is what it was.
    Notified { status: u64, priority: u64 },
    /// A notification of the end of boot services was done; the task priority is what it was.
    Left(u64),
    /// Events are looked at again.
    Events,
    /// So many events of those waited for were asked whether they have happened; the task priority is what it was.
    Asked { asked: u64, priority: u64 },
    /// The same for the one event that an application has asked for.
    Checked { event: u64, priority: u64 },
    /// Input is looked at again.
    Key,
    /// The image that runs has returned.
    Image(Box<Running>),
    /// An image has agreed to be unloaded, or not.
    Unload(u64),
    /// What is booted next is looked for.
    Manager,
}

/// How the processor goes on.
enum Flow {
    /// The service returns this.
    Return(u64),
    /// Boot services end, and the service that does so returns.
    Leave,
    /// This function is called, by its descriptor.
    Call {
        function: u64,
        arguments: [u64; 2],
        then: Pending,
    },
    /// Time passes up to this tick.
    Wait { until: u64, then: Pending },
    /// The machine ends or does something else.
    End(Reaction),
}

/// The firmware while boot services are on.
pub struct Boot {
    memory: Memory,
    handles: Handles,
    events: Events,
    images: Images,
    console: Console,
    devices: Vec<Device>,
    files: Files,
    registrations: Vec<Registration>,
    pending: Vec<Pending>,
    manager: Manager,
    /// Whether boot services have ended.
    has_left: bool,
    system_table: u64,
    /// Where the stubs are, and behind them function descriptors.
    code: u64,
    descriptors: u64,
    wait_for_key: u64,
    monotonic_count: u64,
    /// When the processor is woken, so that this is scheduled once.
    wakes: Arc<AtomicU64>,
}

/// What services ask of the rest of the firmware.
pub struct Surroundings<'a> {
    /// Seconds since 1970.
    pub seconds: u64,
    /// The variables.
    pub variables: &'a mut super::variables::Variables,
}

impl Boot {
    /// Puts the code into memory; the rest follows when the first processor begins.
    ///
    /// # Errors
    /// If there is too little memory.
    pub fn new(
        memory: &GuestMemory,
        tables: Tables,
        disks: Vec<BootDisk>,
        serial: Serial,
    ) -> Result<(Boot, Start), MemoryError> {
        let ranges = memory.ranges().iter();
        let ranges: Vec<(u64, u64)> = ranges.map(|range| (range.start.0, range.size)).collect();
        let mut regions = efi::regions(&ranges);
        // Nobody has brought boot parameters.
        for region in &mut regions {
            if region.kind == MemoryType::LoaderData as u32 {
                region.kind = MemoryType::Conventional as u32;
            }
        }
        let mut own = Memory::new(regions);
        let code = stub::code();
        let descriptor_bytes = Service::all().count() as u64 * 16;
        let code_bytes = (code.len() as u64).next_multiple_of(16);
        let size = code_bytes + descriptor_bytes;
        let mut take = |kind: MemoryType, size: u64| {
            let taken = own.map.allocate(kind as u32, size.div_ceil(PAGE), Place::Any);
            taken.map_err(|_| MemoryError {
                address: PhysicalAddress(layout::FIRMWARE_END),
                size,
            })
        };
        let at = take(MemoryType::BootServicesCode, size)?;
        let stack = take(MemoryType::BootServicesData, STACK_BYTES)?;
        memory.write(PhysicalAddress(at), &code)?;
        let descriptors = at + code_bytes;
        for service in Service::all() {
            let descriptor = descriptors + u64::from(service.number()) * 16;
            memory.write_value(PhysicalAddress(descriptor), at + stub::entry(service))?;
            memory.write_value(PhysicalAddress(descriptor + 8), 0_u64)?;
        }
        let boot = Boot {
            memory: own,
            handles: Handles::new(),
            events: Events::new(),
            images: Images::new(),
            console: Console::new(serial),
            devices: volumes::devices(&disks),
            files: Files::default(),
            registrations: Vec::new(),
            pending: Vec::new(),
            manager: Manager::default(),
            has_left: false,
            system_table: tables.system_table,
            code: at,
            descriptors,
            wait_for_key: 0,
            monotonic_count: 0,
            wakes: Arc::new(AtomicU64::new(u64::MAX)),
        };
        let entry = at + stub::entry(Service::Boot);
        Ok((boot, Start { entry, stack }))
    }

    /// Where the function descriptor of a service is.
    fn function(descriptors: u64) -> impl Fn(Service) -> u64 + Copy {
        move |service| descriptors + u64::from(service.number()) * 16
    }

    /// Serves a call, or goes on with one; false behind the reaction says that boot services have ended.
    pub fn call(
        &mut self,
        call: &mut Call<'_>,
        service: Option<Service>,
        surroundings: &mut Surroundings<'_>,
    ) -> (Reaction, bool) {
        let guest = &mut Guest(call);
        self.events.advance(guest.now());
        let flow = match service {
            Some(service) => self.perform(guest, service, surroundings),
            None => self.again(guest, surroundings),
        };
        let reaction = self.follow(guest, flow);
        (reaction, !self.has_left)
    }

    /// Has the processor go on as a flow says.
    fn follow(&mut self, guest: &mut Guest<'_, '_>, mut flow: Flow) -> Reaction {
        loop {
            flow = match flow {
                Flow::Return(status) => match self.events.take_due() {
                    Some(due) => self.notify(due, |priority| Pending::Notified { status, priority }),
                    None => return self.leave(guest, status),
                },
                Flow::Leave => match self.events.take_due() {
                    Some(due) => self.notify(due, Pending::Left),
                    None => {
                        // The table was written a moment ago, by the same call or the one before.
                        let _ = self.set_system_table(guest, [0; 6], 0);
                        self.has_left = true;
                        return self.leave(guest, 0);
                    }
                },
                Flow::Call { .. } | Flow::Wait { .. } if self.pending.len() >= PENDING_MAX => {
                    Flow::Return(efi::OUT_OF_RESOURCES)
                }
                Flow::Call {
                    function,
                    arguments,
                    then,
                } => {
                    self.pending.push(then);
                    match self.enter(guest, function, arguments) {
                        Ok(reaction) => return reaction,
                        Err(failure) => match self.pending.pop() {
                            Some(Pending::Image(running)) => {
                                let status = self.image_ended(guest, &running, failure, [0; 2]);
                                self.after_image(status)
                            }
                            _ => Flow::Return(failure),
                        },
                    }
                }
                Flow::Wait { until, then } => {
                    self.pending.push(then);
                    self.wake_at(guest, until);
                    return Reaction::Wait;
                }
                Flow::End(reaction) => return reaction,
            };
        }
    }

    /// Has a notification done, at its priority; what is to be done then is told the priority before.
    fn notify(&mut self, due: Notification, then: impl FnOnce(u64) -> Pending) -> Flow {
        let priority = std::mem::replace(&mut self.events.priority, due.priority);
        Flow::Call {
            function: due.function,
            arguments: [due.event, due.context],
            then: then(priority),
        }
    }

    /// Has the service return.
    fn leave(&self, guest: &mut Guest<'_, '_>, status: u64) -> Reaction {
        guest.0.set_result(0, status);
        guest
            .0
            .processor
            .set_instruction_pointer(self.code + stub::LEAVE, 0);
        Reaction::Resume
    }

    /// Has the processor call a function of the guest.
    fn enter(
        &self,
        guest: &mut Guest<'_, '_>,
        function: u64,
        arguments: [u64; 2],
    ) -> Result<Reaction, Failure> {
        let (entry, global) = (guest.word(function)?, guest.word(function.wrapping_add(8))?);
        let processor = &mut *guest.0.processor;
        processor.branch[6] = entry & !15;
        processor.general.set(1, global);
        for (register, value) in (stub::ARGUMENTS..).zip(arguments) {
            processor.general.set(register, value);
        }
        processor.set_instruction_pointer(self.code + stub::CALL, 0);
        Ok(Reaction::Resume)
    }

    /// Has the processor go on at a tick, if nothing makes it go on before.
    fn wake_at(&self, guest: &Guest<'_, '_>, tick: u64) {
        // One wakeup is scheduled at a time, or an earlier one: an application that interrupts itself gets no more.
        if self.wakes.fetch_min(tick, Ordering::Relaxed) <= tick {
            return;
        }
        let (platform, index) = (Arc::downgrade(guest.0.platform), guest.0.index);
        let wakes = Arc::downgrade(&self.wakes);
        let timeline = &guest.0.platform.timeline;
        timeline.schedule(tick, Phase::Interrupt, move |_| {
            // Once boot services have ended, the processor is the kernel's.
            if let (Some(wakes), Some(platform)) = (wakes.upgrade(), platform.upgrade()) {
                wakes.store(u64::MAX, Ordering::Relaxed);
                platform.start(index, |_| ());
            }
        });
    }

    /// A function of the guest has returned, or time has passed.
    fn again(&mut self, guest: &mut Guest<'_, '_>, surroundings: &mut Surroundings<'_>) -> Flow {
        let result = guest.0.processor.general.value(8);
        match self.pending.pop() {
            None => Flow::Return(efi::INVALID_PARAMETER),
            Some(Pending::Return(status)) => Flow::Return(status),
            // An interrupt that the application does not take ends a wait early.
            Some(Pending::Until(tick)) if guest.now() < tick => wait_until(tick),
            Some(Pending::Until(_)) => Flow::Return(0),
            Some(Pending::Notified { status, priority }) => {
                self.events.priority = priority;
                Flow::Return(status)
            }
            Some(Pending::Left(priority)) => {
                self.events.priority = priority;
                Flow::Leave
            }
            Some(Pending::Events) => self.wait_for_event(guest, 0).unwrap_or_else(Flow::Return),
            Some(Pending::Asked { asked, priority }) => {
                self.events.priority = priority;
                self.wait_for_event(guest, asked).unwrap_or_else(Flow::Return)
            }
            Some(Pending::Checked { event, priority }) => {
                self.events.priority = priority;
                match self.has_happened(event) {
                    Ok(true) => Flow::Return(0),
                    Ok(false) => Flow::Wait {
                        until: self.next_look(guest),
                        then: Pending::Return(efi::NOT_READY),
                    },
                    Err(failure) => Flow::Return(failure),
                }
            }
            Some(Pending::Key) => answer(self.console.read_key(guest)),
            Some(Pending::Image(running)) => {
                let status = self.image_ended(guest, &running, result, [0; 2]);
                self.after_image(status)
            }
            Some(Pending::Unload(handle)) => {
                if result == 0 {
                    self.remove_image(handle);
                }
                Flow::Return(result)
            }
            Some(Pending::Manager) => self.manage(guest, surroundings),
        }
    }

    /// What follows an image: whoever started it goes on.
    fn after_image(&mut self, status: u64) -> Flow {
        match self.pending.pop() {
            Some(Pending::Manager) => {
                self.manager.ended(status);
                Flow::Wait {
                    until: 0,
                    then: Pending::Manager,
                }
            }
            Some(other) => {
                self.pending.push(other);
                Flow::Return(status)
            }
            None => Flow::Return(status),
        }
    }

    fn perform(
        &mut self,
        guest: &mut Guest<'_, '_>,
        service: Service,
        surroundings: &mut Surroundings<'_>,
    ) -> Flow {
        use Service::*;
        let [first, second, third] = guest.arguments();
        match service {
            Boot if self.manager.has_begun() => Flow::Return(efi::UNSUPPORTED),
            Boot => match self.install_all(guest) {
                Ok(()) => self.manage(guest, surroundings),
                Err(failure) => Flow::Return(failure),
            },
            RaiseTpl | RestoreTpl => {
                let before = self.events.priority;
                self.events.priority = first.min(events::priority::HIGH);
                Flow::Return(if service == RaiseTpl { before } else { 0 })
            }
            AllocatePages => answer(self.memory.allocate_pages(guest)),
            FreePages => answer(self.memory.free_pages(guest)),
            GetMemoryMap => answer(self.memory.get_map(guest)),
            AllocatePool => answer(self.memory.allocate_pool(guest)),
            FreePool => answer(self.memory.free_pool(guest)),
            CreateEvent | CreateEventEx | SetTimer | SignalEvent | CloseEvent => {
                answer(self.serve_events(guest, service))
            }
            WaitForEvent => self.wait_for_event(guest, 0).unwrap_or_else(Flow::Return),
            CheckEvent => self.check_event(guest, first).unwrap_or_else(Flow::Return),
            LoadImage => answer(self.load_image(guest)),
            StartImage => self
                .start_image(guest, first, [second, third])
                .unwrap_or_else(Flow::Return),
            Exit => self.exit(guest).unwrap_or_else(Flow::Return),
            UnloadImage => self.unload_image(guest).unwrap_or_else(Flow::Return),
            Stall => wait_until(guest.now().saturating_add(first.saturating_mul(1000))),
            // Nothing that hangs for five minutes of virtual time is worth a reset.
            SetWatchdogTimer => Flow::Return(0),
            GetNextMonotonicCount => {
                self.monotonic_count += 1;
                let count = self.monotonic_count;
                answer(guest.set_word(first, count))
            }
            InstallConfigurationTable => answer(self.install_configuration(guest)),
            CalculateCrc32 => answer(checksum(guest, [first, second, third])),
            CopyMem => answer(copy(guest, [first, second, third])),
            SetMem => answer(fill(guest, [first, second, third])),
            ReadKeyStroke => match self.console.has_key() {
                true => answer(self.console.read_key(guest)),
                false => Flow::Wait {
                    until: guest.now() + IDLE_TICKS,
                    then: Pending::Key,
                },
            },
            ResetInput | ResetOutput | OutputString | TestString | QueryMode | SetMode | SetAttribute
            | ClearScreen | SetCursorPosition | EnableCursor => answer(self.console.serve(guest, service)),
            ResetBlocks | ReadBlocks | WriteBlocks | FlushBlocks | ReadDisk | WriteDisk => {
                answer(volumes::serve(&self.devices, guest, service))
            }
            OpenVolume | OpenFile | CloseFile | DeleteFile | ReadFile | WriteFile | GetPosition
            | SetPosition | GetInfo | SetInfo | FlushFile => {
                let function = self::Boot::function(self.descriptors);
                let seconds = surroundings.seconds;
                let served = self
                    .files
                    .serve(guest, &mut self.memory, service, seconds, function);
                answer(served)
            }
            ExitBootServices => self.exit_boot_services(guest),
            Reserved => Flow::Return(efi::UNSUPPORTED),
            InstallProtocolInterface
            | ReinstallProtocolInterface
            | UninstallProtocolInterface
            | HandleProtocol
            | RegisterProtocolNotify
            | LocateHandle
            | LocateDevicePath
            | ConnectController
            | DisconnectController
            | OpenProtocol
            | CloseProtocol
            | OpenProtocolInformation
            | ProtocolsPerHandle
            | LocateHandleBuffer
            | LocateProtocol
            | InstallMultipleProtocolInterfaces
            | UninstallMultipleProtocolInterfaces => answer(self.serve_protocols(guest, service)),
        }
    }

    /// Image, key of the memory map: from now on the machine is the kernel's.
    fn exit_boot_services(&mut self, guest: &mut Guest<'_, '_>) -> Flow {
        let [image, key] = guest.arguments();
        if !self.images.contains_key(&image) || key != self.memory.map.key() {
            return Flow::Return(efi::INVALID_PARAMETER);
        }
        self.events.stop_timers();
        self.events.signal_kind(events::kind::EXIT_BOOT_SERVICES);
        self.events.signal_group(&events::EXIT_GROUP);
        Flow::Leave
    }

    /// The device that a path begins with, the most exact one, or the partition that it names alone; and what is
    /// behind.
    fn device_of(&self, path: &DevicePath) -> Option<(usize, DevicePath)> {
        let devices = self.devices.iter().enumerate();
        if let Some((signature, rest)) = path.short_partition() {
            let found = { devices }.find(|(_, device)| device.signature() == Some(signature));
            return found.map(|(index, _)| (index, rest));
        }
        let found = devices.filter_map(|(index, device)| Some((index, device.path.behind(path)?)));
        found.min_by_key(|(_, rest)| rest.length())
    }

    /// The contents of a file on a device's file system.
    fn read_file(&mut self, device: usize, name: &str) -> Result<Vec<u8>, Failure> {
        let interface = self.devices[device].file_system.ok_or(efi::UNSUPPORTED)?;
        let fat = self.files.system(interface).ok_or(efi::UNSUPPORTED)?;
        let entry = fat.find(&fat.root(), name).map_err(files::status)?;
        if entry.attributes.is_directory() || u64::from(entry.size) > images::FILE_BYTES_MAX {
            return Err(efi::LOAD_ERROR);
        }
        let mut bytes = vec![0; entry.size as usize];
        fat.read(&entry, &mut crate::storage::fat::Cursor::default(), 0, &mut bytes)
            .map_err(files::status)?;
        Ok(bytes)
    }
}

/// The flow of a service that has nothing to answer but a status.
fn answer(result: Result<(), Failure>) -> Flow {
    Flow::Return(result.err().unwrap_or(0))
}

fn wait_until(until: u64) -> Flow {
    let then = Pending::Until(until);
    Flow::Wait { until, then }
}

/// How many bytes are carried at once.
const PIECE: u64 = 1 << 20;

/// Data, size, where the sum is to be written.
fn checksum(guest: &mut Guest<'_, '_>, [data, size, at]: [u64; 3]) -> Result<(), Failure> {
    if data == 0 || size == 0 || at == 0 {
        return Err(efi::INVALID_PARAMETER);
    }
    let mut sum = crc32fast::Hasher::new();
    let mut done = 0;
    while done < size {
        let from = data.checked_add(done).ok_or(efi::INVALID_PARAMETER)?;
        let bytes = guest.bytes(from, (size - done).min(PIECE))?;
        sum.update(&bytes);
        done += bytes.len() as u64;
    }
    guest.write(at, &sum.finalize().to_le_bytes())
}

/// Destination, source, size; they may overlap.
fn copy(guest: &mut Guest<'_, '_>, [to, from, size]: [u64; 3]) -> Result<(), Failure> {
    let mut done = 0;
    while done < size {
        let count = (size - done).min(PIECE);
        // What is still to be read is not written over before.
        let at = if to <= from { done } else { size - done - count };
        let place = |start: u64| start.checked_add(at).ok_or(efi::INVALID_PARAMETER);
        let bytes = guest.bytes(place(from)?, count)?;
        guest.write(place(to)?, &bytes)?;
        done += count;
    }
    Ok(())
}

/// Buffer, size, value.
fn fill(guest: &mut Guest<'_, '_>, [buffer, size, value]: [u64; 3]) -> Result<(), Failure> {
    let bytes = [value as u8; 4096];
    let mut done = 0;
    while done < size {
        let count = (size - done).min(bytes.len() as u64);
        let at = buffer.checked_add(done).ok_or(efi::INVALID_PARAMETER)?;
        guest.write(at, &bytes[..count as usize])?;
        done += count;
    }
    Ok(())
}
