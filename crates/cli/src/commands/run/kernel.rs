//! A machine with a kernel, as options or a TOML file describe it.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;

use clap::Args;
use sidestep_machine::description::Size;
use sidestep_machine::description::bare::Clock;
use sidestep_machine::description::devices::VirtioTransport;
use sidestep_machine::description::disks::DiskTable;
use sidestep_machine::description::folders::FolderTable;
use sidestep_machine::description::kernel::{Built, Consoles, Description, KernelTable, MachineTable};
use sidestep_machine::description::networks::AdapterTable;
use sidestep_machine::machine::hypercall::{Console, SharedConsole};
use sidestep_machine::snapshot::{self, ChangedDisks, Saved};
use sidestep_runner::machine::execution::Prepared;

use super::super::Outcome;
use super::console::Place;
use super::control::{Request, Requests};
use super::description;
use super::execution::{Options as Execution, Ready};

/// The machine that a kernel is started on, and what it is started with.
#[derive(Args)]
#[command(next_help_heading = "Kernels")]
#[group(id = "kernel-machine")]
pub struct KernelMachine {
    /// Start this IA-64 kernel, an ELF file, on a whole machine.
    #[arg(long, value_name = "VMLINUX")]
    pub kernel: Option<PathBuf>,
    /// The kernel's initial RAM file system.
    #[arg(long, value_name = "FILE")]
    initrd: Option<PathBuf>,
    /// The kernel's command line.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    append: Option<String>,
    /// How many processors [default: 1].
    #[arg(long, value_name = "N")]
    smp: Option<usize>,
    /// How many nodes (NUMA) the processors and the memory seem to be divided into [default: 1].
    #[arg(long, value_name = "N")]
    nodes: Option<usize>,
    /// How much memory [default: 1G].
    #[arg(long, value_name = "SIZE")]
    memory: Option<Size>,
    /// Keep the firmware's variables that last in this file, which is made if it is not there; without, they last until
    /// the machine ends.
    #[arg(long, value_name = "FILE")]
    nvram: Option<PathBuf>,
    /// Attach a high-precision event timer (HPET).
    #[arg(long)]
    hpet: bool,
    /// Put devices on PCI behind so many bridges, one behind the other [default: 0].
    #[arg(long, value_name = "N")]
    pci_bridges: Option<usize>,
    /// A network device: `user[,hostfwd=tcp:[ADDRESS]:PORT-[ADDRESS]:PORT]...` with connections by this program
    /// (`udp:` forwards datagrams), `tap=NAME` at a tap interface of the host, or
    /// `udp=ADDRESS:PORT,peer=ADDRESS:PORT` with a datagram for each frame, as QEMU's UDP sockets have it; with
    /// `,model=e1000` behind it an Intel 82540EM, else a virtio device. May be given several times.
    #[arg(long, value_name = "user|tap=NAME|udp=ADDRESS[,model=e1000]")]
    net: Vec<AdapterTable>,
    /// A folder of the host that the guest mounts by this name (default: host), as Linux does with `mount -t 9p -o
    /// trans=virtio,version=9p2000.L host /mnt`; may be given several times.
    #[arg(long, value_name = "FOLDER[,tag=NAME][,readonly]")]
    folder: Vec<FolderTable>,
    /// How virtio devices are found: on the PCI bus, there with the registers of before version 1 as well
    /// (transitional), or by registers in memory that ACPI tables name [default: pci].
    #[arg(long, value_name = "pci|transitional|mmio")]
    virtio: Option<VirtioTransport>,
}

