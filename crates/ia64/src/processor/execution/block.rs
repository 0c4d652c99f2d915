//! Blocks: runs of bundles decoded together, and the cache that finds them again.
//!
//! A block begins where execution entered it and ends behind an instruction that always leaves it, at the
//! end of its host page, or at [`BUNDLES_MAX`]. A conditional branch does not end a block: when it is not
//! taken, execution goes on inside. `nop`s are decoded away, but counted.
//!
//! Blocks are found by the *host* address of their first bundle, so that they survive changes of the
//! translation that leads to them. They hold no absolute guest address.

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::encoding::{Bundle, DecodedSlot, Effects, Illegal, Instruction, Operation};
use crate::memory::{HostPage, Value};
use crate::processor::execution::backend::{Backend, BlockInstruction, Context, DecodedBlock, Interpreter};
use crate::processor::execution::code_page::CodePages;
use crate::processor::execution::gathering::{Gathering, stands_apart};
use crate::processor::execution::kind::{Detail, Kind};
use crate::processor::execution::observer::Observer;
use crate::processor::execution::operation::MicroOperation;
use crate::processor::semantics;

/// Bundles in a block at most; bounds the distance between two looks at the attention flag.
pub(crate) const BUNDLES_MAX: u16 = 64;
/// And its bytes.
pub(crate) const BLOCK_SIZE_MAX: u64 = BUNDLES_MAX as u64 * 16;
/// Instructions for which a block in the making has room from the start: most blocks have no more.
const INSTRUCTIONS_USUAL: usize = 48;
/// Instructions of a program, or of a thread of it, for which short blocks serve: then it runs for longer than decoding
/// takes.
pub const SHORT_FOR: u64 = 1 << 20;
/// Entries of the direct-mapped front of the blocks.
const FRONT: usize = 4096;
/// Instructions that were overwritten are forgotten by host pages of this size.
pub const HOST_PAGE_LOG2: u32 = 12;
/// Blocks of a kind kept before they are emptied.
const BLOCKS_MAX: usize = 1 << 16;
/// Narrow blocks of a kind kept before they are emptied.
const NARROW_MAX: usize = 1 << 14;
/// Kinds of blocks kept beside each other.
const KINDS_MAX: usize = 4;

/// The bundles from one entry point on, translated by a back end, with what an observer knows of them.
pub(crate) struct Block<C, S> {
    /// What the back end made of it.
    pub code: C,
    /// What is known of each instruction; empty unless an observer wants it. Of the beginning of another block there is
    /// what is known of all of that.
    pub known: Arc<[Known<S>]>,
    /// Instructions in the block, `nop`s included.
    pub instructions: u32,
    /// The highest general register that the block may write before it changes its frame.
    pub highest_target: u8,
    /// The size in bytes of the bundles that its instructions stand in.
    pub size: u64,
    /// How an observer may be told of its first instructions together.
    pub gathering: Option<Gathering>,
    /// The same of those behind one that stands apart, in order.
    pub gathered_later: Box<[Gathering]>,
}

/// What is known of an instruction before it runs.
pub(crate) struct Known<S> {
    /// What the observer keeps; `None` for an illegal operation, which never retires.
    pub of_observer: Option<S>,
    /// What it does beyond its operands.
    pub effects: Effects,
    /// Its qualifying predicate.
    pub predicate: u8,
    /// The register with the address of its memory reference, if it makes one.
    pub base: Option<u8>,
    /// Whether it does nothing.
    pub is_nop: bool,
    /// Whether an observer is told of it by itself, not together with others of its block.
    pub stands_apart: bool,
}

impl<S> Known<S> {
    fn new<O: Observer<Static = S>>(slot: &DecodedSlot, observer: &mut O) -> Known<S> {
        match &slot.instruction {
            Ok(instruction) => {
                let of_observer = observer.decode(instruction, slot);
                let effects = instruction.effects();
                Known {
                    effects,
                    predicate: instruction.predicate(),
                    base: instruction.operation.memory_access().map(|_| instruction.r3()),
                    is_nop: matches!(instruction.operation, Operation::Nop),
                    stands_apart: stands_apart(effects) || observer.stands_apart(&of_observer),
                    of_observer: Some(of_observer),
                }
            }
            Err(_) => Known {
                of_observer: None,
                effects: Effects::empty(),
                predicate: 0,
                base: None,
                is_nop: false,
                stands_apart: true,
            },
        }
    }
}

