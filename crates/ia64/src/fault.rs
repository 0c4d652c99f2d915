//! Interruptions as values: what an instruction raised, and what a handler sees of it.
//!
//! The kinds, their vectors and the interruption status register (ISR) fields are those of the Itanium
//! Architecture Software Developer's Manual, volume 2, chapters 5 and 8.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::address::VirtualAddress;

/// What a data or instruction reference was for; part of the ISR and of every translation request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// A data load.
    Read,
    /// A data store.
    Write,
    /// A semaphore: a load and a store at once.
    ReadWrite,
    /// An instruction fetch.
    Execute,
    /// A register stack engine load from the backing store.
    RegisterStackRead,
    /// A register stack engine store to the backing store.
    RegisterStackWrite,
}

impl Access {
    /// Whether the register stack engine makes the access.
    pub fn is_register_stack(self) -> bool {
        matches!(self, Access::RegisterStackRead | Access::RegisterStackWrite)
    }

    /// Whether the access stores.
    pub fn writes(self) -> bool {
        matches!(
            self,
            Access::Write | Access::ReadWrite | Access::RegisterStackWrite
        )
    }

    /// Whether the access loads data.
    pub fn reads(self) -> bool {
        matches!(self, Access::Read | Access::ReadWrite | Access::RegisterStackRead)
    }

    /// The ISR bits (x, w, r, rs) that describe the access.
    pub fn isr(self) -> u64 {
        match self {
            Access::Read => isr::READ,
            Access::Write => isr::WRITE,
            Access::ReadWrite => isr::READ | isr::WRITE,
            Access::Execute => isr::EXECUTE,
            Access::RegisterStackRead => isr::READ | isr::REGISTER_STACK,
            Access::RegisterStackWrite => isr::WRITE | isr::REGISTER_STACK,
        }
    }
}

/// The fields of the interruption status register (manual volume 2, figure 3-12).
pub mod isr {
    /// The code field (bits 15 to 0).
    pub const CODE: u64 = 0xffff;
    /// An instruction fetch (x).
    pub const EXECUTE: u64 = 1 << 32;
    /// A store (w).
    pub const WRITE: u64 = 1 << 33;
    /// A load (r).
    pub const READ: u64 = 1 << 34;
    /// A non-access instruction such as `probe`, `tpa` or `lfetch` (na).
    pub const NON_ACCESS: u64 = 1 << 35;
    /// A speculative load (sp).
    pub const SPECULATIVE: u64 = 1 << 36;
    /// A register stack engine reference (rs).
    pub const REGISTER_STACK: u64 = 1 << 37;
    /// An incomplete register frame (ir).
    pub const INCOMPLETE_FRAME: u64 = 1 << 38;
    /// Nested: collection was off (ni).
    pub const NESTED: u64 = 1 << 39;
    /// The excepting slot (ei, bits 42 and 41).
    pub const SLOT_SHIFT: u32 = 41;
    /// An exception deferral bit of the code page (ed).
    pub const DEFERRAL: u64 = 1 << 43;

    /// ISR.code bits of the traps that follow one instruction, by which the handler of the first sees the others.
    pub mod trap {
        /// Lower-privilege transfer.
        pub const LOWER_PRIVILEGE_TRANSFER: u64 = 1 << 1;
        /// Taken branch.
        pub const TAKEN_BRANCH: u64 = 1 << 2;
        /// Single step.
        pub const SINGLE_STEP: u64 = 1 << 3;
    }

    /// ISR.code values of the general exception vector (manual volume 2, chapter 8, bits 7 to 4).
    pub mod general_exception {
        /// Illegal operation fault.
        pub const ILLEGAL_OPERATION: u64 = 0x00;
        /// Privileged operation fault.
        pub const PRIVILEGED_OPERATION: u64 = 0x10;
        /// Privileged register fault.
        pub const PRIVILEGED_REGISTER: u64 = 0x20;
        /// Reserved register or field fault, unimplemented data address fault.
        pub const RESERVED_REGISTER_FIELD: u64 = 0x30;
        /// Disabled instruction set transition fault.
        pub const DISABLED_TRANSITION: u64 = 0x40;
    }
}

