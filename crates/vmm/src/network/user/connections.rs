//! TCP: each connection of the guest is one to this program and one from here to the outside.
//!
//! A guest's first segment waits until the host has connected, so that a guest sees a refused connection as one; the
//! host connects on a thread of its own. From the other side, a connection to a forwarded port is accepted at once and
//! closed again if the guest refuses.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::Duration;

use smoltcp::iface::{Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp::{self, Socket, SocketBuffer, State};
use smoltcp::wire::{IpAddress, IpListenEndpoint};

use super::super::forward::Forward;
use super::{GATEWAY, target};

/// The most connections, open or beginning; those above are refused.
const CONNECTIONS_MAX: usize = 256;
/// The most that are beginning: each has a thread.
const BEGINNING_MAX: usize = 64;
/// How long the host tries, in its own time.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(30);
/// Bytes on their way in each direction.
const BUFFER_BYTES: usize = 1 << 16;
/// How long a guest has to accept, in machine time.
const ACCEPT_TIME_MAX: smoltcp::time::Duration = smoltcp::time::Duration::from_secs(30);
/// The ports from which forwarded connections seem to come.
const FIRST_PORT: u16 = 49_152;

/// A connection that the host is making.
struct Beginning {
    guest: SocketAddrV4,
    peer: SocketAddrV4,
    frame: Vec<u8>,
    connected: Receiver<io::Result<TcpStream>>,
}

/// The first segment of a connection that the host has answered.
pub struct Syn {
    guest: SocketAddrV4,
    peer: SocketAddrV4,
    /// The frame it came in.
    frame: Vec<u8>,
    /// The host's connection; none if it was refused.
    stream: Option<TcpStream>,
}

struct Open {
    guest: SocketAddrV4,
    peer: SocketAddrV4,
    handle: SocketHandle,
    /// None once both ends have closed.
    stream: Option<TcpStream>,
    guest_ended: bool,
    host_ended: bool,
}

/// All connections.
pub struct Connections {
    beginning: Vec<Beginning>,
    open: Vec<Open>,
    listeners: Vec<(TcpListener, SocketAddrV4)>,
    next_port: u16,
}

impl Connections {
    /// None yet, and these ports.
    ///
    /// # Errors
    /// If the host does not listen at one of them, with that one.
    pub fn new(forwards: &[Forward]) -> Result<Connections, (Forward, io::Error)> {
        let listen = |forward: &Forward| {
            let listener = TcpListener::bind(forward.host)?;
            listener.set_nonblocking(true)?;
            Ok((listener, forward.guest))
        };
        let listeners = forwards
            .iter()
            .map(|forward| listen(forward).map_err(|error| (*forward, error)));
        Ok(Connections {
            beginning: Vec::new(),
            open: Vec::new(),
            listeners: listeners.collect::<Result<_, _>>()?,
            next_port: FIRST_PORT,
        })
    }

    /// Where the host listens.
    pub fn listening(&self) -> Vec<SocketAddrV4> {
        let address = |(listener, _): &(TcpListener, _)| match listener.local_addr() {
            Ok(SocketAddr::V4(address)) => Some(address),
            _ => None,
        };
        self.listeners.iter().filter_map(address).collect()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.beginning.is_empty() && self.open.is_empty()
    }

    /// Whether there is this one, open or beginning.
    pub fn has(&self, guest: SocketAddrV4, peer: SocketAddrV4) -> bool {
        self.is_beginning(guest, peer)
            || self
                .open
                .iter()
                .any(|open| (open.guest, open.peer) == (guest, peer))
    }

    /// Whether the host is making this one.
    pub fn is_beginning(&self, guest: SocketAddrV4, peer: SocketAddrV4) -> bool {
        self.beginning
            .iter()
            .any(|beginning| (beginning.guest, beginning.peer) == (guest, peer))
    }

    /// A guest begins a connection with this frame. If there are too many, the guest has to try again.
    pub fn begin(&mut self, guest: SocketAddrV4, peer: SocketAddrV4, frame: &[u8]) {
        let is_full = self.beginning.len() + self.open.len() >= CONNECTIONS_MAX;
        if is_full || self.beginning.len() >= BEGINNING_MAX {
            return;
        }
        let (sender, connected) = mpsc::channel();
        match target(peer, None) {
            Some(target) => {
                thread::spawn(move || {
                    let connect = || {
                        let stream = TcpStream::connect_timeout(&target.into(), CONNECT_TIME_MAX)?;
                        stream.set_nonblocking(true)?;
                        stream.set_nodelay(true)?;
                        Ok(stream)
                    };
                    // If the machine has gone, nobody wants it.
                    let _ = sender.send(connect());
                });
            }
            // Nothing is there: as good as refused.
            None => drop(sender),
        }
        self.beginning.push(Beginning {
            guest,
            peer,
            frame: frame.to_vec(),
            connected,
        });
    }

    /// The connections that the host has made or given up since this was asked last.
    pub fn established(&mut self) -> Vec<Syn> {
        let mut done = Vec::new();
        let mut index = 0;
        while index < self.beginning.len() {
            let stream = match self.beginning[index].connected.try_recv() {
                Err(TryRecvError::Empty) => {
                    index += 1;
                    continue;
                }
                Ok(Ok(stream)) => Some(stream),
                Ok(Err(_)) | Err(TryRecvError::Disconnected) => None,
            };
            let Beginning {
                guest, peer, frame, ..
            } = self.beginning.remove(index);
            done.push(Syn {
                frame,
                guest,
                peer,
                stream,
            });
        }
        done
    }

    /// Makes the end that the guest sees, for the frame that is returned: it takes it next. Without one, the stack
    /// refuses it.
    pub fn open(&mut self, syn: Syn, sockets: &mut SocketSet<'static>) -> Vec<u8> {
        let Some(stream) = syn.stream else {
            return syn.frame;
        };
        let mut socket = new_socket();
        let endpoint = IpListenEndpoint {
            addr: Some(IpAddress::Ipv4(*syn.peer.ip())),
            port: syn.peer.port(),
        };
        if socket.listen(endpoint).is_ok() {
            self.add(syn.guest, syn.peer, sockets.add(socket), stream);
        }
        syn.frame
    }

    fn add(&mut self, guest: SocketAddrV4, peer: SocketAddrV4, handle: SocketHandle, stream: TcpStream) {
        self.open.push(Open {
            guest,
            peer,
            handle,
            stream: Some(stream),
            guest_ended: false,
            host_ended: false,
        });
    }

    /// Accepts connections to forwarded ports and makes them on to the guest.
    pub fn accept(&mut self, interface: &mut Interface, sockets: &mut SocketSet<'static>) {
        let mut accepted = Vec::new();
        for (listener, guest) in &self.listeners {
            if self.beginning.len() + self.open.len() + accepted.len() >= CONNECTIONS_MAX {
                break;
            }
            if let Ok((stream, _)) = listener.accept() {
                accepted.push((stream, *guest));
            }
        }
        for (stream, guest) in accepted {
            if stream.set_nonblocking(true).is_err() || stream.set_nodelay(true).is_err() {
                continue;
            }
            let peer = SocketAddrV4::new(GATEWAY, self.free_port(guest));
            let mut socket = new_socket();
            socket.set_timeout(Some(ACCEPT_TIME_MAX));
            let connected = socket.connect(
                interface.context(),
                (IpAddress::Ipv4(*guest.ip()), guest.port()),
                (IpAddress::Ipv4(*peer.ip()), peer.port()),
            );
            if connected.is_ok() {
                self.add(guest, peer, sockets.add(socket), stream);
            }
        }
    }

    /// A port from which no connection to this endpoint of the guest comes; there are more than connections.
    fn free_port(&mut self, guest: SocketAddrV4) -> u16 {
        loop {
            let port = self.next_port;
            self.next_port = port.checked_add(1).unwrap_or(FIRST_PORT);
            if !self.has(guest, SocketAddrV4::new(GATEWAY, port)) {
                return port;
            }
        }
    }

    /// Moves bytes in both directions, and takes apart what has ended.
    pub fn transfer(&mut self, sockets: &mut SocketSet<'static>) {
        self.open.retain_mut(|open| {
            let socket = sockets.get_mut::<Socket<'_>>(open.handle);
            open.transfer(socket);
            let lives = socket.state() != State::Closed;
            if !lives {
                sockets.remove(open.handle);
            }
            lives
        });
    }
}

fn new_socket() -> Socket<'static> {
    let mut socket = Socket::new(
        SocketBuffer::new(vec![0; BUFFER_BYTES]),
        SocketBuffer::new(vec![0; BUFFER_BYTES]),
    );
    socket.set_nagle_enabled(false);
    socket.set_congestion_control(tcp::CongestionControl::None);
    socket
}