/// A place of the front: the key of a block, and the block.
type Place<C, S> = Option<(u64, Arc<Block<C, S>>)>;

/// How far a block reaches that nothing ends before.
#[derive(Clone, Copy, Debug)]
struct Extent {
    /// The size of the frame that it runs in, where that is known.
    frame_size: Option<u32>,
    /// How many instructions it has at most.
    instructions_max: u16,
    /// Whether it ends with the bundle of its first branch, taken or not.
    is_short: bool,
}

/// What a block is cut to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The size of the frame that it runs in: what writes above it is illegal.
    pub frame_size: u32,
    /// How many instructions it has at most.
    pub instructions_max: u16,
}

/// A block that was cut, for the interpreter.
pub(crate) type NarrowBlock<S> = Block<Box<[MicroOperation]>, S>;

/// The blocks that were cut at one place.
type Cuts<S> = Vec<(Cut, Arc<NarrowBlock<S>>)>;

/// The blocks of one kind.
pub(crate) struct Blocks<C, S> {
    kind: Kind,
    /// Whether blocks end with the bundle of their first branch, taken or not. What a program executes that has just
    /// started it mostly executes once: it would decode twice of what it needs.
    pub(crate) are_short: bool,
    /// How many instructions have retired when they need not be short any more.
    pub(crate) whole_from: u64,
    front: Vec<Place<C, S>>,
    blocks: HashMap<u64, Arc<Block<C, S>>>,
    /// Beginnings of blocks, for frames that the whole block does not fit, and for runs that end inside it: processors
    /// that take turns by the clock do that often, and mostly at the same places.
    narrow: HashMap<u64, Cuts<S>>,
    narrow_count: usize,
    /// The keys of the blocks that begin on a host page, by its number.
    by_page: HashMap<u64, HashSet<u64>>,
}

/// Blocks that can be forgotten: the one way of invalidation.
pub(crate) trait Forget: Send {
    /// Forgets every block.
    fn flush(&mut self);

    /// Forgets the blocks that may hold an instruction of the host page with the number `page`.
    fn forget(&mut self, page: u64);
}

