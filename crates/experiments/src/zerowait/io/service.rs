//! What is served, and how a server is started and ended.

use std::fs::File;
use std::io::{self, Write};
use std::net::TcpListener;
use std::sync::Arc;

/// Bytes of a request: the number of a block, and what is echoed.
pub const REQUEST: usize = 64;
/// Bytes of a block of the file.
pub const BLOCK: usize = 4096;
/// Blocks in the file.
pub const BLOCKS: u64 = 256;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The request itself.
    Echo,
    /// A block of the file.
    File,
}

impl Kind {
    /// The kind of a name.
    pub fn of(name: &str) -> Kind {
        if name == "file" { Kind::File } else { Kind::Echo }
    }

    /// Bytes of an answer.
    pub fn answer(self) -> usize {
        match self {
            Kind::Echo => REQUEST,
            Kind::File => BLOCK,
        }
    }
}

/// A service: its kind and its file.
#[derive(Clone, Debug)]
pub struct Service {
    /// What is asked for.
    pub kind: Kind,
    /// The file, each block filled with its number.
    pub file: Arc<File>,
}

impl Service {
    /// Writes the file.
    pub fn new(kind: Kind) -> io::Result<Service> {
        let mut file = tempfile::tempfile()?;
        for block in 0..BLOCKS {
            file.write_all(&[block as u8; BLOCK])?;
        }
        Ok(Service {
            kind,
            file: Arc::new(file),
        })
    }
}

/// Offset in the file of the block that a request asks for.
pub fn offset(request: &[u8]) -> u64 {
    let number = request[..8].try_into().map_or(0, u64::from_le_bytes);
    number % BLOCKS * BLOCK as u64
}

/// Starts a server that takes so many connections and ends when all are closed; what waits for its end.
pub type Start = fn(Service, TcpListener, usize) -> Result<Box<dyn FnOnce() -> Result<(), String>>, String>;
