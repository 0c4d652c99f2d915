//! What transitions cost on a host, in cycles of its cores, as a table that is read from TOML.
//!
//! ```toml
//! name = "a machine"
//! clock-mhz = 3000
//! instruction-millicycles = 1000
//!
//! [costs.exit]
//! cycles = 1931
//! source = "where the figure comes from"
//! # ... one table for each cost
//! ```
//!
//! Every cost must be there and name its source: a table with a gap or without sources is refused.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sidestep_machine::description::{self, DescriptionError};
use thiserror::Error;

macro_rules! costs {
    ($($(#[$doc:meta])* $name:ident = $key:literal, $text:literal;)+) => {
        /// A transition, or a piece of the monitor's work, that costs time.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Cost {
            $($(#[$doc])* $name,)+
        }

        impl Cost {
            /// Every cost, in the order of the table.
            pub const ALL: &'static [Cost] = &[$(Cost::$name,)+];

            /// Its key in a file.
            pub fn key(self) -> &'static str {
                match self { $(Cost::$name => $key,)+ }
            }

            /// What it is, in a few words.
            pub fn description(self) -> &'static str {
                match self { $(Cost::$name => $text,)+ }
            }
        }
    };
}

costs! {
    /// From the guest's instruction to the monitor's first.
    Exit = "exit", "leaving the guest for the monitor";
    /// From the monitor's last instruction to the guest's next.
    Entry = "entry", "entering the guest";
    /// Finding out why the guest was left, and choosing what handles it.
    Dispatch = "dispatch", "finding the handler of an exit";
    /// Doing one privileged instruction on the virtual state.
    Emulate = "emulate", "emulating a privileged instruction";
    /// A privileged instruction that hardware or firmware does on the virtual state without an exit.
    Accelerated = "accelerated", "a privileged instruction done without an exit";
    /// One cache line that the monitor touches in memory that its core caches.
    CacheLine = "cache-line", "touching a cache line of a table";
    /// One modified cache line from another core.
    Transfer = "transfer", "fetching a modified cache line from another core";
    /// Looking at one request slot and finding nothing.
    Poll = "poll", "a look at an idle request page";
    /// From the store that ends an energy-aware wait to the first instruction.
    Wake = "wake", "leaving an energy-aware wait";
    /// From sending an interrupt to its arrival at another core.
    Interrupt = "interrupt", "an interrupt from core to core";
    /// Purging one page from the core's own translations.
    Purge = "purge", "purging a page from the own TLB";
    /// Purging one page from every core's translations by broadcast, until it is complete.
    Broadcast = "broadcast", "purging a page from every TLB by broadcast";
    /// Noting an access for the detection of sharing: the detector's entry, and the page's present bit given back.
    SampledPage = "sampled-page", "noting an access to a sampled page and giving it back";
    /// Replacing the virtual processor on a core by another.
    Switch = "switch", "changing the virtual processor of a core";
    /// From a device's interrupt until a core takes it.
    DeviceInterrupt = "device-interrupt", "an interrupt from a device to a core";
    /// Reading a register of a device over the I/O bus.
    RegisterRead = "register-read", "reading a register of a device";
    /// Taking an interrupt that was posted, in the guest, without an exit.
    Posted = "posted", "taking a posted interrupt without an exit";
    /// From a block request to its completion.
    BlockDevice = "block-device", "a request of the block device";
    /// From sending a packet to its arrival.
    Network = "network", "a packet on its way";
}

/// The presets: name on the command line and contents.
pub const PRESETS: &[(&str, &str)] = &[
    ("pentium-d", include_str!("presets/pentium-d.toml")),
    ("xeon", include_str!("presets/xeon.toml")),
    ("itanium2-vti", include_str!("presets/itanium2-vti.toml")),
    ("itanium2", include_str!("presets/itanium2.toml")),
];

/// One entry of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Core cycles.
    pub cycles: u64,
    /// Where the figure comes from.
    pub source: String,
}

/// What transitions cost on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HostCosts {
    /// The machine.
    pub name: String,
    /// Core clock in MHz.
    pub clock_mhz: u64,
    /// Core cycles that 1000 guest instructions take, where no pipeline is modelled.
    pub instruction_millicycles: u64,
    costs: BTreeMap<String, Entry>,
    /// The cycles of each cost in the order of [`Cost::ALL`], once the table was checked: every exit asks for several.
    #[serde(skip)]
    cycles: Vec<u64>,
}

