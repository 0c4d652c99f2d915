//! A small shell on the console, for what does not boot by itself.

use super::guest::Guest;
use super::volumes::Part;
use super::{Boot, DevicePath, Flow, Pending, Surroundings};
use crate::machine::ending::Request;
use crate::machine::hypercall::Reaction;
use crate::machine::timeline::TICKS_PER_SECOND;
use crate::storage::fat::{Cursor, Entry, Fat, FatError};

/// How often keys are looked for.
const LOOK_TICKS: u64 = TICKS_PER_SECOND / 100;
/// The most characters of a line.
const LINE_MAX: usize = 512;
/// The most bytes of a file that are shown.
const SHOWN_MAX: u32 = 1 << 20;

const HELP: &str = "\
map              the devices, and which have a file system
hd0p1:           go to a device
cd FOLDER        go to a folder
ls [FOLDER]      what is in a folder
cat FILE         show a file (also: type)
FILE.EFI [TEXT]  start an application
reset, off       start again, switch off
";

/// What it says where it begins: nothing has booted.
pub const GREETING: &str = "The shell of the firmware; `help` lists its commands.";

/// The shell.
#[derive(Default)]
pub struct Shell {
    line: Vec<char>,
    is_prompted: bool,
    /// The device, and the folder on it.
    device: Option<usize>,
    folder: String,
}

impl Boot {
    /// Goes on with the shell: a key, or a line that is whole.
    pub(super) fn shell_step(
        &mut self,
        guest: &mut Guest<'_, '_>,
        _surroundings: &mut Surroundings<'_>,
    ) -> Flow {
        const BACKSPACE: u16 = 8;
        const RETURN: u16 = 13;
        /// Nothing has booted, and nobody is there to say what else to do.
        const FAILURE: u32 = 1;
        if !self.manager.shell.is_prompted {
            if self.console.has_ended() {
                guest.0.platform.ending.request(Request::Exit(FAILURE));
                return Flow::End(Reaction::Stop);
            }
            self.prompt();
        }
        while let Some(key) = self.console.key() {
            let line = &mut self.manager.shell.line;
            match key.character {
                RETURN => {
                    let text: String = std::mem::take(line).into_iter().collect();
                    self.manager.shell.is_prompted = false;
                    self.console.print("\n");
                    return self.command(guest, text.trim());
                }
                BACKSPACE if line.pop().is_some() => self.console.print("\u{8} \u{8}"),
                character @ 0x20.. if line.len() < LINE_MAX => {
                    let character = char::from_u32(u32::from(character)).unwrap_or('?');
                    line.push(character);
                    self.console.print(character.encode_utf8(&mut [0; 4]));
                }
                _ => {}
            }
        }
        if self.console.has_ended() {
            guest.0.platform.ending.request(Request::Exit(FAILURE));
            return Flow::End(Reaction::Stop);
        }
        self.shell_later(guest, LOOK_TICKS)
    }

    fn shell_later(&self, guest: &Guest<'_, '_>, ticks: u64) -> Flow {
        Flow::Wait {
            until: guest.now() + ticks,
            then: Pending::Manager,
        }
    }

    fn prompt(&mut self) {
        let shell = &mut self.manager.shell;
        if shell.device.is_none() {
            shell.device = self
                .devices
                .iter()
                .position(|device| device.file_system.is_some());
            shell.folder.clear();
            self.console.print(&format!("{GREETING}\n"));
        }
        let shell = &mut self.manager.shell;
        shell.is_prompted = true;
        let device = shell.device.map_or("", |device| &self.devices[device].name);
        let prompt = format!(
            "{device}:{}> ",
            if shell.folder.is_empty() {
                "\\"
            } else {
                &shell.folder
            }
        );
        self.console.print(&prompt);
    }

    fn command(&mut self, guest: &mut Guest<'_, '_>, line: &str) -> Flow {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        let said = match word.to_lowercase().as_str() {
            "" => Ok(String::new()),
            "help" => Ok(HELP.to_owned()),
            "map" => Ok(self.map()),
            "ls" | "dir" => self.show_folder(rest),
            "cat" | "type" => self.show_file(rest),
            "cd" => self.change_folder(rest),
            "reset" => return self.end(guest, Request::Reset),
            "off" | "exit" => return self.end(guest, Request::Exit(0)),
            device if device.ends_with(':') => self.change_device(device.trim_end_matches(':')),
            _ => match self.start_from_shell(guest, word, rest) {
                Ok(flow) => return flow,
                Err(reason) => Err(reason),
            },
        };
        match said {
            Ok(text) => self.console.print(&text),
            Err(reason) => self.console.print(&format!("{line}: {reason}\n")),
        }
        self.shell_later(guest, 0)
    }

    fn end(&mut self, guest: &Guest<'_, '_>, request: Request) -> Flow {
        guest.0.platform.ending.request(request);
        Flow::End(Reaction::Stop)
    }

