//! What a virtual machine is made of, and why it cannot be made.

use sidestep_machine::image::ImageError;
use sidestep_machine::memory::LayoutError;
use thiserror::Error;

/// How guests are kept from the monitor's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Virtualization {
    /// PSR.vm: sensitive instructions are intercepted, guests keep their levels.
    Hardware,
    /// Guests run one level lower; unprivileged sensitive instructions are replaced.
    RingCompression,
}

/// How guests make requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// By leaving the guest.
    Exit,
    /// Through memory, to a sidecore.
    Sidecall,
}

impl Method {
    /// The method in reports.
    pub fn name(self) -> &'static str {
        match self {
            Method::Exit => "exit",
            Method::Sidecall => "sidecall",
        }
    }
}

/// How other cores' TLBs are purged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PurgeMethod {
    /// Each core is interrupted, and purges itself.
    Interrupt,
    /// `ptc.ga`: the hardware tells every core.
    Broadcast,
}

/// What a virtual machine is made of.
#[derive(Clone, Debug)]
pub struct VirtualMachineConfig {
    /// Its name in reports.
    pub name: String,
    /// Its virtual processors, 1 to 64.
    pub processors: usize,
    /// Bytes of memory at guest-physical address 0; a multiple of 64 kB.
    pub memory: u64,
    /// How its guest is kept apart.
    pub virtualization: Virtualization,
    /// How its guest makes requests at first.
    pub method: Method,
    /// How its TLBs are purged.
    pub purge: PurgeMethod,
    /// Bytes of the monitor's own memory that each exit's handler touches, beside the record of the processor and what
    /// it works on. They are in the caches of a core that is modelled, at the guest's expense.
    pub handler_bytes: u64,
    /// Whether its page tables have a lock, which cores that update them after an exit take one after the other. A
    /// sidecore needs none.
    pub page_table_lock: bool,
    /// What its guest reads with the call for parameters.
    pub parameters: String,
    /// The contents of its block device.
    pub disk: Vec<u8>,
}

impl VirtualMachineConfig {
    /// One processor, 16 MB, hardware virtualisation, requests by exit.
    pub fn new(name: &str) -> VirtualMachineConfig {
        VirtualMachineConfig {
            name: name.to_owned(),
            processors: 1,
            memory: 16 << 20,
            virtualization: Virtualization::Hardware,
            method: Method::Exit,
            purge: PurgeMethod::Broadcast,
            handler_bytes: 0,
            page_table_lock: false,
            parameters: String::new(),
            disk: Vec::new(),
        }
    }
}

/// Why a virtual machine cannot be made.
#[derive(Debug, Error)]
pub enum VirtualMachineError {
    /// Too few or too many processors.
    #[error("virtual machine `{name}` has {processors} processors: 1 to {PROCESSORS_MAX} are possible")]
    Processors {
        /// The virtual machine.
        name: String,
        /// Its processors.
        processors: usize,
    },
    /// Memory that cannot be.
    #[error("virtual machine `{name}`: {source}")]
    Memory {
        /// The virtual machine.
        name: String,
        /// What is wrong.
        source: LayoutError,
    },
    /// Too much memory.
    #[error("virtual machine `{name}` has {memory:#x} bytes of memory: at most {MEMORY_MAX:#x} are possible")]
    TooMuchMemory {
        /// The virtual machine.
        name: String,
        /// Its memory.
        memory: u64,
    },
    /// An image that cannot be loaded.
    #[error("virtual machine `{name}`: the image {source}")]
    Image {
        /// The virtual machine.
        name: String,
        /// What is wrong.
        source: ImageError,
    },
}

/// The most virtual processors of a virtual machine.
pub const PROCESSORS_MAX: usize = 64;
/// The most memory of a virtual machine.
pub const MEMORY_MAX: u64 = 1 << 36;
