//! Where every cycle of every unit went.

use crate::controller::ControllerCounters;

macro_rules! causes {
    ($($variant:ident $name:literal $summary:literal;)*) => {
        /// What a unit did in a cycle. Each cycle has exactly one cause.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Cause {
            $(#[doc = $summary] $variant),*
        }

        impl Cause {
            /// Every cause, in the order reports use.
            pub const ALL: &[Cause] = &[$(Cause::$variant),*];

            /// The name reports use.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Cause::$variant => $name),*
                }
            }
        }
    };
}

causes! {
    Execute "execute" "An instruction was issued.";
    InstructionCache "instruction-cache" "Waiting for a cache line of instructions.";
    Memory "memory" "Waiting for a loaded value.";
    StoreBuffer "store-buffer" "Waiting for the bank that an earlier store needs.";
    LongOperation "long-operation" "Waiting for a product or a quotient.";
    Branch "branch" "Refilling after a taken branch.";
    ControllerPort "controller-port" "The unit's request port was still full.";
    ControllerAnswer "controller-answer" "Waiting for what lock or create answers.";
    Preload "preload" "A thread was dispatched to the idle unit and its registers were being loaded.";
    Interrupt "interrupt" "Entering or leaving an interrupt handler.";
    Fault "fault" "Waiting for room for a fault record.";
    Idle "idle" "No thread.";
}

/// What one unit counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnitCounters {
    /// Cycles by [`Cause`].
    pub cycles: [u64; Cause::ALL.len()],
    /// Threads started.
    pub threads: u64,
    /// Instructions done by the preload unit, not counted under [`Cause::Execute`].
    pub preloads: u64,
    /// Lines the instruction cache did not hold.
    pub instruction_cache_misses: u64,
    /// Interrupts taken.
    pub interrupts: u64,
}

impl UnitCounters {
    /// Cycles of one cause.
    pub fn of(&self, cause: Cause) -> u64 {
        self.cycles[cause as usize]
    }
}

/// What a whole run counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counters {
    /// Cycles run.
    pub cycles: u64,
    /// Each unit's.
    pub units: Vec<UnitCounters>,
    /// The controller's.
    pub controller: ControllerCounters,
    /// The most threads in the ready queue.
    pub longest_queue: usize,
    /// Accesses to memory banks.
    pub memory_accesses: u64,
    /// Cycles accesses waited for busy banks.
    pub bank_conflict_cycles: u64,
    /// Cycles that loaded threads waited behind running ones while some unit was idle.
    pub preload_held_cycles: u64,
    /// Faults raised.
    pub faults: u64,
}

impl Counters {
    /// Cycles of one cause over all units.
    pub fn of(&self, cause: Cause) -> u64 {
        self.units.iter().map(|unit| unit.of(cause)).sum()
    }

    /// Instructions issued over all units, those of the preload units included.
    pub fn instructions(&self) -> u64 {
        self.of(Cause::Execute) + self.units.iter().map(|unit| unit.preloads).sum::<u64>()
    }

    /// Threads started over all units.
    pub fn threads(&self) -> u64 {
        self.units.iter().map(|unit| unit.threads).sum()
    }
}
