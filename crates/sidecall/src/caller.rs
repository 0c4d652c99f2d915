//! Handing calls to a sidecore of the same process.
//!
//! The sidecore is a thread of the process: descriptors, addresses and working folder are the same for both, so nothing
//! is copied and no descriptor passed; and whoever ends the process ends it, too. It has the process's own rights, so
//! there is nothing that a wrong request could do that the caller could not do itself.

use std::ffi::CStr;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::line::{Answer, Line, Request, WORDS};
use crate::sidecore::{Service, Sidecore};
use crate::system_calls::{self, CURRENT, Operation, Refusal, Space, Words, YOURSELF};
use crate::table::Table;
use crate::wait::EAGER_LOOKS;

/// Looks with a pause before the caller lets others have its core, as when the sidecore waits for the same one.
const PATIENT_LOOKS: u64 = 1 << 14;

#[repr(align(128))]
struct OwnLine([AtomicU64; WORDS]);

struct Connection {
    line: OwnLine,
    has_ended: AtomicBool,
}

impl Connection {
    fn line(&self) -> Line<'_> {
        Line::new(&self.line.0)
    }
}

/// What serves a thread of the same process.
pub struct OwnProcess {
    connection: Arc<Connection>,
    table: Arc<Table>,
}

impl Service for OwnProcess {
    fn line(&self) -> Line<'_> {
        self.connection.line()
    }

    fn serve(&mut self, request: &Request) -> Answer {
        system_calls::serve(request, &mut OwnSpace, &self.table)
    }

    fn has_ended(&self) -> bool {
        self.connection.has_ended.load(Ordering::Acquire)
    }
}

/// Addresses and descriptors of this process. Paths end with a zero, as the kernel has them.
struct OwnSpace;

impl Space for OwnSpace {
    fn bytes(&self, address: u64, _length: usize) -> Result<*mut u8, Refusal> {
        Ok(std::ptr::with_exposed_provenance_mut(address as usize))
    }

    fn descriptor(&self, number: u32) -> Result<RawFd, Refusal> {
        Ok(number as RawFd)
    }

    fn open(&mut self, path: (u64, usize), flags: u32, mode: u32) -> Result<u32, Refusal> {
        let wants_wait = flags as i32 & libc::O_NONBLOCK == 0;
        // A pipe without a writer would be waited for.
        let at_once = flags as i32 | libc::O_NONBLOCK;
        let path = path.0 as usize;
        // SAFETY: the kernel checks the address.
        let opened = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, at_once, mode) };
        if opened < 0 {
            return match Refusal::last() {
                // A pipe that nobody reads.
                refusal if refusal == Refusal::of(libc::ENXIO) => Err(Refusal(YOURSELF)),
                refusal => Err(refusal),
            };
        }
        let file = opened as RawFd;
        if !wants_wait {
            return Ok(file as u32);
        }
        // A folder is opened without waiting, too, but then nobody asks for it to be read.
        if !system_calls::is_regular(file)? {
            self.close(file as u32)?;
            return Err(Refusal(YOURSELF));
        }
        // SAFETY: it changes a flag of the file that was just opened.
        unsafe {
            libc::syscall(
                libc::SYS_fcntl,
                file,
                libc::F_SETFL,
                flags as i32 & !libc::O_CREAT,
            )
        };
        Ok(file as u32)
    }

    fn close(&mut self, number: u32) -> Result<(), Refusal> {
        // SAFETY: the caller closes a descriptor of its own, as it could itself.
        match unsafe { libc::syscall(libc::SYS_close, number as RawFd) } {
            0 => Ok(()),
            _ => Err(Refusal::last()),
        }
    }

    fn stat(&mut self, path: (u64, usize), to: u64) -> Result<(), Refusal> {
        let (path, to) = (path.0 as usize, to as usize);
        // SAFETY: the kernel checks both addresses.
        match unsafe { libc::syscall(libc::SYS_newfstatat, libc::AT_FDCWD, path, to, 0) } {
            0 => Ok(()),
            _ => Err(Refusal::last()),
        }
    }
}

/// A sidecore of this process.
pub struct OwnSidecore {
    sidecore: Sidecore<OwnProcess>,
    table: Arc<Table>,
}

