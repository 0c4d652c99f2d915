//! What the surroundings of the pipeline answer for an instruction: caches, translation buffers, predictors, the
//! register stack. Their state depends on the order of references and branches alone, never on cycles.

use sidestep_ia64::execution::{Dynamic, Frame, Place, Translation as PhysicalAddresses};

use super::Pipeline;
use super::fetch::Bundle;
use crate::branches::{Branch, Foreseen, Prediction};
use crate::flags::Flags;
use crate::instruction::StaticInstruction;
use crate::memory::{Side, Space, Translation};
use crate::parameters::Cost;
use crate::pmu::event::Event;
use crate::pmu::event_address::{BranchKind, Branched, Fetched, Loaded};

/// What a data reference met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    /// Where it was translated.
    pub translation: Translation,
    /// Cycles more than on a hit until loaded data are there.
    pub more: u64,
    /// Whether the first level has returned loaded data.
    pub is_first_level: bool,
    /// Which of the last stores were to the same data, the last in bit 0.
    pub stores: u16,
    /// Of the last loads that the second level had to answer, which were of the same bank, the last in bit 0.
    pub neighbours: u8,
    /// Cycles until the second level has done with it; 0 where it is not asked.
    pub duration: u64,
}

/// What the surroundings answered for an instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answers {
    pub executed: bool,
    pub taken: bool,
    pub reference: Option<Reference>,
    pub foreseen: Foreseen,
    /// Bubbles of registers that the register stack stores, and loads.
    pub spilling: u64,
    pub filling: u64,
}

impl Default for Answers {
    fn default() -> Answers {
        Answers {
            executed: true,
            taken: false,
            reference: None,
            foreseen: Foreseen::As(Prediction::Correct),
            spilling: 0,
            filling: 0,
        }
    }
}

/// Stores that are kept: those of [`RecentStores`](crate::queues::RecentStores), and of the group that forms.
const STORES: usize = 16;
/// Loads that are kept: more than issue in a cycle.
const LOADS: usize = 8;

/// Where the last references of a kind were, by numbers of lines, banks or the like.
pub(super) struct Last<const N: usize> {
    places: [u64; N],
    next: usize,
}

impl<const N: usize> Default for Last<N> {
    fn default() -> Self {
        Last {
            places: [u64::MAX; N],
            next: 0,
        }
    }
}

impl<const N: usize> Last<N> {
    #[inline]
    fn push(&mut self, place: u64) {
        self.places[self.next] = place;
        self.next = (self.next + 1) % N;
    }

    /// Which of the last `most` were at a place, the last in bit 0.
    #[inline(always)]
    fn find(&self, place: u64, most: usize) -> u16 {
        let mut found = 0;
        for age in 0..most.min(N) {
            found |= u16::from(self.places[(self.next + N - 1 - age) % N] == place) << age;
        }
        found
    }
}

pub(super) type LastStores = Last<STORES>;
pub(super) type LastLoads = Last<LOADS>;

/// How many of the last references one can meet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Met {
    /// Stores that have just issued, or are in its group.
    pub stores: usize,
    /// Loads of its group that the second level has to answer.
    pub loads: usize,
}

impl Met {
    /// As many as are kept.
    pub const ALL: Met = Met {
        stores: STORES,
        loads: LOADS,
    };
}

/// The second level has 16 banks of 16 bytes (recalled from McNairy and Soltis, IEEE Micro 2003).
const BANK_WIDTH_LOG2: u32 = 4;
const BANKS: u64 = 16;

impl Pipeline {
    /// The front end goes on to the bundle at `ip`. Answers what the bundle is, and how late it comes.
    #[inline(always)]
    pub(super) fn go_to(&mut self, memory: &dyn PhysicalAddresses, ip: u64) -> (Bundle, u64) {
        let bundle = self.position.go_to(ip);
        match bundle {
            Bundle::New => (bundle, self.fetch(memory, ip)),
            Bundle::Same | Bundle::Fetched => (bundle, 0),
        }
    }

    /// Fetches the pair of bundles at `ip`; answers how many cycles more than a hit that takes.
    #[inline]
    pub(super) fn fetch(&mut self, memory: &dyn PhysicalAddresses, ip: u64) -> u64 {
        let space = Space {
            state: &self.seen,
            memory,
        };
        match self.memory.fetches_again(space, ip) {
            true => 0,
            false => self.fetch_anew(memory, ip),
        }
    }

