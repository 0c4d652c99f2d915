//! The issue group that forms, and what happens when it issues.

use super::timing::{Closed, Timing};
use crate::dispersal::Window;
use crate::flags::Flags;
use crate::instruction::DESTINATIONS_MAX;
use crate::parameters::{Cost, Parameters};
use crate::pmu::stall::Stall;
use crate::profile::Issued;
use crate::queues::SystemAccess;
use crate::rules::{BEHIND, Behind, Length};
use crate::scoreboard::Producer;

/// Instructions that can issue together.
pub const ISSUED_MAX: usize = 6;
const WRITES_MAX: usize = ISSUED_MAX * DESTINATIONS_MAX;

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
    /// Loads that the second level has to answer.
    pub second_level_loads: u32,
    pub stores: usize,
    pub writes_predicates: bool,
    pub moves_region: bool,
    /// Whether the front end starts again behind it.
    pub is_flushed: bool,
    /// What issues in it, where somebody wants to know.
    pub instructions: Option<Vec<Issued>>,
    writes: List<Write, WRITES_MAX>,
    /// How long each request to the second level takes.
    requests: List<u64, ISSUED_MAX>,
    /// Accesses to system registers, and the places of what they write.
    system: List<(u16, SystemAccess), ISSUED_MAX>,
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

    /// A request to the second level that takes this long.
    pub fn request(&mut self, duration: u64) {
        self.requests.push(duration);
    }

    /// How many requests to the second level are in it.
    pub fn requests(&self) -> usize {
        self.requests.length
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

    /// The group that forms as numbers, for [`Forming::put_back`]; registers go by what `name` makes of their places.
    pub fn numbers(&self, mut out: impl FnMut(u64), name: impl Fn(u16) -> usize) {
        let marks = [
            self.has_reference,
            self.writes_predicates,
            self.moves_region,
            self.is_flushed,
        ];
        out(u64::from(self.window.number()));
        out(self.count.into());
        out(self.flags.bits() & 0xffff_ffff);
        out(self.flags.bits() >> 32);
        out(self.rules.into());
        out(self.first_level_returns.into());
        out(self.second_level_loads.into());
        out(self.stores as u64);
        out(marks.iter().fold(0, |marks, mark| marks << 1 | u64::from(*mark)));
        out(self.writes.length as u64);
        for write in self.writes.as_slice() {
            out(name(write.place) as u64);
            out(u64::from(write.latency) << 4 | write.producer as u64);
        }
        out(self.requests.length as u64);
        self.requests
            .as_slice()
            .iter()
            .for_each(|duration| out(*duration));
        out(self.system.length as u64);
        for (place, access) in self.system.as_slice() {
            out(name(*place) as u64);
            out(access.latency << 2 | u64::from(access.reads) << 1 | u64::from(access.is_timer));
        }
        out(self.behind.length as u64);
        for (stall, bubbles) in self.behind.as_slice() {
            out((*stall).into());
            out(*bubbles);
        }
    }

    /// Puts back the group whose numbers these are, in the bundle at `ip`.
    pub fn put_back(&mut self, ip: u64, mut next: impl FnMut() -> u64, place: impl Fn(usize) -> u16) {
        self.ip = ip;
        self.reset();
        self.window = Window::of_number(next() as u32);
        self.count = next() as u32;
        self.flags = Flags::from_bits_retain(next() | next() << 32);
        self.rules = next() as u32;
        self.first_level_returns = next() as u32;
        self.second_level_loads = next() as u32;
        self.stores = next() as usize;
        let marks = next();
        let mark = |place: u32| marks >> place & 1 != 0;
        (self.has_reference, self.writes_predicates) = (mark(3), mark(2));
        (self.moves_region, self.is_flushed) = (mark(1), mark(0));
        for _ in 0..next() {
            let place = place(next() as usize);
            let word = next();
            self.writes.push(Write {
                place,
                latency: (word >> 4) as u16,
                producer: Producer::ALL[(word & 15) as usize],
            });
        }
        for _ in 0..next() {
            self.requests.push(next());
        }
        for _ in 0..next() {
            let place = place(next() as usize);
            let word = next();
            let access = SystemAccess {
                latency: word >> 2,
                reads: word >> 1 & 1 != 0,
                is_timer: word & 1 != 0,
            };
            self.system.push((place, access));
        }
        for _ in 0..next() {
            let stall = next() as u8;
            self.behind.push((stall, next()));
        }
    }

    /// Empty, in the bundle at `ip`.
    pub fn clear(&mut self, ip: u64) {
        self.ip = ip;
        self.reset();
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
        self.second_level_loads = 0;
        self.stores = 0;
        self.writes_predicates = false;
        self.moves_region = false;
        self.is_flushed = false;
        self.instructions = None;
        self.writes.length = 0;
        self.requests.length = 0;
        self.system.length = 0;
        self.behind.length = 0;
    }
}

/// Stands for the parameters' lengths of a flush.
const FLUSH: u64 = u64::MAX;

impl Timing {
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
            self.closed.push(Closed {
                cycle: at,
                first_ip: self.forming.first_ip,
                bubbles,
                instructions: self.forming.instructions.take().unwrap_or_default(),
            });
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
        for _ in 0..self.forming.stores {
            self.stores.push(at);
        }
        for index in 0..self.forming.requests.length {
            self.requests.push(at, self.forming.requests.items[index]);
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
            self.restart(until - 1, until - 1 - at);
        }
    }
}
