//! What threads touch, by samples: interruptions at even intervals, with the registers of who was interrupted.
//!
//! A clock of the kernel's on each core, or the processor's counter of instructions, interrupts what runs there; where
//! it is in user mode, its registers come into a ring. [`ahead`](super::ahead) says what is touched next. No page is
//! taken away, so nobody's touch hides another's.

use std::collections::BTreeMap;
use std::time::Duration;

use perf_event_open_sys::bindings;

use super::ahead::{Code, Memory, Registers};
use super::ring::{Ring, online_cores};
use crate::HostError;

/// The most instructions of an interrupted thread that are followed: more than most loops have.
const FOLLOWED: usize = 256;
/// What all instructions that are followed weigh together: of the most of them each weighs a thousand.
const WEIGHT: u64 = 1000 * FOLLOWED as u64;
/// A program executes about as many, so that a period means about the same by instructions and by time.
const INSTRUCTIONS_A_NANOSECOND: u64 = 2;
/// The most doublings of the period, which make about a second of the shortest one.
const DOUBLED_MAX: u32 = 20;
/// What an interruption by the clock and its report take.
const INTERRUPTION_NS: u64 = 5_000;
/// What one by a counter takes in a virtual machine whose hypervisor stands behind each access to the
/// counters; elsewhere it is less.
const COUNTED_INTERRUPTION_NS: u64 = 40_000;

/// The kernel's numbers of the registers of a sample, in its order: the bits of [`REGISTERS`] from the least. Each has
/// its number in instructions; of the instruction's own address there is none.
const ORDER: [Option<usize>; 17] = [
    Some(0),
    Some(3),
    Some(1),
    Some(2),
    Some(6),
    Some(7),
    Some(5),
    Some(4),
    None,
    Some(8),
    Some(9),
    Some(10),
    Some(11),
    Some(12),
    Some(13),
    Some(14),
    Some(15),
];
/// `ax bx cx dx si di bp sp ip`, and `r8` to `r15`.
const REGISTERS: u64 = 0x00ff_01ff;
/// The kernel says that a thread is one of 64 bits.
const ABI_64: u64 = bindings::PERF_SAMPLE_REGS_ABI_64 as u64;

/// An interrupted thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interrupted {
    process: i32,
    thread: i32,
    registers: Registers,
}

/// A touch of a thread's, of so much weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    /// The number of the interruption.
    pub(super) sample: u64,
    pub(super) process: i32,
    pub(super) thread: i32,
    pub(super) address: u64,
    pub(super) weight: u64,
}

/// The counters of all cores.
pub(super) struct Samples {
    by: SampledBy,
    period: Duration,
    /// How often that was doubled because the kernel did not let so many interruptions through.
    doubled: u32,
    rings: Vec<Ring>,
    code: BTreeMap<i32, Code>,
}

impl Samples {
    /// Starts to interrupt all cores.
    ///
    /// # Errors
    /// When the kernel forbids it, the processor does not count, or this host's code cannot be followed.
    pub(super) fn listen(period: Duration, by: SampledBy) -> Result<Self, HostError> {
        if !cfg!(target_arch = "x86_64") {
            return Err(HostError::Unsupported(
                "code of this architecture is not followed".into(),
            ));
        }
        let open = |core| Ring::open(&mut by.event(period), core);
        Ok(Self {
            by,
            period,
            doubled: 0,
            rings: online_cores()?.into_iter().map(open).collect::<Result<_, _>>()?,
            code: BTreeMap::new(),
        })
    }

    /// What an interruption and its report are charged as.
    pub(super) fn price_ns(&self) -> u64 {
        match self.by {
            SampledBy::Instructions => COUNTED_INTERRUPTION_NS,
            SampledBy::Time => INTERRUPTION_NS,
        }
    }

