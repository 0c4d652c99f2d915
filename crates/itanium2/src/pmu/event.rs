//! The events that the performance monitor counts, under their documented names and codes.
//!
//! Names and codes are those of the Itanium 2 Processor Reference Manual (251110), chapter 11: the event select code
//! in bits 0 to 7, the unit mask above bit 16. A name's parts may be joined by `.` or `_`, in any case.

use crate::names;

/// What an operating system may restrict the counting of an event by (the last three columns of the manual's tables of
/// events).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Qualifier {
    /// By nothing.
    Nothing,
    /// By the instruction's address.
    Address,
    /// By the instruction's address and bits.
    Instruction,
    /// By these and the address of the data.
    Memory,
}

/// Other names that are known.
const ALIASES: &[(&str, Event)] = &[
    ("IA64_INST_RETIRED.THIS", Event::InstructionsRetired),
    ("IA64_TAGGED_INST_RETIRED.IBRP0_PMC8", Event::InstructionsRetired),
    ("cycles", Event::CpuCycles),
    ("instructions", Event::InstructionsRetired),
    ("branches", Event::Branches),
    ("cache-references", Event::L3References),
    ("cache-misses", Event::L3Misses),
    ("L1-dcache-loads", Event::L1dReads),
    ("L1-dcache-load-misses", Event::L1dReadMisses),
    ("L1-icache-load-misses", Event::L1iFills),
    ("dTLB-load-misses", Event::DtlbMisses),
    ("iTLB-load-misses", Event::ItlbMissesSecond),
];

macro_rules! events {
    ($($variant:ident $name:literal $code:literal $qualifier:ident $text:literal;)*) => {
        /// Something that the performance monitor counts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Event { $(#[doc = $text] $variant,)* }

        impl Event {
            /// All events.
            pub const ALL: &'static [Event] = &[$(Event::$variant),*];
            const ROWS: &'static [(&'static str, u32, Qualifier, &'static str)] =
                &[$(($name, $code, Qualifier::$qualifier, $text)),*];
        }
    };
}

