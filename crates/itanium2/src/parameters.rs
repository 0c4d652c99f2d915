//! The numbers of one processor: caches, translation buffers, latencies, penalties; and the presets.
//!
//! Every number is a row with its source. "Paper" is Gray et al., "Itanium: A System Implementor's Tale"; "manual" the
//! Itanium 2 Processor Reference Manual for Software Development and Optimization (251110), which was not at hand when
//! the rows that are "recalled from the manual" were written: they are unchecked; "GCC" the latencies in
//! GCC's machine description `itanium2.md`; "Linux" the latencies noted beside the instructions in Linux's
//! `arch/ia64/kernel/{ivt,fsys}.S`. Rows marked "assumed" have no published value.

use crate::knowledge::Knowledge;
use crate::names::Unknown;

macro_rules! costs {
    ($($variant:ident = $cycles:literal, $what:literal, $source:literal;)*) => {
        /// A latency or penalty.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Cost { $(#[doc = $what] $variant,)* }

        impl Cost {
            /// All costs.
            pub const ALL: &'static [Cost] = &[$(Cost::$variant),*];
            const ROWS: &'static [(u16, &'static str, &'static str)] = &[$(($cycles, $what, $source)),*];
        }
    };
}

costs! {
    Alu = 1, "integer ALU, compare, shift, extract, deposit: to any integer use", "paper 2.4.1";
    Load = 1, "integer load that hits the first-level cache", "paper 2.4.1";
    LoadToAddress = 1, "more, when a loaded value is an address", "GCC, bypass ld to ld and st";
    LoadToMultimedia = 1, "more, from a load to a multimedia operation", "GCC, bypass ld to mmalua";
    AluToMultimedia = 2, "more, from the ALU to a multimedia operation", "GCC, bypass ialu to mmalua";
    Multimedia = 2, "multimedia operation to another", "GCC, mmalua, mmmul, mmshf";
    MultimediaToAlu = 1, "more, from a multimedia operation to the ALU, a load or a store", "GCC, bypass mmalua to ialu";
    ComparePredicate = 1, "compare or bit test to a qualifying predicate; to a branch 0", "GCC, icmp, tbit";
    FloatCompare = 2, "floating-point compare to a qualifying predicate", "GCC, fcmp";
    FloatCompareToBranch = 1, "floating-point compare to a branch", "GCC, bypass fcmp to br";
    Float = 4, "floating-point arithmetic, fixed-point multiply", "GCC, fmac, fmisc, xmpy";
    FloatLoadFormat = 1, "more than the second-level cache takes, for the format of a floating-point load", "GCC, fld: 6 from the second-level cache";
    GetFloat = 5, "getf", "GCC, frfr";
    SetFloat = 5, "setf to floating-point arithmetic", "GCC, tofr";
    SetFloatToStore = 1, "more, from setf to getf or a store", "GCC, bypass tofr to frfr and stf";
    FromBranch = 2, "move from a branch register", "GCC, frbr; Linux";
    ToBranch = 1, "move to a branch register, to a use that is no branch", "GCC, tobr";
    ToBranchPrediction = 7, "move to a branch register until the front end predicts with it", "Linux, mov b6";
    FromPredicates = 2, "move from the predicates", "GCC, frpr; Linux";
    ToPredicates = 1, "move to the predicates", "GCC, topr";
    FromApplicationInteger = 2, "move from ar.pfs, ar.lc, ar.ec", "Linux, ar.pfs; paper 2.4.1: 2 to 5";
    ToApplicationInteger = 1, "move to ar.pfs, ar.lc, ar.ec", "GCC, toar_i";
    FromApplicationMemory = 5, "move from ar.ccv, ar.unat, ar.rnat and others of the M unit", "Linux, ar.unat and ar.rnat; paper 2.4.1";
    ToApplicationMemory = 5, "move to ar.ccv, ar.unat and others of the M unit", "GCC, toar_m";
    FromSlowState = 12, "move from psr, the RSE's registers, kernel registers, cr.ipsr, ar.fpsr", "paper 2.4.1 and 5.3.4; Linux";
    FromControl = 2, "move from other control registers", "Linux, cr.iip and cr.iim; paper 2.4.1: 2 to 5";
    FromTimer = 36, "move from ar.itc, interrupt control and monitor registers", "paper 2.4.1";
    TimerInterval = 6, "between two accesses to such registers", "paper 2.4.2";
    FromUserMask = 5, "move from psr.um", "paper 2.4.1: 2 to 5";
    FromIndirect = 5, "move from rr, pkr, ibr, dbr, cpuid", "paper 2.4.1: 2 to 5";
    Probe = 5, "probe, tpa, tak, thash, ttag to the use of the result", "paper table 5";
    Semaphore = 5, "more than the second-level cache takes, for an exchange, compare-exchange or fetch-and-add", "assumed";
    Mispredict = 6, "bubbles of a mispredicted branch", "recalled from the manual, branch misprediction penalty";
    ExceptionFlush = 8, "bubbles of a flush behind WRB", "paper table 5, srlz.i and rfi";
    FrontEndRefill = 3, "bubbles until the front end has refilled the pipeline after that", "paper table 5, srlz.i and rfi";
    ReturnResteer = 1, "front-end bubbles of a predicted return or indirect branch", "recalled from the manual, branch prediction";
    InstructionL2 = 7, "instruction fetch from the second-level cache", "recalled from the manual, cache hierarchy";
    StreamingPrefetch = 1, "whether a taken branch with the hint many has the lines behind its target fetched ahead: 0 for no", "manual volume 3, branch hints; that this processor does so is recalled";
    StoreWindow = 5, "from a store to a first-level load of the same data, which recirculates until then", "published rate of OpenSSL's ChaCha20 in place; paper 5.3.3: within 3 cycles, most likely";
    StoreUnitLog2 = 3, "how much counts as the same data: bytes, as a power of two (6 for a line)", "published rates of RC4, bn_mul_mont, addmul_4 and sec_tabselect (suites/held-out); paper 5.3.3 says a line";
    WritebackConflict = 1, "bubbles when a system register's value meets two loads' data", "paper 5.3.3; its length assumed";
    RegionConflictDistance = 5, "a load or store this far behind a move to rr or pkr recirculates", "paper 5.3.3";
    RegionConflict = 1, "bubbles of that", "paper 5.3.3; its length assumed";
    SystemQueueEntries = 8, "entries of the queue of system-register accesses", "paper 5.3.3";
    StackCalculation = 1, "bubbles before each flushrs and loadrs", "paper 2.4.2 and 5.3.3, which counts them in Table 6: an input near a result";
    StackRegistersPerCycle = 2, "registers the RSE moves a cycle", "assumed: the first data cache has two ports to load and two to store (7-cpu.com/cpu/Itanium2.html)";
    TlbTransfer = 4, "bubbles when the first data TLB misses and the second hits", "measured: 7-cpu.com/cpu/Itanium2.html";
    InstructionTlbTransfer = 2, "front-end bubbles when the first instruction TLB misses and the second hits", "assumed";
    Walk = 25, "bubbles of the hardware walker, without the wait for the entry", "recalled from the manual, hardware page walker";
    BankConflict = 1, "more, for a load whose group has another one before it of the same bank of the second level", "assumed: a bank reads once a cycle";
    LineCrossing = 1, "more, for a reference across two lines of the first level", "assumed";
    RequestQueueEntries = 32, "requests to the second level that are on their way", "recalled from McNairy and Soltis, IEEE Micro 2003";
}