/// Why a table of costs cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CostsError {
    /// Not the structure of a table of costs.
    #[error("line {}, column {}: {}", .0.line, .0.column, .0.message)]
    Syntax(Box<DescriptionError>),
    /// A cost is missing.
    #[error("`costs.{key}` is missing: {description}")]
    Missing {
        /// Its key.
        key: &'static str,
        /// What it is.
        description: &'static str,
    },
    /// A key that names no cost.
    #[error("`costs.{key}` is no cost; there are {known}")]
    Unknown {
        /// The key.
        key: String,
        /// Every key.
        known: String,
    },
    /// A cost without a source.
    #[error("`costs.{key}` names no source: where does the figure come from?")]
    NoSource {
        /// Its key.
        key: String,
    },
    /// A number that makes no sense.
    #[error("`{key}` is {value}: {range} is possible")]
    OutOfRange {
        /// Its key.
        key: String,
        /// Its value.
        value: u64,
        /// What it may be.
        range: &'static str,
    },
    /// A preset that does not exist.
    #[error("there is no preset `{name}`; there are {known}")]
    NoPreset {
        /// Its name.
        name: String,
        /// Every preset.
        known: String,
    },
}

/// The dearest cost that is accepted: an hour at 1 GHz is a mistake.
const CYCLES_MAX: u64 = 1 << 40;

impl HostCosts {
    /// A table that was put together by a program.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn new(
        name: &str,
        clock_mhz: u64,
        instruction_millicycles: u64,
        costs: impl IntoIterator<Item = (Cost, u64, String)>,
    ) -> Result<HostCosts, CostsError> {
        let costs = costs
            .into_iter()
            .map(|(cost, cycles, source)| (cost.key().to_owned(), Entry { cycles, source }))
            .collect();
        HostCosts {
            name: name.to_owned(),
            clock_mhz,
            instruction_millicycles,
            costs,
            cycles: Vec::new(),
        }
        .checked()
    }

    /// Reads a table.
    ///
    /// # Errors
    /// What is missing, unknown, without source or out of range, by its key.
    pub fn parse(text: &str) -> Result<HostCosts, CostsError> {
        let costs: HostCosts =
            description::parse("", text).map_err(|error| CostsError::Syntax(Box::new(error)))?;
        costs.checked()
    }

    /// The preset of this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn preset(name: &str) -> Result<HostCosts, CostsError> {
        HostCosts::parse(find_preset(PRESETS, name)?)
    }

    fn checked(mut self) -> Result<HostCosts, CostsError> {
        let known: Vec<_> = (Cost::ALL.iter())
            .map(|cost| (cost.key(), cost.description()))
            .collect();
        check_entries(&self.costs, &known)?;
        in_range("clock-mhz", self.clock_mhz, 1, 1_000_000, "1 to 1000000")?;
        let milli = self.instruction_millicycles;
        in_range("instruction-millicycles", milli, 1, 1_000_000, "1 to 1000000")?;
        self.cycles = Cost::ALL.iter().map(|&cost| self.entry(cost).cycles).collect();
        Ok(self)
    }

    /// The cycles of a cost.
    pub fn cycles(&self, cost: Cost) -> u64 {
        self.cycles[cost as usize]
    }

    /// A cost with its source.
    pub fn entry(&self, cost: Cost) -> &Entry {
        self.costs
            .get(cost.key())
            .expect("a table that was checked has every cost")
    }

    /// The same table with one cost replaced, for a sweep.
    ///
    /// # Errors
    /// A cost out of range.
    pub fn with(mut self, cost: Cost, cycles: u64, source: &str) -> Result<HostCosts, CostsError> {
        let entry = Entry {
            cycles,
            source: source.to_owned(),
        };
        self.costs.insert(cost.key().to_owned(), entry);
        self.checked()
    }

    /// Leaving the guest, finding the handler and entering again, without what the handler does.
    pub fn round_trip(&self) -> u64 {
        self.cycles(Cost::Exit) + self.cycles(Cost::Dispatch) + self.cycles(Cost::Entry)
    }

    /// How many guest instructions end in the last of so many cycles, at the most.
    pub fn instructions_in(&self, cycles: u64) -> u64 {
        let instructions = (u128::from(cycles) * 1000).div_ceil(u128::from(self.instruction_millicycles));
        u64::try_from(instructions).unwrap_or(u64::MAX)
    }

    /// The cycles of so many guest instructions, rounded down.
    pub fn instructions(&self, count: u64) -> u64 {
        (u128::from(count) * u128::from(self.instruction_millicycles) / 1000) as u64
    }

    /// The nanoseconds of so many cycles, rounded down.
    pub fn nanoseconds(&self, cycles: u64) -> u64 {
        (u128::from(cycles) * 1000 / u128::from(self.clock_mhz)) as u64
    }

    /// The cycles in so many nanoseconds, rounded down; the largest number if there are more.
    pub fn cycles_in(&self, nanoseconds: u64) -> u64 {
        u64::try_from(u128::from(nanoseconds) * u128::from(self.clock_mhz) / 1000).unwrap_or(u64::MAX)
    }

    /// The table as [`parse`](Self::parse) reads it, costs in the order of [`Cost::ALL`].
    pub fn to_toml(&self) -> String {
        let mut text = format!(
            "name = {}\nclock-mhz = {}\ninstruction-millicycles = {}\n",
            quoted(&self.name),
            self.clock_mhz,
            self.instruction_millicycles
        );
        for cost in Cost::ALL {
            let entry = self.entry(*cost);
            write!(
                text,
                "\n# {}\n[costs.{}]\ncycles = {}\nsource = {}\n",
                cost.description(),
                cost.key(),
                entry.cycles,
                quoted(&entry.source)
            )
            .expect("a string takes everything");
        }
        text
    }
}

