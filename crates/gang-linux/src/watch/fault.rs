//! Page faults of the whole host, as the kernel's performance events report them.
//!
//! One event for each core counts software page faults and samples every one of them, with thread, address and time,
//! into a ring that is read here; it can be switched off and on. Another one, which counts nothing and is always on,
//! tells in the same ring of threads that begin and end and of new mappings. Faults of a KVM guest in its second-level
//! page table are no software page faults, so where the kernel has the trace point `kvm:kvm_page_fault` a second event
//! reports those, by guest-physical address.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys as perf;
use perf_event_open_sys::{bindings, ioctls};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::HostError;

/// What a ring can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// A thread touched a page that was made to fault.
    Fault {
        /// The process.
        process: i32,
        /// The thread.
        thread: i32,
        /// When, on the kernel's clock.
        time_ns: u64,
        /// Where, in the process's addresses.
        address: u64,
    },
    /// A vCPU's guest touched guest-physical memory that the host had not mapped for it.
    GuestFault {
        /// The process.
        process: i32,
        /// The vCPU's thread.
        thread: i32,
        /// When.
        time_ns: u64,
        /// Where, in the guest's physical addresses.
        address: u64,
    },
    /// A thread or process began.
    Began {
        /// Its process.
        process: i32,
        /// Its number.
        thread: i32,
        /// The process of the thread that started it.
        parent: i32,
    },
    /// A thread ended.
    Ended {
        /// Its process.
        process: i32,
        /// Its number.
        thread: i32,
    },
    /// A process has a new mapping.
    Mapped {
        /// The process.
        process: i32,
    },
    /// The ring was full.
    Lost {
        /// So many records.
        records: u64,
    },
}

/// Pages of a ring's data; a power of two. Four megabytes hold a hundred thousand faults.
const RING_PAGES: usize = 1024;
const PAGE: usize = 4096;

/// One core's ring.
struct Ring {
    /// The event that the ring belongs to.
    event: OwnedFd,
    /// The event whose samples come into the ring, where that is another one.
    samples: Option<OwnedFd>,
    /// The control page, followed by the data.
    memory: *mut u8,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Software,
    Guest { address_offset: usize },
}

/// The rings of all cores.
pub struct Faults {
    rings: Vec<Ring>,
    sees_guests: bool,
}

/// The trace point for second-level faults, if this kernel has it.
struct TracePoint {
    number: u64,
    address_offset: usize,
}

impl Faults {
    /// Starts to listen on all cores.
    ///
    /// # Errors
    /// When the kernel or its settings forbid it; the message says what would help.
    pub fn listen() -> Result<Self, HostError> {
        let trace_point = guest_trace_point();
        let mut rings = Vec::new();
        let mut sees_guests = false;
        for core in online_cores()? {
            let ring = Ring::open(&mut bystander_event(), core, Kind::Software)?;
            rings.push(ring.with_samples_of(&mut software_event(), core)?);
            if let Some(point) = &trace_point {
                let kind = Kind::Guest {
                    address_offset: point.address_offset,
                };
                // Without this event guests of KVM are not seen; everything else is.
                if let Ok(ring) = Ring::open(&mut guest_event(point), core, kind) {
                    rings.push(ring);
                    sees_guests = true;
                }
            }
        }
        Ok(Self { rings, sees_guests })
    }

    /// Whether second-level faults of KVM guests are seen.
    pub fn sees_guests(&self) -> bool {
        self.sees_guests
    }

    /// Switches the reports of faults on or off. Threads and mappings are told of in any case.
    pub fn report(&self, is_wanted: bool) {
        for ring in &self.rings {
            ring.sample(is_wanted);
        }
    }

    /// Takes everything out of the rings, in the order of each ring.
    pub fn drain(&mut self, mut take: impl FnMut(Record)) {
        for ring in &mut self.rings {
            ring.drain(&mut take);
        }
    }
}

fn online_cores() -> Result<Vec<i32>, HostError> {
    let path = Path::new("/sys/devices/system/cpu/online");
    let text = crate::setting::read(path)?;
    parse_core_list(&text).ok_or_else(|| HostError::Malformed {
        path: path.to_owned(),
        reason: format!("`{text}` is not a list of cores such as 0-3,6"),
    })
}

/// A list such as `0-3,6`.
pub(crate) fn parse_core_list(text: &str) -> Option<Vec<i32>> {
    let mut cores = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (i32, i32) = (first.parse().ok()?, last.parse().ok()?);
        if first < 0 || last > 1 << 16 {
            return None;
        }
        cores.extend(first..=last);
    }
    Some(cores)
}

