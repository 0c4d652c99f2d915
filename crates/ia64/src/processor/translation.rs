//! A reference of the processor in system mode: from virtual address to page, or to the fault that the manual
//! orders first (volume 2, table 5-6 and section 4.1.1).

use crate::address::{PhysicalAddress, VirtualAddress};
use crate::fault::{Access, Fault, FaultKind, isr};
use crate::memory::{HostPage, MemoryRegion};
use crate::processor::execution::UNCACHEABLE;
use crate::processor::virtualization::TranslationSide;
use crate::processor::{Processor, Raised};
use crate::registers::status::{psr, rsc};
use crate::registers::system::control;

use crate::mmu::entry::{MemoryAttribute, PHYSICAL_ADDRESS_BITS, TranslationEntry};
use crate::mmu::vhpt::{PageTableAddress, RegionRegister, hash, tag};

/// Where a reference of a processor in system mode ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Translated {
    /// In memory: the part of the page that is one stretch of host memory.
    Memory(HostPage),
    /// At a device.
    Device(PhysicalAddress),
}

/// Under which rules a reference is translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Purpose {
    /// Whether the address is virtual.
    pub translated: bool,
    /// The privilege level that asks.
    pub level: u8,
}

/// Whether a virtual address belongs to the monitor alone: with PSR.vm set one bit less is implemented (manual volume
/// 2, section 11.7), so that the bits above it must equal the highest one left.
fn is_reserved_for_monitor(address: VirtualAddress) -> bool {
    (address.0 >> 60 ^ address.0 >> 59) & 1 != 0
}

/// The largest stretch that the software TLB is given at once; memory regions are multiples of it.
const STRETCH_LOG2: u32 = 14;
/// ISR.code of a NaT page consumption fault.
const NAT_CONSUMPTION_PAGE: u64 = 0x20;

impl Processor {
    /// The rules for an access now.
    pub(crate) fn purpose(&self, access: Access) -> Purpose {
        let bit = match access {
            Access::Execute => psr::IT,
            Access::RegisterStackRead | Access::RegisterStackWrite => psr::RT,
            Access::Read | Access::Write | Access::ReadWrite => psr::DT,
        };
        let level = match access {
            Access::RegisterStackRead | Access::RegisterStackWrite => {
                (self.register_stack.configuration() >> rsc::PRIVILEGE_SHIFT & 3) as u8
            }
            _ => self.privilege_level(),
        };
        Purpose {
            translated: self.status & bit != 0,
            level,
        }
    }

    /// Translates a reference and checks that it may be made.
    pub(crate) fn translate(
        &mut self,
        address: VirtualAddress,
        access: Access,
        purpose: Purpose,
    ) -> Result<Translated, Fault> {
        if !purpose.translated {
            return self.physical(address, access, None);
        }
        let entry = self.translation(address, access)?;
        self.check_entry(&entry, address, access, purpose.level)?;
        self.physical(address, access, Some(&entry))
    }

    /// The region register of a virtual address.
    pub(crate) fn region_register(&self, address: VirtualAddress) -> RegionRegister {
        RegionRegister(self.system.region[address.region()])
    }

