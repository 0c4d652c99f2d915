//! The boot manager: what is started, in which order (EFI 1.10, chapter 3).
//!
//! First what the variables `BootNext` and `BootOrder` name, then on each medium the file that starts by itself, those
//! of media for firmware first. Where there is more than one thing to boot, a key that was pressed in time brings a
//! menu. When nothing is left, there is the shell.

use super::super::efi;
use super::super::variables::{Key as Name, Variables};
use super::guest::Guest;
use super::images::{LoadFailure, Origin};
use super::shell::Shell;
use super::{Boot, DevicePath, Flow, Pending, Surroundings};
use crate::machine::timeline::TICKS_PER_SECOND;

/// Where an application is that starts from a medium by itself (EFI 1.10, section 3.4.1.1).
pub const REMOVABLE: &str = "\\EFI\\BOOT\\BOOTIA64.EFI";
/// Who gives EFI's own variables.
const GLOBAL: [u8; 16] = efi::guid(
    0x8be4_df61,
    0x93ca,
    0x11d2,
    [0xaa, 0x0d, 0, 0xe0, 0x98, 0x03, 0x2b, 0x8c],
);
/// How long a key brings the menu, where the variable `Timeout` says nothing.
const TIMEOUT_SECONDS: u16 = 2;
/// How often keys are looked for.
const LOOK_TICKS: u64 = TICKS_PER_SECOND / 100;

/// Something to boot.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Choice {
    name: String,
    path: DevicePath,
    /// What the application is given.
    options: Vec<u8>,
    /// The number of its variable, if it has one.
    number: Option<u16>,
}

/// How far the boot has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Nothing has begun.
    #[default]
    Before,
    /// A key brings the menu until this tick.
    Timeout(u64),
    /// The menu waits for a key.
    Menu,
    /// Choices are tried one after the other: this is the next.
    Trying(usize),
    /// The shell has the console.
    Shell,
}

/// The boot manager.
#[derive(Default)]
pub struct Manager {
    stage: Stage,
    choices: Vec<Choice>,
    /// What became of the last one.
    ended: Option<u64>,
    pub(super) shell: Shell,
}

impl Manager {
    /// Whether the boot has begun.
    pub fn has_begun(&self) -> bool {
        self.stage != Stage::Before
    }

    /// What was started has ended.
    pub fn ended(&mut self, status: u64) {
        self.ended = Some(status);
    }
}

impl Boot {
    /// Goes on with the boot.
    pub(super) fn manage(&mut self, guest: &mut Guest<'_, '_>, surroundings: &mut Surroundings<'_>) -> Flow {
        if let Some(status) = self.manager.ended.take() {
            let name = efi::status_name(status);
            self.console
                .print(&format!("It has ended with status {status:#x} ({name}).\n"));
        }
        match self.manager.stage {
            Stage::Before => self.begin(guest, surroundings.variables),
            Stage::Timeout(due) => self.await_key(guest, due),
            Stage::Menu => self.menu_key(guest),
            Stage::Trying(index) => self.try_choice(guest, index, surroundings),
            Stage::Shell => self.shell_step(guest, surroundings),
        }
    }

    fn later(&self, guest: &Guest<'_, '_>, ticks: u64) -> Flow {
        Flow::Wait {
            until: guest.now() + ticks,
            then: Pending::Manager,
        }
    }

    fn stage(&mut self, guest: &Guest<'_, '_>, stage: Stage) -> Flow {
        self.manager.stage = stage;
        self.later(guest, 0)
    }

    /// Looks for what there is to boot.
    fn begin(&mut self, guest: &Guest<'_, '_>, variables: &mut Variables) -> Flow {
        self.manager.choices = named(variables);
        let by_itself = self.removable();
        self.manager.choices.extend(by_itself);
        let seconds = number(variables, "Timeout").unwrap_or(TIMEOUT_SECONDS);
        match self.manager.choices.len() {
            2.. if seconds > 0 => {
                self.console.print(&format!(
                    "Any key within {seconds} s brings a menu of what can be booted.\n"
                ));
                let due = guest.now() + u64::from(seconds) * TICKS_PER_SECOND;
                self.stage(guest, Stage::Timeout(due))
            }
            _ => self.stage(guest, Stage::Trying(0)),
        }
    }

