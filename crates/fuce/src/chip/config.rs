//! The chip's sizes and latencies, each with its reason.
//!
//! What section 3.1 of the CEFOS paper states is taken from there. The paper gives no latencies; the defaults here
//! are plain choices for a simple 1 GHz chip, made before any result was looked at, and every one can be changed.

use thiserror::Error;

/// The sizes and latencies of a chip, in cycles of its one clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChipConfig {
    /// Thread execution units, 1 to 64. The paper evaluates at most four.
    pub units: usize,
    /// Instruction cache of each unit in bytes. The paper: 4 KB. Direct-mapped, lines of 32 bytes.
    pub instruction_cache_bytes: u32,
    /// Pages of the activation control memory. The paper: 1K pages of 8 entries of 5 bytes.
    pub pages: u16,
    /// Threads the ready queue holds. The paper: 1K.
    pub queue: u16,
    /// Shared memory in bytes. The paper: 256 MB.
    pub memory_bytes: u32,
    /// Banks of the shared memory, interleaved by word. Eight, so that a cache line is one word of each.
    pub banks: usize,
    /// Cycles a bank is occupied by an access: the random cycle of on-chip dynamic memory, about 8 ns.
    pub bank_cycles: u32,
    /// Cycles from a unit to the banks, and back again: one register stage each way.
    pub interconnect_cycles: u32,
    /// Cycles lost after a taken branch: fetch and decode, which a branch resolved in execute has filled in vain.
    pub branch_penalty: u32,
    /// Cycles a controller request is served for: a single-ported memory is read, then written.
    pub controller_cycles: u32,
    /// Cycles until a device register's value arrives: the way off the chip's core and back.
    pub device_register_cycles: u32,
    /// Whether a busy unit takes its next thread in advance and loads its registers meanwhile.
    pub preload: bool,
    /// Faults that can wait for the fault thread.
    pub fault_records: usize,
    /// With this set device signals interrupt units instead of being continuations: the conventional chip that the
    /// experiments compare with. FUCE has none.
    pub interrupts: Option<InterruptConfig>,
}

/// The cost of interrupts on the conventional chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterruptConfig {
    /// Cycles from taking the interrupt to the handler's first instruction: flush, save, mode change.
    pub entry_cycles: u32,
    /// Cycles from the handler's end to the interrupted thread's next instruction.
    pub exit_cycles: u32,
}

impl Default for ChipConfig {
    /// The paper's chip with four units.
    fn default() -> ChipConfig {
        ChipConfig {
            units: 4,
            instruction_cache_bytes: 4 << 10,
            pages: 1024,
            queue: 1024,
            memory_bytes: 256 << 20,
            banks: 8,
            bank_cycles: 8,
            interconnect_cycles: 1,
            branch_penalty: 2,
            controller_cycles: 2,
            device_register_cycles: 10,
            preload: true,
            fault_records: 64,
            interrupts: None,
        }
    }
}

/// A size or latency that no chip can have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{name} must be {expected}, not {value}")]
pub struct ConfigError {
    /// The field.
    pub name: &'static str,
    /// What it may be.
    pub expected: &'static str,
    /// What it is.
    pub value: u64,
}

impl ChipConfig {
    /// Checks every field.
    ///
    /// # Errors
    /// Names the first field that is out of its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let cycles = 1..=1_000_000;
        let power_of_two = |value: u64, low, high| value.is_power_of_two() && (low..=high).contains(&value);
        let rules: [(&'static str, u64, bool, &'static str); 9] = [
            (
                "units",
                self.units as u64,
                (1..=64).contains(&self.units),
                "1 to 64",
            ),
            (
                "instruction_cache_bytes",
                u64::from(self.instruction_cache_bytes),
                power_of_two(self.instruction_cache_bytes.into(), 32, 1 << 20),
                "a power of two from 32 to 1048576",
            ),
            (
                "pages",
                self.pages.into(),
                (1..=1024).contains(&self.pages),
                "1 to 1024",
            ),
            (
                "queue",
                self.queue.into(),
                (1..=1024).contains(&self.queue),
                "1 to 1024",
            ),
            (
                "memory_bytes",
                self.memory_bytes.into(),
                power_of_two(self.memory_bytes.into(), 4096, 256 << 20),
                "a power of two from 4096 to 268435456",
            ),
            (
                "banks",
                self.banks as u64,
                power_of_two(self.banks as u64, 1, 1024),
                "a power of two from 1 to 1024",
            ),
            (
                "bank_cycles",
                self.bank_cycles.into(),
                cycles.contains(&self.bank_cycles),
                "1 to 1000000",
            ),
            (
                "controller_cycles",
                self.controller_cycles.into(),
                cycles.contains(&self.controller_cycles),
                "1 to 1000000",
            ),
            (
                "fault_records",
                self.fault_records as u64,
                (1..=65536).contains(&self.fault_records),
                "1 to 65536",
            ),
        ];
        match rules.into_iter().find(|(_, _, holds, _)| !holds) {
            Some((name, value, _, expected)) => Err(ConfigError {
                name,
                expected,
                value,
            }),
            None => Ok(()),
        }
    }
}
