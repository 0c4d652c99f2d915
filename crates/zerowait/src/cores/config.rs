//! How to run a program on cores, and what can be wrong with that.

use std::time::Duration;

/// The most cores that an executor can have at a time.
pub const CORES_MAX: usize = 64;

/// What a core does when it has no work: look again and again, look now and then, sleep.
///
/// Each step wastes less of the processor than the one before and takes longer to end; the
/// [report](crate::CoreReport::wake_latency) says how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdlePolicy {
    /// How long to look without a pause.
    pub spin: Duration,
    /// How long to look with pauses of up to a microsecond, light sleep (`umwait`) where the processor has
    /// it.
    pub pause: Duration,
    /// Whether to sleep after that; a core that owns its processor may rather go on pausing.
    pub sleep: bool,
}

impl IdlePolicy {
    /// For cores that share their processors with others: sleep soon.
    pub const SHARED: IdlePolicy = IdlePolicy {
        spin: Duration::from_micros(5),
        pause: Duration::from_micros(50),
        sleep: true,
    };

    /// Whether a core without work goes to sleep without looking again.
    pub(super) fn sleeps_at_once(&self) -> bool {
        self.sleep && self.spin.is_zero() && self.pause.is_zero()
    }
}

/// Which of the kernel's interfaces device operations go through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Devices {
    /// None: operations are refused, and sleep is cheaper.
    #[default]
    Off,
    /// io_uring where it is permitted, else readiness.
    Automatic,
    /// io_uring, or no start.
    IoUring,
    /// Readiness (epoll), with a helper thread for files.
    Readiness,
}

/// The cores and their limits. Everything is allocated at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How many cores start.
    pub cores: usize,
    /// How many may take part at once, with those that join later; up to [`CORES_MAX`].
    pub cores_max: usize,
    /// Whether each core is bound to a processor, in the order of the processors that the process may use.
    /// More cores than processors share them in turn.
    pub pin: bool,
    /// How many continuations a core queues for itself before it refuses; above half of that it takes the
    /// newest first.
    pub queue_capacity: usize,
    /// How many continuations others may have queued for a core.
    pub inbox_capacity: usize,
    /// How many timers a core holds.
    pub timers: usize,
    /// What idle cores do.
    pub idle: IdlePolicy,
    /// One continuation in this many is timed; 0 times none, 1 all.
    pub sampling: u32,
    /// How many waiting entries a gate serves in one go before others have their turn.
    pub gate_batch: u32,
    /// Whether a core with much to do hands some over to an idle one.
    pub sharing: bool,
    /// Device operations.
    pub devices: Devices,
    /// How many operations a core may have in flight.
    pub operations: usize,
    /// Device buffers of the executor.
    pub buffers: usize,
    /// Bytes in a device buffer.
    pub buffer_size: usize,
}

impl Default for Config {
    fn default() -> Self {
        let cores = super::processor::available().len().clamp(1, CORES_MAX);
        Self {
            cores,
            cores_max: cores,
            pin: true,
            queue_capacity: 1 << 14,
            inbox_capacity: 1 << 12,
            timers: 1 << 12,
            idle: IdlePolicy::SHARED,
            sampling: 64,
            gate_batch: 16,
            sharing: true,
            devices: Devices::Off,
            operations: 1 << 10,
            buffers: 1 << 10,
            buffer_size: 1 << 12,
        }
    }
}

/// Why an executor, or one more core, did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A number is outside its range.
    #[error("{what} is {value}: {least} to {most} is possible")]
    OutOfRange {
        /// Which number.
        what: &'static str,
        /// Its value.
        value: usize,
        /// The least it may be.
        least: usize,
        /// The most it may be.
        most: usize,
    },
    /// A thread is bound to a core that does not start.
    #[error("thread `{thread}` is bound to core {core}, but only {cores} cores start")]
    NoSuchCore {
        /// The thread.
        thread: String,
        /// Its core.
        core: u16,
        /// How many cores start.
        cores: usize,
    },
    /// As many cores as may take part do so.
    #[error("all {cores_max} cores that this executor may have take part already")]
    NoFreeCore {
        /// The most cores.
        cores_max: usize,
    },
    /// The host gave no thread.
    #[error("no host thread could be started for core {core}")]
    Thread {
        /// The core.
        core: usize,
        /// What the host said.
        source: std::io::Error,
    },
    /// The host did not bind the thread to its processor.
    #[error("core {core} could not be bound to processor {processor}")]
    Pin {
        /// The core.
        core: usize,
        /// The processor.
        processor: usize,
        /// What the host said.
        source: std::io::Error,
    },
    /// The kernel's device interface is not to be had.
    #[error("core {core} has no device interface ({interface})")]
    Devices {
        /// The core.
        core: usize,
        /// Which interface was asked for.
        interface: &'static str,
        /// What the host said.
        source: std::io::Error,
    },
}

/// Why a core could not leave.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaveError {
    /// It does not take part.
    #[error("core {core} does not take part")]
    NotActive {
        /// The core.
        core: u16,
    },
    /// It is the last one.
    #[error("core {core} is the last core: shut the executor down instead")]
    Last {
        /// The core.
        core: u16,
    },
    /// A thread is bound to it.
    #[error("core {core} cannot leave: thread `{thread}` is bound to it")]
    Bound {
        /// The core.
        core: u16,
        /// The thread.
        thread: String,
    },
}
