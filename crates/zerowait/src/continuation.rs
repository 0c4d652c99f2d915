//! A continuation on its way: which thread it starts and what it brings.

use crate::payload::Words;

/// A continuation as it lies in a queue. It is `Copy` and owns nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Continuation {
    pub(crate) words: Words,
    /// In virtual time: when it is due. On cores: when it was issued, in clock ticks, or 0 if it is not
    /// sampled.
    pub(crate) stamp: u64,
    /// Index of the thread it is for.
    pub(crate) thread: u32,
    /// The core that the thread is bound to, or [`ANYWHERE`].
    pub(crate) place: u16,
    pub(crate) kind: Kind,
}

/// What the arrival of a continuation does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Starts the thread.
    #[default]
    Start,
    /// Starts the thread, which had continued to itself.
    Retry,
    /// Starts the thread because a device or a timer says so.
    Event,
    /// Decrements a join's counter and starts the join's thread if that was the last (virtual time only: on
    /// cores the counter is decremented when the continuation is issued).
    Signal,
    /// The time of a gate's thread is over, so that its next entry may start (virtual time only); the first
    /// word says whether it panicked.
    Finish,
}

impl Continuation {
    /// Thread, place and kind in one word.
    ///
    /// A core's own queue keeps continuations as words: what was stored a few cycles ago is read back in the
    /// same pieces, which the processor can forward; wider copies of narrower stores would wait for the
    /// cache.
    #[inline]
    pub(crate) fn header(&self) -> u64 {
        u64::from(self.thread) | u64::from(self.place) << 32 | (self.kind as u64) << 48
    }

    /// The continuation of these words whose [`header`](Self::header) this is.
    #[inline]
    pub(crate) fn from_header(header: u64, stamp: u64, words: Words) -> Self {
        let kind = KINDS[(header >> 48) as usize & (KINDS.len() - 1)];
        Self {
            words,
            stamp,
            thread: header as u32,
            place: (header >> 32) as u16,
            kind,
        }
    }
}

/// The kinds by their numbers, filled up to a power of two.
const KINDS: [Kind; 8] = [
    Kind::Start,
    Kind::Retry,
    Kind::Event,
    Kind::Signal,
    Kind::Finish,
    Kind::Start,
    Kind::Start,
    Kind::Start,
];

/// The place of a thread that any core may run.
pub(crate) const ANYWHERE: u16 = u16::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_keeps_thread_place_and_kind() {
        for kind in [Kind::Start, Kind::Retry, Kind::Event, Kind::Signal, Kind::Finish] {
            for (thread, place) in [(0, 0), (u32::MAX, ANYWHERE), (7, 3)] {
                let continuation = Continuation {
                    words: [1, 2, 3, 4],
                    stamp: 5,
                    thread,
                    place,
                    kind,
                };
                let again = Continuation::from_header(continuation.header(), 5, [1, 2, 3, 4]);
                assert_eq!(again, continuation);
            }
        }
    }
}
