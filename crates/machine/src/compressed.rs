//! Compressed files: kernels come as `vmlinux.gz` or `vmlinux.xz`.
//!
//! What a file is, its first bytes say, not its name. [`expand`] never makes more bytes than its caller allows, so
//! that a small file cannot fill the host's memory.

use std::borrow::Cow;
use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use thiserror::Error;

/// A way to compress, and the bytes that such a file begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Gzip,
    Xz,
}

const FORMATS: [(Format, &str, &[u8]); 2] = [
    (Format::Gzip, "gzip", b"\x1f\x8b"),
    (Format::Xz, "xz", b"\xfd7zXZ\0"),
];

/// The most memory that expanding an xz file may take beside the result: what its highest preset needs, and more.
const XZ_MEMORY_KB: u32 = 256 << 10;

/// Why a file cannot be expanded.
#[derive(Debug, Error)]
pub enum ExpandError {
    /// Not what its first bytes promise.
    #[error("is a damaged or truncated {format} file: {error}")]
    Damaged {
        /// The name of the format.
        format: &'static str,
        /// What is wrong.
        error: io::Error,
    },
    /// More than there is room for.
    #[error("expands to more than {limit} bytes, for which there is no room")]
    TooLarge {
        /// What was allowed.
        limit: u64,
    },
}

/// The bytes of a file, expanded if they are compressed with gzip or xz; at most `limit` of them.
///
/// # Errors
/// If a compressed file is damaged or expands to more than `limit` bytes.
pub fn expand(file: &[u8], limit: u64) -> Result<Cow<'_, [u8]>, ExpandError> {
    let known = FORMATS.iter().find(|(.., magic)| file.starts_with(magic));
    let Some(&(format, name, _)) = known else {
        return Ok(Cow::Borrowed(file));
    };
    let expanded = match format {
        Format::Gzip => read_all(MultiGzDecoder::new(file), limit),
        Format::Xz => read_all(XzReader::new_mem_limit(file, true, XZ_MEMORY_KB), limit),
    };
    let expanded = expanded.map_err(|error| ExpandError::Damaged { format: name, error })?;
    if expanded.len() as u64 > limit {
        return Err(ExpandError::TooLarge { limit });
    }
    Ok(Cow::Owned(expanded))
}

/// All bytes, or the first `limit` and one more.
fn read_all(source: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use lzma_rust2::{XzOptions, XzWriter};
    use proptest::prelude::*;

    use super::*;

    const LIMIT: u64 = 1 << 20;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("memory takes it");
        encoder.finish().expect("memory takes it")
    }

    fn xz(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = XzWriter::new(Vec::new(), XzOptions::with_preset(0)).expect("good options");
        encoder.write_all(bytes).expect("memory takes it");
        encoder.finish().expect("memory takes it")
    }

    #[test]
    fn files_expand_by_what_they_begin_with() {
        let plain = b"\x7fELF and so on".repeat(1000);
        for file in [plain.clone(), gzip(&plain), xz(&plain)] {
            assert_eq!(expand(&file, LIMIT).expect("a good file"), plain);
        }
    }

    #[test]
    fn what_expands_too_far_is_refused() {
        let zeros = vec![0; LIMIT as usize + 1];
        for file in [gzip(&zeros), xz(&zeros)] {
            assert!((file.len() as u64) < LIMIT / 50);
            let refused = expand(&file, LIMIT);
            assert!(matches!(refused, Err(ExpandError::TooLarge { limit: LIMIT })));
        }
        assert_eq!(
            expand(&gzip(&zeros[1..]), LIMIT).expect("just fits").len() as u64,
            LIMIT
        );
    }

    proptest! {
        #[test]
        fn truncated_files_are_refused(
            text in proptest::collection::vec(any::<u8>(), 1..2000),
            cut in any::<proptest::sample::Index>(),
        ) {
            for file in [gzip(&text), xz(&text)] {
                let length = 6 + cut.index(file.len() - 6);
                let is_damaged = matches!(expand(&file[..length], LIMIT), Err(ExpandError::Damaged { .. }));
                prop_assert!(is_damaged);
            }
        }

        #[test]
        fn damaged_files_are_refused_or_expanded(
            text in proptest::collection::vec(any::<u8>(), 1..200),
            place in any::<proptest::sample::Index>(),
            byte in any::<u8>(),
        ) {
            for mut file in [gzip(&text), xz(&text)] {
                let at = place.index(file.len());
                file[at] = byte;
                let _ = expand(&file, LIMIT);
            }
        }
    }
}
