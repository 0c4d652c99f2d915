//! A host with virtual machines.
//!
//! ```toml
//! [host]
//! cores = 4
//! costs = "itanium2-vti"      # a preset, or a file that `sidestep calibrate` wrote
//! sidecores = 1               # how many, or "dynamic"
//! services = "virtual-time"   # or "pinned-cores": on cores of the machine that this program runs on
//!
//! [nic]                       # a card that gives each virtual machine a network interface
//! delivery = "sidecore"       # how guests learn of packets
//!
//! [uplink]                    # where its wire ends: a network of this computer, or `[link]` with another host
//! kind = "tap"
//! name = "tap0"
//!
//! [detection]                 # which virtual processors share memory, found out while they run
//! evaluation-ms = 5000
//!
//! [contention]                # what cores share, and what that costs
//! hierarchy = "gainestown"
//!
//! [[vm]]
//! name = "guest"
//! image = "guest.elf"
//! memory = "16M"
//! processors = 2
//! count = 3                   # three of them
//!
//! [[vm]]
//! name = "linux"
//! kernel = "vmlinux"          # a whole machine that starts this kernel
//! initrd = "initramfs.cpio"
//! append = "console=ttyS0"
//! disk = "root.img"           # its own from the first write on
//! memory = "256M"
//! sets = [[0, 1], [2, 3]]     # who is to run together, under `policy = "partial"`
//! ```

mod contention;
mod detection;
mod error;
mod nic;
mod whole;
mod wire;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use contention::ContentionTable;
pub use detection::{DetectionTable, Factor};
pub use error::BuildError;
use error::MACHINES_MAX;
pub use nic::NicTable;
use serde::Deserialize;
use sidestep_gang::policy::IdleCores;
use sidestep_gang::{CoscheduledSets, TaskId};
use sidestep_machine::description::Size;
use sidestep_machine::description::networks::NetworkTable;
pub use whole::DiskWrites;
pub use wire::{LinkTable, WireEnd};

use crate::costs::{CostsError, HostCosts};
use crate::host::coscheduling::Coscheduling;
use crate::host::dynamic::SidecorePolicy;
use crate::host::schedule::{PolicyName, Scheduling};
use crate::host::sidecores::{Executor, Polling};
use crate::host::{Host, HostConfig};
use crate::nic::NicConfig;
use crate::virtual_machine::{
    CoreModel, Method, PurgeMethod, VirtualMachine, VirtualMachineConfig, VirtualMachineError, Virtualization,
};

/// The description of a host.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The host itself.
    pub host: HostTable,
    /// The card that gives each virtual machine a network interface.
    pub nic: Option<NicTable>,
    /// Another host, at the other end of the card's wire.
    pub link: Option<LinkTable>,
    /// A network of this computer there.
    pub uplink: Option<NetworkTable>,
    /// How it is found out which virtual processors share memory.
    pub detection: Option<DetectionTable>,
    /// What its cores share.
    pub contention: Option<ContentionTable>,
    /// Its virtual machines.
    #[serde(default)]
    pub vm: Vec<VirtualMachineTable>,
}

/// `[host]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct HostTable {
    /// How many cores it has.
    pub cores: usize,
    /// What transitions cost: the name of a preset, or a file.
    pub costs: String,
    /// How many of the cores are sidecores.
    pub sidecores: Sidecores,
    /// The most sidecores when their number is dynamic.
    pub sidecores_max: usize,
    /// Which virtual processor has which core.
    #[serde(alias = "scheduling")]
    pub policy: PolicyName,
    /// The length of a scheduling slot, in microseconds.
    pub slot_us: u64,
    /// What becomes of cores that no set of virtual processors can use.
    pub idle_cores: IdleCoresName,
    /// After so many cycles without a request a sidecore waits without executing, if it saves energy.
    pub spin_cycles: u64,
    /// Whether it does.
    pub saves_energy: bool,
    /// How many threads of this program advance virtual machines.
    pub host_threads: usize,
    /// What runs the services of sidecores and devices.
    pub services: Executor,
}

impl Default for HostTable {
    fn default() -> HostTable {
        HostTable {
            cores: 2,
            costs: "itanium2-vti".to_owned(),
            sidecores: Sidecores::Count(0),
            sidecores_max: 1,
            policy: PolicyName::Free,
            slot_us: 1000,
            idle_cores: IdleCoresName::Filled,
            spin_cycles: 20_000,
            saves_energy: true,
            host_threads: 1,
            services: Executor::VirtualTime,
        }
    }
}

/// What becomes of cores that no whole set can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IdleCoresName {
    /// They stay idle.
    Kept,
    /// Whoever waits may use them.
    Filled,
}

