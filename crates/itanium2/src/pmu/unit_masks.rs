//! Events that are sums of others, so that an instruction increments one counter for all that it means.
//!
//! Most are the processor's own sums over unit masks. Some are documented apart and are the same thing in this model,
//! which retires whatever it issues and prefetches nothing.

use super::event::Event;
use super::event_address::BranchKind;

/// What an event's count is made of: the counts of some events, without those of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    plus: &'static [Event],
    minus: &'static [Event],
}

impl Parts {
    /// The count, from the values of the events that are counted themselves. The front end's cycles are ahead of the
    /// pipeline's by what it has in its buffer, so that in the first of a run a difference may be none.
    #[inline]
    pub fn of(&self, values: &[u64; Event::COUNT]) -> u64 {
        let sum = |events: &[Event]| events.iter().map(|event| values[*event as usize]).sum::<u64>();
        sum(self.plus).saturating_sub(sum(self.minus))
    }
}

/// A row: the event, and what it is made of.
type Sum = (Event, &'static [Event], &'static [Event]);

use Event as E;

/// What misses the second-level cache and so refers to the third.
const BEYOND_SECOND_LEVEL: [Event; 6] = [
    E::L3DataReadHits,
    E::L3DataReadMisses,
    E::L3FetchHits,
    E::L3FetchMisses,
    E::L3DataWriteHits,
    E::L3DataWriteMisses,
];

/// The events of branches by kind.
const RELATIVE: [Event; 4] = [
    E::RelativeWrongNotTaken,
    E::RelativeWrongTaken,
    E::RelativeRightNotTaken,
    E::RelativeRightTaken,
];
const RETURN: [Event; 4] = [
    E::ReturnWrongNotTaken,
    E::ReturnWrongTaken,
    E::ReturnRightNotTaken,
    E::ReturnRightTaken,
];
const INDIRECT: [Event; 4] = [
    E::IndirectWrongNotTaken,
    E::IndirectWrongTaken,
    E::IndirectRightNotTaken,
    E::IndirectRightTaken,
];

/// The sums.
pub const SUMS: &[Sum] = &[
    (E::TaggedSecond, &[E::InstructionsRetired], &[]),
    (E::TaggedThird, &[E::InstructionsRetired], &[]),
    (E::TaggedFourth, &[E::InstructionsRetired], &[]),
    (E::InstructionsDispersed, &[E::InstructionsRetired], &[]),
    (E::DataReferencesAgain, &[E::DataReferences], &[]),
    (E::Checks, &[E::ChecksGeneral, E::ChecksFloat], &[]),
    (
        E::FailedChecks,
        &[E::FailedChecksGeneral, E::FailedChecksFloat],
        &[],
    ),
    (E::Replaced, &[E::ReplacedGeneral, E::ReplacedFloat], &[]),
    (
        E::FailedSpeculation,
        &[E::FailedSpeculationGeneral, E::FailedSpeculationFloat],
        &[],
    ),
    (E::RseReferences, &[E::RseLoads, E::RseStores], &[]),
    (E::WrongNotTaken, &[RELATIVE[0], RETURN[0], INDIRECT[0]], &[]),
    (E::WrongTaken, &[RELATIVE[1], RETURN[1], INDIRECT[1]], &[]),
    (E::RightNotTaken, &[RELATIVE[2], RETURN[2], INDIRECT[2]], &[]),
    (E::RightTaken, &[RELATIVE[3], RETURN[3], INDIRECT[3]], &[]),
    (E::RelativeBranches, &RELATIVE, &[]),
    (E::Returns, &RETURN, &[]),
    (E::IndirectBranches, &INDIRECT, &[]),
    (E::Branches, &ALL_BRANCHES, &[]),
    (E::RelativeWrongPath, &[RELATIVE[0], RELATIVE[1]], &[]),
    (E::ReturnsWrongPath, &[RETURN[0], RETURN[1]], &[]),
    (E::IndirectWrongPath, &[INDIRECT[0], INDIRECT[1]], &[]),
    (
        E::BranchesWrongPath,
        &[
            RELATIVE[0],
            RELATIVE[1],
            RETURN[0],
            RETURN[1],
            INDIRECT[0],
            INDIRECT[1],
        ],
        &[],
    ),
    (E::BranchesWrongTarget, &WRONG_TARGETS, &[]),
    (
        E::RelativeCorrect,
        &[RELATIVE[2], RELATIVE[3]],
        &[E::RelativeWrongTarget],
    ),
    (
        E::ReturnsCorrect,
        &[RETURN[2], RETURN[3]],
        &[E::ReturnsWrongTarget],
    ),
    (
        E::IndirectCorrect,
        &[INDIRECT[2], INDIRECT[3]],
        &[E::IndirectWrongTarget],
    ),
    (
        E::BranchesCorrect,
        &[
            RELATIVE[2],
            RELATIVE[3],
            RETURN[2],
            RETURN[3],
            INDIRECT[2],
            INDIRECT[3],
        ],
        &WRONG_TARGETS,
    ),
    (E::InstructionReads, &[E::L1iFills], &[]),
    (E::ItlbMisses, &[E::ItlbMissesFirst], &[]),
    (E::ItlbInsertions, &[E::ItlbMissesSecond], &[]),
    (E::L1dReadsAgain, &[E::L1dReads], &[]),
    (E::L2DataReferences, &[E::L2DataReads, E::L2DataWrites], &[]),
    (
        E::L2References,
        &[E::L2DataReads, E::L2DataWrites, E::L1iFills],
        &[],
    ),
    (E::L3References, &BEYOND_SECOND_LEVEL, &[]),
    (E::L2Misses, &BEYOND_SECOND_LEVEL, &[]),
    (
        E::L3Misses,
        &[E::L3DataReadMisses, E::L3FetchMisses, E::L3DataWriteMisses],
        &[],
    ),
    (E::L3DataReads, &[E::L3DataReadHits, E::L3DataReadMisses], &[]),
    (E::L3Fetches, &[E::L3FetchHits, E::L3FetchMisses], &[]),
    (E::L3InstructionHits, &[E::L3FetchHits], &[]),
    (E::L3InstructionMisses, &[E::L3FetchMisses], &[]),
    (E::L3Instructions, &[E::L3FetchHits, E::L3FetchMisses], &[]),
    (E::L3ReadHits, &[E::L3DataReadHits, E::L3FetchHits], &[]),
    (E::L3ReadMisses, &[E::L3DataReadMisses, E::L3FetchMisses], &[]),
    (
        E::L3Reads,
        &[
            E::L3DataReadHits,
            E::L3DataReadMisses,
            E::L3FetchHits,
            E::L3FetchMisses,
        ],
        &[],
    ),
    (E::L3DataWrites, &[E::L3DataWriteHits, E::L3DataWriteMisses], &[]),
    (E::L3WriteBacks, &[E::L3WriteBackHits, E::L3WriteBackMisses], &[]),
    (E::L3WriteHits, &[E::L3DataWriteHits, E::L3WriteBackHits], &[]),
    (
        E::L3WriteMisses,
        &[E::L3DataWriteMisses, E::L3WriteBackMisses],
        &[],
    ),
    (
        E::L3Writes,
        &[
            E::L3DataWriteHits,
            E::L3DataWriteMisses,
            E::L3WriteBackHits,
            E::L3WriteBackMisses,
        ],
        &[],
    ),
    (E::FrontEndBubbles, &[E::CpuCycles], &[E::L1iReads]),
    (E::FrontEndBranch, &[E::FrontEndResteer], &[]),
    (
        E::FrontEndMissed,
        &[E::FrontEndCacheMiss, E::FrontEndTlbMiss],
        &[],
    ),
    (E::FrontEndButFull, &FRONT_END, &[]),
    (
        E::FrontEndFull,
        &[E::CpuCycles],
        &[
            E::L1iReads,
            FRONT_END[0],
            FRONT_END[1],
            FRONT_END[2],
            FRONT_END[3],
        ],
    ),
    (E::WalkerInsertionsRetired, &[E::WalkerInsertions], &[]),
];

