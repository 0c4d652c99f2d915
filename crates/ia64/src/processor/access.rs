//! Loads, stores and semaphores of a processor, by guest virtual address.
//!
//! The common case is an aligned, little-endian access whose page is in the software TLB: one tag
//! comparison and one host access. Everything else (a page not seen yet, a misaligned address, big-endian
//! data) goes through the slow paths below. All host accesses are atomic: plain loads and stores relaxed
//! (the x86-64 host orders them at least as strongly as Itanium's acquire and release ask), semaphores
//! sequentially consistent.
//!
//! Misaligned loads and stores: with PSR.ac set they all fault, and semaphores and 16-byte accesses of general
//! registers fault always. With PSR.ac clear the architecture lets a processor choose which ones it carries out (volume
//! 2, section 4.5); this one carries out all of them, across page boundaries as well. Those are not atomic.

use std::sync::atomic::Ordering;

use portable_atomic::AtomicU128;

use crate::address::{PhysicalAddress, VirtualAddress};
use crate::fault::{Access, Fault, FaultKind};
use crate::memory::{GRANULE_LOG2, HostPage, Value};
use crate::processor::environment::not_executable;
use crate::processor::translation::Translated;
use crate::processor::{Processor, Raised};
use crate::registers::status::psr;

/// What stands behind an address.
enum Place {
    /// Host memory.
    Host(*mut u8),
    /// A device.
    Device(PhysicalAddress),
}

/// Words of the backing store in host memory: 63 registers and their NaT collection.
pub(crate) struct BackingStoreGroup {
    host: *mut u8,
}

impl BackingStoreGroup {
    /// Its size, in bytes: pages are no smaller.
    const SIZE: u64 = 512;

    /// Loads a word, by its number modulo 64.
    #[inline(always)]
    pub(crate) fn load(&self, slot: u64) -> u64 {
        // SAFETY: the second level of the TLB holds pages that are valid for the access (the contract of
        // `AddressSpace`), and an aligned group lies in one page.
        unsafe { u64::load(self.host.add((slot % 64) as usize * 8)) }
    }

    /// Stores a word, by its number modulo 64.
    #[inline(always)]
    pub(crate) fn store(&self, slot: u64, value: u64) {
        // SAFETY: as in `load`, with a page that is valid for writes.
        unsafe { u64::store(self.host.add((slot % 64) as usize * 8), value) }
    }
}

impl Processor {
    /// Loads a value, zero-extended.
    #[inline(always)]
    pub fn load<V: Value>(&mut self, address: u64) -> Result<u64, Raised> {
        match self.translations.for_load(address, V::SIZE) {
            // SAFETY: the TLB holds pages that are valid for reads (the contract of `AddressSpace`), and
            // its tag comparison found the address aligned and in the page.
            Some(host) => Ok(unsafe { V::load(host) }),
            None => self.load_slowly::<V>(address, Access::Read),
        }
    }

    /// Stores the low bytes of `value`.
    #[inline(always)]
    pub fn store<V: Value>(&mut self, address: u64, value: u64) -> Result<(), Raised> {
        match self.translations.for_store(address, V::SIZE) {
            Some(host) => {
                // SAFETY: as in `load`, with pages that are valid for writes.
                unsafe { V::store(host, value) };
                self.advanced_loads.invalidate(address, V::SIZE);
                Ok(())
            }
            None => self.store_slowly::<V>(address, value, Access::Write),
        }
    }

    /// Whether the register stack engine accesses memory as loads and stores do.
    fn is_backing_store_plain(&self) -> bool {
        self.shares_data_context() && !self.register_stack.is_big_endian()
    }

    /// Loads for the register stack engine, which has its own byte order.
    pub(crate) fn load_backing_store(&mut self, address: u64) -> Result<u64, Raised> {
        let known = self.translations.for_load(address, 8);
        let access = Access::RegisterStackRead;
        match known.or_else(|| self.translations.for_register_stack(address, access)) {
            // SAFETY: as in `load`; the backing store is aligned.
            Some(host) if self.is_backing_store_plain() => Ok(unsafe { u64::load(host) }),
            _ => self.load_slowly::<u64>(address, access),
        }
    }

