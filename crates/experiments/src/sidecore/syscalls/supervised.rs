//! What a supervisor does for a process that it intercepts: it copies paths and bytes and makes the call itself.

use std::io;

/// A system call as the supervisor sees it.
pub struct Intercepted {
    /// Whose memory its addresses are.
    pub process: i32,
    pub number: i64,
    pub arguments: [u64; 6],
}

/// What it answers.
pub enum Reply {
    /// This value, or the negative number of an error.
    Value(i64),
    /// This file, which is to be given to the process.
    File(i32),
}

/// The longest path.
const PATH_BYTES: usize = 256;
/// The most bytes that are read or written.
const BYTES_MAX: usize = 1024;

impl Intercepted {
    fn copy(&self, address: u64, bytes: &mut [u8], writes: bool) -> io::Result<usize> {
        let local = libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: bytes.len(),
        };
        let remote = libc::iovec {
            iov_base: std::ptr::without_provenance_mut(address as usize),
            iov_len: bytes.len(),
        };
        // SAFETY: the local bytes are this function's, the remote ones are for the kernel to check.
        let done = unsafe {
            match writes {
                true => libc::process_vm_writev(self.process, &local, 1, &remote, 1, 0),
                false => libc::process_vm_readv(self.process, &local, 1, &remote, 1, 0),
            }
        };
        usize::try_from(done).map_err(|_| io::Error::last_os_error())
    }

    /// Copies the path that the second argument points to.
    fn path(&self) -> io::Result<[u8; PATH_BYTES]> {
        let mut path = [0; PATH_BYTES];
        self.copy(self.arguments[1], &mut path, false)?;
        match path.contains(&0) {
            true => Ok(path),
            false => Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG)),
        }
    }

    /// Makes the call in the supervisor, with its files.
    pub fn serve(&self) -> Reply {
        self.make().unwrap_or_else(|error| {
            let number = error.raw_os_error().unwrap_or(libc::EIO);
            Reply::Value(-i64::from(number))
        })
    }

    fn make(&self) -> io::Result<Reply> {
        let arguments = self.arguments;
        let file = arguments[0] as usize;
        let at = arguments[3] as usize;
        let length = (arguments[2] as usize).min(BYTES_MAX);
        let mut bytes = [0; BYTES_MAX];
        let value = match self.number {
            libc::SYS_getpid => i64::from(self.process),
            libc::SYS_close => made(self.number, [file, 0, 0, 0])?,
            libc::SYS_pread64 => {
                let read = made(
                    self.number,
                    [file, bytes.as_mut_ptr().expose_provenance(), length, at],
                )?;
                self.copy(arguments[1], &mut bytes[..read as usize], true)?;
                read
            }
            libc::SYS_pwrite64 => {
                let count = self.copy(arguments[1], &mut bytes[..length], false)?;
                made(
                    self.number,
                    [file, bytes.as_mut_ptr().expose_provenance(), count, at],
                )?
            }
            libc::SYS_openat => {
                let path = self.path()?;
                let flags = arguments[2] as usize | libc::O_CLOEXEC as usize;
                let folder = libc::AT_FDCWD as usize;
                let opened = made(self.number, [folder, path.as_ptr().expose_provenance(), flags, 0])?;
                return Ok(Reply::File(opened as i32));
            }
            libc::SYS_newfstatat => {
                let path = self.path()?;
                let mut status = [0; size_of::<libc::stat>()];
                let to = status.as_mut_ptr().expose_provenance();
                made(
                    self.number,
                    [libc::AT_FDCWD as usize, path.as_ptr().expose_provenance(), to, 0],
                )?;
                self.copy(arguments[2], &mut status, true)?;
                0
            }
            _ => return Err(io::Error::from_raw_os_error(libc::ENOSYS)),
        };
        Ok(Reply::Value(value))
    }
}

/// Makes a system call of the supervisor's own.
fn made(number: i64, [first, second, third, fourth]: [usize; 4]) -> io::Result<i64> {
    // SAFETY: addresses among the arguments are those of the caller's own buffers, which are as long as it says.
    match unsafe { libc::syscall(number, first, second, third, fourth) } {
        result @ 0.. => Ok(result),
        _ => Err(io::Error::last_os_error()),
    }
}
