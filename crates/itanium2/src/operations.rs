//! The pipeline's columns of the architecture's table of operations: class, completers that matter, rules, waits.
//!
//! The match has an arm for every operation and no other: one that is new does not compile before it is classified.

use sidestep_ia64::encoding::{
    BranchKind, IndirectFile, Instruction, LoadKind, Operation, Side, StoreKind, Target, UnitClass,
};
use sidestep_ia64::registers::application::{
    BSP, BSPSTORE, EC, FPSR, ITC, KERNEL_0, KERNEL_7, LC, PFS, RNAT, RSC, RUC, UNAT,
};
use sidestep_ia64::registers::system::control;

use crate::classes::Class;
use crate::flags::Flags;
use crate::rules::{Behind, End};

/// What the pipeline knows of an instruction by its operation.
#[derive(Clone, Copy, Debug)]
pub struct Classified {
    /// Its class.
    pub class: Class,
    /// What its completers add to its class's flags.
    pub flags: Flags,
    /// The ends of rules that it is.
    pub ends: &'static [End],
    /// What everything behind it waits for.
    pub behind: Option<Behind>,
}

impl Classified {
    const fn with(self, flags: Flags) -> Classified {
        Classified { flags, ..self }
    }

    const fn ends(self, ends: &'static [End]) -> Classified {
        Classified { ends, ..self }
    }

    const fn before(self, behind: Behind) -> Classified {
        Classified {
            behind: Some(behind),
            ..self
        }
    }
}

const fn of(class: Class) -> Classified {
    Classified {
        class,
        flags: Flags::empty(),
        ends: &[],
        behind: None,
    }
}

/// A floating-point operation, which rules know of.
const fn float(class: Class) -> Classified {
    of(class).ends(&[End::Float])
}

