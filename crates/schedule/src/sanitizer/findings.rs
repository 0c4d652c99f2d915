//! What was found: each place once, with how often.

use std::collections::BTreeMap;

use sidestep_ia64::encoding::Instruction;
use sidestep_ia64::execution::Place;

use super::rule::Rule;
use crate::sequencing::Parts;

/// An instruction and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located {
    /// Where.
    pub place: Place,
    /// Which.
    pub instruction: Instruction,
}

/// Something that the architecture leaves undefined, at one place.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The earlier instruction, where there are two.
    pub first: Option<Located>,
    /// The later one, or the only one.
    pub second: Located,
    /// What it violates.
    pub rule: Rule,
    /// On what, when it was found first.
    pub on: Parts,
    /// How often it happened.
    pub count: u64,
}

/// A place: of the later instruction, of the earlier one, and the rule.
type Key = (Place, Option<Place>, Rule);

/// The findings of a run.
#[derive(Debug, Default)]
pub struct Findings {
    found: BTreeMap<Key, Finding>,
    has_new: bool,
}

impl Findings {
    /// What was found, by address.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.found.values()
    }

    /// Adds those of another processor.
    pub fn merge(&mut self, other: &Findings) {
        for (key, finding) in &other.found {
            match self.found.get_mut(key) {
                Some(known) => known.count += finding.count,
                None => {
                    self.found.insert(*key, finding.clone());
                }
            }
        }
    }

    /// Whether there is a place that nobody has looked at.
    pub(super) fn has_new(&self) -> bool {
        self.has_new
    }

    /// Everything has been looked at.
    pub(super) fn seen(&mut self) {
        self.has_new = false;
    }

    /// Something happened once more.
    pub(super) fn add(&mut self, first: Option<Located>, second: Located, rule: Rule, on: Parts) {
        let key = (second.place, first.map(|first| first.place), rule);
        let known = self.found.entry(key).or_insert_with(|| {
            self.has_new = true;
            Finding {
                first,
                second,
                rule,
                on,
                count: 0,
            }
        });
        known.count += 1;
    }
}
