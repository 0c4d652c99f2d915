//! A machine with a kernel, as options or a TOML file describe it.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use sidestep_vmm::description::Size;
use sidestep_vmm::description::bare::Clock;
use sidestep_vmm::description::devices::{DiskTable, NetworkTable};
use sidestep_vmm::description::kernel::{Description, KernelTable, MachineTable};

use super::super::Outcome;
use super::console::Place;
use super::control::Requests;
use super::description;
use super::execution::{Options as Execution, Ready};

/// A kernel to start and the machine around it.
#[derive(Args)]
#[command(next_help_heading = "Kernels")]
#[group(id = "kernel-options")]
pub struct Options {
    /// Start this IA-64 kernel, an ELF file, on a whole machine.
    #[arg(long, value_name = "VMLINUX")]
    pub kernel: Option<PathBuf>,
    /// The kernel's initial RAM file system.
    #[arg(long, value_name = "FILE", requires = "kernel")]
    initrd: Option<PathBuf>,
    /// The kernel's command line.
    #[arg(
        long,
        value_name = "TEXT",
        requires = "kernel",
        default_value = "",
        allow_hyphen_values = true
    )]
    append: String,
    /// How many processors.
    #[arg(long, value_name = "N", requires = "kernel", default_value_t = 1)]
    smp: usize,
    /// How much memory.
    #[arg(long, value_name = "SIZE", requires = "kernel", default_value = "1G")]
    memory: Size,
    /// A network device: `user[,hostfwd=tcp:[ADDRESS]:PORT-[ADDRESS]:PORT]...` with connections by this program, or
    /// `tap=NAME` at a tap interface of the host; may be given several times.
    #[arg(long, value_name = "user|tap=NAME", requires = "kernel")]
    net: Vec<NetworkTable>,
    /// Where the serial console is: the standard input and output (Ctrl-a h shows the keys that are not the guest's), a
    /// pseudo-terminal, or a port of the host's loopback.
    #[arg(
        long,
        value_name = "stdio|pty|tcp:PORT",
        default_value = "stdio",
        requires = "kernel"
    )]
    console: Place,
    /// A virtio console, and where that is.
    #[arg(long, value_name = "stdio|pty|tcp:PORT", requires = "kernel")]
    virtio_console: Option<Place>,
}

/// Where the consoles are.
#[derive(Default)]
struct Consoles {
    serial: Place,
    virtio: Option<Place>,
}

impl Options {
    /// Starts the kernel and runs the machine to its end.
    pub fn run(self, kernel: &Path, disk: Vec<DiskTable>, execution: &Execution) -> Outcome {
        let description = Description {
            machine: MachineTable {
                processors: self.smp,
                memory: self.memory,
                clock: Clock::Virtual,
                ..MachineTable::default()
            },
            kernel: KernelTable {
                file: kernel.to_owned(),
                initrd: self.initrd,
                append: self.append,
            },
            disk,
            network: self.net,
        };
        let consoles = Consoles {
            serial: self.console,
            virtio: self.virtio_console,
        };
        if consoles.serial == Place::Stdio && consoles.virtio == Some(Place::Stdio) {
            return Err(
                "--virtio-console stdio: the serial console is there; give that another --console".into(),
            );
        }
        start("--kernel", description, Path::new(""), &consoles, execution)
    }
}

/// Whether a description is of a machine with a kernel: it has a `[kernel]` table.
pub fn describes(text: &str) -> bool {
    text.lines().any(|line| line.trim() == "[kernel]")
}

/// Starts the kernel that the text of `path` describes, and runs the machine to its end.
pub fn run(path: &Path, text: &str, execution: &Execution) -> Outcome {
    let name = path.display().to_string();
    let description: Description = description::parse(&name, text)?;
    start(
        &name,
        description,
        path.parent().unwrap_or(Path::new("")),
        &Consoles::default(),
        execution,
    )
}

fn start(
    name: &str,
    mut description: Description,
    folder: &Path,
    consoles: &Consoles,
    execution: &Execution,
) -> Outcome {
    if execution.deterministic {
        description.machine.clock = Clock::Virtual;
    }
    let (requests, receiver) = Requests::new();
    let serial = consoles.serial.open("serial console", &requests)?;
    let virtio = consoles
        .virtio
        .map(|place| place.open("virtio console", &requests))
        .transpose()?;
    let built = description
        .build_with(folder, serial, virtio)
        .map_err(|error| format!("{name}: {error}"))?;
    execution.run(Ready {
        name,
        machine: built.machine,
        image: &built.image,
        clock: description.machine.clock,
        quantum: description.machine.quantum,
        expects_input: false,
        devices: built.devices,
        requests: Some((requests, receiver)),
        paces_idle: !description.network.is_empty()
            || consoles.serial != Place::Stdio
            || consoles.virtio.is_some()
            || io::stdin().is_terminal(),
    })
}
