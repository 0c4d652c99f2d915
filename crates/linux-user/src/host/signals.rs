//! Signals of the host: how they reach a guest thread.
//!
//! The host's dispositions mirror the guest's (default, ignored, caught), so that stops, ignored signals and
//! what a child inherits need no emulation. A caught signal, or one whose default would end the process,
//! runs `on_signal`. It puts the `siginfo` into the thread's [`Inbox`], raises the processor's attention,
//! and blocks every further signal of the thread until the guest's own mask is set again at delivery. So at
//! most one signal waits here, the kernel keeps the queue, and its order and priorities are the guest's.
//!
//! `SIGSEGV` and `SIGBUS` stay unblocked, since the host raises them for faults in
//! [`guarded_copy`](super::guarded_copy); when they are *sent* they have a place of their own in the inbox, and the
//! guest's mask is honoured at delivery. `SIGFPE` is blocked when the guest blocks it: an engine is told then that it
//! must not have it raised.
//!
//! Dispositions belong to the process, so this is the one module that cannot serve two guests in one process.
//! The inbox is found through a thread-local pointer; a thread without one drops the signal.

use std::cell::Cell;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::mem::size_of;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Errno, call};

/// A set of signals: bit `n - 1` is signal `n`. Both kernels use 64 signals and this layout.
pub type SignalSet = u64;

/// The number of signals.
pub const SIGNALS: i32 = 64;

/// The set that holds one signal.
pub const fn set_of(signal: i32) -> SignalSet {
    1 << (signal - 1)
}

/// Signals that the host raises while guests run, and that it must always catch.
pub const RAISED_BY_HOST: [i32; 3] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE];

/// Signals that the host must never block.
const NEVER_BLOCKED: SignalSet = set_of(libc::SIGSEGV) | set_of(libc::SIGBUS);

/// `siginfo_t` as the kernel writes it.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct RawInformation(pub [u8; 128]);

impl RawInformation {
    /// The 32-bit field at a byte offset.
    pub fn word(&self, offset: usize) -> i32 {
        i32::from_le_bytes(self.0[offset..offset + 4].try_into().expect("four bytes"))
    }

