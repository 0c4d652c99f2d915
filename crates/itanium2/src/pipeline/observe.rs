//! What the pipeline is told, and what becomes of it.

use std::ops::Range;

use sidestep_ia64::encoding::{DecodedSlot, Instruction};
use sidestep_ia64::execution::{
    Dynamic, Event as Told, Interruption, Observer, PerformanceRegisters, Permission, Place, Together,
    Translation as PhysicalAddresses,
};
use sidestep_ia64::fault::{FaultKind, isr};
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::{Driver, Exit, Processor};

use super::{Pipeline, START, together};
use crate::flags::Flags;
use crate::instruction::StaticInstruction;
use crate::pmu::event::Event;
use crate::pmu::event_address::{Fetched, Loaded, TranslatedBy};
use crate::pmu::sampling::Sample;
use crate::pmu::stall::Stall;
use crate::profile::Issued;

/// Bits of the processor status register that decide what is monitored.
pub(super) const DECIDING: u64 = psr::PP | psr::UP | 3 << psr::CPL_SHIFT;

impl Observer for Pipeline {
    type Static = StaticInstruction;

    fn version(&self) -> u64 {
        self.version
    }

    fn decode(&mut self, instruction: &Instruction, slot: &DecodedSlot) -> StaticInstruction {
        StaticInstruction::new(instruction, slot, &self.timing.parameters)
    }

    #[inline]
    fn retired(&mut self, known: &StaticInstruction, dynamic: &Dynamic<'_>) {
        self.settle();
        if !self.is_attached {
            self.attach();
        }
        self.is_bookable = false;
        self.retire(known, dynamic);
    }

    #[inline]
    fn gathers(&mut self, _: u64) -> bool {
        self.may_book()
    }

    fn stands_apart(&self, known: &StaticInstruction) -> bool {
        together::stands_apart(known)
    }

    #[inline]
    fn retired_together(&mut self, together: &Together<'_, StaticInstruction>) {
        self.retire_together(together);
    }

    fn event(&mut self, event: &Told<'_>) {
        self.is_bookable &= matches!(event, Told::Frame(_));
        match *event {
            Told::Resumed(state) => {
                self.is_monitor_changed |= state.performance != self.seen.performance;
                self.seen.clone_from(state);
            }
            Told::Status(status) => self.seen.status = status,
            Told::Region { index, value } => self.seen.regions[index] = value,
            Told::Branch { index, value } => self.seen.branch[index] = value,
            Told::Frame(frame) => self.seen.frame = frame,
            Told::AdvancedLoads(events) => self.seen.advanced_loads = events,
            Told::Walk { insertions, entry } => {
                self.seen.walker_insertions = insertions;
                self.seen.walker_entry = entry;
            }
            Told::PerformanceMonitor(registers) => {
                (self.is_monitor_changed, self.is_configured_anew) = (true, true);
                self.seen.performance = *registers;
            }
            Told::Interrupted(interruption) => self.interrupted(interruption),
        }
    }

    fn counters_used(
        &mut self,
        known: &StaticInstruction,
        place: Place,
        executed: bool,
        memory: &dyn PhysicalAddresses,
        registers: &mut PerformanceRegisters,
    ) {
        // The instruction itself waits before it reads.
        self.settle();
        self.is_bookable = false;
        let groups = self.timing.groups;
        let (bundle, more) = self.go_to(memory, place.ip);
        self.count_fetch(bundle);
        self.timing.take_bundle(place.ip, bundle, more);
        self.note_groups(groups);
        self.follow_restart();
        self.timing.wait_for_operands(known, executed);
        let free = self.timing.system_queue.free_at(true);
        self.timing.wait(Stall::SystemQueue, free);
        // Time counters are read often while nothing is monitored, and all counters of the model are dear to add up.
        let is_idle = !self.performance_monitor.is_counting() && !self.is_configured_anew;
        if !is_idle || self.is_monitor_changed || self.seen.performance != *registers {
            let now = self.counters_ahead();
            self.seen.performance = *registers;
            self.performance_monitor.update(&self.seen, &now);
            self.is_configured_anew = true;
        }
        self.performance_monitor.store(registers);
        self.is_configured_anew |= self.seen.performance != *registers;
        self.seen.performance = *registers;
    }

    fn clock(&mut self) -> Option<u64> {
        self.take_clock()
    }

    #[inline]
    fn permits(&mut self, _: Place, _: Range<u64>) -> Permission {
        match self.timing.cycle < self.halt {
            true => Permission::Block,
            false => Permission::Halt,
        }
    }

    #[inline]
    fn interrupt(&mut self) -> Option<u8> {
        if !self.performance_monitor.interrupts() {
            return None;
        }
        self.settle();
        self.is_bookable = false;
        let now = self.counters_ahead();
        self.performance_monitor.look_for_overflow(&self.seen, &now)
    }
}

/// The loop of a processor under the model: compiled here once, whoever runs it.
impl Driver for Pipeline {
    #[inline(never)]
    fn run(&mut self, processor: &mut Processor, limit: u64) -> Exit {
        processor.run_observed(limit, self)
    }
}

