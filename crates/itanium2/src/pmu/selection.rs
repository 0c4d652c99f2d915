//! What can be sampled, by name: every counter, and single events by what the event address registers select of them.
//!
//! The names are those of the processor's events, and libpfm's for what an event address register selects:
//! `DATA_EAR_CACHE_LAT64` are loads of 64 cycles or more. `DATA_EAR_EVENTS` alone stands for loads of 4 cycles or more,
//! beyond the first level; `L1I_EAR_EVENTS` for all fetches that miss the first level; `BRANCH_EVENT` for all branches.

use super::event::{self, Event};
use super::event_address::{DataEvents, FetchEvents};
use super::stall::{self, Stall};
use super::unit_masks::Parts;
use crate::names;

/// Something that can be sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    name: &'static str,
    source: Source,
}

/// Where the events come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A counter that instructions increment.
    Values(Parts),
    /// Cycles: those in which something was issued, and bubbles of the causes in a set.
    Cycles {
        /// Whether issue cycles count.
        issue: bool,
        /// The causes, a bit each.
        stalls: u32,
    },
    /// References to data.
    Loads(DataEvents),
    /// Fetches.
    Fetches(FetchEvents),
    /// Branches.
    Branches,
}

use DataEvents as D;
use FetchEvents as F;

/// The names that select single events, with what they select.
const SINGLE: &[(&str, Source, &str)] = &[
    (
        "DATA_EAR_EVENTS",
        Source::Loads(D::Latency(4)),
        "Loads of 4 cycles or more",
    ),
    (
        "DATA_EAR_CACHE_LAT4",
        Source::Loads(D::Latency(4)),
        "Loads of 4 cycles or more",
    ),
    (
        "DATA_EAR_CACHE_LAT8",
        Source::Loads(D::Latency(8)),
        "Loads of 8 cycles or more",
    ),
    (
        "DATA_EAR_CACHE_LAT16",
        Source::Loads(D::Latency(16)),
        "Loads of 16 cycles or more",
    ),
    (
        "DATA_EAR_CACHE_LAT32",
        Source::Loads(D::Latency(32)),
        "Loads of 32 cycles or more",
    ),
    (
        "DATA_EAR_CACHE_LAT64",
        Source::Loads(D::Latency(64)),
        "Loads of 64 cycles or more",
    ),
    (
        "DATA_EAR_CACHE_LAT128",
        Source::Loads(D::Latency(128)),
        "Loads of 128 cycles or more",
    ),
    (
        "DATA_EAR_CACHE_LAT256",
        Source::Loads(D::Latency(256)),
        "Loads of 256 cycles or more",
    ),
    (
        "DATA_EAR_CACHE_LAT512",
        Source::Loads(D::Latency(512)),
        "Loads of 512 cycles or more",
    ),
    (
        "DATA_EAR_CACHE_LAT1024",
        Source::Loads(D::Latency(1024)),
        "Loads of 1024 cycles or more",
    ),
    (
        "DATA_EAR_CACHE_LAT2048",
        Source::Loads(D::Latency(2048)),
        "Loads of 2048 cycles or more",
    ),
    (
        "DATA_EAR_CACHE_LAT4096",
        Source::Loads(D::Latency(4096)),
        "Loads of 4096 cycles or more",
    ),
    (
        "DATA_EAR_TLB_ALL",
        Source::Loads(D::Translation(0xe)),
        "References that miss the first data TLB",
    ),
    (
        "DATA_EAR_TLB_L2DTLB",
        Source::Loads(D::Translation(0x2)),
        "References that the second data TLB translates",
    ),
    (
        "DATA_EAR_TLB_VHPT",
        Source::Loads(D::Translation(0x4)),
        "References that the walker translates",
    ),
    (
        "DATA_EAR_TLB_FAULT",
        Source::Loads(D::Translation(0x8)),
        "References that software translates",
    ),
    (
        "DATA_EAR_TLB_L2DTLB_OR_VHPT",
        Source::Loads(D::Translation(0x6)),
        "References that the second data TLB or the walker translates",
    ),
    (
        "DATA_EAR_TLB_L2DTLB_OR_FAULT",
        Source::Loads(D::Translation(0xa)),
        "References that the second data TLB or software translates",
    ),
    (
        "DATA_EAR_TLB_VHPT_OR_FAULT",
        Source::Loads(D::Translation(0xc)),
        "References that the walker or software translates",
    ),
    (
        "DATA_EAR_ALAT",
        Source::Loads(D::Alat),
        "Failed checks of advanced loads",
    ),
    (
        "L1I_EAR_EVENTS",
        Source::Fetches(F::Latency(1)),
        "Fetches that miss the first level",
    ),
    (
        "L1I_EAR_CACHE_LAT0",
        Source::Fetches(F::Latency(1)),
        "Fetches that miss the first level",
    ),
    (
        "L1I_EAR_CACHE_LAT4",
        Source::Fetches(F::Latency(4)),
        "Fetches of 4 cycles or more",
    ),
    (
        "L1I_EAR_CACHE_LAT8",
        Source::Fetches(F::Latency(8)),
        "Fetches of 8 cycles or more",
    ),
    (
        "L1I_EAR_CACHE_LAT16",
        Source::Fetches(F::Latency(16)),
        "Fetches of 16 cycles or more",
    ),
    (
        "L1I_EAR_CACHE_LAT32",
        Source::Fetches(F::Latency(32)),
        "Fetches of 32 cycles or more",
    ),
    (
        "L1I_EAR_CACHE_LAT128",
        Source::Fetches(F::Latency(128)),
        "Fetches of 128 cycles or more",
    ),
    (
        "L1I_EAR_CACHE_LAT256",
        Source::Fetches(F::Latency(256)),
        "Fetches of 256 cycles or more",
    ),
    (
        "L1I_EAR_CACHE_LAT1024",
        Source::Fetches(F::Latency(1024)),
        "Fetches of 1024 cycles or more",
    ),
    (
        "L1I_EAR_CACHE_LAT4096",
        Source::Fetches(F::Latency(4096)),
        "Fetches of 4096 cycles or more",
    ),
    (
        "L1I_EAR_TLB_ALL",
        Source::Fetches(F::Translation(7)),
        "Fetches that miss the first instruction TLB",
    ),
    (
        "L1I_EAR_TLB_L2TLB",
        Source::Fetches(F::Translation(1)),
        "Fetches that the second instruction TLB translates",
    ),
    (
        "L1I_EAR_TLB_VHPT",
        Source::Fetches(F::Translation(2)),
        "Fetches that the walker translates",
    ),
    (
        "L1I_EAR_TLB_FAULT",
        Source::Fetches(F::Translation(4)),
        "Fetches that software translates",
    ),
    (
        "L1I_EAR_TLB_L2TLB_OR_VHPT",
        Source::Fetches(F::Translation(3)),
        "Fetches that the second instruction TLB or the walker translates",
    ),
    (
        "L1I_EAR_TLB_L2TLB_OR_FAULT",
        Source::Fetches(F::Translation(5)),
        "Fetches that the second instruction TLB or software translates",
    ),
    (
        "L1I_EAR_TLB_VHPT_OR_FAULT",
        Source::Fetches(F::Translation(6)),
        "Fetches that the walker or software translates",
    ),
    ("BRANCH_EVENT", Source::Branches, "Branches"),
];

