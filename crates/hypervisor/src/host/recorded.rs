//! What is recorded of a run, within bounds: a host may run for longer than there is memory for all that happens.

use crate::cycle::Cycle;

/// The most events of a kind that are kept.
const RECORDED_MAX: usize = 1 << 20;

/// Events of one kind, from the start up to where there was no more room.
#[derive(Clone, Debug)]
pub(super) struct Recorded<T> {
    events: Vec<T>,
    max: usize,
    ended: Option<Cycle>,
}

impl<T> Recorded<T> {
    /// None yet.
    pub fn new() -> Recorded<T> {
        Recorded::bounded(RECORDED_MAX)
    }

    fn bounded(max: usize) -> Recorded<T> {
        Recorded {
            events: Vec::new(),
            max,
            ended: None,
        }
    }

    /// Records what began at a time, unless the recording has ended.
    pub fn push(&mut self, start: Cycle, event: T) {
        if self.ended.is_some() {
            return;
        }
        if self.events.len() == self.max {
            self.ended = Some(start);
        } else {
            self.events.push(event);
        }
    }

    /// The events.
    pub fn events(&self) -> &[T] {
        &self.events
    }

    /// The events, to be completed.
    pub fn events_mut(&mut self) -> &mut [T] {
        &mut self.events
    }

    /// When the first event began that is not kept; nothing that begins from then on is.
    pub fn ended(&self) -> Option<Cycle> {
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_ends_where_its_room_does() {
        let mut recorded = Recorded::bounded(2);
        for (time, event) in ['a', 'b', 'c', 'd'].into_iter().enumerate() {
            recorded.push(Cycle::START + time as u64, event);
        }
        assert_eq!(recorded.events(), ['a', 'b']);
        assert_eq!(recorded.ended(), Some(Cycle::START + 2));
    }
}