    /// Stores for the register stack engine, which has its own byte order.
    pub(crate) fn store_backing_store(&mut self, address: u64, value: u64) -> Result<(), Raised> {
        let known = self.translations.for_store(address, 8);
        let access = Access::RegisterStackWrite;
        match known.or_else(|| self.translations.for_register_stack(address, access)) {
            Some(host) if self.is_backing_store_plain() => {
                // SAFETY: as in `store`; the backing store is aligned.
                unsafe { u64::store(host, value) };
                Ok(())
            }
            _ => self.store_slowly::<u64>(address, value, access),
        }
    }

    /// The 64 words of the backing store that end with a NaT collection, around an address, where memory is accessed as
    /// loads and stores do it and the page is known.
    #[inline]
    pub(crate) fn backing_store_group(&self, address: u64, access: Access) -> Option<BackingStoreGroup> {
        let is_plain = self.is_backing_store_plain();
        let start = address & !(BackingStoreGroup::SIZE - 1);
        let host = { self.translations.for_register_stack(start, access) }.filter(|_| is_plain)?;
        Some(BackingStoreGroup { host })
    }

    /// Exchanges memory with the low bytes of `value`; returns what the memory held.
    pub fn exchange<V: Value>(&mut self, address: u64, value: u64) -> Result<u64, Raised> {
        let swap = self.is_big_endian();
        let value = if swap { V::swap(value) } else { value };
        let host = self.semaphore_address(address, V::SIZE)?;
        // SAFETY: `semaphore_address` returns aligned host memory that is valid for reads and writes.
        let held = unsafe { V::exchange(host, value) };
        Ok(if swap { V::swap(held) } else { held })
    }

    /// Stores `value` if memory holds `expected`; returns what the memory held.
    pub fn compare_exchange<V: Value>(
        &mut self,
        address: u64,
        expected: u64,
        value: u64,
    ) -> Result<u64, Raised> {
        let swap = self.is_big_endian();
        let narrow = |value: u64| if swap { V::swap(value) } else { value };
        let fits = V::SIZE == 8 || expected >> (V::SIZE * 8) == 0;
        let host = self.semaphore_address(address, V::SIZE)?;
        let expected = if fits { narrow(expected) } else { expected };
        // SAFETY: `semaphore_address` returns aligned host memory that is valid for reads and writes.
        let held = unsafe { V::compare_exchange(host, expected, narrow(value)) };
        Ok(narrow(held))
    }

    /// Adds to memory; returns what it held.
    pub fn fetch_add<V: Value>(&mut self, address: u64, increment: u64) -> Result<u64, Raised> {
        if self.is_big_endian() {
            return self.fetch_add_big_endian::<V>(address, increment);
        }
        let host = self.semaphore_address(address, V::SIZE)?;
        // SAFETY: `semaphore_address` returns aligned host memory that is valid for reads and writes.
        Ok(unsafe { V::fetch_add(host, increment) })
    }

    #[cold]
    fn fetch_add_big_endian<V: Value>(&mut self, address: u64, increment: u64) -> Result<u64, Raised> {
        let host = self.semaphore_address(address, V::SIZE)?;
        loop {
            // SAFETY: `semaphore_address` returns aligned host memory that is valid for reads and writes.
            let held = unsafe { V::load(host) };
            let sum = V::swap(V::swap(held).wrapping_add(increment));
            // SAFETY: as above.
            if unsafe { V::compare_exchange(host, held, sum) } == held {
                return Ok(V::swap(held));
            }
        }
    }

