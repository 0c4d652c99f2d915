//! The pipeline: in order, two bundles a cycle, every cycle booked to issue or to one cause.
//!
//! Instructions are collected into an issue group until something ends it: a stop, a port that is taken, the end of
//! the two-bundle window, a taken branch, or a rule of split issue. Then the group issues in the cycle after the one
//! before, or when the last thing it waits for is there; the cycles between are bubbles. What an instruction makes
//! those behind it wait for (flushes, recirculation, the register stack) becomes a wait of the next group.
//!
//! One [`Pipeline`] models one processor. Attach it as the observer of a run; it may be detached and attached again.

mod execute;
mod fetch;
mod group;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use sidestep_ia64::encoding::{DecodedSlot, Instruction};
use sidestep_ia64::execution::{
    Dynamic, Event as Told, Interruption, MonitorRegisters, Observer, Permission, Place, State,
    Translation as PhysicalAddresses,
};
use sidestep_ia64::fault::{FaultKind, isr};
use sidestep_ia64::{PhysicalAddress, alat};

use crate::branches::Predictor;
use crate::flags::Flags;
use crate::instruction::StaticInstruction;
use crate::memory::Memory;
use crate::parameters::{Cost, Parameters};
use crate::pmu::counters::Counters;
use crate::pmu::event::Event;
use crate::pmu::event_address::{Fetched, Loaded, TranslatedBy};
use crate::pmu::registers::PerformanceMonitor;
use crate::pmu::sampling::{Sample, Sampler};
use crate::pmu::stall::Stall;
use crate::profile::{Group, Issued, Profile};
use crate::queues::{StoreBuffer, SystemQueue};
use crate::rules::RULES;
use crate::scoreboard::Scoreboard;
use fetch::Fetch;
use group::Forming;

/// A cycle before every other: rules and registers start as if used long ago.
const START: u64 = 1000;

/// A model of one processor's pipeline.
pub struct Pipeline {
    parameters: Parameters,
    /// Tells pipelines of other parameters apart, for whom instructions are read otherwise.
    version: u64,
    /// The cycle in which the last group issued.
    cycle: u64,
    groups: u64,
    booked: [u64; Stall::COUNT],
    values: [u64; Event::COUNT],
    /// Until when the group that forms has to wait, by cause; valid where `waits` has the cause's bit.
    until: [u64; Stall::COUNT],
    /// The bundle that a wait is booked to.
    owner: [u64; Stall::COUNT],
    waits: u32,
    forming: Forming,
    scoreboard: Scoreboard,
    memory: Memory,
    predictor: Predictor,
    fetch: Fetch,
    system_queue: SystemQueue,
    stores: StoreBuffer,
    /// When an instruction that starts a rule issued last.
    last: [u64; RULES.len()],
    last_region_move: u64,
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
    monitor: PerformanceMonitor,
    /// Where the last reference to data found its translation, if not in the first level.
    translated_by: Option<TranslatedBy>,
    /// The values when the last group had issued, for counters with a threshold.
    values_before: [u64; Event::COUNT],
    /// Whether an instruction may have programmed the monitor.
    is_configured_anew: bool,
    /// Whether the interval time counter follows the model's cycles, and by how much they were ahead of the
    /// instructions when it was brought up to date last.
    clock: Option<u64>,
    profile: Option<Box<Profile>>,
    timeline: Option<Vec<Group>>,
    sampler: Option<Box<Sampler>>,
    /// Whether somebody wants to know of every group: the three above.
    is_recorded: bool,
}

