//! Guest memory: host reservation, guest mappings, and access from system calls.
//!
//! [`window`] turns guest addresses into host addresses, [`mapping`] records what the guest mapped, [`changes`] is
//! `mmap` and its relatives, `residency` advice and locking, [`access`] copies between guest memory and structures,
//! [`gate`] is the page that the kernel gives every process, [`watched`] is memory that the program fills page by
//! page. This file ties them together and answers the processor's question "what is at this address?".
//!
//! Rules: every change of the mappings holds the write lock and keeps the host's mappings equal in extent and
//! protection (execution aside); changes that take something away also stop the world, because processors
//! hold host pointers. The host therefore fails a bad buffer with `EFAULT` by itself, exactly where the
//! guest's kernel would.

pub mod access;
pub mod changes;
mod gaps;
pub mod gate;
mod limits;
pub mod mapping;
mod residency;
mod space;
pub mod watched;
pub mod window;

use std::ops::Range;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::host::{self, Errno};
use crate::world::World;
use gate::Gate;
use mapping::{Backing, Growth, Mapping, Mappings, Protection};
use window::{PAGE, Windows, page_floor};

/// Where `mmap` starts to look for room.
pub const MAP_BASE: u64 = 0x2000_0000_0000_0000;
/// The region whose end holds the stacks.
const STACK_REGION: u64 = 0x6000_0000_0000_0000;
/// The page at address zero that holds NaTs: a speculative load from a null pointer defers at once.
pub const NAT_PAGE: Range<u64> = 0..PAGE;

/// An address space.
pub struct Memory {
    windows: Windows,
    mappings: RwLock<Mappings>,
    /// The program break: where the heap starts and ends.
    pub(crate) heap: Mutex<Heap>,
    /// Bound on the size of a stack that grows (the soft `RLIMIT_STACK`).
    stack_limit: AtomicU64,
    /// Other bounds on what may be mapped.
    limits: limits::Limits,
    /// Whether future mappings are to be locked in memory.
    lock_future: AtomicBool,
    /// Whether anybody else may write it: another thread, or another process through a shared mapping.
    shared: AtomicBool,
    gate: Gate,
    /// Whether processors may touch the windows without asking.
    has_plain_windows: AtomicBool,
    /// Whether this process has to do with watched memory.
    knows_watching: AtomicBool,
    touched: Mutex<watched::Touched>,
    /// The threads that run in it.
    pub world: World,
}

/// The heap between its start and the program break.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heap {
    /// Where it starts.
    pub start: u64,
    /// The program break.
    pub end: u64,
}

/// Why an access cannot be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// Nothing is mapped there.
    NotMapped,
    /// The mapping does not allow it.
    NotAllowed,
    /// The mapped file has no such page.
    BeyondFile,
    /// The program may have to bring the page first: its thread must touch it from outside the world.
    Absent,
}

/// What an access needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Load data.
    pub read: bool,
    /// Store data.
    pub write: bool,
    /// Fetch instructions.
    pub execute: bool,
}

/// A piece of guest memory as the host sees it.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Guest address of its first byte.
    pub start: u64,
    /// log2 of its size.
    pub size_log2: u32,
    /// Host address of its first byte.
    pub host: *mut u8,
    /// What may be done with it.
    pub protection: Protection,
}

/// What an access has to know of a mapping.
struct Found {
    protection: Protection,
    is_file: bool,
    watched: bool,
}

impl Memory {
    /// An empty address space.
    pub fn new() -> Result<Memory, Errno> {
        host::signals::install_fault_handler();
        Ok(Memory {
            windows: Windows::reserve()?,
            mappings: RwLock::default(),
            heap: Mutex::default(),
            stack_limit: AtomicU64::new(8 << 20),
            limits: limits::Limits::default(),
            lock_future: AtomicBool::new(false),
            shared: AtomicBool::new(false),
            gate: Gate::new(),
            has_plain_windows: AtomicBool::new(true),
            knows_watching: AtomicBool::new(false),
            touched: Mutex::default(),
            world: World::default(),
        })
    }

