//! The classes of instructions that the pipeline tells apart, as a table: port, latency of the result, where issue
//! splits, which queue it goes through, and where each is from.
//!
//! "GCC" is the machine description `itanium2.md`, whose reservations are those of Intel's manual; "paper" is Gray et
//! al.; "Linux" the units and latencies noted beside the instructions in `arch/ia64/kernel`. Latencies between
//! particular pairs of instructions are in [`rules`](crate::rules), numbers in [`parameters`](crate::parameters), and
//! which instruction has which class in [`operations`](crate::operations).

use crate::dispersal::Port;
use crate::flags::Flags;
use crate::parameters::{Cost, Parameters};
use crate::scoreboard::Producer;

/// One class.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its instructions.
    pub what: &'static str,
    /// The port that it asks for in an M slot.
    pub memory: Option<Port>,
    /// The port that it asks for in an I slot.
    pub integer: Option<Port>,
    /// How late its result is, counted from the second-level cache where that serves it, and as what it bypasses;
    /// predicates and what is updated by the way, such as base registers, have their own.
    pub result: Option<(Cost, Producer)>,
    /// What else it does.
    pub flags: Flags,
    /// Where the row is from.
    pub source: &'static str,
}

/// A class that no slot but an M slot holds.
const fn memory(port: Port, what: &'static str, source: &'static str) -> Row {
    Row {
        what,
        memory: Some(port),
        integer: None,
        result: None,
        flags: Flags::empty(),
        source,
    }
}

/// A class that no slot but an I slot holds.
const fn integer(port: Port, what: &'static str, source: &'static str) -> Row {
    Row {
        memory: None,
        integer: Some(port),
        ..memory(port, what, source)
    }
}

/// A class of other slots, whose ports follow from the slot and the template alone.
const fn elsewhere(what: &'static str, source: &'static str) -> Row {
    Row {
        memory: None,
        ..memory(Port::MemoryAny, what, source)
    }
}

impl Row {
    const fn or_integer(self, port: Port) -> Row {
        Row {
            integer: Some(port),
            ..self
        }
    }

    const fn gives(self, cost: Cost, producer: Producer) -> Row {
        Row {
            result: Some((cost, producer)),
            ..self
        }
    }

    const fn with(self, flags: Flags) -> Row {
        Row { flags, ..self }
    }

    /// Cycles until its result can be used, on a hit in the cache that serves it, and as what it bypasses.
    pub fn produces(&self, parameters: &Parameters) -> Option<(u64, Producer)> {
        let (cost, producer) = self.result?;
        let serves = match self.flags.contains(Flags::SECOND_LEVEL) {
            true => u64::from(parameters.l2.latency),
            false => 0,
        };
        Some((serves + parameters.cost(cost), producer))
    }
}

macro_rules! classes {
    ($($class:ident = $row:expr;)*) => {
        /// A class of instructions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        #[expect(missing_docs, reason = "each row of the table says what its class is")]
        pub enum Class { $($class,)* }

        /// The rows, in the order of [`Class`].
        pub const ROWS: &[Row] = &[$($row,)*];

        #[cfg(test)]
        const ALL: &[Class] = &[$(Class::$class,)*];
    };
}

use Cost as C;
use Port as P;
use Producer as R;

const READ: Flags = Flags::SYSTEM_QUEUE.union(Flags::READS_SYSTEM);
const READ_SLOWLY: Flags = READ.union(Flags::TIMER);
const WRITE: Flags = Flags::SYSTEM_QUEUE;
const WRITE_SLOWLY: Flags = WRITE.union(Flags::TIMER);

