//! What units and devices ask of the controller, and how each request is checked and served.

use super::activation::{Entry, Level, Page};
use super::thread::{ENTRIES_PER_PAGE, FaultCause, Mode, ThreadId};
use super::{Controller, Fault};

/// What `create` answers when no page is free.
pub const NO_PAGE: u32 = u32::MAX;

/// The operation of a request. Targets are register values, not yet known to be threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `cont`.
    Continue {
        /// The thread continued to.
        target: u32,
    },
    /// `contd`.
    ContinueWithData {
        /// The thread continued to.
        target: u32,
        /// The word of its frame to write.
        slot: u16,
        /// What to write.
        value: u32,
    },
    /// `self`.
    SelfContinue,
    /// `lock`.
    Lock {
        /// The entry to lock.
        target: u32,
    },
    /// `unlock`.
    Unlock {
        /// The entry to unlock.
        target: u32,
    },
    /// `create`; the unit has checked the frame.
    Create {
        /// The frame's byte address.
        frame: u32,
        /// The frame's length in words.
        words: u16,
    },
    /// `delete`.
    Delete {
        /// A thread on the page to free.
        target: u32,
    },
    /// `install`.
    Install {
        /// The entry to set.
        target: u32,
        /// The byte address of its first instruction.
        code: u32,
        /// The mode it will run in.
        mode: Mode,
        /// Its fan-in.
        fan_in: u8,
    },
    /// `setcount`.
    SetCount {
        /// The entry to set.
        target: u32,
        /// The counter and fan-in.
        count: u32,
    },
    /// `rearm`.
    Rearm,
    /// A device's signal: a continuation that is kept, not refused, while its target is not armed.
    Signal {
        /// The handler.
        target: u32,
    },
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Issuer {
    /// The running thread; `None` for a device.
    pub thread: Option<ThreadId>,
    /// Its mode; devices act as the kernel.
    pub mode: Mode,
    /// The byte address of the instruction.
    pub address: u32,
}

/// A request in a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Who asks.
    pub issuer: Issuer,
    /// For what.
    pub operation: Operation,
}

/// What a request that was served did beyond the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// An answer for the asking unit's register.
    Answer(u32),
    /// A word to write into a frame before the thread that reads it can start.
    Write {
        /// The byte address.
        address: u32,
        /// The word.
        value: u32,
    },
    /// The signal was kept out: its handler is not armed.
    Deferred,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The request.
    pub request: Request,
    /// What it did, or why it was refused; a refused request has changed nothing.
    pub result: Result<Effect, Fault>,
}

impl Controller {
    /// Serves a request: checks everything, then changes everything.
    pub(super) fn serve(&mut self, request: Request) -> Completion {
        let result = self.apply(&request).map_err(|(cause, value)| {
            self.counters.faults += 1;
            Fault {
                cause,
                thread: request.issuer.thread,
                address: request.issuer.address,
                value,
            }
        });
        Completion { request, result }
    }

