//! The registers of the controller and of a port (AHCI 1.3.1, chapter 3).

/// Offsets of the controller's own.
pub mod at {
    pub const CAPABILITIES: u32 = 0x00;
    pub const CONTROL: u32 = 0x04;
    pub const INTERRUPTS: u32 = 0x08;
    pub const PORTS: u32 = 0x0c;
    pub const VERSION: u32 = 0x10;
    /// Where those of the first port are.
    pub const FIRST_PORT: u32 = 0x100;
}

/// Offsets of a port's.
pub mod port {
    /// Bytes of a port's registers.
    pub const BYTES: u32 = 0x80;
    pub const LIST: u32 = 0x00;
    pub const LIST_HIGH: u32 = 0x04;
    pub const RECEIVED: u32 = 0x08;
    pub const RECEIVED_HIGH: u32 = 0x0c;
    pub const INTERRUPTS: u32 = 0x10;
    pub const ENABLED: u32 = 0x14;
    pub const COMMAND: u32 = 0x18;
    pub const TASK_FILE: u32 = 0x20;
    pub const SIGNATURE: u32 = 0x24;
    pub const STATUS: u32 = 0x28;
    pub const CONTROL: u32 = 0x2c;
    pub const ERRORS: u32 = 0x30;
    pub const ISSUED: u32 = 0x38;
}

/// What the controller can: 64-bit addresses, nothing but AHCI, the first speed of Serial ATA, commands of a port may
/// be taken back, 32 slots.
pub const CAPABILITIES: u32 = 1 << 31 | 1 << 24 | 1 << 20 | 1 << 18 | 31 << 8;
/// The specification that it follows: 1.3.
pub const VERSION: u32 = 0x0001_0300;

/// Bits of the controller's control register.
pub mod control {
    pub const RESET: u32 = 1 << 0;
    pub const INTERRUPTS: u32 = 1 << 1;
    pub const AHCI: u32 = 1 << 31;
}

/// Bits of a port's command register.
pub mod command {
    pub const START: u32 = 1 << 0;
    pub const TAKE_BACK: u32 = 1 << 3;
    pub const RECEIVE: u32 = 1 << 4;
    pub const RECEIVES: u32 = 1 << 14;
    pub const RUNS: u32 = 1 << 15;
    pub const PACKETS: u32 = 1 << 24;
    /// What a driver can set: to start, to spin up, to supply power, to receive; and what it says of the device.
    pub const WRITABLE: u32 = START | 1 << 1 | 1 << 2 | RECEIVE | PACKETS;
    /// Where the slot is that is worked on.
    pub const SLOT_SHIFT: u32 = 8;
}

/// Causes of a port's interrupts.
pub mod cause {
    pub const DEVICE_TO_HOST: u32 = 1 << 0;
    pub const SETUP_BY_PROCESSOR: u32 = 1 << 1;
    pub const DESCRIPTOR: u32 = 1 << 5;
    pub const CONNECTED: u32 = 1 << 6;
    pub const OVERFLOW: u32 = 1 << 24;
    pub const BUS_FAULT: u32 = 1 << 29;
    pub const TASK_FILE: u32 = 1 << 30;
    pub const ALL: u32 = 0xfdc0_00ff;
}

/// A device is there, at the first speed, and awake.
pub const STATUS_UP: u32 = 0x113;
/// What the control register has for a port that is to begin anew.
pub const CONTROL_DETECT: u32 = 0xf;
pub const CONTROL_RESET: u32 = 1;
/// The error register's bit for a device that has come.
pub const ERROR_EXCHANGED: u32 = 1 << 26;

/// Bits of a device's status, and of its error register.
pub mod device {
    pub const READY: u8 = 1 << 6;
    pub const SEEK_DONE: u8 = 1 << 4;
    pub const DATA: u8 = 1 << 3;
    pub const ERROR: u8 = 1 << 0;
    pub const BUSY: u8 = 1 << 7;
    pub const IDLE: u8 = READY | SEEK_DONE;
    pub const ABORTED: u8 = 1 << 2;
}