impl Cost {
    /// How many costs there are.
    pub const COUNT: usize = Cost::ALL.len();

    /// What costs it.
    pub fn what(self) -> &'static str {
        Cost::ROWS[self as usize].1
    }

    /// Where the number is from.
    pub fn source(self) -> &'static str {
        Cost::ROWS[self as usize].2
    }

    /// The value before a preset changes it.
    pub fn usual(self) -> u16 {
        Cost::ROWS[self as usize].0
    }
}

/// A cache's shape and hit latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CacheShape {
    /// Bytes.
    pub size: u32,
    /// Associativity.
    pub ways: u32,
    /// Bytes of a line: a power of two.
    pub line: u32,
    /// Cycles from issue to use on a hit.
    pub latency: u16,
}

/// One processor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Parameters {
    /// The preset's name.
    pub name: &'static str,
    /// What it is.
    pub description: &'static str,
    /// Where its caches are described.
    pub source: &'static str,
    /// Clock rate in MHz.
    pub megahertz: u32,
    /// First-level instruction cache.
    pub l1i: CacheShape,
    /// First-level data cache: written through, filled by loads only.
    pub l1d: CacheShape,
    /// Second level, unified.
    pub l2: CacheShape,
    /// Third level, unified.
    pub l3: CacheShape,
    /// Cycles to memory.
    pub memory: u16,
    /// Entries of the first level of each TLB, for pages of 4 kB.
    pub tlb_first: usize,
    /// Entries of the second level of each TLB.
    pub tlb_second: usize,
    /// How much is known of what system instructions take.
    pub knowledge: Knowledge,
    costs: [u16; Cost::COUNT],
}

const KB: u32 = 1 << 10;

const fn cache(size: u32, ways: u32, line: u32, latency: u16) -> CacheShape {
    CacheShape {
        size,
        ways,
        line,
        latency,
    }
}