fn software_event() -> bindings::perf_event_attr {
    let mut event = bindings::perf_event_attr {
        size: size_of::<bindings::perf_event_attr>() as u32,
        type_: bindings::PERF_TYPE_SOFTWARE,
        config: bindings::PERF_COUNT_SW_PAGE_FAULTS.into(),
        sample_type: u64::from(
            bindings::PERF_SAMPLE_TID | bindings::PERF_SAMPLE_TIME | bindings::PERF_SAMPLE_ADDR,
        ),
        ..Default::default()
    };
    event.__bindgen_anon_1.sample_period = 1;
    event
}

/// An event that never happens and tells what else does.
fn bystander_event() -> bindings::perf_event_attr {
    let mut event = bindings::perf_event_attr {
        size: size_of::<bindings::perf_event_attr>() as u32,
        type_: bindings::PERF_TYPE_SOFTWARE,
        config: bindings::PERF_COUNT_SW_DUMMY.into(),
        ..Default::default()
    };
    event.set_task(1);
    event.set_mmap(1);
    event.set_mmap_data(1);
    event.set_mmap2(1);
    event
}

/// Starts an event on a core.
fn open_event(event: &mut bindings::perf_event_attr, core: i32) -> Result<OwnedFd, HostError> {
    // SAFETY: the attribute is an initialised structure that carries its own size and outlives the call.
    let descriptor =
        unsafe { perf::perf_event_open(event, -1, core, -1, bindings::PERF_FLAG_FD_CLOEXEC.into()) };
    if descriptor < 0 {
        let source = io::Error::last_os_error();
        let advice = "page-fault events of the host (needs root or CAP_PERFMON, and a kernel with perf)";
        return Err(HostError::Call {
            call: "perf_event_open",
            subject: advice.into(),
            source,
        });
    }
    // SAFETY: the kernel has just returned this descriptor to us, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn guest_event(point: &TracePoint) -> bindings::perf_event_attr {
    let mut event = bindings::perf_event_attr {
        size: size_of::<bindings::perf_event_attr>() as u32,
        type_: bindings::PERF_TYPE_TRACEPOINT,
        config: point.number,
        sample_type: u64::from(
            bindings::PERF_SAMPLE_TID | bindings::PERF_SAMPLE_TIME | bindings::PERF_SAMPLE_RAW,
        ),
        ..Default::default()
    };
    event.__bindgen_anon_1.sample_period = 1;
    event
}

fn guest_trace_point() -> Option<TracePoint> {
    let folders = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let text = folders
        .iter()
        .find_map(|folder| fs::read_to_string(format!("{folder}/events/kvm/kvm_page_fault/format")).ok())?;
    parse_trace_point(&text)
}

/// The number of a trace point and where its `fault_address` is, from its format file.
fn parse_trace_point(text: &str) -> Option<TracePoint> {
    let number = text
        .lines()
        .find_map(|line| line.strip_prefix("ID:"))?
        .trim()
        .parse()
        .ok()?;
    let field = text.lines().find(|line| line.contains(" fault_address;"))?;
    let offset = field
        .split("offset:")
        .nth(1)?
        .split(';')
        .next()?
        .trim()
        .parse()
        .ok()?;
    (offset <= 256).then_some(TracePoint {
        number,
        address_offset: offset,
    })
}

