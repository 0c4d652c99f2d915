//! The machine's time, and what is to happen at one.
//!
//! Time is counted in ticks of the interval time counter, [`TICKS_PER_SECOND`] of them a second. In virtual time
//! the executor sets it; with host threads it follows the host's clock. Devices schedule work on it; work that is
//! due at the same time is done in the order of its [`Phase`], then in the order in which it was scheduled.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::wakeups::Wakeups;

/// Ticks of machine time in a second: one is a nanosecond, and in virtual time an instruction.
pub const TICKS_PER_SECOND: u64 = 1_000_000_000;

/// The order of work that is due at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Data arrives or has been written: transfers complete.
    Transfer,
    /// Devices change their state.
    Device,
    /// Timers expire and interrupts are raised.
    Interrupt,
}

/// What was scheduled, as machines are saved with it: the same place on another agenda.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// Saved machines call it so.
    #[serde(rename = "time")]
    tick: u64,
    sequence: u64,
}

impl Ticket {
    /// Its tick.
    #[cfg(test)]
    pub(crate) fn tick(self) -> u64 {
        self.tick
    }

    /// Whether it is for this tick.
    pub(crate) fn is_at(self, tick: u64) -> bool {
        self.tick == tick
    }
}

type Work = Box<dyn FnOnce(u64) + Send>;

/// The clock and the agenda of a machine.
pub struct Timeline {
    now: AtomicU64,
    /// While the host's clock leads: its reading at machine time zero.
    origin: RwLock<Option<Instant>>,
    agenda: Mutex<Agenda>,
    wakeups: Arc<Wakeups>,
}

#[derive(Default)]
struct Agenda {
    sequence: u64,
    work: BTreeMap<(u64, Phase, u64), Work>,
}

impl Timeline {
    /// Time zero, nothing to do.
    pub fn new(wakeups: Arc<Wakeups>) -> Timeline {
        Timeline {
            now: AtomicU64::new(0),
            origin: RwLock::new(None),
            agenda: Mutex::default(),
            wakeups,
        }
    }

