//! Cores that share caches, memory and execution units, as the host sees them.

use super::sidecores::locked;
use super::{Host, HostError};
use crate::contention::{Contended, Contention, ContentionCounts, ContentionError, Hierarchy};
use crate::virtual_machine::Activity;

impl Host {
    /// Has the cores share what a hierarchy says, before the host runs. The policies place sets by its topology.
    ///
    /// # Errors
    /// A hierarchy with another number of hardware threads, or cores that are modelled already.
    pub fn contend(&mut self, contention: &Contention) -> Result<(), HostError> {
        if self.config.core_model.is_some() {
            return Err(ContentionError::TwoModels.into());
        }
        let contended = Contended::new(
            contention,
            self.config.cores,
            self.machines.len(),
            &self.config.costs,
        )?;
        self.cores = contended.cores().into_iter().map(Some).collect();
        self.scheduler.place_by(contended.hierarchy().topology());
        self.contended = Some(contended);
        Ok(())
    }

    /// What the cores share, if that is modelled, and what that has cost each so far.
    pub fn contention(&self) -> Option<(&Hierarchy, Vec<ContentionCounts>)> {
        let contended = self.contended.as_ref()?;
        Some((contended.hierarchy(), contended.counts()))
    }

    /// Decides what contention costs in the epoch that begins, now that virtual processors have their cores.
    pub(super) fn contend_in_epoch(&mut self) {
        let Some(contended) = &mut self.contended else {
            return;
        };
        let holders = self.scheduler.holders(self.config.cores);
        let executes = |holder: &Option<(usize, usize)>| {
            holder.is_some_and(|(machine, processor)| {
                let machine = locked(&self.machines[machine]);
                let activity = machine.processors()[processor].activity();
                machine.exit_code().is_none() && matches!(activity, Activity::Running | Activity::Polling)
            })
        };
        let executing: Vec<bool> = holders.iter().map(executes).collect();
        contended.begin(holders, &executing);
    }
}
