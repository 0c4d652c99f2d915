//! TCP: each connection of the guest is one to this program and one from here to the outside.
//!
//! A guest's first segment waits until the host has connected, so that a guest sees a refused connection as one; the
//! host connects on a thread of its own. From the other side, a connection to a forwarded port is accepted at once and
//! reset if the guest refuses.
//!
//! An end is an end and a reset is a reset: a connection that one side breaks, or that the machine's end cuts off, is
//! reset for the other side, so that nobody takes a part for the whole. What was acknowledged to a guest that has ended
//! its direction reaches the host, however slowly that reads.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::Duration;

use smoltcp::iface::{Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp::{self, Socket, SocketBuffer, State};
use smoltcp::wire::{IpAddress, IpListenEndpoint};

use super::super::forward::{Forward, Transport};
use super::addresses::{GATEWAY, target};

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
    guest: SocketAddr,
    peer: SocketAddr,
    frame: Vec<u8>,
    connected: Receiver<io::Result<TcpStream>>,
}

/// The first segment of a connection that the host has answered.
pub struct Syn {
    guest: SocketAddr,
    peer: SocketAddr,
    /// The frame it came in.
    frame: Vec<u8>,
    /// The host's connection; none if it was refused.
    stream: Option<TcpStream>,
}

struct Open {
    guest: SocketAddr,
    peer: SocketAddr,
    /// The end that the guest sees; none once that is closed.
    handle: Option<SocketHandle>,
    /// The host's; none once both directions have ended.
    stream: Option<TcpStream>,
    outward: Outward,
    host_ended: bool,
}

/// The direction from the guest to the host.
enum Outward {
    /// The guest may send more.
    Open,
    /// The guest has ended it, and the host has not taken these yet.
    Ending(Vec<u8>),
    /// The host knows that it has ended.
    Ended,
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
        let of_connections = |forward: &&Forward| forward.transport == Transport::Tcp;
        let listeners = forwards
            .iter()
            .filter(of_connections)
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
    pub fn has(&self, guest: SocketAddr, peer: SocketAddr) -> bool {
        self.is_beginning(guest, peer)
            || self
                .open
                .iter()
                .any(|open| open.handle.is_some() && (open.guest, open.peer) == (guest, peer))
    }

    /// Whether the host is making this one.
    pub fn is_beginning(&self, guest: SocketAddr, peer: SocketAddr) -> bool {
        self.beginning
            .iter()
            .any(|beginning| (beginning.guest, beginning.peer) == (guest, peer))
    }

