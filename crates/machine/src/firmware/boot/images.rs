//! Images: loading, starting, ending and unloading applications and drivers (EFI 1.10, section 5.4).

use std::collections::BTreeMap;

use super::super::efi::{self, MemoryType, PAGE};
use super::context::Context;
use super::device_path::DevicePath;
use super::guest::{Failure, Guest, Guid};
use super::memory::Place;
use super::pe::{Image, Kind};
use super::protocols::read_path;
use super::{Boot, Flow, Pending};

/// The protocol that says what an image was started with.
pub const LOADED_IMAGE: Guid = efi::guid(
    0x5b1b_31a1,
    0x9562,
    0x11d2,
    [0x8e, 0x3f, 0, 0xa0, 0xc9, 0x69, 0x72, 0x3b],
);

/// Where fields of its structure are.
mod field {
    pub const UNLOAD: u64 = 88;
}

/// The most bytes of an image's file.
pub const FILE_BYTES_MAX: u64 = 1 << 28;

/// An image in memory.
pub struct Loaded {
    base: u64,
    pages: u64,
    entry: u64,
    kind: Kind,
    /// The structure of its protocol, and the device paths that it names.
    protocol: u64,
    placed: Vec<u64>,
    is_started: bool,
}

/// An image that runs: what its caller goes on with.
pub struct Running {
    /// Its handle.
    pub handle: u64,
    context: Context,
    /// Where its caller wants to have what it says at its end.
    exit_data: [u64; 2],
}

/// All images by their handles.
pub type Images = BTreeMap<u64, Loaded>;

/// Where an image comes from.
pub struct Origin {
    /// Who loads it; null is the firmware.
    pub parent: u64,
    /// The device, and the file on it.
    pub device: u64,
    /// As `device`.
    pub file: Option<DevicePath>,
    /// What it is to do: bytes, mostly characters.
    pub options: Vec<u8>,
}

impl Boot {
    /// Policy, parent, device path, bytes of the file and their count, where the handle is to be written.
    pub(super) fn load_image(&mut self, guest: &mut Guest<'_, '_>) -> Result<(), Failure> {
        let [_, parent, path, source, size, handle] = guest.arguments();
        if !self.images.contains_key(&parent) || handle == 0 {
            return Err(efi::INVALID_PARAMETER);
        }
        let path = match path {
            0 => None,
            at => Some(read_path(guest, at)?),
        };
        let device = path.as_ref().and_then(|path| self.device_of(path));
        let bytes = match (source, device) {
            (0, None) => {
                return Err(if path.is_some() {
                    efi::NOT_FOUND
                } else {
                    efi::INVALID_PARAMETER
                });
            }
            (0, Some((device, rest))) => {
                let name = rest.file_name().ok_or(efi::NOT_FOUND)?;
                self.read_file(device, &name)?
            }
            (at, _) if size <= FILE_BYTES_MAX => guest.bytes(at, size)?,
            _ => return Err(efi::OUT_OF_RESOURCES),
        };
        let device = device_and_rest(path.as_ref(), self);
        let origin = Origin {
            parent,
            device: device.0,
            file: device.1,
            options: Vec::new(),
        };
        let loaded = self.load(guest, &bytes, origin).map_err(|error| match error {
            LoadFailure::Format(_) => efi::UNSUPPORTED,
            LoadFailure::Status(status) => status,
        })?;
        guest.set_word(handle, loaded)
    }

    /// Loads an image; answers its handle.
    pub(super) fn load(
        &mut self,
        guest: &mut Guest<'_, '_>,
        bytes: &[u8],
        origin: Origin,
    ) -> Result<u64, LoadFailure> {
        let image = Image::parse(bytes)?;
        let pages = u64::from(image.size).div_ceil(PAGE);
        let (code, data) = image.kind.memory();
        let place = match image.is_fixed() {
            true => Place::At(image.base),
            false => Place::Any,
        };
        let base = self.memory.map.allocate(code as u32, pages, place)?;
        let loaded = image.placed(base).map_err(LoadFailure::from).and_then(|memory| {
            guest.write(base, &memory)?;
            let size = u64::from(image.size);
            Ok(self.install_image(guest, origin, (base, size), (code, data))?)
        });
        match loaded {
            Ok((handle, protocol, placed)) => {
                let entry = base + u64::from(image.entry);
                let kind = image.kind;
                self.images.insert(
                    handle,
                    Loaded {
                        base,
                        pages,
                        entry,
                        kind,
                        protocol,
                        placed,
                        is_started: false,
                    },
                );
                Ok(handle)
            }
            Err(failure) => {
                self.memory.map.free(base, pages)?;
                Err(failure)
            }
        }
    }

    /// Gives an image its handle and its protocol.
    fn install_image(
        &mut self,
        guest: &mut Guest<'_, '_>,
        origin: Origin,
        (base, size): (u64, u64),
        (code, data): (MemoryType, MemoryType),
    ) -> Result<(u64, u64, Vec<u64>), Failure> {
        const REVISION: u64 = 1 << 12;
        let mut placed = Vec::new();
        let mut place = |boot: &mut Boot, guest: &mut Guest<'_, '_>, bytes: &[u8]| -> Result<u64, Failure> {
            let at = boot.memory.place(guest, bytes)?;
            placed.push(at);
            Ok(at)
        };
        let file = match &origin.file {
            Some(path) => place(self, guest, &path.bytes())?,
            None => 0,
        };
        let options = &origin.options;
        let options_at = match options.is_empty() {
            true => 0,
            false => place(self, guest, options)?,
        };
        let fields = [
            REVISION,
            origin.parent,
            self.system_table,
            origin.device,
            file,
            0,
            options.len() as u64,
            options_at,
            base,
            size,
            code as u64 | (data as u64) << 32,
            0,
        ];
        let protocol = place(self, guest, fields.map(u64::to_le_bytes).as_flattened())?;
        let handle = self.install(0, LOADED_IMAGE, protocol)?;
        Ok((handle, protocol, placed))
    }

