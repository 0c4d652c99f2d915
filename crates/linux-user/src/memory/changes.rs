//! `mmap`, `munmap`, `mprotect`, `mremap`, `brk` and their relatives on guest memory.

use std::ops::Range;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::mapping::{Backing, Growth, Mapping, Protection};
use super::window::{PAGE, page_ceiling};
use super::{Heap, MAP_BASE, Memory};
use crate::host::{self, Errno};

/// Grows towards higher addresses; an IA-64 addition to `mmap`'s flags.
pub const MAP_GROWSUP: u64 = 0x0200;
/// Flags that mean the same to the host.
const HOST_FLAGS: u64 =
    (libc::MAP_NORESERVE | libc::MAP_POPULATE | libc::MAP_NONBLOCK | libc::MAP_LOCKED | libc::MAP_SYNC)
        as u64;
/// All flags of `mmap` that a call with `MAP_SHARED_VALIDATE` may have; others it must refuse.
const VALIDATED_FLAGS: u64 = libc::MAP_TYPE as u64
    | MAP_GROWSUP
    | HOST_FLAGS
    | (libc::MAP_FIXED
        | libc::MAP_FIXED_NOREPLACE
        | libc::MAP_GROWSDOWN
        | libc::MAP_DENYWRITE
        | libc::MAP_EXECUTABLE
        | libc::MAP_STACK) as u64;
/// Shared mappings lie on such boundaries (`SHMLBA` of Linux/ia64).
const SHARED_ALIGNMENT: u64 = 1 << 20;
/// `mprotect` applies to the whole stack below or above.
const PROT_GROWS: u64 = 0x0300_0000;

/// The arguments of `mmap`.
#[derive(Clone, Debug)]
pub struct MapRequest {
    /// The wished or demanded address.
    pub address: u64,
    /// Bytes to map.
    pub length: u64,
    /// `PROT_*`.
    pub protection: u64,
    /// `MAP_*`.
    pub flags: u64,
    /// The file, unless anonymous.
    pub file: RawFd,
    /// Where in the file.
    pub offset: u64,
}

impl MapRequest {
    /// Private zeroed memory anywhere.
    pub fn anonymous(length: u64) -> MapRequest {
        MapRequest {
            address: 0,
            length,
            protection: 3,
            flags: (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64,
            file: -1,
            offset: 0,
        }
    }

    fn has(&self, flag: i32) -> bool {
        self.flags & flag as u64 != 0
    }
}

pub(super) fn invalid() -> Errno {
    Errno(libc::EINVAL)
}

pub(super) fn no_memory() -> Errno {
    Errno(libc::ENOMEM)
}

impl Memory {
    /// A page range within one region; `EINVAL` for a crooked start, `ENOMEM` outside the regions.
    pub(super) fn pages(&self, address: u64, length: u64) -> Result<Range<u64>, Errno> {
        if !address.is_multiple_of(PAGE) {
            return Err(invalid());
        }
        let length = page_ceiling(length).ok_or_else(no_memory)?;
        if !self.windows.contains(address, length) {
            return Err(no_memory());
        }
        Ok(address..address + length)
    }

