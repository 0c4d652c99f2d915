//! A core that stays in the monitor: a thread, pinned if wanted, that looks at the lines of its callers in turn.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::thread::futex::{self, Wait, WaitFlags, WaitPtr, WaitvFlags};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::line::{Answer, Line, Request};
use crate::wait::{EAGER_LOOKS, Rest};

/// The most callers of a sidecore: the kernel lets a thread sleep on so many words at once (FUTEX_WAITV_MAX, 128), of
/// which one is for those who start and end it.
pub const CALLERS_MAX: usize = 127;

/// What serves one caller.
pub trait Service: Send + 'static {
    /// The caller's line.
    fn line(&self) -> Line<'_>;

    /// Serves a request. It may not wait.
    fn serve(&mut self, request: &Request) -> Answer;

    /// Whether the caller is gone. Looked at after [`Sidecore::review`] only.
    fn has_ended(&self) -> bool {
        false
    }
}

/// Pins the calling thread to a core.
///
/// # Errors
/// When this process may not use the core.
pub fn pin(core: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    // A set holds so many cores; the kernel refuses one without any.
    if core < CpuSet::MAX_CPU {
        set.set(core);
    }
    Ok(sched_setaffinity(None, &set)?)
}

struct Shared<S> {
    /// Callers that the thread has not taken yet.
    arriving: Mutex<Vec<S>>,
    /// How many callers there are or may be in a moment.
    callers: AtomicU64,
    /// Grows when the thread shall look at more than lines: who arrives, who ended, whether it shall stop.
    news: AtomicU32,
    stop: AtomicBool,
    /// Looks that find nothing before it sleeps.
    looks: AtomicU64,
    served: AtomicU64,
    refused: AtomicU64,
    slept: AtomicU64,
    processor_ns: AtomicU64,
}

/// A thread that serves requests until it is dropped.
pub struct Sidecore<S: Service> {
    shared: Arc<Shared<S>>,
    thread: Option<JoinHandle<()>>,
}

/// What a sidecore has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests that were served, refused ones included.
    pub served: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// How often it went to sleep.
    pub slept: u64,
    /// Processor time of the thread, in nanoseconds; known when it has ended.
    pub processor_ns: u64,
}

impl<S: Service> Sidecore<S> {
    /// Starts a sidecore for `callers`, on `core` or wherever the kernel puts it. It goes to sleep after `looks` at
    /// each of them that found nothing.
    ///
    /// # Errors
    /// When there can be no thread, or not on that core, or there are more than [`CALLERS_MAX`] callers.
    pub fn start(core: Option<usize>, callers: Vec<S>, looks: u64) -> io::Result<Self> {
        if callers.len() > CALLERS_MAX {
            return Err(too_many());
        }
        let shared = Arc::new(Shared {
            callers: AtomicU64::new(callers.len() as u64),
            arriving: Mutex::new(callers),
            // So that the thread takes its first callers.
            news: AtomicU32::new(1),
            stop: AtomicBool::new(false),
            looks: AtomicU64::new(looks),
            served: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            slept: AtomicU64::new(0),
            processor_ns: AtomicU64::new(0),
        });
        let (started, starting) = std::sync::mpsc::channel();
        let own = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("sidecore".to_owned())
            .spawn(move || {
                leave_signals_to_others();
                let pinned = core.map_or(Ok(()), pin);
                let is_pinned = pinned.is_ok();
                // Whoever starts it waits for this.
                let _ = started.send(pinned);
                if is_pinned {
                    own.serve();
                }
            })?;
        let sidecore = Self {
            shared,
            thread: Some(thread),
        };
        match starting.recv() {
            Ok(pinned) => pinned.map(|()| sidecore),
            Err(_) => Err(io::Error::other("the sidecore's thread ended before it served")),
        }
    }

    /// Serves one more caller.
    ///
    /// # Errors
    /// When there are [`CALLERS_MAX`] already.
    pub fn add(&self, caller: S) -> io::Result<()> {
        let grow = |callers: u64| (callers < CALLERS_MAX as u64).then_some(callers + 1);
        let grown = self
            .shared
            .callers
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, grow);
        grown.map_err(|_| too_many())?;
        let arriving = &self.shared.arriving;
        arriving
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(caller);
        self.review();
        Ok(())
    }

    /// Has the thread let go of callers that have ended.
    pub fn review(&self) {
        self.shared.tell();
    }

    /// Has it go to sleep after so many looks that find nothing: none gives its core to others, and who calls then
    /// wakes it.
    pub fn set_looks(&self, looks: u64) {
        self.shared.looks.store(looks, Ordering::Release);
        self.shared.tell();
    }

    /// What it has done until now.
    pub fn tally(&self) -> Tally {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Tally {
            served: read(&self.shared.served),
            refused: read(&self.shared.refused),
            slept: read(&self.shared.slept),
            processor_ns: read(&self.shared.processor_ns),
        }
    }

    /// How many callers it has.
    pub fn callers(&self) -> u64 {
        self.shared.callers.load(Ordering::Relaxed)
    }

    /// Ends it.
    pub fn end(mut self) -> Tally {
        self.join();
        self.tally()
    }

    fn join(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.tell();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl<S: Service> Drop for Sidecore<S> {
    fn drop(&mut self) {
        self.join();
    }
}

fn too_many() -> io::Error {
    let reason = format!("a sidecore serves {CALLERS_MAX} callers at most");
    io::Error::new(io::ErrorKind::QuotaExceeded, reason)
}

/// A program's handlers run on the program's own threads, never here.
fn leave_signals_to_others() {
    // SAFETY: a set of signals may be any bytes, is filled before it is used, and only this thread's mask changes.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
    }
}

