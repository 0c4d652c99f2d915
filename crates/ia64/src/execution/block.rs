//! Blocks: runs of bundles decoded together, and the cache that finds them again.
//!
//! A block begins where execution entered it and ends behind an instruction that always leaves it, at the
//! end of its host page, or at [`BUNDLES_MAX`]. A conditional branch does not end a block: when it is not
//! taken, execution goes on inside. `nop`s are decoded away, but counted.
//!
//! Blocks are found by the *host* address of their first bundle, so that they survive changes of the
//! translation that leads to them. They hold no absolute guest address.

use std::collections::HashMap;
use std::sync::Arc;

use crate::encoding::{Bundle, DecodedSlot, Illegal, Instruction, Operation};
use crate::execution::code_page::CodePages;
use crate::execution::operation::MicroOperation;
use crate::memory::{HostPage, Value};
use crate::semantics;

/// Bundles in a block at most; bounds the distance between two looks at the attention flag.
const BUNDLES_MAX: u64 = 64;
/// Entries of the direct-mapped front of the cache.
const FRONT: usize = 4096;
/// Instructions that were overwritten are forgotten by host pages of this size.
pub(crate) const HOST_PAGE_LOG2: u32 = 12;
/// Blocks kept before the cache is emptied.
const BLOCKS_MAX: usize = 1 << 16;

/// The bundles from one entry point on, decoded.
pub(crate) struct Block {
    /// The operations; the last one always leaves the block.
    pub operations: Box<[MicroOperation]>,
    /// What each operation was decoded from, but for the last; empty unless an observer wants it.
    pub decoded: Box<[Observed]>,
    /// Instructions in the block, `nop`s included.
    pub instructions: u32,
    /// The highest general register that the block may write before it changes its frame.
    pub highest_target: u8,
}

impl Block {
    /// The size in bytes of the bundles that its instructions stand in.
    pub fn size(&self) -> u64 {
        // The last operation leaves to bundle and slot behind the block.
        let last = self.operations.last().expect("an operation leaves the block");
        last.immediate.next_multiple_of(16)
    }
}

/// What an operation was decoded from, for an observer.
pub(crate) struct Observed {
    /// The slot.
    pub slot: DecodedSlot,
    /// Whether it references memory at the address in its r3.
    pub references: bool,
    /// Whether it reads or writes what an observer may count.
    pub uses_counters: bool,
}

impl Observed {
    fn new(slot: DecodedSlot) -> Observed {
        let is = |property: fn(&Instruction) -> bool| slot.instruction.as_ref().is_ok_and(property);
        Observed {
            references: is(semantics::references_memory),
            uses_counters: is(semantics::uses_counters),
            slot,
        }
    }
}

/// Whether `nop`s stay in the block, for an observer that wants to see every instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Only instructions that do something.
    #[default]
    Effects,
    /// Every instruction.
    Everything,
}

/// The decoded blocks of one processor.
#[derive(Default)]
pub struct BlockCache {
    front: Vec<Option<(u64, Arc<Block>)>>,
    blocks: HashMap<u64, Arc<Block>>,
    /// The keys of the blocks that begin on a host page, by its number.
    by_page: HashMap<u64, Vec<u64>>,
    detail: Detail,
    /// The pages that blocks were entered on.
    pub(crate) pages: CodePages,
}

impl BlockCache {
    /// Forgets every block.
    pub fn flush(&mut self) {
        self.front.clear();
        self.blocks.clear();
        self.by_page.clear();
    }

    /// Forgets the blocks that may hold an instruction of the host page with the number `page`.
    pub(crate) fn forget(&mut self, page: u64) {
        const {
            assert!(
                BUNDLES_MAX * 16 <= 1 << HOST_PAGE_LOG2,
                "a block ends on the next page"
            )
        };
        for page in [page - 1, page] {
            for key in self.by_page.remove(&page).into_iter().flatten() {
                self.blocks.remove(&key);
                if let Some(place) = self.front.get_mut(front_index(key)) {
                    place.take_if(|(at, _)| *at == key);
                }
            }
        }
    }

    /// Chooses whether `nop`s are kept; forgets the blocks when that changes.
    pub(crate) fn set_detail(&mut self, detail: Detail) {
        if self.detail != detail {
            self.detail = detail;
            self.flush();
        }
    }

    /// The block whose first instruction stands at the host address and slot that `key` combines.
    #[inline(always)]
    pub(crate) fn find(&self, key: u64) -> Option<&Arc<Block>> {
        match self.front.get(front_index(key)) {
            Some(Some((at, block))) if *at == key => Some(block),
            _ => None,
        }
    }