    /// Maps memory; answers its address.
    pub fn map(&self, request: &MapRequest) -> Result<u64, Errno> {
        if request.length == 0 || !request.offset.is_multiple_of(PAGE) {
            return Err(invalid());
        }
        let length = page_ceiling(request.length).filter(|length| *length <= self.windows.limit());
        let length = length.ok_or_else(no_memory)?;
        if request.has(libc::MAP_HUGETLB) {
            return Err(no_memory());
        }
        let shared = match request.flags as i32 & libc::MAP_TYPE {
            libc::MAP_SHARED => true,
            libc::MAP_SHARED_VALIDATE if request.has(libc::MAP_ANONYMOUS) => return Err(invalid()),
            libc::MAP_SHARED_VALIDATE if request.flags & !VALIDATED_FLAGS != 0 => {
                return Err(Errno(libc::EOPNOTSUPP));
            }
            libc::MAP_SHARED_VALIDATE => true,
            libc::MAP_PRIVATE => false,
            _ => return Err(invalid()),
        };
        if Protection::from_bits(request.protection).is_closed_to_loads() {
            self.close_windows();
        }
        if !request.has(libc::MAP_FIXED) && !request.has(libc::MAP_FIXED_NOREPLACE) {
            let mut mappings = self.mappings_mut();
            let start = self
                .find_room(&mappings, request.address, length, shared)
                .ok_or_else(no_memory)?;
            return self.place(&mut mappings, start..start + length, request, shared);
        }
        if !request.address.is_multiple_of(PAGE) || !self.windows.contains(request.address, length) {
            return Err(invalid());
        }
        let range = request.address..request.address + length;
        let occupied = !self.mappings().is_free(&range);
        if occupied && request.has(libc::MAP_FIXED_NOREPLACE) {
            return Err(Errno(libc::EEXIST));
        }
        if range.start < PAGE && !occupied {
            return Err(Errno(libc::EPERM));
        }
        if occupied {
            self.world.exclusively(|| {
                let mut mappings = self.mappings_mut();
                self.note_code(&mappings, &range);
                self.place(&mut mappings, range, request, shared)
            })
        } else {
            self.place(&mut self.mappings_mut(), range, request, shared)
        }
    }

    /// Notes that code may be different after a change of a range, if any of it may be executed.
    fn note_code(&self, mappings: &super::Mappings, range: &Range<u64>) {
        if mappings
            .within(range.clone())
            .iter()
            .any(|(_, mapping)| mapping.protection.executes())
        {
            self.world.note_code_change();
        }
    }

    /// The first room at or above the wish, else at or above the usual base.
    fn find_room(&self, mappings: &super::Mappings, wish: u64, length: u64, shared: bool) -> Option<u64> {
        let alignment = if shared { SHARED_ALIGNMENT } else { PAGE };
        let end_of = |address: u64| (address >> 61 << 61) + self.windows.limit();
        let wish = page_ceiling(wish).unwrap_or(0);
        if wish >= PAGE && self.windows.contains(wish, length) {
            let range = wish..wish + length;
            if mappings.is_free(&range) {
                return Some(wish);
            }
            if let Some(start) = mappings.find_free(wish..end_of(wish), length, alignment) {
                return Some(start);
            }
        }
        (MAP_BASE >> 61..4)
            .map(|region| region << 61)
            .find_map(|start| mappings.find_free(start.max(MAP_BASE)..end_of(start), length, alignment))
    }

    fn place(
        &self,
        mappings: &mut super::Mappings,
        range: Range<u64>,
        request: &MapRequest,
        shared: bool,
    ) -> Result<u64, Errno> {
        let protection = Protection::from_bits(request.protection);
        let replaced: u64 = mappings
            .within(range.clone())
            .iter()
            .map(|(part, _)| part.end - part.start)
            .sum();
        let size = range.end - range.start - replaced;
        self.limits
            .check(mappings, size, !shared && protection.writes())?;
        let locked = if self.lock_future.load(Ordering::Relaxed) {
            libc::MAP_LOCKED
        } else {
            0
        };
        let common = (request.flags & HOST_FLAGS) as i32 | libc::MAP_FIXED | locked;
        let backing = if request.has(libc::MAP_ANONYMOUS) {
            let kind = if shared {
                libc::MAP_SHARED
            } else {
                libc::MAP_PRIVATE
            };
            let flags = common & !libc::MAP_SYNC | kind | libc::MAP_ANONYMOUS;
            self.map_on_host(&range, protection.host(), flags, -1, 0)?;
            Backing::Anonymous
        } else {
            let kind = request.flags as i32 & libc::MAP_TYPE;
            self.map_on_host(
                &range,
                protection.host(),
                common | kind,
                request.file,
                request.offset,
            )?;
            let status = host::file_status(request.file)?;
            if !shared {
                self.zero_past_file_end(&range, protection, request.offset, status.st_size as u64)?;
            }
            Backing::File {
                path: path_of(request.file),
                identity: (status.st_dev, status.st_ino),
                bias: request.offset.wrapping_sub(range.start),
            }
        };
        let growth = match () {
            () if request.has(libc::MAP_GROWSDOWN) => Growth::Down,
            () if request.flags & MAP_GROWSUP != 0 => Growth::Up,
            () => Growth::Fixed,
        };
        mappings.insert(
            range.clone(),
            Mapping {
                protection,
                shared,
                growth,
                backing,
                watched: false,
            },
        );
        Ok(range.start)
    }