/// A caller and the number of its request that was served last.
struct Served<S> {
    service: S,
    sequence: u64,
}

impl<S: Service> Shared<S> {
    fn tell(&self) {
        self.news.fetch_add(1, Ordering::SeqCst);
        // It cannot fail for a word of this program.
        let _ = futex::wake(&self.news, futex::Flags::empty(), 1);
    }

    /// One request of each caller in turn: who floods waits for its turn as all do.
    fn serve(&self) {
        let rest = Rest::of_this_processor();
        let mut callers: Vec<Served<S>> = Vec::new();
        let (mut idle, mut news, mut looks) = (0, 0, 0);
        loop {
            let current = self.news.load(Ordering::Acquire);
            if current != news {
                news = current;
                if self.stop.load(Ordering::Acquire) {
                    break;
                }
                self.take_news(&mut callers);
                looks = self.looks.load(Ordering::Acquire);
            }
            let mut is_idle = true;
            for caller in &mut callers {
                let sequence = caller.service.line().announced();
                if sequence == caller.sequence {
                    continue;
                }
                caller.sequence = sequence;
                is_idle = false;
                let request = caller.service.line().copy(sequence);
                let answer = caller.service.serve(&request);
                caller.service.line().answer(sequence, answer);
                self.count(answer.status != 0);
            }
            idle = if is_idle { idle + 1 } else { 0 };
            if idle > looks {
                self.sleep(&callers, news);
                idle = 0;
            } else if idle > EAGER_LOOKS {
                match callers.as_slice() {
                    [only] => rest.rest(only.service.line().announcement(), only.sequence),
                    // A processor watches one line at a time.
                    _ => std::hint::spin_loop(),
                }
            }
        }
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let processor_ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
        self.processor_ns.store(processor_ns, Ordering::Relaxed);
    }

    fn take_news(&self, callers: &mut Vec<Served<S>>) {
        let before = callers.len();
        callers.retain(|caller| !caller.service.has_ended());
        self.callers
            .fetch_sub((before - callers.len()) as u64, Ordering::Relaxed);
        let arriving = std::mem::take(&mut *self.arriving.lock().unwrap_or_else(PoisonError::into_inner));
        callers.extend(arriving.into_iter().map(|service| Served {
            sequence: service.line().answered(),
            service,
        }));
    }

    /// Only this thread counts, so no addition needs the bus.
    fn count(&self, is_refused: bool) {
        let add = |counter: &AtomicU64, by: u64| {
            counter.store(counter.load(Ordering::Relaxed) + by, Ordering::Relaxed);
        };
        add(&self.served, 1);
        add(&self.refused, is_refused.into());
    }

    /// Says to every caller that it sleeps, looks once more, and sleeps until somebody wakes it.
    fn sleep(&self, callers: &[Served<S>], news: u32) {
        for caller in callers {
            caller.service.line().sleeps();
        }
        let has_request = callers
            .iter()
            .any(|caller| caller.service.line().announced() != caller.sequence);
        if !has_request {
            self.slept.fetch_add(1, Ordering::Relaxed);
            let mut own = Wait::new();
            own.val = news.into();
            own.uaddr = WaitPtr::new(self.news.as_ptr().cast());
            own.flags = WaitFlags::SIZE_U32;
            let waits: Vec<Wait> = callers
                .iter()
                .map(|caller| caller.service.line().sleep())
                .chain([own])
                .collect();
            // Woken, or something has changed since: either way it looks again. A kernel before 5.16 has no such call;
            // there it yields its core, so that it costs no more than others leave.
            let slept = futex::waitv(&waits, WaitvFlags::empty(), None, ClockId::Monotonic);
            if slept == Err(rustix::io::Errno::NOSYS) {
                thread::yield_now();
            }
        }
        for caller in callers {
            caller.service.line().is_awake();
        }
    }
}