impl Ring {
    fn open(event: &mut bindings::perf_event_attr, core: i32, kind: Kind) -> Result<Self, HostError> {
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
            kind,
        })
    }

    /// Lets another event of the same core write its samples into this ring too.
    fn with_samples_of(
        mut self,
        event: &mut bindings::perf_event_attr,
        core: i32,
    ) -> Result<Self, HostError> {
        let samples = open_event(event, core)?;
        // SAFETY: both descriptors are open events of ours, on one core as the request demands.
        let outcome = unsafe { ioctls::SET_OUTPUT(samples.as_raw_fd(), self.event.as_raw_fd()) };
        if outcome < 0 {
            return Err(HostError::Call {
                call: "ioctl(PERF_EVENT_IOC_SET_OUTPUT)",
                subject: "a page-fault event".into(),
                source: io::Error::last_os_error(),
            });
        }
        self.samples = Some(samples);
        Ok(self)
    }

    fn sample(&self, is_wanted: bool) {
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

    fn position(&self, field: usize) -> &AtomicU64 {
        // SAFETY: the control page is mapped as long as `self` lives, the field is eight bytes within it and aligned
        // (data_head and data_tail are), and the kernel and this process access it atomically only.
        unsafe { AtomicU64::from_ptr(self.memory.add(field).cast()) }
    }

    fn drain(&mut self, take: &mut impl FnMut(Record)) {
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
            if let Some(record) = parse_record(&bytes, self.kind) {
                take(record);
            }
            at += length as u64;
        }
        self.position(tail).store(end, Ordering::Release);
    }

    /// Copies bytes out of the ring, which wraps around.
    fn copy(&self, at: u64, length: usize, bytes: &mut Vec<u8>) {
        bytes.clear();
        let size = RING_PAGES * PAGE;
        for index in 0..length {
            let place = (at as usize + index) % size;
            // SAFETY: `place` is within the data pages, which are mapped as long as `self` lives; the kernel does not
            // write between tail and head until the tail is stored.
            bytes.push(unsafe { self.memory.add(PAGE + place).read_volatile() });
        }
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

/// A record of the ring, header included; `None` for kinds that are of no interest or cut short.
fn parse_record(bytes: &[u8], kind: Kind) -> Option<Record> {
    let word = |offset: usize| {
        Some(u32::from_ne_bytes(
            bytes.get(offset..offset + 4)?.try_into().ok()?,
        ))
    };
    let long = |offset: usize| {
        Some(u64::from_ne_bytes(
            bytes.get(offset..offset + 8)?.try_into().ok()?,
        ))
    };
    let number = |offset: usize| word(offset).map(|number| number as i32);
    match word(0)? {
        // The order of a sample's parts is fixed: numbers, time, address; raw data comes last.
        bindings::PERF_RECORD_SAMPLE => {
            let (process, thread, time_ns) = (number(8)?, number(12)?, long(16)?);
            Some(match kind {
                Kind::Software => Record::Fault {
                    process,
                    thread,
                    time_ns,
                    address: long(24)?,
                },
                Kind::Guest { address_offset } => Record::GuestFault {
                    process,
                    thread,
                    time_ns,
                    address: long(28 + address_offset)?,
                },
            })
        }
        bindings::PERF_RECORD_FORK => Some(Record::Began {
            process: number(8)?,
            parent: number(12)?,
            thread: number(16)?,
        }),
        bindings::PERF_RECORD_EXIT => Some(Record::Ended {
            process: number(8)?,
            thread: number(16)?,
        }),
        bindings::PERF_RECORD_MMAP | bindings::PERF_RECORD_MMAP2 => {
            Some(Record::Mapped { process: number(8)? })
        }
        bindings::PERF_RECORD_LOST => Some(Record::Lost { records: long(16)? }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_of_cores_are_read() {
        assert_eq!(parse_core_list("0-3,6\n"), Some(vec![0, 1, 2, 3, 6]));
        assert_eq!(parse_core_list("0"), Some(vec![0]));
        assert_eq!(parse_core_list("a-b"), None);
    }

    #[test]
    fn a_trace_points_format_is_read() {
        let text = "name: kvm_page_fault\nID: 100\nformat:\n\tfield:u64 fault_address;\toffset:24;\tsize:8;\tsigned:0;\n";
        let point = parse_trace_point(text).expect("a trace point");
        assert_eq!((point.number, point.address_offset), (100, 24));
    }

    #[test]
    fn a_fault_is_read_from_its_bytes() {
        let mut bytes = vec![9, 0, 0, 0, 0, 0, 32, 0];
        bytes.extend(7_u32.to_ne_bytes());
        bytes.extend(8_u32.to_ne_bytes());
        bytes.extend(100_u64.to_ne_bytes());
        bytes.extend(0x1234_u64.to_ne_bytes());
        let fault = Record::Fault {
            process: 7,
            thread: 8,
            time_ns: 100,
            address: 0x1234,
        };
        assert_eq!(parse_record(&bytes, Kind::Software), Some(fault));
        assert_eq!(parse_record(&bytes[..20], Kind::Software), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_record_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..64), guest: bool) {
            let kind = if guest { Kind::Guest { address_offset: 24 } } else { Kind::Software };
            let _ = parse_record(&bytes, kind);
        }

        #[test]
        fn any_list_is_read_or_refused(text in "[0-9,-]{0,12}") {
            let _ = parse_core_list(&text);
        }
    }
}
