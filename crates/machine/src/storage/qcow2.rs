//! Images in QEMU's format qcow2, by the library of that format's own developers.
//!
//! An image may build on another, its backing file. A guest reads what is in that, so only files in the image's own
//! folder are taken: an image from elsewhere cannot name what else the host has. What the library takes on trust is
//! looked at before ([`sound`]).

mod sound;

use std::io;
use std::path::{Path, PathBuf};

use imago::file::File;
use imago::format::gate::ImplicitOpenGate;
use imago::qcow2::Qcow2;
use imago::{FormatAccess, FormatDriverBuilder, Storage, StorageOpenOptions};

/// An image.
pub struct Image(FormatAccess<File>);

impl Image {
    /// The image in the file at `path`.
    ///
    /// # Errors
    /// If it is none, or builds on what is elsewhere.
    pub fn open(path: &Path, read_only: bool) -> io::Result<Image> {
        let path = path.canonicalize()?;
        sound::check(&path)?;
        let gate = OwnFolder {
            folder: path.parent().unwrap_or(Path::new("/")).to_owned(),
            images: vec![path.clone()],
        };
        let image = Qcow2::<File>::builder_path(&path).write(!read_only).open(gate)?;
        Ok(Image(FormatAccess::new(image)))
    }

    /// Bytes of the disk.
    pub fn size(&self) -> u64 {
        self.0.size()
    }

    /// Fills `bytes` from byte `start` of the disk on.
    ///
    /// # Errors
    /// What the host says, or a part of the image that makes no sense.
    pub fn read(&self, start: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.0.read(bytes, start)
    }

    /// Writes `bytes` from byte `start` of the disk on.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn write(&self, start: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write(bytes, start)
    }

    /// Has the host put everything on its disk.
    ///
    /// # Errors
    /// What the host says.
    pub fn flush(&self) -> io::Result<()> {
        self.0.flush()?;
        self.0.sync()
    }
}

/// The most images that build on one another.
const CHAIN_MAX: usize = 200;

/// Opens what an image builds on, if that is in its own folder.
#[derive(Clone)]
struct OwnFolder {
    folder: PathBuf,
    /// The images that are being opened, each of which builds on the next.
    images: Vec<PathBuf>,
}

impl OwnFolder {
    /// Where a file is that an image names, if it may be that one.
    fn check(&self, path: Option<&Path>) -> io::Result<PathBuf> {
        let path = path.ok_or_else(|| io::Error::other("it builds on what is no file"))?;
        let place = path.canonicalize().map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("its file `{}` cannot be opened: {error}", path.display()),
            )
        })?;
        if place.starts_with(&self.folder) {
            return Ok(place);
        }
        let (path, folder) = (path.display(), self.folder.display());
        let message = format!("it builds on `{path}`, which is outside of its own folder `{folder}`");
        Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
    }
}

