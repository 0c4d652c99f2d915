//! `sidestep run`: boots a machine from its image or its description; the kind of file decides which machine.

mod bare;
mod console;
mod control;
mod description;
pub mod execution;
mod fuce;
mod host;
pub mod kernel;
mod prompt;
mod sharing;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use sidestep_machine::description::disks::DiskTable;

use super::Outcome;

/// Boot a machine: a FUCE image, as `sidestep assemble` writes it, an IA-64 machine or a host with virtual machines
/// that a TOML file describes, an IA-64 kernel on a whole machine, or what is on the disks of such a machine.
#[derive(Args)]
pub struct Run {
    /// The image, or the description of the machine.
    #[arg(required_unless_present_any = ["kernel", "restore", "disk"], conflicts_with = "kernel")]
    image: Option<PathBuf>,
    /// An image as a disk of a FUCE machine or a kernel's, of which there may be several. With neither an image nor a
    /// kernel, what is on the disks is booted, by EFI. What a FUCE image writes is put back when it ends; a kernel's
    /// writes reach the file at once. A kernel's may be in QEMU's format qcow2, on a SCSI bus or Serial ATA, and a
    /// CD-ROM there: `FILE[,readonly][,snapshot][,format=raw|qcow2][,bus=virtio|scsi|ahci][,media=disk|cdrom]`.
    #[arg(long, value_name = "FILE[,OPTION]...")]
    disk: Vec<DiskTable>,
    /// Do not put back what the guest writes to disks: their files stay as they are. What a kernel's machine writes is
    /// kept as long as that is there, up to 4 GB for each disk. `,snapshot` behind a disk's file says so of that alone.
    #[arg(long)]
    snapshot: bool,
    /// Print statistics to the standard error at the end: a FUCE chip's counters; how many instructions an IA-64
    /// machine has executed, and with --translate how many of them translated.
    #[arg(long)]
    stats: bool,
    #[command(flatten)]
    fuce: fuce::Options,
    #[command(flatten)]
    kernel: kernel::Options,
    #[command(flatten)]
    execution: execution::Options,
    #[command(flatten)]
    host: host::Options,
}

/// What a file says it is.
enum Kind {
    /// A FUCE image: its first bytes say so.
    Fuce,
    /// A description: its name ends in `.toml`. Its top-level tables decide what of.
    Description,
}

impl Kind {
    /// The most bytes of a file with such a name.
    fn bytes_max(path: &Path) -> u64 {
        match Kind::is_named_description(path) {
            true => sidestep_files::TEXT_BYTES_MAX,
            false => sidestep_files::IMAGE_BYTES_MAX,
        }
    }

    fn of(path: &Path, bytes: &[u8]) -> Option<Kind> {
        if sidestep_fuce::image::Image::is_image(bytes) {
            Some(Kind::Fuce)
        } else if Kind::is_named_description(path) {
            Some(Kind::Description)
        } else {
            None
        }
    }

    fn is_named_description(path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension == "toml")
    }
}

impl Run {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let outcome = self.boot()?;
        match console::stdio::lost() {
            None => Ok(outcome),
            Some(cause) => Err(format!(
                "the console could not be written to the standard output to its end: {cause}"
            )
            .into()),
        }
    }

    fn boot(mut self) -> Outcome {
        self.execution.wants_statistics = self.stats;
        let disk = (!self.disk.is_empty()).then_some("--disk");
        let snapshot = self.snapshot.then_some("--snapshot");
        let has_disks = disk.is_some() || self.kernel.restore.is_some();
        let is_described = self.image.as_deref().is_some_and(Kind::is_named_description);
        if self.snapshot && !has_disks && !is_described {
            return Err("--snapshot is for disks, and there is none: --disk FILE".into());
        }
        let starts = self.kernel.machine.kernel.as_ref().or(self.image.as_ref());
        if let Some(started) = starts {
            refuse(
                started,
                [self.kernel.restoring_given()],
                "machines that start anew",
            )?;
        }
        let (fuce, host, consoles) = (self.fuce.given(), self.host.given(), self.kernel.consoles_given());
        if let Some(kernel) = self.kernel.machine.kernel.clone() {
            refuse(&kernel, [fuce, host], "kernels")?;
            return self.kernel.run(self.disk, self.snapshot, &self.execution);
        }
        if let Some(file) = &self.kernel.restore {
            refuse(file, [fuce, host, self.kernel.machine.given()], "saved machines")?;
            return self
                .kernel
                .restore(file, self.disk, self.snapshot, &self.execution);
        }
        let Some(image) = self.image.as_ref() else {
            let disk = self
                .disk
                .first()
                .map(|disk| disk.file.clone())
                .unwrap_or_default();
            let [start, restoring] = [self.kernel.machine.start_given(), self.kernel.restoring_given()];
            refuse(&disk, [fuce, host], "disks that are booted")?;
            refuse(
                &disk,
                [start, restoring],
                "disks that are booted: what is on them says what is started",
            )?;
            return self.kernel.run(self.disk, self.snapshot, &self.execution);
        };
        refuse(
            image,
            [self.kernel.machine.given()],
            "machines that are started without --kernel",
        )?;
        let path = image.display().to_string();
        let bytes = sidestep_files::read(image, Kind::bytes_max(image))
            .map_err(|error| format!("{path}: cannot be read: {error}"))?;
        match Kind::of(image, &bytes) {
            Some(Kind::Fuce) => {
                refuse(image, [self.execution.given(), host, consoles], "FUCE images")?;
                self.fuce
                    .run(&path, &bytes, (&self.disk, self.snapshot), self.stats)
            }
            Some(Kind::Description) => {
                refuse(image, [disk], "descriptions: they name their disks")?;
                refuse(image, [fuce], "descriptions")?;
                let text =
                    String::from_utf8(bytes).map_err(|error| format!("{path}: is no text: {error}"))?;
                if description::has_table(&text, &["host", "vm"]) {
                    refuse(image, [consoles, snapshot], "hosts with virtual machines")?;
                    return self.host.run(image, &text, &self.execution);
                }
                refuse(image, [host], "machines without a host around them")?;
                if description::has_table(&text, &["kernel", "disk"]) {
                    return self.kernel.describe(image, &text, self.snapshot, &self.execution);
                }
                refuse(image, [consoles, snapshot], "machines that start no kernel")?;
                bare::run(image, &text, &self.execution)
            }
            None => Err(format!(
                "{path}: nothing that can be booted; a FUCE image begins with the bytes `FUCE`, \
                 and the name of a machine's description ends in .toml"
            )
            .into()),
        }
    }
}

/// The first of some options that was given, by its name.
fn first_given(options: &[(&'static str, bool)]) -> Option<&'static str> {
    let given = options.iter().find(|(_, given)| *given);
    given.map(|(name, _)| *name)
}

/// Refuses options that mean nothing for what is booted.
fn refuse<const N: usize>(file: &Path, given: [Option<&str>; N], booted: &str) -> Result<(), String> {
    match given.into_iter().flatten().next() {
        None => Ok(()),
        Some(option) => Err(format!("{}: {option} is not for {booted}", file.display())),
    }
}

/// The exit code that stands for a guest's: its own, or 255 when it does not fit.
fn exit_code(code: u64) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}
