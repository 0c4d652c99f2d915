//! Translated code that learns by the host's exceptions of numbers that are not usual.

use std::ptr;
use std::sync::Once;

/// Has the code that is translated from now on raise exceptions, where the host can.
pub fn raise() {
    static RAISED: Once = Once::new();
    RAISED.call_once(|| {
        #[cfg(target_arch = "x86_64")]
        catch();
        sidestep_translator::catch_exceptions();
    });
}

#[cfg(target_arch = "x86_64")]
fn catch() {
    // SAFETY: an action is plain data, and the handler does what handlers may do.
    let done = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_exception as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
        libc::sigaction(libc::SIGFPE, &action, ptr::null_mut())
    };
    assert_eq!(done, 0);
}

#[cfg(target_arch = "x86_64")]
unsafe extern "C" fn on_exception(signal: i32, _: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    // SAFETY: the kernel passes a context with the floating-point registers.
    let controls = unsafe { &mut (*(*context).uc_mcontext.fpregs).mxcsr };
    if !sidestep_translator::mask_exceptions(controls) {
        // SAFETY: the instruction is repeated and ends the test.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}
