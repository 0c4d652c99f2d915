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
    /// A runtime service of EFI, by its place in the table.
    RuntimeService(u8),
}

/// How many runtime services have entries: those of EFI 1.10.
pub const RUNTIME_SERVICES: u8 = 11;

impl Entry {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Entry> {
        [Entry::Pal, Entry::Sal, Entry::Rendezvous]
            .into_iter()
            .chain((0..RUNTIME_SERVICES).map(Entry::RuntimeService))
    }

    /// Numbers stay: saved machines have stubs with them. Nothing has number 3.
    fn number(self) -> u64 {
        match self {
            Entry::Pal => 0,
            Entry::Sal => 1,
            Entry::Rendezvous => 2,
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
pub(super) mod instruction {
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

    /// `alloc register=ar.pfs,size,locals,0` (M34).
    pub const fn alloc(register: u64, size: u64, locals: u64) -> u64 {
        1 << 37 | 6 << 33 | locals << 20 | size << 13 | register << 6
    }

    /// `mov to=from` (A4), general registers.
    pub const fn copy(to: u64, from: u64) -> u64 {
        8 << 37 | 2 << 34 | from << 20 | to << 6
    }

    /// `mov register=b0` (I22).
    pub const fn from_b0(register: u64) -> u64 {
        0x31 << 27 | register << 6
    }

    /// `mov b0=register` (I21), with no hint.
    pub const fn to_b0(register: u64) -> u64 {
        7 << 33 | 1 << 20 | register << 13
    }

    /// `mov.i ar.pfs=register` (I26).
    pub const fn to_pfs(register: u64) -> u64 {
        0x2a << 27 | 64 << 20 | register << 13
    }

    /// `br.call.sptk.few b0=b6` (B5).
    pub const CALL_B6: u64 = 1 << 37 | 6 << 13;

    /// `br.cond.sptk.few` to so many bundles from here (B1).
    pub const fn branch(bundles: i64) -> u64 {
        let sign = if bundles < 0 { 1 << 36 } else { 0 };
        4 << 37 | sign | (bundles as u64 & 0xf_ffff) << 13
    }

    /// `break.m immediate` (M37).
    pub const fn break_m(immediate: u64) -> u64 {
        (immediate & 0xf_ffff) << 6
    }
}

/// Templates with a stop at their end.
pub(super) const MII: Template = Template::new(0x01);
/// As [`MII`].
pub(super) const MMI: Template = Template::new(0x09);
/// As [`MII`].
pub(super) const MIB: Template = Template::new(0x11);

/// The bytes of all stubs, each where its [`offset`](Entry::offset) says.
pub fn stubs() -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in Entry::all() {
        bytes.resize(entry.offset() as usize, 0);
        bytes.extend(stub(entry));
    }
    bytes
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
        for entry in Entry::all() {
            assert_eq!(
                stubs[entry.offset() as usize..][..STUB_BYTES as usize],
                stub(entry)
            );
            assert_eq!(Entry::of_function(entry.function()), Some(entry));
        }
        assert_eq!(Entry::of_function(FIRST_FUNCTION - 1), None);
        assert_eq!(Entry::of_function(FIRST_FUNCTION + 3), None);
        assert_eq!(Entry::of_function(u64::MAX), None);
    }
}
