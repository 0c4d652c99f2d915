//! What each operation adds to its operands: a column over the table of operations, so that a new one does not compile
//! before it has its place here.

use sidestep_ia64::encoding::*;

use super::{Effects, Kind, Position};

impl Effects {
    /// Adds what the operation of an instruction does beside what its operands say.
    pub(super) fn add_operation(&mut self, instruction: &Instruction) {
        use Operation as O;
        match instruction.operation {
            // All that they do is in their operands.
            O::Add { .. }
            | O::Subtract { .. }
            | O::SubtractFromImmediate
            | O::AddPointer { .. }
            | O::AddImmediate
            | O::AddLongImmediate
            | O::Logical { .. }
            | O::ShiftLeftAdd
            | O::ShiftLeftAddPointer
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
            | O::MoveLong
            | O::MoveFromBranch
            | O::MoveFromPredicates
            | O::MoveFromIp
            | O::MoveToDataAccessHint
            | O::SetFloat { .. }
            | O::GetFloat { .. }
            | O::TranslationHash
            | O::TranslationTag
            | O::BranchPredict
            | O::BranchPredictIndirect { .. }
            | O::FixedMultiplyAdd { .. }
            | O::FloatSelect
            | O::FloatMerge { .. }
            | O::ParallelFloatMerge { .. }
            | O::FloatMix { .. }
            | O::FloatSignExtend { .. }
            | O::FloatPack
            | O::FloatSwap { .. }
            | O::FloatLogical { .. }
            | O::ConvertFromFixed => {}

            O::Break | O::Nop | O::Hint => {
                if instruction.unit_class() == UnitClass::B {
                    self.kind = Kind::Branch;
                }
            }

            O::Compare { update, .. }
            | O::TestBit { update, .. }
            | O::TestNat { update, .. }
            | O::TestFeature { update, .. } => self.add_targets(instruction, update),
            O::MoveToPredicates => self.writes.predicate = instruction.immediate as u64,
            O::MoveToRotatingPredicates => self.writes.predicate = !0xffff,

            O::FloatMultiplyAdd { status, .. }
            | O::ParallelFloatMultiplyAdd { status, .. }
            | O::FloatExtremum { status, .. }
            | O::ParallelFloatExtremum { status, .. }
            | O::ParallelFloatCompare { status, .. }
            | O::ConvertToFixed { status, .. }
            | O::ParallelConvertToFixed { status, .. } => self.add_status_field(status),
            O::FloatCompare {
                status,
                unconditional,
                ..
            } => {
                self.add_status_field(status);
                self.add_float_targets(unconditional);
            }
            O::FloatClass { unconditional, .. } => self.add_float_targets(unconditional),
            O::FloatReciprocalApproximation { status }
            | O::FloatReciprocalSquareRootApproximation { status }
            | O::ParallelFloatReciprocalApproximation { status }
            | O::ParallelFloatReciprocalSquareRootApproximation { status } => {
                self.add_status_field(status);
                self.add_approximation();
            }
            O::FloatSetControls { status } => self.add_set_controls(status),
            O::FloatClearFlags { status } => self.add_clear_flags(status),
            O::FloatCheckFlags { status } => {
                self.add_check_flags(status);
                self.add_transfer();
            }

            O::Load { kind, .. } | O::LoadFloat { kind, .. } | O::LoadFloatPair { kind, .. } => {
                self.add_load(instruction, kind);
            }
            O::LoadSixteen { ordering } => self.add_read(ordering == Ordering::Acquire),
            O::Store { kind, .. } => self.add_write(kind == StoreKind::Release),
            O::StoreSixteen { ordering } => self.add_write(ordering == Ordering::Release),
            O::StoreFloat { .. } => self.add_write(false),
            O::CompareExchange { ordering, .. }
            | O::CompareExchangeSixteen { ordering }
            | O::FetchAdd { ordering, .. } => self.add_semaphore(ordering),
            O::Exchange { .. } => self.add_semaphore(Ordering::Acquire),
            O::MemoryFence
            | O::MemoryFenceAcceptance
            | O::SynchronizeInstructionCache
            | O::FlushWriteBuffers => {
                self.add_fence();
            }
            O::FlushCache { .. } => self.add_flush(),

            O::CheckSpeculative | O::CheckSpeculativeFloat | O::BranchIa32 => self.add_transfer(),
            O::CheckAdvanced { .. } | O::CheckAdvancedFloat { .. } => {
                self.add_transfer();
                self.add_alat_check();
                self.add_alat_name(instruction);
            }
            O::InvalidateAlat => self.add_alat_removal(),
            O::InvalidateAlatEntry | O::InvalidateAlatEntryFloat => {
                self.add_alat_removal();
                self.add_alat_name(instruction);
            }

            O::Allocate => self.add_allocate(),
            O::FlushRegisterStack => {
                // The register stack goes to memory, which others may look at.
                self.add_write(false);
                self.add_stack_move();
            }
            O::LoadRegisterStack => {
                self.add_read(false);
                self.add_stack_move();
            }
            O::Cover => {
                self.add_frame_change();
                self.add_cover();
            }
            O::ClearRegisterRename { .. } => self.position = Some(Position::Last),
            O::Branch { kind, .. } => {
                self.add_transfer();
                self.kind = match kind {
                    BranchKind::Conditional | BranchKind::CountedLoop => Kind::Branch,
                    BranchKind::CountedTop
                    | BranchKind::CountedExit
                    | BranchKind::WhileTop
                    | BranchKind::WhileExit => Kind::Rotate,
                };
            }
            O::Call { .. } => {
                self.kind = Kind::Branch;
                self.add_transfer();
                self.add_frame_change();
            }
            O::Return => {
                self.kind = Kind::Return;
                self.add_transfer();
                self.add_frame_change();
                self.add_privilege_change();
            }
            O::MoveToBranch => self.kind = Kind::MoveToBranch,

            O::MoveToApplication { .. } => self.add_move_to_application(instruction),
            O::MoveFromApplication => self.add_move_from_application(instruction),
            O::MoveToControl => {
                self.add_control(instruction);
                self.defer_control();
            }
            O::MoveFromControl => self.add_control(instruction),
            O::MoveToIndirect { file } => self.add_move_to_indirect(file),
            O::MoveFromIndirect { file } => self.add_move_from_indirect(file),

            O::SetUserMask | O::ResetUserMask => self.add_user_mask(instruction.immediate as u64),
            O::MoveToUserMask => self.add_user_mask(!0),
            O::MoveFromUserMask => self.add_move_from_user_mask(),
            O::SetSystemMask | O::ResetSystemMask => self.add_system_mask(instruction.immediate as u64),
            O::MoveToPsrLower => self.add_move_to_status(),
            O::MoveFromPsr => self.add_move_from_status(),
            O::BankSwitch { .. } => self.add_bank_switch(),
            O::VirtualMachineSwitch { .. } => self.add_virtual_machine_switch(),
            O::EnterPrivilegedCode => self.add_enter_privileged_code(),
            O::ReturnFromInterruption => self.add_return_from_interruption(),
            O::Serialize { side } => self.add_serialize(side),

            O::LineFetch { .. }
            | O::LineFetchCount
            | O::Probe { .. }
            | O::ProbeFault { .. }
            | O::TranslateToPhysical
            | O::TranslationAccessKey => self.add_lookup(),
            O::InsertTranslationCache { .. } => {
                self.position = Some(Position::Last);
                self.add_insertion();
            }
            O::InsertTranslationRegister { .. } => self.add_insertion(),
            O::PurgeTranslationCache { scope } => {
                self.add_purge();
                self.add_purge_scope(scope);
            }
            O::PurgeTranslationCacheEntry | O::PurgeTranslationRegister { .. } => self.add_purge(),
        }
    }
}