    /// A guest begins a connection with this frame. If there are too many, the guest has to try again.
    pub fn begin(&mut self, guest: SocketAddr, peer: SocketAddr, frame: &[u8]) {
        let is_full = self.beginning.len() + self.open.len() >= CONNECTIONS_MAX;
        if is_full || self.beginning.len() >= BEGINNING_MAX {
            return;
        }
        let (sender, connected) = mpsc::channel();
        match target(peer, None) {
            Some(target) => {
                thread::spawn(move || {
                    let connect = || {
                        let stream = TcpStream::connect_timeout(&target, CONNECT_TIME_MAX)?;
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
            addr: Some(syn.peer.ip().into()),
            port: syn.peer.port(),
        };
        if socket.listen(endpoint).is_ok() {
            self.add(syn.guest, syn.peer, sockets.add(socket), stream);
        }
        syn.frame
    }

    fn add(&mut self, guest: SocketAddr, peer: SocketAddr, handle: SocketHandle, stream: TcpStream) {
        self.open.push(Open {
            guest,
            peer,
            handle: Some(handle),
            stream: Some(stream),
            outward: Outward::Open,
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
                accepted.push((stream, SocketAddr::V4(*guest)));
            }
        }
        for (stream, guest) in accepted {
            if stream.set_nonblocking(true).is_err() || stream.set_nodelay(true).is_err() {
                continue;
            }
            let peer = SocketAddr::new(GATEWAY.into(), self.free_port(guest));
            let mut socket = new_socket();
            socket.set_timeout(Some(ACCEPT_TIME_MAX));
            let connected = socket.connect(
                interface.context(),
                (IpAddress::from(guest.ip()), guest.port()),
                (IpAddress::from(peer.ip()), peer.port()),
            );
            if connected.is_ok() {
                self.add(guest, peer, sockets.add(socket), stream);
            }
        }
    }

    /// A port from which no connection to this endpoint of the guest comes; there are more than connections.
    fn free_port(&mut self, guest: SocketAddr) -> u16 {
        loop {
            let port = self.next_port;
            self.next_port = port.checked_add(1).unwrap_or(FIRST_PORT);
            if !self.has(guest, SocketAddr::new(GATEWAY.into(), port)) {
                return port;
            }
        }
    }

    /// Moves bytes in both directions, and takes apart what has ended.
    pub fn transfer(&mut self, sockets: &mut SocketSet<'static>) {
        self.open.retain_mut(|open| {
            let handle = open.handle;
            open.transfer(handle.map(|handle| sockets.get_mut(handle)));
            if let Some(handle) = handle
                && is_gone(sockets.get(handle))
            {
                sockets.remove(handle);
                open.handle = None;
                if matches!(open.outward, Outward::Open) {
                    open.reset();
                }
            }
            open.handle.is_some() || open.stream.is_some()
        });
    }

    /// The machine ends: what the host takes at once is handed on, and what has not ended by then is reset.
    pub fn cut_off(&mut self, sockets: &mut SocketSet<'static>) {
        self.transfer(sockets);
        for open in &mut self.open {
            if !matches!(open.outward, Outward::Ended) {
                open.reset();
            }
        }
    }
}

/// Whether a connection is closed and the guest has been told so.
fn is_gone(socket: &Socket<'_>) -> bool {
    socket.state() == State::Closed && socket.remote_endpoint().is_none()
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
    fn transfer(&mut self, socket: Option<&mut Socket<'static>>) {
        let Some(stream) = &mut self.stream else {
            return;
        };
        let Some(socket) = socket else {
            // The guest has closed its end, so only the rest is left to hand on.
            if self.outward.hand_on(stream).is_err() || matches!(self.outward, Outward::Ended) {
                self.stream = None;
            }
            return;
        };
        if matches!(
            socket.state(),
            State::Listen | State::SynSent | State::SynReceived
        ) {
            return;
        }
        socket.set_timeout(None);
        let result = self.outward.transfer(socket, stream).and_then(|()| {
            if !self.host_ended {
                self.host_ended = to_guest(socket, stream)?;
            }
            Ok(())
        });
        if result.is_err() {
            socket.abort();
            self.stream = None;
            return;
        }
        // Not before everything has arrived: once it has sent its end behind the guest's, the stack takes no more
        // notice of a window that opens, and would go on only after a probe, a second later.
        if self.host_ended && socket.send_queue() == 0 {
            socket.close();
            if matches!(self.outward, Outward::Ended) {
                self.stream = None;
            }
        }
    }

    /// Ends the host's connection so that the host knows that something is missing.
    fn reset(&mut self) {
        if let Some(stream) = self.stream.take() {
            // Where this fails, the connection just ends.
            let _ = rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
        }
    }
}

impl Outward {
    fn transfer(&mut self, socket: &mut Socket<'_>, stream: &mut TcpStream) -> io::Result<()> {
        if matches!(self, Outward::Open) {
            let has_ended = matches!(
                socket.state(),
                State::CloseWait | State::LastAck | State::Closing | State::TimeWait
            );
            if !has_ended {
                return to_host(socket, stream);
            }
            // The stack forgets what it holds when it closes the connection, which may be before the host has read it.
            let mut rest = vec![0; socket.recv_queue()];
            let size = socket.recv_slice(&mut rest).unwrap_or(0);
            rest.truncate(size);
            *self = Outward::Ending(rest);
        }
        self.hand_on(stream)
    }

    /// Hands on the rest, as much as the host takes, and then the end.
    fn hand_on(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        let Outward::Ending(rest) = self else {
            return Ok(());
        };
        while !rest.is_empty() {
            match stream.write(rest) {
                Ok(size) => drop(rest.drain(..size)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        stream.shutdown(Shutdown::Write)?;
        *self = Outward::Ended;
        Ok(())
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
