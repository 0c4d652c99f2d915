//! `[link]` and `[uplink]`: where the wire of the card ends.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use sidestep_machine::description::networks::NetworkTable;

use super::{BuildError, Description};
use crate::link::Link;

/// `[link]`: another host with a card. What is not given is as [`Link::GIGABIT`] has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkTable {
    /// The other host's description, relative to this one.
    pub host: PathBuf,
    /// How long a bit is on its way, in nanoseconds.
    pub latency_ns: Option<u64>,
    /// How many bits it takes in a microsecond.
    pub megabits: Option<u64>,
    /// Of so many frames one is lost; 0: none.
    pub loss_one_in: Option<u64>,
    /// What decides which.
    pub seed: Option<u64>,
}

/// Where the wire ends.
#[derive(Clone, Debug)]
pub enum WireEnd {
    /// Nowhere.
    Nowhere,
    /// At the card of the host that this file describes.
    Host(PathBuf, Link),
    /// At a network of this computer.
    Outside(NetworkTable),
}

impl Description {
    /// Where the card's wire ends.
    ///
    /// # Errors
    /// If there is no card, if it ends twice, or if the link cannot be.
    pub fn wire_end(&self, folder: &Path) -> Result<WireEnd, BuildError> {
        let table = match (&self.link, &self.uplink) {
            (None, None) => return Ok(WireEnd::Nowhere),
            (Some(_), Some(_)) => return Err(BuildError::TwoEnds),
            (Some(_), None) => "link",
            (None, Some(_)) => "uplink",
        };
        if self.nic.is_none() {
            return Err(BuildError::NoCard(table));
        }
        if let Some(network) = &self.uplink {
            return Ok(WireEnd::Outside(network.clone()));
        }
        let table = self.link.as_ref().expect("one of the two is there");
        let default = Link::GIGABIT;
        let link = Link {
            latency_ns: table.latency_ns.unwrap_or(default.latency_ns),
            megabits: table.megabits.unwrap_or(default.megabits),
            loss_one_in: table.loss_one_in.unwrap_or(default.loss_one_in),
            seed: table.seed.unwrap_or(default.seed),
        };
        link.check()?;
        Ok(WireEnd::Host(folder.join(&table.host), link))
    }

    /// The number that the host's card has in addresses.
    pub fn card_number(&self) -> Option<u16> {
        self.nic.as_ref().map(|nic| nic.host.unwrap_or(0))
    }
}