    /// Starts an image; it returns to whoever called the service, as `exit_data` has it.
    pub(super) fn start_image(
        &mut self,
        guest: &mut Guest<'_, '_>,
        handle: u64,
        exit_data: [u64; 2],
    ) -> Result<Flow, Failure> {
        let image = self.images.get_mut(&handle).ok_or(efi::INVALID_PARAMETER)?;
        if image.is_started {
            return Err(efi::INVALID_PARAMETER);
        }
        image.is_started = true;
        let function = image.entry;
        // Where its caller goes on, whether it returns or ends itself: behind the call.
        let context = Context::of(guest.0.processor)?;
        Ok(Flow::Call {
            function,
            arguments: [handle, self.system_table],
            then: Pending::Image(Box::new(Running {
                handle,
                context,
                exit_data,
            })),
        })
    }

    /// An image has returned, or ended itself with `data` to say.
    pub(super) fn image_ended(
        &mut self,
        guest: &mut Guest<'_, '_>,
        running: &Running,
        status: u64,
        data: [u64; 2],
    ) -> u64 {
        let [size_at, data_at] = running.exit_data;
        // The caller's pointers may be wrong; the image has ended all the same.
        if size_at != 0 && data_at != 0 {
            let _ = guest.set_word(size_at, data[0]);
            let _ = guest.set_word(data_at, data[1]);
        }
        let stays = self
            .images
            .get(&running.handle)
            .is_some_and(|image| image.kind != Kind::Application && status >> 63 == 0);
        if !stays {
            self.remove_image(running.handle);
        }
        status
    }

    /// Ends the image that runs: handle, status, size and address of what it says. One that was loaded alone is gone.
    pub(super) fn exit(&mut self, guest: &mut Guest<'_, '_>) -> Result<Flow, Failure> {
        let [handle, status, size, data] = guest.arguments();
        let image = self.images.get(&handle).ok_or(efi::INVALID_PARAMETER)?;
        if !image.is_started {
            self.remove_image(handle);
            return Ok(Flow::Return(0));
        }
        let is_running = |pending: &Pending| matches!(pending, Pending::Image(_));
        let innermost = self.pending.iter().rposition(is_running);
        let index = innermost.ok_or(efi::INVALID_PARAMETER)?;
        match &self.pending[index] {
            Pending::Image(running) if running.handle == handle => {}
            _ => return Err(efi::INVALID_PARAMETER),
        }
        // What is behind it was called by the image, and is gone with it.
        let mut ended = self.pending.split_off(index);
        let Pending::Image(running) = ended.remove(0) else {
            return Err(efi::INVALID_PARAMETER);
        };
        let status = self.image_ended(guest, &running, status, [size, data]);
        running.context.restore(guest.0.processor);
        Ok(self.after_image(status))
    }

    /// Unloads an image that does not run: handle.
    pub(super) fn unload_image(&mut self, guest: &mut Guest<'_, '_>) -> Result<Flow, Failure> {
        let [handle] = guest.arguments();
        let image = self.images.get(&handle).ok_or(efi::INVALID_PARAMETER)?;
        let is_running = |pending: &Pending| matches!(pending, Pending::Image(one) if one.handle == handle);
        if self.pending.iter().any(is_running) {
            return Err(efi::ACCESS_DENIED);
        }
        let unload = guest.word(image.protocol + field::UNLOAD)?;
        match (image.is_started, unload) {
            (true, 0) => Err(efi::UNSUPPORTED),
            (true, function) => Ok(Flow::Call {
                function,
                arguments: [handle, 0],
                then: Pending::Unload(handle),
            }),
            (false, _) => {
                self.remove_image(handle);
                Ok(Flow::Return(0))
            }
        }
    }

    pub(super) fn remove_image(&mut self, handle: u64) {
        let Some(image) = self.images.remove(&handle) else {
            return;
        };
        // An application can have given back or uninstalled what is its own: nothing is left to do then.
        let _ = self.handles.uninstall(handle, LOADED_IMAGE, image.protocol);
        self.handles.forget_agent(handle);
        for at in image.placed {
            let _ = self.memory.give(at);
        }
        let _ = self.memory.map.free(image.base, image.pages);
    }
}

/// The handle of the device that a path begins with, and what is behind.
fn device_and_rest(path: Option<&DevicePath>, boot: &Boot) -> (u64, Option<DevicePath>) {
    match path.and_then(|path| boot.device_of(path)) {
        Some((device, rest)) => (boot.devices[device].handle, Some(rest)),
        None => (0, path.cloned()),
    }
}

/// Why an image is not loaded.
pub enum LoadFailure {
    /// It is none.
    Format(super::pe::PeError),
    /// Something else.
    Status(Failure),
}

impl From<super::pe::PeError> for LoadFailure {
    fn from(error: super::pe::PeError) -> LoadFailure {
        LoadFailure::Format(error)
    }
}

impl From<Failure> for LoadFailure {
    fn from(status: Failure) -> LoadFailure {
        LoadFailure::Status(status)
    }
}