/// Why the front end fetches nothing though there is room for it: what is left of its cycles finds none.
const FRONT_END: [Event; 4] = [
    E::FrontEndFlush,
    E::FrontEndCacheMiss,
    E::FrontEndTlbMiss,
    E::FrontEndResteer,
];

const ALL_BRANCHES: [Event; 12] = [
    RELATIVE[0],
    RELATIVE[1],
    RELATIVE[2],
    RELATIVE[3],
    RETURN[0],
    RETURN[1],
    RETURN[2],
    RETURN[3],
    INDIRECT[0],
    INDIRECT[1],
    INDIRECT[2],
    INDIRECT[3],
];

const WRONG_TARGETS: [Event; 3] = [
    E::RelativeWrongTarget,
    E::ReturnsWrongTarget,
    E::IndirectWrongTarget,
];

impl Event {
    /// What its count is made of; of an event that is counted itself, it alone.
    pub fn parts(self) -> Parts {
        let index = self as usize;
        let itself = Parts {
            plus: &Event::ALL[index..=index],
            minus: &[],
        };
        let row = SUMS.iter().find(|(event, ..)| *event == self);
        row.map_or(itself, |&(_, plus, minus)| Parts { plus, minus })
    }

    /// The events that a branch increments: by how its path was predicted and whether it was taken, and of a wrong
    /// target.
    #[inline]
    pub(crate) fn of_branch(kind: BranchKind, wrong_path: bool, taken: bool) -> (Event, Event) {
        let (paths, target) = match kind {
            BranchKind::Relative => (&RELATIVE, E::RelativeWrongTarget),
            BranchKind::Return => (&RETURN, E::ReturnsWrongTarget),
            BranchKind::Indirect => (&INDIRECT, E::IndirectWrongTarget),
        };
        (paths[usize::from(!wrong_path) * 2 + usize::from(taken)], target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_of_events_that_are_no_sums_and_each_is_there_once() {
        let is_sum = |event: &Event| SUMS.iter().any(|(sum, ..)| sum == event);
        for (index, (event, plus, minus)) in SUMS.iter().enumerate() {
            assert!(!plus.iter().chain(*minus).any(is_sum), "{}", event.name());
            assert!(
                !SUMS[..index].iter().any(|(earlier, ..)| earlier == event),
                "{}",
                event.name()
            );
        }
    }

    #[test]
    fn every_branch_is_in_one_path_and_counts_among_all() {
        for kind in [BranchKind::Relative, BranchKind::Return, BranchKind::Indirect] {
            for (wrong_path, taken) in [(false, false), (false, true), (true, false), (true, true)] {
                let (path, _) = Event::of_branch(kind, wrong_path, taken);
                let mut values = [0; Event::COUNT];
                values[path as usize] = 1;
                let count = |event: Event| event.parts().of(&values);
                assert_eq!(count(E::Branches), 1);
                assert_eq!(count(E::BranchesWrongPath), u64::from(wrong_path));
                assert_eq!(count(E::BranchesCorrect), u64::from(!wrong_path));
                assert_eq!(count(E::RightTaken), u64::from(taken && !wrong_path));
                assert_eq!(count(E::WrongNotTaken), u64::from(!taken && wrong_path));
            }
        }
    }
}
