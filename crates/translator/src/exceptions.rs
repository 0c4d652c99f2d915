//! Exceptions of the host's floating-point unit, by which emitted code learns that an operation was not a usual one
//! without looking at its operands and its result.
//!
//! While units run, all exceptions but the one for inexact results are unmasked: an operation on a signalling NaN,
//! which stands for [no double at hand](crate::emitter::NO_DOUBLE), one whose result is no normal value, no zero and no
//! infinity of infinities, and an invalid one stop the host with SIGFPE. The process' handler calls
//! [`mask_exceptions`], which notes the exception where units look for it and masks all of them until the run ends. So
//! the operation is executed once more, delivers what IEEE 754 says, and the look behind it leaves the unit. A run is
//! stopped once at most, whoever raises the exception: what does not look loses nothing but time.
//!
//! A double that is loaded raises one where it is denormal. It stands in its register as a double then, which is looked
//! for before anything computes with it, and [`enter`] makes an image of it where a run ends.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use sidestep_ia64::Processor;

use crate::chain::{self, Enter, Word};

/// Whether the process' handler calls [`mask_exceptions`] while programs run.
static ARE_CAUGHT: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The word in which this thread's units look for exceptions; null while they raise none.
    static WORD: Cell<*mut u64> = const { Cell::new(ptr::null_mut()) };
    /// Whether this thread's units may raise exceptions.
    static ARE_PERMITTED: Cell<bool> = const { Cell::new(true) };
}

/// Has the units of programs raise exceptions from now on, in the whole process, if the host can. The process has a
/// handler of SIGFPE already, and will have it whenever a program runs: it calls [`mask_exceptions`].
pub fn catch_exceptions() {
    ARE_CAUGHT.store(cfg!(target_arch = "x86_64"), Ordering::Relaxed);
}

/// Says whether this thread's units may raise exceptions: not where it blocks SIGFPE. They may unless it is said.
pub fn permit_exceptions(are_permitted: bool) {
    ARE_PERMITTED.set(are_permitted);
}

/// Whether a processor's units raise exceptions that are caught: a program's.
fn are_caught_for(processor: &Processor) -> bool {
    ARE_CAUGHT.load(Ordering::Relaxed) && processor.mmu().is_none()
}

/// Whether units that are made for a processor in this thread are to raise exceptions.
pub fn are_raised_for(processor: &Processor) -> bool {
    are_caught_for(processor) && ARE_PERMITTED.get()
}

/// Masks the exceptions in MXCSR of a thread for which the host has raised SIGFPE, which the thread goes on with, and
/// answers whether its units have raised one. A signal handler may call it.
pub fn mask_exceptions(controls: &mut u32) -> bool {
    let word = WORD.get();
    if word.is_null() {
        return false;
    }
    *controls |= control::MASKED;
    // SAFETY: the word is the processor's that the thread executes, which lives as long as units run. Emitted code
    // alone uses it meanwhile, and reads it each time.
    unsafe { word.write_volatile(1) };
    true
}

/// Enters a unit, which may raise exceptions if they are caught. Where this thread may raise none, units find that one
/// was raised.
///
/// # Safety
/// As for what is called.
#[inline(always)]
pub unsafe fn enter(enter: Enter, processor: &mut Processor, code: *const u8) -> i64 {
    if !are_caught_for(processor) {
        // SAFETY: as the caller says.
        return unsafe { enter(processor, code) };
    }
    let answer = match ARE_PERMITTED.get() {
        true => {
            let processor = ptr::from_mut(processor);
            WORD.set(processor.wrapping_byte_add(Word::Exception.offset()).cast());
            // SAFETY: as the caller says.
            let answer = unsafe { control::enter(enter, processor, code) };
            WORD.set(ptr::null_mut());
            answer
        }
        false => {
            chain::note_raised(processor);
            // SAFETY: as the caller says.
            unsafe { enter(processor, code) }
        }
    };
    if chain::has_raised(processor) {
        processor.settle_denormals();
    }
    answer
}

#[cfg(target_arch = "x86_64")]
mod control {
    use std::arch::asm;

    use sidestep_ia64::Processor;

    use crate::chain::Enter;

    /// MXCSR with all exceptions masked, rounding to nearest: what a process begins with, and Rust expects.
    pub const MASKED: u32 = 0x3f << MASKS;
    /// Where it has the masks, in the order of the flags: invalid, denormal, division by zero, overflow, underflow,
    /// inexact.
    const MASKS: u32 = 7;

    static DEFAULT: u32 = MASKED;
    static RAISING: u32 = 1 << (MASKS + 5);

    /// Enters a unit with exceptions unmasked.
    ///
    /// # Safety
    /// As for what is called.
    pub unsafe fn enter(enter: Enter, processor: *mut Processor, code: *const u8) -> i64 {
        let answer: i64;
        // SAFETY: as the caller says of the call. The controls are again what they were. Meanwhile functions of ours
        // run that the unit calls: an exception that they raise is masked and the instruction executed once more, so
        // they compute what they always do.
        unsafe {
            asm!(
                "ldmxcsr [rip + {raising}]",
                "call {enter}",
                "ldmxcsr [rip + {default}]",
                raising = sym RAISING,
                default = sym DEFAULT,
                enter = in(reg) enter,
                in("rdi") processor,
                in("rsi") code,
                lateout("rax") answer,
                clobber_abi("C"),
            );
        }
        answer
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod control {
    use sidestep_ia64::Processor;

    use crate::chain::Enter;

    pub const MASKED: u32 = 0;

    /// Enters a unit.
    ///
    /// # Safety
    /// As for what is called.
    pub unsafe fn enter(enter: Enter, processor: *mut Processor, code: *const u8) -> i64 {
        // SAFETY: as the caller says.
        unsafe { enter(processor, code) }
    }
}
