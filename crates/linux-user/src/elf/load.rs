//! Mapping a program and its interpreter into guest memory, where Linux 6.1 would.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::image::{Image, ImageError};
use crate::files::namespace::{Found, Last, Namespace};
use crate::files::{host_path_of, link_of};
use crate::host::Errno;
use crate::memory::changes::MapRequest;
use crate::memory::window::{PAGE, page_ceiling, page_floor};
use crate::memory::{MAP_BASE, Memory};

/// Where a position-independent program with an interpreter goes.
const DYNAMIC_BASE: u64 = MAP_BASE + 0x8_0000_0000;

/// Why a program cannot be loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The file cannot be opened.
    #[error("{}: cannot be opened", file.display())]
    Open {
        /// Its path.
        file: PathBuf,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// Its headers are not those of an IA-64 program.
    #[error("{}: {cause}", file.display())]
    Image {
        /// Its path.
        file: PathBuf,
        /// What is wrong where.
        cause: ImageError,
    },
    /// A segment cannot be mapped.
    #[error("{}: segment at {address:#x} cannot be mapped: {cause}", file.display())]
    Map {
        /// The file's path.
        file: PathBuf,
        /// The segment's address.
        address: u64,
        /// Why.
        cause: Errno,
    },
    /// The interpreter is missing.
    #[error(
        "{}: needs the interpreter {}, which is not there: name the folder that holds it with --sysroot",
        file.display(),
        interpreter.display()
    )]
    NoInterpreter {
        /// The program.
        file: PathBuf,
        /// The interpreter's path as the program names it.
        interpreter: PathBuf,
    },
    /// The interpreter wants an interpreter or a fixed address.
    #[error("{}: cannot serve as an interpreter: it must be position-independent and need none itself", .0.display())]
    Interpreter(PathBuf),
    /// The stack cannot be set up.
    #[error("{}: the stack cannot be set up: {cause}", file.display())]
    Stack {
        /// The program.
        file: PathBuf,
        /// Why.
        cause: Errno,
    },
    /// Arguments and environment do not fit the stack.
    #[error("{}: arguments and environment take {size} bytes, but the stack has room for {room}", file.display())]
    TooManyArguments {
        /// The program.
        file: PathBuf,
        /// Bytes they take.
        size: u64,
        /// Bytes there are.
        room: u64,
    },
}

/// A program mapped into memory.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Its headers.
    pub image: Image,
    /// What was added to its addresses.
    pub bias: u64,
    /// The interpreter's base address; zero without one.
    pub interpreter_base: u64,
    /// Where execution starts: in the interpreter, if there is one.
    pub start: u64,
}

impl Loaded {
    /// The program's own entry point.
    pub fn entry(&self) -> u64 {
        self.image.entry.wrapping_add(self.bias)
    }

    /// Where its first segment is that has a right.
    pub fn range_of(&self, right: i32) -> Range<u64> {
        let segment = self
            .image
            .loads
            .iter()
            .find(|load| load.protection & right as u64 != 0);
        segment.map_or(0..0, |load| {
            let start = load.address.wrapping_add(self.bias);
            start..start.wrapping_add(load.file_size)
        })
    }

    /// The address of its program headers; zero where they are not in memory.
    pub fn headers_address(&self) -> u64 {
        match self.image.headers_address() {
            0 if !self.image.relocatable => 0,
            address => address.wrapping_add(self.bias),
        }
    }
}

/// Opens a program's file.
pub fn open(path: &Path) -> Result<File, LoadError> {
    File::open(path).map_err(|cause| LoadError::Open {
        file: path.into(),
        cause,
    })
}

fn headers(memory: &Memory, path: &Path, file: &File) -> Result<Image, LoadError> {
    let image = Image::read(file, memory.region_limit());
    image.map_err(|cause| LoadError::Image {
        file: path.into(),
        cause,
    })
}

