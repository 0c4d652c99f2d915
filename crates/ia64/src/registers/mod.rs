//! The register files, one module a file, and the bit layouts of the registers that have fields.

pub mod application;
pub mod frame;
pub mod general;
pub mod predicate;
pub mod status;
pub mod system;

/// A set of 128 bits as two words, the low one first: not every format has wider integers.
pub(crate) mod two_words {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(bits: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        [*bits as u64, (*bits >> 64) as u64].serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
        let [low, high] = <[u64; 2]>::deserialize(deserializer)?;
        Ok(u128::from(high) << 64 | u128::from(low))
    }
}