    /// The tick: of the host's clock if that leads, else as of the beginning of the current time slice.
    pub fn now(&self) -> u64 {
        match *self.origin.read().unwrap_or_else(PoisonError::into_inner) {
            Some(origin) => u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX),
            None => self.now.load(Ordering::Relaxed),
        }
    }

    /// Has `work` done at `tick`, or at once if that has passed; it is told the tick at which it was due.
    pub fn schedule(&self, tick: u64, phase: Phase, work: impl FnOnce(u64) + Send + 'static) -> Ticket {
        let mut agenda = self.agenda();
        let sequence = agenda.sequence;
        agenda.sequence += 1;
        agenda.work.insert((tick, phase, sequence), Box::new(work));
        drop(agenda);
        self.wakeups.wake();
        Ticket { tick, sequence }
    }

    /// When work that was due at `due` and is done every `ticks` is due again; turns that were missed are not made up
    /// for.
    pub(crate) fn again(&self, due: u64, ticks: u64) -> u64 {
        due.saturating_add(ticks).max(self.now())
    }

    /// Has `work` done when and in the order that `ticket` says, in a machine that is restored.
    pub(crate) fn reschedule(&self, ticket: Ticket, phase: Phase, work: impl FnOnce(u64) + Send + 'static) {
        let place = (ticket.tick, phase, ticket.sequence);
        self.agenda().work.insert(place, Box::new(work));
    }

    /// Gives up what was scheduled, if it was not done yet.
    pub(crate) fn cancel(&self, ticket: Ticket, phase: Phase) {
        let work = self.agenda().work.remove(&(ticket.tick, phase, ticket.sequence));
        // Not under the lock, as in `clear`.
        drop(work);
    }

    /// How many pieces of work were ever scheduled: what the order among them goes on from.
    pub(crate) fn sequence(&self) -> u64 {
        self.agenda().sequence
    }

    /// Goes on from there, with nothing to do.
    pub(crate) fn restore(&self, now: u64, sequence: u64) {
        self.set_now(now);
        let mut agenda = self.agenda();
        agenda.work.clear();
        agenda.sequence = sequence;
    }

    /// Gives up all that is to be done. What is scheduled holds devices, and they hold the timeline: a machine that is
    /// dropped before would never be gone.
    pub(crate) fn clear(&self) {
        let work = std::mem::take(&mut self.agenda().work);
        // Not under the lock: what goes with it may look at the agenda.
        drop(work);
    }

    /// The tick at which something is to happen next.
    pub fn next(&self) -> Option<u64> {
        self.agenda().work.keys().next().map(|&(tick, ..)| tick)
    }

    /// Does all that is due at `tick`, including what that work schedules for then; whether there was anything.
    pub fn perform_until(&self, tick: u64) -> bool {
        let mut has_done = false;
        loop {
            let mut agenda = self.agenda();
            let is_due = |&(due, ..): &(u64, Phase, u64)| due <= tick;
            if !agenda.work.keys().next().is_some_and(is_due) {
                return has_done;
            }
            let first = agenda.work.pop_first();
            drop(agenda);
            if let Some(((due, ..), work)) = first {
                work(due);
                has_done = true;
            }
        }
    }

    /// Sets virtual time.
    pub fn set_now(&self, tick: u64) {
        self.now.store(tick, Ordering::Relaxed);
    }

    /// Lets the host's clock lead from now on, going on from tick `now`: one is a nanosecond.
    pub(crate) fn follow_host(&self, now: u64) {
        let host = Instant::now();
        let origin = host.checked_sub(Duration::from_nanos(now)).unwrap_or(host);
        self.set_origin(Some(origin));
    }

    /// Lets the executor set the time from now on.
    pub(crate) fn follow_executor(&self) {
        self.set_origin(None);
    }

    fn set_origin(&self, origin: Option<Instant>) {
        *self.origin.write().unwrap_or_else(PoisonError::into_inner) = origin;
    }

    fn agenda(&self) -> MutexGuard<'_, Agenda> {
        self.agenda.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MachineBuilder;
    use crate::memory::{GuestMemory, MemoryRange};

    #[test]
    fn a_machine_is_gone_with_what_was_still_to_be_done() {
        let memory = GuestMemory::new(&[MemoryRange::ram(0, 1 << 20)]).expect("a good layout");
        let builder = MachineBuilder::new(memory, 1);
        let timeline = builder.timeline();
        let held = Arc::new(());
        let device = (Arc::clone(&timeline), Arc::clone(&held));
        timeline.schedule(1_000, Phase::Device, move |_| drop(device));
        drop(timeline);
        drop(builder.build());
        assert_eq!(Arc::strong_count(&held), 1, "a device outlives its machine");
    }

    #[test]
    fn work_is_done_by_time_then_phase_then_order() {
        let timeline = Timeline::new(Arc::default());
        let done = Arc::new(Mutex::new(Vec::new()));
        for (name, time, phase) in [
            ("late", 20, Phase::Transfer),
            ("interrupt", 10, Phase::Interrupt),
            ("first device", 10, Phase::Device),
            ("second device", 10, Phase::Device),
            ("early", 5, Phase::Interrupt),
        ] {
            let done = Arc::clone(&done);
            timeline.schedule(time, phase, move |due| done.lock().unwrap().push((name, due)));
        }
        assert_eq!(timeline.next(), Some(5));
        timeline.perform_until(10);
        let expected = [
            ("early", 5),
            ("first device", 10),
            ("second device", 10),
            ("interrupt", 10),
        ];
        assert_eq!(*done.lock().unwrap(), expected);
        assert_eq!(timeline.next(), Some(20));
    }

    #[test]
    fn missed_turns_are_not_made_up_for() {
        let timeline = Timeline::new(Arc::default());
        assert_eq!(timeline.again(5, 10), 15);
        timeline.set_now(1000);
        assert_eq!(timeline.again(5, 10), 1000);
        assert_eq!(timeline.again(u64::MAX, 10), u64::MAX);
    }
}
