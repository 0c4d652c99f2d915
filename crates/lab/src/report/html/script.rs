//! The page's own script, and the policy by which no other runs.

use sha2::{Digest, Sha256};

/// What makes tables and pictures answer: one file for each idea, joined.
pub(super) const SCRIPT: &str = concat!(
    include_str!("script/tables.js"),
    include_str!("script/pictures.js"),
    include_str!("script/zoom.js"),
);

/// What the page may load and run: nothing but what is in it, and no script but its own, by its hash.
pub(super) fn policy() -> String {
    let hash = base64(&Sha256::digest(SCRIPT));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{hash}'; base-uri 'none'; \
         form-action 'none'"
    )
}

/// Bytes in the alphabet of RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, index| {
            bits << 8 | u32::from(*group.get(index).unwrap_or(&0))
        });
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 63;
            text.push(if digit <= group.len() {
                char::from(ALPHABET[value as usize])
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of RFC 4648, section 10.
    #[test]
    fn base64_is_that_of_the_rfc() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
