//! What a translator counts.

use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

use crate::region::Region;

/// What was translated, how long that took, and how it ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Units translated.
    pub units: u64,
    /// Blocks in them.
    pub blocks: u64,
    /// Instructions in them, without those that do nothing.
    pub instructions: u64,
    /// Bytes of emitted code.
    pub bytes: u64,
    /// Time that this took.
    pub time: Duration,
    /// How often all code was forgotten for want of memory.
    pub flushes: u64,
    /// How often a unit was entered.
    pub entered: u64,
    /// How often a unit was entered from another one, without the loop that looks for blocks.
    pub linked: u64,
    /// Instructions that retired in units.
    pub translated: u64,
    /// Units left by a fault or a system call.
    pub raised: u64,
    /// Units left within a block, for a NaT bit, an access that lies in no window or a number that they are not made
    /// for.
    pub left_over: u64,
}

impl Statistics {
    /// Counts another unit.
    pub(crate) fn note_unit(&mut self, region: &Region, bytes: usize, time: Duration) {
        let instructions = region.nodes.iter().map(|node| node.block.instructions.len());
        self.units += 1;
        self.blocks += region.nodes.len() as u64;
        self.instructions += instructions.sum::<usize>() as u64;
        self.bytes += bytes as u64;
        self.time += time;
    }
}

impl AddAssign for Statistics {
    fn add_assign(&mut self, other: Statistics) {
        let Statistics {
            units,
            blocks,
            instructions,
            bytes,
            time,
            flushes,
            entered,
            linked,
            translated,
            raised,
            left_over,
        } = other;
        self.units += units;
        self.blocks += blocks;
        self.instructions += instructions;
        self.bytes += bytes;
        self.time += time;
        self.flushes += flushes;
        self.entered += entered;
        self.linked += linked;
        self.translated += translated;
        self.raised += raised;
        self.left_over += left_over;
    }
}

impl fmt::Display for Statistics {
    /// A line for each count.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = [
            ("instructions retired in translated code", self.translated),
            ("translated code entered", self.entered),
            ("  gone on from one unit with another", self.linked),
            ("  left by a fault or a call of the kernel", self.raised),
            ("  left within a block", self.left_over),
            ("units translated", self.units),
            ("  blocks in them", self.blocks),
            ("  instructions in them", self.instructions),
            ("  bytes of code", self.bytes),
            ("code forgotten for want of memory", self.flushes),
            ("milliseconds of translation", self.time.as_millis() as u64),
        ];
        rows.iter()
            .try_for_each(|(what, count)| writeln!(formatter, "{what:<42} {count:>14}"))
    }
}