    fn fetch_anew(&mut self, memory: &dyn PhysicalAddresses, ip: u64) -> u64 {
        let space = Space {
            state: &self.seen,
            memory,
        };
        let translation = self
            .memory
            .translate(space, Side::Instruction, ip, &mut self.values);
        let parameters = &self.timing.parameters;
        let translated = match translation {
            Translation::First => 0,
            Translation::Second => parameters.cost(Cost::InstructionTlbTransfer),
            Translation::Walk(wait) => parameters.cost(Cost::Walk) + wait,
        };
        let more = self.memory.fetch(space, ip, &mut self.values);
        self.values[Event::FrontEndTlbMiss as usize] += translated;
        self.values[Event::FrontEndCacheMiss as usize] += more;
        if more > 0 || translation != Translation::First {
            self.note_fetch(&Fetched {
                ip,
                latency: if more > 0 { more + 1 } else { 0 },
                translated: translation.by(),
            });
        }
        translated + more
    }

    #[cold]
    pub(super) fn note_fetch(&mut self, fetch: &Fetched) {
        let is_kept = self.performance_monitor.fetched(fetch);
        self.values[Event::InstructionEarEvents as usize] += u64::from(is_kept);
        if let Some(sampler) = &mut self.sampler {
            sampler.fetched(fetch);
        }
    }

    /// What the surroundings answer for an instruction whose bundle was fetched.
    #[inline(always)]
    pub(super) fn answer(&mut self, known: &StaticInstruction, dynamic: &Dynamic<'_>) -> Answers {
        let flags = known.flags;
        let mut answers = Answers {
            executed: dynamic.executed,
            taken: dynamic.taken.is_some(),
            ..Answers::default()
        };
        if !dynamic.executed || flags.contains(Flags::NOP) {
            if flags.contains(Flags::BRANCH) {
                answers.foreseen = self.foresee(known, dynamic.place, dynamic.taken);
            }
            return answers;
        }
        if let Some(address) = dynamic.reference
            && flags.intersects(Flags::LOAD | Flags::STORE | Flags::PREFETCH)
        {
            self.count_reference(flags);
            let reference = self.refer(dynamic.memory, (flags, known.size_log2), address, Met::ALL);
            answers.reference = Some(reference);
            if flags.contains(Flags::LOAD) && self.keeps_events() {
                let latency = known.destinations().first().map_or(0, |first| first.latency);
                self.note_load(&Loaded {
                    ip: dynamic.place.ip,
                    slot: dynamic.place.slot,
                    address,
                    latency: u64::from(latency) + reference.more,
                    translated: reference.translation.by(),
                });
            }
        }
        let unusual = Flags::BRANCH
            | Flags::FRAME
            | Flags::TO_BRANCH
            | Flags::PRIVILEGE
            | Flags::REGION
            | Flags::ADVANCED
            | Flags::CHECKS;
        if flags.intersects(unusual) {
            self.answer_unusual(known, dynamic, &mut answers);
        }
        answers
    }

    fn answer_unusual(&mut self, known: &StaticInstruction, dynamic: &Dynamic<'_>, answers: &mut Answers) {
        let flags = known.flags;
        if flags.intersects(Flags::ADVANCED | Flags::CHECKS) {
            self.check(dynamic, flags);
        }
        if flags.contains(Flags::TO_BRANCH) {
            self.move_to_branch(known.branch_register);
        }
        if flags.contains(Flags::CALL) {
            self.branch_registers = self.seen.branch;
        }
        if flags.contains(Flags::BRANCH) {
            answers.foreseen = self.foresee(known, dynamic.place, dynamic.taken);
        }
        if flags.contains(Flags::FRAME) {
            let frame = self.seen.frame;
            (answers.spilling, answers.filling) = self.stack_traffic(dynamic.memory, &frame);
        }
        if flags.intersects(Flags::PRIVILEGE | Flags::REGION) {
            self.enter_context(flags);
        }
    }

    /// An instruction may have changed the address space or the privilege level.
    #[inline]
    pub(super) fn enter_context(&mut self, flags: Flags) {
        // Without a kernel a return leaves both as they are.
        if self.seen.is_system || !flags.contains(Flags::RETURN) {
            self.memory.context_changed();
        }
    }