    /// The translation of a virtual address from registers, cache or VHPT, whatever it permits.
    pub(crate) fn translation(
        &mut self,
        address: VirtualAddress,
        access: Access,
    ) -> Result<TranslationEntry, Fault> {
        if self.status & psr::VM != 0 && is_reserved_for_monitor(address) {
            let mut fault = Fault::reserved_register_field();
            fault.isr |= access.isr();
            fault.address = address;
            return Err(fault);
        }
        let region = self.region_register(address);
        let is_fetch = access == Access::Execute;
        let mmu = self.mmu_mut();
        let buffer = if is_fetch {
            &mut mmu.instruction
        } else {
            &mut mmu.data
        };
        if let Some(entry) = buffer.find(address, region.identifier()) {
            return Ok(*entry);
        }
        if is_fetch {
            mmu.events.instruction_misses += 1;
        } else {
            mmu.events.data_misses += 1;
        }
        self.walked_in_vain = None;
        let table = PageTableAddress(self.system.control[usize::from(control::PTA)]);
        let collects = self.status & psr::IC != 0;
        // The walker follows data translation; for a fetch it also needs collection and fetch translation.
        let walks = table.is_enabled()
            && region.walker_enabled()
            && self.status & psr::DT != 0
            && (!is_fetch || self.status & psr::IT != 0 && collects);
        let miss = |kind: FaultKind| Fault::reference(kind, access, address);
        if !collects && !is_fetch && !walks {
            return Err(miss(FaultKind::DataNestedTlb));
        }
        if !walks {
            return Err(miss(if is_fetch {
                FaultKind::AlternateInstructionTlb
            } else {
                FaultKind::AlternateDataTlb
            }));
        }
        match self.walk(address, region, table) {
            Walk::Found(entry) => {
                self.keep_before_walk();
                self.walker_inserted = self.walked_in_vain.take().unwrap_or_default();
                self.mmu_mut().events.walker_hits += 1;
                let side = if is_fetch {
                    TranslationSide::Instruction
                } else {
                    TranslationSide::Data
                };
                self.insert_translation(side, entry);
                Ok(entry)
            }
            Walk::NotFound if !collects => Err(miss(FaultKind::DataNestedTlb)),
            Walk::NotFound => Err(miss(if is_fetch {
                FaultKind::InstructionTlb
            } else {
                FaultKind::DataTlb
            })),
            Walk::Unreachable if !collects => Err(miss(FaultKind::DataNestedTlb)),
            Walk::Unreachable => Err(miss(FaultKind::VhptTranslation)),
        }
    }

    /// Keeps the data translations as they are before the first of a block that the walker inserts, where somebody
    /// asks.
    fn keep_before_walk(&mut self) {
        if self.keeps_before_walk && self.before_walk.is_none() {
            self.before_walk = Some(Box::new(self.mmu_mut().data.clone()));
        }
    }

    /// Reads the VHPT as the hardware walker does: without faults of its own, through the data translations.
    fn walk(&mut self, address: VirtualAddress, region: RegionRegister, table: PageTableAddress) -> Walk {
        let at = hash(address, region, table);
        let holder = self.region_register(at);
        let Some(page) = self.mmu_mut().data.find(at, holder.identifier()).copied() else {
            return Walk::Unreachable;
        };
        let usable = page.present && page.attribute == MemoryAttribute::WriteBack && page.accessed;
        if !usable || self.check_key(page.key, Access::Read, at).is_err() {
            return Walk::NotFound;
        }
        self.mmu_mut().events.walker_reads += 1;
        let physical = page.physical_address(at);
        self.walked_in_vain = Some(physical);
        let Some(word) = self.read_physical(physical) else {
            return Walk::NotFound;
        };
        let itir = if table.is_long() {
            match (
                self.read_physical(physical + 8),
                self.read_physical(physical + 16),
            ) {
                (Some(itir), Some(found)) if found == tag(address, region) => itir,
                _ => return Walk::NotFound,
            }
        } else {
            region.default_itir()
        };
        match TranslationEntry::new(address, region.identifier(), word, itir) {
            Ok(entry) => Walk::Found(entry),
            Err(_) => Walk::NotFound,
        }
    }

    /// A doubleword of physical memory, in the byte order of DCR.be.
    fn read_physical(&self, address: PhysicalAddress) -> Option<u64> {
        let region = self.physical_memory().region(address)?;
        let offset = address.offset_from(region.start)?;
        let host = region.host.wrapping_add(offset as usize);
        // SAFETY: the region holds the address, regions are multiples of 64 kB, and entries are aligned.
        let word = unsafe { <u64 as crate::memory::Value>::load(host) };
        let is_big_endian = self.system.control[usize::from(control::DCR)] >> 1 & 1 != 0;
        Some(if is_big_endian { word.swap_bytes() } else { word })
    }

    /// Checks a translation in the manual's order of priority.
    pub(crate) fn check_entry(
        &self,
        entry: &TranslationEntry,
        address: VirtualAddress,
        access: Access,
        level: u8,
    ) -> Result<(), Fault> {
        self.check_entry_but(entry, address, access, level, |_| false)
    }

