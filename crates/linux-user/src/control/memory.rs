//! Memory as a debugger addresses it: whatever its protection, and as if all stacked registers were stored.

use std::fs::File;
use std::os::unix::fs::FileExt;

use sidestep_ia64::Processor;

use super::Control;
use crate::memory::window::PAGE;
use crate::memory::{Memory, Need};

/// Nothing is asked of the mapping.
const NOTHING: Need = Need {
    read: false,
    write: false,
    execute: false,
};

/// The words of the backing store in a range that memory does not hold yet.
fn unstored(processor: &Processor, start: u64, length: usize) -> Vec<(u64, u64)> {
    let end = start.saturating_add(length as u64);
    (start & !7..end)
        .step_by(8)
        .filter_map(|address| Some((address, processor.unstored_word(address)?)))
        .collect()
}

impl Control {
    /// Reads memory as a thread sees it; answers how many bytes could be read.
    pub fn read_memory(&self, memory: &Memory, thread: i32, start: u64, bytes: &mut [u8]) -> usize {
        let length = bytes.len();
        let words = self.look(thread, move |processor| unstored(processor, start, length));
        let mut read = peek(memory, start, bytes);
        for (address, word) in words.unwrap_or_default() {
            for (at, byte) in (address..).zip(word.to_le_bytes()) {
                if let Some(index) = at.checked_sub(start).map(|index| index as usize)
                    && index < length
                    && index <= read
                {
                    bytes[index] = byte;
                    read = read.max(index + 1);
                }
            }
        }
        read
    }

    /// Writes memory as a thread sees it; false if it could not all be written.
    pub fn write_memory(&self, memory: &Memory, thread: i32, start: u64, bytes: &[u8]) -> bool {
        let length = bytes.len();
        let words = self.look(thread, move |processor| unstored(processor, start, length));
        let words = words.unwrap_or_default();
        let (mut done, mut at) = (true, start);
        while let Some(rest) = bytes.get((at - start) as usize..).filter(|rest| !rest.is_empty()) {
            let word = words.iter().find(|(address, _)| *address == at & !7);
            let count = match word {
                Some((address, word)) => {
                    let skip = (at - address) as usize;
                    let mut changed = word.to_le_bytes();
                    let count = rest.len().min(8 - skip);
                    changed[skip..skip + count].copy_from_slice(&rest[..count]);
                    let (address, value) = (*address, u64::from_le_bytes(changed));
                    done &= self.change(thread, move |processor| {
                        processor.set_unstored_word(address, value)
                    }) == Ok(true);
                    count
                }
                None => {
                    // Up to the next word that may be in a register.
                    let count = match words.iter().find(|(address, _)| *address > at) {
                        Some((address, _)) => rest.len().min((address - at) as usize),
                        None => rest.len(),
                    };
                    done &= poke(memory, at, &rest[..count]);
                    count
                }
            };
            at += count as u64;
        }
        // It may have been code, or the subject of an advanced load.
        memory.world.tell_code_change();
        for listed in self.threads() {
            // A thread in a system call has none that matter: its next instructions are behind the call.
            let _ = self.change(listed.identifier, Processor::forget_advanced_loads);
        }
        done
    }
}

/// Where the host shows this process's memory, to read and write whatever its protection.
fn own_memory(writes: bool) -> std::io::Result<File> {
    File::options().read(true).write(writes).open("/proc/self/mem")
}

/// The mapped pieces of a range, each within a page, as far as they follow each other: guest address and length.
fn pieces(memory: &Memory, start: u64, length: usize) -> impl Iterator<Item = (u64, usize)> {
    let mut at = start;
    let end = start.saturating_add(length as u64);
    std::iter::from_fn(move || {
        let is_mapped = memory.mappings().at(at).is_some();
        if at >= end || !is_mapped {
            return None;
        }
        let piece = (
            at,
            (end.min((at & !(PAGE - 1)).saturating_add(PAGE)) - at) as usize,
        );
        at += piece.1 as u64;
        Some(piece)
    })
}

/// Reads guest memory; answers how many bytes are there.
fn peek(memory: &Memory, start: u64, bytes: &mut [u8]) -> usize {
    if memory.gate().view(start, NOTHING).is_some() {
        let gate = memory.gate().bytes();
        let rest = &gate[(start & (PAGE - 1)) as usize..];
        let count = rest.len().min(bytes.len());
        bytes[..count].copy_from_slice(&rest[..count]);
        return count;
    }
    let Ok(file) = own_memory(false) else { return 0 };
    let mut read = 0;
    for (address, length) in pieces(memory, start, bytes.len()) {
        let Ok(host) = memory.host(address, length as u64) else {
            break;
        };
        match file.read_at(&mut bytes[read..read + length], host as u64) {
            Ok(count) => {
                read += count;
                if count < length {
                    break;
                }
            }
            Err(_) => break,
        }
    }
    read
}

/// Writes guest memory, its code, too; false if not all of it could be.
fn poke(memory: &Memory, start: u64, bytes: &[u8]) -> bool {
    let Ok(file) = own_memory(true) else { return false };
    let mut written = 0;
    for (address, length) in pieces(memory, start, bytes.len()) {
        let Ok(host) = memory.host(address, length as u64) else {
            return false;
        };
        if file
            .write_all_at(&bytes[written..written + length], host as u64)
            .is_err()
        {
            return false;
        }
        written += length;
    }
    written == bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::changes::MapRequest;
    use crate::memory::gate;

    #[test]
    fn a_debugger_reads_and_writes_whatever_is_mapped_and_nothing_else() {
        let memory = Memory::new().expect("an address space");
        let page = memory.map(&MapRequest::anonymous(2 * PAGE)).expect("room");
        memory.write_bytes(page, b"before").expect("mapped");
        memory.protect(page, PAGE, 0).expect("mapped");
        let mut bytes = [0; 6];
        assert_eq!(peek(&memory, page, &mut bytes), 6);
        assert_eq!(&bytes, b"before");
        assert!(poke(&memory, page + PAGE - 3, b"across"));
        assert_eq!(peek(&memory, page + PAGE - 3, &mut bytes), 6);
        assert_eq!(&bytes, b"across");
        assert_eq!(peek(&memory, page + 2 * PAGE - 2, &mut bytes), 2, "up to the end");
        assert!(!poke(&memory, page + 2 * PAGE - 2, b"beyond"));
        assert_eq!(peek(&memory, 0xe000_0000_0000_0000, &mut bytes), 0);
        assert_eq!(peek(&memory, gate::ADDRESS + 1, &mut bytes[..3]), 3);
        assert_eq!(&bytes[..3], b"ELF");
        assert!(!poke(&memory, gate::ADDRESS, b"x"));
    }
}