/// Maps a program and its interpreter, and starts the heap behind the program. The interpreter is looked up in the
/// tree of names, where the program has one of its own.
pub fn load(memory: &Memory, path: &Path, file: File, tree: Option<&Namespace>) -> Result<Loaded, LoadError> {
    let image = headers(memory, path, &file)?;
    let interpreter = match &image.interpreter {
        None => None,
        Some(name) => Some(find_interpreter(
            memory,
            path,
            Path::new(OsStr::from_bytes(name)),
            tree,
        )?),
    };
    let wish = if interpreter.is_some() { DYNAMIC_BASE } else { 0 };
    let bias = map_image(memory, path, &file, &image, wish)?;
    let heap = page_ceiling(image.end().wrapping_add(bias)).unwrap_or(u64::MAX);
    memory.start_heap(heap);
    let entry = image.entry.wrapping_add(bias);
    let (start, interpreter_base) = match interpreter {
        None => (entry, 0),
        Some((path, file, interpreter)) => {
            let bias = map_image(memory, &path, &file, &interpreter, 0)?;
            (
                interpreter.entry.wrapping_add(bias),
                interpreter.start().wrapping_add(bias),
            )
        }
    };
    Ok(Loaded {
        image,
        bias,
        interpreter_base,
        start,
    })
}

fn find_interpreter(
    memory: &Memory,
    program: &Path,
    name: &Path,
    tree: Option<&Namespace>,
) -> Result<(PathBuf, File, Image), LoadError> {
    let missing = || LoadError::NoInterpreter {
        file: program.into(),
        interpreter: name.into(),
    };
    let (path, file) = match tree {
        None if !name.exists() => return Err(missing()),
        None => (name.to_path_buf(), open(name)?),
        Some(tree) => {
            let found = tree.resolve(b"/", name.as_os_str().as_bytes(), Last::Follow);
            let Ok(Found::Object { object, .. }) = found else {
                return Err(missing());
            };
            let path = host_path_of(object.as_raw_fd()).map_err(|_| missing())?;
            let file = open(Path::new(&link_of(object.as_raw_fd())))?;
            (OsString::from_vec(path).into(), file)
        }
    };
    let image = headers(memory, &path, &file)?;
    if image.interpreter.is_some() || !image.relocatable {
        return Err(LoadError::Interpreter(path));
    }
    Ok((path, file, image))
}

/// Maps all segments; answers the bias. `wish` is where a relocatable image would like to be.
fn map_image(memory: &Memory, path: &Path, file: &File, image: &Image, wish: u64) -> Result<u64, LoadError> {
    let failed = |address| {
        move |cause| LoadError::Map {
            file: path.into(),
            address,
            cause,
        }
    };
    let bias = if image.relocatable {
        let span = page_ceiling(image.end() - image.start()).unwrap_or(u64::MAX);
        let room = MapRequest {
            address: wish,
            protection: 0,
            ..MapRequest::anonymous(span)
        };
        let base = memory.map(&room).map_err(failed(wish))?;
        memory.unmap(base, span).map_err(failed(base))?;
        base.wrapping_sub(image.start())
    } else {
        0
    };
    for load in &image.loads {
        let address = load.address.wrapping_add(bias);
        let start = page_floor(address);
        let lead = address - start;
        if load.file_size > 0 {
            let request = MapRequest {
                address: start,
                length: load.file_size + lead,
                protection: load.protection,
                flags: (libc::MAP_PRIVATE | libc::MAP_FIXED) as u64,
                file: file.as_raw_fd(),
                offset: load.offset - lead,
            };
            memory.map(&request).map_err(failed(address))?;
        }
        if load.memory_size > load.file_size {
            let request = zero_rest(memory, address, load.file_size, load.memory_size, load.protection);
            request.map_err(failed(address))?;
        }
    }
    Ok(bias)
}

/// Clears what the last file page shows beyond the segment's bytes, and maps zeroes for the rest.
fn zero_rest(
    memory: &Memory,
    address: u64,
    file_size: u64,
    memory_size: u64,
    protection: u64,
) -> Result<(), Errno> {
    let file_end = address + file_size;
    let pages_from = if file_size > 0 {
        page_floor(file_end + PAGE - 1)
    } else {
        page_floor(file_end)
    };
    let memory_end = page_ceiling(address + memory_size).ok_or(Errno(libc::ENOMEM))?;
    if file_size > 0 && pages_from > file_end {
        let zeroes = vec![0u8; (pages_from - file_end) as usize];
        let writable = protection & libc::PROT_WRITE as u64 != 0;
        let page = page_floor(file_end);
        if !writable {
            memory.protect(page, PAGE, protection | libc::PROT_WRITE as u64)?;
        }
        memory.write_bytes(file_end, &zeroes)?;
        if !writable {
            memory.protect(page, PAGE, protection)?;
        }
    }
    if memory_end > pages_from {
        memory.map(&MapRequest {
            address: pages_from,
            protection,
            flags: (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED) as u64,
            ..MapRequest::anonymous(memory_end - pages_from)
        })?;
    }
    Ok(())
}