    /// A branch register was moved to.
    pub(super) fn move_to_branch(&mut self, register: u8) {
        let index = usize::from(register & 7);
        let now = self.seen.branch[index];
        let before = std::mem::replace(&mut self.branch_registers[index], now);
        self.predictor.moved(register, before);
    }

    #[cold]
    pub(super) fn note_load(&mut self, load: &Loaded) {
        let is_kept = self.performance_monitor.load(load);
        self.values[Event::DataEarEvents as usize] += u64::from(is_kept);
        if let Some(sampler) = &mut self.sampler {
            sampler.load(load);
        }
    }

    /// An advanced load or a check was executed.
    pub(super) fn check(&mut self, dynamic: &Dynamic<'_>, flags: Flags) {
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

    /// Counts a reference that was made, whatever was answered.
    #[inline]
    pub(super) fn count_reference(&mut self, flags: Flags) {
        let mut count = |event: Event, happens: bool| self.values[event as usize] += u64::from(happens);
        let (loads, stores) = (flags.contains(Flags::LOAD), flags.contains(Flags::STORE));
        count(Event::DataReferences, loads || stores);
        count(Event::LoadsRetired, loads);
        count(Event::StoresRetired, stores);
        let is_first_level = match loads {
            true => !flags.contains(Flags::SECOND_LEVEL),
            false => flags.contains(Flags::PREFETCH),
        };
        count(Event::L1dReads, is_first_level);
    }

    /// Counts a fetch, if there was one.
    #[inline]
    pub(super) fn count_fetch(&mut self, bundle: Bundle) {
        self.values[Event::L1iReads as usize] += u64::from(bundle == Bundle::New);
    }

    /// A load, store or prefetch.
    #[inline(always)]
    pub(super) fn refer(
        &mut self,
        memory: &dyn PhysicalAddresses,
        (flags, size_log2): (Flags, u8),
        address: u64,
        met: Met,
    ) -> Reference {
        let space = Space {
            state: &self.seen,
            memory,
        };
        let values = &mut self.values;
        let mut reference = Reference {
            translation: self.memory.translate(space, Side::Data, address, values),
            more: 0,
            is_first_level: false,
            stores: 0,
            neighbours: 0,
            duration: 0,
        };
        let data = address >> self.store_unit_log2;
        if flags.contains(Flags::LOAD) {
            if flags.contains(Flags::SECOND_LEVEL) {
                reference.more = self.memory.load_second(space, address, values);
                reference.duration = self.second_level + reference.more;
            } else {
                reference.stores = self.last_stores.find(data, met.stores);
                let more = self.memory.load(space, address, values);
                reference.is_first_level = more.is_none();
                reference.more = more.unwrap_or(0);
                reference.duration = more.map_or(0, |more| more + 1);
            }
            if reference.duration > 0 {
                let bank = address >> BANK_WIDTH_LOG2 & (BANKS - 1);
                reference.neighbours = self.last_loads.find(bank, met.loads) as u8;
                self.last_loads.push(bank);
            }
        } else if flags.contains(Flags::PREFETCH) {
            let more = self.memory.load(space, address, values);
            reference.duration = more.map_or(0, |more| more + 1);
        }
        if flags.contains(Flags::STORE) {
            reference.duration = self.memory.store(space, address, values);
            self.last_stores.push(data);
        }
        if address & ((1 << size_log2) - 1) != 0 {
            self.misalign(&mut reference, memory, (flags, size_log2), address);
        }
        reference
    }

    /// A reference from an address that is no multiple of its size: where it lies across two lines, the second is
    /// referred to as well.
    #[cold]
    fn misalign(
        &mut self,
        reference: &mut Reference,
        memory: &dyn PhysicalAddresses,
        (flags, size_log2): (Flags, u8),
        address: u64,
    ) {
        let space = Space {
            state: &self.seen,
            memory,
        };
        let values = &mut self.values;
        let counted = match flags.contains(Flags::LOAD) {
            true => Event::MisalignedLoads,
            false => Event::MisalignedStores,
        };
        values[counted as usize] += 1;
        let last = address.wrapping_add((1 << size_log2) - 1);
        if address >> self.data_line_log2 == last >> self.data_line_log2 {
            return;
        }
        if flags.contains(Flags::STORE) {
            let duration = self.memory.store(space, last, values);
            reference.duration = reference.duration.max(duration);
        } else if flags.contains(Flags::SECOND_LEVEL) {
            let more = self.memory.load_second(space, last, values);
            reference.more = reference.more.max(more);
            reference.duration = self.second_level + reference.more;
        } else if let Some(more) = self.memory.load(space, last, values) {
            reference.is_first_level = false;
            reference.more = reference.more.max(more);
            reference.duration = reference.duration.max(more + 1);
        }
        reference.more += self.timing.parameters.cost(Cost::LineCrossing);
    }

    /// The register stack's traffic since the last look; answers the bubbles of what it stored and loaded.
    #[inline]
    pub(super) fn stack_traffic(&mut self, memory: &dyn PhysicalAddresses, frame: &Frame) -> (u64, u64) {
        if (frame.spills, frame.fills) == (self.spills, self.fills) {
            return (0, 0);
        }
        self.book_stack_traffic(memory, frame)
    }

    fn book_stack_traffic(&mut self, memory: &dyn PhysicalAddresses, frame: &Frame) -> (u64, u64) {
        let (spills, fills) = (frame.spills - self.spills, frame.fills - self.fills);
        (self.spills, self.fills) = (frame.spills, frame.fills);
        let space = Space {
            state: &self.seen,
            memory,
        };
        let values = &mut self.values;
        values[Event::DataReferences as usize] += spills + fills;
        values[Event::RseStores as usize] += spills;
        values[Event::RseLoads as usize] += fills;
        let line = 1_usize << self.data_line_log2;
        for at in (0..spills * 8).step_by(line) {
            let address = frame.store_pointer.wrapping_sub(8 + at);
            self.memory.store(space, address, values);
        }
        let mut miss = 0;
        for at in (0..fills * 8).step_by(line) {
            let address = frame.backing_store_pointer.wrapping_add(at);
            values[Event::L1dReads as usize] += 1;
            let more = self.memory.load(space, address, values);
            values[Event::L1dFillMisses as usize] += u64::from(more.is_some());
            miss = miss.max(more.unwrap_or(0));
        }
        let rate = self.timing.parameters.cost(Cost::StackRegistersPerCycle);
        let filling = match fills {
            0 => 0,
            _ => fills.div_ceil(rate) + miss,
        };
        (spills.div_ceil(rate), filling)
    }

    /// Predicts a branch, as far as that does not depend on cycles.
    #[inline]
    pub(super) fn foresee(
        &mut self,
        known: &StaticInstruction,
        place: Place,
        taken: Option<u64>,
    ) -> Foreseen {
        self.predictor.branch(&Branch {
            ip: place.ip,
            slot: place.slot,
            flags: known.flags,
            is_predicated: known.is_predicated,
            register: known.branch_register,
            taken,
        })
    }

    /// Counts a branch that was predicted so.
    #[inline]
    pub(super) fn count_branch(
        &mut self,
        known: &StaticInstruction,
        place: Place,
        taken: Option<u64>,
        prediction: Prediction,
    ) {
        let branched = Branched {
            ip: place.ip,
            slot: place.slot,
            taken,
            wrong_path: prediction == Prediction::WrongPath,
            wrong_target: prediction == Prediction::WrongTarget,
            kind: match known.flags {
                flags if flags.contains(Flags::RETURN) => BranchKind::Return,
                flags if flags.contains(Flags::INDIRECT) => BranchKind::Indirect,
                _ => BranchKind::Relative,
            },
        };
        let (path, target) = Event::of_branch(branched.kind, branched.wrong_path, taken.is_some());
        self.values[path as usize] += 1;
        self.values[target as usize] += u64::from(branched.wrong_target);
        if self.keeps_events() {
            self.note_branch(&branched);
        }
    }

    #[cold]
    fn note_branch(&mut self, branched: &Branched) {
        let is_kept = self.performance_monitor.branch(branched);
        self.values[Event::BranchEvents as usize] += u64::from(is_kept);
        if let Some(sampler) = &mut self.sampler {
            sampler.branch(branched);
        }
    }
}