    /// The mappings, to look at.
    pub fn mappings(&self) -> RwLockReadGuard<'_, Mappings> {
        self.mappings
            .read()
            .expect("no thread panics while it changes the mappings")
    }

    /// The mappings, to change; whoever changes them keeps the host in step.
    pub(crate) fn mappings_mut(&self) -> RwLockWriteGuard<'_, Mappings> {
        self.mappings
            .write()
            .expect("no thread panics while it changes the mappings")
    }

    /// The gate page, which every address space shows in region 5.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// One past the highest address of the memory stack.
    pub fn stack_top(&self) -> u64 {
        STACK_REGION + self.windows.limit()
    }

    /// Bytes of each region that a program can map.
    pub fn region_limit(&self) -> u64 {
        self.windows.limit()
    }

    /// Whether guest addresses of another process are at the same addresses of its host process.
    pub fn has_windows_like(&self, process: u32) -> bool {
        self.windows.are_those_of(process)
    }

    /// Whether processors may touch the windows without asking: the host lets the guest do what its mappings allow, and
    /// nothing else, and somebody says where to go on where it does not.
    fn has_plain_windows(&self) -> bool {
        self.has_plain_windows.load(Ordering::Relaxed) && host::signals::knows_resumption()
    }

    /// Has processors ask for every page from now on: something is about to be mapped that the host would let them
    /// touch although the guest may not, or that the program has to bring first.
    fn close_windows(&self) {
        if self.has_plain_windows.swap(false, Ordering::Relaxed) {
            self.world.exclusively(|| ());
        }
    }

    /// Notes that others may write this memory from now on.
    pub fn share(&self) {
        if !self.shared.swap(true, Ordering::Relaxed) {
            // Processors ask before they go on.
            self.world.exclusively(|| ());
        }
    }

    fn is_shared_now(&self) -> bool {
        self.shared.load(Ordering::Relaxed)
    }

    /// Sets how far stacks may grow.
    pub fn set_stack_limit(&self, bytes: u64) {
        self.stack_limit.store(bytes, Ordering::Relaxed);
    }

    /// The host address of `length` bytes of guest memory, for the host kernel to check further.
    pub fn host(&self, address: u64, length: u64) -> Result<*mut u8, Errno> {
        if self.windows.contains(address, length) {
            Ok(self.windows.host(address))
        } else {
            Err(Errno(libc::EFAULT))
        }
    }

    /// The same as a system call's argument; a null pointer stays one. A buffer that runs beyond its region ends
    /// at the page that no window maps, so the host never gets past it.
    pub fn pointer(&self, address: u64) -> Result<u64, Errno> {
        if address == 0 {
            Ok(0)
        } else {
            Ok(self.host(address, 0)? as u64)
        }
    }

    /// The piece of memory that holds an address, if the access is allowed. Stacks grow here.
    pub fn view(&self, address: u64, need: Need) -> Result<View, Denial> {
        if let Some(view) = self.gate.view(address, need) {
            return view;
        }
        if !self.windows.contains(address, 1) {
            return Err(Denial::NotMapped);
        }
        let found = self.protection_at(address);
        let Found {
            protection,
            is_file,
            watched,
        } = match found {
            Some(found) => found,
            None => {
                self.grow(address)?;
                self.protection_at(address).ok_or(Denial::NotMapped)?
            }
        };
        if !protection.allows(need) {
            return Err(Denial::NotAllowed);
        }
        let protection = match watched {
            true => self.known_rights(address, protection),
            false => protection,
        };
        if watched && (protection == Protection::NONE || !protection.allows(need)) {
            return Err(Denial::Absent);
        }
        if is_file {
            return self.file_view(address, protection);
        }
        let start = page_floor(address);
        Ok(View {
            start,
            size_log2: window::PAGE_SHIFT,
            host: self.windows.host(start),
            protection,
        })
    }

    fn protection_at(&self, address: u64) -> Option<Found> {
        let mappings = self.mappings();
        let (_, mapping) = mappings.at(address)?;
        Some(Found {
            protection: mapping.protection,
            is_file: matches!(mapping.backing, Backing::File { .. }),
            watched: mapping.watched,
        })
    }

    /// A file may end within a guest page, or have shrunk: only host pages that exist are shown.
    fn file_view(&self, address: u64, protection: Protection) -> Result<View, Denial> {
        const HOST_SHIFT: u32 = 12;
        let readable = |host: *mut u8| {
            let mut byte = 0u8;
            // SAFETY: `byte` is valid and `host` lies in a window.
            unsafe { host::guarded_copy(&mut byte, host, 1) }.is_ok()
        };
        let start = page_floor(address);
        let host = self.windows.host(start);
        if readable(host.wrapping_add((PAGE - 1) as usize)) {
            return Ok(View {
                start,
                size_log2: window::PAGE_SHIFT,
                host,
                protection,
            });
        }
        let start = address >> HOST_SHIFT << HOST_SHIFT;
        let host = self.windows.host(start);
        if readable(host) {
            Ok(View {
                start,
                size_log2: HOST_SHIFT,
                host,
                protection,
            })
        } else {
            Err(Denial::BeyondFile)
        }
    }

    /// Has processors ask anew for the pages of a file that may have become shorter, if it is mapped.
    pub fn note_shortened(&self, file: RawFd) {
        let Ok(status) = host::file_status(file) else {
            return;
        };
        let shortened = (status.st_dev, status.st_ino);
        let is_mapped = self.mappings().iter().any(
            |(_, mapping)| matches!(mapping.backing, Backing::File { identity, .. } if identity == shortened),
        );
        if is_mapped {
            self.world.exclusively(|| ());
        }
    }

    /// Lets a stack next to the address grow up to it.
    fn grow(&self, address: u64) -> Result<(), Denial> {
        let mut mappings = self.mappings_mut();
        if mappings.at(address).is_some() {
            return Ok(());
        }
        let limit = self.stack_limit.load(Ordering::Relaxed);
        let (range, mapping) = mappings.growth_for(address, limit).ok_or(Denial::NotMapped)?;
        self.limits
            .check(&mappings, range.end - range.start, false)
            .map_err(|_| Denial::NotMapped)?;
        self.map_anonymous_on_host(&range, mapping.protection, 0)
            .map_err(|_| Denial::NotMapped)?;
        mappings.insert(range, mapping);
        Ok(())
    }

    /// Maps zeroed private host memory for a guest range.
    fn map_anonymous_on_host(
        &self,
        range: &Range<u64>,
        protection: Protection,
        extra: i32,
    ) -> Result<(), Errno> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | extra;
        self.map_on_host(range, protection.host(), flags, -1, 0)
    }

    /// Makes a guest range inaccessible on the host, and keeps it reserved.
    fn reserve_on_host(&self, range: &Range<u64>) -> Result<(), Errno> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        self.map_on_host(range, libc::PROT_NONE, flags, -1, 0)
    }

    fn map_on_host(
        &self,
        range: &Range<u64>,
        protection: i32,
        flags: i32,
        file: i32,
        offset: u64,
    ) -> Result<(), Errno> {
        if range.is_empty() {
            return Ok(());
        }
        let length = range.end - range.start;
        let target = self.host(range.start, length)?;
        // SAFETY: the target lies within the guest's windows, which nothing but the guest uses.
        let mapped = unsafe {
            libc::mmap(
                target.cast(),
                length as usize,
                protection,
                flags,
                file,
                offset as libc::off_t,
            )
        };
        if mapped == libc::MAP_FAILED {
            Err(Errno::last())
        } else {
            Ok(())
        }
    }

    /// Sets up both stacks as Linux 6.1 does: the memory stack below the top of region 3, the backing store
    /// above a base that leaves room for the hard stack limit (at most half the region).
    ///
    /// The parts below the soft limit are mapped at once, so that system calls can use stack that was not yet
    /// touched; the host commits memory on first touch.
    pub fn map_stacks(&self, soft_limit: u64, hard_limit: u64, executable: bool) -> Result<Stacks, Errno> {
        const LARGEST_INITIAL: u64 = 64 << 20;
        let half = self.windows.limit() / 2;
        let size = (hard_limit & !15).min(half);
        let top = self.stack_top();
        let store = page_floor(top - size + PAGE - 1);
        let initial = page_floor(soft_limit.clamp(4 * PAGE, LARGEST_INITIAL).min(size / 2));
        let protection = Protection(if executable { 7 } else { 3 });
        self.set_stack_limit(soft_limit.min(size));
        let mut mappings = self.mappings_mut();
        for (range, growth, role, protection) in [
            (top - initial..top, Growth::Down, "[stack]", protection),
            (
                store..store + initial,
                Growth::Up,
                "[backing store]",
                Protection::READ_WRITE,
            ),
        ] {
            if !mappings.is_free(&range) {
                return Err(Errno(libc::EEXIST));
            }
            self.map_anonymous_on_host(&range, protection, libc::MAP_NORESERVE)?;
            mappings.insert(
                range,
                Mapping {
                    protection,
                    shared: false,
                    growth,
                    backing: Backing::Role(role),
                    watched: false,
                },
            );
        }
        Ok(Stacks {
            memory_top: top,
            backing_store: store,
        })
    }

    /// Guest pages mapped, and of those the ones the host has in memory.
    pub fn page_counts(&self) -> (u64, u64) {
        let mut mapped = 0;
        let mut touched = 0;
        let ranges: Vec<_> = self.mappings().iter().map(|(range, _)| range.clone()).collect();
        for range in ranges {
            mapped += (range.end - range.start) / PAGE;
            touched += self
                .resident_pages(&range)
                .iter()
                .filter(|resident| **resident)
                .count() as u64;
        }
        (mapped, touched)
    }
}