    fn await_key(&mut self, guest: &Guest<'_, '_>, due: u64) -> Flow {
        if self.console.key().is_some() {
            self.print_menu();
            return self.stage(guest, Stage::Menu);
        }
        match guest.now() < due && !self.console.has_ended() {
            true => self.later(guest, LOOK_TICKS),
            false => self.stage(guest, Stage::Trying(0)),
        }
    }

    fn print_menu(&mut self) {
        let mut menu = String::new();
        for (number, choice) in (1..).zip(&self.manager.choices) {
            menu.push_str(&format!("{number}  {}\n", choice.name));
        }
        menu.push_str("s  a shell\nWhich? ");
        self.console.print(&menu);
    }

    fn menu_key(&mut self, guest: &Guest<'_, '_>) -> Flow {
        let Some(key) = self.console.key() else {
            return match self.console.has_ended() {
                true => self.stage(guest, Stage::Trying(0)),
                false => self.later(guest, LOOK_TICKS),
            };
        };
        let character = char::from(key.character as u8);
        self.console.print("\n");
        let chosen = character
            .to_digit(10)
            .and_then(|digit| (digit as usize).checked_sub(1));
        match (character, chosen) {
            ('s', _) => self.stage(guest, Stage::Shell),
            ('\r', _) => self.stage(guest, Stage::Trying(0)),
            (_, Some(index)) if index < self.manager.choices.len() => self.stage(guest, Stage::Trying(index)),
            _ => {
                self.print_menu();
                self.later(guest, 0)
            }
        }
    }

    fn try_choice(
        &mut self,
        guest: &mut Guest<'_, '_>,
        index: usize,
        surroundings: &mut Surroundings<'_>,
    ) -> Flow {
        let Some(choice) = self.manager.choices.get(index).cloned() else {
            let lines = match self.manager.choices.is_empty() {
                true => format!(
                    "Nothing to boot: no FAT file system of {} has {REMOVABLE}.\n",
                    self.looked_at()
                ),
                false => "Nothing else is left to boot.\n".to_owned(),
            };
            self.console.print(&lines);
            return self.stage(guest, Stage::Shell);
        };
        self.manager.stage = Stage::Trying(index + 1);
        self.console.print(&format!("Booting {} ...\n", choice.name));
        if let Some(number) = choice.number {
            let current = number.to_le_bytes().to_vec();
            surroundings
                .variables
                .set(global("BootCurrent"), VOLATILE, current, true);
        }
        let options = choice.options.clone();
        self.start_path(guest, &choice.path, options)
            .unwrap_or_else(|reason| {
                self.console.print(&format!("{}: {reason}\n", choice.name));
                self.later(guest, 0)
            })
    }

    /// Starts the application at a path, or on a device that it names the one that starts by itself.
    pub(super) fn start_path(
        &mut self,
        guest: &mut Guest<'_, '_>,
        path: &DevicePath,
        options: Vec<u8>,
    ) -> Result<Flow, String> {
        let status = |status: u64| format!("{} ({status:#x})", efi::status_name(status));
        let (device, rest) = self.device_of(path).ok_or("there is no such device")?;
        let name = rest.file_name().unwrap_or_else(|| REMOVABLE.to_owned());
        let bytes = self.read_file(device, &name).map_err(status)?;
        let origin = Origin {
            parent: 0,
            device: self.devices[device].handle,
            file: Some(DevicePath::default().file(&name)),
            options,
        };
        let handle = self
            .load(guest, &bytes, origin)
            .map_err(|failure| match failure {
                LoadFailure::Format(error) => error.to_string(),
                LoadFailure::Status(failure) => status(failure),
            })?;
        let flow = self.start_image(guest, handle, [0; 2]).map_err(status)?;
        self.pending.push(Pending::Manager);
        Ok(flow)
    }

    /// On each device with a file system, those for firmware first, the file that starts by itself.
    fn removable(&mut self) -> Vec<Choice> {
        let mut order: Vec<usize> = (0..self.devices.len()).collect();
        order.sort_by_key(|index| !self.devices[*index].is_for_firmware());
        let mut choices = Vec::new();
        for device in order {
            let interface = self.devices[device].file_system;
            let fat = interface.and_then(|interface| self.files.system(interface));
            let found = fat.is_some_and(|fat| {
                let root = fat.root();
                fat.find(&root, REMOVABLE).is_ok()
            });
            if found {
                let device = &self.devices[device];
                choices.push(Choice {
                    name: format!("{}:{REMOVABLE}", device.name),
                    path: device.path.clone().file(REMOVABLE),
                    options: Vec::new(),
                    number: None,
                });
            }
        }
        choices
    }