impl Selection {
    /// What a name selects.
    ///
    /// # Errors
    /// [`names::Unknown`] with the nearest names.
    pub fn by_name(name: &str) -> Result<Selection, names::Unknown> {
        let wanted = event::normal(name);
        let single = SINGLE.iter().find(|(known, ..)| event::normal(known) == wanted);
        if let Some(&(name, source, _)) = single {
            return Ok(Selection { name, source });
        }
        match Event::by_name(name) {
            Ok(event) => Ok(Selection {
                name: event.name(),
                source: source_of(event),
            }),
            Err(_) => {
                let single = SINGLE.iter().map(|(name, ..)| *name);
                let aliases = Event::aliases().map(|(alias, _)| alias);
                let known = single
                    .chain(Event::ALL.iter().map(|event| event.name()))
                    .chain(aliases);
                Err(names::Unknown::new("event", name, known))
            }
        }
    }

    /// The names that are no counter's, each with what it selects.
    pub fn single() -> impl Iterator<Item = (&'static str, &'static str)> {
        let is_counter = |name: &str| Event::by_name(name).is_ok();
        SINGLE
            .iter()
            .filter(move |(name, ..)| !is_counter(name))
            .map(|(name, _, description)| (*name, *description))
    }

    /// The documented name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Where its events come from.
    pub fn source(&self) -> Source {
        self.source
    }
}

/// A counter's events: of instructions, or cycles by cause.
fn source_of(event: Event) -> Source {
    const ALL: u32 = (1 << Stall::COUNT) - 1;
    let below = |event: Event| {
        let booked: [u64; Stall::COUNT] = std::array::from_fn(|index| 1 << index);
        let row = stall::values(&booked)
            .into_iter()
            .find(|(row, _)| row.event == event);
        row.map(|(_, stalls)| stalls as u32)
    };
    let cycles = |issue: bool, stalls: u32| Source::Cycles { issue, stalls };
    match event {
        Event::CpuCycles => cycles(true, ALL),
        Event::DispersalStalled => cycles(false, ALL & !(1 << Stall::FrontEnd as u32)),
        Event::BackEndBubbleL1dFpuRse => {
            let parts = [Event::L1dFpuAll, Event::RseAll].map(|event| below(event).unwrap_or(0));
            cycles(false, parts[0] | parts[1])
        }
        event => below(event).map_or(Source::Values(event.parts()), |stalls| cycles(false, stalls)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_selects_something_and_is_told_apart() {
        for (name, source, _) in SINGLE {
            let selection = Selection::by_name(&name.to_lowercase()).expect("a listed name");
            assert_eq!((selection.name(), selection.source()), (*name, *source));
        }
        for event in Event::ALL {
            let selection = Selection::by_name(event.name()).expect("a counter");
            assert_eq!(selection.name(), event.name());
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_its_neighbours_of_both_kinds() {
        let near = |name: &str| Selection::by_name(name).expect_err("no such event").nearest;
        assert!(near("DATA_EAR_CACHE_LAT65").contains(&"DATA_EAR_CACHE_LAT64".to_owned()));
        assert!(near("L2_MISSED").contains(&"L2_MISSES".to_owned()));
    }

    #[test]
    fn the_parts_of_a_sum_of_bubbles_are_below_it() {
        let Source::Cycles { issue: false, stalls } = source_of(Event::BackEndBubbleL1dFpuRse) else {
            panic!("cycles");
        };
        assert!(stalls >> Stall::RseLoad as u32 & 1 == 1 && stalls >> Stall::General as u32 & 1 == 0);
        assert_eq!(
            source_of(Event::L2Misses),
            Source::Values(Event::L2Misses.parts())
        );
    }
}
