//! The kernel's userfaultfd: registration, faults, and letting threads go on. After ioctl_userfaultfd(2).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use linux_raw_sys::general as raw;
use linux_raw_sys::ioctl::{UFFDIO_API, UFFDIO_CONTINUE, UFFDIO_REGISTER, UFFDIO_UNREGISTER, UFFDIO_WAKE};
use rustix::io::Errno;

use super::protocol::GuestRegion;
use crate::HostError;

/// Memory whose present pages can be made to fault.
#[derive(Debug)]
pub(super) struct Userfault {
    descriptor: OwnedFd,
}

/// A thread waits at a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MinorFault {
    /// Which thread, in its own PID namespace.
    pub(super) thread: i32,
    /// What it touched.
    pub(super) address: u64,
}

/// Messages of one read.
const MESSAGES: usize = 64;
const MESSAGE: usize = size_of::<raw::uffd_msg>();
/// Where a message says the address and the thread: after the event's kind, in the member `pagefault`.
const ADDRESS_AT: usize = 16;
const THREAD_AT: usize = 24;
const _: () = assert!(MESSAGE == 32);

/// `_IO(0xaa, 0)`: a new userfaultfd from the device.
const NEW_FROM_DEVICE: libc::c_ulong = 0xaa00;

impl Userfault {
    /// A new one for this process's memory, which has faults of the kernel's own accesses too.
    ///
    /// # Errors
    /// When the kernel forbids it or is too old; the message says what would help.
    pub(super) fn open(regions: &[GuestRegion]) -> Result<Self, HostError> {
        let descriptor = open_descriptor().map_err(|error| HostError::Call {
            call: "userfaultfd",
            subject: "guest memory (needs root, CAP_SYS_PTRACE, access to /dev/userfaultfd or vm.unprivileged_userfaultfd=1)"
                .into(),
            source: error.into(),
        })?;
        let userfault = Self { descriptor };
        let mut features = raw::UFFD_FEATURE_THREAD_ID | raw::UFFD_FEATURE_MINOR_SHMEM;
        if regions.iter().any(|region| region.page_size > 4096) {
            features |= raw::UFFD_FEATURE_MINOR_HUGETLBFS;
        }
        let mut api = raw::uffdio_api {
            api: raw::UFFD_API.into(),
            features: features.into(),
            ioctls: 0,
        };
        // SAFETY: the request takes an `uffdio_api`, which outlives the call.
        unsafe { userfault.call(UFFDIO_API, &mut api) }.map_err(|_| {
            HostError::Unsupported(
                "userfaultfd has no minor faults with thread numbers; Linux 5.14 or later is needed".into(),
            )
        })?;
        Ok(userfault)
    }

    /// What was received from another process. Any descriptor will do: what is none is told by its first use.
    pub(super) fn received(descriptor: OwnedFd) -> io::Result<Self> {
        rustix::fs::fcntl_setfl(&descriptor, rustix::fs::OFlags::NONBLOCK)?;
        Ok(Self { descriptor })
    }

    /// Lets present pages of a region that are in no page table fault.
    pub(super) fn register(&self, region: &GuestRegion) -> Result<(), HostError> {
        let mut register = raw::uffdio_register {
            range: range(region.address, region.size),
            // UFFDIO_REGISTER_MODE_MINOR
            mode: 1 << 2,
            ioctls: 0,
        };
        // SAFETY: the request takes an `uffdio_register`, which outlives the call.
        unsafe { self.call(UFFDIO_REGISTER, &mut register) }.map_err(|source| HostError::Call {
            call: "ioctl(UFFDIO_REGISTER)",
            subject: format!(
                "{:#x} bytes at {:#x}, which must be shared memory of this process",
                region.size, region.address
            ),
            source: source.into(),
        })
    }

    /// Takes the registration back; threads that wait go on.
    pub(super) fn unregister(&self, region: &GuestRegion) {
        let mut range = range(region.address, region.size);
        // SAFETY: the request takes an `uffdio_range`, which outlives the call.
        let unregistered = unsafe { self.call(UFFDIO_UNREGISTER, &mut range) };
        // Memory that was unmapped meanwhile is registered no more.
        debug_assert!(matches!(unregistered, Ok(()) | Err(Errno::INVAL | Errno::NOMEM)));
        // The kernel itself wakes those who wait for missing pages, but not those who wait at minor faults.
        // SAFETY: the request takes an `uffdio_range`, which outlives the call.
        let woken = unsafe { self.call(UFFDIO_WAKE, &mut range) };
        debug_assert!(woken.is_ok(), "a range of whole pages");
    }