/// A preset's own rows: name, description, MHz, third-level cache, memory latency, source.
type Preset = (&'static str, &'static str, u32, CacheShape, u16, &'static str);

/// The presets. What they share is the paper's, section 3.4; their third-level caches differ.
const PRESETS: &[Preset] = &[
    (
        "itanium2",
        "Itanium 2 at 900 MHz with 1.5 MB, on the zx1 chip set",
        900,
        cache(1536 * KB, 6, 128, 12),
        100,
        "paper 3.4",
    ),
    (
        "itanium2-900",
        "the same",
        900,
        cache(1536 * KB, 6, 128, 12),
        100,
        "paper 3.4",
    ),
    (
        "itanium2-1000",
        "Itanium 2 at 1.0 GHz with 3 MB",
        1000,
        cache(3072 * KB, 12, 128, 12),
        111,
        "recalled from the manual, cache hierarchy; memory as at 900 MHz in time",
    ),
    (
        "itanium2-1300",
        "Itanium 2 at 1.3 GHz with 3 MB",
        1300,
        cache(3072 * KB, 12, 128, 14),
        144,
        "recalled from the manual, cache hierarchy; memory as at 900 MHz in time",
    ),
    (
        "itanium2-1500",
        "Itanium 2 at 1.5 GHz with 6 MB",
        1500,
        cache(6144 * KB, 24, 128, 14),
        167,
        "recalled from the manual, cache hierarchy; memory as at 900 MHz in time",
    ),
];

/// A processor that is believed in: name, description, how much is known.
type Belief = (&'static str, &'static str, Knowledge);

/// The first preset as it was believed to be before it had been measured: what a schedule is made for that knows no
/// more (paper 5.3.2 and 5.3.3).
const BELIEFS: &[Belief] = &[
    (
        "itanium2-documented",
        "Itanium 2 if system instructions took a cycle each, as nobody had said otherwise",
        Knowledge::Documented,
    ),
    (
        "itanium2-table4",
        "the same, with the latencies of the register stack as measured",
        Knowledge::RegisterStack,
    ),
];

/// What only measurements told: latencies of system registers, and what meets in the pipeline. Of an unknown one a
/// value is there in the next cycle and nothing waits; what is a distance or counts bubbles is none.
const MEASURED: &[(Cost, u16)] = &[
    (Cost::FromApplicationInteger, 1),
    (Cost::FromApplicationMemory, 1),
    (Cost::ToApplicationMemory, 1),
    (Cost::FromSlowState, 1),
    (Cost::FromControl, 1),
    (Cost::FromTimer, 1),
    (Cost::TimerInterval, 1),
    (Cost::FromUserMask, 1),
    (Cost::FromIndirect, 1),
    (Cost::Probe, 1),
    (Cost::StoreWindow, 0),
    (Cost::WritebackConflict, 0),
    (Cost::RegionConflict, 0),
];

impl Parameters {
    /// The preset's names, in order; then those of processors that are believed in.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let beliefs = BELIEFS.iter().map(|belief| belief.0);
        PRESETS.iter().map(|preset| preset.0).chain(beliefs)
    }

    /// The preset with a name.
    ///
    /// # Errors
    /// [`Unknown`] with the nearest names.
    pub fn by_name(name: &str) -> Result<Parameters, Unknown> {
        if let Some((name, description, knowledge)) = BELIEFS.iter().find(|belief| belief.0 == name) {
            let believed = Parameters {
                name,
                description,
                knowledge: *knowledge,
                ..Parameters::default()
            };
            let unknown = |believed: Parameters, (cost, value): &(Cost, u16)| believed.with(*cost, *value);
            return Ok(MEASURED.iter().fold(believed, unknown));
        }
        let (name, description, megahertz, l3, memory, source) = *PRESETS
            .iter()
            .find(|preset| preset.0 == name)
            .ok_or_else(|| Unknown::new("processor", name, Parameters::names()))?;
        Ok(Parameters {
            name,
            description,
            source,
            megahertz,
            l1i: cache(16 * KB, 4, 64, 1),
            l1d: cache(16 * KB, 4, 64, 1),
            l2: cache(256 * KB, 8, 128, 5),
            l3,
            memory,
            tlb_first: 32,
            tlb_second: 128,
            knowledge: Knowledge::Measured,
            costs: std::array::from_fn(|index| Cost::ALL[index].usual()),
        })
    }

    /// The same processor with another latency, penalty or number of entries: to find out what depends on it.
    pub fn with(mut self, cost: Cost, value: u16) -> Parameters {
        self.costs[cost as usize] = value;
        self
    }

    /// A latency or penalty in cycles, or a number of entries.
    #[inline]
    pub fn cost(&self, cost: Cost) -> u64 {
        u64::from(self.costs[cost as usize])
    }
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters::by_name("itanium2").expect("the first preset")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_has_caches_of_whole_sets() {
        for name in Parameters::names() {
            let preset = Parameters::by_name(name).expect("a listed preset");
            for cache in [preset.l1i, preset.l1d, preset.l2, preset.l3] {
                let sets = cache.size / cache.ways / cache.line;
                assert_eq!(sets * cache.ways * cache.line, cache.size);
                assert!(sets.is_power_of_two() && cache.line.is_power_of_two(), "{name}");
            }
        }
    }

    #[test]
    fn an_unknown_preset_names_its_neighbours() {
        let error = Parameters::by_name("itanium2-1400").expect_err("no such preset");
        assert!(error.to_string().contains("itanium2-1500"), "{error}");
    }
}
