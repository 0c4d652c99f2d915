//! What instructions depend on each other by, and what may stand in one instruction group (manual, volume 1, section
//! 3.4; volume 3, chapter 5).
//!
//! [`Effects`] is everything that an instruction reads and writes: its operands, what `dependencies` adds to them,
//! and the state that no operand names, such as fields of PSR and FPSR, the ALAT, translations and the register
//! stack. Two instructions without a [`conflict`](Effects::conflict) may change places. Two that have one keep their
//! order, and [`Conflict::needs_stop`] says whether a stop has to part them. Registers are numbered as encoded;
//! whoever follows a running program renames them first.

mod float;
mod names;
mod operations;
mod parts;
mod position;
mod predicates;
mod references;
mod registers;
pub mod serialization;
mod status;
mod translation;

use sidestep_ia64::encoding::*;
use sidestep_ia64::registers::application::{PFS, RSC};

pub use names::Names;
pub use parts::{Parts, State};
pub use position::{Position, misplaced};

/// How an instruction refers to memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Reads it.
    pub reads: bool,
    /// Writes it.
    pub writes: bool,
    /// No reference behind it may be made before it.
    pub acquires: bool,
    /// No reference before it may be made behind it.
    pub releases: bool,
}

/// Everything that an instruction reads and writes when its qualifying predicate is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// What it reads, its qualifying predicate as well.
    pub reads: Parts,
    /// What it writes.
    pub writes: Parts,
    /// Predicates that it may clear, as others of its kind may at once: parallel compares of type *and*.
    pub clears: u64,
    /// Predicates that it may set, as others of its kind may at once: parallel compares of type *or*.
    pub sets: u64,
    /// Flags that it may raise, which stay until something clears them, so that raisers may change places.
    pub raises: Parts,
    /// How it refers to memory.
    pub memory: Memory,
    /// What it waits for or orders beside that: data or instruction serialisation.
    pub serializes: Option<Side>,
    /// What of its writes takes effect behind serialisation alone: a stop is neither enough nor needed.
    pub pending: Parts,
    /// What of its writes only some readers see before serialisation.
    pub deferred: Parts,
    /// What it sees of such writes before serialisation, behind a stop.
    pub at_once: Parts,
    /// Predicates whose values it needs only as its qualifying predicate.
    pub qualifier: u8,
    /// Writes a predicate and its complement.
    pub complements: bool,
    /// Writes its predicates although its own is off.
    pub writes_when_off: bool,
    /// Where in its group it has to stand.
    pub position: Option<Position>,
    kind: Kind,
    /// The general register that a checking load loads.
    loaded: u128,
}

/// What decides about the dependencies that need no stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Other,
    /// Branches, and what else stands in B slots and has a predicate.
    Branch,
    /// The loop branches that rotate.
    Rotate,
    Return,
    Allocate,
    MoveToBranch,
    MoveToApplication,
    /// Floating-point compares and approximations, whose predicates are late.
    FloatPredicate,
    /// Loads that check: what they load is there already if nothing was stored meanwhile.
    CheckLoad,
    /// Compares that set one target and clear the other, which may share a group with their like alone.
    Complement,
    /// Purges of translations, which may share a group with each other.
    Purge,
    /// Purges on all processors, which may not share a group with their like.
    GlobalPurge,
}

/// What two instructions, one before the other, depend on each other by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conflict {
    /// What the later one reads of what the earlier one writes.
    pub flow: Parts,
    /// What both write.
    pub output: Parts,
    /// What the later one writes of what the earlier one reads.
    pub anti: Parts,
    /// What the instructions may not have in common in one group: of the three, and of predicates that compares of
    /// different parallel types set or clear.
    pub parted: Parts,
    /// The part of that which a stop does part: not what waits for serialisation.
    pub grouped: Parts,
    /// Whether references to memory, of unknown addresses, keep their order.
    pub memory: bool,
}

impl Conflict {
    /// Whether the instructions may change places.
    pub fn is_none(&self) -> bool {
        let all = self.flow.or(self.output).or(self.anti).or(self.parted);
        !self.memory && all.is_empty()
    }

    /// The conflict on registers that programs have, without PSR, control registers and what has no number.
    pub(crate) fn without_system(&self) -> Conflict {
        let registers = |parts: Parts| Parts {
            status: 0,
            control: 0,
            state: State::empty(),
            ..parts
        };
        Conflict {
            flow: registers(self.flow),
            output: registers(self.output),
            anti: registers(self.anti),
            parted: registers(self.parted),
            grouped: registers(self.grouped),
            memory: false,
        }
    }

    /// Whether they may not be in one group: a stop has to part them, or serialisation.
    pub fn needs_stop(&self) -> bool {
        !self.parted.is_empty()
    }

    /// Whether a stop has to part them, and is enough.
    pub fn is_parted_by_stop(&self) -> bool {
        !self.grouped.is_empty()
    }
}