/// Blocks of any kind, kept while another kind runs.
trait Kept: Forget {
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl<C: Send + Sync + 'static, S: Send + Sync + 'static> Kept for Blocks<C, S> {
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl<C: Send + Sync, S: Send + Sync> Forget for Blocks<C, S> {
    fn flush(&mut self) {
        self.front.clear();
        self.blocks.clear();
        self.narrow.clear();
        self.narrow_count = 0;
        self.by_page.clear();
    }

    fn forget(&mut self, page: u64) {
        const {
            assert!(
                BLOCK_SIZE_MAX <= 1 << HOST_PAGE_LOG2,
                "a block ends on the next page"
            )
        };
        for page in [page - 1, page] {
            for key in self.by_page.remove(&page).into_iter().flatten() {
                self.blocks.remove(&key);
                self.narrow_count -= self.narrow.remove(&key).map_or(0, |narrow| narrow.len());
                if let Some(place) = self.front.get_mut(front_index(key)) {
                    place.take_if(|(at, _)| *at == key);
                }
            }
        }
    }
}

impl<C, S> Blocks<C, S> {
    /// No blocks, on a processor that has retired so many instructions.
    fn new(kind: Kind, retired: u64) -> Blocks<C, S> {
        Blocks {
            kind,
            are_short: false,
            whole_from: retired.saturating_add(SHORT_FOR),
            front: Vec::new(),
            blocks: HashMap::new(),
            narrow: HashMap::new(),
            narrow_count: 0,
            by_page: HashMap::new(),
        }
    }

    /// The block whose first instruction stands at the host address and slot that `key` combines.
    #[inline(always)]
    pub(crate) fn find(&self, key: u64) -> Option<&Arc<Block<C, S>>> {
        match self.front.get(front_index(key)) {
            Some(Some((at, block))) if *at == key => Some(block),
            _ => None,
        }
    }
}

impl<C: Send + Sync, S: Send + Sync> Blocks<C, S> {
    /// Finds a block behind the front, or makes it from `page`.
    #[cold]
    pub(crate) fn find_or_decode<B: Backend<Code = C>, O: Observer<Static = S>>(
        &mut self,
        key: u64,
        place: (u64, u8),
        page: &HostPage,
        backend: &mut B,
        observer: &mut O,
    ) -> Arc<Block<C, S>> {
        if self.blocks.len() >= BLOCKS_MAX {
            self.flush();
        }
        let (by_page, is_short) = (&mut self.by_page, self.are_short);
        let block = self.blocks.entry(key).or_insert_with(|| {
            by_page.entry(key >> HOST_PAGE_LOG2).or_default().insert(key);
            let extent = Extent {
                frame_size: None,
                instructions_max: u16::MAX,
                is_short,
            };
            Arc::new(Block::new(place, page, extent, backend, observer))
        });
        if self.front.is_empty() {
            self.front.resize_with(FRONT, || None);
        }
        self.front[front_index(key)] = Some((key, Arc::clone(block)));
        Arc::clone(block)
    }

    /// Finds the beginning of a block, or has it made.
    #[cold]
    pub(crate) fn find_or_cut(
        &mut self,
        key: u64,
        cut: Cut,
        make: impl FnOnce() -> NarrowBlock<S>,
    ) -> Arc<NarrowBlock<S>> {
        if let Some(narrow) = self.narrow.get(&key)
            && let Some((_, block)) = narrow.iter().find(|(of, _)| *of == cut)
        {
            return Arc::clone(block);
        }
        if self.narrow_count == NARROW_MAX {
            // The keys stay where blocks are found by page: they are looked for in vain there.
            self.narrow.clear();
            self.narrow_count = 0;
        }
        let block = Arc::new(make());
        self.by_page.entry(key >> HOST_PAGE_LOG2).or_default().insert(key);
        self.narrow
            .entry(key)
            .or_default()
            .push((cut, Arc::clone(&block)));
        self.narrow_count += 1;
        block
    }
}

#[inline(always)]
fn front_index(key: u64) -> usize {
    ((key >> 4) ^ (key & 3) << 10) as usize % FRONT
}

impl<C, S> Block<C, S> {
    /// Makes a block. Where the frame is known, writes above its registers are illegal operations; otherwise
    /// `highest_target` says what the block needs.
    fn new<B: Backend<Code = C>, O: Observer<Static = S>>(
        place: (u64, u8),
        page: &HostPage,
        extent: Extent,
        backend: &mut B,
        observer: &mut O,
    ) -> Block<C, S> {
        let context = Context::new(place, page, extent.frame_size, O::DETAIL);
        let decoded = decode(place, page, &context, extent);
        let known = match context.detail {
            Detail::Effects => Arc::default(),
            Detail::Everything => {
                observer.begins_block();
                let instructions = decoded.instructions.iter();
                instructions
                    .map(|instruction| Known::new(&instruction.decoded, observer))
                    .collect()
            }
        };
        Block::of(decoded, known, backend, &context)
    }

    /// Translates what was decoded.
    fn of<B: Backend<Code = C>>(
        decoded: DecodedBlock,
        known: Arc<[Known<S>]>,
        backend: &mut B,
        context: &Context,
    ) -> Block<C, S> {
        let (bundle, slot) = decoded.next;
        let (gathering, gathered_later) = Gathering::of_block(&known);
        Block {
            gathering,
            gathered_later,
            code: backend.translate(&decoded, context),
            known,
            instructions: u32::from(decoded.retired),
            highest_target: decoded.highest_target,
            size: size(bundle, slot),
        }
    }
}

impl<C, S> Block<C, S> {
    /// Its first instructions, fewer than it has, of which the interpreter has made these operations; for a block in
    /// whose frame it fits, and of which everything is known.
    pub(crate) fn beginning(&self, operations: &[MicroOperation], instructions: u16) -> NarrowBlock<S> {
        let count = usize::from(instructions);
        let next = operations[count].place;
        let (bundle, slot) = (next >> 2, (next & 3) as u8);
        let leave = semantics::leave_to((bundle, slot), instructions);
        let (gathering, gathered_later) = Gathering::of_block(&self.known[..count]);
        Block {
            code: operations[..count].iter().copied().chain([leave]).collect(),
            known: Arc::clone(&self.known),
            instructions: instructions.into(),
            highest_target: self.highest_target,
            size: size(bundle, slot),
            gathering,
            gathered_later,
        }
    }
}

impl<S> NarrowBlock<S> {
    /// Makes the beginning of a block.
    pub(crate) fn narrow<O: Observer<Static = S>>(
        place: (u64, u8),
        page: &HostPage,
        cut: Cut,
        observer: &mut O,
    ) -> NarrowBlock<S> {
        let extent = Extent {
            frame_size: Some(cut.frame_size),
            instructions_max: cut.instructions_max,
            is_short: false,
        };
        Block::new(place, page, extent, &mut Interpreter, observer)
    }
}

/// The size in bytes of the bundles in front of a place, the one that it is inside of included.
fn size(bundle: u16, slot: u8) -> u64 {
    u64::from(bundle) * 16 + if slot > 0 { 16 } else { 0 }
}

/// The decoded blocks of one processor.
#[derive(Default)]
pub struct BlockCache {
    /// Those of each kind; the kind that runs is not among them.
    kinds: Vec<(Kind, Box<dyn Kept>)>,
    /// The pages that blocks were entered on.
    pub(crate) pages: CodePages,
}

impl BlockCache {
    /// Takes out the blocks that a back end and an observer need, on a processor that has retired so many instructions;
    /// they are given back by [`BlockCache::put`].
    pub(crate) fn take<B: Backend, O: Observer>(
        &mut self,
        observer: &O,
        retired: u64,
    ) -> Box<Blocks<B::Code, O::Static>> {
        let kind = Kind::of::<B, O>(observer);
        // Mostly the kind of the run before, which was put back last.
        let kept = match self.kinds.last() {
            Some((last, _)) if *last == kind => self.kinds.pop(),
            _ => {
                let found = self.kinds.iter().position(|(kept, _)| *kept == kind);
                found.map(|index| self.kinds.remove(index))
            }
        };
        let kept = kept.and_then(|(_, kept)| kept.into_any().downcast().ok());
        kept.unwrap_or_else(|| Box::new(Blocks::new(kind, retired)))
    }

    /// Keeps the blocks of a run for the next one of their kind.
    pub(crate) fn put<C: Send + Sync + 'static, S: Send + Sync + 'static>(
        &mut self,
        blocks: Box<Blocks<C, S>>,
    ) {
        if self.kinds.len() == KINDS_MAX {
            self.kinds.remove(0);
        }
        self.kinds.push((blocks.kind, blocks));
    }
}

impl Forget for BlockCache {
    fn flush(&mut self) {
        for (_, kept) in &mut self.kinds {
            kept.flush();
        }
    }

    fn forget(&mut self, page: u64) {
        for (_, kept) in &mut self.kinds {
            kept.forget(page);
        }
    }
}

/// Decodes from a place on.
fn decode((ip, slot): (u64, u8), page: &HostPage, context: &Context, extent: Extent) -> DecodedBlock {
    let end = page.start.0.wrapping_add(1 << page.size_log2);
    let mut decoding = Decoding::new(slot, context);
    let mut bundle_index = 0;
    'bundles: while bundle_index < BUNDLES_MAX && ip.wrapping_add(u64::from(bundle_index) * 16) != end {
        let bundle = read_bundle(page, ip.wrapping_add(u64::from(bundle_index) * 16));
        for decoded in bundle.decode() {
            if bundle_index == 0 && decoded.slot < slot {
                continue;
            }
            if decoding.block.retired == extent.instructions_max || decoding.add(decoded, bundle_index) {
                break 'bundles;
            }
        }
        bundle_index += 1;
        if extent.is_short && decoding.transfers {
            break;
        }
    }
    decoding.block
}

/// A block in the making.
struct Decoding {
    block: DecodedBlock,
    detail: Detail,
    /// The frame, where it is known.
    frame_size: Option<u32>,
    /// Whether an instruction of it may branch.
    transfers: bool,
}

impl Decoding {
    /// A block that begins at this slot of its first bundle.
    fn new(slot: u8, context: &Context) -> Decoding {
        Decoding {
            block: DecodedBlock {
                instructions: Vec::with_capacity(INSTRUCTIONS_USUAL),
                next: (0, slot),
                retired: 0,
                highest_target: 0,
            },
            detail: context.detail,
            frame_size: context.frame_size,
            transfers: false,
        }
    }

