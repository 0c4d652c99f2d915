//! Sizes as people write them.

use std::fmt;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

/// A number of bytes: an integer, or a string with one of the suffixes K, M, G, T (powers of 1024).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Size(pub u64);

impl Size {
    /// Reads `text`: decimal digits or `0x` hexadecimal ones, and perhaps a suffix.
    pub fn parse(text: &str) -> Option<Size> {
        let (digits, shift) = match text.as_bytes().last()? {
            b'K' | b'k' => (&text[..text.len() - 1], 10),
            b'M' | b'm' => (&text[..text.len() - 1], 20),
            b'G' | b'g' => (&text[..text.len() - 1], 30),
            b'T' | b't' => (&text[..text.len() - 1], 40),
            _ => (text, 0),
        };
        let number = match digits.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => digits.parse(),
        };
        number.ok()?.checked_mul(1 << shift).map(Size)
    }
}

impl std::str::FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        Size::parse(text)
            .ok_or_else(|| "must be a number of bytes, such as 65536, 64K, 512M or 4G".to_owned())
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Size, D::Error> {
        struct Expected;

        impl Visitor<'_> for Expected {
            type Value = Size;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a number of bytes, such as 65536, \"64K\", \"512M\" or \"4G\"")
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Size, E> {
                let size = u64::try_from(value).map(Size);
                size.map_err(|_| E::invalid_value(de::Unexpected::Signed(value), &self))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Size, E> {
                Ok(Size(value))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Size, E> {
                Size::parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_any(Expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_suffixes_and_limits() {
        assert_eq!(Size::parse("65536"), Some(Size(65536)));
        assert_eq!(Size::parse("0x10k"), Some(Size(16384)));
        assert_eq!(Size::parse("4G"), Some(Size(4 << 30)));
        for wrong in ["", "G", "-1", "1.5M", "99999999T", "1 M"] {
            assert_eq!(Size::parse(wrong), None, "{wrong}");
        }
    }
}