    /// Gives the last guest page of a private file mapping zeroes beyond the file's end: the host's smaller
    /// pages would end earlier.
    fn zero_past_file_end(
        &self,
        range: &Range<u64>,
        protection: Protection,
        offset: u64,
        file_size: u64,
    ) -> Result<(), Errno> {
        const HOST_PAGE: u64 = 4096;
        let present = file_size.saturating_sub(offset);
        let end = range
            .end
            .min(range.start.saturating_add(present.next_multiple_of(PAGE)));
        let start = range.start.saturating_add(present.next_multiple_of(HOST_PAGE));
        if present > 0 && start < end {
            self.map_anonymous_on_host(&(start..end), protection, 0)?;
        }
        Ok(())
    }

    /// Unmaps pages.
    pub fn unmap(&self, address: u64, length: u64) -> Result<(), Errno> {
        if length == 0 {
            return Err(invalid());
        }
        let range = self.pages(address, length).map_err(|_| invalid())?;
        if self.mappings().is_free(&range) {
            return Ok(());
        }
        self.world.exclusively(|| {
            let mut mappings = self.mappings_mut();
            self.note_code(&mappings, &range);
            self.reserve_on_host(&range)?;
            mappings.remove(range.clone());
            Ok(())
        })
    }

    /// Changes the protection of pages.
    pub fn protect(&self, address: u64, length: u64, bits: u64) -> Result<(), Errno> {
        if bits & !(7 | PROT_GROWS) != 0 || bits & PROT_GROWS == PROT_GROWS || !address.is_multiple_of(PAGE) {
            return Err(invalid());
        }
        if length == 0 {
            return Ok(());
        }
        let mut range = self.pages(address, length)?;
        if bits & PROT_GROWS != 0 {
            let mappings = self.mappings();
            let (whole, mapping) = mappings.at(range.start).ok_or_else(no_memory)?;
            match mapping.growth {
                Growth::Down => range.start = whole.start,
                Growth::Up => range.end = whole.end,
                Growth::Fixed => return Err(invalid()),
            }
        }
        let protection = Protection::from_bits(bits);
        if protection.is_closed_to_loads() {
            self.close_windows();
        }
        self.world.exclusively(|| {
            let mut mappings = self.mappings_mut();
            self.note_code(&mappings, &range);
            self.limits.check(&mappings, 0, false)?;
            if protection.writes() {
                let parts = mappings.within(range.clone());
                let becomes_data = parts
                    .iter()
                    .filter(|(_, mapping)| !mapping.shared && !mapping.is_data());
                let size = becomes_data.map(|(part, _)| part.end - part.start).sum();
                self.limits.check_data(&mappings, size)?;
            }
            if protection.executes() {
                self.world.note_code_change();
            }
            for (part, mapping) in mappings.within(range.clone()) {
                let start = self.host(part.start, part.end - part.start)?;
                // SAFETY: the range lies within the guest's windows.
                let changed = unsafe {
                    libc::mprotect(start.cast(), (part.end - part.start) as usize, protection.host())
                };
                if changed != 0 {
                    return Err(Errno::last());
                }
                mappings.insert(
                    part,
                    Mapping {
                        protection,
                        ..mapping
                    },
                );
            }
            if mappings.covers(&range) {
                Ok(())
            } else {
                Err(no_memory())
            }
        })
    }

