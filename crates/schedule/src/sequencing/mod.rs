//! What instructions depend on each other by, and what may stand in one instruction group (manual, volume 1, section
//! 3.4; volume 3, chapter 5).
//!
//! [`Effects`] is everything that an instruction reads and writes: its operands, what `dependencies` adds to them,
//! and the state that no operand names, such as fields of PSR and FPSR, the ALAT, translations and the register
//! stack. Two instructions without a [`conflict`](Effects::conflict) may change places. Two that have one keep their
//! order, and [`Conflict::needs_stop`] says whether a stop has to part them. Registers are numbered as encoded;
//! whoever follows a running program renames them first.

mod kinds;
mod names;
mod parts;
mod position;
pub mod serialization;

use sidestep_ia64::encoding::*;
use sidestep_ia64::registers::application::{BSP, BSPSTORE, FPSR, ITC, PFS, RNAT, RSC};
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control::{DCR, EOI, IHA, IPSR, IVR, PTA, TPR};

pub use kinds::{complements, writes_always};
pub use names::Names;
pub use parts::{Parts, State};
pub use position::{Position, misplaced, position};

use kinds::{is_advanced, is_speculative, is_transfer, kind, memory};

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
    /// What the instructions may not have in common in one group: a subset of the three.
    pub parted: Parts,
    /// The part of that which a stop does part: not what waits for serialisation.
    pub grouped: Parts,
    /// Whether references to memory, of unknown addresses, keep their order.
    pub memory: bool,
}

impl Conflict {
    /// Whether the instructions may change places.
    pub fn is_none(&self) -> bool {
        !self.memory && self.flow.or(self.output).or(self.anti).is_empty()
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
            kind: kind(instruction),
            ..Effects::default()
        };
        for resource in instruction.sources().iter() {
            effects.reads.add(*resource);
        }
        for resource in instruction.destinations().iter() {
            effects.writes.add(*resource);
        }
        if effects.kind == Kind::CheckLoad && effects.writes.float == 0 {
            effects.loaded = 1 << instruction.r1();
        }
        effects.narrow(instruction);
        effects.memory = memory(instruction);
        effects.refine_predicates(instruction);
        effects.add_status(instruction);
        effects.add_float(instruction);
        effects.add_system(instruction);
        effects.add_pending(instruction);
        effects.add_deferred(instruction);
        effects.add_at_once(instruction);
        // What is constant depends on nothing.
        for parts in [&mut effects.reads, &mut effects.writes] {
            parts.general &= !1;
            parts.float &= !3;
            parts.predicate &= !1;
        }
        effects
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

    /// Takes back what a coarse resource says too much.
    fn narrow(&mut self, instruction: &Instruction) {
        match instruction.operation {
            Operation::MoveToPredicates => self.writes.predicate = instruction.immediate as u64,
            Operation::MoveToRotatingPredicates => self.writes.predicate = !0xffff,
            // Sets of bits to change, or to read: below.
            _ => {
                self.reads.status = 0;
                self.writes.status = 0;
                self.reads.state -= State::FLOAT_STATUS;
                self.writes.state -= State::FLOAT_STATUS;
            }
        }
        if matches!(
            instruction.operation,
            Operation::MoveToApplication { .. } | Operation::MoveFromApplication
        ) && instruction.ar3() == FPSR
        {
            match instruction.operation {
                Operation::MoveFromApplication => self.reads.state |= State::FLOAT_STATUS,
                _ => self.writes.state |= State::FLOAT_STATUS,
            }
        }
    }

    /// Targets of parallel compares, which only clear or only set.
    fn refine_predicates(&mut self, instruction: &Instruction) {
        let (Operation::Compare { update, .. }
        | Operation::TestBit { update, .. }
        | Operation::TestNat { update, .. }
        | Operation::TestFeature { update, .. }) = instruction.operation
        else {
            return;
        };
        let (first, second) = (1 << instruction.p1() & !1, 1 << instruction.p2() & !1);
        match update {
            PredicateUpdate::Normal | PredicateUpdate::Unconditional => return,
            PredicateUpdate::And => self.clears = first | second,
            PredicateUpdate::Or => self.sets = first | second,
            PredicateUpdate::OrAndComplement => (self.sets, self.clears) = (first, second),
        }
        self.writes.predicate &= !(first | second);
    }

