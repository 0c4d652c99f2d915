//! How devices and firmware end the machine.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// The end, with this exit code: 0 is power off.
    Exit(u32),
    /// To start again, as after power on.
    Reset,
    /// The end, since the guest's kernel has panicked.
    Panic,
}

/// The machine's end, as long as nobody has asked for it: none.
#[derive(Debug, Default)]
pub struct Ending(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    request: Option<Request>,
    panic: Option<String>,
}

impl Ending {
    /// Ends the machine, at the end of the current time slice; the first to ask decides. A guest that has panicked
    /// and resets the machine ends it as one that has panicked.
    pub fn request(&self, request: Request) {
        let mut state = self.state();
        let request = match request {
            Request::Reset if state.panic.is_some() => Request::Panic,
            other => other,
        };
        state.request.get_or_insert(request);
    }

    /// Notes that the guest's kernel has panicked and why; the first reason stays.
    pub fn note_panic(&self, reason: String) {
        self.state().panic.get_or_insert(reason);
    }

    /// Why the guest's kernel has panicked, if it has.
    pub fn panic(&self) -> Option<String> {
        self.state().panic.clone()
    }

    /// What was asked for, if somebody has.
    pub fn requested(&self) -> Option<Request> {
        self.state().request
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_request_decides() {
        let ending = Ending::default();
        assert_eq!(ending.requested(), None);
        ending.request(Request::Reset);
        ending.request(Request::Exit(0));
        assert_eq!(ending.requested(), Some(Request::Reset));
    }

    #[test]
    fn a_reset_after_a_panic_is_the_end() {
        let ending = Ending::default();
        ending.note_panic("no init".to_owned());
        ending.note_panic("another".to_owned());
        ending.request(Request::Reset);
        assert_eq!(ending.requested(), Some(Request::Panic));
        assert_eq!(ending.panic().as_deref(), Some("no init"));
    }
}
