//! The completers that change what an operation does, as small enumerations.
//!
//! Completers that are only hints (`.sptk`, `.nta`, `.many`, `.clr` on a branch, ...) change no result and are
//! not here: they stay readable from the raw slot, see [`Hint`](super::Hint).
//! Names and meanings follow the instruction pages of the architecture manual, volume 3.

/// The size of a memory access, of a parallel element, or of a value to extend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Size {
    /// One byte.
    One,
    /// Two bytes.
    Two,
    /// Four bytes.
    Four,
    /// Eight bytes.
    Eight,
}

impl Size {
    /// The size in bytes: 1, 2, 4 or 8.
    pub const fn bytes(self) -> u32 {
        1 << self as u32
    }

    /// The size in bits: 8, 16, 32 or 64.
    pub const fn bits(self) -> u32 {
        8 * self.bytes()
    }
}

/// Where an operand that has two forms comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A general register: `r2`, unless the operation says otherwise.
    Register,
    /// The decoded immediate.
    Immediate,
}

/// A bitwise function of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Logical {
    /// `a & b`.
    And,
    /// `a & !b`.
    AndComplement,
    /// `a | b`.
    Or,
    /// `a ^ b`.
    ExclusiveOr,
}

/// The relation an integer compare tests: first operand, relation, `r3`.
///
/// These are the relations the hardware encodes; the assembler makes the others by swapping operands or targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
    /// Signed less than.
    Less,
    /// Signed less than or equal.
    LessOrEqual,
    /// Signed greater than.
    Greater,
    /// Signed greater than or equal.
    GreaterOrEqual,
    /// Unsigned less than.
    LessUnsigned,
}

/// How many bits an integer compare looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompareWidth {
    /// `cmp4`: the low 32 bits of both operands.
    Word,
    /// `cmp`: all 64 bits.
    DoubleWord,
}

/// What an integer compare compares with `r3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompareSource {
    /// `r2 relation r3`.
    Register,
    /// `0 relation r3`: the encodings of the parallel compare types against zero.
    Zero,
    /// `immediate relation r3`, the immediate sign-extended from 8 bits.
    Immediate,
}

/// How a compare or test writes its two predicate targets (manual, volume 1, table 4-8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PredicateUpdate {
    /// `p1 = result`, `p2 = !result`, when the qualifying predicate is 1.
    Normal,
    /// As `Normal`, but both targets become 0 when the qualifying predicate is 0.
    Unconditional,
    /// Both become 0 when the result is 0.
    And,
    /// Both become 1 when the result is 1.
    Or,
    /// `p1 = 1` and `p2 = 0` when the result is 1.
    OrAndComplement,
}

/// What `tbit`, `tnat` and `tf` test for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BitRelation {
    /// The result is 1 when the bit is 0.
    Zero,
    /// The result is 1 when the bit is 1.
    NotZero,
}

/// What a parallel add or subtract does when an element overflows; the operands' interpretation follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Saturation {
    /// Modulo arithmetic.
    Modulo,
    /// `.sss`: signed result, signed operands.
    Signed,
    /// `.uuu`: unsigned result, unsigned operands.
    Unsigned,
    /// `.uus`: unsigned result, unsigned first operand, signed second operand.
    UnsignedSigned,
}

/// The result interpretation of `pack`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PackSaturation {
    /// `.sss`: signed saturation.
    Signed,
    /// `.uss`: unsigned saturation of signed elements.
    Unsigned,
}

/// The relation a parallel integer compare tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParallelRelation {
    /// Equal.
    Equal,
    /// Signed greater than.
    Greater,
}

/// Which elements `mix` and `pmpy2` work on, or the side `czx` searches from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Half {
    /// `.l`: the left (more significant) elements, or from the left.
    Left,
    /// `.r`: the right (less significant) elements, or from the right.
    Right,
}

/// Which half of the register `unpack` spreads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnpackHalf {
    /// `.h`: the most significant half.
    High,
    /// `.l`: the least significant half.
    Low,
}

/// Signed or unsigned interpretation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signedness {
    /// Two's complement.
    Signed,
    /// Unsigned (`.u`).
    Unsigned,
}