    /// Resizes or moves a mapping; answers its address.
    pub fn remap(
        &self,
        old: u64,
        old_length: u64,
        new_length: u64,
        flags: u64,
        target: u64,
    ) -> Result<u64, Errno> {
        let flags = flags as i32;
        let known = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
        let fixed = flags & libc::MREMAP_FIXED != 0;
        let stays = flags & libc::MREMAP_DONTUNMAP != 0;
        let must_move = fixed || stays;
        if flags & !known != 0 || new_length == 0 || must_move && flags & libc::MREMAP_MAYMOVE == 0 {
            return Err(invalid());
        }
        let fault = |_| Errno(libc::EFAULT);
        let old_range = self.pages(old, old_length).map_err(|error| {
            if !old.is_multiple_of(PAGE) {
                error
            } else {
                fault(error)
            }
        })?;
        let new_length = page_ceiling(new_length).ok_or_else(no_memory)?;
        let old_length = old_range.end - old_range.start;
        self.world.exclusively(|| {
            let mut mappings = self.mappings_mut();
            self.note_code(&mappings, &old_range);
            let mapping = match mappings.within(old..old + old_length.max(PAGE)).as_slice() {
                [(part, mapping)] if *part == (old..old + old_length.max(PAGE)) => mapping.clone(),
                _ => return Err(Errno(libc::EFAULT)),
            };
            // What is of no length is there once more elsewhere, if it is shared.
            let is_doubled = old_length == 0;
            if is_doubled && !mapping.shared
                || stays
                    && (old_length != new_length || mapping.shared || mapping.backing != Backing::Anonymous)
            {
                return Err(invalid());
            }
            if fixed {
                let range = self.pages(target, new_length).map_err(|_| invalid())?;
                if range.start < old_range.end && old_range.start < range.end {
                    return Err(invalid());
                }
                self.note_code(&mappings, &range);
            }
            if stays || is_doubled {
                self.limits.check(&mappings, new_length, mapping.is_data())?;
            } else if !fixed && new_length <= old_length {
                let tail = old + new_length..old_range.end;
                self.reserve_on_host(&tail)?;
                mappings.remove(tail);
                return Ok(old);
            } else if !fixed {
                let extension = old_range.end..old + new_length;
                self.limits
                    .check(&mappings, new_length - old_length, mapping.is_data())?;
                let in_place = self.windows.contains(old, new_length)
                    && mapping.backing == Backing::Anonymous
                    && !mapping.shared
                    && mappings.is_free(&extension);
                if in_place {
                    self.map_anonymous_on_host(&extension, mapping.protection, 0)?;
                    mappings.insert(extension, mapping);
                    return Ok(old);
                }
            }
            let room = match fixed {
                true => Some(target),
                false if flags & libc::MREMAP_MAYMOVE == 0 => None,
                false => self.find_room(&mappings, 0, new_length, mapping.shared),
            };
            let room = room.ok_or_else(no_memory)?;
            let new_range = room..room + new_length;
            self.move_mapping(&mut mappings, &old_range, new_range, mapping.clone())?;
            if stays {
                self.map_anonymous_on_host(&old_range, mapping.protection, 0)?;
                mappings.insert(old_range, mapping);
            }
            Ok(room)
        })
    }

    /// Moves host pages and the record of them. The world is stopped.
    fn move_mapping(
        &self,
        mappings: &mut super::Mappings,
        old: &Range<u64>,
        new: Range<u64>,
        mut mapping: Mapping,
    ) -> Result<(), Errno> {
        let source = self.host(old.start, old.end - old.start)?;
        let target = self.host(new.start, new.end - new.start)?;
        let how = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let lengths = ((old.end - old.start) as usize, (new.end - new.start) as usize);
        // SAFETY: both ranges lie within the guest's windows and do not overlap.
        let moved = unsafe { libc::mremap(source.cast(), lengths.0, lengths.1, how, target) };
        if moved == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        if !old.is_empty() {
            mappings.remove(old.clone());
        }
        if let Backing::File { bias, .. } = &mut mapping.backing {
            *bias = bias.wrapping_add(old.start).wrapping_sub(new.start);
        }
        mappings.insert(new, mapping);
        if old.is_empty() {
            return Ok(());
        }
        self.reclaim_hole(mappings, old)
    }

    /// Reserves again a range that the host unmapped. Should the host have given it away meanwhile, it is
    /// recorded as in use for good.
    fn reclaim_hole(&self, mappings: &mut super::Mappings, range: &Range<u64>) -> Result<(), Errno> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE;
        if self.map_on_host(range, libc::PROT_NONE, flags, -1, 0).is_err() {
            let lost = Mapping {
                backing: Backing::Role("[lost]"),
                ..Mapping::anonymous(Protection::NONE)
            };
            mappings.insert(range.clone(), lost);
        }
        Ok(())
    }

