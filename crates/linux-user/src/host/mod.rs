//! The doors to the host kernel, and the only assembly of the crate.
//!
//! Four operations need more than a library offers:
//! - [`call`] passes a system call on as numbers, without a C library changing what it means.
//! - [`call_interruptible`] does the same for calls that may block, without the race between "is a signal
//!   pending?" and "block": the test and the `syscall` instruction form a short range of code, and the
//!   signal handler moves an instruction pointer inside that range to an exit. A signal that comes before the
//!   kernel is entered, or that made the kernel back up for a restart, is therefore never slept through; a call
//!   that the kernel finished is never repeated. At the `syscall` instruction itself the two cannot be told apart,
//!   and count as the latter: so calls that never sleep, which must not seem interrupted, go by [`call`].
//! - [`guarded_copy`] and [`guarded_compare_exchange`] touch guest memory that may vanish at any moment: a
//!   host fault inside them becomes an error, in the way of a kernel's exception table.
//! - [`touch`] does both: its access may fault, or sleep until another thread brings the page.
//!
//! [`signals`] holds the handler that does the fix-ups.

pub mod errno;
pub mod open;
pub mod signals;
pub mod standard;

use std::arch::global_asm;
use std::ffi::CString;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

pub use errno::Errno;
pub use open::{HOW_SIZE, How, Opening, has_openat2, open};

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("system calls are passed on to a Linux kernel on x86-64");

global_asm!(
    r#"
    .pushsection .text.sidestep_host, "ax", @progbits
    .hidden sidestep_call
    .globl sidestep_call
    // rdi: number, rsi: six arguments; returns the kernel's result.
sidestep_call:
    mov rax, rdi
    mov r11, rsi
    mov rdi, [r11]
    mov rsi, [r11 + 8]
    mov rdx, [r11 + 16]
    mov r10, [r11 + 24]
    mov r8, [r11 + 32]
    mov r9, [r11 + 40]
    syscall
    ret

    .hidden sidestep_interruptible
    .globl sidestep_interruptible
    .hidden sidestep_interruptible_begin
    .globl sidestep_interruptible_begin
    .hidden sidestep_interruptible_entry
    .globl sidestep_interruptible_entry
    .hidden sidestep_interruptible_end
    .globl sidestep_interruptible_end
    .hidden sidestep_interruptible_restart
    .globl sidestep_interruptible_restart
    .hidden sidestep_interruptible_before
    .globl sidestep_interruptible_before
    // rdi: the word that is not zero while a signal waits, rsi: number, rdx: six arguments.
sidestep_interruptible:
    push rbx
    mov rbx, rdi
    mov rax, rsi
    mov r11, rdx
    mov rdi, [r11]
    mov rsi, [r11 + 8]
    mov rdx, [r11 + 16]
    mov r10, [r11 + 24]
    mov r8, [r11 + 32]
    mov r9, [r11 + 40]
sidestep_interruptible_begin:
    cmp dword ptr [rbx], 0
    jne sidestep_interruptible_before
sidestep_interruptible_entry:
    syscall
sidestep_interruptible_end:
    pop rbx
    ret
sidestep_interruptible_restart:
    mov rax, -512
    pop rbx
    ret
sidestep_interruptible_before:
    mov rax, -513
    pop rbx
    ret

    .hidden sidestep_guarded_begin
    .globl sidestep_guarded_begin
    .hidden sidestep_guarded_end
    .globl sidestep_guarded_end
    .hidden sidestep_guarded_fault
    .globl sidestep_guarded_fault
    .hidden sidestep_guarded_copy
    .globl sidestep_guarded_copy
    // rdi: target, rsi: source, rdx: length; returns 0, or 1 after a fault.
    // A string instruction takes long to start; two words are what clocks give.
sidestep_guarded_copy:
    mov rcx, rdx
    cmp rdx, 16
    je 2f
sidestep_guarded_begin:
    rep movsb
    xor eax, eax
    ret
2:
    movups xmm0, [rsi]
    movups [rdi], xmm0
    xor eax, eax
    ret
    .hidden sidestep_guarded_compare_exchange
    .globl sidestep_guarded_compare_exchange
    // rdi: word, esi: expected, edx: new, rcx: where the old value goes; returns 0, or 1 after a fault.
sidestep_guarded_compare_exchange:
    mov eax, esi
    lock cmpxchg dword ptr [rdi], edx
    mov dword ptr [rcx], eax
    xor eax, eax
    ret
sidestep_guarded_end:
sidestep_guarded_fault:
    mov eax, 1
    ret

    .hidden sidestep_touch
    .globl sidestep_touch
    .hidden sidestep_touch_end
    .globl sidestep_touch_end
    .hidden sidestep_touch_fault
    .globl sidestep_touch_fault
    .hidden sidestep_touch_restart
    .globl sidestep_touch_restart
    // rdi: the word that is not zero while a signal waits, rsi: byte, edx: not zero to store; returns 0, 1 after a
    // fault, or -512. The store changes nothing, whoever else stores there meanwhile.
sidestep_touch:
    cmp dword ptr [rdi], 0
    jne sidestep_touch_restart
    test edx, edx
    jne 2f
    mov al, byte ptr [rsi]
    xor eax, eax
    ret
2:
    lock or byte ptr [rsi], 0
    xor eax, eax
    ret
sidestep_touch_end:
sidestep_touch_fault:
    mov rax, 1
    ret
sidestep_touch_restart:
    mov rax, -512
    ret

    .hidden sidestep_signal_return
    .globl sidestep_signal_return
sidestep_signal_return:
    mov eax, 15
    syscall
    .popsection
    "#
);