classes! {
    // Every unit.
    Nop = memory(P::MemoryAny, "nop, hint", "GCC, nop")
        .or_integer(P::IntegerAny).with(Flags::NOP);
    Break = memory(P::MemoryAny, "break", "as nop").or_integer(P::IntegerAny);

    // A unit: M slots and I slots.
    Alu = memory(P::MemoryAny, "add, sub, and, or, xor, shladd, cmp", "GCC, ialu, icmp; paper 5.3.3")
        .gives(C::Alu, R::Alu).or_integer(P::IntegerAlu);
    MultimediaAlu = memory(P::MemoryAny, "padd, psub, pavg, pcmp, pshladd", "GCC, mmalua")
        .gives(C::Multimedia, R::Multimedia).or_integer(P::IntegerAlu);

    // I unit.
    MultimediaShift = integer(P::IntegerAny,
        "shl, shr, pshl, pshr, mix, mux, pack, unpack, pmin, pmax, czx", "GCC, mmshf, mmshfi")
        .gives(C::Multimedia, R::Multimedia);
    MultimediaMultiply = integer(P::IntegerFirst, "pmpy, psad, popcnt", "GCC, mmmul")
        .gives(C::Multimedia, R::Multimedia);
    Extend = integer(P::IntegerAny, "sxt, zxt", "GCC, xtd").gives(C::Alu, R::Alu);
    BitField = integer(P::IntegerFirst, "extr, dep, shrp, tbit, tnat, mov =ip", "GCC, ishf, tbit")
        .gives(C::Alu, R::Alu);
    FromBranch = integer(P::IntegerFirst, "mov =b", "GCC, frbr; Linux, I0").gives(C::FromBranch, R::Transfer);
    ToBranch = integer(P::IntegerFirst, "mov b=", "GCC, tobr; Linux, I0").gives(C::ToBranch, R::ToBranch)
        .with(Flags::TO_BRANCH);
    FromPredicates = integer(P::IntegerFirst, "mov =pr", "GCC, frpr; Linux, I0")
        .gives(C::FromPredicates, R::Transfer).with(Flags::READS_PREDICATES);
    ToPredicates = integer(P::IntegerFirst, "mov pr=, mov pr.rot=", "GCC, topr")
        .gives(C::ToPredicates, R::Compare).with(Flags::ALL_PREDICATES);
    FromLoopRegister = integer(P::IntegerFirst, "mov =ar.pfs, ar.lc, ar.ec",
        "GCC, frar_i; Linux, I0").gives(C::FromApplicationInteger, R::System);
    ToLoopRegister = integer(P::IntegerFirst, "mov ar.pfs, ar.lc, ar.ec=",
        "GCC, toar_i").gives(C::ToApplicationInteger, R::ToBranch);

    // Loads and stores.
    Load = memory(P::MemoryLoad, "ld", "GCC, ld").gives(C::Load, R::Load).with(Flags::LOAD);
    FloatLoad = memory(P::MemoryAny, "ldf", "GCC, fld").gives(C::FloatLoadFormat, R::Load)
        .with(Flags::LOAD.union(Flags::SECOND_LEVEL));
    FloatLoadPair = memory(P::MemoryLoad, "ldfp, ldf.a, ldf.c", "GCC, fldp")
        .gives(C::FloatLoadFormat, R::Load).with(Flags::LOAD.union(Flags::SECOND_LEVEL));
    Prefetch = memory(P::MemoryLoad, "lfetch", "GCC, lfetch").with(Flags::PREFETCH);
    Store = memory(P::MemoryStore, "st, stf", "GCC, st, stf").with(Flags::STORE);
    Semaphore = memory(P::MemoryStore, "cmpxchg, xchg, fetchadd", "GCC, sem").gives(C::Semaphore, R::Load)
        .with(Flags::LOAD.union(Flags::STORE).union(Flags::SECOND_LEVEL));
    CheckSpeculation = memory(P::MemoryStore, "chk.s", "GCC, chk_s_f, chk_s_i")
        .or_integer(P::IntegerAny);
    CheckAdvanced = memory(P::MemoryLoad, "chk.a, invala", "GCC, chk_a; Linux, M0 or M1");

    // Order and caches.
    Fence = memory(P::MemoryFirst, "mf", "GCC, syst_m; split: paper 5.3.3")
        .with(Flags::SPLIT_BEFORE);
    FlushWriteBuffers = memory(P::MemoryFirst, "fwb", "GCC, syst_m; split: paper 5.3.3")
        .with(Flags::FLUSH_BUFFERS);
    SynchronizeInstructions = memory(P::MemoryFirst, "sync.i", "GCC, syst_m; split: paper 5.3.3")
        .with(Flags::SPLIT_AFTER);
    SerializeData = memory(P::MemoryFirst, "srlz.d", "GCC, syst_m; split: paper 5.3.3, Linux")
        .with(Flags::SPLIT_AFTER);
    SerializeInstructions = memory(P::MemoryFirst, "srlz.i", "GCC, syst_m; split: paper 5.3.3")
        .with(Flags::SPLIT_AFTER.union(Flags::SERIALIZES));
    FlushCache = memory(P::MemoryFirst, "fc, fc.i", "GCC, syst_m");

    // The register stack.
    Allocate = memory(P::MemorySystem, "alloc", "GCC, syst_m0").gives(C::Alu, R::Alu).with(Flags::FRAME);
    FlushStack = memory(P::MemoryFirst, "flushrs", "GCC, rse_m; paper 2.4.2")
        .with(Flags::FRAME.union(Flags::FLUSH_STACK));
    LoadStack = memory(P::MemoryFirst, "loadrs", "GCC, rse_m; paper 2.4.2")
        .with(Flags::FRAME.union(Flags::LOAD_STACK));

    // Moves between register files.
    SetFloat = memory(P::MemoryStore, "setf", "GCC, tofr").gives(C::SetFloat, R::SetFloat);
    GetFloat = memory(P::MemorySystem, "getf", "GCC, frfr; paper 5.3.3").gives(C::GetFloat, R::Transfer);
    FromStackRegister = memory(P::MemorySystem, "mov =ar.rsc, ar.bspstore",
        "GCC, frar_m; Linux, M2").gives(C::FromSlowState, R::System).with(READ);
    FromStackPointer = memory(P::MemorySystem, "mov =ar.bsp",
        "GCC, frar_m; Linux, M2; split from B units: paper 5.3.3")
        .gives(C::FromSlowState, R::System).with(READ.union(Flags::FROM_BSP));
    FromStackNats = memory(P::MemorySystem, "mov =ar.rnat",
        "GCC, frar_m; Linux, M2").gives(C::FromApplicationMemory, R::System).with(READ);
    FromNats = memory(P::MemorySystem, "mov =ar.unat",
        "GCC, frar_m; Linux, M2; split: paper 5.3.3")
        .gives(C::FromApplicationMemory, R::System).with(READ.union(Flags::SPLIT_AFTER));
    FromKernelRegister = memory(P::MemorySystem, "mov =ar.k0 to ar.k7, ar.fpsr",
        "GCC, frar_m; paper 5.3.4; Linux, M2").gives(C::FromSlowState, R::System).with(READ);
    FromTimer = memory(P::MemorySystem, "mov =ar.itc, ar.ruc", "GCC, frar_m; paper 2.4.1")
        .gives(C::FromTimer, R::System).with(READ_SLOWLY);
    FromApplication = memory(P::MemorySystem, "mov =ar.ccv and others",
        "GCC, frar_m").gives(C::FromApplicationMemory, R::System).with(READ);
    ToStackRegister = memory(P::MemorySystem, "mov ar.rsc, ar.rnat=",
        "GCC, toar_m; what follows: paper table 4").gives(C::Alu, R::System).with(WRITE);
    ToStackPointer = memory(P::MemorySystem, "mov ar.bspstore=",
        "GCC, toar_m; what follows: paper table 4").gives(C::Alu, R::System).with(WRITE.union(Flags::FRAME));
    ToTimer = memory(P::MemorySystem, "mov ar.itc, ar.ruc=", "GCC, toar_m")
        .gives(C::ToApplicationMemory, R::System).with(WRITE_SLOWLY);
    ToApplication = memory(P::MemorySystem, "mov ar.ccv= and others",
        "GCC, toar_m").gives(C::ToApplicationMemory, R::System).with(WRITE);
    FromStatus = memory(P::MemorySystem, "mov =psr", "Linux, M2")
        .gives(C::FromSlowState, R::System).with(READ);
    FromUserMask = memory(P::MemorySystem, "mov =psr.um", "paper 2.4.1")
        .gives(C::FromUserMask, R::System).with(READ);
    ToStatus = memory(P::MemorySystem, "ssm, rsm, sum, rum, mov psr.l=, mov psr.um=",
        "GCC, syst_m0; Linux, M2; what follows: paper table 5").with(WRITE.union(Flags::STATUS));
    FromControl = memory(P::MemorySystem, "mov =cr.iip and others", "Linux, M2")
        .gives(C::FromControl, R::System).with(READ);
    FromSavedStatus = memory(P::MemorySystem, "mov =cr.ipsr", "Linux, M2")
        .gives(C::FromSlowState, R::System).with(READ);
    FromInterruptControl = memory(P::MemorySystem, "mov =cr.lid to cr.lrr1, cr.itm",
        "paper 2.4.1").gives(C::FromTimer, R::System).with(READ_SLOWLY);
    ToControl = memory(P::MemorySystem, "mov cr.iip= and others", "GCC, syst_m0; Linux, M2")
        .with(WRITE);
    ToInterruptControl = memory(P::MemorySystem, "mov cr.lid to cr.lrr1, cr.itm=", "paper 2.4.2")
        .with(WRITE_SLOWLY);
    FromIndirect = memory(P::MemorySystem, "mov =rr, pkr, ibr, dbr, cpuid", "paper 2.4.1")
        .gives(C::FromIndirect, R::System).with(READ);
    FromMonitor = memory(P::MemorySystem, "mov =pmc, pmd", "paper 2.4.1")
        .gives(C::FromTimer, R::System).with(READ_SLOWLY);
    ToRegion = memory(P::MemorySystem, "mov rr, pkr=", "GCC, syst_m0; what follows: paper table 5")
        .with(WRITE.union(Flags::REGION));
    ToMonitor = memory(P::MemorySystem, "mov pmc, pmd=", "paper 2.4.2").with(WRITE_SLOWLY);
    ToIndirect = memory(P::MemorySystem, "mov ibr, dbr=", "GCC, syst_m0").with(WRITE);

    // Translation.
    Probe = memory(P::MemorySystem, "probe, tpa, tak, thash, ttag", "paper table 5")
        .gives(C::Probe, R::System);
    Purge = memory(P::MemoryFirst, "ptc, ptr", "GCC, syst_m");
    System = memory(P::MemorySystem, "itc, itr, probe.fault, vmsw", "GCC, syst_m0");

    // B unit.
    Branch = elsewhere( "br, brl, br.ia, br.cloop and their like", "GCC, br")
        .with(Flags::BRANCH);
    Call = elsewhere( "br.call, brl.call", "GCC, br")
        .with(Flags::BRANCH.union(Flags::CALL).union(Flags::FRAME));
    Return = elsewhere( "br.ret", "GCC, br").with(
        Flags::BRANCH.union(Flags::RETURN).union(Flags::INDIRECT).union(Flags::FRAME).union(Flags::PRIVILEGE));
    BranchPrediction = elsewhere( "brp", "GCC, scall");
    Frame = elsewhere( "cover, clrrrb", "GCC, scall").with(Flags::FRAME);
    BankSwitch = elsewhere( "bsw", "paper table 5").with(Flags::SPLIT_AFTER);
    EnterPrivileged = elsewhere( "epc", "paper table 5; split: Linux")
        .with(Flags::SPLIT_AFTER.union(Flags::PRIVILEGE));
    ReturnFromInterruption = elsewhere( "rfi", "paper table 5").with(
        Flags::FRAME.union(Flags::SPLIT_AFTER).union(Flags::PRIVILEGE).union(Flags::STATUS));

    // L and X slots.
    Long = elsewhere( "movl", "GCC, long_i").gives(C::Alu, R::Alu);

    // F unit.
    Float = elsewhere( "fmerge, fmin, fcvt, frcpa, xma and others", "GCC, fmisc, fcvtfx, xmpy")
        .gives(C::Float, R::Float).with(Flags::FLOAT);
    FloatMultiplyAdd = elsewhere( "fma, fms, fnma, fpma", "GCC, fmac").gives(C::Float, R::Float)
        .with(Flags::FLOAT.union(Flags::MULTIPLY_ADD));
    FloatCompare = elsewhere( "fcmp, fclass", "GCC, fcmp")
        .gives(C::FloatCompare, R::FloatCompare).with(Flags::FLOAT);
    FloatControl = elsewhere( "fsetc, fclrf", "GCC, fmisc").with(Flags::FLOAT);
    FloatCheck = elsewhere( "fchkf", "GCC, fmisc");
}

impl Class {
    /// The class's row.
    pub fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Whether the multimedia units execute it.
    pub fn is_multimedia(self) -> bool {
        matches!(self.row().result, Some((_, Producer::Multimedia)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_say_what_and_whence() {
        assert_eq!(ALL.len(), ROWS.len());
        for class in ALL {
            let row = class.row();
            assert!(!row.what.is_empty() && !row.source.is_empty(), "{class:?}");
        }
    }
}
