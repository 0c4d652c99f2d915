//! The boot manager: what is started, in which order.

use super::super::efi;
use super::guest::Guest;
use super::images::{LoadFailure, Origin};
use super::{Boot, DevicePath, Flow, Pending, Surroundings};
use crate::machine::ending::Request;
use crate::machine::hypercall::Reaction;

/// Where an application is that starts from a medium by itself (EFI 1.10, section 3.4.1.1).
const REMOVABLE: &str = "\\EFI\\BOOT\\BOOTIA64.EFI";

/// Something to boot.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Choice {
    name: String,
    device: usize,
    file: String,
    options: Vec<u16>,
}

/// How far the boot has come.
#[derive(Default)]
pub struct Manager {
    /// What there is, once it was looked for.
    choices: Option<Vec<Choice>>,
    next: usize,
    /// What became of the last one.
    ended: Option<u64>,
}

impl Manager {
    /// Whether anything was started.
    pub fn has_begun(&self) -> bool {
        self.choices.is_some()
    }

    /// What was started has ended.
    pub fn ended(&mut self, status: u64) {
        self.ended = Some(status);
    }
}

impl Boot {
    /// Starts what is next.
    pub(super) fn manage(&mut self, guest: &mut Guest<'_, '_>, _surroundings: &mut Surroundings<'_>) -> Flow {
        let choices = match self.manager.choices.take() {
            Some(choices) => choices,
            None => self.choices(),
        };
        if let Some(status) = self.manager.ended.take() {
            let name = efi::status_name(status);
            self.console.print(&format!("It has ended with status {status:#x} ({name}).\n"));
        }
        let choice = choices.get(self.manager.next).cloned();
        let count = choices.len();
        self.manager.choices = Some(choices);
        self.manager.next += 1;
        let Some(choice) = choice else {
            return self.nothing_left(guest, count);
        };
        self.console.print(&format!("Booting {} ...\n", choice.name));
        match self.start_choice(guest, &choice) {
            Ok(flow) => {
                self.pending.push(Pending::Manager);
                flow
            }
            Err(reason) => {
                self.console.print(&format!("{}: {reason}\n", choice.name));
                Flow::Wait {
                    until: 0,
                    then: Pending::Manager,
                }
            }
        }
    }

    /// What can be booted: on each device with a file system, those for firmware first, the file for that.
    fn choices(&mut self) -> Vec<Choice> {
        let mut order: Vec<usize> = (0..self.devices.len()).collect();
        order.sort_by_key(|index| !self.devices[*index].is_for_firmware());
        let mut choices = Vec::new();
        for device in order {
            let Some(interface) = self.devices[device].file_system else {
                continue;
            };
            let found = self.files.system(interface).is_some_and(|fat| {
                let root = fat.root();
                fat.find(&root, REMOVABLE).is_ok()
            });
            if found {
                choices.push(Choice {
                    name: format!("{}:{REMOVABLE}", self.devices[device].name),
                    device,
                    file: REMOVABLE.to_owned(),
                    options: Vec::new(),
                });
            }
        }
        choices
    }

    fn start_choice(&mut self, guest: &mut Guest<'_, '_>, choice: &Choice) -> Result<Flow, String> {
        let status = |status: u64| format!("{} ({status:#x})", efi::status_name(status));
        let bytes = self.read_file(choice.device, &choice.file).map_err(status)?;
        let origin = Origin {
            parent: 0,
            device: self.devices[choice.device].handle,
            file: Some(DevicePath::default().file(&choice.file)),
            options: choice.options.clone(),
        };
        let handle = self.load(guest, &bytes, origin).map_err(|failure| match failure {
            LoadFailure::Format(error) => error.to_string(),
            LoadFailure::Status(failure) => status(failure),
        })?;
        self.start_image(guest, handle, [0; 2]).map_err(status)
    }

    fn nothing_left(&mut self, guest: &mut Guest<'_, '_>, count: usize) -> Flow {
        const FAILURE: u32 = 1;
        if count == 0 {
            self.console.print(&format!("Nothing to boot: no FAT file system of {} has {REMOVABLE}.\n", self.looked_at()));
        } else {
            self.console.print("Nothing else is left to boot.\n");
        }
        guest.0.platform.ending.request(Request::Exit(FAILURE));
        Flow::End(Reaction::Stop)
    }

    /// The devices that were looked at, for messages.
    fn looked_at(&self) -> String {
        let names: Vec<&str> = self.devices.iter().map(|device| device.name.as_str()).collect();
        names.join(", ")
    }
}
