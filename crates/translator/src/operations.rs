//! The translator's column of the architecture's table of operations: how each is emitted.
//!
//! An operation is emitted in line, or performed: by the function of the interpreter, called from the emitted code. The
//! match has an arm for every operation and no other: one that is new does not compile before it is classified.

use sidestep_ia64::encoding::{Instruction, LoadKind, Operation, Signedness, Source};

use crate::emitter::Emitter;
use crate::memory::Semaphore;
use crate::{advanced, branch, call, compare, float, integer, memory, moves, parallel, stack};

/// Emits a legal instruction.
pub fn emit(emitter: &mut Emitter, instruction: &Instruction) {
    use Operation as O;
    match instruction.operation {
        // They change nothing. Data access hints are kept nowhere.
        O::Nop
        | O::Hint
        | O::BranchPredict
        | O::BranchPredictIndirect { .. }
        | O::FlushWriteBuffers
        | O::LineFetchCount
        | O::MoveToDataAccessHint
        | O::MemoryFenceAcceptance => {}
        // No register of a region is NaT.
        O::CheckSpeculative => {}

        // Integers.
        O::Add { carry } => integer::add(emitter, instruction, carry),
        O::Subtract { borrow } => integer::subtract(emitter, instruction, borrow),
        O::SubtractFromImmediate => integer::subtract_from_immediate(emitter, instruction),
        O::AddPointer { first } => integer::add_pointer(emitter, instruction, first),
        O::AddImmediate => integer::add_immediate(emitter, instruction, instruction.r3()),
        O::AddLongImmediate => integer::add_immediate(emitter, instruction, instruction.r3_short()),
        O::Logical { function, first } => integer::logical(emitter, instruction, function, first),
        O::ShiftLeftAdd => integer::shift_left_add(emitter, instruction),
        O::ShiftLeftAddPointer => integer::shift_left_add_pointer(emitter, instruction),
        O::ShiftRight { signedness } => integer::shift_right(emitter, instruction, signedness),
        O::ShiftLeft => integer::shift_left(emitter, instruction),
        O::ShiftRightPair => integer::shift_right_pair(emitter, instruction),
        O::Extract { signedness } => integer::extract(emitter, instruction, signedness),
        O::DepositZero { value } => integer::deposit_zero(emitter, instruction, value),
        O::Deposit { value } => integer::deposit(emitter, instruction, value),
        O::ZeroExtend { size } => integer::extend(emitter, instruction, size, Signedness::Unsigned),
        O::SignExtend { size } => integer::extend(emitter, instruction, size, Signedness::Signed),
        O::PopulationCount => integer::population_count(emitter, instruction),
        O::CountLeadingZeros => integer::count_leading_zeros(emitter, instruction),
        O::MultiplyWord => integer::multiply_word(emitter, instruction),
        O::MultiplyShiftLeftWord => integer::multiply_shift_left_word(emitter, instruction),
        O::MoveLong => integer::move_immediate(emitter, instruction),

        // Several integers at once.
        O::ParallelAdd { size, saturation } => parallel::add(emitter, instruction, size, saturation),
        O::ParallelSubtract { size, saturation } => {
            parallel::subtract(emitter, instruction, size, saturation);
        }
        O::ParallelAverage { size, round_away } => {
            parallel::average(emitter, instruction, size, round_away);
        }
        O::ParallelAverageSubtract { size } => parallel::average_subtract(emitter, instruction, size),
        O::ParallelCompare { size, relation } => parallel::compare(emitter, instruction, size, relation),
        O::ParallelMinimum { size } => parallel::minimum(emitter, instruction, size),
        O::ParallelMaximum { size } => parallel::maximum(emitter, instruction, size),
        O::ParallelSumAbsoluteDifference => parallel::sum_absolute_difference(emitter, instruction),
        O::ParallelShiftLeftAdd => parallel::shift_left_add(emitter, instruction),
        O::ParallelShiftRightAdd => parallel::shift_right_add(emitter, instruction),
        O::ParallelMultiplyShiftRight { signedness } => {
            parallel::multiply_shift_right(emitter, instruction, signedness);
        }
        O::ParallelMultiply { half } => parallel::multiply(emitter, instruction, half),
        O::Mix { size, half } => parallel::mix(emitter, instruction, size, half),
        O::Pack { size, saturation } => parallel::pack(emitter, instruction, size, saturation),
        O::Unpack { size, half } => parallel::unpack(emitter, instruction, size, half),
        O::MuxBytes => parallel::permute_bytes(emitter, instruction),
        O::MuxPairs => parallel::permute_pairs(emitter, instruction),
        O::ParallelShiftRight {
            size,
            signedness,
            count,
        } => parallel::shift_right(emitter, instruction, size, signedness, count),
        O::ParallelShiftLeft { size, count } => parallel::shift_left(emitter, instruction, size, count),
        O::ComputeZeroIndex { size, half } => parallel::zero_index(emitter, instruction, size, half),

        // Predicates.
        O::Compare {
            relation,
            width,
            update,
            first,
        } if compare::is_legal(instruction) => {
            compare::compare(emitter, instruction, (relation, width, update, first));
        }
        O::TestBit { relation, update } if compare::is_legal(instruction) => {
            compare::test_bit(emitter, instruction, relation, update);
        }
        O::TestNat { relation, update } if compare::is_legal(instruction) => {
            compare::test_nat(emitter, instruction, relation, update);
        }

        // Moves.
        O::MoveToBranch => moves::to_branch(emitter, instruction),
        O::MoveFromBranch => moves::from_branch(emitter, instruction),
        O::MoveFromIp => moves::from_ip(emitter, instruction),
        O::MoveFromPredicates => moves::from_predicates(emitter, instruction),
        O::MoveToPredicates => moves::to_predicates(emitter, instruction, Source::Register),
        O::MoveToRotatingPredicates => moves::to_predicates(emitter, instruction, Source::Immediate),
        O::MoveToApplication { value } => moves::to_application(emitter, instruction, value),
        O::MoveFromApplication => moves::from_application(emitter, instruction),

        // Memory.
        O::Load { size, kind, update } => match kind {
            LoadKind::Normal
            | LoadKind::Bias
            | LoadKind::Acquire
            | LoadKind::Speculative
            | LoadKind::Fill
            | LoadKind::Advanced
            | LoadKind::CheckClear => memory::load(emitter, instruction, size, kind, update),
            LoadKind::SpeculativeAdvanced | LoadKind::CheckKeep | LoadKind::CheckClearAcquire => {
                emitter.perform(Some(instruction));
            }
        },
        O::Store { size, kind, update } => memory::store(emitter, instruction, size, kind, update),
        O::Exchange { size } => memory::semaphore(emitter, instruction, size, Semaphore::Exchange),
        O::CompareExchange { size, .. } => {
            memory::semaphore(emitter, instruction, size, Semaphore::CompareExchange);
        }
        O::FetchAdd { size, .. } => memory::semaphore(emitter, instruction, size, Semaphore::FetchAdd),
        O::MemoryFence => memory::fence(emitter, instruction),
        O::LineFetch {
            fault: false, update, ..
        } => memory::prefetch(emitter, instruction, update),

        // Floating-point registers.
        O::SetFloat { form } => float::moves::set(emitter, instruction, form),
        O::GetFloat { form } => float::moves::get(emitter, instruction, form),
        O::FloatMerge { merge } => float::moves::merge(emitter, instruction, merge),
        O::LoadFloat { format, kind, update } => {
            float::memory::load(emitter, instruction, format, kind, update);
        }
        O::LoadFloatPair { format, kind, update } => {
            float::memory::load_pair(emitter, instruction, format, kind, update);
        }
        O::StoreFloat { format, update } => float::memory::store(emitter, instruction, format, update),

        // Floating-point arithmetic.
        O::FixedMultiplyAdd { part } => float::arithmetic::fixed_multiply_add(emitter, instruction, part),
        O::FloatMultiplyAdd {
            function,
            precision,
            status,
        } => float::division::step(emitter, |emitter| {
            float::arithmetic::multiply_add(emitter, instruction, function, precision, status);
        }),
        O::ParallelFloatMultiplyAdd { function, status } => {
            float::parallel::multiply_add(emitter, instruction, function, status);
        }
        O::FloatPack => float::parallel::pack(emitter, instruction),
        O::FloatMix { mix } => float::parallel::mix(emitter, instruction, mix),
        O::FloatCompare {
            relation,
            unconditional,
            ..
        } => float::arithmetic::compare(emitter, instruction, relation, unconditional),
        O::FloatClass { unconditional } => float::arithmetic::classify(emitter, instruction, unconditional),
        O::FloatExtremum { select, .. } => float::arithmetic::extremum(emitter, instruction, select),
        O::ConvertToFixed {
            signedness,
            rounding,
            status,
        } => float::division::step(emitter, |emitter| {
            float::arithmetic::to_fixed(emitter, instruction, signedness, rounding, status);
        }),
        O::ConvertFromFixed => float::arithmetic::from_fixed(emitter, instruction),
        O::FloatReciprocalApproximation { .. } => {
            float::division::begin(emitter, instruction, float::nearest::reciprocal);
        }
        O::FloatReciprocalSquareRootApproximation { .. } => {
            float::division::begin(emitter, instruction, float::nearest::reciprocal_root);
        }

        // The register stack.
        O::Allocate => stack::allocate(emitter, instruction),

        // Branches.
        O::CheckAdvanced { clear } => advanced::check(emitter, instruction, clear),
        O::Branch { kind, target } => branch::branch(emitter, instruction, kind, target),
        O::Call { target } => call::call(emitter, instruction, target),
        O::Return => call::return_(emitter, instruction),

        O::LineFetch { fault: true, .. }
        // Illegal where they name a predicate twice.
        | O::Compare { .. }
        | O::TestBit { .. }
        | O::TestNat { .. }
        | O::TestFeature { .. }
        // Moves of system registers.
        | O::MoveToControl
        | O::MoveFromControl
        | O::MoveToPsrLower
        | O::MoveFromPsr
        | O::MoveToUserMask
        | O::MoveFromUserMask
        | O::MoveToIndirect { .. }
        | O::MoveFromIndirect { .. }
        // Memory: pairs, the ALAT, order.
        | O::LoadSixteen { .. }
        | O::StoreSixteen { .. }
        | O::CompareExchangeSixteen { .. }
        | O::CheckAdvancedFloat { .. }
        | O::InvalidateAlat
        | O::InvalidateAlatEntry
        | O::InvalidateAlatEntryFloat
        | O::FlushCache { .. }
        | O::SynchronizeInstructionCache
        | O::Serialize { .. }
        // The register stack.
        | O::FlushRegisterStack
        | O::LoadRegisterStack
        | O::Cover
        | O::ClearRegisterRename { .. }
        // The system.
        | O::Break
        | O::SetUserMask
        | O::ResetUserMask
        | O::SetSystemMask
        | O::ResetSystemMask
        | O::Probe { .. }
        | O::ProbeFault { .. }
        | O::InsertTranslationCache { .. }
        | O::InsertTranslationRegister { .. }
        | O::PurgeTranslationCache { .. }
        | O::PurgeTranslationCacheEntry
        | O::PurgeTranslationRegister { .. }
        | O::TranslationHash
        | O::TranslationTag
        | O::TranslateToPhysical
        | O::TranslationAccessKey
        | O::EnterPrivilegedCode
        | O::ReturnFromInterruption
        | O::BankSwitch { .. }
        | O::VirtualMachineSwitch { .. }
        | O::BranchIa32
        // Floating point.
        | O::CheckSpeculativeFloat
        | O::FloatSelect
        | O::ParallelFloatReciprocalApproximation { .. }
        | O::ParallelFloatReciprocalSquareRootApproximation { .. }
        | O::ParallelFloatExtremum { .. }
        | O::ParallelFloatCompare { .. }
        | O::ParallelFloatMerge { .. }
        | O::FloatSignExtend { .. }
        | O::FloatSwap { .. }
        | O::FloatLogical { .. }
        | O::ParallelConvertToFixed { .. }
        | O::FloatSetControls { .. }
        | O::FloatClearFlags { .. }
        | O::FloatCheckFlags { .. } => emitter.perform(Some(instruction)),
    }
}
