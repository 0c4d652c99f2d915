//! A sidecore for processes that it does not trust.
//!
//! Each process gets a region of memory of its own: a page with its line, then bytes for paths and buffers. It names
//! bytes by their offset in the region. The region is a file in memory that is sealed against being cut short, so that
//! touching it can kill nobody; its descriptor goes over a Unix socket (SCM_RIGHTS), and with the socket's end, however
//! the process ends, the region goes and the files that were opened for it.
//!
//! Descriptors of files stay with the broker, and the process gets numbers: a process that holds the file itself could
//! use it by system calls, which is what a sandbox takes from it. So nothing is taken from a process either
//! (pidfd_getfd), for which the broker would need rights over it. Paths are looked up beneath one folder, which nothing
//! in them leaves, links included.

use std::ffi::CString;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, Mode, OFlags, ResolveFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};

use crate::caller::wait;
use crate::line::{Answer, Line, Request, WORDS};
use crate::sidecore::{Service, Sidecore, Tally};
use crate::system_calls::{self, CURRENT, LENGTH_MAX, Operation, Refusal, Space, Words, YOURSELF};
use crate::table::Table;

/// Bytes of a region.
pub const REGION_BYTES: usize = 1 << 17;
/// The first byte that paths and buffers may use.
pub const DATA_START: usize = 4096;
/// The most files that a process may have open.
pub const FILES_MAX: usize = 64;
/// How long a process waits until it asks again for what comes from a disk.
const FETCHING: Duration = Duration::from_micros(100);
/// The longest path, with the zero at its end (PATH_MAX).
const PATH_BYTES_MAX: usize = 4096;

/// Memory that two processes share.
struct Region(*mut u8);

// SAFETY: the mapping stays where it is until the region is dropped, and is accessed through atomic words and by the
// kernel alone, from any thread.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    fn new() -> io::Result<(Self, OwnedFd)> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("sidecall", flags)?;
        rustix::fs::ftruncate(&file, REGION_BYTES as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok((Self::map(file.as_fd())?, file))
    }

    fn map(file: BorrowedFd<'_>) -> io::Result<Self> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses addresses that nothing has.
        let start = unsafe { mmap(std::ptr::null_mut(), REGION_BYTES, access, flags, file, 0) }?;
        Ok(Self(start.cast()))
    }

    fn line(&self) -> Line<'_> {
        // SAFETY: the first bytes of the mapping, which is aligned to pages, lives as long as this borrow, cannot be
        // cut short, and is accessed by both processes in whole words only.
        Line::new(unsafe { &*self.0.cast::<[AtomicU64; WORDS]>() })
    }

    /// Where bytes that the other process named lie, if they are in the region and not of the line's page.
    fn bytes(&self, offset: u64, length: usize) -> Option<*mut u8> {
        let offset = usize::try_from(offset).ok()?;
        let is_inside = offset >= DATA_START && offset.checked_add(length)? <= REGION_BYTES;
        is_inside.then(|| self.0.wrapping_add(offset))
    }

    /// Copies bytes out, each once.
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Option<()> {
        let from = self.bytes(offset, bytes.len())?;
        for (index, byte) in bytes.iter_mut().enumerate() {
            // SAFETY: inside the mapping, as was checked. A volatile read of a byte is one read, whatever the other
            // process writes meanwhile.
            *byte = unsafe { from.add(index).read_volatile() };
        }
        Some(())
    }

    /// Copies bytes in.
    fn write(&self, offset: u64, bytes: &[u8]) -> Option<()> {
        let to = self.bytes(offset, bytes.len())?;
        for (index, byte) in bytes.iter().enumerate() {
            // SAFETY: inside the mapping, as was checked, which no reference points to.
            unsafe { to.add(index).write_volatile(*byte) };
        }
        Some(())
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is this region's, and lines of it are gone. It cannot fail for such a mapping.
        let _ = unsafe { munmap(self.0.cast(), REGION_BYTES) };
    }
}

/// What a process may do.
#[derive(Debug)]
pub struct Rights {
    /// The folder beneath which its paths are.
    pub folder: OwnedFd,
    /// Whether it may write and create files there.
    pub writes: bool,
    /// What its keys are looked up in.
    pub table: Table,
}

struct RegionSpace {
    region: Region,
    rights: Arc<Rights>,
    files: Vec<Option<OwnedFd>>,
}

/// What serves another process.
pub struct OtherProcess {
    space: RegionSpace,
    has_ended: Arc<AtomicBool>,
}

impl Service for OtherProcess {
    fn line(&self) -> Line<'_> {
        self.space.region.line()
    }

    fn serve(&mut self, request: &Request) -> Answer {
        let rights = Arc::clone(&self.space.rights);
        system_calls::serve(request, &mut self.space, &rights.table)
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }
}