events! {
    CpuCycles "CPU_CYCLES" 0x12 Nothing "Cycles";
    InstructionsRetired "IA64_INST_RETIRED" 0x8 Instruction "Retired instructions, nops and predicated-off ones included";
    TaggedSecond "IA64_TAGGED_INST_RETIRED.IBRP1_PMC9" 0x1_0008 Instruction "Retired instructions that the second breakpoint pair and PMC9 tag";
    TaggedThird "IA64_TAGGED_INST_RETIRED.IBRP2_PMC8" 0x2_0008 Instruction "Retired instructions that the third breakpoint pair and PMC8 tag";
    TaggedFourth "IA64_TAGGED_INST_RETIRED.IBRP3_PMC9" 0x3_0008 Instruction "Retired instructions that the fourth breakpoint pair and PMC9 tag";
    NopsRetired "NOPS_RETIRED" 0x50 Instruction "Retired nops";
    PredicateSquashed "PREDICATE_SQUASHED_RETIRED" 0x51 Instruction "Retired instructions whose qualifying predicate was off";
    InstructionsDispersed "INST_DISPERSED" 0x4d Address "Syllables dispersed";
    FloatOperationsRetired "FP_OPS_RETIRED" 0x9 Address "Retired floating-point operations: a multiply-add counts two";
    FailedFloatChecks "FP_FAILED_FCHKF" 0x6 Address "fchkf instructions that failed";
    LoadsRetired "LOADS_RETIRED" 0xcd Memory "Retired loads";
    StoresRetired "STORES_RETIRED" 0xd1 Memory "Retired stores";
    MisalignedLoads "MISALIGNED_LOADS_RETIRED" 0xce Memory "Retired loads from addresses that are no multiple of their size";
    MisalignedStores "MISALIGNED_STORES_RETIRED" 0xd2 Memory "Retired stores to addresses that are no multiple of their size";
    UncacheableLoads "UC_LOADS_RETIRED" 0xcf Memory "Retired loads from uncacheable memory";
    UncacheableStores "UC_STORES_RETIRED" 0xd0 Memory "Retired stores to uncacheable memory";
    DataReferences "DATA_REFERENCES_SET0" 0xc3 Memory "Loads, stores, semaphores, and registers spilled and filled";
    DataReferencesAgain "DATA_REFERENCES_SET1" 0xc5 Memory "The same as DATA_REFERENCES_SET0";
    DebugFaults "DATA_DEBUG_REGISTER_FAULT" 0x52 Nothing "Data debug faults";
    ChecksGeneral "INST_CHKA_LDC_ALAT.INT" 0x1_0056 Memory "Checks of advanced loads of general registers";
    ChecksFloat "INST_CHKA_LDC_ALAT.FP" 0x2_0056 Memory "Checks of advanced loads of floating-point registers";
    Checks "INST_CHKA_LDC_ALAT.ALL" 0x3_0056 Memory "Checks of advanced loads: chk.a, ld.c";
    FailedChecksGeneral "INST_FAILED_CHKA_LDC_ALAT.INT" 0x1_0057 Memory "Failed checks of advanced loads of general registers";
    FailedChecksFloat "INST_FAILED_CHKA_LDC_ALAT.FP" 0x2_0057 Memory "Failed checks of advanced loads of floating-point registers";
    FailedChecks "INST_FAILED_CHKA_LDC_ALAT.ALL" 0x3_0057 Memory "Failed checks of advanced loads";
    ReplacedGeneral "ALAT_CAPACITY_MISS.INT" 0x1_0058 Memory "Advanced loads of general registers that gave way to others";
    ReplacedFloat "ALAT_CAPACITY_MISS.FP" 0x2_0058 Memory "Advanced loads of floating-point registers that gave way to others";
    Replaced "ALAT_CAPACITY_MISS.ALL" 0x3_0058 Memory "Advanced loads that gave way to others";
    FailedSpeculationGeneral "INST_FAILED_CHKS_RETIRED.INT" 0x1_0055 Nothing "chk.s of general registers that failed";
    FailedSpeculationFloat "INST_FAILED_CHKS_RETIRED.FP" 0x2_0055 Nothing "chk.s of floating-point registers that failed";
    FailedSpeculation "INST_FAILED_CHKS_RETIRED.ALL" 0x3_0055 Nothing "chk.s that failed";
    PrivilegeChanges "CPU_CPL_CHANGES" 0x13 Nothing "Changes of the privilege level";
    SerializationEvents "SERIALIZATION_EVENTS" 0x53 Nothing "srlz.i instructions";
    BackEndBubbleAll "BACK_END_BUBBLE.ALL" 0x0 Nothing "Cycles in which nothing was issued";
    BackEndBubbleFrontEnd "BACK_END_BUBBLE.FE" 0x1_0000 Nothing "Bubbles: no bundle from the front end";
    BackEndBubbleL1dFpuRse "BACK_END_BUBBLE.L1D_FPU_RSE" 0x2_0000 Nothing "Bubbles: first-level data cache, floating point, register stack";
    FlushAll "BE_FLUSH_BUBBLE.ALL" 0x4 Nothing "Bubbles: pipeline flushes";
    FlushBranch "BE_FLUSH_BUBBLE.BRU" 0x1_0004 Nothing "Bubbles: flushes by mispredicted branches";
    FlushException "BE_FLUSH_BUBBLE.XPN" 0x2_0004 Nothing "Bubbles: flushes by interruptions, rfi and srlz.i";
    L1dFpuAll "BE_L1D_FPU_BUBBLE.ALL" 0xca Nothing "Bubbles: first-level data cache and floating point";
    L1dFpuFloat "BE_L1D_FPU_BUBBLE.FPU" 0x1_00ca Nothing "Bubbles: floating point";
    L1dAll "BE_L1D_FPU_BUBBLE.L1D" 0x2_00ca Nothing "Bubbles: first-level data cache";
    L1dRecirculation "BE_L1D_FPU_BUBBLE.L1D_DCURECIR" 0x4_00ca Nothing "Bubbles: the data cache unit recirculates";
    L1dWalker "BE_L1D_FPU_BUBBLE.L1D_HPW" 0x5_00ca Nothing "Bubbles: the hardware page walker";
    L1dSystemQueue "BE_L1D_FPU_BUBBLE.L1D_DCS" 0x8_00ca Nothing "Bubbles: the queue of system-register accesses is full";
    L1dBackPressure "BE_L1D_FPU_BUBBLE.L1D_L2BPRESS" 0x9_00ca Nothing "Bubbles: the second-level cache takes no more";
    L1dTlb "BE_L1D_FPU_BUBBLE.L1D_TLB" 0xa_00ca Nothing "Bubbles: transfers from the second to the first data TLB";
    L1dStoreRecirculation "BE_L1D_FPU_BUBBLE.L1D_STBUFRECIR" 0xe_00ca Nothing "Bubbles: a load met a store in the store buffer";
    L1dNatConflict "BE_L1D_FPU_BUBBLE.L1D_NATCONF" 0xf_00ca Nothing "Bubbles: ld8.fill met an st8.spill not yet in UNAT";
    ExecutionAll "BE_EXE_BUBBLE.ALL" 0x2 Nothing "Bubbles: operands not ready";
    ExecutionGeneral "BE_EXE_BUBBLE.GRALL" 0x1_0002 Nothing "Bubbles: a general register is not ready";
    ExecutionFloat "BE_EXE_BUBBLE.FRALL" 0x2_0002 Nothing "Bubbles: a floating-point register is not ready";
    ExecutionPredicate "BE_EXE_BUBBLE.PR" 0x3_0002 Nothing "Bubbles: a predicate register is not ready";
    ExecutionSystem "BE_EXE_BUBBLE.ARCR" 0x4_0002 Nothing "Bubbles: an application or control register is not ready";
    ExecutionGeneralGeneral "BE_EXE_BUBBLE.GRGR" 0x5_0002 Nothing "Bubbles: a general register computed from others is not ready";
    RseAll "BE_RSE_BUBBLE.ALL" 0x1 Nothing "Bubbles: the register stack engine";
    RseBankSwitch "BE_RSE_BUBBLE.BANK_SWITCH" 0x1_0001 Nothing "Bubbles: bsw";
    RseDependency "BE_RSE_BUBBLE.AR_DEP" 0x2_0001 Nothing "Bubbles: registers of the register stack engine";
    RseOverflow "BE_RSE_BUBBLE.OVERFLOW" 0x3_0001 Nothing "Bubbles: mandatory spills, flushrs";
    RseUnderflow "BE_RSE_BUBBLE.UNDERFLOW" 0x4_0001 Nothing "Bubbles: mandatory fills";
    RseLoad "BE_RSE_BUBBLE.LOADRS" 0x5_0001 Nothing "Bubbles: loadrs";
    RseReferences "RSE_REFERENCES_RETIRED.ALL" 0x3_0020 Memory "Registers spilled and filled";
    RseLoads "RSE_REFERENCES_RETIRED.LOAD" 0x1_0020 Memory "Registers filled";
    RseStores "RSE_REFERENCES_RETIRED.STORE" 0x2_0020 Memory "Registers spilled";
    DataEarEvents "DATA_EAR_EVENTS" 0xc8 Memory "Loads that the data event address register kept";
    InstructionEarEvents "L1I_EAR_EVENTS" 0x43 Address "Fetches that the instruction event address register kept";
    BranchEvents "BRANCH_EVENT" 0x11 Instruction "Branches that the branch trace buffer kept";
    Branches "BR_MISPRED_DETAIL.ALL.ALL_PRED" 0x5b Instruction "Branches retired";
    BranchesCorrect "BR_MISPRED_DETAIL.ALL.CORRECT_PRED" 0x1_005b Instruction "Branches predicted correctly";
    BranchesWrongPath "BR_MISPRED_DETAIL.ALL.WRONG_PATH" 0x2_005b Instruction "Branches whose direction was mispredicted";
    BranchesWrongTarget "BR_MISPRED_DETAIL.ALL.WRONG_TARGET" 0x3_005b Instruction "Taken branches whose target was mispredicted";
    Returns "BR_MISPRED_DETAIL.RETURN.ALL_PRED" 0x8_005b Instruction "Returns retired";
    ReturnsCorrect "BR_MISPRED_DETAIL.RETURN.CORRECT_PRED" 0x9_005b Instruction "Returns predicted correctly";
    ReturnsWrongPath "BR_MISPRED_DETAIL.RETURN.WRONG_PATH" 0xa_005b Instruction "Returns whose direction was mispredicted";
    ReturnsWrongTarget "BR_MISPRED_DETAIL.RETURN.WRONG_TARGET" 0xb_005b Instruction "Returns whose target was mispredicted";
    RelativeBranches "BR_MISPRED_DETAIL.IPREL.ALL_PRED" 0x4_005b Instruction "Branches relative to their address";
    RelativeCorrect "BR_MISPRED_DETAIL.IPREL.CORRECT_PRED" 0x5_005b Instruction "Branches relative to their address, predicted correctly";
    RelativeWrongPath "BR_MISPRED_DETAIL.IPREL.WRONG_PATH" 0x6_005b Instruction "Branches relative to their address whose direction was mispredicted";
    RelativeWrongTarget "BR_MISPRED_DETAIL.IPREL.WRONG_TARGET" 0x7_005b Instruction "Branches relative to their address whose target was mispredicted";
    IndirectBranches "BR_MISPRED_DETAIL.NTRETIND.ALL_PRED" 0xc_005b Instruction "Branches to other branch registers";
    IndirectCorrect "BR_MISPRED_DETAIL.NTRETIND.CORRECT_PRED" 0xd_005b Instruction "Branches to other branch registers, predicted correctly";
    IndirectWrongPath "BR_MISPRED_DETAIL.NTRETIND.WRONG_PATH" 0xe_005b Instruction "Branches to other branch registers whose direction was mispredicted";
    IndirectWrongTarget "BR_MISPRED_DETAIL.NTRETIND.WRONG_TARGET" 0xf_005b Instruction "Branches to other branch registers whose target was mispredicted";
    RelativeWrongNotTaken "BR_PATH_PRED.IPREL.MISPRED_NOTTAKEN" 0x4_0054 Instruction "Branches relative to their address, not taken and mispredicted";
    RelativeWrongTaken "BR_PATH_PRED.IPREL.MISPRED_TAKEN" 0x5_0054 Instruction "Branches relative to their address, taken and mispredicted";
    RelativeRightNotTaken "BR_PATH_PRED.IPREL.OKPRED_NOTTAKEN" 0x6_0054 Instruction "Branches relative to their address, not taken as predicted";
    RelativeRightTaken "BR_PATH_PRED.IPREL.OKPRED_TAKEN" 0x7_0054 Instruction "Branches relative to their address, taken as predicted";
    ReturnWrongNotTaken "BR_PATH_PRED.RETURN.MISPRED_NOTTAKEN" 0x8_0054 Instruction "Branches that return, not taken and mispredicted";
    ReturnWrongTaken "BR_PATH_PRED.RETURN.MISPRED_TAKEN" 0x9_0054 Instruction "Branches that return, taken and mispredicted";
    ReturnRightNotTaken "BR_PATH_PRED.RETURN.OKPRED_NOTTAKEN" 0xa_0054 Instruction "Branches that return, not taken as predicted";
    ReturnRightTaken "BR_PATH_PRED.RETURN.OKPRED_TAKEN" 0xb_0054 Instruction "Branches that return, taken as predicted";
    IndirectWrongNotTaken "BR_PATH_PRED.NRETIND.MISPRED_NOTTAKEN" 0xc_0054 Instruction "Branches to other branch registers, not taken and mispredicted";
    IndirectWrongTaken "BR_PATH_PRED.NRETIND.MISPRED_TAKEN" 0xd_0054 Instruction "Branches to other branch registers, taken and mispredicted";
    IndirectRightNotTaken "BR_PATH_PRED.NRETIND.OKPRED_NOTTAKEN" 0xe_0054 Instruction "Branches to other branch registers, not taken as predicted";
    IndirectRightTaken "BR_PATH_PRED.NRETIND.OKPRED_TAKEN" 0xf_0054 Instruction "Branches to other branch registers, taken as predicted";
    WrongNotTaken "BR_PATH_PRED.ALL.MISPRED_NOTTAKEN" 0x54 Instruction "Branches not taken and mispredicted";
    WrongTaken "BR_PATH_PRED.ALL.MISPRED_TAKEN" 0x1_0054 Instruction "Branches taken and mispredicted";
    RightNotTaken "BR_PATH_PRED.ALL.OKPRED_NOTTAKEN" 0x2_0054 Instruction "Branches not taken as predicted";
    RightTaken "BR_PATH_PRED.ALL.OKPRED_TAKEN" 0x3_0054 Instruction "Branches taken as predicted";
    DispersalStalled "DISP_STALLED" 0x49 Nothing "Cycles in which dispersal was stalled by the back end";
    FrontEndBubbles "FE_BUBBLE.ALL" 0x71 Nothing "Cycles in which the front end fetched nothing";
    FrontEndFlush "FE_BUBBLE.FEFLUSH" 0x1_0071 Nothing "Bubbles of the front end: it was started again";
    FrontEndBranch "FE_BUBBLE.GROUP1" 0x3_0071 Nothing "Bubbles of the front end: BUBBLE or BRANCH";
    FrontEndMissed "FE_BUBBLE.GROUP2" 0x4_0071 Nothing "Bubbles of the front end: IMISS or TLBMISS";
    FrontEndFull "FE_BUBBLE.IBFULL" 0x5_0071 Nothing "Bubbles of the front end: the instruction buffer is full";
    FrontEndCacheMiss "FE_BUBBLE.IMISS" 0x6_0071 Nothing "Bubbles of the front end: instructions missed the first-level cache";
    FrontEndTlbMiss "FE_BUBBLE.TLBMISS" 0x7_0071 Nothing "Bubbles of the front end: a translation missed the first instruction TLB";
    FrontEndButFull "FE_BUBBLE.ALLBUT_IBFULL" 0xc_0071 Nothing "Bubbles of the front end but for a full buffer";
    FrontEndResteer "FE_BUBBLE.BUBBLE" 0xd_0071 Nothing "Bubbles of the front end: a return or an indirect branch was predicted";
    L1iReads "L1I_READS" 0x40 Address "Reads of the first-level instruction cache, 32 bytes each";
    L1iFills "L1I_FILLS" 0x41 Address "Lines brought into the first-level instruction cache";
    InstructionReads "L2_INST_DEMAND_READS" 0x42 Address "Lines of instructions wanted of the second-level cache";
    ItlbMissesFirst "ITLB_MISSES_FETCH.L1ITLB" 0x1_0047 Address "Fetches that missed the first instruction TLB";
    ItlbMissesSecond "ITLB_MISSES_FETCH.L2ITLB" 0x2_0047 Address "Fetches that missed both instruction TLBs";
    ItlbMisses "ITLB_MISSES_FETCH.ALL" 0x3_0047 Address "Fetches that missed an instruction TLB";
    ItlbInsertions "L1ITLB_INSERTS_HPW" 0x48 Address "Entries that the walker put into the instruction TLB";
    L1dReads "L1D_READS_SET1" 0xc4 Memory "Loads that read the first-level data cache";
    L1dReadsAgain "L1D_READS_SET0" 0xc2 Memory "The same as L1D_READS_SET1";
    L1dReadMisses "L1D_READ_MISSES.ALL" 0xc7 Memory "Loads that missed the first-level data cache";
    L1dFillMisses "L1D_READ_MISSES.RSE_FILL" 0x1_00c7 Memory "Lines of registers to be filled that missed the first-level data cache";
    L2References "L2_REFERENCES" 0xb1 Memory "Requests to the second-level cache";
    L2DataReads "L2_DATA_REFERENCES.L2_DATA_READS" 0x1_00b2 Memory "Reads of data and semaphores in the second-level cache";
    L2DataWrites "L2_DATA_REFERENCES.L2_DATA_WRITES" 0x2_00b2 Memory "Writes of data and semaphores in the second-level cache";
    L2DataReferences "L2_DATA_REFERENCES.L2_ALL" 0x3_00b2 Memory "References to data in the second-level cache; semaphores count two";
    L2Misses "L2_MISSES" 0xcb Memory "Requests that missed the second-level cache";
    L3References "L3_REFERENCES" 0xdb Memory "Requests to the third-level cache";
    L3Misses "L3_MISSES" 0xdc Memory "Requests that missed the third-level cache";
    L2BankConflicts "L2_OZQ_CANCELS1.BANK_CONF" 0x1_00ac Memory "Loads that another of their group kept from a bank of the second-level cache";
    L3DataReadHits "L3_READS.DATA_READ.HIT" 0x9_00dd Memory "Reads of data that the third-level cache had";
    L3DataReadMisses "L3_READS.DATA_READ.MISS" 0xa_00dd Memory "Reads of data that the third-level cache had not";
    L3DataReads "L3_READS.DATA_READ.ALL" 0xb_00dd Memory "Reads of data in the third-level cache";
    L3FetchHits "L3_READS.DINST_FETCH.HIT" 0x1_00dd Memory "Demanded instructions that the third-level cache had";
    L3FetchMisses "L3_READS.DINST_FETCH.MISS" 0x2_00dd Memory "Demanded instructions that the third-level cache had not";
    L3Fetches "L3_READS.DINST_FETCH.ALL" 0x3_00dd Memory "Demanded instructions in the third-level cache";
    L3InstructionHits "L3_READS.INST_FETCH.HIT" 0x5_00dd Memory "The same as L3_READS.DINST_FETCH.HIT: nothing is prefetched";
    L3InstructionMisses "L3_READS.INST_FETCH.MISS" 0x6_00dd Memory "The same as L3_READS.DINST_FETCH.MISS";
    L3Instructions "L3_READS.INST_FETCH.ALL" 0x7_00dd Memory "The same as L3_READS.DINST_FETCH.ALL";
    L3ReadHits "L3_READS.ALL.HIT" 0xd_00dd Memory "Reads that the third-level cache had";
    L3ReadMisses "L3_READS.ALL.MISS" 0xe_00dd Memory "Reads that the third-level cache had not";
    L3Reads "L3_READS.ALL.ALL" 0xf_00dd Memory "Reads in the third-level cache";
    L3DataWriteHits "L3_WRITES.DATA_WRITE.HIT" 0x5_00de Memory "Lines to be stored to that the third-level cache had";
    L3DataWriteMisses "L3_WRITES.DATA_WRITE.MISS" 0x6_00de Memory "Lines to be stored to that the third-level cache had not";
    L3DataWrites "L3_WRITES.DATA_WRITE.ALL" 0x7_00de Memory "Lines to be stored to in the third-level cache";
    L3WriteBackHits "L3_WRITES.L2_WB.HIT" 0x9_00de Memory "Lines written back by the second level that the third-level cache had";
    L3WriteBackMisses "L3_WRITES.L2_WB.MISS" 0xa_00de Memory "Lines written back by the second level that the third-level cache had not";
    L3WriteBacks "L3_WRITES.L2_WB.ALL" 0xb_00de Memory "Lines written back by the second level";
    L3WriteHits "L3_WRITES.ALL.HIT" 0xd_00de Memory "Writes of lines that the third-level cache had";
    L3WriteMisses "L3_WRITES.ALL.MISS" 0xe_00de Memory "Writes of lines that the third-level cache had not";
    L3Writes "L3_WRITES.ALL.ALL" 0xf_00de Memory "Writes in the third-level cache";
    L3Replaced "L3_LINES_REPLACED" 0xdf Nothing "Lines of the third-level cache that gave way to others";
    DtlbTransfers "L1DTLB_TRANSFER" 0xc0 Memory "Misses of the first data TLB that hit the second";
    DtlbMisses "L2DTLB_MISSES" 0xc1 Memory "Misses of both data TLBs";
    WalkerReferences "HPW_DATA_REFERENCES" 0x2d Memory "Entries of the VHPT read by the walker";
    WalkerInsertions "DTLB_INSERTS_HPW" 0xc9 Memory "Entries that the walker put into the data TLB";
    WalkerInsertionsRetired "DTLB_INSERTS_HPW_RETIRED" 0x2c Memory "The same as DTLB_INSERTS_HPW";
}