impl Pipeline {
    /// A pipeline with cold caches.
    pub fn new(parameters: Parameters) -> Pipeline {
        let mut hasher = DefaultHasher::new();
        parameters.hash(&mut hasher);
        let queue_entries = parameters.cost(Cost::SystemQueueEntries) as usize;
        let interval = parameters.cost(Cost::TimerInterval);
        Pipeline {
            cycle: START,
            groups: 0,
            booked: [0; Stall::COUNT],
            values: [0; Event::COUNT],
            until: [0; Stall::COUNT],
            owner: [0; Stall::COUNT],
            waits: 0,
            forming: Forming::default(),
            scoreboard: Scoreboard::new(&parameters),
            memory: Memory::new(&parameters),
            predictor: Predictor::default(),
            fetch: Fetch::new(START),
            system_queue: SystemQueue::new(queue_entries, interval),
            stores: StoreBuffer::new(parameters.cost(Cost::StoreBufferEntries) as usize),
            last: [0; RULES.len()],
            last_region_move: 0,
            halt: u64::MAX,
            seen: State::default(),
            spills: 0,
            fills: 0,
            advanced_loads: alat::Events::default(),
            branch_registers: [0; 8],
            privilege_level: 0,
            is_attached: false,
            monitor: PerformanceMonitor::default(),
            translated_by: None,
            values_before: [0; Event::COUNT],
            is_configured_anew: true,
            clock: None,
            profile: None,
            timeline: None,
            sampler: None,
            is_recorded: false,
            version: hasher.finish(),
            parameters,
        }
    }

    /// The numbers it works with.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Attributes cycles to bundles from now on.
    pub fn enable_profile(&mut self) {
        self.profile = Some(Box::default());
        self.is_recorded = true;
    }

    /// Takes samples from now on: from the start of a run, as events before it would count at its first instruction.
    pub fn enable_samples(&mut self, sampler: Sampler) {
        self.sampler = Some(Box::new(sampler));
        self.is_recorded = true;
    }

    /// Whoever takes samples, with what was sampled.
    pub fn sampler(&self) -> Option<&Sampler> {
        self.sampler.as_deref()
    }

    /// The cycles by bundle, if they are wanted.
    pub fn profile(&self) -> Option<&Profile> {
        self.profile.as_deref()
    }

    /// Keeps every cycle from now on, for a table.
    pub fn enable_timeline(&mut self) {
        self.timeline = Some(Vec::new());
        self.is_recorded = true;
    }

    /// Every cycle since [`Pipeline::enable_timeline`], with what issued in it; issues the group that forms.
    pub fn take_timeline(&mut self) -> Vec<Group> {
        self.close();
        let timeline = self.timeline.take().unwrap_or_default();
        self.is_recorded = self.profile.is_some() || self.sampler.is_some();
        timeline
    }

    /// The counters once the group that forms has issued, which it then has: for the end of a run, or of a part of it.
    pub fn finish(&mut self) -> Counters {
        self.close();
        self.counters()
    }

    /// The counters, without the group that forms.
    ///
    /// # Panics
    /// If issue cycles and bubbles do not add up to the cycles: a broken invariant of the model.
    pub fn counters(&self) -> Counters {
        Counters::new(self.values, self.booked, self.groups, self.cycle - START)
    }

    /// Issues the group that forms and lets cycles pass in which every register becomes ready: for measurements that
    /// must not depend on what came before. These cycles are booked to the front end.
    pub fn rest(&mut self, cycles: u64) {
        self.close();
        let until = self.cycle + cycles;
        self.booked[Stall::FrontEnd as usize] += cycles;
        self.cycle = until;
        self.waits = 0;
        self.fetch.restart(until);
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
    }

    /// Cycles up to the last group that issued.
    pub fn cycles(&self) -> u64 {
        self.cycle - START
    }

    /// Lets the interval time counter follow the model's cycles from now on, not the number of instructions.
    pub fn drive_clock(&mut self) {
        self.clock = Some(self.ahead(self.expected()));
    }

    /// By how many cycles the interval time counter is to go on, if it follows the model's cycles: for a driver to ask
    /// between two stretches of a run, so that a timer is not late by more than a stretch.
    pub fn take_clock(&mut self) -> Option<u64> {
        let before = self.clock?;
        let ahead = self.ahead(self.expected());
        self.clock = Some(ahead);
        Some(ahead.wrapping_sub(before))
    }

    /// How many cycles the model is ahead of one cycle an instruction.
    fn ahead(&self, at: u64) -> u64 {
        at.wrapping_sub(START)
            .wrapping_sub(self.values[Event::InstructionsRetired as usize])
    }

