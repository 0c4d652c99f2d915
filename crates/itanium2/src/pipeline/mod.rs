//! The pipeline: in order, two bundles a cycle, every cycle booked to issue or to one cause.
//!
//! Instructions are collected into an issue group until something ends it: a stop, a port that is taken, the end of
//! the two-bundle window, a taken branch, or a rule of split issue. Then the group issues in the cycle after the one
//! before, or when the last thing it waits for is there; the cycles between are bubbles. What an instruction makes
//! those behind it wait for (flushes, recirculation, the register stack) becomes a wait of the next group.
//!
//! What an instruction waits for has two sides. Caches, translation buffers and predictors answer by the order of
//! references and branches alone (`answers`); ports, registers, queues and cycles are the pipeline proper (`timing`,
//! `group`, `fetch`), which goes by these answers. What a block costs therefore follows from the state in which it is
//! entered (`canonical`) and from the answers, and is booked as a whole once it is known (`memo`, `together`).
//!
//! One [`Pipeline`] models one processor. Attach it as the observer of a run; it may be detached and attached again.

mod answers;
mod canonical;
mod fetch;
mod group;
mod memo;
mod observe;
mod signature;
mod timing;
mod together;

use std::hash::{DefaultHasher, Hash, Hasher};

use sidestep_ia64::execution::State;
use sidestep_ia64::{PhysicalAddress, alat};

use crate::branches::Predictor;
use crate::memory::Memory;
use crate::parameters::{Cost, Parameters};
use crate::pmu::counters::Counters;
use crate::pmu::event::Event;
use crate::pmu::registers::PerformanceMonitor;
use crate::pmu::sampling::Sampler;
use crate::profile::{Group, Profile};
use answers::{LastLoads, LastStores};
use fetch::{Lost, Position};
pub use group::ISSUED_MAX;
pub use memo::Booking;
use memo::Memo;
use timing::{Closed, START, Timing};

/// A model of one processor's pipeline.
pub struct Pipeline {
    /// Tells pipelines of other parameters apart, for whom instructions are read otherwise.
    version: u64,
    timing: Timing,
    values: [u64; Event::COUNT],
    memory: Memory,
    predictor: Predictor,
    position: Position,
    last_stores: LastStores,
    last_loads: LastLoads,
    store_unit_log2: u32,
    data_line_log2: u32,
    /// Cycles of a hit in the second level.
    second_level: u64,
    /// The cycle from which on no further block executes.
    halt: u64,
    /// The processor as events have told of it.
    seen: State,
    /// The register stack's traffic that has been booked.
    spills: u64,
    fills: u64,
    /// What had happened to advanced loads before the last one.
    advanced_loads: alat::Events,
    /// The branch registers before the last instruction.
    branch_registers: [u64; 8],
    privilege_level: u8,
    /// Whether the registers' names have to be read from the processor.
    is_attached: bool,
    performance_monitor: PerformanceMonitor,
    /// The processor status register that the performance monitor is configured for.
    monitored_status: u64,
    /// Whether its registers may have changed since, which the next instruction that may change the status takes up.
    is_monitor_changed: bool,
    /// The values when the last group had issued, for counters with a threshold.
    values_before: [u64; Event::COUNT],
    /// Whether an instruction may have programmed the performance monitor.
    is_configured_anew: bool,
    /// Whether the interval time counter follows the model's cycles, and by how much they were ahead of the
    /// instructions when it was brought up to date last.
    clock: Option<u64>,
    profile: Option<Box<Profile>>,
    timeline: Option<Vec<Group>>,
    sampler: Option<Box<Sampler>>,
    memo: Memo,
    /// Whether blocks may be booked as a whole, until something happens that decides it anew.
    is_bookable: bool,
}

