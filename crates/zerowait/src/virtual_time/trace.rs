//! The record of a run: every start of a thread.

use std::fmt;

use super::partition::Partition;
use crate::attributes::Phase;
use crate::program::Program;
use crate::time::Time;

/// One start of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// When it started.
    pub time: Time,
    /// In which phase of that moment.
    pub phase: Phase,
    /// In which partition.
    pub partition: u16,
    /// As which start of its partition.
    pub sequence: u64,
    /// On which core of the partition.
    pub core: u16,
    /// Which thread.
    pub thread: String,
}

impl fmt::Display for TraceEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>12} {:<7} {:>3}.{:<2} {:>8} {}",
            self.time.0,
            self.phase.name(),
            self.partition,
            self.core,
            self.sequence,
            self.thread
        )
    }
}

/// One start as a partition records it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) time: Time,
    pub(super) phase: Phase,
    pub(super) sequence: u64,
    pub(super) core: u16,
    pub(super) thread: u32,
}

/// The starts of all partitions in one order.
pub(super) fn merge(program: &Program, partitions: &[Partition]) -> Vec<TraceEntry> {
    let mut starts: Vec<(u16, Start)> = Vec::new();
    for partition in partitions {
        starts.extend(partition.starts().iter().map(|start| (partition.index(), *start)));
    }
    // Within a partition the order of its starts is kept, also where a core's becoming free ran one of
    // another phase.
    starts.sort_by_key(|(partition, start)| (start.time, *partition, start.sequence));
    let entry = |(partition, start): (u16, Start)| TraceEntry {
        time: start.time,
        phase: start.phase,
        partition,
        sequence: start.sequence,
        core: start.core,
        thread: program.name(start.thread).to_owned(),
    };
    starts.into_iter().map(entry).collect()
}