    /// As [`Self::check_entry`], passing over the faults that are `deferred`.
    fn check_entry_but(
        &self,
        entry: &TranslationEntry,
        address: VirtualAddress,
        access: Access,
        level: u8,
        deferred: impl Fn(FaultKind) -> bool,
    ) -> Result<(), Fault> {
        let fault = |kind: FaultKind| Err(Fault::reference(kind, access, address));
        if !entry.present {
            return fault(FaultKind::PageNotPresent);
        }
        if entry.attribute == MemoryAttribute::NatPage {
            let mut fault = Fault::reference(FaultKind::NatConsumption, access, address);
            fault.isr |= NAT_CONSUMPTION_PAGE;
            return Err(fault);
        }
        match self.check_key(entry.key, access, address) {
            Err(fault) if !deferred(fault.kind) => return Err(fault),
            _ => {}
        }
        if !entry.permits(access, level) {
            let kind = match access {
                Access::Execute => FaultKind::InstructionAccessRights,
                _ => FaultKind::DataAccessRights,
            };
            if !deferred(kind) {
                return fault(kind);
            }
        }
        if access == Access::Execute {
            if !entry.accessed && self.status & psr::IA == 0 {
                return fault(FaultKind::InstructionAccessBit);
            }
        } else if self.status & psr::DA == 0 {
            if access.writes() && !entry.dirty {
                return fault(FaultKind::DirtyBit);
            }
            if !entry.accessed && !deferred(FaultKind::DataAccessBit) {
                return fault(FaultKind::DataAccessBit);
            }
        }
        Ok(())
    }

    /// Checks a page's protection key where PSR.pk asks for it (manual volume 2, section 4.1.3).
    fn check_key(&self, key: u32, access: Access, address: VirtualAddress) -> Result<(), Fault> {
        const VALID: u64 = 1;
        const WRITE_DISABLE: u64 = 1 << 1;
        const READ_DISABLE: u64 = 1 << 2;
        const EXECUTE_DISABLE: u64 = 1 << 3;
        if self.status & psr::PK == 0 {
            return Ok(());
        }
        let wanted = u64::from(key) << 8 | VALID;
        let Some(register) = self
            .system
            .protection_key
            .iter()
            .find(|&&register| register & !0xfe == wanted)
        else {
            let kind = match access {
                Access::Execute => FaultKind::InstructionKeyMiss,
                _ => FaultKind::DataKeyMiss,
            };
            return Err(Fault::reference(kind, access, address));
        };
        let denied = access.reads() && register & READ_DISABLE != 0
            || access.writes() && register & WRITE_DISABLE != 0
            || access == Access::Execute && register & EXECUTE_DISABLE != 0;
        if denied {
            return Err(Fault::reference(FaultKind::KeyPermission, access, address));
        }
        Ok(())
    }

    /// The memory or device behind a reference that may be made, with what else the same page permits.
    fn physical(
        &mut self,
        address: VirtualAddress,
        access: Access,
        entry: Option<&TranslationEntry>,
    ) -> Result<Translated, Fault> {
        let physical = match entry {
            Some(entry) => entry.physical_address(address),
            None => PhysicalAddress(address.0 & !UNCACHEABLE),
        };
        if physical.0 >> PHYSICAL_ADDRESS_BITS != 0 {
            let mut fault = Fault::reserved_register_field();
            fault.isr |= access.isr();
            fault.address = address;
            return Err(fault);
        }
        let size_log2 = entry.map_or(STRETCH_LOG2, |entry| entry.size_log2.min(STRETCH_LOG2));
        let Some(region) = self.physical_memory().region(physical) else {
            return Ok(Translated::Device(physical));
        };
        if access.writes() && !region.writable {
            return Ok(Translated::Device(physical));
        }
        Ok(Translated::Memory(
            self.stretch(address, physical, size_log2, &region, access, entry),
        ))
    }

