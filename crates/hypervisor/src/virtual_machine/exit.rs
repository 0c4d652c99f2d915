//! Why guests were left, how often, and what it cost.

use serde::{Serialize, Serializer};
use sidestep_ia64::encoding::Operation;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)+) => {
        /// Why a guest was left.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum ExitReason {
            $($(#[$doc])* $name,)+
        }

        impl ExitReason {
            /// Every reason, in the order of reports.
            pub const ALL: &'static [ExitReason] = &[$(ExitReason::$name,)+];

            /// The reason in reports.
            pub fn name(self) -> &'static str {
                match self { $(ExitReason::$name => $text,)+ }
            }
        }
    };
}

reasons! {
    /// A translation that the guest has and the shadow lacked.
    ShadowFill = "shadow fill";
    /// A translation that the guest lacks, or a right that it denies: its fault.
    PageFault = "page fault reflected";
    /// Another interruption that is the guest's.
    Reflected = "interruption reflected";
    /// `itc` and `itr`.
    Insert = "translation insert";
    /// `ptc`, `ptr`.
    Purge = "translation purge";
    /// `rfi`.
    ReturnFromInterruption = "rfi";
    /// `ssm`, `rsm`, `mov psr.l`.
    StatusWrite = "status write";
    /// Reading the interruption control registers.
    InterruptionRegister = "interruption register read";
    /// Moves to and from other control registers.
    ControlRegister = "control register";
    /// Moves to and from region registers.
    RegionRegister = "region register";
    /// `mov = cpuid`.
    Identification = "processor identification";
    /// `thash`, `ttag`, `tpa`, `tak`.
    TranslationQuery = "translation query";
    /// `cover`, `bsw`.
    RegisterState = "cover and bank switch";
    /// Another privileged instruction.
    Privileged = "other privileged instruction";
    /// A call of the monitor that is no request.
    Hypercall = "hypercall";
    /// A request of the sidecall interface, by exit.
    Request = "request";
    /// A device register.
    Device = "device access";
    /// An instruction that the monitor executes for the guest, one by one.
    Interpreted = "interpreted instruction";
    /// A reference to a page whose present bit was taken away, to see who touches it.
    SampledPage = "sampled page";
    /// The host's own interrupt: a timer, another core.
    HostInterrupt = "host interrupt";
}