impl Open {
    fn transfer(&mut self, socket: &mut Socket<'_>) {
        if matches!(
            socket.state(),
            State::Listen | State::SynSent | State::SynReceived
        ) {
            return;
        }
        socket.set_timeout(None);
        let Some(stream) = &mut self.stream else {
            return;
        };
        let result = to_host(socket, stream).and_then(|()| {
            if !self.host_ended {
                self.host_ended = to_guest(socket, stream)?;
            }
            if !self.guest_ended && !socket.may_recv() && !socket.can_recv() {
                self.guest_ended = true;
                stream.shutdown(Shutdown::Write)?;
            }
            Ok(())
        });
        if result.is_err() {
            socket.abort();
            self.stream = None;
            return;
        }
        if self.host_ended {
            socket.close();
        }
        if self.host_ended && self.guest_ended {
            self.stream = None;
        }
    }
}

/// Hands on what the guest has sent, as much as the host takes.
fn to_host(socket: &mut Socket<'_>, stream: &mut TcpStream) -> io::Result<()> {
    while socket.can_recv() {
        let taken = socket.recv(|bytes| match stream.write(bytes) {
            Ok(size) => (size, Ok(size)),
            Err(error) => (0, Err(error)),
        });
        match taken {
            Ok(Ok(size)) if size > 0 => {}
            Ok(Err(error)) if error.kind() != ErrorKind::WouldBlock => return Err(error),
            _ => break,
        }
    }
    Ok(())
}

/// Hands on what the host has received, as much as the guest takes; says whether there will be no more.
fn to_guest(socket: &mut Socket<'_>, stream: &mut TcpStream) -> io::Result<bool> {
    while socket.can_send() {
        let taken = socket.send(|room| match stream.read(room) {
            Ok(size) => (size, Ok(size)),
            Err(error) => (0, Err(error)),
        });
        match taken {
            Ok(Ok(0)) => return Ok(true),
            Ok(Ok(_)) => {}
            Ok(Err(error)) if error.kind() != ErrorKind::WouldBlock => return Err(error),
            _ => break,
        }
    }
    Ok(false)
}
