//! Which virtual processors of a host belong together: as is given, or as detection finds while they run.

use sidestep_gang::CoscheduledSets;
use sidestep_gang::policy::IdleCores;

use super::sidecores::locked;
use super::{Host, HostError};
use crate::virtual_machine::DetectionSettings;

/// Which virtual processors belong together, and what becomes of the cores that they leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coscheduling {
    /// For each virtual machine the sets that were given, by the numbers of its processors; where none were, those that
    /// detection finds, and until then all of its processors as one.
    pub given: Vec<Option<CoscheduledSets>>,
    /// How it is found out who shares memory, if it is.
    pub detection: Option<DetectionSettings>,
    /// What becomes of cores that no set can use.
    pub idle_cores: IdleCores,
}

impl Host {
    /// Says which virtual processors belong together, before it runs, or has that found out while it does.
    ///
    /// # Errors
    /// Sets that name a processor that a virtual machine does not have.
    pub fn coschedule(&mut self, coscheduling: &Coscheduling) -> Result<(), HostError> {
        for (machine, given) in self.machines.iter().zip(&coscheduling.given) {
            let machine = locked(machine);
            let count = machine.processors().len();
            let sets = given.iter().flat_map(|given| given.sets()).flatten();
            if let Some(stranger) = sets.copied().find(|task| task.index() >= count) {
                return Err(HostError::Sets {
                    name: machine.name().to_owned(),
                    processor: stranger.index(),
                    count,
                });
            }
        }
        self.scheduler.coschedule(coscheduling);
        self.detects = coscheduling.detection.is_some();
        if let Some(settings) = coscheduling.detection {
            for machine in &self.machines {
                locked(machine).detect(settings, &self.config.costs);
            }
        }
        Ok(())
    }

    /// Which processors of a virtual machine belong together now, by their numbers: as was given or found, whether the
    /// policy looks at it or not.
    pub fn sets_of(&self, machine: usize) -> &CoscheduledSets {
        self.scheduler.sets_of(machine)
    }

    /// Has detection cut virtual machines into sets, where it is time for that.
    pub(super) fn evaluate(&mut self, cores: usize) {
        if !self.detects {
            return;
        }
        for (index, machine) in self.machines.iter().enumerate() {
            let mut machine = locked(machine);
            if let Some(sets) = machine.evaluate(&self.config.costs, self.time, cores) {
                self.scheduler.find(index, sets);
            }
        }
    }

    /// Has detection take pages away, where it is time for that.
    pub(super) fn sample(&self) {
        if !self.detects {
            return;
        }
        for machine in &self.machines {
            locked(machine).sample(&self.config.costs, self.time);
        }
    }
}
