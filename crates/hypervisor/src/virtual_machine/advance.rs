//! How a virtual machine goes on: which of its processors runs how far, and where it must wait for an answer.

use super::VirtualMachine;
use super::handle::Needed;
use super::processor::{Activity, VirtualProcessor};
use crate::costs::{Cost, HostCosts};
use crate::cycle::Cycle;

/// How far processors of one virtual machine run apart.
const SLICE_CYCLES: u64 = 2_000;
/// The same where they take a lock from each other: not more than a part of the time for which it is held.
const LOCK_SLICE_CYCLES: u64 = 100;

impl VirtualMachine {
    /// The earliest time at which it may make its next request: `None` if it cannot before something is answered.
    pub fn horizon(&self, until: Cycle) -> Option<Cycle> {
        let scheduled =
            (0..self.processors.len()).filter(|index| self.scheduled[*index] && self.exit_code.is_none());
        scheduled
            .filter(|index| self.processors[*index].clock() < until)
            .filter_map(|index| {
                let processor = &self.processors[index];
                if self.is_blocked(index) {
                    return self.mailboxes[index].next();
                }
                Some(processor.clock())
            })
            .min()
    }

    /// Whether a processor that has a core can go on towards `until`, all answers before `floor` being known.
    pub fn can_advance(&self, until: Cycle, floor: Cycle) -> bool {
        let bound = self.bound(until, floor);
        let mut scheduled = (0..self.processors.len()).filter(|index| self.scheduled[*index]);
        self.exit_code.is_none()
            && scheduled.any(|index| !self.is_blocked(index) && self.processors[index].clock() < bound)
    }

    /// How far processors may go on, because others wait for answers: not much further than those.
    fn bound(&self, until: Cycle, floor: Cycle) -> Cycle {
        let scheduled = (0..self.processors.len()).filter(|index| self.scheduled[*index]);
        scheduled
            .filter(|index| self.processors[*index].clock() < until && self.is_blocked(*index))
            .map(|index| self.processors[index].clock().max(floor) + SLICE_CYCLES)
            .min()
            .unwrap_or(until)
            .min(until)
    }

    /// Whether a processor cannot go on before an answer comes whose time is not known.
    fn is_blocked(&self, index: usize) -> bool {
        let processor = &self.processors[index];
        let asks = processor.requests.served() != 0;
        match processor.activity {
            Activity::Polling | Activity::Asking => self.mailboxes[index].next().is_none(),
            Activity::Waiting => (asks || self.awaits_look()) && self.mailboxes[index].next().is_none(),
            Activity::Running | Activity::Stopped => false,
        }
    }

    /// The earliest time at which a processor that has a core may do something by itself; `None` if none does before
    /// something arrives.
    pub fn next_activity(&self) -> Option<Cycle> {
        if self.exit_code.is_some() {
            return None;
        }
        let scheduled = (0..self.processors.len()).filter(|index| self.scheduled[*index]);
        scheduled
            .filter_map(|index| {
                let processor = &self.processors[index];
                match processor.activity {
                    Activity::Running | Activity::Polling | Activity::Asking => Some(processor.clock()),
                    Activity::Waiting => self.next_waking(index),
                    Activity::Stopped => None,
                }
            })
            .min()
    }

    /// Whether a processor has a core and no use for it before `until`.
    pub fn wastes_core(&self, until: Cycle) -> bool {
        let mut scheduled = (0..self.processors.len()).filter(|index| self.scheduled[*index]);
        self.exit_code.is_some() && scheduled.clone().next().is_some()
            || scheduled.any(|index| !self.wants_core(index, until))
    }

    /// When a processor that waits has something to do: at once if it has an interrupt already, else when a timer, a
    /// device or what arrives brings one.
    fn next_waking(&self, index: usize) -> Option<Cycle> {
        let clock = self.processors[index].clock();
        let processor = self.processors[index].processor();
        if processor.has_deliverable_interrupt() {
            return Some(clock);
        }
        let timer = processor
            .ticks_to_timer()
            .map(|ticks| clock.saturating_add(ticks));
        let due = [timer, self.next_of_devices(), self.mailboxes[index].next()];
        due.into_iter().flatten().min().map(|time| time.max(clock))
    }

    /// The earliest time at which it may store something for the card.
    pub(crate) fn next_store(&self) -> Option<Cycle> {
        if self.waits_for_driver() {
            None
        } else {
            self.next_activity()
        }
    }

    /// Whether a debugger has halted one of its processors.
    pub fn is_halted(&self) -> bool {
        self.processors.iter().any(VirtualProcessor::is_halted)
    }

    /// Whether nothing but the outside can wake any of its processors.
    pub fn is_asleep(&self) -> bool {
        let rests = |index: usize| {
            let processor = &self.processors[index];
            let resting = matches!(processor.activity, Activity::Waiting | Activity::Stopped);
            let timer =
                processor.activity == Activity::Waiting && processor.processor().ticks_to_timer().is_some();
            resting
                && !timer
                && self.mailboxes[index].is_empty()
                && processor.requests.served() == 0
                && !(processor.activity == Activity::Waiting
                    && processor.processor().has_deliverable_interrupt())
        };
        !self.awaits_devices() && (0..self.processors.len()).all(rests)
    }

