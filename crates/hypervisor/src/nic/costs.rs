//! What the card's work costs, in cycles of its micro-engines, as a table that is read from TOML.
//!
//! It is kept as strictly as a [host's table](crate::costs): every cost is there and names its source.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sidestep_machine::description;

use crate::costs::{CostsError, Entry, check_entries, find_preset, in_range};

macro_rules! card_costs {
    ($($(#[$doc:meta])* $name:ident = $key:literal, $text:literal;)+) => {
        /// A piece of the card's work that takes time.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum CardCost {
            $($(#[$doc])* $name,)+
        }

        impl CardCost {
            /// Key and description of every cost, in the order of the table.
            const ALL: &'static [(&'static str, &'static str)] = &[$(($key, $text),)+];

            /// Its key in a file.
            pub fn key(self) -> &'static str {
                match self { $(CardCost::$name => $key,)+ }
            }
        }
    };
}

card_costs! {
    /// Looking whether one send ring has more frames.
    Poll = "poll", "a look at a send ring";
    /// From a guest's store to the first look that can see it.
    Notice = "notice", "a guest's store on its way to the card";
    /// Reading a descriptor from the host's memory.
    Descriptor = "descriptor", "reading a descriptor";
    /// Headers, the interface that they name, its state.
    Packet = "packet", "what is done for a packet of any size";
    /// Moving 64 bytes between the card and the host's memory.
    Line = "line", "moving 64 bytes over the I/O bus";
    /// From the end of the card's write until the host's cores can see it.
    Write = "write", "a write on its way to the host's memory";
    /// Setting a bit of the identifier register.
    Register = "register", "setting a bit of the identifier register";
    /// Naming a vector to the host, or marking it as posted.
    Message = "message", "writing an interrupt as a message";
    /// Dropping a packet for which there is no room.
    Drop = "drop", "dropping a packet";
}

/// The presets: name and contents.
pub const PRESETS: &[(&str, &str)] = &[("ixp2400", include_str!("../presets/ixp2400.toml"))];

/// What a card's work costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CardCosts {
    /// The card.
    pub name: String,
    /// The clock of its engines in MHz.
    pub clock_mhz: u64,
    costs: BTreeMap<String, Entry>,
}

impl CardCosts {
    /// Reads a table.
    ///
    /// # Errors
    /// What is missing, unknown, without source or out of range, by its key.
    pub fn parse(text: &str) -> Result<CardCosts, CostsError> {
        let costs: CardCosts =
            description::parse("", text).map_err(|error| CostsError::Syntax(Box::new(error)))?;
        check_entries(&costs.costs, CardCost::ALL)?;
        in_range("clock-mhz", costs.clock_mhz, 1, 1_000_000, "1 to 1000000")?;
        Ok(costs)
    }

    /// The preset of this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn preset(name: &str) -> Result<CardCosts, CostsError> {
        CardCosts::parse(find_preset(PRESETS, name)?)
    }

    /// A cost in cycles of a host whose clock has so many MHz, rounded up.
    pub fn host_cycles(&self, cost: CardCost, host_mhz: u64) -> u64 {
        let entry = self
            .costs
            .get(cost.key())
            .expect("a table that was checked has every cost");
        let cycles = (u128::from(entry.cycles) * u128::from(host_mhz)).div_ceil(u128::from(self.clock_mhz));
        u64::try_from(cycles).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_complete_and_a_gap_is_refused() {
        for (name, text) in PRESETS {
            let costs = CardCosts::preset(name).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(costs.host_cycles(CardCost::Packet, 2800) > 0);
            let error = |text: &str| CardCosts::parse(text).expect_err("a bad table").to_string();
            assert!(error(&text.replace("[costs.poll]", "[costs.pol]")).contains("`costs.poll` is missing"));
            let stopped = text.replace("clock-mhz = 600", "clock-mhz = 0");
            assert!(error(&stopped).contains("`clock-mhz` is 0"));
        }
        let error = CardCosts::preset("ixp").expect_err("no such preset");
        assert!(error.to_string().contains("ixp2400"));
    }

    #[test]
    fn engine_cycles_become_the_hosts() {
        let costs = CardCosts::preset("ixp2400").expect("a preset");
        let of = |mhz| costs.host_cycles(CardCost::Line, mhz);
        assert_eq!(of(2 * costs.clock_mhz), 2 * of(costs.clock_mhz));
    }
}
