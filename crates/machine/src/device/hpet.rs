//! The high-precision event timer: a counter and three timers that interrupt when it reaches what they are set to.
//!
//! By Intel's IA-PC HPET Specification, revision 1.0a, section 2.3. The counter counts [`PERIOD_TICKS`] of machine time
//! a step and has 64 bits; the first timer can be periodic. Interrupts are lines of the IOSAPIC ([`ROUTES`]), by edge
//! or by level; there is no routing in place of older timers and there are no messages.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::iosapic::Lines;
use crate::bus;
use crate::machine::timeline::{Phase, Ticket, Timeline};

/// Bytes of registers.
pub const SIZE: u64 = 0x400;
/// The lines that timers may interrupt by, one bit each.
pub const ROUTES: u32 = 1 << 10 | 1 << 11 | 1 << 12;
/// Ticks of machine time from one step of the counter to the next: 10 ns.
pub const PERIOD_TICKS: u64 = 10;
const TIMERS: usize = 3;
/// How far two interrupts of a periodic timer are apart at the least.
const PERIODIC_TICKS_MIN: u64 = 1_000;

/// Offsets of registers.
mod register {
    pub const CAPABILITIES: u64 = 0x000;
    pub const CONFIGURATION: u64 = 0x010;
    pub const STATUS: u64 = 0x020;
    pub const COUNTER: u64 = 0x0f0;
    /// Of the first timer, the others behind it: configuration, comparator, and a message that there is not.
    pub const TIMERS: u64 = 0x100;
    pub const TIMER_BYTES: u64 = 0x20;
    pub const COMPARATOR: u64 = 0x08;
}

/// Bits of a timer's configuration.
mod timer {
    pub const LEVEL: u64 = 1 << 1;
    pub const ENABLED: u64 = 1 << 2;
    pub const PERIODIC: u64 = 1 << 3;
    pub const CAN_BE_PERIODIC: u64 = 1 << 4;
    pub const IS_WIDE: u64 = 1 << 5;
    /// The next store to the comparator is its value, though the timer is periodic.
    pub const SETS_VALUE: u64 = 1 << 6;
    pub const NARROW: u64 = 1 << 8;
    pub const ROUTE_SHIFT: u32 = 9;
    pub const ROUTE: u64 = 0x1f << ROUTE_SHIFT;
    pub const WRITABLE: u64 = LEVEL | ENABLED | PERIODIC | SETS_VALUE | NARROW | ROUTE;
}

/// The bit of the configuration by which the counter counts.
const COUNTS: u64 = 1;
/// Femtoseconds of a step.
const PERIOD_FEMTOSECONDS: u64 = PERIOD_TICKS * 1_000_000;
/// Revision 1, three timers, 64 bits, a maker as PCI numbers them.
const CAPABILITIES: u64 = PERIOD_FEMTOSECONDS << 32 | 0x8086 << 16 | 1 << 13 | (TIMERS as u64 - 1) << 8 | 1;

/// The identity of the block of timers as the table of ACPI has it.
pub const BLOCK_IDENTITY: u32 = CAPABILITIES as u32;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Timer {
    configuration: u64,
    comparator: u64,
    /// What is added to the comparator each time that a periodic timer has interrupted.
    period: u64,
    /// When it interrupts next.
    ticket: Option<Ticket>,
}

/// What machines are saved with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HpetState {
    configuration: u64,
    status: u64,
    /// The counter when it was set, stopped or started last, and when that was.
    counter: u64,
    since: u64,
    timers: [Timer; TIMERS],
}

struct Inner {
    state: HpetState,
    lines: Lines,
    timeline: Arc<Timeline>,
}

/// The timers; clones are the same.
#[derive(Clone)]
pub struct Hpet(Arc<Mutex<Inner>>);

