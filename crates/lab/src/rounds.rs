//! The rounds of a point that is measured in real time, as a timeline of each side.

use std::time::Instant;

use crate::measurement::Side;
use crate::point::Context;
use crate::timeline::Timeline;

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