    /// Bits of PSR.
    fn add_status(&mut self, instruction: &Instruction) {
        use Operation as O;
        let mask = instruction.immediate as u64;
        match instruction.operation {
            O::SetUserMask | O::ResetUserMask => self.writes.status = mask & 0x3f,
            O::SetSystemMask | O::ResetSystemMask => self.writes.status = mask & psr::SYSTEM_MASK,
            O::MoveToUserMask => self.writes.status = 0x3f,
            O::MoveToPsrLower => self.writes.status = 0xffff_ffff,
            O::MoveFromUserMask => self.reads.status = 0x3f,
            O::MoveFromPsr => self.reads.status = 0xffff_ffff | psr::MC | psr::IT,
            O::EnterPrivilegedCode => self.writes.status = psr::CPL,
            O::Return => self.writes.status = psr::CPL,
            O::ReturnFromInterruption => self.writes.status = !0,
            O::BankSwitch { .. } => self.writes.status = psr::BN,
            O::VirtualMachineSwitch { .. } => self.writes.status = psr::VM,
            _ => {}
        }
        if self.memory.reads || self.memory.writes {
            self.reads.status |= psr::BE | psr::AC | psr::DT | psr::PK | psr::CPL | psr::DB | psr::VM;
            self.reads.state |= State::ADDRESSING;
            // The walker goes by it.
            self.reads.control |= 1 << PTA;
        }
        if is_speculative(instruction) {
            self.reads.status |= psr::IC | psr::IT | psr::ED;
            self.reads.control |= 1 << DCR;
        }
        if is_transfer(instruction) {
            self.reads.status |= psr::TB;
        }
    }

    /// The partitions of the floating-point registers; the status fields.
    fn add_float(&mut self, instruction: &Instruction) {
        use Operation as O;
        const LOW: u128 = 0xffff_fffc;
        const HIGH: u128 = !0xffff_ffff;
        let used = self.reads.float | self.writes.float;
        for (part, disabled, modified) in [(LOW, psr::DFL, psr::MFL), (HIGH, psr::DFH, psr::MFH)] {
            if used & part != 0 {
                self.reads.status |= disabled;
            }
            if self.writes.float & part != 0 {
                self.raises.status |= modified;
            }
        }
        let fields = |status: StatusField| {
            let number = status as u64;
            (
                State::from_bits_truncate(1 << (6 + number)),
                State::from_bits_truncate(1 << (10 + number)),
            )
        };
        match instruction.operation {
            O::FloatMultiplyAdd { status, .. }
            | O::ParallelFloatMultiplyAdd { status, .. }
            | O::FloatCompare { status, .. }
            | O::FloatReciprocalApproximation { status }
            | O::FloatReciprocalSquareRootApproximation { status }
            | O::ParallelFloatReciprocalApproximation { status }
            | O::ParallelFloatReciprocalSquareRootApproximation { status }
            | O::FloatExtremum { status, .. }
            | O::ParallelFloatExtremum { status, .. }
            | O::ParallelFloatCompare { status, .. }
            | O::ConvertToFixed { status, .. }
            | O::ParallelConvertToFixed { status, .. } => {
                let (controls, flags) = fields(status);
                self.reads.state |= controls | State::TRAPS;
                self.raises.state |= flags;
            }
            O::FloatSetControls { status } => {
                self.reads.state |= State::CONTROLS_0;
                self.writes.state |= fields(status).0;
            }
            O::FloatClearFlags { status } => self.writes.state |= fields(status).1,
            O::FloatCheckFlags { status } => {
                self.reads.state |= State::FLAGS_0 | State::TRAPS | fields(status).1;
            }
            _ => {}
        }
    }