    /// Sets the 32-bit field at a byte offset.
    pub fn set_word(&mut self, offset: usize, value: i32) {
        self.0[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Sets the 64-bit field at a byte offset.
    pub fn set_double(&mut self, offset: usize, value: u64) {
        self.0[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
    }

    /// The signal number.
    pub fn signal(&self) -> i32 {
        self.word(0)
    }

    /// The code that says where it came from.
    pub fn code(&self) -> i32 {
        self.word(8)
    }

    /// An empty one for a signal and code.
    pub fn new(signal: i32, code: i32) -> RawInformation {
        let mut information = RawInformation([0; 128]);
        information.set_word(0, signal);
        information.set_word(8, code);
        information
    }
}

/// One place for a signal that waits: written by the handler, emptied by the thread.
struct Place {
    full: AtomicU32,
    information: UnsafeCell<RawInformation>,
}

impl Place {
    fn new() -> Place {
        Place {
            full: AtomicU32::new(0),
            information: UnsafeCell::new(RawInformation([0; 128])),
        }
    }
}

/// The signals of one thread that the host has handed over and the guest has not yet seen.
///
/// Written by the handler on the thread itself, read by the same thread: the atomics order the two, they do
/// not share it between threads.
pub struct Inbox {
    /// Not zero while any place is full; what [`super::call_interruptible`] tests.
    pending: AtomicU32,
    /// Sent signals, each of [`RAISED_BY_HOST`] in its own; then any other.
    places: [Place; RAISED_BY_HOST.len() + 1],
    /// Makes the processor return from its run.
    raise_attention: Box<dyn Fn() + Send + Sync>,
}

// SAFETY: only the owning thread and handlers on it touch the places; `full` orders their accesses.
unsafe impl Sync for Inbox {}

thread_local! {
    /// The inbox of this host thread; null where the thread runs no guest.
    static INBOX: Cell<*const Inbox> = const { Cell::new(ptr::null()) };
}

impl Inbox {
    /// An empty inbox; `raise_attention` must only do what a signal handler may do.
    pub fn new(raise_attention: Box<dyn Fn() + Send + Sync>) -> Inbox {
        Inbox {
            pending: AtomicU32::new(0),
            places: std::array::from_fn(|_| Place::new()),
            raise_attention,
        }
    }

    /// Makes this the inbox of the calling thread; answers the one it had. The inbox must outlive that role.
    pub fn attach(inbox: *const Inbox) -> *const Inbox {
        INBOX.with(|cell| cell.replace(inbox))
    }

    /// The word to pass to [`super::call_interruptible`].
    pub fn pending(&self) -> &AtomicU32 {
        &self.pending
    }

    /// Whether a signal waits.
    pub fn is_empty(&self) -> bool {
        self.pending.load(Ordering::Acquire) == 0
    }

    /// The set of signals that wait here.
    pub fn waiting(&self) -> SignalSet {
        let mut set = 0;
        for place in &self.places {
            if place.full.load(Ordering::Acquire) != 0 {
                // SAFETY: the place is full, so no handler writes it.
                set |= set_of(unsafe { (*place.information.get()).signal() });
            }
        }
        set
    }

    /// Keeps the thread from blocking again and calls it out of its run, without a signal; for other threads.
    pub fn interrupt(&self) {
        self.pending.store(1, Ordering::Release);
        (self.raise_attention)();
    }

    /// Takes a waiting signal that `blocked` does not hold. To be called with signals blocked.
    pub fn take(&self, blocked: SignalSet) -> Option<RawInformation> {
        let mut taken = None;
        let mut left = false;
        for place in &self.places {
            if place.full.load(Ordering::Acquire) == 0 {
                continue;
            }
            // SAFETY: the place is full, so no handler writes it.
            let information = unsafe { *place.information.get() };
            if taken.is_none() && blocked & set_of(information.signal()) == 0 {
                place.full.store(0, Ordering::Release);
                taken = Some(information);
            } else {
                left |= blocked & set_of(information.signal()) == 0;
            }
        }
        self.pending.store(u32::from(left), Ordering::Release);
        taken
    }

    /// Notices again what `take` left behind, after the mask changed.
    pub fn recheck(&self, blocked: SignalSet) {
        if self.waiting() & !blocked != 0 {
            self.pending.store(1, Ordering::Release);
        }
    }

    fn put(&self, information: RawInformation) {
        let own = RAISED_BY_HOST
            .iter()
            .position(|&signal| signal == information.signal());
        let place = &self.places[own.unwrap_or(RAISED_BY_HOST.len())];
        if place.full.load(Ordering::Acquire) == 0 {
            // SAFETY: the place is empty, so the thread does not read it; handlers on one thread do not nest
            // for one place, since the signal is blocked while its handler runs.
            unsafe { *place.information.get() = information };
            place.full.store(1, Ordering::Release);
        }
        self.pending.store(1, Ordering::Release);
        (self.raise_attention)();
    }
}

/// Where emitted code goes on that a fault has stopped, see [`Engine::resumption`](crate::engine::Engine::resumption).
static RESUMPTION: OnceLock<fn(usize) -> Option<usize>> = OnceLock::new();

/// Has emitted code go on elsewhere where a fault stops it. What was said first holds for the process.
pub fn set_resumption(resumption: fn(usize) -> Option<usize>) {
    RESUMPTION.get_or_init(|| resumption);
}

/// The last of SIGFPE's codes that are of integers (`FPE_INTOVF`).
const INTEGER_OVERFLOW: i32 = 2;

/// What an engine is asked that has the host raise floating-point exceptions.
#[derive(Clone, Copy, Debug)]
pub struct HostExceptions {
    /// Masks the exceptions in MXCSR of a thread for which the host has raised SIGFPE. Answers false where the engine
    /// has not had it raised. A signal handler calls it.
    pub mask: fn(&mut u32) -> bool,
    /// Says whether the engine may have exceptions raised in the calling thread, which may block SIGFPE.
    pub permit: fn(bool),
}

/// What is asked of the floating-point exceptions that emitted code raises.
static EXCEPTIONS: OnceLock<HostExceptions> = OnceLock::new();

/// Says what is asked of the floating-point exceptions that emitted code raises. What was said first holds for the
/// process.
pub fn set_exceptions(exceptions: HostExceptions) {
    EXCEPTIONS.get_or_init(|| exceptions);
}

/// Has the engine mask what a thread has raised, and answers whether it has.
fn mask_exceptions(context: &mut libc::ucontext_t) -> bool {
    // SAFETY: where the kernel says that there are the floating-point registers, they are; the handler has them alone.
    let registers = unsafe { context.uc_mcontext.fpregs.as_mut() };
    let exceptions = EXCEPTIONS.get();
    exceptions
        .zip(registers)
        .is_some_and(|(exceptions, registers)| (exceptions.mask)(&mut registers.mxcsr))
}

/// Whether somebody says where emitted code goes on.
pub fn knows_resumption() -> bool {
    RESUMPTION.get().is_some()
}

unsafe extern "C" fn on_signal(
    signal: i32,
    information: *mut RawInformation,
    context: *mut libc::ucontext_t,
) {
    // SAFETY: the kernel passes a valid siginfo and context to a handler with SA_SIGINFO.
    let (information, context) = unsafe { (*information, &mut *context) };
    let is_exception = signal == libc::SIGFPE && information.code() > INTEGER_OVERFLOW;
    if is_exception && mask_exceptions(context) {
        return;
    }
    let instruction = &mut context.uc_mcontext.gregs[libc::REG_RIP as usize];
    let at = *instruction as usize;
    let fault_like = matches!(
        signal,
        libc::SIGSEGV | libc::SIGBUS | libc::SIGILL | libc::SIGFPE | libc::SIGTRAP
    );
    if fault_like && information.code() > 0 {
        if within(
            at,
            &raw const super::sidestep_guarded_begin,
            &raw const super::sidestep_guarded_end,
        ) {
            *instruction = (&raw const super::sidestep_guarded_fault).addr() as i64;
        } else if is_in_touch(at) {
            *instruction = (&raw const super::sidestep_touch_fault).addr() as i64;
        } else if let Some(elsewhere) = RESUMPTION.get().and_then(|resumption| resumption(at)) {
            *instruction = elsewhere as i64;
        } else {
            // A fault of the emulator itself, or of a guest access to a file mapping that shrank under it:
            // the access repeats under the default disposition and ends the process by this signal.
            let _ = set_disposition(signal, Disposition::Default, 0);
        }
        return;
    }
    let inbox = INBOX.with(Cell::get);
    if inbox.is_null() {
        return;
    }
    let is_call_back = is_call_back(&information);
    if is_call_back {
        // SAFETY: an attached inbox outlives its role (see `attach`).
        unsafe { (*inbox).interrupt() };
    } else {
        // SAFETY: as above.
        unsafe { (*inbox).put(information) };
    }
    let begin = &raw const super::sidestep_interruptible_begin;
    let entry = &raw const super::sidestep_interruptible_entry;
    if within(at, begin, entry) {
        *instruction = (&raw const super::sidestep_interruptible_before).addr() as i64;
    } else if within(at, entry, &raw const super::sidestep_interruptible_end) {
        *instruction = (&raw const super::sidestep_interruptible_restart).addr() as i64;
    } else if is_in_touch(at) {
        *instruction = (&raw const super::sidestep_touch_restart).addr() as i64;
    }
    if is_call_back {
        return;
    }
    let mask = (&raw mut context.uc_sigmask).cast::<SignalSet>();
    // SAFETY: the kernel's signal set is the first 64 bits of the field.
    let mask = unsafe { &mut *mask };
    // What may be raised until then stays so.
    *mask = !NEVER_BLOCKED & !(set_of(libc::SIGFPE) & !*mask);
}

/// The signal by which a thread calls another one of its process back: one that the host never blocks.
const CALL_BACK: i32 = libc::SIGSEGV;
/// Its address is what tells such a signal from one that was sent to the guest.
static CALL_BACK_MARK: u8 = 0;

/// `SI_QUEUE`, and where the sender's number and the value are in a `siginfo` with it.
const QUEUED: (i32, usize, usize) = (libc::SI_QUEUE, 16, 24);

fn is_call_back(information: &RawInformation) -> bool {
    let (code, sender, value) = QUEUED;
    information.signal() == CALL_BACK
        && information.code() == code
        && information.word(sender) as u32 == std::process::id()
        && information.0[value..value + 8] == (&raw const CALL_BACK_MARK).addr().to_le_bytes()
}

/// Interrupts whatever system call a thread of this process is in, after [`Inbox::interrupt`].
pub fn call_back(thread: i32) {
    let (code, sender, value) = QUEUED;
    let process = std::process::id();
    let mut information = RawInformation::new(CALL_BACK, code);
    information.set_word(sender, process as i32);
    information.set_double(value, (&raw const CALL_BACK_MARK).addr() as u64);
    let arguments = [
        u64::from(process),
        thread as u64,
        CALL_BACK as u64,
        &raw const information as u64,
        0,
        0,
    ];
    // SAFETY: the kernel reads `information`. A thread that has just ended is not found.
    let _ = unsafe { call(libc::SYS_rt_tgsigqueueinfo, arguments) };
}

/// Sends a signal to a thread of this process.
pub fn send(thread: i32, signal: i32) {
    let arguments = [
        u64::from(std::process::id()),
        thread as u64,
        signal as u64,
        0,
        0,
        0,
    ];
    // SAFETY: no memory is touched. A thread that has just ended is not found.
    let _ = unsafe { call(libc::SYS_tgkill, arguments) };
}

/// Has the host's C library take its own signals before a guest does: glibc catches one with the first thread that it
/// begins, whatever was to be done for it until then. What is said of it from then on holds.
pub fn let_library_settle() {
    // Where no thread can be had now, none has taken anything.
    let _ = std::thread::Builder::new()
        .spawn(|| {})
        .map(std::thread::JoinHandle::join);
}

/// The dispositions and the mask that a process had before a program ran in it.
pub struct Before {
    actions: Vec<(i32, HostAction)>,
    mask: SignalSet,
}

impl Before {
    /// Notes them.
    pub fn note() -> Before {
        let signals = (1..=SIGNALS).filter(|signal| !matches!(*signal, libc::SIGKILL | libc::SIGSTOP));
        Before {
            actions: signals
                .filter_map(|signal| Some((signal, action_of(signal)?)))
                .collect(),
            mask: block_all(),
        }
    }

    /// The mask.
    pub fn mask(&self) -> SignalSet {
        self.mask
    }

    /// Sets them again.
    pub fn restore(&self) {
        for (signal, action) in &self.actions {
            let arguments = [
                *signal as u64,
                std::ptr::from_ref(action) as u64,
                0,
                size_of::<SignalSet>() as u64,
                0,
                0,
            ];
            // SAFETY: the kernel reads an action that it wrote itself.
            let _ = unsafe { call(libc::SYS_rt_sigaction, arguments) };
        }
        set_mask(self.mask);
    }
}

fn is_in_touch(at: usize) -> bool {
    let begin = super::sidestep_touch as *const u8;
    within(at, begin, &raw const super::sidestep_touch_end)
}

fn within(at: usize, begin: *const u8, end: *const u8) -> bool {
    (begin.addr()..end.addr()).contains(&at)
}

/// What the host does with a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// The default action.
    Default,
    /// Nothing.
    Ignored,
    /// `on_signal`.
    Caught,
}

/// The kernel's own `struct sigaction` on x86-64.
#[repr(C)]
struct HostAction {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: SignalSet,
}

const SA_RESTORER: u64 = 0x0400_0000;

/// Sets the host's disposition of a signal; `flags` may hold `SA_NOCLDSTOP` and `SA_NOCLDWAIT`.
pub fn set_disposition(signal: i32, disposition: Disposition, flags: u64) -> Result<(), Errno> {
    let handler = match disposition {
        Disposition::Default => libc::SIG_DFL,
        Disposition::Ignored => libc::SIG_IGN,
        Disposition::Caught => on_signal as *const c_void as usize,
    };
    let kept = flags & (libc::SA_NOCLDSTOP | libc::SA_NOCLDWAIT) as u64;
    let action = HostAction {
        handler,
        flags: (libc::SA_SIGINFO | libc::SA_RESTART) as u64 | SA_RESTORER | kept,
        restorer: (&raw const super::sidestep_signal_return).addr(),
        mask: !NEVER_BLOCKED,
    };
    let arguments = [
        signal as u64,
        &raw const action as u64,
        0,
        size_of::<SignalSet>() as u64,
        0,
        0,
    ];
    // SAFETY: the kernel reads `action`; the handler is sound for every signal.
    unsafe { call(libc::SYS_rt_sigaction, arguments) }.map(drop)
}

/// Whether the host ignores a signal, for instance since `nohup` or a shell said so.
pub fn is_ignored(signal: i32) -> bool {
    action_of(signal).is_some_and(|action| action.handler == libc::SIG_IGN)
}

fn action_of(signal: i32) -> Option<HostAction> {
    let mut action = HostAction {
        handler: 0,
        flags: 0,
        restorer: 0,
        mask: 0,
    };
    let arguments = [
        signal as u64,
        0,
        &raw mut action as u64,
        size_of::<SignalSet>() as u64,
        0,
        0,
    ];
    // SAFETY: the kernel writes `action`.
    unsafe { call(libc::SYS_rt_sigaction, arguments) }.ok()?;
    Some(action)
}

/// Catches what the host raises, so that the guarded routines can report it and emitted code goes on.
pub fn install_fault_handler() {
    for signal in RAISED_BY_HOST {
        set_disposition(signal, Disposition::Caught, 0).expect("it may be caught");
    }
}

/// Sets the host's signal mask of this thread to the guest's; answers the previous one.
pub fn set_mask(mask: SignalSet) -> SignalSet {
    let mask = host_mask(mask);
    if let Some(exceptions) = EXCEPTIONS.get() {
        (exceptions.permit)(mask & set_of(libc::SIGFPE) == 0);
    }
    let mut old: SignalSet = 0;
    let size = size_of::<SignalSet>() as u64;
    let how = libc::SIG_SETMASK as u64;
    // SAFETY: the kernel reads `mask` and writes `old`.
    let _ = unsafe {
        call(
            libc::SYS_rt_sigprocmask,
            [how, &raw const mask as u64, &raw mut old as u64, size, 0, 0],
        )
    };
    old
}

/// Blocks every signal that may be blocked; answers the previous mask.
pub fn block_all() -> SignalSet {
    set_mask(!0)
}

/// The mask the host may have while the guest has `mask`.
pub fn host_mask(mask: SignalSet) -> SignalSet {
    mask & !NEVER_BLOCKED
}

/// Ends the process by a signal's default action, leaving no core file of the emulator.
pub fn die_by(signal: i32) -> ! {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel reads the limit.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
    let _ = set_disposition(signal, Disposition::Default, 0);
    block_all();
    send(super::thread_id(), signal);
    set_mask(0);
    super::exit_group(128 + signal)
}
