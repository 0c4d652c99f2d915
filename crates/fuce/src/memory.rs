//! Shared memory: its bytes, and the banks that units contend for.
//!
//! An access takes effect when it is issued; in one cycle the units act in the order of their numbers, so memory is
//! sequentially consistent. Its time is reserved at the same moment: it waits for the bank of its word, occupies it,
//! and its result travels back.

/// Shared memory.
#[derive(Debug, Clone)]
pub struct Memory {
    bytes: Vec<u8>,
    bank_free: Vec<u64>,
    bank_mask: usize,
    bank_cycles: u64,
    interconnect_cycles: u64,
    accesses: u64,
    conflict_cycles: u64,
}

/// The time an access takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// The cycle in which the bank begins.
    pub accepted: u64,
    /// The first cycle in which the result can be used.
    pub done: u64,
}

impl Memory {
    /// Zeroed memory of `bytes` bytes in `banks` banks, both powers of two.
    pub fn new(bytes: u32, banks: usize, bank_cycles: u32, interconnect_cycles: u32) -> Memory {
        Memory {
            bytes: vec![0; bytes as usize],
            bank_free: vec![0; banks],
            bank_mask: banks - 1,
            bank_cycles: bank_cycles.into(),
            interconnect_cycles: interconnect_cycles.into(),
            accesses: 0,
            conflict_cycles: 0,
        }
    }

    /// The size in bytes.
    pub fn len(&self) -> u32 {
        self.bytes.len() as u32
    }

    /// Whether there is no memory; there always is.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether `length` bytes from `address` on exist.
    pub fn contains(&self, address: u32, length: u32) -> bool {
        u64::from(address) + u64::from(length) <= self.bytes.len() as u64
    }

    /// Bytes, if they exist.
    pub fn bytes(&self, address: u32, length: u32) -> Option<&[u8]> {
        let start = address as usize;
        self.bytes.get(start..start.checked_add(length as usize)?)
    }

    /// Bytes to write, if they exist.
    pub fn bytes_mut(&mut self, address: u32, length: u32) -> Option<&mut [u8]> {
        let start = address as usize;
        self.bytes.get_mut(start..start.checked_add(length as usize)?)
    }

    /// The `N` bytes at an address, if they exist.
    #[inline]
    pub fn read<const N: usize>(&self, address: u32) -> Option<[u8; N]> {
        let start = address as usize;
        self.bytes.get(start..start + N)?.try_into().ok()
    }

    /// Writes `N` bytes; `None` and no change where they do not exist.
    #[inline]
    pub fn write<const N: usize>(&mut self, address: u32, value: [u8; N]) -> Option<()> {
        let start = address as usize;
        self.bytes.get_mut(start..start + N)?.copy_from_slice(&value);
        Some(())
    }

    /// The word at an address, if it exists.
    #[inline]
    pub fn word(&self, address: u32) -> Option<u32> {
        self.read(address).map(u32::from_le_bytes)
    }

    /// Writes a word; `None` and no change where it does not exist.
    #[inline]
    pub fn set_word(&mut self, address: u32, value: u32) -> Option<()> {
        self.write(address, value.to_le_bytes())
    }

    /// Reserves the bank of `address` for an access issued in cycle `now`.
    #[inline]
    pub fn reserve(&mut self, address: u32, now: u64) -> Timing {
        let bank = &mut self.bank_free[(address >> 2) as usize & self.bank_mask];
        let arrival = now + self.interconnect_cycles;
        let accepted = arrival.max(*bank);
        *bank = accepted + self.bank_cycles;
        self.accesses += 1;
        self.conflict_cycles += accepted - arrival;
        Timing {
            accepted,
            done: accepted + self.bank_cycles + self.interconnect_cycles,
        }
    }

    /// Accesses to banks so far.
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Cycles that accesses waited for busy banks.
    pub fn conflict_cycles(&self) -> u64 {
        self.conflict_cycles
    }
}
