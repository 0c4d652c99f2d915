//! The issue group that forms, and what happens when it issues.

use super::Pipeline;
use crate::dispersal::Window;
use crate::flags::Flags;
use crate::instruction::DESTINATIONS_MAX;
use crate::parameters::{Cost, Parameters};
use crate::pmu::event::Event;
use crate::pmu::stall::Stall;
use crate::profile::{Group, Issued};
use crate::queues::SystemAccess;
use crate::rules::{BEHIND, Behind, Length};
use crate::scoreboard::Producer;

/// Instructions that can issue together.
const INSTRUCTIONS_MAX: usize = 6;
const WRITES_MAX: usize = INSTRUCTIONS_MAX * DESTINATIONS_MAX;

/// A list of bounded length, held in place.
#[derive(Clone, Copy)]
struct List<T, const N: usize> {
    items: [T; N],
    length: usize,
}

impl<T: Copy + Default, const N: usize> Default for List<T, N> {
    fn default() -> Self {
        List {
            items: [T::default(); N],
            length: 0,
        }
    }
}

impl<T: Copy, const N: usize> List<T, N> {
    #[inline]
    fn push(&mut self, item: T) {
        self.items[self.length] = item;
        self.length += 1;
    }

    #[inline]
    fn as_slice(&self) -> &[T] {
        &self.items[..self.length]
    }
}

/// A register that the group writes: its place on the scoreboard, cycles from issue, producer.
#[derive(Clone, Copy)]
struct Write {
    place: u16,
    latency: u16,
    producer: Producer,
}

impl Default for Write {
    fn default() -> Self {
        Write {
            place: 0,
            latency: 0,
            producer: Producer::Alu,
        }
    }
}

/// The group that forms.
#[derive(Default)]
pub(super) struct Forming {
    pub window: Window,
    pub count: u32,
    /// The bundle of its last instruction, and of its first.
    pub ip: u64,
    pub first_ip: u64,
    /// What its instructions are, together.
    pub flags: Flags,
    /// The rules that its instructions start.
    pub rules: u32,
    pub has_reference: bool,
    /// Loads whose data the first level returns in the next cycle.
    pub first_level_returns: u32,
    pub writes_predicates: bool,
    pub moves_region: bool,
    /// Whether the front end starts again behind it.
    pub is_flushed: bool,
    /// What issues in it, where somebody wants to know.
    pub instructions: Option<Vec<Issued>>,
    writes: List<Write, WRITES_MAX>,
    /// Lines stored to, and how long each store takes.
    stores: List<(u64, u64), INSTRUCTIONS_MAX>,
    /// Accesses to system registers, and the places of what they write.
    system: List<(u16, SystemAccess), INSTRUCTIONS_MAX>,
    /// Bubbles behind the group.
    behind: List<(u8, u64), 16>,
}

impl Default for Flags {
    fn default() -> Self {
        Flags::empty()
    }
}

impl Forming {
    #[inline]
    pub fn write(&mut self, place: u16, latency: u64, producer: Producer) {
        self.writes.push(Write {
            place,
            latency: u16::try_from(latency).unwrap_or(u16::MAX),
            producer,
        });
    }

    /// A reference whose address nobody knows, in a listing that is timed without being run: it hits the first level
    /// and meets no other.
    pub fn refer_to_unknown(&mut self, flags: Flags) {
        self.has_reference = true;
        self.first_level_returns +=
            u32::from(flags.contains(Flags::LOAD) && !flags.contains(Flags::SECOND_LEVEL));
    }

    pub fn store(&mut self, line: u64, duration: u64) {
        self.stores.push((line, duration));
    }

    pub fn stores(&self) -> &[(u64, u64)] {
        self.stores.as_slice()
    }

    pub fn system_access(&mut self, place: u16, access: SystemAccess) {
        self.system.push((place, access));
    }

    /// Bubbles that follow the group.
    pub fn behind(&mut self, stall: Stall, bubbles: u64) {
        if self.behind.length < self.behind.items.len() {
            self.behind.push((stall as u8, bubbles));
        }
    }

    /// The bubbles behind an instruction that everything waits for.
    pub fn behind_rule(&mut self, behind: Behind, parameters: &Parameters) {
        let (named, parts) = BEHIND[behind as usize];
        assert_eq!(named, behind, "the rows are in the order of the enumeration");
        for (stall, length) in parts {
            let bubbles = match length {
                Length::Bubbles(bubbles) => u64::from(*bubbles),
                Length::Of(cost) => parameters.cost(*cost),
            };
            self.behind(*stall, bubbles);
            self.is_flushed |= *stall == Stall::FrontEnd;
        }
    }

    /// Leaves the pipeline to be flushed behind the group.
    pub fn flush(&mut self) {
        self.is_flushed = true;
        self.flags |= Flags::SERIALIZES;
        self.behind.push((Stall::FlushException as u8, FLUSH));
        self.behind.push((Stall::FrontEnd as u8, FLUSH));
    }