unsafe extern "C" {
    fn sidestep_call(number: i64, arguments: *const [u64; 6]) -> i64;
    fn sidestep_interruptible(pending: *const AtomicU32, number: i64, arguments: *const [u64; 6]) -> i64;
    fn sidestep_guarded_copy(target: *mut u8, source: *const u8, length: usize) -> i32;
    fn sidestep_guarded_compare_exchange(word: *mut u32, expected: u32, new: u32, old: *mut u32) -> i32;
    fn sidestep_touch(pending: *const AtomicU32, byte: *const u8, store: u32) -> i64;
    static sidestep_touch_end: u8;
    static sidestep_touch_fault: u8;
    static sidestep_touch_restart: u8;
    static sidestep_interruptible_begin: u8;
    static sidestep_interruptible_entry: u8;
    static sidestep_interruptible_end: u8;
    static sidestep_interruptible_restart: u8;
    static sidestep_interruptible_before: u8;
    static sidestep_guarded_begin: u8;
    static sidestep_guarded_end: u8;
    static sidestep_guarded_fault: u8;
    static sidestep_signal_return: u8;
}

/// What [`sidestep_interruptible`] returns when a signal made the kernel back up: its own number for "restart".
const RESTART: i64 = -512;
/// What it returns when a signal came first: the kernel's number for "restart whatever the handler asks".
const BEFORE: i64 = -513;

/// A system call that ended without a result because a signal has to be delivered first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// The kernel failed the call.
    Error(Errno),
    /// A signal came before the call, which has not begun.
    Before,
    /// A signal interrupted the call, which has done nothing.
    Restart,
}

fn result(raw: i64) -> Result<u64, Errno> {
    if (-4095..0).contains(&raw) {
        Err(Errno(-raw as i32))
    } else {
        Ok(raw as u64)
    }
}

/// Passes a system call on to the host kernel.
///
/// # Safety
/// The caller answers for what the call does to this process's memory.
pub unsafe fn call(number: i64, arguments: [u64; 6]) -> Result<u64, Errno> {
    // SAFETY: the routine only loads the six arguments; the caller answers for the rest.
    result(unsafe { sidestep_call(number, &arguments) })
}

/// Passes a system call that may block on to the host kernel, unless `pending` is or becomes non-zero first.
///
/// # Safety
/// As for [`call`]; `pending` must be the word that this thread's signal handler sets.
pub unsafe fn call_interruptible(
    pending: &AtomicU32,
    number: i64,
    arguments: [u64; 6],
) -> Result<u64, Interruption> {
    // SAFETY: as above.
    match unsafe { sidestep_interruptible(pending, number, &arguments) } {
        BEFORE => Err(Interruption::Before),
        RESTART => Err(Interruption::Restart),
        raw => result(raw).map_err(Interruption::Error),
    }
}

/// A host fault met while touching guest memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardedFault;

