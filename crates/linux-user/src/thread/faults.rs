//! Which signal a fault becomes, with the `siginfo` that Linux/ia64 gives.
//!
//! The cases follow the kernel's trap and page fault handlers: `si_imm` holds a break immediate or a vector
//! number, `si_isr` the interruption status where the fault has one.

use sidestep_ia64::fault::isr;
use sidestep_ia64::{Fault, FaultKind};

use crate::host::signals::RawInformation;

/// `si_flags`: `si_isr` is valid.
const ISR_VALID: i32 = 1;

/// Codes that only IA-64 has (`__ILL_*`, `__FPE_*`, `__SEGV_*` of its kernel).
mod code {
    pub const ILL_ILLOPC: i32 = 1;
    pub const ILL_ILLOPN: i32 = 2;
    pub const ILL_BADIADDR: i32 = 9;
    pub const ILL_BREAK: i32 = 10;
    pub const ILL_BNDMOD: i32 = 11;
    pub const FPE_INTDIV: i32 = 1;
    pub const FPE_INTOVF: i32 = 2;
    pub const FPE_FLTDIV: i32 = 3;
    pub const FPE_FLTOVF: i32 = 4;
    pub const FPE_FLTUND: i32 = 5;
    pub const FPE_FLTRES: i32 = 6;
    pub const FPE_FLTINV: i32 = 7;
    pub const FPE_FLTSUB: i32 = 8;
    pub const FPE_DECOVF: i32 = 9;
    pub const FPE_DECDIV: i32 = 10;
    pub const FPE_DECERR: i32 = 11;
    pub const FPE_INVASC: i32 = 12;
    pub const FPE_INVDEC: i32 = 13;
    pub const FPE_FLTUNK: i32 = 14;
    pub const SEGV_MAPERR: i32 = 1;
    pub const SEGV_ACCERR: i32 = 2;
    pub const SEGV_PSTKOVF: i32 = 4;
    pub const BUS_ADRALN: i32 = 1;
    pub const BUS_ADRERR: i32 = 2;
    pub const TRAP_BRKPT: i32 = 1;
    pub const TRAP_TRACE: i32 = 2;
    pub const TRAP_BRANCH: i32 = 3;
    pub const TRAP_HWBKPT: i32 = 4;
    pub const SI_KERNEL: i32 = 128;
}

/// Numbers of vectors, as `si_imm` shows them.
mod vector {
    pub const NAT_CONSUMPTION: u64 = 26;
    pub const UNSUPPORTED_REFERENCE: u64 = 31;
}

/// The signal of a fault and what its `siginfo` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultSignal {
    /// The signal.
    pub signal: i32,
    /// `si_code`.
    pub code: i32,
    /// `si_addr`.
    pub address: u64,
    /// `si_imm`.
    pub immediate: u64,
    /// `si_isr`, where it is valid.
    pub status: Option<u64>,
}

impl FaultSignal {
    fn new(signal: i32, code: i32, address: u64) -> FaultSignal {
        FaultSignal {
            signal,
            code,
            address,
            immediate: 0,
            status: None,
        }
    }

    fn with_status(self, status: u64) -> FaultSignal {
        FaultSignal {
            status: Some(status),
            ..self
        }
    }

    fn with_immediate(self, immediate: u64) -> FaultSignal {
        FaultSignal { immediate, ..self }
    }

    /// The `siginfo` as the guest sees it.
    pub fn information(&self) -> RawInformation {
        let mut information = RawInformation::new(self.signal, self.code);
        information.set_double(16, self.address);
        information.set_word(24, self.immediate as i32);
        if let Some(status) = self.status {
            information.set_word(28, ISR_VALID);
            information.set_double(32, status);
        }
        information
    }
}

/// What the memory knows about a page that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageState {
    /// Nothing is mapped.
    Unmapped,
    /// Something is mapped that does not allow the access.
    Mapped,
    /// A file is mapped that has no such page.
    BeyondFile,
    /// The page at address zero that holds NaTs.
    NatPage,
}