/// A kernel to start and the machine around it.
#[derive(Args)]
#[command(next_help_heading = "Kernels")]
#[group(id = "kernel-options")]
pub struct Options {
    #[command(flatten)]
    pub machine: KernelMachine,
    /// Where the serial console is: the standard input and output (Ctrl-a h shows the keys that are not the guest's), a
    /// pseudo-terminal, or a port of the host's loopback.
    #[arg(long, value_name = "stdio|pty|tcp:PORT", default_value = "stdio")]
    console: Place,
    /// A virtio console, and where that is.
    #[arg(long, value_name = "stdio|pty|tcp:PORT")]
    virtio_console: Option<Place>,
    /// Go on with a machine that `save` at the prompt has put into this file. Its disks are where they were, unless
    /// `--disk FILE` says for each, in their order, where it is now.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kernel", "image"])]
    pub restore: Option<PathBuf>,
    /// Go on with a saved machine although its disks were written to since.
    #[arg(long)]
    accept_changed_disks: bool,
}

/// Where the consoles are.
#[derive(Clone, Copy)]
struct Places {
    serial: Place,
    virtio: Option<Place>,
}

impl Places {
    fn open(self, requests: &Requests) -> Result<SharedConsoles, Box<dyn Error>> {
        if self.serial == Place::Stdio && self.virtio == Some(Place::Stdio) {
            return Err(
                "--virtio-console stdio: the serial console is there; give that another --console".into(),
            );
        }
        let virtio = self.virtio.map(|place| place.open("virtio console", requests));
        Ok(SharedConsoles {
            serial: SharedConsole::new(self.serial.open("serial console", requests)?),
            virtio: virtio.transpose()?.map(SharedConsole::new),
        })
    }
}

/// The consoles of a machine, and of those that it becomes when its guest resets it.
struct SharedConsoles {
    serial: SharedConsole,
    virtio: Option<SharedConsole>,
}

impl SharedConsoles {
    fn open(&self) -> Consoles {
        let boxed = |console: &SharedConsole| Box::new(console.clone()) as Box<dyn Console>;
        Consoles {
            serial: boxed(&self.serial),
            virtio: self.virtio.as_ref().map(boxed),
        }
    }
}

impl KernelMachine {
    /// The first option given that describes the machine of a kernel.
    pub fn given(&self) -> Option<&'static str> {
        let of_machine = || {
            super::first_given(&[
                ("--smp", self.smp.is_some()),
                ("--nodes", self.nodes.is_some()),
                ("--memory", self.memory.is_some()),
                ("--nvram", self.nvram.is_some()),
                ("--hpet", self.hpet),
                ("--pci-bridges", self.pci_bridges.is_some()),
                ("--net", !self.net.is_empty()),
                ("--folder", !self.folder.is_empty()),
                ("--virtio", self.virtio.is_some()),
            ])
        };
        self.start_given().or_else(of_machine)
    }

    /// The first option given that says what a kernel starts with.
    pub fn start_given(&self) -> Option<&'static str> {
        super::first_given(&[
            ("--initrd", self.initrd.is_some()),
            ("--append", self.append.is_some()),
        ])
    }

    /// What the options describe, in virtual time; what is on the disks is started where no kernel is given.
    pub fn describe(self, disk: Vec<DiskTable>) -> Description {
        let usual = MachineTable::default();
        Description {
            machine: MachineTable {
                processors: self.smp.unwrap_or(usual.processors),
                nodes: self.nodes.unwrap_or(usual.nodes),
                memory: self.memory.unwrap_or(usual.memory),
                clock: Clock::Virtual,
                nvram: self.nvram,
                hpet: self.hpet,
                pci_bridges: self.pci_bridges.unwrap_or(usual.pci_bridges),
                virtio: self.virtio.unwrap_or(usual.virtio),
                ..usual
            },
            kernel: self.kernel.map(|file| KernelTable {
                file,
                initrd: self.initrd,
                append: self.append.unwrap_or_default(),
            }),
            disk,
            network: self.net,
            folder: self.folder,
        }
    }
}

impl Options {
    /// Where the consoles are.
    fn places(&self) -> Places {
        Places {
            serial: self.console,
            virtio: self.virtio_console,
        }
    }