    /// Empty again, in the same bundle.
    fn reset(&mut self) {
        let ip = self.ip;
        self.window = Window::default();
        self.count = 0;
        self.first_ip = ip;
        self.flags = Flags::empty();
        self.rules = 0;
        self.has_reference = false;
        self.first_level_returns = 0;
        self.writes_predicates = false;
        self.moves_region = false;
        self.is_flushed = false;
        self.instructions = None;
        self.writes.length = 0;
        self.stores.length = 0;
        self.system.length = 0;
        self.behind.length = 0;
    }
}

/// Stands for the parameters' lengths of a flush.
const FLUSH: u64 = u64::MAX;

impl Pipeline {
    /// Issues the group that forms, if there is one, and begins another.
    #[inline]
    pub(super) fn close(&mut self) {
        if self.forming.count == 0 {
            return;
        }
        let mut at = self.cycle + 1;
        let mut bubbles = Vec::new();
        while self.waits != 0 {
            let index = self.waits.trailing_zeros() as usize;
            self.waits &= self.waits - 1;
            if self.until[index] > at {
                let length = self.until[index] - at;
                self.booked[index] += length;
                at = self.until[index];
                if self.is_recorded {
                    bubbles.push((Stall::ALL[index], length, self.owner[index]));
                }
            }
        }
        self.cycle = at;
        self.groups += 1;
        if self.is_recorded {
            self.record_group(bubbles);
        }
        if self.performance_monitor.has_threshold() {
            let (now, before) = (&self.values, &self.values_before);
            self.performance_monitor.cycle(|event| match event {
                Event::CpuCycles => 1,
                event => event.parts().of(now) - event.parts().of(before),
            });
            self.values_before = self.values;
        }
        self.issue(at);
        self.forming.reset();
    }

    #[inline]
    fn issue(&mut self, at: u64) {
        for index in 0..self.forming.writes.length {
            let write = self.forming.writes.items[index];
            self.scoreboard
                .set(write.place, at + u64::from(write.latency), write.producer);
        }
        for index in 0..self.forming.stores.length {
            let (line, duration) = self.forming.stores.items[index];
            self.stores.push(line, at, duration);
        }
        let mut rules = self.forming.rules;
        while rules != 0 {
            self.last[rules.trailing_zeros() as usize] = at;
            rules &= rules - 1;
        }
        if self.forming.system.length > 0 || self.forming.writes_predicates {
            self.issue_system(at);
        }
        if self.forming.has_reference {
            let conflict = self.parameters.cost(Cost::RegionConflictDistance);
            if self.last_region_move + conflict == at {
                let bubbles = self.parameters.cost(Cost::RegionConflict);
                self.forming.behind(Stall::Recirculation, bubbles);
            }
            if self.forming.first_level_returns >= 2 && self.system_queue.returns_at(at + 1) {
                let bubbles = self.parameters.cost(Cost::WritebackConflict);
                self.forming.behind(Stall::Recirculation, bubbles);
            }
        }
        if self.forming.moves_region {
            self.last_region_move = at;
        }
        if self.forming.behind.length > 0 {
            self.wait_behind(at);
        }
    }

    fn issue_system(&mut self, at: u64) {
        for index in 0..self.forming.system.length {
            let (place, access) = self.forming.system.items[index];
            let done = self.system_queue.push(at, access);
            if access.reads && done > at + access.latency {
                self.scoreboard.set(place, done, Producer::System);
            }
        }
        if self.forming.writes_predicates {
            let ready = at + self.parameters.cost(Cost::ToPredicates);
            self.scoreboard.set_predicates(ready);
        }
    }

    /// Turns the bubbles behind the group into waits of the next one.
    fn wait_behind(&mut self, at: u64) {
        let mut until = at + 1;
        let owner = self.forming.ip;
        // What is further down the pipeline holds everything up first.
        let length = self.forming.behind.length;
        self.forming.behind.items[..length].sort_by_key(|(stall, _)| *stall);
        for index in 0..self.forming.behind.length {
            let (stall, bubbles) = self.forming.behind.items[index];
            let stall = Stall::ALL[usize::from(stall)];
            let bubbles = match (bubbles, stall) {
                (FLUSH, Stall::FrontEnd) => self.parameters.cost(Cost::FrontEndRefill),
                (FLUSH, _) => self.parameters.cost(Cost::ExceptionFlush),
                (bubbles, _) => bubbles,
            };
            until += bubbles;
            self.note_wait(stall, until, owner);
        }
        if self.forming.is_flushed {
            self.fetch.restart(until - 1);
        }
    }

    #[cold]
    fn record_group(&mut self, bubbles: Vec<(Stall, u64, u64)>) {
        if let Some(sampler) = &mut self.sampler {
            sampler.issued(self.cycle - super::START, self.forming.first_ip, &bubbles);
        }
        if let Some(profile) = &mut self.profile {
            let place = profile.places.entry(self.forming.first_ip).or_default();
            place.issue_cycles += 1;
            place.executions += 1;
            for (stall, length, owner) in &bubbles {
                let place = profile.places.entry(*owner).or_default();
                place.bubbles[*stall as usize] += length;
            }
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.push(Group {
                cycle: self.cycle - super::START,
                bubbles,
                instructions: self.forming.instructions.take().unwrap_or_default(),
            });
        }
    }
}
