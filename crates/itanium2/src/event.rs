//! The events that the performance monitor counts, under their documented names and codes.
//!
//! Names and codes are those of the Itanium 2 Processor Reference Manual (251110), chapter 11: the event select code
//! in bits 0 to 7, the unit mask above bit 16. A name's parts may be joined by `.` or `_`, in any case.

use crate::names;

macro_rules! events {
    ($($variant:ident $name:literal $code:literal $text:literal;)*) => {
        /// Something that the performance monitor counts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Event { $(#[doc = $text] $variant,)* }

        impl Event {
            /// All events.
            pub const ALL: &'static [Event] = &[$(Event::$variant),*];
            const ROWS: &'static [(&'static str, u32, &'static str)] = &[$(($name, $code, $text)),*];
        }
    };
}

events! {
    CpuCycles "CPU_CYCLES" 0x12 "Cycles";
    InstructionsRetired "IA64_INST_RETIRED" 0x08 "Retired instructions, nops and predicated-off ones included";
    NopsRetired "NOPS_RETIRED" 0x50 "Retired nops";
    PredicateSquashed "PREDICATE_SQUASHED_RETIRED" 0x51 "Retired instructions whose qualifying predicate was off";
    InstructionsDispersed "INST_DISPERSED" 0x4d "Syllables dispersed";
    FloatOperationsRetired "FP_OPS_RETIRED" 0x09 "Retired floating-point operations: a multiply-add counts two";
    LoadsRetired "LOADS_RETIRED" 0xcd "Retired loads";
    StoresRetired "STORES_RETIRED" 0xd1 "Retired stores";
    PrivilegeChanges "CPU_CPL_CHANGES" 0x13 "Changes of the privilege level";
    SerializationEvents "SERIALIZATION_EVENTS" 0x53 "srlz.i instructions";
    BackEndBubbleAll "BACK_END_BUBBLE.ALL" 0x0 "Cycles in which nothing was issued";
    BackEndBubbleFrontEnd "BACK_END_BUBBLE.FE" 0x1_0000 "Bubbles: no bundle from the front end";
    BackEndBubbleL1dFpuRse "BACK_END_BUBBLE.L1D_FPU_RSE" 0x2_0000 "Bubbles: first-level data cache, floating point, register stack";
    FlushAll "BE_FLUSH_BUBBLE.ALL" 0x4 "Bubbles: pipeline flushes";
    FlushBranch "BE_FLUSH_BUBBLE.BRU" 0x1_0004 "Bubbles: flushes by mispredicted branches";
    FlushException "BE_FLUSH_BUBBLE.XPN" 0x2_0004 "Bubbles: flushes by interruptions, rfi and srlz.i";
    L1dFpuAll "BE_L1D_FPU_BUBBLE.ALL" 0xca "Bubbles: first-level data cache and floating point";
    L1dFpuFloat "BE_L1D_FPU_BUBBLE.FPU" 0x1_00ca "Bubbles: floating point";
    L1dAll "BE_L1D_FPU_BUBBLE.L1D" 0x2_00ca "Bubbles: first-level data cache";
    L1dStoreBufferFull "BE_L1D_FPU_BUBBLE.L1D_FULLSTBUF" 0x3_00ca "Bubbles: the store buffer is full";
    L1dRecirculation "BE_L1D_FPU_BUBBLE.L1D_DCURECIR" 0x4_00ca "Bubbles: the data cache unit recirculates";
    L1dWalker "BE_L1D_FPU_BUBBLE.L1D_HPW" 0x5_00ca "Bubbles: the hardware page walker";
    L1dSystemQueue "BE_L1D_FPU_BUBBLE.L1D_DCS" 0x8_00ca "Bubbles: the queue of system-register accesses is full";
    L1dBackPressure "BE_L1D_FPU_BUBBLE.L1D_L2BPRESS" 0x9_00ca "Bubbles: the second-level cache takes no more";
    L1dTlb "BE_L1D_FPU_BUBBLE.L1D_TLB" 0xa_00ca "Bubbles: transfers from the second to the first data TLB";
    L1dStoreRecirculation "BE_L1D_FPU_BUBBLE.L1D_STBUFRECIR" 0xe_00ca "Bubbles: a load met a store in the store buffer";
    L1dNatConflict "BE_L1D_FPU_BUBBLE.L1D_NATCONF" 0xf_00ca "Bubbles: ld8.fill met an st8.spill not yet in UNAT";
    ExecutionAll "BE_EXE_BUBBLE.ALL" 0x2 "Bubbles: operands not ready";
    ExecutionGeneral "BE_EXE_BUBBLE.GRALL" 0x1_0002 "Bubbles: a general register is not ready";
    ExecutionFloat "BE_EXE_BUBBLE.FRALL" 0x2_0002 "Bubbles: a floating-point register is not ready";
    ExecutionPredicate "BE_EXE_BUBBLE.PR" 0x3_0002 "Bubbles: a predicate register is not ready";
    ExecutionSystem "BE_EXE_BUBBLE.ARCR" 0x4_0002 "Bubbles: an application or control register is not ready";
    ExecutionGeneralGeneral "BE_EXE_BUBBLE.GRGR" 0x5_0002 "Bubbles: a general register computed from others is not ready";
    RseAll "BE_RSE_BUBBLE.ALL" 0x1 "Bubbles: the register stack engine";
    RseBankSwitch "BE_RSE_BUBBLE.BANK_SWITCH" 0x1_0001 "Bubbles: bsw";
    RseDependency "BE_RSE_BUBBLE.AR_DEP" 0x2_0001 "Bubbles: registers of the register stack engine";
    RseOverflow "BE_RSE_BUBBLE.OVERFLOW" 0x3_0001 "Bubbles: mandatory spills, flushrs";
    RseUnderflow "BE_RSE_BUBBLE.UNDERFLOW" 0x4_0001 "Bubbles: mandatory fills";
    RseLoad "BE_RSE_BUBBLE.LOADRS" 0x5_0001 "Bubbles: loadrs";
    RseReferences "RSE_REFERENCES_RETIRED.ALL" 0x3_0020 "Registers spilled and filled";
    RseLoads "RSE_REFERENCES_RETIRED.LOAD" 0x1_0020 "Registers filled";
    RseStores "RSE_REFERENCES_RETIRED.STORE" 0x2_0020 "Registers spilled";
    DataEarEvents "DATA_EAR_EVENTS" 0xc8 "Loads that the data event address register kept";
    InstructionEarEvents "L1I_EAR_EVENTS" 0x43 "Fetches that the instruction event address register kept";
    BranchEvents "BRANCH_EVENT" 0x11 "Branches that the branch trace buffer kept";
    Branches "BR_MISPRED_DETAIL.ALL.ALL_PRED" 0x5b "Branches retired";
    BranchesCorrect "BR_MISPRED_DETAIL.ALL.CORRECT_PRED" 0x1_005b "Branches predicted correctly";
    BranchesWrongPath "BR_MISPRED_DETAIL.ALL.WRONG_PATH" 0x2_005b "Branches whose direction was mispredicted";
    BranchesWrongTarget "BR_MISPRED_DETAIL.ALL.WRONG_TARGET" 0x3_005b "Taken branches whose target was mispredicted";
    Returns "BR_MISPRED_DETAIL.RETURN.ALL_PRED" 0x8_005b "Returns retired";
    ReturnsWrongTarget "BR_MISPRED_DETAIL.RETURN.WRONG_TARGET" 0xb_005b "Returns whose target was mispredicted";
    DispersalStalled "DISP_STALLED" 0x49 "Cycles in which dispersal was stalled by the back end";
    L1iReads "L1I_READS" 0x40 "Reads of the first-level instruction cache, 32 bytes each";
    L1iFills "L1I_FILLS" 0x41 "Lines brought into the first-level instruction cache";
    ItlbMissesFirst "ITLB_MISSES_FETCH.L1ITLB" 0x1_0047 "Fetches that missed the first instruction TLB";
    ItlbMissesSecond "ITLB_MISSES_FETCH.L2ITLB" 0x2_0047 "Fetches that missed both instruction TLBs";
    L1dReads "L1D_READS_SET1" 0xc4 "Loads that read the first-level data cache";
    L1dReadMisses "L1D_READ_MISSES.ALL" 0xc7 "Loads that missed the first-level data cache";
    L2References "L2_REFERENCES" 0xb1 "Requests to the second-level cache";
    L2Misses "L2_MISSES" 0xcb "Requests that missed the second-level cache";
    L3References "L3_REFERENCES" 0xdb "Requests to the third-level cache";
    L3Misses "L3_MISSES" 0xdc "Requests that missed the third-level cache";
    DtlbTransfers "L1DTLB_TRANSFER" 0xc0 "Misses of the first data TLB that hit the second";
    DtlbMisses "L2DTLB_MISSES" 0xc1 "Misses of both data TLBs";
    WalkerReferences "HPW_DATA_REFERENCES" 0x2d "Entries of the VHPT read by the walker";
    WalkerInsertions "DTLB_INSERTS_HPW" 0xc9 "Entries that the walker put into the data TLB";
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

    /// What is counted.
    pub fn description(self) -> &'static str {
        Event::ROWS[self as usize].2
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
            .ok_or_else(|| names::Unknown::new("counter", name, Event::ALL.iter().map(|event| event.name())))
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