/// The contents of the preset of a name.
pub(crate) fn find_preset(
    presets: &[(&'static str, &'static str)],
    name: &str,
) -> Result<&'static str, CostsError> {
    let found = presets.iter().find(|(preset, _)| *preset == name);
    found.map(|(_, text)| *text).ok_or_else(|| CostsError::NoPreset {
        name: name.to_owned(),
        known: presets
            .iter()
            .map(|(name, _)| *name)
            .collect::<Vec<_>>()
            .join(", "),
    })
}

/// Checks that a table has every cost of which key and description are known and no other, each with its source.
pub(crate) fn check_entries(
    costs: &BTreeMap<String, Entry>,
    known: &[(&'static str, &'static str)],
) -> Result<(), CostsError> {
    if let Some((key, description)) = known.iter().find(|(key, _)| !costs.contains_key(*key)) {
        return Err(CostsError::Missing { key, description });
    }
    for (key, entry) in costs {
        if !known.iter().any(|(known, _)| known == key) {
            return Err(CostsError::Unknown {
                key: key.clone(),
                known: known.iter().map(|(key, _)| *key).collect::<Vec<_>>().join(", "),
            });
        }
        if entry.source.trim().is_empty() {
            return Err(CostsError::NoSource { key: key.clone() });
        }
        in_range(
            &format!("costs.{key}"),
            entry.cycles,
            0,
            CYCLES_MAX,
            "0 to 2^40 cycles",
        )?;
    }
    Ok(())
}

pub(crate) fn in_range(
    key: &str,
    value: u64,
    least: u64,
    most: u64,
    range: &'static str,
) -> Result<(), CostsError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(CostsError::OutOfRange {
        key: key.to_owned(),
        value,
        range,
    })
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_complete_and_survives_writing() {
        for (name, _) in PRESETS {
            let costs = HostCosts::preset(name).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(HostCosts::parse(&costs.to_toml()), Ok(costs), "{name}");
        }
        let error = HostCosts::preset("pentium").expect_err("no such preset");
        assert!(error.to_string().contains("pentium-d"));
    }

    #[test]
    fn a_table_with_a_gap_a_stranger_or_without_source_is_refused() {
        let text = HostCosts::preset("pentium-d").expect("a preset").to_toml();
        let error = |text: &str| HostCosts::parse(text).expect_err("a bad table").to_string();
        assert!(error(&text.replace("[costs.poll]", "[costs.pol]")).contains("`costs.poll` is missing"));
        assert!(
            error(&format!("{text}\n[costs.exits]\ncycles = 1\nsource = \"x\""))
                .contains("`costs.exits` is no cost")
        );
        assert!(error(&text.replace("clock-mhz = 3000", "clock-mhz = 0")).contains("`clock-mhz` is 0"));
        let blank: String = (text.lines())
            .map(|line| {
                if line.starts_with("source") {
                    "source = \"\"\n".to_owned()
                } else {
                    format!("{line}\n")
                }
            })
            .collect();
        assert!(error(&blank).contains("names no source"));
    }
}