impl Hpet {
    /// Stopped, at zero.
    pub fn new(lines: Lines, timeline: Arc<Timeline>) -> Hpet {
        let state = HpetState::default();
        Hpet(Arc::new(Mutex::new(Inner {
            state,
            lines,
            timeline,
        })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything, to be saved.
    pub fn save(&self) -> HpetState {
        self.inner().state.clone()
    }

    /// Goes on from what was saved.
    pub fn restore(&self, state: HpetState) {
        let mut inner = self.inner();
        for (number, timer) in state.timers.iter().enumerate() {
            if let Some(ticket) = timer.ticket {
                let expire = self.expiring(number);
                inner.timeline.reschedule(ticket, Phase::Interrupt, expire);
            }
        }
        inner.state = state;
    }

    /// What the timeline does when a timer is due: weakly, or neither would ever be dropped.
    fn expiring(&self, number: usize) -> impl FnOnce(u64) + Send + 'static {
        let weak = Arc::downgrade(&self.0);
        move |due| {
            if let Some(shared) = weak.upgrade() {
                Hpet(shared).expire(number, due);
            }
        }
    }

    /// A timer has reached its comparator, unless it was set again since.
    fn expire(&self, number: usize, due: u64) {
        let mut inner = self.inner();
        if !inner.state.timers[number]
            .ticket
            .is_some_and(|ticket| ticket.is_at(due))
        {
            return;
        }
        inner.interrupt(number);
        let timer = &mut inner.state.timers[number];
        timer.comparator = timer.comparator.wrapping_add(timer.period) & timer.mask();
        // One that is set to come all the time leaves the machine time for something else.
        let due = match timer.period {
            0 => due,
            period => due + PERIODIC_TICKS_MIN.saturating_sub(period.saturating_mul(PERIOD_TICKS)),
        };
        self.arm(&mut inner, number, due);
    }

    /// Has a timer interrupt when the counter next reaches its comparator from what it is at `now`.
    fn arm(&self, inner: &mut Inner, number: usize, now: u64) {
        let counter = inner.state.counter_at(now);
        let counts = inner.state.configuration & COUNTS != 0;
        if let Some(before) = inner.state.timers[number].ticket.take() {
            inner.timeline.cancel(before, Phase::Interrupt);
        }
        let timer = &mut inner.state.timers[number];
        let steps = match timer.comparator.wrapping_sub(counter) & timer.mask() {
            0 => timer.mask(),
            steps => steps,
        };
        // What is centuries away never comes.
        let ticks = steps.checked_mul(PERIOD_TICKS);
        if let Some(due) = ticks.and_then(|ticks| now.checked_add(ticks)).filter(|_| counts) {
            let expire = self.expiring(number);
            timer.ticket = Some(inner.timeline.schedule(due, Phase::Interrupt, expire));
        }
    }

    fn arm_all(&self, inner: &mut Inner) {
        let now = inner.timeline.now();
        for number in 0..TIMERS {
            self.arm(inner, number, now);
        }
    }

    fn store_register(&self, offset: u64, value: u64) {
        let mut inner = self.inner();
        let now = inner.timeline.now();
        match offset {
            register::CONFIGURATION => {
                let counter = inner.state.counter_at(now);
                (inner.state.counter, inner.state.since) = (counter, now);
                inner.state.configuration = value & COUNTS;
                self.arm_all(&mut inner);
            }
            register::STATUS => {
                inner.state.status &= !value;
                (0..TIMERS).for_each(|number| inner.update_line(number));
            }
            register::COUNTER => {
                (inner.state.counter, inner.state.since) = (value, now);
                self.arm_all(&mut inner);
            }
            _ => {
                let Some((number, at)) = timer_at(offset) else {
                    return;
                };
                match at {
                    0 => inner.configure(number, value),
                    register::COMPARATOR => inner.state.timers[number].set(value),
                    _ => return,
                }
                self.arm(&mut inner, number, now);
            }
        }
    }
}

/// Which timer an offset is of, and where among its registers.
fn timer_at(offset: u64) -> Option<(usize, u64)> {
    let offset = offset.checked_sub(register::TIMERS)?;
    let number = (offset / register::TIMER_BYTES) as usize;
    (number < TIMERS).then_some((number, offset % register::TIMER_BYTES))
}

impl HpetState {
    fn counter_at(&self, now: u64) -> u64 {
        match self.configuration & COUNTS {
            0 => self.counter,
            _ => self
                .counter
                .wrapping_add(now.saturating_sub(self.since) / PERIOD_TICKS),
        }
    }

    fn load(&self, offset: u64, now: u64) -> u64 {
        match offset {
            register::CAPABILITIES => CAPABILITIES,
            register::CONFIGURATION => self.configuration,
            register::STATUS => self.status,
            register::COUNTER => self.counter_at(now),
            _ => match timer_at(offset) {
                Some((number, 0)) => {
                    let is_first = if number == 0 { timer::CAN_BE_PERIODIC } else { 0 };
                    let fixed = u64::from(ROUTES) << 32 | timer::IS_WIDE | is_first;
                    self.timers[number].configuration | fixed
                }
                Some((number, register::COMPARATOR)) => self.timers[number].comparator,
                _ => 0,
            },
        }
    }
}

impl Timer {
    /// The bits that are compared.
    fn mask(&self) -> u64 {
        match self.configuration & timer::NARROW {
            0 => u64::MAX,
            _ => u64::from(u32::MAX),
        }
    }

    /// A store to the comparator: the period of a periodic timer, and the value unless that is kept.
    fn set(&mut self, value: u64) {
        let value = value & self.mask();
        let is_periodic = self.configuration & timer::PERIODIC != 0;
        if !is_periodic || self.configuration & timer::SETS_VALUE != 0 {
            self.comparator = value;
        }
        self.period = if is_periodic { value } else { 0 };
        self.configuration &= !timer::SETS_VALUE;
    }

    /// The line that it interrupts by, if it does.
    fn line(&self) -> Option<u32> {
        let route = (self.configuration & timer::ROUTE) >> timer::ROUTE_SHIFT;
        let is_allowed = ROUTES >> route & 1 != 0;
        (self.configuration & timer::ENABLED != 0 && is_allowed).then_some(route as u32)
    }
}

impl Inner {
    fn configure(&mut self, number: usize, value: u64) {
        let before = self.state.timers[number].line();
        let periodic = if number == 0 { 0 } else { timer::PERIODIC };
        let timer = &mut self.state.timers[number];
        timer.configuration = value & timer::WRITABLE & !periodic;
        timer.comparator &= timer.mask();
        if timer.configuration & timer::PERIODIC == 0 {
            timer.period = 0;
        }
        if let Some(line) = before.filter(|line| timer.line() != Some(*line)) {
            self.lines.set(line, false);
        }
        self.update_line(number);
    }

    fn interrupt(&mut self, number: usize) {
        let timer = &self.state.timers[number];
        if timer.configuration & timer::LEVEL != 0 {
            self.state.status |= 1 << number;
            self.update_line(number);
        } else if let Some(line) = timer.line() {
            self.lines.set(line, true);
            self.lines.set(line, false);
        }
    }

    /// Asserts the line of a timer by level as its status wants it.
    fn update_line(&self, number: usize) {
        let timer = &self.state.timers[number];
        if let Some(line) = timer.line().filter(|_| timer.configuration & timer::LEVEL != 0) {
            self.lines.set(line, self.state.status >> number & 1 != 0);
        }
    }
}

impl bus::Device for Hpet {
    /// Four or eight bytes, aligned; what is less reads as zero.
    fn load(&mut self, offset: u64, size: u64) -> u64 {
        let inner = self.inner();
        let (at, half) = (offset & !7, offset & 7);
        let value = inner.state.load(at, inner.timeline.now());
        match (size, half) {
            (8, 0) => value,
            (4, 0 | 4) => value >> (8 * half) & u64::from(u32::MAX),
            _ => 0,
        }
    }

    fn store(&mut self, offset: u64, size: u64, value: u64) {
        let (at, half) = (offset & !7, offset & 7);
        match (size, half) {
            (8, 0) => self.store_register(at, value),
            // The other half stays; of the status that is what nothing is written to.
            (4, 0 | 4) => {
                let mask = u64::from(u32::MAX) << (8 * half);
                let other = match at {
                    register::STATUS => 0,
                    _ => self.load(at, 8) & !mask,
                };
                self.store_register(at, other | value << (8 * half) & mask);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bus::Device;
    use crate::device::iosapic::Iosapic;
    use crate::machine::interrupt_block::InterruptBlock;
    use crate::machine::wakeups::Wakeups;

    struct Chip {
        hpet: Hpet,
        timeline: Arc<Timeline>,
        wakeups: Arc<Wakeups>,
        seen: u64,
    }

    const VECTOR: u8 = 0x51;
    const FIRST: u64 = register::TIMERS;

    impl Chip {
        /// With line 10 as this vector of a processor's, by edge or by level.
        fn new(is_level: bool) -> Chip {
            let wakeups = Arc::<Wakeups>::default();
            let block = InterruptBlock::new(1, Arc::clone(&wakeups));
            block.connect(0, Arc::default());
            let lines = Lines::new(Arc::new(block));
            let mut registers = Iosapic(lines.clone());
            registers.store(0, 4, 0x10 + 2 * 10);
            registers.store(0x10, 4, u64::from(is_level) << 15 | u64::from(VECTOR));
            let timeline = Arc::new(Timeline::new(Arc::default()));
            let hpet = Hpet::new(lines, Arc::clone(&timeline));
            Chip {
                hpet,
                timeline,
                wakeups,
                seen: 0,
            }
        }

        fn store(&mut self, offset: u64, value: u64) {
            self.hpet.store(offset, 8, value);
        }

        fn load(&mut self, offset: u64) -> u64 {
            self.hpet.load(offset, 8)
        }

        fn wait(&self, until: u64) {
            while let Some(next) = self.timeline.next().filter(|next| *next <= until) {
                self.timeline.set_now(next);
                self.timeline.perform_until(next);
            }
            self.timeline.set_now(until);
        }

        /// Whether an interrupt was sent since this was asked.
        fn has_come(&mut self) -> bool {
            let before = std::mem::replace(&mut self.seen, self.wakeups.count());
            self.seen > before
        }
    }

    #[test]
    fn a_counter_counts_while_it_is_on() {
        let mut chip = Chip::new(false);
        assert_eq!(
            chip.load(register::CAPABILITIES) >> 32,
            10_000_000,
            "femtoseconds"
        );
        chip.wait(1000);
        assert_eq!(chip.load(register::COUNTER), 0);
        chip.store(register::COUNTER, 5);
        chip.store(register::CONFIGURATION, 1);
        chip.wait(2000);
        assert_eq!(chip.load(register::COUNTER), 105);
        assert_eq!(chip.hpet.load(register::COUNTER + 4, 4), 0);
        chip.store(register::CONFIGURATION, 0);
        chip.wait(3000);
        assert_eq!(chip.load(register::COUNTER), 105);
    }

    #[test]
    fn a_timer_interrupts_once_by_an_edge() {
        let mut chip = Chip::new(false);
        chip.store(register::CONFIGURATION, 1);
        chip.store(FIRST, timer::ENABLED | 10 << timer::ROUTE_SHIFT);
        chip.store(FIRST + 8, 100);
        chip.wait(999);
        assert!(!chip.has_come());
        chip.wait(1000);
        assert!(chip.has_come());
        chip.wait(1_000_000);
        assert!(!chip.has_come());
        assert_eq!(chip.load(register::STATUS), 0);
        // Set to what has passed, it never comes; set again before it comes, it comes at the later time alone.
        chip.store(FIRST + 8, 100);
        assert_eq!(chip.timeline.next(), None);
        chip.store(FIRST + 8, 100_100);
        chip.store(FIRST + 8, 100_200);
        chip.wait(1_001_500);
        assert!(!chip.has_come());
        chip.wait(1_002_000);
        assert!(chip.has_come());
    }

    #[test]
    fn a_periodic_timer_by_level_waits_for_its_status() {
        let mut chip = Chip::new(true);
        let bits = timer::ENABLED | timer::LEVEL | timer::PERIODIC | timer::SETS_VALUE;
        chip.store(FIRST, bits | 10 << timer::ROUTE_SHIFT);
        chip.store(FIRST + 8, 50);
        chip.store(FIRST + 8, 100);
        chip.store(register::CONFIGURATION, 1);
        for turn in 0..3 {
            chip.wait(499 + turn * 1000);
            assert!(!chip.has_come());
            chip.wait(500 + turn * 1000);
            assert_eq!(chip.load(register::STATUS), 1);
            assert!(chip.has_come());
            chip.store(register::STATUS, 1);
            Iosapic(chip.hpet.inner().lines.clone()).store(0x40, 4, u64::from(VECTOR));
        }
    }

    #[test]
    fn a_narrow_timer_comes_again_when_half_the_counter_has() {
        let mut chip = Chip::new(false);
        chip.store(register::COUNTER, 0xffff_fff0);
        chip.store(register::CONFIGURATION, 1);
        chip.store(FIRST, timer::ENABLED | timer::NARROW | 10 << timer::ROUTE_SHIFT);
        chip.store(FIRST + 8, 0x10);
        assert_eq!(chip.timeline.next(), Some(0x20 * PERIOD_TICKS));
    }

    #[test]
    fn timers_go_on_in_a_machine_that_is_restored() {
        let mut chip = Chip::new(false);
        chip.store(register::CONFIGURATION, 1);
        chip.store(FIRST, timer::ENABLED | 10 << timer::ROUTE_SHIFT);
        chip.store(FIRST + 8, 100);
        chip.wait(500);
        let mut other = Chip::new(false);
        other.timeline.restore(500, chip.timeline.sequence());
        other.hpet.restore(chip.hpet.save());
        assert_eq!(other.hpet.save(), chip.hpet.save());
        other.wait(1000);
        assert!(other.has_come());
    }

    proptest! {
        #[test]
        fn any_stores_leave_the_machine_alone(
            stores in prop::collection::vec((0u64..0x80, 0u32..4, any::<u64>(), 0u64..10_000), 0..60),
        ) {
            let mut chip = Chip::new(true);
            let mut now = 0;
            for (word, log, value, ticks) in stores {
                chip.hpet.store(word * 8 + value % 2 * 4, 1 << log, value >> (value % 64));
                chip.hpet.load(word * 8, 1 << log);
                now += ticks;
                // A periodic timer may come very often.
                for _ in 0..100 {
                    let Some(next) = chip.timeline.next().filter(|next| *next <= now) else { break };
                    chip.timeline.set_now(next);
                    chip.timeline.perform_until(next);
                }
                now = now.max(chip.timeline.now());
                let scheduled = chip.hpet.save().timers.map(|timer| timer.ticket);
                let first = scheduled.into_iter().flatten().map(|ticket| ticket.tick()).min();
                prop_assert_eq!(chip.timeline.next(), first, "nothing is left of what was set before");
            }
        }
    }
}
