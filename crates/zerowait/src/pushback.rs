//! How a full or broken thing says no: the value comes back with the reason.

use std::fmt;

/// Why something was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Reason {
    /// The queue of the core that would run it is full.
    #[error("the core's queue is full")]
    QueueFull,
    /// The gate is taken, and its policy is lock-or-retry.
    #[error("the gate is taken")]
    GateBusy,
    /// The gate's software queue is full.
    #[error("the gate's queue is full")]
    GateFull,
    /// The gate's body panicked earlier.
    #[error("the gate is out of order because its thread panicked")]
    GatePoisoned,
    /// Every activation of the join is in use.
    #[error("the join has no free activation")]
    ActivationsExhausted,
    /// As many timers as the executor holds are pending.
    #[error("the timer queue is full")]
    TimersFull,
    /// As many device operations as the executor holds are in flight.
    #[error("too many device operations are in flight")]
    DeviceFull,
    /// The executor was started without devices, or has no model of them.
    #[error("this executor has no devices")]
    NoDevices,
    /// The executor is shutting down.
    #[error("the executor is shutting down")]
    Stopping,
}

/// A value that was not accepted, handed back to its sender.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pushback<T> {
    /// Why.
    pub reason: Reason,
    /// What was to be sent.
    pub value: T,
}

impl<T> Pushback<T> {
    pub(crate) fn new(reason: Reason, value: T) -> Self {
        Self { reason, value }
    }
}

impl<T> fmt::Debug for Pushback<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pushback")
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Pushback<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<T> std::error::Error for Pushback<T> {}
