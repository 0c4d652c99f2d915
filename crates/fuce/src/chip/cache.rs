//! A unit's instruction cache: direct-mapped, lines of eight instructions, read-only.

/// Instructions in a line.
pub const LINE_INSTRUCTIONS: u32 = 8;

/// The tags of an instruction cache.
#[derive(Debug, Clone)]
pub struct InstructionCache {
    tags: Vec<u32>,
}

impl InstructionCache {
    /// An empty cache of `bytes` bytes, a power of two of at least one line.
    pub fn new(bytes: u32) -> InstructionCache {
        let lines = bytes / (LINE_INSTRUCTIONS * 4);
        InstructionCache {
            tags: vec![u32::MAX; lines as usize],
        }
    }

    /// Whether the line is there; if not, it is from now on.
    pub fn touch(&mut self, line: u32) -> bool {
        let index = line as usize & (self.tags.len() - 1);
        let tag = &mut self.tags[index];
        let hit = *tag == line;
        *tag = line;
        hit
    }
}
