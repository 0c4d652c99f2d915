//! Why a host cannot be built from its description.

use sidestep_gang::sets::SetsError;
use sidestep_machine::description::kernel;
use sidestep_machine::image::ImageError;
use thiserror::Error;

use crate::contention::HierarchyError;
use crate::costs::CostsError;
use crate::host::HostError;
use crate::link::LinkError;
use crate::virtual_machine::VirtualMachineError;

/// The most virtual machines of a host.
pub(super) const MACHINES_MAX: usize = 256;

/// Why a host cannot be built.
#[derive(Debug, Error)]
pub enum BuildError {
    /// A file that cannot be read.
    #[error("{path}: cannot be read: {error}")]
    File {
        /// The file.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// A table of costs that cannot be used.
    #[error("costs `{name}`: {error}")]
    Costs {
        /// The preset or file.
        name: String,
        /// Why.
        error: CostsError,
    },
    /// A table of what cores share that cannot be used.
    #[error("hierarchy `{name}`: {error}")]
    Hierarchy {
        /// The preset or file.
        name: String,
        /// Why.
        error: HierarchyError,
    },
    /// Too many virtual machines, or none.
    #[error("there are {0} virtual machines (`[[vm]]`, with `count`): 1 to {MACHINES_MAX} are possible")]
    Machines(usize),
    /// A number that makes no sense.
    #[error("`{key}` is {value}: {range} is possible")]
    OutOfRange {
        /// The key.
        key: &'static str,
        /// Its value.
        value: u64,
        /// What it may be.
        range: &'static str,
    },
    /// A size that is none.
    #[error("`{key}` is {value}: a power of two is possible")]
    NoPowerOfTwo {
        /// The key.
        key: &'static str,
        /// Its value.
        value: u64,
    },
    /// Lists that are no sets.
    #[error("virtual machine `{name}`: `sets`: {error}")]
    Sets {
        /// The virtual machine.
        name: String,
        /// Why.
        error: SetsError,
    },
    /// Sets under a policy that has no use for them.
    #[error("virtual machine `{0}`: `sets` are for a host with `policy = \"partial\"`")]
    UselessSets(String),
    /// A policy by sets, and no way to know them.
    #[error(
        "`policy = \"partial\"`: virtual machine `{0}` has no `sets`, and without a table `[detection]` none are found"
    )]
    NoSets(String),
    /// Neither an image nor a kernel, or both.
    #[error("virtual machine `{0}` needs either `image` or `kernel`")]
    Start(String),
    /// Two virtual machines of one name.
    #[error("two virtual machines are called `{0}`: nobody could tell what they print apart")]
    SameName(String),
    /// A key that means nothing for this virtual machine.
    #[error("virtual machine `{name}`: `{key}` is for a virtual machine with `{with}`")]
    Meaningless {
        /// The virtual machine.
        name: String,
        /// The key.
        key: &'static str,
        /// What it would need.
        with: &'static str,
    },
    /// A kernel that cannot be started.
    #[error("virtual machine `{name}`: {error}")]
    Kernel {
        /// The virtual machine.
        name: String,
        /// Why.
        error: kernel::BuildError,
    },
    /// An image that a virtual machine cannot load.
    #[error("{path}: {error}")]
    Image {
        /// The file.
        path: String,
        /// Why.
        error: ImageError,
    },
    /// The wire of a card that there is not.
    #[error("`[{0}]` is for a host with a card: add a table `[nic]`")]
    NoCard(&'static str),
    /// A wire with too many ends.
    #[error("`[link]` and `[uplink]` exclude each other: the card's wire ends once")]
    TwoEnds,
    /// A link that cannot be.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A virtual machine that cannot be made.
    #[error(transparent)]
    Machine(#[from] VirtualMachineError),
    /// A host that cannot be made.
    #[error(transparent)]
    Host(#[from] HostError),
}
