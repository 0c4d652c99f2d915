//! What an instruction does beside waiting for its operands: references, branches, the register stack, system
//! registers.

use sidestep_ia64::execution::{Dynamic, Translation as PhysicalAddresses};

use super::Pipeline;
use crate::branches::{Branch, Prediction};
use crate::flags::Flags;
use crate::instruction::StaticInstruction;
use crate::memory::{Side, Space, Translation};
use crate::parameters::Cost;
use crate::pmu::event::Event;
use crate::pmu::event_address::{BranchKind, Branched, Loaded};
use crate::pmu::stall::Stall;
use crate::queues::SystemAccess;
use crate::scoreboard::Producer;

impl Pipeline {
    /// What an instruction whose predicate is on does beside waiting.
    #[inline]
    pub(super) fn execute(&mut self, known: &StaticInstruction, dynamic: &Dynamic<'_>) {
        let flags = known.flags;
        let mut more = 0;
        if flags.intersects(Flags::LOAD | Flags::STORE | Flags::PREFETCH) {
            match dynamic.reference {
                Some(address) => more = self.reference(dynamic.memory, known, address),
                None => self.forming.refer_to_unknown(flags),
            }
        }
        let latency = known.destinations().first().map_or(0, |first| first.latency);
        if let (true, Some(address)) = (flags.contains(Flags::LOAD), dynamic.reference) {
            let load = Loaded {
                ip: dynamic.place.ip,
                slot: dynamic.place.slot,
                address,
                latency: u64::from(latency) + more,
                translated: self.translated_by,
            };
            self.note_load(&load);
        }
        for destination in known.destinations() {
            let is_loaded = destination.producer == Producer::Load;
            let total = u64::from(destination.latency) + if is_loaded { more } else { 0 };
            let place = self.scoreboard.place(destination.operand);
            self.forming.write(place, total, destination.producer);
        }
        self.forming.rules |= known.rules_from;
        let unusual = Flags::SYSTEM_QUEUE
            | Flags::BRANCH
            | Flags::FRAME
            | Flags::ALL_PREDICATES
            | Flags::READS_PREDICATES
            | Flags::REGION
            | Flags::TO_BRANCH
            | Flags::FLUSH_STACK
            | Flags::LOAD_STACK
            | Flags::PRIVILEGE
            | Flags::ADVANCED
            | Flags::CHECKS;
        if flags.intersects(unusual) {
            self.execute_unusual(known, dynamic, latency.into());
        }
        if let Some(behind) = known.behind {
            self.forming.behind_rule(behind, &self.parameters);
        }
    }

    #[inline]
    pub(super) fn note_load(&mut self, load: &Loaded) {
        let is_kept = self.performance_monitor.load(load);
        self.values[Event::DataEarEvents as usize] += u64::from(is_kept);
        if let Some(sampler) = &mut self.sampler {
            sampler.load(load);
        }
    }

    /// An advanced load or a check was executed.
    fn check(&mut self, dynamic: &Dynamic<'_>, flags: Flags) {
        let is_float = usize::from(flags.contains(Flags::OF_FLOAT));
        let mut count = |events: [Event; 2], times: u64| self.values[events[is_float] as usize] += times;
        if !flags.contains(Flags::ADVANCED) {
            let failed = u64::from(dynamic.taken.is_some());
            let events = match flags.contains(Flags::OF_FLAGS) {
                true => [Event::FailedFloatChecks; 2],
                false => [Event::FailedSpeculationGeneral, Event::FailedSpeculationFloat],
            };
            count(events, failed);
            return;
        }
        let now = self.seen.advanced_loads;
        let before = std::mem::replace(&mut self.advanced_loads, now);
        let replaced_general = now.replaced_general - before.replaced_general;
        let replaced_float = now.replaced_floating - before.replaced_floating;
        let has_failed = now.failed_checks != before.failed_checks;
        if flags.contains(Flags::CHECKS) {
            count([Event::ChecksGeneral, Event::ChecksFloat], 1);
            count(
                [Event::FailedChecksGeneral, Event::FailedChecksFloat],
                has_failed.into(),
            );
        }
        self.values[Event::ReplacedGeneral as usize] += replaced_general;
        self.values[Event::ReplacedFloat as usize] += replaced_float;
        if has_failed {
            let is_kept = self
                .performance_monitor
                .failed_check(dynamic.place.ip, dynamic.place.slot);
            self.values[Event::DataEarEvents as usize] += u64::from(is_kept);
            if let Some(sampler) = &mut self.sampler {
                sampler.failed_check();
            }
        }
    }