    fn apply(&mut self, request: &Request) -> Result<Effect, (FaultCause, u32)> {
        let issuer = &request.issuer;
        match request.operation {
            Operation::Continue { target } => {
                let thread = self.continuable(issuer, target)?;
                self.continue_to(thread);
                Ok(Effect::None)
            }
            Operation::ContinueWithData { target, slot, value } => {
                let thread = self.continuable(issuer, target)?;
                let page = self
                    .memory
                    .page(thread.page())
                    .expect("a continuable thread's page is in use");
                if slot >= page.words {
                    return Err((FaultCause::FrameBounds, u32::from(slot)));
                }
                let address = page.frame + u32::from(slot) * 4;
                self.continue_to(thread);
                Ok(Effect::Write { address, value })
            }
            Operation::SelfContinue => {
                let thread = self.spent_issuer(issuer)?;
                self.counters.self_continuations += 1;
                self.activate(thread);
                Ok(Effect::None)
            }
            Operation::Lock { target } => {
                let thread = self.present(target)?;
                self.reachable(issuer, thread)?;
                let entry = self.memory.entry_mut(thread);
                let granted = !entry.locked;
                entry.locked = true;
                if granted {
                    self.counters.locks_granted += 1;
                } else {
                    self.counters.locks_denied += 1;
                }
                Ok(Effect::Answer(u32::from(granted)))
            }
            Operation::Unlock { target } => {
                let thread = self.present(target)?;
                let entry = self.memory.entry_mut(thread);
                if !issuer.mode.is_supervisor() && entry.mode != Some(Mode::User) {
                    return Err((FaultCause::ModeProtection, target));
                }
                if !entry.locked {
                    return Err((FaultCause::NotLocked, target));
                }
                entry.locked = false;
                Ok(Effect::None)
            }
            Operation::Create { frame, words } => {
                let level = if issuer.mode.is_supervisor() {
                    Level::System
                } else {
                    Level::User
                };
                let answer = match self.memory.allocate(Page { level, frame, words }) {
                    Some(page) => {
                        self.counters.creates += 1;
                        ThreadId::new(page, 0).number()
                    }
                    None => {
                        self.counters.creates_denied += 1;
                        NO_PAGE
                    }
                };
                Ok(Effect::Answer(answer))
            }
            Operation::Delete { target } => {
                let thread = self.administrable(issuer, target)?;
                if self.memory.has_ready(thread.page()) {
                    return Err((FaultCause::NotSpent, target));
                }
                self.memory.release(thread.page());
                Ok(Effect::None)
            }
            Operation::Install {
                target,
                code,
                mode,
                fan_in,
            } => {
                let thread = self.administrable(issuer, target)?;
                if mode.is_supervisor() && !issuer.mode.is_supervisor() {
                    return Err((FaultCause::ModeProtection, target));
                }
                if !code.is_multiple_of(4) || code / 4 >= self.config.text_instructions {
                    return Err((FaultCause::CodeBounds, code));
                }
                if self.memory.entry(thread).ready {
                    return Err((FaultCause::NotSpent, target));
                }
                *self.memory.entry_mut(thread) = Entry {
                    code: code / 4,
                    count: fan_in,
                    fan_in,
                    mode: Some(mode),
                    ..Entry::default()
                };
                Ok(Effect::None)
            }
            Operation::SetCount { target, count } => {
                let thread = self.administrable(issuer, target)?;
                let entry = self.memory.entry_mut(thread);
                if entry.mode.is_none() {
                    return Err((FaultCause::MissingEntry, target));
                }
                let count = u8::try_from(count)
                    .ok()
                    .filter(|count| *count > 0)
                    .ok_or((FaultCause::CounterRange, count))?;
                if entry.ready {
                    return Err((FaultCause::NotSpent, target));
                }
                entry.count = count;
                entry.fan_in = count;
                Ok(Effect::None)
            }
            Operation::Rearm => {
                let thread = self.spent_issuer(issuer)?;
                let entry = self.memory.entry_mut(thread);
                entry.count = entry.fan_in;
                Ok(Effect::None)
            }
            Operation::Signal { target } => match self.continuable(issuer, target) {
                Ok(thread) => {
                    self.continue_to(thread);
                    Ok(Effect::None)
                }
                Err((FaultCause::NotArmed, _)) => {
                    self.counters.signals_deferred += 1;
                    Ok(Effect::Deferred)
                }
                Err(refusal) => Err(refusal),
            },
        }
    }

    /// The thread of an entry that is not empty.
    fn present(&self, target: u32) -> Result<ThreadId, (FaultCause, u32)> {
        ThreadId::from_register(target, self.memory.pages())
            .filter(|thread| self.memory.entry(*thread).mode.is_some())
            .ok_or((FaultCause::MissingEntry, target))
    }

    /// Figure 2's rule.
    fn reachable(&self, issuer: &Issuer, thread: ThreadId) -> Result<(), (FaultCause, u32)> {
        let mode = self.memory.entry(thread).mode.expect("the entry is present");
        if issuer.mode.may_continue_to(mode) {
            Ok(())
        } else {
            Err((FaultCause::ModeProtection, thread.number()))
        }
    }

    /// A thread the issuer may continue to and that awaits it.
    fn continuable(&self, issuer: &Issuer, target: u32) -> Result<ThreadId, (FaultCause, u32)> {
        let thread = self.present(target)?;
        self.reachable(issuer, thread)?;
        if self.memory.entry(thread).count == 0 {
            return Err((FaultCause::NotArmed, target));
        }
        Ok(thread)
    }

    /// An entry, empty or not, on a page that the issuer may change.
    fn administrable(&self, issuer: &Issuer, target: u32) -> Result<ThreadId, (FaultCause, u32)> {
        let thread =
            ThreadId::from_register(target, self.memory.pages()).ok_or((FaultCause::MissingEntry, target))?;
        let page = self
            .memory
            .page(thread.page())
            .ok_or((FaultCause::MissingEntry, target))?;
        if page.level == Level::System && !issuer.mode.is_supervisor() {
            return Err((FaultCause::ModeProtection, target));
        }
        Ok(thread)
    }

    /// The issuing thread's own entry, its counter at zero and not ready.
    fn spent_issuer(&self, issuer: &Issuer) -> Result<ThreadId, (FaultCause, u32)> {
        let thread = issuer.thread.expect("only threads act on themselves");
        self.present(thread.number())?;
        let entry = self.memory.entry(thread);
        if entry.count != 0 || entry.ready {
            return Err((FaultCause::NotSpent, thread.number()));
        }
        Ok(thread)
    }

    fn continue_to(&mut self, thread: ThreadId) {
        self.counters.continuations += 1;
        let entry = self.memory.entry_mut(thread);
        entry.count -= 1;
        if entry.count == 0 {
            self.activate(thread);
        }
    }
}

const _: () = assert!(ENTRIES_PER_PAGE == 8, "thread numbers are page * 8 + entry");