    /// What of the system's state no operand names.
    fn add_system(&mut self, instruction: &Instruction) {
        use Operation as O;
        const STACK_POINTERS: u128 = 1 << BSP | 1 << BSPSTORE | 1 << RNAT;
        let touches_stacked = (self.reads.general | self.writes.general) >> 32 != 0
            || (self.reads.float | self.writes.float) >> 32 != 0
            || (self.reads.predicate | self.all_writes().predicate) >> 16 != 0;
        if touches_stacked {
            self.reads.state |= State::FRAME;
        }
        match instruction.operation {
            O::Allocate => {
                self.reads.status |= psr::CPL | psr::RT;
                self.reads.application |= 1 << RSC | STACK_POINTERS;
                self.raises.application |= STACK_POINTERS & !(1 << BSP);
                self.raises.state |= State::STACK;
            }
            O::Call { .. } | O::Return | O::Cover => {
                self.reads.status |= psr::CPL;
                if matches!(instruction.operation, O::Cover) {
                    self.reads.status |= psr::IC;
                }
                self.reads.application |= 1 << RSC;
                self.writes.application |= 1 << BSP;
                // Only where the register stack spills or fills.
                self.raises.application |= STACK_POINTERS & !(1 << BSP);
                self.writes.state |= State::STACK | State::FRAME;
            }
            O::FlushRegisterStack | O::LoadRegisterStack => {
                self.reads.status |= psr::CPL | psr::RT;
                self.reads.state |= State::STACK | State::FRAME;
                self.reads.application |= STACK_POINTERS;
                self.writes.application |= STACK_POINTERS & !(1 << BSP);
                self.writes.state |= State::STACK;
            }
            O::MoveFromApplication if instruction.unit == Unit::M => {
                // Time is secure by it; the manual's table has all registers of this unit there.
                self.reads.status |= psr::SI;
                match instruction.ar3() {
                    BSP => self.reads.state |= State::STACK,
                    // Only lazy mode lets them be read.
                    BSPSTORE | RNAT => {
                        self.reads.state |= State::STACK;
                        self.reads.application |= 1 << RSC;
                    }
                    ITC => self.reads.status |= psr::CPL,
                    _ => {}
                }
            }
            O::MoveToApplication { .. } => match instruction.ar3() {
                BSPSTORE => {
                    self.reads.application |= 1 << RSC;
                    self.writes.application |= STACK_POINTERS;
                    self.writes.state |= State::STACK;
                }
                RNAT => {
                    self.reads.application |= 1 << RSC;
                    self.reads.state |= State::STACK;
                }
                RSC => self.reads.status |= psr::CPL,
                0..=7 | ITC => self.reads.status |= psr::CPL,
                _ => {}
            },
            O::MoveToControl | O::MoveFromControl => {
                self.reads.status |= psr::CPL;
                if (IPSR..=IHA).contains(&instruction.cr3()) {
                    self.reads.status |= psr::IC;
                }
                if matches!(instruction.cr3(), IVR | EOI) {
                    self.writes.state |= State::IN_SERVICE;
                }
                if instruction.cr3() == IVR {
                    self.reads.state |= State::IN_SERVICE;
                    self.reads.control |= 1 << TPR;
                }
            }
            O::MoveFromIndirect { file } => {
                self.reads.status |= match file {
                    IndirectFile::MonitorData => psr::SP | psr::CPL,
                    _ => psr::CPL,
                };
                if file == IndirectFile::MonitorData {
                    self.reads.state |= State::MONITOR_CONFIGURATION;
                }
            }
            O::ReturnFromInterruption => {
                self.reads.status |= psr::CPL;
                self.reads.state |= State::STACK;
                self.reads.application |= 1 << BSP;
            }
            O::EnterPrivilegedCode => self.reads.state |= State::INSTRUCTION_TRANSLATION,
            O::VirtualMachineSwitch { .. }
            | O::MoveToIndirect { .. }
            | O::SetSystemMask
            | O::ResetSystemMask
            | O::MoveToPsrLower
            | O::MoveFromPsr
            | O::BankSwitch { .. }
            | O::TranslateToPhysical
            | O::TranslationAccessKey => self.reads.status |= psr::CPL,
            _ => {}
        }
        self.add_translation(instruction);
        self.add_order(instruction);
    }

