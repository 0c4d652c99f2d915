//! The data that travels with a continuation.
//!
//! A continuation carries four machine words and no pointer to anything it would have to free, so that it can
//! lie in a queue, be handed to another core, or be left over at shutdown without a destructor. What is
//! larger lives in a gate's state or in a device [buffer](crate::device::Buffer), and its index travels.

/// The words that one continuation carries.
pub type Words = [u64; WORDS];

/// How many words one continuation carries: with its header it is shorter than a cache line.
pub const WORDS: usize = 4;

/// A value that fits a continuation's words.
///
/// `from_words(v.into_words())` must give back `v`. A join builds its value from words that different threads
/// delivered, so `from_words` may be handed words that no single `into_words` made and must not panic.
pub trait Payload: Sized {
    /// The value as words; those it does not need are zero.
    fn into_words(self) -> Words;
    /// The value these words stand for.
    fn from_words(words: Words) -> Self;
}

impl Payload for () {
    fn into_words(self) -> Words {
        [0; WORDS]
    }
    fn from_words(_: Words) -> Self {}
}

impl Payload for Words {
    fn into_words(self) -> Words {
        self
    }
    fn from_words(words: Words) -> Self {
        words
    }
}

/// Implements [`Payload`] for the integers that fit one word.
macro_rules! integer_payload {
    ($($integer:ty),*) => {$(
        impl Payload for $integer {
            fn into_words(self) -> Words {
                [self as u64, 0, 0, 0]
            }
            fn from_words(words: Words) -> Self {
                words[0] as $integer
            }
        }
    )*};
}

integer_payload!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

impl Payload for (u64, u64) {
    fn into_words(self) -> Words {
        [self.0, self.1, 0, 0]
    }
    fn from_words(words: Words) -> Self {
        (words[0], words[1])
    }
}

impl Payload for (u64, u64, u64) {
    fn into_words(self) -> Words {
        [self.0, self.1, self.2, 0]
    }
    fn from_words(words: Words) -> Self {
        (words[0], words[1], words[2])
    }
}

impl Payload for (u64, u64, u64, u64) {
    fn into_words(self) -> Words {
        [self.0, self.1, self.2, self.3]
    }
    fn from_words(words: Words) -> Self {
        (words[0], words[1], words[2], words[3])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_payload_survives_its_words(a: u64, b: u64, c: u64, d: u64, small: i8, wide: i64) {
            prop_assert_eq!(<(u64, u64)>::from_words((a, b).into_words()), (a, b));
            prop_assert_eq!(<(u64, u64, u64)>::from_words((a, b, c).into_words()), (a, b, c));
            prop_assert_eq!(<(u64, u64, u64, u64)>::from_words((a, b, c, d).into_words()), (a, b, c, d));
            prop_assert_eq!(i8::from_words(small.into_words()), small);
            prop_assert_eq!(i64::from_words(wide.into_words()), wide);
        }
    }
}
