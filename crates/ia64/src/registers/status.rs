//! The processor status register (PSR) and the register stack configuration (RSC), bit by bit.
//!
//! Manual volume 2, section 3.3.2 (PSR); volume 1, section 3.1.8.2 (RSC).

/// Bits of the processor status register.
pub mod psr {
    /// Big-endian data (user mask).
    pub const BE: u64 = 1 << 1;
    /// User performance monitors enabled (user mask).
    pub const UP: u64 = 1 << 2;
    /// Alignment check (user mask).
    pub const AC: u64 = 1 << 3;
    /// f2 to f31 were written (user mask).
    pub const MFL: u64 = 1 << 4;
    /// f32 to f127 were written (user mask).
    pub const MFH: u64 = 1 << 5;
    /// Interruption collection.
    pub const IC: u64 = 1 << 13;
    /// Interrupts enabled.
    pub const I: u64 = 1 << 14;
    /// Protection keys enabled.
    pub const PK: u64 = 1 << 15;
    /// Data translation.
    pub const DT: u64 = 1 << 17;
    /// f2 to f31 disabled.
    pub const DFL: u64 = 1 << 18;
    /// f32 to f127 disabled.
    pub const DFH: u64 = 1 << 19;
    /// Secure performance monitors.
    pub const SP: u64 = 1 << 20;
    /// Privileged performance monitors enabled.
    pub const PP: u64 = 1 << 21;
    /// Transition to IA-32 disabled.
    pub const DI: u64 = 1 << 22;
    /// Secure interval timer.
    pub const SI: u64 = 1 << 23;
    /// Debug breakpoint faults.
    pub const DB: u64 = 1 << 24;
    /// Lower-privilege transfer trap.
    pub const LP: u64 = 1 << 25;
    /// Taken branch trap.
    pub const TB: u64 = 1 << 26;
    /// Register stack translation.
    pub const RT: u64 = 1 << 27;
    /// Position of the current privilege level (2 bits).
    pub const CPL_SHIFT: u32 = 32;
    /// The current privilege level field.
    pub const CPL: u64 = 3 << CPL_SHIFT;
    /// IA-32 instruction set.
    pub const IS: u64 = 1 << 34;
    /// Machine checks masked.
    pub const MC: u64 = 1 << 35;
    /// Instruction translation.
    pub const IT: u64 = 1 << 36;
    /// Instruction debug faults disabled for one instruction.
    pub const ID: u64 = 1 << 37;
    /// Data access and dirty faults disabled for one instruction.
    pub const DA: u64 = 1 << 38;
    /// Data debug faults disabled for one instruction.
    pub const DD: u64 = 1 << 39;
    /// Single step.
    pub const SS: u64 = 1 << 40;
    /// Position of the restart slot (2 bits).
    pub const RI_SHIFT: u32 = 41;
    /// The restart slot field.
    pub const RI: u64 = 3 << RI_SHIFT;
    /// Exception deferral.
    pub const ED: u64 = 1 << 43;
    /// Register bank 1.
    pub const BN: u64 = 1 << 44;
    /// Instruction access bit faults disabled for one instruction.
    pub const IA: u64 = 1 << 45;
    /// Virtual machine mode.
    pub const VM: u64 = 1 << 46;

    /// The user mask: the bits that a program may change itself.
    pub const USER_MASK: u64 = BE | UP | AC | MFL | MFH;
    /// The system mask: the bits that `ssm` and `rsm` may change.
    pub const SYSTEM_MASK: u64 = 0x00ff_ffff;
}

/// Fields of the register stack configuration register.
pub mod rsc {
    /// The mode: bit 0 loads eagerly, bit 1 stores eagerly; zero is enforced lazy mode.
    pub const MODE: u64 = 3;
    /// Position of the privilege level of RSE references (2 bits).
    pub const PRIVILEGE_SHIFT: u32 = 2;
    /// Big-endian backing store.
    pub const BIG_ENDIAN: u64 = 1 << 4;
    /// Position of the distance in bytes that `loadrs` must load (14 bits).
    pub const LOAD_SHIFT: u32 = 16;
    /// Width mask of that distance.
    pub const LOAD_MASK: u64 = 0x3fff;
    /// Bits that exist; writing another is a reserved register/field fault.
    pub const IMPLEMENTED: u64 = MODE | 3 << PRIVILEGE_SHIFT | BIG_ENDIAN | LOAD_MASK << LOAD_SHIFT;
}
