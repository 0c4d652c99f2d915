//! Copies between guest memory and the structures of system calls.
//!
//! Every copy is guarded: a page that is missing, protected or vanishes meanwhile gives `EFAULT`.

use bytemuck::{AnyBitPattern, NoUninit, Zeroable};

use super::Memory;
use crate::host::{self, Errno};

/// The longest string a system call accepts: `MAX_ARG_STRLEN` of the kernel with 16 kB pages.
const LONGEST_STRING: usize = 32 << 14;

impl Memory {
    /// Fills a buffer from guest memory.
    pub fn read_bytes(&self, address: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        let source = self.host(address, buffer.len() as u64)?;
        // SAFETY: the buffer is valid; the source lies within the windows.
        unsafe { host::guarded_copy(buffer.as_mut_ptr(), source, buffer.len()) }
            .map_err(|_| Errno(libc::EFAULT))
    }

    /// Copies bytes into guest memory.
    pub fn write_bytes(&self, address: u64, bytes: &[u8]) -> Result<(), Errno> {
        let target = self.host(address, bytes.len() as u64)?;
        // SAFETY: the bytes are valid; the target lies within the windows.
        unsafe { host::guarded_copy(target, bytes.as_ptr(), bytes.len()) }.map_err(|_| Errno(libc::EFAULT))
    }

    /// Reads a structure.
    pub fn read<T: AnyBitPattern + NoUninit>(&self, address: u64) -> Result<T, Errno> {
        let mut value = <T as Zeroable>::zeroed();
        self.read_bytes(address, bytemuck::bytes_of_mut(&mut value))?;
        Ok(value)
    }

    /// Writes a structure.
    pub fn write<T: NoUninit>(&self, address: u64, value: &T) -> Result<(), Errno> {
        self.write_bytes(address, bytemuck::bytes_of(value))
    }

    /// Reads a structure where the pointer is not null.
    pub fn read_optional<T: AnyBitPattern + NoUninit>(&self, address: u64) -> Result<Option<T>, Errno> {
        if address == 0 {
            Ok(None)
        } else {
            self.read(address).map(Some)
        }
    }

    /// Writes a structure where the pointer is not null.
    pub fn write_optional<T: NoUninit>(&self, address: u64, value: &T) -> Result<(), Errno> {
        if address == 0 {
            Ok(())
        } else {
            self.write(address, value)
        }
    }

    /// Reads an array of `count` structures.
    pub fn read_array<T: AnyBitPattern + NoUninit>(
        &self,
        address: u64,
        count: usize,
    ) -> Result<Vec<T>, Errno> {
        let length = count.checked_mul(size_of::<T>()).ok_or(Errno(libc::EFAULT))?;
        self.host(address, length as u64)?;
        let mut values = vec![<T as Zeroable>::zeroed(); count];
        self.read_bytes(address, bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }

    /// Reads a string up to its terminating zero, which is left out.
    pub fn read_string(&self, address: u64) -> Result<Vec<u8>, Errno> {
        const STEP: u64 = 4096;
        let mut string = Vec::new();
        let mut at = address;
        while string.len() < LONGEST_STRING {
            let length = (STEP - at % STEP) as usize;
            let old = string.len();
            string.resize(old + length, 0);
            self.read_bytes(at, &mut string[old..])?;
            if let Some(end) = string[old..].iter().position(|byte| *byte == 0) {
                string.truncate(old + end);
                return Ok(string);
            }
            at += length as u64;
        }
        Err(Errno(libc::ENAMETOOLONG))
    }

    /// Reads a null-terminated array of strings, such as `argv`.
    pub fn read_strings(&self, address: u64) -> Result<Vec<Vec<u8>>, Errno> {
        let mut strings = Vec::new();
        if address == 0 {
            return Ok(strings);
        }
        loop {
            let pointer: u64 = self.read(address + 8 * strings.len() as u64)?;
            if pointer == 0 {
                return Ok(strings);
            }
            strings.push(self.read_string(pointer).map_err(|error| match error {
                Errno(libc::ENAMETOOLONG) => Errno(libc::E2BIG),
                other => other,
            })?);
        }
    }

    /// Compares and exchanges a 32-bit word; answers the value found.
    pub fn compare_exchange(&self, address: u64, expected: u32, new: u32) -> Result<u32, Errno> {
        let word = self.host(address, 4)?;
        // SAFETY: the word lies within the windows.
        unsafe { host::guarded_compare_exchange(word.cast(), expected, new) }.map_err(|_| Errno(libc::EFAULT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::changes::MapRequest;
    use crate::memory::window::PAGE;

    #[test]
    fn strings_end_at_their_zero_and_bad_pointers_fail() {
        let memory = Memory::new().expect("an address space");
        let page = memory.map(&MapRequest::anonymous(2 * PAGE)).expect("room");
        let at = page + 2 * PAGE - 6;
        memory.write_bytes(at, b"hello\0").expect("mapped");
        assert_eq!(memory.read_string(at).expect("a string"), b"hello");
        memory.write_bytes(at + 5, b"!").expect("mapped");
        assert_eq!(memory.read_string(at), Err(Errno(libc::EFAULT)));
        assert_eq!(memory.read::<u64>(0), Err(Errno(libc::EFAULT)));
        assert_eq!(
            memory.read::<u64>(0xe000_0000_0000_0000),
            Err(Errno(libc::EFAULT))
        );
        assert_eq!(memory.compare_exchange(page, 0, 7), Ok(0));
        assert_eq!(memory.read::<u32>(page), Ok(7));
    }

    #[test]
    fn a_string_array_ends_at_its_null() {
        let memory = Memory::new().expect("an address space");
        let page = memory.map(&MapRequest::anonymous(PAGE)).expect("room");
        memory.write_bytes(page, b"one\0two\0").expect("mapped");
        memory.write(page + 64, &[page, page + 4, 0]).expect("mapped");
        assert_eq!(
            memory.read_strings(page + 64).expect("strings"),
            [b"one".to_vec(), b"two".to_vec()]
        );
    }
}
