//! Translation on a host thread of its own, while guests go on being interpreted: a sidecore of the translator.
//!
//! A processor [orders](Background::order) a region and goes on. What is finished waits with its [`Finished`] until the
//! processor enters the next block that it interprets. What became of a region in between is for whoever takes it to
//! see: nothing here knows of the processor.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, getpid};

use crate::compiler::{Compiler, CompilerError, Emitted, Surroundings};
use crate::region::Region;
use crate::unit::Piece;

/// A thread that emits code for all processors of a process.
///
/// It begins with the first order. A forked child has none of its parent's threads: there it begins again.
#[derive(Default)]
pub struct Background {
    worker: Mutex<Option<Worker>>,
}

/// The thread, and the process that it is one of.
struct Worker {
    process: Pid,
    orders: Sender<Order>,
    thread: JoinHandle<()>,
}

/// A region to be translated.
struct Order {
    number: u64,
    /// The block that is its root.
    root: Weak<Piece>,
    region: Region,
    surroundings: Surroundings,
    finished: Arc<Finished>,
}

/// What was translated and is to be taken, for one processor.
#[derive(Default)]
pub struct Finished {
    /// Whether there is any, to be seen without a lock.
    is_some: AtomicBool,
    translated: Mutex<Vec<Translated>>,
}

/// A region with its code.
pub struct Translated {
    /// The number of its order.
    pub number: u64,
    /// What was ordered.
    pub region: Region,
    /// The code; `None` where the code generator refuses.
    pub code: Option<Emitted>,
    /// How long that took.
    pub time: Duration,
}

impl Finished {
    /// Whether something may be taken.
    #[inline(always)]
    pub fn is_some(&self) -> bool {
        self.is_some.load(Ordering::Relaxed)
    }

    /// Takes what there is; nothing while the thread adds to it.
    pub fn take(&self) -> Vec<Translated> {
        let Ok(mut translated) = self.translated.try_lock() else {
            return Vec::new();
        };
        self.is_some.store(false, Ordering::Relaxed);
        mem::take(&mut translated)
    }

    fn add(&self, translated: Translated) {
        lock(&self.translated).push(translated);
        self.is_some.store(true, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .expect("no thread panics while it orders or delivers translations")
}

impl Background {
    /// Orders a region with its root under a number, to be delivered to `finished`. Among several the one comes first
    /// whose root has been entered most often by then.
    ///
    /// # Errors
    /// There is no thread, and none can be had.
    pub fn order(
        &self,
        (number, root): (u64, &Arc<Piece>),
        (region, surroundings): (Region, Surroundings),
        finished: &Arc<Finished>,
    ) -> Result<(), CompilerError> {
        let mut worker = lock(&self.worker);
        let process = getpid();
        if worker.as_ref().is_none_or(|worker| worker.process != process) {
            let begun = Worker::begin(process)?;
            if let Some(parents) = worker.replace(begun) {
                // Its channel may be in the middle of something for ever.
                mem::forget(parents);
            }
        }
        let order = Order {
            number,
            root: Arc::downgrade(root),
            region,
            surroundings,
            finished: Arc::clone(finished),
        };
        let worker = worker.as_ref().expect("it has just begun");
        let ordered = worker.orders.send(order);
        assert!(
            ordered.is_ok(),
            "the thread takes orders as long as there is somebody to give them"
        );
        Ok(())
    }

    /// Ends the thread, once it has done what was ordered. The next order begins another one.
    pub fn rest(&self) {
        let mut worker = lock(&self.worker);
        if let Some(Worker { orders, thread, .. }) = worker.take_if(|worker| worker.process == getpid()) {
            drop(orders);
            let ended = thread.join();
            assert!(ended.is_ok(), "translating does not panic");
        }
    }
}

impl Worker {
    fn begin(process: Pid) -> Result<Worker, CompilerError> {
        let compiler = Compiler::new()?;
        let (orders, ordered) = channel();
        let thread = thread::Builder::new().name("translator".to_owned());
        let thread = without_signals(|| thread.spawn(move || serve(compiler, &ordered)));
        let thread = thread.map_err(CompilerError::Thread)?;
        Ok(Worker {
            process,
            orders,
            thread,
        })
    }
}

/// Does something with every signal blocked, as threads stay that are begun meanwhile: a signal to the process is for
/// the guest's threads, which may all have blocked it.
fn without_signals<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: a set of signals is plain data, which `sigfillset` writes.
    let [mut all, mut before]: [libc::sigset_t; 2] = unsafe { mem::zeroed() };
    // SAFETY: both sets live on the stack, and the mask is this thread's own.
    unsafe {
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
    }
    let result = body();
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    result
}

/// Translates until nobody can order any more and nothing is left.
fn serve(mut compiler: Compiler, ordered: &Receiver<Order>) {
    let mut waiting = Vec::new();
    loop {
        if waiting.is_empty() {
            let Ok(order) = ordered.recv() else { return };
            waiting.push(order);
        }
        waiting.extend(ordered.try_iter());
        let hottest = hottest(&waiting);
        let order = waiting.swap_remove(hottest);
        // Whoever ordered it has gone.
        if Arc::strong_count(&order.finished) == 1 {
            continue;
        }
        let began = Instant::now();
        let code = match Piece::kept(&order.root).is_some() {
            true => compiler.compile(&order.region, order.surroundings),
            false => None,
        };
        order.finished.add(Translated {
            number: order.number,
            region: order.region,
            code,
            time: began.elapsed(),
        });
    }
}

/// The place of the order whose root was entered most often; those that have gone come first, since they take no time.
fn hottest(orders: &[Order]) -> usize {
    let entered = orders
        .iter()
        .map(|order| Piece::kept(&order.root).map_or(u32::MAX, |root| root.entered()));
    let hottest = entered.enumerate().max_by_key(|&(_, entered)| entered);
    hottest.map_or(0, |(place, _)| place)
}

impl std::fmt::Debug for Background {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Background")
    }
}