    /// Loads 16 bytes at once: the value at the address and the one above it.
    pub fn load_pair(&mut self, address: u64) -> Result<(u64, u64), Raised> {
        let host = self.aligned_address(address, 16, Access::Read)?;
        // SAFETY: `aligned_address` returned host memory that is valid for reads; host pages keep the alignment of
        // guest pages, so a 16-byte aligned guest address is one on the host.
        Ok(halves(
            unsafe { AtomicU128::from_ptr(host.cast()) }.load(Ordering::SeqCst),
            self.is_big_endian(),
        ))
    }

    /// Stores 16 bytes at once: `low` at the address and `high` above it.
    pub fn store_pair(&mut self, address: u64, low: u64, high: u64) -> Result<(), Raised> {
        let value = whole(low, high, self.is_big_endian());
        let host = self.aligned_address(address, 16, Access::Write)?;
        // SAFETY: as in `load_pair`, with memory that is valid for writes.
        unsafe { AtomicU128::from_ptr(host.cast()) }.store(value, Ordering::SeqCst);
        self.advanced_loads.invalidate(address, 16);
        Ok(())
    }

    /// `cmp8xchg16`: compares the 8 bytes at `address` and, if equal to `expected`, stores the pair at the
    /// 16-byte boundary below it; returns the 8 bytes that the memory held.
    pub fn compare_exchange_pair(
        &mut self,
        address: u64,
        expected: u64,
        low: u64,
        high: u64,
    ) -> Result<u64, Raised> {
        let swap = self.is_big_endian();
        self.semaphore_address(address, 8)?;
        let base = address & !15;
        let host = self.resolve(base, Access::ReadWrite)?;
        // SAFETY: as in `load_pair`, with memory that is valid for reads and writes.
        let cell = unsafe { AtomicU128::from_ptr(host.cast()) };
        let replacement = whole(low, high, swap);
        let mut held = cell.load(Ordering::SeqCst);
        loop {
            let (first, second) = halves(held, swap);
            let compared = if address & 8 == 0 { first } else { second };
            if compared != expected {
                return Ok(compared);
            }
            match cell.compare_exchange(held, replacement, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => {
                    self.advanced_loads.invalidate(base, 16);
                    return Ok(compared);
                }
                Err(now) => held = now,
            }
        }
    }

    /// Reads a byte of guest memory for debuggers and checkers; the program sees no effect.
    pub fn peek(&mut self, address: u64) -> Option<u8> {
        match self.locate(address, Access::Read).ok()? {
            Translated::Memory(page) => {
                let host = page.host_address(VirtualAddress(address));
                // SAFETY: the page was just found to be valid for reads.
                Some(unsafe { u8::load(host) } as u8)
            }
            Translated::Device(_) => None,
        }
    }

    /// Whether data references are big-endian.
    #[inline(always)]
    pub(crate) fn is_big_endian(&self) -> bool {
        self.status & psr::BE != 0
    }

    /// The host address of an aligned semaphore operand; forgets advanced loads as its store does.
    fn semaphore_address(&mut self, address: u64, size: u64) -> Result<*mut u8, Raised> {
        let host = match self.translations.for_store(address, size) {
            Some(host) if self.translations.for_load(address, size).is_some() => host,
            _ => self.aligned_address(address, size, Access::ReadWrite)?,
        };
        self.advanced_loads.invalidate(address, size);
        Ok(host)
    }

    /// The host address of an operand that must be aligned, whatever PSR.ac is.
    fn aligned_address(&mut self, address: u64, size: u64, access: Access) -> Result<*mut u8, Raised> {
        let place = self.place(address, access)?;
        self.check_data_breakpoints(address, size, access)?;
        if !address.is_multiple_of(size) {
            return Err(self.raise(Fault::reference(
                FaultKind::UnalignedReference,
                access,
                VirtualAddress(address),
            )));
        }
        match place {
            Place::Host(host) => Ok(host),
            // Only single loads and stores reach a device.
            Place::Device(_) => Err(self.unanswered(address, access)),
        }
    }