impl Pipeline {
    /// A pipeline with cold caches.
    pub fn new(parameters: Parameters) -> Pipeline {
        let mut hasher = DefaultHasher::new();
        parameters.hash(&mut hasher);
        let mut pipeline = Pipeline {
            memo: Memo::new(false),
            version: hasher.finish(),
            values: [0; Event::COUNT],
            memory: Memory::new(&parameters),
            predictor: Predictor::default(),
            position: Position::new(),
            last_stores: LastStores::default(),
            last_loads: LastLoads::default(),
            store_unit_log2: (parameters.cost(Cost::StoreUnitLog2) as u32).min(u64::BITS - 1),
            second_level: parameters.l2.latency.into(),
            data_line_log2: parameters.l1d.line.trailing_zeros(),
            timing: Timing::new(parameters),
            halt: u64::MAX,
            seen: State::default(),
            spills: 0,
            fills: 0,
            advanced_loads: alat::Events::default(),
            branch_registers: [0; 8],
            privilege_level: 0,
            is_attached: false,
            performance_monitor: PerformanceMonitor::default(),
            monitored_status: 0,
            is_monitor_changed: false,
            values_before: [0; Event::COUNT],
            is_configured_anew: true,
            clock: None,
            profile: None,
            timeline: None,
            sampler: None,
            is_bookable: false,
        };
        pipeline.book_blocks(true);
        pipeline
    }

    /// Whether blocks are booked as a whole where what they cost is known, as they are unless somebody says otherwise.
    /// No number depends on it. Blocks of runs that are sampled or drawn as a timeline, and of guests whose performance
    /// monitor counts, are always computed.
    pub fn book_blocks(&mut self, wanted: bool) {
        self.settle();
        self.is_bookable = false;
        self.memo.is_on = wanted && self.has_canonical_states();
    }

    /// How often blocks were booked as a whole.
    pub fn booking(&self) -> Booking {
        self.memo.statistics
    }

    /// The numbers it works with.
    pub fn parameters(&self) -> &Parameters {
        &self.timing.parameters
    }

    /// Attributes cycles to bundles from now on.
    pub fn enable_profile(&mut self) {
        self.is_bookable = false;
        self.settle();
        self.forget();
        self.profile = Some(Box::default());
        self.timing.is_recorded = true;
    }

    /// Takes samples from now on: from the start of a run, as events before it would count at its first instruction.
    pub fn enable_samples(&mut self, sampler: Sampler) {
        self.is_bookable = false;
        self.settle();
        self.forget();
        self.sampler = Some(Box::new(sampler));
        self.timing.is_recorded = true;
    }

    /// Whoever takes samples, with what was sampled.
    pub fn sampler(&self) -> Option<&Sampler> {
        self.sampler.as_deref()
    }

    /// The cycles by bundle up to the last [`Pipeline::finish`], if they are wanted.
    pub fn profile(&self) -> Option<&Profile> {
        self.profile.as_deref()
    }

    /// Keeps every cycle from now on, for a table.
    pub fn enable_timeline(&mut self) {
        self.is_bookable = false;
        self.settle();
        self.forget();
        self.timeline = Some(Vec::new());
        self.timing.is_recorded = true;
    }

    /// Every cycle since [`Pipeline::enable_timeline`], with what issued in it; issues the group that forms.
    pub fn take_timeline(&mut self) -> Vec<Group> {
        self.close();
        self.forget();
        let timeline = self.timeline.take().unwrap_or_default();
        self.timing.is_recorded = self.profile.is_some() || self.sampler.is_some();
        timeline
    }

    /// The counters once the group that forms has issued, which it then has: for the end of a run, or of a part of it.
    pub fn finish(&mut self) -> Counters {
        self.close();
        self.settle_up();
        self.counters()
    }

    /// The counters, without the group that forms.
    ///
    /// # Panics
    /// If issue cycles and bubbles do not add up to the cycles: a broken invariant of the model.
    pub fn counters(&self) -> Counters {
        let (mut values, mut booked) = (self.values, self.timing.booked);
        self.memo.add_up(&mut booked, &mut values);
        Counters::new(values, booked, self.timing.groups, self.timing.cycle - START)
    }

    /// Issues the group that forms and lets cycles pass in which every register becomes ready: for measurements that
    /// must not depend on what came before. These cycles are booked to the front end.
    pub fn rest(&mut self, cycles: u64) {
        self.close();
        self.timing.rest(cycles);
        self.follow_restart();
    }

    /// Has runs end, before a block, once so many cycles have passed: for a driver whose limit is in cycles.
    pub fn halt_at(&mut self, cycles: u64) {
        self.halt = cycles.saturating_add(START);
    }

