//! Joins: threads that start when their synchronisation counter reaches zero.
//!
//! Each *activation* of a join has a counter and four data words. A continuation to an activation may store
//! or add a word, and decrements the counter; the one that brings it to zero takes the words along as the
//! thread's data. At that moment the activation is free again, so data never waits for the thread to run.
//!
//! An activation made at run time serves once. One made when the graph is built lives as long as the program:
//! its counter is set back to its predefined value each time it fires; its continuations of one round must
//! happen before those of the next (they do when the round's thread starts the next), or a round may carry
//! the other's words.

use std::marker::PhantomData;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::payload::{Payload, WORDS, Words};
use crate::queue::FreeList;
use crate::sync::{AtomicU32, AtomicU64};

/// One activation of a join: where continuations are counted.
///
/// It fits one word, so it can travel in a continuation's data to those who are to signal it.
#[derive(Debug)]
pub struct Activation<T> {
    pub(crate) index: u32,
    pub(crate) generation: u32,
    data: PhantomData<fn(T)>,
}

impl<T> Activation<T> {
    pub(crate) fn new(index: u32, generation: u32) -> Self {
        Self {
            index,
            generation,
            data: PhantomData,
        }
    }

    /// The activation as a word.
    pub fn into_word(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// The activation that [`into_word`](Self::into_word) made this word from.
    ///
    /// Any other word gives an activation that does not exist or is not meant; signalling it is a contained
    /// panic or a wrong count, never undefined behaviour.
    pub fn from_word(word: u64) -> Self {
        Self::new(word as u32, (word >> 32) as u32)
    }
}

impl<T> Clone for Activation<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Activation<T> {}

impl<T> Payload for Activation<T> {
    fn into_words(self) -> Words {
        [self.into_word(), 0, 0, 0]
    }
    fn from_words(words: Words) -> Self {
        Self::from_word(words[0])
    }
}

/// What a continuation to a join brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bring {
    /// Nothing but its arrival.
    Nothing,
    /// A word for one of the four slots, replacing what is there.
    Store {
        /// Which slot, 0 to 3.
        slot: usize,
        /// The word.
        word: u64,
    },
    /// A word to add to one of the four slots, which start at zero; sums wrap.
    Add {
        /// Which slot, 0 to 3.
        slot: usize,
        /// The word.
        word: u64,
    },
}

impl Bring {
    /// As words of a continuation that carries a signal as an event; the inverse of
    /// [`from_words`](Self::from_words).
    pub(crate) fn into_words(self, activation: u64) -> Words {
        match self {
            Bring::Nothing => [activation, 0, 0, 0],
            Bring::Store { slot, word } => [activation, 1, slot as u64, word],
            Bring::Add { slot, word } => [activation, 2, slot as u64, word],
        }
    }

    pub(crate) fn from_words(words: Words) -> Self {
        let (slot, word) = (words[2] as usize, words[3]);
        match words[1] {
            0 => Bring::Nothing,
            1 => Bring::Store { slot, word },
            _ => Bring::Add { slot, word },
        }
    }
}

/// A signal to an activation that is not waiting for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotWaiting;

/// The activations of one join.
#[derive(Debug)]
pub struct JoinTable {
    frames: Box<[Frame]>,
    free: FreeList,
    exhausted: AtomicU64,
}

#[derive(Debug)]
struct Frame {
    /// The generation in the upper half, the synchronisation counter in the lower.
    state: AtomicU64,
    slots: [AtomicU64; WORDS],
    /// The value that the counter is set back to; 0 for an activation that serves once.
    predefined: AtomicU32,
}

fn state(generation: u32, counter: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(counter)
}

impl JoinTable {
    /// A table of `capacity` activations made at run time and one permanent one for each predefined counter.
    pub fn new(capacity: usize, predefined: &[u32]) -> Self {
        let total = capacity + predefined.len();
        let frame = |index: usize| {
            let predefined = predefined.get(index).copied().unwrap_or(0);
            Frame {
                state: AtomicU64::new(state(0, predefined)),
                slots: std::array::from_fn(|_| AtomicU64::new(0)),
                predefined: AtomicU32::new(predefined),
            }
        };
        let free = FreeList::new(predefined.len(), total);
        Self {
            frames: (0..total).map(frame).collect(),
            free,
            exhausted: AtomicU64::new(0),
        }
    }

    /// Takes a free activation and sets its counter; `None` if there is none.
    pub fn activate(&self, counter: u32) -> Option<(u32, u32)> {
        let Some(index) = self.free.take() else {
            self.exhausted.fetch_add(1, Relaxed);
            return None;
        };
        let frame = &self.frames[index as usize];
        let generation = (frame.state.load(Acquire) >> 32) as u32;
        frame.slots.iter().for_each(|slot| slot.store(0, Relaxed));
        frame.state.store(state(generation, counter), Release);
        Some((index, generation))
    }