    /// Finds the host address behind one guest address, filling the software TLB.
    pub(crate) fn resolve(&mut self, address: u64, access: Access) -> Result<*mut u8, Raised> {
        match self.place(address, access)? {
            Place::Host(host) => Ok(host),
            // Only single loads and stores reach a device.
            Place::Device(_) => Err(self.unanswered(address, access)),
        }
    }

    /// Loads for a speculative load. `None`: a device is there, which is not read before the load is certain.
    pub(crate) fn load_speculatively<V: Value>(&mut self, address: u64) -> Result<Option<u64>, Raised> {
        match self.translations.for_load(address, V::SIZE) {
            // SAFETY: as in `load`.
            Some(host) => Ok(Some(unsafe { V::load(host) })),
            None => match self.checked_place(address, V::SIZE, V::SIZE, Access::Read)? {
                Place::Host(_) => self.load_slowly::<V>(address, Access::Read).map(Some),
                Place::Device(_) => Ok(None),
            },
        }
    }

    /// Finds what is behind one guest address, filling the software TLB.
    fn place(&mut self, address: u64, access: Access) -> Result<Place, Raised> {
        let virtual_address = VirtualAddress(address);
        if let Some(&page) = self.translations.page(address)
            && page.allows(access)
            && (!access.is_register_stack() || self.shares_data_context())
        {
            self.translations.insert_granule(address, &page);
            return Ok(Place::Host(page.host_address(virtual_address)));
        }
        match self.locate(address, access) {
            Ok(Translated::Memory(page)) => {
                self.remember(address, access, &page);
                Ok(Place::Host(page.host_address(virtual_address)))
            }
            Ok(Translated::Device(physical)) => Ok(Place::Device(physical)),
            Err(fault) => Err(self.raise(fault)),
        }
    }

    /// The fault of a reference that no memory or device takes.
    fn unanswered(&mut self, address: u64, access: Access) -> Raised {
        self.raise(Fault::reference(
            FaultKind::UnsupportedReference,
            access,
            VirtualAddress(address),
        ))
    }

    /// Enters a page into the software TLB, unless accesses to it must stay slow.
    fn remember(&mut self, address: u64, access: Access, page: &HostPage) {
        debug_assert!(page.size_log2 >= GRANULE_LOG2);
        // Big-endian data and data breakpoints need a look at every access.
        let stays_slow = self.status & (psr::BE | psr::DB) != 0
            || access.is_register_stack() && !self.shares_data_context();
        if !stays_slow {
            self.translations.insert(address, page);
        }
    }

    /// Finds the host page that holds instructions.
    pub(crate) fn resolve_instructions(&mut self, address: u64) -> Result<HostPage, Raised> {
        match self.locate(address, Access::Execute) {
            Ok(Translated::Memory(page)) => match not_executable(&page, address) {
                None => Ok(page),
                Some(fault) => Err(self.raise(fault)),
            },
            Ok(Translated::Device(_)) => Err(self.raise(Fault::reference(
                FaultKind::UnsupportedReference,
                Access::Execute,
                VirtualAddress(address),
            ))),
            Err(fault) => Err(self.raise(fault)),
        }
    }

    #[cold]
    #[inline(never)]
    fn load_slowly<V: Value>(&mut self, address: u64, access: Access) -> Result<u64, Raised> {
        let place = self.checked_place(address, V::SIZE, V::SIZE, access)?;
        let value = if address.is_multiple_of(V::SIZE) {
            match place {
                // SAFETY: `place` is host memory that is valid for reads, aligned as the guest address is.
                Place::Host(host) => unsafe { V::load(host) },
                Place::Device(physical) => {
                    let loaded = self.physical_memory().load_device(physical, V::SIZE);
                    loaded.ok_or(()).map_err(|()| self.unanswered(address, access))?
                }
            }
        } else {
            let mut value = 0;
            for offset in 0..V::SIZE {
                let host = self.resolve(address.wrapping_add(offset), access)?;
                // SAFETY: as above; a byte is always aligned.
                value |= unsafe { u8::load(host) } << (offset * 8);
            }
            value
        };
        Ok(if self.is_swapped(access) {
            V::swap(value)
        } else {
            value
        })
    }

