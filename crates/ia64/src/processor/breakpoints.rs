//! Instruction and data breakpoint registers (manual volume 2, section 7.1).
//!
//! A pair of registers names addresses by value and mask, and the privilege levels and kinds of access for which they
//! matter. While PSR.db is set the software TLBs stay empty, so that every data reference comes by here.
//!
//! A data reference matches if one of its bytes does. That lets a debugger watch a small object in a large access.

use crate::fault::{Access, Fault, FaultKind};
use crate::processor::{Processor, Raised};
use crate::registers::status::psr;

/// One pair of breakpoint registers.
#[derive(Clone, Copy)]
struct Breakpoint {
    address: u64,
    controls: u64,
}

impl Breakpoint {
    /// Loads (data) or execution (instructions) match.
    const READ: u64 = 1 << 63;
    /// Stores match.
    const WRITE: u64 = 1 << 62;
    /// Position of the four bits that enable a privilege level each.
    const LEVELS_SHIFT: u32 = 56;
    /// Address bits that are always compared.
    const ALWAYS: u64 = 0xff << 56;

    fn pairs(registers: &[u64; 8]) -> impl Iterator<Item = Breakpoint> {
        let (pairs, _) = registers.as_chunks::<2>();
        pairs
            .iter()
            .map(|&[address, controls]| Breakpoint { address, controls })
    }

    /// Whether one of the kinds of access `kinds` (READ, WRITE) matters at privilege level `level`.
    fn is_enabled(self, kinds: u64, level: u8) -> bool {
        self.controls & kinds != 0 && self.controls >> Self::LEVELS_SHIFT >> level & 1 != 0
    }

    /// Whether `address` matches, apart from its bits `ignored`.
    fn matches(self, address: u64, ignored: u64) -> bool {
        let compared = self.controls & !Self::ALWAYS | Self::ALWAYS;
        (address ^ self.address) & compared & !ignored == 0
    }
}

impl Processor {
    /// Whether an instruction breakpoint register covers a bundle at the current privilege level.
    pub(crate) fn is_instruction_breakpoint(&self, ip: u64) -> bool {
        let level = self.privilege_level();
        Breakpoint::pairs(&self.system.instruction_breakpoint)
            .any(|breakpoint| breakpoint.is_enabled(Breakpoint::READ, level) && breakpoint.matches(ip, 15))
    }

    /// Raises the data debug fault of a reference to `size` bytes, if PSR.db and a data breakpoint register ask for it.
    #[inline(always)]
    pub(crate) fn check_data_breakpoints(
        &mut self,
        address: u64,
        size: u64,
        access: Access,
    ) -> Result<(), Raised> {
        if self.status & psr::DB == 0 {
            return Ok(());
        }
        self.compare_data_breakpoints(address, size, access)
    }

    #[cold]
    fn compare_data_breakpoints(&mut self, address: u64, size: u64, access: Access) -> Result<(), Raised> {
        if self.status & psr::DD != 0 {
            if access.is_register_stack() {
                // The bit holds for one reference of the engine, or for one instruction.
                self.status &= !psr::DD;
            }
            return Ok(());
        }
        if self.is_data_breakpoint(address, size, access) {
            return Err(self.raise(Fault::reference(FaultKind::Debug, access, address)));
        }
        Ok(())
    }

    /// Whether a data breakpoint register covers a reference to `size` bytes.
    pub(crate) fn is_data_breakpoint(&self, address: u64, size: u64, access: Access) -> bool {
        let level = self.purpose(access).level;
        let kinds = if access.reads() { Breakpoint::READ } else { 0 }
            | if access.writes() { Breakpoint::WRITE } else { 0 };
        Breakpoint::pairs(&self.system.data_breakpoint)
            .filter(|breakpoint| breakpoint.is_enabled(kinds, level))
            .any(|breakpoint| (0..size).any(|offset| breakpoint.matches(address.wrapping_add(offset), 0)))
    }
}
