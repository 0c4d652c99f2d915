//! A processor on two pages of code and a page of data, for tests that run short programs of one instruction a
//! bundle.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sidestep_ia64::encoding::{Bundle, Form, Template, UnitClass};
use sidestep_ia64::{Access, AddressSpace, Exit, Fault, HostPage, Processor, Refusal, VirtualAddress};

/// Where the code stands.
pub const CODE: u64 = 0x1_0000;
/// Where its second page begins.
pub const SECOND_PAGE: u64 = CODE + PAGE as u64;
/// Where the data stands; the page behind it is not mapped.
pub const DATA: u64 = 0x2_0000;

const PAGE: usize = 4096;
/// Template of memory, integer and branch slots with a stop behind them.
const MIB_STOP: u8 = 0x11;
/// Template of memory, floating-point and branch slots with a stop behind them.
const MFB_STOP: u8 = 0x1d;
/// Template of a memory slot and a long instruction with a stop behind them.
const MLX_STOP: u8 = 0x05;

#[repr(C, align(4096))]
struct Page([u8; PAGE]);

struct Pages {
    code: *mut [Page; 2],
    data: *mut Page,
    has_second_page: AtomicBool,
}

// SAFETY: the pages are leaked, so the pointers stay valid; only the processor of one test uses them.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

// SAFETY: the pages live as long as the program.
unsafe impl AddressSpace for Pages {
    fn resolve(&self, address: VirtualAddress, access: Access) -> Result<HostPage, Refusal> {
        let start = address.0 & !(PAGE as u64 - 1);
        let (host, executable) = match start {
            CODE => (self.code.cast::<Page>(), true),
            SECOND_PAGE if self.has_second_page.load(Ordering::Relaxed) => {
                (self.code.cast::<Page>().wrapping_add(1), true)
            }
            DATA => (self.data, false),
            _ => return Err(Refusal::NotPresent),
        };
        if access.writes() && executable {
            return Err(Refusal::AccessRights);
        }
        Ok(HostPage {
            start: VirtualAddress(start),
            size_log2: 12,
            host: host.cast(),
            readable: true,
            writable: !executable,
            executable,
        })
    }
}

/// The processor with its memory.
pub struct Machine {
    pub processor: Processor,
    pages: Arc<Pages>,
}

/// An instruction: mnemonic without hints, qualifying predicate, operand values as written. Of several forms the last
/// one is meant (an immediate rather than a register, a floating-point register rather than a general one), unless
/// the manual's name of the format follows the mnemonic, and behind that a word of the operation ("mov M42 Region").
pub type Line<'a> = (&'a str, u8, &'a [i64]);

impl Machine {
    pub fn new() -> Self {
        let code = Box::into_raw(Box::new([(); 2].map(|()| Page([0; PAGE]))));
        let data = Box::into_raw(Box::new(Page([0; PAGE])));
        let pages = Arc::new(Pages {
            code,
            data,
            has_second_page: AtomicBool::new(true),
        });
        let mut processor = Processor::new(Arc::clone(&pages) as Arc<dyn AddressSpace>);
        processor.predicates = !0;
        Self { processor, pages }
    }

    /// Runs instructions, one in a bundle, until control reaches the end behind them or one faults or traps.
    pub fn run(&mut self, lines: &[Line]) -> Result<(), Fault> {
        self.load(lines);
        let end = CODE + lines.len() as u64 * 16;
        match self.processor.run(u64::MAX) {
            Exit::Fault(_) if self.processor.instruction_pointer() == (end, 0) => Ok(()),
            Exit::Fault(fault) => Err(fault),
            exit => unreachable!("{exit:?}"),
        }
    }

    /// Puts instructions, one in a bundle, where the processor goes on; behind them is a break.
    pub fn load(&mut self, lines: &[Line]) {
        let bundles: Vec<Bundle> = lines.iter().map(|line| bundle(*line)).collect();
        self.load_bundles(&bundles);
    }

    /// As [`Machine::load`], of whole bundles.
    pub fn load_bundles(&mut self, bundles: &[Bundle]) {
        self.load_bundles_at(CODE, bundles);
    }

    /// As [`Machine::load_bundles`], to an address of the code's pages.
    pub fn load_bundles_at(&mut self, address: u64, bundles: &[Bundle]) {
        // All zeros are a break in the first slot.
        self.code().fill(0);
        self.write_bundles(address, bundles);
        self.processor.flush_translations();
        self.processor.set_instruction_pointer(address, 0);
    }

    /// Writes bundles over what stands there; the processor is told nothing.
    pub fn write_bundles(&mut self, address: u64, bundles: &[Bundle]) {
        let places = self.code()[(address - CODE) as usize..].chunks_exact_mut(16);
        for (place, bundle) in places.zip(bundles) {
            place.copy_from_slice(&bundle.to_bytes());
        }
    }

    /// Takes the second page of code away, or gives it back, and says so.
    pub fn map_second_page(&mut self, is_mapped: bool) {
        self.pages.has_second_page.store(is_mapped, Ordering::Relaxed);
        self.processor.flush_translations();
    }

    /// The bytes of both pages of code.
    pub fn code(&mut self) -> &mut [u8] {
        // SAFETY: the pages are leaked and no processor runs while the reference lives.
        unsafe { std::slice::from_raw_parts_mut(self.pages.code.cast(), 2 * PAGE) }
    }

    /// The bytes at the beginning of the data page.
    pub fn data(&mut self) -> &mut [u8] {
        // SAFETY: the page is leaked and no processor runs while the reference lives.
        unsafe { &mut (*self.pages.data).0 }
    }
}

/// A bundle with one instruction in it, the other slots filled with `nop`s.
pub fn bundle((mnemonic, predicate, values): Line) -> Bundle {
    let mut words = mnemonic.split(' ');
    let mut word = || words.next().unwrap_or_default();
    let (mnemonic, format, operation) = (word(), word(), word());
    let form = Form::named(mnemonic)
        .filter(|form| form.operands.len() == values.len() && (format.is_empty() || form.format == format))
        .filter(|form| format!("{:?}", form.operation).contains(operation))
        .last()
        .unwrap_or_else(|| panic!("no form {mnemonic} of {} operands", values.len()));
    let encoded = form
        .encode(predicate, values, &[])
        .unwrap_or_else(|error| panic!("{mnemonic}: {error}"));
    let nop = |mnemonic| {
        Form::named(mnemonic)
            .next()
            .unwrap()
            .encode(0, &[0], &[])
            .unwrap()
            .slot
    };
    let (template, slots) = match form.class {
        UnitClass::M | UnitClass::A => (MIB_STOP, [encoded.slot, nop("nop.i"), nop("nop.b")]),
        UnitClass::I => (MIB_STOP, [nop("nop.m"), encoded.slot, nop("nop.b")]),
        UnitClass::B => (MIB_STOP, [nop("nop.m"), nop("nop.i"), encoded.slot]),
        UnitClass::F => (MFB_STOP, [nop("nop.m"), encoded.slot, nop("nop.b")]),
        UnitClass::LX => (MLX_STOP, [nop("nop.m"), encoded.long, encoded.slot]),
    };
    Bundle::new(Template::new(template), slots)
}
