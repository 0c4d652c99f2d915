//! Where debuggers connect: TCP or a Unix socket.

use std::fmt;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::str::FromStr;

/// Where a debugger connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Host and port; without a host, this host alone.
    Tcp(String),
    /// A socket of this path.
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Address::Unix(path.into()));
        }
        let text = text.strip_prefix("tcp:").unwrap_or(text);
        let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
        if port.parse::<u16>().is_err() {
            return Err("must be :PORT, HOST:PORT or unix:PATH".to_owned());
        }
        let host = if host.is_empty() { "127.0.0.1" } else { host };
        Ok(Address::Tcp(format!("{host}:{port}")))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => formatter.write_str(address),
            Address::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}

/// The socket of a debugger that has connected.
#[derive(Debug)]
pub enum Stream {
    /// By TCP.
    Tcp(TcpStream),
    /// By a Unix socket.
    Unix(UnixStream),
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }
}

/// Waits for debuggers.
pub enum Listener {
    /// On a port.
    Tcp(TcpListener),
    /// On a socket, whose path is removed with the listener.
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Binds an address.
    ///
    /// # Errors
    /// If the host does not grant it; also if the path of a socket exists.
    pub fn bind(address: &Address) -> io::Result<Listener> {
        match address {
            Address::Tcp(address) => TcpListener::bind(address).map(Listener::Tcp),
            Address::Unix(path) => {
                UnixListener::bind(path).map(|listener| Listener::Unix(listener, path.clone()))
            }
        }
    }

    /// Where debuggers connect: the port is the one that the host chose if 0 was asked for.
    ///
    /// # Errors
    /// The host's.
    pub fn address(&self) -> io::Result<Address> {
        match self {
            Listener::Tcp(listener) => Ok(Address::Tcp(listener.local_addr()?.to_string())),
            Listener::Unix(_, path) => Ok(Address::Unix(path.clone())),
        }
    }

    /// Waits until a debugger connects.
    ///
    /// # Errors
    /// The host's.
    pub fn accept(&self) -> io::Result<Stream> {
        match self {
            Listener::Tcp(listener) => Ok(Stream::Tcp(listener.accept()?.0)),
            Listener::Unix(listener, _) => Ok(Stream::Unix(listener.accept()?.0)),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            // That it is gone already adds nothing.
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_ports_of_this_host_or_paths() {
        let tcp = |text: &str| Ok(Address::Tcp(text.to_owned()));
        assert_eq!(":1234".parse(), tcp("127.0.0.1:1234"));
        assert_eq!("1234".parse(), tcp("127.0.0.1:1234"));
        assert_eq!("tcp:0.0.0.0:1".parse(), tcp("0.0.0.0:1"));
        assert_eq!("unix:/a/b".parse(), Ok(Address::Unix("/a/b".into())));
        for wrong in ["", "unix:", "host", ":70000", "host:"] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }
}