    /// Gives an activation back that nobody knows of yet.
    pub fn forget(&self, index: u32, generation: u32) {
        self.frames[index as usize]
            .state
            .store(state(generation.wrapping_add(1), 0), Release);
        self.free.give(index);
    }

    /// Delivers a word and decrements the counter; the data if that brought it to zero.
    pub fn signal(&self, index: u32, generation: u32, bring: Bring) -> Result<Option<Words>, NotWaiting> {
        let frame = self.frames.get(index as usize).ok_or(NotWaiting)?;
        let before = frame.state.load(Acquire);
        if (before >> 32) as u32 != generation || before as u32 == 0 {
            return Err(NotWaiting);
        }
        match bring {
            Bring::Nothing => {}
            Bring::Store { slot, word } => frame.slots[slot].store(word, Relaxed),
            Bring::Add { slot, word } => {
                frame.slots[slot].fetch_add(word, Relaxed);
            }
        }
        // Release: the last one sees this word. Acquire: the last one sees all words.
        let before = frame.state.fetch_sub(1, AcqRel);
        if (before >> 32) as u32 != generation || before as u32 == 0 {
            frame.state.fetch_add(1, AcqRel);
            return Err(NotWaiting);
        }
        if before as u32 != 1 {
            return Ok(None);
        }
        let words = std::array::from_fn(|slot| frame.slots[slot].load(Relaxed));
        match frame.predefined.load(Relaxed) {
            0 => self.forget(index, generation),
            predefined => {
                frame.slots.iter().for_each(|slot| slot.store(0, Relaxed));
                frame.state.store(state(generation, predefined), Release);
            }
        }
        Ok(Some(words))
    }

    /// How often an activation was asked for and none was free.
    pub fn exhausted(&self) -> u64 {
        self.exhausted.load(Relaxed)
    }

    /// The counters of the activations that some, but not all, continuations have reached or that were made
    /// and not yet fired.
    pub fn waiting(&self) -> impl Iterator<Item = u32> + '_ {
        self.frames.iter().filter_map(|frame| {
            let counter = frame.state.load(Relaxed) as u32;
            (counter != frame.predefined.load(Relaxed)).then_some(counter)
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_last_signal_takes_all_words_along() {
        let joins = JoinTable::new(1, &[]);
        let (index, generation) = joins.activate(3).expect("one is free");
        assert_eq!(
            joins.signal(index, generation, Bring::Store { slot: 0, word: 7 }),
            Ok(None)
        );
        assert_eq!(
            joins.signal(index, generation, Bring::Add { slot: 1, word: 2 }),
            Ok(None)
        );
        assert_eq!(joins.waiting().collect::<Vec<_>>(), [1]);
        assert_eq!(joins.activate(1), None);
        assert_eq!(joins.exhausted(), 1);
        assert_eq!(
            joins.signal(index, generation, Bring::Add { slot: 1, word: 3 }),
            Ok(Some([7, 5, 0, 0]))
        );
        assert_eq!(joins.signal(index, generation, Bring::Nothing), Err(NotWaiting));
        let (again, newer) = joins.activate(1).expect("free again");
        assert_eq!((again, newer), (index, generation + 1));
        assert_eq!(
            joins.signal(index, generation, Bring::Nothing),
            Err(NotWaiting),
            "an old handle"
        );
        assert_eq!(
            joins.signal(index, newer, Bring::Nothing),
            Ok(Some([0; 4])),
            "words start at zero"
        );
    }

    #[test]
    fn a_permanent_activation_is_set_back_to_its_predefined_counter() {
        let joins = JoinTable::new(0, &[2]);
        for round in 0..3 {
            assert_eq!(joins.signal(0, 0, Bring::Add { slot: 0, word: round }), Ok(None));
            assert_eq!(
                joins.signal(0, 0, Bring::Add { slot: 0, word: 1 }),
                Ok(Some([round + 1, 0, 0, 0]))
            );
        }
        assert_eq!(joins.activate(1), None);
        assert_eq!(joins.waiting().count(), 0);
    }

    #[test]
    fn a_signal_survives_the_way_through_words() {
        for bring in [
            Bring::Nothing,
            Bring::Store { slot: 3, word: 9 },
            Bring::Add {
                slot: 1,
                word: u64::MAX,
            },
        ] {
            assert_eq!(Bring::from_words(bring.into_words(5)), bring);
        }
    }
}