    fn execute_unusual(&mut self, known: &StaticInstruction, dynamic: &Dynamic<'_>, latency: u64) {
        let flags = known.flags;
        if flags.contains(Flags::SYSTEM_QUEUE) {
            let is_timer = flags.contains(Flags::TIMER);
            self.wait(Stall::SystemQueue, self.system_queue.free_at(is_timer));
            let place = known
                .destinations()
                .first()
                .map_or(0, |first| self.scoreboard.place(first.operand));
            let access = SystemAccess {
                latency,
                reads: flags.contains(Flags::READS_SYSTEM),
                is_timer,
            };
            self.forming.system_access(place, access);
            self.forming.moves_region |= flags.contains(Flags::REGION);
        }
        if flags.contains(Flags::READS_PREDICATES) {
            self.wait(Stall::Predicate, self.scoreboard.predicates_ready());
        }
        self.forming.writes_predicates |= flags.contains(Flags::ALL_PREDICATES);
        if flags.intersects(Flags::ADVANCED | Flags::CHECKS) {
            self.check(dynamic, flags);
        }
        if flags.contains(Flags::TO_BRANCH) {
            let register = known.branch_register;
            let before = self.branch_registers[usize::from(register & 7)];
            self.branch_registers[usize::from(register & 7)] = self.seen.branch[usize::from(register & 7)];
            let cycle = self.expected();
            self.predictor.moved(register, before, cycle);
        }
        if flags.contains(Flags::CALL) {
            self.branch_registers = self.seen.branch;
        }
        let calculation = self.parameters.cost(Cost::StackCalculation);
        if flags.contains(Flags::FLUSH_STACK) {
            self.wait(Stall::RseOverflow, self.cycle + 1 + calculation);
        }
        if flags.contains(Flags::LOAD_STACK) {
            self.wait(Stall::RseLoad, self.cycle + 1 + calculation);
        }
        if flags.contains(Flags::BRANCH) {
            self.branch(known, dynamic);
        }
        if flags.contains(Flags::FRAME) {
            self.scoreboard.rename(&self.seen.frame);
            self.stack_traffic(dynamic.memory, flags);
        }
        if flags.intersects(Flags::PRIVILEGE | Flags::REGION) {
            self.memory.context_changed();
        }
    }

    /// A load, store or prefetch.
    fn reference(&mut self, memory: &dyn PhysicalAddresses, known: &StaticInstruction, address: u64) -> u64 {
        let flags = known.flags;
        let space = Space {
            state: &self.seen,
            memory,
        };
        let translation = self
            .memory
            .translate(space, Side::Data, address, &mut self.values);
        match translation {
            Translation::First => {}
            Translation::Second => {
                let bubbles = self.parameters.cost(Cost::TlbTransfer);
                self.forming.behind(Stall::Tlb, bubbles);
            }
            Translation::Walk(wait) => {
                let bubbles = self.parameters.cost(Cost::Walk) + wait;
                self.forming.behind(Stall::Walker, bubbles);
            }
        }
        self.translated_by = translation.by();
        let line = address >> self.parameters.l1d.line.trailing_zeros();
        let mut more = 0;
        self.forming.has_reference = true;
        self.values[Event::DataReferences as usize] +=
            u64::from(flags.intersects(Flags::LOAD | Flags::STORE));
        if flags.contains(Flags::LOAD) {
            self.values[Event::LoadsRetired as usize] += 1;
            more = if flags.contains(Flags::SECOND_LEVEL) {
                self.memory.load_second(
                    Space {
                        state: &self.seen,
                        memory,
                    },
                    address,
                    &mut self.values,
                )
            } else {
                self.wait_for_store(line);
                match self.memory.load(
                    Space {
                        state: &self.seen,
                        memory,
                    },
                    address,
                    &mut self.values,
                ) {
                    None => {
                        self.forming.first_level_returns += 1;
                        0
                    }
                    Some(more) => more,
                }
            };
        } else if flags.contains(Flags::PREFETCH) {
            self.memory.load(
                Space {
                    state: &self.seen,
                    memory,
                },
                address,
                &mut self.values,
            );
        }
        if flags.contains(Flags::STORE) {
            self.values[Event::StoresRetired as usize] += 1;
            let duration = self.memory.store(
                Space {
                    state: &self.seen,
                    memory,
                },
                address,
                &mut self.values,
            );
            self.wait(Stall::StoreBufferFull, self.stores.free_at());
            self.forming.store(line, duration);
        }
        more
    }

