//! The registers of the controller: 256 bytes, most of which hold what was written to them.
//!
//! Names are those of LSI's technical manual for the LSI53C895A, chapter 4.

/// Bytes of them.
pub const BYTES: usize = 256;

/// Where registers are.
pub mod at {
    pub const SCNTL0: u8 = 0x00;
    pub const SCNTL1: u8 = 0x01;
    pub const SCNTL3: u8 = 0x03;
    pub const SCID: u8 = 0x04;
    pub const SXFER: u8 = 0x05;
    pub const SDID: u8 = 0x06;
    pub const SFBR: u8 = 0x08;
    pub const SSID: u8 = 0x0a;
    pub const SBCL: u8 = 0x0b;
    pub const DSTAT: u8 = 0x0c;
    pub const SSTAT0: u8 = 0x0d;
    pub const SSTAT1: u8 = 0x0e;
    pub const SSTAT2: u8 = 0x0f;
    pub const DSA: u8 = 0x10;
    pub const ISTAT: u8 = 0x14;
    pub const ISTAT1: u8 = 0x15;
    pub const CTEST1: u8 = 0x19;
    pub const CTEST2: u8 = 0x1a;
    pub const CTEST3: u8 = 0x1b;
    pub const TEMP: u8 = 0x1c;
    pub const DBC: u8 = 0x24;
    pub const DNAD: u8 = 0x28;
    pub const DSP: u8 = 0x2c;
    pub const DSPS: u8 = 0x30;
    pub const DMODE: u8 = 0x38;
    pub const DIEN: u8 = 0x39;
    pub const DCNTL: u8 = 0x3b;
    pub const SIEN0: u8 = 0x40;
    pub const SIEN1: u8 = 0x41;
    pub const SIST0: u8 = 0x42;
    pub const SIST1: u8 = 0x43;
    pub const MACNTL: u8 = 0x46;
    pub const GPCNTL: u8 = 0x47;
    pub const STIME1: u8 = 0x49;
    pub const STEST0: u8 = 0x4c;
    pub const STEST3: u8 = 0x4f;
    pub const STEST4: u8 = 0x52;
    pub const CCNTL0: u8 = 0x56;
    pub const CCNTL1: u8 = 0x57;
    pub const SBDL: u8 = 0x58;
    pub const MMRS: u8 = 0xa0;
    pub const MMWS: u8 = 0xa4;
    pub const SFS: u8 = 0xa8;
    pub const DRS: u8 = 0xac;
    pub const SBMS: u8 = 0xb0;
    pub const PMJAD1: u8 = 0xc0;
    pub const PMJAD2: u8 = 0xc4;
    pub const RBC: u8 = 0xc8;
    pub const UA: u8 = 0xcc;
    pub const ESA: u8 = 0xd0;
    pub const IA: u8 = 0xd4;
    pub const SBC: u8 = 0xd8;
    pub const CSBC: u8 = 0xdc;
}

/// Bits of them.
pub mod bit {
    pub const SCNTL1_RESET: u8 = 1 << 3;
    pub const SCNTL1_CONNECTED: u8 = 1 << 4;
    pub const DSTAT_EMPTY: u8 = 1 << 7;
    pub const DSTAT_BUS_FAULT: u8 = 1 << 5;
    pub const DSTAT_ABORTED: u8 = 1 << 4;
    pub const DSTAT_SINGLE_STEP: u8 = 1 << 3;
    pub const DSTAT_INTERRUPT: u8 = 1 << 2;
    pub const DSTAT_ILLEGAL: u8 = 1 << 0;
    pub const SSTAT0_RESET: u8 = 1 << 1;
    pub const ISTAT_ABORT: u8 = 1 << 7;
    pub const ISTAT_RESET: u8 = 1 << 6;
    pub const ISTAT_SIGNAL: u8 = 1 << 5;
    pub const ISTAT_SEMAPHORE: u8 = 1 << 4;
    pub const ISTAT_CONNECTED: u8 = 1 << 3;
    pub const ISTAT_ON_THE_FLY: u8 = 1 << 2;
    pub const ISTAT_SCSI: u8 = 1 << 1;
    pub const ISTAT_DMA: u8 = 1 << 0;
    pub const ISTAT1_RUNNING: u8 = 1 << 1;
    pub const CTEST2_SIGNAL: u8 = 1 << 6;
    pub const DMODE_MANUAL: u8 = 1 << 0;
    pub const DCNTL_SINGLE_STEP: u8 = 1 << 4;
    pub const DCNTL_START: u8 = 1 << 2;
    pub const SIST0_MISMATCH: u8 = 1 << 7;
    pub const SIST0_COMPLETE: u8 = 1 << 6;
    pub const SIST0_RESET: u8 = 1 << 1;
    pub const SIST1_SELECTION: u8 = 1 << 2;
    pub const SIST1_TIMER: u8 = 1 << 1;
    pub const STEST3_CLEAR_FIFO: u8 = 1 << 1;
    pub const CCNTL0_MISMATCH_JUMP: u8 = 1 << 7;
    pub const CCNTL0_BY_DIRECTION: u8 = 1 << 6;
    pub const CCNTL1_DIRECT_64: u8 = 1 << 0;
    pub const CCNTL1_TABLE_64: u8 = 1 << 1;
    pub const CCNTL1_TABLE_HIGH: u8 = 1 << 2;
}

/// The bytes, and words of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registers([u8; BYTES]);

impl Registers {
    /// As after reset, on a host adapter with identifier 7.
    pub fn new() -> Registers {
        let mut registers = Registers([0; BYTES]);
        for (at, value) in [
            (at::SCNTL0, 0xc0),
            (at::SCID, 7),
            (at::DSTAT, bit::DSTAT_EMPTY),
            (at::CTEST1, 0xf0), // the FIFO is empty
            (at::DCNTL, 0),
            (at::MACNTL, 0x30),
            (at::GPCNTL, 0x0f),
        ] {
            registers.set(at, value);
        }
        registers
    }

    /// A byte.
    pub fn get(&self, at: u8) -> u8 {
        self.0[usize::from(at)]
    }

    /// Sets a byte.
    pub fn set(&mut self, at: u8, value: u8) {
        self.0[usize::from(at)] = value;
    }

    /// Sets bits of a byte.
    pub fn add(&mut self, at: u8, bits: u8) {
        self.0[usize::from(at)] |= bits;
    }

    /// Clears bits of a byte.
    pub fn take(&mut self, at: u8, bits: u8) {
        self.0[usize::from(at)] &= !bits;
    }

    /// Whether a bit is set.
    pub fn has(&self, at: u8, bit: u8) -> bool {
        self.get(at) & bit != 0
    }

    /// A word.
    pub fn word(&self, at: u8) -> u32 {
        let bytes = [0, 1, 2, 3].map(|byte| self.get(at + byte));
        u32::from_le_bytes(bytes)
    }

    /// Sets a word.
    pub fn set_word(&mut self, at: u8, value: u32) {
        for (at, byte) in (at..).zip(value.to_le_bytes()) {
            self.set(at, byte);
        }
    }

    /// All bytes, to be saved.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Those that were saved, if they are as many.
    pub fn from_bytes(bytes: &[u8]) -> Option<Registers> {
        bytes.try_into().ok().map(Registers)
    }
}
