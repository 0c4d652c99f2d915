//! Messages of 9P2000.L: a size, a kind, a tag, and fields in the order of the protocol, little-endian.

use rustix::io::Errno;

/// Bytes of size, kind and tag.
pub const HEADER_BYTES: usize = 7;
/// Bytes that every answer with data has before them: the header and how many they are.
pub const DATA_OVERHEAD: usize = HEADER_BYTES + 4;
/// What the protocol calls itself.
pub const VERSION: &[u8] = b"9P2000.L";
/// The tag of a message that has none.
pub const NO_TAG: u16 = 0xffff;
/// The answer to a request of a kind is of the next one; the answer to one that failed is of this.
pub const ERROR: u8 = 7;

/// Kinds of requests.
pub mod request {
    pub const STATISTICS: u8 = 8;
    pub const OPEN: u8 = 12;
    pub const CREATE: u8 = 14;
    pub const SYMBOLIC_LINK: u8 = 16;
    pub const READ_LINK: u8 = 22;
    pub const GET_ATTRIBUTES: u8 = 24;
    pub const SET_ATTRIBUTES: u8 = 26;
    pub const READ_FOLDER: u8 = 40;
    pub const SYNCHRONIZE: u8 = 50;
    pub const LOCK: u8 = 52;
    pub const GET_LOCK: u8 = 54;
    pub const LINK: u8 = 70;
    pub const MAKE_FOLDER: u8 = 72;
    pub const RENAME: u8 = 74;
    pub const UNLINK: u8 = 76;
    pub const VERSION: u8 = 100;
    pub const ATTACH: u8 = 104;
    pub const FLUSH: u8 = 108;
    pub const WALK: u8 = 110;
    pub const READ: u8 = 116;
    pub const WRITE: u8 = 118;
    pub const CLUNK: u8 = 120;
}

/// Fields of a message, one after the other.
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// The next so many bytes.
    ///
    /// # Errors
    /// If the message ends before.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Errno> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(Errno::PROTO)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Errno> {
        self.bytes(N)
            .map(|bytes| bytes.try_into().expect("as many as asked for"))
    }

    /// A number of one byte.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes), as for all others.
    pub fn byte(&mut self) -> Result<u8, Errno> {
        self.array::<1>().map(u8::from_le_bytes)
    }

    /// A number of two bytes.
    pub fn half(&mut self) -> Result<u16, Errno> {
        self.array().map(u16::from_le_bytes)
    }

    /// A number of four bytes.
    pub fn word(&mut self) -> Result<u32, Errno> {
        self.array().map(u32::from_le_bytes)
    }

    /// A number of eight bytes.
    pub fn long(&mut self) -> Result<u64, Errno> {
        self.array().map(u64::from_le_bytes)
    }

    /// A text: its length and its bytes.
    pub fn text(&mut self) -> Result<&'a [u8], Errno> {
        let length = self.half()?;
        self.bytes(length.into())
    }
}

/// What tells a file from every other: its kind, its version and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// 0x80 for a folder, 2 for a symbolic link, 0 for anything else.
    pub kind: u8,
    /// Another one once its contents may have changed.
    pub version: u32,
    /// Its number.
    pub number: u64,
}

impl Identity {
    /// Bytes of it.
    pub const BYTES: usize = 13;
}

/// The body of an answer as it grows.
#[derive(Default)]
pub struct Answer(pub Vec<u8>);

impl Answer {
    /// Appends bytes.
    pub fn bytes(mut self, bytes: &[u8]) -> Answer {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Appends a number of one byte.
    pub fn byte(self, value: u8) -> Answer {
        self.bytes(&[value])
    }

    /// Appends a number of two bytes.
    pub fn half(self, value: u16) -> Answer {
        self.bytes(&value.to_le_bytes())
    }

    /// Appends a number of four bytes.
    pub fn word(self, value: u32) -> Answer {
        self.bytes(&value.to_le_bytes())
    }

    /// Appends a number of eight bytes.
    pub fn long(self, value: u64) -> Answer {
        self.bytes(&value.to_le_bytes())
    }

    /// Appends a text of at most 65,535 bytes.
    pub fn text(self, text: &[u8]) -> Answer {
        let text = &text[..text.len().min(usize::from(u16::MAX))];
        self.half(text.len() as u16).bytes(text)
    }

    /// Appends data with its length.
    pub fn data(self, data: &[u8]) -> Answer {
        self.word(data.len() as u32).bytes(data)
    }

    /// Appends what tells a file from others.
    pub fn identity(self, identity: Identity) -> Answer {
        self.byte(identity.kind)
            .word(identity.version)
            .long(identity.number)
    }

    /// The whole message.
    pub fn message(self, kind: u8, tag: u16) -> Vec<u8> {
        let size = (HEADER_BYTES + self.0.len()) as u32;
        let header = Answer::default().word(size).byte(kind).half(tag);
        header.bytes(&self.0).0
    }
}