    /// Lets its processors go on up to `until`, or to where they cannot without an answer. All answers before `floor`
    /// are known.
    pub fn advance(&mut self, costs: &HostCosts, until: Cycle, floor: Cycle) {
        if let Some((index, until)) = self.interrupted.take() {
            self.run_processor(costs, index, until);
        }
        while self.exit_code.is_none() && !self.is_halted() {
            let bound = self.bound(until, floor);
            let mut ready: Vec<usize> = (0..self.processors.len())
                .filter(|index| self.scheduled[*index] && self.processors[*index].clock() < bound)
                .filter(|index| !self.is_blocked(*index))
                .collect();
            ready.sort_by_key(|index| (self.processors[*index].clock(), *index));
            let Some(first) = ready.first().copied() else {
                return;
            };
            let slice = if self.page_table_lock.is_some() {
                LOCK_SLICE_CYCLES
            } else {
                SLICE_CYCLES
            };
            let apart = ready
                .get(1)
                .map_or(bound, |second| self.processors[*second].clock() + slice);
            self.run_processor(costs, first, bound.min(apart));
        }
    }

    /// Lets time pass up to `until` for processors that cannot go on without an answer.
    pub fn pass(&mut self, until: Cycle) {
        for index in 0..self.processors.len() {
            if self.scheduled[index] && self.is_blocked(index) {
                match self.processors[index].activity {
                    Activity::Polling => self.processors[index].poll_until(until),
                    _ => self.processors[index].wait_until(until),
                }
            }
        }
    }

    /// Lets one processor go on up to `until`, or to where it cannot without an answer.
    fn run_processor(&mut self, costs: &HostCosts, index: usize, until: Cycle) {
        while self.exit_code.is_none() && !self.is_halted() && self.processors[index].clock() < until {
            self.collect(costs, index);
            if self.processors[index].clock() >= until {
                // What has arrived took the time that was left.
                break;
            }
            let due = self.attend(index);
            self.read_queues(index);
            let mailbox = &self.mailboxes[index];
            let next = [mailbox.next(), mailbox.next_debt(), self.next_write(index), due];
            let next = next.into_iter().flatten().min();
            let target = next.map_or(until, |next| {
                next.clamp(self.processors[index].clock() + 1, until)
            });
            let is_blocked = self.is_blocked(index);
            let processor = &mut self.processors[index];
            match processor.activity {
                Activity::Stopped => processor.wait_until(target),
                Activity::Waiting if processor.processor().has_deliverable_interrupt() => {
                    processor.activity = Activity::Running;
                }
                Activity::Polling | Activity::Waiting | Activity::Asking if is_blocked => return,
                Activity::Polling => processor.poll_until(target),
                Activity::Waiting => processor.idle(target),
                Activity::Asking => processor.wait_until(target),
                Activity::Running if processor.is_held() => processor.wait_until(target),
                Activity::Running => self.execute(costs, index, target),
            }
        }
        if self.is_halted() {
            self.interrupted = Some((index, until));
            return;
        }
        self.collect(costs, index);
    }

    /// Executes guest instructions up to an exit, and handles it.
    fn execute(&mut self, costs: &HostCosts, index: usize, until: Cycle) {
        let processor = &mut self.processors[index];
        processor.inject();
        let needed = if processor.is_split() {
            processor.interpret(&self.shared, costs)
        } else {
            let left = processor.run(costs, until - processor.clock());
            processor.handle(&self.shared, costs, left)
        };
        match needed {
            Needed::Nothing => {}
            Needed::Call => self.call(costs, index),
            Needed::Failure => {
                let (ip, _) = self.processors[index].processor().instruction_pointer();
                self.failure = Some(format!(
                    "processor {index} at {ip:#x} refers to where no memory is"
                ));
                self.exit_code = Some(u64::MAX);
            }
        }
        self.note_touched(costs, index);
        self.route(costs, index);
        self.settle();
        self.read_requests(index);
        self.read_doorbell(index);
        self.read_rings(index);
        self.read_queues(index);
    }

    /// Does what the guest's processor asked of its platform: interrupts and purges.
    fn route(&mut self, costs: &HostCosts, index: usize) {
        let mut outbox = self.shared.outbox();
        let changed = std::mem::take(&mut outbox.instructions_changed);
        if outbox.messages.is_empty() && outbox.purges.is_empty() && !changed {
            return;
        }
        let messages = std::mem::take(&mut outbox.messages);
        let purges = std::mem::take(&mut outbox.purges);
        drop(outbox);
        if changed {
            self.instructions_changed(index);
        }
        let time = self.processors[index].clock() + costs.cycles(Cost::Interrupt);
        for (offset, data) in messages {
            let (target, vector) = ((offset >> 12 & 0xff) as usize, data as u8);
            let is_fixed = data >> 8 & 7 <= 1;
            if target < self.processors.len() && is_fixed && vector >= 16 {
                self.interrupt(target, vector, time);
            }
        }
        for purge in purges {
            for processor in &mut self.processors {
                processor.purge_from_outside(purge);
            }
            let cycles = self.purge_others(costs, Some(index));
            self.processors[index].charge_more(cycles);
        }
    }
}