impl RegionSpace {
    /// Copies a path: the process may change it, but not what was copied.
    fn path(&self, (offset, length): (u64, usize)) -> Result<CString, Refusal> {
        if length >= PATH_BYTES_MAX {
            return Err(Refusal::of(libc::ENAMETOOLONG));
        }
        let mut path = vec![0; length];
        self.region
            .read(offset, &mut path)
            .ok_or(Refusal::of(libc::EFAULT))?;
        CString::new(path).map_err(|_| Refusal::of(libc::EINVAL))
    }

    fn open_beneath(&self, path: (u64, usize), flags: OFlags, mode: Mode) -> Result<OwnedFd, Refusal> {
        let path = self.path(path)?;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let flags = flags | OFlags::CLOEXEC;
        Ok(rustix::fs::openat2(
            &self.rights.folder,
            path,
            flags,
            mode,
            resolve,
        )?)
    }
}

impl Space for RegionSpace {
    fn bytes(&self, address: u64, length: usize) -> Result<*mut u8, Refusal> {
        self.region
            .bytes(address, length)
            .ok_or(Refusal::of(libc::EFAULT))
    }

    fn descriptor(&self, number: u32) -> Result<RawFd, Refusal> {
        let file = self.files.get(number as usize).and_then(Option::as_ref);
        file.map(AsRawFd::as_raw_fd).ok_or(Refusal::of(libc::EBADF))
    }

    fn open(&mut self, path: (u64, usize), flags: u32, mode: u32) -> Result<u32, Refusal> {
        let wanted = OFlags::from_bits_truncate(flags);
        let possible = OFlags::RDONLY
            | OFlags::WRONLY
            | OFlags::RDWR
            | OFlags::CREATE
            | OFlags::EXCL
            | OFlags::TRUNC
            | OFlags::APPEND;
        let changes = OFlags::WRONLY | OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC;
        if !self.rights.writes && wanted.intersects(changes) {
            return Err(Refusal::of(libc::EACCES));
        }
        let number = match self.files.iter().position(Option::is_none) {
            Some(free) => free,
            None if self.files.len() < FILES_MAX => {
                self.files.push(None);
                self.files.len() - 1
            }
            None => return Err(Refusal::of(libc::EMFILE)),
        };
        let mode = match wanted.contains(OFlags::CREATE) {
            true => Mode::from_bits_truncate(mode & 0o777),
            false => Mode::empty(),
        };
        // A pipe or a device would be waited for.
        let file = self.open_beneath(path, wanted & possible | OFlags::NONBLOCK, mode)?;
        if !system_calls::is_regular(file.as_raw_fd())? {
            return Err(Refusal::of(libc::EACCES));
        }
        self.files[number] = Some(file);
        Ok(number as u32)
    }

    fn close(&mut self, number: u32) -> Result<(), Refusal> {
        let file = self.files.get_mut(number as usize).and_then(Option::take);
        file.map(drop).ok_or(Refusal::of(libc::EBADF))
    }

    fn stat(&mut self, path: (u64, usize), to: u64) -> Result<(), Refusal> {
        let to = self.bytes(to, size_of::<libc::stat>())?;
        let file = self.open_beneath(path, OFlags::PATH, Mode::empty())?;
        // SAFETY: the kernel writes to memory of the region, which no reference points to.
        match unsafe { libc::syscall(libc::SYS_fstat, file.as_raw_fd(), to) } {
            0 => Ok(()),
            _ => Err(Refusal::last()),
        }
    }
}

/// A sidecore that processes connect to by a Unix socket.
pub struct Broker {
    sidecore: Option<Arc<Sidecore<OtherProcess>>>,
    /// Closed to end the thread that takes connections.
    end: Option<UnixStream>,
    door: Option<JoinHandle<()>>,
    path: std::path::PathBuf,
    tally: Arc<Mutex<Tally>>,
}

