//! The server of gdb's remote protocol for machines: one debugger at a time.

use std::io;
use std::marker::PhantomData;
use std::time::Duration;

use gdbstub::common::Signal;
use gdbstub::conn::ConnectionExt;
use gdbstub::stub::run_blocking::{BlockingEventLoop, Event, WaitForStopReasonError};
use gdbstub::stub::{DisconnectReason, GdbStub, MultiThreadStopReason};
use thiserror::Error;

use super::address::Stream;
use super::architecture::{PACKET_BYTES, stop_reason};
use super::target::{Debuggee, Session, SessionError, thread};
use crate::machine::End;

/// Instructions between two looks whether the debugger interrupts.
const SLICE_INSTRUCTIONS: u64 = 100_000;
/// How long to sleep before the next look while the machine does nothing.
const IDLE: Duration = Duration::from_millis(10);

/// A debugger that has connected.
pub type Connection = Box<dyn ConnectionExt<Error = io::Error>>;

impl From<Stream> for Connection {
    fn from(stream: Stream) -> Connection {
        match stream {
            Stream::Tcp(stream) => Box::new(stream),
            Stream::Unix(stream) => Box::new(stream),
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
                    stop_reason(thread(index), hit)
                }
            };
            return Ok(Event::TargetStopped(reason));
        }
    }

    fn on_interrupt(_: &mut Session<'a, D>) -> Result<Option<MultiThreadStopReason<u64>>, SessionError> {
        Ok(Some(MultiThreadStopReason::Signal(Signal::SIGINT)))
    }
}