/// Copies bytes of which one side is guest memory.
///
/// # Safety
/// The side that is not guest memory must be valid for `length` bytes; the guest side must lie within the
/// guest's windows. [`signals::install_fault_handler`] must have run.
pub unsafe fn guarded_copy(target: *mut u8, source: *const u8, length: usize) -> Result<(), GuardedFault> {
    // SAFETY: a fault on the guest side ends in `sidestep_guarded_fault`; the other side is valid.
    match unsafe { sidestep_guarded_copy(target, source, length) } {
        0 => Ok(()),
        _ => Err(GuardedFault),
    }
}

/// Compares and exchanges a 32-bit word of guest memory; answers the value found.
///
/// # Safety
/// `word` must lie within the guest's windows. [`signals::install_fault_handler`] must have run.
pub unsafe fn guarded_compare_exchange(word: *mut u32, expected: u32, new: u32) -> Result<u32, GuardedFault> {
    let mut old = 0;
    // SAFETY: a fault on the word ends in `sidestep_guarded_fault`; `old` is valid.
    match unsafe { sidestep_guarded_compare_exchange(word, expected, new, &mut old) } {
        0 => Ok(old),
        _ => Err(GuardedFault),
    }
}

/// What came of touching a byte of guest memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// It is there.
    Present,
    /// The host refuses it.
    Fault,
    /// A signal waits; the byte may still be missing.
    Interrupted,
}

/// Loads a byte of guest memory, or stores it unchanged, and sleeps until another thread has brought its page, unless
/// `pending` is or becomes non-zero first.
///
/// # Safety
/// `byte` must lie within the guest's windows; `pending` must be the word that this thread's signal handler sets.
/// [`signals::install_fault_handler`] must have run.
pub unsafe fn touch(pending: &AtomicU32, byte: *mut u8, store: bool) -> Touch {
    // SAFETY: a fault on the byte ends in `sidestep_touch_fault`; an atomic store of what is there changes nothing.
    match unsafe { sidestep_touch(pending, byte, store.into()) } {
        0 => Touch::Present,
        RESTART => Touch::Interrupted,
        _ => Touch::Fault,
    }
}

/// Reads a symbolic link; with an empty path the one that `folder` itself shows.
pub fn read_link(folder: RawFd, path: &[u8]) -> Result<Vec<u8>, Errno> {
    let path = CString::new(path).map_err(|_| Errno(libc::EINVAL))?;
    let mut target = vec![0u8; libc::PATH_MAX as usize];
    let arguments = [
        folder as u64,
        path.as_ptr() as u64,
        target.as_mut_ptr() as u64,
        target.len() as u64,
        0,
        0,
    ];
    // SAFETY: the kernel reads the string and writes at most the length of the buffer.
    let length = unsafe { call(libc::SYS_readlinkat, arguments) }?;
    target.truncate(length as usize);
    Ok(target)
}

/// The status of an open file.
pub fn file_status(file: RawFd) -> Result<libc::stat, Errno> {
    // SAFETY: an all-zero stat is valid.
    let mut status = unsafe { std::mem::zeroed::<libc::stat>() };
    // SAFETY: the kernel writes `status`.
    unsafe { call(libc::SYS_fstat, [file as u64, &raw mut status as u64, 0, 0, 0, 0]) }?;
    Ok(status)
}

/// The flags of a descriptor (`FD_CLOEXEC`).
pub fn descriptor_flags(descriptor: RawFd) -> Result<i32, Errno> {
    // SAFETY: asking for a descriptor's flags touches no memory.
    match unsafe { libc::fcntl(descriptor, libc::F_GETFD) } {
        -1 => Err(Errno::last()),
        flags => Ok(flags),
    }
}

/// Whether an open file is one of `/proc`.
pub fn is_of_proc(file: RawFd) -> bool {
    // SAFETY: an all-zero statfs is valid.
    let mut system = unsafe { std::mem::zeroed::<libc::statfs>() };
    // SAFETY: the kernel writes `system`.
    let told = unsafe {
        call(
            libc::SYS_fstatfs,
            [file as u64, &raw mut system as u64, 0, 0, 0, 0],
        )
    };
    told.is_ok() && system.f_type == libc::PROC_SUPER_MAGIC
}

