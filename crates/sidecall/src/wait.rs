//! Waiting for a line to change: looks, then looks with pauses.

/// Looks without a pause between them: what comes at once is seen at once.
pub(crate) const EAGER_LOOKS: u64 = 1 << 12;

/// Time-stamp ticks that a processor may rest at a line before it looks again.
#[cfg(target_arch = "x86_64")]
const REST_TICKS: u64 = 10_000;

/// How a processor rests between looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// PAUSE.
    Pause,
    /// UMONITOR and UMWAIT, until the line is written to.
    #[cfg(target_arch = "x86_64")]
    Monitor,
}

impl Rest {
    /// The best that this processor has.
    pub(crate) fn of_this_processor() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::arch::x86_64::__cpuid(0).eax >= 7 {
            // Intel's manual, volume 2, CPUID: leaf 7, ECX bit 5, WAITPKG.
            let has_monitor = std::arch::x86_64::__cpuid_count(7, 0).ecx >> 5 & 1 != 0;
            if has_monitor {
                return Self::Monitor;
            }
        }
        Self::Pause
    }

    /// Rests, until `address` no longer holds `value` if the processor can tell.
    #[inline]
    pub(crate) fn rest(self, address: *const u64, value: u64) {
        match self {
            Self::Pause => std::hint::spin_loop(),
            #[cfg(target_arch = "x86_64")]
            Self::Monitor => monitor(address, value),
        }
    }
}

/// The processor watches the line; a look after that says whether it changed before.
#[cfg(target_arch = "x86_64")]
fn monitor(address: *const u64, value: u64) {
    use std::arch::asm;
    // SAFETY: only processors with WAITPKG come here. The address is that of a word of a line, which lives longer than
    // this call; a load of it is as good as an atomic one on x86-64. The registers are named.
    unsafe {
        asm!(
            "umonitor {address}",
            "cmp [{address}], {value}",
            "jne 2f",
            "rdtsc",
            "add eax, {ticks:e}",
            "adc edx, 0",
            "umwait {state:e}",
            "2:",
            address = in(reg) address,
            value = in(reg) value,
            ticks = in(reg) REST_TICKS,
            // The lighter state, which is left sooner.
            state = in(reg) 1_u32,
            out("eax") _,
            out("edx") _,
            options(nostack, readonly),
        );
    }
}
