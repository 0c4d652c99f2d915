//! Page faults of the whole host, as the kernel's performance events report them.
//!
//! One event for each core counts software page faults and samples every one of them, with thread, address and time,
//! into a ring that is read here; it can be switched off and on. Another one, which counts nothing and is always on,
//! tells in the same ring of threads that begin and end and of new mappings. Faults of a KVM guest in its second-level
//! page table are no software page faults, so where the kernel has the trace point `kvm:kvm_page_fault` a second event
//! reports those, by guest-physical address.

use std::fs;

use perf_event_open_sys::bindings;

use super::ring::{Ring, online_cores};
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

#[derive(Clone, Copy)]
enum Kind {
    Software,
    Guest { address_offset: usize },
}

/// The rings of all cores.
pub struct Faults {
    rings: Vec<(Ring, Kind)>,
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
            let ring = Ring::open(&mut bystander_event(), core)?;
            let ring = ring.with_samples_of(&mut software_event(), core)?;
            rings.push((ring, Kind::Software));
            if let Some(point) = &trace_point {
                let kind = Kind::Guest {
                    address_offset: point.address_offset,
                };
                // Without this event guests of KVM are not seen; everything else is.
                if let Ok(ring) = Ring::open(&mut guest_event(point), core) {
                    rings.push((ring, kind));
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
        for (ring, _) in &self.rings {
            ring.sample(is_wanted);
        }
    }

    /// Takes everything out of the rings, in the order of each ring.
    pub fn drain(&mut self, mut take: impl FnMut(Record)) {
        for (ring, kind) in &mut self.rings {
            ring.drain(|bytes| parse_record(bytes, *kind).into_iter().for_each(&mut take));
        }
    }
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