    /// Finds a block behind the front, or decodes it from `page`.
    #[cold]
    pub(crate) fn find_or_decode(&mut self, key: u64, (ip, slot): (u64, u8), page: &HostPage) -> Arc<Block> {
        if self.blocks.len() >= BLOCKS_MAX {
            self.flush();
        }
        let (detail, by_page) = (self.detail, &mut self.by_page);
        let block = self.blocks.entry(key).or_insert_with(|| {
            by_page.entry(key >> HOST_PAGE_LOG2).or_default().push(key);
            Arc::new(decode(ip, slot, page, detail, None, u16::MAX))
        });
        if self.front.is_empty() {
            self.front.resize_with(FRONT, || None);
        }
        self.front[front_index(key)] = Some((key, Arc::clone(block)));
        Arc::clone(block)
    }

    /// Decodes a block of `instructions_max` instructions at most, for a frame of `frame_size` registers:
    /// writes above it are illegal operations. The block is not kept.
    #[cold]
    pub(crate) fn decode_narrow(
        &self,
        (ip, slot): (u64, u8),
        page: &HostPage,
        frame_size: u32,
        instructions_max: u16,
    ) -> Block {
        decode(ip, slot, page, self.detail, Some(frame_size), instructions_max)
    }
}

#[inline(always)]
fn front_index(key: u64) -> usize {
    ((key >> 4) ^ (key & 3) << 10) as usize % FRONT
}

/// Decodes from `ip` and `slot` on, `instructions_max` instructions at most. Targets above a frame of
/// `frame_size` registers are illegal; where the frame is not known, `highest_target` says what it needs.
fn decode(
    ip: u64,
    slot: u8,
    page: &HostPage,
    detail: Detail,
    mut frame_size: Option<u32>,
    instructions_max: u16,
) -> Block {
    let end = page.start.0.wrapping_add(1 << page.size_log2);
    let mut operations = Vec::new();
    let mut slots = Vec::new();
    let mut instructions = 0;
    let mut highest_target = 0;
    let mut bundle_index = 0;
    // Where execution goes on behind the block, as bundle and slot.
    let mut next = (0, slot);
    'bundles: while bundle_index < BUNDLES_MAX && ip.wrapping_add(bundle_index * 16) != end {
        let bundle = read_bundle(page, ip.wrapping_add(bundle_index * 16));
        let last_slot = if bundle.template().is_long() { 1 } else { 2 };
        for decoded in bundle.decode() {
            if bundle_index == 0 && decoded.slot < slot {
                continue;
            }
            if instructions == instructions_max {
                break 'bundles;
            }
            instructions += 1;
            next = if decoded.slot == last_slot {
                (bundle_index + 1, 0)
            } else {
                (bundle_index, decoded.slot + 1)
            };
            let (mut operation, ends) = match decoded.instruction {
                Ok(instruction) => {
                    if matches!(instruction.operation, Operation::Nop) && detail == Detail::Effects {
                        continue;
                    }
                    if let Operation::Allocate = instruction.operation {
                        frame_size = Some(u32::from(instruction.sof()));
                    }
                    let target = semantics::highest_general_target(&instruction);
                    let is_outside = frame_size.is_some_and(|size| u32::from(target) > 31 + size);
                    if frame_size.is_none() {
                        highest_target = highest_target.max(target);
                    }
                    if is_outside {
                        (semantics::illegal(instruction.predicate()), false)
                    } else {
                        (
                            semantics::lower(&instruction, decoded.slot, bundle_index * 16),
                            semantics::ends_block(&instruction),
                        )
                    }
                }
                Err(Illegal::EncodingIfPredicate(predicate)) => (semantics::illegal(predicate), false),
                Err(Illegal::Encoding | Illegal::Template) => (semantics::illegal(0), true),
            };
            operation.retired = instructions;
            operation.place = (bundle_index as u16) << 2 | u16::from(decoded.slot);
            operations.push(operation);
            if detail == Detail::Everything {
                slots.push(Observed::new(decoded));
            }
            if ends {
                break 'bundles;
            }
        }
        bundle_index += 1;
    }
    let mut leave = MicroOperation::new(semantics::leave_block);
    leave.immediate = next.0 * 16 | u64::from(next.1);
    leave.retired = instructions;
    operations.push(leave);
    Block {
        operations: operations.into_boxed_slice(),
        decoded: slots.into_boxed_slice(),
        instructions: u32::from(instructions),
        highest_target,
    }
}

fn read_bundle(page: &HostPage, address: u64) -> Bundle {
    let host = page
        .host
        .wrapping_add(address.wrapping_sub(page.start.0) as usize);
    // SAFETY: the address space returned the page as readable, and `address` is a multiple of 16 inside it.
    let (low, high) = unsafe { (u64::load(host), u64::load(host.wrapping_add(8))) };
    Bundle::from_bits(u128::from(low) | u128::from(high) << 64)
}