    /// The counters as an instruction sees them that issues when the group that forms would.
    fn counters_ahead(&self) -> Counters {
        let mut booked = self.booked;
        let mut at = self.cycle + 1;
        for stall in Stall::ALL {
            let index = *stall as usize;
            if self.waits >> index & 1 != 0 && self.until[index] > at {
                booked[index] += self.until[index] - at;
                at = self.until[index];
            }
        }
        Counters::new(self.values, booked, self.groups, at - 1 - START)
    }

    /// Waits of an instruction for its operands, its rules and the queues.
    #[inline]
    fn wait_for_operands(&mut self, known: &StaticInstruction, executed: bool) {
        let earliest = self.cycle + 1;
        if !self.scoreboard.is_quiet(earliest) {
            let (ready, stall) = self.scoreboard.ready(known.predicate, known.predicate_use);
            self.wait(stall, ready);
            if executed {
                for (operand, used) in known.sources() {
                    let (ready, stall) = self.scoreboard.ready(*operand, *used);
                    self.wait(stall, ready);
                }
            }
        }
        if executed && known.rules_to != 0 {
            let mut rules = known.rules_to;
            while rules != 0 {
                let index = rules.trailing_zeros() as usize;
                rules &= rules - 1;
                let rule = &RULES[index];
                self.wait(rule.stall, self.last[index] + u64::from(rule.cycles));
            }
        }
    }

    /// Makes the group that forms wait.
    #[inline]
    fn wait(&mut self, stall: Stall, until: u64) {
        if until > self.cycle + 1 {
            self.note_wait(stall, until, self.forming.ip);
        }
    }

    fn note_wait(&mut self, stall: Stall, until: u64, owner: u64) {
        let index = stall as usize;
        let bit = 1 << index;
        if self.waits & bit == 0 || self.until[index] < until {
            self.waits |= bit;
            self.until[index] = until;
            self.owner[index] = owner;
        }
    }

    /// When the group that forms would issue if it ended now.
    fn expected(&self) -> u64 {
        let mut at = self.cycle + 1;
        let mut waits = self.waits;
        while waits != 0 {
            at = at.max(self.until[waits.trailing_zeros() as usize]);
            waits &= waits - 1;
        }
        at
    }

    fn count(&mut self, executed: bool, flags: Flags) {
        self.values[Event::InstructionsRetired as usize] += 1;
        if flags.contains(Flags::NOP) {
            self.values[Event::NopsRetired as usize] += 1;
        } else if !executed {
            self.values[Event::PredicateSquashed as usize] += 1;
        } else if flags.intersects(Flags::FLOAT | Flags::SERIALIZES | Flags::PRIVILEGE) {
            if flags.contains(Flags::FLOAT) {
                let operations = if flags.contains(Flags::MULTIPLY_ADD) { 2 } else { 1 };
                self.values[Event::FloatOperationsRetired as usize] += operations;
            }
            self.values[Event::SerializationEvents as usize] += u64::from(flags.contains(Flags::SERIALIZES));
            self.note_privilege();
        }
    }

    fn note_privilege(&mut self) {
        let level = self.seen.privilege_level();
        self.values[Event::PrivilegeChanges as usize] += u64::from(level != self.privilege_level);
        self.privilege_level = level;
    }

    /// Takes over the processor's state when it was run without the pipeline, or for the first time.
    fn attach(&mut self) {
        self.is_attached = true;
        self.scoreboard.rename(&self.seen.frame);
        (self.spills, self.fills) = (self.seen.frame.spills, self.seen.frame.fills);
        self.privilege_level = self.seen.privilege_level();
        self.branch_registers = self.seen.branch;
        self.advanced_loads = self.seen.advanced_loads;
    }

    /// Flushes the pipeline behind what has retired.
    fn interrupt_pipeline(&mut self) {
        if self.forming.count == 0 {
            let flush = self.parameters.cost(Cost::ExceptionFlush);
            let refill = self.parameters.cost(Cost::FrontEndRefill);
            let start = self.expected();
            self.note_wait(Stall::FlushException, start + flush, self.forming.ip);
            self.note_wait(Stall::FrontEnd, start + flush + refill, self.forming.ip);
            self.fetch.restart(start + flush + refill - 1);
        } else {
            self.forming.flush();
            self.close();
        }
    }
}

