//! Whether the thread that does the devices' work polls for it: then it is a sidecore of the machine.
//!
//! A processor that notifies a device leaves its request on the timeline and goes on. With the host's clock a thread
//! does what is there. Asleep it must be woken, by a system call of the processor and the kernel's scheduler; polling
//! it sees the request at once, and takes a core.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How the thread waits for work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sidecore {
    /// It sleeps.
    #[default]
    None,
    /// It polls: a core is its own.
    Always,
    /// It polls where nobody else wants the core, as long after its last work as being woken would take, and sleeps
    /// then.
    Dynamic,
}

/// What a wake-up of a thread takes, by order of magnitude: 50 to 120 microseconds where the host is itself a virtual
/// machine. Who polls as long as that before it sleeps never loses more than half.
pub const WAKING: Duration = Duration::from_micros(100);

/// Who polls and finds that so much time passed between two looks was not running: somebody else had the core.
pub const LOSS: Duration = Duration::from_micros(500);
/// How long the core is left to others then: a hundred times a scheduler's slice of some milliseconds, so that polling
/// takes a hundredth from them at most.
pub const YIELDED: Duration = Duration::from_millis(300);

/// How the host and the machine stand.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// Since work was done.
    pub since_work: Duration,
    /// Until the next work that has a time, if there is any.
    pub until_work: Option<Duration>,
    /// Processors that run, or could.
    pub running: usize,
    /// Cores of the host that this process may use.
    pub cores: usize,
    /// Since somebody else had the core while the thread polled, if that ever was.
    pub since_loss: Option<Duration>,
}

impl Sidecore {
    /// Whether the thread goes on polling.
    pub fn polls(self, standing: &Standing) -> bool {
        match self {
            Sidecore::None => false,
            Sidecore::Always => true,
            Sidecore::Dynamic => {
                let is_soon = standing.until_work.is_some_and(|time| time < WAKING);
                let is_wanted = standing.since_loss.is_some_and(|time| time < YIELDED);
                !is_wanted && standing.running < standing.cores && (is_soon || standing.since_work < WAKING)
            }
        }
    }
}

/// How often the thread waited for work, in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Work that was found by polling.
    pub polled: u64,
    /// Times that it slept.
    pub slept: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANDING: Standing = Standing {
        since_work: Duration::from_micros(10),
        until_work: None,
        running: 1,
        cores: 2,
        since_loss: None,
    };

    #[test]
    fn a_dynamic_one_polls_while_work_comes_and_a_core_is_free() {
        assert!(Sidecore::Dynamic.polls(&STANDING));
        let late = Standing {
            since_work: Duration::from_millis(1),
            ..STANDING
        };
        assert!(!Sidecore::Dynamic.polls(&late));
        let soon = Standing {
            until_work: Some(Duration::from_micros(10)),
            ..late
        };
        assert!(Sidecore::Dynamic.polls(&soon));
        let crowded = Standing {
            running: 2,
            ..STANDING
        };
        assert!(!Sidecore::Dynamic.polls(&crowded));
        let lost = Standing {
            since_loss: Some(Duration::from_millis(3)),
            ..STANDING
        };
        assert!(!Sidecore::Dynamic.polls(&lost));
        assert!(Sidecore::Always.polls(&crowded) && !Sidecore::None.polls(&STANDING));
    }
}
