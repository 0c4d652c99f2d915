//! How many cores are sidecores: a pure function of the load of the last epoch.
//!
//! A sidecore is worth its core if the exits that it saves cost more than what the core would do for guests. While some
//! cores have no virtual processor to run, little saving is enough; when all are wanted, the saving must exceed a core.
//! A sidecore that has become worth less than half of what made it one goes back.

/// What happened in the last epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// The epoch's length.
    pub cycles: u64,
    /// The host's cores.
    pub cores: usize,
    /// Virtual processors that could use a core.
    pub runnable: usize,
    /// Requests, by exit and by sidecall.
    pub requests: u64,
    /// The same since the start.
    pub requests_total: u64,
    /// Cycles that sidecores served.
    pub serving_cycles: u64,
    /// What an exit costs.
    pub round_trip_cycles: u64,
    /// What a sidecall costs its guest beside the service.
    pub sidecall_cycles: u64,
}

/// How many cores are sidecores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SidecorePolicy {
    /// Always so many.
    Fixed(usize),
    /// As the load asks for, at most so many.
    Dynamic {
        /// The most.
        most: usize,
    },
}

/// With a core to spare, sidecalls must save this part of a core's time: one of so many.
const SPARE_PART: u64 = 50;
/// A sidecore that serves more than this of a thousand cycles has a second one beside it.
const BUSY_PER_MILLE: u64 = 700;

impl SidecorePolicy {
    /// The most sidecores that there can be.
    pub fn most(self) -> usize {
        match self {
            SidecorePolicy::Fixed(count) => count,
            SidecorePolicy::Dynamic { most } => most,
        }
    }

    /// How many there are before any load was measured.
    pub fn first(self) -> usize {
        match self {
            SidecorePolicy::Fixed(count) => count,
            SidecorePolicy::Dynamic { .. } => 0,
        }
    }

    /// How many there are to be, with `now` sidecores of `cores` cores.
    pub fn decide(self, load: &Load, now: usize, cores: usize) -> usize {
        let SidecorePolicy::Dynamic { most } = self else {
            return self.first();
        };
        if load.cycles == 0 {
            return now;
        }
        let saved = load.requests * load.round_trip_cycles.saturating_sub(load.sidecall_cycles);
        let needed = |spare: bool| {
            if spare {
                load.cycles / SPARE_PART
            } else {
                load.cycles
            }
        };
        let spare_with = |sidecores: usize| load.runnable + sidecores <= cores;
        match now {
            0 if most > 0 && saved >= needed(spare_with(1)) => 1,
            0 => 0,
            _ if saved < needed(spare_with(now)) / 2 => now - 1,
            _ => {
                let busy = load.serving_cycles * 1000 / (load.cycles * now as u64).max(1);
                let more = busy > BUSY_PER_MILLE && now < most && spare_with(now + 1);
                if more { now + 1 } else { now }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: SidecorePolicy = SidecorePolicy::Dynamic { most: 2 };

    fn load(requests: u64, runnable: usize) -> Load {
        Load {
            cycles: 100_000,
            cores: 4,
            runnable,
            requests,
            round_trip_cycles: 1000,
            sidecall_cycles: 200,
            ..Load::default()
        }
    }

    #[test]
    fn a_spare_core_serves_when_that_saves_a_little_and_a_wanted_one_when_it_saves_a_core() {
        assert_eq!(POLICY.decide(&load(0, 2), 0, 4), 0);
        assert_eq!(POLICY.decide(&load(3, 2), 0, 4), 1, "2400 cycles of 100000");
        assert_eq!(POLICY.decide(&load(3, 4), 0, 4), 0, "every core is wanted");
        assert_eq!(POLICY.decide(&load(130, 4), 0, 4), 1);
    }

    #[test]
    fn a_sidecore_goes_back_and_does_not_flap() {
        assert_eq!(
            POLICY.decide(&load(2, 2), 1, 4),
            1,
            "less than would make one, more than half"
        );
        assert_eq!(POLICY.decide(&load(1, 2), 1, 4), 0);
        let busy = Load {
            serving_cycles: 90_000,
            ..load(90, 2)
        };
        assert_eq!(POLICY.decide(&busy, 1, 4), 2);
        assert_eq!(POLICY.decide(&busy, 2, 4), 2);
        assert_eq!(SidecorePolicy::Fixed(1).decide(&load(0, 4), 1, 4), 1);
    }
}
