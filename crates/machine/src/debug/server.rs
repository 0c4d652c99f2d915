//! The server of gdb's remote protocol: one debugger at a time, over TCP or a Unix socket.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use gdbstub::common::Signal;
use gdbstub::conn::ConnectionExt;
use gdbstub::stub::run_blocking::{BlockingEventLoop, Event, WaitForStopReasonError};
use gdbstub::stub::{DisconnectReason, GdbStub, MultiThreadStopReason};
use gdbstub::target::ext::breakpoints::WatchKind;
use thiserror::Error;

use super::guard::{Hit, Watch};
use super::target::{Debuggee, Session, SessionError, thread};
use crate::machine::End;

/// Instructions between two looks whether the debugger interrupts.
const SLICE_INSTRUCTIONS: u64 = 100_000;
/// How long to sleep before the next look while the machine does nothing.
const IDLE: Duration = Duration::from_millis(10);
/// Bytes of a packet: all registers twice, in hexadecimal.
const PACKET_BYTES: usize = 1 << 15;

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

/// A debugger that has connected.
pub type Connection = Box<dyn ConnectionExt<Error = io::Error>>;

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
    pub fn accept(&self) -> io::Result<Connection> {
        match self {
            Listener::Tcp(listener) => Ok(Box::new(listener.accept()?.0)),
            Listener::Unix(listener, _) => Ok(Box::new(listener.accept()?.0)),
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

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// With the machine.
    Ended(End),
    /// The debugger left; the machine may go on.
    Detached,
    /// The debugger wants the machine to end.
    Killed,
}

/// A session that broke.
#[derive(Debug, Error)]
#[error("the debugger broke the protocol: {0}")]
pub struct ServerError(String);

/// Serves one debugger until the machine ends or the debugger leaves, also by closing the connection. The machine is
/// halted first.
///
/// # Errors
/// If the debugger breaks the protocol.
pub fn serve<D: Debuggee>(connection: Connection, debuggee: &mut D) -> Result<Finish, ServerError> {
    let mut session = Session::new(debuggee);
    let stub = GdbStub::builder(connection)
        .packet_buffer_size(PACKET_BYTES)
        .build()
        .map_err(|error| ServerError(error.to_string()))?;
    let reason = match stub.run_blocking::<EventLoop<'_, D>>(&mut session) {
        Ok(reason) => reason,
        // A debugger that is gone has left.
        Err(error) if error.is_connection_error() => DisconnectReason::Disconnect,
        Err(error) => return Err(ServerError(error.to_string())),
    };
    Ok(match (reason, session.end) {
        (DisconnectReason::Kill, _) => Finish::Killed,
        (_, Some(end)) => Finish::Ended(end),
        (DisconnectReason::Disconnect, None) => Finish::Detached,
        (DisconnectReason::TargetExited(_) | DisconnectReason::TargetTerminated(_), None) => {
            unreachable!("the end of the machine was noted when it was reported")
        }
    })
}

struct EventLoop<'a, D>(PhantomData<&'a mut D>);

impl<'a, D: Debuggee> BlockingEventLoop for EventLoop<'a, D> {
    type Target = Session<'a, D>;
    type Connection = Connection;
    type StopReason = MultiThreadStopReason<u64>;

    fn wait_for_stop_reason(
        session: &mut Session<'a, D>,
        connection: &mut Connection,
    ) -> Result<Event<MultiThreadStopReason<u64>>, WaitForStopReasonError<SessionError, io::Error>> {
        let mut guards = session.guards();
        loop {
            if connection
                .peek()
                .map_err(WaitForStopReasonError::Connection)?
                .is_some()
            {
                let byte = connection.read().map_err(WaitForStopReasonError::Connection)?;
                return Ok(Event::IncomingData(byte));
            }
            let reason = match session.debuggee.run(&mut guards, SLICE_INSTRUCTIONS) {
                End::Limit => continue,
                End::Deadlock => {
                    std::thread::sleep(IDLE);
                    continue;
                }
                End::Stopped => MultiThreadStopReason::Signal(Signal::SIGINT),
                End::Exit(code) => {
                    session.end = Some(End::Exit(code));
                    MultiThreadStopReason::Exited(u8::try_from(code).unwrap_or(u8::MAX))
                }
                end @ (End::Reset | End::Panic) => {
                    session.end = Some(end);
                    MultiThreadStopReason::Exited(u8::from(end == End::Panic))
                }
                End::Halted(index) => {
                    let hit = guards[index].hit();
                    session.note(index, hit);
                    stop_reason(index, hit)
                }
            };
            return Ok(Event::TargetStopped(reason));
        }
    }

    fn on_interrupt(_: &mut Session<'a, D>) -> Result<Option<MultiThreadStopReason<u64>>, SessionError> {
        Ok(Some(MultiThreadStopReason::Signal(Signal::SIGINT)))
    }
}

fn stop_reason(index: usize, hit: Option<Hit>) -> MultiThreadStopReason<u64> {
    let tid = thread(index);
    match hit {
        Some(Hit::Breakpoint) => MultiThreadStopReason::SwBreak(tid),
        Some(Hit::Watchpoint(point, addr)) => MultiThreadStopReason::Watch {
            tid,
            kind: match point.watch {
                Watch::Read => WatchKind::Read,
                Watch::Write => WatchKind::Write,
                Watch::Access => WatchKind::ReadWrite,
            },
            addr,
        },
        Some(Hit::Step) | None => MultiThreadStopReason::SignalWithThread {
            tid,
            signal: Signal::SIGTRAP,
        },
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