    #[cold]
    #[inline(never)]
    fn store_slowly<V: Value>(&mut self, address: u64, value: u64, access: Access) -> Result<(), Raised> {
        let place = self.checked_place(address, V::SIZE, V::SIZE, access)?;
        let value = if self.is_swapped(access) {
            V::swap(value)
        } else {
            value
        };
        if address.is_multiple_of(V::SIZE) {
            match place {
                // SAFETY: `place` is host memory that is valid for writes, aligned as the guest address is.
                Place::Host(host) => unsafe { V::store(host, value) },
                Place::Device(physical) => {
                    if !self.physical_memory().store_device(physical, V::SIZE, value) {
                        return Err(self.unanswered(address, access));
                    }
                }
            }
        } else {
            // The last byte is resolved before the first is written: a fault leaves memory as it was.
            self.resolve(address.wrapping_add(V::SIZE - 1), access)?;
            for offset in 0..V::SIZE {
                let host = self.resolve(address.wrapping_add(offset), access)?;
                // SAFETY: as above; a byte is always aligned.
                unsafe { u8::store(host, value >> (offset * 8)) };
            }
        }
        self.advanced_loads.invalidate(address, V::SIZE);
        Ok(())
    }

    /// What is behind an address, if a reference to `size` bytes there may be made: no fault of its translation, no
    /// data breakpoint, and aligned where PSR.ac asks for it; in the manual's order of priority (volume 2, table 5-6).
    fn checked_place(
        &mut self,
        address: u64,
        size: u64,
        alignment: u64,
        access: Access,
    ) -> Result<Place, Raised> {
        let place = self.place(address, access)?;
        self.check_data_breakpoints(address, size, access)?;
        if !address.is_multiple_of(alignment) && self.status & psr::AC != 0 {
            return Err(self.raise(Fault::reference(
                FaultKind::UnalignedReference,
                access,
                VirtualAddress(address),
            )));
        }
        Ok(place)
    }

    /// Raises what a reference of several accesses would meet, before the first of them is made: a fault must leave
    /// memory as it was.
    #[inline(always)]
    pub(crate) fn check_reference(
        &mut self,
        address: u64,
        size: u64,
        alignment: u64,
        access: Access,
    ) -> Result<(), Raised> {
        if address.is_multiple_of(alignment) && self.status & psr::DB == 0 {
            return Ok(());
        }
        self.check_reference_slowly(address, size, alignment, access)
    }

    #[cold]
    fn check_reference_slowly(
        &mut self,
        address: u64,
        size: u64,
        alignment: u64,
        access: Access,
    ) -> Result<(), Raised> {
        self.checked_place(address, size, alignment, access)?;
        self.resolve(address.wrapping_add(size - 1), access).map(|_| ())
    }

    /// Whether an access reverses bytes: data by PSR.be, the register stack by RSC.be.
    fn is_swapped(&self, access: Access) -> bool {
        match access {
            Access::RegisterStackRead | Access::RegisterStackWrite => self.register_stack.is_big_endian(),
            _ => self.is_big_endian(),
        }
    }
}

/// The two 8-byte halves of 16 bytes of memory, lower address first.
fn halves(value: u128, swap: bool) -> (u64, u64) {
    let (low, high) = (value as u64, (value >> 64) as u64);
    if swap {
        (low.swap_bytes(), high.swap_bytes())
    } else {
        (low, high)
    }
}

/// 16 bytes of memory from two halves, lower address first.
fn whole(low: u64, high: u64, swap: bool) -> u128 {
    let (low, high) = if swap {
        (low.swap_bytes(), high.swap_bytes())
    } else {
        (low, high)
    };
    u128::from(low) | u128::from(high) << 64
}
