//! What requests do. The same functions serve an exit on the guest's core and a sidecall on a sidecore; the difference
//! is what they cost there.

use std::sync::atomic::Ordering;

use sidestep_ia64::memory::GlobalPurge;
use sidestep_ia64::mmu::vhpt::{PageTableAddress, RegionRegister, hash, tag};
use sidestep_ia64::registers::system::control;
use sidestep_ia64::{Access, PhysicalAddress, Reference, TranslationSide, VirtualAddress};

use super::VirtualMachine;
use super::configuration::PurgeMethod;
use super::exit::ExitReason;
use super::own_service::{OWN_CYCLES_MAX, OWN_LINES_MAX, OwnServed};
use crate::costs::{Cost, HostCosts};
use crate::cycle::Cycle;
use crate::sidecall::request::{Answer, DeviceRequest, Refusal, Request};

/// Bytes of a sector.
pub const SECTOR: u64 = 512;
/// Bytes of a cache line, as of the Itanium 2's second level.
pub(super) const CACHE_LINE: u64 = 128;
/// The largest transfer of one request, in bytes.
pub(super) const TRANSFER_MAX: u64 = 1 << 20;

/// What [`Work::entry_of`] has looked at.
const ENTRY: &str = "an entry of a table is in memory";

/// Who serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// The guest's own core, after an exit.
    OwnCore,
    /// A sidecore.
    Sidecore,
}

/// A packet between virtual machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The virtual machine that it goes to.
    pub to: u64,
    /// Its contents.
    pub bytes: Vec<u8>,
    /// When it arrives.
    pub time: Cycle,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It is answered.
    Answered(Answer),
    /// It is a device's to serve and to answer.
    Submitted(DeviceRequest),
}

/// What serving a request came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// What became of it.
    pub progress: Progress,
    /// Cycles of the core that served.
    pub cycles: u64,
}

impl VirtualMachine {
    /// Serves a request of virtual processor `index` at `time`, or checks it for the device that will.
    pub fn serve(
        &mut self,
        costs: &HostCosts,
        index: usize,
        request: Request,
        server: Server,
        time: Cycle,
    ) -> Served {
        // A line of the guest's is in its core's cache, unless that core serves itself.
        let line_cycles = match server {
            Server::OwnCore => costs.cycles(Cost::CacheLine),
            Server::Sidecore => costs.cycles(Cost::Transfer),
        };
        let mut work = Work {
            machine: self,
            costs,
            index,
            server,
            time,
            line_cycles,
            cycles: 0,
        };
        let progress = work.serve(request);
        let mut cycles = work.cycles;
        let updates = matches!(request, Request::Map { .. } | Request::Unmap { .. });
        if let (Some(lock), true, Server::OwnCore) = (&mut self.page_table_lock, updates, server) {
            let begun = time + costs.cycles(Cost::Exit) + costs.cycles(Cost::Dispatch);
            cycles += lock.take(costs, index, begun, cycles);
        }
        Served { progress, cycles }
    }
}

/// A request in progress.
struct Work<'a> {
    machine: &'a mut VirtualMachine,
    costs: &'a HostCosts,
    index: usize,
    server: Server,
    time: Cycle,
    line_cycles: u64,
    cycles: u64,
}