impl Observer for Pipeline {
    type Static = StaticInstruction;

    fn version(&self) -> u64 {
        self.version
    }

    fn decode(&mut self, instruction: &Instruction, slot: &DecodedSlot) -> StaticInstruction {
        StaticInstruction::new(instruction, slot, &self.parameters)
    }

    #[inline]
    fn retired(&mut self, known: &StaticInstruction, dynamic: &Dynamic<'_>) {
        if !self.is_attached {
            self.attach();
        }
        let flags = known.flags;
        let Place { ip, slot } = dynamic.place;
        if self.monitor.is_restricted() {
            self.monitor
                .begin(&self.seen, known.opcode, dynamic, &self.values);
        }
        self.take_bundle(dynamic.memory, ip);
        let port = self.disperse(known);
        self.count(dynamic.executed, flags);
        self.wait_for_operands(known, dynamic.executed);
        if self.timeline.is_some() {
            let issued = Issued {
                ip,
                slot,
                port,
                executed: dynamic.executed,
            };
            self.forming.instructions.get_or_insert_default().push(issued);
        }
        if dynamic.executed && !flags.contains(Flags::NOP) {
            self.execute(known, dynamic);
        } else if flags.contains(Flags::BRANCH) {
            self.branch(known, dynamic);
        }
        if self.monitor.is_restricted() {
            self.monitor.end(&self.values);
        }
        if self.is_configured_anew || flags.intersects(Flags::PRIVILEGE | Flags::STATUS) {
            self.is_configured_anew = false;
            let now = self.counters_ahead();
            self.monitor.update(&self.seen, &now);
            self.values_before = self.values;
        }
        if self.sampler.is_some() {
            self.sample(ip, slot, dynamic.reference);
        }
        if known.stop || dynamic.taken.is_some() || flags.contains(Flags::SPLIT_AFTER) {
            self.close();
            if dynamic.taken.is_some() {
                self.fetch.redirect();
            }
        }
    }

    fn event(&mut self, event: &Told<'_>) {
        match *event {
            Told::Resumed(state) => self.seen.clone_from(state),
            Told::Status(status) => self.seen.status = status,
            Told::Region { index, value } => self.seen.regions[index] = value,
            Told::Branch { index, value } => self.seen.branch[index] = value,
            Told::Frame(frame) => self.seen.frame = frame,
            Told::AdvancedLoads(events) => self.seen.advanced_loads = events,
            Told::Walk { insertions } => self.seen.walker_insertions = insertions,
            Told::Monitor(registers) => self.seen.monitor = *registers,
            Told::Interrupted(interruption) => self.interrupted(interruption),
        }
    }

    fn counters_used(
        &mut self,
        known: &StaticInstruction,
        place: Place,
        executed: bool,
        memory: &dyn PhysicalAddresses,
        registers: &mut MonitorRegisters,
    ) {
        // The instruction itself waits before it reads.
        self.take_bundle(memory, place.ip);
        self.wait_for_operands(known, executed);
        self.wait(Stall::SystemQueue, self.system_queue.free_at(true));
        let now = self.counters_ahead();
        self.seen.monitor = *registers;
        self.monitor.update(&self.seen, &now);
        self.monitor.store(registers);
        self.seen.monitor = *registers;
        self.is_configured_anew = true;
    }

    fn clock(&mut self) -> Option<u64> {
        self.take_clock()
    }

    #[inline]
    fn permits(&mut self, _: Place, _: Range<u64>) -> Permission {
        match self.cycle < self.halt {
            true => Permission::Block,
            false => Permission::Halt,
        }
    }

    #[inline]
    fn interrupt(&mut self) -> Option<u8> {
        if !self.monitor.interrupts() {
            return None;
        }
        let now = self.counters_ahead();
        self.monitor.look_for_overflow(&self.seen, &now)
    }
}

