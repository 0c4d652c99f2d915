//! Writes of system state that wait for serialisation.

use sidestep_ia64::encoding::{Operation, Side};

use super::Member;
use super::dependency;
use super::findings::Findings;
use super::rule::Rule;
use crate::sequencing::Parts;
use crate::sequencing::serialization::{behind_data, is_ordinary, needed};

/// A write that no serialisation has made visible.
#[derive(Debug)]
struct Write {
    member: Member,
    /// What of it still waits.
    parts: Parts,
    /// The group that it is in.
    group: u64,
    /// The group of the `srlz.i` behind it, which makes it visible from the next one on.
    settled_by: Option<u64>,
}

/// What waits, in the order in which it was written.
#[derive(Debug, Default)]
pub(super) struct Unserialized {
    writes: Vec<Write>,
    concerns_ordinary: bool,
}

impl Unserialized {
    /// Whether ordinary instructions may read what waits, so that all have to be looked at.
    pub fn concerns_ordinary(&self) -> bool {
        self.concerns_ordinary
    }

    /// Everything is visible.
    pub fn clear(&mut self) {
        self.writes.clear();
        self.concerns_ordinary = false;
    }

    /// A group begins: what `srlz.i` was for is visible.
    pub fn begin_group(&mut self) {
        if self.writes.iter().any(|write| write.settled_by.is_some()) {
            self.writes.retain(|write| write.settled_by.is_none());
            self.look();
        }
    }

    /// An instruction of a group was executed.
    pub fn pass(&mut self, member: &Member, group: u64, findings: &mut Findings) {
        let effects = &member.facts.on;
        if self.writes.is_empty() && effects.deferred.is_empty() {
            return;
        }
        if let Some(side) = effects.serializes {
            return self.serialize(side, group);
        }
        if matches!(
            member.facts.instruction.operation,
            Operation::ReturnFromInterruption
        ) {
            return self.clear();
        }
        for write in &self.writes {
            let on = dependency::unserialized(write.parts, &write.member.run, &member.facts, &member.run);
            if !on.is_empty() {
                let rule = match (needed(on), write.settled_by) {
                    (Side::Data, None) => Rule::DataSerialization,
                    (Side::Instruction, _) | (_, Some(_)) => Rule::InstructionSerialization,
                };
                findings.add(Some(write.member.located()), member.located(), rule, on);
            }
        }
        if !effects.deferred.is_empty() {
            self.writes.retain(|write| write.member.place != member.place);
            self.writes.push(Write {
                member: member.clone(),
                parts: effects.deferred,
                group,
                settled_by: None,
            });
            self.look();
        }
    }

    /// `srlz.d` or `srlz.i` was executed in a group: what was written in groups before becomes visible.
    fn serialize(&mut self, side: Side, group: u64) {
        for write in self.writes.iter_mut().filter(|write| write.group != group) {
            match side {
                Side::Data => write.parts = behind_data(write.parts),
                Side::Instruction => write.settled_by = Some(group),
            }
        }
        self.writes.retain(|write| !write.parts.is_empty());
        self.look();
    }

    fn look(&mut self) {
        self.concerns_ordinary = self.writes.iter().any(|write| is_ordinary(write.parts));
    }
}