    /// What is sampled how often, in words.
    pub(super) fn describe(&self) -> String {
        let count = self.by.count(self.period) << self.doubled;
        let period = match self.by {
            SampledBy::Instructions => format!("{count} instructions"),
            SampledBy::Time => format!("{} us", count / 1000),
        };
        format!("samples of what threads touch, every {period}")
    }

    /// Interrupts half as often, so that none is kept back: a core that had as many interruptions as the kernel allows
    /// within a tick has no more until the next one, and what runs late in a tick is seen less often.
    fn slow_down(&mut self) {
        if self.doubled < DOUBLED_MAX {
            self.doubled += 1;
            let count = self.by.count(self.period) << self.doubled;
            self.rings.iter().for_each(|ring| ring.set_period(count));
        }
    }

    /// Interrupts, or does not.
    pub(super) fn want(&self, is_wanted: bool) {
        self.rings.iter().for_each(|ring| ring.sample(is_wanted));
    }

    /// A process has other code, or none.
    pub(super) fn forget(&mut self, process: i32) {
        self.code.remove(&process);
    }

    /// Takes what was sampled since the last time of processes that are wanted; answers how many interruptions these
    /// were. All touches of an interruption weigh as much as its share of instructions that touch memory, each by its
    /// words.
    pub(super) fn drain(&mut self, is_wanted: impl Fn(i32) -> bool, mut take: impl FnMut(Touch)) -> u64 {
        let (mut count, mut addresses, mut is_throttled) = (0, Vec::new(), false);
        for ring in &mut self.rings {
            ring.drain(|bytes| {
                is_throttled |= is_throttle(bytes);
                let Some(Interrupted {
                    process,
                    thread,
                    registers,
                }) = parse(bytes).filter(|interrupted| is_wanted(interrupted.process))
                else {
                    return;
                };
                count += 1;
                addresses.clear();
                let code = self.code.entry(process).or_default();
                let followed = code.follow(&registers, FOLLOWED, &OfProcess(process), |address, words| {
                    addresses.push((address, words))
                });
                let Some(followed) = followed else {
                    return;
                };
                let weight = (WEIGHT << self.doubled) / followed.max(1) as u64;
                addresses.iter().for_each(|&(address, words)| {
                    take(Touch {
                        sample: count,
                        process,
                        thread,
                        address,
                        weight: words * weight,
                    });
                });
            });
        }
        if is_throttled {
            self.slow_down();
        }
        count
    }
}

/// What is counted between two interruptions of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampledBy {
    /// Instructions of programs, by the processor's own counters: what waits for memory is not seen more often.
    Instructions,
    /// Time that programs run, by a clock of the kernel's.
    Time,
}

impl SampledBy {
    /// The period in its own measure.
    fn count(self, period: Duration) -> u64 {
        match self {
            Self::Instructions => period.as_nanos() as u64 * INSTRUCTIONS_A_NANOSECOND,
            Self::Time => period.as_nanos() as u64,
        }
    }

    fn event(self, period: Duration) -> bindings::perf_event_attr {
        let (kind, config) = match self {
            Self::Instructions => (bindings::PERF_TYPE_HARDWARE, bindings::PERF_COUNT_HW_INSTRUCTIONS),
            Self::Time => (bindings::PERF_TYPE_SOFTWARE, bindings::PERF_COUNT_SW_CPU_CLOCK),
        };
        let mut event = bindings::perf_event_attr {
            size: size_of::<bindings::perf_event_attr>() as u32,
            type_: kind,
            config: config.into(),
            sample_type: u64::from(bindings::PERF_SAMPLE_TID | bindings::PERF_SAMPLE_REGS_USER),
            sample_regs_user: REGISTERS,
            ..Default::default()
        };
        event.__bindgen_anon_1.sample_period = self.count(period);
        event.set_exclude_kernel(1);
        event.set_exclude_hv(1);
        event
    }
}