impl Pipeline {
    /// The processor has taken an interruption.
    fn interrupted(&mut self, interruption: &Interruption) {
        if self.monitor.is_keeping() || self.sampler.is_some() {
            self.note_served_miss(interruption);
        }
        let fault = &interruption.fault;
        let is_data = fault.isr & (isr::READ | isr::WRITE) != 0;
        let is_debug = fault.kind == FaultKind::Debug && is_data;
        self.values[Event::DebugFaults as usize] += u64::from(is_debug);
        if self.monitor.is_counting() {
            let now = self.counters_ahead();
            self.monitor.update(&self.seen, &now);
        }
        self.interrupt_pipeline();
        self.is_attached = false;
        self.note_privilege();
        self.memory.context_changed();
    }

    /// Looks whether the instruction at a place has completed the period of something that is sampled.
    #[cold]
    fn sample(&mut self, ip: u64, slot: u8, address: Option<u64>) {
        if let Some(sampler) = &mut self.sampler {
            let sample = Sample {
                cycle: self.cycle - START,
                ip,
                slot: Some(slot),
                address,
                ..Sample::default()
            };
            sampler.retired(sample, &self.values);
        }
    }

    /// Keeps a load or a fetch that missed the translation buffers and the walker's table, so that software inserts its
    /// translation.
    #[cold]
    fn note_served_miss(&mut self, interruption: &Interruption) {
        use FaultKind as K;
        let fault = &interruption.fault;
        let is_fetch = fault.isr & isr::EXECUTE != 0;
        let is_load = fault.isr & (isr::READ | isr::NON_ACCESS | isr::REGISTER_STACK) == isr::READ;
        let is_miss = matches!(
            fault.kind,
            K::VhptTranslation
                | K::InstructionTlb
                | K::DataTlb
                | K::AlternateInstructionTlb
                | K::AlternateDataTlb
        );
        if !is_miss || !is_fetch && !is_load {
            return;
        }
        let ip = interruption.ip;
        let slot = (interruption.interruption_status >> isr::SLOT_SHIFT & 3) as u8;
        let (latency, translated) = (0, Some(TranslatedBy::Software));
        let address = fault.address.0;
        if is_fetch {
            self.note_fetch(&Fetched {
                ip,
                latency,
                translated,
            });
        } else {
            self.note_load(&Loaded {
                ip,
                slot,
                address,
                latency,
                translated,
            });
        }
        self.sample(ip, slot, is_load.then_some(address));
    }

    /// Takes the instruction's bundle into the window, and waits until it was fetched.
    #[inline]
    fn take_bundle(&mut self, memory: &dyn PhysicalAddresses, ip: u64) {
        if self.forming.ip == ip && !self.fetch.is_redirected() {
            if self.forming.count == 0 {
                // What a stop has left of the bundle begins the window.
                self.forming.window.begin_bundle();
            }
            return;
        }
        let available = self.fetch(memory, ip);
        let is_late = self.forming.count > 0 && available > self.expected();
        if is_late || !self.forming.window.begin_bundle() {
            self.close();
            self.forming.window.begin_bundle();
        }
        self.forming.ip = ip;
        if self.forming.count == 0 {
            self.forming.first_ip = ip;
        }
        self.wait(Stall::FrontEnd, available);
    }

    /// Issues the group that forms in the middle of a bundle, whose rest begins the next window.
    fn split(&mut self) {
        self.close();
        self.forming.window.begin_bundle();
    }

    /// Gives the instruction a port, in this group or the next.
    #[inline]
    fn disperse(&mut self, known: &StaticInstruction) -> crate::dispersal::Assigned {
        let flags = known.flags;
        let special = Flags::SPLIT_BEFORE | Flags::FLUSH_BUFFERS | Flags::B_UNIT;
        if flags.intersects(special) && self.forming.count > 0 {
            let splits = flags.contains(Flags::SPLIT_BEFORE)
                || flags.contains(Flags::FLUSH_BUFFERS) && self.forming.flags.contains(Flags::M_UNIT)
                || flags.contains(Flags::B_UNIT) && self.forming.flags.contains(Flags::FROM_BSP);
            if splits {
                self.split();
            }
        }
        let port = match self.forming.window.take(known.port) {
            Some(port) => port,
            None => {
                self.split();
                let port = self.forming.window.take(known.port);
                port.expect("an empty window has every port")
            }
        };
        self.forming.count += 1;
        self.forming.flags |= flags;
        port
    }
}