    /// Adds the next instruction, which stands in a bundle so far behind the first one; whether the block ends with it.
    fn add(&mut self, decoded: DecodedSlot, bundle: u16) -> bool {
        let block = &mut self.block;
        let last_slot = if decoded.template.is_long() { 1 } else { 2 };
        block.retired += 1;
        block.next = if decoded.slot == last_slot {
            (bundle + 1, 0)
        } else {
            (bundle, decoded.slot + 1)
        };
        let mut is_outside_frame = false;
        let ends = match &decoded.instruction {
            Ok(instruction) => {
                if matches!(instruction.operation, Operation::Nop) && self.detail == Detail::Effects {
                    return false;
                }
                if matches!(instruction.operation, Operation::Allocate) {
                    self.frame_size = Some(u32::from(instruction.sof()));
                }
                let target = semantics::highest_general_target(instruction);
                match self.frame_size {
                    Some(size) => is_outside_frame = u32::from(target) > 31 + size,
                    None => block.highest_target = block.highest_target.max(target),
                }
                let effects = instruction.effects();
                self.transfers |= effects.contains(Effects::TRANSFERS);
                !is_outside_frame && effects.contains(Effects::ENDS_BLOCK)
            }
            Err(Illegal::EncodingIfPredicate(_)) => false,
            Err(Illegal::Encoding | Illegal::Template) => true,
        };
        block.instructions.push(BlockInstruction {
            decoded,
            bundle,
            retired: block.retired,
            is_outside_frame,
        });
        ends
    }
}

/// An instruction that was fetched and decoded, and not executed yet.
#[derive(Clone, Copy, Debug)]
pub struct FetchedInstruction {
    page: HostPage,
    ip: u64,
    decoded: DecodedSlot,
}

impl FetchedInstruction {
    /// Fetches the instruction at an address and slot from the page that holds it.
    pub(crate) fn new((ip, slot): (u64, u8), page: &HostPage) -> FetchedInstruction {
        let offset = ip.wrapping_sub(page.start.0);
        assert!(offset < 1 << page.size_log2, "the page holds its instruction");
        let bundle = read_bundle(page, ip);
        let decoded = bundle.decode().find(|decoded| decoded.slot >= slot);
        FetchedInstruction {
            page: *page,
            ip,
            // Behind a long instruction there is none.
            decoded: decoded.unwrap_or(DecodedSlot {
                slot,
                instruction: Err(Illegal::Encoding),
                stop: false,
                template: bundle.template(),
            }),
        }
    }

    /// The instruction; `None` if there is none.
    pub fn instruction(&self) -> Option<&Instruction> {
        self.decoded.instruction.as_ref().ok()
    }

    /// The block that holds it alone, for a frame of this size.
    pub(crate) fn block(&self, frame_size: u32) -> NarrowBlock<()> {
        let place = (self.ip, self.decoded.slot);
        let context = Context::new(place, &self.page, Some(frame_size), Detail::Effects);
        let mut decoding = Decoding::new(self.decoded.slot, &context);
        decoding.add(self.decoded, 0);
        Block::of(decoding.block, Arc::default(), &mut Interpreter, &context)
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
