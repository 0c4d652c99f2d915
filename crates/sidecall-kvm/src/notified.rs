//! A thread that sleeps until the kernel tells it that the guest calls: how vhost has its workers served.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use sidestep_sidecall::sidecore::{Service, pin};
use vmm_sys_util::eventfd::EventFd;

use crate::service::GuestService;

/// A thread that serves requests until it is dropped.
pub struct Notified {
    event: EventFd,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Notified {
    /// Starts a thread on `core` that serves `callers` whenever `event` is signalled.
    ///
    /// # Errors
    /// When there can be no thread, or not on that core.
    pub fn start(core: usize, event: EventFd, mut callers: Vec<GuestService>) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (own_event, own_stop) = (event.try_clone()?, Arc::clone(&stop));
        let (started, starting) = std::sync::mpsc::channel();
        let thread = thread::Builder::new()
            .name("notified".to_owned())
            .spawn(move || {
                let pinned = pin(core);
                let is_pinned = pinned.is_ok();
                // Whoever starts it waits for this.
                let _ = started.send(pinned);
                let mut served: Vec<u64> = callers.iter().map(|caller| caller.line().answered()).collect();
                while is_pinned && !own_stop.load(Ordering::Acquire) {
                    // It sleeps here. A signal interrupts it, and then nobody has called.
                    let _ = own_event.read();
                    for (caller, served) in callers.iter_mut().zip(&mut served) {
                        let sequence = caller.line().announced();
                        if sequence != *served {
                            *served = sequence;
                            let answer = caller.serve(&caller.line().copy(sequence));
                            caller.line().answer(sequence, answer);
                        }
                    }
                }
            })?;
        let notified = Self {
            event,
            stop,
            thread: Some(thread),
        };
        match starting.recv() {
            Ok(pinned) => pinned.map(|()| notified),
            Err(_) => Err(io::Error::other("the thread ended before it served")),
        }
    }
}

impl Drop for Notified {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // It fails where its count is full only, and then the thread is awake anyway.
        let _ = self.event.write(1);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}
