//! Where faults come from: the whole host's hint faults, or the minor faults of VMMs that offer their guests' memory.

use std::path::PathBuf;
use std::time::Duration;

use super::budget::Prices;
use super::fault::{Faults, Record};
use super::price;
use super::userfault::{self, Guest};
use crate::HostError;
use crate::changed::Changed;
use crate::setting::{self, MEMORY_EVENTS};

/// A source of faults that can be told to bring some, or none.
pub(super) enum Source {
    /// NUMA balancing takes pages away, performance events report who wanted them.
    Hints {
        /// The reports.
        faults: Faults,
        /// The change that makes pages fault; none if they did before: then that is the host's own choice and stays.
        balancing: Option<Changed>,
        /// What the kernel counted when that was last read.
        counted: Counted,
    },
    /// The VMMs make pages fault when asked, and userfaultfd reports who wanted them.
    Guests(Vec<Guest>),
}

/// What the host's kernel has done for NUMA balancing since it was started; zero where it does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// Pages that were taken away and came back.
    hint_faults: u64,
    /// Pages that were taken away.
    scanned: u64,
}

impl Counted {
    fn now() -> Self {
        let text = setting::read(MEMORY_EVENTS.as_ref()).unwrap_or_default();
        let of = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
        };
        Self {
            hint_faults: of("numa_hint_faults "),
            scanned: of("numa_pte_updates "),
        }
    }
}

impl Source {
    pub(super) fn hints(faults: Faults, balancing: Option<Changed>) -> Self {
        Self::Hints {
            faults,
            balancing,
            counted: Counted::now(),
        }
    }

    /// Connects to VMMs, with what a fault costs them.
    pub(super) fn guests(sockets: &[PathBuf], round: Option<Duration>) -> Result<(Self, Prices), HostError> {
        let guests: Result<Vec<Guest>, HostError> = sockets
            .iter()
            .map(|socket| Guest::connect(socket, round))
            .collect();
        let prices = Prices {
            hint_fault_ns: userfault::round_trip_ns().unwrap_or(price::DEAR_ROUND_TRIP_NS),
            report_ns: 0,
            scanned_ns: 0,
        };
        Ok((Self::Guests(guests?), prices))
    }

    /// Takes what was reported since the last time.
    pub(super) fn drain(&mut self, mut take: impl FnMut(Record)) {
        match self {
            Self::Hints { faults, .. } => faults.drain(take),
            Self::Guests(guests) => guests.iter().for_each(|guest| guest.drain(&mut take)),
        }
    }

    /// Brings faults, or none.
    pub(super) fn look(&mut self, is_wanted: bool) -> Result<(), HostError> {
        match self {
            Self::Hints {
                faults, balancing, ..
            } => {
                faults.report(is_wanted);
                match (balancing, is_wanted) {
                    (Some(balancing), true) => balancing.resume(),
                    (Some(balancing), false) => balancing.suspend(),
                    (None, _) => Ok(()),
                }
            }
            Self::Guests(guests) => {
                guests.iter().for_each(|guest| guest.want(is_wanted));
                Ok(())
            }
        }
    }

    /// Faults since the last time that are put down to the watch, and pages taken away for it. Of hint faults these are
    /// all of the host's, but at most so many: while faults are reported it is known how many of them the watched
    /// threads had; in a pause any may be left over. Of userfaultfd all are reported.
    pub(super) fn caused(&mut self, most: u64) -> (u64, u64) {
        match self {
            Self::Hints {
                balancing: Some(_),
                counted,
                ..
            } if most > 0 => {
                let before = std::mem::replace(counted, Counted::now());
                let of = |now: u64, before: u64| now.saturating_sub(before);
                (
                    of(counted.hint_faults, before.hint_faults).min(most),
                    of(counted.scanned, before.scanned),
                )
            }
            Self::Hints { .. } => (0, 0),
            Self::Guests(_) if most == u64::MAX => (0, 0),
            Self::Guests(_) => (most, 0),
        }
    }

    /// Whether an address is memory whose sharing is looked for: all of a process's own, or what a VMM offers.
    pub(super) fn sees(&self, process: i32, address: u64) -> bool {
        match self {
            Self::Hints { .. } => true,
            Self::Guests(guests) => guests
                .iter()
                .any(|guest| guest.process() == process && guest.holds(address)),
        }
    }

    /// Whether pages are taken away in rounds of the kernel's own, as it sees fit.
    pub(super) fn has_rounds(&self) -> bool {
        matches!(self, Self::Hints { .. })
    }

    /// What threads of the source's own have run so far.
    pub(super) fn ran_ns(&self) -> u64 {
        match self {
            Self::Hints { .. } => 0,
            Self::Guests(guests) => guests.iter().map(Guest::ran_ns).sum(),
        }
    }

    /// The VMMs that are still there, if threads must be looked for; none where the kernel tells of them.
    pub(super) fn processes_to_look_at(&self) -> Option<Vec<i32>> {
        let Self::Guests(guests) = self else { return None };
        let living = guests.iter().filter(|guest| !guest.is_gone());
        Some(living.map(Guest::process).collect())
    }
}