impl From<IdleCoresName> for IdleCores {
    fn from(name: IdleCoresName) -> IdleCores {
        match name {
            IdleCoresName::Kept => IdleCores::Kept,
            IdleCoresName::Filled => IdleCores::Filled,
        }
    }
}

/// How many sidecores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "the number of sidecores, or \"dynamic\"")]
pub enum Sidecores {
    /// Always so many.
    Count(usize),
    /// As the load asks for.
    Named(Dynamic),
}

/// The word for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dynamic {
    /// As the load asks for.
    Dynamic,
}

/// `[[vm]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct VirtualMachineTable {
    /// Its name in reports; its number if there is none.
    #[serde(default)]
    pub name: String,
    /// The ELF file of a guest that knows the monitor, relative to the description.
    pub image: Option<PathBuf>,
    /// In its place: the kernel that a whole machine starts, with firmware and devices.
    pub kernel: Option<PathBuf>,
    /// The kernel's initial RAM file system.
    pub initrd: Option<PathBuf>,
    /// The kernel's command line.
    pub append: Option<String>,
    /// How many processors it has.
    #[serde(default = "one")]
    pub processors: usize,
    /// How much memory.
    pub memory: Option<Size>,
    /// How its guest is kept from the monitor's state.
    #[serde(default = "hardware")]
    pub virtualization: Virtualization,
    /// How other cores' TLBs are purged.
    #[serde(default = "broadcast")]
    pub purge: PurgeMethod,
    /// Whether cores that update its page tables after an exit take a lock for that.
    #[serde(default)]
    pub page_table_lock: bool,
    /// Bytes of the monitor's own memory that the handler of each of its exits touches, on cores that are modelled.
    #[serde(default)]
    pub handler_bytes: Option<Size>,
    /// What is typed at the serial port, deterministically: the contents of this file.
    pub input: Option<PathBuf>,
    /// What the guest reads with the call for parameters.
    pub parameters: Option<String>,
    /// The contents of its block device, which is not written back; for a kernel the file behind a virtio device.
    pub disk: Option<PathBuf>,
    /// What a kernel's writes to its disk do.
    pub disk_writes: Option<DiskWrites>,
    /// Which of its processors are to run together, under `policy = "partial"`; one that is in none runs alone.
    pub sets: Option<Vec<Vec<TaskId>>>,
    /// How many of it there are.
    #[serde(default = "one")]
    pub count: usize,
}

fn one() -> usize {
    1
}

fn hardware() -> Virtualization {
    Virtualization::Hardware
}

fn broadcast() -> PurgeMethod {
    PurgeMethod::Broadcast
}

impl Description {
    /// Builds the host, on cores that are modelled if there is a model; paths are relative to `folder`.
    ///
    /// # Errors
    /// What cannot be read, is out of range or does not fit.
    pub fn build(
        &self,
        folder: &Path,
        trace: bool,
        core_model: Option<Arc<dyn CoreModel>>,
    ) -> Result<(Host, Arc<HostCosts>), BuildError> {
        let table = &self.host;
        let costs = Arc::new(costs(folder, &table.costs)?);
        let total = self
            .vm
            .iter()
            .map(|vm| vm.count)
            .fold(0usize, usize::saturating_add);
        if !(1..=MACHINES_MAX).contains(&total) {
            return Err(BuildError::Machines(total));
        }
        in_range("host.slot-us", table.slot_us, 1, 10_000_000, "1 to 10000000")?;
        for vm in &self.vm {
            let handler_bytes = vm.handler_bytes.map_or(0, |size| size.0);
            in_range("vm.handler-bytes", handler_bytes, 0, HANDLER_BYTES_MAX, "0 to 1M")?;
        }
        in_range("host.host-threads", table.host_threads as u64, 1, 256, "1 to 256")?;
        let detection = self
            .detection
            .as_ref()
            .map(DetectionTable::settings)
            .transpose()?;
        let nic = self.nic.as_ref().map(|nic| nic.config(folder)).transpose()?;
        let mut names = BTreeSet::new();
        let mut machines = Vec::new();
        let mut given = Vec::new();
        for vm in &self.vm {
            for number in 0..vm.count {
                let index = machines.len();
                let name = match (vm.name.as_str(), vm.count) {
                    ("", _) => format!("vm {index}"),
                    (name, 1) => name.to_owned(),
                    (name, _) => format!("{name} {number}"),
                };
                if !names.insert(name.clone()) {
                    return Err(BuildError::SameName(name));
                }
                given.push(vm.given_sets(&name, table.policy, detection.is_some())?);
                machines.push(vm.build(folder, index, name, nic.as_ref())?);
            }
        }
        let config = HostConfig {
            cores: table.cores,
            costs: Arc::clone(&costs),
            sidecores: match table.sidecores {
                Sidecores::Count(count) => SidecorePolicy::Fixed(count),
                Sidecores::Named(Dynamic::Dynamic) => SidecorePolicy::Dynamic {
                    most: table.sidecores_max,
                },
            },
            polling: Polling {
                spin_cycles: table.spin_cycles,
                saves_energy: table.saves_energy,
            },
            scheduling: Scheduling {
                policy: table.policy,
                slot_ns: table.slot_us * 1000,
            },
            core_model,
            threads: table.host_threads,
            services: table.services,
            trace,
            nic,
        };
        let mut host = Host::new(config, machines)?;
        host.coschedule(&Coscheduling {
            given,
            detection,
            idle_cores: table.idle_cores.into(),
        })?;
        if let Some(contention) = &self.contention {
            host.contend(&contention.contention(folder)?)?;
        }
        Ok((host, costs))
    }
}