/// Ends the process at once with an exit status, without running anything else.
pub fn exit_group(status: i32) -> ! {
    loop {
        // SAFETY: ends the process; no memory is touched.
        let _ = unsafe { call(libc::SYS_exit_group, [status as u64, 0, 0, 0, 0, 0]) };
    }
}

/// The calling thread's identifier.
pub fn thread_id() -> i32 {
    // SAFETY: no memory is touched.
    unsafe { call(libc::SYS_gettid, [0; 6]) }.unwrap_or(0) as i32
}

/// The descriptor that messages go to.
static STANDARD_ERROR: AtomicI32 = AtomicI32::new(libc::STDERR_FILENO);

/// Has messages go to another descriptor from now on.
pub fn print_errors_to(descriptor: RawFd) {
    STANDARD_ERROR.store(descriptor, Ordering::Relaxed);
}

/// Writes a message to standard error in one piece, without any lock; what cannot be written is lost.
pub fn print_error(message: &str) {
    write_all(STANDARD_ERROR.load(Ordering::Relaxed), message.as_bytes());
}

/// Writes all bytes to a descriptor, as far as it takes them.
pub fn write_all(descriptor: i32, bytes: &[u8]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let arguments = [
            descriptor as u64,
            rest.as_ptr() as u64,
            rest.len() as u64,
            0,
            0,
            0,
        ];
        // SAFETY: the kernel reads `rest.len()` bytes from `rest`.
        match unsafe { call(libc::SYS_write, arguments) } {
            Ok(0) => return,
            Ok(written) => rest = &rest[written as usize..],
            Err(Errno(libc::EINTR | libc::EAGAIN)) => {}
            Err(_) => return,
        }
    }
}

/// The soft and hard limit of a resource.
pub fn limit_of(resource: u32) -> Result<[u64; 2], Errno> {
    let mut limit = [0u64; 2];
    // SAFETY: the kernel writes two 64-bit numbers.
    if unsafe { libc::getrlimit(resource, (&raw mut limit).cast()) } != 0 {
        Err(Errno::last())
    } else {
        Ok(limit)
    }
}

/// Sets the soft and hard limit of a resource.
pub fn set_limit(resource: u32, limit: [u64; 2]) -> Result<(), Errno> {
    // SAFETY: the kernel reads two 64-bit numbers.
    if unsafe { libc::setrlimit(resource, (&raw const limit).cast()) } != 0 {
        Err(Errno::last())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guarded_copy_reports_a_fault_instead_of_dying() {
        signals::install_fault_handler();
        let mut target = [0u8; 16];
        let source = *b"sixteen bytes!!!";
        // SAFETY: both sides are valid.
        let copied = unsafe { guarded_copy(target.as_mut_ptr(), source.as_ptr(), 16) };
        assert_eq!(copied, Ok(()));
        assert_eq!(target, source);
        // SAFETY: the fault at the unmapped source is what the routine is for.
        let copied = unsafe { guarded_copy(target.as_mut_ptr(), std::ptr::without_provenance(4096), 16) };
        assert_eq!(copied, Err(GuardedFault));
        let (none, some) = (AtomicU32::new(0), AtomicU32::new(1));
        let byte = target.as_mut_ptr();
        // SAFETY: the byte is valid, or its fault is what the routine is for.
        unsafe {
            assert_eq!(touch(&none, byte, true), Touch::Present);
            assert_eq!(touch(&some, byte, true), Touch::Interrupted);
            assert_eq!(
                touch(&none, std::ptr::without_provenance_mut(4096), false),
                Touch::Fault
            );
        }
        assert_eq!(target, source);
        // SAFETY: as above.
        let exchanged = unsafe { guarded_compare_exchange(std::ptr::without_provenance_mut(4096), 0, 1) };
        assert_eq!(exchanged, Err(GuardedFault));
    }

    #[test]
    fn a_pending_signal_keeps_a_call_from_blocking() {
        let pending = AtomicU32::new(1);
        // SAFETY: pause() touches no memory.
        let outcome = unsafe { call_interruptible(&pending, libc::SYS_pause, [0; 6]) };
        assert_eq!(outcome, Err(Interruption::Before));
        // SAFETY: close(-1) touches no memory.
        let closed = unsafe { call(libc::SYS_close, [u64::MAX, 0, 0, 0, 0, 0]) };
        assert_eq!(closed, Err(Errno(libc::EBADF)));
    }
}
