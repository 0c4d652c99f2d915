//! What happened when on one side of a point, as data: written out for Perfetto by `--trace`.
//!
//! Times are nanoseconds from the start of the point, in virtual time where the experiment is deterministic.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::experiment::Context;
use crate::measurement::Side;

/// What happened when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// The rows of the timeline: a core, a vCPU, a device, a queue.
    pub tracks: Vec<String>,
    /// What happened; in any order.
    pub events: Vec<Event>,
}

/// One thing that happened on a track.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The index of the track.
    pub track: usize,
    /// What happened.
    pub name: String,
    /// When it began.
    pub start_ns: u64,
    /// What kind of thing it is.
    pub kind: EventKind,
}

/// The kinds of [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventKind {
    /// Took a time. Spans of one track nest or follow each other; they do not overlap partly.
    Span {
        /// For how long.
        duration_ns: u64,
    },
    /// Took no time.
    Instant,
    /// A counter (a queue's length) took a new value.
    Counter {
        /// The new value.
        value: i64,
    },
}

impl Timeline {
    /// Adds a track and returns its index.
    pub fn track(&mut self, name: impl Into<String>) -> usize {
        self.tracks.push(name.into());
        self.tracks.len() - 1
    }

    /// Adds something that took a time.
    pub fn span(&mut self, track: usize, name: impl Into<String>, start_ns: u64, duration_ns: u64) {
        self.push(track, name, start_ns, EventKind::Span { duration_ns });
    }

    /// Adds something that took no time.
    pub fn instant(&mut self, track: usize, name: impl Into<String>, start_ns: u64) {
        self.push(track, name, start_ns, EventKind::Instant);
    }

    /// Adds a counter's new value.
    pub fn counter(&mut self, track: usize, name: impl Into<String>, start_ns: u64, value: i64) {
        self.push(track, name, start_ns, EventKind::Counter { value });
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    fn push(&mut self, track: usize, name: impl Into<String>, start_ns: u64, kind: EventKind) {
        assert!(track < self.tracks.len(), "track {track} was not added");
        self.events.push(Event {
            track,
            name: name.into(),
            start_ns,
            kind,
        });
    }
}

/// When the rounds of one side of a measured point ran, in real time.
pub struct Rounds {
    /// Both sides count from the same moment.
    began: Instant,
    /// `None` where nobody asked for a timeline.
    timeline: Option<Timeline>,
}

impl Rounds {
    /// The records of both sides, from now on.
    pub fn of_both_sides(context: &Context) -> [Rounds; 2] {
        let began = Instant::now();
        ["baseline", "sidestep"].map(|track| Rounds {
            began,
            timeline: context.trace.then(|| {
                let mut timeline = Timeline::default();
                timeline.track(track);
                timeline
            }),
        })
    }

    /// Does some work and notes when.
    pub fn note<T>(&mut self, name: impl Into<String>, work: impl FnOnce() -> T) -> T {
        let nanoseconds = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let start_ns = nanoseconds(self.began.elapsed());
        let result = work();
        if let Some(timeline) = &mut self.timeline {
            let duration_ns = nanoseconds(self.began.elapsed()) - start_ns;
            timeline.span(0, name, start_ns, duration_ns);
        }
        result
    }

    /// Adds the record to its side.
    pub fn explain(self, side: Side) -> Side {
        match self.timeline {
            Some(timeline) => side.traced(timeline),
            None => side,
        }
    }
}
