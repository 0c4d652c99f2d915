//! Pages that instructions are fetched from, as the execution loop keeps them at hand.
//!
//! What a fetch may do depends on PSR.it and the privilege level, so each of these contexts has its own pages: kernels
//! and programs take turns without looking theirs up again. All pages are forgotten when a translation of
//! instructions may have changed, those of one region when its identifier has.

use crate::address::VirtualAddress;
use crate::memory::HostPage;
use crate::processor::Processor;
use crate::registers::status::psr;

/// Pages kept of a context, chosen by the address.
const PAGES: usize = 16;
/// Addresses this close together share a place among them: the usual page size of Linux/ia64.
const PAGE_INDEX_LOG2: u32 = 14;
/// Physical addressing, and the four privilege levels.
const CONTEXTS: usize = 5;

/// A page that instructions are fetched from.
#[derive(Clone, Copy)]
pub(crate) struct CodePage {
    page: HostPage,
    /// Bits of an address that choose the page.
    mask: u64,
    /// What the page means for its instructions, in system mode.
    pub properties: CodeProperties,
}

/// What a page means for the instructions on it.
#[derive(Clone, Copy, Default)]
pub(crate) struct CodeProperties {
    /// Whether it defers speculative faults.
    pub deferral: bool,
    /// The level to which `epc` promotes.
    pub gate_level: Option<u8>,
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
        CodePage {
            page,
            mask: 0,
            properties: CodeProperties::default(),
        }
    }

    pub(crate) fn new(page: HostPage, properties: CodeProperties) -> CodePage {
        CodePage {
            page,
            mask: u64::MAX << page.size_log2,
            properties,
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

/// The pages that instructions were fetched from lately.
#[derive(Default)]
pub(crate) struct CodePages(Vec<CodePage>);

impl CodePages {
    /// The page that holds the instruction pointer, if it is known.
    #[inline]
    pub(crate) fn find(&self, processor: &Processor) -> Option<&CodePage> {
        let ip = processor.instruction_pointer().0;
        let page = self.0.get(index(processor, ip))?;
        page.holds(ip).then_some(page)
    }

    /// Remembers the page that holds the instruction pointer.
    pub(crate) fn remember(&mut self, processor: &Processor, page: CodePage) {
        if self.0.is_empty() {
            self.0.resize(CONTEXTS * PAGES, CodePage::none());
        }
        let ip = processor.instruction_pointer().0;
        self.0[index(processor, ip)] = page;
    }

    /// Forgets the pages of the regions in the set `regions`, one bit each.
    pub(crate) fn forget(&mut self, regions: u8) {
        for page in &mut self.0 {
            if regions >> page.page.start.region() & 1 != 0 {
                *page = CodePage::none();
            }
        }
    }
}

/// The place of a page in its context.
#[inline]
fn index(processor: &Processor, ip: u64) -> usize {
    let context = if processor.status & psr::IT == 0 {
        0
    } else {
        1 + usize::from(processor.privilege_level())
    };
    // The region counts, too: programs and what they enter begin at the same offset of theirs.
    context * PAGES + (ip >> PAGE_INDEX_LOG2 ^ ip >> VirtualAddress::REGION_SHIFT) as usize % PAGES
}
