//! Takes `stat` and `read` of a program that knows nothing of it to a sidecore:
//!
//! ```text
//! LD_PRELOAD=target/release/examples/libpreload.so PROGRAM...
//! ```
//!
//! The sidecore is a thread of the program, started with the first call: it has the program's descriptors and working
//! folder. Each thread of the program gets a line of its own; one that gets none, as the 128th, makes its calls itself.
//! A child of fork has no sidecore, and makes its calls itself. `SIDECALL_CORE` says which core serves,
//! `SIDECALL_LOOKS` how often it looks in vain before it sleeps, and with `SIDECALL_TALLY` set a line at the end says
//! how many calls it served.
//!
//! Limits: a program that gives one of its threads other descriptors, another folder or other rights than the rest must
//! be left alone, and so must one that counts its threads.

use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use sidestep_sidecall::caller::{Caller, OwnSidecore};
use sidestep_sidecall::system_calls::Operation;
use sidestep_sidecall::table::Table;

/// Looks in vain before the sidecore sleeps: some hundred microseconds.
const LOOKS: u64 = 100_000;

static SIDECORE: OnceLock<Option<OwnSidecore>> = OnceLock::new();
static IS_CHILD: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread is in a call already, as while it starts the sidecore.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
    static CALLER: RefCell<Option<Caller<'static>>> = const { RefCell::new(None) };
}

fn setting<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

extern "C" fn in_child() {
    IS_CHILD.store(true, Ordering::Relaxed);
}

extern "C" fn at_exit() {
    if let Some(Some(sidecore)) = SIDECORE.get()
        && !IS_CHILD.load(Ordering::Relaxed)
    {
        let tally = sidecore.sidecore().tally();
        eprintln!(
            "sidecalls: {} served, {} of them refused",
            tally.served, tally.refused
        );
    }
}

fn start() -> Option<OwnSidecore> {
    // SAFETY: both functions may be called at any time, and what they register is there until the program ends.
    unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
        if std::env::var_os("SIDECALL_TALLY").is_some() {
            libc::atexit(at_exit);
        }
    }
    let looks = setting("SIDECALL_LOOKS").unwrap_or(LOOKS);
    OwnSidecore::start(setting("SIDECALL_CORE"), Table::default(), looks).ok()
}

/// Hands a call over, if this thread has a line.
fn hand_over<T>(call: impl FnOnce(&mut Caller<'static>) -> T) -> Option<T> {
    if IS_CHILD.load(Ordering::Relaxed) || IS_INSIDE.try_with(|inside| inside.replace(true)).unwrap_or(true) {
        return None;
    }
    let result = CALLER.try_with(|caller| {
        let mut caller = caller.try_borrow_mut().ok()?;
        if caller.is_none() {
            let sidecore = SIDECORE.get_or_init(start).as_ref()?;
            *caller = sidecore.caller().ok();
        }
        caller.as_mut().map(call)
    });
    // The thread is not at its end, or it would not have come here.
    let _ = IS_INSIDE.try_with(|inside| inside.set(false));
    result.ok().flatten()
}

fn answer(result: std::io::Result<isize>) -> isize {
    result.unwrap_or_else(|error| {
        // SAFETY: the address of this thread's error number.
        unsafe { *libc::__errno_location() = error.raw_os_error().unwrap_or(libc::EIO) };
        -1
    })
}

/// Reads from a file.
///
/// # Safety
/// As read(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(file: c_int, buffer: *mut c_void, length: usize) -> isize {
    let bytes = (buffer.cast(), length);
    // SAFETY: as the caller says.
    let read = hand_over(|caller| unsafe { caller.transfer(Operation::Read, file, bytes, None) });
    match read {
        Some(read) => answer(read.map(|count| count as isize)),
        // SAFETY: as the caller says.
        None => unsafe { libc::syscall(libc::SYS_read, file, buffer, length) as isize },
    }
}

/// What is known of a file.
///
/// # Safety
/// As stat(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stat(path: *const c_char, to: *mut libc::stat) -> c_int {
    // SAFETY: as the caller says.
    match hand_over(|caller| unsafe { caller.stat_to(path, to) }) {
        Some(done) => answer(done.map(|()| 0)) as c_int,
        // SAFETY: as the caller says.
        None => unsafe { libc::syscall(libc::SYS_newfstatat, libc::AT_FDCWD, path, to, 0) as c_int },
    }
}

/// The same, as programs call it that were built for large files.
///
/// # Safety
/// As stat(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stat64(path: *const c_char, to: *mut libc::stat) -> c_int {
    // SAFETY: as the caller says; both structures are one where words have 64 bits.
    unsafe { stat(path, to) }
}
