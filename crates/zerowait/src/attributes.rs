//! What is said about a thread when it is declared.

use crate::mode::Mode;

/// The order of what happens at one moment of virtual time, first to last.
///
/// Events are ordered by (time, phase, sequence number); a phase is a name for a reason to be first, not a
/// number to be tuned. Cores in real time ignore it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// A core becomes free. The executor's own; a thread declared with it goes first.
    Free,
    /// A device reports, a timer expires: what happened outside is known before anybody acts.
    Device,
    /// Ordinary threads.
    #[default]
    Run,
    /// Threads that continued to themselves to wait for something: they see what the others did.
    Retry,
    /// Threads that look at the result of the moment.
    Observe,
}

impl Phase {
    /// How many phases there are.
    pub(crate) const COUNT: usize = 5;

    /// The phase's name.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Free => "free",
            Phase::Device => "device",
            Phase::Run => "run",
            Phase::Retry => "retry",
            Phase::Observe => "observe",
        }
    }
}

/// A thread's mode, and where and when it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    pub(crate) mode: Mode,
    pub(crate) core: Option<u16>,
    pub(crate) partition: u16,
    pub(crate) phase: Phase,
}

impl Attributes {
    /// A thread of this mode that any core may run, in partition 0, in the phase of ordinary threads.
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            core: None,
            partition: 0,
            phase: Phase::Run,
        }
    }

    /// Binds the thread to core `core` of the executor (in virtual time: of its partition).
    pub fn on_core(mut self, core: u16) -> Self {
        self.core = Some(core);
        self
    }

    /// Puts the thread into a partition of virtual time.
    ///
    /// Partitions are what several host threads simulate side by side. A gate is entered and a join is
    /// activated only from its own partition; other continuations may cross and then take at least the
    /// executor's lookahead.
    pub fn in_partition(mut self, partition: u16) -> Self {
        self.partition = partition;
        self
    }

    /// Gives the thread its place among the events of one moment.
    pub fn in_phase(mut self, phase: Phase) -> Self {
        self.phase = phase;
        self
    }
}

impl From<Mode> for Attributes {
    fn from(mode: Mode) -> Self {
        Self::new(mode)
    }
}
