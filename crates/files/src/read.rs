//! Files that a user names, read whole and never without limit.
//!
//! A name may lead to anything: to a text of some lines, to a pipe from another program, or to `/dev/zero`. [`read`]
//! and [`read_text`] take what their caller allows and no more, and refuse a file that is too large before they read
//! it. What tells no size in advance, a pipe or a device, may have [`STREAM_BYTES_MAX`] at most.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// The most that a description may have, or another text that people write.
pub const TEXT_BYTES_MAX: u64 = 1 << 20;
/// The most that a program, a kernel or an initial RAM file system may have.
pub const IMAGE_BYTES_MAX: u64 = 2 << 30;
/// The most that comes from what has no size: so much memory is at stake before it is known to have no end.
pub const STREAM_BYTES_MAX: u64 = 256 << 20;

/// The bytes of a file, at most `limit` of them.
///
/// # Errors
/// If it cannot be read or has more.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let limit = match metadata.is_file() {
        true => limit,
        false => limit.min(STREAM_BYTES_MAX),
    };
    if metadata.len() > limit && metadata.is_file() {
        return Err(too_large(limit));
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(metadata.len() as usize)?;
    fill(bytes, file, limit)
}

/// The bytes of a stream, at most [`STREAM_BYTES_MAX`] of them.
///
/// # Errors
/// If it cannot be read or has more.
pub fn read_stream(stream: impl Read) -> io::Result<Vec<u8>> {
    fill(Vec::new(), stream, STREAM_BYTES_MAX)
}

fn fill(mut bytes: Vec<u8>, stream: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    stream.take(limit + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit {
        true => Err(too_large(limit)),
        false => Ok(bytes),
    }
}

/// The text in a file, at most `limit` bytes of it.
///
/// # Errors
/// If it cannot be read, has more, or is no UTF-8.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    String::from_utf8(read(path, limit)?).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        io::Error::new(
            ErrorKind::InvalidData,
            format!("is no UTF-8 text from byte {place} on"),
        )
    })
}

fn too_large(limit: u64) -> io::Error {
    let error = format!("it has more than {} MiB, the most that is read", limit >> 20);
    io::Error::new(ErrorKind::FileTooLarge, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        for (size, is_read) in [(0, true), (TEXT_BYTES_MAX, true), (TEXT_BYTES_MAX + 1, false)] {
            File::create(&path)
                .expect("a file")
                .set_len(size)
                .expect("a sparse file");
            let bytes = read(&path, TEXT_BYTES_MAX);
            assert_eq!(
                bytes.is_ok_and(|bytes| bytes.len() as u64 == size),
                is_read,
                "{size}"
            );
        }
    }

    #[test]
    fn what_is_no_text_file_is_an_error() {
        let kind = |path: &Path| read_text(path, TEXT_BYTES_MAX).expect_err("no text").kind();
        assert_eq!(kind(Path::new("/dev/zero")), ErrorKind::FileTooLarge);
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(kind(folder.path()), ErrorKind::IsADirectory);
        let binary = folder.path().join("binary");
        std::fs::write(&binary, b"name\xff").expect("a file");
        let error = read_text(&binary, TEXT_BYTES_MAX).expect_err("no UTF-8");
        assert_eq!(error.to_string(), "is no UTF-8 text from byte 4 on");
    }
}