/// The signal of a fault at `place` (bundle address plus slot).
pub fn signal_of(fault: &Fault, place: u64, slot: u8, page: PageState) -> FaultSignal {
    let status = fault.isr | u64::from(slot) << isr::SLOT_SHIFT;
    let address = fault.address.0;
    match fault.kind {
        FaultKind::Break => break_signal(fault.immediate, place),
        FaultKind::GeneralException => general_exception(fault, place, status),
        FaultKind::NatConsumption if fault.isr & 0xf0 == 0x20 => {
            FaultSignal::new(libc::SIGSEGV, code::SEGV_ACCERR, address)
                .with_immediate(vector::NAT_CONSUMPTION)
                .with_status(status)
        }
        FaultKind::NatConsumption => FaultSignal::new(libc::SIGILL, code::ILL_ILLOPN, place)
            .with_immediate(vector::NAT_CONSUMPTION)
            .with_status(status),
        FaultKind::UnalignedReference => FaultSignal::new(libc::SIGBUS, code::BUS_ADRALN, address),
        FaultKind::UnsupportedReference => FaultSignal::new(libc::SIGILL, code::ILL_ILLOPN, place)
            .with_immediate(vector::UNSUPPORTED_REFERENCE)
            .with_status(status),
        FaultKind::FloatingPointFault => {
            FaultSignal::new(libc::SIGFPE, floating_fault_code(fault.isr), place).with_status(status)
        }
        FaultKind::FloatingPointTrap => {
            FaultSignal::new(libc::SIGFPE, floating_trap_code(fault.isr), place).with_status(status)
        }
        FaultKind::Debug => FaultSignal::new(libc::SIGTRAP, code::TRAP_HWBKPT, address).with_status(status),
        FaultKind::TakenBranch => FaultSignal::new(libc::SIGTRAP, code::TRAP_BRANCH, 0).with_status(status),
        FaultKind::SingleStep => FaultSignal::new(libc::SIGTRAP, code::TRAP_TRACE, 0).with_status(status),
        FaultKind::LowerPrivilegeTransfer => FaultSignal::new(libc::SIGILL, code::ILL_BADIADDR, place),
        FaultKind::PageNotPresent
        | FaultKind::InstructionAccessRights
        | FaultKind::DataAccessRights
        | FaultKind::KeyPermission => page_signal(address, status, page),
        // The rest is not raised for a program that runs without a kernel's page tables.
        _ => FaultSignal::new(libc::SIGILL, code::SI_KERNEL, 0),
    }
}

fn page_signal(address: u64, status: u64, page: PageState) -> FaultSignal {
    match page {
        PageState::Unmapped => {
            FaultSignal::new(libc::SIGSEGV, code::SEGV_MAPERR, address).with_status(status)
        }
        PageState::Mapped => FaultSignal::new(libc::SIGSEGV, code::SEGV_ACCERR, address).with_status(status),
        PageState::BeyondFile => {
            FaultSignal::new(libc::SIGBUS, code::BUS_ADRERR, address).with_status(status)
        }
        PageState::NatPage => {
            let signal = FaultSignal::new(libc::SIGSEGV, code::SEGV_ACCERR, address).with_status(status);
            let loads = status & isr::WRITE == 0;
            if loads {
                signal.with_immediate(vector::NAT_CONSUMPTION)
            } else {
                signal
            }
        }
    }
}

fn general_exception(fault: &Fault, place: u64, status: u64) -> FaultSignal {
    match fault.isr & isr::CODE & 0xf0 {
        isr::general_exception::ILLEGAL_OPERATION => FaultSignal::new(libc::SIGILL, code::ILL_ILLOPC, place),
        // An address that the processor does not implement is, to the kernel, a page that cannot be.
        isr::general_exception::RESERVED_REGISTER_FIELD if status & (isr::READ | isr::WRITE) != 0 => {
            FaultSignal::new(libc::SIGSEGV, code::SEGV_MAPERR, fault.address.0).with_status(status)
        }
        _ => FaultSignal::new(libc::SIGILL, code::SI_KERNEL, 0),
    }
}

fn floating_fault_code(status: u64) -> i32 {
    match () {
        () if status & 0x11 != 0 => code::FPE_FLTINV,
        () if status & 0x22 != 0 => code::FPE_FLTUND,
        () if status & 0x44 != 0 => code::FPE_FLTDIV,
        () => code::FPE_FLTUNK,
    }
}