    /// The first option given that puts a console anywhere but where every machine has its own.
    pub fn consoles_given(&self) -> Option<&'static str> {
        super::first_given(&[
            ("--console", self.console != Place::default()),
            ("--virtio-console", self.virtio_console.is_some()),
        ])
    }

    /// The option given that is for saved machines alone.
    pub fn restoring_given(&self) -> Option<&'static str> {
        super::first_given(&[("--accept-changed-disks", self.accept_changed_disks)])
    }

    /// Starts the kernel that the text of `path` describes, and runs the machine to its end. With `snapshot` the files
    /// of its disks stay as they are.
    pub fn describe(&self, path: &Path, text: &str, snapshot: bool, execution: &Execution) -> Outcome {
        let name = path.display().to_string();
        let mut description: Description = description::parse(&name, text)?;
        if snapshot {
            description.keep_disks();
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        start(&name, description, folder, self.places(), execution)
    }

    /// Goes on with the machine that `file` holds, and with its disks where they are now, if that is said. With
    /// `snapshot` their files stay as they are.
    pub fn restore(
        &self,
        file: &Path,
        disk: Vec<DiskTable>,
        snapshot: bool,
        execution: &Execution,
    ) -> Outcome {
        let changed = if self.accept_changed_disks {
            ChangedDisks::Accept
        } else {
            ChangedDisks::Refuse
        };
        let mut saved = snapshot::open(file)?;
        if !disk.is_empty() {
            saved.find_disks_at(disk.into_iter().map(|disk| disk.file).collect())?;
        }
        if snapshot {
            saved.keep_disks();
        }
        restore(file, saved, changed, self.places(), execution)
    }

    /// Starts the kernel, or what is on the disks if none is given, and runs the machine to its end.
    pub fn run(self, disk: Vec<DiskTable>, snapshot: bool, execution: &Execution) -> Outcome {
        let places = self.places();
        let name = match self.machine.kernel {
            Some(_) => "--kernel",
            None => "--disk",
        };
        let mut description = self.machine.describe(disk);
        if snapshot {
            description.keep_disks();
        }
        start(name, description, Path::new(""), places, execution)
    }
}

fn start(
    name: &str,
    mut description: Description,
    folder: &Path,
    places: Places,
    execution: &Execution,
) -> Outcome {
    if execution.in_virtual_time() {
        description.machine.clock = Clock::Virtual;
    }
    let (requests, receiver) = Requests::new();
    let consoles = places.open(&requests)?;
    let built = description
        .placed(folder)
        .build_with(consoles.open())
        .map_err(|error| format!("{name}: {error}"))?;
    execute(name, built, (places, consoles), (requests, receiver), execution)
}

/// Goes on with a saved machine.
fn restore(
    file: &Path,
    saved: Saved,
    changed: ChangedDisks,
    places: Places,
    execution: &Execution,
) -> Outcome {
    let (requests, receiver) = Requests::new();
    let consoles = places.open(&requests)?;
    let built = saved.restore(consoles.open(), changed)?;
    let name = file.display().to_string();
    if !built.parts.description.network.is_empty() {
        say!("sidestep: {name}: connections of the network are not saved; the guest finds them broken");
    }
    execute(&name, built, (places, consoles), (requests, receiver), execution)
}

fn execute(
    name: &str,
    built: Built,
    (places, consoles): (Places, SharedConsoles),
    requests: (Requests, Receiver<Request>),
    execution: &Execution,
) -> Outcome {
    let again = built.parts.description.clone();
    let mut prepared = Prepared::whole(built.machine, built.parts);
    // Somebody may type.
    prepared.paces_idle |= places.serial.is_live() || places.virtio.is_some();
    execution.run(Ready {
        name,
        prepared,
        image: &built.image,
        rebuild: Some(Box::new(move || {
            let built = again.build_with(consoles.open());
            built
                .map(|built| (built.machine, built.parts))
                .map_err(|error| error.to_string())
        })),
        requests: Some(requests),
    })
}