impl Serialize for ExitReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl ExitReason {
    /// The reason of an intercepted instruction.
    pub(super) fn of_operation(operation: &Operation) -> ExitReason {
        use Operation as O;
        use sidestep_ia64::encoding::IndirectFile;
        match operation {
            O::InsertTranslationCache { .. } | O::InsertTranslationRegister { .. } => ExitReason::Insert,
            O::PurgeTranslationCache { .. }
            | O::PurgeTranslationCacheEntry
            | O::PurgeTranslationRegister { .. } => ExitReason::Purge,
            O::ReturnFromInterruption => ExitReason::ReturnFromInterruption,
            O::SetSystemMask | O::ResetSystemMask | O::MoveToPsrLower | O::MoveFromPsr => {
                ExitReason::StatusWrite
            }
            O::MoveFromControl | O::MoveToControl => ExitReason::ControlRegister,
            O::MoveFromIndirect { file } | O::MoveToIndirect { file } => match file {
                IndirectFile::Region => ExitReason::RegionRegister,
                IndirectFile::ProcessorIdentification => ExitReason::Identification,
                IndirectFile::ProtectionKey
                | IndirectFile::DataBreakpoint
                | IndirectFile::InstructionBreakpoint
                | IndirectFile::MonitorConfiguration
                | IndirectFile::MonitorData
                | IndirectFile::ModelSpecific
                | IndirectFile::DataAccessHint => ExitReason::Privileged,
            },
            O::TranslationHash | O::TranslationTag | O::TranslateToPhysical | O::TranslationAccessKey => {
                ExitReason::TranslationQuery
            }
            O::Cover | O::BankSwitch { .. } => ExitReason::RegisterState,
            // Privileged without a reason of their own, or never intercepted.
            O::Add { .. }
            | O::Subtract { .. }
            | O::SubtractFromImmediate
            | O::AddPointer { .. }
            | O::AddImmediate
            | O::AddLongImmediate
            | O::Logical { .. }
            | O::ShiftLeftAdd
            | O::ShiftLeftAddPointer
            | O::Compare { .. }
            | O::ParallelAdd { .. }
            | O::ParallelSubtract { .. }
            | O::ParallelAverage { .. }
            | O::ParallelAverageSubtract { .. }
            | O::ParallelCompare { .. }
            | O::ParallelShiftLeftAdd
            | O::ParallelShiftRightAdd
            | O::ParallelMultiplyShiftRight { .. }
            | O::ParallelMultiply { .. }
            | O::Mix { .. }
            | O::Pack { .. }
            | O::Unpack { .. }
            | O::ParallelMinimum { .. }
            | O::ParallelMaximum { .. }
            | O::ParallelSumAbsoluteDifference
            | O::MuxBytes
            | O::MuxPairs
            | O::ParallelShiftRight { .. }
            | O::ParallelShiftLeft { .. }
            | O::PopulationCount
            | O::CountLeadingZeros
            | O::ComputeZeroIndex { .. }
            | O::MultiplyWord
            | O::MultiplyShiftLeftWord
            | O::ShiftRight { .. }
            | O::ShiftLeft
            | O::ShiftRightPair
            | O::Extract { .. }
            | O::DepositZero { .. }
            | O::Deposit { .. }
            | O::ZeroExtend { .. }
            | O::SignExtend { .. }
            | O::TestBit { .. }
            | O::TestNat { .. }
            | O::TestFeature { .. }
            | O::Break
            | O::Nop
            | O::Hint
            | O::MoveLong
            | O::MoveToBranch
            | O::MoveFromBranch
            | O::MoveToPredicates
            | O::MoveToRotatingPredicates
            | O::MoveFromPredicates
            | O::MoveFromIp
            | O::MoveToApplication { .. }
            | O::MoveFromApplication
            | O::MoveToUserMask
            | O::MoveFromUserMask
            | O::MoveToDataAccessHint
            | O::SetFloat { .. }
            | O::GetFloat { .. }
            | O::Load { .. }
            | O::LoadSixteen { .. }
            | O::LoadFloat { .. }
            | O::LoadFloatPair { .. }
            | O::Store { .. }
            | O::StoreSixteen { .. }
            | O::StoreFloat { .. }
            | O::LineFetch { .. }
            | O::LineFetchCount
            | O::CompareExchange { .. }
            | O::CompareExchangeSixteen { .. }
            | O::Exchange { .. }
            | O::FetchAdd { .. }
            | O::CheckSpeculative
            | O::CheckSpeculativeFloat
            | O::CheckAdvanced { .. }
            | O::CheckAdvancedFloat { .. }
            | O::InvalidateAlat
            | O::InvalidateAlatEntry
            | O::InvalidateAlatEntryFloat
            | O::FlushWriteBuffers
            | O::MemoryFence
            | O::MemoryFenceAcceptance
            | O::FlushCache { .. }
            | O::SynchronizeInstructionCache
            | O::Serialize { .. }
            | O::Allocate
            | O::FlushRegisterStack
            | O::LoadRegisterStack
            | O::ClearRegisterRename { .. }
            | O::SetUserMask
            | O::ResetUserMask
            | O::Probe { .. }
            | O::ProbeFault { .. }
            | O::EnterPrivilegedCode
            | O::VirtualMachineSwitch { .. }
            | O::Branch { .. }
            | O::Call { .. }
            | O::Return
            | O::BranchIa32
            | O::BranchPredict
            | O::BranchPredictIndirect { .. }
            | O::FloatMultiplyAdd { .. }
            | O::ParallelFloatMultiplyAdd { .. }
            | O::FixedMultiplyAdd { .. }
            | O::FloatSelect
            | O::FloatCompare { .. }
            | O::FloatClass { .. }
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
            | O::ConvertFromFixed
            | O::FloatSetControls { .. }
            | O::FloatClearFlags { .. }
            | O::FloatCheckFlags { .. } => ExitReason::Privileged,
        }
    }
}

/// How often each kind of exit happened and the cycles it took, handling included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExitCounts {
    counts: [(u64, u64); ExitReason::ALL.len()],
    /// Intercepts that hardware or firmware dealt with, without an exit.
    pub accelerated: u64,
}

impl ExitCounts {
    /// Notes an exit that took so many cycles.
    pub fn note(&mut self, reason: ExitReason, cycles: u64) {
        let (count, sum) = &mut self.counts[reason as usize];
        *count += 1;
        *sum += cycles;
    }

    /// How often a reason occurred.
    pub fn count(&self, reason: ExitReason) -> u64 {
        self.counts[reason as usize].0
    }

    /// The cycles that a reason cost.
    pub fn cycles(&self, reason: ExitReason) -> u64 {
        self.counts[reason as usize].1
    }

    /// All exits.
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|(count, _)| count).sum()
    }

    /// Exits for translation: what a page fault costs before and after the guest's own handler.
    pub fn translation(&self) -> u64 {
        [ExitReason::ShadowFill, ExitReason::PageFault, ExitReason::Insert]
            .iter()
            .map(|reason| self.count(*reason))
            .sum()
    }

    /// The reasons that occurred, in the order of reports.
    pub fn occurred(&self) -> Vec<ExitCount> {
        let all = ExitReason::ALL.iter();
        all.filter(|reason| self.count(**reason) > 0)
            .map(|reason| ExitCount {
                reason: *reason,
                count: self.count(*reason),
                cycles: self.cycles(*reason),
            })
            .collect()
    }
}

impl std::ops::AddAssign<&ExitCounts> for ExitCounts {
    fn add_assign(&mut self, other: &ExitCounts) {
        for (sum, more) in self.counts.iter_mut().zip(&other.counts) {
            sum.0 += more.0;
            sum.1 += more.1;
        }
        self.accelerated += other.accelerated;
    }
}

/// One reason's line of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ExitCount {
    /// The reason.
    pub reason: ExitReason,
    /// How often.
    pub count: u64,
    /// The cycles it took, handling included.
    pub cycles: u64,
}
