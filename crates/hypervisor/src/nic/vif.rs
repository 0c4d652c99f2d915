//! One virtual interface as the card knows it: what its guest has said, which frames wait, whether it is to be told.
//!
//! The card believes no count that leaves more descriptors open than a ring has.

use std::collections::VecDeque;

use serde::Serialize;

use super::ring::Store;

/// What became of frames and signals of one interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VifCounts {
    /// Frames taken from the send ring and sent.
    pub sent: u64,
    /// Frames put into the receive ring.
    pub received: u64,
    /// Frames for which neither the receive ring nor the card had room.
    pub dropped: u64,
    /// Descriptors that named no memory of the guest or a length that cannot be, and counts that cannot be.
    pub refused: u64,
    /// Signals to its guest.
    pub signals: u64,
    /// Those that came with no frame since the one before: another interface has the same bit.
    pub redundant: u64,
}

impl std::ops::AddAssign for VifCounts {
    fn add_assign(&mut self, other: VifCounts) {
        self.sent += other.sent;
        self.received += other.received;
        self.dropped += other.dropped;
        self.refused += other.refused;
        self.signals += other.signals;
        self.redundant += other.redundant;
    }
}

/// What follows from a store of the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    /// Nothing.
    Nothing,
    /// There are frames to send, and nobody is at it.
    Sending,
    /// There is room for a frame that waits on the card.
    Filling,
    /// It may want a signal at once.
    Wanting,
}

/// A virtual interface.
#[derive(Clone, Debug)]
pub struct Vif {
    entries: u64,
    /// Which area its guest has registered, counted; none yet at 0.
    generation: u64,
    sent: u64,
    taken: u64,
    posted: u64,
    filled: u64,
    wanted: u64,
    /// Whether the guest has asked for a signal since the last.
    is_armed: bool,
    /// Whether a virtio driver is owed a signal.
    is_due: bool,
    /// How many pairs of queues its driver uses: this interface is the first of so many.
    pairs: u64,
    /// Whether a frame was put into its ring since the last signal.
    has_news: bool,
    is_sending: bool,
    is_filling: bool,
    /// Frames that have come and have no buffer, by ticket.
    held: VecDeque<usize>,
    /// The most of them.
    held_max: usize,
    /// What became of all.
    pub counts: VifCounts,
}

impl Vif {
    /// An interface that nobody has registered rings for.
    pub fn new(entries: u64, held_max: usize) -> Vif {
        Vif {
            entries,
            generation: 0,
            sent: 0,
            taken: 0,
            posted: 0,
            filled: 0,
            wanted: 0,
            is_armed: false,
            is_due: false,
            pairs: 1,
            has_news: false,
            is_sending: false,
            is_filling: false,
            held: VecDeque::new(),
            held_max,
            counts: VifCounts::default(),
        }
    }

    /// Which area its guest has registered, counted; 0 if none.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Takes note of what the guest has stored. Frames that were held for rings which are no more are handed back.
    pub fn note(&mut self, store: Store) -> (Followed, Vec<usize>) {
        let followed = match store {
            Store::Registered(generation) => {
                let held = std::mem::take(&mut self.held);
                self.counts.dropped += held.len() as u64;
                *self = Vif {
                    generation,
                    counts: self.counts,
                    // Whoever is at it finds nothing.
                    is_sending: self.is_sending,
                    is_filling: self.is_filling,
                    ..Vif::new(self.entries, self.held_max)
                };
                return (Followed::Nothing, held.into());
            }
            Store::Sent(count) if is_possible(count, self.taken, self.sent, self.entries) => {
                self.sent = count;
                let begins = self.has_to_send() && !self.is_sending;
                self.is_sending |= begins;
                if begins {
                    Followed::Sending
                } else {
                    Followed::Nothing
                }
            }
            Store::Posted(count) if is_possible(count, self.filled, self.posted, self.entries) => {
                self.posted = count;
                let begins = self.has_buffer() && !self.held.is_empty() && !self.is_filling;
                self.is_filling |= begins;
                if begins {
                    Followed::Filling
                } else {
                    Followed::Nothing
                }
            }
            Store::Sent(_) | Store::Posted(_) => {
                self.counts.refused += 1;
                Followed::Nothing
            }
            Store::Pairs(count) => {
                self.pairs = count.max(1);
                Followed::Nothing
            }
            Store::Due => {
                self.is_due = true;
                self.has_news = true;
                Followed::Wanting
            }
            Store::Wanted(count) => {
                self.wanted = count;
                self.is_armed = true;
                if self.wants_signal() {
                    Followed::Wanting
                } else {
                    Followed::Nothing
                }
            }
        };
        (followed, Vec::new())
    }

    /// Whether frames wait in its send ring.
    fn has_to_send(&self) -> bool {
        self.taken != self.sent
    }

    /// The next frame to send; if there is none, nobody is at it any more.
    pub fn next_to_send(&mut self) -> Option<u64> {
        self.is_sending = self.has_to_send();
        if !self.is_sending {
            return None;
        }
        self.taken += 1;
        Some(self.taken - 1)
    }

    fn has_buffer(&self) -> bool {
        self.filled != self.posted
    }

    /// Keeps a frame that has come; gives it back if neither ring nor card have room, and counts it as dropped.
    /// True if it can be moved and nobody is at it.
    pub fn keep(&mut self, ticket: usize) -> Result<bool, usize> {
        let room = self.posted - self.filled;
        let has_room = (self.held.len() as u64) < room + self.held_max as u64;
        if self.generation == 0 || !has_room {
            self.counts.dropped += 1;
            return Err(ticket);
        }
        self.held.push_back(ticket);
        let begins = self.has_buffer() && !self.is_filling;
        self.is_filling |= begins;
        Ok(begins)
    }