    /// A load from the first level close behind a store to the same line recirculates until the store has left the
    /// window; loads that pass by the first level do not meet its store buffer.
    fn wait_for_store(&mut self, line: u64) {
        let window = self.parameters.cost(Cost::StoreWindow);
        if let Some(cycle) = self.stores.last_to(line) {
            self.wait(Stall::StoreRecirculation, cycle + window);
        }
        if self.forming.stores().iter().any(|store| store.0 == line) {
            self.forming.behind(Stall::StoreRecirculation, window);
        }
    }

    /// The register stack's traffic since the last look.
    fn stack_traffic(&mut self, memory: &dyn PhysicalAddresses, flags: Flags) {
        let frame = self.seen.frame;
        let (spills, fills) = (frame.spills - self.spills, frame.fills - self.fills);
        (self.spills, self.fills) = (frame.spills, frame.fills);
        if spills + fills == 0 {
            return;
        }
        self.values[Event::DataReferences as usize] += spills + fills;
        self.values[Event::RseStores as usize] += spills;
        self.values[Event::RseLoads as usize] += fills;
        let rate = self.parameters.cost(Cost::StackRegistersPerCycle);
        let line = u64::from(self.parameters.l1d.line);
        for at in (0..spills * 8).step_by(line as usize) {
            let address = frame.store_pointer.wrapping_sub(8 + at);
            self.memory.store(
                Space {
                    state: &self.seen,
                    memory,
                },
                address,
                &mut self.values,
            );
        }
        let mut miss = 0;
        for at in (0..fills * 8).step_by(line as usize) {
            let address = frame.backing_store_pointer.wrapping_add(at);
            let more = self.memory.load(
                Space {
                    state: &self.seen,
                    memory,
                },
                address,
                &mut self.values,
            );
            self.values[Event::L1dFillMisses as usize] += u64::from(more.is_some());
            miss = miss.max(more.unwrap_or(0));
        }
        let (stored, loaded) = match flags {
            _ if flags.contains(Flags::LOAD_STACK) => (Stall::RseLoad, Stall::RseLoad),
            _ => (Stall::RseOverflow, Stall::RseUnderflow),
        };
        if spills > 0 {
            self.forming.behind(stored, spills.div_ceil(rate));
        }
        if fills > 0 {
            self.forming.behind(loaded, fills.div_ceil(rate) + miss);
        }
    }

    /// What a branch that has retired costs.
    pub(super) fn branch(&mut self, known: &StaticInstruction, dynamic: &Dynamic<'_>) {
        let delay = self.parameters.cost(Cost::ToBranchPrediction);
        let cycle = self.expected();
        let prediction = self.predictor.branch(
            &Branch {
                ip: dynamic.place.ip,
                slot: dynamic.place.slot,
                flags: known.flags,
                is_predicated: known.is_predicated,
                register: known.branch_register,
                taken: dynamic.taken,
            },
            cycle,
            delay,
        );
        let branched = Branched {
            ip: dynamic.place.ip,
            slot: dynamic.place.slot,
            taken: dynamic.taken,
            wrong_path: prediction == Prediction::WrongPath,
            wrong_target: prediction == Prediction::WrongTarget,
            kind: match known.flags {
                flags if flags.contains(Flags::RETURN) => BranchKind::Return,
                flags if flags.contains(Flags::INDIRECT) => BranchKind::Indirect,
                _ => BranchKind::Relative,
            },
        };
        let (path, target) = Event::of_branch(branched.kind, branched.wrong_path, branched.taken.is_some());
        self.values[path as usize] += 1;
        self.values[target as usize] += u64::from(branched.wrong_target);
        let is_kept = self.performance_monitor.branch(&branched);
        self.values[Event::BranchEvents as usize] += u64::from(is_kept);
        if let Some(sampler) = &mut self.sampler {
            sampler.branch(&branched);
        }
        if prediction != Prediction::Correct {
            let bubbles = self.parameters.cost(Cost::Mispredict);
            self.forming.behind(Stall::FlushBranch, bubbles);
            self.forming.is_flushed = true;
        } else if dynamic.taken.is_some() && known.flags.contains(Flags::INDIRECT) {
            self.fetch.resteer(self.parameters.cost(Cost::ReturnResteer));
        }
    }
}