macro_rules! interruptions {
    ($($(#[$doc:meta])* $name:ident = $vector:literal, $text:literal;)+) => {
        /// The kinds of interruption that an instruction stream can meet.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum FaultKind {
            $($(#[$doc])* $name,)+
        }

        impl FaultKind {
            /// Every kind, in the order of the vector table.
            pub const ALL: &'static [FaultKind] = &[$(FaultKind::$name,)+];

            /// The offset of its handler in the interruption vector table.
            pub fn vector(self) -> u64 {
                match self { $(FaultKind::$name => $vector,)+ }
            }

            /// Its name in the manual.
            pub fn name(self) -> &'static str {
                match self { $(FaultKind::$name => $text,)+ }
            }
        }
    };
}

interruptions! {
    /// A VHPT walk missed.
    VhptTranslation = 0x0000, "VHPT translation fault";
    /// No translation for an instruction fetch, walker enabled.
    InstructionTlb = 0x0400, "instruction TLB fault";
    /// No translation for a data reference, walker enabled.
    DataTlb = 0x0800, "data TLB fault";
    /// No translation for an instruction fetch, walker disabled.
    AlternateInstructionTlb = 0x0c00, "alternate instruction TLB fault";
    /// No translation for a data reference, walker disabled.
    AlternateDataTlb = 0x1000, "alternate data TLB fault";
    /// A data TLB miss while interruption collection is off.
    DataNestedTlb = 0x1400, "data nested TLB fault";
    /// No protection key register matches the fetch.
    InstructionKeyMiss = 0x1800, "instruction key miss fault";
    /// No protection key register matches the data reference.
    DataKeyMiss = 0x1c00, "data key miss fault";
    /// A store to a page whose dirty bit is clear.
    DirtyBit = 0x2000, "dirty bit fault";
    /// A fetch from a page whose accessed bit is clear.
    InstructionAccessBit = 0x2400, "instruction access bit fault";
    /// A data reference to a page whose accessed bit is clear.
    DataAccessBit = 0x2800, "data access bit fault";
    /// A `break` instruction.
    Break = 0x2c00, "break instruction fault";
    /// An external interrupt.
    ExternalInterrupt = 0x3000, "external interrupt";
    /// The fetched page is not present.
    PageNotPresent = 0x5000, "page not present fault";
    /// The protection key forbids the access.
    KeyPermission = 0x5100, "key permission fault";
    /// The page's rights forbid the fetch.
    InstructionAccessRights = 0x5200, "instruction access rights fault";
    /// The page's rights forbid the data reference.
    DataAccessRights = 0x5300, "data access rights fault";
    /// An illegal, privileged or reserved operation: the ISR code says which.
    GeneralException = 0x5400, "general exception";
    /// A floating-point register used while disabled.
    DisabledFloatingPoint = 0x5500, "disabled floating-point register fault";
    /// A NaT was consumed.
    NatConsumption = 0x5600, "NaT consumption fault";
    /// A speculation check that must be handled by software.
    Speculation = 0x5700, "speculation fault";
    /// An instruction or data breakpoint.
    Debug = 0x5900, "debug fault";
    /// A misaligned data reference.
    UnalignedReference = 0x5a00, "unaligned data reference fault";
    /// A data reference that the memory attribute does not support.
    UnsupportedReference = 0x5b00, "unsupported data reference fault";
    /// A floating-point exception before the operation.
    FloatingPointFault = 0x5c00, "floating-point fault";
    /// A floating-point exception after the operation.
    FloatingPointTrap = 0x5d00, "floating-point trap";
    /// A branch to a less privileged level.
    LowerPrivilegeTransfer = 0x5e00, "lower-privilege transfer trap";
    /// A taken branch, while such traps are enabled.
    TakenBranch = 0x5f00, "taken branch trap";
    /// A completed instruction, while single stepping.
    SingleStep = 0x6000, "single step trap";
    /// A virtualisation intercept.
    Virtualization = 0x6100, "virtualization fault";
}

impl FaultKind {
    /// Whether IFA and ITIR describe its reference.
    pub fn has_address(self) -> bool {
        !self.is_trap()
            && !matches!(
                self,
                FaultKind::Break
                    | FaultKind::ExternalInterrupt
                    | FaultKind::DisabledFloatingPoint
                    | FaultKind::Speculation
                    | FaultKind::FloatingPointFault
                    | FaultKind::DataNestedTlb
            )
    }

    /// Whether a translation was missing, which the walker may have looked for.
    pub fn is_translation_missing(self) -> bool {
        matches!(
            self,
            FaultKind::VhptTranslation
                | FaultKind::InstructionTlb
                | FaultKind::DataTlb
                | FaultKind::AlternateInstructionTlb
                | FaultKind::AlternateDataTlb
                | FaultKind::DataNestedTlb
        )
    }

    /// Whether it is taken after the instruction completed, rather than instead of it.
    pub fn is_trap(self) -> bool {
        matches!(
            self,
            FaultKind::FloatingPointTrap
                | FaultKind::LowerPrivilegeTransfer
                | FaultKind::TakenBranch
                | FaultKind::SingleStep
        )
    }
}

/// An interruption, with what the handler will find in the interruption registers.
///
/// The slot is not part of it: the engine knows where the instruction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Which one.
    pub kind: FaultKind,
    /// ISR without the slot field.
    pub isr: u64,
    /// IFA: the faulting data address; zero where the kind has none.
    pub address: VirtualAddress,
    /// IIM: the immediate of `break`, `chk` and `fchkf`; zero elsewhere.
    pub immediate: u64,
}

impl Fault {
    /// A fault with the given ISR bits and no address.
    pub fn new(kind: FaultKind, isr: u64) -> Fault {
        Fault {
            kind,
            isr,
            address: VirtualAddress(0),
            immediate: 0,
        }
    }

    /// A fault of a data or instruction reference.
    pub fn reference(kind: FaultKind, access: Access, address: VirtualAddress) -> Fault {
        Fault {
            kind,
            isr: access.isr(),
            address,
            immediate: 0,
        }
    }

    /// The illegal operation fault.
    pub fn illegal_operation() -> Fault {
        Fault::new(
            FaultKind::GeneralException,
            isr::general_exception::ILLEGAL_OPERATION,
        )
    }

    /// The privileged operation fault.
    pub fn privileged_operation() -> Fault {
        Fault::new(
            FaultKind::GeneralException,
            isr::general_exception::PRIVILEGED_OPERATION,
        )
    }

    /// The privileged register fault.
    pub fn privileged_register() -> Fault {
        Fault::new(
            FaultKind::GeneralException,
            isr::general_exception::PRIVILEGED_REGISTER,
        )
    }

    /// The reserved register/field fault.
    pub fn reserved_register_field() -> Fault {
        Fault::new(
            FaultKind::GeneralException,
            isr::general_exception::RESERVED_REGISTER_FIELD,
        )
    }

    /// The register NaT consumption fault of a non-speculative operation.
    pub fn register_nat_consumption(access: u64) -> Fault {
        Fault::new(FaultKind::NatConsumption, access | NAT_CONSUMPTION_REGISTER)
    }
}

/// ISR.code of a register NaT consumption fault (bits 5 to 4 equal 1).
const NAT_CONSUMPTION_REGISTER: u64 = 0x10;

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match (self.kind, self.isr & isr::CODE & 0xf0) {
            (FaultKind::GeneralException, isr::general_exception::ILLEGAL_OPERATION) => {
                "illegal operation fault"
            }
            (FaultKind::GeneralException, isr::general_exception::PRIVILEGED_OPERATION) => {
                "privileged operation fault"
            }
            (FaultKind::GeneralException, isr::general_exception::PRIVILEGED_REGISTER) => {
                "privileged register fault"
            }
            (FaultKind::GeneralException, isr::general_exception::RESERVED_REGISTER_FIELD) => {
                "reserved register/field fault"
            }
            (kind, _) => kind.name(),
        })
    }
}
