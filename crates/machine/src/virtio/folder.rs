//! A shared folder: the messages of its [`Server`] (section 5.9 of the specification has the number of the device; how
//! it looks is as Linux's driver has it).

use super::VirtioDevice;
use super::request::{Request, RequestError};
use crate::folder::protocol::HEADER_BYTES;
use crate::folder::server::{MESSAGE_BYTES_MAX, Server};

/// The most bytes of the name that a guest mounts the folder by.
pub const TAG_BYTES_MAX: usize = 32;

/// The device.
pub struct Folder {
    server: Server,
    configuration: Vec<u8>,
}

impl Folder {
    /// A folder by this name.
    ///
    /// # Panics
    /// If the name has no bytes, or more than [`TAG_BYTES_MAX`].
    pub fn new(tag: &str, server: Server) -> Folder {
        assert!((1..=TAG_BYTES_MAX).contains(&tag.len()), "a name");
        let mut configuration = (tag.len() as u16).to_le_bytes().to_vec();
        configuration.extend_from_slice(tag.as_bytes());
        Folder {
            server,
            configuration,
        }
    }
}

impl VirtioDevice for Folder {
    fn identifier(&self) -> u32 {
        9
    }

    fn features(&self) -> u64 {
        const TAG: u64 = 1 << 0;
        TAG
    }

    fn queue_sizes(&self) -> &[u16] {
        &[128]
    }

    fn configuration(&self) -> &[u8] {
        &self.configuration
    }

    fn serve(&mut self, _: usize, request: &Request<'_>) -> Result<u32, RequestError> {
        let most = u64::from(MESSAGE_BYTES_MAX);
        if request.readable() < HEADER_BYTES as u64 || request.writable() < HEADER_BYTES as u64 {
            return Err(request.short());
        }
        let mut message = vec![0; request.readable().min(most) as usize];
        request.read(0, &mut message);
        let answer = self
            .server
            .answer(&message, request.writable().min(most) as usize);
        request.write(0, &answer);
        Ok(answer.len() as u32)
    }

    fn reset(&mut self) {
        self.server.reset();
    }
}