impl VirtualMachineTable {
    fn build(
        &self,
        folder: &Path,
        index: usize,
        name: String,
        nic: Option<&NicConfig>,
    ) -> Result<VirtualMachine, BuildError> {
        match (&self.image, &self.kernel) {
            (Some(image), None) => self.with_image(folder, index, name, image),
            (None, Some(kernel)) => self.with_kernel(folder, (index, name), kernel, nic),
            _ => Err(BuildError::Start(name)),
        }
    }

    /// The sets that were given for it, if it is scheduled by sets.
    fn given_sets(
        &self,
        name: &str,
        policy: PolicyName,
        are_found: bool,
    ) -> Result<Option<CoscheduledSets>, BuildError> {
        let name = name.to_owned();
        match (&self.sets, policy) {
            (Some(_), PolicyName::Free | PolicyName::Gang | PolicyName::Relaxed) => {
                Err(BuildError::UselessSets(name))
            }
            (None, PolicyName::Partial) if !are_found && self.processors > 1 => Err(BuildError::NoSets(name)),
            (None, _) => Ok(None),
            (Some(sets), _) => match CoscheduledSets::new(sets.clone()) {
                Ok(sets) => Ok(Some(sets)),
                Err(error) => Err(BuildError::Sets { name, error }),
            },
        }
    }

    /// One whose guest knows the monitor.
    fn with_image(
        &self,
        folder: &Path,
        index: usize,
        name: String,
        image: &Path,
    ) -> Result<VirtualMachine, BuildError> {
        let keys = [
            ("initrd", self.initrd.is_some()),
            ("append", self.append.is_some()),
            ("input", self.input.is_some()),
            ("disk-writes", self.disk_writes.is_some()),
        ];
        refuse(&name, keys, "kernel")?;
        let path = folder.join(image);
        let disk = self.disk.as_ref().map(|disk| read(&folder.join(disk)));
        let config = VirtualMachineConfig {
            parameters: self.parameters.clone().unwrap_or_default(),
            disk: disk.transpose()?.unwrap_or_default(),
            ..self.config(name)
        };
        VirtualMachine::new(index, config, &read(&path)?).map_err(|error| match error {
            VirtualMachineError::Image { source, .. } => BuildError::Image {
                path: image.display().to_string(),
                error: source,
            },
            error => BuildError::Machine(error),
        })
    }

    /// What both have.
    fn config(&self, name: String) -> VirtualMachineConfig {
        VirtualMachineConfig {
            processors: self.processors,
            memory: self.memory.unwrap_or(Size(IMAGE_MEMORY)).0,
            virtualization: self.virtualization,
            method: Method::Exit,
            purge: self.purge,
            handler_bytes: self.handler_bytes.map_or(0, |size| size.0),
            page_table_lock: self.page_table_lock,
            ..VirtualMachineConfig::new(&name)
        }
    }
}

/// The memory of virtual machines of which the description does not say how much.
const IMAGE_MEMORY: u64 = 16 << 20;
const KERNEL_MEMORY: u64 = 256 << 20;

/// As much as the handler of an exit touches at the most: more than the second-level cache of any core holds.
const HANDLER_BYTES_MAX: u64 = 1 << 20;

/// Refuses keys that were given for a virtual machine that has no use for them.
fn refuse(
    name: &str,
    keys: impl IntoIterator<Item = (&'static str, bool)>,
    with: &'static str,
) -> Result<(), BuildError> {
    match keys.into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((key, _)) => Err(BuildError::Meaningless {
            name: name.to_owned(),
            key,
            with,
        }),
    }
}

/// The table of a preset's name, or of a file.
fn costs(folder: &Path, name: &str) -> Result<HostCosts, BuildError> {
    table(folder, name, HostCosts::preset, HostCosts::parse, costs_error)
}

fn costs_error(name: String, error: CostsError) -> BuildError {
    BuildError::Costs { name, error }
}