impl Pipeline {
    /// An instruction has retired.
    #[inline]
    pub(super) fn retire(&mut self, known: &StaticInstruction, dynamic: &Dynamic<'_>) {
        let flags = known.flags;
        let Place { ip, slot } = dynamic.place;
        if self.performance_monitor.is_restricted() {
            self.performance_monitor
                .begin(&self.seen, known.opcode, dynamic, &self.values);
        }
        let mut groups = self.timing.groups;
        let (bundle, more) = self.go_to(dynamic.memory, ip);
        self.count_fetch(bundle);
        self.timing.take_bundle(ip, bundle, more);
        let port = self.timing.disperse(known);
        self.note_groups(groups);
        self.count(dynamic.executed, flags);
        self.timing.wait_for_operands(known, dynamic.executed);
        if self.timeline.is_some() {
            let issued = Issued {
                ip,
                slot,
                port,
                executed: dynamic.executed,
            };
            let instructions = &mut self.timing.forming.instructions;
            instructions.get_or_insert_default().push(issued);
        }
        let answers = self.answer(known, dynamic);
        let prediction = self.timing.execute(known, &answers, &self.seen.frame);
        self.count_bank_conflicts();
        if flags.contains(Flags::BRANCH) {
            self.count_branch(known, dynamic.place, dynamic.taken, prediction);
        }
        if self.performance_monitor.is_restricted() {
            self.performance_monitor.end(&self.values);
        }
        if self.is_configured_anew || flags.intersects(Flags::PRIVILEGE | Flags::STATUS) {
            self.configure_monitor();
        }
        if self.sampler.is_some() {
            self.sample(ip, slot, dynamic.reference);
        }
        groups = self.timing.groups;
        self.timing.end(known, answers.taken);
        self.note_groups(groups);
        if let Some(target) = dynamic.taken {
            self.position.redirect();
            self.memory.follow(target, flags.contains(Flags::MANY));
        }
        self.follow_restart();
    }

    /// Has the performance monitor look at its configuration and at the processor's status, if one of them may have
    /// changed or something is monitored.
    fn configure_monitor(&mut self) {
        let status = self.seen.status & DECIDING;
        let is_idle = !self.performance_monitor.is_counting() && status == self.monitored_status;
        if is_idle && !self.is_configured_anew && !self.is_monitor_changed {
            return;
        }
        (self.is_configured_anew, self.is_monitor_changed) = (false, false);
        self.monitored_status = status;
        let now = self.counters_ahead();
        self.performance_monitor.update(&self.seen, &now);
        self.values_before = self.values;
    }

    /// Whether somebody wants to know of single events.
    #[inline]
    pub(super) fn keeps_events(&self) -> bool {
        self.performance_monitor.is_keeping() || self.sampler.is_some()
    }

    pub(super) fn count(&mut self, executed: bool, flags: Flags) {
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

    /// Counts the conflicts for banks that the pipeline proper has seen since somebody looked.
    #[inline]
    pub(super) fn count_bank_conflicts(&mut self) {
        self.values[Event::L2BankConflicts as usize] += std::mem::take(&mut self.timing.bank_conflicts);
    }

    fn note_privilege(&mut self) {
        let level = self.seen.privilege_level();
        self.values[Event::PrivilegeChanges as usize] += u64::from(level != self.privilege_level);
        self.privilege_level = level;
    }

    /// Takes over the processor's state when it was run without the pipeline, or for the first time.
    fn attach(&mut self) {
        self.is_attached = true;
        self.timing.scoreboard.rename(&self.seen.frame);
        (self.spills, self.fills) = (self.seen.frame.spills, self.seen.frame.fills);
        self.privilege_level = self.seen.privilege_level();
        self.branch_registers = self.seen.branch;
        self.advanced_loads = self.seen.advanced_loads;
    }

    /// The processor has taken an interruption.
    fn interrupted(&mut self, interruption: &Interruption) {
        self.settle();
        if self.performance_monitor.is_keeping() || self.sampler.is_some() {
            self.note_served_miss(interruption);
        }
        let fault = &interruption.fault;
        let is_data = fault.isr & (isr::READ | isr::WRITE) != 0;
        let is_debug = fault.kind == FaultKind::Debug && is_data;
        self.values[Event::DebugFaults as usize] += u64::from(is_debug);
        if self.performance_monitor.is_counting() {
            let now = self.counters_ahead();
            self.performance_monitor.update(&self.seen, &now);
        }
        let groups = self.timing.groups;
        if let Some(entry) = interruption.walked {
            let wait = self.memory.walk_in_vain(entry, &mut self.values);
            let is_fetch = fault.isr & isr::EXECUTE != 0;
            self.timing.walk_in_vain(wait, is_fetch);
        }
        self.timing.interrupt();
        self.note_groups(groups);
        self.follow_restart();
        self.is_attached = false;
        self.note_privilege();
        self.memory.context_changed();
    }

    /// Looks whether the instruction at a place has completed the period of something that is sampled.
    #[cold]
    fn sample(&mut self, ip: u64, slot: u8, address: Option<u64>) {
        if let Some(sampler) = &mut self.sampler {
            let sample = Sample {
                cycle: self.timing.cycle - START,
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
        let fault = &interruption.fault;
        let is_fetch = fault.isr & isr::EXECUTE != 0;
        let is_load = fault.isr & (isr::READ | isr::NON_ACCESS | isr::REGISTER_STACK) == isr::READ;
        let is_miss = fault.kind.is_translation_missing() && fault.kind != FaultKind::DataNestedTlb;
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
}
