//! The application as a service sees it: its arguments, and memory as it addresses it. Nothing of it is trusted.

use sidestep_ia64::{PhysicalAddress, VirtualAddress};

use super::super::efi::{self, PAGE};
use crate::machine::hypercall::Call;
use crate::virtual_memory;

/// A GUID, as memory holds it.
pub type Guid = [u8; 16];
/// A status with the error bit, as the reason why a service is not done.
pub type Failure = u64;

/// An application that has called.
pub struct Guest<'a, 'b>(pub &'a mut Call<'b>);

/// In how many registers arguments are.
const REGISTERS: u64 = 8;

impl Guest<'_, '_> {
    /// Argument `index`: in a register, or behind the scratch area of the stack.
    pub fn argument(&self, index: u64) -> Result<u64, Failure> {
        const SCRATCH: u64 = 16;
        const STACK_POINTER: u8 = 12;
        let registers = &self.0.processor.general;
        match index.checked_sub(REGISTERS) {
            None => Ok(registers.value(32 + index as u8)),
            Some(behind) => {
                let at = registers.value(STACK_POINTER).wrapping_add(SCRATCH + 8 * behind);
                self.word(at)
            }
        }
    }

    /// The first arguments.
    pub fn arguments<const COUNT: usize>(&self) -> [u64; COUNT] {
        std::array::from_fn(|index| self.0.processor.general.value(32 + index as u8))
    }

    /// The machine's time, as the processor has it.
    pub fn now(&self) -> u64 {
        self.0.platform.timeline.now().max(self.0.ticks)
    }

    /// Does `work` for each part of a range that is one piece of physical memory.
    fn pieces(
        &self,
        address: u64,
        size: u64,
        mut work: impl FnMut(PhysicalAddress, std::ops::Range<usize>) -> bool,
    ) -> Result<(), Failure> {
        let mut done = 0;
        while done < size {
            let at = address.checked_add(done).ok_or(efi::INVALID_PARAMETER)?;
            let count = (PAGE - at % PAGE).min(size - done);
            let memory = &self.0.platform.memory;
            let physical = virtual_memory::translate(self.0.processor, memory, VirtualAddress(at));
            if !work(physical, done as usize..(done + count) as usize) {
                return Err(efi::INVALID_PARAMETER);
            }
            done += count;
        }
        Ok(())
    }

    /// Fills `bytes`.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Failure> {
        let memory = &self.0.platform.memory;
        self.pieces(address, bytes.len() as u64, |at, range| {
            memory.read(at, &mut bytes[range]).is_ok()
        })
    }

    /// Writes `bytes`; some may be written if not all of them fit.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Failure> {
        let memory = &self.0.platform.memory;
        self.pieces(address, bytes.len() as u64, |at, range| {
            memory.write(at, &bytes[range]).is_ok()
        })
    }

    /// So many bytes.
    pub fn bytes(&self, address: u64, size: u64) -> Result<Vec<u8>, Failure> {
        let ranges = self.0.platform.memory.ranges().iter();
        let all: u64 = ranges.map(|range| range.size).sum();
        if size > all {
            return Err(efi::INVALID_PARAMETER);
        }
        let mut bytes = vec![0; size as usize];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }

    fn array<const SIZE: usize>(&self, address: u64) -> Result<[u8; SIZE], Failure> {
        let mut bytes = [0; SIZE];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }

    /// A word of 64 bits.
    pub fn word(&self, address: u64) -> Result<u64, Failure> {
        self.array(address).map(u64::from_le_bytes)
    }

    /// Writes a word of 64 bits.
    pub fn set_word(&mut self, address: u64, value: u64) -> Result<(), Failure> {
        self.write(address, &value.to_le_bytes())
    }

    /// The same if an application wants it: its address is not null.
    pub fn set_optional(&mut self, address: u64, value: u64) -> Result<(), Failure> {
        match address {
            0 => Ok(()),
            _ => self.set_word(address, value),
        }
    }

    /// A GUID; null is none.
    pub fn guid(&self, address: u64) -> Result<Guid, Failure> {
        match address {
            0 => Err(efi::INVALID_PARAMETER),
            _ => self.array(address),
        }
    }

    /// The characters up to a zero, at most `most` of them.
    pub fn text(&self, address: u64, most: usize) -> Result<Vec<u16>, Failure> {
        let mut text = Vec::new();
        if address == 0 {
            return Err(efi::INVALID_PARAMETER);
        }
        while text.len() < most {
            let at = address.wrapping_add(2 * text.len() as u64);
            match u16::from_le_bytes(self.array(at)?) {
                0 => return Ok(text),
                character => text.push(character),
            }
        }
        Err(efi::INVALID_PARAMETER)
    }

    /// Writes bytes to a buffer whose size stands at `size`, and there how many they are.
    pub fn answer(&mut self, size: u64, buffer: u64, bytes: &[u8]) -> Result<(), Failure> {
        let room = self.word(size)?;
        self.set_word(size, bytes.len() as u64)?;
        match room >= bytes.len() as u64 {
            true if bytes.is_empty() => Ok(()),
            true if buffer == 0 => Err(efi::INVALID_PARAMETER),
            true => self.write(buffer, bytes),
            false => Err(efi::BUFFER_TOO_SMALL),
        }
    }
}
