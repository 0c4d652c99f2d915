//! The frame a signal handler finds on the memory stack: `struct sigframe` and `struct sigcontext`.

use bytemuck::{Pod, Zeroable};

use crate::host::signals::{RawInformation, SignalSet};

/// The handler runs on the alternate stack.
pub const ON_STACK: u64 = 1;
/// The signal interrupted a system call: most scratch registers are not to be restored.
pub const IN_SYSTEM_CALL: u64 = 2;
/// f32 to f127 are in the context.
pub const HIGH_FLOATING_VALID: u64 = 4;

/// `stack_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct AlternateStack {
    /// Its lowest address.
    pub start: u64,
    /// `SS_*`.
    pub flags: i32,
    /// Not used.
    pub padding: u32,
    /// Its size in bytes.
    pub size: u64,
}

impl AlternateStack {
    /// No alternate stack.
    pub const NONE: AlternateStack = AlternateStack {
        start: 0,
        flags: libc::SS_DISABLE,
        padding: 0,
        size: 0,
    };

    /// Whether an address is on it.
    pub fn holds(&self, address: u64) -> bool {
        self.size != 0 && address.wrapping_sub(self.start) < self.size
    }
}

/// `struct sigcontext` of Linux/ia64.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct SignalContext {
    /// What of it is valid.
    pub flags: u64,
    /// NaT bits of r1 to r31.
    pub nats: u64,
    /// The alternate stack in force.
    pub stack: AlternateStack,
    /// Bundle address plus slot.
    pub instruction_pointer: u64,
    /// The interrupted frame marker.
    pub frame_marker: u64,
    /// The user mask.
    pub user_mask: u64,
    /// ar.rsc.
    pub register_stack_configuration: u64,
    /// ar.bsp after `cover`: above the interrupted frame.
    pub backing_store_pointer: u64,
    /// ar.rnat at that place.
    pub nat_collection: u64,
    /// ar.ccv.
    pub compare_value: u64,
    /// ar.unat.
    pub user_nats: u64,
    /// ar.fpsr.
    pub floating_status: u64,
    /// ar.pfs.
    pub previous_function_state: u64,
    /// ar.lc.
    pub loop_count: u64,
    /// The predicates, without rotation.
    pub predicates: u64,
    /// b0 to b7.
    pub branch: [u64; 8],
    /// r0 to r31.
    pub general: [u64; 32],
    /// The floating-point registers begin on a 16-byte boundary.
    pub padding: u64,
    /// f0 to f127 as spill images.
    pub floating: [[u64; 2]; 128],
    /// The base of the handler's own backing store; zero if it uses the interrupted one.
    pub backing_store_base: u64,
    /// Bytes of the interrupted context's registers on that backing store, shifted left by 16.
    pub load_distance: u64,
    /// ar.csd.
    pub compare_store_data: u64,
    /// ar.ssd.
    pub store_data: u64,
    /// Not used.
    pub reserved: [u64; 12],
    /// The signal mask to go back to.
    pub mask: SignalSet,
    /// To a multiple of 16 bytes.
    pub padding_end: u64,
}

/// `struct sigframe`; 16 bytes of scratch lie below it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct SignalFrame {
    /// The handler's first argument: the signal.
    pub signal: u64,
    /// The second: where `information` is.
    pub information_address: u64,
    /// The third: where `context` is.
    pub context_address: u64,
    /// The address of the handler's function descriptor.
    pub handler: u64,
    /// What the signal is about.
    pub information: RawInformation,
    /// The interrupted context.
    pub context: SignalContext,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// The offsets that the kernel's headers give for ia64.
    #[test]
    fn the_layout_is_that_of_linux_ia64() {
        assert_eq!(offset_of!(SignalContext, instruction_pointer), 40);
        assert_eq!(offset_of!(SignalContext, backing_store_pointer), 72);
        assert_eq!(offset_of!(SignalContext, predicates), 128);
        assert_eq!(offset_of!(SignalContext, branch), 136);
        assert_eq!(offset_of!(SignalContext, general), 200);
        assert_eq!(offset_of!(SignalContext, floating), 464);
        assert_eq!(offset_of!(SignalContext, backing_store_base), 2512);
        assert_eq!(offset_of!(SignalContext, compare_store_data), 2528);
        assert_eq!(offset_of!(SignalContext, mask), 2640);
        assert_eq!(size_of::<SignalContext>(), 2656);
        assert_eq!(offset_of!(SignalFrame, information), 32);
        assert_eq!(offset_of!(SignalFrame, context), 160);
        assert_eq!(size_of::<SignalFrame>(), 2816);
    }
}
