//! The execution loop.

use crate::address::VirtualAddress;
use crate::execution::BlockCache;
use crate::execution::block::{Block, Detail};
use crate::execution::operation::{Flow, MicroOperation};
use crate::fault::Fault;
use crate::memory::HostPage;
use crate::processor::{Processor, Raised, pending};
use crate::semantics;

/// Why [`Processor::run`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// An instruction raised a fault, or a trap follows it. For a fault the instruction pointer is at the
    /// instruction, which has changed nothing; for a trap it is behind it.
    Fault(Fault),
    /// The attention flag was found set at a block boundary.
    Attention,
    /// The given number of instructions has retired.
    Limit,
}

/// The page that instructions were last fetched from.
pub(crate) struct CodePage {
    page: HostPage,
    /// Bits of an address that choose the page.
    mask: u64,
}

impl CodePage {
    /// A page that holds no address.
    pub(crate) fn none() -> CodePage {
        let page = HostPage {
            start: VirtualAddress(1),
            size_log2: 0,
            host: std::ptr::null_mut(),
            readable: false,
            writable: false,
            executable: false,
        };
        CodePage { page, mask: 0 }
    }

    pub(crate) fn new(page: HostPage) -> CodePage {
        CodePage {
            page,
            mask: u64::MAX << page.size_log2,
        }
    }

    #[inline(always)]
    pub(crate) fn holds(&self, ip: u64) -> bool {
        ip & self.mask == self.page.start.0
    }

    /// What the block cache knows the instruction at `ip` and `slot` by.
    #[inline(always)]
    pub(crate) fn key(&self, ip: u64, slot: u8) -> u64 {
        (self.page.host as u64).wrapping_add(ip - self.page.start.0) | u64::from(slot)
    }

    pub(crate) fn page(&self) -> &HostPage {
        &self.page
    }
}

impl Processor {
    /// Executes until a fault, until the attention flag is set, or until `limit` more instructions retired.
    pub fn run(&mut self, limit: u64) -> Exit {
        let mut blocks = std::mem::take(&mut self.blocks);
        blocks.set_detail(Detail::Effects);
        let exit = self.run_blocks(&mut blocks, self.retired.saturating_add(limit));
        self.blocks = blocks;
        exit
    }

    fn run_blocks(&mut self, blocks: &mut BlockCache, end: u64) -> Exit {
        self.pending |= pending::CODE_PAGE;
        let mut code = CodePage::none();
        loop {
            if self.wants_attention() {
                return Exit::Attention;
            }
            if self.pending != 0 || !code.holds(self.ip) {
                code = match self.prepare(blocks) {
                    Ok(code) => code,
                    Err(Raised) => return Exit::Fault(self.take_fault()),
                };
            }
            let key = code.key(self.ip, self.slot);
            let decoded;
            let block = match blocks.find(key) {
                Some(block) => block,
                None => {
                    decoded = blocks.find_or_decode(key, (self.ip, self.slot), code.page());
                    &decoded
                }
            };
            let remaining = end - self.retired;
            let fits = u32::from(block.highest_target) <= 31 + self.frame.size;
            let executed = if fits && u64::from(block.instructions) <= remaining {
                self.execute(block)
            } else if remaining == 0 {
                return Exit::Limit;
            } else {
                let instructions_max = u16::try_from(remaining).unwrap_or(u16::MAX);
                let place = (self.ip, self.slot);
                self.execute(&blocks.decode_narrow(place, code.page(), self.frame.size, instructions_max))
            };
            if let Err(Raised) = executed {
                return Exit::Fault(self.take_fault());
            }
        }
    }

    /// Does what is pending before the next block, and finds the page that holds it.
    #[cold]
    pub(crate) fn prepare(&mut self, blocks: &mut BlockCache) -> Result<CodePage, Raised> {
        if self.pending & pending::CODE_CHANGED != 0 {
            blocks.flush();
        }
        self.pending &= pending::FRAME_INCOMPLETE;
        self.complete_frame()?;
        self.pending = 0;
        Ok(CodePage::new(self.resolve_instructions(self.ip)?))
    }

    /// Executes a block to its end or to a taken branch.
    #[inline(always)]
    fn execute(&mut self, block: &Block) -> Result<(), Raised> {
        self.block_start = self.ip;
        for operation in &block.operations {
            if self.predicates >> (operation.predicate & 63) & 1 == 0 {
                continue;
            }
            match semantics::execute(self, operation) {
                Ok(Flow::Next) => {}
                Ok(Flow::Branch) => {
                    self.arrive(operation);
                    return Ok(());
                }
                Err(Raised) => {
                    self.stop_at(operation);
                    return Err(Raised);
                }
            }
        }
        unreachable!("the last operation of a block leaves it")
    }

    /// Moves on to the target of a branch that `operation` took.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, operation: &MicroOperation) {
        self.retired += u64::from(operation.retired);
        self.ip = self.target & !15;
        self.slot = (self.target & 3) as u8;
    }

    /// Leaves the instruction pointer where a handler of the fault that `operation` raised expects it.
    #[cold]
    pub(crate) fn stop_at(&mut self, operation: &MicroOperation) {
        self.ip = self.bundle_address(operation);
        self.slot = operation.slot();
        self.retired += u64::from(operation.retired) - 1;
        if self.raised.is_some_and(|fault| fault.kind.is_trap()) {
            self.trapped = (self.ip, self.slot);
            self.retired += 1;
            self.skip_instruction();
        }
    }
}
