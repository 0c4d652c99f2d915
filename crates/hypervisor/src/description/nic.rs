//! `[nic]`: a card that gives each virtual machine a network interface.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use super::{BuildError, costs_error, table};
use crate::nic::costs::CardCosts;
use crate::nic::{Delivery, NicConfig};

/// `[nic]`: a self-virtualised card. What is not given is as [`NicConfig::new`] has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NicTable {
    /// How guests learn of packets.
    pub delivery: Delivery,
    /// What the card's work costs: the name of a preset, or a file.
    pub costs: Option<String>,
    /// The number of the host in addresses.
    pub host: Option<u16>,
    /// Micro-engines.
    pub engines: Option<usize>,
    /// Descriptors of each ring.
    pub ring_entries: Option<u64>,
    /// Frames that the card holds for an interface whose receive ring is full.
    pub card_frames: Option<usize>,
    /// Frames that wait for an engine.
    pub input_frames: Option<usize>,
    /// Bits of the identifier register.
    pub register_bits: Option<usize>,
    /// The core that gets the master interrupt.
    pub interrupt_core: Option<usize>,
    /// The longest that a packet waits for others, in microseconds.
    pub latency_bound_us: Option<u64>,
    /// How many packets are not kept waiting for more.
    pub batch: Option<u64>,
}

impl NicTable {
    pub(super) fn config(&self, folder: &Path) -> Result<NicConfig, BuildError> {
        let default = NicConfig::new(self.delivery);
        let costs = match &self.costs {
            Some(name) => Arc::new(card_costs(folder, name)?),
            None => default.costs,
        };
        let bound_ns = self
            .latency_bound_us
            .map(|bound_us| bound_us.saturating_mul(1000));
        Ok(NicConfig {
            delivery: self.delivery,
            host: self.host.unwrap_or(default.host),
            engines: self.engines.unwrap_or(default.engines),
            ring_entries: self.ring_entries.unwrap_or(default.ring_entries),
            card_frames: self.card_frames.unwrap_or(default.card_frames),
            input_frames: self.input_frames.unwrap_or(default.input_frames),
            register_bits: self.register_bits.unwrap_or(default.register_bits),
            interrupt_core: self.interrupt_core.unwrap_or(default.interrupt_core),
            latency_bound_ns: bound_ns.unwrap_or(default.latency_bound_ns),
            batch: self.batch.unwrap_or(default.batch),
            costs,
        })
    }
}

/// The table of a preset's name, or of a file.
fn card_costs(folder: &Path, name: &str) -> Result<CardCosts, BuildError> {
    table(folder, name, CardCosts::preset, CardCosts::parse, costs_error)
}