impl Broker {
    /// Listens at `path`, and serves who connects on `core`, or wherever the kernel puts the thread. It goes to sleep
    /// after `looks` that found nothing.
    ///
    /// # Errors
    /// When the socket is there already or cannot be made, or there can be no thread on that core.
    pub fn start(path: &Path, core: Option<usize>, rights: Rights, looks: u64) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        let sidecore = Arc::new(Sidecore::start(core, Vec::new(), looks)?);
        let (end, ended) = UnixStream::pair()?;
        let own = Arc::clone(&sidecore);
        let door = thread::Builder::new()
            .name("sidecall broker".to_owned())
            .spawn(move || keep_door(&listener, &ended, &own, &Arc::new(rights)))?;
        Ok(Self {
            sidecore: Some(sidecore),
            end: Some(end),
            door: Some(door),
            path: path.to_owned(),
            tally: Arc::default(),
        })
    }

    /// What the sidecore has done until now.
    pub fn tally(&self) -> Tally {
        match &self.sidecore {
            Some(sidecore) => sidecore.tally(),
            None => *self.tally.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// How many processes it serves.
    pub fn processes(&self) -> u64 {
        self.sidecore.as_ref().map_or(0, |sidecore| sidecore.callers())
    }

    /// Ends it.
    pub fn end(mut self) -> Tally {
        self.join();
        self.tally()
    }

    fn join(&mut self) {
        drop(self.end.take());
        if let Some(door) = self.door.take() {
            // A thread that panicked has said so.
            let _ = door.join();
            // Somebody may have put something else there; a socket that stays hinders nobody but the next broker.
            let _ = std::fs::remove_file(&self.path);
        }
        if let Some(sidecore) = self.sidecore.take().and_then(Arc::into_inner) {
            *self.tally.lock().unwrap_or_else(PoisonError::into_inner) = sidecore.end();
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.join();
    }
}

/// A process that is connected.
struct Visitor {
    socket: UnixStream,
    has_ended: Arc<AtomicBool>,
}

/// Takes connections and notices when they end, until `end` is closed.
fn keep_door(
    listener: &UnixListener,
    end: &UnixStream,
    sidecore: &Sidecore<OtherProcess>,
    rights: &Arc<Rights>,
) {
    let mut visitors: Vec<Visitor> = Vec::new();
    loop {
        let mut watched = vec![
            PollFd::new(end, PollFlags::IN),
            PollFd::new(listener, PollFlags::IN),
        ];
        let sockets = visitors.iter().map(|visitor| &visitor.socket);
        watched.extend(sockets.map(|socket| PollFd::new(socket, PollFlags::IN)));
        match poll(&mut watched, None) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => break,
            Ok(_) => {}
        }
        let has_happened: Vec<bool> = watched.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(watched);
        if has_happened[0] {
            break;
        }
        // Whatever a process sends, it has no business to: a socket that says anything is closed.
        let mut events = has_happened[2..].iter();
        visitors.retain(|visitor| {
            let stays = events.next() == Some(&false);
            if !stays {
                visitor.has_ended.store(true, Ordering::Release);
                sidecore.review();
            }
            stays
        });
        if has_happened[1] {
            // Who cannot be served is not, and others are: its socket is closed.
            visitors.extend(welcome(listener, sidecore, rights).ok());
        }
    }
    for visitor in &visitors {
        visitor.has_ended.store(true, Ordering::Release);
    }
    sidecore.review();
}

fn welcome(
    listener: &UnixListener,
    sidecore: &Sidecore<OtherProcess>,
    rights: &Arc<Rights>,
) -> io::Result<Visitor> {
    let (socket, _) = listener.accept()?;
    let (region, file) = Region::new()?;
    let has_ended = Arc::new(AtomicBool::new(false));
    sidecore.add(OtherProcess {
        space: RegionSpace {
            region,
            rights: Arc::clone(rights),
            files: Vec::new(),
        },
        has_ended: Arc::clone(&has_ended),
    })?;
    let visitor = Visitor { socket, has_ended };
    let files = [file.as_fd()];
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut room);
    message.push(SendAncillaryMessage::ScmRights(&files));
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    if let Err(error) = rustix::net::sendmsg(&visitor.socket, &[IoSlice::new(b"S")], &mut message, flags) {
        visitor.has_ended.store(true, Ordering::Release);
        sidecore.review();
        return Err(error.into());
    }
    Ok(visitor)
}

/// A process's line to a [`Broker`].
pub struct Visit {
    region: Region,
    socket: UnixStream,
    sequence: u64,
}

