//! Files of the program's system as gdb reads them: below its root folder, `/proc` as the program sees it.

use std::collections::BTreeMap;

use gdbstub::target::ext::host_io::{
    FsKind, HostIo, HostIoClose, HostIoCloseOps, HostIoErrno, HostIoError, HostIoFstat, HostIoFstatOps,
    HostIoOpen, HostIoOpenFlags, HostIoOpenMode, HostIoOpenOps, HostIoPread, HostIoPreadOps, HostIoReadlink,
    HostIoReadlinkOps, HostIoResult, HostIoSetfs, HostIoSetfsOps, HostIoStat,
};
use sidestep_linux_user::debugger::files;
use sidestep_linux_user::files::reserved::Reserved;
use sidestep_linux_user::host::Errno;

use super::session::{Session, SessionError};

/// What gdb has open, by its numbers.
#[derive(Default)]
pub struct Files(BTreeMap<u32, Reserved>);

/// The most files that gdb may have open at a time.
const MOST_FILES: u32 = 64;

impl Files {
    fn get(&self, number: u32) -> Result<&Reserved, HostIoError<SessionError>> {
        self.0.get(&number).ok_or(HostIoError::Errno(HostIoErrno::EBADF))
    }
}

fn failed(error: Errno) -> HostIoError<SessionError> {
    std::io::Error::from_raw_os_error(error.0).into()
}

impl HostIo for Session {
    fn support_open(&mut self) -> Option<HostIoOpenOps<'_, Self>> {
        Some(self)
    }

    fn support_close(&mut self) -> Option<HostIoCloseOps<'_, Self>> {
        Some(self)
    }

    fn support_pread(&mut self) -> Option<HostIoPreadOps<'_, Self>> {
        Some(self)
    }

    fn support_fstat(&mut self) -> Option<HostIoFstatOps<'_, Self>> {
        Some(self)
    }

    fn support_readlink(&mut self) -> Option<HostIoReadlinkOps<'_, Self>> {
        Some(self)
    }

    fn support_setfs(&mut self) -> Option<HostIoSetfsOps<'_, Self>> {
        Some(self)
    }
}

impl HostIoOpen for Session {
    fn open(&mut self, path: &[u8], flags: HostIoOpenFlags, _: HostIoOpenMode) -> HostIoResult<u32, Self> {
        if flags.intersects(HostIoOpenFlags::O_WRONLY | HostIoOpenFlags::O_RDWR | HostIoOpenFlags::O_CREAT) {
            return Err(HostIoError::Errno(HostIoErrno::EROFS));
        }
        let number = (0..MOST_FILES)
            .find(|number| !self.files.0.contains_key(number))
            .ok_or(HostIoError::Errno(HostIoErrno::EMFILE))?;
        let file = files::open(&self.process, path).map_err(failed)?;
        self.files.0.insert(number, file);
        Ok(number)
    }
}

impl HostIoClose for Session {
    fn close(&mut self, number: u32) -> HostIoResult<(), Self> {
        self.files.get(number)?;
        self.files.0.remove(&number);
        Ok(())
    }
}

impl HostIoPread for Session {
    fn pread(
        &mut self,
        number: u32,
        count: usize,
        offset: u64,
        buffer: &mut [u8],
    ) -> HostIoResult<usize, Self> {
        let count = count.min(buffer.len());
        let read = rustix::io::pread(self.files.get(number)?, &mut buffer[..count], offset);
        read.map_err(|error| failed(Errno(error.raw_os_error())))
    }
}

impl HostIoFstat for Session {
    fn fstat(&mut self, number: u32) -> HostIoResult<HostIoStat, Self> {
        let status = rustix::fs::fstat(self.files.get(number)?);
        let status = status.map_err(|error| failed(Errno(error.raw_os_error())))?;
        // The protocol has 32 bits for most of it.
        Ok(HostIoStat {
            st_dev: status.st_dev as u32,
            st_ino: status.st_ino as u32,
            st_mode: HostIoOpenMode::from_bits_retain(status.st_mode),
            st_nlink: status.st_nlink as u32,
            st_uid: status.st_uid,
            st_gid: status.st_gid,
            st_rdev: status.st_rdev as u32,
            st_size: status.st_size as u64,
            st_blksize: status.st_blksize as u64,
            st_blocks: status.st_blocks as u64,
            st_atime: status.st_atime as u32,
            st_mtime: status.st_mtime as u32,
            st_ctime: status.st_ctime as u32,
        })
    }
}

impl HostIoReadlink for Session {
    fn readlink(&mut self, path: &[u8], buffer: &mut [u8]) -> HostIoResult<usize, Self> {
        let target = files::read_link(&self.process, path).map_err(failed)?;
        let room = buffer
            .get_mut(..target.len())
            .ok_or(HostIoError::Errno(HostIoErrno::ENAMETOOLONG))?;
        room.copy_from_slice(&target);
        Ok(target.len())
    }
}

impl HostIoSetfs for Session {
    /// There is one system of files: the program's.
    fn setfs(&mut self, _: FsKind) -> HostIoResult<(), Self> {
        Ok(())
    }
}