    fn map(&self) -> String {
        let line = |device: &super::volumes::Device| {
            let what = if device.file_system.is_some() { "FAT" } else { "" };
            format!("{:8} {:>12} bytes  {what}\n", device.name, device.size())
        };
        self.devices.iter().map(line).collect()
    }

    /// The file system of the device that is current.
    fn current(&mut self) -> Result<(&mut Fat<Part>, String), String> {
        let shell = &self.manager.shell;
        let device = shell.device.ok_or("no device has a file system")?;
        let interface = self.devices[device]
            .file_system
            .ok_or("the device has no FAT file system")?;
        let folder = shell.folder.clone();
        let fat = self.files.system(interface);
        Ok((fat.ok_or("the device has no FAT file system")?, folder))
    }

    /// A file, from the current folder on.
    fn entry(&mut self, name: &str) -> Result<(&mut Fat<Part>, Entry), String> {
        let said = |error: FatError| error.to_string();
        let (fat, folder) = self.current()?;
        let folder = fat.find(&fat.root(), &folder).map_err(said)?;
        let entry = fat.find(&folder, name).map_err(said)?;
        Ok((fat, entry))
    }

    fn show_folder(&mut self, name: &str) -> Result<String, String> {
        let (fat, folder) = self.entry(name)?;
        let entries = fat.list(&folder).map_err(|error| error.to_string())?;
        let line = |entry: &Entry| match entry.attributes.is_directory() {
            true => format!("{:>12}  {}\n", "folder", entry.name),
            false => format!("{:>12}  {}\n", entry.size, entry.name),
        };
        Ok(entries.iter().map(line).collect())
    }

    fn show_file(&mut self, name: &str) -> Result<String, String> {
        let (fat, file) = self.entry(name)?;
        if file.attributes.is_directory() {
            return Err("is a folder".to_owned());
        }
        let mut bytes = vec![0; file.size.min(SHOWN_MAX) as usize];
        fat.read(&file, &mut Cursor::default(), 0, &mut bytes)
            .map_err(|error| error.to_string())?;
        // UTF-16, as EFI's own tools write it, or UTF-8.
        let text = match bytes.strip_prefix(&[0xff, 0xfe]) {
            Some(wide) => {
                let pairs = wide
                    .chunks_exact(2)
                    .map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
                String::from_utf16_lossy(&pairs.collect::<Vec<_>>())
            }
            None => String::from_utf8_lossy(&bytes).into_owned(),
        };
        Ok(text.replace("\r\n", "\n") + "\n")
    }

    fn change_folder(&mut self, name: &str) -> Result<String, String> {
        let (_, entry) = self.entry(name)?;
        if !entry.attributes.is_directory() {
            return Err("is no folder".to_owned());
        }
        let shell = &mut self.manager.shell;
        shell.folder = joined(&shell.folder, name);
        Ok(String::new())
    }

    fn change_device(&mut self, name: &str) -> Result<String, String> {
        let found = self
            .devices
            .iter()
            .position(|device| device.name.eq_ignore_ascii_case(name));
        let found = found.ok_or("there is no such device; `map` lists them")?;
        if self.devices[found].file_system.is_none() {
            return Err("the device has no FAT file system".to_owned());
        }
        self.manager.shell.device = Some(found);
        self.manager.shell.folder.clear();
        Ok(String::new())
    }

    fn start_from_shell(
        &mut self,
        guest: &mut Guest<'_, '_>,
        name: &str,
        options: &str,
    ) -> Result<Flow, String> {
        let (_, entry) = match self.entry(name) {
            Ok(found) => found,
            Err(reason) => return Err(format!("neither a command (see `help`) nor a file: {reason}")),
        };
        if entry.attributes.is_directory() {
            return Err("is a folder".to_owned());
        }
        let shell = &self.manager.shell;
        let device = shell.device.ok_or("no device has a file system")?;
        let path: DevicePath = self.devices[device]
            .path
            .clone()
            .file(&joined(&shell.folder, name));
        let options = match options {
            "" => Vec::new(),
            // The whole line, as shells give it.
            options => format!("{name} {options}")
                .encode_utf16()
                .chain([0])
                .flat_map(u16::to_le_bytes)
                .collect(),
        };
        self.start_path(guest, &path, options)
    }
}

/// The path of what a name means in a folder.
fn joined(folder: &str, name: &str) -> String {
    let from = if name.starts_with(['\\', '/']) { "" } else { folder };
    let mut parts: Vec<&str> = Vec::new();
    for part in from.split(['\\', '/']).chain(name.split(['\\', '/'])) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let path: String = parts.iter().flat_map(|part| ["\\", part]).collect();
    path
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn names_are_meant_from_a_folder_on() {
        for (folder, name, path) in [
            ("", "EFI", "\\EFI"),
            ("\\EFI", "BOOT/x.efi", "\\EFI\\BOOT\\x.efi"),
            ("\\EFI\\BOOT", "..", "\\EFI"),
            ("\\EFI", "\\", ""),
            ("", "..", ""),
        ] {
            assert_eq!(joined(folder, name), path);
        }
    }
}
