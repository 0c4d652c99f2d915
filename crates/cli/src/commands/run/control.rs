//! Requests to a machine that runs: from the keys of its terminal to whoever executes it.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use sidestep_machine::machine::platform::Platform;

/// What somebody at the terminal wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// The command to end.
    Quit,
    /// To be at the prompt.
    EnterPrompt,
    /// To be at the console again.
    LeavePrompt,
    /// A line typed at the prompt.
    Command(String),
}

/// Where requests go; clones go to the same machine.
#[derive(Clone)]
pub struct Requests {
    sender: Sender<Request>,
    /// The machine, which is gone when it ends or before it starts again.
    platform: Arc<Mutex<Weak<Platform>>>,
}

impl Requests {
    /// The two ends.
    pub fn new() -> (Requests, Receiver<Request>) {
        let (sender, receiver) = mpsc::channel();
        let platform = Arc::default();
        (Requests { sender, platform }, receiver)
    }

    /// Says which machine it is. What was requested before is looked at when that first stops.
    pub fn connect(&self, platform: &Arc<Platform>) {
        *self.platform.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(platform);
    }

    fn platform(&self) -> Option<Arc<Platform>> {
        self.platform
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .upgrade()
    }

    /// Requests, and has the machine stop to look at it.
    pub fn send(&self, request: Request) {
        // Nobody executes the machine any more: nothing to do.
        let _ = self.sender.send(request);
        if let Some(platform) = self.platform() {
            platform.request_stop();
        }
    }

    /// Has a machine that waits look for input.
    pub fn wake(&self) {
        if let Some(platform) = self.platform() {
            platform.wakeups.wake();
        }
    }
}