    /// What takes effect behind serialisation alone.
    fn add_pending(&mut self, instruction: &Instruction) {
        use Operation as O;
        match instruction.operation {
            O::SetSystemMask | O::ResetSystemMask | O::MoveToPsrLower => {
                self.pending.status = self.writes.status
            }
            O::MoveToIndirect { .. }
            | O::InsertTranslationCache { .. }
            | O::InsertTranslationRegister { .. }
            | O::PurgeTranslationCache { .. }
            | O::PurgeTranslationCacheEntry
            | O::PurgeTranslationRegister { .. } => self.pending.state = self.writes.state,
            _ => {}
        }
    }

    /// Translations, their tables and the ALAT.
    fn add_translation(&mut self, instruction: &Instruction) {
        use Operation as O;
        const BOTH: State = State::DATA_TRANSLATION.union(State::INSTRUCTION_TRANSLATION);
        match instruction.operation {
            O::InsertTranslationCache { .. } | O::InsertTranslationRegister { .. } => {
                self.reads.status |= psr::CPL | psr::IC;
                self.reads.state |= State::REGION | State::PROTECTION_KEY | BOTH;
                self.writes.state |= BOTH;
            }
            O::PurgeTranslationCache { .. }
            | O::PurgeTranslationCacheEntry
            | O::PurgeTranslationRegister { .. } => {
                self.reads.status |= psr::CPL;
                self.reads.state |= State::REGION;
                self.writes.state |= BOTH;
                if matches!(
                    instruction.operation,
                    O::PurgeTranslationCache {
                        scope: PurgeScope::GlobalAlat
                    }
                ) {
                    self.writes.state |= State::ALAT;
                }
            }
            O::Probe { .. } | O::ProbeFault { .. } | O::TranslateToPhysical | O::TranslationAccessKey => {
                self.reads.status |= psr::CPL | psr::DT | psr::PK | psr::DB;
                self.reads.state |= State::ADDRESSING;
                self.reads.control |= 1 << PTA;
            }
            O::FlushCache { .. } | O::LineFetch { .. } | O::LineFetchCount => {
                self.reads.status |= psr::CPL | psr::DT | psr::PK | psr::DB;
                self.reads.state |= State::ADDRESSING;
                self.reads.control |= 1 << PTA;
            }
            O::InvalidateAlat | O::InvalidateAlatEntry | O::InvalidateAlatEntryFloat => {
                self.writes.state |= State::ALAT;
            }
            O::CheckAdvanced { .. } | O::CheckAdvancedFloat { .. } => {
                self.reads.state |= State::ALAT;
                self.writes.state |= State::ALAT;
            }
            _ if is_advanced(instruction) => {
                self.reads.state |= State::ALAT;
                self.writes.state |= State::ALAT;
            }
            _ => {}
        }
        // The entry of a register goes by its name: a check must find the load's.
        let names_entry = matches!(
            instruction.operation,
            O::CheckAdvanced { .. }
                | O::CheckAdvancedFloat { .. }
                | O::InvalidateAlatEntry
                | O::InvalidateAlatEntryFloat
        );
        if names_entry && instruction.r1() >= 32 {
            self.reads.state |= State::FRAME;
        }
        if self.memory.writes {
            self.raises.state |= State::ALAT;
        }
    }

    /// Serialisation and fences.
    fn add_order(&mut self, instruction: &Instruction) {
        const SYSTEM: State = State::ADDRESSING
            .union(State::INSTRUCTION_TRANSLATION)
            .union(State::INSTRUCTION_BREAKPOINT)
            .union(State::MONITOR_CONFIGURATION)
            .union(State::MONITOR_DATA)
            .union(State::MODEL_SPECIFIC)
            .union(State::IN_SERVICE);
        match instruction.operation {
            // What was written before takes effect here, for what reads it behind.
            Operation::Serialize { side } => {
                self.serializes = Some(side);
                let all = Parts {
                    control: !0,
                    status: !0,
                    state: SYSTEM,
                    ..Parts::default()
                };
                self.reads = self.reads.or(all);
                self.writes = self.writes.or(all);
            }
            Operation::SynchronizeInstructionCache | Operation::FlushWriteBuffers => {
                self.memory.acquires = true;
                self.memory.releases = true;
            }
            _ => {}
        }
    }
}
