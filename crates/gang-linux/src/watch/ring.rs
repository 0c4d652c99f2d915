//! Rings of the kernel's performance events: one event on one core, and what it reports.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys as perf;
use perf_event_open_sys::{bindings, ioctls};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::HostError;
use crate::memory::PAGE;

/// Pages of a ring's data; a power of two. Four megabytes hold a hundred thousand faults.
const RING_PAGES: usize = 1024;

/// One core's ring.
pub(super) struct Ring {
    /// The event that the ring belongs to.
    event: OwnedFd,
    /// The event whose samples come into the ring, where that is another one.
    samples: Option<OwnedFd>,
    /// The control page, followed by the data.
    memory: *mut u8,
}

/// The cores that are there.
pub(super) fn online_cores() -> Result<Vec<i32>, HostError> {
    let path = Path::new("/sys/devices/system/cpu/online");
    let text = crate::setting::read(path)?;
    super::fault::parse_core_list(&text).ok_or_else(|| HostError::Malformed {
        path: path.to_owned(),
        reason: format!("`{text}` is not a list of cores such as 0-3,6"),
    })
}

/// Starts an event on a core.
fn open_event(event: &mut bindings::perf_event_attr, core: i32) -> Result<OwnedFd, HostError> {
    // SAFETY: the attribute is an initialised structure that carries its own size and outlives the call.
    let descriptor =
        unsafe { perf::perf_event_open(event, -1, core, -1, bindings::PERF_FLAG_FD_CLOEXEC.into()) };
    if descriptor < 0 {
        let source = io::Error::last_os_error();
        let advice = "an event of the host (needs root or CAP_PERFMON, a kernel with perf, and to count \
                      instructions a processor that shows its counters)";
        return Err(HostError::Call {
            call: "perf_event_open",
            subject: advice.into(),
            source,
        });
    }
    // SAFETY: the kernel has just returned this descriptor to us, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

impl Ring {
    /// Opens an event on a core with a ring of its own.
    pub(super) fn open(event: &mut bindings::perf_event_attr, core: i32) -> Result<Self, HostError> {
        let event = open_event(event, core)?;
        let length = (1 + RING_PAGES) * PAGE;
        // SAFETY: a new mapping at an address of the kernel's choice; nothing of ours is there.
        let memory = unsafe {
            mmap(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                event.as_fd(),
                0,
            )
        }
        .map_err(|error| HostError::Call {
            call: "mmap",
            subject: "a performance event's ring".into(),
            source: error.into(),
        })?;
        Ok(Self {
            event,
            samples: None,
            memory: memory.cast(),
        })
    }

    /// The event that the ring belongs to.
    pub(super) fn event(&self) -> &OwnedFd {
        &self.event
    }

    /// Lets another event of the same core write its samples into this ring too.
    pub(super) fn with_samples_of(
        mut self,
        event: &mut bindings::perf_event_attr,
        core: i32,
    ) -> Result<Self, HostError> {
        self.samples = Some(self.open_into(event, core)?);
        Ok(self)
    }

    /// Opens another event of the same core, which writes into this ring.
    pub(super) fn open_into(
        &self,
        event: &mut bindings::perf_event_attr,
        core: i32,
    ) -> Result<OwnedFd, HostError> {
        let event = open_event(event, core)?;
        // SAFETY: both descriptors are open events of ours, on one core as the request demands.
        let outcome = unsafe { ioctls::SET_OUTPUT(event.as_raw_fd(), self.event.as_raw_fd()) };
        if outcome < 0 {
            return Err(HostError::Call {
                call: "ioctl(PERF_EVENT_IOC_SET_OUTPUT)",
                subject: "another event of the same core".into(),
                source: io::Error::last_os_error(),
            });
        }
        Ok(event)
    }

    /// Switches the samples on or off.
    pub(super) fn sample(&self, is_wanted: bool) {
        let descriptor = self.samples.as_ref().unwrap_or(&self.event).as_raw_fd();
        // SAFETY: the descriptor is an open event of ours; the requests take no memory.
        let outcome = unsafe {
            match is_wanted {
                true => ioctls::ENABLE(descriptor, 0),
                false => ioctls::DISABLE(descriptor, 0),
            }
        };
        debug_assert!(outcome >= 0, "an event of ours can be switched");
    }

    /// Sets how much of what the samples count lies between two of them.
    pub(super) fn set_period(&self, period: u64) {
        let descriptor = self.samples.as_ref().unwrap_or(&self.event).as_raw_fd();
        // The kernel takes the address of the number, which the binding has for a number.
        let address = &raw const period as u64;
        // SAFETY: the descriptor is an open event of ours; the kernel reads eight bytes that live as long as the call.
        let outcome = unsafe { ioctls::PERIOD(descriptor, address) };
        debug_assert!(outcome >= 0, "an event that samples takes any period but zero");
    }

    fn position(&self, field: usize) -> &AtomicU64 {
        // SAFETY: the control page is mapped as long as `self` lives, the field is eight bytes within it and aligned
        // (data_head and data_tail are), and the kernel and this process access it atomically only.
        unsafe { AtomicU64::from_ptr(self.memory.add(field).cast()) }
    }

    /// Takes every record out of the ring, in order, header included.
    pub(super) fn drain(&mut self, mut take: impl FnMut(&[u8])) {
        let head = std::mem::offset_of!(bindings::perf_event_mmap_page, data_head);
        let tail = std::mem::offset_of!(bindings::perf_event_mmap_page, data_tail);
        let end = self.position(head).load(Ordering::Acquire);
        let mut at = self.position(tail).load(Ordering::Relaxed);
        let mut bytes = Vec::new();
        while at < end {
            self.copy(at, 8, &mut bytes);
            let length = usize::from(u16::from_ne_bytes([bytes[6], bytes[7]]));
            if length < 8 {
                break;
            }
            self.copy(at, length, &mut bytes);
            take(&bytes);
            at += length as u64;
        }
        self.position(tail).store(end, Ordering::Release);
    }

    /// Copies bytes out of the ring, which wraps around. Records begin and end at words of eight bytes.
    fn copy(&self, at: u64, length: usize, bytes: &mut Vec<u8>) {
        bytes.clear();
        for index in 0..length.div_ceil(8) {
            let place = (at as usize + 8 * index) % (RING_PAGES * PAGE) / 8 * 8;
            // SAFETY: the eight bytes from `place`, a multiple of eight, are within the data pages, which are mapped,
            // from a page's start on, as long as `self` lives; the kernel does not write between tail and head until
            // the tail is stored.
            let word = unsafe { self.memory.add(PAGE + place).cast::<u64>().read_volatile() };
            bytes.extend(word.to_ne_bytes());
        }
        bytes.truncate(length);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this mapping was made in `open` with this length, and no reference to it outlives `self`.
        let unmapped = unsafe { munmap(self.memory.cast(), (1 + RING_PAGES) * PAGE) };
        debug_assert!(unmapped.is_ok(), "a mapping of ours can be unmapped");
        let _ = &self.event;
    }
}