impl Event {
    /// How many events there are.
    pub const COUNT: usize = Event::ALL.len();

    /// The documented name.
    pub fn name(self) -> &'static str {
        Event::ROWS[self as usize].0
    }

    /// The event select code, with the unit mask from bit 16 on.
    pub fn code(self) -> u32 {
        Event::ROWS[self as usize].1
    }

    /// What can keep it from being counted.
    pub fn qualifier(self) -> Qualifier {
        Event::ROWS[self as usize].2
    }

    /// What is counted.
    pub fn description(self) -> &'static str {
        Event::ROWS[self as usize].3
    }

    /// Other names, `perf`'s among them, with what they stand for.
    pub fn aliases() -> impl Iterator<Item = (&'static str, Event)> {
        ALIASES.iter().copied()
    }

    /// The event that a code selects.
    pub fn by_code(code: u32) -> Option<Event> {
        Event::ALL.iter().copied().find(|event| event.code() == code)
    }

    /// The event with a name.
    ///
    /// # Errors
    /// [`names::Unknown`] with the nearest names.
    pub fn by_name(name: &str) -> Result<Event, names::Unknown> {
        let wanted = normal(name);
        Event::ALL
            .iter()
            .copied()
            .find(|event| normal(event.name()) == wanted)
            .or_else(|| {
                let alias = ALIASES.iter().find(|(alias, _)| normal(alias) == wanted);
                alias.map(|(_, event)| *event)
            })
            .ok_or_else(|| {
                let known = Event::ALL.iter().map(|event| event.name());
                names::Unknown::new(
                    "counter",
                    name,
                    known.chain(Event::aliases().map(|(alias, _)| alias)),
                )
            })
    }
}

/// A name in the form in which names are compared.
pub(crate) fn normal(name: &str) -> String {
    name.to_ascii_uppercase().replace(['.', ':', '-'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_tell_events_apart() {
        for event in Event::ALL {
            assert_eq!(Event::by_code(event.code()), Some(*event));
            assert_eq!(Event::by_name(&event.name().to_lowercase()), Ok(*event));
        }
    }

    #[test]
    fn an_unknown_counter_names_its_neighbours() {
        let error = Event::by_name("BE_EXE_BUBBLE.GRAL").expect_err("no such counter");
        assert!(error.to_string().contains("BE_EXE_BUBBLE.GRALL"), "{error}");
    }
}
