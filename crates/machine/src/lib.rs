//! Machines: IA-64 processors with memory, devices and the executors that run them.
//!
//! - [`memory`]: RAM and ROM behind physical addresses, as the host side reads and writes them; [`virtual_memory`]: the
//!   same through a processor's translations, without effect.
//! - [`bus`]: devices behind physical addresses; [`virtio`]: those for paravirtual drivers; [`network`]: what their
//!   network cables lead to; [`pci`]: the bus that they are on; [`lsi`] and [`ahci`]: controllers of disks, and
//!   [`storage`]: what is behind them; [`e1000`]: a network adapter; [`folder`]: folders of the host.
//! - [`machine`]: processors on one memory and one bus; interrupts between them, global purges, timed events,
//!   hypercalls; two executors, deterministic virtual time and a host thread per processor.
//! - [`debug`]: traces, and a stub for gdb.
//! - [`firmware`]: PAL, SAL, EFI and ACPI for kernels, and [`device`]s of a whole machine.
//! - [`snapshot`]: a whole machine in a file.
//! - [`image`]: ELF images and their way into memory; [`compressed`]: compressed ones; [`description`]: machines as
//!   TOML files.
//!
//! Nothing here is global: any number of machines live in one program.
//!
#![doc = include_str!("../README.md")]

pub mod ahci;
pub mod bus;
pub mod compressed;
pub mod debug;
pub mod description;
pub mod device;
pub mod e1000;
pub mod firmware;
pub mod folder;
pub mod image;
pub mod lsi;
pub mod machine;
pub mod memory;
pub mod network;
pub mod pci;
pub mod snapshot;
pub mod storage;
pub mod virtio;
pub mod virtual_memory;

pub use bus::{Bus, Device};
pub use machine::{End, Machine, MachineBuilder, Outcome};
pub use memory::{GuestMemory, MemoryKind, MemoryRange};
