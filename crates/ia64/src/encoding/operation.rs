//! What an instruction does: one variant per operation of the architecture.
//!
//! A variant carries the completers that change the result. Registers and immediates are not part of an
//! operation: they are read from the [`Instruction`](super::Instruction) at the fields the variant's comment
//! names (`r1`, `f2`, `p1`, `immediate`, ...). Sections follow the units of the manual, volume 3, chapter 4.

use super::completers::*;

/// One operation of the architecture with its semantic completers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    // Integer arithmetic and logic (A unit).
    /// `add r1 = r2, r3` and, with `carry`, `add r1 = r2, r3, 1`.
    Add {
        /// Adds one more.
        carry: bool,
    },
    /// `sub r1 = r2, r3` and, with `borrow`, `sub r1 = r2, r3, 1`.
    Subtract {
        /// Subtracts one more.
        borrow: bool,
    },
    /// `sub r1 = immediate, r3`.
    SubtractFromImmediate,
    /// `addp4 r1 = r2, r3`: 32-bit pointer addition.
    AddPointer {
        /// `r2`, or the immediate (14 bits) in its place.
        first: Source,
    },
    /// `adds r1 = immediate, r3` (14 bits).
    AddImmediate,
    /// `addl r1 = immediate, r3` (22 bits), the base being [`r3_short`](super::Instruction::r3_short).
    AddLongImmediate,
    /// `and`, `andcm`, `or`, `xor`: `r1 = first function r3`.
    Logical {
        /// The bitwise function.
        function: Logical,
        /// `r2`, or the immediate (8 bits).
        first: Source,
    },
    /// `shladd r1 = r2, immediate, r3`: `(r2 << immediate) + r3`, the immediate 1 to 4.
    ShiftLeftAdd,
    /// `shladdp4 r1 = r2, immediate, r3`: the same with 32-bit pointer addition.
    ShiftLeftAddPointer,
    /// `cmp`, `cmp4`: `p1, p2 = first relation r3`.
    Compare {
        /// The relation.
        relation: Relation,
        /// 32 or 64 bits.
        width: CompareWidth,
        /// How the targets are written.
        update: PredicateUpdate,
        /// The first operand.
        first: CompareSource,
    },

    // Parallel integer (A and I units). Operands are `r1 = r2, r3` unless said otherwise.
    /// `padd`.
    ParallelAdd {
        /// Element size.
        size: Size,
        /// Overflow behaviour.
        saturation: Saturation,
    },
    /// `psub`.
    ParallelSubtract {
        /// Element size.
        size: Size,
        /// Overflow behaviour.
        saturation: Saturation,
    },
    /// `pavg`.
    ParallelAverage {
        /// Element size.
        size: Size,
        /// `.raz`: rounds away from zero instead of to odd.
        round_away: bool,
    },
    /// `pavgsub`.
    ParallelAverageSubtract {
        /// Element size.
        size: Size,
    },
    /// `pcmp`.
    ParallelCompare {
        /// Element size.
        size: Size,
        /// The relation.
        relation: ParallelRelation,
    },
    /// `pshladd2 r1 = r2, immediate, r3`.
    ParallelShiftLeftAdd,
    /// `pshradd2 r1 = r2, immediate, r3`.
    ParallelShiftRightAdd,
    /// `pmpyshr2 r1 = r2, r3, immediate`: the immediate is 0, 7, 15 or 16.
    ParallelMultiplyShiftRight {
        /// Element interpretation.
        signedness: Signedness,
    },
    /// `pmpy2.l`, `pmpy2.r`.
    ParallelMultiply {
        /// The elements multiplied.
        half: Half,
    },
    /// `mix`.
    Mix {
        /// Element size.
        size: Size,
        /// The elements taken.
        half: Half,
    },
    /// `pack2`, `pack4`.
    Pack {
        /// Size of the source elements.
        size: Size,
        /// Result interpretation.
        saturation: PackSaturation,
    },
    /// `unpack`.
    Unpack {
        /// Element size.
        size: Size,
        /// The half of the register spread.
        half: UnpackHalf,
    },
    /// `pmin1.u` (unsigned bytes), `pmin2` (signed pairs).
    ParallelMinimum {
        /// Element size: one or two bytes.
        size: Size,
    },
    /// `pmax1.u` (unsigned bytes), `pmax2` (signed pairs).
    ParallelMaximum {
        /// Element size: one or two bytes.
        size: Size,
    },
    /// `psad1`.
    ParallelSumAbsoluteDifference,
    /// `mux1 r1 = r2, immediate`: the immediate is the 4-bit permutation code.
    MuxBytes,
    /// `mux2 r1 = r2, immediate`: the immediate is the 8-bit permutation.
    MuxPairs,
    /// `pshr r1 = r3, r2` or `r1 = r3, immediate`.
    ParallelShiftRight {
        /// Element size.
        size: Size,
        /// Arithmetic or logical.
        signedness: Signedness,
        /// The count's source.
        count: Source,
    },
    /// `pshl r1 = r2, r3` or `r1 = r2, immediate`. The variable count is in `r3`.
    ParallelShiftLeft {
        /// Element size.
        size: Size,
        /// The count's source: `Register` means `r3`.
        count: Source,
    },
    /// `popcnt r1 = r3`.
    PopulationCount,
    /// `clz r1 = r3`.
    CountLeadingZeros,
    /// `czx r1 = r3`.
    ComputeZeroIndex {
        /// Element size: one or two bytes.
        size: Size,
        /// The side the search starts from.
        half: Half,
    },
    /// `mpy4 r1 = r2, r3`: unsigned 32 by 32 to 64 bits.
    MultiplyWord,
    /// `mpyshl4 r1 = r2, r3`.
    MultiplyShiftLeftWord,

    // Shifts, bit fields and bit tests (I unit).
    /// `shr r1 = r3, r2`: the count is in `r2`.
    ShiftRight {
        /// Arithmetic or logical.
        signedness: Signedness,
    },
    /// `shl r1 = r2, r3`: the count is in `r3`.
    ShiftLeft,
    /// `shrp r1 = r2, r3, immediate`.
    ShiftRightPair,
    /// `extr r1 = r3, position, length`.
    Extract {
        /// Sign extension or zero extension.
        signedness: Signedness,
    },
    /// `dep.z r1 = r2, position, length` or `r1 = immediate, position, length`.
    DepositZero {
        /// The field's value.
        value: Source,
    },
    /// `dep r1 = r2, r3, position, length` or `r1 = immediate, r3, position, length` (immediate 0 or -1).
    Deposit {
        /// The field's value.
        value: Source,
    },
    /// `zxt r1 = r3`.
    ZeroExtend {
        /// Size of the source.
        size: Size,
    },
    /// `sxt r1 = r3`.
    SignExtend {
        /// Size of the source.
        size: Size,
    },
    /// `tbit p1, p2 = r3, position`.
    TestBit {
        /// What makes the result 1.
        relation: BitRelation,
        /// How the targets are written.
        update: PredicateUpdate,
    },
    /// `tnat p1, p2 = r3`.
    TestNat {
        /// What makes the result 1.
        relation: BitRelation,
        /// How the targets are written.
        update: PredicateUpdate,
    },
    /// `tf p1, p2 = immediate`: tests a feature bit, the immediate 32 to 63.
    TestFeature {
        /// What makes the result 1.
        relation: BitRelation,
        /// How the targets are written.
        update: PredicateUpdate,
    },

    // Operations of every unit.
    /// `break immediate`: 21 bits, or 62 on the X unit.
    Break,
    /// `nop immediate`.
    Nop,
    /// `hint immediate`.
    Hint,
    /// `movl r1 = immediate` (64 bits, X unit).
    MoveLong,

    // Moves between register files (I and M units).
    /// `mov b1 = r2`; the immediate is the displacement of the tag, a branch-prediction hint.
    MoveToBranch,
    /// `mov r1 = b2`.
    MoveFromBranch,
    /// `mov pr = r2, immediate`: the immediate is the sign-extended mask, bit 0 clear.
    MoveToPredicates,
    /// `mov pr.rot = immediate`: the sign-extended value, low 16 bits clear.
    MoveToRotatingPredicates,
    /// `mov r1 = pr`.
    MoveFromPredicates,
    /// `mov r1 = ip`.
    MoveFromIp,
    /// `mov ar3 = r2` or `ar3 = immediate`, on the I unit or the M unit.
    MoveToApplication {
        /// The value.
        value: Source,
    },
    /// `mov r1 = ar3`, on the I unit or the M unit.
    MoveFromApplication,
    /// `mov cr3 = r2`.
    MoveToControl,
    /// `mov r1 = cr3`.
    MoveFromControl,
    /// `mov psr.l = r2`.
    MoveToPsrLower,
    /// `mov r1 = psr`.
    MoveFromPsr,
    /// `mov psr.um = r2`.
    MoveToUserMask,
    /// `mov r1 = psr.um`.
    MoveFromUserMask,
    /// `mov file[r3] = r2`.
    MoveToIndirect {
        /// The register file.
        file: IndirectFile,
    },
    /// `mov r1 = file[r3]`.
    MoveFromIndirect {
        /// The register file.
        file: IndirectFile,
    },
    /// `mov dahr = immediate` (16 bits); the register is [`dahr`](super::Instruction::dahr).
    MoveToDataAccessHint,
    /// `setf f1 = r2`.
    SetFloat {
        /// The transfer form.
        form: FloatTransfer,
    },
    /// `getf r1 = f2`.
    GetFloat {
        /// The transfer form.
        form: FloatTransfer,
    },

    // Memory (M unit). Addresses are in `r3`.
    /// `ld r1 = [r3]`.
    Load {
        /// Access size.
        size: Size,
        /// Speculation, check and ordering.
        kind: LoadKind,
        /// Base update.
        update: BaseUpdate,
    },
    /// `ld16 r1, ar.csd = [r3]`.
    LoadSixteen {
        /// None or acquire.
        ordering: Ordering,
    },
    /// `ldf f1 = [r3]`.
    LoadFloat {
        /// Memory format.
        format: FloatFormat,
        /// Speculation and check.
        kind: LoadKind,
        /// Base update.
        update: BaseUpdate,
    },
    /// `ldfp f1, f2 = [r3]`; the base update adds the access size (the immediate, 8 or 16).
    LoadFloatPair {
        /// Memory format of each half: single, double or significand.
        format: FloatFormat,
        /// Speculation and check.
        kind: LoadKind,
        /// Whether `r3` moves on by the access size: `None` or `Immediate`.
        update: BaseUpdate,
    },
    /// `st [r3] = r2`.
    Store {
        /// Access size.
        size: Size,
        /// Ordering and spill.
        kind: StoreKind,
        /// Base update: none or immediate.
        update: BaseUpdate,
    },
    /// `st16 [r3] = r2, ar.csd`.
    StoreSixteen {
        /// None or release.
        ordering: Ordering,
    },
    /// `stf [r3] = f2`.
    StoreFloat {
        /// Memory format; `Register` is `stf.spill`.
        format: FloatFormat,
        /// Base update: none or immediate.
        update: BaseUpdate,
    },
    /// `lfetch [r3]`.
    LineFetch {
        /// `.fault`: raises the faults a load would.
        fault: bool,
        /// `.excl`: asks for exclusive ownership.
        exclusive: bool,
        /// Base update.
        update: BaseUpdate,
    },
    /// `lfetch.count [r3], count, stride`: [`fetch_count`](super::Instruction::fetch_count) lines,
    /// the immediate being the stride in bytes.
    LineFetchCount,
    /// `cmpxchg r1 = [r3], r2, ar.ccv`.
    CompareExchange {
        /// Access size.
        size: Size,
        /// Acquire or release.
        ordering: Ordering,
    },
    /// `cmp8xchg16 r1 = [r3], r2, ar.csd, ar.ccv`.
    CompareExchangeSixteen {
        /// Acquire or release.
        ordering: Ordering,
    },
    /// `xchg r1 = [r3], r2`: always acquire.
    Exchange {
        /// Access size.
        size: Size,
    },
    /// `fetchadd r1 = [r3], immediate`: the immediate is ±1, ±4, ±8 or ±16.
    FetchAdd {
        /// Access size: four or eight bytes.
        size: Size,
        /// Acquire or release.
        ordering: Ordering,
    },
    /// `chk.s r2, target`: branches when `r2` is NaT. On the I unit or the M unit.
    CheckSpeculative,
    /// `chk.s f2, target`: branches when `f2` is NaTVal.
    CheckSpeculativeFloat,
    /// `chk.a r1, target`: branches on an ALAT miss.
    CheckAdvanced {
        /// `.clr`: removes the entry; otherwise (`.nc`) it stays.
        clear: bool,
    },
    /// `chk.a f1, target`.
    CheckAdvancedFloat {
        /// `.clr`: removes the entry.
        clear: bool,
    },
    /// `invala`: empties the ALAT.
    InvalidateAlat,
    /// `invala.e r1`.
    InvalidateAlatEntry,
    /// `invala.e f1`.
    InvalidateAlatEntryFloat,
    /// `fwb`.
    FlushWriteBuffers,
    /// `mf`.
    MemoryFence,
    /// `mf.a`.
    MemoryFenceAcceptance,
    /// `fc r3` and `fc.i r3`.
    FlushCache {
        /// `.i`: only makes the instruction cache coherent.
        instruction: bool,
    },
    /// `sync.i`.
    SynchronizeInstructionCache,
    /// `srlz.d`, `srlz.i`.
    Serialize {
        /// Data or instruction serialization.
        side: Side,
    },

    // Register stack (M and B units).
    /// `alloc r1 = ar.pfs, i, l, o, r`: see [`sof`](super::Instruction::sof) and its neighbours.
    Allocate,
    /// `flushrs`.
    FlushRegisterStack,
    /// `loadrs`.
    LoadRegisterStack,
    /// `cover`.
    Cover,
    /// `clrrrb` and `clrrrb.pr`.
    ClearRegisterRename {
        /// `.pr`: only the predicate base.
        predicates_only: bool,
    },

    // System (M and B units).
    /// `sum immediate` (24 bits).
    SetUserMask,
    /// `rum immediate`.
    ResetUserMask,
    /// `ssm immediate`.
    SetSystemMask,
    /// `rsm immediate`.
    ResetSystemMask,
    /// `probe r1 = r3, r2` or `r1 = r3, immediate`.
    Probe {
        /// The access asked about: read or write.
        access: ProbeAccess,
        /// The privilege level: `r2`, or the immediate.
        level: Source,
    },
    /// `probe.fault r3, immediate`.
    ProbeFault {
        /// The access.
        access: ProbeAccess,
    },
    /// `itc r2`.
    InsertTranslationCache {
        /// Data or instruction.
        side: Side,
    },
    /// `itr dtr[r3] = r2`, `itr itr[r3] = r2`.
    InsertTranslationRegister {
        /// Data or instruction.
        side: Side,
    },
    /// `ptc.l`, `ptc.g`, `ptc.ga`: `r3, r2`.
    PurgeTranslationCache {
        /// How far the purge reaches.
        scope: PurgeScope,
    },
    /// `ptc.e r3`.
    PurgeTranslationCacheEntry,
    /// `ptr r3, r2`.
    PurgeTranslationRegister {
        /// Data or instruction.
        side: Side,
    },
    /// `thash r1 = r3`.
    TranslationHash,
    /// `ttag r1 = r3`.
    TranslationTag,
    /// `tpa r1 = r3`.
    TranslateToPhysical,
    /// `tak r1 = r3`.
    TranslationAccessKey,
    /// `epc`.
    EnterPrivilegedCode,
    /// `rfi`.
    ReturnFromInterruption,
    /// `bsw.0`, `bsw.1`.
    BankSwitch {
        /// The bank that becomes visible: 0 or 1.
        bank: u8,
    },
    /// `vmsw.0`, `vmsw.1`.
    VirtualMachineSwitch {
        /// The new value of PSR.vm.
        enter: bool,
    },

    // Branches (B and X units). The immediate is the displacement in bytes from the bundle.
    /// `br.cond`, `br.wexit`, `br.wtop`, `br.cloop`, `br.cexit`, `br.ctop`, and `brl.cond`.
    Branch {
        /// What decides and what is updated.
        kind: BranchKind,
        /// Where to.
        target: Target,
    },
    /// `br.call b1 = target`, `brl.call b1 = target`.
    Call {
        /// Where to.
        target: Target,
    },
    /// `br.ret b2`.
    Return,
    /// `br.ia b2`: to the IA-32 instruction set.
    BranchIa32,
    /// `brp`: a prediction for a relative target. The displacement of the tag is
    /// [`tag`](super::Instruction::tag).
    BranchPredict,
    /// `brp b2` and `brp.ret b2`.
    BranchPredictIndirect {
        /// `.ret`: predicts a return.
        return_: bool,
    },

    // Floating point (F unit).
    /// `fma`, `fms`, `fnma`: `f1 = f3, f4, f2`.
    FloatMultiplyAdd {
        /// Which of the three.
        function: MultiplyAdd,
        /// Precision completer.
        precision: Precision,
        /// Status field.
        status: StatusField,
    },
    /// `fpma`, `fpms`, `fpnma`: `f1 = f3, f4, f2`.
    ParallelFloatMultiplyAdd {
        /// Which of the three.
        function: MultiplyAdd,
        /// Status field.
        status: StatusField,
    },
    /// `xma f1 = f3, f4, f2`.
    FixedMultiplyAdd {
        /// The part of the result.
        part: FixedPart,
    },
    /// `fselect f1 = f3, f4, f2`.
    FloatSelect,
    /// `fcmp p1, p2 = f2, f3`.
    FloatCompare {
        /// The relation.
        relation: FloatRelation,
        /// `.unc`.
        unconditional: bool,
        /// Status field.
        status: StatusField,
    },
    /// `fclass p1, p2 = f2, immediate` (9 bits).
    FloatClass {
        /// `.unc`.
        unconditional: bool,
    },
    /// `frcpa f1, p2 = f2, f3`.
    FloatReciprocalApproximation {
        /// Status field.
        status: StatusField,
    },
    /// `frsqrta f1, p2 = f3`.
    FloatReciprocalSquareRootApproximation {
        /// Status field.
        status: StatusField,
    },
    /// `fprcpa f1, p2 = f2, f3`.
    ParallelFloatReciprocalApproximation {
        /// Status field.
        status: StatusField,
    },
    /// `fprsqrta f1, p2 = f3`.
    ParallelFloatReciprocalSquareRootApproximation {
        /// Status field.
        status: StatusField,
    },
    /// `fmin`, `fmax`, `famin`, `famax`: `f1 = f2, f3`.
    FloatExtremum {
        /// Which value is taken.
        select: Extremum,
        /// Status field.
        status: StatusField,
    },
    /// `fpmin`, `fpmax`, `fpamin`, `fpamax`: `f1 = f2, f3`.
    ParallelFloatExtremum {
        /// Which value is taken.
        select: Extremum,
        /// Status field.
        status: StatusField,
    },
    /// `fpcmp f1 = f2, f3`.
    ParallelFloatCompare {
        /// The relation.
        relation: ParallelFloatRelation,
        /// Status field.
        status: StatusField,
    },
    /// `fmerge f1 = f2, f3`.
    FloatMerge {
        /// What comes from `f2`.
        merge: Merge,
    },
    /// `fpmerge f1 = f2, f3`.
    ParallelFloatMerge {
        /// What comes from `f2`.
        merge: Merge,
    },
    /// `fmix f1 = f2, f3`.
    FloatMix {
        /// The elements taken.
        mix: FloatMix,
    },
    /// `fsxt f1 = f2, f3`.
    FloatSignExtend {
        /// The element whose sign fills the left result.
        half: Half,
    },
    /// `fpack f1 = f2, f3`.
    FloatPack,
    /// `fswap f1 = f2, f3`.
    FloatSwap {
        /// What is negated.
        swap: FloatSwap,
    },
    /// `fand`, `fandcm`, `for`, `fxor`: `f1 = f2, f3` on the significands.
    FloatLogical {
        /// The bitwise function.
        function: Logical,
    },
    /// `fcvt.fx f1 = f2`.
    ConvertToFixed {
        /// Signed (`.fx`) or unsigned (`.fxu`) result.
        signedness: Signedness,
        /// Rounding.
        rounding: FixedRounding,
        /// Status field.
        status: StatusField,
    },
    /// `fpcvt.fx f1 = f2`.
    ParallelConvertToFixed {
        /// Signed or unsigned result.
        signedness: Signedness,
        /// Rounding.
        rounding: FixedRounding,
        /// Status field.
        status: StatusField,
    },
    /// `fcvt.xf f1 = f2`.
    ConvertFromFixed,
    /// `fsetc amask, omask`: the immediate is the AND mask, [`omask`](super::Instruction::omask) the OR mask.
    FloatSetControls {
        /// Status field.
        status: StatusField,
    },
    /// `fclrf`.
    FloatClearFlags {
        /// Status field.
        status: StatusField,
    },
    /// `fchkf target`.
    FloatCheckFlags {
        /// Status field.
        status: StatusField,
    },
}