/// What a load does beside loading (manual, volume 1, table 4-14 and the page of `ld`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoadKind {
    /// A plain load.
    Normal,
    /// `.s`: control speculative; a deferred fault writes NaT.
    Speculative,
    /// `.a`: data speculative; allocates an ALAT entry.
    Advanced,
    /// `.sa`: control and data speculative.
    SpeculativeAdvanced,
    /// `.c.nc`: check load, the ALAT entry stays on a hit and is allocated on a miss.
    CheckKeep,
    /// `.c.clr`: check load, the ALAT entry is removed.
    CheckClear,
    /// `.c.clr.acq`: check load with acquire ordering, the ALAT entry is removed.
    CheckClearAcquire,
    /// `.acq`: ordered load with acquire semantics.
    Acquire,
    /// `.bias`: a hint to acquire exclusive ownership of the line.
    Bias,
    /// `ld8.fill` and `ldf.fill`: restores a spilled register with its NaT bit or NaTVal.
    Fill,
}

/// What a store does beside storing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreKind {
    /// A plain store.
    Normal,
    /// `.rel`: ordered store with release semantics.
    Release,
    /// `st8.spill` and `stf.spill`: saves a register with its NaT bit or NaTVal.
    Spill,
}

/// The memory form of a floating-point load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatFormat {
    /// `ldfs`: single precision, 4 bytes.
    Single,
    /// `ldfd`: double precision, 8 bytes.
    Double,
    /// `ldf8`: the 64-bit significand, 8 bytes.
    Significand,
    /// `ldfe`: double-extended precision, 10 bytes.
    Extended,
    /// `ldf.fill` and `stf.spill`: the register's 82 bits in 16 bytes.
    Register,
}

impl FloatFormat {
    /// The size in memory in bytes: 4, 8, 10 or 16.
    pub const fn bytes(self) -> u32 {
        match self {
            FloatFormat::Single => 4,
            FloatFormat::Double | FloatFormat::Significand => 8,
            FloatFormat::Extended => 10,
            FloatFormat::Register => 16,
        }
    }
}

/// How an access changes its base register `r3` afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BaseUpdate {
    /// Not at all.
    None,
    /// `r3 += r2`.
    Register,
    /// `r3 += immediate`.
    Immediate,
}

/// The memory ordering of a semaphore operation or of `ld16` and `st16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ordering {
    /// Unordered (`ld16`, `st16` without completer).
    None,
    /// `.acq`.
    Acquire,
    /// `.rel`.
    Release,
}

/// The transfer form of `getf` and `setf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatTransfer {
    /// `.sig`: the significand.
    Significand,
    /// `.exp`: sign and exponent.
    Exponent,
    /// `.s`: the value in single-precision memory format.
    Single,
    /// `.d`: the value in double-precision memory format.
    Double,
}

/// Data or instruction side of a translation operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// `.d`.
    Data,
    /// `.i`.
    Instruction,
}

/// The access that `probe` asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProbeAccess {
    /// `.r`.
    Read,
    /// `.w`.
    Write,
    /// `.rw`: only in the faulting form.
    ReadWrite,
}

/// A register file that is addressed by the value of `r3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IndirectFile {
    /// `rr`: region registers.
    Region,
    /// `dbr`: data breakpoint registers.
    DataBreakpoint,
    /// `ibr`: instruction breakpoint registers.
    InstructionBreakpoint,
    /// `pkr`: protection key registers.
    ProtectionKey,
    /// `pmc`: performance monitor configuration.
    MonitorConfiguration,
    /// `pmd`: performance monitor data.
    MonitorData,
    /// `msr`: model-specific registers.
    ModelSpecific,
    /// `cpuid`: processor identification; read only.
    ProcessorIdentification,
    /// `dahr`: data access hint registers; read only in this form.
    DataAccessHint,
}

impl IndirectFile {
    /// The file's name in assembly.
    pub const fn name(self) -> &'static str {
        match self {
            IndirectFile::Region => "rr",
            IndirectFile::DataBreakpoint => "dbr",
            IndirectFile::InstructionBreakpoint => "ibr",
            IndirectFile::ProtectionKey => "pkr",
            IndirectFile::MonitorConfiguration => "pmc",
            IndirectFile::MonitorData => "pmd",
            IndirectFile::ModelSpecific => "msr",
            IndirectFile::ProcessorIdentification => "cpuid",
            IndirectFile::DataAccessHint => "dahr",
        }
    }
}