impl Visit {
    /// Connects to the broker at `path`.
    ///
    /// # Errors
    /// When there is none, or it takes nobody more.
    pub fn connect(path: &Path) -> io::Result<Self> {
        let socket = UnixStream::connect(path)?;
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut message = RecvAncillaryBuffer::new(&mut room);
        let mut byte = [0];
        let flags = RecvFlags::CMSG_CLOEXEC;
        rustix::net::recvmsg(&socket, &mut [IoSliceMut::new(&mut byte)], &mut message, flags)?;
        let file = message.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        });
        let refused = || io::Error::new(io::ErrorKind::ConnectionRefused, "the broker serves nobody more");
        let file = file.ok_or_else(refused)?;
        Ok(Self {
            region: Region::map(file.as_fd())?,
            socket,
            sequence: 0,
        })
    }

    /// The words of the line, for whoever writes there himself.
    pub fn line(&self) -> Line<'_> {
        self.region.line()
    }

    /// Hands a request over and waits for its answer.
    ///
    /// # Errors
    /// What the sidecore says, or that it has ended.
    pub fn call(&mut self, words: Words) -> io::Result<u64> {
        self.sequence += 1;
        let line = self.region.line();
        if line.call(&words.request(self.sequence)) {
            line.wake();
        }
        let socket = &self.socket;
        let is_lost = || {
            let mut watched = [PollFd::new(socket, PollFlags::empty())];
            let at_once = rustix::event::Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            poll(&mut watched, Some(&at_once)).is_ok_and(|count| count > 0)
        };
        match wait(line, self.sequence, is_lost) {
            Some(Answer { status: 0, value }) => Ok(value),
            Some(answer) => Err(io::Error::from_raw_os_error(answer.status as i32)),
            None => Err(io::Error::new(io::ErrorKind::BrokenPipe, "the broker has ended")),
        }
    }

    fn path(&self, path: &str) -> io::Result<Words> {
        let written = self.region.write(DATA_START as u64, path.as_bytes());
        written.ok_or_else(|| io::Error::from_raw_os_error(libc::ENAMETOOLONG))?;
        Ok(Words {
            length: path.len(),
            first: DATA_START as u64,
            ..Words::of(Operation::Null)
        })
    }

    /// Opens a file beneath the broker's folder; the number that it gives it.
    ///
    /// # Errors
    /// Those of the system call; EACCES for what is no regular file.
    pub fn open(&mut self, path: &str, flags: i32, mode: u32) -> io::Result<u32> {
        let words = Words {
            operation: Operation::Open as u8,
            descriptor: flags as u32,
            second: mode.into(),
            ..self.path(path)?
        };
        self.call(words).map(|number| number as u32)
    }

    /// Closes a file.
    ///
    /// # Errors
    /// When there is none of this number.
    pub fn close(&mut self, file: u32) -> io::Result<()> {
        let words = Words {
            descriptor: file,
            ..Words::of(Operation::Close)
        };
        self.call(words).map(|_| ())
    }

    fn transfer(
        &mut self,
        operation: Operation,
        file: u32,
        length: usize,
        offset: Option<u64>,
    ) -> io::Result<usize> {
        let words = Words {
            descriptor: file,
            length,
            first: DATA_START as u64,
            second: offset.unwrap_or(CURRENT),
            ..Words::of(operation)
        };
        loop {
            match self.call(words) {
                // The sidecore does not wait for a disk, and has begun to fetch what is wanted.
                Err(error) if error.raw_os_error() == Some(YOURSELF as i32) => thread::sleep(FETCHING),
                result => return result.map(|bytes| bytes as usize),
            }
        }
    }

    /// Reads at most as many bytes as a region has.
    ///
    /// # Errors
    /// Those of the system call.
    pub fn read(&mut self, file: u32, buffer: &mut [u8], offset: Option<u64>) -> io::Result<usize> {
        let length = buffer.len().min(REGION_BYTES - DATA_START).min(LENGTH_MAX);
        let count = self.transfer(Operation::Read, file, length, offset)?.min(length);
        // In range: it was cut to the region's bytes.
        let _ = self.region.read(DATA_START as u64, &mut buffer[..count]);
        Ok(count)
    }

    /// Writes at most as many bytes as a region has.
    ///
    /// # Errors
    /// Those of the system call.
    pub fn write(&mut self, file: u32, buffer: &[u8], offset: Option<u64>) -> io::Result<usize> {
        let length = buffer.len().min(REGION_BYTES - DATA_START).min(LENGTH_MAX);
        let _ = self.region.write(DATA_START as u64, &buffer[..length]);
        self.transfer(Operation::Write, file, length, offset)
    }

    /// How many bytes a file has.
    ///
    /// # Errors
    /// Those of the system call.
    pub fn size(&mut self, path: &str) -> io::Result<u64> {
        let to = (DATA_START + PATH_BYTES_MAX) as u64;
        let words = Words {
            operation: Operation::Stat as u8,
            second: to,
            ..self.path(path)?
        };
        self.call(words)?;
        let mut status = MaybeUninit::<libc::stat>::zeroed();
        // SAFETY: the structure's own bytes, which zeros have made valid.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(status.as_mut_ptr().cast::<u8>(), size_of::<libc::stat>())
        };
        let _ = self.region.read(to, bytes);
        // SAFETY: it consists of numbers, of which any value is valid.
        Ok(unsafe { status.assume_init() }.st_size as u64)
    }

    /// The value of a key in the broker's table.
    ///
    /// # Errors
    /// When it has no such key (ENOENT).
    pub fn look_up(&mut self, key: u64) -> io::Result<u64> {
        self.call(Words {
            first: key,
            ..Words::of(Operation::LookUp)
        })
    }
}
