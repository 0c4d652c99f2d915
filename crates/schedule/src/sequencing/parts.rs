//! Sets of what instructions depend on each other by.

use sidestep_ia64::encoding::{IndirectFile, Resource};
use sidestep_ia64::registers::application::FPSR;

bitflags::bitflags! {
    /// State that has no number.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct State: u64 {
        /// The current frame marker: sizes and rename bases.
        const FRAME = 1 << 0;
        /// The register stack engine: which registers are where.
        const STACK = 1 << 1;
        /// The addresses of advanced loads.
        const ALAT = 1 << 2;
        /// Translations of data: cache and registers.
        const DATA_TRANSLATION = 1 << 3;
        /// Translations of instructions.
        const INSTRUCTION_TRANSLATION = 1 << 4;
        /// Interrupts in service: `cr.ivr`, `cr.eoi`.
        const IN_SERVICE = 1 << 5;
        /// Controls of the floating-point status fields 0 to 3.
        const CONTROLS_0 = 1 << 6;
        #[expect(missing_docs, reason = "as the one above")]
        const CONTROLS_1 = 1 << 7;
        #[expect(missing_docs, reason = "as the one above")]
        const CONTROLS_2 = 1 << 8;
        #[expect(missing_docs, reason = "as the one above")]
        const CONTROLS_3 = 1 << 9;
        /// Flags of the floating-point status fields 0 to 3: they stay until something clears them.
        const FLAGS_0 = 1 << 10;
        #[expect(missing_docs, reason = "as the one above")]
        const FLAGS_1 = 1 << 11;
        #[expect(missing_docs, reason = "as the one above")]
        const FLAGS_2 = 1 << 12;
        #[expect(missing_docs, reason = "as the one above")]
        const FLAGS_3 = 1 << 13;
        /// Which floating-point traps are off.
        const TRAPS = 1 << 14;
        /// Region registers, and so on by file.
        const REGION = 1 << 16;
        /// Protection key registers.
        const PROTECTION_KEY = 1 << 17;
        /// Data breakpoint registers.
        const DATA_BREAKPOINT = 1 << 18;
        /// Instruction breakpoint registers.
        const INSTRUCTION_BREAKPOINT = 1 << 19;
        /// Configuration of the performance monitor.
        const MONITOR_CONFIGURATION = 1 << 20;
        /// Data of the performance monitor.
        const MONITOR_DATA = 1 << 21;
        /// Registers of the model.
        const MODEL_SPECIFIC = 1 << 22;
        /// Processor identification.
        const IDENTIFICATION = 1 << 23;
        /// Hints for data accesses.
        const ACCESS_HINT = 1 << 24;

        /// All fields of FPSR.
        const FLOAT_STATUS = Self::CONTROLS.bits() | Self::FLAGS.bits() | Self::TRAPS.bits();
        /// The controls of all status fields.
        const CONTROLS = 0xf << 6;
        /// The flags of all status fields.
        const FLAGS = 0xf << 10;
        /// What a reference to data is translated and checked by.
        const ADDRESSING = Self::DATA_TRANSLATION.bits() | Self::REGION.bits() | Self::PROTECTION_KEY.bits()
            | Self::DATA_BREAKPOINT.bits();
    }
}

/// A set of things that instructions depend on each other by, registers by their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// General registers with their NaT bits.
    pub general: u128,
    /// Floating-point registers.
    pub float: u128,
    /// Predicate registers.
    pub predicate: u64,
    /// Branch registers.
    pub branch: u8,
    /// Application registers, without FPSR.
    pub application: u128,
    /// Control registers.
    pub control: u128,
    /// Bits of PSR.
    pub status: u64,
    /// The rest.
    pub state: State,
}

impl Parts {
    /// Nothing.
    pub const NONE: Parts = Parts {
        general: 0,
        float: 0,
        predicate: 0,
        branch: 0,
        application: 0,
        control: 0,
        status: 0,
        state: State::empty(),
    };

    /// What is in both sets.
    pub fn and(self, other: Parts) -> Parts {
        Parts {
            general: self.general & other.general,
            float: self.float & other.float,
            predicate: self.predicate & other.predicate,
            branch: self.branch & other.branch,
            application: self.application & other.application,
            control: self.control & other.control,
            status: self.status & other.status,
            state: self.state & other.state,
        }
    }

    /// What is in one of the sets.
    pub fn or(self, other: Parts) -> Parts {
        Parts {
            general: self.general | other.general,
            float: self.float | other.float,
            predicate: self.predicate | other.predicate,
            branch: self.branch | other.branch,
            application: self.application | other.application,
            control: self.control | other.control,
            status: self.status | other.status,
            state: self.state | other.state,
        }
    }

    /// What is in this set and not in the other.
    pub fn without(self, other: Parts) -> Parts {
        Parts {
            general: self.general & !other.general,
            float: self.float & !other.float,
            predicate: self.predicate & !other.predicate,
            branch: self.branch & !other.branch,
            application: self.application & !other.application,
            control: self.control & !other.control,
            status: self.status & !other.status,
            state: self.state & !other.state,
        }
    }

    /// Whether nothing is in it.
    pub fn is_empty(self) -> bool {
        self == Parts::NONE
    }

    /// Adds a resource; of PSR, and of FPSR, all of it.
    pub(super) fn add(&mut self, resource: Resource) {
        match resource {
            Resource::General(register) => self.general |= 1 << register,
            Resource::Float(register) => self.float |= 1 << register,
            Resource::Predicate(register) => self.predicate |= 1 << register,
            Resource::Predicates => self.predicate |= !1,
            Resource::RotatingPredicates => self.predicate |= !0xffff,
            Resource::Branch(register) => self.branch |= 1 << register,
            Resource::Application(FPSR) => self.state |= State::FLOAT_STATUS,
            Resource::Application(register) => self.application |= 1 << register,
            Resource::Control(register) => self.control |= 1 << register,
            Resource::Indirect(file) => self.state |= State::of(file),
            Resource::FrameMarker => self.state |= State::FRAME,
            Resource::ProcessorStatus => self.status |= !0,
        }
    }
}

impl State {
    /// The state of a register file.
    fn of(file: IndirectFile) -> State {
        match file {
            IndirectFile::Region => State::REGION,
            IndirectFile::DataBreakpoint => State::DATA_BREAKPOINT,
            IndirectFile::InstructionBreakpoint => State::INSTRUCTION_BREAKPOINT,
            IndirectFile::ProtectionKey => State::PROTECTION_KEY,
            IndirectFile::MonitorConfiguration => State::MONITOR_CONFIGURATION,
            IndirectFile::MonitorData => State::MONITOR_DATA,
            IndirectFile::ModelSpecific => State::MODEL_SPECIFIC,
            IndirectFile::ProcessorIdentification => State::IDENTIFICATION,
            IndirectFile::DataAccessHint => State::ACCESS_HINT,
        }
    }
}
