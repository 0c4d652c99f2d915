//! The call gate: the few instructions in guest memory behind every entry point of the firmware.
//!
//! An entry point is a stub of four bundles. It puts the number of its [`Entry`] into r15, where hypercalls have
//! their function, and executes the hypercall `break`; the host does the work. The stub returns with `br.cond b0`,
//! as the static calling convention of PAL wants it, or, where the host resumes it one bundle later, with `br.ret
//! b0`, as all stacked conventions do. It works at any address, so it may be called in physical and in virtual mode.
//!
//! The stub of [`Entry::Rendezvous`] is where the other processors begin: it accepts an interrupt, tells the host
//! which, and begins again.

use sidestep_ia64::encoding::{Bundle, Template};

use crate::machine::hypercall::IMMEDIATE;

/// Bytes of a stub.
pub const STUB_BYTES: u64 = 64;
/// How far behind the `break` a stub returns by `br.ret`.
pub const RETURN_FROM_STACKED: u64 = 16;
/// The hypercall function of the first entry.
const FIRST_FUNCTION: u64 = 0x100;

/// The entry points of the firmware, in the order of their stubs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// PAL procedures, by either calling convention.
    Pal,
    /// SAL procedures.
    Sal,
    /// Where processors wait to be started.
    Rendezvous,
    /// Boot services: none is there once a kernel runs.
    BootService,
    /// A runtime service of EFI, by its place in the table.
    RuntimeService(u8),
}

/// How many runtime services have entries: those of EFI 1.10.
pub const RUNTIME_SERVICES: u8 = 11;

impl Entry {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Entry> {
        [Entry::Pal, Entry::Sal, Entry::Rendezvous, Entry::BootService]
            .into_iter()
            .chain((0..RUNTIME_SERVICES).map(Entry::RuntimeService))
    }

    fn number(self) -> u64 {
        match self {
            Entry::Pal => 0,
            Entry::Sal => 1,
            Entry::Rendezvous => 2,
            Entry::BootService => 3,
            Entry::RuntimeService(service) => 4 + u64::from(service),
        }
    }

    /// The hypercall function of the entry.
    pub fn function(self) -> u64 {
        FIRST_FUNCTION + self.number()
    }

    /// The entry with a hypercall function.
    pub fn of_function(function: u64) -> Option<Entry> {
        Entry::all().find(|entry| entry.function() == function)
    }

    /// Where its stub is from the first stub.
    pub fn offset(self) -> u64 {
        self.number() * STUB_BYTES
    }
}

/// Instructions, each with no qualifying predicate (manual volume 3, chapter 4).
mod instruction {
    pub const NOP_M: u64 = 1 << 27;
    pub const NOP_I: u64 = 1 << 27;
    /// `br.cond.sptk.few b0` (B4).
    pub const BRANCH_B0: u64 = 0x20 << 27;
    /// `br.ret.sptk.few b0` (B4).
    pub const RETURN_B0: u64 = 0x21 << 27 | 4 << 6;
    /// `mov r8=cr.ivr` (M33).
    pub const ACCEPT_INTERRUPT: u64 = 1 << 37 | 0x24 << 27 | 65 << 20 | 8 << 6;
    /// `mov cr.eoi=r0` (M32).
    pub const END_INTERRUPT: u64 = 1 << 37 | 0x2c << 27 | 67 << 20;

    /// `addl r15=value,r0` (A5), for values below 2^16.
    pub const fn set_r15(value: u64) -> u64 {
        9 << 37 | (value >> 7 & 0x1ff) << 27 | (value & 0x7f) << 13 | 15 << 6
    }

    /// `break.m immediate` (M37).
    pub const fn break_m(immediate: u64) -> u64 {
        (immediate & 0xf_ffff) << 6
    }
}

/// Templates with a stop at their end.
const MMI: Template = Template::new(0x09);
const MIB: Template = Template::new(0x11);

/// The bytes of all stubs.
pub fn stubs() -> Vec<u8> {
    Entry::all().flat_map(stub).collect()
}

/// The bytes of the stub of an entry.
pub fn stub(entry: Entry) -> Vec<u8> {
    use instruction::*;
    let set_function = set_r15(entry.function());
    let call = Bundle::new(MIB, [break_m(IMMEDIATE), NOP_I, BRANCH_B0]);
    let stacked = Bundle::new(MIB, [NOP_M, NOP_I, RETURN_B0]);
    let filler = Bundle::new(MMI, [NOP_M, NOP_M, NOP_I]);
    let bundles = if entry == Entry::Rendezvous {
        [
            Bundle::new(MMI, [set_function, ACCEPT_INTERRUPT, NOP_I]),
            Bundle::new(MMI, [END_INTERRUPT, NOP_M, NOP_I]),
            call,
            filler,
        ]
    } else {
        [
            Bundle::new(MMI, [set_function, NOP_M, NOP_I]),
            call,
            stacked,
            filler,
        ]
    };
    bundles.iter().flat_map(|bundle| bundle.to_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_its_function_and_its_stub() {
        let stubs = stubs();
        assert_eq!(stubs.len() as u64, Entry::all().count() as u64 * STUB_BYTES);
        for entry in Entry::all() {
            assert_eq!(Entry::of_function(entry.function()), Some(entry));
        }
        assert_eq!(Entry::of_function(FIRST_FUNCTION - 1), None);
        assert_eq!(Entry::of_function(u64::MAX), None);
    }
}
