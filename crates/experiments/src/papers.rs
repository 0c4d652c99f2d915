//! What the four papers report as results, each with who judges it here, or why nobody does.
//!
//! Facts alone: what is a number or an order in a paper's figure, table or text. No model reads them; the experiments
//! that judge them keep the numbers that they hold theirs against.

/// A result of a paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaperResult {
    /// The paper.
    pub paper: &'static str,
    /// The collection of the papers' figures as data that has it, by name; empty of what stands in the text alone.
    pub collection: &'static str,
    /// Figure, table or section.
    pub place: &'static str,
    /// What it is of: a row, and a column where the row has several.
    pub of: [&'static str; 2],
    /// What the paper has there.
    pub value: &'static str,
    /// Who judges it.
    pub judged: Judged,
}

/// Who judges a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// An experiment, in the row of the results page that has this text.
    By(&'static str, &'static str),
    /// Nobody, and why.
    Nobody(&'static str),
}

use Judged::{By, Nobody};

const fn row(
    paper: &'static str,
    collection: &'static str,
    place: &'static str,
    of: [&'static str; 2],
    value: &'static str,
    judged: Judged,
) -> PaperResult {
    PaperResult {
        paper,
        collection,
        place,
        of,
        value,
        judged,
    }
}

/// Every result of the papers.
#[rustfmt::skip]
pub const RESULTS: &[PaperResult] = &[
    row("CEFOS", "cefos_results", "Figure 5", ["throughput at RTT 2 us from 1 device and 1 unit to 3 and 3", ""], "about 2.5 times", By("cefos.scaling", "round-trip=2us devices=3 units=3")),
    row("CEFOS", "cefos_results", "Figure 5", ["throughput at RTT 6 us from 1 device and 1 unit to 3 and 3", ""], "about 3.1 times", By("cefos.scaling", "round-trip=6us devices=3 units=3")),
    row("CEFOS", "", "Figure 5", ["the other pairs of devices and units, and round trips", ""], "a picture without numbers", Nobody("the text has numbers of two pairs alone")),
    row("CEFOS", "", "Figure 6", ["receive livelock by interrupts", ""], "a sketch without numbers", Nobody("it shows what others measured; our interrupts go before every thread by construction")),
    row("CEFOS", "cefos_results", "Figure 7", ["total clocks without software queues", ""], "grow as n^2", By("cefos.gates", "(Figure 7), up to 80")),
    row("CEFOS", "cefos_results", "Figure 8", ["clocks per system call without software queues", ""], "grow linearly", By("cefos.gates", "(Figure 8)")),
    row("CEFOS", "cefos_results", "Figure 9", ["self-continuations per sender thread without software queues", ""], "grow linearly", By("cefos.gates", "(Figure 9), up to 80")),
    row("CEFOS", "cefos_results", "Figure 10", ["self-continuations with software queues", ""], "almost proportional to the number of system calls", By("cefos.gates", "(Figure 10), up to 80")),
    row("CEFOS", "cefos_results", "Figure 11", ["total clocks with software queues", ""], "significantly lower as calls grow", By("cefos.gates", "(Figure 11)")),
    row("Partial Coscheduling", "coscheduling_results", "Figure 6", ["double and quad expected gain", ""], "33%", By("gang.policies", "beside what the paper calculates")),
    row("Partial Coscheduling", "coscheduling_results", "Figure 6", ["single theoretical gain", ""], "100% (less in practice)", By("gang.policies", "the greatest gain of given sets")),
    row("Partial Coscheduling", "coscheduling_results", "Figure 6", ["static quad on Gainestown", ""], "close to 33% but for LU and MG", By("gang.policies", "stated values")),
    row("Partial Coscheduling", "coscheduling_results", "Figure 6", ["static single on Gainestown", ""], "only BT and EP come close to 100%", By("gang.policies", "stated values")),
    row("Partial Coscheduling", "coscheduling_results", "Figure 6", ["automatic", ""], "lower than static; CG UA and IS in double lose against full coscheduling", By("gang.policies", "automatic sets against given ones")),
    row("Partial Coscheduling", "coscheduling_results", "Figure 6", ["maximum", ""], "100% static and 50% automatic", By("gang.policies", "the greatest gain of automatic sets")),
    row("Partial Coscheduling", "", "Section 5", ["static double on Gainestown", ""], "no result close to 33%", By("gang.policies", "stated values")),
    row("Partial Coscheduling", "", "Figure 7", ["all on Lynnfield, with SMT", ""], "no single value in the text", Nobody("no number to hold ours against; `gang.npb` in full says how far gains lie apart with SMT and without")),
    row("Sidecore", "sidecore_results", "Figure 1", ["page table update latency by sidecall against VM exit", ""], "41% lower on average", By("sidecore.calls", "operation=map")),
    row("Sidecore", "sidecore_results", "Figure 1", ["null call and CPUID", ""], "sidecall considerably lower than VM exit", By("sidecore.calls", "operation=null")),
    row("Sidecore", "sidecore_results", "Figure 1", ["VM exits and entries of a fault that creates a page table entry", ""], "2 without and 1 with the sidecore", By("sidecore.calls", "exits and entries of a fault")),
    row("Sidecore", "sidecore_results", "Figure 1", ["removal or modification of an entry", ""], "needs a remote TLB flush by IPI: the benefit is lost", By("sidecore.unmap", "operation=unmap purge=interrupt")),
    row("Sidecore", "sidecore_results", "Figure 3", ["lmbench context switch of 16 processes of 16 KB and page fault", ""], "both lower with the sidecore", By("sidecore.lmbench", "workload=fault")),
    row("Sidecore", "sidecore_results", "Figure 3", ["kernel compilation", ""], "676 s with VM exits and 668 s with the sidecore (most faults are file-mapped and not handled)", Nobody("how much the paper's compilation computes for each fault is not known, and decides it (`work` of sidecore.lmbench)")),
    row("Sidecore", "sidecore_results", "Figure 4", ["up to 8 guests", ""], "no benefit: the 8-bit identifier register signals each guest uniquely", By("sidecore.interrupts", "with up to 8 guests")),
    row("Sidecore", "sidecore_results", "Figure 4", ["16 guests", ""], "0.5 redundant guests scheduled a packet without the sidecore; none with it", By("sidecore.interrupts", "redundant guests scheduled")),
    row("Sidecore", "sidecore_results", "Figure 4", ["32 guests", ""], "larger gain than at 16", By("sidecore.interrupts", "with 32 guests against 16")),
    row("Sidecore", "sidecore_results", "Figure 4", ["variability", ""], "smaller inter-quartile range with the sidecore", By("sidecore.interrupts", "inter-quartile range")),
    row("Sidecore", "", "Section II-A", ["lmbench context switch", ""], "lower, no number in the text", Nobody("its gain is that of the page faults among the switches, and how many those are is an input (`rounds` of sidecore.lmbench)")),
    row("Sidecore", "", "Section I", ["less cache pollution; fewer locks on page tables", ""], "stated, no number", Nobody("no number to hold ours against: `sidecore.pollution` and `sidecore.updates` measure both here")),
    row("Itanium", "itanium_results", "Table 2", ["Itanium 2 1.00 GHz SMP signal delivery", "cycles"], "3087", By("itanium.signal", "of=delivery kernel=M")),
    row("Itanium", "itanium_results", "Table 2", ["Itanium 2 1.00 GHz UP signal delivery", "cycles"], "2533", By("itanium.signal", "of=delivery kernel=U")),
    row("Itanium", "itanium_results", "Table 2", ["full-state delivery against minimal", "percent slower"], "23-34", By("itanium.signal", "how much slower that is")),
    row("Itanium", "itanium_results", "Table 2", ["full-state delivery against minimal on Itanium 2", "cycles"], "700", By("itanium.signal", "what the full state adds")),
    row("Itanium", "itanium_results", "Table 3", ["getpid", "break dynamic"], "294", By("itanium.syscall", "stated values")),
    row("Itanium", "itanium_results", "Table 3", ["getpid", "epc dynamic"], "18", By("itanium.syscall", "stated values")),
    row("Itanium", "itanium_results", "Table 3", ["getpid", "break static"], "287", By("itanium.syscall", "stated values")),
    row("Itanium", "itanium_results", "Table 3", ["getpid", "epc static"], "12", By("itanium.syscall", "stated values")),
    row("Itanium", "itanium_results", "Table 3", ["getppid", "break dynamic"], "299", By("itanium.syscall", "stated values")),
    row("Itanium", "itanium_results", "Table 3", ["getppid", "epc dynamic"], "77", By("itanium.syscall", "stated values")),
    row("Itanium", "itanium_results", "Table 3", ["getppid", "break static"], "290", By("itanium.syscall", "stated values")),
    row("Itanium", "itanium_results", "Table 3", ["getppid", "epc static"], "54", By("itanium.syscall", "stated values")),
    row("Itanium", "itanium_results", "Table 3", ["gettimeofday", "break dynamic"], "442", By("itanium.syscall", "stated values")),
    row("Itanium", "itanium_results", "Table 3", ["gettimeofday", "epc dynamic"], "174", By("itanium.syscall", "stated values")),
    row("Itanium", "itanium_results", "Table 3", ["gettimeofday", "break static"], "432", By("itanium.syscall", "stated values")),
    row("Itanium", "itanium_results", "Table 3", ["gettimeofday", "epc static"], "153", By("itanium.syscall", "stated values")),
    row("Itanium", "itanium_results", "Figure 5", ["BACK_END_BUBBLE.ALL", "bubbles of the 95-cycle version"], "56", By("itanium.ipc", "BACK_END_BUBBLE.ALL of the scheduled version")),
    row("Itanium", "itanium_results", "Figure 5", ["BE_EXE_BUBBLE.ALL", "bubbles"], "30", By("itanium.ipc", "BE_EXE_BUBBLE.ALL of the scheduled version")),
    row("Itanium", "itanium_results", "Figure 5", ["BE_EXE_BUBBLE.GRALL", "bubbles"], "16", By("itanium.ipc", "BE_EXE_BUBBLE.GRALL of the scheduled version")),
    row("Itanium", "itanium_results", "Figure 5", ["BE_EXE_BUBBLE.ARCR", "bubbles"], "14", By("itanium.ipc", "BE_EXE_BUBBLE.ARCR of the scheduled version")),
    row("Itanium", "itanium_results", "Figure 5", ["BE_L1D_FPU_BUBBLE.ALL", "bubbles"], "15", By("itanium.ipc", "BE_L1D_FPU_BUBBLE.ALL of the scheduled version")),
    row("Itanium", "itanium_results", "Figure 5", ["BE_L1D_FPU_BUBBLE.L1D_DCURECIR", "bubbles"], "10", By("itanium.ipc", "BE_L1D_FPU_BUBBLE.L1D_DCURECIR of the scheduled version")),
    row("Itanium", "itanium_results", "Figure 5", ["BE_L1D_FPU_BUBBLE.L1D_STBUFRECIR", "bubbles"], "5", By("itanium.ipc", "BE_L1D_FPU_BUBBLE.L1D_STBUFRECIR of the scheduled version")),
    row("Itanium", "itanium_results", "Figure 5", ["BE_RSE_BUBBLE.ALL", "bubbles"], "11", By("itanium.ipc", "BE_RSE_BUBBLE.ALL of the scheduled version")),
    row("Itanium", "itanium_results", "Figure 5", ["BE_RSE_BUBBLE.AR_DEP", "bubbles"], "4", By("itanium.ipc", "BE_RSE_BUBBLE.AR_DEP of the scheduled version")),
    row("Itanium", "itanium_results", "Figure 5", ["BE_RSE_BUBBLE.LOADRS", "bubbles"], "6", By("itanium.ipc", "BE_RSE_BUBBLE.LOADRS of the scheduled version")),
    row("Itanium", "itanium_results", "Figure 5", ["BE_RSE_BUBBLE.OVERFLOW", "bubbles"], "1", By("itanium.ipc", "BE_RSE_BUBBLE.OVERFLOW of the scheduled version")),
    row("Itanium", "itanium_results", "Table 6", ["C++ generic", "cycles/groups/bubbles"], "508/231/277", By("itanium.ipc", "the generic version")),
    row("Itanium", "itanium_results", "Table 6", ["Initial asm", "cycles/groups/bubbles"], "170/83/87", By("itanium.ipc", "the first version")),
    row("Itanium", "itanium_results", "Table 6", ["Optimised", "cycles/groups/bubbles"], "95/39/56", By("itanium.ipc", "the scheduled version: cycles")),
    row("Itanium", "itanium_results", "Table 6", ["Final", "cycles/groups/bubbles"], "36/33/3", By("itanium.ipc", "the measured version")),
    row("Itanium", "itanium_results", "Table 6", ["Optimal", "cycles/groups/bubbles"], "34/32/2", By("itanium.ipc", "the fewest cycles of the path")),
    row("Itanium", "itanium_results", "Table 6", ["Architectural limit", "cycles/groups/bubbles"], "9/9/0", By("itanium.ipc", "the architectural limit of the path")),
    row("Itanium", "", "Section 5.3.3", ["the path between Optimised and Final", "cycles"], "72", By("itanium.ipc", "version=stack")),
    row("Itanium", "", "Section 3.4", ["rest of lmbench, AIM, OSDL DBT-2", ""], "no significant difference between the formats", Nobody("none of them runs on the kernel of these experiments")),
    row("Itanium", "itanium_pipeline_facts", "Section 3.2", ["TLB refill in Linux", ""], "45 cycles with the hardware walker and 160 without (average)", By("itanium.vhpt", "a refill by software alone")),
    row("Itanium", "itanium_vhpt_lmbench", "Table 1", ["0 kB", "U"], "0.98 1.00 0.95 0.88 0.98 1.44 1.34", By("itanium.vhpt", "stated values")),
    row("Itanium", "itanium_vhpt_lmbench", "Table 1", ["0 kB", "M"], "0.94 0.96 0.95 0.96 1.23 1.30 1.27", By("itanium.vhpt", "stated values")),
    row("Itanium", "itanium_vhpt_lmbench", "Table 1", ["4 kB", "U"], "0.97 0.99 0.97 0.95 1.17 1.20 1.09", By("itanium.vhpt", "stated values")),
    row("Itanium", "itanium_vhpt_lmbench", "Table 1", ["4 kB", "M"], "0.95 0.61 0.78 0.87 1.11 1.13 1.09", By("itanium.vhpt", "stated values")),
    row("Itanium", "itanium_vhpt_lmbench", "Table 1", ["8 kB", "U"], "0.99 0.98 0.96 0.97 1.31 1.17 1.08", By("itanium.vhpt", "stated values")),
    row("Itanium", "itanium_vhpt_lmbench", "Table 1", ["8 kB", "M"], "0.95 0.91 0.96 1.00 1.29 1.15 1.06", By("itanium.vhpt", "stated values")),
    row("Itanium", "itanium_vhpt_lmbench", "Table 1", ["16 kB", "U"], "0.99 0.98 0.96 0.97 1.31 1.17 1.08", By("itanium.vhpt", "stated values")),
    row("Itanium", "itanium_vhpt_lmbench", "Table 1", ["16 kB", "M"], "0.95 0.91 0.96 1.00 1.29 1.15 1.06", By("itanium.vhpt", "stated values")),
    row("Itanium", "itanium_vhpt_lmbench", "Table 1", ["32 kB", "U"], "0.99 0.98 1.04 1.30 1.04 1.03 1.00", By("itanium.vhpt", "stated values")),
    row("Itanium", "itanium_vhpt_lmbench", "Table 1", ["32 kB", "M"], "0.94 0.96 1.00 1.01 0.87 1.00 1.00", By("itanium.vhpt", "stated values")),
    row("Itanium", "itanium_vhpt_lmbench", "Table 1", ["64 kB", "U"], "1.00 0.98 0.94 0.94 1.00 1.00 1.00", By("itanium.vhpt", "stated values")),
    row("Itanium", "itanium_vhpt_lmbench", "Table 1", ["64 kB", "M"], "0.97 0.98 1.06 1.22 0.94 0.99 0.98", By("itanium.vhpt", "stated values")),
];