/// Whether the kernel says with this record that it keeps further samples back for a while.
fn is_throttle(bytes: &[u8]) -> bool {
    bytes.first_chunk().map(|kind| u32::from_ne_bytes(*kind)) == Some(bindings::PERF_RECORD_THROTTLE)
}

/// A sample, header included; `None` for other records and for code that is not of 64 bits.
fn parse(bytes: &[u8]) -> Option<Interrupted> {
    let long = |offset: usize| {
        Some(u64::from_ne_bytes(
            bytes.get(offset..offset + 8)?.try_into().ok()?,
        ))
    };
    if long(0)? as u32 != bindings::PERF_RECORD_SAMPLE || long(16)? != ABI_64 {
        return None;
    }
    let mut registers = Registers::default();
    for (place, number) in ORDER.iter().enumerate() {
        let value = long(24 + 8 * place)?;
        match *number {
            Some(number) => registers.general[number] = value,
            None => registers.instruction = value,
        }
    }
    let name = long(8)?;
    Some(Interrupted {
        process: name as u32 as i32,
        thread: (name >> 32) as u32 as i32,
        registers,
    })
}

/// The memory of a process.
struct OfProcess(i32);

impl Memory for OfProcess {
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        let ours = libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: bytes.len(),
        };
        let theirs = libc::iovec {
            iov_base: address as *mut _,
            iov_len: bytes.len(),
        };
        // SAFETY: the kernel writes at most so many bytes to `bytes`, which is borrowed for that; what is at the other
        // end it checks itself.
        let read = unsafe { libc::process_vm_readv(self.0, &ours, 1, &theirs, 1, 0) };
        read == bytes.len() as isize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A sample in which each register has its place in the kernel's order.
    fn sample() -> Vec<u8> {
        let mut bytes = vec![9, 0, 0, 0, 2, 0, 160, 0];
        bytes.extend(7_u32.to_ne_bytes());
        bytes.extend(8_u32.to_ne_bytes());
        bytes.extend(ABI_64.to_ne_bytes());
        (0..17_u64).for_each(|place| bytes.extend(place.to_ne_bytes()));
        bytes
    }

    #[test]
    fn a_sample_is_read_as_the_kernel_lays_it_out() {
        let read = parse(&sample()).expect("a sample");
        assert_eq!((read.process, read.thread, read.registers.instruction), (7, 8, 8));
        let [rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, .., r15] = read.registers.general;
        assert_eq!([rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp], [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!([r8, r15], [9, 16]);
        assert_eq!(ORDER.len(), REGISTERS.count_ones() as usize);
        assert_eq!(parse(&sample()[..100]), None);
    }

    #[test]
    fn a_throttled_core_is_told_from_a_sample() {
        let mut throttled = vec![5, 0, 0, 0, 0, 0, 32, 0];
        throttled.resize(32, 0);
        assert!(is_throttle(&throttled) && parse(&throttled).is_none());
        assert!(!is_throttle(&sample()) && !is_throttle(&[]));
    }

    #[test]
    fn a_period_is_counted_in_its_own_measure() {
        let period = Duration::from_micros(25);
        for (by, count, words) in [
            (SampledBy::Instructions, 50_000, "every 200000 instructions"),
            (SampledBy::Time, 25_000, "every 100 us"),
        ] {
            assert_eq!(by.count(period), count);
            let samples = Samples {
                by,
                period,
                doubled: 2,
                rings: Vec::new(),
                code: BTreeMap::new(),
            };
            assert!(samples.describe().ends_with(words), "{}", samples.describe());
        }
    }

    #[test]
    fn own_memory_is_read_and_none_is_not() {
        let (number, mut bytes) = (7_u64, [0; 8]);
        let own = OfProcess(std::process::id() as i32);
        assert!(own.read(&raw const number as u64, &mut bytes));
        assert_eq!(u64::from_ne_bytes(bytes), 7);
        assert!(!own.read(0, &mut bytes));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_sample_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }
}