    /// Starts the heap at an address.
    pub fn start_heap(&self, address: u64) {
        *self.heap() = Heap {
            start: address,
            end: address,
        };
    }

    pub(crate) fn heap(&self) -> std::sync::MutexGuard<'_, Heap> {
        self.heap
            .lock()
            .expect("no thread panics while it moves the program break")
    }

    /// Moves the program break; answers where it is then.
    pub fn set_break(&self, end: u64) -> u64 {
        let mut heap = self.heap();
        let (Some(old_pages), Some(new_pages)) = (page_ceiling(heap.end), page_ceiling(end)) else {
            return heap.end;
        };
        if end < heap.start || !self.windows.contains(heap.start, end - heap.start) {
            return heap.end;
        }
        let done = if new_pages > old_pages {
            let range = old_pages..new_pages;
            let mut mappings = self.mappings_mut();
            mappings.is_free(&(range.start..range.end + PAGE))
                && self
                    .limits
                    .check(&mappings, range.end - range.start, true)
                    .is_ok()
                && self
                    .map_anonymous_on_host(&range, Protection::READ_WRITE, 0)
                    .is_ok()
                && {
                    let backing = Backing::Role("[heap]");
                    mappings.insert(
                        range,
                        Mapping {
                            backing,
                            ..Mapping::anonymous(Protection::READ_WRITE)
                        },
                    );
                    true
                }
        } else {
            new_pages == old_pages || self.unmap(new_pages, old_pages - new_pages).is_ok()
        };
        if done {
            heap.end = end;
        }
        heap.end
    }

    /// Attaches a System V shared memory segment of a known size; answers its address.
    pub fn attach_segment(&self, segment: i32, size: u64, address: u64, flags: u64) -> Result<u64, Errno> {
        let flags = flags as i32;
        let length = page_ceiling(size.max(1)).ok_or_else(no_memory)?;
        let mut mappings = self.mappings_mut();
        let start = match address {
            0 => self.find_room(&mappings, 0, length, true).ok_or_else(no_memory)?,
            _ if address.is_multiple_of(SHARED_ALIGNMENT) => address,
            _ if flags & libc::SHM_RND != 0 => address & !(SHARED_ALIGNMENT - 1),
            _ => return Err(invalid()),
        };
        let range = self.pages(start, length).map_err(|_| invalid())?;
        if !mappings.is_free(&range) {
            return Err(invalid());
        }
        let target = self.host(start, length)?;
        // SAFETY: the target lies within the guest's windows and holds nothing.
        let attached =
            unsafe { libc::shmat(segment, target.cast(), flags & !libc::SHM_RND | libc::SHM_REMAP) };
        if attached as isize == -1 {
            return Err(Errno::last());
        }
        let protection = Protection(if flags & libc::SHM_RDONLY != 0 { 1 } else { 3 });
        let backing = Backing::SharedSegment(segment);
        mappings.insert(
            range,
            Mapping {
                protection,
                shared: true,
                growth: Growth::Fixed,
                backing,
                watched: false,
            },
        );
        Ok(start)
    }

    /// Detaches a shared memory segment.
    pub fn detach_segment(&self, address: u64) -> Result<(), Errno> {
        self.world.exclusively(|| {
            let mut mappings = self.mappings_mut();
            let range = match mappings.at(address) {
                Some((
                    range,
                    Mapping {
                        backing: Backing::SharedSegment(_),
                        ..
                    },
                )) if range.start == address => range.clone(),
                _ => return Err(invalid()),
            };
            // SAFETY: the segment was attached within the windows by `attach_segment`.
            if unsafe { libc::shmdt(self.windows.host(address).cast()) } != 0 {
                return Err(Errno::last());
            }
            mappings.remove(range.clone());
            self.reclaim_hole(&mut mappings, &range)
        })
    }
}

fn path_of(file: RawFd) -> Arc<str> {
    let link = std::fs::read_link(format!("/proc/self/fd/{file}"));
    link.map(|path| path.to_string_lossy().into())
        .unwrap_or_else(|_| "".into())
}