impl Effects {
    /// The effects of an instruction.
    pub fn of(instruction: &Instruction) -> Effects {
        let mut effects = Effects {
            qualifier: instruction.predicate(),
            ..Effects::default()
        };
        for resource in instruction.sources().iter() {
            effects.reads.add(*resource);
        }
        for resource in instruction.destinations().iter() {
            effects.writes.add(*resource);
        }
        // Of these the operation says which bits.
        for parts in [&mut effects.reads, &mut effects.writes] {
            parts.status = 0;
            parts.state -= State::FLOAT_STATUS;
        }
        effects.add_operation(instruction);
        effects.add_reference();
        effects.add_partitions();
        effects.add_frame();
        // What is constant depends on nothing.
        for parts in [&mut effects.reads, &mut effects.writes] {
            parts.general &= !1;
            parts.float &= !3;
            parts.predicate &= !1;
        }
        effects
    }

    /// The effects of the instruction when its qualifying predicate is off: it reads that, and a few write although it
    /// is; loop branches go by it and do their work in any case.
    pub fn when_off(&self) -> Effects {
        if self.qualifier == 0 || self.kind == Kind::Rotate {
            return *self;
        }
        let mut off = Effects {
            qualifier: self.qualifier,
            kind: self.kind,
            ..Effects::default()
        };
        off.reads.predicate = 1 << self.qualifier;
        if self.writes_when_off {
            off.writes.predicate = self.writes.predicate;
        }
        if (off.reads.predicate | off.writes.predicate) >> 16 != 0 {
            off.reads.state = State::FRAME;
        }
        off
    }

    /// All that it writes in some way.
    pub fn all_writes(&self) -> Parts {
        let mut all = self.writes.or(self.raises);
        all.predicate |= self.clears | self.sets;
        all
    }

    /// What this instruction and a later one depend on each other by.
    pub fn conflict(&self, later: &Effects) -> Conflict {
        let flow = self.all_writes().and(later.reads);
        let anti = self.reads.and(later.all_writes());
        let mut output = self.writes.and(later.all_writes());
        output = output.or(self.all_writes().and(later.writes));
        output.predicate |= self.clears & later.sets | self.sets & later.clears;
        let ordered = |first: &Memory, second: &Memory| {
            let refers = second.reads || second.writes || second.acquires || second.releases;
            let referred = first.reads || first.writes || first.acquires || first.releases;
            first.writes && second.reads
                || first.reads && second.writes
                || first.writes && second.writes
                || first.acquires && refers
                || referred && second.releases
        };
        let parted = self.parted(later, flow, output, anti);
        let grouped = match later.serializes {
            Some(_) => parted,
            None => parted.without(self.pending.without(later.at_once).without(output)),
        };
        Conflict {
            flow,
            output,
            anti,
            parted,
            grouped,
            memory: ordered(&self.memory, &later.memory),
        }
    }

    /// What of a conflict may not be in one group.
    fn parted(&self, later: &Effects, flow: Parts, output: Parts, anti: Parts) -> Parts {
        let (mut flow, mut output) = (flow, output);
        // Checks, loads and stores find the ALAT as those before them leave it.
        flow.state -= State::ALAT;
        output.state -= State::ALAT;
        if matches!(later.kind, Kind::Branch | Kind::Return | Kind::Rotate)
            && self.kind != Kind::FloatPredicate
        {
            flow.predicate &= !(1 << later.qualifier);
        }
        // What the register stack engine writes of its own beside a change of frames asks for no stop.
        if self.kind == Kind::MoveToApplication && later.kind != Kind::Allocate {
            output.application &= later.writes.application | !later.raises.application;
        }
        match (self.kind, later.kind) {
            (Kind::MoveToBranch, Kind::Branch | Kind::Return) => flow.branch = 0,
            (Kind::MoveToApplication, Kind::Return) => flow.application &= !(1 << PFS | 1 << RSC),
            (Kind::MoveToApplication, Kind::Branch) => flow.application &= !(1 << RSC),
            // The frame of a group is that of the alloc which begins it.
            (Kind::CheckLoad, _) => {
                flow.float = 0;
                flow.general &= !self.loaded;
            }
            (Kind::Allocate, _) => flow.state -= State::FRAME | State::STACK,
            (Kind::Purge, Kind::Purge | Kind::GlobalPurge) | (Kind::GlobalPurge, Kind::Purge) => {
                let translations = State::DATA_TRANSLATION | State::INSTRUCTION_TRANSLATION;
                flow.state -= translations;
                output.state -= translations;
            }
            _ => {}
        }
        let mut parted = flow.or(output);
        if (self.kind == Kind::Complement) != (later.kind == Kind::Complement) {
            parted.predicate |= (self.sets | self.clears) & (later.sets | later.clears);
        }
        // Predicate 63 becomes the next of the rotating ones.
        if later.kind == Kind::Rotate {
            parted.predicate |= anti.predicate & 1 << 63;
        }
        parted
    }
}