impl Work<'_> {
    fn serve(&mut self, request: Request) -> Progress {
        Progress::Answered(match request {
            Request::Null => Ok(0),
            Request::Identification { index } => self.identification(index),
            Request::Map { address, entry, itir } => self.map(address, entry, itir),
            Request::Unmap { address, size_log2 } => self.unmap(address, size_log2),
            Request::Timer { delay_cycles, vector } => self.timer(delay_cycles, vector),
            Request::Interrupt { target, vector } => self.interrupt(target, vector),
            Request::Console { address, size } => self.console(address, size),
            Request::Own { arguments } => self.own(arguments),
            Request::Doorbell => self.doorbell(),
            Request::Fill { address } => self.fill(address),
            Request::Purge { address, size_log2 } => self.purge_translations(address, size_log2),
            Request::Device(request) => {
                self.cycles += self.costs.cycles(Cost::Emulate);
                match self.machine.device_cycles(self.costs, &request, self.time) {
                    Ok(_) => return Progress::Submitted(request),
                    Err(refusal) => Err(refusal),
                }
            }
            Request::Unknown => {
                self.cycles += self.costs.cycles(Cost::Emulate);
                Err(Refusal::UnknownKind)
            }
        })
    }

    /// Has the user's own service serve, if there is one.
    fn own(&mut self, arguments: [u64; 3]) -> Answer {
        self.cycles += self.costs.cycles(Cost::Emulate);
        let Some(service) = &mut self.machine.own_service else {
            return Err(Refusal::UnknownKind);
        };
        match service.serve(arguments) {
            Ok(OwnServed {
                answer,
                cycles,
                lines,
            }) => {
                self.cycles += cycles.min(OWN_CYCLES_MAX);
                self.cycles += lines.min(OWN_LINES_MAX) * self.line_cycles;
                Ok(answer)
            }
            Err(failure) => {
                self.machine.failure.get_or_insert(failure);
                Err(Refusal::BadArgument)
            }
        }
    }

    fn identification(&mut self, index: u64) -> Answer {
        self.cycles += self.costs.cycles(Cost::Emulate);
        let index = usize::try_from(index).map_err(|_| Refusal::BadArgument)?;
        sidestep_ia64::IDENTIFICATION
            .get(index)
            .copied()
            .ok_or(Refusal::BadArgument)
    }

    /// Where the guest's own table has the entry of an address.
    fn entry_of(
        &mut self,
        address: VirtualAddress,
    ) -> Result<(PhysicalAddress, PageTableAddress, RegionRegister), Refusal> {
        let processor = self.machine.processors[self.index].processor_mut();
        let table = PageTableAddress(processor.system.control[usize::from(control::PTA)]);
        let region = RegionRegister(processor.system.region[address.region()]);
        if !table.is_valid() || !region.is_valid() {
            return Err(Refusal::NoTable);
        }
        let at = hash(address, region, table);
        let physical = match processor.resolve_reference(at, Access::Write) {
            Ok(Reference::Physical(physical)) => physical,
            Ok(Reference::Translated(entry)) => entry.physical_address(at),
            Err(_) => return Err(Refusal::NoTable),
        };
        let size = if table.is_long() { 32 } else { 8 };
        if !self.machine.shared.memory.holds(physical, size) {
            return Err(Refusal::NoTable);
        }
        Ok((physical, table, region))
    }

    /// Creates or changes an entry of the guest's table and of the shadow.
    fn map(&mut self, address: VirtualAddress, entry: u64, itir: u64) -> Answer {
        self.cycles += self.costs.cycles(Cost::Emulate);
        let (place, table, region) = self.entry_of(address)?;
        let itir = if itir == 0 { region.default_itir() } else { itir };
        let guest =
            sidestep_ia64::mmu::entry::TranslationEntry::new(address, region.identifier(), entry, itir)
                .map_err(|_| Refusal::BadArgument)?;
        let memory = std::sync::Arc::clone(&self.machine.shared);
        let memory = &memory.memory;
        let read = |offset: u64| memory.read_value::<u64>(place + offset).expect(ENTRY);
        let names_page = !table.is_long() || read(16) == tag(address, region);
        let was_valid = names_page && read(0) & 1 != 0;
        let write = |offset: u64, value: u64| memory.write_value(place + offset, value);
        let mut written = write(0, entry);
        if table.is_long() {
            written = written.and(write(8, itir)).and(write(16, tag(address, region)));
        }
        written.map_err(|_| Refusal::NoTable)?;
        // The guest's entry and the shadow's.
        self.cycles += 2 * self.line_cycles;
        self.touch(place, if table.is_long() { 32 } else { 8 }, true);
        if self.server == Server::OwnCore {
            self.machine.processors[self.index].touch_shadow(address);
        }
        let purge = GlobalPurge {
            address,
            region: region.identifier(),
            size_log2: guest.size_log2,
            advanced_loads: true,
        };
        if was_valid {
            self.purge(purge);
        } else {
            // A translation that is not present may be in the virtual TLB: the guest's own handler would replace it.
            self.machine.processors[self.index].purge_from_outside(purge);
        }
        if guest.present && guest.accessed {
            let shared = std::sync::Arc::clone(&self.machine.shared);
            let processor = &mut self.machine.processors[self.index];
            // What is no memory stays out of the shadow and exits at its first reference.
            let _ = processor.fill(&shared, address, TranslationSide::Data, Some(&guest));
        }
        Ok(u64::from(was_valid))
    }

    /// Has the block device look at its queue.
    fn doorbell(&mut self) -> Answer {
        self.cycles += self.costs.cycles(Cost::Emulate);
        let whole = self.machine.whole.as_ref();
        let disk = whole
            .and_then(|whole| whole.disk.as_ref())
            .ok_or(Refusal::BadArgument)?;
        // The index of what the driver has made available.
        self.cycles += self.line_cycles;
        disk.is_looked_at.store(false, Ordering::Relaxed);
        disk.facilities.take_ring();
        disk.facilities.look((self.time + self.cycles).0);
        Ok(0)
    }

    /// Puts the translation that the guest has made for an address into the shadow.
    fn fill(&mut self, address: VirtualAddress) -> Answer {
        self.cycles += self.costs.cycles(Cost::Emulate);
        let shared = std::sync::Arc::clone(&self.machine.shared);
        let processor = &mut self.machine.processors[self.index];
        let Ok(Reference::Translated(entry)) =
            processor.processor_mut().resolve_reference(address, Access::Read)
        else {
            return Err(Refusal::NoTable);
        };
        // The guest's entry and the shadow's.
        self.cycles += 2 * self.line_cycles;
        if self.server == Server::OwnCore {
            processor.touch_shadow(address);
        }
        let filled = processor.fill(&shared, address, TranslationSide::Data, Some(&entry));
        filled.map(|_| 0).ok_or(Refusal::BadAddress)
    }

    /// Removes the translations of a range from all TLBs and shadows, as `ptc.ga` does.
    fn purge_translations(&mut self, address: VirtualAddress, size_log2: u64) -> Answer {
        self.cycles += self.costs.cycles(Cost::Emulate);
        const PURGE_LOG2_MAX: u64 = 61;
        if !(12..=PURGE_LOG2_MAX).contains(&size_log2) {
            return Err(Refusal::BadArgument);
        }
        let processor = self.machine.processors[self.index].processor();
        let region = RegionRegister(processor.system.region[address.region()]);
        let size_log2 = size_log2 as u32;
        self.purge(GlobalPurge {
            address: address.aligned_down(size_log2),
            region: region.identifier(),
            size_log2,
            advanced_loads: true,
        });
        Ok(0)
    }

    /// Removes the entries of a range from the guest's table and from all shadows.
    fn unmap(&mut self, address: VirtualAddress, size_log2: u64) -> Answer {
        self.cycles += self.costs.cycles(Cost::Emulate);
        let size_log2 = u32::try_from(size_log2).map_err(|_| Refusal::BadArgument)?;
        let processor = self.machine.processors[self.index].processor();
        let region = RegionRegister(processor.system.region[address.region()]);
        const RANGE_LOG2_MAX: u32 = 30;
        if !region.is_valid() || !(12..=RANGE_LOG2_MAX).contains(&size_log2) {
            return Err(Refusal::BadArgument);
        }
        let page_log2 = region.size_log2();
        let first = address.aligned_down(size_log2.max(page_log2));
        let pages = 1u64 << size_log2.saturating_sub(page_log2);
        let mut removed = 0;
        let mut line_before = None;
        for page in 0..pages.min(TRANSFER_MAX) {
            let page = first + (page << page_log2);
            let (place, table, region) = self.entry_of(page)?;
            let memory = &self.machine.shared.memory;
            let word = |offset: u64| memory.read_value::<u64>(place + offset).expect(ENTRY);
            let names_page = !table.is_long() || word(16) == tag(page, region);
            if names_page && word(0) != 0 {
                removed += 1;
                // The shadow's entry.
                self.cycles += self.line_cycles;
                if self.server == Server::OwnCore {
                    self.machine.processors[self.index].touch_shadow(page);
                }
                let cleared = memory.write_value(place, 0_u64);
                const INVALID_TAG: u64 = 1 << 63;
                let cleared = if table.is_long() {
                    cleared.and(memory.write_value(place + 16, INVALID_TAG))
                } else {
                    cleared
                };
                cleared.map_err(|_| Refusal::NoTable)?;
            }
            // Entries that share a line come over together.
            let line = place.0 / CACHE_LINE;
            if line_before != Some(line) {
                self.cycles += self.line_cycles;
                self.touch(place, CACHE_LINE, true);
                line_before = Some(line);
            }
        }
        self.purge(GlobalPurge {
            address: first,
            region: region.identifier(),
            size_log2: size_log2.max(page_log2),
            advanced_loads: true,
        });
        Ok(removed)
    }

    /// Touches guest memory on the core that serves, where that is the guest's own.
    fn touch(&mut self, address: PhysicalAddress, bytes: u64, writes: bool) {
        if self.server == Server::OwnCore {
            let processor = &mut self.machine.processors[self.index];
            processor.touch(|touched, core| touched.guest(core, address, bytes, writes));
        }
    }

    /// Removes a range from every TLB of the guest: the core that serves an exit purges its own.
    fn purge(&mut self, purge: GlobalPurge) {
        let own = (self.server == Server::OwnCore).then_some(self.index);
        if own.is_some() {
            self.cycles += self.costs.cycles(Cost::Purge);
        }
        for processor in &mut self.machine.processors {
            processor.purge_from_outside(purge);
        }
        self.cycles += self.machine.purge_others(self.costs, own);
    }

    fn timer(&mut self, delay_cycles: u64, vector: u64) -> Answer {
        self.cycles += self.costs.cycles(Cost::Emulate);
        let vector = interrupt_vector(vector).ok_or(Refusal::BadArgument)?;
        const DELAY_CYCLES_MAX: u64 = 1 << 50;
        if delay_cycles > DELAY_CYCLES_MAX {
            return Err(Refusal::BadArgument);
        }
        if !self
            .machine
            .set_timer(self.index, self.time + delay_cycles, vector)
        {
            return Err(Refusal::Full);
        }
        Ok(0)
    }

    fn interrupt(&mut self, target: u64, vector: u64) -> Answer {
        self.cycles += self.costs.cycles(Cost::Emulate);
        let vector = interrupt_vector(vector).ok_or(Refusal::BadArgument)?;
        let target = usize::try_from(target).map_err(|_| Refusal::BadArgument)?;
        if target >= self.machine.processors.len() {
            return Err(Refusal::BadArgument);
        }
        let arrival = self.time + self.cycles + self.costs.cycles(Cost::Interrupt);
        self.machine.interrupt(target, vector, arrival);
        Ok(0)
    }

    fn console(&mut self, address: PhysicalAddress, size: u64) -> Answer {
        let bytes = self.read(address, size)?;
        self.machine.print(&bytes);
        Ok(size)
    }

    /// Guest memory that a request names.
    fn read(&mut self, address: PhysicalAddress, size: u64) -> Result<Vec<u8>, Refusal> {
        self.cycles += self.costs.cycles(Cost::Emulate);
        if size > TRANSFER_MAX {
            return Err(Refusal::BadArgument);
        }
        let mut bytes = vec![0; size as usize];
        let read = self.machine.shared.memory.read(address, &mut bytes);
        read.map_err(|_| Refusal::BadAddress)?;
        self.cycles += size.div_ceil(CACHE_LINE) * self.line_cycles;
        self.touch(address, size, false);
        Ok(bytes)
    }
}