/// The row of an instruction's operation.
pub fn classify(instruction: &Instruction) -> Classified {
    use Operation as O;
    match instruction.operation {
        // Every unit.
        O::Nop => of(Class::Nop),
        O::Hint => in_unit(Class::Nop, instruction),
        O::Break => in_unit(Class::Break, instruction),
        O::MoveLong => of(Class::Long),

        // A unit.
        O::Add { .. }
        | O::Subtract { .. }
        | O::SubtractFromImmediate
        | O::AddPointer { .. }
        | O::AddImmediate
        | O::AddLongImmediate
        | O::Logical { .. }
        | O::ShiftLeftAdd
        | O::ShiftLeftAddPointer
        | O::Compare { .. } => of(Class::Alu),
        O::ParallelAdd { .. }
        | O::ParallelSubtract { .. }
        | O::ParallelAverage { .. }
        | O::ParallelAverageSubtract { .. }
        | O::ParallelCompare { .. }
        | O::ParallelShiftLeftAdd
        | O::ParallelShiftRightAdd => of(Class::MultimediaAlu),

        // I unit.
        O::ParallelShiftRight { .. }
        | O::ParallelShiftLeft { .. }
        | O::ShiftRight { .. }
        | O::ShiftLeft
        | O::Mix { .. }
        | O::Pack { .. }
        | O::Unpack { .. }
        | O::ParallelMinimum { .. }
        | O::ParallelMaximum { .. }
        | O::MuxBytes
        | O::MuxPairs
        | O::ComputeZeroIndex { .. } => of(Class::MultimediaShift),
        O::ParallelMultiplyShiftRight { .. }
        | O::ParallelMultiply { .. }
        | O::ParallelSumAbsoluteDifference
        | O::PopulationCount => of(Class::MultimediaMultiply),
        O::ZeroExtend { .. } | O::SignExtend { .. } => of(Class::Extend),
        O::ShiftRightPair
        | O::Extract { .. }
        | O::DepositZero { .. }
        | O::Deposit { .. }
        | O::TestBit { .. }
        | O::TestNat { .. }
        | O::TestFeature { .. }
        | O::CountLeadingZeros
        | O::MultiplyWord
        | O::MultiplyShiftLeftWord
        | O::MoveFromIp => of(Class::BitField),
        O::MoveFromBranch => of(Class::FromBranch),
        O::MoveToBranch => of(Class::ToBranch),
        O::MoveFromPredicates => of(Class::FromPredicates),
        O::MoveToPredicates | O::MoveToRotatingPredicates => of(Class::ToPredicates),

        // Loads and stores.
        O::Load { kind, .. } => of(Class::Load).with(match kind {
            LoadKind::Fill => Flags::NAT,
            _ => advanced(kind),
        }),
        O::LoadSixteen { .. } => of(Class::Load),
        O::LoadFloat { kind, .. } => {
            let class = match kind {
                LoadKind::Normal | LoadKind::Speculative | LoadKind::Fill => Class::FloatLoad,
                LoadKind::Advanced
                | LoadKind::SpeculativeAdvanced
                | LoadKind::Bias
                | LoadKind::Acquire
                | LoadKind::CheckClear
                | LoadKind::CheckKeep
                | LoadKind::CheckClearAcquire => Class::FloatLoadPair,
            };
            of(class).with(advanced(kind).union(Flags::OF_FLOAT))
        }
        O::LoadFloatPair { kind, .. } => of(Class::FloatLoadPair).with(advanced(kind).union(Flags::OF_FLOAT)),
        O::LineFetch { .. } | O::LineFetchCount => of(Class::Prefetch),
        O::Store { kind, .. } => of(Class::Store).with(match kind {
            StoreKind::Spill => Flags::NAT,
            StoreKind::Normal | StoreKind::Release => Flags::empty(),
        }),
        O::StoreSixteen { .. } | O::StoreFloat { .. } => of(Class::Store),
        O::CompareExchange { .. }
        | O::CompareExchangeSixteen { .. }
        | O::Exchange { .. }
        | O::FetchAdd { .. } => of(Class::Semaphore),
        O::CheckSpeculative => of(Class::CheckSpeculation).with(Flags::CHECKS),
        O::CheckSpeculativeFloat => of(Class::CheckSpeculation).with(Flags::CHECKS.union(Flags::OF_FLOAT)),
        O::CheckAdvanced { .. } => of(Class::CheckAdvanced).with(Flags::ADVANCED.union(Flags::CHECKS)),
        O::CheckAdvancedFloat { .. } => {
            of(Class::CheckAdvanced).with(Flags::ADVANCED.union(Flags::CHECKS).union(Flags::OF_FLOAT))
        }
        O::InvalidateAlat => of(Class::CheckAdvanced).ends(&[End::Ordering]),
        O::InvalidateAlatEntry | O::InvalidateAlatEntryFloat => of(Class::CheckAdvanced),

        // Order and caches.
        O::MemoryFence | O::MemoryFenceAcceptance => of(Class::Fence).ends(&[End::Ordering]),
        O::FlushWriteBuffers => of(Class::FlushWriteBuffers).ends(&[End::Ordering]),
        O::SynchronizeInstructionCache => of(Class::SynchronizeInstructions).ends(&[End::Ordering]),
        O::Serialize { side: Side::Data } => of(Class::SerializeData).ends(&[End::Serialize, End::Ordering]),
        O::Serialize {
            side: Side::Instruction,
        } => of(Class::SerializeInstructions)
            .ends(&[End::Serialize, End::Ordering])
            .before(Behind::Flush),
        O::FlushCache { .. } => of(Class::FlushCache),

        // The register stack.
        O::Allocate => of(Class::Allocate),
        O::FlushRegisterStack => of(Class::FlushStack).ends(&[End::FlushStack]),
        O::LoadRegisterStack => of(Class::LoadStack).ends(&[End::LoadStack]),
        O::Cover | O::ClearRegisterRename { .. } => of(Class::Frame),

        // Moves between register files.
        O::SetFloat { .. } => of(Class::SetFloat),
        O::GetFloat { .. } => of(Class::GetFloat),
        O::MoveFromApplication => from_application(instruction),
        O::MoveToApplication { .. } => to_application(instruction),
        O::MoveFromPsr => of(Class::FromStatus).ends(&[End::FromStatus]),
        O::MoveFromUserMask => of(Class::FromUserMask).ends(&[End::FromStatus]),
        O::MoveToUserMask | O::SetUserMask | O::ResetUserMask => of(Class::ToStatus)
            .ends(&[End::ToUserMask])
            .before(Behind::UserMask),
        O::MoveToPsrLower | O::SetSystemMask | O::ResetSystemMask => {
            of(Class::ToStatus).ends(&[End::ToSystemMask])
        }
        O::MoveFromControl => of(match instruction.cr3() {
            control::IPSR => Class::FromSavedStatus,
            register if is_interrupt_register(register) => Class::FromInterruptControl,
            _ => Class::FromControl,
        }),
        O::MoveToControl => of(match instruction.cr3() {
            register if is_interrupt_register(register) => Class::ToInterruptControl,
            _ => Class::ToControl,
        }),
        O::MoveFromIndirect { file } => of(match file {
            IndirectFile::MonitorData | IndirectFile::MonitorConfiguration => Class::FromMonitor,
            IndirectFile::Region
            | IndirectFile::ProtectionKey
            | IndirectFile::DataBreakpoint
            | IndirectFile::InstructionBreakpoint
            | IndirectFile::ProcessorIdentification
            | IndirectFile::ModelSpecific
            | IndirectFile::DataAccessHint => Class::FromIndirect,
        }),
        O::MoveToIndirect { file } => match file {
            IndirectFile::Region | IndirectFile::ProtectionKey => of(Class::ToRegion).ends(&[End::ToRegion]),
            IndirectFile::MonitorData | IndirectFile::MonitorConfiguration => of(Class::ToMonitor),
            IndirectFile::DataBreakpoint | IndirectFile::InstructionBreakpoint => {
                of(Class::ToIndirect).with(Flags::STATUS)
            }
            IndirectFile::ProcessorIdentification
            | IndirectFile::ModelSpecific
            | IndirectFile::DataAccessHint => of(Class::ToIndirect),
        },

        // Translation.
        O::Probe { .. }
        | O::TranslateToPhysical
        | O::TranslationAccessKey
        | O::TranslationHash
        | O::TranslationTag => of(Class::Probe),
        O::PurgeTranslationCache { .. }
        | O::PurgeTranslationCacheEntry
        | O::PurgeTranslationRegister { .. } => of(Class::Purge),
        O::ProbeFault { .. }
        | O::InsertTranslationCache { .. }
        | O::InsertTranslationRegister { .. }
        | O::MoveToDataAccessHint
        | O::VirtualMachineSwitch { .. } => of(Class::System),

        // B unit.
        O::Branch { kind, target } => of(Class::Branch).with(match kind {
            BranchKind::Conditional => indirect(target),
            BranchKind::CountedLoop
            | BranchKind::CountedTop
            | BranchKind::CountedExit
            | BranchKind::WhileTop
            | BranchKind::WhileExit => Flags::FRAME.union(Flags::LOOP),
        }),
        O::BranchIa32 => of(Class::Branch),
        O::Call { target } => of(Class::Call).with(indirect(target)),
        O::Return => of(Class::Return),
        O::BranchPredict | O::BranchPredictIndirect { .. } => of(Class::BranchPrediction),
        O::BankSwitch { .. } => of(Class::BankSwitch).before(Behind::BankSwitch),
        O::EnterPrivilegedCode => of(Class::EnterPrivileged),
        O::ReturnFromInterruption => of(Class::ReturnFromInterruption).before(Behind::Return),

        // F unit.
        O::FloatMultiplyAdd { .. } | O::ParallelFloatMultiplyAdd { .. } => float(Class::FloatMultiplyAdd),
        O::FloatCompare { .. } | O::FloatClass { .. } => float(Class::FloatCompare),
        O::FloatSetControls { .. } | O::FloatClearFlags { .. } => float(Class::FloatControl),
        O::FloatCheckFlags { .. } => float(Class::FloatCheck).with(Flags::CHECKS.union(Flags::OF_FLAGS)),
        O::FixedMultiplyAdd { .. }
        | O::FloatSelect
        | O::FloatReciprocalApproximation { .. }
        | O::FloatReciprocalSquareRootApproximation { .. }
        | O::ParallelFloatReciprocalApproximation { .. }
        | O::ParallelFloatReciprocalSquareRootApproximation { .. }
        | O::FloatExtremum { .. }
        | O::ParallelFloatExtremum { .. }
        | O::ParallelFloatCompare { .. }
        | O::FloatMerge { .. }
        | O::ParallelFloatMerge { .. }
        | O::FloatMix { .. }
        | O::FloatSignExtend { .. }
        | O::FloatPack
        | O::FloatSwap { .. }
        | O::FloatLogical { .. }
        | O::ConvertToFixed { .. }
        | O::ParallelConvertToFixed { .. }
        | O::ConvertFromFixed => float(Class::Float),
    }
}

