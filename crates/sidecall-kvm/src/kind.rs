//! Whether a guest's plain instructions run on the processor or are emulated, and whose KVM it is.

use std::arch::asm;
use std::fmt;
use std::path::Path;
use std::time::Instant;

use crate::guest::Way;
use crate::machine::{Guest, GuestError, Order};
use crate::operation::Operation;

/// Iterations of the first loop, few enough for a KVM that takes microseconds an instruction.
const FIRST_ITERATIONS: u64 = 10_000;
/// Iterations of the loop that is measured where the guest is fast.
const ITERATIONS: u64 = 2_000_000;
/// How many times slower than the host's the guest's loop may be and still count as run by the processor. Emulation
/// costs a thousand times, an interrupt or another program a part of one.
const SLOWDOWN_MAX: u64 = 10;
/// Measurements of each loop; the fastest counts, since nothing makes a loop faster than it is.
const TRIES: usize = 5;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kind {
    /// Picoseconds of an iteration of the guest's loop.
    pub guest_ps: u64,
    /// Picoseconds of an iteration of the same loop in the program.
    pub host_ps: u64,
    /// Picoseconds of a tick of the time-stamp counter.
    pub tick_ps: u64,
    /// The kernel's module that runs guests, of those that are known.
    pub module: Option<&'static str>,
    /// Whether this host is itself a virtual machine.
    pub is_nested: bool,
    /// The processor's instruction for a hypercall.
    pub hypercall: Way,
}

impl Kind {
    /// Measures `guest`.
    ///
    /// # Errors
    /// When the guest does not run.
    pub fn of(guest: &mut Guest) -> Result<Self, GuestError> {
        let tick_ps = tick_ps();
        let iterations = match guest_ps(guest, FIRST_ITERATIONS, tick_ps)? {
            // Emulation takes more than this; a loop that runs by itself a fraction of a nanosecond.
            0..100_000 => ITERATIONS,
            _ => FIRST_ITERATIONS,
        };
        let host = std::arch::x86_64::__cpuid(1);
        let vendor = std::arch::x86_64::__cpuid(0);
        Ok(Self {
            guest_ps: guest_ps(guest, iterations, tick_ps)?,
            host_ps: host_ps(),
            tick_ps,
            module: module(),
            is_nested: host.ecx >> 31 != 0,
            hypercall: match &vendor.ebx.to_le_bytes() {
                b"Auth" => Way::Vmmcall,
                _ => Way::Vmcall,
            },
        })
    }

    /// Whether the guest's instructions run on the processor: where not, times of the guest mean nothing.
    pub fn is_native(&self) -> bool {
        self.guest_ps <= self.host_ps.saturating_mul(SLOWDOWN_MAX)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kvm = match self.module {
            Some("kvm_pvm") => "kvm_pvm, guests by page tables alone",
            Some(module) => module,
            None => "of an unknown kind",
        };
        let host = match self.is_nested {
            true => "itself a virtual machine",
            false => "not a virtual machine",
        };
        let ns = |ps: u64| format!("{}.{:02}", ps / 1000, ps % 1000 / 10);
        let (guest, own) = (ns(self.guest_ps), ns(self.host_ps));
        let verdict = match self.is_native() {
            true => "the guest's instructions run on the processor",
            false => "the guest's instructions are emulated: its times mean nothing",
        };
        write!(
            f,
            "KVM: {kvm}; the host is {host}; a loop takes {guest} ns an iteration in the guest and {own} ns in the \
             program: {verdict}"
        )
    }
}

fn module() -> Option<&'static str> {
    // One of them runs guests at a time.
    ["kvm_pvm", "kvm_intel", "kvm_amd"]
        .into_iter()
        .find(|module| Path::new("/sys/module").join(module).exists())
}

/// Ticks in picoseconds.
pub fn picoseconds(ticks: u64, tick_ps: u64) -> u64 {
    u64::try_from(u128::from(ticks) * u128::from(tick_ps)).unwrap_or(u64::MAX)
}

fn guest_ps(guest: &mut Guest, iterations: u64, tick_ps: u64) -> Result<u64, GuestError> {
    let order = Order {
        frame: iterations,
        samples: TRIES,
        ..Order::one(Way::Count, Operation::Null)
    };
    let fastest = guest.run(order)?.ticks.into_iter().min().unwrap_or(u64::MAX);
    Ok(picoseconds(fastest, tick_ps) / iterations)
}

fn host_ps() -> u64 {
    let measure = |_| {
        let start = Instant::now();
        // SAFETY: the loop changes its own register and the flags, and ends.
        unsafe { asm!("2:", "dec {0}", "jnz 2b", inout(reg) ITERATIONS => _, options(nomem, nostack)) };
        start.elapsed().as_nanos() as u64 * 1000 / ITERATIONS
    };
    (0..TRIES).map(measure).min().unwrap_or(u64::MAX)
}

/// How long a tick of the time-stamp counter is, by the clock.
fn tick_ps() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and Linux lets programs use it.
    let ticks = || unsafe { std::arch::x86_64::_rdtsc() };
    let (start, first) = (Instant::now(), ticks());
    while start.elapsed().as_millis() < 20 {
        std::hint::spin_loop();
    }
    let (elapsed, passed) = (start.elapsed().as_nanos(), ticks().wrapping_sub(first));
    u64::try_from(elapsed * 1000 / u128::from(passed.max(1))).unwrap_or(u64::MAX)
}