impl OwnSidecore {
    /// Starts a thread on `core`, or wherever the kernel puts it, that serves callers of this process and looks up
    /// keys in `table`. It goes to sleep after `looks` that found nothing.
    ///
    /// # Errors
    /// When there can be no thread, or not on that core.
    pub fn start(core: Option<usize>, table: Table, looks: u64) -> io::Result<Self> {
        Ok(Self {
            sidecore: Sidecore::start(core, Vec::new(), looks)?,
            table: Arc::new(table),
        })
    }

    /// A line to it, for one thread at a time.
    ///
    /// # Errors
    /// When there are [`CALLERS_MAX`](crate::sidecore::CALLERS_MAX) already.
    pub fn caller(&self) -> io::Result<Caller<'_>> {
        let connection = Arc::new(Connection {
            line: OwnLine([const { AtomicU64::new(0) }; WORDS]),
            has_ended: AtomicBool::new(false),
        });
        self.sidecore.add(OwnProcess {
            connection: Arc::clone(&connection),
            table: Arc::clone(&self.table),
        })?;
        Ok(Caller {
            sidecore: &self.sidecore,
            connection,
            sequence: 0,
        })
    }

    /// The thread.
    pub fn sidecore(&self) -> &Sidecore<OwnProcess> {
        &self.sidecore
    }
}

/// Waits for the answer to a request that was made.
pub(crate) fn wait(line: Line<'_>, sequence: u64, mut is_lost: impl FnMut() -> bool) -> Option<Answer> {
    for look in 0_u64.. {
        if let Some(answer) = line.answer_to(sequence) {
            return Some(answer);
        }
        if look > PATIENT_LOOKS {
            if is_lost() {
                return None;
            }
            std::thread::yield_now();
        } else if look > EAGER_LOOKS {
            std::hint::spin_loop();
        }
    }
    None
}

/// A thread's line to a sidecore of its process. Each method is the system call of that name, with its errors; what
/// the sidecore leaves to the caller is done here.
pub struct Caller<'a> {
    sidecore: &'a Sidecore<OwnProcess>,
    connection: Arc<Connection>,
    sequence: u64,
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        self.connection.has_ended.store(true, Ordering::Release);
        self.sidecore.review();
    }
}

fn result(answer: Answer) -> io::Result<u64> {
    match answer.status {
        0 => Ok(answer.value),
        status => Err(io::Error::from_raw_os_error(status as i32)),
    }
}

fn own_result(value: libc::c_long) -> io::Result<u64> {
    u64::try_from(value).map_err(|_| io::Error::last_os_error())
}