/// A preset, or a file whose name ends in `.toml`.
fn table<T, E>(
    folder: &Path,
    name: &str,
    preset: fn(&str) -> Result<T, E>,
    parse: fn(&str) -> Result<T, E>,
    wrong: fn(String, E) -> BuildError,
) -> Result<T, BuildError> {
    let found = if name.ends_with(".toml") {
        let path = folder.join(name);
        let text = sidestep_files::read_text(&path, sidestep_files::TEXT_BYTES_MAX)
            .map_err(|error| unreadable(&path, error))?;
        parse(&text)
    } else {
        preset(name)
    };
    found.map_err(|error| wrong(name.to_owned(), error))
}

fn read(path: &Path) -> Result<Vec<u8>, BuildError> {
    sidestep_files::read(path, sidestep_files::IMAGE_BYTES_MAX).map_err(|error| unreadable(path, error))
}

fn unreadable(path: &Path, error: io::Error) -> BuildError {
    let path = path.display().to_string();
    BuildError::File { path, error }
}

fn in_range(
    key: &'static str,
    value: u64,
    least: u64,
    most: u64,
    range: &'static str,
) -> Result<(), BuildError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(BuildError::OutOfRange { key, value, range })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidestep_machine::description::parse;

    fn error(text: &str) -> String {
        let description = match parse::<Description>("host.toml", text) {
            Ok(description) => description,
            Err(error) => return error.to_string(),
        };
        let built = description.build(Path::new("/nonexistent"), false, None);
        built.err().expect("a bad description").to_string()
    }

    #[test]
    fn mistakes_are_named() {
        assert!(error("[host]\ncoers = 2\n").starts_with("host.toml:2:1: unknown field `coers`"));
        let partial = |rest: &str, sets: &str| {
            let vm = format!("[[vm]]\nprocessors = 2\nimage = \"{IMAGE}\"\n");
            error(&format!("[host]\npolicy = \"partial\"\n{rest}\n{vm}{sets}"))
        };
        assert!(partial("", "").contains("`vm 0` has no `sets`"));
        assert!(
            partial("", "sets = [[0, 2]]").contains("`sets` names processor 2: it has processors 0 to 1")
        );
        assert!(partial("", "sets = [[0], [0]]").contains("task 0 is in more than one set"));
        assert!(partial("slot-us = 0", "").contains("`host.slot-us` is 0"));
        let gang = format!("[host]\npolicy = \"gang\"\n[[vm]]\nimage = \"{IMAGE}\"\nsets = [[0]]\n");
        assert!(error(&gang).contains("`sets` are for a host with `policy = \"partial\"`"));
        let earlier = error(&gang.replace("policy", "scheduling"));
        assert_eq!(earlier, error(&gang), "by its earlier name");
        for (wrong, told) in [
            ("sample = 0", "`detection.sample` is 0"),
            (
                "granularity = \"24K\"",
                "`detection.granularity` is 24576: a power of two",
            ),
            ("granularity = \"32\"", "`detection.granularity` is 32: 64 to 1G"),
            ("evaluation-ms = 0", "`detection.evaluation-ms` is 0"),
            ("period-us = 0", "`detection.period-us` is 0"),
            ("budget-permille = 1001", "`detection.budget-permille` is 1001"),
            ("factor = 0", "`0` is no decimal number above 0"),
            ("factor = \"much\"", "a decimal number above 0, such as 1.5"),
            ("perod-us = 1", "unknown field `perod-us`"),
        ] {
            let told_really = partial(&format!("[detection]\n{wrong}"), "");
            assert!(told_really.contains(told), "{wrong}: {told_really}");
        }
        assert!(error("[host]\nsidecores = \"some\"\n").contains("or \"dynamic\""));
        assert!(error("[host]\n").contains("there are 0 virtual machines"));
        assert!(error("[host]\ncosts = \"pentium\"\n").contains("there is no preset `pentium`"));
        let vm = "[[vm]]\nimage = \"guest.elf\"\n";
        assert!(error(&format!("[host]\nslot-us = 0\n{vm}")).contains("`host.slot-us` is 0"));
        assert!(error(&format!("[host]\n{vm}")).contains("guest.elf: cannot be read"));
        assert_eq!(
            error("host = 1\n"),
            "host.toml:1:8: invalid type: integer `1`, expected a table"
        );
    }

    const IMAGE: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../guests/ia64/bin/sidecore-requests"
    );

    #[test]
    fn virtual_machines_have_names_of_their_own() {
        let vm = |name| format!("[[vm]]\nname = \"{name}\"\nimage = \"{IMAGE}\"\n");
        let both = |one, other| format!("[host]\n{}{}", vm(one), vm(other));
        assert!(error(&both("a", "a")).contains("two virtual machines are called `a`"));
        assert!(error(&both("vm 1", "")).contains("two virtual machines are called `vm 1`"));
    }
}