    /// The next frame to move into a buffer, and which; if there is none, nobody is at it any more.
    pub fn next_to_fill(&mut self) -> Option<(usize, u64)> {
        let ticket = match self.has_buffer() {
            true => self.held.pop_front(),
            false => None,
        };
        self.is_filling = ticket.is_some();
        let number = self.filled;
        self.filled += u64::from(ticket.is_some());
        Some((ticket?, number))
    }

    /// A frame is in its ring.
    pub fn filled(&mut self) {
        self.counts.received += 1;
        self.has_news = true;
    }

    /// How many interfaces from this one on are pairs of queues that one driver uses.
    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    /// How many frames its ring has got.
    pub fn received(&self) -> u64 {
        self.filled
    }

    /// Whether its guest is to be told.
    pub fn wants_signal(&self) -> bool {
        self.is_due
            || self.is_armed && self.has_news && self.filled.wrapping_sub(self.wanted).cast_signed() > 0
    }

    /// It is going to be told: not again before its guest asks for it.
    pub fn disarm(&mut self) {
        self.is_armed = false;
        self.is_due = false;
    }

    /// Its guest is told; whether that is redundant.
    pub fn signalled(&mut self) -> bool {
        let is_redundant = !std::mem::take(&mut self.has_news);
        self.counts.signals += 1;
        self.counts.redundant += u64::from(is_redundant);
        is_redundant
    }
}

/// Whether a count that was `before` can be `count`, where the card has come to `done`.
fn is_possible(count: u64, done: u64, before: u64, entries: u64) -> bool {
    let open = count.wrapping_sub(done);
    open <= entries && open >= before.wrapping_sub(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registered() -> Vif {
        let mut vif = Vif::new(4, 2);
        assert_eq!(vif.note(Store::Registered(1)), (Followed::Nothing, vec![]));
        vif
    }

    #[test]
    fn frames_go_out_in_order_and_one_at_a_time() {
        let mut vif = registered();
        assert_eq!(vif.note(Store::Sent(2)).0, Followed::Sending);
        assert_eq!(vif.note(Store::Sent(3)).0, Followed::Nothing, "somebody is at it");
        assert_eq!([vif.next_to_send(), vif.next_to_send()], [Some(0), Some(1)]);
        assert_eq!([vif.next_to_send(), vif.next_to_send()], [Some(2), None]);
        assert_eq!(vif.note(Store::Sent(4)).0, Followed::Sending);
    }

    #[test]
    fn counts_that_cannot_be_are_not_believed() {
        let mut vif = registered();
        for store in [Store::Sent(5), Store::Posted(u64::MAX), Store::Posted(1 << 40)] {
            assert_eq!(vif.note(store).0, Followed::Nothing);
        }
        vif.note(Store::Sent(3));
        vif.note(Store::Sent(2));
        assert_eq!(vif.counts.refused, 4);
        assert_eq!(std::iter::from_fn(|| vif.next_to_send()).count(), 3);
    }

    #[test]
    fn a_full_ring_pushes_back_onto_the_card_and_a_full_card_drops() {
        let mut vif = registered();
        vif.note(Store::Posted(1));
        assert_eq!(vif.keep(0), Ok(true));
        assert_eq!(vif.next_to_fill(), Some((0, 0)));
        assert_eq!(vif.next_to_fill(), None);
        assert_eq!([vif.keep(1), vif.keep(2)], [Ok(false), Ok(false)]);
        assert_eq!(vif.keep(3), Err(3));
        assert_eq!(vif.counts.dropped, 1);
        assert_eq!(vif.note(Store::Posted(3)).0, Followed::Filling);
        assert_eq!(
            [vif.next_to_fill(), vif.next_to_fill()],
            [Some((1, 1)), Some((2, 2))]
        );
    }

    #[test]
    fn a_signal_comes_once_for_each_time_that_it_is_wanted() {
        let mut vif = registered();
        vif.note(Store::Posted(4));
        let fill = |vif: &mut Vif| {
            vif.keep(9).expect("room");
            vif.next_to_fill().expect("a buffer");
            vif.filled();
        };
        fill(&mut vif);
        assert!(!vif.wants_signal(), "nobody has asked");
        assert_eq!(
            vif.note(Store::Wanted(1)).0,
            Followed::Nothing,
            "the guest has seen it"
        );
        fill(&mut vif);
        assert!(vif.wants_signal());
        vif.disarm();
        assert!(!vif.signalled());
        fill(&mut vif);
        assert!(!vif.wants_signal());
        assert_eq!(
            vif.note(Store::Wanted(2)).0,
            Followed::Wanting,
            "one has come meanwhile"
        );
        assert!(!vif.signalled() && vif.signalled());
        assert_eq!((vif.counts.signals, vif.counts.redundant), (3, 1));
    }

    #[test]
    fn new_rings_forget_the_old() {
        let mut vif = registered();
        assert_eq!(vif.keep(7), Ok(false));
        assert_eq!(vif.note(Store::Registered(2)), (Followed::Nothing, vec![7]));
        assert_eq!(vif.counts.dropped, 1);
        assert_eq!((vif.next_to_fill(), vif.next_to_send()), (None, None));
    }
}