impl Caller<'_> {
    /// Hands a request over and waits for its answer.
    ///
    /// The sidecore lives as long as its callers, so there is one.
    fn call(&mut self, words: Words) -> Answer {
        self.sequence += 1;
        let line = self.connection.line();
        if line.call(&words.request(self.sequence)) {
            line.wake();
        }
        let answer = wait(line, self.sequence, || false);
        answer.unwrap_or(Answer {
            status: YOURSELF,
            value: 0,
        })
    }

    /// Nothing: what a sidecall costs by itself.
    ///
    /// # Errors
    /// None.
    pub fn null(&mut self) -> io::Result<u64> {
        result(self.call(Words::of(Operation::Null)))
    }

    /// The number of this process.
    ///
    /// # Errors
    /// None.
    pub fn getpid(&mut self) -> io::Result<u64> {
        result(self.call(Words::of(Operation::Getpid)))
    }

    /// Opens a file.
    ///
    /// # Errors
    /// Those of the system call.
    pub fn open(&mut self, path: &CStr, flags: i32, mode: u32) -> io::Result<RawFd> {
        let answer = self.call(Words {
            descriptor: flags as u32,
            first: path.as_ptr().expose_provenance() as u64,
            second: mode.into(),
            ..Words::of(Operation::Open)
        });
        let opened = match answer.status {
            // SAFETY: the path ends with a zero.
            YOURSELF => own_result(unsafe {
                libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, mode)
            }),
            _ => result(answer),
        };
        opened.map(|file| file as RawFd)
    }

    /// Closes a file.
    ///
    /// # Errors
    /// Those of the system call.
    pub fn close(&mut self, file: RawFd) -> io::Result<()> {
        let words = Words {
            descriptor: file as u32,
            ..Words::of(Operation::Close)
        };
        result(self.call(words)).map(|_| ())
    }

    /// Reads from where the file is, or from `offset`; how many bytes.
    ///
    /// # Errors
    /// Those of the system call.
    pub fn read(&mut self, file: RawFd, buffer: &mut [u8], offset: Option<u64>) -> io::Result<usize> {
        // SAFETY: the buffer is this function's alone.
        unsafe { self.transfer(Operation::Read, file, (buffer.as_mut_ptr(), buffer.len()), offset) }
    }

    /// Writes to where the file is, or to `offset`; how many bytes.
    ///
    /// # Errors
    /// Those of the system call.
    pub fn write(&mut self, file: RawFd, buffer: &[u8], offset: Option<u64>) -> io::Result<usize> {
        let bytes = (buffer.as_ptr().cast_mut(), buffer.len());
        // SAFETY: the bytes are only read.
        unsafe { self.transfer(Operation::Write, file, bytes, offset) }
    }

    /// Reads or writes `bytes`.
    ///
    /// # Safety
    /// For a read, no reference points to the bytes; for a write, they do not change meanwhile. They may be no memory
    /// at all: the kernel says so.
    ///
    /// # Errors
    /// Those of the system call.
    pub unsafe fn transfer(
        &mut self,
        operation: Operation,
        file: RawFd,
        (buffer, length): (*mut u8, usize),
        offset: Option<u64>,
    ) -> io::Result<usize> {
        let answer = self.call(Words {
            descriptor: file as u32,
            length,
            first: buffer.expose_provenance() as u64,
            second: offset.unwrap_or(CURRENT),
            ..Words::of(operation)
        });
        if answer.status != YOURSELF {
            return result(answer).map(|bytes| bytes as usize);
        }
        let buffer = buffer.cast::<libc::c_void>();
        let at = offset.unwrap_or(0) as libc::off_t;
        // SAFETY: the kernel checks the bytes, about which the caller has promised the rest.
        let done = unsafe {
            match (operation, offset) {
                (Operation::Write, None) => libc::syscall(libc::SYS_write, file, buffer, length),
                (Operation::Write, Some(_)) => libc::syscall(libc::SYS_pwrite64, file, buffer, length, at),
                (_, None) => libc::syscall(libc::SYS_read, file, buffer, length),
                (_, Some(_)) => libc::syscall(libc::SYS_pread64, file, buffer, length, at),
            }
        };
        own_result(done).map(|bytes| bytes as usize)
    }

    /// What is known of a file.
    ///
    /// # Errors
    /// Those of the system call.
    pub fn stat(&mut self, path: &CStr) -> io::Result<libc::stat> {
        let mut status = std::mem::MaybeUninit::<libc::stat>::uninit();
        // SAFETY: the path ends with a zero, and the structure is this function's alone.
        unsafe { self.stat_to(path.as_ptr(), status.as_mut_ptr()) }?;
        // SAFETY: the call has succeeded, so the kernel has filled it.
        Ok(unsafe { status.assume_init() })
    }

    /// Writes what is known of the file of this path to `to`.
    ///
    /// # Safety
    /// Nothing else uses what `to` points to. Either may be no memory at all: the kernel says so.
    ///
    /// # Errors
    /// Those of the system call.
    pub unsafe fn stat_to(&mut self, path: *const libc::c_char, to: *mut libc::stat) -> io::Result<()> {
        let answer = self.call(Words {
            first: path.expose_provenance() as u64,
            second: to.expose_provenance() as u64,
            ..Words::of(Operation::Stat)
        });
        result(answer).map(|_| ())
    }

    /// The value of a key in the sidecore's table.
    ///
    /// # Errors
    /// When it has no such key (ENOENT).
    pub fn look_up(&mut self, key: u64) -> io::Result<u64> {
        let words = Words {
            first: key,
            ..Words::of(Operation::LookUp)
        };
        result(self.call(words))
    }
}
