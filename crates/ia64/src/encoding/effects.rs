//! What an instruction does beyond its operands: the column *effects* of the table of operations.

use super::completers::*;
use super::instruction::Instruction;
use super::operation::Operation;
use crate::operations::operations;
use crate::registers::application::{BSPSTORE, ITC, RUC};
use crate::registers::system::control::PMV;

bitflags::bitflags! {
    /// What whoever executes or watches an instruction has to know of it beforehand.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Effects: u16 {
        /// Nothing behind it belongs into its block: it always leaves, or changes what decoding rests on or how the
        /// next instruction executes, at which a block looks only where it begins.
        const ENDS_BLOCK = 1 << 0;
        /// Legal in the last slot of a bundle only.
        const LAST_SLOT = 1 << 1;
        /// Serialises instructions or data, or caches.
        const SERIALIZES = 1 << 2;
        /// Reads or writes a performance monitor register or a time counter.
        const USES_COUNTERS = 1 << 3;
        /// Names a register whose ALAT entry is meant, not its value.
        const BY_NAME = 1 << 4;
        /// Allocates or checks an ALAT entry.
        const ADVANCED = 1 << 5;
        /// May change the frame, the rename bases or where the register stack lies.
        const CHANGES_FRAME = 1 << 6;
        /// May change PSR beyond its floating-point modified bits.
        const CHANGES_STATUS = 1 << 7;
        /// Writes a region register.
        const WRITES_REGION = 1 << 8;
        /// Writes a branch register.
        const WRITES_BRANCH = 1 << 9;
        /// Writes a register that decides what is counted or where execution breaks.
        const WRITES_MONITOR = 1 << 10;
        /// May go on elsewhere than behind itself: a branch, a call, a return, a check.
        const TRANSFERS = 1 << 11;
        /// Inserts or purges translations.
        const CHANGES_TRANSLATIONS = 1 << 12;
        /// Tells of privileged state, or changes it, at every privilege level: it does not trap in a virtual machine
        /// whose processor has no virtualization of its own.
        const SENSITIVE = 1 << 13;
        /// Writes the registers that it names, from those that it names and constants, and does nothing else: whatever
        /// they hold and in whatever state the processor is, it cannot fault.
        const COMPUTES = 1 << 14;
    }
}

impl Instruction {
    /// Whether it never goes on behind itself, whatever the registers hold.
    pub fn always_transfers(&self) -> bool {
        let effects = self.effects();
        effects.contains(Effects::TRANSFERS | Effects::ENDS_BLOCK) && !effects.contains(Effects::LAST_SLOT)
    }
}

const LOCAL: Effects = Effects::empty();
const COMPUTES: Effects = Effects::COMPUTES;
const ENDS: Effects = Effects::ENDS_BLOCK;
const FRAME: Effects = Effects::CHANGES_FRAME;
const CHANGES_STATUS: Effects = Effects::CHANGES_STATUS;
const ENDS_WITH_STATUS: Effects = ENDS.union(CHANGES_STATUS);
const SERIALIZES: Effects = ENDS.union(Effects::SERIALIZES);
const WRITES_BRANCH: Effects = Effects::WRITES_BRANCH;
const BY_NAME: Effects = Effects::BY_NAME;
const TRANSFERS: Effects = Effects::TRANSFERS;
const CHECKS_ALAT: Effects = BY_NAME.union(Effects::ADVANCED).union(TRANSFERS);
const TRANSLATIONS: Effects = ENDS.union(Effects::CHANGES_TRANSLATIONS);
const SENSITIVE: Effects = Effects::SENSITIVE;

/// A branch leaves its block when it is taken, which it always is without a predicate.
fn leaves(instruction: &Instruction) -> Effects {
    match instruction.predicate() {
        0 => ENDS.union(TRANSFERS),
        _ => TRANSFERS,
    }
}

fn branch(instruction: &Instruction, kind: BranchKind) -> Effects {
    match kind {
        BranchKind::Conditional => leaves(instruction),
        BranchKind::CountedLoop
        | BranchKind::CountedTop
        | BranchKind::CountedExit
        | BranchKind::WhileTop
        | BranchKind::WhileExit => ENDS.union(TRANSFERS).union(Effects::LAST_SLOT).union(FRAME),
    }
}

fn load(kind: LoadKind) -> Effects {
    match kind {
        LoadKind::Advanced
        | LoadKind::SpeculativeAdvanced
        | LoadKind::CheckClear
        | LoadKind::CheckClearAcquire
        | LoadKind::CheckKeep => Effects::ADVANCED,
        LoadKind::Normal | LoadKind::Speculative | LoadKind::Bias | LoadKind::Acquire | LoadKind::Fill => {
            LOCAL
        }
    }
}

fn from_application(instruction: &Instruction) -> Effects {
    match instruction.ar3() {
        ITC | RUC => Effects::USES_COUNTERS,
        _ => LOCAL,
    }
}

fn to_application(instruction: &Instruction) -> Effects {
    match instruction.ar3() {
        BSPSTORE => FRAME,
        ITC | RUC => Effects::USES_COUNTERS,
        _ => LOCAL,
    }
}

fn to_control(instruction: &Instruction) -> Effects {
    match instruction.cr3() {
        PMV => ENDS.union(Effects::WRITES_MONITOR),
        _ => ENDS,
    }
}

const fn from_indirect(file: IndirectFile) -> Effects {
    match file {
        IndirectFile::MonitorConfiguration | IndirectFile::MonitorData => Effects::USES_COUNTERS,
        IndirectFile::ProcessorIdentification
        | IndirectFile::DataAccessHint
        | IndirectFile::DataBreakpoint
        | IndirectFile::InstructionBreakpoint
        | IndirectFile::ModelSpecific
        | IndirectFile::ProtectionKey
        | IndirectFile::Region => LOCAL,
    }
}

const fn to_indirect(file: IndirectFile) -> Effects {
    let written = match file {
        IndirectFile::MonitorConfiguration
        | IndirectFile::MonitorData
        | IndirectFile::DataBreakpoint
        | IndirectFile::InstructionBreakpoint => Effects::WRITES_MONITOR,
        IndirectFile::Region => Effects::WRITES_REGION,
        IndirectFile::ProcessorIdentification
        | IndirectFile::DataAccessHint
        | IndirectFile::ModelSpecific
        | IndirectFile::ProtectionKey => LOCAL,
    };
    ENDS.union(from_indirect(file)).union(written)
}

macro_rules! effects_column {
    ($instruction:ident; $(
        $(#[$comment:meta])*
        $name:ident $({ $($completer:ident: $kind:ty = $about:literal,)+ })?
            => $memory:expr, $effects:expr, $implicit:expr, $handler:expr;
    )+) => {
        impl Instruction {
            /// What the instruction does beyond its operands.
            #[allow(unused_variables, reason = "most completers do not decide it")]
            pub fn effects(&self) -> Effects {
                let $instruction = self;
                match $instruction.operation {
                    $(Operation::$name $({ $($completer),+ })? => $effects,)+
                }
            }
        }
    };
}

operations!(effects_column);
