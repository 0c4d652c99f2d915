//! The gate page: the shared object that Linux/ia64 maps into region 5 of every process.
//!
//! Programs find it through `AT_SYSINFO` and `AT_SYSINFO_EHDR`; it holds the system call entry and the code a
//! signal handler returns to, with unwind descriptors. Its source is `gate.S`.

use crate::memory::mapping::Protection;
use crate::memory::window::{PAGE, PAGE_SHIFT};
use crate::memory::{Denial, Need, View};

/// Where the gate page is.
pub const ADDRESS: u64 = 0xa000_0000_0000_0000;
/// The system call entry that `AT_SYSINFO` names.
pub const SYSTEM_CALL: u64 = ADDRESS + 0x1020;
/// Where a signal handler returns to.
pub const SIGNAL_RETURN: u64 = ADDRESS + 0x1050;

/// The image: see README.md in this folder.
const IMAGE: &[u8] = include_bytes!("gate.so");

#[repr(C, align(16384))]
struct Page([u8; PAGE as usize]);

/// One copy of the gate page.
pub struct Gate {
    page: Box<Page>,
}

impl Gate {
    /// Makes the page.
    pub fn new() -> Gate {
        let mut page = Box::new(Page([0; PAGE as usize]));
        page.0[..IMAGE.len()].copy_from_slice(IMAGE);
        Gate { page }
    }

    /// The page's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.page.0
    }

    /// The page, if the address is on it: it may be read and executed.
    pub fn view(&self, address: u64, need: Need) -> Option<Result<View, Denial>> {
        if address & !(PAGE - 1) != ADDRESS {
            return None;
        }
        if need.write {
            return Some(Err(Denial::NotAllowed));
        }
        let host = self.page.0.as_ptr().cast_mut();
        Some(Ok(View {
            start: ADDRESS,
            size_log2: PAGE_SHIFT,
            host,
            protection: Protection(5),
        }))
    }
}

impl Default for Gate {
    fn default() -> Self {
        Gate::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::read::elf::{ElfFile64, FileHeader};
    use object::{LittleEndian, Object, ObjectSymbol};

    #[test]
    fn the_image_fits_its_page_and_its_symbols_are_where_the_crate_says() {
        assert!(IMAGE.len() <= PAGE as usize);
        let file = ElfFile64::<LittleEndian>::parse(IMAGE).expect("an ELF image");
        assert_eq!(file.elf_header().e_entry(LittleEndian), SYSTEM_CALL);
        let trampoline = file
            .dynamic_symbols()
            .find(|symbol| symbol.name() == Ok("__kernel_sigtramp"));
        let start = trampoline.expect("the trampoline").address();
        assert_eq!(
            SIGNAL_RETURN,
            start + 16,
            "the return address follows the bundle that stands for the call"
        );
    }
}
