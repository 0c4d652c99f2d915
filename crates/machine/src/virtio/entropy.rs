//! The entropy device: random bytes on request (section 5.4).
//!
//! Where the bytes come from is the machine's choice: the host's generator, or [`Seeded`] where two runs have to
//! be the same.

use std::fs::File;
use std::io::{self, Read};

use super::VirtioDevice;
use super::request::{Request, RequestError};

/// The most bytes in one answer; drivers ask again.
const ANSWER_BYTES_MAX: u64 = 1 << 16;

/// Where bytes come from.
pub trait Source: Read + Send {
    /// What it goes on from, if that decides its bytes.
    fn state(&self) -> u64 {
        0
    }

    /// Goes on from there.
    fn set_state(&mut self, state: u64) {
        let _ = state;
    }
}

impl Source for File {}

/// The device.
pub struct Entropy {
    source: Box<dyn Source>,
}

impl Entropy {
    /// With bytes from `source`; one that fails or ends gives none.
    pub fn new(source: impl Source + 'static) -> Entropy {
        Entropy {
            source: Box::new(source),
        }
    }

    /// With bytes from the host's generator.
    ///
    /// # Errors
    /// If the host has none.
    pub fn of_host() -> io::Result<Entropy> {
        Ok(Entropy::new(File::open("/dev/urandom")?))
    }
}

impl VirtioDevice for Entropy {
    fn identifier(&self) -> u32 {
        4
    }

    fn features(&self) -> u64 {
        0
    }

    fn queue_sizes(&self) -> &[u16] {
        &[64]
    }

    fn configuration(&self) -> &[u8] {
        &[]
    }

    fn serve(&mut self, _: usize, request: &Request<'_>) -> Result<u32, RequestError> {
        if request.writable() == 0 {
            return Err(request.short());
        }
        let mut bytes = vec![0; request.writable().min(ANSWER_BYTES_MAX) as usize];
        let filled = self.source.read(&mut bytes).unwrap_or(0);
        request.write(0, &bytes[..filled]);
        Ok(filled as u32)
    }

    fn save(&self) -> u64 {
        self.source.state()
    }

    fn restore(&mut self, saved: u64) {
        self.source.set_state(saved);
    }
}

impl Source for Seeded {
    fn state(&self) -> u64 {
        self.0
    }

    fn set_state(&mut self, state: u64) {
        self.0 = state;
    }
}

/// Bytes that a seed decides: SplitMix64 (Steele, Lea and Flood, 2014). Reproducible, so no secret.
pub struct Seeded(pub u64);

impl Read for Seeded {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        for part in bytes.chunks_mut(8) {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.0;
            mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^= mixed >> 31;
            part.copy_from_slice(&mixed.to_le_bytes()[..part.len()]);
        }
        Ok(bytes.len())
    }
}
