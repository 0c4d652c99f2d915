//! The registers that only system software writes: control, region, protection key, debug and
//! performance-monitor registers.
//!
//! Manual volume 2, chapter 3 and section 4.1; volume 2, chapter 7.

use serde::{Deserialize, Serialize};
use serde_big_array::BigArray;

/// Numbers of the control registers (manual volume 2, table 3-3).
pub mod control {
    /// Default control register.
    pub const DCR: u8 = 0;
    /// Interval timer match.
    pub const ITM: u8 = 1;
    /// Interruption vector address.
    pub const IVA: u8 = 2;
    /// Page table address.
    pub const PTA: u8 = 8;
    /// Interruption PSR.
    pub const IPSR: u8 = 16;
    /// Interruption status.
    pub const ISR: u8 = 17;
    /// Interruption instruction pointer.
    pub const IIP: u8 = 19;
    /// Interruption faulting address.
    pub const IFA: u8 = 20;
    /// Interruption TLB insertion.
    pub const ITIR: u8 = 21;
    /// Interruption instruction previous address.
    pub const IIPA: u8 = 22;
    /// Interruption function state.
    pub const IFS: u8 = 23;
    /// Interruption immediate.
    pub const IIM: u8 = 24;
    /// Interruption hash address.
    pub const IHA: u8 = 25;
    /// Local interrupt identifier.
    pub const LID: u8 = 64;
    /// External interrupt vector.
    pub const IVR: u8 = 65;
    /// Task priority.
    pub const TPR: u8 = 66;
    /// End of interrupt.
    pub const EOI: u8 = 67;
    /// Interrupt requests, four registers.
    pub const IRR_0: u8 = 68;
    /// Interval timer vector.
    pub const ITV: u8 = 72;
    /// Performance monitor vector.
    pub const PMV: u8 = 73;
    /// Corrected machine check vector.
    pub const CMCV: u8 = 74;
    /// Local redirection 0.
    pub const LRR_0: u8 = 80;
    /// Local redirection 1.
    pub const LRR_1: u8 = 81;
}

/// Whether a control register exists.
pub fn is_control_register(number: u8) -> bool {
    use control::*;
    matches!(number, DCR..=IVA | PTA | IPSR | ISR | IIP..=IHA | LID..=CMCV | LRR_0 | LRR_1)
}

/// The configuration registers of Itanium 2's performance monitor that restrict what it counts, as they are at
/// power-up: opcodes (PMC8, PMC9, PMC15) and addresses of data (PMC13) and of code (PMC14).
const UNRESTRICTED: [(usize, u64); 5] = [
    (8, 0xffff_ffff_3fff_ffff),
    (9, 0xffff_ffff_3fff_ffff),
    (13, 0x2078_fefe_fefe),
    (14, 0x0db6_0db6_0db6_0db6),
    (15, 0xffff_fff0),
];

/// The system register files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemRegisters {
    /// Control registers by number.
    #[serde(with = "BigArray")]
    pub control: [u64; 128],
    /// Region registers.
    pub region: [u64; 8],
    /// Protection key registers.
    pub protection_key: [u64; 16],
    /// Data breakpoint registers.
    pub data_breakpoint: [u64; 8],
    /// Instruction breakpoint registers.
    pub instruction_breakpoint: [u64; 8],
    /// Performance monitor configuration registers.
    #[serde(with = "BigArray")]
    pub performance_configuration: [u64; 256],
    /// Performance monitor data registers.
    #[serde(with = "BigArray")]
    pub performance_data: [u64; 256],
    /// External interrupts in service, one bit a vector.
    pub in_service: [u64; 4],
    /// The bank of r16 to r31 that is not current, and its NaT bits.
    pub other_bank: ([u64; 16], u16),
}

impl SystemRegisters {
    /// All zero, but for what configures the performance monitor: nothing restricts what it counts.
    pub fn new() -> SystemRegisters {
        let mut performance_configuration = [0; 256];
        for (register, value) in UNRESTRICTED {
            performance_configuration[register] = value;
        }
        SystemRegisters {
            control: [0; 128],
            region: [0; 8],
            protection_key: [0; 16],
            data_breakpoint: [0; 8],
            instruction_breakpoint: [0; 8],
            performance_configuration,
            performance_data: [0; 256],
            in_service: [0; 4],
            other_bank: ([0; 16], 0),
        }
    }
}

impl Default for SystemRegisters {
    fn default() -> Self {
        SystemRegisters::new()
    }
}