fn floating_trap_code(status: u64) -> i32 {
    match () {
        () if status & 0x880 != 0 => code::FPE_FLTOVF,
        () if status & 0x1100 != 0 => code::FPE_FLTUND,
        () if status & 0x2200 != 0 => code::FPE_FLTRES,
        () => code::FPE_FLTUNK,
    }
}

fn break_signal(immediate: u64, place: u64) -> FaultSignal {
    let (signal, code) = match immediate {
        0 => (libc::SIGILL, code::ILL_ILLOPC),
        1 => (libc::SIGFPE, code::FPE_INTDIV),
        2 => (libc::SIGFPE, code::FPE_INTOVF),
        3 => (libc::SIGFPE, code::FPE_FLTSUB),
        4 => (libc::SIGSEGV, code::SEGV_MAPERR),
        5 => (libc::SIGSEGV, code::BUS_ADRALN),
        6 => (libc::SIGFPE, code::FPE_DECOVF),
        7 => (libc::SIGFPE, code::FPE_DECDIV),
        8 => (libc::SIGFPE, code::FPE_DECERR),
        9 => (libc::SIGFPE, code::FPE_INVASC),
        10 => (libc::SIGFPE, code::FPE_INVDEC),
        11 => (libc::SIGSEGV, code::SEGV_PSTKOVF),
        0x3f000..=0x3ffff => (libc::SIGILL, code::ILL_BNDMOD),
        0x80000.. => (libc::SIGTRAP, code::TRAP_BRKPT),
        _ => (libc::SIGILL, code::ILL_BREAK),
    };
    FaultSignal::new(signal, code, place).with_immediate(immediate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidestep_ia64::Access;

    const PLACE: u64 = 0x4000_0000_0000_1232;

    fn of(fault: Fault, page: PageState) -> FaultSignal {
        signal_of(&fault, PLACE, 2, page)
    }

    #[test]
    fn breaks_follow_the_software_conventions() {
        let of_break = |immediate| {
            of(
                Fault {
                    immediate,
                    ..Fault::new(FaultKind::Break, 0)
                },
                PageState::Unmapped,
            )
        };
        assert_eq!((of_break(0).signal, of_break(0).code), (libc::SIGILL, 1));
        assert_eq!(
            (of_break(1).signal, of_break(1).code, of_break(1).immediate),
            (libc::SIGFPE, 1, 1)
        );
        assert_eq!(
            (of_break(0x80001).signal, of_break(0x80001).code),
            (libc::SIGTRAP, 1)
        );
        assert_eq!(
            (of_break(0x3f123).signal, of_break(0x3f123).code),
            (libc::SIGILL, 11)
        );
        assert_eq!((of_break(0x100).signal, of_break(0x100).code), (libc::SIGILL, 10));
        assert_eq!(of_break(3).address, PLACE);
    }

    #[test]
    fn a_refused_page_gives_its_address_and_the_interruption_status() {
        let fault = Fault::reference(FaultKind::PageNotPresent, Access::Write, 0x1234_5678);
        let signal = of(fault, PageState::Unmapped);
        assert_eq!(
            (signal.signal, signal.code, signal.address),
            (libc::SIGSEGV, 1, 0x1234_5678)
        );
        assert_eq!(signal.status, Some(isr::WRITE | 2 << isr::SLOT_SHIFT));
        assert_eq!(of(fault, PageState::Mapped).code, 2);
        assert_eq!(
            (
                of(fault, PageState::BeyondFile).signal,
                of(fault, PageState::BeyondFile).code
            ),
            (libc::SIGBUS, 2)
        );
        let information = signal.information();
        assert_eq!(
            (information.signal(), information.code(), information.word(28)),
            (libc::SIGSEGV, 1, 1)
        );
    }

    #[test]
    fn floating_point_codes_come_from_the_status() {
        let fault = |code| {
            of(
                Fault::new(FaultKind::FloatingPointFault, code),
                PageState::Unmapped,
            )
            .code
        };
        assert_eq!((fault(1), fault(2), fault(4), fault(0)), (7, 5, 3, 14));
        let trap = |code| {
            of(
                Fault::new(FaultKind::FloatingPointTrap, code),
                PageState::Unmapped,
            )
            .code
        };
        assert_eq!((trap(0x800), trap(0x1000), trap(0x2000)), (4, 5, 6));
    }
}