impl<S: Storage + 'static> ImplicitOpenGate<S> for OwnFolder {
    fn open_format<F: FormatDriverBuilder<S>>(&mut self, builder: F) -> io::Result<FormatAccess<S>> {
        let place = self.check(builder.get_image_path().as_deref())?;
        let name = place.display();
        if self.images.contains(&place) {
            return Err(io::Error::other(format!("it builds on itself, by `{name}`")));
        }
        if self.images.len() == CHAIN_MAX {
            let message = format!("it builds on more than {CHAIN_MAX} images, one on the other");
            return Err(io::Error::other(message));
        }
        sound::check(&place)
            .map_err(|error| io::Error::new(error.kind(), format!("it builds on `{name}`: {error}")))?;
        let mut images = self.images.clone();
        images.push(place);
        let folder = self.folder.clone();
        Ok(FormatAccess::new(builder.open(OwnFolder { folder, images })?))
    }

    fn open_storage(&mut self, options: StorageOpenOptions) -> io::Result<S> {
        self.check(options.get_filename())?;
        S::open(options)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Runs QEMU's own tool; false if there is none here.
    fn qemu_img(arguments: &[&str]) -> bool {
        let Ok(output) = Command::new("qemu-img").args(arguments).output() else {
            return false;
        };
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "qemu-img {arguments:?}: {said}");
        true
    }

    #[test]
    fn what_is_written_is_what_qemu_reads() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| folder.path().join(name).display().to_string();
        let (base, top, raw) = (file("base.qcow2"), file("top.qcow2"), file("top.raw"));
        if !qemu_img(&["create", "-q", "-f", "qcow2", &base, "8M"]) {
            return tests_need::leave_out("there is no qemu-img");
        }
        let write = |name: &str, start: u64, bytes: &[u8]| {
            let image = Image::open(Path::new(name), false).expect("an image");
            image.write(start, bytes).expect("written");
            image.flush().expect("flushed");
        };
        write(&base, 1 << 20, &[1; 8192]);
        qemu_img(&["snapshot", "-c", "before", &base]);
        write(&base, (1 << 20) + 4096, &[2; 512]);
        let over = [
            "create",
            "-q",
            "-f",
            "qcow2",
            "-b",
            "base.qcow2",
            "-F",
            "qcow2",
            &top,
        ];
        qemu_img(&over);
        write(&top, (1 << 20) + 512, &[3; 512]);
        let image = Image::open(Path::new(&top), true).expect("an image");
        assert_eq!(image.size(), 8 << 20);
        let mut bytes = vec![0; 8192];
        image.read(1 << 20, &mut bytes).expect("read");
        let mut expected = [1; 8192];
        expected[512..1024].fill(3);
        expected[4096..4608].fill(2);
        assert!(bytes == expected);
        assert!(image.write(0, &[0; 512]).is_err(), "it is read-only");
        for name in [&base, &top] {
            qemu_img(&["check", "-q", name]);
        }
        qemu_img(&["convert", "-O", "raw", &top, &raw]);
        let converted = std::fs::read(&raw).expect("a raw disk");
        assert!(converted[1 << 20..][..8192] == expected);
        qemu_img(&["convert", "-l", "before", "-O", "raw", &base, &raw]);
        let before = std::fs::read(&raw).expect("a raw disk");
        assert!(
            before[1 << 20..][..8192] == [1; 8192],
            "the snapshot is as it was"
        );
    }

    #[test]
    fn an_image_builds_on_its_own_folder_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let elsewhere = tempfile::tempdir().expect("a folder");
        let secret = elsewhere.path().join("secret.raw");
        std::fs::write(&secret, [7; 512]).expect("written");
        let secret = secret.display().to_string();
        let image = folder.path().join("image.qcow2");
        let image = image.display().to_string();
        if !qemu_img(&["create", "-q", "-f", "qcow2", "-b", &secret, "-F", "raw", &image]) {
            return tests_need::leave_out("there is no qemu-img");
        }
        let Err(error) = Image::open(Path::new(&image), true) else {
            panic!("the host's file is the guest's");
        };
        assert!(error.to_string().contains("outside of its own folder"), "{error}");
    }

    #[test]
    fn an_image_that_builds_on_itself_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| folder.path().join(name).display().to_string();
        let (first, second) = (file("first.qcow2"), file("second.qcow2"));
        let create = |image: &str, on: &str| {
            qemu_img(&[
                "create", "-q", "-u", "-f", "qcow2", "-b", on, "-F", "qcow2", image, "1M",
            ])
        };
        if !create(&first, "second.qcow2") {
            return tests_need::leave_out("there is no qemu-img");
        }
        create(&second, "first.qcow2");
        let Err(error) = Image::open(Path::new(&first), true) else {
            panic!("there is no end to it");
        };
        assert!(error.to_string().contains("builds on itself"), "{error}");
    }

    #[test]
    fn what_is_no_image_is_refused() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert!(Image::open(file.path(), false).is_err());
        let mut bytes = vec![0xff; 4096];
        bytes[..4].copy_from_slice(b"QFI\xfb");
        std::fs::write(file.path(), &bytes).expect("written");
        assert!(Image::open(file.path(), false).is_err());
    }
}
