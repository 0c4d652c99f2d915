//! What happened when on one side of a point, as data: written out for Perfetto by `--trace`.
//!
//! Times are nanoseconds from the start of the point, in virtual time where the experiment is deterministic.

use serde::{Deserialize, Serialize};

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
    /// Tracks and what took a time on them: the index of the track, a name, the start and the duration.
    pub fn of_spans(
        tracks: Vec<String>,
        spans: impl IntoIterator<Item = (usize, String, u64, u64)>,
    ) -> Timeline {
        let mut timeline = Timeline {
            tracks,
            events: Vec::new(),
        };
        for (track, name, start_ns, duration_ns) in spans {
            timeline.span(track, name, start_ns, duration_ns);
        }
        timeline
    }

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