/// The vector that a guest names, if it is one of an external interrupt.
pub(super) fn interrupt_vector(vector: u64) -> Option<u8> {
    u8::try_from(vector).ok().filter(|vector| *vector >= 16)
}

impl VirtualMachine {
    /// Has every TLB but that of `own` purge, by the method that is configured. The cycles of the core that asks, until
    /// the purge is complete.
    pub(super) fn purge_others(&mut self, costs: &HostCosts, own: Option<usize>) -> u64 {
        let others: Vec<usize> = (0..self.processors.len())
            .filter(|index| Some(*index) != own)
            .collect();
        if others.is_empty() {
            return 0;
        }
        self.remote_purges += 1;
        match self.purge_method {
            PurgeMethod::Broadcast => costs.cycles(Cost::Broadcast),
            PurgeMethod::Interrupt => {
                // The interrupt makes each other core leave its guest, purge and say so.
                let purged = costs.round_trip() + costs.cycles(Cost::Purge);
                for index in others {
                    self.processors[index].charge(ExitReason::HostInterrupt, purged);
                }
                costs.cycles(Cost::Interrupt)
                    + costs.cycles(Cost::Exit)
                    + costs.cycles(Cost::Dispatch)
                    + costs.cycles(Cost::Purge)
                    + costs.cycles(Cost::Transfer)
            }
        }
    }
}