    /// Says that virtual addresses are those of another address space from now on, of which a number tells it apart:
    /// those of another virtual machine.
    pub fn enter_space(&mut self, number: u64) {
        self.memory.enter_space(number);
    }

    /// Brings the lines of `bytes` from a physical address on into the caches, as if somebody else than what is
    /// modelled had read or written them here. Nothing is counted.
    pub fn touch(&mut self, address: PhysicalAddress, bytes: u64, writes: bool) {
        self.memory.touch(address.0, bytes, writes);
    }

    /// Says that the processor has run, or was changed, without the pipeline, or that another one comes next.
    pub fn detach(&mut self) {
        self.close();
        self.is_attached = false;
        self.is_bookable = false;
    }

    /// Cycles up to the last group that issued.
    pub fn cycles(&self) -> u64 {
        self.timing.cycle - START
    }

    /// Lets the interval time counter follow the model's cycles from now on, not the number of instructions.
    pub fn drive_clock(&mut self) {
        self.settle();
        self.clock = Some(self.ahead(self.timing.expected()));
    }

    /// By how many cycles the interval time counter is to go on, if it follows the model's cycles: for a driver to ask
    /// between two stretches of a run, so that a timer is not late by more than a stretch.
    pub fn take_clock(&mut self) -> Option<u64> {
        let before = self.clock?;
        self.settle();
        let ahead = self.ahead(self.timing.expected());
        self.clock = Some(ahead);
        Some(ahead.wrapping_sub(before))
    }

    /// How many cycles the model is ahead of one cycle an instruction.
    fn ahead(&self, at: u64) -> u64 {
        at.wrapping_sub(START)
            .wrapping_sub(self.values[Event::InstructionsRetired as usize])
    }

    /// The counters as an instruction sees them that issues when the group that forms would.
    fn counters_ahead(&mut self) -> Counters {
        self.settle_up();
        let (booked, cycle) = self.timing.booked_ahead();
        Counters::new(self.values, booked, self.timing.groups, cycle - START)
    }

    /// Issues the group that forms, if there is one.
    fn close(&mut self) {
        self.settle();
        let groups = self.timing.groups;
        self.timing.close();
        self.note_groups(groups);
        self.follow_restart();
    }

    /// The front end goes where the pipeline has started it again.
    #[inline]
    fn follow_restart(&mut self) {
        if std::mem::take(&mut self.timing.has_restarted) {
            self.position.redirect();
        }
        self.count_front_end();
    }

    /// Counts the cycles that the front end has lost since somebody looked.
    #[inline]
    fn count_front_end(&mut self) {
        let Lost { flushed, resteered } = std::mem::take(&mut self.timing.front_end.lost);
        self.values[Event::FrontEndFlush as usize] += flushed;
        self.values[Event::FrontEndResteer as usize] += resteered;
    }

    /// Tells whoever looks at every group of those that have issued since there were so many.
    #[inline]
    fn note_groups(&mut self, before: u64) {
        if self.timing.groups != before
            && (self.timing.is_recorded || self.performance_monitor.has_threshold())
        {
            self.record_groups(self.timing.groups - before);
        }
    }

    #[cold]
    fn record_groups(&mut self, groups: u64) {
        if self.performance_monitor.has_threshold() {
            for _ in 0..groups {
                let (now, before) = (&self.values, &self.values_before);
                self.performance_monitor.cycle(|event| match event {
                    Event::CpuCycles => 1,
                    event => event.parts().of(now) - event.parts().of(before),
                });
                self.values_before = self.values;
            }
        }
        for closed in std::mem::take(&mut self.timing.closed) {
            self.record(closed);
        }
    }

    fn record(&mut self, group: Closed) {
        let cycle = group.cycle - START;
        if let Some(sampler) = &mut self.sampler {
            sampler.issued(cycle, group.first_ip, &group.bubbles);
        }
        if let Some(profile) = &mut self.profile {
            let place = profile.places.entry(group.first_ip).or_default();
            place.issue_cycles += 1;
            place.executions += 1;
            for (stall, length, owner) in &group.bubbles {
                let place = profile.places.entry(*owner).or_default();
                place.bubbles[*stall as usize] += length;
            }
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.push(Group {
                cycle,
                bubbles: group.bubbles,
                instructions: group.instructions,
            });
        }
    }
}