/// How far `ptc` reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PurgeScope {
    /// `ptc.l`: this processor.
    Local,
    /// `ptc.g`: all processors of the coherence domain.
    Global,
    /// `ptc.ga`: all processors, and their ALATs are invalidated.
    GlobalAlat,
}

/// Where a branch goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// IP of the bundle plus the immediate, from 25 bits (`br`).
    Relative,
    /// IP of the bundle plus the immediate, from 64 bits (`brl`).
    Long,
    /// Branch register `b2`.
    Indirect,
}

/// The branch types that differ in what decides and what they update; calls and returns are own operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BranchKind {
    /// `br.cond`: the qualifying predicate decides.
    Conditional,
    /// `br.wexit`: modulo-scheduled while loop, exits on true.
    WhileExit,
    /// `br.wtop`: modulo-scheduled while loop, loops on true.
    WhileTop,
    /// `br.cloop`: counted loop on AR.LC.
    CountedLoop,
    /// `br.cexit`: modulo-scheduled counted loop, exits on zero.
    CountedExit,
    /// `br.ctop`: modulo-scheduled counted loop, loops on non-zero.
    CountedTop,
}

/// The FPSR status field whose controls and flags an operation uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatusField {
    /// `.s0`, the main field.
    S0,
    /// `.s1`.
    S1,
    /// `.s2`.
    S2,
    /// `.s3`.
    S3,
}

/// The precision completer of an arithmetic operation (manual, volume 1, table 5-6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// None: precision and range come from the status field's `pc` and `wre`.
    Dynamic,
    /// `.s`: single.
    Single,
    /// `.d`: double.
    Double,
}

/// The three members of the multiply-add family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MultiplyAdd {
    /// `fma`: `f3 * f4 + f2`.
    Add,
    /// `fms`: `f3 * f4 - f2`.
    Subtract,
    /// `fnma`: `-(f3 * f4) + f2`.
    NegateAdd,
}

/// The part of the 128-bit result `xma` keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FixedPart {
    /// `.l`: the low 64 bits.
    Low,
    /// `.h`: the high 64 bits of the signed product.
    High,
    /// `.hu`: the high 64 bits of the unsigned product.
    HighUnsigned,
}

/// The relation a floating-point compare tests: `f2 relation f3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatRelation {
    /// Equal.
    Equal,
    /// Less than.
    Less,
    /// Less than or equal.
    LessOrEqual,
    /// Unordered.
    Unordered,
}

/// The relation of a parallel floating-point compare, with its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParallelFloatRelation {
    /// `.eq`.
    Equal,
    /// `.lt`.
    Less,
    /// `.le`.
    LessOrEqual,
    /// `.unord`.
    Unordered,
    /// `.neq`.
    NotEqual,
    /// `.nlt`.
    NotLess,
    /// `.nle`.
    NotLessOrEqual,
    /// `.ord`.
    Ordered,
}

/// Which of two values a floating-point minimum or maximum takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extremum {
    /// `fmin`.
    Minimum,
    /// `fmax`.
    Maximum,
    /// `famin`: the smaller magnitude.
    AbsoluteMinimum,
    /// `famax`: the larger magnitude.
    AbsoluteMaximum,
}

/// What `fmerge` takes from `f2`; the rest comes from `f3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Merge {
    /// `.s`: the sign.
    Sign,
    /// `.ns`: the negated sign.
    NegatedSign,
    /// `.se`: sign and exponent.
    SignExponent,
}

/// Which single-precision elements `fmix` combines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatMix {
    /// `.l`: the left ones of both.
    Left,
    /// `.r`: the right ones of both.
    Right,
    /// `.lr`: the left of `f2`, the right of `f3`.
    LeftRight,
}

/// What `fswap` negates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatSwap {
    /// Nothing.
    Plain,
    /// `.nl`: the left result element.
    NegateLeft,
    /// `.nr`: the right result element.
    NegateRight,
}

/// How a conversion to fixed point rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FixedRounding {
    /// As the status field's rounding control says.
    Dynamic,
    /// `.trunc`: towards zero.
    Truncate,
}
