//! Virtual addressing in system mode: translation registers and caches, the VHPT and its walker, protection
//! keys and access rights.
//!
//! Manual volume 2, chapter 4. [`entry`] is what a translation says and whom it lets in; [`buffer`] the
//! translation registers and cache of one side (instruction or data); [`vhpt`] the two page table formats. The
//! [processor](crate::Processor) puts them together for a reference.

pub mod buffer;
pub mod entry;
mod places;
pub mod vhpt;

use buffer::TranslationBuffer;
use serde::{Deserialize, Serialize};

/// The translations of one processor, and how often it needed more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mmu {
    /// Instruction translations.
    pub instruction: TranslationBuffer,
    /// Data translations, which the register stack engine uses as well.
    pub data: TranslationBuffer,
    /// How often translations were looked for.
    pub events: TranslationEvents,
}

/// Counters of translation events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranslationEvents {
    /// Data references whose page neither a translation register nor the cache held.
    pub data_misses: u64,
    /// Instruction fetches of the same kind.
    pub instruction_misses: u64,
    /// Entries that the walker read from the VHPT.
    pub walker_reads: u64,
    /// Reads that found the translation.
    pub walker_hits: u64,
    /// Translations inserted by `itc`.
    pub software_insertions: u64,
    /// Purges of any kind.
    pub purges: u64,
}
