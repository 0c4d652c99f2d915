//! What threads touch, by samples: interruptions at even intervals, with the registers of who was interrupted.
//!
//! A clock of the kernel's on each core, or the processor's counter of instructions, interrupts what runs there; where
//! it is in user mode, its registers and its stack come into a ring ([`record`]), and what it keeps below the stack
//! ([`red_zone`]). [`ahead`](super::ahead) says what is touched next. No page is taken away, so nobody's touch hides
//! another's.

mod memory;
mod record;
mod red_zone;

use std::collections::BTreeMap;
use std::time::Duration;

use perf_event_open_sys::bindings;

use self::memory::{Pages, Seen};
use self::record::Record;
use self::red_zone::RedZone;
use super::ahead::Code;
use super::region::PAGE_BITS;
use super::ring::{Ring, online_cores};
use crate::HostError;

/// The most instructions of an interrupted thread that are followed: more than most loops have.
const FOLLOWED: usize = 256;
/// What all instructions that are followed weigh together: of the most of them each weighs a thousand.
const WEIGHT: u64 = 1000 * FOLLOWED as u64;
/// A program executes about as many, so that a period means about the same by instructions and by time.
const INSTRUCTIONS_A_NANOSECOND: u64 = 2;
/// The most times that a period becomes longer, which makes about a second of the shortest one.
const TIMES_MAX: u64 = 1 << 20;

/// Touches of a thread's in a page, of so much weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    /// The number of the interruption.
    pub(super) sample: u64,
    pub(super) process: i32,
    pub(super) thread: i32,
    /// One of the addresses.
    pub(super) address: u64,
    pub(super) weight: u64,
}

