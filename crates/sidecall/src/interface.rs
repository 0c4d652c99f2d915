//! The library for C. `include/sidecall.h` says what each function does.

use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use std::io;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use crate::caller::{Caller, OwnSidecore};
use crate::system_calls::Operation;
use crate::table::Table;

/// A sidecore, and one of its callers, which keeps it.
pub struct Handle {
    // Dropped before the sidecore that it borrows.
    caller: ManuallyDrop<Caller<'static>>,
    _sidecore: Arc<OwnSidecore>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: it is dropped here and used nowhere after.
        unsafe { ManuallyDrop::drop(&mut self.caller) }
    }
}

fn number(result: io::Result<u64>) -> c_long {
    match result {
        Ok(value) => value as c_long,
        Err(error) => -c_long::from(error.raw_os_error().unwrap_or(libc::EIO)),
    }
}

fn boxed<T>(value: io::Result<T>) -> *mut T {
    match value {
        Ok(value) => Box::into_raw(Box::new(value)),
        Err(error) => {
            // SAFETY: the address of this thread's error number.
            unsafe { *libc::__errno_location() = error.raw_os_error().unwrap_or(libc::EIO) };
            std::ptr::null_mut()
        }
    }
}

/// Starts a sidecore.
///
/// # Safety
/// `table` is null or a path that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sidecore_start(
    core: c_int,
    table: *const c_char,
    looks: u64,
) -> *mut Arc<OwnSidecore> {
    let start = || {
        let table = match table.is_null() {
            true => Table::default(),
            false => {
                // SAFETY: as the caller says.
                let path = unsafe { CStr::from_ptr(table) };
                let path = std::ffi::OsStr::new(path.to_str().map_err(io::Error::other)?);
                Table::from_bytes(std::fs::read(path)?)?
            }
        };
        OwnSidecore::start(usize::try_from(core).ok(), table, looks).map(Arc::new)
    };
    boxed(start())
}

/// Ends a sidecore when its last caller is closed.
///
/// # Safety
/// `sidecore` is one that was started and not ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sidecore_end(sidecore: *mut Arc<OwnSidecore>) {
    if !sidecore.is_null() {
        // SAFETY: as the caller says, and it was boxed.
        drop(unsafe { Box::from_raw(sidecore) });
    }
}

/// A caller.
///
/// # Safety
/// `sidecore` is one that was started and not ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sidecall_open(sidecore: *const Arc<OwnSidecore>) -> *mut Handle {
    // SAFETY: as the caller says.
    let sidecore = Arc::clone(unsafe { &*sidecore });
    // SAFETY: it lies in a box of its own, which the handle keeps for longer than the caller.
    let lasting: &'static OwnSidecore = unsafe { &*Arc::as_ptr(&sidecore) };
    boxed(lasting.caller().map(|caller| Handle {
        caller: ManuallyDrop::new(caller),
        _sidecore: sidecore,
    }))
}

/// Closes a caller.
///
/// # Safety
/// `handle` is one that was opened and not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sidecall_close(handle: *mut Handle) {
    if !handle.is_null() {
        // SAFETY: as the caller says, and it was boxed.
        drop(unsafe { Box::from_raw(handle) });
    }
}

/// A null call.
///
/// # Safety
/// `handle` is one that was opened and not closed, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sidecall_null(handle: *mut Handle) -> c_long {
    // SAFETY: as the caller says.
    number(unsafe { &mut *handle }.caller.null())
}

/// The number of this process.
///
/// # Safety
/// As [`sidecall_null`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sidecall_getpid(handle: *mut Handle) -> c_long {
    // SAFETY: as the caller says.
    number(unsafe { &mut *handle }.caller.getpid())
}

/// Opens a file.
///
/// # Safety
/// As [`sidecall_null`]; `path` ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sidecall_openfile(
    handle: *mut Handle,
    path: *const c_char,
    flags: c_int,
    mode: c_uint,
) -> c_long {
    // SAFETY: as the caller says.
    let (handle, path) = unsafe { (&mut *handle, CStr::from_ptr(path)) };
    let opened = handle.caller.open(path, flags, mode);
    number(opened.map(|file| file as u64))
}

/// Closes a file.
///
/// # Safety
/// As [`sidecall_null`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sidecall_closefile(handle: *mut Handle, file: c_int) -> c_long {
    // SAFETY: as the caller says.
    number(unsafe { &mut *handle }.caller.close(file).map(|()| 0))
}

fn offset(offset: i64) -> Option<u64> {
    u64::try_from(offset).ok()
}

/// Reads.
///
/// # Safety
/// As [`sidecall_null`]; nothing else uses `length` bytes at `buffer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sidecall_read(
    handle: *mut Handle,
    file: c_int,
    buffer: *mut c_void,
    length: usize,
    at: i64,
) -> c_long {
    // SAFETY: as the caller says.
    let read = unsafe {
        let bytes = (buffer.cast(), length);
        (*handle)
            .caller
            .transfer(Operation::Read, file, bytes, offset(at))
    };
    number(read.map(|bytes| bytes as u64))
}

/// Writes.
///
/// # Safety
/// As [`sidecall_null`]; nothing changes `length` bytes at `buffer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sidecall_write(
    handle: *mut Handle,
    file: c_int,
    buffer: *const c_void,
    length: usize,
    at: i64,
) -> c_long {
    // SAFETY: as the caller says.
    let written = unsafe {
        let bytes = (buffer.cast_mut().cast(), length);
        (*handle)
            .caller
            .transfer(Operation::Write, file, bytes, offset(at))
    };
    number(written.map(|bytes| bytes as u64))
}

/// What is known of a file.
///
/// # Safety
/// As [`sidecall_null`]; nothing else uses what `to` points to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sidecall_stat(
    handle: *mut Handle,
    path: *const c_char,
    to: *mut libc::stat,
) -> c_long {
    // SAFETY: as the caller says.
    let done = unsafe { (*handle).caller.stat_to(path, to) };
    number(done.map(|()| 0))
}

/// The value of a key.
///
/// # Safety
/// As [`sidecall_null`]; nothing else uses what `value` points to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sidecall_lookup(handle: *mut Handle, key: u64, value: *mut u64) -> c_long {
    // SAFETY: as the caller says.
    let found = unsafe { &mut *handle }.caller.look_up(key);
    number(found.map(|found| {
        // SAFETY: as the caller says.
        unsafe { value.write(found) };
        0
    }))
}