    /// The stretch of `1 << size_log2` bytes around an address, with the rights that its page gives now.
    fn stretch(
        &self,
        address: VirtualAddress,
        physical: PhysicalAddress,
        size_log2: u32,
        region: &MemoryRegion,
        access: Access,
        entry: Option<&TranslationEntry>,
    ) -> HostPage {
        let level = self.purpose(access).level;
        let allows = |access: Access| {
            entry.is_none_or(|entry| self.check_entry(entry, address, access, level).is_ok())
        };
        HostPage {
            start: address.aligned_down(size_log2),
            size_log2,
            host: region
                .host
                .wrapping_add((physical.aligned_down(size_log2).0 - region.start.0) as usize),
            readable: allows(Access::Read),
            writable: region.writable && allows(Access::Write),
            executable: allows(Access::Execute),
        }
    }

    /// Ends a speculative load of `size` bytes that raised a fault: either the fault is deferred, and the target
    /// becomes NaT, or it is raised as the fault of a speculative load; and so are those of lower priority (manual
    /// volume 2, section 5.5.5).
    pub(crate) fn defer(&mut self, size: u64) -> Result<(), Raised> {
        let fault = self.take_fault();
        if self.environment.system().is_none() {
            return Ok(());
        }
        let raised = if self.defers(fault.kind) {
            self.undeferred(&fault, size)
        } else {
            Some(fault)
        };
        match raised {
            None => Ok(()),
            Some(fault) => Err(self.raise(Fault {
                isr: fault.isr | isr::SPECULATIVE,
                ..fault
            })),
        }
    }

    /// The fault that a speculative load meets behind the `deferred` one: rights to the page and data breakpoints are
    /// looked at each for itself, where there is a page at all.
    fn undeferred(&self, deferred: &Fault, size: u64) -> Option<Fault> {
        let is_of_page = matches!(
            deferred.kind,
            FaultKind::DataKeyMiss
                | FaultKind::KeyPermission
                | FaultKind::DataAccessRights
                | FaultKind::DataAccessBit
        );
        if !is_of_page {
            return None;
        }
        let address = deferred.address;
        let region = self.region_register(address).identifier();
        let entry = self.mmu()?.data.find(address, region)?;
        let level = self.privilege_level();
        let defers = |kind| self.defers(kind);
        if let Err(fault) = self.check_entry_but(entry, address, Access::Read, level, defers) {
            return Some(fault);
        }
        let is_watched = self.status & (psr::DB | psr::DD) == psr::DB
            && !self.defers(FaultKind::Debug)
            && self.is_data_breakpoint(address.0, size, Access::Read);
        is_watched.then(|| Fault::reference(FaultKind::Debug, Access::Read, address))
    }

    /// Whether a speculative load defers a fault to a NaT instead of raising it (manual volume 2, section
    /// 5.5.5).
    fn defers(&self, fault: FaultKind) -> bool {
        /// Bits of the default control register that ask for deferral, by the kind of fault.
        const DEFERRAL: &[(FaultKind, u32)] = &[
            (FaultKind::VhptTranslation, 8),
            (FaultKind::DataTlb, 8),
            (FaultKind::AlternateDataTlb, 8),
            (FaultKind::PageNotPresent, 9),
            (FaultKind::DataKeyMiss, 10),
            (FaultKind::KeyPermission, 11),
            (FaultKind::DataAccessRights, 12),
            (FaultKind::DataAccessBit, 13),
            (FaultKind::Debug, 14),
        ];
        if self.status & psr::IC == 0 || self.status & psr::ED != 0 {
            return true;
        }
        let by_page = self.fetches_with_deferral();
        let controls = self.system.control[usize::from(control::DCR)];
        match fault {
            // NaT pages and unimplemented addresses always defer, misalignment where the code page says so.
            FaultKind::NatConsumption | FaultKind::GeneralException => true,
            FaultKind::UnalignedReference | FaultKind::UnsupportedReference => by_page,
            kind => {
                by_page
                    && DEFERRAL
                        .iter()
                        .any(|&(deferred, bit)| deferred == kind && controls >> bit & 1 != 0)
            }
        }
    }
}

/// What the walker found.
enum Walk {
    /// A translation.
    Found(TranslationEntry),
    /// No entry for the address.
    NotFound,
    /// No translation of the table itself.
    Unreachable,
}