    /// The devices that were looked at, for messages.
    fn looked_at(&self) -> String {
        let names: Vec<&str> = self.devices.iter().map(|device| device.name.as_str()).collect();
        names.join(", ")
    }
}

/// Attributes of variables that boot services and operating systems see, and that are gone with the machine.
const VOLATILE: u32 = 6;

fn global(name: &str) -> Name {
    Name {
        name: name.encode_utf16().collect(),
        vendor: GLOBAL,
    }
}

/// A variable that is a number.
fn number(variables: &Variables, name: &str) -> Option<u16> {
    let (_, data) = variables.get(&global(name), true)?;
    Some(u16::from_le_bytes(data.try_into().ok()?))
}

/// What `BootNext`, which counts once, and `BootOrder` name.
fn named(variables: &mut Variables) -> Vec<Choice> {
    let next = number(variables, "BootNext");
    if next.is_some() {
        variables.set(global("BootNext"), 0, Vec::new(), true);
    }
    let order = variables.get(&global("BootOrder"), true).map(|(_, data)| data);
    let order = order.unwrap_or_default().chunks_exact(2);
    let order = order.map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let numbers: Vec<u16> = next.into_iter().chain(order).collect();
    let choice = |number: u16| {
        let (_, data) = variables.get(&global(&format!("Boot{number:04X}")), true)?;
        load_option(data, number)
    };
    numbers.into_iter().filter_map(choice).collect()
}

/// The contents of a variable that names something to boot: attributes, length of the path, description, path, options.
fn load_option(data: &[u8], number: u16) -> Option<Choice> {
    const ACTIVE: u8 = 1;
    let length = usize::from(u16::from_le_bytes([*data.get(4)?, *data.get(5)?]));
    let text = data.get(6..)?;
    let characters = text
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let description: Vec<u16> = characters.take_while(|character| *character != 0).collect();
    let at = 6 + 2 * (description.len() + 1);
    let path = data.get(at..at.checked_add(length)?)?;
    (data[0] & ACTIVE != 0).then_some(())?;
    Some(Choice {
        name: format!("Boot{number:04X} ({})", String::from_utf16_lossy(&description)),
        path: DevicePath::parse(path)?,
        options: data[at + length..].to_vec(),
        number: Some(number),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn option(description: &str, path: &DevicePath, options: &[u8]) -> Vec<u8> {
        let path = path.bytes();
        let mut data = vec![1, 0, 0, 0];
        data.extend((path.len() as u16).to_le_bytes());
        data.extend(description.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
        data.extend(path);
        data.extend(options);
        data
    }

    #[test]
    fn variables_say_what_is_booted_and_the_next_counts_once() {
        const LASTING: u32 = 7;
        let mut variables = Variables::default();
        let path = DevicePath::host_bridge().pci(1).file("\\loader.efi");
        for (name, data) in [
            ("Boot0001", option("one", &path, b"a")),
            ("Boot000A", option("ten", &path, b"")),
            ("BootOrder", vec![1, 0, 7, 0, 10, 0]),
            ("BootNext", vec![10, 0]),
        ] {
            variables.set(global(name), LASTING, data, true);
        }
        let names = |variables: &mut Variables| -> Vec<String> {
            named(variables).into_iter().map(|choice| choice.name).collect()
        };
        assert_eq!(
            names(&mut variables),
            ["Boot000A (ten)", "Boot0001 (one)", "Boot000A (ten)"]
        );
        assert_eq!(names(&mut variables), ["Boot0001 (one)", "Boot000A (ten)"]);
        let choice = load_option(&option("one", &path, b"a"), 1).expect("an option");
        assert_eq!((choice.path, choice.options), (path, b"a".to_vec()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_option_or_none(data in prop::collection::vec(any::<u8>(), 0..64)) {
            load_option(&data, 1);
        }
    }
}