    /// Lets whoever waits at a page go on, with the page in the page table.
    ///
    /// # Errors
    /// When the process is gone.
    pub(super) fn resolve(&self, page: u64, page_size: u64) -> Result<(), Errno> {
        loop {
            let mut request = raw::uffdio_continue {
                range: range(page, page_size),
                mode: 0,
                mapped: 0,
            };
            // SAFETY: the request takes an `uffdio_continue`, which outlives the call.
            match unsafe { self.call(UFFDIO_CONTINUE, &mut request) } {
                Ok(()) => return Ok(()),
                // The address space is changing just now.
                Err(Errno::AGAIN) => std::thread::yield_now(),
                Err(Errno::SRCH) => return Err(Errno::SRCH),
                // The page is there already, or the memory is not what it was: the thread looks again by itself.
                Err(_) => {
                    let mut range = range(page, page_size);
                    // SAFETY: the request takes an `uffdio_range`, which outlives the call.
                    return unsafe { self.call(UFFDIO_WAKE, &mut range) };
                }
            }
        }
    }

    /// Takes the faults that wait to be read, up to some dozens.
    ///
    /// # Errors
    /// When the descriptor is none of a userfaultfd.
    pub(super) fn read(&self, mut take: impl FnMut(MinorFault)) -> Result<(), Errno> {
        let mut buffer = [0_u8; MESSAGES * MESSAGE];
        let bytes = match rustix::io::read(&self.descriptor, &mut buffer) {
            Ok(bytes) => bytes,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            Err(error) => return Err(error),
        };
        for message in buffer[..bytes].chunks_exact(MESSAGE) {
            take_message(message, &mut take);
        }
        Ok(())
    }

    /// # Safety
    /// `argument` is what the request takes.
    unsafe fn call<T>(&self, request: u32, argument: &mut T) -> Result<(), Errno> {
        // SAFETY: the caller's.
        let outcome = unsafe {
            libc::ioctl(
                self.descriptor.as_raw_fd(),
                libc::c_ulong::from(request),
                std::ptr::from_mut(argument),
            )
        };
        match outcome {
            0.. => Ok(()),
            _ => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
        }
    }
}

impl AsFd for Userfault {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn range(start: u64, len: u64) -> raw::uffdio_range {
    raw::uffdio_range { start, len }
}

fn take_message(message: &[u8], take: &mut impl FnMut(MinorFault)) {
    if u32::from(message[0]) != raw::UFFD_EVENT_PAGEFAULT {
        return;
    }
    let address = message[ADDRESS_AT..ADDRESS_AT + 8].try_into();
    let thread = message[THREAD_AT..THREAD_AT + 4].try_into();
    take(MinorFault {
        address: u64::from_ne_bytes(address.expect("eight bytes")),
        thread: u32::from_ne_bytes(thread.expect("four bytes")) as i32,
    });
}

/// By the system call, or where that is not for everybody by the device.
fn open_descriptor() -> Result<OwnedFd, Errno> {
    let flags = rustix::mm::UserfaultfdFlags::CLOEXEC | rustix::mm::UserfaultfdFlags::NONBLOCK;
    // SAFETY: nothing of this process changes before a region is registered, and then only how its pages fault.
    let refused = match unsafe { rustix::mm::userfaultfd(flags) } {
        Err(Errno::PERM) => Errno::PERM,
        outcome => return outcome,
    };
    let Ok(device) = std::fs::File::open("/dev/userfaultfd") else {
        return Err(refused);
    };
    let flags = (libc::O_CLOEXEC | libc::O_NONBLOCK) as libc::c_ulong;
    // SAFETY: the request takes flags and returns a descriptor.
    let descriptor = unsafe { libc::ioctl(device.as_raw_fd(), NEW_FROM_DEVICE, flags) };
    match descriptor {
        // SAFETY: the kernel has just returned this descriptor to us, and nobody else owns it.
        0.. => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(refused),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_the_kernel_lays_it_out() {
        let mut message = [0; MESSAGE];
        message[0] = raw::UFFD_EVENT_PAGEFAULT as u8;
        message[16..24].copy_from_slice(&0x7f00_1000_u64.to_ne_bytes());
        message[24..28].copy_from_slice(&77_u32.to_ne_bytes());
        let mut faults = Vec::new();
        take_message(&message, &mut |fault| faults.push(fault));
        message[0] = 0;
        take_message(&message, &mut |fault| faults.push(fault));
        assert_eq!(
            faults,
            [MinorFault {
                thread: 77,
                address: 0x7f00_1000
            }]
        );
    }
}