/// Where the two stacks of the first thread are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stacks {
    /// One past the highest address of the memory stack.
    pub memory_top: u64,
    /// The lowest address of the register backing store.
    pub backing_store: u64,
}

#[cfg(test)]
mod tests {
    use super::changes::MapRequest;
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    const READ: Need = Need {
        read: true,
        write: false,
        execute: false,
    };
    const WRITE: Need = Need {
        read: false,
        write: true,
        execute: false,
    };

    #[test]
    fn stacks_grow_to_their_limit_and_no_further() {
        let memory = Memory::new().expect("an address space");
        let stacks = memory.map_stacks(1 << 20, u64::MAX, false).expect("stacks");
        memory.set_stack_limit(2 << 20);
        let below = stacks.memory_top - (2 << 20);
        assert!(memory.view(below, WRITE).is_ok());
        assert_eq!(memory.view(below - 8, WRITE).err(), Some(Denial::NotMapped));
        let above = stacks.backing_store + (2 << 20);
        assert!(memory.view(above - 8, WRITE).is_ok());
        assert_eq!(memory.view(above, WRITE).err(), Some(Denial::NotMapped));
    }

    #[test]
    fn a_program_where_the_stack_goes_is_refused() {
        let memory = Memory::new().expect("an address space");
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED) as u64;
        let address = memory.stack_top() - PAGE;
        let request = MapRequest {
            address,
            flags,
            ..MapRequest::anonymous(PAGE)
        };
        assert_eq!(memory.map(&request), Ok(address));
        assert_eq!(
            memory.map_stacks(1 << 20, u64::MAX, false),
            Err(Errno(libc::EEXIST))
        );
    }

    #[test]
    fn a_file_ends_where_it_ends_and_protection_holds() {
        let memory = Memory::new().expect("an address space");
        // SAFETY: the name is a string that lives for ever.
        let descriptor = unsafe { libc::memfd_create(c"short".as_ptr(), 0) };
        // SAFETY: the descriptor is new and nobody else's.
        let mut file = unsafe { <std::fs::File as std::os::fd::FromRawFd>::from_raw_fd(descriptor) };
        file.write_all(&[7; 5000]).expect("room");
        let request = MapRequest {
            protection: 1,
            flags: libc::MAP_SHARED as u64,
            file: file.as_raw_fd(),
            ..MapRequest::anonymous(2 * PAGE)
        };
        let shared = memory.map(&request).expect("room");
        assert!(memory.view(shared + 4999, READ).is_ok());
        assert_eq!(memory.view(shared + 8192, READ).err(), Some(Denial::BeyondFile));
        assert_eq!(memory.view(shared, WRITE).err(), Some(Denial::NotAllowed));
        let private = MapRequest {
            flags: libc::MAP_PRIVATE as u64,
            ..request
        };
        let private = memory.map(&private).expect("room");
        assert_eq!(memory.read::<u8>(private + PAGE - 1), Ok(0));
        assert_eq!(memory.view(private + PAGE, READ).err(), Some(Denial::BeyondFile));
        memory.unmap(private, PAGE).expect("mapped");
        assert_eq!(memory.view(private, READ).err(), Some(Denial::NotMapped));
        assert_eq!(memory.read::<u8>(private), Err(Errno(libc::EFAULT)));
    }

    #[test]
    fn a_moved_mapping_keeps_its_contents_and_leaves_nothing_behind() {
        let memory = Memory::new().expect("an address space");
        let old = memory.map(&MapRequest::anonymous(2 * PAGE)).expect("room");
        let wall = memory.map(&MapRequest::anonymous(PAGE)).expect("room");
        assert_eq!(wall, old + 2 * PAGE);
        memory.write(old + PAGE, &77u64).expect("mapped");
        assert_eq!(
            memory.remap(old, 2 * PAGE, 4 * PAGE, 0, 0),
            Err(Errno(libc::ENOMEM))
        );
        let moves = libc::MREMAP_MAYMOVE as u64;
        let new = memory.remap(old, 2 * PAGE, 4 * PAGE, moves, 0).expect("room");
        assert_ne!(new, old);
        assert_eq!(memory.read::<u64>(new + PAGE), Ok(77));
        assert_eq!(memory.read::<u64>(new + 3 * PAGE), Ok(0));
        assert_eq!(memory.read::<u64>(old), Err(Errno(libc::EFAULT)));
        assert_eq!(memory.remap(new, 4 * PAGE, PAGE, 0, 0), Ok(new));
        assert_eq!(memory.read::<u64>(new + PAGE), Err(Errno(libc::EFAULT)));
    }
}