/// The counters of all cores.
pub(super) struct Samples {
    by: SampledBy,
    /// How much lies between two interruptions as was asked for, in the measure of what is counted.
    asked: u64,
    /// How many times as much it is, because the kernel did not let so many interruptions through.
    times: u64,
    /// Whether that has become more when the rings were looked at last.
    has_slowed: bool,
    rings: Vec<Ring>,
    /// What writes into them with each interruption as long as it is there, if the kernel takes such programs.
    red_zones: Option<RedZone>,
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
        let (asked, cores) = (by.count(period), online_cores()?);
        // Where the kernel has no such programs or forbids them there are samples all the same.
        let mut red_zones = RedZone::load(cores.iter().max().map_or(0, |core| *core as u32 + 1)).ok();
        let mut rings = Vec::new();
        for core in cores {
            let ring = Ring::open(&mut by.event(asked), core)?;
            red_zones = red_zones.and_then(|program| program.attach(core, &ring).ok());
            rings.push(ring);
        }
        Ok(Self {
            by,
            asked,
            times: 1,
            has_slowed: false,
            rings,
            red_zones,
            code: BTreeMap::new(),
        })
    }

    /// What an interruption and its report are charged as.
    pub(super) fn price_ns(&self) -> u64 {
        self.by.price_ns()
    }

    /// Whether interruptions have become fewer when samples were taken last.
    pub(super) fn has_slowed(&self) -> bool {
        self.has_slowed
    }

    /// What is sampled how often, in words.
    pub(super) fn describe(&self) -> String {
        let count = self.asked * self.times;
        let period = match self.by {
            SampledBy::Instructions => format!("{count} instructions"),
            SampledBy::Time => format!("{} us", count / 1000),
        };
        let limit = match self.red_zones {
            Some(_) => "",
            None => ", without what functions keep below the stack (the kernel takes no program that tells)",
        };
        format!("samples of what threads touch, every {period}{limit}")
    }

    /// Interrupts half as often, so that none is kept back: a core that had as many interruptions as the kernel allows
    /// within a tick has no more until the next one, and what runs late in a tick is seen less often. What was kept
    /// back before the last time says nothing of the period that there is now.
    fn slow_down(&mut self, is_throttled: bool) {
        self.has_slowed = is_throttled && !self.has_slowed && self.times < TIMES_MAX;
        if self.has_slowed {
            self.times *= 2;
            let count = self.asked * self.times;
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
        let (mut count, mut touched, mut is_throttled) = (0, Vec::new(), false);
        let mut memory = BTreeMap::new();
        for ring in &mut self.rings {
            let mut red_zone = None;
            ring.drain(|bytes| {
                let interrupted = match Record::parse(bytes) {
                    Record::Interrupted(interrupted) => interrupted,
                    Record::RedZone(told) => {
                        red_zone = Some(told);
                        return;
                    }
                    Record::Throttled => {
                        is_throttled = true;
                        return;
                    }
                    Record::Other => return,
                };
                let (process, thread) = (interrupted.process, interrupted.thread);
                let red_zone = red_zone.take();
                if !is_wanted(process) {
                    return;
                }
                count += 1;
                let seen = Seen {
                    interrupted: &interrupted,
                    red_zone,
                    pages: memory.entry(process).or_insert_with(|| Pages::of(process)),
                };
                touched.clear();
                let code = self.code.entry(process).or_default();
                let followed = code.follow(&interrupted.registers, FOLLOWED, &seen, |address, words| {
                    touched.push((address, words));
                });
                let Some(followed) = followed else {
                    return;
                };
                let weight = WEIGHT * self.times / followed.max(1) as u64;
                touched.sort_unstable();
                for page in touched.chunk_by(|one, other| one.0 >> PAGE_BITS == other.0 >> PAGE_BITS) {
                    take(Touch {
                        sample: count,
                        process,
                        thread,
                        address: page[0].0,
                        weight: weight * page.iter().map(|(_, words)| words).sum::<u64>(),
                    });
                }
            });
        }
        self.slow_down(is_throttled);
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

    /// What an interruption and its report take, in a virtual machine whose hypervisor stands behind the timer and
    /// behind each access to the counters; elsewhere it is less.
    fn price_ns(self) -> u64 {
        match self {
            Self::Instructions => 40_000,
            Self::Time => 15_000,
        }
    }

    fn event(self, count: u64) -> bindings::perf_event_attr {
        let (kind, config) = match self {
            Self::Instructions => (bindings::PERF_TYPE_HARDWARE, bindings::PERF_COUNT_HW_INSTRUCTIONS),
            Self::Time => (bindings::PERF_TYPE_SOFTWARE, bindings::PERF_COUNT_SW_CPU_CLOCK),
        };
        let mut event = bindings::perf_event_attr {
            size: size_of::<bindings::perf_event_attr>() as u32,
            type_: kind,
            config: config.into(),
            ..Default::default()
        };
        event.__bindgen_anon_1.sample_period = count;
        event.set_exclude_kernel(1);
        event.set_exclude_hv(1);
        record::ask(&mut event);
        event
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(by: SampledBy) -> Samples {
        Samples {
            by,
            asked: by.count(Duration::from_micros(25)),
            times: 4,
            has_slowed: false,
            rings: Vec::new(),
            red_zones: None,
            code: BTreeMap::new(),
        }
    }

    /// What the program tells of a thread that writes a number below its stack pointer all the time.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn what_an_interrupted_thread_keeps_below_its_stack_is_told() {
        if !tests_need::root("interrupting cores") {
            return;
        }
        let samples = Samples::listen(Duration::from_millis(1), SampledBy::Time);
        let Ok(mut samples) = samples.map_err(|error| tests_need::leave_out(&error.to_string())) else {
            return;
        };
        if samples.red_zones.is_none() {
            tests_need::leave_out("the kernel takes no programs that run in interruptions");
            return;
        }
        let (number, thread) = (
            0x5eed_0123_4567_89ab_u64,
            rustix::thread::gettid().as_raw_nonzero().get(),
        );
        let (mut told, mut others) = (0, 0);
        while told < 10 && others < 1000 {
            // SAFETY: compilers keep nothing below the stack pointer of code that may push.
            unsafe {
                std::arch::asm!(
                    "2: mov [rsp - 64], {number}",
                    "dec {count}",
                    "jnz 2b",
                    number = in(reg) number,
                    count = inout(reg) 10_000_000_u64 => _,
                );
            }
            for ring in &mut samples.rings {
                let mut kept = None;
                ring.drain(|bytes| match Record::parse(bytes) {
                    Record::RedZone(zone) => kept = Some(zone),
                    Record::Interrupted(interrupted) if interrupted.thread == thread => {
                        let zone = kept.take().expect("a red zone in front of each sample");
                        match zone[64..72] == number.to_ne_bytes() {
                            true => told += 1,
                            false => others += 1,
                        }
                    }
                    _ => kept = None,
                });
            }
        }
        assert!(told >= 10, "{told} of {}", told + others);
    }

    #[test]
    fn a_period_is_counted_in_its_own_measure() {
        for (by, count, words) in [
            (SampledBy::Instructions, 50_000, "every 200000 instructions"),
            (SampledBy::Time, 25_000, "every 100 us"),
        ] {
            assert_eq!(samples(by).asked, count);
            let described = samples(by).describe();
            assert!(described.contains(words), "{described}");
        }
    }

    #[test]
    fn what_was_kept_back_before_a_period_was_doubled_does_not_double_it_again() {
        let mut samples = samples(SampledBy::Time);
        let times = [false, true, true, true, false].map(|is_throttled| {
            samples.slow_down(is_throttled);
            (samples.times, samples.has_slowed())
        });
        assert_eq!(
            times,
            [(4, false), (8, true), (8, false), (16, true), (16, false)]
        );
    }
}
