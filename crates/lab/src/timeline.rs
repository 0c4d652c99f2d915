//! What happened when on one side of a point, as data: written out for Perfetto by `--trace`.
//!
//! Times are nanoseconds from the start of the point, in virtual time where the experiment is deterministic.

use std::collections::BTreeMap;

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
    /// Went on with what an earlier event of the same flow began: arrows join them. The event lies in a span of its
    /// track that begins at the same time.
    Flow {
        /// What tells the flow from others.
        id: u64,
        /// Where in the flow it is.
        stage: FlowStage,
    },
    /// A counter (a queue's length) took a new value.
    Counter {
        /// The new value.
        value: i64,
    },
}

/// Where in a flow an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FlowStage {
    /// The first.
    Begin,
    /// Between the first and the last.
    Step,
    /// The last.
    End,
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

    /// Adds steps, each a span of a flow: the flow, the track, a name, the start and the duration. Those of one flow
    /// are in the order of their times.
    pub fn flows(&mut self, steps: impl IntoIterator<Item = (u64, usize, String, u64, u64)>) {
        let mut places: BTreeMap<u64, Vec<(usize, u64)>> = BTreeMap::new();
        for (id, track, name, start_ns, duration_ns) in steps {
            self.span(track, name, start_ns, duration_ns);
            places.entry(id).or_default().push((track, start_ns));
        }
        for (id, places) in places {
            let last = places.len() - 1;
            // One step alone leads nowhere.
            for (at, (track, start_ns)) in places.into_iter().enumerate().filter(|_| last > 0) {
                let stage = match at {
                    0 => FlowStage::Begin,
                    at if at == last => FlowStage::End,
                    _ => FlowStage::Step,
                };
                self.push(track, "packet", start_ns, EventKind::Flow { id, stage });
            }
        }
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