/// An operation of every unit: in the F unit, rules know of it as of any other there.
fn in_unit(class: Class, instruction: &Instruction) -> Classified {
    match instruction.unit_class() {
        UnitClass::F => float(class),
        UnitClass::A | UnitClass::I | UnitClass::M | UnitClass::B | UnitClass::LX => of(class),
    }
}

/// What a load has to do with the ALAT.
const fn advanced(kind: LoadKind) -> Flags {
    match kind {
        LoadKind::CheckClear | LoadKind::CheckKeep | LoadKind::CheckClearAcquire => {
            Flags::ADVANCED.union(Flags::CHECKS)
        }
        LoadKind::Advanced | LoadKind::SpeculativeAdvanced => Flags::ADVANCED,
        LoadKind::Normal | LoadKind::Speculative | LoadKind::Bias | LoadKind::Acquire | LoadKind::Fill => {
            Flags::empty()
        }
    }
}

const fn indirect(target: Target) -> Flags {
    match target {
        Target::Indirect => Flags::INDIRECT,
        Target::Relative | Target::Long => Flags::empty(),
    }
}

/// Moves from application registers, by unit and register.
fn from_application(instruction: &Instruction) -> Classified {
    use End::{FromBsp, FromBspstore, FromNat, FromUnat, RseRegister};
    let is_integer = instruction.unit_class() == UnitClass::I;
    let (class, ends): (Class, &[End]) = match instruction.ar3() {
        RSC => (Class::FromStackRegister, &[RseRegister]),
        BSPSTORE => (Class::FromStackRegister, &[FromBspstore, RseRegister]),
        BSP => (Class::FromStackPointer, &[FromBsp, RseRegister]),
        RNAT => (Class::FromStackNats, &[FromNat, RseRegister]),
        UNAT => (Class::FromNats, &[FromNat, FromUnat]),
        KERNEL_0..=KERNEL_7 | FPSR => (Class::FromKernelRegister, &[]),
        ITC | RUC => (Class::FromTimer, &[]),
        PFS | LC | EC => (Class::FromLoopRegister, &[]),
        _ => (Class::FromApplication, &[]),
    };
    of(if is_integer {
        Class::FromLoopRegister
    } else {
        class
    })
    .ends(ends)
}

/// Moves to application registers, by unit and register.
fn to_application(instruction: &Instruction) -> Classified {
    use End::{RseRegister, ToBspstore, ToNat, ToRnat, ToRsc};
    let is_integer = instruction.unit_class() == UnitClass::I;
    let (class, ends): (Class, &[End]) = match instruction.ar3() {
        RSC => (Class::ToStackRegister, &[ToRsc, RseRegister]),
        BSP => (Class::ToStackRegister, &[]),
        BSPSTORE => (Class::ToStackPointer, &[ToBspstore, RseRegister]),
        RNAT => (Class::ToStackRegister, &[ToRnat, ToNat, RseRegister]),
        UNAT => (Class::ToApplication, &[ToNat]),
        ITC | RUC => (Class::ToTimer, &[]),
        _ => (Class::ToApplication, &[]),
    };
    of(if is_integer { Class::ToLoopRegister } else { class }).ends(ends)
}

fn is_interrupt_register(register: u8) -> bool {
    (control::LID..=control::CMCV).contains(&register)
        || matches!(register, control::LRR_0 | control::LRR_1 | control::ITM)
}
